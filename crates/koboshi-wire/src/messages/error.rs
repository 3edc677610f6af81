//! Errors in the envelope of this dialect.
//!
//! The official clients choose their exception by the status and show the message; inside a stream the word in `type` is all they have. An
//! overload is 529 `overloaded_error`, as Anthropic's own API has it. Claude Code retries by itself whenever it reads that word, whatever the
//! headers say, so the gateway gives it another status, and under that no error uses the word: neither the first nor the one while the target is
//! out of use. It shows the message as it is, with the time at which another try is worth it.

use std::borrow::Cow;

use bytes::Bytes;
use koboshi::fault::Kind;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;

/// The status of an overload in Anthropic's API.
pub const OVERLOADED: u16 = 529;

/// By these words Claude Code knows that the conversation must be made shorter.
const TOO_LONG: &str = "prompt is too long";

/// An error as the body of an answer.
#[must_use]
pub fn body(failure: &Failure<'_>) -> Bytes {
    let mut text = Vec::new();
    push(&mut text, failure);
    text.into()
}

/// Adds the envelope.
pub(super) fn push(text: &mut Vec<u8>, failure: &Failure<'_>) {
    let message = message(failure);
    let error = ErrorJson { r#type: word(failure), message: &message, koboshi: failure.koboshi };
    json::write(text, &Envelope { r#type: "error", error, request_id: failure.request_id });
}

/// The vendor's word for it.
fn word(failure: &Failure<'_>) -> &'static str {
    match failure.status {
        400 | 422 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        405..=499 => "invalid_request_error",
        OVERLOADED => "overloaded_error",
        _ => by_kind(failure),
    }
}

/// The word where the status says only that it is the server's fault.
fn by_kind(failure: &Failure<'_>) -> &'static str {
    match failure.kind {
        Kind::Timeout => "timeout_error",
        Kind::RateLimited | Kind::QuotaExceeded => "rate_limit_error",
        _ => "api_error",
    }
}

fn message<'a>(failure: &Failure<'a>) -> Cow<'a, str> {
    let mut message = Cow::Borrowed(failure.message);
    if failure.kind == Kind::ContextTooLarge && !message.to_ascii_lowercase().contains(TOO_LONG) {
        message = Cow::Owned(format!("{TOO_LONG}: {message}"));
    }
    message
}

#[derive(Serialize)]
struct Envelope<'a> {
    r#type: &'static str,
    error: ErrorJson<'a>,
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    r#type: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}
