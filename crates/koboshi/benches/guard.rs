//! What the loop guard costs a request that carries a conversation.
//!
//! A gateway judges every request on its own, so the figure that counts is the whole judgement over a turn: of ordinary work and
//! of answers as large as files, once with every call read again and once with a cache that knows them. `cargo bench -p koboshi --bench guard` prints it; nothing asserts it.

#![allow(missing_docs, clippy::expect_used, clippy::semicolon_if_nothing_returned, reason = "a bench")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Classifier, Rules};
use koboshi::guard::{Call, DigestCache, Guard, GuardPolicy};

/// A tool's call and what came back.
struct Made {
    tool: &'static str,
    args: String,
    output: String,
    is_error: Option<bool>,
}

impl Made {
    fn call(&self, batch: usize) -> Call<'_> {
        Call {
            tool: self.tool,
            args: &self.args,
            output: &self.output,
            is_error: self.is_error,
            batch: u32::try_from(batch).ok(),
            ..Call::default()
        }
    }
}

/// Reads, edits and test runs with fewer failures each time; answers of about `bytes`.
fn work(calls: usize, bytes: usize) -> Vec<Made> {
    (0..calls)
        .map(|n| match n % 3 {
            0 => Made {
                tool: "read_file",
                args: format!(r#"{{"path":"src/part_{n}.rs"}}"#),
                output: format!("// part {n}\nfn part_{n}() -> usize {{ {n} }}\n").repeat(bytes / 40 + 1),
                is_error: None,
            },
            1 => Made {
                tool: "edit_file",
                args: format!(r#"{{"path":"src/part_{n}.rs","old":"a","new":"b{n}"}}"#),
                output: "updated".to_owned(),
                is_error: None,
            },
            _ => Made {
                tool: "bash",
                args: r#"{"command":"cargo test"}"#.to_owned(),
                output: format!("test result: FAILED. {n} passed; {} failed", calls - n),
                is_error: None,
            },
        })
        .collect()
}

fn judge(c: &mut Criterion) {
    let classifier = Classifier::new(Rules::builtin().expect("built-in rules"), TimeZoneDatabase::none());
    let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let guard = Guard::new(GuardPolicy::default()).expect("defaults");
    for (calls, bytes) in [(3, 200), (20, 200), (20, 50_000), (200, 200), (2000, 200), (2000, 50_000)] {
        let made = work(calls, bytes);
        let calls: Vec<Call<'_>> = made.iter().enumerate().map(|(batch, made)| made.call(batch)).collect();
        let mut group = c.benchmark_group(format!("guard/{} calls, answers of {bytes} bytes", calls.len()));
        group.throughput(Throughput::Elements(calls.len() as u64));
        group.bench_function(BenchmarkId::from_parameter("read again"), |b| {
            b.iter(|| guard.judge(black_box(&calls), &classifier, &now))
        });
        let cache = DigestCache::default();
        group.bench_function(BenchmarkId::from_parameter("known"), |b| {
            b.iter(|| guard.judge_with(&cache, black_box(&calls), &classifier, &now))
        });
        group.finish();
    }
}

/// One call, read: what each new call of a turn costs.
fn read(c: &mut Criterion) {
    let classifier = Classifier::new(Rules::builtin().expect("built-in rules"), TimeZoneDatabase::none());
    let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let guard = Guard::new(GuardPolicy::default()).expect("defaults");
    let prose =
        "The house stands on a hill above the river, and on 12 days of the year its lower door is open. ";
    let rows = r#"{"id":12,"name":"alpha","tags":["a","b"],"at":"2026-11-15T12:00:00Z"},"#;
    let source = "// part 7\nfn part_7() -> usize { 7 }\n";
    let mut group = c.benchmark_group("guard/read");
    for bytes in [200, 50_000] {
        let fill = |text: &str| text.repeat(bytes / text.len() + 1);
        for (name, tool, output, is_error) in [
            ("source", "read_file", fill(source), None),
            ("prose", "web_fetch", fill(prose), None),
            ("JSON", "http_get", format!("[{}0]", fill(rows)), None),
            (
                "failure",
                "bash",
                format!("{}\nerror: cannot open 'x'\n[exit code: 1]", fill(prose)),
                Some(true),
            ),
        ] {
            let made = Made { tool, args: r#"{"path":"src/part_7.rs"}"#.to_owned(), output, is_error };
            group.bench_function(BenchmarkId::new(name, bytes), |b| {
                b.iter(|| guard.read(black_box(&made.call(0)), &classifier, &now))
            });
        }
    }
    group.finish();
}

criterion_group!(benches, judge, read);
criterion_main!(benches);
