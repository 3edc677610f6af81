//! See `wire_checks.rs` for what must hold of any bytes.
#![no_main]

#[path = "../wire_checks.rs"]
#[allow(dead_code, reason = "each target uses its own check")]
mod wire_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire_checks::gemini_event(data));
