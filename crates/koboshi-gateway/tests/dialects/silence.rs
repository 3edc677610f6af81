//! Answers that come after a long silence, when a keep-alive has opened the stream: still one answer, and the provider's.

use koboshi_config::Config;
use koboshi_config::gateway::Commit;
use koboshi_sim::End;
use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::common::{Stage, ms};
use crate::own::{chunk, event, items, message, one_response, streams_after};
use crate::speech::{ask, question, stage};

/// The client hears from us soon and often.
fn impatient(config: &mut Config) {
    config.serve.first_byte_hold = ms(50);
    config.serve.keep_alive_every = ms(50);
    config.remedy.backoff.attempts = 1;
}

fn complete(config: &mut Config) {
    impatient(config);
    config.routes.get_mut("m").unwrap().commit = Commit::Complete;
}

/// Longer than the client is left alone.
const LONG: u64 = 400;

#[test]
fn what_is_held_until_it_is_whole_opens_nothing() {
    let stage = stage(Dialect::Chat, &["one/own"], complete);
    stage.one.set("own", |_| {
        let pieces = vec![
            (0, chunk(&json!({"role": "assistant", "content": "Seven "}), None)),
            (LONG, chunk(&json!({"content": "times"}), None)),
            (LONG, chunk(&json!({}), Some("stop"))),
        ];
        streams_after(0, pieces, End::Clean)
    });
    let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
    assert_eq!(one_response(&answer).0, "Seven times");
    assert!(answer.text().matches("event: response.in_progress").count() > 2, "{answer:?}");
}

#[test]
fn nothing_of_an_answer_that_was_never_seen_stays_in_the_next_one() {
    for silence in [0, LONG] {
        let stage = stage(Dialect::Chat, &["one/own", "two/own"], complete);
        stage.one.set("own", move |_| {
            let pieces = vec![
                (silence, chunk(&json!({"role": "assistant", "content": "Broken"}), None)),
                (LONG, chunk(&json!({"content": " words"}), None)),
            ];
            streams_after(0, pieces, End::Cut)
        });
        stage.two.set("own", |_| {
            let pieces = vec![
                (0, chunk(&json!({"role": "assistant", "content": "Whole "}), None)),
                (0, chunk(&json!({"content": "words"}), Some("stop"))),
            ];
            streams_after(0, pieces, End::Clean)
        });
        let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
        assert_eq!((one_response(&answer).0.as_str(), stage.calls()), ("Whole words", (1, 1)), "{silence}");
    }
}

/// An answer of the client's own dialect, with an item that no other one has.
fn hosted() -> [Value; 2] {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "doll"}});
    [search, message("Seven times")]
}

#[test]
fn a_provider_that_opens_its_answer_and_then_thinks_does_not_open_it_twice() {
    for opened in [1, 2] {
        for commit in [impatient, complete] {
            let stage = stage(Dialect::Responses, &["one/own"], commit);
            stage.one.set("own", move |_| {
                let frames = items(&hosted()).into_iter().enumerate();
                let pieces = frames.map(|(at, frame)| (if at == opened { LONG } else { 0 }, frame));
                streams_after(0, pieces.collect(), End::Clean)
            });
            let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
            let (text, end) = one_response(&answer);
            assert_eq!((text.as_str(), &end["id"]), ("Seven times", &json!("resp_theirs")), "{answer:?}");
            assert_eq!(end["output"], json!(hosted()), "{answer:?}");
        }
    }
}

#[test]
fn an_answer_after_a_long_silence_is_the_providers_and_is_gone_on_with_by_it() {
    let stage = stage(Dialect::Responses, &["one/fail-503", "two/own"], |config| {
        impatient(config);
        config.routes.insert("later".to_owned(), crate::common::route(&["one/ok", "two/own"]));
    });
    stage.two.set("own", |_| {
        let pieces = items(&hosted()).into_iter().map(|frame| (0, frame)).collect();
        streams_after(LONG, pieces, End::Clean)
    });
    let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
    let (text, end) = one_response(&answer);
    assert!(answer.text().contains("event: response.in_progress"), "{answer:?}");
    assert_eq!((text.as_str(), &end["output"]), ("Seven times", &json!(hosted())), "{answer:?}");
    stage.reset();
    let (path, mut body) = question(Dialect::Responses, "And?", true);
    (body["model"], body["previous_response_id"]) = ("later".into(), end["id"].clone());
    let next = ask(&stage, &(path, body));
    assert_eq!((next.status, stage.calls()), (200, (0, 1)), "{next:?}");
    assert_eq!(end["id"], "resp_theirs", "the provider must know it");
}

/// A thought of this provider with its signature, and a word.
fn sealed(dialect: Dialect) -> Vec<String> {
    match dialect {
        Dialect::Responses => {
            let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "SEALED"});
            items(&[thought, message("Seven times")])
        }
        _ => [
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "own", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SEALED"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Seven times"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ]
        .iter()
        .map(event)
        .collect(),
    }
}

/// A signature is only of use to its own vendor: another one refuses it when it comes back.
#[test]
fn a_foreign_signature_never_reaches_the_client() {
    for (client, upstream) in
        [(Dialect::Responses, Dialect::Messages), (Dialect::Messages, Dialect::Responses)]
    {
        let plays = |stage: &Stage| {
            stage.two.set("own", move |_| {
                let pieces = sealed(upstream).into_iter().map(|frame| (0, frame)).collect();
                streams_after(LONG, pieces, End::Clean)
            });
        };
        let silent = stage(upstream, &["two/own"], impatient);
        let simpler = stage(upstream, &["one/fail-503"], |config| {
            config.remedy.backoff.attempts = 1;
            config.degrade.simple_model = Some("two/own".to_owned());
        });
        for stage in [silent, simpler] {
            plays(&stage);
            let answer = ask(&stage, &question(client, "Hello", true));
            assert!(answer.status == 200 && answer.text().contains("Seven times"), "{answer:?}");
            assert!(!answer.text().contains("SEALED"), "{client:?} {answer:?}");
        }
    }
}
