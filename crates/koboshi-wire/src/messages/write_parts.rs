//! The blocks of a request as they are written.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A message of a request.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    #[serde(serialize_with = "short")]
    pub(super) content: Vec<Block<'a>>,
}

#[derive(Debug, Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
}

/// A block of a request.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: String,
        name: Cow<'a, str>,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "short")]
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
}

impl Block<'_> {
    pub(super) const fn is_thought(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }
}

/// Where an image or a document comes from.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

/// One text alone is written as a text.
fn short<S: Serializer>(blocks: &[Block<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    match blocks {
        [Block::Text { text }] => text.serialize(serializer),
        blocks => blocks.serialize(serializer),
    }
}
