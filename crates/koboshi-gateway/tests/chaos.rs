//! A third of the primary's attempts fall, each in another way, under many clients: nobody gets a failed, cut or mixed answer.
//!
//! The short form of the long run. `KOBOSHI_CHAOS=20000` makes it as long as one likes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::*;
use koboshi::chance::Seed;
use koboshi_config::gateway::{Commit, ModelConfig, RouteConfig};
use koboshi_sim::{Ask, play};
use serde_json::Value;

const CLIENTS: usize = 16;

/// As it is, with a fallback that goes on from a text, and with nothing to be seen before the answer is whole.
const ROUTES: [&str; 3] = ["m", "prefilled", "complete"];

/// Every way to fall that another target can make good.
const WAYS: [&str; 30] = [
    "fail-500", "fail-502", "fail-503", "overloaded", "rate-429?retry_after=20ms", "reset", "silence",
    "slow-first?after=60s", "slow-first?after=60s&head=late", "cut?after=0", "cut?after=1", "cut?after=2",
    "cut?after=17&bytes=11", "cut?after=44", "half", "half?clean=yes", "fin?after=1", "fin?after=9",
    "bad-chunk?after=0", "bad-chunk?after=5", "in-band-error?after=0", "in-band-error?after=1",
    "in-band-error?after=30", "empty", "html", "no-done", "stall?after=1", "stall?after=12", "cut-tool",
    "broken-tool-args?form=truncated",
];

fn question(number: u64) -> Value {
    let stream = number.is_multiple_of(2);
    let words = format!("question {} about the doll", number % 50);
    let mut body = if number.is_multiple_of(5) { with_tools(stream, &words) } else { chat(stream) };
    body["messages"][0]["content"] = words.into();
    body["model"] = ROUTES[usize::try_from(number % 7).unwrap() % ROUTES.len()].into();
    body
}

fn check(answer: &Answer, body: &Value) {
    if body.get("tools").is_none() {
        return assert_whole(answer, body);
    }
    // A call that was asked for again may say something else, but it is a good one.
    assert_eq!((answer.status, answer.broken, answer.error()), (200, None, None), "{answer:?}");
    assert_eq!(answer.finish().as_deref(), Some("tool_calls"), "{answer:?}");
    assert!(!answer.is_stream() || answer.is_done(), "{answer:?}");
    let calls = answer.calls();
    assert_eq!(calls.len(), 1, "{answer:?}");
    let arguments: Value = serde_json::from_str(&calls[0].1).unwrap();
    assert_eq!(calls[0].0, "look_up");
    assert!(arguments["city"].is_string() && arguments["count"].is_i64(), "{arguments}");
}

#[test]
fn nobody_notices_a_primary_that_falls_in_every_way() {
    let requests: u64 = std::env::var("KOBOSHI_CHAOS").map_or(400, |count| count.parse().unwrap());
    let stage = Stage::with(&["one/chaos", "two/ok"], |config| {
        config.serve.threads = Some(2);
        config.serve.hold = ms(200);
        config.serve.keep_alive_every = ms(100);
        config.routes.insert("prefilled".to_owned(), route(&["one/chaos", "two/ok?seed=1"]));
        let goes_on = ModelConfig { prefill: Some(true), ..ModelConfig::default() };
        model(config, "two/ok?seed=1", goes_on);
        let complete = RouteConfig { commit: Commit::Complete, ..route(&["one/chaos", "two/ok"]) };
        config.routes.insert("complete".to_owned(), complete);
        config.breaker.open.first = ms(100);
        config.breaker.open.cap = ms(300);
        timeouts(config, "one", |limits| {
            limits.first = Some(ms(500));
            limits.whole = Some(ms(500));
            limits.idle = Some(ms(500));
        });
    });
    stage.one.set("chaos", |ask| {
        let seed = Seed::new(5).nth(ask.tally.nth);
        // Every call draws, and every way comes in turn.
        let way = usize::try_from(ask.tally.nth).unwrap() % WAYS.len();
        let model = if seed.fraction() < 0.3 { WAYS[way] } else { "ok" };
        play(&Ask { model, ..*ask })
    });
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = stage.client();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return;
                    }
                    let body = question(number);
                    client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
                    check(&client.read(), &body);
                }
            });
        }
    });
    let (one, two) = stage.calls();
    assert!(one >= requests / 10 && two > 0, "both were needed: {one}, {two}");
    assert!(one + two <= requests * 3, "{one} and {two} attempts for {requests} requests");
    stage.is_quiet();
    let text = stage.get("/metrics").text();
    let whole = format!("koboshi_answers_total{{kind=\"whole\"}} {requests}\n");
    assert!(text.contains(&whole), "{text}");
    for kind in ["broken", "failed", "refused"] {
        assert!(!text.contains(&format!("koboshi_answers_total{{kind=\"{kind}\"}}")), "{kind}: {text}");
    }
}
