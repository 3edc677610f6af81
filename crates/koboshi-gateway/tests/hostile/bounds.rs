//! Nothing grows without bound, and every limit is kept.

use std::time::Duration;

use crate::common::*;

/// A provider that sends without end, and a client that reads all of it: data is always at hand.
#[test]
fn the_total_timeout_ends_a_stream_that_never_pauses() {
    let stage = Stage::with(&["one/ok?chunks=100000"], |config| {
        timeouts(config, "one", |timeouts| timeouts.total = Some(Duration::from_millis(100)));
    });
    let answer = stage.ask(&chat(true));
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let end = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(end.contains("\"kind\":\"timeout\"") && end.contains("\"sub\":\"total\""), "{end}");
}

#[test]
fn the_clients_deadline_ends_a_stream_that_never_pauses() {
    let stage = Stage::of(&["one/ok?chunks=100000"]);
    let answer = stage.post(&chat(true), &[("x-koboshi-deadline", "100ms")]);
    let text = answer.text();
    let end = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(end.contains("\"sub\":\"deadline\""), "{end}");
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
    koboshi_testkit::until("the first is on its way", || (stage.calls() == (1, 0)).then_some(()));
    let refused = stage.ask(&large);
    assert_error(&refused, 503, "overloaded");
    assert!(refused.text().contains("serve.memory"), "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    let mut small = chat(false);
    small["model"] = "fine".into();
    assert_whole(&stage.ask(&small), &small);
    drop(held);
    large["model"] = "fine".into();
    koboshi_testkit::until("its share is given back", || (stage.ask(&large).status == 200).then_some(()));
}
