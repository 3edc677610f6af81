//! The loop guard on the conversation in a request: first a word to the model, then no more tools, and always a header.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use common::*;
use koboshi_config::gateway::{GuardMode, RouteConfig};
use serde_json::{Value, json};

const FAILS: &str = "Error: ENOENT: no such file or directory, open '/data/report.csv'";

/// A conversation in which the same tool was called so often, with these answers.
fn conversation(answers: &[String]) -> Value {
    let mut body = with_tools(false, "look it up");
    let messages = body["messages"].as_array_mut().unwrap();
    for (number, answer) in answers.iter().enumerate() {
        let id = format!("call_{number}");
        let arguments = json!({"city": format!("place {number}"), "count": number}).to_string();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "look_up", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": answer}));
    }
    body
}

fn failures(count: usize) -> Value {
    conversation(&vec![FAILS.to_owned(); count])
}

/// Calls that all bring something new.
fn progress(count: usize) -> Value {
    let answer = |number: usize| {
        format!("{{\"row\": {number}, \"name\": \"{}\"}}", "abcdefghij".repeat(number % 7 + 1))
    };
    conversation(&(0..count).map(answer).collect::<Vec<_>>())
}

/// What the provider was sent.
fn sent(stage: &Stage) -> Value {
    stage.one.requests().last().unwrap().body.clone()
}

fn last_result(body: &Value) -> String {
    body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn one_before_the_limit_the_model_is_told_in_the_last_result() {
    let stage = Stage::of(&["one/ok"]);
    for stream in [false, true] {
        let mut body = failures(2);
        body["stream"] = stream.into();
        let answer = stage.ask(&body);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-koboshi-guard"), Some("note; rule=similar_errors; count=2"));
        let seen = sent(&stage);
        assert!(last_result(&seen).starts_with(FAILS), "what the tool said stays: {seen}");
        assert!(last_result(&seen).contains("failed 2 times"), "{seen}");
        assert_eq!(seen["tool_choice"], Value::Null, "tools are still allowed");
        let first = &seen["messages"][2]["content"];
        assert_eq!(*first, FAILS, "only the last result is changed");
    }
    let again = {
        stage.ask(&failures(2));
        sent(&stage)
    };
    stage.ask(&failures(2));
    assert_eq!(again, sent(&stage), "the same words each time: prompt caches look at them");
}

#[test]
fn at_the_limit_tools_are_forbidden_and_the_model_closes() {
    let stage = Stage::of(&["one/ok"]);
    let answer = stage.ask(&failures(3));
    assert_eq!(answer.header("x-koboshi-guard"), Some("stop; rule=similar_errors; count=3"));
    let seen = sent(&stage);
    assert_eq!(seen["tool_choice"], "none");
    assert!(last_result(&seen).contains("No more tools"), "{seen}");
    assert!(answer.calls().is_empty() && !answer.content().is_empty(), "{answer:?}");
    stage.journal("the journal has it", |entry| entry.kind.as_deref() == Some("guard_stop"));
    let text = stage.get("/metrics").text();
    assert!(text.contains("koboshi_guard_total{kind=\"stop\"} 1"), "{text}");
}

#[test]
fn the_word_to_the_model_is_in_the_clients_language() {
    let stage = Stage::of(&["one/ok"]);
    stage.post(&failures(3), &[("accept-language", "ja")]);
    assert!(last_result(&sent(&stage)).contains("ツール"), "{}", sent(&stage));
}

#[test]
fn a_new_message_of_the_user_begins_anew() {
    let stage = Stage::of(&["one/ok"]);
    let mut body = failures(4);
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "try it once more"}));
    let answer = stage.ask(&body);
    assert_eq!(answer.header("x-koboshi-guard"), None);
    assert_eq!(sent(&stage)["tool_choice"], Value::Null);
}

#[test]
fn progress_is_never_noted() {
    let stage = Stage::of(&["one/ok"]);
    let body = progress(10);
    let answer = stage.ask(&body);
    assert_eq!(answer.header("x-koboshi-guard"), None, "{answer:?}");
    let mut expected = body;
    expected["model"] = "ok".into();
    assert_eq!(sent(&stage), expected, "nothing is changed");
}

#[test]
fn a_route_may_observe_or_switch_it_off() {
    let stage = Stage::with(&[], |config| {
        for (name, mode) in
            [("observed", GuardMode::Observe), ("off", GuardMode::Off), ("on", GuardMode::Enforce)]
        {
            let chain = route(&["one/ok"]);
            config.routes.insert(name.to_owned(), RouteConfig { guard: Some(mode), ..chain });
        }
        config.guard.mode = GuardMode::Observe;
        config.routes.insert("usual".to_owned(), route(&["one/ok"]));
    });
    let ask = |model: &str| {
        let mut body = failures(3);
        body["model"] = model.into();
        let answer = stage.ask(&body);
        (answer.header("x-koboshi-guard").map(str::to_owned), sent(&stage)["tool_choice"] == "none")
    };
    let observed = Some("stop; rule=similar_errors; count=3; observed".to_owned());
    assert_eq!(ask("observed"), (observed.clone(), false));
    assert_eq!(ask("usual"), (observed, false), "what the config says for all");
    assert_eq!(ask("off"), (None, false));
    assert_eq!(ask("on"), (Some("stop; rule=similar_errors; count=3".to_owned()), true));
    let text = stage.get("/metrics").text();
    assert!(text.contains("koboshi_guard_total{kind=\"would_stop\"} 2"), "{text}");
}

#[test]
fn depth_is_only_observed_unless_the_config_enforces_it() {
    let stage = Stage::of(&["one/ok"]);
    let answer = stage.ask(&progress(25));
    assert_eq!(answer.header("x-koboshi-guard"), Some("stop; rule=depth; count=25; observed"));
    assert_eq!(sent(&stage)["tool_choice"], Value::Null, "coding agents make far more calls");
    let text = stage.get("/metrics").text();
    assert!(text.contains("koboshi_guard_total{kind=\"would_stop\"} 1"), "{text}");
    let stage = Stage::with(&["one/ok"], |config| config.guard.enforce_depth = true);
    let answer = stage.ask(&progress(25));
    assert_eq!(answer.header("x-koboshi-guard"), Some("stop; rule=depth; count=25"));
    assert_eq!(sent(&stage)["tool_choice"], "none");
}

#[test]
fn a_long_turn_does_not_hide_a_loop() {
    let stage = Stage::of(&["one/ok"]);
    let rows = (0..25).map(|number| format!("row {number} of {}", "x".repeat(number + 3)));
    let answers: Vec<String> = rows.chain(vec![FAILS.to_owned(); 2]).collect();
    let answer = stage.ask(&conversation(&answers));
    assert_eq!(answer.header("x-koboshi-guard"), Some("note; rule=similar_errors; count=2"));
    assert!(last_result(&sent(&stage)).contains("failed 2 times"));
}

#[test]
fn the_guard_holds_for_every_target_of_the_chain() {
    let stage = Stage::of(&["one/fail-503", "two/ok"]);
    stage.ask(&failures(3));
    assert_eq!(stage.calls(), (2, 1));
    assert_eq!(stage.two.requests()[0].body["tool_choice"], "none");
}
