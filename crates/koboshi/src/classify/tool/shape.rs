//! Whether a text reports that a call failed, decided by its shape alone.
//!
//! Words do not decide: a listing of `error.rs`, a commit title about "Permission denied" and a green test
//! named `fails_on_timeout` all hold them. What decides is *where* they stand: an exit code at the end, an
//! error field at the top of a JSON object, a first or last line that begins as failures begin. And
//! some shapes say that the text is only being read: numbered lines, search hits, diffs, manual pages,
//! logs with a timestamp on every line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::cues::Cues;
use super::failing::{begins_as_failure, ends_as_failure, has_verdict, is_all_clear};
use super::reading::is_reading;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Failed,
    /// Short, and its shape decides nothing.
    Unclear,
    Fine,
}

/// An output of at most this many lines is short.
const SHORT: usize = 3;
/// And it has no more bytes: a page in one line is a page.
const SHORT_BYTES: usize = 2 * 1024;
/// Lines that are read from either end.
const NEAR_ENDS: usize = 4;

pub(super) fn report(text: &str) -> Report {
    // Split once: every shape is recognised by its lines, and most outputs have none of the shapes.
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().is_empty()).collect();
    match by_structure(text, &lines) {
        Some(true) => Report::Failed,
        Some(false) => Report::Fine,
        None if is_reading(text, &lines) => Report::Fine,
        None if by_lines(text, &lines) => Report::Failed,
        None if is_short(&lines) => Report::Unclear,
        None => Report::Fine,
    }
}

/// A few lines that do not say that all is well.
fn is_short(lines: &[&str]) -> bool {
    let is_sentence = |line: &&str| {
        (line.split_whitespace().count() >= 4 || !line.is_ascii())
            && !line.contains(['{', '}', '|', '='])
            && line.chars().count() >= 8
    };
    let bytes: usize = lines.iter().take(SHORT + 1).map(|line| line.len()).sum();
    lines.len() <= SHORT
        && bytes <= SHORT_BYTES
        && lines.iter().all(is_sentence)
        && !lines.iter().any(|line| is_all_clear(line))
}

/// JSON fields and exit codes decide by themselves.
fn by_structure(text: &str, lines: &[&str]) -> Option<bool> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Some(false);
    }
    if let Some(failed) = by_json(trimmed) {
        return Some(failed);
    }
    http_status(trimmed).map(|status| status >= 400).or_else(|| exit_code(lines).map(|code| code != 0))
}

/// What a JSON text says at its top; none if it is no JSON. A list says nothing, so its elements are passed over.
fn by_json(text: &str) -> Option<bool> {
    if text.starts_with('[') {
        return serde_json::from_str::<IgnoredAny>(text).ok().map(|_| false);
    }
    if !text.starts_with('{') {
        return None;
    }
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
    // Only these are asked for, and of a long one only that it is there.
    let fields = members.iter().filter(|(name, _)| TELLING.contains(&name.as_ref())).map(|(name, raw)| {
        let raw = raw.get();
        let brief =
            if raw.len() <= BRIEF { serde_json::from_str(raw).unwrap_or_default() } else { Value::from(raw) };
        (name.to_string(), brief)
    });
    Some(json_failed(&fields.collect()))
}

/// The members that decide.
const TELLING: &[&str] = &[
    "status", "statusCode", "status_code", "code", "error", "errors", "message", "isError", "is_error",
    "success", "ok", "exit_code", "exitCode", "returncode", "exit_status", "type",
];

/// A value of more bytes is a text, a list or an object with something in it.
const BRIEF: usize = 256;

/// The status line of an HTTP answer, where the output begins with one.
fn http_status(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP/")?.split_ascii_whitespace().nth(1)?.parse().ok().filter(|status| *status >= 200)
}

fn json_failed(fields: &Map<String, Value>) -> bool {
    let flag = |name: &str, bad: bool| fields.get(name) == Some(&Value::Bool(bad));
    let status = ["status", "statusCode", "status_code", "code"]
        .iter()
        .filter_map(|name| fields.get(*name))
        .filter_map(Value::as_u64);
    let given = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) => true,
        Value::Number(number) => number.as_i64() != Some(0),
    };
    fields.get("error").is_some_and(given)
        || fields.get("errors").is_some_and(given)
        || (fields.get("code").and_then(Value::as_i64).is_some_and(|code| code < 0)
            && fields.contains_key("message"))
        || flag("isError", true)
        || flag("is_error", true)
        || flag("success", false)
        || flag("ok", false)
        || matches!(
            fields.get("status").and_then(Value::as_str),
            Some("error" | "failed" | "failure" | "timeout")
        )
        || ["exit_code", "exitCode", "returncode", "exit_status"]
            .iter()
            .any(|name| fields.get(*name).and_then(Value::as_i64).is_some_and(|code| code != 0))
        || matches!(fields.get("type").and_then(Value::as_str), Some("error" | "ErrorResponse"))
        || status.into_iter().any(|status| (400..600).contains(&status))
}

/// An exit code that the harness put at the end, or at the beginning.
fn exit_code(lines: &[&str]) -> Option<i64> {
    let ends = lines.iter().rev().take(2).chain(lines.iter().take(4));
    for line in ends {
        let line = line.trim().trim_matches(['[', ']', '(', ')', '<', '>', '*']).to_ascii_lowercase();
        for cue in [
            "exit code", "exit status", "exited with code", "exited with", "exit_code", "returncode",
            "return code", "process exited with code", "command exited with code",
        ] {
            let Some(rest) = line.strip_prefix(cue) else { continue };
            let digits = rest.trim_start_matches([':', '=', ' ']);
            let number: String = digits.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
            if let Ok(code) = number.parse() {
                return Some(code);
            }
        }
    }
    None
}

fn by_lines(text: &str, lines: &[&str]) -> bool {
    let last = lines.iter().rev().take(NEAR_ENDS);
    let at_ends = lines.iter().take(NEAR_ENDS).chain(last).any(|line| begins_as_failure(line.trim()));
    let first = lines.first().map(|line| line.trim());
    let says_so = |line: &str| memchr::memmem::find(line.as_bytes(), b" failed to ").is_some();
    let first_says_so = first.is_some_and(|line| says_so(line) && !is_all_clear(line));
    at_ends
        || first_says_so
        || has_verdict(text, lines.iter().map(|line| line.trim()))
        || (lines.len() <= NEAR_ENDS && lines.iter().any(|line| ends_as_failure(line.trim())))
}

/// A line that warns of a missing glyph or font, printed by a drawing library.
pub(super) fn warns_of_fonts(text: &str) -> bool {
    static CUES: Cues = Cues::new(&["font", "Font", "Glyph "]);
    CUES.may_be_in(text)
        && text.lines().any(|line| {
            let line = line.trim_start();
            let words = line
                .trim_start_matches(|c: char| c.is_ascii_uppercase() || matches!(c, ':' | '[' | ']' | ' '));
            line.contains("warning: unknown font family")
                || line.starts_with("Fontconfig error")
                || line.starts_with("Fontconfig warning")
                || words.starts_with("findfont:")
                || (line.contains("Warning: Glyph ") && line.contains("missing from"))
        })
}

/// The line that says what failed: the last one that begins as a failure, or the first with words.
pub(super) fn deciding_line(text: &str) -> Range<usize> {
    let first = || lines_with_words(text).next();
    failing_lines(text).pop().or_else(first).unwrap_or(0..0)
}

/// The lines that begin as failures.
pub(super) fn failing_lines(text: &str) -> Vec<Range<usize>> {
    let begins = |line: &Range<usize>| begins_as_failure(text.get(line.clone()).unwrap_or_default().trim());
    lines_with_words(text).filter(begins).collect()
}

/// Where each line with something in it stands.
pub(super) fn lines_with_words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    text.split('\n').filter_map(move |line| {
        let span = at..at + line.len();
        at += line.len() + 1;
        (!line.trim().is_empty()).then_some(span)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_recognised_by_where_the_words_stand() {
        for text in [
            "cat: missing.txt: No such file or directory",
            "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: bad",
            "ok so far\n[exit code: 2]",
            "{\"status\":503,\"error\":\"Service Unavailable\"}",
            "HTTP 404 Not Found",
            "V.java:1: error: incompatible types",
            "Tool \"x\" not found",
        ] {
            assert_eq!(report(text), Report::Failed, "{text}");
        }
    }

    #[test]
    fn words_of_errors_in_what_is_read_are_no_failures() {
        for text in [
            "",
            "[]",
            "error.log  errors.rs  failed_jobs.csv",
            "All checks passed!\nchecked 214 files, 0 errors, 0 failed",
            "     1\tdef load(path):\n     2\t    raise SystemExit('error')",
            "src/a.rs:12:    return Err(\"Permission denied\")",
            "a1b2c3d fix: Permission denied on start\nb2c3d4e add tests",
            "{\"errors\": [], \"ok\": true}",
            "2026-11-01 12:00:00 ERROR connection refused\n2026-11-01 12:00:01 INFO ok\n",
        ] {
            assert_ne!(report(text), Report::Failed, "{text}");
        }
    }
}
