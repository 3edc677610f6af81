//! A provider that speaks without being asked: what it says reaches no client, and its connections are not used again.

use std::sync::Barrier;

use koboshi_testkit::{RawReply, RawUpstream, until};

use crate::common::*;

const UNASKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"of\":\"another\"}";
/// What a server says before it closes a connection that was idle for too long: no sign of confusion.
const FAREWELL: &str = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A gateway with idle connections to its provider, and how many there are.
fn with_idle_connections() -> (Stage, u64) {
    let stage = Stage::with(&["one/slow-first?after=200ms"], |config| {
        config.routes.insert("quick".to_owned(), route(&["one/ok"]));
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_whole(&stage.ask(&chat(false)), &chat(false)));
        }
    });
    let count = stage.one.open_connections();
    assert!(count > 1, "some of them at once");
    until("all wait for a request", || (stage.one.idle_connections() == count).then_some(()));
    (stage, count)
}

fn ask(stage: &Stage) -> u64 {
    let mut body = chat(false);
    body["model"] = "quick".into();
    let answer = stage.ask(&body);
    assert_whole(&answer, &body);
    assert_eq!(answer.number("x-koboshi-attempts"), Some(1));
    stage.one.requests().last().unwrap().connection
}

#[test]
fn after_unasked_bytes_every_connection_to_that_provider_is_new() {
    let (stage, count) = with_idle_connections();
    stage.one.send_unsolicited(UNASKED);
    let used = [ask(&stage), ask(&stage), ask(&stage)];
    assert_eq!(used, [count, count + 1, count + 2], "no connection served twice");
    until("none is kept", || (stage.one.open_connections() == 0).then_some(()));
}

/// A whole answer of the chat dialect.
fn whole() -> String {
    let body = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"mine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn bytes_behind_an_answer_end_the_use_of_its_connections() {
    // Three at once, so that there are three connections; the fourth answer has something behind it.
    let together = Barrier::new(3);
    let server = RawUpstream::start(move |before| {
        if before < 3 {
            together.wait();
        }
        RawReply::Keep(if before == 3 { whole() + UNASKED } else { whole() })
    });
    let url = server.url();
    let stage = Stage::with(&["raw/m"], |config| {
        config.providers.insert("raw".to_owned(), provider(url));
    });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(stage.ask(&chat(false)).status, 200));
        }
    });
    for _ in 0..3 {
        let answer = stage.ask(&chat(false));
        assert!(answer.text().contains("mine"), "{answer:?}");
    }
    let used = server.asked();
    assert_eq!(used[4..], [3, 4], "neither the one that was spoilt nor its idle sisters: {used:?}");
}

#[test]
fn a_farewell_is_no_reason_to_distrust_a_provider() {
    let (stage, count) = with_idle_connections();
    stage.one.send_unsolicited(FAREWELL);
    let used = [ask(&stage), ask(&stage), ask(&stage)];
    assert_eq!(used, [count; 3], "the new connection is kept");
}
