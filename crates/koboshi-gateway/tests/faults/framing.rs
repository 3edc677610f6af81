//! Answers of a provider whose head is not as it should be.

use koboshi_testkit::{RawReply, RawUpstream};

use crate::common::*;

const BODY: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"mine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// A gateway before a provider that answers so.
fn before(server: &RawUpstream) -> Stage {
    let url = server.url();
    Stage::with(&["raw/m"], |config| {
        config.remedy.backoff.attempts = 1;
        config.providers.insert("raw".to_owned(), provider(url));
        timeouts(config, "raw", |limits| {
            limits.first_token = Some(ms(2000));
            limits.unary = Some(ms(2000));
        });
    })
}

#[test]
fn a_provider_that_switches_protocols_has_answered_and_wrongly() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let server = RawUpstream::start(move |_| RawReply::Keep(switch.to_owned()));
    let stage = before(&server);
    for stream in [false, true] {
        let answer = stage.ask(&chat(stream));
        assert_error(&answer, 502, "response_invalid");
    }
    assert_eq!(server.asked(), [0, 1], "its connection speaks something else now");
}

#[test]
fn what_is_no_http_is_an_answer_that_cannot_be_used() {
    let server = RawUpstream::start(|_| RawReply::Close("SSH-2.0-OpenSSH_9.6\r\n".to_owned()));
    assert_error(&before(&server).ask(&chat(false)), 502, "response_invalid");
}

#[test]
fn an_answer_with_two_lengths_is_read_and_its_connection_is_closed() {
    // A reader that believed the other length would take the rest for the next answer.
    let server = RawUpstream::start(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 7\r\ntransfer-encoding: chunked";
        RawReply::Keep(format!("{head}\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len()))
    });
    let stage = before(&server);
    for _ in 0..2 {
        let answer = stage.ask(&chat(false));
        assert!(answer.status == 200 && answer.text().contains("mine"), "{answer:?}");
    }
    assert_eq!(server.asked(), [0, 1]);
}
