//! What clients and operators learn of a request's attempts: in a head that is written before the answer begins, in the journal, and in the metrics.

use bytes::Bytes;
use jiff::ToSpan;
use jiff::tz::TimeZone;
use koboshi_sim::{Beat, Beats, End, Head, Play};
use koboshi_store::{Clock, SystemClock};

use crate::common::*;

/// An answer of the provider's own making.
fn says(status: u16, headers: Vec<(&'static str, String)>, body: &str) -> Play {
    let bytes = Bytes::from(body.to_owned());
    Play {
        head: Head::Answer { after: ms(0), status, headers },
        beats: Beats::from(vec![Beat { after: ms(0), bytes }]),
        end: End::Clean,
    }
}

/// The head of a stream that goes out while nothing has come yet counts the attempts that were made, the running one included.
#[test]
fn a_head_that_passed_the_hold_counts_its_attempts() {
    for (chain, attempts) in [(&["one/silence"][..], 1), (&["one/fail-503", "two/silence"], 3)] {
        let stage = Stage::with(chain, |config| config.serve.first_byte_hold = ms(1500));
        let mut client = stage.client();
        client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
        let head = client.head().unwrap();
        assert_eq!((head.status, head.number("x-koboshi-attempts")), (200, Some(attempts)), "{chain:?}");
        assert_eq!(head.header("x-koboshi-sends"), None, "{chain:?}: as many as attempts");
    }
}

/// Another text after a cut is one event: it is in the journal, and in one counter.
#[test]
fn an_answer_that_differs_is_counted_once_and_is_in_the_journal() {
    let stage = Stage::of(&["one/cut?after=20", "two/own"]);
    let frame = "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Quite another answer \"}}]}\n\n";
    stage.two.set("own", move |_| says(200, vec![("content-type", "text/event-stream".to_owned())], frame));
    assert_broken_stream(&stage.ask(&chat(true)), "connection_closed");
    let metrics = stage.get("/metrics").text();
    let count = |kind: &str| {
        gauge(&metrics, &format!("koboshi_recoveries_total{{kind=\"{kind}\"}}")).unwrap_or_default()
    };
    assert_eq!((count("differs"), count("error")), (1.0, 0.0), "{metrics}");
    let entry = stage.journal("the answer that differs", |entry| entry.kind.as_deref() == Some("differs"));
    assert!(entry.text.contains("two/own") && entry.text.contains("differs"), "{entry:?}");
    assert_eq!(entry.data.as_ref().unwrap()["target"], "two/own", "{entry:?}");
}

/// A target with a limit that ends at this time.
fn limited_until(time: jiff::Timestamp) -> Stage {
    let date = httpdate::fmt_http_date(std::time::SystemTime::from(time));
    let stage = Stage::of(&["one/own"]);
    stage.one.set("own", move |_| {
        let body = "{\"error\":{\"message\":\"Rate limit reached\",\"type\":\"rate_limit_error\"}}";
        says(429, vec![("content-type", "application/json".to_owned()), ("retry-after", date.clone())], body)
    });
    stage
}

/// A time on the full minute is that minute in every error, however often the error is repeated.
#[test]
fn the_time_of_a_limit_is_the_stated_one_in_every_error() {
    let minute = SystemClock.wall().round(jiff::Unit::Minute).unwrap() + 10.minutes();
    let stage = limited_until(minute);
    let time = minute.strftime("%Y-%m-%d %H:%M UTC.").to_string();
    for nth in 1..=4 {
        let error = assert_error(&stage.ask(&chat(nth % 2 == 0)), 429, "rate_limited");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&time), "error {nth} does not say {time}: {message}");
    }
    assert_eq!(stage.calls().0, 1, "it was asked once");
}

/// A program on this machine reads the time of its wall clock. Where another client is, the gateway does not know: it gets UTC.
#[test]
fn a_local_client_reads_times_in_the_zone_of_the_machine() {
    let tokyo = TimeZone::fixed(jiff::tz::offset(9));
    let minute = SystemClock.wall().round(jiff::Unit::Minute).unwrap() + 10.minutes();
    let stage = limited_until(minute);
    let gateway = start_in(tokyo.clone(), stage.config.clone(), &stage.store).unwrap();
    let stage = Stage { gateway, ..stage };
    let afar = [("x-forwarded-for", "203.0.113.7")];
    for (headers, zone, name) in [(&[][..], tokyo, "UTC+09"), (&afar, TimeZone::UTC, "UTC")] {
        let error = assert_error(&stage.post(&chat(false), headers), 429, "rate_limited");
        let time = minute.to_zoned(zone).strftime(&format!("%Y-%m-%d %H:%M {name}.")).to_string();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&time), "{time}: {message}");
    }
}

/// A page of a firewall in front of the provider says nothing about the account: nothing is parked, and the target is asked again.
#[test]
fn a_block_before_the_provider_parks_nothing() {
    let stage = Stage::of(&["one/own"]);
    let page = "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head><body><h1>Sorry, you have been \
        blocked</h1></body></html>";
    stage.one.set("own", move |ask| {
        if ask.tally.nth == 0 {
            says(
                403,
                vec![("content-type", "text/html".to_owned()), ("server", "cloudflare".to_owned())],
                page,
            )
        } else {
            koboshi_sim::play(&koboshi_sim::Ask { model: "ok", ..*ask })
        }
    });
    let error = assert_error(&stage.ask(&chat(false)), 502, "permission_denied");
    assert_eq!(error["koboshi"]["sub"], "blocked", "{error}");
    assert!(error["message"].as_str().unwrap().contains("in front of the AI provider"), "{error}");
    assert_eq!(stage.ask(&chat(false)).status, 200, "the block was over");
}

/// A proxy that wants a login says nothing about the provider's key: nothing is parked, and the target is asked again.
#[test]
fn a_proxys_login_parks_no_key() {
    let stage = Stage::of(&["one/own"]);
    stage.one.set("own", |_| {
        let body = "{\"error\":{\"message\":\"Proxy Authentication Required\"}}";
        says(407, vec![("content-type", "application/json".to_owned())], body)
    });
    for nth in 1..=2 {
        let error = assert_error(&stage.ask(&chat(false)), 502, "connection_failed");
        assert_eq!((&error["koboshi"]["sub"], stage.calls().0), (&"proxy".into(), nth), "{error}");
    }
}

/// What operators read names the limit that the provider named.
#[test]
fn a_hold_is_of_the_limit_that_was_named() {
    for (message, limit) in [
        ("Rate limit reached on tokens per min (TPM)", "tokens"),
        ("would exceed your rate limit of 40,000 input tokens per minute", "input_tokens"),
        ("Too many concurrent requests", "concurrency"),
        ("Rate limit reached", "requests"),
    ] {
        let stage = Stage::of(&["one/own"]);
        stage.one.set("own", move |_| {
            let body = format!("{{\"error\":{{\"message\":\"{message}\",\"type\":\"rate_limit_error\"}}}}");
            let headers =
                vec![("content-type", "application/json".to_owned()), ("retry-after", "60".to_owned())];
            says(429, headers, &body)
        });
        assert_error(&stage.ask(&chat(false)), 429, "rate_limited");
        let targets = stage.get("/koboshi/targets").text();
        assert!(targets.contains(&format!("\"{limit}\"")), "{message}: {targets}");
    }
}
