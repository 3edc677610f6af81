//! How fast the journal is, what a note costs its caller, and what a key costs in the working copy.
//!
//! A plain program, not criterion's: "sustained without dropping" is a question about minutes of one process, not about
//! the mean of a loop. It says in the end whether the promises held. `KOBOSHI_BENCH_SECONDS` sets the length.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "a program that prints measurements"
)]
#![allow(clippy::disallowed_methods, reason = "measuring time is its purpose")]

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use koboshi::cooldown::{Class, Rest};
use koboshi::key::ScopeKey;
use koboshi_store::{
    Entry, EntryKind, Ledger, LedgerOptions, MemoryStore, Query, Retention, SqlitePolicy, SqliteStore, Store,
};

const PRODUCERS: u32 = 2;
/// What is promised, with room: each producer keeps this pace.
const PACE: u32 = 30_000;

fn main() {
    let seconds = std::env::var("KOBOSHI_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    // First, while the memory of the process is still its own.
    working_copy();
    let usual = LedgerOptions::new("bench".parse().unwrap());
    journal(Duration::from_secs(seconds), &usual);
    let keep = Retention { entries: 100_000, ..usual.keep };
    journal(
        Duration::from_secs(seconds),
        &LedgerOptions { keep, prune_every: Duration::from_secs(1), ..usual },
    );
    burst();
}

fn entry(ledger: &Ledger, n: u32) -> Entry {
    Entry {
        kind: Some(Cow::Borrowed("rate_limited")),
        key: Some("account:main".parse().unwrap()),
        agent: Some("reviewer/website".to_owned()),
        ..Entry::new(
            Timestamp::now(),
            ledger.node(),
            EntryKind::Fault,
            format!("the provider allows no more requests now, try again in {n} s"),
        )
    }
}

/// Producers that keep a pace for a while: nothing may be dropped.
fn journal(length: Duration, options: &LedgerOptions) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("koboshi.db");
    let store = Arc::new(SqliteStore::open(&file, SqlitePolicy::default()).unwrap());
    let ledger = Ledger::open(store.clone(), options.clone()).unwrap();
    assert!(ledger.wait_loaded(Duration::from_secs(10)));
    let begun = Instant::now();
    let spent: Vec<(u32, Duration, Vec<u32>)> = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS).map(|_| scope.spawn(|| produce(&ledger, length))).collect();
        producers.into_iter().map(|producer| producer.join().unwrap()).collect()
    });
    let produced = begun.elapsed();
    assert!(ledger.flush(Duration::from_secs(60)));
    let written = begun.elapsed();
    let notes: u32 = spent.iter().map(|(notes, _, _)| notes).sum();
    let inside: Duration = spent.iter().map(|(_, inside, _)| *inside).sum();
    let mut samples: Vec<u32> = spent.into_iter().flat_map(|(_, _, samples)| samples).collect();
    samples.sort_unstable();
    let at = |share: f64| samples.get((samples.len() as f64 * share) as usize).copied().unwrap_or(0);
    let dropped = ledger.health().journal_dropped;
    let kept = store.query(&Query { limit: usize::MAX >> 1, ..Query::default() }).unwrap().len();
    let rate = f64::from(notes) / produced.as_secs_f64();
    let max = options.keep.entries;
    println!("journal through SQLite, {PRODUCERS} producers for {produced:.1?}, at most {max} entries:");
    println!(
        "  {rate:.0} entries/s, {notes} noted, {kept} kept, {dropped} dropped, all written after {written:.1?}"
    );
    println!("  a note costs its caller {:.0} ns in the mean", inside.as_nanos() as f64 / f64::from(notes));
    println!("  p50 {} ns, p99 {} ns, p99.9 {} ns, most {} ns", at(0.5), at(0.99), at(0.999), at(0.999_999));
    println!("  the file has {:.0} MB", std::fs::metadata(&file).unwrap().len() as f64 / 1e6);
    let complete = kept == notes as usize || u64::from(notes) > max;
    let holds = dropped == 0 && rate >= 50_000.0 && complete;
    println!("  50,000 entries/s without a drop: {}", if holds { "yes" } else { "NO" });
}

/// Notes entries at the pace, in small bursts. Gives how many, the time inside the calls, and single times in ns.
fn produce(ledger: &Ledger, length: Duration) -> (u32, Duration, Vec<u32>) {
    const BURST: u32 = 300;
    let (mut notes, mut inside, mut samples) = (0, Duration::ZERO, Vec::new());
    let begun = Instant::now();
    while begun.elapsed() < length {
        let batch: Vec<Entry> = (0..BURST).map(|n| entry(ledger, n)).collect();
        for entry in batch {
            let before = Instant::now();
            ledger.journal(entry);
            let took = before.elapsed();
            inside += took;
            samples.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
        }
        notes += BURST;
        let due = Duration::from_secs_f64(f64::from(notes) / f64::from(PACE));
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    (notes, inside, samples)
}

/// As fast as one thread can: how much the store takes when everything is in its hands.
fn burst() {
    const ENTRIES: u32 = 500_000;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("koboshi.db"), SqlitePolicy::default()).unwrap();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let ledger = Ledger::open(memory, LedgerOptions::new("bench".parse().unwrap())).unwrap();
    let entries: Vec<Entry> = (0..ENTRIES).map(|n| entry(&ledger, n)).collect();
    let begun = Instant::now();
    for chunk in entries.chunks(8192) {
        store.append(chunk).unwrap();
    }
    let rate = f64::from(ENTRIES) / begun.elapsed().as_secs_f64();
    println!("SQLite alone, batches of 8,192: {rate:.0} entries/s");
}

/// The same lookup among few keys and many, and the memory that many take.
fn working_copy() {
    const LOOKUPS: u32 = 2_000_000;
    let mut costs = Vec::new();
    for count in [1_000_u32, 100_000] {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("koboshi.db"), SqlitePolicy::default()).unwrap();
        let ledger = Ledger::open(Arc::new(store), LedgerOptions::new("bench".parse().unwrap())).unwrap();
        let keys: Vec<ScopeKey> =
            (0..count).map(|n| format!("agent:agent-{n:06}/project").parse().unwrap()).collect();
        let before = resident();
        for key in &keys {
            ledger.update_cooldown(key, |cooldown| cooldown.rest = Some(rest()));
        }
        let after = resident();
        let begun = Instant::now();
        assert!(ledger.flush(Duration::from_secs(120)));
        let written = begun.elapsed();
        let begun = Instant::now();
        let mut at = 0_usize;
        for _ in 0..LOOKUPS {
            at = (at + 7919) % keys.len();
            black_box(keys.get(at).and_then(|key| ledger.cooldown(key)));
        }
        let each = begun.elapsed().as_nanos() as f64 / f64::from(LOOKUPS);
        costs.push(each);
        let bytes = (after - before) / f64::from(count);
        println!(
            "{count} keys: a lookup costs {each:.0} ns, a key {bytes:.0} bytes, all were in SQLite {written:.1?} later"
        );
    }
    println!(
        "  lookups cost {:.1} times as much among many: they no longer fit the processor's caches",
        costs[1] / costs[0]
    );
}

fn rest() -> Rest {
    Rest {
        parked: false,
        until: Timestamp::UNIX_EPOCH,
        set: Timestamp::UNIX_EPOCH,
        since: Timestamp::UNIX_EPOCH,
        class: Class::Quota,
        stated: true,
        fixed: true,
        streaks: [(Class::Quota, 3)].into(),
        detail: "the allowance of five hours is used up".to_owned(),
        cause: None,
    }
}

/// Bytes of this process in memory; nothing where the system does not state it.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 =
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0.0);
    kilobytes * 1024.0
}
