//! An error in Google's envelope.
//!
//! `status` is the name that Google's table gives to the HTTP status. The details are those that real clients read: Gemini CLI waits as long as
//! `RetryInfo` says. Koboshi's own object stands inside `error`, as in every dialect.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::json;

/// Whose error it is, in `ErrorInfo`. Not a name of Google's: those mean more to its clients than we could.
const DOMAIN: &str = "koboshi";

/// The body of an error. In a stream it stands by itself, without `data:`.
#[must_use]
pub fn body(failure: &Failure<'_>) -> Bytes {
    json::bytes(&Envelope {
        error: ErrorJson {
            code: failure.status,
            message: failure.message,
            status: status_of(failure.status),
            details: details(failure),
            koboshi: failure.koboshi,
        },
    })
}

/// Google's name for an HTTP status.
#[must_use]
pub fn status_of(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        // 402 is prepaid credit that is used up.
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        412 => "FAILED_PRECONDITION",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        408 | 504 => "DEADLINE_EXCEEDED",
        502 | 503 | 529 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

fn details(failure: &Failure<'_>) -> Vec<Value> {
    let reason = failure.code.unwrap_or_else(|| failure.kind.name()).to_ascii_uppercase();
    let mut metadata = Map::new();
    metadata.insert("kind".to_owned(), failure.kind.name().into());
    if let Some(at) = failure.resets_at {
        // Values of this map are texts.
        metadata.insert("resets_at".to_owned(), at.to_string().into());
    }
    let mut all = vec![json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": DOMAIN,
        "metadata": metadata,
    })];
    if let Some(seconds) = failure.retry_after {
        all.push(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{seconds}s"),
        }));
    }
    if let Some(field) = failure.param {
        all.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": failure.message}],
        }));
    }
    if let Some(id) = failure.request_id {
        all.push(json!({
            "@type": "type.googleapis.com/google.rpc.RequestInfo",
            "requestId": id,
            "servingData": "",
        }));
    }
    all
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    code: u16,
    message: &'a str,
    status: &'static str,
    details: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}
