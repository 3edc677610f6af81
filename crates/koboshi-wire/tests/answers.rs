//! Whole answers that are read, and frames, answers and errors that are written.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::Malformed;
use koboshi_wire::chat::frames::{self, ErrorBody, Head, WholeCall};
use koboshi_wire::chat::writer::Writer;
use koboshi_wire::chat::{answer, event, models, write_answer};
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::whole::{Call, Choice, Whole};
use serde_json::{Value, json};

const ANSWER: &str = r#"{ "id": "chatcmpl-1", "object": "chat.completion", "created": 1741569952, "model": "gpt-4o",
  "choices": [ { "index": 0, "message": { "role": "assistant", "content": null, "refusal": null, "tool_calls": [
     { "id": "call_a", "type": "function", "function": { "name": "f", "arguments": "{\"x\": 1,}" } },
     { "id": "call_b", "type": "function", "function": { "arguments": {"y":2}, "name": "g" } },
     { "id": "call_c", "type": "function", "function": { "name": "h" } },
     { "id": "call_d", "type": "custom", "custom": { "name": "run", "input": "ls" } } ] },
   "logprobs": null, "finish_reason": "tool_calls" }, { "message": { "content": "hi" }, "finish_reason": null } ],
  "usage": { "prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99 } }"#;

#[test]
fn an_answer_says_its_calls_and_where_their_arguments_stand() {
    let whole = answer::read(ANSWER.as_bytes()).unwrap();
    assert_eq!(
        (whole.id.as_deref(), whole.model.as_deref(), whole.created),
        (Some("chatcmpl-1"), Some("gpt-4o"), Some(1_741_569_952))
    );
    assert_eq!(whole.usage, Some(Usage { input: 82, output: 17, ..Usage::default() }));
    assert!(!whole.error);
    let [first, second] = &whole.choices[..] else { panic!("two choices") };
    assert_eq!(
        (first.finish.as_deref(), first.text.as_deref(), first.has_content()),
        (Some("tool_calls"), None, true)
    );
    assert_eq!((second.index, second.text.as_deref(), second.finish.as_deref()), (1, Some("hi"), None));
    let calls: Vec<_> =
        first.calls.iter().map(|call| (call.name.as_deref().unwrap(), call.arguments.as_ref())).collect();
    assert_eq!(calls, [("f", "{\"x\": 1,}"), ("g", "{\"y\":2}"), ("h", ""), ("run", "ls")]);
    let spans: Vec<_> = first.calls.iter().map(|call| call.span.clone().map(|span| &ANSWER[span])).collect();
    assert_eq!(spans, [Some(r#""{\"x\": 1,}""#), Some(r#"{"y":2}"#), None, Some("\"ls\"")]);
    assert!(first.calls[3].free_text && !first.calls[0].free_text);
}

#[test]
fn mended_arguments_leave_every_other_byte() {
    let body = Bytes::from_static(ANSWER.as_bytes());
    let whole = answer::read(&body).unwrap();
    let span = |call: usize| whole.choices[0].calls[call].span.clone().unwrap();
    let mended = answer::with_arguments(&body, &[(span(1), "{\"y\":3}"), (span(0), "{\"x\":1}")]);
    let expected =
        ANSWER.replace(r#""{\"x\": 1,}""#, r#""{\"x\":1}""#).replace(r#"{"y":2}"#, r#""{\"y\":3}""#);
    assert_eq!(mended, expected.as_bytes());
}

#[test]
fn errors_and_nonsense_in_place_of_an_answer_are_seen() {
    for body in [
        r#"{"error":{"message":"x"}}"#,
        r#"{"object":"error","message":"x"}"#,
        r#"{"choices":[{"message":{"content":""},"finish_reason":"error"}]}"#,
        r#"{"choices":[{"message":{},"error":{"code":502}}]}"#,
    ] {
        assert!(answer::read(body.as_bytes()).unwrap().error, "{body}");
    }
    assert!(answer::read(br#"{"choices":null}"#).unwrap().choices.is_empty());
    assert!(matches!(answer::read(b"<html></html>"), Err(Malformed::NotJson { .. })));
    assert!(matches!(answer::read(&ANSWER.as_bytes()[..300]), Err(Malformed::Cut { .. })));
    assert!(matches!(answer::read(b"{\"id\":\"\xff\"}"), Err(Malformed::NotUtf8 { at: 7 })));
    assert_eq!(answer::read(b"[]"), Err(Malformed::NotAnObject));
}

#[test]
fn half_a_character_moves_no_place() {
    let body = r#"{"id":"\ud83d","choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":"\ud83d{}"}}]}}]}"#;
    let whole = answer::read(body.as_bytes()).unwrap();
    let call = &whole.choices[0].calls[0];
    assert_eq!((call.arguments.as_ref(), &body[call.span.clone().unwrap()]), ("\u{fffd}{}", r#""\ud83d{}""#));
}

fn head() -> Head {
    Head { id: "chatcmpl-k".into(), model: "m\"1".into(), created: 1_741_569_952, fingerprint: None }
}

/// The JSON of a frame, which must be one frame and nothing else.
fn json_of(frame: &Bytes) -> Value {
    let mut framer = Framer::new(1 << 20);
    framer.push(frame.clone());
    let found = framer.next_frame().unwrap().unwrap();
    assert_eq!((found.raw(), framer.pending()), (frame, 0), "one frame, whole");
    serde_json::from_str(&found.data().unwrap().unwrap()).unwrap()
}

#[test]
fn chunks_have_the_shape_of_the_dialect() {
    let chunk = |choices: Value| json!({"id": "chatcmpl-k", "object": "chat.completion.chunk", "created": 1_741_569_952, "model": "m\"1", "choices": choices});
    let piece = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]))
    };
    assert_eq!(
        json_of(&frames::role_chunk(&head(), None)),
        piece(json!({"role": "assistant", "content": ""}), Value::Null)
    );
    let mut writer = Writer::new(head(), false);
    writer.open(None);
    let said = Step { text: Some("a\n\r\"あ".into()), ..Step::default() };
    assert_eq!(json_of(&writer.write_step(&said)), piece(json!({"content": "a\n\r\"あ"}), Value::Null));
    assert_eq!(json_of(&frames::finish_chunk(&head(), "stop")), piece(json!({}), json!("stop")));
    assert_eq!(json_of(&frames::empty_chunk(&head())), piece(json!({}), Value::Null));
    let calls = [
        WholeCall { id: "a", name: "f", arguments: "{\"x\":1}", ..WholeCall::default() },
        WholeCall { id: "b", name: "g", arguments: "{}", ..WholeCall::default() },
    ];
    let call = |index: u32, id: &str, name: &str, arguments: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let both = json!({"tool_calls": [call(0, "a", "f", "{\"x\":1}"), call(1, "b", "g", "{}")]});
    assert_eq!(json_of(&frames::calls_chunk_from(&head(), 0, 0, &calls)), piece(both, Value::Null));
    let later = json_of(&frames::calls_chunk_from(&head(), 1, 3, &calls[..1]));
    assert_eq!(later["choices"][0]["index"], 1);
    assert_eq!(later["choices"][0]["delta"]["tool_calls"][0], call(3, "a", "f", "{\"x\":1}"));
    let old = json_of(&frames::function_chunk(&head(), 0, &calls[0]));
    assert_eq!(old["choices"][0]["delta"], json!({"function_call": {"name": "f", "arguments": "{\"x\":1}"}}));
    let named = Head { fingerprint: Some("fp".into()), ..head() };
    let marked = json_of(&frames::role_chunk(&named, Some(&json!({"degraded": true}))));
    assert_eq!((&marked["system_fingerprint"], &marked["koboshi"]["degraded"]), (&json!("fp"), &json!(true)));
}

#[test]
fn what_is_written_is_read_back() {
    let usage = Usage { input: 5, output: 7, cached: 2, reasoning: 3, ..Usage::default() };
    let text = |frame: &Bytes| json_of(frame).to_string();
    let written = text(&frames::usage_chunk(&head(), &usage));
    let step = event::read(&written).unwrap();
    assert_eq!((step.usage, step.choices, step.has_content()), (Some(usage), 0, false));
    let calls = text(&frames::calls_chunk_from(
        &head(),
        0,
        0,
        &[WholeCall { id: "a", name: "f", arguments: "{}", ..WholeCall::default() }],
    ));
    assert_eq!(event::read(&calls).unwrap().calls[0].arguments.as_deref(), Some("{}"));
    let empty = text(&frames::empty_chunk(&head()));
    assert!(!event::read(&empty).unwrap().has_content(), "keep-alives are no content");
    let role = text(&frames::role_chunk(&head(), None));
    assert!(!event::read(&role).unwrap().has_content());
    let said = |choice| Whole { choices: vec![choice], usage: Some(usage), ..Whole::default() };
    let hello = said(Choice { text: Some("hello".into()), ..Choice::default() });
    let whole = write_answer::write(&head(), &hello, Some(&json!({"source": "static"})));
    let read = answer::read(&whole).unwrap();
    assert_eq!(
        (read.choices[0].text.as_deref(), read.choices[0].finish.as_deref(), read.usage),
        (Some("hello"), Some("stop"), Some(usage))
    );
    let value: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(
        (&value["koboshi"]["source"], &value["object"], &value["usage"]["total_tokens"]),
        (&json!("static"), &json!("chat.completion"), &json!(12))
    );
    let call =
        Call { id: Some("a".into()), name: Some("f".into()), arguments: "{}".into(), ..Call::default() };
    let called = said(Choice { calls: vec![call], ..Choice::default() });
    let called = write_answer::write(&head(), &called, None);
    let read = answer::read(&called).unwrap();
    assert_eq!(
        (read.choices[0].calls[0].id.as_deref(), read.choices[0].finish.as_deref()),
        (Some("a"), Some("tool_calls"))
    );
}

#[test]
fn errors_have_real_nulls_and_the_same_envelope_in_a_stream() {
    let extra = json!({"errorCode": "KBS-3001"});
    let error = ErrorBody {
        message: "too \"many\"",
        kind: "rate_limit_error",
        code: Some("rate_limit_exceeded"),
        param: None,
        koboshi: Some(&extra),
    };
    let body: Value = serde_json::from_slice(&frames::error_body(&error)).unwrap();
    let expected = json!({"error": {"message": "too \"many\"", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded", "koboshi": extra}});
    assert_eq!(body, expected);
    let frame = frames::error_frame(&error);
    assert_eq!(json_of(&frame), expected);
    assert!(event::read(&expected.to_string()).unwrap().error);
    let bare: Value = serde_json::from_slice(&frames::error_body(&ErrorBody {
        message: "m",
        kind: "t",
        ..ErrorBody::default()
    }))
    .unwrap();
    assert_eq!(bare, json!({"error": {"message": "m", "type": "t", "param": null, "code": null}}));
}

#[test]
fn the_marks_of_a_stream_are_frames() {
    let mut framer = Framer::new(1024);
    framer.push(Bytes::from_static(frames::COMMENT));
    framer.push(Bytes::from_static(frames::DONE));
    assert!(framer.next_frame().unwrap().unwrap().is_comment());
    let done = framer.next_frame().unwrap().unwrap();
    assert!(event::read(&done.data().unwrap().unwrap()).unwrap().done);
}

#[test]
fn models_are_listed_as_the_dialect_says() {
    let list: Value = serde_json::from_slice(&models::list(["openai/gpt-4o", "fast"])).unwrap();
    let model = |id: &str, owner: &str| json!({"id": id, "object": "model", "created": 0, "owned_by": owner});
    assert_eq!(
        list,
        json!({"object": "list", "data": [model("openai/gpt-4o", "openai"), model("fast", "koboshi")]})
    );
}
