//! How parts are written, in requests and in answers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::form::free_text;
use crate::step::Usage;

/// Where the text of arguments stands that are no JSON object: the dialect has room for an object only.
pub(super) const RAW: &str = "_raw";

/// A part of a content: one of its fields is set, besides the two of thinking.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file_data: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'a str>,
}

impl<'a> Part<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

/// Data in the body.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    pub(super) mime_type: &'a str,
    pub(super) data: &'a str,
}

/// Data somewhere else.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File<'a> {
    pub(super) mime_type: &'static str,
    pub(super) file_uri: &'a str,
}

/// A call.
#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: Cow<'a, str>,
    pub(super) args: Cow<'a, RawValue>,
}

/// What came back.
#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) response: Cow<'a, RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Part<'a>>,
}

/// Arguments as the object that the dialect wants. Never with a line end in it, because it stands on the one line of an event.
pub(super) fn object(arguments: &str, is_free_text: bool) -> Cow<'_, RawValue> {
    if is_free_text {
        return Cow::Owned(raw(free_text::wrapped(arguments)));
    }
    let text = arguments.trim_ascii();
    if text.is_empty() {
        return Cow::Owned(raw("{}".to_owned()));
    }
    match serde_json::from_str::<&RawValue>(text) {
        // Line ends stand only between values: inside a text they are escaped.
        Ok(_) if text.starts_with('{') && text.contains(['\n', '\r']) => {
            Cow::Owned(raw(text.replace(['\n', '\r'], " ")))
        }
        Ok(value) if text.starts_with('{') => Cow::Borrowed(value),
        _ => Cow::Owned(raw(serde_json::json!({ RAW: arguments }).to_string())),
    }
}

/// A JSON text that we wrote ourselves as a value.
pub(super) fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_default()
}

/// The cost of an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageJson {
    prompt_token_count: u64,
    candidates_token_count: u64,
    total_token_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cached_content_token_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    thoughts_token_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "so serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl UsageJson {
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            prompt_token_count: usage.input,
            candidates_token_count: usage.output.saturating_sub(usage.reasoning),
            total_token_count: usage.input.saturating_add(usage.output),
            cached_content_token_count: usage.cached,
            thoughts_token_count: usage.reasoning,
        }
    }
}
