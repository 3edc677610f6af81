//! Any bytes as frames of a session: see `session_checks.rs` for what must hold.
#![no_main]

#[path = "../session_checks.rs"]
mod session_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| session_checks::frames(data));
