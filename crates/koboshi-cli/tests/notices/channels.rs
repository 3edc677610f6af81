//! What each channel gets, and when: quiet hours, caps, groups, refusals, budgets, outages; and how those who run it see how it fares.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_testkit::questions::chat;
use koboshi_testkit::{Receiver, Reception, until};
use serde_json::{Value, json};

use crate::common::served::Served;
use crate::common::{json as document, run, scratch};
use crate::{CLIENT, DRY, Place, pager, wait_for};

/// A model that says that it is down, as a warning.
const DOWN: &str = "fail-503?retry_after=1h";

fn ask(gateway: &Served, model: &str) -> u16 {
    let mut question = chat(false);
    question["model"] = json!(model);
    gateway.post(&question, &[("authorization", "Bearer test")]).status
}

/// A config with a provider whose quota is used up and one that is down.
fn two_faults(place: &Place, notify: &Value) -> Value {
    json!({
        "providers": {"one": {"kind": "openai", "base_url": place.provider.url(), "keys": ["sk-own"]}},
        "routes": {"dry": ["one/quota?retry_after=2h", "sim/ok"], "down": [format!("one/{DOWN}"), "sim/ok"]},
        "retry": {"max_attempts": 1},
        "notify": notify,
    })
}

fn channel_in_status(place: &Place, name: &str) -> Value {
    let out = run(&["status", "--store", &place.store().display().to_string(), "--format", "json"]);
    let channels = document(&out)["channels"].as_array().unwrap().clone();
    channels.into_iter().find(|one| one["channel"] == name).unwrap_or(Value::Null)
}

#[test]
fn what_fails_together_is_one_message_in_quiet_hours_only_the_critical_part_and_no_more_than_the_cap() {
    let place = Place::new();
    let (loud, quiet, capped) = (Receiver::good(), Receiver::good(), Receiver::good());
    let channel = |receiver: &Receiver, more: Value| {
        let mut channel = json!({"kind": "webhook", "url": receiver.url()});
        channel.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        channel
    };
    let channels = json!({
        "loud": channel(&loud, json!({})),
        // Equal times are the whole day, in any zone.
        "quiet": channel(&quiet, json!({"quiet_hours": "00:00-00:00", "zone": "Asia/Tokyo"})),
        "capped": channel(&capped, json!({"max_per_hour": 1})),
    });
    let notify = json!({"group_wait": "5s", "settle": "0s", "channels": channels});
    let gateway = place.start(&two_faults(&place, &notify), &place.store());
    assert_eq!((ask(&gateway, "dry"), ask(&gateway, "down")), (200, 200));
    for receiver in [&loud, &capped] {
        let first = until("one message", || receiver.deliveries().first().cloned());
        assert_eq!(first.notices().len(), 2, "what fails together: {:?}", first.notices());
        assert_eq!(first.json()["severity"], "critical");
    }
    let first = until("the critical part", || quiet.deliveries().first().cloned());
    assert_eq!(first.notices(), [format!("{DRY} start")]);
    place.resume(DRY);
    wait_for(&loud, &format!("{DRY} end"));
    until("it waits for the next hour", || {
        let state = channel_in_status(&place, "capped");
        (state["waiting"] == 1 && state["sent"] == 1).then_some(())
    });
    assert_eq!(capped.deliveries().len(), 1);
    until("the warning waits for the end of the quiet hours", || {
        (channel_in_status(&place, "quiet")["waiting"] == 1).then_some(())
    });
}

#[test]
fn a_message_that_is_refused_for_good_lets_the_next_one_pass_and_operators_see_it() {
    let place = Place::new();
    let receiver = Receiver::start(|before| match before {
        // The first message is refused each time, also after the second one was taken.
        0..=4 | 6 => Reception::Status(400),
        _ => Reception::Status(204),
    });
    let notify = json!({"group_wait": "0s", "settle": "0s", "channels": pager(&receiver)});
    let gateway = place.start(&two_faults(&place, &notify), &place.store());
    ask(&gateway, "dry");
    until("it was refused", || (!receiver.deliveries().is_empty()).then_some(()));
    ask(&gateway, "down");
    let metrics = until("metrics", || {
        let text = gateway.get("/metrics").text();
        text.contains("koboshi_notices_failing{channel=\"pager\"} 1").then_some(text)
    });
    assert!(metrics.contains("koboshi_notices_sent_total{channel=\"pager\"} 0"), "{metrics}");
    assert!(metrics.trim_end().ends_with("# EOF") && metrics.matches("# EOF").count() == 1);
    let store = place.store().display().to_string();
    let said = run(&["status", "--store", &store]).text;
    assert!(said.contains("the channel pager does not take them") && said.contains("400"), "{said}");
    let said = run(&["status", "--store", &store, "--lang", "ja"]).text;
    assert!(said.contains("チャンネル pager に届いていません"), "{said}");
    let api = gateway.get("/koboshi/status").json();
    assert!(api["channels"][0]["trouble"].as_str().unwrap().contains("400"), "{api}");
    until("the next one passes", || (receiver.deliveries().len() >= 7).then_some(()));
    let subjects: Vec<String> = receiver.deliveries().iter().flat_map(|one| one.notices()).collect();
    let dry = format!("{DRY} start");
    assert!(subjects[..5].iter().all(|one| *one == dry), "{subjects:?}");
    assert!(subjects[5].contains(DOWN) && subjects[6] == dry, "{subjects:?}");
    until("it is given up", || (channel_in_status(&place, "pager")["dropped"] == 1).then_some(()));
    place.resume(subjects[5].trim_end_matches(" start"));
    let last = until("the next message", || receiver.deliveries().get(7).cloned());
    assert_eq!(last.json()["dropped"], 1, "what was lost is counted");
}

#[test]
fn a_program_that_says_much_or_leaves_something_behind_has_taken_the_message() {
    let channels = json!({
        "chatty": {"kind": "command", "command": ["sh", "-c", "yes | head -n 100000 >&2 || exit 9"]},
        "parent": {"kind": "command", "timeout": "20s", "command": ["sh", "-c", "sleep 30 & exit 0"]},
    });
    let config = scratch("notify-chatty.yaml", &json!({"notify": {"channels": channels}}).to_string());
    for channel in ["chatty", "parent"] {
        let out = run(&["notify", "test", channel, "--config", &config]);
        assert_eq!(out.status, 0, "{channel}: {}{}", out.text, out.error);
    }
}

#[test]
fn an_empty_balance_and_a_dead_token_are_told_as_what_they_are() {
    let (place, receiver) = (Place::new(), Receiver::good());
    let url = place.provider.url();
    let config = json!({
        "providers": {
            "poor": {"kind": "openai", "base_url": url, "keys": ["sk-own"]},
            "lost": {"kind": "openai", "base_url": url, "token_command": ["false"]},
        },
        "routes": {"empty": ["poor/billing", "sim/ok"], "token": ["lost/ok", "sim/ok"]},
        "notify": {"group_wait": "0s", "settle": "0s", "channels": pager(&receiver)},
    });
    let gateway = place.start(&config, &place.store());
    assert_eq!((ask(&gateway, "empty"), ask(&gateway, "token")), (200, 200));
    let told = |code: &str| {
        until(code, || {
            let all = receiver.deliveries().into_iter();
            let mut all = all.flat_map(|one| one.json()["notices"].as_array().unwrap().clone());
            all.find(|one| one["code"] == code)
        })
    };
    let empty = told("KBS-3002");
    assert_eq!((&empty["sub"], &empty["severity"]), (&json!("billing"), &json!("critical")));
    let lines = empty["lines"].to_string();
    assert!(lines.contains("Waiting will not help") && !lines.contains("quota resets"), "{lines}");
    // The command that it names is one that works.
    let command = empty["lines"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|line| line.as_str()?.split_once("koboshi "))
        .unwrap()
        .1;
    let out = run(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(out.status, 0, "{command}: {}{}", out.text, out.error);
    wait_for(&receiver, &format!("{} end", empty["subject"].as_str().unwrap()));
    assert_eq!(told("KBS-2002")["severity"], "critical");
}

#[test]
fn a_route_of_which_every_target_is_out_is_critical_and_over_with_the_first_that_is_back() {
    let (place, receiver) = (Place::new(), Receiver::good());
    let url = place.provider.url();
    let mut channels = pager(&receiver);
    channels["pager"]["triggers"] = json!(["route"]);
    channels["pager"]["severity"] = json!("critical");
    let provider = json!({"kind": "openai", "base_url": url, "keys": ["sk-own"]});
    let config = json!({
        "providers": {"one": provider, "two": provider},
        "routes": {"m": ["one/quota?retry_after=2h", format!("two/{DOWN}")], "well": ["one/quota?retry_after=2h", "two/ok"]},
        "retry": {"max_attempts": 1},
        "notify": {"group_wait": "0s", "settle": "0s", "channels": channels},
    });
    let gateway = place.start(&config, &place.store());
    assert_ne!(ask(&gateway, "m"), 200);
    assert_eq!(ask(&gateway, "well"), 200);
    wait_for(&receiver, "route:m start");
    let start = receiver.deliveries()[0].json()["notices"][0].clone();
    assert_eq!((&start["trigger"], &start["severity"]), (&json!("route"), &json!("critical")));
    assert!(start["detail"].as_str().unwrap().contains("one/quota"), "{start}");
    place.resume(DRY);
    wait_for(&receiver, "route:m end");
    assert_eq!(receiver.notices(), ["route:m start", "route:m end"], "the other route has a target");
}

#[test]
fn a_budget_that_is_nearly_spent_is_a_warning_that_gets_worse_and_a_reload_is_heard() {
    let (place, receiver) = (Place::new(), Receiver::good());
    let prices = place.folder.path().join("prices.yaml");
    std::fs::write(&prices, "prices: [{match: '*', input: 1000, output: 2000}]").unwrap();
    let file = place.folder.path().join("koboshi.yaml");
    let config = |day: f64, channels: &Value| {
        json!({
            "providers": {"one": {"kind": "openai", "base_url": place.provider.url(), "keys": ["sk-own"]}},
            "routes": {"m": ["one/ok"]},
            "models_file": prices,
            "keys": {"laptop": {"sha256": CLIENT, "budget": {"day": day}}},
            "notify": {"group_wait": "0s", "channels": channels},
        })
    };
    let gateway = place.start(&config(1_000_000.0, &json!({})), &place.store());
    assert_eq!(ask(&gateway, "m"), 200);
    let spent = until("what it cost is in the store", || {
        let out = run(&["spend", "--format", "json", "--store", &place.store().display().to_string()]);
        let cost = document(&out)["total"]["cost"].as_f64()?;
        (cost > 0.0).then_some(cost)
    });
    // Nine tenths of it are spent now: a warning, in a channel that the gateway was started without.
    std::fs::write(&file, config(spent / 0.9, &pager(&receiver)).to_string()).unwrap();
    wait_for(&receiver, "client:laptop/day start");
    until("the budget is spent", || (ask(&gateway, "m") == 429).then_some(()));
    wait_for(&receiver, "client:laptop/day escalation");
    let all: Vec<Value> = receiver
        .deliveries()
        .iter()
        .flat_map(|one| one.json()["notices"].as_array().unwrap().clone())
        .collect();
    let severities: Vec<&Value> = all.iter().map(|one| &one["severity"]).collect();
    assert_eq!(severities, ["warning", "critical"]);
    assert!(all[0]["title"].as_str().unwrap().contains("80 %"), "{}", all[0]["title"]);
}

#[test]
fn check_warns_of_what_is_of_no_use_or_leaves_the_machine_unencrypted() {
    let mail = json!({"kind": "mail", "server": "localhost:25", "tls": "off", "from": "a@example.com", "to": ["b@example.com"]});
    let mut half = mail.clone();
    half["password"] = json!("a-password");
    let channels = json!({
        "near": {"kind": "webhook", "url": "http://127.0.0.1:9/hook"},
        "far": {"kind": "webhook", "url": "http://pager.example/of-a-secret-name"},
        "unsigned": {"kind": "slack", "url": "https://hooks.example/x", "secret": "a-secret-that-signs-nothing"},
        "half": half,
        "whole": mail,
    });
    let config = scratch("notify-warnings.yaml", &json!({"notify": {"channels": channels}}).to_string());
    let out = run(&["check", &config]);
    assert_eq!(out.status, 0, "{}{}", out.text, out.error);
    let said = out.text + &out.error;
    for warning in [
        "sent unencrypted to another machine", "kind `slack` does not read `secret`",
        "`password` is of no use without `user`", "3 warnings",
    ] {
        assert_eq!(said.matches(warning).count(), 1, "{warning}: {said}");
    }
    for secret in ["of-a-secret-name", "a-secret-that", "a-password"] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}
