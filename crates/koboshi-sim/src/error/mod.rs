//! The errors of real vendors: their messages, their codes, their headers.
//!
//! Each is worded so that a reader of errors (the core's classifier, an SDK, a person) takes it for what is meant; a
//! test asks the classifier about every name in every dialect.

mod anthropic;
mod google;
mod openai;

use std::time::Duration;

use bytes::Bytes;
use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::fall::ErrorCase;
use crate::order::InvalidName;

/// An error instead of an answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

/// What is wrong, in no dialect.
#[derive(Debug, Clone)]
pub(crate) enum Problem {
    /// The request itself.
    Request { says: String, param: Option<String> },
    /// There is no such model.
    Unknown { model: String },
    /// A parameter in the name of the model.
    Param { says: String },
    /// The conversation ends with a text of the assistant, and this vendor does not continue it.
    Prefill,
    /// More tokens than the model takes.
    Context { tokens: u64, limit: u64 },
    /// What the name asks for.
    Case { case: ErrorCase, wait: Option<Duration>, model: String },
}

/// What only the answer knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorContext<'a> {
    /// Wall time in seconds since 1970.
    pub(crate) wall: i64,
    /// Id of the request.
    pub(crate) request: &'a str,
}

impl Problem {
    pub(crate) fn name(wrong: InvalidName, model: &str) -> Self {
        match wrong {
            InvalidName::Unknown => Self::Unknown { model: excerpt(model, 100) },
            InvalidName::Param(says) => Self::Param { says: excerpt(&says, 600) },
        }
    }

    pub(crate) fn context(tokens: u64, limit: Option<u64>) -> Self {
        Self::Context { tokens, limit: limit.unwrap_or_else(|| tokens.saturating_sub(1).min(8192)) }
    }

    pub(crate) fn of_case(case: ErrorCase, wait: Option<Duration>, model: &str) -> Self {
        Self::Case { case, wait, model: excerpt(model.split('?').next().unwrap_or_default(), 100) }
    }

    /// As a vendor writes it.
    pub(crate) fn failure(&self, dialect: Dialect, scene: ErrorContext<'_>) -> Failure {
        match dialect {
            Dialect::Chat => openai::failure(self, false),
            Dialect::Responses => openai::failure(self, true),
            Dialect::Messages => anthropic::failure(self, scene),
            Dialect::Gemini => google::failure(self),
        }
    }
}

impl Failure {
    fn of(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::from(body.to_string()) }
    }
}

/// The error object of a good answer that turned bad.
pub(crate) fn in_band(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Responses => json!({"error": {
            "message": "The server had an error while processing your request. Sorry about that!",
            "type": "server_error", "param": null, "code": "internal_error",
        }}),
        Dialect::Messages => {
            json!({"type": "error", "error": {"type": "api_error", "message": "Internal server error"}})
        }
        Dialect::Gemini => json!({"error": {
            "code": 500, "message": "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
            "status": "INTERNAL",
        }}),
    }
}

/// The page of a proxy that knows nothing of the API.
pub(crate) const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head>\n\
    <body><h1>Welcome</h1><p>This is the default page of the server.</p></body></html>\n";

/// The headers that every answer of a vendor has.
pub(crate) fn headers(dialect: Dialect, kind: &'static str, request: &str) -> Vec<(&'static str, String)> {
    let mut all = vec![("content-type", kind.to_owned())];
    match dialect {
        Dialect::Chat | Dialect::Responses => all.extend([
            ("x-request-id", request.to_owned()),
            ("openai-version", "2020-10-01".to_owned()),
            ("openai-organization", "org-sim".to_owned()),
        ]),
        Dialect::Messages => all.extend([
            ("request-id", request.to_owned()),
            ("anthropic-organization-id", "org-sim".to_owned()),
        ]),
        Dialect::Gemini => all.extend([("server", "sim".to_owned()), ("vary", "Origin".to_owned())]),
    }
    all
}

/// The rate-limit headers that a vendor sends with every good answer.
pub(crate) fn limits(dialect: Dialect, wall: i64) -> Vec<(&'static str, String)> {
    match dialect {
        Dialect::Chat | Dialect::Responses => openai::limits(),
        Dialect::Messages => anthropic::limits(wall),
        Dialect::Gemini => Vec::new(),
    }
}

/// The answer to a prompt that Google does not let through: a good one, without candidates.
pub(crate) fn blocked(model: &str) -> Value {
    google::blocked(model)
}

/// Seconds for a header: whole ones if it can be.
fn in_seconds(wait: Duration) -> String {
    if wait.subsec_nanos() == 0 { wait.as_secs().to_string() } else { wait.as_secs_f64().to_string() }
}

/// The beginning of a text, at most this many characters.
pub(crate) fn excerpt(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}
