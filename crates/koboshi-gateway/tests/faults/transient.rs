//! Falls that may pass: with a healthy fallback behind, and alone.

use koboshi_config::secret::Secret;

use crate::common::*;

/// How a provider falls, for whole answers or streams, how often each provider is asked.
type Over<'a> = (&'a str, &'a [bool], u64, u64);

/// The same alone: the client's error, and how often the provider is asked.
type Alone<'a> = (&'a str, &'a [bool], u16, &'a str, u64);

/// Each case is a target of its own, so that no breaker remembers the case before.
fn own(fall: &str, number: usize) -> String {
    format!("{fall}{}seed={number}", if fall.contains('?') { '&' } else { '?' })
}

fn short_limits(config: &mut koboshi_config::Config) {
    timeouts(config, "one", |limits| {
        limits.first_token = Some(ms(400));
        limits.unary = Some(ms(400));
        limits.idle = Some(ms(400));
    });
}

/// Providers that fail like this before a healthy one: the whole answer comes, after this many attempts at each.
fn fall_over(cases: &[Over<'_>]) {
    let cases: Vec<_> = cases
        .iter()
        .flat_map(|(fall, streams, one, two)| streams.iter().map(move |stream| (*fall, *stream, *one, *two)))
        .enumerate()
        .collect();
    let stage = Stage::with(&[], |config| {
        short_limits(config);
        for (number, (fall, ..)) in &cases {
            let links = [&*format!("one/{}", own(fall, *number)), "two/ok"];
            config.routes.insert(format!("m{number}"), route(&links));
        }
    });
    for (number, (fall, stream, one, two)) in cases {
        let mut body = chat(stream);
        body["model"] = format!("m{number}").into();
        stage.reset();
        // A reset on a reused connection looks like a stale connection, which counts as no attempt.
        stage.one.stale();
        let answer = stage.ask(&body);
        let case = format!("{fall}, stream: {stream}");
        assert_whole(&answer, &body);
        assert_eq!(stage.calls(), (one, two), "{case}");
        assert_eq!(answer.number("x-koboshi-attempts"), Some(one + two), "{case}");
        let target = if two > 0 { "two/ok".to_owned() } else { format!("one/{}", own(fall, number)) };
        assert_eq!(answer.header("x-koboshi-target"), Some(&*target), "{case}");
        assert_eq!(answer.header("x-koboshi-fault").is_some(), one + two > 1, "{case}: {answer:?}");
        assert_eq!(answer.header("x-koboshi-degraded"), None, "{case}");
    }
}

/// Alone, providers that fall like this are asked so often, and the client gets this error.
fn fail(cases: &[Alone<'_>]) {
    let cases: Vec<_> = cases
        .iter()
        .flat_map(|(fall, streams, status, kind, one)| {
            streams.iter().map(move |stream| (*fall, *stream, *status, *kind, *one))
        })
        .enumerate()
        .collect();
    let stage = Stage::with(&[], |config| {
        short_limits(config);
        for (number, (fall, ..)) in &cases {
            config.routes.insert(format!("m{number}"), route(&[&format!("one/{}", own(fall, *number))]));
        }
    });
    for (number, (fall, stream, status, kind, one)) in cases {
        let mut body = chat(stream);
        body["model"] = format!("m{number}").into();
        stage.reset();
        // A reset on a reused connection looks like a stale connection, which counts as no attempt.
        stage.one.stale();
        let answer = stage.ask(&body);
        let case = format!("{fall}, stream: {stream}");
        let error = assert_error(&answer, status, kind);
        assert_eq!(stage.calls(), (one, 0), "{case}");
        assert_eq!(answer.number("x-koboshi-attempts"), Some(one), "{case}");
        assert_eq!(error["koboshi"]["attempts"].as_array().unwrap().len() as u64, one, "{case}: {error}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{case}: it was tried");
    }
}

const BOTH: &[bool] = &[false, true];
const WHOLE: &[bool] = &[false];
const STREAM: &[bool] = &[true];

#[test]
fn a_provider_that_falls_before_its_answer_is_replaced() {
    fall_over(&[
        // What passes is retried on the same target, what stays goes to the next one after one quick retry.
        ("fail-500?times=1", BOTH, 2, 0),
        ("fail-503", BOTH, 2, 1),
        ("fail-500", BOTH, 2, 1),
        ("fail-502", BOTH, 2, 1),
        ("overloaded", BOTH, 2, 1),
        ("reset?times=1", BOTH, 2, 0),
        ("reset", BOTH, 2, 1),
        // Silence is not asked twice while another can answer.
        ("silence", BOTH, 1, 1),
        ("slow-first?after=100ms", BOTH, 1, 0),
        ("slow-first?after=100ms&head=late", STREAM, 1, 0),
        ("slow-first?after=60s", BOTH, 1, 1),
        ("slow-first?after=60s&head=late", STREAM, 1, 1),
    ]);
}

#[test]
fn a_provider_that_falls_inside_its_answer_before_content_is_replaced() {
    fall_over(&[
        ("cut?after=0&times=1", BOTH, 2, 0),
        ("cut?after=1", STREAM, 2, 1),
        ("half", WHOLE, 2, 1),
        ("half?clean=yes", WHOLE, 2, 1),
        ("fin?after=1", STREAM, 2, 1),
        ("stall?after=1", BOTH, 1, 1),
        ("bad-chunk?after=0", STREAM, 2, 1),
        ("bad-chunk", WHOLE, 2, 1),
        ("empty", BOTH, 2, 1),
        ("html", BOTH, 1, 1),
        ("in-band-error?after=0", BOTH, 2, 1),
        ("in-band-error?after=1", STREAM, 2, 1),
        // Healthy, but for its mark.
        ("no-done", BOTH, 1, 0),
        ("no-done?open=yes", STREAM, 1, 0),
    ]);
}

#[test]
fn alone_a_fall_that_stays_is_a_clean_error_after_all_attempts() {
    fail(&[
        ("fail-503", BOTH, 503, "unavailable", 3),
        ("fail-500", BOTH, 500, "internal", 3),
        ("overloaded", BOTH, 503, "overloaded", 3),
        ("reset", BOTH, 502, "connection_failed", 3),
        ("silence", BOTH, 504, "timeout", 3),
        ("slow-first?after=60s", BOTH, 504, "timeout", 3),
        ("cut?after=1", STREAM, 502, "connection_closed", 3),
        ("half", WHOLE, 502, "connection_closed", 3),
        ("stall?after=1", STREAM, 504, "timeout", 3),
        ("bad-chunk?after=0", STREAM, 502, "response_invalid", 3),
        ("empty", BOTH, 502, "response_invalid", 3),
        ("in-band-error?after=1", BOTH, 500, "internal", 3),
    ]);
}

#[test]
fn a_port_that_refuses_counts_as_attempts() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/ok", "two/ok"]);
        stage.one.stop_listening();
        let body = chat(stream);
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(stage.calls(), (0, 1));
        assert_eq!(answer.number("x-koboshi-attempts"), Some(3));
        assert_eq!(answer.header("x-koboshi-fault"), Some("connection_refused"));
        assert_eq!(answer.number("x-koboshi-sends"), Some(1), "two of them had no connection");
        let stage = Stage::of(&["one/ok"]);
        stage.one.stop_listening();
        let answer = stage.ask(&body);
        assert_error(&answer, 502, "connection_refused");
        assert_eq!(answer.number("x-koboshi-attempts"), Some(3));
    }
}

#[test]
fn a_stale_pooled_connection_counts_as_no_attempt() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/ok"]);
        let body = chat(stream);
        assert_whole(&stage.ask(&body), &body);
        stage.one.stale_on_use();
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(answer.number("x-koboshi-attempts"), Some(1));
        assert_eq!(answer.header("x-koboshi-fault"), None, "nothing happened");
        assert_eq!(answer.number("x-koboshi-sends"), Some(2), "but it was sent twice");
        stage.one.stale();
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (3, 0));
    }
}

#[test]
fn a_target_that_resets_is_asked_at_most_once_more_than_is_counted() {
    let stage = Stage::with(&["one/slow-first?after=300ms"], |config| {
        config.remedy.backoff.attempts = 1;
        config.routes.insert("resets".to_owned(), route(&["one/reset"]));
    });
    // Many connections that are idle.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_whole(&stage.ask(&chat(true)), &chat(true)));
        }
    });
    stage.reset();
    let mut body = chat(false);
    body["model"] = "resets".into();
    let answer = stage.ask(&body);
    assert_error(&answer, 502, "connection_failed");
    assert_eq!(answer.number("x-koboshi-attempts"), Some(1));
    assert_eq!(stage.calls(), (2, 0), "the idle one, and a fresh one");
}

/// At the start of an outage no breaker is open yet: the first request must get through all the same.
#[test]
fn a_healthy_fallback_is_asked_however_many_keys_and_providers_fail_before_it() {
    for dead in ["fail-500", "fail-503", "reset"] {
        for (keys, chain) in [
            (4, vec![format!("one/{dead}"), "two/ok".to_owned()]),
            (1, (1..8).map(|n| format!("one/{dead}?p=1.{:0<n$}", "")).chain(["two/ok".to_owned()]).collect()),
            (3, vec![format!("one/{dead}"), format!("one/{dead}?p=1"), "two/ok".to_owned()]),
        ] {
            let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
            let stage = Stage::with(&chain, |config| {
                let provider = config.providers.get_mut("one").unwrap();
                provider.keys = (0..keys).map(|n| Secret::new(format!("sk-{n}"))).collect();
            });
            let answer = stage.ask(&chat(false));
            assert_eq!(answer.status, 200, "{chain:?} with {keys} keys: {}", answer.text());
            assert_eq!(stage.two.all_calls(), 1);
            let calls = stage.one.all_calls();
            assert!(
                calls <= 4,
                "{chain:?} with {keys} keys: other keys of a dead provider were asked: {calls}"
            );
        }
    }
}
