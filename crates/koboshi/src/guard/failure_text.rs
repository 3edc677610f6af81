//! The part of a failing output that says what failed: not the stack, not the wrapper, not the source around it.
//!
//! Of JSON the fields that hold errors, of text the lines that complain. A compiler that ends each run with "could not
//! compile" says something else above it each time: wrappers count only where nothing else is left. Everything is
//! bounded in lines and characters, from the head and the tail of the output.
//!
//! Beside the words it keeps the *tally*: how many failures the output counts. Twelve, seven, three is progress,
//! although only a digit differs.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::Value;

use super::words::ends;

/// How much of an output is read.
const HEAD: usize = 8 * 1024;
const TAIL: usize = 16 * 1024;
/// Lines that are kept, from either end.
const FIRST_LINES: usize = 6;
const LAST_LINES: usize = 3;
const LINE_CHARS: usize = 300;
/// How much of the end is read for the last line.
const LAST_PART: usize = 2 * 1024;
/// What is repeated of the arguments is at least this long.
const LONG_ECHO: usize = 12;

/// How many failures an output counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tally {
    /// It says so.
    Stated(u64),
    /// This many lines complain.
    Lines(u64),
}

impl Tally {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Stated(number) | Self::Lines(number) => number,
        }
    }

    /// Fewer than before.
    pub(super) fn fell(self, earlier: Self) -> bool {
        match (earlier, self) {
            (Self::Stated(before), Self::Stated(now)) | (Self::Lines(before), Self::Lines(now)) => {
                now < before
            }
            _ => false,
        }
    }
}

/// What a failing output reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailureText {
    /// The lines, joined.
    pub(super) text: String,
    /// Where it happened: after an edit the same words in another file are another failure.
    pub(super) place: String,
    pub(super) tally: Tally,
}

/// The text without colours and cursor movements.
pub(super) fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if chars.next() == Some('[') {
            // A sequence ends with its first letter.
            for c in chars.by_ref() {
                if !(c.is_ascii_digit() || matches!(c, ';' | '?' | ' '..='/')) {
                    break;
                }
            }
        }
    }
    Cow::Owned(out)
}

pub(super) fn failure_text(output: &str) -> FailureText {
    let short = ends(output, HEAD, TAIL);
    let plain = without_colours(&short);
    let text = from_json(&plain).map_or(plain, Cow::Owned);
    let lines = complaints(&text);
    let tally = tally(&lines);
    let mut kept: Vec<String> = Vec::new();
    let middle = FIRST_LINES..lines.len().saturating_sub(LAST_LINES).max(FIRST_LINES);
    for (at, line) in lines.iter().enumerate() {
        let line = cut(line);
        if !middle.contains(&at) && !kept.iter().any(|other| other == line) {
            kept.push(line.to_owned());
        }
    }
    FailureText { text: kept.join("\n"), place: place(&text), tally }
}

/// The last line does not complain: where only the text shows how the run ended, that is a run that did not fail. A line that repeats what was
/// asked for says nothing.
pub(super) fn ends_well(output: &str, echoes: &[String]) -> bool {
    let plain = without_colours(ends_of(output));
    let repeats =
        |line: &str| echoes.iter().any(|echo| echo.len() >= LONG_ECHO && line.contains(echo.as_str()));
    let last =
        plain.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_frame(line) && !repeats(line));
    let is_json = output.trim_start().starts_with(['{', '[']) && plain.trim_end().ends_with(['}', ']']);
    !is_json && last.is_some_and(|line| !complains(line) && !is_wrapper(line))
}

/// The last part of a text.
fn ends_of(output: &str) -> &str {
    output.get(output.ceil_char_boundary(output.len().saturating_sub(LAST_PART))..).unwrap_or_default()
}

/// The beginning of a long line, up to a space: half a secret would not be known as one.
fn cut(line: &str) -> &str {
    let Some((end, _)) = line.char_indices().nth(LINE_CHARS) else { return line };
    let head = line.get(..end).unwrap_or_default();
    head.rfind(char::is_whitespace).and_then(|at| head.get(..at)).unwrap_or(head)
}

/// The innermost frame of a stack with its line of code, and the places that a compiler points at.
fn place(text: &str) -> String {
    let lines = || text.lines().map(str::trim);
    let after_frame = |(at, _): (usize, &str)| lines().skip(at).take(2);
    let frame = lines().enumerate().filter(|(_, line)| line.starts_with("File \"")).last();
    let python = frame.into_iter().flat_map(after_frame);
    let node = lines().find(|line| line.starts_with("at ")).into_iter();
    let is_pointed = |line: &&str| {
        let marked = line.split_once('|').is_some_and(|(_, code)| code.contains("^"));
        line.starts_with("-->") || marked
    };
    // With the line of code above the mark, without its number.
    let above = lines().zip(lines().skip(1)).filter(|(_, line)| is_pointed(line) && !line.starts_with("-->"));
    let code = above.filter_map(|(code, _)| code.split_once('|').map(|(_, code)| code.trim()));
    let pointed = lines().filter(is_pointed).take(FIRST_LINES).chain(code.take(FIRST_LINES));
    python.chain(node).chain(pointed).map(cut).collect::<Vec<_>>().join("\n")
}

/// The words of the error in a JSON text, also where it stands behind `HTTP 400 `.
fn from_json(text: &str) -> Option<String> {
    let text = text.trim();
    let start = text.find(['{', '['])?;
    if !text.ends_with(['}', ']']) || text.get(..start).is_some_and(|before| before.contains('\n')) {
        return None;
    }
    let value: Value = serde_json::from_str(text.get(start..)?).ok()?;
    let mut found = Vec::new();
    collect(&value, false, &mut found);
    if found.is_empty() {
        return None;
    }
    let before = text.get(..start).unwrap_or_default().trim();
    Some(format!("{before} {}", found.join("\n")).trim().to_owned())
}

fn collect(value: &Value, is_error_field: bool, found: &mut Vec<String>) {
    const CODES: &[&str] =
        &["code", "status", "statuscode", "status_code", "exit_code", "exitcode", "returncode", "errno"];
    const WORDS: &[&str] = &[
        "error", "errors", "message", "msg", "detail", "details", "reason", "description", "type", "title",
        "stderr", "error_type", "exception", "cause", "error_message", "errormessage", "name", "output",
        "content", "text",
    ];
    match value {
        Value::String(text) if is_error_field && !text.trim().is_empty() => {
            found.push(text.trim().to_owned());
        }
        Value::Array(items) => items.iter().take(20).for_each(|item| collect(item, is_error_field, found)),
        Value::Object(fields) => {
            for (key, inner) in fields {
                let key = key.to_ascii_lowercase();
                match inner {
                    Value::Number(number) if CODES.contains(&key.as_str()) => {
                        found.push(format!("code {number}"));
                    }
                    Value::String(text) if CODES.contains(&key.as_str()) => found.push(text.clone()),
                    _ if WORDS.contains(&key.as_str()) => collect(inner, true, found),
                    Value::Object(_) | Value::Array(_) => collect(inner, false, found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// The lines that complain; where none does, the first and the last.
fn complaints(text: &str) -> Vec<&str> {
    let traceback = text.contains("Traceback (most recent call last)");
    let mut kept = Vec::new();
    let mut wrappers = Vec::new();
    let mut all = Vec::new();
    for raw in text.lines() {
        let line = raw.trim();
        if line.is_empty() {
            continue;
        }
        all.push(line);
        if is_frame(line) || (traceback && raw.starts_with([' ', '\t'])) {
            continue;
        }
        if is_wrapper(line) {
            wrappers.push(line);
        } else if complains(line) {
            kept.push(line);
        }
    }
    if !kept.is_empty() {
        return kept;
    }
    let (first, last) = (all.first().copied(), all.last().copied());
    let ends = first.into_iter().chain(last.filter(|_| all.len() > 1));
    if wrappers.is_empty() || all.len() > wrappers.len() {
        return ends.collect();
    }
    wrappers
}

fn is_frame(line: &str) -> bool {
    line.starts_with("at ")
        || line.starts_with("File \"")
        || line.starts_with("from ") && line.contains(":in ")
        || line.starts_with("-->")
        || line.starts_with("|")
        || line.chars().all(|c| matches!(c, '^' | '~' | '-' | '=' | ' ' | '|' | '_'))
        || line.split_once('|').is_some_and(|(number, _)| {
            let number = number.trim().trim_start_matches('>').trim();
            !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        })
}

/// Says that something failed, and not what.
fn is_wrapper(line: &str) -> bool {
    static WRAPPER: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^traceback \(most recent|could not compile|aborting due to|due to [0-9]+ previous|^\W*(?:process |command )?exit(?:ed)?(?: with)?(?: code| status)?\W*[0-9]+\W*$|^\W*(?:the )?command (?:failed|exited)|^make(?:\[[0-9]+\])?: \*\*\*|elifecycle|complete log of this run|^npm err! (?:errno|code|path|command)|^error: command failed|^error: process completed with exit code|^for more information about this error|^stderr:?$|^stdout:?$|^error:?$",
        )
        .ok()
    });
    // Without one of these it is none, and most lines have none.
    static CUES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        cues(&[
            "traceback", "could not compile", "due to", "exit", "command", "make", "elifecycle",
            "complete log", "npm err", "error", "for more information", "stderr", "stdout",
        ])
    });
    CUES.as_ref().is_none_or(|cues| cues.is_match(line))
        && WRAPPER.as_ref().is_some_and(|wrapper| wrapper.is_match(line))
}

fn cues(words: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
}

/// A word that only complaints have, or nearly so.
pub(super) fn complains(line: &str) -> bool {
    static COMPLAINTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        cues(&[
            "error", "fatal", "fail", "exception", "denied", "cannot", "can't", "can’t", "could not",
            "couldn't", "unable", "not found", "no such", "invalid", "panic", "refused", "timeout",
            "time out", "timedout", "timed out", "missing", "unknown", "undefined", "unresolved", "abort",
            "killed", "unexpected", "not permitted", "not allowed", "forbidden", "unauthorized", "does not",
            "doesn't", "did not", "is not", "no module", "not installed", "already", "expected", "✕", "✗",
            "✘", "×", "❌", "エラー", "失敗", "できません", "ありません", "拒否", "見つかりません", "错误",
            "失败", "无法",
        ])
    });
    let marked = ["e: ", "E: ", "e  ", "E  ", "! "].iter().any(|mark| line.starts_with(mark));
    marked || COMPLAINTS.as_ref().is_some_and(|complaints| complaints.is_match(line))
}

fn tally(lines: &[&str]) -> Tally {
    static COUNTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b([0-9]{1,9})\s+(?:[a-z]+\s+){0,2}?(?:errors?|failed|failures?|failing|problems?|warnings?|issues?|violations?|conflicts?|mismatch(?:es)?|vulnerabilit(?:y|ies)|offenses?|remaining|left|unresolved|undefined|missing|broken)\b|\b(?:errors|failed|failures|failing|problems|issues|remaining|fail)\s*[:=]\s*([0-9]{1,9})\b|([0-9]{1,9})\s*(?:件|個)",
        )
        .ok()
    });
    let counted = |line: &&str| -> Option<u64> {
        let counted = COUNTED.as_ref()?;
        let numbers = counted.captures_iter(line).filter_map(|found| {
            found.iter().skip(1).flatten().next().and_then(|number| number.as_str().parse::<u64>().ok())
        });
        numbers.reduce(u64::saturating_add)
    };
    let stated = lines.iter().filter_map(counted).reduce(u64::saturating_add);
    stated.map_or(Tally::Lines(u64::try_from(lines.len()).unwrap_or(u64::MAX)), Tally::Stated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exception_and_not_the_stack() {
        let text = "Traceback (most recent call last):\n  File \"x.py\", line 3, in <module>\n    raise ValueError('error')\nValueError: bad value";
        assert_eq!(failure_text(text).text, "ValueError: bad value");
        let node =
            "Error: listen EADDRINUSE: address already in use :::3000\n    at Server.listen (node:net:1:2)";
        assert_eq!(failure_text(node).text, "Error: listen EADDRINUSE: address already in use :::3000");
    }

    #[test]
    fn the_place_is_kept_beside_the_words() {
        let rust = |file: &str| {
            format!("error[E0308]: mismatched types\n --> {file}:1:2\n  |\n1 | x\n  | ^ expected u32")
        };
        assert_eq!(failure_text(&rust("a.rs")).text, failure_text(&rust("b.rs")).text);
        assert_ne!(failure_text(&rust("a.rs")).place, failure_text(&rust("b.rs")).place);
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 3\n    f()\n  File \"b.py\", line 9\n    g(x)\nKeyError: 1";
        assert_eq!(failure_text(python).place, "File \"b.py\", line 9\ng(x)");
    }

    #[test]
    fn wrappers_count_only_alone() {
        let cargo = "error[E0308]: mismatched types\n  --> src/a.rs:3:5\nerror: could not compile `x` (bin) due to 1 previous error";
        assert_eq!(failure_text(cargo).text, "error[E0308]: mismatched types");
        assert_eq!(failure_text("Exit code 2").text, "Exit code 2");
    }

    #[test]
    fn fields_of_json_tell() {
        assert_eq!(
            failure_text("HTTP 400 {\"error\":{\"code\":12,\"message\":\"email is required\"},\"now\":5}")
                .text,
            "HTTP 400 code 12\nemail is required"
        );
        assert_eq!(failure_text("{\"success\": false, \"error\": \"no\"}").text, "no");
    }

    #[test]
    fn failures_are_counted() {
        assert_eq!(failure_text("Found 41 errors in 9 files.").tally, Tally::Stated(41));
        assert_eq!(failure_text("FAILED a\nFAILED b\n2 failed, 9 passed in 0.4s").tally, Tally::Stated(2));
        assert_eq!(failure_text("error: a\nerror: b\nerror: c").tally, Tally::Lines(3));
        assert!(Tally::Stated(3).fell(Tally::Stated(7)) && !Tally::Stated(7).fell(Tally::Stated(7)));
    }

    #[test]
    fn colours_are_cut() {
        assert_eq!(without_colours("\u{1b}[31merror\u{1b}[0m: x"), "error: x");
    }
}
