//! An HTTP response as `curl -i` prints it, and the signs that distinguish an answer from a log.

use jiff::Timestamp;
use serde_json::Value;

/// More headers than any real answer has.
const MAX_HEADERS: usize = 200;

/// A parsed response. Without a status line all of it is the body.
pub(super) struct Head<'a> {
    pub(super) status: Option<u16>,
    pub(super) headers: Vec<(&'a str, &'a str)>,
    pub(super) body: &'a str,
}

pub(super) fn read(text: &str) -> Head<'_> {
    let mut head = Head { status: None, headers: Vec::new(), body: text };
    // A proxy's `200 Connection established` or a `100 Continue` may come before the answer's own head.
    for _ in 0..4 {
        let Some(next) = one_head(head.body) else { break };
        head = next;
    }
    head
}

fn one_head(text: &str) -> Option<Head<'_>> {
    let line = text.lines().next()?;
    let status = line.strip_prefix("HTTP/")?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let gaps = [("\r\n\r\n", 4), ("\n\n", 2)];
    // A head alone, as `curl -I` prints it, may end without its blank line.
    let found = gaps.iter().filter_map(|(gap, len)| text.find(gap).map(|at| (at, *len))).min();
    let (end, gap) = found.unwrap_or((text.len(), 0));
    let fields = text.get(..end)?.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = fields.map(|(name, value)| (name.trim(), value.trim())).take(MAX_HEADERS).collect();
    Some(Head { status: Some(status), headers, body: text.get(end + gap..)? })
}

/// When the answer was sent, as its `date` says.
pub(super) fn date(headers: &[(&str, &str)]) -> Option<Timestamp> {
    let value = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("date"))?.1;
    jiff::fmt::rfc2822::parse(value).ok().map(|at| at.timestamp())
}

/// Whether a text looks like a provider's answer: a response head, a stream, one JSON object with an
/// answer's or an error's fields, a page.
pub(super) fn looks_like_answer(text: &str) -> bool {
    let trimmed = text.trim_start();
    if trimmed.starts_with("HTTP/") || is_event_stream(trimmed) || is_page(trimmed) {
        return true;
    }
    let one_value =
        trimmed.starts_with(['{', '[']).then(|| serde_json::from_str::<Value>(trimmed).ok()).flatten();
    match one_value {
        Some(Value::Object(fields)) => {
            let event = matches!(
                fields.get("type").and_then(Value::as_str),
                Some("result" | "turn.failed" | "rate_limit_event")
            );
            !event
                && [
                    "error", "choices", "candidates", "content", "output", "promptFeedback", "message",
                    "detail", "code", "object",
                ]
                .iter()
                .any(|field| fields.contains_key(*field))
        }
        Some(Value::Array(items)) => {
            items.first().is_some_and(|item| item.get("error").is_some() || item.get("candidates").is_some())
        }
        _ => false,
    }
}

pub(super) fn is_event_stream(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    first.starts_with("data: {")
        || first.starts_with("data:{")
        || (first.starts_with("event: ") && text.contains("\ndata:"))
        || (first.starts_with(": ") && text.contains("\ndata:"))
}

fn is_page(text: &str) -> bool {
    let head = text.get(..text.floor_char_boundary(64)).unwrap_or_default().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_taken_apart() {
        let head = read("HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 429\r\nRetry-After: 20\r\n\r\n{}");
        assert_eq!(
            (head.status, head.headers.as_slice(), head.body),
            (Some(429), &[("Retry-After", "20")][..], "{}")
        );
    }

    #[test]
    fn logs_are_no_answers() {
        assert!(!looks_like_answer("{\"type\":\"result\",\"is_error\":true}\n"));
        assert!(!looks_like_answer("Error: 429 {\"error\":{}}"));
        assert!(looks_like_answer("{\"error\":{\"message\":\"x\"}}"));
        assert!(looks_like_answer("data: {\"choices\":[]}\n\n"));
    }
}
