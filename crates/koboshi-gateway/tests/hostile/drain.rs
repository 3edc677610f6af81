//! The end of the drain time: every client gets an error before its connection is closed.

use std::io::Write;

use crate::common::*;
use koboshi_testkit::until;
use serde_json::json;

/// A stream that takes longer than any test, in every dialect: its path, its body, and what the error of its dialect looks like.
fn streams() -> [(&'static str, serde_json::Value, &'static str); 4] {
    let messages = json!([{"role": "user", "content": "hello"}]);
    [
        ("/v1/chat/completions", json!({"model": "m", "stream": true, "messages": messages}), "\"error\":{"),
        (
            "/v1/messages",
            json!({"model": "m", "stream": true, "max_tokens": 9000, "messages": messages}),
            "event: error",
        ),
        ("/v1/responses", json!({"model": "m", "stream": true, "input": "hello"}), "response.failed"),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}),
            "\"error\":{",
        ),
    ]
}

#[test]
fn open_streams_end_with_the_error_of_their_dialect_and_waiting_requests_get_a_503() {
    let log = Lines::default();
    let stage = Stage::logging(&["one/ok?gap=20ms&chunks=5000"], Some(&log), |config| {
        config.routes.insert("silent".to_owned(), route(&["one/silence"]));
    });
    let mut open: Vec<_> = streams()
        .into_iter()
        .map(|(path, body, error)| {
            let mut client = stage.client();
            client.send("POST", path, &[], body.to_string().as_bytes());
            let head = client.head().unwrap();
            let first = client.piece(&head).unwrap().unwrap();
            (client, head, first, error)
        })
        .collect();
    let waiting: Vec<_> = [false, true]
        .into_iter()
        .map(|stream| {
            let mut client = stage.client();
            let mut body = chat(stream);
            body["model"] = "silent".into();
            client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
            client
        })
        .collect();
    // A body that does not come to its end.
    let mut half = std::net::TcpStream::connect(stage.gateway.address()).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{";
    half.write_all(head.as_bytes()).unwrap();
    until("all are being served", || {
        (stage.one.all_calls() == 6
            && gauge(&stage.get("/metrics").text(), "koboshi_open_requests") >= Some(7.0))
        .then_some(())
    });
    let Stage { gateway, .. } = stage;
    gateway.stop();
    let said = log.like("the drain time is over");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["requests"], 7, "{said:?}");
    assert!(said[0]["message"].as_str().unwrap().contains("7 requests end with an error"), "{said:?}");
    for (client, head, text, error) in &mut open {
        while let Some(piece) = client.piece(head).unwrap() {
            text.extend(piece);
        }
        let text = String::from_utf8_lossy(text);
        assert!(text.contains(*error), "{text}");
        assert!(text.contains("stopping") || text.contains("being stopped"), "{text}");
    }
    for mut client in waiting {
        let answer = client.read();
        assert_error(&answer, 503, "unavailable");
        assert_eq!(
            (answer.header("retry-after"), answer.header("x-should-retry")),
            (Some("1"), Some("true"))
        );
        assert_eq!(answer.number("x-koboshi-attempts"), Some(1), "{answer:?}");
        assert_eq!(answer.header("x-koboshi-sends"), None, "{answer:?}");
    }
    let mut said = String::new();
    std::io::Read::read_to_string(&mut half, &mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("retry-after: 1"), "{said}");
    assert!(said.contains("x-should-retry: true"), "{said}");
}

#[test]
fn new_clients_are_refused_while_streams_end() {
    let stage = Stage::with(&["one/ok?gap=20ms&chunks=5000"], |config| config.serve.drain = ms(30_000));
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    let head = client.head().unwrap();
    client.piece(&head).unwrap().unwrap();
    let address = stage.gateway.address();
    let Stage { gateway, .. } = stage;
    let stopping = std::thread::spawn(move || gateway.stop());
    let refused = until("new connections end at once", || std::net::TcpStream::connect(address).err());
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let piece = client.piece(&head).unwrap().unwrap();
    let piece = String::from_utf8_lossy(&piece);
    assert!(piece.contains("content") && !piece.contains("error"), "the stream goes on meanwhile: {piece}");
    drop(client);
    stopping.join().unwrap();
}
