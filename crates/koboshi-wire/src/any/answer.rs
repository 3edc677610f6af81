//! An answer that is no stream, in any dialect.

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::step::Usage;
use crate::whole::Whole;
use crate::writer::Head;
use crate::{Malformed, amend, chat, gemini, messages, responses};

/// Reads an answer.
///
/// # Errors
/// It is not one of this dialect.
pub fn read(dialect: Dialect, body: &[u8]) -> Result<Whole<'_>, Malformed> {
    match dialect {
        Dialect::Chat => chat::answer::read(body),
        Dialect::Messages => messages::answer::read(body),
        Dialect::Responses => responses::answer::read(body),
        Dialect::Gemini => gemini::answer::read(body),
    }
}

/// Writes an answer. `legacy` is for clients of chat completions that offered `functions`.
#[must_use]
pub fn write(
    dialect: Dialect,
    head: &Head,
    whole: &Whole<'_>,
    koboshi: Option<&Value>,
    legacy: bool,
) -> Bytes {
    match dialect {
        Dialect::Chat if legacy => chat::write_answer::write_legacy(head, whole, koboshi),
        Dialect::Chat => chat::write_answer::write(head, whole, koboshi),
        Dialect::Messages => messages::write_answer::write(head, whole, koboshi),
        Dialect::Responses => responses::write_answer::write(head, whole, koboshi),
        Dialect::Gemini => gemini::write_answer::write(head, whole, koboshi),
    }
}

/// The answer with tool calls as its finish reason in place of the limit that cut it, where the call that was cut is
/// whole now.
#[must_use]
pub fn ended_for_calls(dialect: Dialect, body: &Bytes) -> Bytes {
    amend::ended_for_calls(dialect, body)
}

/// The answer with other arguments in place of the values at these spans.
#[must_use]
pub fn with_arguments(dialect: Dialect, body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    match dialect {
        Dialect::Chat => chat::answer::with_arguments(body, changes),
        Dialect::Messages => messages::answer::with_arguments(body, changes),
        Dialect::Responses => responses::answer::with_arguments(body, changes),
        Dialect::Gemini => gemini::answer::with_arguments(body, changes),
    }
}

/// The answer with another cost.
#[must_use]
pub fn with_usage(dialect: Dialect, body: &Bytes, usage: &Usage) -> Bytes {
    match dialect {
        Dialect::Chat => chat::answer::with_usage(body, usage),
        Dialect::Messages => messages::answer::with_usage(body, usage),
        Dialect::Responses => responses::answer::with_usage(body, usage),
        Dialect::Gemini => gemini::answer::with_usage(body, usage),
    }
}

/// The answer with Koboshi's own object added.
#[must_use]
pub fn with_note(dialect: Dialect, body: &Bytes, koboshi: &Value) -> Bytes {
    match dialect {
        Dialect::Chat => chat::answer::with_note(body, koboshi),
        Dialect::Messages => messages::answer::with_note(body, koboshi),
        Dialect::Responses => responses::answer::with_note(body, koboshi),
        Dialect::Gemini => gemini::answer::with_note(body, koboshi),
    }
}

/// An error as the body of an answer.
#[must_use]
pub fn error(dialect: Dialect, failure: &Failure<'_>) -> Bytes {
    match dialect {
        Dialect::Chat => chat::error::body(failure),
        Dialect::Messages => messages::error::body(failure),
        Dialect::Responses => responses::error::body(failure),
        Dialect::Gemini => gemini::error::body(failure),
    }
}
