//! A third of the primary's attempts fall, each in another way, under many clients: nobody gets a failed, cut or mixed answer.
//!
//! The short form of the long run. `KOBOSHI_CHAOS=20000` makes it as long as one likes. The same crowd before a real process,
//! which is killed meanwhile and whose memory is watched, is in the tests of the command.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::*;
use koboshi_config::gateway::{Commit, ModelConfig, RouteConfig};
use koboshi_sim::{Ask, play};
use koboshi_testkit::chaos::{Crowd, primary};
use koboshi_testkit::until;

const CLIENTS: usize = 64;

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
    stage.one.set("chaos", primary);
    Crowd::before(stage.gateway.address()).ask(CLIENTS, requests, |_| {});
    stage.is_quiet();
    let text = stage.get("/metrics").text();
    let whole = format!("koboshi_answers_total{{kind=\"whole\"}} {requests}\n");
    assert!(text.contains(&whole), "{text}");
    let (one, two) = stage.calls();
    // The primary rests by the clock, so how much of the traffic it gets depends on how fast the rest goes.
    assert!(one >= requests / 50 && two > 0, "both were needed: {one}, {two}");
    assert!(one + two <= requests * 3, "{one} and {two} attempts for {requests} requests");
    // A probe that was never given back would keep the breaker from closing.
    stage.one.set("chaos", |ask| play(&Ask { model: "ok", ..*ask }));
    until("the primary is back in use", || {
        assert_whole(&stage.ask(&chat(false)), &chat(false));
        (stage.breaker("one/chaos") == "closed").then_some(())
    });
    for target in stage.get("/koboshi/targets").json()["targets"].as_array().unwrap() {
        let gate = &target["gate"];
        assert!(gate["in_flight"] == 0 && gate["waiting"] == 0, "a permit leaked: {target}");
    }
    for kind in ["broken", "failed", "refused"] {
        assert!(!text.contains(&format!("koboshi_answers_total{{kind=\"{kind}\"}}")), "{kind}: {text}");
    }
}
