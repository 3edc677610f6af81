//! OpenAI's errors, for chat completions and for responses.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Failure, Problem, in_seconds};
use crate::fall::ErrorCase;

/// What is wrong, in OpenAI's words. Responses have a few of their own.
pub(super) fn failure(problem: &Problem, is_response: bool) -> Failure {
    let conversation = if is_response { "input" } else { "messages" };
    match problem {
        Problem::Request { says, param } => request(says, param.as_deref()),
        Problem::Unknown { model } => {
            let says = format!("The model `{model}` does not exist or you do not have access to it.");
            new(404, &says, "invalid_request_error", None, "model_not_found")
        }
        Problem::Param { says } => new(400, says, "invalid_request_error", Some("model"), "invalid_value"),
        Problem::Prefill => {
            let says = "This model does not support assistant message prefill. The conversation must end with a user message.";
            request(says, Some(conversation))
        }
        Problem::Context { tokens, limit } => {
            let says = format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. \
                 Please reduce the length of the messages."
            );
            new(400, &says, "invalid_request_error", Some(conversation), "context_length_exceeded")
        }
        Problem::Case { case: ErrorCase::Overloaded, wait, .. } if is_response => {
            let says = "Our servers are currently overloaded. Please try again later.";
            with_wait(new(503, says, "service_unavailable_error", None, "server_is_overloaded"), *wait)
        }
        Problem::Case { case, wait, model } => with_wait(instead(*case, *wait, model), *wait),
    }
}

fn new(status: u16, message: &str, kind: &str, param: Option<&str>, code: impl Into<Value>) -> Failure {
    let code: Value = code.into();
    Failure::of(status, &json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
}

/// The request itself is wrong.
fn request(message: &str, param: Option<&str>) -> Failure {
    new(400, message, "invalid_request_error", param, Value::Null)
}

fn with_wait(mut failure: Failure, wait: Option<Duration>) -> Failure {
    if let Some(wait) = wait {
        failure.headers.push(("retry-after", in_seconds(wait)));
        failure.headers.push(("retry-after-ms", wait.as_millis().to_string()));
    }
    failure
}

/// An error that comes instead of an answer.
fn instead(case: ErrorCase, wait: Option<Duration>, model: &str) -> Failure {
    match case {
        ErrorCase::Status(status) => by_status(status),
        ErrorCase::Rate => limit(model, "requests per min (RPM)", 500, "requests", wait),
        ErrorCase::Quota => limit(model, "requests per day (RPD)", 10_000, "requests", wait),
        ErrorCase::Billing => new(
            429,
            "You exceeded your current quota, please check your plan and billing details. For more information on \
                 this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
            "insufficient_quota",
            None,
            "insufficient_quota",
        ),
        ErrorCase::Overloaded => Failure::of(
            529,
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ),
        ErrorCase::Auth => new(
            401,
            "Incorrect API key provided: sk-sim-****************0000. You can find your API key at \
                 https://platform.openai.com/account/api-keys.",
            "invalid_request_error",
            None,
            "invalid_api_key",
        ),
        ErrorCase::Filter => filter(),
    }
}

fn by_status(status: u16) -> Failure {
    let edge = |says: &str, kind: &str| new(status, says, kind, None, status);
    match status {
        401 => instead(ErrorCase::Auth, None, ""),
        403 => new(
            403, "You do not have permission to do this.", "invalid_request_error", None, "permission_denied",
        ),
        404 => new(404, "Not Found", "invalid_request_error", None, Value::Null),
        408 => new(408, "Request timed out.", "invalid_request_error", None, "timeout"),
        413 => new(413, "Request entity too large.", "invalid_request_error", None, Value::Null),
        429 => new(429, "Too Many Requests", "requests", None, "rate_limit_exceeded"),
        400..500 => {
            new(status, "The request could not be served.", "invalid_request_error", None, Value::Null)
        }
        502 => edge("Bad gateway.", "cf_bad_gateway"),
        503 => edge("Service unavailable.", "cf_service_unavailable"),
        504 => edge("Gateway timeout.", "cf_gateway_timeout"),
        529 => instead(ErrorCase::Overloaded, None, ""),
        _ => new(
            status,
            "The server had an error while processing your request. Sorry about that!",
            "server_error",
            None,
            Value::Null,
        ),
    }
}

fn limit(model: &str, limit: &str, max: u64, kind: &str, wait: Option<Duration>) -> Failure {
    let again = wait.map_or_else(String::new, |wait| format!(" Please try again in {}.", spelled(wait)));
    let says = format!(
        "Rate limit reached for {model} in organization org-sim on {limit}: Limit {max}, Used {max}, Requested 1.{again} \
             Visit https://platform.openai.com/account/rate-limits to learn more."
    );
    let mut failure = new(429, &says, kind, None, "rate_limit_exceeded");
    if let Some(wait) = wait {
        failure.headers = rate_headers(max, 0, &spelled(wait));
    }
    failure
}

fn filter() -> Failure {
    let says = "The response was filtered due to the prompt triggering the content management policy. Please modify \
                    your prompt and retry.";
    let found = json!({
        "hate": {"filtered": false, "severity": "safe"}, "violence": {"filtered": true, "severity": "high"},
    });
    let inner = json!({"code": "ResponsibleAIPolicyViolation", "content_filter_result": found});
    let body = json!({"error": {
        "message": says, "type": null, "param": "prompt", "code": "content_filter", "status": 400, "innererror": inner,
    }});
    Failure::of(400, &body)
}

/// The rate-limit headers that OpenAI sends with every good answer.
pub(super) fn limits() -> Vec<(&'static str, String)> {
    let mut all = rate_headers(10_000, 9_999, "6ms");
    all.extend([
        ("x-ratelimit-limit-tokens", "30000000".to_owned()),
        ("x-ratelimit-remaining-tokens", "29999000".to_owned()),
        ("x-ratelimit-reset-tokens", "2ms".to_owned()),
    ]);
    all
}

fn rate_headers(limit: u64, left: u64, reset: &str) -> Vec<(&'static str, String)> {
    vec![
        ("x-ratelimit-limit-requests", limit.to_string()),
        ("x-ratelimit-remaining-requests", left.to_string()),
        ("x-ratelimit-reset-requests", reset.to_owned()),
    ]
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
