//! Any bytes as the arguments of a call: see `args_checks.rs` for what must hold.
#![no_main]

use std::sync::LazyLock;

#[path = "../args_checks.rs"]
mod args_checks;

static BENCH: LazyLock<args_checks::Bench> = LazyLock::new(args_checks::Bench::new);

libfuzzer_sys::fuzz_target!(|data: &[u8]| BENCH.args(data));
