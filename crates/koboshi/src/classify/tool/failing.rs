//! Lines that report a failure, recognised by how they begin or end.
//!
//! Programs complain in few forms: `error: …`, `name: reason`, `SomeError: …`, a status with its phrase, a
//! verdict over a whole run. The lists below are of such beginnings and endings, not of messages.

use super::cues::Cues;

/// `cat: missing.txt: No such file or directory`: short outputs may say it at the end of the line.
pub(super) fn ends_as_failure(line: &str) -> bool {
    static REASONS: Cues = Cues::any_case(&[
        "no such file or directory", "permission denied", "command not found", "connection refused",
        "operation not permitted", "is a directory", "not a directory", "no space left on device",
        "read-only file system", "file exists", "timed out", "not found.", ": not found", "does not exist",
        "access denied", "is locked", "is denied", "not recognized", "cannot be found", "could not be found",
        "was not found", " failed.", " failed:", "not permitted", "unavailable", "denied by policy.",
        "already in use", "has been denied", " failed;", "conflict (", "has not been read", "read it first",
        " denied", "out of memory", " died ", " crashed", " not found in ", " have died",
        "deadline exceeded", "returned an error", "there was an error", "could not be ", " failed to ",
        "was declined", "divide by zero", "division by zero", "omitting directory", "::exception:",
        "no changes to make", "panicked at", "aborted due to", "did not complete within", "giving up.",
        "awaiting response... 4", "awaiting response... 5", " was refused", "空き領域がありません",
        "空き容量がありません",
    ]);
    let ends_with = |end: &str| {
        let at = line.len().saturating_sub(end.len());
        line.get(at..).is_some_and(|last| last.eq_ignore_ascii_case(end))
    };
    // A line as long as a page is no message; its end may still be one.
    let near = line.get(line.ceil_char_boundary(line.len().saturating_sub(1024))..).unwrap_or_default();
    (REASONS.may_be_in(near) || ends_with(" failed") || ends_with("not found"))
        && !line.get(..3).is_some_and(|first| first.eq_ignore_ascii_case("no "))
        && !is_all_clear(line)
}

/// Whether some line passes judgement on a whole run.
pub(super) fn has_verdict<'t>(text: &str, mut lines: impl Iterator<Item = &'t str>) -> bool {
    static CUES: Cues = Cues::new(&[
        "FAIL", "CategoryInfo", "Traceback (", "npm ERR!", "npm error", "error[", "Error", ": error:",
        ": ERROR:", ": fatal error:", " failed, ", "not ok ", "not found.", " panicked at ",
    ]);
    CUES.may_be_in(text) && lines.any(is_verdict)
}

/// A line that passes judgement on a whole run, wherever it stands.
fn is_verdict(line: &str) -> bool {
    line.starts_with("test result: FAILED")
        || line.starts_with("+ CategoryInfo")
        || line.starts_with("Traceback (most recent call last)")
        || line.starts_with("npm ERR!")
        || line.starts_with("npm error")
        || line.starts_with("FAILED (")
        || line.starts_with("--- FAIL")
        || line.starts_with("error[")
        || line.starts_with("! ") && line.contains("Error")
        || line.split_once(": error:").is_some_and(|(place, _)| {
            place.ends_with(|c: char| c.is_ascii_digit() || c == ')') || !line.contains('"')
        })
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
    let line = line.trim_start_matches([
        '[', '(', '*', '!', '│', '╷', '|', '❌', '✗', '✕', '✖', '×', '>', ' ', '\u{fe0f}',
    ]);
    looks_failed(line) && !is_all_clear(line)
}

fn looks_failed(line: &str) -> bool {
    static BEGINNINGS: Cues = Cues::any_case(&[
        "ファイルが見つかりません", "找不到", "net::err", "noauth ", "wrongpass ", "wrongtype ", "oom ",
        "readonly ", "misconf ", "error:", "error ", "error[", "error in", "error (", "err:", "err ",
        "fatal:", "fatal error", "fatal ", "failed to", "failed:", "failed ", "failure", "exception",
        "traceback", "panic", "cannot ", "can't ", "could not ", "couldn't ", "unable to ",
        "permission denied", "permission to use", "access denied", "access is denied", "command failed",
        "curl: (", "wget: ", "bash: ", "sh: ", "zsh: ", "/bin/sh: ", "/bin/bash: ", "npm err", "npm error",
        "yarn error", "mcp error", "killed", "segmentation fault", "usage:", "invalid ", "unknown ",
        "no such ", "timeout error", "timeout:", "timeout ", "timed out", "unhandled", "uncaught",
        "write failed", "read failed", "http 4", "http 5", "http/1.1 4", "http/1.1 5", "http/1.0 4",
        "http/1.0 5", "http/2 4", "http/2 5", "ssh: ", "git: ", "tool ", "syntax error", "parse error",
        "missing required", "missing operand", "php fatal error", "php parse error", "error]", "not found",
        "<tool_use_error>", "validation error", "input validation", "エラー:", "エラー：", "エラーが",
        "错误:", "错误：", "失败:", "失败：", "오류:", "fehler:", "erreur", "rejected", "denied", "abort",
        "operation not permitted", "the term ", "warning: failed", "status: error", "e: ",
        "execution failed", "build failed", "assertion", "the command failed", "request failed",
        "connection ", "an error occurred (", "no solution found",
    ]);
    let lower = line.get(..line.floor_char_boundary(160)).unwrap_or_default().to_ascii_lowercase();
    // "tool " alone is a heading; it needs its complaint.
    let complained = |begin: &str| {
        begin != "tool "
            || lower.contains("not found")
            || lower.contains("failed")
            || lower.contains("error")
            || lower.contains("not ")
    };
    if BEGINNINGS.beginning(&lower).is_some_and(complained)
        && !lower.starts_with("error.")
        && !lower.starts_with("connection established")
        && !lower.starts_with("connection succe")
    {
        return true;
    }
    names_errno(line)
        || names_exception(line)
        || complains(&lower)
        || begins_with_status(line)
        || announces_status(&lower)
}

/// `API Error: 429 {"type":"error",…}`: a status behind its cue, and behind it what the server said. A figure alone is none.
fn announces_status(lower: &str) -> bool {
    const PHRASES: &[&str] = &[
        "{", "<", "too many requests", "unauthorized", "forbidden", "not found", "bad request",
        "internal server", "service unavailable", "bad gateway", "gateway time", "overloaded", "conflict",
        "payment required",
    ];
    let head = lower.get(..lower.floor_char_boundary(80)).unwrap_or_default();
    let is_status = |end: usize| {
        let rest = lower.get(end..).unwrap_or_default().trim_start_matches([':', ' ', '(', '[', '=']);
        let rest = rest.strip_prefix("code").unwrap_or(rest).trim_start_matches([':', ' ', '=']);
        let status = rest.get(..3).and_then(|digits| digits.parse::<u16>().ok());
        let behind = rest.get(3..).unwrap_or_default();
        let phrase_text = behind.trim_start_matches([':', ' ', ')', ']', '-']);
        status.is_some_and(|status| (400..600).contains(&status))
            && phrase_text.len() < behind.len()
            && PHRASES.iter().any(|phrase| phrase_text.starts_with(phrase))
    };
    ["error", "status", "failed"]
        .iter()
        .any(|cue| head.match_indices(cue).any(|(at, cue)| is_status(at + cue.len())))
}

/// `EISDIR: illegal operation on a directory`
fn names_errno(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_uppercase());
    line.starts_with('E') && line.len() - rest.len() >= 4 && rest.starts_with(": ")
}

/// `401 Unauthorized`, `503 Service Unavailable: …`
fn begins_with_status(line: &str) -> bool {
    let status: Option<u16> = line.get(..3).and_then(|digits| digits.parse().ok());
    let words = line.get(3..).unwrap_or_default();
    status.is_some_and(|status| (400..600).contains(&status))
        && words
            .strip_prefix(' ')
            .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_uppercase() || c == '{'))
}

/// `sqlite3.OperationalError: …`, `zipfile.BadZipFile: …`, `ValueError`, `… (LoadError)`
fn names_exception(line: &str) -> bool {
    if line.ends_with("Error)") || line.ends_with("Exception)") {
        return true;
    }
    let head = line.split([':', '(', ' ']).next().unwrap_or_default();
    let name = head.rsplit(['.', ':']).next().unwrap_or_default().trim_end_matches(')');
    let named = ["Error", "Exception", "Expired", "Interrupt", "Failure", "Fault"]
        .iter()
        .any(|end| name.ends_with(end));
    let alone = head.ends_with(')')
        || name.len() == line.len()
        || line.get(head.len()..).is_some_and(|rest| rest.starts_with(':') || rest.starts_with('('));
    let capital = name.starts_with(|c: char| c.is_ascii_uppercase());
    let qualified = head.split_once('.').is_some_and(|(module, _)| {
        !module.is_empty()
            && module.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    });
    let camel = name.bytes().filter(u8::is_ascii_uppercase).count() > 1
        && name.bytes().all(|b| b.is_ascii_alphanumeric());
    capital && alone && ((named && name.len() > 5) || (qualified && camel && line.len() > head.len()))
}

/// `<name>: <reason>` where the reason is a complaint.
fn complains(lower: &str) -> bool {
    let Some((name, reason)) = lower.split_once(':') else { return false };
    let short_name = name.split_whitespace().count() <= 4 && name.len() <= 60;
    const REASONS: &[&str] = &[
        "cannot ", "can't ", "could not", "couldn't", "unable to", "failed", "error", "permission denied",
        "no such", "not found", "command not found", "invalid ", "unrecognized", "unknown option",
        "illegal option", "the term ", "to use github cli", "unexpected", "no module named",
        "executable file not found", "*** ", "no such option", "missing ", "denied", "fatal", "not a git",
        "old_string", "bad ", "unknown ", "is unknown", "not in ", "not a ", "this does not look like",
        "exiting with failure", "unterminated", "unmatched", "timeout ", "canceling ", "err_",
    ];
    let reason = reason.trim_start();
    let last = lower.rsplit(": ").next().unwrap_or_default();
    let judged = name.ends_with(" failed") || name.ends_with(" error");
    // `Mean error: 0.031` is a figure.
    let failed_name =
        judged && name.split_whitespace().count() <= 5 && !reason.starts_with(|c: char| c.is_ascii_digit());
    // Other languages put the complaint last.
    const ENDINGS: &[&str] = &[
        "ありません", "できません", "introuvable", "nicht gefunden", "no encontrado", "no encontrada",
        "não encontrado", "不存在", "失败", "被拒绝", "없습니다",
    ];
    let foreign = ENDINGS.iter().any(|ending| last.trim_end_matches(['.', '。']).ends_with(ending));
    failed_name
        || foreign && name.len() <= 60
        || short_name
            && REASONS.iter().any(|complaint| {
                reason.starts_with(complaint) || (last.starts_with(complaint) && lower.len() < 200)
            })
}

/// Words of errors that say that there are none.
pub(super) fn is_all_clear(line: &str) -> bool {
    static CLEAR: Cues = Cues::any_case(&[
        "0 errors", "0 error", "no error", "no errors", "0 failed", "0 failures", "no failures",
        "without error", "no issues", "no problems", "no warnings", "all checks passed", "successfully",
        "succeeded", "0 problems",
    ]);
    // `10 errors` are some.
    CLEAR
        .places(line)
        .any(|at| line.get(..at).is_some_and(|before| before.is_empty() || before.ends_with(' ')))
}
