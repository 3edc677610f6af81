//! Our own chat stream is read back as what was said, however it was said, and ends once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::common;
use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::chat::write_answer::{write as whole, write_legacy as whole_legacy};
use koboshi_wire::chat::writer::Writer;
use koboshi_wire::chat::{answer, error, event};
use koboshi_wire::failure::Failure;
use koboshi_wire::form::Thought;
use koboshi_wire::step::{CallPiece, Step, Usage};
use koboshi_wire::whole::{Call, Choice, Whole};
use koboshi_wire::writer::{Head, WholeCall};
use proptest::prelude::*;
use serde_json::{Value, json};

fn head() -> Head {
    Head { id: "chatcmpl-1".into(), model: "m".into(), created: 7, fingerprint: None }
}

fn steps(frames: &[Bytes]) -> Vec<Step<'static>> {
    let text: String = frames.iter().map(|frame| std::str::from_utf8(frame).unwrap()).collect();
    assert!(text.is_empty() || text.ends_with("\n\n"));
    let data = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    data.map(|frame| event::read(frame.strip_prefix("data: ").unwrap()).unwrap().into_owned()).collect()
}

fn failure(kind: Kind, status: u16) -> Failure<'static> {
    Failure { is_final: true, ..common::failure(kind, status, "No.") }
}

#[derive(Debug, Clone)]
enum Word {
    Text(String),
    Thought(String),
    Refused(String),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_said_is_read_back(
        words in prop::collection::vec((0..3_u8, "\\PC{1,8}"), 0..12),
        names in prop::collection::vec("[a-z]{1,6}", 0..4),
    ) {
        let words: Vec<Word> = words.into_iter().map(|(kind, text)| match kind {
            0 => Word::Text(text),
            1 => Word::Thought(text),
            _ => Word::Refused(text),
        }).collect();
        let mut writer = Writer::new(head(), false).include_usage(true);
        let mut frames = vec![writer.open(None), writer.open(None)];
        for word in &words {
            let step = match word {
                Word::Text(text) => Step { text: Some(text.into()), ..Step::default() },
                Word::Thought(text) => Step { thought: Some(text.into()), reasoning: true, ..Step::default() },
                Word::Refused(text) => Step { refused: Some(text.into()), refusal: true, ..Step::default() },
            };
            frames.push(writer.write_step(&step));
        }
        let calls: Vec<WholeCall<'_>> = names.iter().map(|name| WholeCall { id: name, name, arguments: "{\"a\":\"\\n\"}", ..WholeCall::default() }).collect();
        for two in calls.chunks(2) {
            frames.push(writer.calls(two));
        }
        let usage = Usage { input: 5, output: 4, cached: 3, stored: 2, reasoning: 1 };
        frames.push(writer.finish(if calls.is_empty() { "stop" } else { "tool_calls" }, Some(&usage)));
        let steps = steps(&frames);
        let said = |pick: fn(&Word) -> Option<&String>| words.iter().filter_map(pick).cloned().collect::<String>();
        let heard = |pick: fn(&Step<'static>) -> Option<String>| steps.iter().filter_map(pick).collect::<String>();
        prop_assert_eq!(heard(|step| step.text.clone().map(String::from)), said(|word| match word { Word::Text(text) => Some(text), _ => None }));
        prop_assert_eq!(heard(|step| step.thought.clone().map(String::from)), said(|word| match word { Word::Thought(text) => Some(text), _ => None }));
        prop_assert_eq!(heard(|step| step.refused.clone().map(String::from)), said(|word| match word { Word::Refused(text) => Some(text), _ => None }));
        let heard: Vec<(u32, String)> = steps.iter().flat_map(|step| &step.calls).map(|call| (call.index, call.name.clone().unwrap().into_owned())).collect();
        prop_assert_eq!(heard, (0..).zip(names.clone()).collect::<Vec<_>>());
        prop_assert_eq!(steps.iter().find_map(|step| step.usage), Some(usage));
        prop_assert_eq!(steps.iter().filter(|step| !step.finish.is_empty()).count(), 1);
        prop_assert!(steps.last().unwrap().done);
        prop_assert_eq!(steps.iter().filter(|step| step.done).count(), 1);
    }
}

#[test]
fn what_has_passed_is_neither_opened_nor_ended_again() {
    let mut writer = Writer::new(head(), false).include_usage(true);
    writer.passed(&Step {
        choices: 1,
        calls: vec![CallPiece { index: 1, ..CallPiece::default() }],
        ..Step::default()
    });
    assert!(writer.open(None).is_empty());
    let call = WholeCall { id: "c", name: "f", arguments: "{}", ..WholeCall::default() };
    let calls = steps(&[writer.calls(&[call])]);
    assert_eq!(calls[0].calls[0].index, 2, "numbers go on");
    writer.passed(&Step {
        choices: 1,
        finish: vec![(0, "tool_calls".into())],
        usage: Some(Usage::default()),
        ..Step::default()
    });
    assert_eq!(writer.finish("stop", Some(&Usage::default())), &b"data: [DONE]\n\n"[..]);
    assert!(writer.finish("stop", None).is_empty());
}

#[test]
fn an_unknown_end_is_never_a_good_one() {
    for (reason, word) in [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "length"),
        ("pause_turn", "length"),
        ("error", "length"),
        ("", "length"),
    ] {
        let steps = steps(&[Writer::new(head(), false).finish(reason, None)]);
        assert_eq!(
            steps.iter().flat_map(|step| step.finish.clone()).collect::<Vec<_>>(),
            [(0, word.into())],
            "{reason}"
        );
    }
}

#[test]
fn one_call_goes_out_in_the_old_form_and_several_in_the_new() {
    let call = WholeCall { id: "c", name: "f", arguments: "{}", ..WholeCall::default() };
    let mut writer = Writer::new(head(), false).legacy(true);
    let frames = [writer.calls(&[call]), writer.finish("tool_calls", None)];
    let text = String::from_utf8(frames.concat()).unwrap();
    assert!(
        text.contains(r#""function_call":{"name":"f","arguments":"{}"}"#)
            && text.contains(r#""finish_reason":"function_call""#),
        "{text}"
    );
    let mut writer = Writer::new(head(), false).legacy(true);
    let frames = [writer.calls(&[call, call]), writer.finish("tool_calls", None)];
    let text = String::from_utf8(frames.concat()).unwrap();
    assert!(!text.contains("function_call\"") && text.contains(r#""finish_reason":"tool_calls""#), "{text}");
    let free = WholeCall { free_text: true, arguments: "patch", ..call };
    let steps = steps(&[Writer::new(head(), false).calls(&[free])]);
    let heard = &steps.iter().find(|step| !step.calls.is_empty()).unwrap().calls[0];
    assert!(heard.free_text && heard.arguments.as_deref() == Some("patch"));
}

#[test]
fn an_error_ends_the_stream_and_silence_says_nothing() {
    let mut writer = Writer::new(head(), false);
    let frames = [writer.keep_alive(), writer.error(&failure(Kind::Overloaded, 503))];
    let steps = steps(&frames);
    assert!(steps.len() == 1 && steps[0].error && !steps[0].done);
    assert!(writer.finish("stop", Some(&Usage::default())).is_empty(), "nothing comes after it");
    let keep_alive = Writer::new(head(), false).frames_only(true).keep_alive();
    assert!(!self::steps(&[keep_alive])[0].has_content());
}

#[test]
fn errors_have_the_words_that_clients_know() {
    for &kind in Kind::ALL {
        let body: Value = serde_json::from_slice(&error::body(&failure(kind, 500))).unwrap();
        assert!(
            body["error"]["code"].is_string()
                && body["error"]["type"].is_string()
                && body["error"]["param"].is_null()
        );
    }
    let of = |kind, code| {
        let body = error::body(&Failure {
            code,
            koboshi: Some(&json!({"kind": "x"})),
            param: Some("model"),
            ..failure(kind, 400)
        });
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&body["error"]["koboshi"]["kind"], &body["error"]["param"]),
            (&json!("x"), &json!("model"))
        );
        (
            body["error"]["type"].as_str().unwrap().to_owned(),
            body["error"]["code"].as_str().unwrap().to_owned(),
        )
    };
    let two = |kind: &str, code: &str| (kind.to_owned(), code.to_owned());
    assert_eq!(of(Kind::CoolingDown, Some("KBS-7003")), two("server_error", "KBS-7003"));
    assert_eq!(of(Kind::Timeout, Some("KBS-1002")), two("server_error", "KBS-1002"));
    assert_eq!(of(Kind::Timeout, None), two("server_error", "timeout"));
    assert_eq!(of(Kind::InvalidRequest, None), two("invalid_request_error", "invalid_request"));
}

#[test]
fn a_whole_answer_is_read_back() {
    let said = Whole {
        choices: vec![Choice {
            index: 0,
            text: Some("hi \"there\"".into()),
            reasoning: true,
            thoughts: vec![
                Thought { text: "a".into(), ..Thought::default() },
                Thought { hidden: true, ..Thought::default() },
                Thought { text: "b".into(), ..Thought::default() },
            ],
            refusal: true,
            refused: Some("no".into()),
            calls: vec![
                Call { id: Some("1".into()), name: Some("f".into()), ..Call::default() },
                Call {
                    id: Some("2".into()),
                    name: Some("g".into()),
                    arguments: "text".into(),
                    free_text: true,
                    ..Call::default()
                },
            ],
            ..Choice::default()
        }],
        usage: Some(Usage { input: 3, ..Usage::default() }),
        ..Whole::default()
    };
    let body = whole(&head(), &said, Some(&json!({"source": "simple"})));
    let heard = answer::read(&body).unwrap();
    let choice = &heard.choices[0];
    assert_eq!((heard.id.as_deref(), heard.created, heard.usage), (Some("chatcmpl-1"), Some(7), said.usage));
    assert_eq!(
        (choice.text.as_deref(), choice.refused.as_deref(), choice.finish.as_deref()),
        (Some("hi \"there\""), Some("no"), Some("tool_calls"))
    );
    assert_eq!(choice.thoughts[0].text, "a\n\nb");
    assert_eq!(
        (&*choice.calls[0].arguments, &*choice.calls[1].arguments, choice.calls[1].free_text),
        ("{}", "text", true)
    );
    let one = Whole {
        choices: vec![Choice {
            calls: vec![said.choices[0].calls[0].clone()],
            finish: Some("tool_calls".into()),
            ..Choice::default()
        }],
        ..Whole::default()
    };
    let old: Value = serde_json::from_slice(&whole_legacy(&head(), &one, None)).unwrap();
    assert_eq!(old["choices"][0]["message"]["function_call"]["name"], "f");
    assert_eq!((&old["choices"][0]["finish_reason"], old.get("usage")), (&json!("function_call"), None));
}
