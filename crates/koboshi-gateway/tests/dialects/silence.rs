//! Answers that come after a long silence, when a keep-alive has opened the stream: still one answer, and the provider's.

use koboshi_config::Config;
use koboshi_config::gateway::Commit;
use koboshi_sim::End;
use koboshi_wire::Dialect;
use serde_json::json;

use crate::common::ms;
use crate::own::{chunk, one_response, streams_after};
use crate::speech::{ask, question, stage};

/// The client hears from us soon and often.
fn impatient(config: &mut Config) {
    config.serve.hold = ms(50);
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
