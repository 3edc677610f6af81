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
