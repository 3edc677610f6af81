//! Errors for a client of this dialect: the OpenAI envelope, and the error of a response that failed.
//!
//! The words are chosen so that the official clients raise the right class and Codex does the right thing: stop and show the time, wait for
//! the stated length, or retry at once. The `koboshi` object stands inside `error`, because that is the part that a client hands to its
//! user.

use std::borrow::Cow;

use bytes::Bytes;
use koboshi::fault::Kind;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;

/// What an error object says. Fields that a form of it does not have are left out.
#[derive(Serialize)]
pub(super) struct ErrorJson<'a> {
    code: Option<&'a str>,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_in_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

#[derive(Serialize)]
struct ErrorEnvelope<'a> {
    error: ErrorJson<'a>,
}

/// An error as the body of an answer.
///
/// A limit that opens at a known time and that the client is not to wait for by itself is `usage_limit_reached`: Codex stops at once and
/// shows the time. (It looks for it under status 429 only.)
#[must_use]
pub fn body(failure: &Failure<'_>) -> Bytes {
    let (kind, code) = if is_usage_limit(failure) {
        ("usage_limit_reached", Some("usage_limit_reached"))
    } else {
        words(failure.kind, failure.status)
    };
    let error = ErrorJson {
        code: code.or(failure.code).or(Some(failure.kind.name())),
        message: Cow::Borrowed(failure.message),
        r#type: Some(kind),
        param: Some(failure.param),
        resets_at: failure.resets_at.filter(|_| is_usage_limit(failure)),
        resets_in_seconds: failure.retry_after.filter(|_| is_usage_limit(failure)),
        koboshi: failure.koboshi,
    };
    json::bytes(&ErrorEnvelope { error })
}

/// The error of a response that failed after its stream had begun.
pub(super) fn in_stream<'a>(failure: &Failure<'a>) -> ErrorJson<'a> {
    let code = stream_code(failure);
    ErrorJson {
        code: Some(code),
        message: with_wait(failure, code),
        r#type: None,
        param: None,
        resets_at: failure.resets_at,
        resets_in_seconds: failure.resets_at.and(failure.retry_after),
        koboshi: failure.koboshi,
    }
}

fn is_usage_limit(failure: &Failure<'_>) -> bool {
    failure.is_final
        && failure.status == 429
        && failure.resets_at.is_some()
        && matches!(failure.kind, Kind::RateLimited | Kind::QuotaExceeded | Kind::CoolingDown)
}

/// `type` and `code` as clients of the dialect know them; without a code where they know none.
fn words(kind: Kind, status: u16) -> (&'static str, Option<&'static str>) {
    match kind {
        Kind::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
        Kind::QuotaExceeded => ("insufficient_quota", Some("insufficient_quota")),
        Kind::ContextTooLarge => ("invalid_request_error", Some("context_length_exceeded")),
        Kind::ContentFiltered => ("invalid_request_error", Some("content_filter")),
        Kind::ModelNotFound => ("invalid_request_error", Some("model_not_found")),
        // A dead credential of the gateway goes out as 502, and is not the client's.
        Kind::Unauthorized | Kind::TokenExpired if status < 500 => {
            ("authentication_error", Some("invalid_api_key"))
        }
        Kind::PermissionDenied if status < 500 => ("permission_error", None),
        // Under 503 this word makes Codex stop, which is right: it would try 30 times.
        Kind::Overloaded => ("service_unavailable_error", Some("server_is_overloaded")),
        _ if (400..500).contains(&status) => ("invalid_request_error", None),
        _ => ("server_error", None),
    }
}

/// The code of a failed response. Codex stops for `insufficient_quota`, `context_length_exceeded`, `invalid_prompt` and
/// `server_is_overloaded`, waits after `rate_limit_exceeded` as long as the text says, and retries at once for the rest.
fn stream_code(failure: &Failure<'_>) -> &'static str {
    match failure.kind {
        Kind::QuotaExceeded => "insufficient_quota",
        Kind::RateLimited if failure.is_final => "insufficient_quota",
        Kind::RateLimited => "rate_limit_exceeded",
        Kind::CoolingDown | Kind::Overloaded | Kind::Parked if failure.is_final => "server_is_overloaded",
        Kind::CoolingDown => "rate_limit_exceeded",
        Kind::ContextTooLarge => "context_length_exceeded",
        Kind::InvalidRequest
        | Kind::InvalidMessage
        | Kind::ContentFiltered
        | Kind::ModelNotFound
        | Kind::MessageTooLarge
        | Kind::ConversationNotFound => "invalid_prompt",
        _ => "server_error",
    }
}

/// The sentence, with the wait in the words that Codex parses.
fn with_wait<'a>(failure: &Failure<'a>, code: &str) -> Cow<'a, str> {
    match failure.retry_after {
        Some(seconds) if code == "rate_limit_exceeded" && !failure.message.contains("try again in") => {
            Cow::Owned(format!("{} Please try again in {seconds}s.", failure.message.trim_end()))
        }
        _ => Cow::Borrowed(failure.message),
    }
}
