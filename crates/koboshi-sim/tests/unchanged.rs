//! Chat answers stay the bytes they were before the provider learned other dialects: programs and records rely on them.
//!
//! The file beside it has a line for every name and question: status, end, length and a hash of head and body. `KOBOSHI_GOLDEN=write` writes it
//! again, which says that the answers have changed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::fmt::Write;

use crate::common::{ask, streaming, user, weather, with};
use koboshi_sim::{Head, Tally, names};
use serde_json::{Value, json};

fn called(content: &Value, result: &str) -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Aizu\"}"}});
    json!({"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]})
}

/// The questions: what people and agents ask, in the order of their age.
fn questions() -> Vec<(&'static str, Value)> {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
    }, "required": ["name", "tags"], "additionalProperties": false});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": schema}});
    let two = json!({"tools": [
        {"type": "function", "function": {"name": "first"}},
        {"type": "function", "function": {"name": "second", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}},
    ]});
    let script = "Do this:\n  koboshi-sim: call write {\"path\": \"a\"}\nkoboshi-sim: call done\nThanks.";
    let begun = json!({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "After each"}]});
    let parts = json!([{"type": "text", "text": "hello"}]);
    vec![
        ("plain", user("hello")),
        ("japanese", user("こんにちは")),
        ("parts", json!({"messages": [{"role": "user", "content": parts}]})),
        (
            "system",
            json!({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]}),
        ),
        (
            "turns",
            json!({"messages": [
                {"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "and?\nmore"},
            ]}),
        ),
        ("begun", begun),
        ("cut", with(user("hello"), json!({"max_tokens": 5}))),
        ("usage", with(user("hello"), json!({"stream_options": {"include_usage": true}}))),
        ("object", with(user("hello"), json!({"response_format": {"type": "json_object"}}))),
        ("schema", with(user("hello"), json!({"response_format": format}))),
        ("tool", with(user("How is the weather?"), weather())),
        ("two", with(user("use second"), two.clone())),
        ("parallel", with(user("both in parallel"), two.clone())),
        (
            "forced",
            with(
                user("go"),
                with(
                    two.clone(),
                    json!({"tool_choice": {"type": "function", "function": {"name": "second"}}}),
                ),
            ),
        ),
        ("none", with(user("go"), with(two.clone(), json!({"tool_choice": "none"})))),
        ("result", with(called(&Value::Null, "sunny, 21 degrees"), weather())),
        ("said", with(called(&json!("Let me look."), "{\"sky\": \"grey\"}"), weather())),
        ("script", with(user(script), two)),
    ]
}

/// FNV-1a.
fn hash(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn line(model: &str, name: &str, body: &Value) -> String {
    let play = ask(model, body, Tally { wall: 1_790_000_000, ..Tally::default() });
    let (head, end) = (play.head, play.end);
    let mut text = Vec::new();
    for beat in play.beats {
        text.extend(format!("{:?} ", beat.after).bytes());
        text.extend(beat.bytes);
    }
    let status = match &head {
        Head::Answer { status, .. } => *status,
        _ => 0,
    };
    let length = text.len();
    text.extend(format!("{head:?}").bytes());
    format!("{model} {name}: {status} {end:?} {length} {:016x}\n", hash(&text))
}

#[test]
fn chat_answers_are_the_bytes_they_were() {
    let mut all = String::new();
    let mut models: Vec<&str> = names().iter().map(|name| name.example).collect();
    models.extend([
        "ok?tools=no", "ok?say=4", "ok?chunks=7", "cut?after=2&bytes=9", "broken-tool-args?form=truncated",
        "fail-404", "fail-418",
    ]);
    models.extend([
        "quota?retry_after=none", "no-such", "cut?aftr=1", "ok?prefill=refuse", "context?limit=20",
        "in-band-error?after=0",
    ]);
    for model in models {
        for (name, body) in questions() {
            all.write_str(&line(model, name, &body)).unwrap();
            all.write_str(&line(model, &format!("{name}, stream"), &streaming(body))).unwrap();
        }
    }
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat.txt");
    if std::env::var("KOBOSHI_GOLDEN").is_ok_and(|mode| mode == "write") {
        return std::fs::write(path, all).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap();
    let changed: Vec<_> = all.lines().zip(known.lines()).filter(|(now, then)| now != then).collect();
    assert!(changed.is_empty() && all.len() == known.len(), "{changed:#?}");
}
