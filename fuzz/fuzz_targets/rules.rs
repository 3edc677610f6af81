//! Any bytes through `rules` and `models`: see `checks.rs` for what must hold.
#![no_main]

use std::sync::LazyLock;

#[path = "../checks.rs"]
mod checks;

static BENCH: LazyLock<checks::Bench> = LazyLock::new(checks::Bench::new);

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    BENCH.rules(data);
    BENCH.models(data);
});
