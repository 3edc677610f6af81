//! The frames of a stream, one value each: an `event:` line with the type, a `data:` line with the JSON.

use serde::Serialize;
use serde_json::Value;

use super::output::UsageJson;
use crate::json;
use crate::step::Usage;

/// Adds one event to a stream.
pub(super) fn push(stream: &mut Vec<u8>, event: &Event<'_>) {
    stream.extend_from_slice(b"event: ");
    stream.extend_from_slice(event.name().as_bytes());
    stream.extend_from_slice(b"\ndata: ");
    json::write(stream, event);
    stream.extend_from_slice(b"\n\n");
}

/// An event.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: u32, content_block: Block<'a> },
    ContentBlockDelta { index: u32, delta: Delta<'a> },
    ContentBlockStop { index: u32 },
    MessageDelta { delta: End<'a>, usage: UsageJson },
    MessageStop {},
    Ping {},
}

impl Event<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop {} => "message_stop",
            Self::Ping {} => "ping",
        }
    }
}

/// An answer, whole or as it begins.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    pub(super) content: Vec<Block<'a>>,
    pub(super) stop_reason: Option<&'a str>,
    stop_sequence: (),
    usage: UsageJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

impl<'a> Message<'a> {
    /// An answer without content yet.
    pub(super) fn of(id: &'a str, model: &'a str, usage: &Usage, koboshi: Option<&'a Value>) -> Self {
        Self {
            id,
            r#type: "message",
            role: "assistant",
            model,
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: (),
            usage: UsageJson::of(usage),
            koboshi,
        }
    }
}

/// A block of an answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: std::borrow::Cow<'a, str>, name: &'a str, input: Box<serde_json::value::RawValue> },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(super) enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: &'a str },
}

#[derive(Debug, Serialize)]
pub(super) struct End<'a> {
    pub(super) stop_reason: &'a str,
    pub(super) stop_sequence: (),
}
