//! Errors for clients of the chat dialect, as the official clients expect them.
//!
//! `type` and `code` are OpenAI's words where it has one for the kind of fault, because clients act on them. Where it has none, the code is
//! ours if one is given, else the name of the kind.

use bytes::Bytes;
use koboshi::fault::Kind;

use super::frames::{ErrorBody, error_body, error_frame};
use crate::failure::Failure;

/// An error as the body of an answer.
///
/// ```
/// use koboshi::fault::Kind;
/// use koboshi_wire::failure::Failure;
///
/// let failure = Failure {
///     kind: Kind::ContextTooLarge, status: 400, message: "It is too long.", code: None, param: None, request_id: None,
///     retry_after: None, resets_at: None, is_final: true, koboshi: None,
/// };
/// let body = koboshi_wire::chat::error::body(&failure);
/// assert_eq!(body, r#"{"error":{"message":"It is too long.","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}"#);
/// ```
#[must_use]
pub fn body(failure: &Failure<'_>) -> Bytes {
    error_body(&content(failure))
}

/// The same inside a stream, which ends with it.
#[must_use]
pub fn frame(failure: &Failure<'_>) -> Bytes {
    error_frame(&content(failure))
}

fn content<'a>(failure: &Failure<'a>) -> ErrorBody<'a> {
    let (kind, code) = words(failure.kind);
    ErrorBody {
        message: failure.message,
        kind,
        code: code.or(failure.code).or(Some(failure.kind.name())),
        param: failure.param,
        koboshi: failure.koboshi,
    }
}

/// `type`, and `code` where OpenAI has a word for it.
const fn words(kind: Kind) -> (&'static str, Option<&'static str>) {
    match kind {
        Kind::RateLimited => ("rate_limit_error", Some("rate_limit_exceeded")),
        Kind::QuotaExceeded => ("insufficient_quota", Some("insufficient_quota")),
        Kind::ContextTooLarge => ("invalid_request_error", Some("context_length_exceeded")),
        Kind::ContentFiltered => ("invalid_request_error", Some("content_filter")),
        Kind::ModelNotFound => ("invalid_request_error", Some("model_not_found")),
        Kind::MessageTooLarge | Kind::InvalidRequest => ("invalid_request_error", None),
        Kind::Unauthorized => ("authentication_error", Some("invalid_api_key")),
        Kind::PermissionDenied => ("permission_error", None),
        _ => ("server_error", None),
    }
}
