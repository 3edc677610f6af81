//! The loop guard on the conversation in a request: first a note to the model, then the same call is refused, then its tool, then all
//! tools but the ways out; and always a header.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use crate::common::*;
use koboshi::guard::{Effect, RulePolicy, ToolPolicy};
use koboshi_config::Config;
use koboshi_config::gateway::{CacheMode, GuardMode, RouteConfig};
use serde_json::{Value, json};

const FAILS: &str = "Error: ENOENT: no such file or directory, open '/data/report.csv'";

/// The limits of these tests, whatever the defaults are.
fn limits(config: &mut Config) {
    config.guard.mode = GuardMode::Stop;
    config.guard.policy.similar_errors = RulePolicy::stop(3);
    config.guard.policy.after_changes = 5;
    config.guard.policy.same_call = RulePolicy::stop(5);
}

fn guarded(chain: &[&str]) -> Stage {
    Stage::with(chain, limits)
}

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
fn one_before_the_limit_a_note_is_in_the_last_result() {
    let stage = guarded(&["one/ok"]);
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

/// A conversation in which the very same call came back with the very same answer.
fn repeated(count: usize, stream: bool) -> Value {
    let mut body = with_tools(stream, "look it up");
    let messages = body["messages"].as_array_mut().unwrap();
    for number in 0..count {
        let id = format!("call_{number}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "look_up", "arguments": ARGUMENTS}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": RESULT}));
    }
    body
}

/// A result that would be another one if anything had moved.
const RESULT: &str =
    r#"{"city":"Aizu","weather":"light rain","temperature":12,"wind":"north","stations":["castle","lake"]}"#;
const ARGUMENTS: &str = r#"{"city":"Aizu","count":1}"#;

fn guard_of(answer: &Answer) -> Option<String> {
    answer.header("x-koboshi-guard").map(str::to_owned)
}

#[test]
fn a_stop_forbids_the_calls_then_the_tool_then_the_turn() {
    let stage = guarded(&["one/ok"]);
    for (count, forbids, says, closed) in [
        (3, "calls", "with the same arguments are refused", false),
        (4, "calls", "with the same arguments are refused", false),
        (5, "tools", "calls of look_up are refused", false),
        (6, "tools", "calls of look_up are refused", false),
        (7, "turn", "No more tools", true),
    ] {
        let answer = stage.ask(&failures(count));
        let said = format!("stop; rule=similar_errors; count={count}; forbids={forbids}");
        assert_eq!(guard_of(&answer), Some(said));
        let seen = sent(&stage);
        assert_eq!(seen["tool_choice"] == "none", closed, "{count}: {seen}");
        assert!(last_result(&seen).contains(says), "{count}: {seen}");
    }
    stage.journal("the journal has it", |entry| entry.kind.as_deref() == Some("guard_stop"));
    let text = stage.get("/metrics").text();
    assert!(text.contains("koboshi_guard_total{kind=\"stop\"} 5"), "{text}");
}

/// The client never sees the repeated call: the model reads why it was refused, and answers otherwise.
#[test]
fn a_repeated_call_is_refused_with_a_reason_to_the_model() {
    for stream in [false, true] {
        let stage = guarded(&["one/loop"]);
        let before = stage.ask(&repeated(4, stream));
        assert_eq!(before.calls().len(), 1, "below the limit the call passes: {before:?}");
        let asked = stage.calls().0;
        let answer = stage.ask(&repeated(5, stream));
        assert_eq!(guard_of(&answer).as_deref(), Some("stop; rule=same_call; count=5; forbids=calls"));
        assert!(answer.calls().is_empty() && !answer.content().is_empty(), "{stream}: {answer:?}");
        assert_eq!(stage.calls().0, asked + 2, "asked once more");
        let seen = sent(&stage);
        let messages = seen["messages"].as_array().unwrap();
        let [.., call, result] = messages.as_slice() else { panic!("{seen}") };
        assert_eq!(call["tool_calls"][0]["function"]["arguments"], ARGUMENTS);
        assert_eq!(result["tool_call_id"], call["tool_calls"][0]["id"]);
        assert!(result["content"].as_str().unwrap().contains("refused and did not run"), "{seen}");
        assert_eq!(seen["tool_choice"], Value::Null, "the model is free: {seen}");
        assert_eq!(seen["stream"] == true, stream, "{seen}");
        stage.journal("the journal has it", |entry| entry.kind.as_deref() == Some("guard_refused"));
        let text = stage.get("/metrics").text();
        assert!(text.contains("koboshi_guard_total{kind=\"refused\"} 1"), "{text}");
    }
}

/// What the client has read stays, and the second answer goes on after it.
#[test]
fn a_stream_with_text_before_the_refused_call_goes_on() {
    let stage = guarded(&["one/loop?say=5"]);
    let answer = stage.ask(&repeated(5, true));
    let text = answer.content();
    assert!(answer.calls().is_empty() && answer.is_done(), "{answer:?}");
    let seen = sent(&stage);
    let messages = seen["messages"].as_array().unwrap();
    let said = messages[messages.len() - 2]["content"].as_str().unwrap().to_owned();
    assert!(!said.is_empty() && text.starts_with(&said) && text.len() > said.len(), "{said:?} {text:?}");
}

/// The text after a refused answer is not all known: what the cache gives later is never a part of it.
#[test]
fn a_stream_after_a_refused_call_is_never_cached_in_part() {
    for model in ["one/loop", "one/loop?say=5"] {
        let stage = Stage::with(&[model], |config| {
            limits(config);
            config.degrade.cache = CacheMode::Serve;
            config.degrade.cache_tools = true;
        });
        let first = stage.ask(&repeated(5, true));
        assert!(first.content().len() > 20, "{first:?}");
        assert_eq!(stage.ask(&repeated(5, true)).content(), first.content(), "{model}");
    }
}

/// A model that repeats itself after the refusal gets no tools, so that the turn ends in words.
#[test]
fn the_second_refusal_takes_the_tools() {
    for stream in [false, true] {
        let stage = guarded(&["one/loop?stubborn=yes"]);
        let answer = stage.ask(&repeated(5, stream));
        assert!(answer.calls().is_empty() && !answer.content().is_empty(), "{stream}: {answer:?}");
        assert_eq!(stage.calls().0, 3);
        assert_eq!(sent(&stage)["tool_choice"], "none");
    }
}

#[test]
fn other_arguments_and_other_tools_pass() {
    let stage = guarded(&["one/ok?tools=yes"]);
    let mut body = repeated(5, false);
    body["messages"].as_array_mut().unwrap()[0]["content"] = "call look_up {\"city\":\"Wakamatsu\"}".into();
    body["tool_choice"] = json!({"type": "function", "function": {"name": "look_up"}});
    let answer = stage.ask(&body);
    assert_eq!(stage.calls().0, 1, "{answer:?}");
    assert_eq!(answer.calls().len(), 1, "{answer:?}");
}

/// At the second stage the tool is refused whatever its arguments are.
#[test]
fn a_forbidden_tool_is_refused_with_other_arguments_too() {
    let stage = guarded(&["one/ok?tools=yes"]);
    let mut body = failures(5);
    body["tool_choice"] = json!({"type": "function", "function": {"name": "look_up"}});
    let answer = stage.ask(&body);
    let said = "stop; rule=similar_errors; count=5; forbids=tools";
    assert_eq!(guard_of(&answer).as_deref(), Some(said));
    assert!(answer.calls().is_empty() && !answer.content().is_empty(), "{answer:?}");
    assert!(last_result(&sent(&stage)).contains("refused and did not run"), "{}", sent(&stage));
}

#[test]
fn the_cost_of_a_refused_answer_is_counted() {
    for stream in [false, true] {
        let stage = guarded(&["one/loop"]);
        let mut body = repeated(5, stream);
        if stream {
            body["stream_options"] = json!({"include_usage": true});
        }
        let answer = stage.ask(&body);
        let told = answer.usage().unwrap()["prompt_tokens"].as_u64().unwrap();
        let alone = {
            let stage = guarded(&["one/ok?tools=no"]);
            stage.ask(&body).usage().unwrap()["prompt_tokens"].as_u64().unwrap()
        };
        assert!(told > alone * 3 / 2, "{stream}: {told} {alone}");
    }
}

/// At the last stage the ways out stay open: by name, by description, or because the config says so.
#[test]
fn a_stop_leaves_the_ways_out_open() {
    let with_way_out = |name: &str, description: &str| {
        let mut body = failures(7);
        let tool = json!({"type": "function", "function": {"name": name, "description": description,
            "parameters": {"type": "object", "properties": {}}}});
        body["tools"].as_array_mut().unwrap().push(tool);
        body
    };
    for (name, description) in
        [("transfer_to_human_agents", ""), ("report", "Submit your final answer."), ("hang_up", "Hangs up.")]
    {
        let stage = Stage::with(&["one/loop"], |config| {
            limits(config);
            let way_out = ToolPolicy::default().with(|tool| tool.effect = Some(Effect::Ends));
            config.guard.policy.tools.insert("hang_up".to_owned(), way_out);
        });
        let answer = stage.ask(&with_way_out(name, description));
        let said = "stop; rule=similar_errors; count=7; forbids=turn";
        assert_eq!(guard_of(&answer).as_deref(), Some(said), "{name}");
        let first = stage.one.requests()[0].body.clone();
        assert_eq!(first["tool_choice"], Value::Null, "{name}: {first}");
        assert!(last_result(&first).contains(&format!("Except {name}")), "{name}: {first}");
        // The model called the forbidden tool, and reads what it may call.
        let told = last_result(&sent(&stage));
        assert!(told.contains(&format!("only {name} can be called")), "{name}: {told}");
        assert!(answer.calls().is_empty() && !answer.content().is_empty(), "{name}: {answer:?}");
    }
    let stage = Stage::with(&["one/ok?tools=yes"], limits);
    let mut body = with_way_out("transfer_to_human_agents", "");
    body["tool_choice"] = json!({"type": "function", "function": {"name": "transfer_to_human_agents"}});
    let answer = stage.ask(&body);
    assert_eq!(answer.calls().first().map(|(name, _)| name.as_str()), Some("transfer_to_human_agents"));
}

#[test]
fn a_mode_that_only_notes_forbids_nothing() {
    let stage = Stage::with(&["one/loop"], |config| {
        limits(config);
        config.guard.mode = GuardMode::Note;
    });
    let answer = stage.ask(&repeated(6, false));
    assert_eq!(guard_of(&answer).as_deref(), Some("note; rule=same_call; count=6"));
    assert_eq!(answer.calls().len(), 1, "{answer:?}");
    let seen = last_result(&sent(&stage));
    assert!(seen.contains("Repeating them brings nothing new") && !seen.contains("refused"), "{seen}");
}

/// Five equal scrolls with five other screenshots are work.
#[test]
fn a_screenshot_that_differs_is_another_answer() {
    let scrolled = |different: bool| {
        let mut body = repeated(0, false);
        let messages = body["messages"].as_array_mut().unwrap();
        for number in 0..8 {
            let id = format!("call_{number}");
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function", "function": {"name": "look_up", "arguments": ARGUMENTS}}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "ok"}));
            let image = format!("data:image/png;base64,iVBORw0KGgo{}", if different { number } else { 0 });
            messages.push(
                json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}),
            );
        }
        body
    };
    let stage = guarded(&["one/ok"]);
    assert_eq!(guard_of(&stage.ask(&scrolled(true))), None);
    assert!(
        guard_of(&stage.ask(&scrolled(false))).is_some_and(|said| said.starts_with("stop; rule=same_call"))
    );
}

/// A conversation in the dialect of a path: the same scroll eight times, each with a screenshot in its result (and none in words).
fn scrolled(path: &str, different: bool) -> Value {
    let pixels = |number: usize| format!("iVBORw0KGgo{}", if different { number } else { 0 });
    let schema = json!({"type": "object", "properties": {"by": {"type": "integer"}}});
    let mut said = Vec::new();
    for number in 0..8 {
        let (id, data) = (format!("call_{number}"), pixels(number));
        match path {
            "/v1/messages" => {
                let call = json!({"type": "tool_use", "id": id, "name": "scroll", "input": {"by": 3}});
                let source = json!({"type": "base64", "media_type": "image/png", "data": data});
                let image = json!({"type": "image", "source": source});
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": [image]});
                said.push(json!({"role": "assistant", "content": [call]}));
                said.push(json!({"role": "user", "content": [result]}));
            }
            "/v1/responses" => {
                let url = format!("data:image/png;base64,{data}");
                let call = json!({"type": "function_call", "call_id": id, "name": "scroll", "arguments": "{\"by\":3}"});
                let output = json!([{"type": "input_image", "image_url": url}]);
                said.push(call);
                said.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            _ => {
                let call = json!({"functionCall": {"name": "scroll", "args": {"by": 3}}});
                let result = json!({"functionResponse": {"name": "scroll", "response": {"output": "ok"}}});
                let image = json!({"inlineData": {"mimeType": "image/png", "data": data}});
                said.push(json!({"role": "model", "parts": [call]}));
                said.push(json!({"role": "user", "parts": [result, image]}));
            }
        }
    }
    match path {
        "/v1/messages" => {
            said.insert(0, json!({"role": "user", "content": "scroll down"}));
            let tool = json!({"name": "scroll", "description": "Scrolls", "input_schema": schema});
            json!({"model": "m", "max_tokens": 100, "messages": said, "tools": [tool]})
        }
        "/v1/responses" => {
            said.insert(0, json!({"role": "user", "content": "scroll down"}));
            let tool =
                json!({"type": "function", "name": "scroll", "description": "Scrolls", "parameters": schema});
            json!({"model": "m", "input": said, "tools": [tool]})
        }
        _ => {
            said.insert(0, json!({"role": "user", "parts": [{"text": "scroll down"}]}));
            let declared = json!({"name": "scroll", "description": "Scrolls", "parameters": schema});
            json!({"contents": said, "tools": [{"functionDeclarations": [declared]}]})
        }
    }
}

#[test]
fn a_screenshot_that_differs_is_another_answer_in_every_dialect() {
    let stage = guarded(&["one/ok"]);
    for path in ["/v1/messages", "/v1/responses", "/v1beta/models/m:generateContent"] {
        let ask = |different| {
            let mut client = stage.client();
            client.send("POST", path, &[], scrolled(path, different).to_string().as_bytes());
            client.read()
        };
        let work = ask(true);
        assert_eq!((work.status, guard_of(&work)), (200, None), "{path}: {work:?}");
        let loops = guard_of(&ask(false));
        assert!(
            loops.as_deref().is_some_and(|said| said.starts_with("stop; rule=same_call")),
            "{path}: {loops:?}"
        );
    }
}

#[test]
fn the_note_to_the_model_is_in_the_clients_language() {
    let stage = guarded(&["one/ok"]);
    stage.post(&failures(7), &[("accept-language", "ja")]);
    assert!(last_result(&sent(&stage)).contains("ツール"), "{}", sent(&stage));
}

#[test]
fn a_new_message_of_the_user_starts_a_new_turn() {
    let stage = guarded(&["one/ok"]);
    let mut body = failures(4);
    body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "try it once more"}));
    let answer = stage.ask(&body);
    assert_eq!(answer.header("x-koboshi-guard"), None);
    assert_eq!(sent(&stage)["tool_choice"], Value::Null);
}

#[test]
fn progress_is_never_noted() {
    let stage = guarded(&["one/ok"]);
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
        limits(config);
        for (name, mode) in
            [("observed", GuardMode::Observe), ("off", GuardMode::Off), ("on", GuardMode::Stop)]
        {
            let chain = route(&["one/ok"]);
            config.routes.insert(name.to_owned(), RouteConfig { guard: Some(mode), ..chain });
        }
        config.guard.mode = GuardMode::Observe;
        config.routes.insert("usual".to_owned(), route(&["one/ok"]));
    });
    let ask = |model: &str| {
        let mut body = failures(7);
        body["model"] = model.into();
        let answer = stage.ask(&body);
        (answer.header("x-koboshi-guard").map(str::to_owned), sent(&stage)["tool_choice"] == "none")
    };
    let observed = Some("stop; rule=similar_errors; count=7; forbids=turn; observed".to_owned());
    assert_eq!(ask("observed"), (observed.clone(), false));
    assert_eq!(ask("usual"), (observed, false), "what the config says for all");
    assert_eq!(ask("off"), (None, false));
    assert_eq!(ask("on"), (Some("stop; rule=similar_errors; count=7; forbids=turn".to_owned()), true));
    let text = stage.get("/metrics").text();
    assert!(text.contains("koboshi_guard_total{kind=\"would_stop\"} 2"), "{text}");
}

#[test]
fn depth_is_only_observed_unless_the_config_enforces_it() {
    let stage = guarded(&["one/ok"]);
    let answer = stage.ask(&progress(25));
    assert_eq!(answer.header("x-koboshi-guard"), Some("stop; rule=depth; count=25; forbids=turn; observed"));
    assert_eq!(sent(&stage)["tool_choice"], Value::Null, "coding agents make far more calls");
    let text = stage.get("/metrics").text();
    assert!(text.contains("koboshi_guard_total{kind=\"would_stop\"} 1"), "{text}");
    let stage = Stage::with(&["one/ok"], |config| {
        limits(config);
        config.guard.enforce_depth = true;
    });
    let answer = stage.ask(&progress(25));
    assert_eq!(answer.header("x-koboshi-guard"), Some("stop; rule=depth; count=25; forbids=turn"));
    assert_eq!(sent(&stage)["tool_choice"], "none");
}

#[test]
fn a_long_turn_does_not_hide_a_loop() {
    let stage = guarded(&["one/ok"]);
    let rows = (0..25).map(|number| format!("row {number} of {}", "x".repeat(number + 3)));
    let answers: Vec<String> = rows.chain(vec![FAILS.to_owned(); 2]).collect();
    let answer = stage.ask(&conversation(&answers));
    assert_eq!(answer.header("x-koboshi-guard"), Some("note; rule=similar_errors; count=2"));
    assert!(last_result(&sent(&stage)).contains("failed 2 times"));
}

#[test]
fn the_guard_holds_for_every_target_of_the_chain() {
    let stage = guarded(&["one/fail-503", "two/ok"]);
    stage.ask(&failures(7));
    assert_eq!(stage.calls(), (2, 1));
    assert_eq!(stage.two.requests()[0].body["tool_choice"], "none");
}
