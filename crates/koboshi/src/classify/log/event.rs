//! Structured events in an agent's log.
//!
//! Agents that can print JSON say in their last event how the run ended. That beats every reading of
//! text, and most of all it tells the agent's own words (`assistant`, `message`, tool results) from the
//! program's.

use serde_json::Value;

/// What an event says about the run.
#[derive(Debug)]
pub(super) enum Event {
    /// The run failed, or an error was reported.
    Failed(Value),
    /// The run ended well.
    Succeeded,
    /// An allowance is used up; the run may still be going.
    Rejected(Value),
    /// A try failed and another follows.
    Retry(Value),
    /// The agent's words and work, or nothing of interest.
    Other,
}

/// Whether an event speaks of the run as a whole.
pub(super) fn is_about_run(value: &Value) -> bool {
    let kind = text(value, "type");
    matches!(kind, "result" | "turn.failed" | "turn_failed" | "session.error") || is_end_of_run(kind)
}

/// Reads a JSON object from a log as an event.
pub(super) fn read(value: Value) -> Event {
    let kind = text(&value, "type");
    match kind {
        "result" => result(value),
        "turn.failed" | "turn_failed" | "session.error" => Event::Failed(value),
        "turn.completed" | "turn_complete" | "task_complete" | "session.completed" => Event::Succeeded,
        _ if is_end_of_run(kind) => match text(&value, "status") {
            "failed" | "error" | "failure" => Event::Failed(value),
            "ok" | "success" | "completed" => Event::Succeeded,
            _ => Event::Other,
        },
        "error" if text(&value, "severity") == "warning" => Event::Other,
        "error" => Event::Failed(value),
        "rate_limit_event" => match value.pointer("/rate_limit_info/status").and_then(Value::as_str) {
            Some("rejected") => Event::Rejected(value),
            _ => Event::Other,
        },
        "system" if text(&value, "subtype") == "api_retry" => Event::Retry(value),
        "say" if matches!(text(&value, "say"), "error" | "api_req_failed") => Event::Failed(value),
        // A message that the program wrote in the agent's place.
        "assistant" if value.get("error").is_some_and(Value::is_string) => Event::Failed(value),
        _ if has_error(&value) => Event::Failed(value),
        _ => Event::Other,
    }
}

/// `run_end`, `session.finished`, `agent_end`: however a program names the end of a run.
fn is_end_of_run(kind: &str) -> bool {
    let whole = ["run", "session", "agent", "task", "turn"].iter().any(|whole| kind.starts_with(whole));
    whole
        && ["end", "ended", "finished", "complete", "completed", "failed"]
            .iter()
            .any(|end| kind.ends_with(end))
}

/// The last event of a run; `subtype` may say "success" where `is_error` tells the truth.
fn result(value: Value) -> Event {
    let failed = value.get("is_error") == Some(&Value::Bool(true))
        || matches!(text(&value, "status"), "error" | "failed" | "failure")
        || text(&value, "subtype").starts_with("error");
    if failed { Event::Failed(value) } else { Event::Succeeded }
}

/// An object without a known type that reports an error: API bodies, log records of error level.
fn has_error(value: &Value) -> bool {
    let typed =
        value.get("type").is_some_and(Value::is_string) && !matches!(text(value, "type"), "error" | "log");
    let error = value
        .get("error")
        .or_else(|| value.get("error_message"))
        .is_some_and(|error| error.is_object() || error.is_string());
    let level = ["level", "severity", "lvl"]
        .iter()
        .any(|key| matches!(text(value, key).to_ascii_lowercase().as_str(), "error" | "fatal"));
    let coded =
        ["code", "status", "status_code"].iter().any(|key| match value.get(key) {
            Some(Value::String(code)) => !code.is_empty() && code != "ok" && code != "success",
            Some(Value::Number(code)) => code.as_u64().is_some_and(|code| code >= 400),
            _ => false,
        }) && ["message", "title", "detail"].iter().any(|key| value.get(key).is_some_and(Value::is_string));
    let says_error = matches!(text(value, "status"), "error" | "failed") && value.get("code").is_some();
    let exception = ["name", "code", "__type"]
        .iter()
        .any(|key| text(value, key).ends_with("Exception") || text(value, key).ends_with("Error"));
    (error || level || coded || says_error || exception) && !typed
}

/// The parts of a failure event that carry the program's words.
pub(super) fn words(value: &Value) -> Value {
    let mut words = serde_json::Map::new();
    const FIELDS: &[&str] = &[
        "error", "errors", "message", "msg", "result", "api_error_status", "status_code", "error_message",
        "error_type", "code", "subtype", "terminal_reason", "detail", "reason", "name", "title", "status",
        "$metadata", "__type", "text",
    ];
    for field in FIELDS {
        if let Some(part) = value.get(field)
            && !(field == &"message" && part.is_object())
            && !(field == &"subtype" && part == "success")
        {
            words.insert((*field).to_owned(), part.clone());
        }
    }
    if let Some(content) = value.pointer("/message/content/0/text") {
        words.insert("message".to_owned(), content.clone());
    }
    Value::Object(words)
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
