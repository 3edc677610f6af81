//! What the loop guard costs a request that carries a conversation.
//!
//! A gateway judges every request anew, so the figure that counts is the whole judgement over a turn: of ordinary work,
//! of a loop, and of answers as large as files. `cargo bench -p koboshi --bench guard` prints it; nothing asserts it.

#![allow(missing_docs, clippy::expect_used, clippy::semicolon_if_nothing_returned, reason = "a bench")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Classifier, Rules};
use koboshi::guard::{Call, Guard, GuardPolicy};

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
    let mut group = c.benchmark_group("guard/judge");
    for (calls, bytes) in [(3, 200), (20, 200), (20, 50_000), (200, 200), (2000, 200), (2000, 50_000)] {
        let made = work(calls, bytes);
        let calls: Vec<Call<'_>> = made.iter().enumerate().map(|(batch, made)| made.call(batch)).collect();
        group.throughput(Throughput::Elements(calls.len() as u64));
        let name = format!("{} calls, answers of {bytes} bytes", calls.len());
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| guard.judge(black_box(&calls), &classifier, &now))
        });
    }
    group.finish();
}

criterion_group!(benches, judge);
criterion_main!(benches);
