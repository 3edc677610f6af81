//! Streams, answers and errors of this dialect: what upstreams send is understood, what we write is understood by the same readers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::common;
use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::dialect::Dialect;
use koboshi_wire::failure::Failure;
use koboshi_wire::form::{Signature, Thought};
use koboshi_wire::messages::event::Events;
use koboshi_wire::messages::write_answer::write as whole;
use koboshi_wire::messages::writer::{Head, WholeCall, Writer};
use koboshi_wire::messages::{answer, count, error, models};
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Block, Step, Usage};
use koboshi_wire::whole::{Call, Choice, Whole};
use proptest::prelude::*;
use serde_json::{Value, json};

fn head() -> Head {
    Head { id: "msg_1".into(), model: "m".into(), ..Head::default() }
}

fn read(stream: &[u8]) -> Vec<Step<'static>> {
    let mut framer = Framer::new(1 << 20);
    framer.push(Bytes::copy_from_slice(stream));
    let mut events = Events::default();
    let mut steps = Vec::new();
    while let Some(frame) = framer.next_frame() {
        let frame = frame.unwrap();
        let data = frame.data().unwrap().unwrap();
        let value: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(value["type"], frame.event().unwrap(), "the two names of an event agree");
        steps.push(events.read(frame.event(), &data).unwrap().into_owned());
    }
    steps
}

fn joined(steps: &[Step<'_>], of: impl Fn(&Step<'_>) -> Option<String>) -> String {
    steps.iter().filter_map(of).collect()
}

fn text_of(steps: &[Step<'_>]) -> String {
    joined(steps, |step| step.text.as_deref().map(str::to_owned))
}

/// One block at a time, numbered from 0, none left open.
fn blocks_are_in_order(steps: &[Step<'_>]) {
    let (mut next, mut open) = (0, None);
    for step in steps {
        match step.block {
            Some(Block { index, closes: false }) => {
                assert_eq!((index, open), (next, None));
                (next, open) = (index + 1, Some(index));
            }
            Some(Block { index, closes: true }) => assert_eq!(open.take(), Some(index)),
            None => assert!(open.is_some() || !step.has_content() || step.refusal, "{step:?}"),
        }
    }
    assert_eq!(open, None);
}

#[test]
fn servers_that_leave_things_out_are_understood() {
    let mut events = Events::default();
    let quiet = |step: Step<'_>| assert_eq!(step, Step { choices: step.choices, ..Step::default() });
    quiet(events.read(None, "").unwrap());
    quiet(events.read(Some("ping"), "{}").unwrap());
    quiet(events.read(None, "[DONE]").unwrap());
    quiet(events.read(Some("thread_event"), r#"{"type":"thread_event","x":[1]}"#).unwrap());
    // Only the name of the event.
    assert!(events.read(Some("message_stop"), "{}").unwrap().done);
    let delta = events.read(Some("content_block_delta"), r#"{"delta":{"text":"a"}}"#).unwrap();
    assert_eq!(delta.text.as_deref(), Some("a"));
    // A call that comes whole, with no pieces after it.
    let start = r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":[1]}}}"#;
    assert_eq!(events.read(None, start).unwrap().calls[0].arguments, None);
    let stop = r#"{"type":"content_block_stop","index":4}"#;
    assert_eq!(events.read(None, stop).unwrap().calls[0].arguments.as_deref(), Some(r#"{"a":[1]}"#));
    assert!(events.read(None, stop).unwrap().calls.is_empty(), "and only once");
    // The same, with pieces: those count.
    events.read(None, start).unwrap();
    let piece =
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
    let piece = events.read(None, piece).unwrap().into_owned();
    assert_eq!((piece.calls[0].index, piece.calls[0].arguments.as_deref()), (1, Some("{}")));
    assert!(events.read(None, stop).unwrap().calls.is_empty());
    // Half a letter.
    let half = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#;
    assert_eq!(events.read(None, half).unwrap().text.as_deref(), Some("a\u{fffd}"));
    for error in [r#"{"type":"error","error":{"type":"api_error"}}"#, r#"{"error":{"message":"x"}}"#] {
        assert!(events.read(None, error).unwrap().error);
    }
    assert!(events.read(Some("error"), "<html>").unwrap().error, "whatever it says");
    assert!(events.read(Some("message_delta"), "<html>").is_err());
}

#[test]
fn reasons_are_translated_both_ways_and_never_made_a_good_end() {
    for (theirs, ours) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("brand_new", "brand_new"),
    ] {
        let data = json!({"type": "message_delta", "delta": {"stop_reason": theirs}}).to_string();
        let step = Events::default().read(None, &data).unwrap().into_owned();
        assert_eq!(step.finish, [(0, ours.into())]);
    }
    for (ours, theirs) in [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("content_filter", "refusal"),
        ("pause_turn", "pause_turn"),
        ("MALFORMED_FUNCTION_CALL", "max_tokens"),
        ("error", "max_tokens"),
    ] {
        let stream = Writer::new(head(), false).finish(ours, None);
        let text = String::from_utf8(stream.to_vec()).unwrap();
        assert!(text.contains(&format!(r#""stop_reason":"{theirs}""#)), "{ours}: {text}");
    }
}

#[test]
fn we_go_on_where_the_upstream_stopped() {
    let frames = [
        r#"{"type":"message_start","message":{"id":"msg_up","model":"m","usage":{"input_tokens":3}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"so far"}}"#,
    ];
    let (mut events, mut writer) = (Events::default(), Writer::new(head(), false));
    for frame in frames {
        writer.passed(&events.read(None, frame).unwrap());
    }
    assert!(writer.open(None).is_empty(), "it is open");
    let more = writer.write_step(&Step { text: Some(" and on".into()), ..Step::default() });
    let text = String::from_utf8(more.to_vec()).unwrap();
    assert!(text.starts_with("event: content_block_delta") && text.contains("\"index\":1"), "{text}");
    let calls = writer.calls(&[WholeCall { id: "a", name: "f", arguments: "{}", ..WholeCall::default() }]);
    let text = String::from_utf8(calls.to_vec()).unwrap();
    assert!(
        text.starts_with("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}")
    );
    assert!(text.contains("\"content_block_start\",\"index\":2"));
    writer.passed(
        &events.read(None, r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#).unwrap(),
    );
    assert_eq!(
        writer.finish("stop", None),
        b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"[..]
    );
}

#[test]
fn seals_are_kept_for_their_vendor_alone() {
    let steps = [
        Step { thought: Some("a".into()), reasoning: true, ..Step::default() },
        Step { signature: Some("s1".into()), ..Step::default() },
        Step {
            signature: Some("s2".into()),
            block: Some(Block { index: 1, closes: false }),
            ..Step::default()
        },
        Step { signature: Some("r".into()), hidden: true, reasoning: true, ..Step::default() },
        Step { thought: Some("b".into()), reasoning: true, ..Step::default() },
    ];
    for (keep, signatures) in [(true, "s1s2r"), (false, "")] {
        let mut writer = Writer::new(head(), keep);
        let mut stream: Vec<u8> = steps.iter().flat_map(|step| writer.write_step(step)).collect();
        stream.extend(writer.finish("stop", None));
        let read = read(&stream);
        blocks_are_in_order(&read);
        assert_eq!(joined(&read, |step| step.thought.as_deref().map(str::to_owned)), "ab");
        assert_eq!(joined(&read, |step| step.signature.as_deref().map(str::to_owned)), signatures);
        assert_eq!(read.iter().filter(|step| step.hidden).count(), usize::from(keep));
    }
}

#[derive(Debug, Clone)]
enum FrameContent {
    Text(String),
    Thought(String),
    Calls(Vec<(String, String)>),
    Silence,
}

fn said() -> impl Strategy<Value = FrameContent> {
    let arguments = prop_oneof![Just("{}".to_owned()), Just("{\"a\":\"\\n\"}".to_owned()), "[ -~é\n]{1,9}"];
    prop_oneof![
        "(?s).{1,12}".prop_map(FrameContent::Text),
        "(?s).{1,12}".prop_map(FrameContent::Thought),
        proptest::collection::vec(("[a-z_]{1,8}", arguments), 1..3).prop_map(FrameContent::Calls),
        Just(FrameContent::Silence),
    ]
}

#[test]
fn what_is_said_is_read_back_however_it_is_split() {
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(all in proptest::collection::vec(said(), 0..12), reason in prop_oneof![Just("stop"), Just("length"), Just("tool_calls"), Just("content_filter")], numbers in any::<[u16; 5]>())| {
        let [fresh, output, cached, stored, reasoning] = numbers.map(u64::from);
        let usage = Usage { input: fresh + cached + stored, output, cached, stored, reasoning };
        let mut writer = Writer::new(head(), true);
        let (mut stream, mut text, mut thought, mut calls) = (Vec::new(), String::new(), String::new(), Vec::new());
        for said in &all {
            stream.extend(match said {
                FrameContent::Text(piece) => {
                    text.push_str(piece);
                    writer.write_step(&Step { text: Some(piece.into()), ..Step::default() })
                }
                FrameContent::Thought(piece) => {
                    thought.push_str(piece);
                    writer.write_step(&Step { thought: Some(piece.into()), reasoning: true, ..Step::default() })
                }
                FrameContent::Calls(made) => {
                    let whole: Vec<_> = made.iter().map(|(name, arguments)| WholeCall { id: name, name, arguments, ..WholeCall::default() }).collect();
                    calls.extend(made.iter().cloned());
                    writer.calls(&whole)
                }
                FrameContent::Silence => writer.keep_alive(),
            });
        }
        stream.extend(writer.finish(reason, Some(&usage)));
        let steps = read(&stream);
        blocks_are_in_order(&steps);
        prop_assert_eq!(text_of(&steps), text);
        prop_assert_eq!(joined(&steps, |step| step.thought.as_deref().map(str::to_owned)), thought);
        for (number, (name, arguments)) in (0..).zip(&calls) {
            let pieces = steps.iter().flat_map(|step| &step.calls).filter(|call| call.index == number);
            let found: String = pieces.clone().filter_map(|call| call.arguments.as_deref()).collect();
            let empty = arguments.trim().is_empty();
            prop_assert_eq!(found.as_str(), if empty { "{}" } else { arguments.as_str() });
            prop_assert_eq!(pieces.clone().find_map(|call| call.name.as_deref()), Some(name.as_str()));
        }
        let ends: Vec<_> = steps.iter().flat_map(|step| step.finish.clone()).collect();
        prop_assert_eq!(ends, vec![(0, reason.into())]);
        prop_assert_eq!(steps.iter().rev().find_map(|step| step.usage), Some(usage));
        prop_assert!(steps.last().unwrap().done);
        prop_assert_eq!(steps.iter().filter(|step| step.id.is_some()).count(), 1);
    });
}

const ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"thinking","thinking":"hm","signature":"Eq"},{"type":"redacted_thinking","data":"Em"},{"type":"text","text":"Hel"},{"type":"text","text":"lo","citations":null},{"type":"tool_use","id":"toolu_1","name":"f","input": {"a": 1} },{"type":"tool_use","id":"toolu_2","name":"g","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":7,"service_tier":"standard"}}"#;

#[test]
fn an_answer_is_read_and_its_arguments_replaced_where_they_stand() {
    let whole = answer::read(ANSWER.as_bytes()).unwrap();
    assert_eq!(whole.usage, Some(Usage { input: 10, output: 7, cached: 3, stored: 2, reasoning: 0 }));
    let [choice] = whole.choices.as_slice() else { panic!("one choice") };
    assert_eq!((choice.text.as_deref(), choice.finish.as_deref()), (Some("Hello"), Some("tool_calls")));
    assert_eq!(choice.thoughts.len(), 2);
    assert!(choice.thoughts[1].hidden && choice.reasoning);
    assert_eq!(choice.calls[0].arguments, r#"{"a": 1}"#);
    let body = Bytes::from_static(ANSWER.as_bytes());
    let changes =
        [(choice.calls[0].span.clone().unwrap(), "{\"a\":2}"), (choice.calls[1].span.clone().unwrap(), "no")];
    let mended = answer::with_arguments(&body, &changes);
    let expected =
        ANSWER.replace(r#"{"a": 1}"#, r#"{"a":2}"#).replace(r#""input":{}"#, r#""input":{"_raw":"no"}"#);
    assert_eq!(mended, expected.as_bytes());
    assert_eq!(answer::with_arguments(&body, &[]).as_ptr(), body.as_ptr());
}

#[test]
fn cost_and_note_change_nothing_else() {
    let body = Bytes::from_static(ANSWER.as_bytes());
    let usage = Usage { input: 100, output: 9, cached: 90, stored: 0, reasoning: 0 };
    let changed = answer::with_note(&answer::with_usage(&body, &usage), &json!({"source": "x"}));
    let value: Value = serde_json::from_slice(&changed).unwrap();
    assert_eq!(value["usage"]["input_tokens"], 10);
    assert_eq!(value["koboshi"]["source"], "x");
    assert_eq!(answer::read(&changed).unwrap().usage, Some(usage));
    let bare = Bytes::from_static(br#"{"id":"a","content":[]}"#);
    assert_eq!(answer::read(&answer::with_usage(&bare, &usage)).unwrap().usage, Some(usage));
    let page = Bytes::from_static(b"<html>");
    assert_eq!(answer::with_note(&answer::with_usage(&page, &usage), &json!({})), page);
}

#[test]
fn errors_and_other_bodies_are_distinguished_from_answers() {
    let error =
        answer::read(br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    assert!(error.unwrap().error);
    assert!(answer::read(b"{}").unwrap().choices.is_empty());
    assert!(answer::read(b"[]").is_err());
    let refused =
        answer::read(br#"{"content":[],"stop_reason":"refusal","stop_details":{"explanation":"no"}}"#)
            .unwrap();
    assert_eq!(refused.choices[0].refused.as_deref(), Some("no"));
    assert_eq!(refused.choices[0].finish.as_deref(), Some("content_filter"));
}

#[test]
fn a_whole_answer_of_ours_is_read_back() {
    let signature = |of| Some(Signature { of, id: None, data: "Eq".into() });
    let choice = Choice {
        text: Some("Hi \"you\"".into()),
        reasoning: true,
        thoughts: vec![
            Thought { text: "hm".into(), signature: signature(Dialect::Messages), hidden: false },
            Thought { text: "from elsewhere".into(), signature: signature(Dialect::Gemini), hidden: false },
            Thought { signature: signature(Dialect::Messages), hidden: true, ..Thought::default() },
            Thought { signature: signature(Dialect::Responses), ..Thought::default() },
        ],
        calls: vec![
            Call {
                id: Some("a".into()),
                name: Some("f".into()),
                arguments: "{\"x\":1}".into(),
                ..Call::default()
            },
            Call {
                id: Some("b".into()),
                name: Some("g".into()),
                arguments: "{broken".into(),
                ..Call::default()
            },
            Call {
                id: Some("c".into()),
                name: Some("h".into()),
                arguments: "raw".into(),
                free_text: true,
                ..Call::default()
            },
        ],
        finish: Some("tool_calls".into()),
        ..Choice::default()
    };
    let usage = Usage { input: 9, output: 3, cached: 4, stored: 1, reasoning: 2 };
    let said = Whole { choices: vec![choice], usage: Some(usage), ..Whole::default() };
    let body = whole(&head(), &said, Some(&json!({"hops": 2})));
    let value: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&value["type"], &value["role"], &value["koboshi"]["hops"]),
        (&json!("message"), &json!("assistant"), &json!(2))
    );
    let again = answer::read(&body).unwrap();
    assert_eq!((again.id.as_deref(), again.usage), (Some("msg_1"), Some(usage)));
    let found = &again.choices[0];
    assert_eq!(found.text.as_deref(), Some("Hi \"you\""));
    assert_eq!(found.thoughts[0], said.choices[0].thoughts[0]);
    assert_eq!((found.thoughts[1].text.as_ref(), &found.thoughts[1].signature), ("from elsewhere", &None));
    assert_eq!(found.thoughts[2], said.choices[0].thoughts[2]);
    assert_eq!(found.thoughts.len(), 3);
    let arguments: Vec<_> = found.calls.iter().map(|call| call.arguments.as_ref()).collect();
    assert_eq!(arguments, ["{\"x\":1}", "{\"_raw\":\"{broken\"}", "{\"input\":\"raw\"}"]);
    assert_eq!(found.finish.as_deref(), Some("tool_calls"));
}

fn failure(kind: Kind, status: u16) -> Failure<'static> {
    Failure { request_id: Some("req_1"), ..common::failure(kind, status, "It failed.") }
}

#[test]
fn errors_have_the_vendors_words() {
    for (kind, status, word) in [
        (Kind::InvalidRequest, 400, "invalid_request_error"),
        (Kind::Unauthorized, 401, "authentication_error"),
        (Kind::QuotaExceeded, 402, "billing_error"),
        (Kind::PermissionDenied, 403, "permission_error"),
        (Kind::ModelNotFound, 404, "not_found_error"),
        (Kind::InvalidRequest, 409, "conflict_error"),
        (Kind::MessageTooLarge, 413, "request_too_large"),
        (Kind::RateLimited, 429, "rate_limit_error"),
        (Kind::QuotaExceeded, 429, "rate_limit_error"),
        (Kind::Internal, 500, "api_error"),
        // Our own credentials are not the client's.
        (Kind::Unauthorized, 502, "api_error"),
        (Kind::Unavailable, 503, "api_error"),
        (Kind::Timeout, 504, "timeout_error"),
        (Kind::Overloaded, 529, "overloaded_error"),
        // A cooldown of ours is no overload of Anthropic's.
        (Kind::CoolingDown, 503, "api_error"),
    ] {
        let failure = failure(kind, status);
        let value: Value = serde_json::from_slice(&error::body(&failure)).unwrap();
        assert_eq!(
            value,
            json!({"type": "error", "error": {"type": word, "message": "It failed."}, "request_id": "req_1"})
        );
        let stream = Writer::new(head(), false).error(&failure);
        assert!(read(&stream)[0].error);
    }
    for kind in Kind::ALL {
        for is_final in [false, true] {
            let text = error::body(&Failure { is_final, ..failure(*kind, 503) });
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(!text.contains("overloaded_error"), "Claude Code would come back at once: {text}");
        }
    }
}

#[test]
fn messages_say_what_claude_code_looks_for() {
    let koboshi = json!({"code": "KBS-3001"});
    let limited = Failure {
        message: "Please try again after 2026-11-16 09:27 UTC.",
        resets_at: Some(1_794_821_220),
        is_final: true,
        koboshi: Some(&koboshi),
        ..failure(Kind::RateLimited, 429)
    };
    let value: Value = serde_json::from_slice(&error::body(&limited)).unwrap();
    assert_eq!(value["error"]["type"], "rate_limit_error");
    assert_eq!(value["error"]["message"], limited.message, "as it is");
    assert_eq!(value["error"]["koboshi"]["code"], "KBS-3001");
    let long = Failure { message: "213462 tokens > 200000", ..failure(Kind::ContextTooLarge, 400) };
    let value: Value = serde_json::from_slice(&error::body(&long)).unwrap();
    assert_eq!(value["error"]["message"], "prompt is too long: 213462 tokens > 200000");
}

#[test]
fn nothing_follows_an_error() {
    let mut writer = Writer::new(head(), false);
    let mut stream = writer.write_step(&Step { text: Some("a".into()), ..Step::default() }).to_vec();
    stream.extend(writer.error(&failure(Kind::Overloaded, 529)));
    assert!(writer.finish("stop", None).is_empty() && writer.error(&failure(Kind::Internal, 500)).is_empty());
    let steps = read(&stream);
    assert!(steps.last().unwrap().error && !steps.iter().any(|step| step.done));
}

#[test]
fn lists_and_counts_are_as_the_clients_expect() {
    let list: Value = serde_json::from_slice(&models::list(["a", "b"])).unwrap();
    let model = |id: &str| json!({"type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z"});
    assert_eq!(
        list,
        json!({"data": [model("a"), model("b")], "has_more": false, "first_id": "a", "last_id": "b"})
    );
    let none: Value = serde_json::from_slice(&models::list([])).unwrap();
    assert_eq!(none, json!({"data": [], "has_more": false, "first_id": null, "last_id": null}));
    assert_eq!(serde_json::from_slice::<Value>(&models::one("a")).unwrap(), model("a"));
    assert_eq!(count::answer(14), br#"{"input_tokens":14}"#);
}
