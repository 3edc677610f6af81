//! See `messages_checks.rs` for what must hold of any bytes.
#![no_main]

#[path = "../messages_checks.rs"]
#[allow(dead_code, reason = "each target uses its own check")]
mod messages_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| messages_checks::messages_event(data));
