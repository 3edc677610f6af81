//! The JSON of our own chunks and answers.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::write_parts::{Part, UsageJson};
use crate::dialect::finish;
use crate::json;
use crate::step::Usage;
use crate::writer::Head;

/// A finish in the words of this dialect. What none of them fits is `OTHER`, never `STOP`.
pub(super) fn finish_word(reason: &str) -> &str {
    match reason {
        finish::STOP | finish::TOOL_CALLS => "STOP",
        finish::LENGTH | "model_context_window_exceeded" => "MAX_TOKENS",
        finish::CONTENT_FILTER | "refusal" => "SAFETY",
        "MAX_TOKENS"
        | "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "CONTINUATION"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => reason,
        _ => "OTHER",
    }
}

/// A cost as it stands in an answer.
pub(super) fn usage_json(usage: &Usage) -> Bytes {
    json::bytes(&UsageJson::of(usage))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    candidates: &'a [Candidate<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<UsageJson>,
    model_version: &'a str,
    response_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

impl<'a> Answer<'a> {
    pub(super) fn of(
        head: &'a Head,
        candidates: &'a [Candidate<'a>],
        usage: Option<&Usage>,
        koboshi: Option<&'a Value>,
    ) -> Self {
        Self {
            candidates,
            usage_metadata: usage.map(UsageJson::of),
            model_version: &head.model,
            response_id: &head.id,
            koboshi,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    index: u32,
}

impl<'a> Candidate<'a> {
    pub(super) fn of(index: u32, parts: &'a [Part<'a>], finish_reason: Option<&'a str>) -> Self {
        Self { content: Content { parts, role: "model" }, finish_reason, index }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    parts: &'a [Part<'a>],
    role: &'static str,
}
