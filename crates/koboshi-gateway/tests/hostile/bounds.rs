//! Nothing grows without bound, and every limit is kept.

use std::io::Write;
use std::time::Duration;

use koboshi_config::gateway::{ProviderConfig, ProviderKind};
use koboshi_store::{Entry, EntryKind};
use koboshi_testkit::{RawReply, RawUpstream, until};
use serde_json::json;

use crate::common::*;

/// What ends a long stream of the built-in provider, as the journal tells it. That provider never pauses: the gateway never waits for the next block, so
/// the runtime never polls a timer, and nothing but a look at the clock ends the stream before its own end.
fn end_of_a_stream_without_pauses(timeout: Option<Duration>, headers: &[(&str, &str)]) -> Entry {
    let stage = Stage::with(&["built-in/ok?chunks=100000"], |config| {
        config.providers.insert("built-in".to_owned(), ProviderConfig::new(ProviderKind::Sim));
        timeouts(config, "built-in", |timeouts| timeouts.total = timeout);
    });
    let answer = stage.post(&chat(true), headers);
    assert!(!answer.is_done(), "it went on to its own end: {} bytes", answer.body.len());
    stage.journal("the fault", |entry| entry.what == EntryKind::Fault)
}

#[test]
fn the_total_timeout_ends_a_stream_that_never_pauses() {
    let fault = end_of_a_stream_without_pauses(Some(ms(50)), &[]);
    assert_eq!(fault.kind.as_deref(), Some("timeout"), "{fault:?}");
    assert_eq!(fault.data.unwrap()["sub"], "total");
}

#[test]
fn the_clients_deadline_ends_a_stream_that_never_pauses() {
    let fault = end_of_a_stream_without_pauses(None, &[("x-koboshi-deadline", "50ms")]);
    assert_eq!(fault.kind.as_deref(), Some("timeout"), "{fault:?}");
    assert_eq!(fault.data.unwrap()["sub"], "deadline");
}

/// A whole answer that goes on and on, faster than it is read: data is at hand whenever the gateway looks.
#[test]
fn the_total_timeout_ends_a_whole_answer_that_never_pauses() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{";
    let upstream = RawUpstream::start(move |_| RawReply::Endless(head.to_owned(), " ".repeat(4 << 20)));
    let stage = Stage::with(&["raw/m"], |config| {
        config.providers.insert("raw".to_owned(), provider(upstream.url()));
        timeouts(config, "raw", |timeouts| timeouts.total = Some(ms(10)));
    });
    assert_error(&stage.ask(&chat(false)), 504, "timeout");
    let fault = stage.journal("the fault", |entry| entry.what == EntryKind::Fault);
    assert_eq!(fault.data.unwrap()["sub"], "total");
}

/// The client has its whole answer when the provider has said all of it, whatever that provider sends behind its end.
#[test]
fn a_provider_that_goes_on_after_its_end_does_not_hold_the_client() {
    let event = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":\
             [{{\"index\":0,\"delta\":{{{delta}}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let whole =
        format!("{head}{}{}data: [DONE]\n\n", event("\"content\":\"hello\"", "null"), event("", "\"stop\""));
    let upstream = RawUpstream::start(move |_| RawReply::Endless(whole.clone(), ": more\n\n".repeat(10_000)));
    let stage = Stage::with(&["raw/m"], |config| {
        config.providers.insert("raw".to_owned(), provider(upstream.url()));
    });
    let answer = stage.ask(&chat(true));
    assert!(answer.is_done() && answer.broken.is_none(), "{answer:?}");
    until("the provider is let go", || (upstream.left() > 0).then_some(()));
}

/// Clients name models as they like. However many names they make up, the targets that the config names keep their breakers.
#[test]
fn made_up_models_do_not_switch_breakers_off() {
    let stage = Stage::with(&["one/fail-503", "two/ok"], |config| config.breaker.consecutive = Some(5));
    let mut client = stage.client();
    for number in 0..4200 {
        let mut body = chat(false);
        body["model"] = format!("one/fail-404?p=1&chunks={number}").into();
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.read();
    }
    stage.reset();
    for _ in 0..40 {
        assert_whole(&stage.ask(&chat(false)), &chat(false));
    }
    let (dead, _) = stage.calls();
    assert!(dead <= 8, "its breaker opens after five failures, but it was asked {dead} times");
    assert_eq!(stage.breaker("one/fail-503"), "open");
    let listed = stage.get("/koboshi/targets").json()["targets"].as_array().unwrap().len();
    assert!(listed <= 4100, "{listed}");
}

/// Bodies that together are more than the gateway may keep are refused before they are read, and small ones still served.
#[test]
fn large_bodies_do_not_take_more_memory_than_they_may() {
    let stage = Stage::with(&["one/silence"], |config| {
        config.serve.memory = Some(8 << 20);
        config.routes.insert("fine".to_owned(), route(&["one/ok"]));
    });
    let mut large = chat(false);
    large["messages"][0]["content"] = "x".repeat(2 << 20).into();
    let mut held = stage.client();
    held.send("POST", "/v1/chat/completions", &[], large.to_string().as_bytes());
    until("the first is on its way", || (stage.calls() == (1, 0)).then_some(()));
    let refused = stage.ask(&large);
    assert_error(&refused, 503, "overloaded");
    assert!(refused.text().contains("serve.memory"), "{}", refused.text());
    assert_eq!((refused.header("retry-after"), refused.header("x-should-retry")), (Some("1"), Some("true")));
    let mut small = chat(false);
    small["model"] = "fine".into();
    assert_whole(&stage.ask(&small), &small);
    drop(held);
    large["model"] = "fine".into();
    until("its share is given back", || (stage.ask(&large).status == 200).then_some(()));
}

/// Nothing remembers a name that no model has: not the table of targets, no metric, no journal.
#[test]
fn a_model_name_of_megabytes_is_refused_and_remembered_nowhere() {
    let stage = Stage::of(&["one/ok"]);
    let long = "x".repeat(1 << 20);
    let known = || stage.get("/koboshi/targets").json()["targets"].as_array().unwrap().len();
    let before = known();
    for name in [format!("one/{long}"), long, format!("one/{}", "é".repeat(300))] {
        for (path, mut body) in [
            ("/v1/chat/completions", chat(true)),
            ("/v1/messages", json!({"max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]})),
            ("/v1/messages/count_tokens", json!({"messages": [{"role": "user", "content": "hello"}]})),
            ("/v1/responses", json!({"input": "hello"})),
            ("/v1/embeddings", json!({"input": "hello"})),
        ] {
            body["model"] = name.clone().into();
            let mut client = stage.client();
            client.send("POST", path, &[], body.to_string().as_bytes());
            let answer = client.read();
            assert_eq!(answer.status, 404, "{path}: {}", answer.text());
            let text = answer.text();
            assert!(text.contains("512 bytes") && text.len() < 2000, "{path}: {text}");
        }
    }
    assert_eq!((stage.calls(), known()), ((0, 0), before));
    assert!(!stage.get("/metrics").text().contains("xxxxxxxx"), "a label holds a part of the name");
    let mut fitting = chat(false);
    fitting["model"] = format!("one/ok?chunks={:0>400}", 3).into();
    assert_eq!((stage.ask(&fitting).status, stage.calls()), (200, (1, 0)), "a long name is still a name");
}

/// Clients that only announce large bodies, or hold them open, shut out no small request.
#[test]
fn bodies_that_are_announced_or_held_leave_room_for_others() {
    let stage = Stage::with(&["one/ok"], |config| {
        config.serve.memory = Some(104 << 20);
        config.routes.insert("silent".to_owned(), route(&["two/silence"]));
    });
    let announce = || {
        let mut socket = std::net::TcpStream::connect(stage.gateway.address()).unwrap();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 33554432\r\n\r\n{";
        socket.write_all(head.as_bytes()).unwrap();
        socket
    };
    // Each of them alone would fill nearly all of it.
    let announced: Vec<_> = (0..5).map(|_| announce()).collect();
    let requests = |stage: &Stage| gauge(&stage.get("/metrics").text(), "koboshi_open_requests");
    until("all are being read", || (requests(&stage) >= Some(6.0)).then_some(()));
    let mut large = chat(false);
    large["messages"][0]["content"] = "x".repeat(2 << 20).into();
    assert_eq!(stage.ask(&large).status, 200, "what was only announced takes little");
    large["model"] = "silent".into();
    let held: Vec<_> = (0..17)
        .map(|_| {
            let mut client = stage.client();
            client.send("POST", "/v1/chat/completions", &[], large.to_string().as_bytes());
            client
        })
        .collect();
    until("it is full", || (stage.ask(&large_but_fine()).status == 503).then_some(()));
    for _ in 0..20 {
        assert_whole(&stage.ask(&chat(false)), &chat(false));
    }
    drop((announced, held));
}

/// A request of two megabytes that is answered at once.
fn large_but_fine() -> serde_json::Value {
    let mut body = chat(false);
    body["messages"][0]["content"] = "x".repeat(2 << 20).into();
    body
}

/// What providers answer has its limit too, whole or held back, and no target is to blame for it.
#[test]
fn answers_for_which_there_is_no_memory_are_refused_and_harm_no_target() {
    let text = "x".repeat(6 << 20);
    let whole = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
    .to_string();
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", whole.len());
    let upstream = RawUpstream::start(move |_| RawReply::Keep(format!("HTTP/1.1 200 OK\r\n{head}{whole}")));
    let stage = |memory: u64| {
        Stage::with(&["raw/m"], |config| {
            config.providers.insert("raw".to_owned(), provider(upstream.url()));
            config.serve.memory = Some(memory);
        })
    };
    let scarce = stage(8 << 20);
    for _ in 0..8 {
        let error = assert_error(&scarce.ask(&chat(false)), 503, "unavailable");
        assert_eq!(
            (&error["koboshi"]["sub"], &error["koboshi"]["origin"]),
            (&json!("resources"), &json!("koboshi"))
        );
    }
    assert_eq!(scarce.breaker("raw/m"), "closed");
    let roomy = stage(64 << 20);
    for _ in 0..8 {
        assert_eq!(roomy.ask(&chat(false)).status, 200, "each gives back what it took");
    }
}

/// A client more than there may be waits, and the log says why, once.
#[test]
fn the_log_says_when_no_more_clients_are_accepted() {
    let log = Lines::default();
    let stage = Stage::logging(&["one/ok"], Some(&log), |config| config.serve.connections = 1);
    let mut first = stage.client();
    first.send("GET", "/health", &[], b"");
    assert_eq!(first.read().status, 200);
    let mut second = stage.client();
    second.send("GET", "/health", &[], b"");
    let said = until("the log says it", || log.like("cannot be accepted").into_iter().next());
    assert!(said["why"].as_str().unwrap().contains("serve.max_connections"), "{said}");
    drop(first);
    assert_eq!(second.read().status, 200, "it waited for its turn");
    drop(second);
    let mut third = stage.client();
    third.send("GET", "/health", &[], b"");
    let fourth = stage.client();
    assert_eq!(third.read().status, 200);
    drop((third, fourth));
    assert_eq!(log.like("cannot be accepted").len(), 1, "not more than once a minute");
}
