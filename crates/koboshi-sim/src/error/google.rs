//! Google's errors.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Failure, Problem};
use crate::fall::Trouble;

/// What is wrong, in Google's words.
pub(super) fn failure(problem: &Problem) -> Failure {
    match problem {
        Problem::Request { says, param } => {
            let violation = param.as_ref().map(|field| {
                json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": field, "description": says}]})
            });
            new(400, says, violation.as_slice())
        }
        Problem::Unknown { model } => {
            let says = format!(
                "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see \
                 the list of available models and their supported methods."
            );
            new(404, &says, &[])
        }
        Problem::Param { says } => new(400, &format!("* GenerateContentRequest.model: {says}"), &[]),
        Problem::Prefill => new(
            400,
            "Please ensure that multiturn requests end with a user role: prefill is not supported.",
            &[],
        ),
        Problem::Context { tokens, limit } => {
            let says = format!(
                "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
            );
            new(400, &says, &[])
        }
        Problem::Trouble { trouble, wait, model } => instead(*trouble, *wait, model),
    }
}

fn new(status: u16, message: &str, details: &[Value]) -> Failure {
    let word = word_of(status);
    let error = if details.is_empty() {
        json!({"code": status, "message": message, "status": word})
    } else {
        json!({"code": status, "message": message, "status": word, "details": details})
    };
    Failure::of(status, &json!({"error": error}))
}

fn word_of(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        408 | 504 => "DEADLINE_EXCEEDED",
        502 | 503 | 529 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

fn instead(trouble: Trouble, wait: Option<Duration>, model: &str) -> Failure {
    match trouble {
        Trouble::Status(status) => new(status, says(status), &retry(wait)),
        Trouble::Rate => quota(model, "PerMinute", 10, wait),
        Trouble::Quota => quota(model, "PerDay", 250, wait),
        Trouble::Billing => new(
            429,
            "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project \
             and billing.",
            &[],
        ),
        Trouble::Overloaded => new(503, "The model is overloaded. Please try again later.", &retry(wait)),
        Trouble::Auth => {
            let info = json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            });
            new(401, "API key not valid. Please pass a valid API key.", &[info])
        }
        Trouble::Filter => Failure::of(200, &blocked(model)),
    }
}

fn says(status: u16) -> &'static str {
    match status {
        401 => {
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."
        }
        403 => "The caller does not have permission",
        404 => "Requested entity was not found.",
        408 | 504 => "Deadline expired before operation could complete.",
        413 => "Request payload size exceeds the limit: 20971520 bytes.",
        429 => "Resource has been exhausted (e.g. check quota).",
        400..500 => "Request contains an invalid argument.",
        502 | 503 => "The service is currently unavailable.",
        529 => "The model is overloaded. Please try again later.",
        _ => {
            "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
        }
    }
}

/// A quota that is used up, by its window.
fn quota(model: &str, window: &str, limit: u64, wait: Option<Duration>) -> Failure {
    let metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests";
    let again = wait.map_or_else(String::new, |wait| format!("\nPlease retry in {}s.", wait.as_secs_f64()));
    let message = format!(
        "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: \
         https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded for metric: {metric}, limit: {limit}{again}"
    );
    let violation = json!({
        "quotaMetric": metric, "quotaId": format!("GenerateRequests{window}PerProjectPerModel-FreeTier"),
        "quotaDimensions": {"location": "global", "model": model}, "quotaValue": limit.to_string(),
    });
    let mut details =
        vec![json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})];
    details.extend(retry(wait));
    new(429, &message, &details)
}

fn retry(wait: Option<Duration>) -> Vec<Value> {
    let told = wait.map(|wait| {
        let delay = format!("{}s", wait.as_secs_f64());
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    });
    told.into_iter().collect()
}

/// A prompt that is not let through: a good answer, without candidates.
pub(super) fn blocked(model: &str) -> Value {
    json!({
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8}, "modelVersion": model,
    })
}
