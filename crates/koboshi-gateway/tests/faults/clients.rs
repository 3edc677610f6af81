//! What a client does and asks for besides its question: deadlines, patience, leaving.

use koboshi_config::gateway::{Commit, KeepAlive, RouteConfig};
use koboshi_testkit::until;

use crate::common::*;

#[test]
fn a_deadline_of_the_client_ends_in_a_504_and_says_nothing_of_the_target() {
    let stage = Stage::with(&["one/silence"], |config| config.breaker.consecutive = Some(1));
    for stream in [false, true] {
        stage.reset();
        let answer = stage.post(&chat(stream), &[("x-koboshi-deadline", "200ms")]);
        assert_error(&answer, 504, "timeout");
        let told = answer.text();
        assert!(
            told.contains("x-koboshi-deadline") && !told.contains("configuration"),
            "it is the client's own: {told}"
        );
        assert_eq!(stage.calls(), (1, 0));
        until("it is let go", || (stage.one.cancelled() == 1).then_some(()));
        assert_eq!(stage.breaker("one/silence"), "closed", "an impatient client is no proof");
    }
}

#[test]
fn a_deadline_that_cannot_be_read_is_refused_and_named() {
    let stage = Stage::of(&["one/ok"]);
    for bad in ["abc", "-1s", "0", "", "1 day"] {
        let answer = stage.post(&chat(false), &[("x-koboshi-deadline", bad)]);
        assert_error(&answer, 400, "invalid_request");
        assert!(answer.text().contains("x-koboshi-deadline"), "{}", answer.text());
    }
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn a_deadline_is_not_overslept_at_a_gate() {
    // The limit is held for a second; the client waits a fifth of that.
    let stage = Stage::of(&["one/rate-429?retry_after=none"]);
    let answer = stage.post(&chat(false), &[("x-koboshi-deadline", "200ms")]);
    assert_error(&answer, 429, "rate_limited");
    assert_eq!(stage.calls(), (1, 0));
}

#[test]
fn a_client_that_leaves_cancels_the_upstream_and_leaks_nothing() {
    let stage = Stage::with(&["one/ok?gap=50ms&chunks=2000"], |config| {
        config.breaker.consecutive = Some(1);
        config.routes.insert("silent".to_owned(), route(&["one/silence"]));
        config.routes.insert(
            "held".to_owned(),
            RouteConfig { commit: Commit::Complete, ..route(&["one/stall?after=3"]) },
        );
    });
    for (model, stream, seen) in
        [("m", true, true), ("m", false, false), ("silent", true, false), ("held", true, false)]
    {
        stage.reset();
        let mut body = chat(stream);
        body["model"] = model.into();
        if model == "m" && !stream {
            // A whole answer that is long in coming.
            body["model"] = "silent".into();
        }
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        until("the upstream is asked", || (stage.one.all_calls() == 1).then_some(()));
        if seen {
            let head = client.head().unwrap();
            assert!(client.piece(&head).unwrap().is_some());
        }
        drop(client);
        until("the upstream is let go", || (stage.one.cancelled() == 1).then_some(()));
        stage.wait_until_quiet();
    }
    for target in ["one/ok?gap=50ms&chunks=2000", "one/silence", "one/stall?after=3"] {
        assert_eq!(
            stage.breaker(target),
            "closed",
            "{target}: a client that leaves is no fault of the target"
        );
    }
}

#[test]
fn a_client_that_stops_reading_is_closed_and_so_is_the_upstream() {
    // More than the sockets on the way hold.
    let stage = Stage::with(&["one/ok?chunks=100000"], |config| config.serve.send_time = ms(400));
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    until("the upstream is asked", || (stage.one.all_calls() == 1).then_some(()));
    until("the upstream is let go", || (stage.one.cancelled() == 1).then_some(()));
    stage.wait_until_quiet();
    drop(client);
}

#[test]
fn a_client_that_leaves_during_a_probe_gives_the_permit_back() {
    let stage = Stage::with(&["one/flap?down=2&up=1000"], |config| {
        config.breaker.consecutive = Some(2);
        config.breaker.window = None;
        config.breaker.open.first = ms(100);
        config.breaker.open.cap = ms(100);
        config.breaker.probe.permits = 1;
        config.breaker.probe.successes = 1;
        config.breaker.probe.last_target_every = None;
        config.routes.insert("slow".to_owned(), route(&["one/flap?down=2&up=1000"]));
    });
    // Two failures open it.
    assert_error(&stage.ask(&chat(false)), 503, "unavailable");
    assert_eq!(stage.calls(), (2, 0), "the breaker opened before the third");
    stage.one.set("flap?down=2&up=1000", |ask| {
        let model = if ask.tally.nth == 2 { "silence" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    // The probe: its client leaves.
    let mut client = until("the probe goes out", || {
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
        let refused = until("asked or refused", || match stage.one.all_calls() {
            3 => Some(false),
            _ => stage_answered(&mut client).then_some(true),
        });
        (!refused).then_some(client)
    });
    client.close_writing();
    drop(client);
    until("the probe is let go", || (stage.one.cancelled() == 1).then_some(()));
    // The permit is back: the next one is asked, and closes it.
    let answer =
        until("the next probe", || Some(stage.ask(&chat(false))).filter(|answer| answer.status == 200));
    assert_whole(&answer, &chat(false));
    stage.until_breaker("one/flap?down=2&up=1000", "closed");
}

/// Whether an answer has come, without waiting for it.
fn stage_answered(client: &mut Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let mut byte = [0; 1];
    let some = client.stream.peek(&mut byte).is_ok();
    client.stream.set_nonblocking(false).unwrap();
    some
}

#[test]
fn a_stream_that_is_long_in_coming_is_kept_open() {
    for (style, comments) in [(KeepAlive::Comment, true), (KeepAlive::Frame, false), (KeepAlive::Off, false)]
    {
        let stage = Stage::with(&["one/slow-first?after=600ms", "two/ok"], |config| {
            config.serve.first_byte_hold = ms(50);
            config.serve.keep_alive_every = ms(50);
            config.serve.keep_alive = style;
        });
        let body = chat(true);
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        let answer = client.read();
        assert_whole(&answer, &body);
        assert_eq!(answer.comments() > 2, comments, "{style:?}: {answer:?}");
        let empty = answer
            .chunks()
            .iter()
            .filter(|chunk| chunk["choices"][0]["delta"] == serde_json::json!({}))
            .count();
        assert_eq!(empty > 3, style == KeepAlive::Frame, "{style:?}: {answer:?}");
        assert_eq!(stage.calls(), (1, 0));
    }
}

#[test]
fn after_the_head_went_out_an_error_comes_inside_the_stream() {
    let stage = Stage::with(&["one/slow-first?after=60s"], |config| {
        config.serve.first_byte_hold = ms(50);
        config.serve.keep_alive_every = ms(50);
        config.remedy.backoff.attempts = 1;
        timeouts(config, "one", |limits| limits.first_token = Some(ms(400)));
    });
    let answer = stage.ask(&chat(true));
    assert_broken_stream(&answer, "timeout");
    assert_eq!(answer.content(), "");
    assert_eq!(stage.calls(), (1, 0), "our own keep-alive frames do not count as progress of the upstream");
}

#[test]
fn keep_alives_do_not_hide_a_stall_and_a_fallback_still_serves() {
    let stage = Stage::with(&["one/stall?after=10", "two/ok"], |config| {
        config.serve.first_byte_hold = ms(50);
        config.serve.keep_alive_every = ms(50);
        timeouts(config, "one", |limits| limits.idle = Some(ms(400)));
    });
    let body = chat(true);
    let answer = stage.ask(&body);
    assert_whole(&answer, &body);
    assert!(answer.comments() > 0, "{answer:?}");
    assert_eq!(stage.calls(), (1, 1));
}

#[test]
fn an_error_lists_every_attempt() {
    let stage = Stage::of(&["one/fail-503", "two/auth-401"]);
    let answer = stage.ask(&chat(true));
    // The outage may pass at any moment, the key must be replaced.
    let error = assert_error(&answer, 503, "unavailable");
    let trail: Vec<String> = error["koboshi"]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tried| {
            format!(
                "{} {} {}",
                tried["target"].as_str().unwrap(),
                tried["kind"].as_str().unwrap(),
                tried["status"]
            )
        })
        .collect();
    assert_eq!(
        trail,
        ["one/fail-503 unavailable 503", "one/fail-503 unavailable 503", "two/auth-401 unauthorized 401"]
    );
    assert_eq!(stage.calls(), (2, 1));
    assert_eq!(answer.number("x-koboshi-attempts"), Some(3));
    for kind in ["unavailable", "unauthorized"] {
        stage.journal("the journal has it", |entry| entry.kind.as_deref() == Some(kind));
    }
    let text = stage.get("/metrics").text();
    let line = "koboshi_attempts_total{gen_ai_provider_name=\"one\",gen_ai_request_model=\"fail-503\"} 2";
    assert!(text.contains(line), "{text}");
}

#[test]
fn no_way_to_end_keeps_a_place_at_the_gate() {
    let falls = [
        "fail-503", "reset", "silence", "cut?after=20", "stall?after=20", "in-band-error?after=20", "empty",
        "html",
    ];
    let stage = Stage::with(&[], |config| {
        config.gate.concurrency = Some(1);
        config.breaker.consecutive = Some(200);
        config.breaker.window = None;
        timeouts(config, "one", |limits| {
            (limits.first_token, limits.idle, limits.unary) = (Some(ms(200)), Some(ms(200)), Some(ms(200)));
        });
        for fall in falls {
            config.routes.insert(fall.to_owned(), route(&[&format!("one/{fall}"), "two/ok"]));
        }
        config.routes.insert("other".to_owned(), route(&["one/cut?after=20", "two/own"]));
        config.routes.insert("calls".to_owned(), route(&["one/broken-tool-args?form=truncated"]));
    });
    for fall in falls {
        for stream in [true, false, true] {
            stage.reset();
            let mut body = chat(stream);
            body["model"] = fall.into();
            assert_whole(&stage.ask(&body), &body);
            assert!(stage.one.all_calls() > 0, "{fall}, stream: {stream}: its only place is taken");
        }
    }
    for _ in 0..3 {
        stage.reset();
        let mut body = with_tools(true, "look it up");
        body["model"] = "calls".into();
        assert_eq!(stage.ask(&body).calls().len(), 1);
        assert_eq!(stage.calls(), (2, 0), "a re-ask has a place of its own");
    }
    // A second answer that is another one is dropped in its middle.
    stage.two.set("own", |ask| {
        koboshi_sim::play(&koboshi_sim::Ask {
            model: "ok",
            body: br#"{"messages":[{"role":"user","content":"x"}],"stream":true}"#,
            ..*ask
        })
    });
    for _ in 0..3 {
        stage.reset();
        let mut body = chat(true);
        body["model"] = "other".into();
        assert_broken_stream(&stage.ask(&body), "connection_closed");
        assert_eq!(stage.two.all_calls(), 1);
    }
}

#[test]
fn a_client_that_has_said_all_and_closes_its_half_gets_its_answer() {
    let stage = Stage::with(&["one/slow-first?after=600ms&gap=20ms"], |config| {
        config.routes.insert("soon".to_owned(), route(&["one/ok"]));
        config.routes.insert("broken".to_owned(), route(&["one/fail-503"]));
    });
    for (model, stream) in [("m", false), ("m", true), ("soon", false), ("soon", true)] {
        let mut body = chat(stream);
        body["model"] = model.into();
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.close_writing();
        assert_whole(&client.read(), &body);
        assert_eq!(client.head().err(), Some(std::io::ErrorKind::UnexpectedEof), "then the connection ends");
    }
    assert_eq!(stage.one.cancelled(), 0);
    let mut body = chat(true);
    body["model"] = "broken".into();
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
    client.close_writing();
    assert_error(&client.read(), 503, "unavailable");
}

#[test]
fn a_client_that_closes_its_half_and_then_leaves_is_noticed() {
    let stage = Stage::with(&["one/ok?gap=50ms&chunks=2000"], |config| {
        config.serve.keep_alive_every = ms(50);
        config.routes.insert("silent".to_owned(), route(&["one/silence"]));
        config.routes.insert("stalled".to_owned(), route(&["one/stall?after=5"]));
    });
    for (model, stream) in [("m", true), ("silent", false), ("silent", true), ("stalled", true)] {
        stage.reset();
        let mut body = chat(stream);
        body["model"] = model.into();
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.close_writing();
        until("the upstream is asked", || (stage.one.all_calls() == 1).then_some(()));
        if model != "silent" {
            let head = client.head().unwrap();
            for _ in 0..3 {
                assert!(client.piece(&head).unwrap().is_some(), "it is answered");
            }
        }
        assert_eq!(stage.one.cancelled(), 0, "{model}: it may still read");
        drop(client);
        until("the upstream is let go", || (stage.one.cancelled() == 1).then_some(()));
        stage.wait_until_quiet();
    }
}
