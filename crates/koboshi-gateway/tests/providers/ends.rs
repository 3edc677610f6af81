//! How answers with calls end, and what their ends state: as providers really write it, and as clients of any dialect must get it.

use koboshi_config::gateway::{ProviderConfig, ProviderDialect, ProviderKind};
use koboshi_config::secret::Secret;
use koboshi_store::MemoryStore;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::{ReceivedRequest, Server};

fn is_streamed(asked: &ReceivedRequest) -> bool {
    asked.body.contains("\"stream\":true")
}

/// An answer of a chat provider with these calls, as it was asked for: each streamed call is a frame of its own.
fn said(asked: &ReceivedRequest, calls: &[Value], finish: &str, usage: &Value) -> (u16, Value) {
    let around = |choice: Value| json!({"id": "c", "object": "x", "of_its_own": 7, "created": 1, "model": "m", "choices": [choice]});
    if !is_streamed(asked) {
        let message = json!({"role": "assistant", "content": "Well.", "tool_calls": calls});
        let mut whole = around(json!({"index": 0, "message": message, "finish_reason": finish}));
        whole["usage"] = usage.clone();
        return (200, whole);
    }
    let piece = |delta: Value| around(json!({"index": 0, "delta": delta, "finish_reason": null}));
    let mut frames = vec![piece(json!({"role": "assistant", "content": "Well."}))];
    frames.extend(calls.iter().map(|call| piece(json!({"tool_calls": [call]}))));
    let mut end = around(json!({"index": 0, "delta": {}, "finish_reason": finish}));
    end["usage"] = usage.clone();
    frames.push(end);
    let events: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    (200, format!("{events}data: [DONE]\n\n").into())
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn chat(server: &Server) -> ProviderConfig {
    let mut provider = provider(server.url("/v1"));
    provider.dialects = vec![ProviderDialect::Chat];
    provider
}

/// Asks providers of these names, in this order, with two tools.
fn ask(providers: Vec<(&str, ProviderConfig)>, path: &str, stream: bool) -> Answer {
    let mut config = config();
    let chain: Vec<String> = providers.iter().map(|(name, _)| format!("{name}/m")).collect();
    config.routes.insert("r".to_owned(), route(&chain.iter().map(String::as_str).collect::<Vec<_>>()));
    for (name, provider) in providers {
        config.providers.insert(name.to_owned(), provider);
    }
    let gateway = start(config, &MemoryStore::default()).unwrap();
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools: Vec<Value> = ["read", "list"]
        .iter()
        .map(|name| match path {
            "/v1/messages" => json!({"name": name, "input_schema": schema}),
            "/v1/responses" => json!({"type": "function", "name": name, "parameters": schema}),
            _ => json!({"type": "function", "function": {"name": name, "parameters": schema}}),
        })
        .collect();
    let mut body = json!({"model": "r", "stream": stream, "tools": tools});
    match path {
        "/v1/responses" => body["input"] = "Look.".into(),
        _ => body["messages"] = json!([{"role": "user", "content": "Look."}]),
    }
    match path {
        "/v1/messages" => body["max_tokens"] = 99.into(),
        "/v1/chat/completions" if stream => body["stream_options"] = json!({"include_usage": true}),
        _ => {}
    }
    let mut client = Client::to(gateway.address());
    client.send("POST", path, &[], body.to_string().as_bytes());
    client.read()
}

const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];

/// Calls as the client hears them: name and arguments.
fn heard(answer: &Answer, path: &str, stream: bool) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut calls: Vec<(String, String)> = Vec::new();
    if !stream {
        let whole = answer.json();
        let all = match path {
            "/v1/messages" => &whole["content"],
            "/v1/responses" => &whole["output"],
            _ => &whole["choices"][0]["message"]["tool_calls"],
        };
        for call in all.as_array().unwrap_or(&Vec::new()) {
            match call["type"].as_str() {
                Some("tool_use") => calls.push((text(&call["name"]), call["input"].to_string())),
                Some("function_call") => calls.push((text(&call["name"]), text(&call["arguments"]))),
                Some("function") => {
                    calls.push((text(&call["function"]["name"]), text(&call["function"]["arguments"])));
                }
                _ => {}
            }
        }
        return calls;
    }
    let mut places: Vec<Value> = Vec::new();
    for event in events(answer) {
        for piece in event["choices"][0]["delta"]["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            let at = places.iter().position(|place| *place == piece["index"]).unwrap_or_else(|| {
                places.push(piece["index"].clone());
                calls.push((text(&piece["function"]["name"]), String::new()));
                calls.len() - 1
            });
            calls[at].1.push_str(&text(&piece["function"]["arguments"]));
        }
        match event["type"].as_str() {
            Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
                calls.push((text(&event["content_block"]["name"]), String::new()));
            }
            Some("content_block_delta") if event["delta"]["type"] == "input_json_delta" => {
                calls.last_mut().unwrap().1.push_str(&text(&event["delta"]["partial_json"]));
            }
            Some("response.output_item.done") if event["item"]["type"] == "function_call" => {
                calls.push((text(&event["item"]["name"]), text(&event["item"]["arguments"])));
            }
            _ => {}
        }
    }
    calls
}

/// The events of a stream, but the mark at its end.
fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// Why it ended, as the client hears it.
fn end(answer: &Answer, path: &str, stream: bool) -> String {
    let events = if stream { events(answer) } else { vec![answer.json()] };
    let reasons = events.iter().filter_map(|event| {
        let found = match path {
            "/v1/messages" if stream => &event["delta"]["stop_reason"],
            "/v1/messages" => &event["stop_reason"],
            "/v1/responses" if stream && event["response"]["status"] == "in_progress" => return None,
            "/v1/responses" if stream => &event["response"]["status"],
            "/v1/responses" => &event["status"],
            _ => &event["choices"][0]["finish_reason"],
        };
        found.as_str().map(str::to_owned)
    });
    reasons.collect::<Vec<_>>().join(" ")
}

#[test]
fn calls_with_the_same_number_stay_separate() {
    for path in PATHS {
        let server = Server::start(|asked, _| {
            let calls = [
                call("a", "read", r#"{"path":"x"}"#),
                call("b", "list", r#"{"path":"#),
                json!({"index": 0, "function": {"arguments": "\"y\"}"}}),
                call("c", "list", r#"{"path":"z"}"#),
            ];
            said(asked, &calls, "tool_calls", &Value::Null)
        });
        let answer = ask(vec![("p", chat(&server))], path, true);
        let wanted = [("read", "x"), ("list", "y"), ("list", "z")]
            .map(|(name, file)| (name.to_owned(), json!({"path": file}).to_string()));
        assert_eq!(heard(&answer, path, true), wanted, "{path}: {answer:?}");
    }
}

#[test]
fn a_server_that_gives_each_piece_an_id_of_its_own_makes_one_call() {
    let server = Server::start(|asked, _| {
        let pieces = [call("a", "read", ""), call("b", "read", r#"{"path":"#), call("c", "read", r#""x"}"#)];
        said(asked, &pieces, "tool_calls", &Value::Null)
    });
    let answer = ask(vec![("p", chat(&server))], "/v1/messages", true);
    assert_eq!(heard(&answer, "/v1/messages", true), [("read".to_owned(), r#"{"path":"x"}"#.to_owned())]);
}

#[test]
fn in_another_dialect_the_end_names_the_calls_too() {
    for stream in [true, false] {
        for (calls, finish, wanted) in [
            (vec![call("a", "read", r#"{"path":"x"}"#)], "stop", "tool_use"),
            (vec![], "tool_calls", "end_turn"),
            (vec![], "stop", "end_turn"),
        ] {
            let server = Server::start(move |asked, _| said(asked, &calls, finish, &Value::Null));
            let answer = ask(vec![("p", chat(&server))], "/v1/messages", stream);
            assert_eq!(end(&answer, "/v1/messages", stream), wanted, "{finish}, {stream}: {answer:?}");
        }
    }
}

#[test]
fn a_cut_call_that_was_made_whole_ends_for_its_calls() {
    for path in PATHS {
        for stream in [true, false] {
            let server = Server::start(|asked, before| match before {
                0 => said(asked, &[call("a", "read", r#"{"path":"x"#)], "length", &Value::Null),
                _ => said(asked, &[call("b", "read", r#"{"path":"xy"}"#)], "tool_calls", &Value::Null),
            });
            let answer = ask(vec![("p", chat(&server))], path, stream);
            assert_eq!(
                heard(&answer, path, stream),
                [("read".to_owned(), r#"{"path":"xy"}"#.to_owned())],
                "{path}, {stream}: {answer:?}"
            );
            let wanted = match path {
                "/v1/messages" => "tool_use",
                "/v1/responses" => "completed",
                _ => "tool_calls",
            };
            assert_eq!(end(&answer, path, stream), wanted, "{path}, {stream}: {answer:?}");
            if (path, stream) == ("/v1/chat/completions", false) {
                assert_eq!(answer.json()["of_its_own"], 7, "the rest stays as it was");
            }
        }
    }
}

#[test]
fn a_call_that_another_target_corrected_stays_in_its_answer() {
    let messages = |asked: &ReceivedRequest, input: &str| {
        assert!(!is_streamed(asked));
        let input: Value = serde_json::from_str(input).unwrap_or_else(|_| input.into());
        let content = json!([{"type": "text", "text": "Well."}, {"type": "tool_use", "id": "t", "name": "read", "input": input}]);
        (
            200,
            json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}),
        )
    };
    let down = || (503, json!({"error": {"message": "down", "type": "server_error"}}));
    for path in PATHS {
        for stream in [true, false] {
            let of_messages = |server: &Server| ProviderConfig {
                base_url: Some(server.url("/v1")),
                keys: vec![Secret::new("sk-own")],
                ..ProviderConfig::new(ProviderKind::Anthropic)
            };
            let first = Server::start(move |asked, before| match before {
                0 => said(asked, &[call("a", "read", "path is x")], "tool_calls", &Value::Null),
                _ => down(),
            });
            let second = Server::start(move |asked, _| messages(asked, r#"{"path":"x"}"#));
            let answer = ask(vec![("one", chat(&first)), ("two", of_messages(&second))], path, stream);
            assert_eq!(
                heard(&answer, path, stream),
                [("read".to_owned(), r#"{"path":"x"}"#.to_owned())],
                "chat first: {path}, {stream}: {answer:?}"
            );
            if stream {
                continue;
            }
            let first = Server::start(move |asked, before| match before {
                0 => messages(asked, "path is x"),
                _ => down(),
            });
            let second = Server::start(|asked, _| {
                said(asked, &[call("a", "read", r#"{"path":"x"}"#)], "tool_calls", &Value::Null)
            });
            let answer = ask(vec![("one", of_messages(&first)), ("two", chat(&second))], path, stream);
            assert_eq!(
                heard(&answer, path, stream),
                [("read".to_owned(), r#"{"path":"x"}"#.to_owned())],
                "messages first: {path}, {stream}: {answer:?}"
            );
        }
    }
}

#[test]
fn the_cost_is_stated_once() {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
    for (alone, both, calls) in
        [(false, false, false), (true, false, false), (true, true, false), (true, true, true)]
    {
        let cost = usage.clone();
        let server = Server::start(move |asked, _| {
            let called = [call("a", "read", r#"{"path":"x"}"#)];
            let called = if calls { &called[..] } else { &[] };
            let at_the_end = if alone && !both { &Value::Null } else { &cost };
            let (status, answer) = said(asked, called, "stop", at_the_end);
            let frame =
                json!({"id": "c", "object": "x", "created": 1, "model": "m", "choices": [], "usage": cost});
            let answer = match answer {
                Value::String(events) if alone => {
                    Value::String(events.replace("data: [DONE]", &format!("data: {frame}\n\ndata: [DONE]")))
                }
                answer => answer,
            };
            (status, answer)
        });
        let answer = ask(vec![("p", chat(&server))], "/v1/chat/completions", true);
        // What the upstream states twice is stated twice.
        let times = if both { 2 } else { 1 };
        assert_eq!(answer.text().matches("\"prompt_tokens\":7").count(), times, "{alone}: {answer:?}");
    }
}
