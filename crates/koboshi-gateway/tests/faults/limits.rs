//! Rate limits, quotas, dead keys: what the gateway waits for, what it avoids, and what all requests learn from it.

use koboshi_config::secret::Secret;
use koboshi_sim::{Ask, Head, Play, play};
use koboshi_store::EntryKind;
use koboshi_testkit::until;
use serde_json::Value;

use crate::common::*;

#[test]
fn a_stated_wait_within_patience_is_waited_out_on_the_same_target() {
    let stage = Stage::of(&["one/rate-429?retry_after=200ms&times=1", "two/ok"]);
    for stream in [false, true] {
        stage.reset();
        let body = chat(stream);
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(stage.calls(), (2, 0));
        assert_eq!(answer.header("x-koboshi-fault"), Some("rate_limited"));
        let asked = stage.one.requests();
        assert!(asked[1].at - asked[0].at >= ms(200), "never sooner than the provider stated");
    }
}

#[test]
fn a_longer_wait_means_the_fallback_and_the_next_request_does_not_ask_at_all() {
    for fall in ["one/rate-429?retry_after=60", "one/rate-429?retry_after=none"] {
        let stage = Stage::of(&[fall, "two/ok"]);
        let body = chat(true);
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (1, 1), "{fall}");
        assert_whole(&stage.ask(&body), &body);
        if fall.ends_with("60") {
            assert_eq!(stage.calls(), (1, 2), "{fall}");
        }
        assert_eq!(stage.breaker(fall), "closed", "a limit says nothing of health");
    }
}

#[test]
fn alone_a_long_wait_is_reported_at_once_and_then_without_asking() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/rate-429?retry_after=30"]);
        let first = stage.ask(&chat(stream));
        assert_error(&first, 429, "rate_limited");
        assert_eq!(first.header("x-should-retry"), Some("false"), "it was tried");
        assert_eq!(first.header("retry-after"), None, "the wait is too long for a library");
        assert_eq!(stage.calls(), (1, 0));
        let second = stage.ask(&chat(stream));
        let error = assert_error(&second, 429, "rate_limited");
        assert_eq!(second.header("x-should-retry"), Some("false"), "two such waits are a minute");
        assert!((28..=30).contains(&error["koboshi"]["retryAfterSeconds"].as_u64().unwrap()), "{second:?}");
        assert!(error["message"].as_str().unwrap().contains("Please try again in "), "{error}");
        assert_eq!(second.number("x-koboshi-attempts"), Some(0));
        assert_eq!(error["koboshi"]["retryable"], true);
        assert_eq!(stage.calls(), (1, 0));
    }
}

#[test]
fn alone_a_limit_without_a_wait_gets_its_attempts() {
    let stage = Stage::of(&["one/rate-429?retry_after=none&times=1"]);
    let body = chat(false);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (2, 0));
}

#[test]
fn all_cooling_for_long_is_nothing_to_retry() {
    let stage = Stage::of(&["one/quota?retry_after=2h"]);
    assert_error(&stage.ask(&chat(false)), 429, "quota_exceeded");
    let answer = stage.ask(&chat(false));
    let error = assert_error(&answer, 429, "quota_exceeded");
    assert_eq!(answer.header("x-should-retry"), Some("false"), "not within seconds");
    assert!(error["koboshi"]["retryAfterSeconds"].as_u64().unwrap() >= 7000);
    assert_eq!(stage.calls(), (1, 0));
}

#[test]
fn a_quota_rests_its_model_and_billing_the_whole_account_and_the_ledger_has_it() {
    // OpenAI's sentence names the model whose requests of the day are used up.
    for (fall, key) in
        [("quota?retry_after=2h", "model:one/quota?retry_after=2h"), ("billing", "account:one")]
    {
        let stage = Stage::with(&[&format!("one/{fall}"), "two/ok"], |config| {
            config.routes.insert("other".to_owned(), route(&["one/ok", "two/ok"]));
        });
        let body = chat(false);
        let answer = stage.ask(&body);
        assert_whole(&answer, &body);
        assert_eq!(answer.header("x-koboshi-fault"), Some("quota_exceeded"));
        assert_eq!(stage.calls(), (1, 1), "{fall}");
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (1, 2), "{fall}: known now");
        let mut other = chat(false);
        other["model"] = "other".into();
        assert_whole(&stage.ask(&other), &body);
        let is_account = key.starts_with("account:");
        let calls = if is_account { (1, 3) } else { (2, 2) };
        assert_eq!(stage.calls(), calls, "{fall}: whether another model of the account is asked");
        let entry = stage.journal("the rest", |entry| entry.what == EntryKind::Cooldown);
        assert_eq!(entry.key.unwrap().to_string(), key, "{fall}");
        assert_eq!(entry.kind.as_deref(), Some("quota_exceeded"));
        assert_eq!(stage.breaker(&format!("one/{fall}")), "closed", "{fall}");
    }
}

#[test]
fn a_rate_limit_holds_its_own_model_only() {
    let stage = Stage::with(&["one/rate-429?retry_after=60", "two/ok"], |config| {
        config.routes.insert("other".to_owned(), route(&["one/ok", "two/ok"]));
    });
    let body = chat(false);
    assert_whole(&stage.ask(&body), &body);
    let mut other = chat(false);
    other["model"] = "other".into();
    assert_whole(&stage.ask(&other), &body);
    assert_eq!((stage.one.calls("ok"), stage.two.calls("ok")), (1, 1));
}

/// The key of the first call is dead, all others are good.
fn the_first_key_is_dead(stage: &Stage) {
    stage.one.set("gpt", |ask| {
        let fall = if ask.tally.nth == 0 { "auth-401" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model: fall, ..*ask })
    });
}

#[test]
fn the_next_key_of_the_pool_serves_when_one_is_dead_and_the_dead_one_is_not_used_again() {
    let stage = Stage::with(&["one/gpt"], |config| {
        let one = config.providers.get_mut("one").unwrap();
        one.keys = vec![Secret::new("sk-first"), Secret::new("sk-second")];
    });
    the_first_key_is_dead(&stage);
    let body = chat(false);
    let answer = stage.ask(&body);
    assert_whole(&answer, &body);
    assert_eq!(answer.header("x-koboshi-fault"), Some("unauthorized"));
    let asked = stage.one.requests();
    assert_eq!(asked.len(), 2);
    assert_ne!(asked[0].authorization, asked[1].authorization, "another key");
    for _ in 0..4 {
        assert_whole(&stage.ask(&body), &body);
    }
    let dead = &asked[0].authorization;
    let uses = stage.one.requests().iter().filter(|seen| seen.authorization == *dead).count();
    assert_eq!((uses, stage.one.all_calls()), (1, 6), "the dead key was asked once");
}

#[test]
fn a_dead_key_of_the_gateway_is_not_the_clients() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/auth-401"]);
        let answer = stage.ask(&chat(stream));
        let error = assert_error(&answer, 502, "unauthorized");
        assert!(!answer.text().contains("sk-sim"), "what the vendor said stays here: {error}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        assert_eq!(stage.calls(), (1, 0));
        let entry = stage.journal("the rest", |entry| entry.what == EntryKind::Cooldown);
        assert!(entry.key.unwrap().to_string().starts_with("key:one/"), "the key rests, not the provider");
    }
}

#[test]
fn with_a_fallback_a_dead_key_is_not_noticed() {
    let stage = Stage::of(&["one/auth-401", "two/ok"]);
    let body = chat(true);
    assert_whole(&stage.ask(&body), &body);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (1, 2), "the second request knows");
}

#[test]
fn a_wait_that_a_server_states_with_a_503_is_a_floor_too() {
    let stage = Stage::with(&["one/fail-503?retry_after=200ms&times=1", "two/ok"], |config| {
        config.routes.insert("long".to_owned(), route(&["one/fail-503?retry_after=60", "two/ok"]));
    });
    let body = chat(false);
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (2, 0));
    let asked = stage.one.requests();
    assert!(asked[1].at - asked[0].at >= ms(200));
    stage.reset();
    let mut long = chat(false);
    long["model"] = "long".into();
    assert_whole(&stage.ask(&long), &body);
    assert_eq!(stage.calls(), (1, 1), "never a shorter wait");
}

#[test]
fn a_limit_that_headers_announce_is_not_hit() {
    let stage = Stage::of(&["one/nearly", "two/ok"]);
    stage.one.set("nearly", |ask| {
        let mut play = koboshi_sim::play(&koboshi_sim::Ask { model: "ok", ..*ask });
        if let koboshi_sim::Head::Answer { headers, .. } = &mut play.head {
            headers.retain(|(name, _)| !name.starts_with("x-ratelimit"));
            headers.push(("x-ratelimit-limit-requests", "2".to_owned()));
            headers.push(("x-ratelimit-remaining-requests", "0".to_owned()));
            headers.push(("x-ratelimit-reset-requests", "60s".to_owned()));
        }
        play
    });
    let body = chat(true);
    for _ in 0..3 {
        assert_whole(&stage.ask(&body), &body);
    }
    assert_eq!(stage.calls(), (1, 2), "nothing is left there, and that was said");
}

#[test]
fn where_all_are_in_cooldown_the_soonest_end_is_reported() {
    let stage = Stage::of(&["one/rate-429?retry_after=40", "two/rate-429?retry_after=20"]);
    for _ in 0..2 {
        let answer = stage.ask(&chat(true));
        let error = assert_error(&answer, 429, "rate_limited");
        assert!((15..=20).contains(&error["koboshi"]["retryAfterSeconds"].as_u64().unwrap()), "{error}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    assert_eq!(stage.calls(), (1, 1));
}

/// Tokens that the gate believes to be left at the first provider.
fn tokens_left(stage: &Stage) -> i64 {
    let targets = stage.get("/koboshi/targets").json();
    let own =
        targets["targets"].as_array().unwrap().iter().find(|target| target["target"] == "one/own").unwrap();
    let levels = own["gate"]["levels"].as_array().unwrap();
    let tokens = levels.iter().find(|level| level["limit"] == "tokens");
    tokens.unwrap_or_else(|| panic!("{own}"))["left"].as_i64().unwrap()
}

/// The first answer says how many tokens are left for the hours to come; the others fall like this and say nothing of it.
fn a_limit_is_known_and_then(stage: &Stage, fall: &'static str) -> i64 {
    stage.one.set("own", move |ask| {
        let first = ask.tally.nth == 0;
        let Play { head, beats, end } = play(&Ask { model: if first { "ok" } else { fall }, ..*ask });
        let Head::Answer { after, status, mut headers } = head else { panic!() };
        headers.retain(|(name, _)| !name.contains("ratelimit"));
        for (name, value) in [
            ("x-ratelimit-limit-tokens", "1000000"),
            ("x-ratelimit-remaining-tokens", "900000"),
            ("x-ratelimit-reset-tokens", "24h0m0s"),
        ]
        .iter()
        .filter(|_| first)
        {
            headers.push((name, (*value).to_owned()));
        }
        Play { head: Head::Answer { after, status, headers }, beats, end }
    });
    assert_eq!(stage.ask(&chat(false)).status, 200);
    let left = tokens_left(stage);
    assert!((899_000..=901_000).contains(&left), "{left}");
    left
}

/// A request with much to read that may get much to say.
fn long(stream: bool) -> Value {
    let mut body = chat(stream);
    body["messages"][0]["content"] = "tell me about the doll ".repeat(1000).into();
    body["max_tokens"] = 50_000.into();
    body
}

#[test]
fn a_stream_that_breaks_is_paid_for_as_far_as_it_came() {
    // The limit refills by a few tokens a second while the test runs.
    for (fall, stream) in [("cut?after=30", true), ("stall?after=30", true), ("half", false)] {
        let stage = Stage::with(&["one/own"], |config| {
            config.remedy.backoff.attempts = 1;
            timeouts(config, "one", |limits| limits.idle = Some(ms(300)));
        });
        let before = a_limit_is_known_and_then(&stage, fall);
        let body = long(stream);
        assert!(stage.ask(&body).error().is_some(), "{fall}");
        let spent = before - tokens_left(&stage);
        let prompt = i64::try_from(body.to_string().len() / 4).unwrap();
        assert!(spent >= prompt - 200, "{fall}: {spent} of at least {prompt}: what was used counts");
        assert!(spent < prompt * 2, "{fall}: {spent}: what was not said costs nothing");
    }
}

#[test]
fn a_stream_whose_client_leaves_is_paid_for_as_far_as_it_came() {
    let stage = Stage::of(&["one/own"]);
    let before = a_limit_is_known_and_then(&stage, "stall?after=30");
    let body = long(true);
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
    let head = client.head().unwrap();
    assert!(client.piece(&head).unwrap().is_some());
    drop(client);
    until("it is let go", || (stage.one.cancelled() == 1).then_some(()));
    stage.wait_until_quiet();
    let spent = before - tokens_left(&stage);
    let prompt = i64::try_from(body.to_string().len() / 4).unwrap();
    assert!(spent >= prompt - 200, "{spent} of at least {prompt}");
    assert!(spent < prompt * 2, "{spent}: not the 50000 that it might have said");
}

#[test]
fn a_refusal_costs_nothing() {
    let stage = Stage::with(&["one/own"], |config| config.remedy.backoff.attempts = 1);
    let before = a_limit_is_known_and_then(&stage, "fail-503");
    assert_error(&stage.ask(&long(true)), 503, "unavailable");
    let spent = before - tokens_left(&stage);
    assert!(spent < 200, "{spent}");
}
