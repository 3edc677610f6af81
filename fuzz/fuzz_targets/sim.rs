//! Any bytes as a model's name and a request to the simulated provider: see `sim_checks.rs` for what must hold.
#![no_main]

#[path = "../sim_checks.rs"]
mod sim_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sim_checks::ask(data));
