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

#[test]
fn models_files_and_names_take_any_bytes() {
    let bench = Bench::new();
    let pieces = [
        "models:", "vendors:", "\n", "\n- ", "\n  ", "match: ", "family: ", "version: ", "claude", "gpt-5",
        "*", " | ", "-", ".", "4", "99", "from ", "before ", "efforts: ", "[low]", "tools: true",
        "context_window: 1", "/", "é",
    ];
    let files = vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|all| all.concat().into_bytes());
    proptest!(cases(300), |(data in prop_oneof![files, any_bytes()])| bench.models(&data));
}

#[test]
fn headers_take_any_bytes() {
    let bench = Bench::new();
    let pieces = [
        "x-ratelimit-", "anthropic-ratelimit-", "limit", "remaining", "reset", "-", "requests", "tokens",
        "input-tokens", ": ", "0", "1", "60", "6m0s", "-1", "1e999", "99999999999999999999",
        "2026-11-15T12:00:10Z", "\n", ",", ";w=60",
    ];
    let headers = vec(prop::sample::select(pieces.to_vec()), 0..60).prop_map(|all| all.concat().into_bytes());
    proptest!(cases(3000), |(data in prop_oneof![headers, any_bytes()])| bench.headers(&data));
}

#[test]
fn stored_state_takes_any_bytes() {
    let bench = Bench::new();
    let sound = [
        r#"{"epoch":3,"cleared":{"at":"2026-11-15T12:00:00Z","by_person":true},"rest":{"parked":false,"until":"2026-11-15T13:00:00Z","set":"2026-11-15T12:00:00Z","since":"2026-11-15T12:00:00Z","class":"quota","fixed":true,"streaks":{"quota":4294967295},"detail":"x"}}"#,
        r#"{"epoch":18446744073709551615,"until":{"requests":"9999-12-30T22:00:00.999999999Z","quota":"-009999-01-02T01:59:59Z"}}"#,
        r#"{"at":"2026-11-15T12:00:00Z","mode":"open","since":"2026-11-15T12:00:00Z","until":"9999-12-30T22:00:00Z","openings":4294967295}"#,
    ];
    for text in sound {
        bench.stored(text.as_bytes());
    }
    let edited = (prop::sample::select(sound.to_vec()), any::<usize>(), prop::sample::select(PIECES))
        .prop_map(|(text, place, piece)| {
            let place = text.floor_char_boundary(place % text.len());
            format!("{}{piece}{}", &text[..place], &text[(place + 1).min(text.len())..]).into_bytes()
        });
    proptest!(cases(3000), |(data in prop_oneof![edited, any_bytes()])| bench.stored(&data));
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
