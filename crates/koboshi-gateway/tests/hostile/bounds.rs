//! Nothing grows without bound, and every limit is kept.

use std::time::Duration;

use koboshi_config::gateway::{ProviderConfig, ProviderKind};
use koboshi_store::{Entry, EntryKind};
use koboshi_testkit::{RawReply, RawUpstream, until};

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
