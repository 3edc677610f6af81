//! The upstream over real sockets: what it plays, how it breaks, what it counts.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use koboshi_sim::{Beat, Beats, End, Head, Play};
use koboshi_testkit::{DEADLINE, Upstream, until};
use serde_json::{Value, json};

/// A client with one connection.
struct Client {
    stream: TcpStream,
    held: Vec<u8>,
}

/// What a client has of an answer.
#[derive(Debug)]
struct ReadAnswer {
    status: u16,
    head: String,
    body: String,
    /// Why it ended too early, if it did.
    broken: Option<ErrorKind>,
}

impl Client {
    fn to(upstream: &Upstream) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream.port())).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { stream, held: Vec::new() }
    }

    fn send(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: up\r\nAuthorization: Bearer k1\r\nX-Test: a\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }

    fn chat(&mut self, model: &str, stream: bool) -> ReadAnswer {
        self.send("/v1/chat/completions", &chat(model, stream));
        self.read().unwrap()
    }

    /// Reads more; says why there is none.
    fn fill(&mut self) -> Result<(), ErrorKind> {
        let mut block = [0; 4096];
        match self.stream.read(&mut block) {
            Ok(0) => Err(ErrorKind::UnexpectedEof),
            Ok(count) => {
                self.held.extend_from_slice(&block[..count]);
                Ok(())
            }
            Err(error) => Err(error.kind()),
        }
    }

    fn line(&mut self) -> Result<String, ErrorKind> {
        loop {
            if let Some(at) = self.held.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.held.drain(..at + 2).collect();
                return Ok(String::from_utf8(line[..at].to_vec()).unwrap());
            }
            self.fill()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, ErrorKind> {
        while self.held.len() < length {
            self.fill()?;
        }
        Ok(self.held.drain(..length).collect())
    }

    /// An answer; the error if not even its head came.
    fn read(&mut self) -> Result<ReadAnswer, ErrorKind> {
        let mut head = self.line()?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            head = format!("{head}\n{line}");
        }
        let mut body = Vec::new();
        let broken = self.body(&head, &mut body).err();
        Ok(ReadAnswer { status, head, body: String::from_utf8_lossy(&body).into_owned(), broken })
    }

    fn body(&mut self, head: &str, body: &mut Vec<u8>) -> Result<(), ErrorKind> {
        if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
            body.extend(self.exactly(length.parse().unwrap())?);
            return Ok(());
        }
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            body.extend(self.exactly(size)?);
            self.exactly(2)?;
            if size == 0 {
                return Ok(());
            }
        }
    }
}

fn chat(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hello"}]})
}

#[test]
fn a_whole_answer_and_a_stream_come_over_one_connection() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    let whole = client.chat("ok", false);
    assert_eq!((whole.status, whole.broken), (200, None));
    let answer: Value = serde_json::from_str(&whole.body).unwrap();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert!(answer["created"].as_i64().unwrap() > 1_700_000_000);
    let stream = client.chat("ok", true);
    assert!(stream.head.contains("text/event-stream") && stream.body.ends_with("data: [DONE]\n\n"));
    assert_eq!(stream.broken, None);
    let failed = client.chat("rate-429?retry_after=2", true);
    assert_eq!((failed.status, failed.head.contains("\nretry-after: 2")), (429, true));
    let seen = upstream.requests();
    assert!(seen.iter().all(|seen| seen.connection == 0), "one connection serves them all");
}

#[test]
fn attempts_are_counted_exactly() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    for _ in 0..3 {
        client.chat("fail-503?times=1", false);
    }
    client.chat("ok", false);
    assert_eq!(
        (upstream.calls("fail-503?times=1"), upstream.calls("ok"), upstream.calls("other")),
        (3, 1, 0)
    );
    assert_eq!(upstream.all_calls(), 4);
    let statuses: Vec<u16> = (0..3).map(|_| client.chat("fail-500?times=2", false).status).collect();
    assert_eq!(statuses, [500, 500, 200], "each model has its own count");
    upstream.reset_counts();
    assert_eq!((upstream.all_calls(), upstream.requests().len()), (0, 0));
    assert_eq!(client.chat("fail-500?times=2", false).status, 500, "and the count starts again");
}

#[test]
fn requests_are_seen_as_they_came() {
    let upstream = Upstream::start();
    assert!(upstream.url().starts_with("http://127.0.0.1:") && upstream.url().ends_with("/v1"));
    Client::to(&upstream).chat("ok", true);
    Client::to(&upstream).chat("ok?gap=1ms", true);
    let seen = upstream.requests();
    assert_eq!((seen[0].model.as_str(), seen[1].model.as_str()), ("ok", "ok?gap=1ms"));
    assert_eq!((seen[0].nth, seen[1].nth, seen[0].connection, seen[1].connection), (0, 1, 0, 1));
    assert!(seen[0].at <= seen[1].at);
    assert_eq!(seen[0].authorization.as_deref(), Some("Bearer k1"));
    assert_eq!((seen[0].header("x-test"), seen[0].path.as_str()), (Some("a"), "/v1/chat/completions"));
    assert_eq!(seen[0].body, chat("ok", true));
}

#[test]
fn a_chunked_request_and_one_in_small_pieces_are_read() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    let body = chat("ok", false).to_string();
    let (first, second) = body.split_at(20);
    let request = format!(
        "POST /chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{first}\r\n{:x};x=y\r\n{second}\r\n0\r\n\r\n",
        second.len()
    );
    for byte in request.as_bytes() {
        client.stream.write_all(&[*byte]).unwrap();
    }
    assert_eq!(client.read().unwrap().status, 200);
    assert_eq!(upstream.requests()[0].body, chat("ok", false));
}

#[test]
fn resets_are_real_and_what_was_sent_before_arrives() {
    let upstream = Upstream::start();
    let reset = ErrorKind::ConnectionReset;
    let mut client = Client::to(&upstream);
    client.send("/v1/chat/completions", &chat("reset", true));
    assert_eq!(client.read().unwrap_err(), reset);
    let cut = Client::to(&upstream).chat("cut?after=5&bytes=9", true);
    assert_eq!(cut.body.matches("\n\n").count(), 5);
    assert!(cut.body.ends_with("data: {\"i"), "{}", cut.body);
    assert_eq!(cut.broken, Some(reset));
    let half = Client::to(&upstream).chat("half", false);
    assert!(half.status == 200 && half.broken == Some(reset) && !half.body.is_empty());
    assert_eq!(upstream.cancelled(), 0, "the upstream ended these, not the client");
    until("resets close", || (upstream.open_connections() == 0).then_some(()));
}

#[test]
fn a_clean_end_that_came_too_early_is_a_clean_end() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    let fin = client.chat("fin?after=3", true);
    assert_eq!((fin.broken, fin.body.matches("\n\n").count()), (None, 3));
    assert_eq!(client.chat("ok", false).status, 200, "the connection lives on");
}

#[test]
fn silence_and_stalls_last_until_the_client_goes() {
    let upstream = Upstream::start();
    let mut silent = Client::to(&upstream);
    silent.send("/v1/chat/completions", &chat("silence", true));
    let mut stalled = Client::to(&upstream);
    stalled.send("/v1/chat/completions", &chat("stall?after=2", true));
    until("two frames come", || {
        stalled.fill().unwrap();
        (String::from_utf8_lossy(&stalled.held).matches("data: ").count() == 2).then_some(())
    });
    for client in [&mut silent, &mut stalled] {
        client.stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        assert_eq!(client.fill().unwrap_err(), ErrorKind::WouldBlock);
    }
    assert_eq!((upstream.open_connections(), upstream.cancelled()), (2, 0));
    drop((silent, stalled));
    until("both are seen to have left", || (upstream.cancelled() == 2).then_some(()));
    until("and are closed", || (upstream.open_connections() == 0).then_some(()));
}

#[test]
fn a_client_that_leaves_a_stream_is_counted_once() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    client.send("/v1/chat/completions", &chat("ok?chunks=100000&gap=1h", true));
    until("the first frame comes", || {
        client.fill().unwrap();
        client.held.ends_with(b"\n\n\r\n").then_some(())
    });
    drop(client);
    until("it is seen to have left", || (upstream.cancelled() == 1).then_some(()));
    let mut fast = Client::to(&upstream);
    fast.send("/v1/chat/completions", &chat("ok?chunks=100000", true));
    fast.fill().unwrap();
    drop(fast);
    until("without pauses too", || (upstream.cancelled() == 2).then_some(()));
    let mut late = Client::to(&upstream);
    late.send("/v1/chat/completions", &chat("ok?latency=1h", false));
    until("it is asked", || (upstream.calls("ok?latency=1h") == 1).then_some(()));
    drop(late);
    until("and before the head", || (upstream.cancelled() == 3).then_some(()));
    Client::to(&upstream).chat("ok", true);
    assert_eq!(upstream.cancelled(), 3, "a client that read everything has not left");
}

#[test]
fn special_plays_take_the_place_of_usual_ones() {
    let upstream = Upstream::start();
    upstream.set("ok", |ask| {
        let mut play = koboshi_sim::play(ask);
        if let Head::Answer { headers, .. } = &mut play.head {
            headers.push(("x-special", ask.tally.nth.to_string()));
        }
        play
    });
    upstream.set("mine", |_| Play {
        head: Head::Answer {
            after: Duration::ZERO,
            status: 418,
            headers: vec![("content-type", "text/plain".to_owned())],
        },
        beats: Beats::from(vec![Beat {
            after: Duration::ZERO,
            bytes: Bytes::from_static(b"short and stout"),
        }]),
        end: End::Clean,
    });
    let mut client = Client::to(&upstream);
    client.chat("ok", true);
    assert!(client.chat("ok", true).head.contains("\nx-special: 1"));
    let mine = client.chat("mine", false);
    assert_eq!((mine.status, mine.body.as_str()), (418, "short and stout"));
    assert_eq!((upstream.calls("ok"), upstream.calls("mine")), (2, 1));
}

#[test]
fn a_port_can_be_refused_and_come_back() {
    let upstream = Upstream::start();
    let mut old = Client::to(&upstream);
    old.chat("ok", false);
    upstream.stop_listening();
    let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream.port())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(old.chat("ok", false).status, 200, "open connections live on");
    upstream.listen_again();
    upstream.listen_again();
    assert_eq!(Client::to(&upstream).chat("ok", false).status, 200);
}

#[test]
fn idle_connections_go_stale_and_busy_ones_do_not() {
    let upstream = Upstream::start();
    let mut idle = Client::to(&upstream);
    idle.chat("ok", false);
    let mut busy = Client::to(&upstream);
    busy.send("/v1/chat/completions", &chat("ok?chunks=3&gap=30ms", true));
    until("it is busy", || (upstream.all_calls() == 2).then_some(()));
    upstream.stale();
    assert_eq!(idle.fill().unwrap_err(), ErrorKind::UnexpectedEof);
    assert_eq!(busy.read().unwrap().broken, None);
    assert_eq!(busy.chat("ok", false).status, 200, "nor when they are idle later");
    until("one is left", || (upstream.open_connections() == 1).then_some(()));
}

#[test]
fn a_request_on_a_doomed_connection_is_neither_read_nor_counted() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    client.chat("ok", false);
    upstream.stale_on_use();
    client.send("/v1/chat/completions", &chat("ok", false));
    assert_eq!(client.read().unwrap_err(), ErrorKind::ConnectionReset);
    assert_eq!(upstream.calls("ok"), 1);
    assert_eq!(Client::to(&upstream).chat("ok", false).status, 200, "new ones are served");
    assert_eq!(upstream.calls("ok"), 2);
}

#[test]
fn other_endpoints_are_there() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    client.send("/v1/embeddings", &json!({"model": "ok", "input": "hello", "dimensions": 4}));
    let read_answer: Value = serde_json::from_str(&client.read().unwrap().body).unwrap();
    assert_eq!(read_answer["data"][0]["embedding"].as_array().unwrap().len(), 4);
    assert_eq!(upstream.calls("ok"), 1);
    client.stream.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n").unwrap();
    let models: Value = serde_json::from_str(&client.read().unwrap().body).unwrap();
    assert!(models["data"].as_array().unwrap().len() > 20);
    client.send("/v1/nothing", &json!({}));
    assert_eq!(client.read().unwrap().status, 404);
    assert_eq!(upstream.all_calls(), 1, "only what asks a model is an attempt");
}

#[test]
fn an_upstream_that_ends_takes_its_connections_along() {
    let upstream = Upstream::start();
    let mut client = Client::to(&upstream);
    client.send("/v1/chat/completions", &chat("silence", true));
    until("it is asked", || (upstream.all_calls() == 1).then_some(()));
    drop(upstream);
    assert!(client.fill().is_err());
}
