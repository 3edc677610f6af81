//! Questions that a test asks, and whether what came back is the whole answer of a healthy provider.

use koboshi_sim::Ask;
use serde_json::{Value, json};

use crate::client::Answer;

/// A question to the model `m`.
pub fn chat(stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "tell me about the doll"}]})
}

/// A question with a tool on offer.
pub fn with_tools(stream: bool, question: &str) -> Value {
    let schema = |field: &str| {
        json!({"type": "object", "properties": {field: {"type": "string"}, "count": {"type": "integer"}},
            "required": [field, "count"], "additionalProperties": false})
    };
    json!({
        "model": "m", "stream": stream, "messages": [{"role": "user", "content": question}],
        "tools": [
            {"type": "function", "function": {"name": "look_up", "parameters": schema("city")}},
            {"type": "function", "function": {"name": "write_down", "parameters": schema("note")}},
        ],
    })
}

/// The answer of a healthy provider: the message of the first choice.
pub fn healthy(body: &Value) -> Value {
    let mut whole = body.clone();
    whole["stream"] = json!(false);
    let text = whole.to_string();
    let play = koboshi_sim::play(&Ask { model: "ok", body: text.as_bytes(), ..Ask::default() });
    let answer: Vec<u8> = play.beats.flat_map(|beat| beat.bytes).collect();
    serde_json::from_slice::<Value>(&answer).unwrap()["choices"][0]["message"].clone()
}

/// The text of a healthy answer.
pub fn healthy_text(body: &Value) -> String {
    healthy(body)["content"].as_str().unwrap().to_owned()
}

/// The calls of a healthy answer: name and arguments, read.
pub fn healthy_calls(body: &Value) -> Vec<(String, Value)> {
    let message = healthy(body);
    let calls = message["tool_calls"].as_array().unwrap().iter();
    let call = |call: &Value| {
        let function = &call["function"];
        let arguments = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
        (function["name"].as_str().unwrap().to_owned(), arguments)
    };
    calls.map(call).collect()
}

/// The answer is the healthy one, whole.
pub fn assert_whole(answer: &Answer, body: &Value) {
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    assert_eq!(answer.content(), healthy_text(body), "{}", answer.text());
    assert_eq!(answer.finish().as_deref(), Some("stop"));
    assert_eq!(answer.error(), None);
    if answer.is_stream() {
        assert!(answer.is_done(), "{}", answer.text());
    }
}

/// The answer makes the healthy calls, whole and valid.
pub fn assert_calls(answer: &Answer, body: &Value) {
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    let read = |(name, arguments): (String, String)| {
        let read = serde_json::from_str(&arguments).unwrap_or_else(|_| panic!("{name}: {arguments}"));
        (name, read)
    };
    let calls: Vec<(String, Value)> = answer.calls().into_iter().map(read).collect();
    assert_eq!(calls, healthy_calls(body), "{}", answer.text());
    assert_eq!(answer.finish().as_deref(), Some("tool_calls"));
    assert_eq!(answer.error(), None);
    if answer.is_stream() {
        assert!(answer.is_done(), "{}", answer.text());
    }
}
