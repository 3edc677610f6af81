//! What a look at the cooldown table costs, however many keys there are, and what a key costs in memory.
//!
//! Promises: a look is one lookup (the growth from a thousand to a hundred thousand keys is the processor's caches, not the
//! table); memory per key is printed. `cargo bench -p koboshi --bench cooldown`.

#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a bench"
)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use koboshi::chance::Seed;
use koboshi::cooldown::{Class, CooldownPolicy, Cooldowns, Failure};
use koboshi::key::{ScopeKey, ScopeLevel};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("an instant")
}

fn keys(count: usize) -> Vec<ScopeKey> {
    (0..count)
        .map(|n| ScopeKey::new(ScopeLevel::Agent, &format!("agent-{n:06}/project-{n:06}")).expect("a key"))
        .collect()
}

fn table(keys: &[ScopeKey]) -> Cooldowns {
    let mut table = Cooldowns::new(CooldownPolicy::default()).expect("a sound policy");
    let failure = Failure {
        detail: "Your quota will reset after 22m55s.".to_owned(),
        ..Failure::of_class(Class::Quota)
    };
    for key in keys {
        table.fail(key, &failure, at(0), Seed::new(1));
    }
    table
}

/// Memory of this process that is in use, in bytes; nothing where the system does not tell.
fn memory() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0.0);
    pages * 4096.0
}

fn look(c: &mut Criterion) {
    let keys = keys(100_000);
    let before = memory();
    let full = table(&keys);
    println!(
        "memory per key, with 100,000 resting keys: {:.0} bytes",
        (memory() - before) / keys.len() as f64
    );
    let mut group = c.benchmark_group("cooldown_check");
    for count in [1_000, 10_000, 100_000] {
        let some;
        let table = if count == keys.len() {
            &full
        } else {
            some = table(&keys[..count]);
            &some
        };
        // Every key in turn, in an order that the caches cannot guess; and one key again and again.
        let mut next = 0;
        group.bench_function(BenchmarkId::new("any_key", count), |b| {
            b.iter(|| {
                next = (next + 7_919) % count;
                table.check(black_box(&keys[next]), at(10)).is_some()
            });
        });
        group.bench_function(BenchmarkId::new("one_key", count), |b| {
            b.iter(|| table.check(black_box(&keys[count / 2]), at(10)).is_some());
        });
    }
    group.finish();
}

criterion_group!(benches, look);
criterion_main!(benches);
