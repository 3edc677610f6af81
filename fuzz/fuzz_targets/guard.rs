//! Any bytes as a history of tool calls: see `guard_checks.rs` for what must hold.
#![no_main]

use std::sync::LazyLock;

#[path = "../guard_checks.rs"]
mod guard_checks;

static BENCH: LazyLock<guard_checks::GuardBench> = LazyLock::new(guard_checks::GuardBench::new);

libfuzzer_sys::fuzz_target!(|data: &[u8]| BENCH.history(data));
