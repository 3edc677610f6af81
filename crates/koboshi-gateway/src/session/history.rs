//! What the model gets of a conversation: the transcript as the messages of a chat request.
//!
//! The text of an answer is cut where it called tools: each part is one message with its calls, and the results follow it. A call without a
//! result says so, because providers refuse a call that nothing answers, and the model must know.

use koboshi::session::{Call, Log, Message, Role, ToolState, TurnSpec, cut};
use serde_json::{Value, json};

/// What the model gets where a tool's result is not there.
const UNKNOWN: &str =
    "The result of this call is unknown: the tool may or may not have run. Do not assume either.";
const EXPIRED: &str = "No result came in time. The tool may not have run.";

/// The request for the running turn; none where there is none.
pub(crate) fn request(log: &Log, model: &str) -> Option<Value> {
    let (spec, open) = log.running()?;
    let mut messages = Vec::new();
    for message in log.told().filter(|message| message.turn <= spec.turn) {
        match message.role {
            Role::User => messages.push(json!({"role": "user", "content": message.content})),
            Role::Assistant => answer(&mut messages, message),
        }
    }
    segments(&mut messages, &open.text, &open.calls, true);
    let mut request = json!({
        "model": model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
    });
    if let Some(fields) = request.as_object_mut().filter(|_| !spec.tools.is_empty()) {
        fields.insert("tools".to_owned(), tools(spec));
    }
    Some(request)
}

fn tools(spec: &TurnSpec) -> Value {
    let tool = |tool: &koboshi::session::Tool| {
        let empty = || json!({"type": "object", "properties": {}});
        json!({"type": "function", "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters.clone().unwrap_or_else(empty),
        }})
    };
    spec.tools.iter().map(tool).collect()
}

fn answer(messages: &mut Vec<Value>, message: &Message) {
    segments(messages, message.content.as_str().unwrap_or_default(), &message.calls, false);
}

/// An answer, part by part. Of one that is being written only the parts before its calls are included: what comes after them is written again.
fn segments(messages: &mut Vec<Value>, text: &str, calls: &[Call], is_open: bool) {
    let mut begin = 0;
    let mut rest = calls;
    while let Some(first) = rest.first() {
        let (now, later) = rest.split_at(rest.iter().take_while(|call| call.at == first.at).count());
        rest = later;
        let part = cut(text, first.at).and_then(|part| part.get(begin..)).unwrap_or_default();
        begin += part.len();
        let called: Vec<Value> = now
            .iter()
            .map(|call| {
                json!({"id": call.call, "type": "function", "function": {
                    "name": call.name,
                    "arguments": call.arguments.to_string(),
                }})
            })
            .collect();
        let content = Some(part).filter(|part| !part.is_empty());
        messages.push(json!({"role": "assistant", "content": content, "tool_calls": called}));
        messages.extend(
            now.iter()
                .map(|call| json!({"role": "tool", "tool_call_id": call.call, "content": result(call)})),
        );
    }
    let last = text.get(begin..).unwrap_or_default();
    if !is_open && !last.is_empty() {
        messages.push(json!({"role": "assistant", "content": last}));
    }
}

fn result(call: &Call) -> String {
    match (&call.state, &call.content) {
        (ToolState::Done, Some(Value::String(text))) => text.clone(),
        (ToolState::Done, Some(content)) => content.to_string(),
        (ToolState::Done, None) => "null".to_owned(),
        (ToolState::Unknown, _) => UNKNOWN.to_owned(),
        _ => EXPIRED.to_owned(),
    }
}
