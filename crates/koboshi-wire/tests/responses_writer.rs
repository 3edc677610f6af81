//! Our own responses streams: complete as the official clients and Codex want them, and read back as what was said.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::semicolon_if_nothing_returned,
    reason = "helpers of tests"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::common;
use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::dialect::Dialect;
use koboshi_wire::failure::Failure;
use koboshi_wire::form::{Signature, Thought};
use koboshi_wire::responses::write_answer::write as whole;
use koboshi_wire::responses::writer::{Head, WholeCall};
use koboshi_wire::responses::{Events, Writer, answer};
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Block, Step, Usage};
use koboshi_wire::whole::{Call, Choice, Whole};
use proptest::prelude::*;
use serde_json::{Value, json};

fn head() -> Head {
    Head {
        id: "resp_0af3".into(),
        model: "claude-sonnet-5".into(),
        created: 1_700_000_000,
        fingerprint: None,
    }
}

fn text(text: &str) -> Step<'_> {
    Step { text: Some(text.into()), ..Step::default() }
}

fn thought(text: &str) -> Step<'_> {
    Step { thought: Some(text.into()), reasoning: true, ..Step::default() }
}

fn refusal(text: &str) -> Step<'_> {
    Step { refused: Some(text.into()), refusal: true, ..Step::default() }
}

const USAGE: Usage = Usage { input: 20, output: 9, cached: 5, stored: 0, reasoning: 2 };

fn events(stream: &[u8]) -> Vec<(String, Value)> {
    let mut framer = Framer::new(usize::MAX);
    framer.push(Bytes::copy_from_slice(stream));
    let mut events = Vec::new();
    while let Some(frame) = framer.next_frame() {
        let frame = frame.unwrap();
        let data: Value = serde_json::from_str(&frame.data().unwrap().unwrap()).unwrap();
        let name = frame.event().unwrap().to_owned();
        assert_eq!(data["type"], name.as_str(), "the event line is the type");
        events.push((name, data));
    }
    assert_eq!(framer.pending(), 0);
    events
}

/// The picture that the official Python client builds of a stream, with all that it insists on: the response comes first, an item before its
/// parts, a part before its deltas, and what is done is what the deltas said. Gives the last response.
fn client(stream: &[u8]) -> Value {
    let events = events(stream);
    assert_eq!(events[0].0, "response.created");
    let mut items: BTreeMap<u64, Value> = BTreeMap::new();
    let mut done: Vec<Value> = Vec::new();
    for (number, (name, event)) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{name}");
        let index = event["output_index"].as_u64().unwrap_or(u64::MAX);
        let delta = event["delta"].as_str().unwrap_or_default();
        if let Some(id) = event["item_id"].as_str() {
            assert_eq!(items[&index]["id"], id);
        }
        let add = |value: &mut Value| *value = format!("{}{delta}", value.as_str().unwrap()).into();
        let part = |event: &Value| {
            event["content_index"].as_u64().or(event["summary_index"].as_u64()).unwrap_or(u64::MAX) as usize
        };
        match name.as_str() {
            "response.output_item.added" => {
                assert_eq!(index as usize, items.len(), "items are numbered without gaps");
                items.insert(index, event["item"].clone());
            }
            "response.content_part.added" => {
                let content = items.get_mut(&index).unwrap()["content"].as_array_mut().unwrap();
                assert_eq!(content.len(), part(event));
                content.push(event["part"].clone());
            }
            "response.reasoning_summary_part.added" => {
                let summary = items.get_mut(&index).unwrap()["summary"].as_array_mut().unwrap();
                assert_eq!(summary.len(), part(event));
                summary.push(event["part"].clone());
            }
            "response.output_text.delta" => {
                assert!(event["logprobs"].is_array());
                add(&mut items.get_mut(&index).unwrap()["content"][part(event)]["text"]);
            }
            "response.refusal.delta" => {
                add(&mut items.get_mut(&index).unwrap()["content"][part(event)]["refusal"])
            }
            "response.reasoning_summary_text.delta" => {
                add(&mut items.get_mut(&index).unwrap()["summary"][part(event)]["text"]);
            }
            "response.function_call_arguments.delta" => add(&mut items.get_mut(&index).unwrap()["arguments"]),
            "response.custom_tool_call_input.delta" => add(&mut items.get_mut(&index).unwrap()["input"]),
            "response.output_text.done" => {
                assert_eq!(event["text"], items[&index]["content"][part(event)]["text"])
            }
            "response.refusal.done" => {
                assert_eq!(event["refusal"], items[&index]["content"][part(event)]["refusal"])
            }
            "response.content_part.done" => assert_eq!(event["part"], items[&index]["content"][part(event)]),
            "response.reasoning_summary_part.done" => {
                assert_eq!(event["part"], items[&index]["summary"][part(event)])
            }
            "response.function_call_arguments.done" => {
                assert_eq!(event["arguments"], items[&index]["arguments"])
            }
            "response.custom_tool_call_input.done" => assert_eq!(event["input"], items[&index]["input"]),
            "response.output_item.done" => {
                let mut item = items[&index].clone();
                // Only these two may differ at the end.
                for field in ["status", "encrypted_content"] {
                    if let Some(value) = event["item"].get(field) {
                        item[field] = value.clone();
                    }
                }
                assert_eq!(event["item"], item);
                done.push(item);
            }
            _ => {}
        }
    }
    let (name, last) = events.last().unwrap();
    let response = last["response"].clone();
    assert_eq!(name.strip_prefix("response.").unwrap(), response["status"].as_str().unwrap());
    assert_eq!(response["output"], Value::Array(done), "the response holds what was done");
    for required in
        ["id", "object", "created_at", "model", "output", "parallel_tool_calls", "tool_choice", "tools"]
    {
        assert!(!response[required].is_null(), "{required}");
    }
    response
}

/// Everything of a stream: said, and how it ended.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    text: String,
    thought: String,
    refusal: String,
    signature: String,
    calls: Vec<(String, String, String, bool)>,
    finish: Vec<String>,
    usage: Option<Usage>,
    done: bool,
    error: bool,
}

fn heard(stream: &[u8]) -> Heard {
    let mut reader = Events::default();
    let mut heard = Heard::default();
    for (name, data) in events(stream) {
        let data = data.to_string();
        let step = reader.read(Some(&name), &data).unwrap();
        heard.text.push_str(step.text.as_deref().unwrap_or_default());
        heard.thought.push_str(step.thought.as_deref().unwrap_or_default());
        heard.refusal.push_str(step.refused.as_deref().unwrap_or_default());
        heard.signature.push_str(step.signature.as_deref().unwrap_or_default());
        for piece in &step.calls {
            let index = piece.index as usize;
            if heard.calls.len() <= index {
                heard.calls.resize_with(index + 1, Default::default);
            }
            let call = &mut heard.calls[index];
            call.0.push_str(piece.id.as_deref().unwrap_or_default());
            call.1.push_str(piece.name.as_deref().unwrap_or_default());
            call.2.push_str(piece.arguments.as_deref().unwrap_or_default());
            call.3 |= piece.free_text;
        }
        heard.finish.extend(step.finish.iter().map(|(_, reason)| reason.to_string()));
        heard.usage = step.usage.or(heard.usage);
        heard.done |= step.done;
        heard.error |= step.error;
    }
    heard
}

fn golden(name: &str, found: &[u8]) {
    common::golden(&format!("responses/{name}"), std::str::from_utf8(found).unwrap());
}

fn calls() -> [WholeCall<'static>; 2] {
    [
        WholeCall {
            id: "call_1",
            name: "exec_command",
            arguments: r#"{"cmd":"ls"}"#,
            ..WholeCall::default()
        },
        WholeCall {
            id: "call_2",
            name: "apply_patch",
            arguments: "*** Begin Patch\n",
            free_text: true,
            ..WholeCall::default()
        },
    ]
}

#[test]
fn a_whole_stream_is_as_the_vendor_writes_it() {
    let mut writer = Writer::new(head(), false);
    let mut stream = writer.open(Some(&json!({"source": "b"}))).to_vec();
    assert!(writer.open(None).is_empty(), "it opens once");
    for step in [thought("Let me"), thought(" see."), text("Hel"), text("lo\n\"you\"")] {
        stream.extend(writer.write_step(&step));
    }
    stream.extend(writer.keep_alive());
    stream.extend(writer.calls(&calls()));
    stream.extend(writer.finish("tool_calls", Some(&USAGE)));
    golden("stream.sse", &stream);
    let response = client(&stream);
    assert_eq!(response["koboshi"]["source"], "b");
    assert_eq!(response["usage"]["total_tokens"], 29);
    assert!(
        writer.finish("stop", None).is_empty() && writer.keep_alive().is_empty(),
        "nothing comes after the end"
    );
    assert!(writer.write_step(&text("x")).is_empty() && writer.calls(&calls()).is_empty());
    let heard = heard(&stream);
    assert_eq!((heard.text.as_str(), heard.thought.as_str()), ("Hello\n\"you\"", "Let me see."));
    assert_eq!(heard.finish, ["tool_calls"]);
    assert_eq!(heard.usage, Some(USAGE));
}

#[test]
fn an_end_is_never_nicer_than_it_was() {
    for (reason, status, said) in [
        ("stop", "completed", Value::Null),
        ("tool_calls", "completed", Value::Null),
        ("length", "incomplete", "max_output_tokens".into()),
        ("max_output_tokens", "incomplete", "max_output_tokens".into()),
        ("content_filter", "incomplete", "content_filter".into()),
        ("error_finish", "incomplete", "error_finish".into()),
    ] {
        let mut writer = Writer::new(head(), false);
        let mut stream = writer.write_step(&text("cut")).to_vec();
        stream.extend(writer.finish(reason, None));
        let response = client(&stream);
        assert_eq!(
            (response["status"].as_str().unwrap(), &response["incomplete_details"]["reason"]),
            (status, &said)
        );
        assert_eq!(response["output"][0]["status"], status);
        let expected = if reason == "max_output_tokens" {
            "length"
        } else if reason == "tool_calls" {
            "stop"
        } else {
            reason
        };
        assert_eq!(heard(&stream).finish, [expected]);
    }
}

#[test]
fn seals_go_to_their_vendor_alone() {
    let steps = [
        thought("hm"),
        Step {
            signature: Some("gAA".into()),
            block: Some(Block { index: 0, closes: true }),
            ..Step::default()
        },
        Step {
            signature: Some("gBB".into()),
            block: Some(Block { index: 1, closes: true }),
            ..Step::default()
        },
        text("so"),
    ];
    for keep in [true, false] {
        let mut writer = Writer::new(head(), keep);
        let mut stream: Vec<u8> = steps.iter().flat_map(|step| writer.write_step(step)).collect();
        stream.extend(writer.finish("stop", None));
        let output = client(&stream)["output"].clone();
        let kinds: Vec<_> =
            output.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
        if keep {
            assert_eq!(kinds, ["reasoning", "reasoning", "message"], "each seal has its own thought");
            assert_eq!(
                (&output[0]["encrypted_content"], &output[1]["encrypted_content"]),
                (&json!("gAA"), &json!("gBB"))
            );
        } else {
            assert_eq!(kinds, ["reasoning", "message"]);
            assert_eq!(output[0].get("encrypted_content"), None);
            assert!(output[0]["id"].as_str().unwrap().starts_with("rs_kbs_"));
        }
    }
}

#[test]
fn ids_are_such_as_the_vendor_takes_back() {
    for id in ["chatcmpl-9", "", "msg_é/:x", &"x".repeat(300)] {
        let mut writer = Writer::new(Head { id: id.into(), ..head() }, false);
        let mut stream = writer.write_step(&thought("t")).to_vec();
        stream.extend(writer.write_step(&text("t")));
        stream.extend(writer.calls(&calls()));
        stream.extend(writer.finish("tool_calls", None));
        let output = client(&stream)["output"].clone();
        for (item, prefix) in output.as_array().unwrap().iter().zip(["rs_", "msg_", "fc_", "ctc_"]) {
            let id = item["id"].as_str().unwrap();
            assert!(id.starts_with(prefix) && id.len() <= 64, "{id}");
            assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "{id}");
        }
    }
}

/// The vendor's frames of a message, up to its second delta.
fn passed() -> Vec<String> {
    let item = json!({"id": "msg_up", "type": "message", "status": "in_progress", "role": "assistant", "content": []});
    let response = json!({"id": "resp_up", "object": "response", "status": "in_progress", "model": "gpt-5.1", "output": []});
    let part = json!({"type": "output_text", "annotations": [], "logprobs": [], "text": ""});
    let delta = |number: u32, text: &str| {
        json!({"type": "response.output_text.delta", "sequence_number": number, "item_id": "msg_up", "output_index": 0,
            "content_index": 0, "delta": text, "logprobs": []})
    };
    let frames = [
        json!({"type": "response.created", "sequence_number": 0, "response": response}),
        json!({"type": "response.in_progress", "sequence_number": 1, "response": response}),
        json!({"type": "response.output_item.added", "sequence_number": 2, "output_index": 0, "item": item}),
        json!({"type": "response.content_part.added", "sequence_number": 3, "item_id": "msg_up", "output_index": 0,
            "content_index": 0, "part": part}),
        delta(4, "Once "),
        delta(5, "upon "),
    ];
    frames
        .iter()
        .map(|frame| format!("event: {}\ndata: {frame}\n\n", frame["type"].as_str().unwrap()))
        .collect()
}

#[test]
fn what_passed_raw_is_gone_on_with() {
    // Cut anywhere after the item has opened, another upstream goes on and the client sees one whole message.
    for cut in 0..=6 {
        let mut writer = Writer::new(head(), false);
        let mut reader = Events::default();
        let mut stream = Vec::new();
        for frame in &passed()[..cut] {
            stream.extend_from_slice(frame.as_bytes());
            let data = frame.split_once("data: ").unwrap().1;
            writer.passed(&reader.read(None, data).unwrap());
        }
        stream.extend(writer.open(None));
        stream.extend(writer.write_step(&text("a time.")));
        stream.extend(writer.finish("stop", Some(&USAGE)));
        let response = client(&stream);
        let said = match cut {
            6 => "Once upon a time.",
            5 => "Once a time.",
            _ => "a time.",
        };
        assert_eq!(response["output"][0]["content"][0]["text"], said, "cut at {cut}");
        assert_eq!(response["output"].as_array().unwrap().len(), 1, "cut at {cut}");
        assert_eq!(response["id"], if cut > 0 { "resp_up" } else { "resp_0af3" });
    }
}

#[test]
fn calls_and_thoughts_that_passed_stand_in_the_response() {
    let mut first = Writer::new(head(), true);
    let mut stream = first.write_step(&thought("hm")).to_vec();
    stream.extend(first.calls(&calls()));
    let mut writer = Writer::new(head(), true);
    let mut reader = Events::default();
    for (name, data) in events(&stream) {
        writer.passed(&reader.read(Some(&name), &data.to_string()).unwrap());
    }
    stream.extend(writer.finish("tool_calls", None));
    let response = client(&stream);
    assert_eq!(response["output"][1]["arguments"], r#"{"cmd":"ls"}"#);
    assert_eq!(response["output"][2]["input"], "*** Begin Patch\n");
    assert_eq!(response["output"][0]["summary"][0]["text"], "hm");
}

#[test]
fn calls_that_passed_interleaved_are_distinguished() {
    let item = |index: u32, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
        "name": "f", "arguments": arguments, "status": "completed"})
    };
    let event = |kind: &str, index: u32, more: Value| {
        let mut event = json!({"type": kind, "output_index": index});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let mut reader = Events::default();
    let mut writer = Writer::new(head(), false);
    for event in [
        event("response.output_item.added", 0, json!({"item": item(0, "")})),
        event("response.output_item.added", 1, json!({"item": item(1, "")})),
        event("response.function_call_arguments.delta", 0, json!({"delta": "[0"})),
        event("response.function_call_arguments.delta", 1, json!({"delta": "[1]"})),
        event("response.function_call_arguments.delta", 0, json!({"delta": "]"})),
        event("response.output_item.done", 0, json!({"item": item(0, "[0]")})),
        event("response.output_item.done", 1, json!({"item": item(1, "[1]")})),
    ] {
        writer.passed(&reader.read(None, &event.to_string()).unwrap());
    }
    let end = events(&writer.finish("tool_calls", None)).pop().unwrap().1;
    assert_eq!(end["response"]["output"], json!([item(0, "[0]"), item(1, "[1]")]));
}

#[test]
fn a_note_that_comes_late_stands_at_the_end() {
    let mut writer = Writer::new(head(), false);
    let mut stream = writer.keep_alive().to_vec();
    assert!(writer.open(Some(&json!({"source": "b"}))).is_empty());
    stream.extend(writer.finish("stop", None));
    assert_eq!(client(&stream)["koboshi"]["source"], "b");
}

#[test]
fn after_a_terminal_frame_passed_nothing_is_written() {
    for step in [Step { done: true, ..Step::default() }, Step { error: true, ..Step::default() }] {
        let mut writer = Writer::new(head(), false);
        writer.passed(&step);
        assert!(writer.finish("stop", None).is_empty() && writer.keep_alive().is_empty());
    }
}

#[test]
fn a_sign_of_life_before_anything_opens_the_stream() {
    let mut writer = Writer::new(head(), false);
    let first: Vec<String> = events(&writer.keep_alive()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(first, ["response.created", "response.in_progress"]);
    let second: Vec<String> = events(&writer.keep_alive()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(second, ["response.in_progress"]);
    assert!(writer.open(None).is_empty());
}

fn failure(kind: Kind) -> Failure<'static> {
    let status = kind.row().http_status.unwrap_or(500);
    Failure { request_id: Some("req_1"), ..common::failure(kind, status, "It broke.") }
}

#[test]
fn a_failed_stream_leaves_its_open_item_open() {
    let koboshi = json!({"kind": "connection_closed"});
    let mut writer = Writer::new(head(), false);
    let mut stream = writer.write_step(&text("half a sent")).to_vec();
    stream.extend(writer.error(&Failure { koboshi: Some(&koboshi), ..failure(Kind::ConnectionClosed) }));
    golden("failed.sse", &stream);
    assert!(events(&stream).iter().all(|(name, _)| name != "response.output_item.done"));
    let response = client(&stream);
    assert_eq!(response["error"]["code"], "server_error");
    assert_eq!(response["error"]["koboshi"]["kind"], "connection_closed");
    assert!(writer.finish("stop", None).is_empty());
    let heard = heard(&stream);
    assert!(heard.error && !heard.done && heard.finish.is_empty());
    // Before anything was said, the client still gets a response that can fail.
    let stream = Writer::new(head(), false).error(&failure(Kind::Internal));
    client(&stream);
}

#[test]
fn codex_gets_its_own_error_codes() {
    let code = |failure: Failure<'_>| {
        let response = client(&Writer::new(head(), false).error(&failure));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&response["error"]["code"]), text(&response["error"]["message"]))
    };
    let of = |kind| code(failure(kind)).0;
    assert_eq!(of(Kind::QuotaExceeded), "insufficient_quota");
    assert_eq!(of(Kind::ContextTooLarge), "context_length_exceeded");
    assert_eq!(of(Kind::Unavailable), "server_error");
    assert_eq!(of(Kind::Overloaded), "server_error", "worth another try");
    assert_eq!(code(Failure { is_final: true, ..failure(Kind::Overloaded) }).0, "server_is_overloaded");
    assert_eq!(of(Kind::InvalidRequest), "invalid_prompt");
    let wait = code(Failure { retry_after: Some(7), ..failure(Kind::RateLimited) });
    assert_eq!(wait, ("rate_limit_exceeded".into(), "It broke. Please try again in 7s.".into()));
    for kind in Kind::ALL {
        client(&Writer::new(head(), false).error(&failure(*kind)));
    }
}

fn answer_of(finish: &str) -> Whole<'static> {
    let signature = Signature { of: Dialect::Responses, id: Some("rs_up".into()), data: "gAAA".into() };
    let foreign = Signature { of: Dialect::Messages, id: None, data: "sig".into() };
    Whole {
        choices: vec![Choice {
            text: Some("Hello".into()),
            thoughts: vec![
                Thought { text: "one".into(), signature: Some(signature), hidden: false },
                Thought { text: "two".into(), signature: Some(foreign.clone()), hidden: false },
                Thought { text: "".into(), signature: Some(foreign), hidden: true },
            ],
            reasoning: true,
            calls: vec![Call {
                id: Some("call_1".into()),
                name: Some("f".into()),
                arguments: "{}".into(),
                ..Call::default()
            }],
            finish: Some(Cow::Owned(finish.to_owned())),
            ..Choice::default()
        }],
        usage: Some(USAGE),
        ..Whole::default()
    }
}

#[test]
fn a_whole_answer_is_written_and_read_back() {
    let body = whole(&head(), &answer_of("tool_calls"), Some(&json!({"source": "b"})));
    golden("answer.json", &body);
    let read = answer::read(&body).unwrap();
    assert_eq!(
        (read.id.as_deref(), read.created, read.usage),
        (Some("resp_0af3"), Some(1_700_000_000), Some(USAGE))
    );
    let choice = &read.choices[0];
    assert_eq!((choice.text.as_deref(), choice.finish.as_deref()), (Some("Hello"), Some("tool_calls")));
    assert_eq!(choice.thoughts.len(), 2, "a foreign seal without words is nothing here");
    assert_eq!(choice.thoughts[0].signature.as_ref().unwrap().id.as_deref(), Some("rs_up"));
    assert_eq!(choice.thoughts[1].signature, None);
    let call = &choice.calls[0];
    assert_eq!(&body[call.span.clone().unwrap()], b"\"{}\"");
    let cut = whole(&head(), &answer_of("length"), None);
    assert_eq!(answer::read(&cut).unwrap().choices[0].finish.as_deref(), Some("length"));
}

/// What a writer is asked to do.
#[derive(Debug, Clone)]
enum Saying {
    Text(String),
    Thought(String),
    Refusal(String),
    Signature(String),
    Calls(Vec<(String, bool)>),
    Alive,
}

fn saying() -> impl Strategy<Value = Saying> {
    let words = "[a-z \\n\"\\\\é]{1,8}";
    prop_oneof![
        4 => words.prop_map(Saying::Text),
        2 => words.prop_map(Saying::Thought),
        1 => words.prop_map(Saying::Refusal),
        1 => "[A-Z]{1,4}".prop_map(Saying::Signature),
        1 => prop::collection::vec((words, any::<bool>()), 0..3).prop_map(Saying::Calls),
        1 => Just(Saying::Alive),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// In whatever order it is said, the stream is one that a strict client takes, and it says just that.
    #[test]
    fn what_is_said_is_heard(sayings in prop::collection::vec(saying(), 0..20), keep in any::<bool>(), raw in 0..40_usize) {
        let mut expected = Heard { done: true, usage: Some(USAGE), ..Heard::default() };
        let mut writer = Writer::new(head(), keep);
        let mut stream = Vec::new();
        for saying in &sayings {
            let bytes = match saying {
                Saying::Text(said) => { expected.text.push_str(said); writer.write_step(&text(said)) }
                Saying::Thought(said) => { expected.thought.push_str(said); writer.write_step(&thought(said)) }
                Saying::Refusal(said) => { expected.refusal.push_str(said); writer.write_step(&refusal(said)) }
                Saying::Signature(said) => {
                    if keep { expected.signature.push_str(said); }
                    writer.write_step(&Step { signature: Some(said.as_str().into()), ..Step::default() })
                }
                Saying::Calls(all) => {
                    let first = expected.calls.len();
                    let ids: Vec<String> = (0..all.len()).map(|at| format!("call_{}", first + at)).collect();
                    let made: Vec<WholeCall<'_>> = all.iter().zip(&ids)
                        .map(|((arguments, free_text), id)| WholeCall { id, name: "tool", arguments, free_text: *free_text, ..WholeCall::default() })
                        .collect();
                    expected.calls.extend(all.iter().zip(&ids)
                        .map(|((arguments, free_text), id)| (id.clone(), "tool".to_owned(), arguments.clone(), *free_text)));
                    writer.calls(&made)
                }
                Saying::Alive => writer.keep_alive(),
            };
            stream.extend(bytes);
        }
        expected.finish.push(if expected.calls.is_empty() { "stop" } else { "tool_calls" }.to_owned());
        stream.extend(writer.finish("stop", Some(&USAGE)));
        client(&stream);
        prop_assert_eq!(heard(&stream), expected);

        // The same with its first frames passed raw through another writer, which then fails: still a stream that a client takes.
        let mut second = Writer::new(head(), keep);
        let mut reader = Events::default();
        let mut begun = Vec::new();
        for (name, data) in events(&stream).into_iter().take(raw) {
            let data = data.to_string();
            begun.extend(format!("event: {name}\ndata: {data}\n\n").into_bytes());
            second.passed(&reader.read(Some(&name), &data).unwrap());
        }
        begun.extend(second.error(&failure(Kind::Unavailable)));
        client(&begun);
    }
}

#[test]
fn a_call_of_a_tool_in_a_group_says_the_group_wherever_it_stands() {
    let call = WholeCall {
        id: "call_1",
        name: "list",
        namespace: Some("mcp__x"),
        arguments: "{}",
        ..WholeCall::default()
    };
    let mut writer = Writer::new(Head { id: "resp_1".to_owned(), ..Head::default() }, false);
    let mut all = writer.calls(&[call]).to_vec();
    all.extend(writer.finish("tool_calls", None));
    let text = String::from_utf8(all).unwrap();
    let items = text.lines().filter(|line| line.contains(r#""type":"function_call""#));
    assert_eq!(items.clone().count(), 3, "added, done, and in the response at the end: {text}");
    assert!({ items }.all(|line| line.contains(r#""name":"list","namespace":"mcp__x""#)), "{text}");
}
