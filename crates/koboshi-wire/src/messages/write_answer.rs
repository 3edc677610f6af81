//! An answer that is no stream, for a client of this dialect.

use bytes::Bytes;
use serde_json::Value;

use super::frames::{Block, Message};
use super::{arguments, ids, output};
use crate::dialect::Dialect;
use crate::form::Thought;
use crate::json;
use crate::whole::Whole;
use crate::writer::Head;

/// An answer that is no stream. The dialect has room for one choice: the first.
#[must_use]
pub fn write(head: &Head, whole: &Whole<'_>, koboshi: Option<&Value>) -> Bytes {
    let usage = whole.usage.unwrap_or_default();
    let mut message = Message::of(&head.id, &head.model, &usage, koboshi);
    if let Some(choice) = whole.choices.first() {
        message.content.extend(choice.thoughts.iter().filter_map(thought));
        let texts = [&choice.text, &choice.refused].into_iter().flatten();
        message.content.extend(texts.map(|text| Block::Text { text }));
        message.content.extend(choice.calls.iter().map(|call| Block::ToolUse {
            id: ids::fitted(call.id.as_deref().unwrap_or_default()),
            name: call.name.as_deref().unwrap_or_default(),
            input: arguments::value(&call.arguments, call.free_text),
        }));
        let usual = if choice.calls.is_empty() { "stop" } else { "tool_calls" };
        message.stop_reason = Some(output::finish_word(choice.finish.as_deref().unwrap_or(usual)));
    }
    json::bytes(&message)
}

/// A thought as a block. Only this vendor's own signatures are written; a hidden thought of another vendor is left out.
fn thought<'a>(thought: &'a Thought<'_>) -> Option<Block<'a>> {
    let signature = thought.signature.as_ref().filter(|signature| signature.is_of(Dialect::Messages));
    match signature {
        Some(signature) if thought.hidden => Some(Block::RedactedThinking { data: &signature.data }),
        None if thought.text.is_empty() => None,
        _ => Some(Block::Thinking {
            thinking: &thought.text,
            signature: signature.map_or("", |signature| &signature.data),
        }),
    }
}
