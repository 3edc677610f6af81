//! Google's errors.

use std::time::Duration;

use koboshi_wire::gemini::error::status_of;
use serde_json::{Value, json};

use super::{Failure, Problem};
use crate::fall::ErrorCase;

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
        Problem::Case { case, wait, model } => instead(*case, *wait, model),
    }
}

fn new(status: u16, message: &str, details: &[Value]) -> Failure {
    let word = status_of(status);
    let error = if details.is_empty() {
        json!({"code": status, "message": message, "status": word})
    } else {
        json!({"code": status, "message": message, "status": word, "details": details})
    };
    Failure::of(status, &json!({"error": error}))
}

fn instead(case: ErrorCase, wait: Option<Duration>, model: &str) -> Failure {
    match case {
        ErrorCase::Status(status) => new(status, message_for(status), &retry(wait)),
        ErrorCase::Rate => quota(model, "PerMinute", 10, wait),
        ErrorCase::Quota => quota(model, "PerDay", 250, wait),
        ErrorCase::Billing => new(
            429,
            "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project \
             and billing.",
            &[],
        ),
        ErrorCase::Overloaded => new(503, "The model is overloaded. Please try again later.", &retry(wait)),
        ErrorCase::Auth => {
            let info = json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
                "metadata": {"service": "generativelanguage.googleapis.com"},
            });
            new(401, "API key not valid. Please pass a valid API key.", &[info])
        }
        ErrorCase::Filter => Failure::of(200, &blocked(model)),
    }
}

fn message_for(status: u16) -> &'static str {
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
    let detail = wait.map(|wait| {
        let delay = format!("{}s", wait.as_secs_f64());
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    });
    detail.into_iter().collect()
}

/// A prompt that is not let through: a good answer, without candidates.
pub(super) fn blocked(model: &str) -> Value {
    json!({
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 8, "totalTokenCount": 8}, "modelVersion": model,
    })
}
