//! Tools that tabs run: offered, claimed by one, done once.

use koboshi::session::ToolState;
use koboshi_testkit::SessionClient;
use serde_json::{Value, json};

use crate::common::*;

fn chat_with_tool(client: &mut SessionClient, idempotent: bool) {
    let tool = json!({
        "name": "look_up", "description": "Looks something up.", "idempotent": idempotent,
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    });
    client.send(&json!({"type": "chat", "id": "c-1", "content": "look it up", "tools": [tool]}));
}

#[test]
fn a_tool_is_run_by_one_tab_and_its_result_goes_to_the_model() {
    let stage = Stage::of(&["one/ok?say=3"]);
    let mut one = SessionClient::begin(stage.gateway.address(), "tab-1");
    let (mut two, mut three) = (one.tab("tab-2"), one.tab("tab-3"));
    chat_with_tool(&mut one, false);
    let call = one.next_of("tool_call");
    assert_eq!((&call["name"], &call["runs"]), (&json!("look_up"), &json!("client")));
    assert!(call["arguments"]["key"].is_string(), "whole and parsed: {call}");
    let id = call["call"].as_str().unwrap().to_owned();
    two.next_of("tool_call");
    three.next_of("tool_call");
    two.send(&json!({"type": "tool_claim", "call": id}));
    let claimed = one.next_of("tool_state");
    assert_eq!((&claimed["state"], &claimed["by"]), (&json!("claimed"), &json!("tab-2")));
    three.send(&json!({"type": "tool_claim", "call": id}));
    assert_eq!(three.next_of("error")["kind"], "invalid_message", "another tab has it");
    for content in ["first", "second"] {
        two.send(&json!({"type": "tool_result", "call": id, "content": {"value": content}}));
    }
    let text = one.answer();
    assert_eq!((two.answer(), three.answer()), (text.clone(), text));
    assert_eq!(one.transcript, three.transcript);
    let answer = one.transcript.messages.last().unwrap();
    assert_eq!(answer.calls[0].content, Some(json!({"value": "first"})), "the first result counts");
    let asked: Value = stage.one.requests().last().unwrap().body.clone();
    let last = asked["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["role"], &last["content"]), (&json!("tool"), &json!(r#"{"value":"first"}"#)));
    assert_eq!(stage.calls().0, 2);
}

#[test]
fn a_rewind_after_a_tool_keeps_what_stands_before_it() {
    let stage = Stage::of(&["one/ok?say=3", "two/ok?say=3"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    chat_with_tool(&mut client, false);
    let call = client.next_of("tool_call");
    let before = client.transcript.open.as_ref().unwrap().text.clone();
    assert!(!before.is_empty());
    stage.one.set("ok?say=3", |ask| koboshi_sim::play(&koboshi_sim::Ask { model: "cut?after=10", ..*ask }));
    client.send(&json!({"type": "tool_result", "call": call["call"], "content": 1}));
    let text = client.answer();
    assert!(text.starts_with(&before), "{text}");
    let rewind = client.frames.iter().find(|frame| frame["type"] == "rewind").unwrap();
    assert_eq!(rewind["to"], koboshi::session::units(&before));
    assert_eq!(client.count("tool_call"), 1, "it is not called again");
}

#[test]
fn a_tool_without_a_result_expires_and_the_model_is_told() {
    let stage = Stage::with(&["one/ok"], |config| config.sessions.tool_timeout = ms(50));
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    chat_with_tool(&mut client, true);
    assert_eq!(client.next_of("tool_state")["state"], "expired");
    client.next_of("done");
    let call = &client.transcript.messages.last().unwrap().calls[0];
    assert_eq!(call.state, ToolState::Expired);
    client.send(&json!({"type": "tool_result", "call": call.call.clone(), "content": 1}));
    client.send(&json!({"type": "ping"}));
    client.next_of("pong");
    assert_eq!(client.count("tool_state"), 1, "too late");
}

#[test]
fn a_claim_is_kept_over_a_reconnect_of_its_tab() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    chat_with_tool(&mut client, false);
    let call = client.next_of("tool_call")["call"].clone();
    client.send(&json!({"type": "tool_claim", "call": call}));
    client.next_of("tool_state");
    client.cut();
    client.come_back();
    client.send(&json!({"type": "tool_result", "call": call, "status": "error", "content": "no such key"}));
    client.next_of("done");
    let known = &client.transcript.messages.last().unwrap().calls[0];
    assert_eq!((known.state, &known.content), (ToolState::Done, &Some(json!({"error": "no such key"}))));
}

#[test]
fn the_lines_of_a_broken_call_reach_the_user() {
    let stage = Stage::with(&["one/broken-tool-args?form=truncated"], |config| config.reask.max_attempts = 5);
    let mut client = SessionClient::begin_with(stage.gateway.address(), "tab-1", json!({"lang": "ja"}));
    chat_with_tool(&mut client, false);
    let retry = client.next_of("retry");
    assert_eq!((&retry["attempt"], &retry["max_attempts"]), (&json!(1), &json!(5)));
    assert_eq!(
        (&retry["kind"], &retry["message"]),
        (&json!("tool_arguments_invalid"), &json!("このアクションは正しく実行されませんでした"))
    );
    client.next_of("tool_call");
}

#[test]
fn a_call_whose_tab_left_is_offered_again_where_its_tool_may_run_twice() {
    let stage = Stage::with(&["one/ok"], |config| config.sessions.claim_grace = ms(200));
    let mut one = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut two = one.tab("tab-2");
    chat_with_tool(&mut one, true);
    let call = two.next_of("tool_call")["call"].clone();
    two.send(&json!({"type": "tool_claim", "call": call}));
    assert_eq!(one.next_of("tool_state")["state"], "claimed");
    two.cut();
    assert_eq!(one.next_of("tool_state")["state"], "offered");
    one.send(&json!({"type": "tool_claim", "call": call}));
    assert_eq!(one.next_of("tool_state")["by"], "tab-1");
    one.send(&json!({"type": "tool_result", "call": call, "content": 1}));
    assert_eq!(one.next_of("tool_state")["state"], "done");
    one.next_of("done");
}
