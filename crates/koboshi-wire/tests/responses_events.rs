//! Frames of responses streams, as the vendor and its imitators send them: what each says is found, once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_wire::Malformed;
use koboshi_wire::responses::Events;
use koboshi_wire::step::{Block, ItemKind, ItemMark, Step, Usage};
use serde_json::{Value, json};

/// The steps of a stream of these events.
fn steps(events: &[Value]) -> Vec<Step<'static>> {
    let mut reader = Events::default();
    let read = |event: &Value| {
        let name = event["type"].as_str().unwrap().to_owned();
        reader.read(Some(&name), &event.to_string()).unwrap().into_owned()
    };
    events.iter().map(read).collect()
}

fn texts(steps: &[Step<'_>]) -> String {
    steps.iter().filter_map(|step| step.text.as_deref()).collect()
}

fn thoughts(steps: &[Step<'_>]) -> String {
    steps.iter().filter_map(|step| step.thought.as_deref()).collect()
}

/// Id, name and arguments of each call.
fn calls(steps: &[Step<'_>]) -> Vec<(String, String, String, bool)> {
    let mut calls: Vec<(String, String, String, bool)> = Vec::new();
    for piece in steps.iter().flat_map(|step| &step.calls) {
        let index = piece.index as usize;
        if calls.len() <= index {
            calls.resize_with(index + 1, Default::default);
        }
        let call = &mut calls[index];
        call.0.push_str(piece.id.as_deref().unwrap_or_default());
        call.1.push_str(piece.name.as_deref().unwrap_or_default());
        call.2.push_str(piece.arguments.as_deref().unwrap_or_default());
        call.3 |= piece.free_text;
    }
    calls
}

fn response(status: &str, output: &Value) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1741290958, "status": status, "model": "gpt-5.1",
        "error": null, "incomplete_details": null, "output": output,
        "usage": {"input_tokens": 37, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 11,
            "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 48}})
}

/// A whole stream as the vendor sends it: a thought, a text, two calls.
fn recorded() -> Vec<Value> {
    let message = json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hi there"}]});
    let call = json!({"id": "fc_1", "type": "function_call", "status": "completed", "arguments": "{\"a\":1}",
        "call_id": "call_1", "name": "f"});
    let custom = json!({"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "call_2",
        "input": "*** Begin", "name": "apply_patch"});
    let thought = json!({"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA",
        "summary": [{"type": "summary_text", "text": "**One**"}, {"type": "summary_text", "text": "**Two**"}]});
    let at = |index: u32, id: &str| json!({"output_index": index, "item_id": id});
    let event = |kind: &str, place: Value, more: Value| {
        let mut event = place;
        event["type"] = kind.into();
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let mut created = response("in_progress", &json!([]));
    created["usage"] = Value::Null;
    let summary = |index: u32| {
        event(
            "response.reasoning_summary_part.added",
            at(0, "rs_1"),
            json!({"summary_index": index, "part": {"type": "summary_text", "text": ""}}),
        )
    };
    let mut events = vec![
        json!({"type": "response.created", "response": created}),
        json!({"type": "response.in_progress", "response": created}),
        event(
            "response.output_item.added",
            at(0, "rs_1"),
            json!({"item": {"id": "rs_1", "type": "reasoning", "summary": []}}),
        ),
        summary(0),
        event(
            "response.reasoning_summary_text.delta",
            at(0, "rs_1"),
            json!({"summary_index": 0, "delta": "**One**"}),
        ),
        event(
            "response.reasoning_summary_text.done",
            at(0, "rs_1"),
            json!({"summary_index": 0, "text": "**One**"}),
        ),
        event(
            "response.reasoning_summary_part.done",
            at(0, "rs_1"),
            json!({"summary_index": 0, "part": {"type": "summary_text", "text": "**One**"}}),
        ),
        summary(1),
        event(
            "response.reasoning_summary_text.delta",
            at(0, "rs_1"),
            json!({"summary_index": 1, "delta": "**Two**"}),
        ),
        event(
            "response.reasoning_summary_text.done",
            at(0, "rs_1"),
            json!({"summary_index": 1, "text": "**Two**"}),
        ),
        event(
            "response.reasoning_summary_part.done",
            at(0, "rs_1"),
            json!({"summary_index": 1, "part": {"type": "summary_text", "text": "**Two**"}}),
        ),
        event("response.output_item.done", at(0, "rs_1"), json!({"item": thought})),
        event(
            "response.output_item.added",
            at(1, "msg_1"),
            json!({"item": {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}}),
        ),
        event(
            "response.content_part.added",
            at(1, "msg_1"),
            json!({"content_index": 0, "part": {"type": "output_text", "annotations": [], "text": ""}}),
        ),
        event(
            "response.output_text.delta",
            at(1, "msg_1"),
            json!({"content_index": 0, "delta": "Hi", "obfuscation": "x"}),
        ),
        event("response.output_text.delta", at(1, "msg_1"), json!({"content_index": 0, "delta": " there"})),
        event("response.output_text.done", at(1, "msg_1"), json!({"content_index": 0, "text": "Hi there"})),
        event(
            "response.content_part.done",
            at(1, "msg_1"),
            json!({"content_index": 0, "part": message["content"][0]}),
        ),
        event("response.output_item.done", at(1, "msg_1"), json!({"item": message})),
        event(
            "response.output_item.added",
            at(2, "fc_1"),
            json!({"item": {"id": "fc_1", "type": "function_call", "status": "in_progress", "arguments": "", "call_id": "call_1", "name": "f"}}),
        ),
        event("response.function_call_arguments.delta", at(2, "fc_1"), json!({"delta": "{\"a\""})),
        event("response.function_call_arguments.delta", at(2, "fc_1"), json!({"delta": ":1}"})),
        event("response.function_call_arguments.done", at(2, "fc_1"), json!({"arguments": "{\"a\":1}"})),
        event("response.output_item.done", at(2, "fc_1"), json!({"item": call})),
        event(
            "response.output_item.added",
            at(3, "ctc_1"),
            json!({"item": {"id": "ctc_1", "type": "custom_tool_call", "input": "", "call_id": "call_2", "name": "apply_patch"}}),
        ),
        event("response.custom_tool_call_input.delta", at(3, "ctc_1"), json!({"delta": "*** Begin"})),
        event("response.custom_tool_call_input.done", at(3, "ctc_1"), json!({"input": "*** Begin"})),
        event("response.output_item.done", at(3, "ctc_1"), json!({"item": custom})),
        json!({"type": "response.completed", "response": response("completed", &json!([thought, message, call, custom]))}),
    ];
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

#[test]
fn a_recorded_stream_says_everything_once() {
    let steps = steps(&recorded());
    assert_eq!(steps[0].id.as_deref(), Some("resp_1"));
    assert_eq!(steps[0].model.as_deref(), Some("gpt-5.1"));
    assert!(!steps[0].has_content() && !steps[2].has_content());
    assert_eq!(texts(&steps), "Hi there");
    assert_eq!(thoughts(&steps), "**One**\n\n**Two**");
    let signatures: Vec<_> = steps.iter().filter_map(|step| step.signature.as_deref()).collect();
    assert_eq!(signatures, ["gAAA"]);
    let call = |id: &str, name: &str, arguments: &str, free_text| {
        (id.into(), name.into(), arguments.into(), free_text)
    };
    assert_eq!(
        calls(&steps),
        [call("call_1", "f", "{\"a\":1}", false), call("call_2", "apply_patch", "*** Begin", true)]
    );
    let last = steps.last().unwrap();
    assert!(last.done && !last.error && !last.has_content());
    assert_eq!(last.finish, [(0, "tool_calls".into())]);
    assert_eq!(last.usage, Some(Usage { input: 37, output: 11, cached: 30, stored: 0, reasoning: 4 }));
    assert!(steps[..steps.len() - 1].iter().all(|step| !step.done && step.finish.is_empty()));
    let numbers: Vec<_> = steps.iter().filter_map(|step| step.number).collect();
    assert_eq!(numbers, (0..steps.len() as u64).collect::<Vec<_>>());
}

#[test]
fn items_open_and_close_with_their_numbers() {
    let steps = steps(&recorded());
    let blocks: Vec<_> = steps.iter().filter_map(|step| step.block).collect();
    let expected: Vec<_> =
        (0..4).flat_map(|index| [Block { index, closes: false }, Block { index, closes: true }]).collect();
    assert_eq!(blocks, expected);
    let message = steps[12].item.as_ref().unwrap();
    assert_eq!((message.index, message.id.as_deref()), (1, Some("msg_1")));
    assert_eq!((message.kind, message.mark), (ItemKind::Message, ItemMark::Opens));
    assert_eq!(steps[13].item.as_ref().unwrap().mark, ItemMark::PartOpens);
    assert_eq!(steps[17].item.as_ref().unwrap().mark, ItemMark::PartCloses);
    assert_eq!(steps[3].item.as_ref().unwrap().kind, ItemKind::Thought);
    assert!(steps[14].item.is_none(), "a piece is light");
}

/// Whatever of the four tellings a server leaves out, the rest is enough.
#[test]
fn servers_that_leave_tellings_out_are_understood() {
    let whole = steps(&recorded());
    let without = |gone: &[&str]| {
        let left: Vec<Value> = recorded()
            .into_iter()
            .filter(|event| !gone.iter().any(|name| event["type"].as_str().unwrap().ends_with(name)))
            .collect();
        steps(&left)
    };
    for gone in [
        &["text.delta", "arguments.delta", "input.delta"][..],
        &["text.delta", "arguments.delta", "input.delta", "text.done", "arguments.done", "input.done"],
        &["delta", "text.done", "arguments.done", "input.done", "part.done", "part.added"],
        &["delta", "text.done", "arguments.done", "input.done", "part.done", "part.added", "item.added"],
        &["text.done", "arguments.done", "input.done", "part.done", "item.done"],
    ] {
        let steps = without(gone);
        assert_eq!(texts(&steps), texts(&whole), "{gone:?}");
        assert_eq!(calls(&steps), calls(&whole), "{gone:?}");
        assert_eq!(thoughts(&steps), thoughts(&whole), "{gone:?}");
        assert_eq!(steps.last().unwrap().finish, [(0, "tool_calls".into())], "{gone:?}");
    }
    let only_the_end = steps(&recorded()[recorded().len() - 1..]);
    assert_eq!(only_the_end[0].text.as_deref(), Some("Hi there"));
    assert_eq!(calls(&only_the_end), calls(&whole));
    assert!(only_the_end[0].done);
}

#[test]
fn numbers_and_types_may_be_missing() {
    let mut events = recorded();
    for event in &mut events {
        event.as_object_mut().unwrap().remove("output_index");
        event.as_object_mut().unwrap().remove("sequence_number");
    }
    let steps = steps(&events);
    assert_eq!(texts(&steps), "Hi there");
    assert_eq!(calls(&steps).len(), 2);
    // The event line alone names the event.
    let step =
        Events::default().read(Some("response.output_text.delta"), r#"{"delta":"x"}"#).unwrap().into_owned();
    assert_eq!(step.text.as_deref(), Some("x"));
}

#[test]
fn ends_are_distinguished() {
    let incomplete = |reason: Value| {
        let mut response = response("incomplete", &json!([]));
        response["incomplete_details"] = json!({"reason": reason});
        steps(&[json!({"type": "response.incomplete", "response": response})]).remove(0)
    };
    assert_eq!(incomplete("max_output_tokens".into()).finish, [(0, "length".into())]);
    assert_eq!(incomplete("content_filter".into()).finish, [(0, "content_filter".into())]);
    assert_eq!(incomplete("moon".into()).finish, [(0, "moon".into())]);
    assert_eq!(incomplete(Value::Null).finish, [(0, "incomplete".into())]);
    assert!(incomplete(Value::Null).done && incomplete(Value::Null).usage.is_some());
    let completed =
        steps(&[json!({"type": "response.completed", "response": response("completed", &json!([]))})]);
    assert_eq!(completed[0].finish, [(0, "stop".into())]);
    let failed = json!({"type": "response.failed", "response":
        {"id": "resp_1", "status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []}});
    let bare = json!({"type": "error", "code": "rate_limit_exceeded", "message": "m", "param": null});
    let lying =
        json!({"type": "response.completed", "response": {"status": "failed", "error": {"code": "x"}}});
    for event in [failed, bare, lying] {
        let step = steps(&[event]).remove(0);
        assert!(step.error && !step.done && step.finish.is_empty());
    }
    let wrapped = Events::default().read(None, r#"{"error":{"message":"m"}}"#).unwrap().into_owned();
    assert!(wrapped.error);
}

#[test]
fn a_refusal_is_no_text() {
    let steps = steps(&[
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I can"}),
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "not"}),
        json!({"type": "response.refusal.done", "output_index": 0, "content_index": 0, "refusal": "I cannot"}),
    ]);
    let words: String = steps.iter().filter_map(|step| step.refused.as_deref()).collect();
    assert_eq!((words.as_str(), texts(&steps).as_str()), ("I cannot", ""));
    assert!(steps[0].refusal && steps[0].has_content() && !steps[2].refusal);
}

#[test]
fn what_is_not_known_says_nothing() {
    for event in [
        json!({"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}),
        json!({"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {}}),
        json!({"type": "response.image_generation_call.generating", "output_index": 0}),
        json!({"type": "codex.rate_limits", "plan_type": "pro"}),
        json!({"type": 7, "delta": ["x"], "item": 1, "response": "x", "output_index": -1}),
    ] {
        let step = Events::default().read(None, &event.to_string()).unwrap().into_owned();
        assert_eq!(Step { number: None, ..step }, Step::default(), "{event}");
    }
    assert_eq!(Events::default().read(None, "[DONE]").unwrap(), Step::default());
    assert_eq!(Events::default().read(None, "  ").unwrap(), Step::default());
    assert_eq!(Events::default().read(None, "[]"), Err(Malformed::NotAnObject));
    assert!(matches!(Events::default().read(None, r#"{"type":"x""#), Err(Malformed::Cut { .. })));
}

#[test]
fn halves_of_letters_do_not_cost_a_frame() {
    let data = r#"{"type":"response.output_text.delta","output_index":0,"delta":"a\ud83d"}"#;
    assert_eq!(Events::default().read(None, data).unwrap().text.as_deref(), Some("a\u{fffd}"));
}

#[test]
fn an_item_of_this_dialect_alone_is_content_when_it_is_whole() {
    for (kind, audio, hosted) in [
        ("computer_call", true, false),
        ("something_new", true, false),
        ("web_search_call", false, true),
        ("reasoning", false, false),
    ] {
        let item = json!({"type": kind, "id": "item_1"});
        let steps = steps(&[
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ]);
        assert!(!steps[0].has_content() && !steps[0].hosted, "{kind}");
        assert_eq!((steps[1].audio, steps[1].hosted), (audio, hosted), "{kind}");
    }
    let picture =
        json!({"type": "response.image_generation_call.partial_image", "partial_image_b64": "AAAA"});
    assert!(steps(&[picture])[0].has_content());
}
