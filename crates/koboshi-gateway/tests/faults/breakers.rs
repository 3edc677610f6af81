//! A target that is down for a while: few attempts, and soon back in use.

use std::time::Duration;

use koboshi_sim::{Ask, Head, Play, play};
use koboshi_store::{Clock, EntryKind, SystemClock};
use koboshi_testkit::until;

use crate::common::*;

/// A breaker that opens and probes soon.
fn soon(config: &mut koboshi_config::Config, open: Duration) {
    config.breaker.open.first = open;
    config.breaker.open.cap = open;
}

/// A program that embeds the gateway may hand in a config that nothing checked: its breakers have the default policy then.
#[test]
fn a_wrong_policy_of_breakers_stops_no_request() {
    let stage = Stage::with(&["one/fail-503", "two/ok"], |config| config.breaker.open.growth = 0.5);
    let body = chat(false);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.breaker("two/ok"), "closed");
}

#[test]
fn a_flapping_primary_is_left_alone_and_back_in_use_after_its_recovery() {
    let stage = Stage::with(&["one/flapping", "two/ok"], |config| soon(config, ms(300)));
    let down = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_down = std::sync::Arc::clone(&down);
    stage.one.set("flapping", move |ask| {
        let model = if is_down.load(std::sync::atomic::Ordering::Relaxed) { "fail-503" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    let body = chat(true);
    // Down: every client is served. Five failures open the breaker, and then there is one probe in each stretch.
    let mut served = 0;
    until("a second and a half of traffic", || {
        assert_whole(&stage.ask(&body), &body);
        served += 1;
        let asked = stage.one.requests();
        let passed = stage.two.requests().last().unwrap().at;
        asked.get(4).filter(|fifth| passed > fifth.at + ms(1500)).map(|_| ())
    });
    let asked = stage.one.requests();
    let passed = stage.two.requests().last().unwrap().at - asked[4].at;
    // A tenth of the stretch may be left out by chance.
    let stretches = passed.as_millis() / 270 + 1;
    let probes = asked.len() as u128 - 5;
    assert!(probes <= stretches, "{probes} probes in {passed:?}, {served} requests");
    // Up: back in use.
    down.store(false, std::sync::atomic::Ordering::Relaxed);
    until("the primary serves again", || {
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        (stage.breaker("one/flapping") == "closed").then_some(())
    });
    let before = stage.two.all_calls();
    for _ in 0..5 {
        assert_whole(&stage.ask(&body), &body);
    }
    assert_eq!(stage.two.all_calls(), before, "all of it");
}

#[test]
fn the_last_target_is_probed_at_a_pace_and_not_refused_for_ever() {
    let stage = Stage::with(&["one/fail-503"], |config| {
        soon(config, Duration::from_secs(30));
        config.breaker.probe.last_target_every = Some(ms(2000));
    });
    for _ in 0..2 {
        stage.ask(&chat(false));
    }
    stage.until_breaker("one/fail-503", "open");
    let asked = stage.one.all_calls();
    let answers: Vec<_> = (0..20).map(|_| stage.ask(&chat(false))).collect();
    let refused = answers.iter().filter(|answer| answer.number("x-koboshi-attempts") == Some(0));
    let refused: Vec<_> = refused.collect();
    assert!(refused.len() >= 10, "most are refused at once: {}", refused.len());
    for answer in refused {
        let error = assert_error(answer, 503, "unavailable");
        let wait = error["koboshi"]["retryAfterSeconds"].as_u64().unwrap();
        assert!(wait <= 30, "{error}");
        assert_eq!(answer.header("x-should-retry"), Some(if wait <= 5 { "true" } else { "false" }));
    }
    // Never refused for ever: one gets through in each stretch.
    until("a paced probe", || {
        stage.ask(&chat(false));
        (stage.one.all_calls() > asked).then_some(())
    });
}

#[test]
fn a_stated_cooldown_does_not_concern_the_breaker() {
    let stage = Stage::with(&["one/quota?retry_after=2h", "two/ok"], |config| {
        config.breaker.consecutive = Some(1);
        config.routes.insert("dead".to_owned(), route(&["one/auth-401", "two/ok"]));
    });
    let body = chat(false);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.breaker("one/quota?retry_after=2h"), "closed");
}

#[test]
fn an_outage_of_everything_is_reported_and_survived() {
    let stage = Stage::of(&["one/fail-503", "two/fail-503"]);
    let body = chat(false);
    let answer = stage.ask(&body);
    assert_error(&answer, 503, "unavailable");
    assert_eq!(stage.calls(), (2, 3), "one quick retry at the first, all attempts at the last");
}

/// Cooldown, gate, permit, send: in this order. A request that waits at the gate must not hold the permit of the one probe meanwhile.
#[test]
fn a_request_that_waits_at_the_gate_holds_no_probe_permit() {
    let stage = Stage::with(&["one/own"], |config| {
        soon(config, ms(20));
        config.breaker.consecutive = Some(1);
        config.breaker.probe.last_target_every = None;
        config.remedy.backoff.attempts = 1;
        config.remedy.request.patience = Duration::from_secs(20);
    });
    // The first answer leaves few tokens, of which a thousand come back in a second; the second fails.
    stage.one.set("own", move |ask| {
        let model = if ask.tally.nth == 1 { "fail-503" } else { "ok" };
        let Play { head, beats, end } = play(&Ask { model, ..*ask });
        let Head::Answer { after, status, mut headers } = head else { panic!() };
        headers.retain(|(name, _)| !name.contains("ratelimit"));
        if ask.tally.nth == 0 {
            headers.extend([
                ("x-ratelimit-limit-tokens", "60000".to_owned()),
                ("x-ratelimit-remaining-tokens", "500".to_owned()),
                ("x-ratelimit-reset-tokens", "60s".to_owned()),
            ]);
        }
        Play { head: Head::Answer { after, status, headers }, beats, end }
    });
    let (mut short, mut long) = (chat(false), chat(false));
    short["max_tokens"] = 20.into();
    long["max_tokens"] = 4000.into();
    assert_eq!(stage.ask(&short).status, 200);
    assert_eq!(stage.ask(&short).status, 503);
    std::thread::scope(|scope| {
        // Refused until the breaker's time is over, then it waits for its tokens.
        let served = scope.spawn(|| until("the long one", || (stage.ask(&long).status == 200).then_some(())));
        until("it waits", || {
            let targets = stage.get("/koboshi/targets").json();
            (targets["targets"][0]["gate"]["waiting"] == 1).then_some(())
        });
        let waited = SystemClock.wall();
        served.join().unwrap();
        let probing = stage.journal("the probe", |entry| {
            entry.what == EntryKind::Breaker && entry.kind.as_deref() == Some("probing")
        });
        assert!(probing.at > waited, "{} came before {waited}", probing.at);
    });
}

/// A target that was silent is probed with a request of our own, while the other one answers: no client waits for it.
#[test]
fn a_silent_target_is_probed_beside_the_requests_that_another_serves() {
    let stage = Stage::with(&["one/flapping", "two/ok"], |config| {
        soon(config, ms(300));
        config.breaker.consecutive = Some(2);
        config.breaker.probe.beside_every = ms(300);
        timeouts(config, "one", |limits| {
            (limits.unary, limits.first_token) = (Some(ms(1200)), Some(ms(1200)));
        });
    });
    let down = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_down = std::sync::Arc::clone(&down);
    stage.one.set("flapping", move |ask| {
        let model = if is_down.load(std::sync::atomic::Ordering::Relaxed) { "silence" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    let body = chat(true);
    until("the breaker opens", || {
        assert_whole(&stage.ask(&body), &body);
        (stage.breaker("one/flapping") == "open").then_some(())
    });
    let of_clients = || {
        let all = stage.one.requests();
        let own = all.iter().filter(|request| request.body.to_string().contains("\"ping\"")).count();
        (all.len() - own, own)
    };
    let (clients, _) = of_clients();
    until("it is probed twice, and fails twice", || {
        assert_whole(&stage.ask(&body), &body);
        (of_clients().1 >= 2).then_some(())
    });
    let probes: Vec<_> = stage
        .one
        .requests()
        .into_iter()
        .filter(|request| request.body.to_string().contains("\"ping\""))
        .collect();
    assert!(probes[1].at < probes[0].at + ms(1200), "a probe waited for the one before it");
    assert_eq!(of_clients().0, clients, "a client's request was the probe of a silent target");
    down.store(false, std::sync::atomic::Ordering::Relaxed);
    until("clients are served by it again", || {
        assert_whole(&stage.ask(&body), &body);
        (of_clients().0 > clients && stage.breaker("one/flapping") == "closed").then_some(())
    });
}
