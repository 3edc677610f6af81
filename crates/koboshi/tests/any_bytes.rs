//! The checks of the fuzz targets, for a moment, on stable Rust: arbitrary bytes, and bytes made of the words
//! that the readers know, which reach further than noise does.

#[path = "../../../fuzz/checks.rs"]
#[expect(clippy::expect_used, reason = "checks of a test")]
mod checks;

use checks::Bench;
use proptest::collection::vec;
use proptest::prelude::*;

const PIECES: &[&str] = &[
    "error", "Error: ", "429", " 503 ", "{\"error\":{\"message\":\"", "\"}}", "{", "}", "[", "]", "\"",
    "data: ", "\n\n", "\n", "\r", "event: error\n", "rate limit", "quota", "try again in ", "5", "m", "s",
    "pm", " (UTC)", "resets at ", "\u{1b}[31m", "⎿ ", "● ", "retry-after: ", "2026-11-15T12:00:00Z",
    "sk-abcdefghijklmnopqrstuvwx", "password=", "Traceback (most recent call last):\n", "あと", "時間", "後",
    "\\u0000", "\u{202f}", "ｅ", "{\"type\":\"result\",\"is_error\":true}", "HTTP/1.1 ",
    "x-ratelimit-remaining: 0 ", "choices", "candidates", "finish_reason", ":", ",", " ",
    "999999999999999999999", "-1", ".", "/", "\0", "\u{feff}",
];

fn wordy() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..400), wordy()]
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn classify_takes_any_bytes() {
    let bench = Bench::new();
    proptest!(cases(1500), |(data in any_bytes())| bench.classify(&data));
}

#[test]
fn wait_takes_any_bytes() {
    let bench = Bench::new();
    proptest!(cases(3000), |(data in any_bytes())| bench.wait(&data));
}

#[test]
fn redact_takes_any_bytes() {
    let bench = Bench::new();
    proptest!(cases(3000), |(data in any_bytes())| bench.redact(&data));
}

#[test]
fn rule_files_take_any_bytes() {
    let bench = Bench::new();
    proptest!(cases(60), |(data in any_bytes())| bench.rules(&data));
}

/// Depth, width and length that would break a reader which recurses, backtracks or copies without a bound.
#[test]
fn monsters_are_survived() {
    let bench = Bench::new();
    let monsters = [
        "{\"error\":".repeat(20_000),
        "[".repeat(100_000),
        "{\"message\":\"{\\\"message\\\":\\\"".repeat(5_000),
        format!("{{\"error\":{{\"message\":\"{}\"}}}}", "rate limit try again in 5m ".repeat(20_000)),
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\"}}]}}]}\n\n".repeat(3_000),
        "\u{1b}[".repeat(100_000),
        "}\n".repeat(50_000),
        "Retrying in 5 seconds… (attempt 1/10)\n".repeat(10_000),
        "<".repeat(100_000),
        "111,".repeat(50_000),
    ];
    for monster in &monsters {
        bench.classify(monster.as_bytes());
        bench.redact(monster.as_bytes());
    }
}
