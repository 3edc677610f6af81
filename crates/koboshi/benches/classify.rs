//! How fast failures are read: a typical provider error, a log tail, and hostile text of growing size.
//!
//! Promises: a typical provider error in at most 10 µs, a 64 KB log tail in at most 1 ms, and the same
//! time per byte whatever the size. `cargo bench -p koboshi` prints the figures; nothing asserts them.

#![allow(missing_docs, clippy::expect_used, clippy::semicolon_if_nothing_returned, reason = "a bench")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{AgentLog, Answer, Classifier, Rules, ToolOutput};
use koboshi::redact::Redactor;
use koboshi::wait::{Clock, stated_waits};

fn classifier() -> Classifier {
    let rules = Rules::builtin().expect("the built-in rules are sound");
    Classifier::new(rules, TimeZoneDatabase::bundled())
}

fn now() -> Zoned {
    let instant: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().expect("an instant");
    instant.to_zoned(TimeZone::UTC)
}

const RATE_LIMIT: &str = r#"{"error": {"message": "Rate limit reached for gpt-4o in organization org-XXXX on tokens per min (TPM): Limit 30000, Used 29000, Requested 1800. Please try again in 1.6s. Visit https://platform.openai.com/account/rate-limits to learn more.", "type": "tokens", "param": null, "code": "rate_limit_exceeded"}}"#;
const OVERLOADED: &str = r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_011C0000000000000000"}"#;
const QUOTA_LIST: &str = r#"{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20, model: gemini-3.6-flash\nPlease retry in 36.429760048s.", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "20"}]}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"}]}}"#;

fn answers(c: &mut Criterion) {
    let (classifier, now) = (classifier(), now());
    let mut group = c.benchmark_group("answer");
    for (name, status, body) in
        [("rate_limit", 429, RATE_LIMIT), ("overloaded", 529, OVERLOADED), ("quota_list", 429, QUOTA_LIST)]
    {
        let answer = Answer { status: Some(status), body, ..Answer::default() };
        group.bench_function(name, |b| b.iter(|| classifier.answer(black_box(&answer), &now)));
    }
    group.finish();
}

/// A log as agents print it, ending in a limit.
fn log_text(bytes: usize) -> String {
    let work = "● Bash(cargo test --workspace)\n  ⎿  running 12 tests\n     test parser::reads_numbers ... ok\n[2026-11-15T11:58:00Z] INFO agent: step finished in 4.2s\nThe parser now keeps the span of every token it reads.\n";
    let mut text = work.repeat(bytes / work.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text.push_str("\nError: You've hit your usage limit. Try again in 2 hours 10 minutes.\n");
    text
}

fn logs(c: &mut Criterion) {
    let (classifier, now) = (classifier(), now());
    let mut group = c.benchmark_group("log");
    let ends_in_limit = log_text(64 * 1024);
    // Nothing to find, and nothing that ends the search: as many lines as possible are looked at.
    let finds_nothing = log_text(64 * 1024)
        .replace("● ", "")
        .replace("Error: You've hit your usage limit. Try again in 2 hours 10 minutes.", "");
    let json_line = "{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Running the migration now, then the tests.\"}]}}\n";
    let mut events = json_line.repeat(64 * 1024 / json_line.len());
    events.push_str("{\"type\":\"result\",\"is_error\":true,\"result\":\"You've hit your session limit · resets 6pm (UTC)\"}\n");
    for (name, text) in
        [("limit_at_end", &ends_in_limit), ("nothing_to_find", &finds_nothing), ("events", &events)]
    {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(format!("64KB/{name}"), |b| {
            b.iter(|| {
                classifier.log(&AgentLog { text: black_box(text), exit_code: Some(1), since: None }, &now)
            })
        });
    }
    group.finish();
}

/// Texts that make careless readers slow: words of every rule, brackets that never close, digits, escapes.
fn hostile(kind: &str, bytes: usize) -> String {
    let piece = match kind {
        "words" => {
            "error rate limit exceeded quota billing token context try again in 5 minutes at 5pm per day \n"
        }
        "braces" => "{\"a\":[{\"b\":{\"error\":",
        "digits" => "429 12:30:45 2026-11-15 1760004000 5h 5m 5s 5ms ",
        "one_line" => "aaaaaaaaaaaaaaaaaaaa=bbbbbbbbbbbbbbbbbbbbb:sk-ccccccccccccccc@ddddddd.eeee ",
        _ => "\u{1b}[31m\u{1b}]0;x \r ⠋ ● │ ",
    };
    let mut text = piece.repeat(bytes / piece.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text
}

fn linear(c: &mut Criterion) {
    let (classifier, now) = (classifier(), now());
    let redactor = Redactor::new();
    let zones = TimeZoneDatabase::bundled();
    let mut group = c.benchmark_group("hostile");
    group.sample_size(10);
    for kind in ["words", "braces", "digits", "one_line", "control"] {
        for (size, bytes) in [("100KB", 100_000), ("1MB", 1_000_000), ("10MB", 10_000_000)] {
            let text = hostile(kind, bytes);
            group.throughput(Throughput::Bytes(bytes as u64));
            let id = |reader: &str| BenchmarkId::new(format!("{reader}/{kind}"), size);
            group.bench_function(id("log"), |b| {
                b.iter(|| {
                    classifier
                        .log(&AgentLog { text: black_box(&text), exit_code: Some(1), since: None }, &now)
                })
            });
            group.bench_function(id("answer"), |b| {
                let answer = Answer { status: Some(500), body: &text, ..Answer::default() };
                b.iter(|| classifier.answer(black_box(&answer), &now));
            });
            group.bench_function(id("tool"), |b| {
                b.iter(|| classifier.tool(&ToolOutput { text: black_box(&text), is_error: None }, &now))
            });
            group.bench_function(id("redact"), |b| b.iter(|| redactor.redact(black_box(&text)).len()));
            group.bench_function(id("wait"), |b| {
                b.iter(|| stated_waits(black_box(&text), Clock { now: &now, zones: &zones }).len())
            });
        }
    }
    group.finish();
}

fn start(c: &mut Criterion) {
    c.bench_function("rules/compile", |b| b.iter(Rules::builtin));
}

criterion_group!(benches, answers, logs, start, linear);
criterion_main!(benches);
