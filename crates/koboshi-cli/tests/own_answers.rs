//! What a running gateway answers, what `koboshi explain` makes of that answer and what `koboshi status` says are one truth.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::served::Served;
use common::{json, run, scratch};
use koboshi_testkit::{Answer, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

const CONFIG: &str = "\
providers:
  claude: {kind: anthropic, base_url: 'http://127.0.0.1:9/v1', keys: [k]}
  slow: {kind: sim, timeouts: {unary: 100ms}}
retry: {max_attempts: 1}
serve: {threads: 1}
";

struct Scene {
    folder: TempDir,
    gateway: Served,
}

impl Scene {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (config, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
        std::fs::write(&config, CONFIG).unwrap();
        let gateway = Served::start(&config, &store);
        Self { folder, gateway }
    }

    fn ask(&self, model: &str, more: &Value) -> Answer {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut client = Client::to(self.gateway.address);
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.read()
    }
}

/// The answer as `curl -si` saves it.
fn saved(name: &str, answer: &Answer) -> String {
    scratch(name, &format!("HTTP/1.1 {} X\r\n\r\n{}", answer.status, answer.text()))
}

#[test]
fn explain_gives_the_advice_of_the_fault_that_was_answered() {
    let scene = Scene::start();
    for (model, more, advice) in [
        ("sim/fail-500", json!({}), json!({"same": true, "other": true, "later": true})),
        ("sim/fail-501", json!({}), json!({"same": true, "other": true, "later": true})),
        ("sim/html", json!({}), json!({"same": false, "other": true, "later": false})),
        ("claude/good", json!({"n": 2}), json!({"same": false, "other": true, "later": false})),
    ] {
        let file = saved("own-advice.txt", &scene.ask(model, &more));
        let explained = json(&run(&["explain", &file, "--lang", "en", "--format", "json"]));
        assert_eq!(explained["fault"]["advice"], advice, "{model}: {explained}");
    }
}

#[test]
fn a_provider_that_is_slower_than_a_limit_is_not_the_network() {
    let scene = Scene::start();
    let file = saved("own-timeout.txt", &scene.ask("slow/silence", &json!({})));
    let explained = run(&["explain", &file, "--lang", "en"]).text;
    assert!(explained.contains("timeout / unary"), "{explained}");
    assert!(explained.contains("the AI provider: it was slower than the time limit"), "{explained}");
    assert!(!explained.contains("network"), "{explained}");
}

#[test]
fn what_a_model_does_not_support_is_in_the_message() {
    let scene = Scene::start();
    let answer = scene.ask("claude/good", &json!({"n": 2}));
    let error = answer.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("Not supported: n."), "{message}");
    let file = saved("own-lack.txt", &answer);
    let explained = run(&["explain", &file, "--lang", "en"]).text;
    assert!(explained.contains("Not supported: n."), "{explained}");
}

#[test]
fn a_limit_that_ended_last_night_is_nothing_to_wait_for() {
    let at = |text: &str, now: &str| {
        let file = scratch("own-last-night.txt", text);
        run(&["explain", &file, "--now", now, "--lang", "en"]).text
    };
    let dated = "[2026-11-18T01:00:00Z] 5-hour limit reached ∙ resets 3am\n";
    let morning = at(dated, "2026-11-18T06:00:00Z");
    assert!(morning.contains("The stated wait is over. You can try again now."), "{morning}");
    assert!(!morning.contains("Wait until") && !morning.contains("later"), "{morning}");
    let night = at(dated, "2026-11-18T01:00:00Z");
    assert!(night.contains("2026-11-18 03:00 UTC (2h left)"), "{night}");
    // Without a time of its own it is read as written at the time that is named.
    let undated = at("5-hour limit reached ∙ resets 3am\n", "2026-11-18T06:00:00Z");
    assert!(undated.contains("2026-11-19 03:00 UTC (21h left)"), "{undated}");
}

#[test]
fn a_bare_402_is_asked_again_and_says_so() {
    let scene = Scene::start();
    let answer = scene.ask("sim/fail-402", &json!({}));
    let error = answer.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("The gateway asks the provider again in"), "{message}");
    assert!(!message.contains("Waiting will not help"), "{message}");
    assert!(error["koboshi"]["retryAfterSeconds"].as_u64().is_some_and(|wait| wait > 0), "{error}");
    let store = scene.folder.path().join("store.db");
    let status = koboshi_testkit::until("the cooldown is in the store", || {
        let out = run(&["status", "--store", store.to_str().unwrap(), "--lang", "en"]);
        out.text.contains("account:sim/fail-402").then_some(out.text)
    });
    assert!(status.contains("in cooldown") && !status.contains("parked"), "{status}");
}
