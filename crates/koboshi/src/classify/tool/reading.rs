//! Texts that are shown, not reported: listings, search hits, diffs, logs, tables, manuals, source code.
//!
//! All of them are full of the words of errors. They are recognised by what most of their lines look like, so
//! one odd line does not turn a failure into a document, nor a document into a failure.

use super::cues::Cues;
use super::failing::{begins_as_failure, has_verdict};

/// Text that is shown, not reported: most of its lines are of a kind that only readers see. `lines` are those of the text
/// that say something.
pub(super) fn is_reading(text: &str, lines: &[&str]) -> bool {
    let near = lines.get(..lines.len().min(400)).unwrap_or_default();
    // Asked once for all lines: it stands in the middle of them.
    let passed = memchr::memmem::find(text.as_bytes(), b" PASSED").is_some();
    let read = near.iter().filter(|line| is_read_line(line, passed)).count();
    !near.is_empty() && read * 2 > near.len()
        || is_manual(text, lines)
        || is_document(text)
        || is_table(text, lines)
        || is_found(lines)
        || is_commit(text)
        || is_listing(lines)
        || is_help(text)
        || is_source(text, lines)
}

fn is_read_line(line: &str, passed: bool) -> bool {
    let trimmed = line.trim_start();
    numbered(trimmed)
        || search_hit(trimmed)
        || hashed(trimmed)
        || stamped(trimmed)
        || diffed(line)
        || passing(trimmed, passed)
}

/// `  12<tab>text`, `12→text`, `12|text`
fn numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len()
        && (rest.starts_with('\t')
            || rest.starts_with('→')
            || rest.starts_with('|')
            || rest.starts_with("  ")
            || rest.starts_with(": "))
}

/// `src/a.rs:12:text`, without a column and without the word that a compiler puts there.
fn search_hit(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else { return false };
    let pathlike = !path.contains(' ') && (path.contains('.') || path.contains('/'));
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = rest.get(digits..).unwrap_or_default();
    if !pathlike || digits == 0 || !after.starts_with(':') || path.starts_with('[') {
        return false;
    }
    let compiler = after.contains("error:")
        || after.contains("ERROR:")
        || after.contains("warning:")
        || after
            .trim_start_matches(|c: char| c == ':' || c.is_ascii_digit())
            .trim_start()
            .starts_with("error");
    let word = after.trim_start_matches([':', ' ']).split([' ', ':']).next().unwrap_or_default();
    let warning = word.ends_with("Warning") || (word.ends_with("Error") && after.contains("Error:"));
    let frame = after.starts_with(":in ") || word == "undefined" || word == "cannot" || word == "undeclared";
    !compiler && !warning && !frame
}

/// `a1b2c3d title` or `commit a1b2…`
fn hashed(line: &str) -> bool {
    let line = line.strip_prefix("commit ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let word = line.split(' ').next().unwrap_or_default();
    (6..=40).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// A line of a log: it begins with a date or a clock time.
fn stamped(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(']);
    let digits = line
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'/' | b'T' | b'.'))
        .count();
    let head = line.get(..digits).unwrap_or_default();
    digits >= 8 && head.bytes().filter(|byte| matches!(byte, b'-' | b':' | b'/')).count() >= 2
}

fn diffed(line: &str) -> bool {
    let line = if line.trim_start().starts_with("+ CategoryInfo") { "" } else { line };
    line.starts_with("+ ")
        || line.starts_with("- ")
        || line.starts_with("@@ ")
        || line.starts_with("diff --git")
        || line.starts_with("+++ ")
        || line.starts_with("--- a/")
        || line.starts_with("index ")
        || (line.starts_with('+') && line.len() > 3 && !line.starts_with("++"))
}

fn passing(line: &str, passed: bool) -> bool {
    line.starts_with("PASS ")
        || line.starts_with("✓")
        || line.starts_with("✔")
        || line.starts_with("ok ")
        || line.ends_with("... ok")
        || passed && (line.ends_with(" PASSED") || line.contains(" PASSED "))
}

fn is_manual(text: &str, lines: &[&str]) -> bool {
    let is_heading =
        |line: &&&str| line.len() >= 4 && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
    let indented = lines.iter().filter(|line| line.starts_with("      ")).take(3).count();
    let first = text.lines().next().is_some_and(|line| is_heading(&&line));
    indented >= 2 && lines.iter().filter(is_heading).take(2).count() >= 2 || (first && indented >= 3)
}

/// What a program prints about itself when it is asked for help.
fn is_help(text: &str) -> bool {
    static USAGE: Cues = Cues::new(&["usage:", "Usage:", "USAGE:"]);
    if !USAGE.may_be_in(text) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let usage = lower.trim_start().starts_with("usage:") || lower.contains("\nusage:");
    usage && (lower.contains("show this help") || lower.contains("\noptions:")) && !lower.contains("error:")
}

/// A listing of files: every line is one path, or names in columns.
fn is_listing(lines: &[&str]) -> bool {
    let is_path = |word: &str| !word.ends_with(':') && (word.contains('/') || word.contains('.'));
    !lines.is_empty() && lines.iter().all(|line| line.split_whitespace().all(is_path) && !line.ends_with('.'))
}

/// A table: a first line of several headings in capitals, or a rule under it or around it.
fn is_table(text: &str, lines: &[&str]) -> bool {
    let is_rule =
        |line: &str| line.chars().all(|c| matches!(c, '-' | '+' | ' ' | '=' | '|')) && line.contains("--");
    if text.lines().take(3).any(is_rule) && text.lines().nth(2).is_some() {
        return !lines.last().is_some_and(|line| begins_as_failure(line));
    }
    let first = text.lines().next().unwrap_or_default();
    let columns = first.split("  ").map(str::trim).filter(|column| !column.is_empty());
    let is_heading = |column: &str| {
        column.chars().all(|c| c.is_ascii_uppercase() || matches!(c, ' ' | '-' | '_' | '(' | ')' | '%' | '/'))
    };
    columns.clone().all(is_heading) && columns.count() >= 3
}

/// A numbered list of hits: `1. …` or `[1] …`.
fn is_found(lines: &[&str]) -> bool {
    let hits = lines.iter().filter(|line| {
        let bracketed = line.strip_prefix('[');
        let number = bracketed.unwrap_or(line);
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < number.len() && (rest.starts_with(". ") || bracketed.is_some() && rest.starts_with("] "))
    });
    hits.take(2).count() >= 2
}

/// `commit 9b1f0c2`, then its author.
fn is_commit(text: &str) -> bool {
    text.starts_with("commit ") && text.lines().take(4).any(|line| line.starts_with("Author:"))
}

/// A Markdown page: it begins with a heading that stands alone.
fn is_document(text: &str) -> bool {
    let mut lines = text.lines();
    lines.next().is_some_and(|line| line.trim_start_matches('#').starts_with(' ') && line.starts_with('#'))
        && lines.next().is_some_and(|line| line.trim().is_empty())
}

/// Source code: several lines that only code has, and none that a failure has.
fn is_source(text: &str, lines: &[&str]) -> bool {
    const CODE: &[&str] = &[
        "def ", "class ", "import ", "fn ", "pub ", "const ", "let ", "var ", "func ", "return ", "if (",
        "if err", "#include", "package ", "use ", "async ", "export ", "try:", "try {", "except ", "catch (",
        "raise ", "throw ",
    ];
    let near = lines.get(..lines.len().min(200)).unwrap_or_default();
    let is_code = |line: &&&str| {
        let line = line.trim_start();
        let imported = line.starts_with("from ") && line.contains(" import ");
        imported || CODE.iter().any(|begin| line.starts_with(begin))
    };
    let ends_in_failure = || {
        let mut ends = text.lines().next().into_iter().chain(text.lines().next_back());
        ends.any(begins_as_failure)
            || has_verdict(text, lines.iter().copied())
            || text.contains("Traceback (most recent call last)")
    };
    near.len() >= 3 && near.iter().filter(is_code).count() * 3 >= near.len() && !ends_in_failure()
}
