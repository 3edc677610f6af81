//! One line of an agent's log: what it says, and who wrote it.
//!
//! Terminals leave colours, cursor moves, spinners and box drawing in a log; programs put timestamps and
//! levels before their words. This module takes all of that off. What is left of it, the [`Marker`], shows
//! who wrote it: an agent's bullet, a diff, a listing and a passing test are the agent's work, not the
//! provider's answer.

use std::borrow::Cow;

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// Begins as errors do: `Error:`, `API Error`, `✕`, a level, an exception name.
    Error,
    /// The program itself, without saying that it is an error.
    Plain,
    /// The agent's words, or what it reads, writes and tests.
    Agent,
    /// Something that the agent does or says, signed as such: what stands above it is history.
    Act,
    /// A step that went well.
    Work,
    /// Nothing to read: blank lines, stack frames, rules, brackets.
    Noise,
}

/// A line without its decoration.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) marker: Marker,
}

impl<'a> Line<'a> {
    pub(super) fn read(raw: &'a str) -> Self {
        let shown = last_overwrite(raw);
        let bare = strip_escapes(shown);
        let (text, marker) = match bare {
            Cow::Borrowed(text) => {
                let (text, marker) = undecorate(text);
                (Cow::Borrowed(text), marker)
            }
            Cow::Owned(text) => {
                let (text, marker) = undecorate(&text);
                (Cow::Owned(text.to_owned()), marker)
            }
        };
        Self { text, marker }
    }

    /// What a terminal would show of a line, with its stamp.
    pub(super) fn shown(raw: &str) -> Cow<'_, str> {
        strip_escapes(last_overwrite(raw))
    }
}

/// What a terminal would show of a line that was overwritten with carriage returns.
fn last_overwrite(raw: &str) -> &str {
    raw.trim_end_matches(['\r', '\n']).rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default()
}

/// Takes out ANSI and OSC sequences and other control characters.
pub(super) fn strip_escapes(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 0x20 && byte != b'\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\t' => out.push('\t'),
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            // Parameters, then one final letter.
            while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {}
        }
        Some(']' | 'P' | '_' | '^') => {
            // Up to the bell or the string terminator.
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

fn undecorate(line: &str) -> (&str, Marker) {
    let line = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{2500}'..='\u{259f}'));
    let line = line.trim().trim_start_matches("**");
    if line.is_empty() || is_frame(line) || is_file_name(line) {
        return (line, Marker::Noise);
    }
    if let Some(marker) = written_or_read(line) {
        return (line, marker);
    }
    let (line, glyph) = glyph(line);
    // The program may speak in the agent's place.
    if glyph == Some(Marker::Act) && line.starts_with("API Error") {
        return (line, Marker::Error);
    }
    if let Some(marker @ (Marker::Act | Marker::Agent | Marker::Work)) = glyph {
        return (line, marker);
    }
    let (line, level) = stamp(line);
    // A glyph may stand behind the timestamp too.
    let (line, late_glyph) = self::glyph(line);
    if let Some(marker @ (Marker::Act | Marker::Agent | Marker::Work)) = late_glyph {
        return (line, marker);
    }
    let marker = glyph.or(late_glyph).or(level).unwrap_or(Marker::Plain);
    if marker == Marker::Plain && begins_as_error(line) { (line, Marker::Error) } else { (line, marker) }
}

/// `permission_denied.py`: a line of a listing.
fn is_file_name(line: &str) -> bool {
    let (stem, ending) = line.rsplit_once('.').unwrap_or((line, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    (1..=5).contains(&ending.len()) && plain(stem) && plain(ending)
}

/// Stack frames, rules, and lines of brackets.
fn is_frame(line: &str) -> bool {
    line.starts_with("at ") && (line.contains('(') || line.contains(':'))
        || line.starts_with("File \"") && line.contains(", line ")
        || line.starts_with("...")
        || line.bytes().all(|byte| byte.is_ascii_punctuation() || byte == b' ')
        || line.chars().all(|c| !c.is_alphanumeric())
}

/// Diffs, listings, search hits, comments, tables and lists: text that an agent reads or writes.
fn written_or_read(line: &str) -> Option<Marker> {
    if is_persons(line) {
        return Some(Marker::Agent);
    }
    let first = line.chars().next()?;
    let rest = line.get(first.len_utf8()..).unwrap_or_default();
    let agent = match first {
        '+' | '-' => !rest.starts_with(|c: char| c.is_ascii_digit() && rest.len() < 3),
        // `##[error]…` is how a CI runner reports a failure.
        '#' => !line.starts_with("##[error]"),
        '|' => true,
        '>' => rest.starts_with(' '),
        '*' => rest.starts_with(' '),
        '@' => rest.starts_with('@'),
        '/' => rest.starts_with('/') || rest.starts_with('*'),
        '0'..='9' | 'a'..='f' if is_commit(line) => true,
        '0'..='9' => is_listing(line),
        '$' => rest.starts_with(' '),
        _ => is_search_hit(line) || is_compiler_hit(line) || is_access_log(line) || is_code(line),
    };
    if agent {
        return Some(Marker::Agent);
    }
    let passed = line.starts_with("PASS ")
        || line.starts_with("FAIL ")
        || line.starts_with("FAILED ")
        || line.starts_with("not ok ")
        || line.starts_with("ok ")
        || (line.starts_with("test ") && line.ends_with(" ok"))
        || line.ends_with(" PASSED");
    passed.then_some(Marker::Agent)
}

/// `User: fix the text of the rate limit`: a person may speak of errors all day.
fn is_persons(line: &str) -> bool {
    const PERSONS: &[&str] = &["User", "Human", "ユーザー", "利用者", "用户", "사용자"];
    PERSONS.iter().any(|person| {
        line.strip_prefix(person).is_some_and(|words| words.starts_with(": ") || words.starts_with('：'))
    })
}

/// `a1b2c3d title`: a line of a version history.
fn is_commit(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    (7..=40).contains(&word.len())
        && word.len() < line.len()
        && word.bytes().all(|b| b.is_ascii_hexdigit())
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic())
}

/// `12<tab>text`, `12→text`, `12: text`, `1. text`.
fn is_listing(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - rest.len();
    rest.starts_with('\t') || rest.starts_with('→') || (digits <= 2 && rest.starts_with(". "))
}

/// `src/lib.rs:12: …`
fn is_search_hit(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else { return false };
    let looks_like_path = !path.contains(' ') && path.contains('.') && !path.contains("//") && path.len() > 3;
    let number = rest.bytes().take_while(u8::is_ascii_digit).count();
    looks_like_path
        && number > 0
        && rest.get(number..).is_some_and(|after| after.starts_with([':', '-']))
        && !path.ends_with("Error")
}

/// `POST /login 429`: the log of a server that the agent works on.
fn is_access_log(line: &str) -> bool {
    ["GET /", "POST /", "PUT /", "DELETE /", "PATCH /"].iter().any(|method| {
        line.find(method).and_then(|at| line.get(at..)).is_some_and(|request| {
            request.split_ascii_whitespace().nth(2).is_some_and(|word| {
                word.trim_matches('"').parse::<u16>().is_ok() || word.starts_with("HTTP/")
            })
        })
    })
}

/// `src/app.ts(12,3): error TS2769: …`: a compiler on the agent's code.
fn is_compiler_hit(line: &str) -> bool {
    line.split_once("): error ").is_some_and(|(place, _)| {
        place.rsplit('(').next().is_some_and(|at| at.bytes().all(|b| b.is_ascii_digit() || b == b','))
    })
}

/// Source code that talks about errors.
fn is_code(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "raise ", "assert ", "assert(", "assert!", "assert_", "expect(", "throw ", "return ", "def ",
        "class ", "fn ", "pub ", "const ", "let ", "var ", "import ", "from ", "if ", "if(", "} ", "else",
        "elif ", "except ", "catch", "console.", "print(", "logger.", "log.", "func ", "it(", "describe(",
        "#[", "//", "/*", "\"\"\"", "'''", "self.", "await ", "async ", "export ", "function ", "println!",
        "eprintln!", "print", "echo ", "System.out", "fmt.", "puts ",
    ];
    line.ends_with(");")
        || BEGINNINGS.iter().any(|begin| line.starts_with(begin))
            && (line.contains('(')
                || line.contains('{')
                || line.contains('=')
                || line.ends_with(':')
                || line.ends_with(';'))
}

/// The sign that a program puts before a line.
fn glyph(line: &str) -> (&str, Option<Marker>) {
    let Some(first) = line.chars().next() else { return (line, None) };
    let rest =
        line.get(first.len_utf8()..).unwrap_or_default().trim_start_matches(['\u{fe0f}', ' ', '\u{a0}']);
    let marker = match first {
        '●' | '⏺' => Marker::Act,
        '•' | '◦' | '✻' | '✽' | '✶' | '✢' => Marker::Agent,
        '✓' | '✔' | '✅' | '☑' | '√' => Marker::Work,
        '✕' | '✗' | '✖' | '✘' | '×' | '■' | '❌' | '⛔' | '🛑' | '🚫' | '⚠' => {
            Marker::Error
        }
        '⎿' | '○' | '◇' | '◆' | '⚡' | '❯' | '›' | '»' | '▌' | '→' | '╰' | '└' | '├' | 'ℹ' | '⏸' | '⏳'
        | '🔴' | '✦' => Marker::Plain,
        _ if is_spinner(first) || is_emoji(first) => Marker::Plain,
        _ => return (line, None),
    };
    (rest, Some(marker))
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{1f300}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}')
}

fn is_spinner(c: char) -> bool {
    matches!(c, '\u{2800}'..='\u{28ff}')
}

/// Takes a timestamp, a level and a module name off the front.
fn stamp(line: &str) -> (&str, Option<Marker>) {
    let mut rest = line;
    let mut marker = None;
    for _ in 0..4 {
        let word_end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
        let word = rest.get(..word_end).unwrap_or_default();
        let bare = word.trim_matches(['[', ']', '(', ')', '<', '>']);
        if !is_time(bare) && level(bare).is_none() {
            break;
        }
        // `error code: 1020` has no level: the two words belong together.
        if bare == "error" && rest.get(word_end..).is_some_and(|more| more.trim_start().starts_with("code")) {
            break;
        }
        if let Some(found) = level(bare) {
            marker = Some(found);
        }
        rest = rest.get(word_end..).unwrap_or_default().trim_start();
    }
    // `ERROR goose::providers::retry: words` keeps the words.
    if marker.is_some()
        && let Some((module, words)) = rest.split_once(": ")
        && module.contains("::")
        && !module.contains(' ')
    {
        rest = words;
    }
    (rest, marker)
}

fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let others = word.bytes().filter(|byte| !byte.is_ascii_digit()).count();
    digits >= 4
        && others >= 2
        && word.bytes().all(|byte| {
            byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'T' | b'Z' | b'+' | b'/' | b',')
        })
}

fn level(word: &str) -> Option<Marker> {
    let word = word.trim_end_matches(':');
    match word.to_ascii_uppercase().as_str() {
        "ERROR" | "FATAL" | "CRITICAL" | "ERR" | "SEVERE"
            if word.bytes().all(|b| b.is_ascii_uppercase()) || word == "error" =>
        {
            Some(Marker::Error)
        }
        "WARN" | "WARNING" | "INFO" | "DEBUG" | "TRACE" | "NOTICE"
            if word.bytes().all(|b| b.is_ascii_uppercase()) || word.len() == 4 || word == "debug" =>
        {
            Some(Marker::Plain)
        }
        _ => None,
    }
}

/// `Error: …`, `API Error …`, `litellm.RateLimitError: …`, `[API Error: …`.
fn begins_as_error(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(', '"', '\'', '*', '!', '>', ' ']);
    let head = line.get(..line.floor_char_boundary(80)).unwrap_or_default();
    let lower = head.to_ascii_lowercase();
    const BEGINNINGS: &[&str] = &[
        "error", "err:", "fatal", "api error", "http error", "unexpected error", "unhandled", "uncaught",
        "exception", "panic", "failed", "failure", "ran into this error", "an error", "request failed",
        "stream error", "http/", "http 4", "http 5", "status=4", "status=5", "status 4", "status 5",
        "traceback", "critical", "##[error]", "エラー:", "エラー：", "エラーが", "错误:", "错误：", "오류:",
        "오류가", "fehler:",
    ];
    if counts_none(&lower) {
        return false;
    }
    if BEGINNINGS.iter().any(|begin| lower.starts_with(begin)) {
        return true;
    }
    // An exception name before the first colon.
    head.split_once(':').is_some_and(|(name, _)| {
        let name = name.rsplit(' ').next().unwrap_or(name).trim_matches(['[', ']', '(', ')', '*']);
        name.ends_with("Error")
            || name.ends_with("Exception")
            || name.ends_with("_error")
            || name.ends_with("Exceeded")
    })
}

/// `Errors: 0`, `failed: 0, passed: 12`: a count of zero reports a success.
fn counts_none(line: &str) -> bool {
    ["error", "errors", "failed", "failure", "failures"].iter().any(|word| {
        let count = line
            .strip_prefix(word)
            .and_then(|rest| rest.trim_start_matches([':', '=', ' ']).strip_prefix('0'));
        count.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(raw: &str) -> Marker {
        Line::read(raw).marker
    }

    #[test]
    fn terminal_codes_are_taken_off() {
        let line = Line::read(
            "\u{1b}]0;title\u{7}\u{1b}[38;5;204mYou've hit your limit\u{1b}[0m · resets 7pm\u{1b}[?25h\r",
        );
        assert_eq!(line.text, "You've hit your limit · resets 7pm");
    }

    #[test]
    fn an_overwritten_line_shows_what_was_written_last() {
        assert_eq!(Line::read("⠋ Thinking\r⠙ Thinking\rError: quota").text, "Error: quota");
    }

    #[test]
    fn timestamps_levels_and_modules_are_taken_off() {
        let line = Line::read("[2026-02-01T06:41:00Z] API Error: Unable to connect");
        assert_eq!((line.text.as_ref(), line.marker), ("API Error: Unable to connect", Marker::Error));
        let line =
            Line::read("2026-11-15T19:28:28.162916Z ERROR codex_core::tools::router: error=unsupported call");
        assert_eq!((line.text.as_ref(), line.marker), ("error=unsupported call", Marker::Error));
    }

    #[test]
    fn what_an_agent_reads_or_writes_is_not_the_programs_voice() {
        for raw in [
            "+        raise RateLimitError(\"Rate limit reached\")",
            "- Rate limit exceeded errors now keep their retry time",
            "src/limits.rs:41: // quota exhausted",
            "     12\treturn Err(\"429\")",
            "[api] POST /login 429 Too Many Requests retry-after: 60",
            "PASS tests/rate_limit.test.ts",
            "| quota | 429 |",
            "User: the text of the rate limit is wrong",
            "ユーザー: 「レート制限」というエラーメッセージの翻訳を直してください",
            "ユーザー：レート制限とは",
        ] {
            assert_eq!(marker(raw), Marker::Agent, "{raw}");
        }
    }

    #[test]
    fn what_an_agent_signs_is_recognised() {
        assert_eq!(marker("● The transcript quotes: usage limit reached"), Marker::Act);
        assert_eq!(marker("⏺ API Error: 529 Overloaded"), Marker::Error);
    }

    #[test]
    fn errors_are_recognised_by_how_they_begin() {
        for raw in [
            "✕ [API Error: quota]", "■ You've hit your usage limit.", "litellm.RateLimitError: too many",
            "ERROR: stream disconnected", "Error: Request timed out.", "  ⎿  API Error: Overloaded",
        ] {
            assert_eq!(marker(raw), Marker::Error, "{raw}");
        }
    }

    #[test]
    fn frames_and_rules_are_noise() {
        for raw in
            ["", "    at async main (file:///x.js:1:2)", "}", "────────", "  File \"x.py\", line 3, in f"]
        {
            assert_eq!(marker(raw), Marker::Noise, "{raw}");
        }
    }
}
