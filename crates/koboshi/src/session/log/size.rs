//! What events and messages take in memory, roughly: the limits of a log are about these.

use crate::session::event::{Body, Event};
use crate::session::transcript::Message;

/// What an event takes, roughly.
pub(super) fn event_size(event: &Event) -> usize {
    let text = match &event.body {
        Body::Content { data, .. } | Body::Reasoning { data, .. } => data.len(),
        Body::Accepted { content, .. } | Body::ToolCall { arguments: content, .. } => size_of_value(content),
        Body::ToolState { content: Some(content), .. } => size_of_value(content),
        _ => 256,
    };
    text + std::mem::size_of::<Event>()
}

/// What a message takes.
pub(super) fn size_of_message(message: &Message) -> usize {
    let calls = message
        .calls
        .iter()
        .map(|call| size_of_value(&call.arguments) + call.content.as_ref().map_or(0, size_of_value) + 128);
    size_of_value(&message.content) + calls.sum::<usize>() + 128
}

fn size_of_value(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len() + 16,
        Value::Array(parts) => parts.iter().map(size_of_value).sum::<usize>() + 16,
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + size_of_value(field)).sum::<usize>() + 16
        }
        _ => 16,
    }
}
