//! The checks of the fuzz targets, for a moment, on stable Rust: arbitrary bytes, and bytes made of what the readers know,
//! which reach further than noise does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/wire_checks.rs"]
#[allow(clippy::expect_used, reason = "checks of a test")]
mod wire_checks;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::noise::{cases, edited, made_of};

const LINES: &[&[u8]] = &[
    b"data: ", b"data:", b"data", b"event: ", b"event:", b"id: 1", b": ", b":", b"\n", b"\n", b"\r", b"\r\n",
    b"\n\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"\xef", b"\xbb\xbf", b"{\"a\":1}", b"[DONE]", b"x", b" ",
    b"\xe3\x81\x82", b"\xff",
];

#[test]
fn a_stream_is_framed_the_same_however_it_is_cut() {
    proptest!(cases(1500), |(data in made_of(LINES))| wire_checks::sse(&data));
}

const CHUNK: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"\"\"",
    b"\"x\"",
    b"1",
    b"-1",
    b"1e999",
    b"0.5",
    b"\"id\":",
    b"\"model\":",
    b"\"choices\":[",
    b"\"choices\":[{\"index\":0,\"delta\":{",
    b"\"content\":\"hi\"",
    b"\"content\":[{\"type\":\"text\",\"text\":\"a\"}]",
    b"\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\"",
    b"\"arguments\":",
    b"}}]",
    b"}}]}",
    b"\"message\":{",
    b"\"usage\":{\"prompt_tokens\":1}",
    b"\"error\":",
    b"\"finish_reason\":\"stop\"",
    b"\\u00e9",
    b"\"\\ud800\"",
    b"[DONE]",
    b" ",
];

const CHUNKS: &[&str] = &[
    r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi","tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x":[1]}}}]},"finish_reason":"tool_calls"}]}"#,
    r#"{"error":{"message":"m","type":"t","param":null,"code":null}}"#,
];

#[test]
fn chunks_take_any_bytes() {
    for text in CHUNKS {
        wire_checks::chat_chunk(text.as_bytes());
    }
    proptest!(cases(1500), |(data in prop_oneof![made_of(CHUNK), edited(CHUNKS, CHUNK)])| wire_checks::chat_chunk(&data));
}

const REQUESTS: &[&str] = &[
    r#"{"model":"m","messages":[]}"#,
    r#" { "m\u006fdel" : "m" , "stream" : true , "stream_options" : { "x" : 1 } , "m\u0065ssages" : [ { "role" : "user" , "content" : "hi" } ] } "#,
    r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"ok"}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"model":"m","metadata":{"mode":"a"}}"#,
    r#"{"model":"m","stream":false,"stream_options":null,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]},{"role":"assistant","content":"so "}],"functions":[{"name":"f"}],"function_call":"auto"}"#,
];

#[test]
fn requests_take_any_bytes() {
    for text in REQUESTS {
        wire_checks::chat_request(text.as_bytes());
    }
    proptest!(cases(1500), |(data in prop_oneof![made_of(CHUNK), edited(REQUESTS, CHUNK), edited(REQUESTS, CHUNK)])| wire_checks::chat_request(&data));
}

const RESPONSES: &[&str] = &[
    r#"{"model":"m","input":"hi","stream":true,"instructions":"be"}"#,
    r#" { "m\u006fdel" : "m" , "input" : [ { "role" : "user" , "content" : [ {"type":"input_text","text":"hi"} ] } , {"type":"reasoning","id":"rs_kbs_1","summary":[]} ] } "#,
    r#"{"input":[{"role":"developer","content":"d"},{"role":"user","content":"go"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"g"},{"role":"assistant","content":[{"type":"output_text","text":"ok"}]},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"2","name":"p","input":"x"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_image","image_url":"data:image/png;base64,AA"}]},{"type":"custom_tool_call_output","call_id":"2","output":"ok"}],"tools":[{"type":"function","name":"f","parameters":{}},{"type":"custom","name":"p"},{"type":"web_search"}],"tool_choice":"auto","model":"m","metadata":{"mode":"a"}}"#,
    r#"{"model":"m","input":[{"role":"assistant","content":"so "}],"previous_response_id":null,"text":{"format":{"type":"json_schema","name":"n","schema":{}}},"reasoning":{"effort":"high"},"top_p":1,"stream_options":{}}"#,
];

#[test]
fn responses_requests_take_any_bytes() {
    for text in RESPONSES {
        wire_checks::responses_request(text.as_bytes());
    }
    proptest!(cases(1500), |(data in prop_oneof![made_of(CHUNK), edited(RESPONSES, CHUNK), edited(RESPONSES, CHUNK)])| wire_checks::responses_request(&data));
}

const EVENTS: &[&str] = &[
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m","status":"in_progress","output":[]}}"#,
    r#"{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}"#,
    r#"{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}"#,
    r#"{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"hi"}"#,
    r#"{"type":"response.output_text.done","output_index":0,"text":"hi"}"#,
    r#"{"type":"response.content_part.done","output_index":0,"part":{"type":"refusal","refusal":"no"}}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"hi"}]}}"#,
    r#"{"type":"response.reasoning_summary_part.added","output_index":1,"summary_index":1,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","output_index":1,"summary_index":0,"delta":"hm"}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"g"}}"#,
    r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":{"x":[1]}}}"#,
    r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"ws_1","type":"web_search_call"}}"#,
    r#"{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"usage":{"input_tokens":1}}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"late"}]}],"usage":{"input_tokens":1,"output_tokens":2}}}"#,
    r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
    r#"{"type":"error","code":"x","message":"m"}"#,
];

#[test]
fn responses_streams_take_any_bytes() {
    wire_checks::responses_event(EVENTS.join("\n").as_bytes());
    let lines = || {
        vec(
            prop_oneof![3 => prop::sample::select(EVENTS).prop_map(|text| text.as_bytes().to_vec()), 1 => edited(EVENTS, CHUNK)],
            0..12,
        )
    };
    let stream = || lines().prop_map(|lines| lines.join(&b'\n'));
    proptest!(cases(1500), |(data in prop_oneof![3 => stream(), 1 => made_of(CHUNK)])| wire_checks::responses_event(&data));
}

const GEMINI: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"\"\"",
    b"\"x\"",
    b"1",
    b"-1",
    b"1e999",
    b"\"contents\":[",
    b"\"contents\":{",
    b"\"role\":\"model\",",
    b"\"parts\":[",
    b"\"parts\":{",
    b"\"text\":\"hi\"",
    b"\"thought\":true,",
    b"\"thoughtSignature\":\"s\",",
    b"\"candidates\":[{",
    b"\"functionCall\":{\"name\":\"f\",\"args\":{}}",
    b"\"function_call\":{\"id\":\"a\"}",
    b"\"functionResponse\":{\"name\":\"f\",\"response\":{\"output\":\"x\"}}",
    b"\"inline_data\":{\"data\":\"_-\"}",
    b"\"generationConfig\":{",
    b"\"maxOutputTokens\":\"3\"",
    b"\"toolConfig\":",
    b"\"functionCallingConfig\":",
    b"\"finishReason\":\"STOP\"",
    b"\"error\":",
    b"\\u00e9",
    b"\"\\ud800\"",
    b"\\\"",
    b" ",
    b"\n",
    b"\r\n",
    b"data: ",
];

const GEMINI_STREAMS: &[&str] = &[
    "\u{3}[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\\\"]\"},{\"functionCall\":{\"name\":\"f\",\"args\":{\"x\":[1]}}}]}}]}\n,\r\n{\"candidates\":[{\"finishReason\":\"STOP\"}]}\n]\n",
    "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"t\",\"thought\":true,\"thoughtSignature\":\"s\"},{\"text\":\"a\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":1}}",
    " data: {\"promptFeedback\":{\"blockReason\":\"OTHER\"}}\r\n\r\n{\"error\":{\"code\":503}}",
];

const GEMINI_REQUESTS: &[&str] = &[
    r#"{"contents":[]}"#,
    r#" { "contents" : { "parts" : { "text" : "a" } } , "system_instruction" : "s" } "#,
    r#"{"contents":[{"parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"id":"b","name":"f"},"thoughtSignature":"s"}]},{"parts":[{"functionResponse":{"name":"f","id":"b"}},{"functionResponse":{"name":"f","response":{"output":"ok"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"generationConfig":{"thinkingConfig":{"thinkingBudget":0}},"labels":{"mode":"a"}}"#,
    r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"so "}]}],"generation_config":null,"tool_config":{}}"#,
];

#[test]
fn gemini_takes_any_bytes() {
    for text in GEMINI_STREAMS {
        wire_checks::gemini_event(text.as_bytes());
    }
    for text in GEMINI_REQUESTS {
        wire_checks::gemini_request(text.as_bytes());
    }
    proptest!(cases(1500), |(data in prop_oneof![made_of(GEMINI), edited(GEMINI_STREAMS, GEMINI)])| wire_checks::gemini_event(&data));
    proptest!(cases(1500), |(data in prop_oneof![made_of(GEMINI), edited(GEMINI_REQUESTS, GEMINI), edited(GEMINI_REQUESTS, GEMINI)])| wire_checks::gemini_request(&data));
    for monster in [
        "[".repeat(200_000),
        format!("[{}", "{\"a\":".repeat(50_000)),
        format!(
            r#"{{"contents":[{{"parts":[{}]}}]}}"#,
            vec![r#"{"functionCall":{"name":"f"}}"#; 5_000].join(",")
        ),
        format!(
            r#"{{"contents":[{{"role":"model","parts":[{}]}},{{"parts":[{}]}}]}}"#,
            vec![r#"{"functionCall":{"name":"f"}}"#; 5_000].join(","),
            vec![r#"{"functionResponse":{"name":"f"}}"#; 5_000].join(",")
        ),
        format!(r#"{{"contents":[{}]}}"#, vec![r#"{"parts":[{"text":"x"}]}"#; 10_000].join(",")),
        format!(
            r#"{{"contents":[],"tools":[{{"functionDeclarations":[{{"name":"f","parameters":{}1{}}}]}}]}}"#,
            r#"{"items":"#.repeat(110),
            "}".repeat(110)
        ),
    ] {
        wire_checks::gemini_event(monster.as_bytes());
        wire_checks::gemini_request(monster.as_bytes());
    }
}

/// Depth, width and length that would break a reader which recurses, or looks at everything again and again.
#[test]
fn monsters_are_survived() {
    let monsters = [
        "[".repeat(200_000),
        format!("{{\"messages\":{}", "[".repeat(200_000)),
        format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":{}1{}}}]}}",
            "[".repeat(30_000),
            "]".repeat(30_000)
        ),
        format!(
            "{{\"model\":\"m\",\"messages\":[],\"x\":{}1{}}}",
            "{\"a\":".repeat(30_000),
            "}".repeat(30_000)
        ),
        format!(
            "{{\"model\":\"m\",\"messages\":[{}]}}",
            vec!["{\"role\":\"user\",\"content\":\"x\"}"; 10_000].join(",")
        ),
        format!("{{\"choices\":[{}]}}", vec!["{\"delta\":{\"content\":\"x\"}}"; 10_000].join(",")),
        format!(
            "{{{}\"model\":\"m\",\"messages\":[]}}",
            (0..30_000).fold(String::new(), |all, n| all + &format!("\"k{n}\":0,"))
        ),
        tool_calls(5_000),
        format!("{{\"model\":\"m\",\"input\":{}", "[".repeat(200_000)),
        format!(
            "{{\"model\":\"m\",\"input\":[{}]}}",
            vec!["{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\"}"; 10_000].join(",")
        ),
        format!("{{\"type\":\"response.completed\",\"response\":{{\"output\":{}", "[".repeat(200_000)),
        (0..10_000).fold(String::new(), |all, n| {
            all + &format!("{{\"type\":\"response.output_item.added\",\"output_index\":{n},\"item\":{{\"type\":\"function_call\",\"name\":\"f\"}}}}\n")
        }),
    ];
    for monster in &monsters {
        wire_checks::chat_chunk(monster.as_bytes());
        wire_checks::chat_request(monster.as_bytes());
        wire_checks::responses_event(monster.as_bytes());
        wire_checks::responses_request(monster.as_bytes());
    }
    for line in ["\n", "\r", "data: x\n", ":\n", "data: x\n\n"] {
        wire_checks::sse(line.repeat(5_000).as_bytes());
    }
    wire_checks::sse("x".repeat(200_000).as_bytes());
}

/// One answer that made this many calls, all answered, in the other order.
fn tool_calls(count: usize) -> String {
    let calls: Vec<String> = (0..count)
        .map(|n| format!(r#"{{"id":"{n}","function":{{"name":"f","arguments":"{{}}"}}}}"#))
        .collect();
    let results: Vec<String> = (0..count)
        .rev()
        .map(|n| format!(r#"{{"role":"tool","tool_call_id":"{n}","content":"ok"}}"#))
        .collect();
    format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"go"}},{{"role":"assistant","tool_calls":[{}]}},{}]}}"#,
        calls.join(","),
        results.join(",")
    )
}

const HTTP: &[&[u8]] = &[
    b"GET ", b"POST ", b"/v1/x?y ", b"* ", b"http://a/b ", b"HTTP/1.1", b"HTTP/1.0", b" 200 OK", b"\r\n",
    b"\r\n", b"\n", b"\r\n\r\n", b"content-length: ", b"Content-Length:", b"transfer-encoding: ", b"chunked",
    b"connection: close", b"expect: 100-continue", b"5", b"0", b"host: a", b"x", b":", b" ", b"\t", b"\xff",
    b"\0",
];

#[test]
fn a_head_of_http_is_one_whatever_follows() {
    proptest!(cases(3000), |(data in made_of(HTTP))| wire_checks::http_head(&data));
}

const CHUNKED: &[&[u8]] = &[
    b"0", b"5", b"a", b"F", b"\r\n", b"\r\n", b"\n", b"\r", b"hello", b";x=y", b"0\r\n\r\n",
    b"5\r\nhello\r\n", b"a: b\r\n", b" ", b"x",
];

#[test]
fn chunks_of_http_are_read_the_same_however_they_are_cut() {
    proptest!(cases(3000), |(data in made_of(CHUNKED))| wire_checks::http_chunks(&data));
}
