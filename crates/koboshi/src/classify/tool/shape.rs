//! Whether a text reports that a call failed, told by its shape alone.
//!
//! Words do not tell: a listing of `error.rs`, a commit title about "Permission denied" and a green test
//! named `fails_on_timeout` all hold them. What tells is *where* they stand: an exit code at the end, an
//! error field at the top of a JSON object, a first or last line that begins as failures begin. And
//! some shapes say that the text is only being read: numbered lines, search hits, diffs, manual pages,
//! logs with a timestamp on every line.

use std::ops::Range;

use serde_json::Value;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Failed,
    /// Short, and nothing about its shape tells.
    Unclear,
    Fine,
}

/// An output of so many lines is short.
const SHORT: usize = 6;
/// Lines that are looked at from either end.
const NEAR_ENDS: usize = 4;

pub(super) fn report(text: &str) -> Report {
    match by_structure(text) {
        Some(true) => Report::Failed,
        Some(false) => Report::Fine,
        None if is_reading(text) => Report::Fine,
        None if by_lines(text) => Report::Failed,
        None if is_short(text) => Report::Unclear,
        None => Report::Fine,
    }
}

/// A few lines that do not say that all is well.
fn is_short(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.clone().count() <= SHORT && !lines.clone().any(is_all_clear)
}

/// JSON fields and exit codes decide by themselves.
fn by_structure(text: &str) -> Option<bool> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Some(false);
    }
    if trimmed.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(trimmed)
    {
        return Some(json_failed(&value));
    }
    exit_code(trimmed).map(|code| code != 0)
}

fn json_failed(value: &Value) -> bool {
    let Value::Object(fields) = value else { return false };
    let flag = |name: &str, bad: bool| fields.get(name) == Some(&Value::Bool(bad));
    let status = ["status", "statusCode", "status_code", "code"].iter().filter_map(|name| fields.get(*name)).filter_map(Value::as_u64);
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
        || flag("isError", true)
        || flag("is_error", true)
        || flag("success", false)
        || flag("ok", false)
        || matches!(fields.get("status").and_then(Value::as_str), Some("error" | "failed" | "failure"))
        || ["exit_code", "exitCode", "returncode", "exit_status"].iter().any(|name| fields.get(*name).and_then(Value::as_i64).is_some_and(|code| code != 0))
        || matches!(fields.get("type").and_then(Value::as_str), Some("error" | "ErrorResponse"))
        || status.into_iter().any(|status| (400..600).contains(&status))
}

/// An exit code that the harness put at the end, or at the beginning.
fn exit_code(text: &str) -> Option<i64> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let ends = lines.iter().rev().take(2).chain(lines.iter().take(4));
    for line in ends {
        let line = line.trim().trim_matches(['[', ']', '(', ')', '<', '>', '*']).to_ascii_lowercase();
        for cue in ["exit code", "exit status", "exited with code", "exited with", "exit_code", "returncode", "return code", "process exited with code", "command exited with code"] {
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

/// Text that is shown, not reported: most of its lines are of a kind that only readers see.
pub(super) fn is_reading(text: &str) -> bool {
    let (mut lines, mut read) = (0_usize, 0_usize);
    for line in text.lines().filter(|line| !line.trim().is_empty()).take(400) {
        lines += 1;
        read += usize::from(is_read_line(line));
    }
    lines > 0 && read * 2 > lines || is_manual(text) || is_document(text) || is_table(text) || is_found(text) || is_commit(text) || is_source(text)
}

fn is_read_line(line: &str) -> bool {
    let trimmed = line.trim_start();
    numbered(trimmed) || search_hit(trimmed) || hashed(trimmed) || stamped(trimmed) || diffed(line) || passing(trimmed)
}

/// `  12<tab>text`, `12→text`, `12|text`
fn numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && (rest.starts_with('\t') || rest.starts_with('→') || rest.starts_with('|') || rest.starts_with("  ") || rest.starts_with(": "))
}

/// `src/a.rs:12:text`, without a column and without the word that a compiler puts there.
fn search_hit(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else { return false };
    let pathlike = !path.contains(' ') && (path.contains('.') || path.contains('/'));
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest.get(digits..).unwrap_or_default();
    let compiler = after.contains("error:") || after.contains("ERROR:") || after.contains("warning:") || after.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit()).trim_start().starts_with("error");
    let word = after.trim_start_matches([':', ' ']).split([' ', ':']).next().unwrap_or_default();
    let warning = word.ends_with("Warning") || (word.ends_with("Error") && after.contains("Error:"));
    let frame = after.starts_with(":in ");
    pathlike && digits > 0 && after.starts_with(':') && !compiler && !warning && !frame && !path.starts_with('[')
}

/// `a1b2c3d title` or `commit a1b2…`
fn hashed(line: &str) -> bool {
    let line = line.strip_prefix("commit ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let word = line.split(' ').next().unwrap_or_default();
    (7..=40).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit()) && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// A line of a log: it begins with a date or a clock time.
fn stamped(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(']);
    let digits = line.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'/' | b'T' | b'.')).count();
    let head = line.get(..digits).unwrap_or_default();
    digits >= 8 && head.bytes().filter(|byte| matches!(byte, b'-' | b':' | b'/')).count() >= 2
}

fn diffed(line: &str) -> bool {
    line.starts_with("+ ") || line.starts_with("- ") || line.starts_with("@@ ") || line.starts_with("diff --git") || line.starts_with("+++ ") || line.starts_with("--- a/")
        || line.starts_with("index ") || (line.starts_with('+') && line.len() > 3 && !line.starts_with("++"))
}

fn passing(line: &str) -> bool {
    line.starts_with("PASS ") || line.starts_with("✓") || line.starts_with("✔") || line.starts_with("ok ") || line.ends_with("... ok") || line.ends_with(" PASSED") || line.contains(" PASSED ")
}

fn is_manual(text: &str) -> bool {
    let is_heading = |line: &&str| line.len() >= 4 && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
    let indented = text.lines().filter(|line| line.starts_with("      ")).count();
    text.lines().filter(is_heading).count() >= 2 && indented >= 2
}

/// A table: a first line of several headings in capitals.
fn is_table(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let columns: Vec<&str> = first.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    columns.len() >= 3 && columns.iter().all(|column| column.chars().all(|c| c.is_ascii_uppercase() || matches!(c, ' ' | '-' | '_' | '(' | ')' | '%' | '/')))
}

/// A numbered list of hits.
fn is_found(text: &str) -> bool {
    let hits = text.lines().filter(|line| line.split_once(". ").is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())));
    hits.count() >= 2
}

/// `commit 9b1f0c2`, then its author.
fn is_commit(text: &str) -> bool {
    text.starts_with("commit ") && text.lines().take(4).any(|line| line.starts_with("Author:"))
}

/// A Markdown page: it begins with a heading that stands alone.
fn is_document(text: &str) -> bool {
    let mut lines = text.lines();
    lines.next().is_some_and(|line| line.trim_start_matches('#').starts_with(' ') && line.starts_with('#')) && lines.next().is_some_and(|line| line.trim().is_empty())
}

/// Source code: several lines that only code has, and none that a failure has.
fn is_source(text: &str) -> bool {
    const CODE: &[&str] = &["def ", "class ", "import ", "fn ", "pub ", "const ", "let ", "var ", "func ", "return ", "if (", "if err", "#include", "package ", "use ", "async ", "export ", "try:", "try {", "except ", "catch (", "raise ", "throw "];
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (mut all, mut code) = (0_usize, 0_usize);
    for line in lines.take(200) {
        all += 1;
        let line = line.trim_start();
        let imported = line.starts_with("from ") && line.contains(" import ");
        code += usize::from(imported || CODE.iter().any(|begin| line.starts_with(begin)));
    }
    let mut ends = text.lines().next().into_iter().chain(text.lines().next_back());
    let ends_in_failure = ends.any(begins_as_failure) || text.lines().any(is_verdict);
    all >= 3 && code * 3 >= all && !ends_in_failure && !text.contains("Traceback (most recent call last)")
}

fn by_lines(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.iter().rev().take(NEAR_ENDS);
    let at_ends = lines.iter().take(NEAR_ENDS).chain(last).any(|line| begins_as_failure(line));
    at_ends || lines.iter().any(|line| is_verdict(line)) || (lines.len() <= NEAR_ENDS && lines.iter().any(|line| ends_as_failure(line)))
}

/// `cat: missing.txt: No such file or directory`: short outputs may say it at the end of the line.
fn ends_as_failure(line: &str) -> bool {
    if is_all_clear(line) {
        return false;
    }
    let lower = line.to_ascii_lowercase();
    const REASONS: &[&str] = &[
        "no such file or directory", "permission denied", "command not found", "connection refused", "operation not permitted", "is a directory", "not a directory",
        "no space left on device", "read-only file system", "file exists", "timed out", "not found.", ": not found", "does not exist", "access denied", "is locked", "is denied",
        "not recognized", "cannot be found", "could not be found", "was not found", " failed.", " failed:", "not permitted", "unavailable", "denied by policy.", "already in use", "has been denied", " failed;", "conflict (", "has not been read", "read it first", " denied", "out of memory", " died ", " crashed", "no changes to make", "panicked at", "aborted due to", "did not complete within", "giving up.", "awaiting response... 4", "awaiting response... 5",
    ];
    (REASONS.iter().any(|reason| lower.contains(reason)) || lower.ends_with(" failed") || lower.ends_with("not found")) && !lower.starts_with("no ")
}

/// A line that passes judgement on a whole run, wherever it stands.
fn is_verdict(line: &str) -> bool {
    line.starts_with("test result: FAILED")
        || line.starts_with("Traceback (most recent call last)")
        || line.starts_with("npm ERR!")
        || line.starts_with("npm error")
        || line.starts_with("FAILED (")
        || line.starts_with("--- FAIL")
        || line.starts_with("error[")
        || line.starts_with("! ") && line.contains("Error")
        || line.contains(": error:") && !line.contains("\"")
        || line.contains(": ERROR:")
        || line.contains(": fatal error:")
        || line.contains(" failed, ") && line.contains(" passed") && !line.contains(" 0 failed")
        || line.contains(" FAILED at ")
        || line.starts_with("==== ") && line.ends_with(" FAILED")
        || line.starts_with("not ok ")
        || line.starts_with("! ") && line.ends_with("not found.")
        || line.starts_with("thread '") && line.contains(" panicked at ")
}

/// A line that begins as failures begin.
pub(super) fn begins_as_failure(line: &str) -> bool {
    let line = line.strip_prefix("<stderr>").unwrap_or(line);
    let line = line.trim_start_matches(['[', '(', '*', '!', '│', '╷', '|', '❌', '✗', '✕', '✖', '×', '>', ' ', '\u{fe0f}']);
    if is_all_clear(line) {
        return false;
    }
    let lower = line.get(..line.floor_char_boundary(160)).unwrap_or_default().to_ascii_lowercase();
    const BEGINNINGS: &[&str] = &[
        "error:", "error ", "error[", "error in", "error (", "err:", "err ", "fatal:", "fatal error", "fatal ", "failed to", "failed:", "failed ", "failure", "exception", "traceback", "panic", "cannot ", "can't ",
        "could not ", "couldn't ", "unable to ", "permission denied", "permission to use", "access denied", "access is denied", "command failed", "curl: (", "wget: ", "bash: ", "sh: ", "zsh: ", "/bin/sh: ",
        "/bin/bash: ", "npm err", "npm error", "yarn error", "mcp error", "killed", "segmentation fault", "usage:", "invalid ", "unknown ", "no such ", "timeout error", "timeout:", "timeout ", "timed out",
        "unhandled", "uncaught", "write failed", "read failed", "http 4", "http 5", "http/1.1 4", "http/1.1 5", "http/1.0 4", "http/1.0 5", "http/2 4", "http/2 5", "ssh: ", "git: ", "tool ", "syntax error", "parse error", "missing required", "missing operand", "php fatal error", "php parse error", "error]",
        "not found", "<tool_use_error>", "validation error", "input validation", "エラー:", "エラー：", "エラーが", "错误:", "错误：", "失败:", "失败：", "오류:", "fehler:", "erreur", "rejected", "denied", "abort", "operation not permitted", "the term ", "warning: failed",
        "status: error", "e: ", "execution failed", "build failed", "assertion", "the command failed", "request failed", "connection ",
    ];
    // "tool " alone is a heading; it needs its complaint.
    let complained = |begin: &str| begin != "tool " || lower.contains("not found") || lower.contains("failed") || lower.contains("error") || lower.contains("not ");
    if BEGINNINGS.iter().any(|begin| lower.starts_with(begin) && complained(begin)) && !lower.starts_with("error.") && !lower.starts_with("connection established") && !lower.starts_with("connection succe") {
        return true;
    }
    names_exception(line) || complains(&lower) || begins_with_status(line)
}

/// `401 Unauthorized`, `503 Service Unavailable: …`
fn begins_with_status(line: &str) -> bool {
    let status: Option<u16> = line.get(..3).and_then(|digits| digits.parse().ok());
    let words = line.get(3..).unwrap_or_default();
    status.is_some_and(|status| (400..600).contains(&status)) && words.strip_prefix(' ').is_some_and(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// `sqlite3.OperationalError: …`, `zipfile.BadZipFile: …`, `ValueError`, `… (LoadError)`
fn names_exception(line: &str) -> bool {
    if line.ends_with("Error)") || line.ends_with("Exception)") {
        return true;
    }
    let head = line.split([':', '(', ' ']).next().unwrap_or_default();
    let name = head.rsplit(['.', ':']).next().unwrap_or_default().trim_end_matches(')');
    let named = ["Error", "Exception", "Expired", "Interrupt", "Failure", "Fault"].iter().any(|end| name.ends_with(end));
    let alone = head.ends_with(')') || name.len() == line.len() || line.get(head.len()..).is_some_and(|rest| rest.starts_with(':') || rest.starts_with('('));
    let capital = name.starts_with(|c: char| c.is_ascii_uppercase());
    let qualified = head.split_once('.').is_some_and(|(module, _)| !module.is_empty() && module.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
    let camel = name.bytes().filter(u8::is_ascii_uppercase).count() > 1 && name.bytes().all(|b| b.is_ascii_alphanumeric());
    capital && alone && ((named && name.len() > 5) || (qualified && camel && line.len() > head.len()))
}

/// `<name>: <reason>` where the reason is a complaint.
fn complains(lower: &str) -> bool {
    let Some((name, reason)) = lower.split_once(':') else { return false };
    let short_name = name.split_whitespace().count() <= 4 && name.len() <= 60;
    const REASONS: &[&str] = &["cannot ", "can't ", "could not", "couldn't", "unable to", "failed", "error", "permission denied", "no such", "not found", "command not found", "invalid ", "unrecognized", "unknown option", "illegal option", "the term ", "to use github cli", "unexpected", "no module named", "executable file not found", "*** ", "no such option", "missing ", "denied", "fatal", "not a git", "old_string", "bad ", "unterminated", "unmatched", "timeout ", "canceling "];
    let reason = reason.trim_start();
    let last = lower.rsplit(": ").next().unwrap_or_default();
    let failed_name = name.ends_with(" failed") && name.split_whitespace().count() <= 5;
    // Other languages put the complaint last.
    const ENDINGS: &[&str] = &["ありません", "できません", "introuvable", "nicht gefunden", "no encontrado", "no encontrada", "não encontrado", "不存在", "失败", "被拒绝", "없습니다"];
    let foreign = ENDINGS.iter().any(|ending| last.trim_end_matches(['.', '。']).ends_with(ending));
    failed_name || foreign && name.len() <= 60 || short_name && REASONS.iter().any(|complaint| reason.starts_with(complaint) || (last.starts_with(complaint) && lower.len() < 200))
}

/// Words of errors that say that there are none.
fn is_all_clear(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    const CLEAR: &[&str] = &["0 errors", "0 error", "no error", "no errors", "0 failed", "0 failures", "no failures", "without error", "no issues", "no problems", "no warnings", "all checks passed", "successfully", "succeeded", "0 problems"];
    CLEAR.iter().any(|clear| lower.starts_with(clear) || lower.contains(&format!(" {clear}")))
}

/// A line that warns of a missing glyph or font, printed by a drawing library.
pub(super) fn warns_of_fonts(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        let words = line.trim_start_matches(|c: char| c.is_ascii_uppercase() || matches!(c, ':' | '[' | ']' | ' '));
        line.starts_with("Fontconfig error") || line.starts_with("Fontconfig warning") || words.starts_with("findfont:") || (line.contains("Warning: Glyph ") && line.contains("missing from"))
    })
}

/// The line that tells what failed: the last one that begins as a failure, or the first with words.
pub(super) fn telling_line(text: &str) -> Range<usize> {
    let mut first = None;
    let mut telling = None;
    let mut at = 0;
    for line in text.split('\n') {
        if !line.trim().is_empty() {
            let span = at..at + line.len();
            first.get_or_insert(span.clone());
            if begins_as_failure(line.trim()) {
                telling = Some(span);
            }
        }
        at += line.len() + 1;
    }
    telling.or(first).unwrap_or(0..0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_by_where_the_words_stand() {
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
            assert_eq!(report(text), Report::Fine, "{text}");
        }
    }
}
