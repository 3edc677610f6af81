//! The checks of the fuzz targets of this dialect, for a moment, on stable Rust: arbitrary bytes, and bytes made of what the readers know,
//! which reach further than noise does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/messages_checks.rs"]
#[allow(clippy::expect_used, reason = "checks of a test")]
mod messages_checks;

use proptest::prelude::*;

use crate::noise::{cases, edited, made_of};

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "true",
    "\"\"",
    "\"x\"",
    "1",
    "-1",
    "1e999",
    "0.5",
    "|",
    "\n",
    " ",
    "\\u00e9",
    "\"\\ud800\"",
    "\"type\":\"text\"",
    "\"type\":\"tool_use\"",
    "\"type\":\"tool_result\"",
    "\"type\":\"thinking\"",
    "\"type\":\"document\"",
    "\"type\":\"redacted_thinking\"",
    "\"role\":\"assistant\"",
    "\"role\":\"system\"",
    "\"content\":",
    "\"content\":[]",
    "\"input\":[1]",
    "\"source\":{\"type\":\"content\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}",
    "\"tool_use_id\":\"1\"",
    "\"id\":\"1\"",
    "\"tool_choice\":{\"type\":\"any\"}",
    "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1}",
    "\"is_error\":true",
    "\"index\":7",
    "\"stop_reason\":\"x\"",
    "error|",
    "message_stop|",
    "content_block_stop|{\"index\":0}\n",
    "\"data\":\"d\"",
    "\"signature\":\"s\"",
];

fn bytes(sound: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![made_of(PIECES), edited(sound, PIECES)]
}

const REQUESTS: &[&str] = &[
    r#"{"model":"m","messages":[]}"#,
    r#" { "m\u006fdel" : "claude-sonnet-5" , "stream" : true , "m\u0065ssages" : [ { "role" : "user" , "content" : "hi" } ] } "#,
    r#"{"model":"claude-opus-4-6","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{}}],"messages":[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{"a":1}},{"type":"tool_use","id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"ok"}],"is_error":true},{"type":"tool_result","tool_use_id":"1"}]}],"tools":[{"name":"f","input_schema":{}}],"thinking":{"type":"enabled","budget_tokens":2000},"metadata":{"user_id":"u"}}"#,
    r#"{"model":"m","messages":[{"role":"assistant","content":"so "},{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"tool_result","tool_use_id":"9","content":"x"}]},{"role":"assistant","content":[{"type":"text","text":"a "},{"type":"tool_use","id":"a.b","name":"x y","input":"{"}]}],"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","oneOf":[{}]}}},"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}"#,
];

#[test]
fn requests_take_any_bytes() {
    for text in REQUESTS {
        messages_checks::messages_request(text.as_bytes());
    }
    proptest!(cases(2000), |(data in bytes(REQUESTS))| messages_checks::messages_request(&data));
}

const EVENTS: &[&str] = &[
    "message_start|{\"type\":\"message_start\",\"message\":{\"id\":\"a\",\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"}}\n{\"type\":\"content_block_stop\",\"index\":0}\n{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\nmessage_stop|{}",
    "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{\"a\":1}}}\n{\"type\":\"content_block_stop\",\"index\":0}\n{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\",\"stop_details\":{\"explanation\":\"no\"}},\"usage\":{\"output_tokens\":5}}",
    r#"{"id":"a","type":"message","model":"m","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"x"},{"type":"tool_use","id":"1","name":"f","input":{"a":[1]}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#,
];

#[test]
fn events_and_answers_take_any_bytes() {
    for text in EVENTS {
        messages_checks::messages_event(text.as_bytes());
    }
    proptest!(cases(2000), |(data in bytes(EVENTS))| messages_checks::messages_event(&data));
}

/// Depth, width and length that would break a reader which recurses, or looks at everything again and again.
#[test]
fn monsters_are_survived() {
    let request = |messages: &str| format!("{{\"model\":\"m\",\"messages\":[{messages}]}}");
    let nested = |count: usize| {
        let open = r#"{"type":"tool_result","tool_use_id":"1","content":["#.repeat(count);
        request(&format!(r#"{{"role":"user","content":[{open}{}]}}"#, "]}".repeat(count)))
    };
    let calls: Vec<String> = (0..5000)
        .map(|n| format!(r#"{{"type":"tool_use","id":"{}","name":"f","input":{{}}}}"#, n / 2))
        .collect();
    let results: Vec<String> =
        (0..5000).rev().map(|n| format!(r#"{{"type":"tool_result","tool_use_id":"{}"}}"#, n / 2)).collect();
    let schema = format!("{}{{}}{}", r#"{"type":"array","items":"#.repeat(120), "}".repeat(120));
    let monsters = [
        "[".repeat(200_000),
        request(&"[".repeat(200_000)),
        request(&format!("{{\"role\":\"user\",\"content\":{}1{}}}", "[".repeat(30_000), "]".repeat(30_000))),
        nested(50),
        nested(5000),
        request(&vec!["{\"role\":\"user\",\"content\":\"x\"}"; 10_000].join(",")),
        request(&format!(
            r#"{{"role":"assistant","content":[{}]}},{{"role":"user","content":[{}]}}"#,
            calls.join(","),
            results.join(",")
        )),
        format!(r#"{{"model":"claude-sonnet-5","messages":[],"output_format":{{"type":"json_schema","schema":{schema}}}}}"#),
        format!("{{\"content\":[{}]}}", vec!["{\"type\":\"text\",\"text\":\"x\"}"; 10_000].join(",")),
        vec!["{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"input\":[1]}}"; 5000].join("\n"),
    ];
    for monster in &monsters {
        messages_checks::messages_event(monster.as_bytes());
        messages_checks::messages_request(monster.as_bytes());
    }
}
