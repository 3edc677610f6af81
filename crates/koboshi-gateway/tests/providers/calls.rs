//! Calls as providers really write them.

use koboshi_config::gateway::ProviderDialect;
use koboshi_store::{Entry, MemoryStore, Query, Store};
use koboshi_testkit::until;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::Server;

/// What a client gets from a provider of chat completions that answers with these calls.
fn all_called(path: &str, body: Value, calls: &[Value]) -> Answer {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let answer =
        json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]});
    answered(path, body, ProviderDialect::Chat, answer)
}

/// What a client gets from a provider that gives this answer.
fn answered(path: &str, body: Value, dialect: ProviderDialect, answer: Value) -> Answer {
    let store = MemoryStore::default();
    answered_into(&store, path, body, dialect, answer)
}

fn answered_into(
    store: &MemoryStore,
    path: &str,
    mut body: Value,
    dialect: ProviderDialect,
    answer: Value,
) -> Answer {
    let server = Server::start(move |_, _| (200, answer.clone()));
    let mut config = config();
    let mut provider = provider(server.url("/v1"));
    provider.dialects = vec![dialect];
    config.providers.insert("p".to_owned(), provider);
    let gateway = start(config, store).unwrap();
    body["model"] = "p/m".into();
    let mut client = Client::to(gateway.address());
    client.send("POST", path, &[], body.to_string().as_bytes());
    client.read()
}

fn called(path: &str, body: Value, call: &Value) -> Answer {
    all_called(path, body, std::slice::from_ref(call))
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn a_tool_without_a_schema_may_be_called_with_nothing() {
    let body = json!({
        "messages": [{"role": "user", "content": "What time is it?"}],
        "tools": [{"type": "function", "function": {"name": "now"}}],
    });
    for (arguments, wanted) in [("", "{}"), ("{}", "{}"), ("{\"zone\":\"UTC\"}", "{\"zone\":\"UTC\"}")] {
        let answer = called("/v1/chat/completions", body.clone(), &call("now", arguments));
        assert_eq!(answer.status, 200, "{answer:?}");
        let got = answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].clone();
        assert_eq!(got, wanted);
    }
}

#[test]
fn a_tool_of_free_text_gets_its_text_or_no_call_at_all() {
    let body = json!({"input": "Patch it.", "tools": [{"type": "custom", "name": "apply_patch"}]});
    let good = called("/v1/responses", body.clone(), &call("apply_patch", "{\"input\":\"*** x\"}"));
    let item = &good.json()["output"][0];
    assert_eq!((&item["type"], &item["input"]), (&"custom_tool_call".into(), &"*** x".into()), "{good:?}");
    for arguments in ["", "{}", "{\"patch\":\"*** x\"}"] {
        let answer = called("/v1/responses", body.clone(), &call("apply_patch", arguments));
        assert!(!answer.text().contains("\"function_call\""), "{arguments}: {answer:?}");
        assert_eq!(answer.status, 502, "{arguments}: {answer:?}");
    }
}

#[test]
fn a_call_of_a_tool_in_a_group_comes_back_with_its_group() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tool = json!({"type": "function", "name": "list", "parameters": schema});
    let body = json!({
        "input": "List it.",
        "tools": [{"type": "namespace", "name": "mcp__files", "description": "d", "tools": [tool]}],
    });
    let answer = called("/v1/responses", body.clone(), &call("mcp__files__list", "{\"path\":\"a\"}"));
    let item = answer.json()["output"][0].clone();
    assert_eq!((&item["namespace"], &item["name"]), (&"mcp__files".into(), &"list".into()), "{answer:?}");
    let wrong = called("/v1/responses", body, &call("mcp__files__list", "{}"));
    assert_eq!(wrong.status, 502, "it is checked by its schema: {wrong:?}");
}

#[test]
fn two_calls_never_have_one_id_in_another_dialect() {
    let tool = json!({"name": "f", "input_schema": {"type": "object", "properties": {}}});
    for stream in [true, false] {
        let body = json!({"max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "tools": [tool], "stream": stream});
        let answer = all_called("/v1/messages", body, &[call("f", "{}"), call("f", "{}")]);
        let text = answer.text();
        let ids: Vec<&str> = text
            .split(r#""type":"tool_use","id":""#)
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(ids.len() == 2 && ids[0] == "call_1" && ids[0] != ids[1], "{ids:?} {text}");
    }
}

#[test]
fn a_picture_that_cannot_be_given_to_the_client_is_no_answer() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    for stream in [true, false] {
        let store = MemoryStore::default();
        let body = json!({"messages": [{"role": "user", "content": "Draw."}], "stream": stream});
        let ask = |parts: Value| {
            let content = json!({"role": "model", "parts": parts});
            let whole = json!({"candidates": [{"content": content, "finishReason": "STOP"}]});
            let answer = if stream { format!("data: {whole}\n\n").into() } else { whole };
            answered_into(&store, "/v1/chat/completions", body.clone(), ProviderDialect::Gemini, answer)
        };
        assert_error(&ask(json!([picture])), 502, "response_invalid");
        let with_words = ask(json!([{"text": "Here."}, picture]));
        assert!(with_words.status == 200 && with_words.text().contains("Here."), "{with_words:?}");
        until("the journal names what is left out", || {
            let entries = store.query(&Query { limit: 1000, ..Query::default() }).unwrap();
            let named = |entry: &Entry| {
                entry.data.as_ref().is_some_and(|data| data["left"][0]["rule"] == "drop_media_output")
            };
            entries.iter().any(named).then_some(())
        });
    }
}
