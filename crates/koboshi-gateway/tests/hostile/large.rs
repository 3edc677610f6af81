//! Requests with large bodies: other clients do not wait for them, and they are served like every other.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use koboshi_config::gateway::{ProviderConfig, ProviderKind};
use koboshi_testkit::until;
use serde_json::{Value, json};

use crate::common::*;

/// A request of more than a megabyte.
fn large(stream: bool) -> Value {
    let mut body = chat(stream);
    body["messages"][0]["content"] = "word ".repeat(400_000).into();
    body
}

/// A request with a tool schema of 30 MB, which takes seconds to read.
fn slow_to_read(model: &str) -> String {
    let branch = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let schema =
        format!("{{\"oneOf\":[{}{branch}]}}", format!("{branch},").repeat(30_000_000 / branch.len()));
    format!(
        r#"{{"model":"{model}","messages":[{{"role":"user","content":"hello"}}],"tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]}}"#
    )
}

/// With one core. A tool schema of 30 MB with a union takes seconds to read and to translate; meanwhile that core answers others.
#[test]
fn others_are_answered_while_a_large_body_is_translated() {
    let stage = Stage::with(&["one/ok"], |config| {
        let mut other = ProviderConfig::new(ProviderKind::Anthropic);
        other.base_url = config.providers["two"].base_url.clone();
        other.keys = config.providers["two"].keys.clone();
        config.providers.insert("other".to_owned(), other);
        config.routes.insert("translated".to_owned(), route(&["other/ok"]));
    });
    let mut waiting = stage.client();
    waiting.send("POST", "/v1/chat/completions", &[], slow_to_read("translated").as_bytes());
    let mut client = stage.client();
    for _ in 0..30 {
        client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
        assert_whole(&client.read(), &chat(false));
    }
    waiting.stream.set_nonblocking(true).unwrap();
    let answered = waiting.stream.peek(&mut [0]).map_err(|error| error.kind());
    assert_eq!(answered, Err(ErrorKind::WouldBlock), "30 others were to be answered before the large one");
    waiting.stream.set_nonblocking(false).unwrap();
    // It has the lowest priority on a machine that may be busy.
    waiting.stream.set_read_timeout(Some(10 * koboshi_testkit::DEADLINE)).unwrap();
    let answer = waiting.read();
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    assert_eq!(answer.header("x-koboshi-translated"), Some("messages"));
}

/// A provider on a socket of its own whose answer waits for its last byte until it is let go.
fn slow_to_end(answer: String) -> (String, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let ((let_go, may_end), (sent, is_sent)) = (mpsc::channel(), mpsc::channel());
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        assert!(socket.read(&mut [0; 65_536]).unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        socket.write_all(format!("{head}content-length: {}\r\n\r\n", answer.len()).as_bytes()).unwrap();
        let (most, last) = answer.as_bytes().split_at(answer.len() - 1);
        socket.write_all(most).unwrap();
        sent.send(()).unwrap();
        may_end.recv().unwrap();
        socket.write_all(last).unwrap();
    });
    (url, let_go, is_sent)
}

/// With one core. An answer with 300,000 choices takes seconds to read and to translate; meanwhile that core answers others.
#[test]
fn others_are_answered_while_a_large_answer_is_read() {
    let choice = r#"{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}"#;
    let choices = format!("{choice},").repeat(300_000);
    let answer = format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{choices}{choice}]}}"#
    );
    let (url, let_go, is_sent) = slow_to_end(answer);
    let stage = Stage::with(&["one/ok"], |config| {
        config.providers.insert("many".to_owned(), provider(url));
        config.routes.insert("many".to_owned(), route(&["many/m"]));
    });
    let mut waiting = stage.client();
    let body = json!({"model": "many", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]});
    waiting.send("POST", "/v1/messages", &[], body.to_string().as_bytes());
    is_sent.recv().unwrap();
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    let_go.send(()).unwrap();
    let mut client = stage.client();
    for _ in 0..30 {
        client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
        assert_whole(&client.read(), &chat(false));
    }
    assert!(!is_answered(&waiting), "30 others were to be answered before the large answer was read");
    waiting.stream.set_read_timeout(Some(10 * koboshi_testkit::DEADLINE)).unwrap();
    let answer = waiting.read();
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    assert_eq!(answer.json()["content"][0]["text"], "a");
}

#[test]
fn a_large_request_is_answered_like_every_other() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = stage.client();
    for stream in [false, true, false] {
        let body = large(stream);
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        let answer = client.read();
        assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
        assert_eq!(answer.header("x-koboshi-target"), Some("one/ok"), "{answer:?}");
        assert_eq!(answer.is_done(), stream, "{answer:?}");
        assert_eq!(answer.header("content-length").is_some(), !stream, "{answer:?}");
    }
    let mut wrong = large(false);
    wrong["model"] = "unknown".into();
    assert_error(&stage.ask(&wrong), 404, "model_not_found");
    stage.wait_until_quiet();
}

#[test]
fn the_client_of_a_large_request_that_goes_away_is_noticed() {
    let stage = Stage::of(&["one/silence"]);
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], large(true).to_string().as_bytes());
    until("it is on its way", || (stage.calls() == (1, 0)).then_some(()));
    drop(client);
    until("the provider is let go", || (stage.one.cancelled() == 1).then_some(()));
    stage.wait_until_quiet();
}

#[test]
fn large_requests_get_their_error_at_the_end_of_the_drain() {
    let stage = Stage::with(&["one/ok?gap=20ms&chunks=5000"], |config| {
        config.routes.insert("silent".to_owned(), route(&["one/silence"]));
    });
    let mut streaming = stage.client();
    streaming.send("POST", "/v1/chat/completions", &[], large(true).to_string().as_bytes());
    let head = streaming.head().unwrap();
    let mut text = streaming.piece(&head).unwrap().unwrap();
    let mut silent = large(false);
    silent["model"] = json!("silent");
    let mut waiting = stage.client();
    waiting.send("POST", "/v1/chat/completions", &[], silent.to_string().as_bytes());
    until("both are being served", || (stage.one.all_calls() == 2).then_some(()));
    let Stage { gateway, .. } = stage;
    gateway.stop();
    while let Some(piece) = streaming.piece(&head).unwrap() {
        text.extend(piece);
    }
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("\"error\":{") && text.contains("being stopped"), "{text}");
    let answer = waiting.read();
    assert_error(&answer, 503, "unavailable");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
}

/// Whether an answer has begun to come.
fn is_answered(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let answered = client.stream.peek(&mut [0]).is_ok();
    client.stream.set_nonblocking(false).unwrap();
    answered
}

/// What waits for the threads of large bodies is bounded. The first requests keep the one thread busy, and all the others wait in its queue until that is
/// full: then one is refused at once, while small requests are served.
#[test]
fn a_large_request_is_refused_while_too_many_wait() {
    let stage = Stage::with(&["one/ok"], |config| config.serve.memory = Some(8 << 30));
    let slow = slow_to_read("m");
    let mut clients = Vec::new();
    let refused = loop {
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], slow.as_bytes());
        clients.push(client);
        assert!(clients.len() < 60, "the queue holds at most 512 MiB");
        let Some(answered) = clients.iter().position(is_answered) else { continue };
        let answer = clients.swap_remove(answered).read();
        if answer.status != 200 {
            break answer;
        }
    };
    let error = assert_error(&refused, 503, "overloaded");
    assert_eq!((refused.header("retry-after"), refused.header("x-should-retry")), (Some("1"), Some("true")));
    assert!(error["message"].as_str().unwrap().contains("waiting to be read"), "{error}");
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    // The bodies of clients that disconnected are not read, so their places are free soon.
    drop(clients);
    until("there is a place again", || (stage.ask(&large(false)).status == 200).then_some(()));
    stage.wait_until_quiet();
}
