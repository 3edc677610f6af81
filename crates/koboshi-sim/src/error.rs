//! The errors of a real vendor: its words, its codes, its headers.
//!
//! Each is worded so that a reader of errors (the core's classifier, an SDK, a person) takes it for what is meant; a
//! test asks the classifier about every name.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::fall::Trouble;
use crate::order::Wrong;

/// An error instead of an answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Failure {
    fn new(status: u16, message: &str, kind: &str, param: Option<&str>, code: impl Into<Value>) -> Self {
        let code: Value = code.into();
        Self::of(status, &json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
    }

    fn of(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::from(body.to_string()) }
    }

    /// The request itself is wrong.
    pub(crate) fn request(message: &str, param: Option<&str>) -> Self {
        Self::new(400, message, "invalid_request_error", param, Value::Null)
    }

    /// The name of the model is wrong.
    pub(crate) fn name(wrong: &Wrong, model: &str) -> Self {
        match wrong {
            Wrong::Unknown => {
                let model = excerpt(model, 100);
                let says = format!("The model `{model}` does not exist or you do not have access to it.");
                Self::new(404, &says, "invalid_request_error", None, "model_not_found")
            }
            Wrong::Param(says) => {
                Self::new(400, &excerpt(says, 600), "invalid_request_error", Some("model"), "invalid_value")
            }
        }
    }

    /// The conversation ends with the assistant's words, and this vendor does not go on from there.
    pub(crate) fn prefill() -> Self {
        let says = "This model does not support assistant message prefill. The conversation must end with a user message.";
        Self::request(says, Some("messages"))
    }

    /// More tokens than the model takes.
    pub(crate) fn context(tokens: u64, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or_else(|| tokens.saturating_sub(1).min(8192));
        let says = format!(
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. \
             Please reduce the length of the messages."
        );
        Self::new(400, &says, "invalid_request_error", Some("messages"), "context_length_exceeded")
    }

    /// An error that comes instead of an answer.
    pub(crate) fn trouble(trouble: Trouble, wait: Option<Duration>, model: &str) -> Self {
        let model = excerpt(model.split('?').next().unwrap_or_default(), 100);
        let mut failure = match trouble {
            Trouble::Status(status) => Self::status(status),
            Trouble::Rate => Self::limit(&model, "requests per min (RPM)", 500, "requests", wait),
            Trouble::Quota => Self::limit(&model, "requests per day (RPD)", 10_000, "requests", wait),
            Trouble::Billing => Self::new(
                429,
                "You exceeded your current quota, please check your plan and billing details. For more information on \
                 this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
                "insufficient_quota",
                None,
                "insufficient_quota",
            ),
            Trouble::Overloaded => Self::of(
                529,
                &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ),
            Trouble::Auth => Self::new(
                401,
                "Incorrect API key provided: sk-sim-****************0000. You can find your API key at \
                 https://platform.openai.com/account/api-keys.",
                "invalid_request_error",
                None,
                "invalid_api_key",
            ),
            Trouble::Filter => Self::filter(),
        };
        if let Some(wait) = wait {
            failure.headers.push(("retry-after", in_seconds(wait)));
            failure.headers.push(("retry-after-ms", wait.as_millis().to_string()));
        }
        failure
    }

    fn status(status: u16) -> Self {
        let edge = |says: &str, kind: &str| Self::new(status, says, kind, None, status);
        match status {
            401 => Self::trouble(Trouble::Auth, None, ""),
            403 => Self::new(
                403, "You do not have permission to do this.", "invalid_request_error", None,
                "permission_denied",
            ),
            404 => Self::new(404, "Not Found", "invalid_request_error", None, Value::Null),
            408 => Self::new(408, "Request timed out.", "invalid_request_error", None, "timeout"),
            413 => Self::new(413, "Request entity too large.", "invalid_request_error", None, Value::Null),
            429 => Self::new(429, "Too Many Requests", "requests", None, "rate_limit_exceeded"),
            400..500 => Self::new(
                status,
                "The request could not be served.",
                "invalid_request_error",
                None,
                Value::Null,
            ),
            502 => edge("Bad gateway.", "cf_bad_gateway"),
            503 => edge("Service unavailable.", "cf_service_unavailable"),
            504 => edge("Gateway timeout.", "cf_gateway_timeout"),
            529 => Self::trouble(Trouble::Overloaded, None, ""),
            _ => Self::new(
                status,
                "The server had an error while processing your request. Sorry about that!",
                "server_error",
                None,
                Value::Null,
            ),
        }
    }

    fn limit(model: &str, limit: &str, most: u64, kind: &str, wait: Option<Duration>) -> Self {
        let again = wait.map_or_else(String::new, |wait| format!(" Please try again in {}.", spelled(wait)));
        let says = format!(
            "Rate limit reached for {model} in organization org-sim on {limit}: Limit {most}, Used {most}, Requested 1.{again} \
             Visit https://platform.openai.com/account/rate-limits to learn more."
        );
        let mut failure = Self::new(429, &says, kind, None, "rate_limit_exceeded");
        if let Some(wait) = wait {
            failure.headers = rate_headers(most, 0, &spelled(wait));
        }
        failure
    }

    fn filter() -> Self {
        let says = "The response was filtered due to the prompt triggering the content management policy. Please modify \
                    your prompt and retry.";
        let found = json!({
            "hate": {"filtered": false, "severity": "safe"}, "violence": {"filtered": true, "severity": "high"},
        });
        let inner = json!({"code": "ResponsibleAIPolicyViolation", "content_filter_result": found});
        let body = json!({"error": {
            "message": says, "type": null, "param": "prompt", "code": "content_filter", "status": 400, "innererror": inner,
        }});
        Self::of(400, &body)
    }
}

/// The error object of a good answer that turned bad.
pub(crate) fn in_band() -> Value {
    json!({"error": {
        "message": "The server had an error while processing your request. Sorry about that!",
        "type": "server_error", "param": null, "code": "internal_error",
    }})
}

/// What a vendor says of its limits with every answer.
pub(crate) fn rate_headers(limit: u64, left: u64, reset: &str) -> Vec<(&'static str, String)> {
    vec![
        ("x-ratelimit-limit-requests", limit.to_string()),
        ("x-ratelimit-remaining-requests", left.to_string()),
        ("x-ratelimit-reset-requests", reset.to_owned()),
    ]
}

/// The page of a proxy that knows nothing of the API.
pub(crate) const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head>\n\
    <body><h1>Welcome</h1><p>This is the default page of the server.</p></body></html>\n";

/// Seconds for a header: whole ones if it can be.
fn in_seconds(wait: Duration) -> String {
    if wait.subsec_nanos() == 0 { wait.as_secs().to_string() } else { wait.as_secs_f64().to_string() }
}

/// A length as OpenAI writes it: `20ms`, `1.5s`, `6m0s`, `7h12m0s`.
fn spelled(wait: Duration) -> String {
    let (minutes, seconds) = (wait.as_secs() / 60, wait.as_secs() % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) if wait.as_secs() == 0 => format!("{}ms", wait.as_millis()),
        (0, 0) => format!("{}s", wait.as_secs_f64()),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// The beginning of a text, at most so many characters.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
