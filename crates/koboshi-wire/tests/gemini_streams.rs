//! Streams of Gemini: what the chunks of all kinds of servers say, how lists are cut, and that what we write is read as it was meant.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::common;
use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::Malformed;
use koboshi_wire::dialect::Dialect;
use koboshi_wire::failure::Failure;
use koboshi_wire::form::{Signature, Thought};
use koboshi_wire::gemini::answer;
use koboshi_wire::gemini::array;
use koboshi_wire::gemini::event::{self, Events};
use koboshi_wire::gemini::write_answer::write as whole;
use koboshi_wire::gemini::writer::{Alive, Shape, Writer};
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::whole::{Call, Choice, Whole};
use koboshi_wire::writer::{Head, WholeCall};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(data: &str) -> Step<'_> {
    Events::default().read(None, data).unwrap()
}

#[test]
fn a_text_chunk_is_borrowed() {
    let step = read(r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}"#);
    assert!(matches!(step.text, Some(std::borrow::Cow::Borrowed("Hi"))));
    assert_eq!((step.choices, step.speaking, step.done), (1, 1, false));
}

#[test]
fn odd_chunks_are_taken() {
    for (data, text) in [
        ("", None),
        ("[DONE]", None),
        ("{}", None),
        (r#"{"candidates":null}"#, None),
        (r#"{"candidates":[]}"#, None),
        (r#"{"candidates":[{"content":{}}]}"#, None),
        (r#"{"candidates":[{"content":{"parts":[{"text":""}]}}]}"#, None),
        (r#"{"candidates":[{"content":{"parts":[null,3,{"text":"a"},{"text":"b"}]}}]}"#, Some("ab")),
        (r#"{"candidates":[{"content":{"parts":{"text":"a"}}}]}"#, Some("a")),
        (r#"{"candidates":[{"content":{"parts":[{"text":"\ud83d!"}]}}]}"#, Some("\u{fffd}!")),
        (
            r#"{"candidates":[{"finish_reason":"FINISH_REASON_UNSPECIFIED","content":{"parts":[{"text":"a"}]}}]}"#,
            Some("a"),
        ),
    ] {
        let step = read(data);
        assert_eq!((step.text.as_deref(), step.done, step.error), (text, false, false), "{data}");
    }
    for data in ["{", "3", "[]", "[{},{}]", "<html>"] {
        assert!(Events::default().read(None, data).is_err(), "{data}");
    }
    assert!(matches!(Events::default().read(None, r#"{"candidates":["#), Err(Malformed::Cut { .. })));
}

#[test]
fn errors_are_seen_in_every_form() {
    for data in [
        r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#,
        "[{\n  \"error\": {\n    \"code\": 429\n  }\n}\n]",
        r#"{"error":"x"}"#,
    ] {
        let step = read(data);
        assert!(step.error && !step.done, "{data}");
    }
    // Without `data:`, on several lines, and perhaps without a blank line after it.
    for bare in ["{\n  \"error\": {\n    \"code\": 503\n  }\n}\n", "[{\"error\":{\"code\":1}}]\r\n\r\n"] {
        let mut framer = Framer::new(1000);
        framer.push(Bytes::from_static(bare.as_bytes()));
        let frame = framer.next_frame().map(Result::unwrap).or_else(|| framer.finish()).unwrap();
        let data = event::data(&frame).unwrap().unwrap();
        assert!(read(&data).error, "{bare}");
    }
    let mut framer = Framer::new(1000);
    framer.push(Bytes::from_static(b": comment\n\n\n"));
    while let Some(frame) = framer.next_frame() {
        assert_eq!(event::data(&frame.unwrap()).unwrap(), None);
    }
}

#[test]
fn reasons_are_put_in_one_set_of_words() {
    for (reason, word) in [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        ("UNEXPECTED_TOOL_CALL", "UNEXPECTED_TOOL_CALL"),
        ("OTHER", "OTHER"),
        ("A_NEW_ONE", "A_NEW_ONE"),
    ] {
        let data = json!({"candidates": [{"finishReason": reason}]}).to_string();
        let step = read(&data);
        assert_eq!((step.finish[0].1.as_ref(), step.done), (word, true), "{reason}");
    }
}

#[test]
fn with_several_candidates_the_last_to_end_ends_it() {
    let mut events = Events::default();
    let both = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0},{"content":{"parts":[{"functionCall":{"name":"f"}}]},"index":1}]}"#;
    let step = events.read(None, both).unwrap();
    assert_eq!((step.text.as_deref(), step.speaking, step.calls[0].choice), (Some("a"), 3, 1));
    let first = events.read(None, r#"{"candidates":[{"index":0,"finishReason":"STOP"}]}"#).unwrap();
    assert_eq!((first.finish[0].1.as_ref(), first.done), ("stop", false));
    let last = events.read(None, r#"{"candidates":[{"index":1,"finishReason":"STOP"}]}"#).unwrap();
    assert_eq!((last.finish[0].1.as_ref(), last.done), ("tool_calls", true));
}

#[test]
fn signatures_are_distinguished() {
    let step = read(
        r#"{"candidates":[{"content":{"parts":[{"text":"t","thought":true,"thoughtSignature":"one"},{"text":"a","thought_signature":"two"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"three"}]}}]}"#,
    );
    assert_eq!((step.thought.as_deref(), step.text.as_deref()), (Some("t"), Some("a")));
    assert_eq!((step.signature.as_deref(), step.calls[0].signature.as_deref()), (Some("two"), Some("three")));
}

fn head() -> Head {
    Head { id: "r".into(), model: "m".into(), ..Head::default() }
}

fn failure<'a>() -> Failure<'a> {
    let message = "The {model} is tired.\n\"Again\" later.";
    Failure { retry_after: Some(5), ..common::failure(Kind::Overloaded, 503, message) }
}

#[test]
fn an_error_in_a_stream_is_bare_json_of_its_own() {
    let mut writer = Writer::new(head(), false);
    writer.write_step(&Step { text: Some("a".into()), ..Step::default() });
    let error = writer.error(&failure());
    // As Google's JavaScript library looks for it: the whole of what it read is one JSON object with a code that is an error.
    let value: Value = serde_json::from_slice(&error).unwrap();
    assert_eq!(value["error"]["code"], 503);
    assert_eq!(value["error"]["status"], "UNAVAILABLE");
    assert!(!error.contains(&b'\n'), "and as its Python library does, line by line");
    assert!(writer.finish("stop", None).is_empty() && writer.error(&failure()).is_empty());
    // In a list it is an element, and the list is closed.
    let mut writer = Writer::new(head(), false).shaped(Shape::List);
    let mut list = writer.write_step(&Step { text: Some("a".into()), ..Step::default() }).to_vec();
    list.extend_from_slice(&writer.error(&failure()));
    let value: Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(value[1]["error"]["code"], 503);
    // Before anything was said it is a list of one, as the service sends it.
    let alone = Writer::new(head(), false).shaped(Shape::List).error(&failure());
    let value: Value = serde_json::from_slice(&alone).unwrap();
    assert_eq!(value[0]["error"]["code"], 503);
}

#[test]
fn signs_of_life_are_no_comments() {
    assert_eq!(&Writer::new(head(), false).keep_alive()[..], b"\r\n");
    assert_eq!(&Writer::new(head(), false).shaped(Shape::List).keep_alive()[..], b"\r\n");
    let chunk = Writer::new(head(), false).alive(Alive::Chunk).keep_alive();
    assert_eq!(&chunk[..], b"data: {\"candidates\":[]}\n\n");
}

#[test]
fn chunks_of_an_upstream_pass_in_the_other_form() {
    let pretty = "{\n  \"candidates\": [\n  {\"content\": {\"parts\": [{\"text\": \"a\\nb\"}]}}]\r\n}";
    let last = r#"{"candidates":[{"finishReason":"STOP"}]}"#;
    for shape in [Shape::Events, Shape::List] {
        let mut writer = Writer::new(head(), true).shaped(shape);
        let mut events = Events::default();
        let mut out = Vec::new();
        for data in [pretty, last] {
            let step = events.read(None, data).unwrap();
            out.extend_from_slice(&writer.pass(&step, data));
        }
        let end: &[u8] = if shape == Shape::List { b"]" } else { b"" };
        assert_eq!(&writer.finish("stop", None)[..], end, "the end was said already");
        out.extend_from_slice(end);
        let steps = if shape == Shape::List { of_list(&out) } else { of_events(&out) };
        assert_eq!(steps[0].text.as_deref(), Some("a\nb"));
        assert!(steps[1].done);
        if shape == Shape::List {
            let all: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(all.as_array().unwrap().len(), 2);
        }
    }
}

/// Some models say in every chunk that it is the last.
#[test]
fn an_end_that_passed_hides_nothing_that_follows() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#;
    for shape in [Shape::Events, Shape::List] {
        let passed = || {
            let mut writer = Writer::new(head(), true).shaped(shape);
            let mut out = writer.pass(&Events::default().read(None, chunk).unwrap(), chunk).to_vec();
            out.extend_from_slice(&writer.pass(&Events::default().read(None, chunk).unwrap(), chunk));
            (writer, out)
        };
        let (mut writer, _) = passed();
        assert!(!writer.error(&failure()).is_empty(), "{shape:?}");
        assert!(writer.finish("stop", None).is_empty(), "nothing follows an error: {shape:?}");
        let (mut writer, mut out) = passed();
        out.extend_from_slice(&writer.write_step(&Step { text: Some("b".into()), ..Step::default() }));
        out.extend_from_slice(&writer.finish("stop", None));
        let steps = if shape == Shape::List { of_list(&out) } else { of_events(&out) };
        assert!(steps.len() == 4 && steps[3].done && steps[2].finish.is_empty(), "{shape:?} {steps:?}");
    }
}

#[test]
fn our_chunks_follow_those_of_an_upstream() {
    let mut writer = Writer::new(head(), true).shaped(Shape::List);
    // The upstream's own bracket went to the client with its first chunk.
    let mut out = br#"[{"candidates":[]}"#.to_vec();
    writer.passed(&Step::default());
    out.extend_from_slice(&writer.write_step(&Step { text: Some("a".into()), ..Step::default() }));
    out.extend_from_slice(&writer.finish("length", None));
    let all: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(all[2]["candidates"][0]["finishReason"], "MAX_TOKENS");
}

#[test]
fn no_reason_that_is_not_ours_becomes_stop() {
    for (reason, word) in [
        ("stop", "STOP"),
        ("tool_calls", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        ("pause_turn", "OTHER"),
        ("insufficient_system_resource", "OTHER"),
        ("", "OTHER"),
    ] {
        let last = Writer::new(head(), false).finish(reason, None);
        let value: Value = serde_json::from_slice(last.strip_prefix(b"data: ").unwrap()).unwrap();
        assert_eq!(value["candidates"][0]["finishReason"], word, "{reason}");
    }
}

fn of_events(stream: &[u8]) -> Vec<Step<'static>> {
    let mut framer = Framer::new(1 << 20);
    framer.push(Bytes::copy_from_slice(stream));
    let (mut events, mut steps) = (Events::default(), Vec::new());
    while let Some(frame) = framer.next_frame() {
        let frame = frame.unwrap();
        if let Some(data) = event::data(&frame).unwrap() {
            steps.push(events.read(None, &data).unwrap().into_owned());
        }
    }
    assert_eq!(framer.finish(), None);
    steps
}

fn of_list(stream: &[u8]) -> Vec<Step<'static>> {
    let mut framer = array::Framer::new(1 << 20);
    framer.push(Bytes::copy_from_slice(stream));
    let (mut events, mut steps) = (Events::default(), Vec::new());
    while let Some(frame) = framer.next_frame() {
        if let Some(data) = frame.unwrap().data().unwrap() {
            steps.push(events.read(None, data).unwrap().into_owned());
        }
    }
    assert_eq!(framer.finish(), None);
    steps
}

/// Something a model says.
#[derive(Debug, Clone)]
enum FrameContent {
    Text(String),
    Thought(String),
    Signed(String),
    Calls(Vec<(String, String)>),
    Alive,
}

fn said() -> impl Strategy<Value = FrameContent> {
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just("{ \"b\" : [1, {\"c\":\"\\u00e9\\\"}]\"} ] ,\"a\":null}".to_owned()),
        ".{0,8}".prop_map(|text| json!({"x": text}).to_string()),
    ];
    prop_oneof![
        ".{1,20}".prop_map(FrameContent::Text),
        "[\\[\\]{}\",\\\\\n\r:]{1,8}".prop_map(FrameContent::Text),
        ".{1,20}".prop_map(FrameContent::Thought),
        "[a-zA-Z0-9+/]{1,8}".prop_map(FrameContent::Signed),
        vec(("[a-z_]{1,6}", arguments), 1..3).prop_map(FrameContent::Calls),
        Just(FrameContent::Alive),
    ]
}

#[test]
fn what_we_write_is_read_as_it_was_meant() {
    let config = ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() };
    let usage = Usage { input: 11, output: 7, cached: 3, stored: 0, reasoning: 2 };
    proptest!(config, |(all in vec(said(), 0..8), as_list: bool, forward_signatures: bool)| {
        let shape = if as_list { Shape::List } else { Shape::Events };
        let mut writer = Writer::new(head(), forward_signatures).shaped(shape);
        let mut stream = writer.open(Some(&json!({"a": 1}))).to_vec();
        for one in &all {
            let bytes = match one {
                FrameContent::Text(text) => writer.write_step(&Step { text: Some(text.into()), ..Step::default() }),
                FrameContent::Thought(text) => writer.write_step(&Step { thought: Some(text.into()), reasoning: true, ..Step::default() }),
                FrameContent::Signed(signature) => writer.write_step(&Step { signature: Some(signature.into()), ..Step::default() }),
                FrameContent::Calls(calls) => {
                    let calls: Vec<WholeCall<'_>> = calls.iter().map(|(name, arguments)| WholeCall { id: "i", name, arguments, signature: Some("s"), ..WholeCall::default() }).collect();
                    writer.calls(&calls)
                }
                FrameContent::Alive => writer.keep_alive(),
            };
            stream.extend_from_slice(&bytes);
        }
        stream.extend_from_slice(&writer.finish("stop", Some(&usage)));
        let steps = if as_list { of_list(&stream) } else { of_events(&stream) };
        let join = |of: &dyn Fn(&FrameContent) -> Option<String>| all.iter().filter_map(of).collect::<String>();
        let joined = |of: &dyn Fn(&Step<'_>) -> Option<String>| steps.iter().filter_map(of).collect::<String>();
        prop_assert_eq!(
            joined(&|step| step.text.as_deref().map(str::to_owned)),
            join(&|said| if let FrameContent::Text(text) = said { Some(text.clone()) } else { None })
        );
        prop_assert_eq!(
            joined(&|step| step.thought.as_deref().map(str::to_owned)),
            join(&|said| if let FrameContent::Thought(text) = said { Some(text.clone()) } else { None })
        );
        prop_assert_eq!(
            joined(&|step| step.signature.as_deref().map(str::to_owned)),
            join(&|said| if let FrameContent::Signed(text) = said { Some(text.clone()).filter(|_| forward_signatures) } else { None })
        );
        let called: Vec<(&str, &str, u32)> = steps.iter().flat_map(|step| &step.calls)
            .map(|call| (call.name.as_deref().unwrap(), call.arguments.as_deref().unwrap(), call.index)).collect();
        let meant: Vec<(&str, &str, u32)> = (0..).zip(all.iter().filter_map(|said| if let FrameContent::Calls(calls) = said { Some(calls) } else { None }).flatten())
            .map(|(index, (name, arguments))| (name.as_str(), arguments.as_str(), index)).collect();
        let has_calls = !meant.is_empty();
        prop_assert_eq!(called, meant);
        let last = steps.last().unwrap();
        prop_assert!(last.done && last.usage == Some(usage));
        prop_assert_eq!(last.finish[0].1.as_ref(), if has_calls { "tool_calls" } else { "stop" });
        prop_assert!(steps.iter().rev().skip(1).all(|step| !step.done));
    });
}

#[test]
fn whole_answers_come_back() {
    let signature = |data: &'static str| Some(Signature { of: Dialect::Gemini, id: None, data: data.into() });
    let choice = Choice {
        index: 1,
        text: Some("a".into()),
        reasoning: true,
        thoughts: vec![
            Thought { text: "t".into(), signature: signature("one"), hidden: false },
            Thought { signature: signature("two"), ..Thought::default() },
        ],
        calls: vec![Call {
            id: Some("i".into()),
            name: Some("f".into()),
            arguments: "{\"x\":1}".into(),
            signature: signature("three"),
            ..Call::default()
        }],
        finish: Some("tool_calls".into()),
        ..Choice::default()
    };
    let given = Whole {
        id: Some("r".into()),
        model: Some("m".into()),
        choices: vec![choice],
        usage: Some(Usage { input: 4, output: 3, ..Usage::default() }),
        ..Whole::default()
    };
    let body = whole(&head(), &given, None);
    let mut read = answer::read(&body).unwrap().into_owned();
    read.choices[0].calls[0].span = None;
    assert_eq!(read, given);
    // Nothing of another vendor's proofs, and a choice without anything is still a candidate that ended.
    let mut foreign = given.clone();
    foreign.choices[0].thoughts[0].signature =
        Some(Signature { of: Dialect::Messages, id: None, data: "x".into() });
    assert!(!String::from_utf8_lossy(&whole(&head(), &foreign, None)).contains("\"x\","));
    let empty = Whole {
        choices: vec![Choice { finish: Some("content_filter".into()), ..Choice::default() }],
        ..Whole::default()
    };
    let value: Value = serde_json::from_slice(&whole(&head(), &empty, None)).unwrap();
    assert_eq!(value["candidates"][0]["content"]["parts"], json!([{"text": ""}]));
    assert_eq!(value["candidates"][0]["finishReason"], "SAFETY");
}

#[test]
fn answers_are_changed_in_place() {
    let body = Bytes::from_static(
        br#"{ "candidates": [ {"content":{"parts":[{"functionCall":{"name":"f","args": {"a":} }}]}} ] }"#,
    );
    assert!(answer::read(&body).is_err());
    let body = Bytes::from_static(
        br#"{ "candidates": [ {"content":{"parts":[{"functionCall":{"name":"f","args": {"a":1} }}]},"finishReason":"STOP"} ] , "usageMetadata":{"promptTokenCount":1}, "x":1 }"#,
    );
    let read = answer::read(&body).unwrap();
    let span = read.choices[0].calls[0].span.clone().unwrap();
    let changed = answer::with_arguments(&body, &[(span.clone(), r#"{"b":2}"#)]);
    assert_eq!(changed, String::from_utf8_lossy(&body).replace(r#"{"a":1}"#, r#"{"b":2}"#));
    let broken = answer::with_arguments(&body, &[(span, "{")]);
    assert_eq!(answer::read(&broken).unwrap().choices[0].calls[0].arguments, r#"{"_raw":"{"}"#);
    let usage = Usage { input: 7, output: 5, reasoning: 2, ..Usage::default() };
    let changed = answer::with_note(&answer::with_usage(&body, &usage), &json!({"a": 1}));
    let text = String::from_utf8(changed.to_vec()).unwrap();
    assert!(
        text.starts_with(r#"{"koboshi":{"a":1}, "candidates""#) && text.ends_with(r#", "x":1 }"#),
        "{text}"
    );
    assert_eq!(answer::read(text.as_bytes()).unwrap().usage, Some(usage));
    let bare = answer::with_usage(&Bytes::from_static(b"{ }"), &usage);
    assert_eq!(answer::read(&bare).unwrap().usage, Some(usage));
}

#[test]
fn refused_prompts_and_errors_in_place_of_an_answer_are_seen() {
    let blocked = answer::read(br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#).unwrap();
    assert_eq!(blocked.choices[0].finish.as_deref(), Some("content_filter"));
    let fine = answer::read(
        br#"{"promptFeedback":{"safetyRatings":[]},"candidates":[{"finishReason":"MAX_TOKENS"}]}"#,
    )
    .unwrap();
    assert_eq!(fine.choices[0].finish.as_deref(), Some("length"));
    assert!(!fine.choices[0].has_content());
    assert!(answer::read(b"[{\"error\":{\"code\":400}}]\n").unwrap().error);
    assert!(answer::read(b"<html>").is_err());
}
