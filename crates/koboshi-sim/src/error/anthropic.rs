//! Anthropic's errors.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{ErrorContext, Failure, Problem, in_seconds};
use crate::fall::ErrorCase;

/// What is wrong, in Anthropic's words.
pub(super) fn failure(problem: &Problem, scene: ErrorContext<'_>) -> Failure {
    let new = |status: u16, kind: &str, says: &str| {
        let error = json!({"type": kind, "message": says});
        Failure::of(status, &json!({"type": "error", "error": error, "request_id": scene.request}))
    };
    let request = |says: &str| new(400, "invalid_request_error", says);
    match problem {
        Problem::Request { says, param } => match param {
            Some(param) if !says.contains(param.as_str()) => request(&format!("{param}: {says}")),
            _ => request(says),
        },
        Problem::Unknown { model } => new(404, "not_found_error", &format!("model: {model}")),
        Problem::Param { says } => request(&format!("model: {says}")),
        Problem::Prefill => request(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ),
        Problem::Context { tokens, limit } => {
            request(&format!("prompt is too long: {tokens} tokens > {limit} maximum"))
        }
        Problem::Case { case, wait, .. } => {
            let (status, kind, says) = instead(*case);
            let mut failure = new(status, kind, says);
            match case {
                ErrorCase::Rate if wait.is_some() => failure.headers = requests(50, 0, scene.wall, *wait),
                ErrorCase::Overloaded => failure.headers.push(("x-should-retry", "true".to_owned())),
                _ => {}
            }
            failure.headers.extend(wait.map(|wait| ("retry-after", in_seconds(wait))));
            failure
        }
    }
}

/// Status, kind and message.
fn instead(case: ErrorCase) -> (u16, &'static str, &'static str) {
    match case {
        ErrorCase::Status(status) => by_status(status),
        ErrorCase::Rate => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 50 requests per minute. For details, refer to: \
             https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage.",
        ),
        ErrorCase::Quota => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 10,000 requests per day. For details, refer to: \
             https://docs.claude.com/en/api/rate-limits.",
        ),
        ErrorCase::Billing => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        ),
        ErrorCase::Overloaded => (529, "overloaded_error", "Overloaded"),
        ErrorCase::Auth => (401, "authentication_error", "invalid x-api-key"),
        ErrorCase::Filter => (400, "invalid_request_error", "Output blocked by content filtering policy"),
    }
}

fn by_status(status: u16) -> (u16, &'static str, &'static str) {
    let (kind, says) = match status {
        401 => return instead(ErrorCase::Auth),
        402 => ("billing_error", "There is an issue with your billing or payment information."),
        403 => ("permission_error", "Your API key does not have permission to use the specified resource."),
        404 => ("not_found_error", "Not found"),
        408 => ("timeout_error", "Request timed out"),
        409 => ("conflict_error", "The request conflicts with another one."),
        413 => ("request_too_large", "Request exceeds the maximum allowed number of bytes."),
        429 => ("rate_limit_error", "Number of requests has exceeded your rate limit."),
        400..500 => ("invalid_request_error", "The request could not be served."),
        502 => ("api_error", "Bad gateway"),
        503 => ("api_error", "Service unavailable"),
        504 => ("timeout_error", "Request timed out"),
        529 => return instead(ErrorCase::Overloaded),
        _ => ("api_error", "Internal server error"),
    };
    (status, kind, says)
}

/// The rate-limit headers that Anthropic sends with every good answer.
pub(super) fn limits(wall: i64) -> Vec<(&'static str, String)> {
    let mut all = requests(4000, 3999, wall, None);
    all.extend([
        ("anthropic-ratelimit-tokens-limit", "2000000".to_owned()),
        ("anthropic-ratelimit-tokens-remaining", "1999000".to_owned()),
        ("anthropic-ratelimit-tokens-reset", time(wall, Duration::ZERO)),
    ]);
    all
}

fn requests(limit: u64, left: u64, wall: i64, wait: Option<Duration>) -> Vec<(&'static str, String)> {
    vec![
        ("anthropic-ratelimit-requests-limit", limit.to_string()),
        ("anthropic-ratelimit-requests-remaining", left.to_string()),
        ("anthropic-ratelimit-requests-reset", time(wall, wait.unwrap_or_default())),
    ]
}

/// The time after a wait, to the second and rounded up.
fn time(wall: i64, wait: Duration) -> String {
    let seconds = i64::try_from(wait.as_secs()).unwrap_or(0) + i64::from(wait.subsec_nanos() > 0);
    Timestamp::from_second(wall.saturating_add(seconds)).unwrap_or_default().to_string()
}
