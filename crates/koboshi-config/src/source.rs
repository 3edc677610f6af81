//! A text with its name: problems get their place and their line from it, and it decides what may be shown.
//!
//! Secrets end up in all places of a config: under a wrong name, one level too high, in a list in place of a text, in a
//! comment, in a line that is no YAML at all. So looking harmless is no reason to show a text. Of a parsed file,
//! [`mask`](crate::mask) decides: names of keys, and values of keys that hold no secret, are shown. Everything else of a line,
//! and of a file that is no YAML, is shown only where it is a word of our own ([`vocabulary`](crate::vocabulary)); the rest
//! becomes `***`. What is hidden in one place is hidden in every other, so that no message repeats it.
//!
//! Control characters are replaced, so that a file cannot control the terminal.

use std::ops::Range;
use std::sync::LazyLock;

use koboshi::redact::{Redactor, shorten};

use crate::check::Problem;
use crate::mask::{self, Visible};
use crate::secret::is_name;
use crate::tree::{Node, Spot};
use crate::vocabulary::{is_harmless, is_ours, is_plain_variable};
use crate::wide;
use crate::words::Text;

/// A longer line is cut around the place.
const LINE_CHARS: usize = 100;
/// A longer value is shortened where it is quoted.
const VALUE_CHARS: usize = 60;
/// Replaces a hidden part.
pub(crate) const HIDDEN: &str = "***";

/// Compiled when the first problem is shown.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// The line of a problem, as it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownLine {
    pub(crate) line: String,
    /// The spaces under the line before the wrong part, and the marks under that; none where redaction moved it.
    pub(crate) marks: Option<(String, String)>,
}

/// A text with its name.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// Byte ranges that may be shown, in order; none means all of them.
    open: Option<Vec<Range<usize>>>,
    /// Texts that are hidden everywhere.
    secrets: Vec<String>,
}

impl<'a> Source<'a> {
    /// A file without secrets, such as a rule file.
    pub(crate) fn plain(name: &'a str, text: &'a str) -> Self {
        Self { name, text, open: None, secrets: Vec::new() }
    }

    /// A config that could not be read as YAML.
    pub(crate) fn broken(name: &'a str, text: &'a str) -> Self {
        Self { name, text, open: Some(Vec::new()), secrets: Vec::new() }
    }

    /// A config with its tree.
    pub(crate) fn of_tree(name: &'a str, text: &'a str, root: Option<&Node>) -> Self {
        let Visible { spots, secrets, .. } = root.map(mask::visible_parts).unwrap_or_default();
        let mut open: Vec<Range<usize>> = spots.iter().map(|spot| bytes_of(text, *spot)).collect();
        open.sort_by_key(|range| range.start);
        Self { name, text, open: Some(open), secrets }
    }

    /// A problem at a place of the text.
    pub(crate) fn problem(
        &self,
        spot: Spot,
        path: &str,
        message: impl Into<Text>,
        hint: Option<Text>,
    ) -> Problem {
        let clean = |text: &str| self.without_secrets(text);
        let hint = self.wide(spot).or(hint);
        Problem {
            file: self.name.to_owned(),
            place: Some(spot.place()),
            path: clean(path),
            message: message.into().map(clean),
            hint: hint.map(|hint| hint.map(clean)),
            shown: self.shown(spot),
        }
    }

    /// The hint for full-width characters in the wrong part. For a file that is no YAML the place is where the parser failed: the cause is
    /// in that line or in the one above.
    fn wide(&self, spot: Spot) -> Option<Text> {
        let part = self.text.get(bytes_of(self.text, spot)).unwrap_or_default();
        if self.open.as_ref().is_none_or(|open| !open.is_empty()) {
            return wide::hint(part, self.quote(part) != HIDDEN);
        }
        let line = start_of_line(self.text, spot.line);
        let above = self.text.get(..line).unwrap_or_default().trim_end();
        let from = above.rfind('\n').map_or(0, |at| at + 1);
        let to =
            self.text.get(line..).and_then(|rest| rest.find('\n')).map_or(self.text.len(), |at| line + at);
        wide::hint(self.text.get(from..to).unwrap_or_default(), false)
    }

    /// A line of the text, without its end.
    pub(crate) fn line(&self, number: u64) -> &str {
        let start = start_of_line(self.text, number);
        self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default()
    }

    /// The number of the nearest line above with more than a comment; the same line where there is none.
    pub(crate) fn line_above(&self, number: u64) -> u64 {
        let is_said = |line: &u64| {
            let line = self.line(*line).trim();
            !line.is_empty() && !line.starts_with('#')
        };
        (1..number).rev().take(100).find(is_said).unwrap_or(number)
    }

    /// A value as it can be quoted in a message.
    pub(crate) fn quote(&self, value: &str) -> String {
        let redacted = REDACTOR.redact(value);
        let clean = self.without_secrets(&redacted);
        if self.open.is_some() && !is_harmless(&clean) {
            return HIDDEN.to_owned();
        }
        printable(&shorten(&clean, VALUE_CHARS)).replace('\n', " ")
    }

    /// A name that may be shown, fit for a message.
    pub(crate) fn name(&self, name: &str) -> String {
        printable(&shorten(&REDACTOR.redact(name), VALUE_CHARS)).replace('\n', " ")
    }

    fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN))
    }

    /// A line with the wrong part marked.
    fn shown(&self, spot: Spot) -> Option<ShownLine> {
        let start = start_of_line(self.text, spot.line);
        let line = self.text.get(start..)?.split_inclusive('\n').next()?.trim_end_matches(['\r', '\n']);
        let from = usize::try_from(spot.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let to = from.saturating_add(usize::try_from(spot.chars.max(1)).unwrap_or(usize::MAX));
        let MaskedLine { line, from, to } = match &self.open {
            None => MaskedLine { line: line.to_owned(), from, to },
            Some(open) => masked(line, start, open, (from, to)),
        };
        let line = self.without_secrets(&line);
        let redacted = REDACTOR.redact(&line);
        let before: String = line.chars().take(from).collect();
        let Some(rest) = redacted.strip_prefix(before.as_str()) else {
            return Some(ShownLine { line: printable(&shorten(&redacted, LINE_CHARS)), marks: None });
        };
        // A long line is shown from a little before the place on.
        let skip = if line.chars().count() > LINE_CHARS { from.saturating_sub(LINE_CHARS / 2) } else { 0 };
        let lead: String =
            if skip > 0 { "…".chars().chain(before.chars().skip(skip)).collect() } else { before };
        let room = LINE_CHARS.saturating_sub(lead.chars().count());
        let mut tail: String = rest.chars().take(room).collect();
        let wrong = to.saturating_sub(from).clamp(1, tail.chars().count().max(1));
        let marks = "^".repeat(width(tail.chars().take(wrong)).max(1));
        if rest.chars().count() > room {
            tail.push('…');
        }
        Some(ShownLine { line: printable(&format!("{lead}{tail}")), marks: Some((blank(&lead), marks)) })
    }
}

/// A line with marks in place of what is not shown, and where the wrong part is in it, in characters.
struct MaskedLine {
    line: String,
    from: usize,
    to: usize,
}

/// Hides all words of a line outside of the visible ranges that are none of ours.
fn masked(line: &str, start: usize, open: &[Range<usize>], (from, to): (usize, usize)) -> MaskedLine {
    let mut out = MaskedLine { line: String::new(), from: usize::MAX, to: usize::MAX };
    let is_open = |at: Range<usize>| {
        open.iter().any(|range| range.start <= start + at.start && start + at.end <= range.end)
    };
    let (mut chars, mut shown, mut is_first) = (0, 0, true);
    for piece in pieces(line) {
        let text = line.get(piece.at.clone()).unwrap_or_default();
        let count = text.chars().count();
        // Of a file without a tree, the first word of a line that a colon follows is the name of a key.
        let is_name = open.is_empty() && is_first && follows_colon(line, piece.at.end);
        is_first &= !piece.is_word;
        let visible = !piece.is_word
            || is_open(piece.at.clone())
            || is_ours(text)
            || is_name && mask::is_shown_unknown("", text);
        if piece.is_comment && !is_open(piece.at.clone()) {
            out.line.push_str("# …");
            break;
        }
        // A mark that begins or ends inside of a hidden part covers all of it.
        if from < chars + count {
            let inside = if visible { from.saturating_sub(chars) } else { 0 };
            out.from = out.from.min(shown + inside);
        }
        let printed = if visible { text } else { HIDDEN };
        let length = printed.chars().count();
        if to <= chars + count {
            let inside = if visible { to.saturating_sub(chars) } else { length };
            out.to = out.to.min(shown + inside);
        }
        out.line.push_str(printed);
        chars += count;
        shown += length;
    }
    let whole = out.line.chars().count();
    out.from = out.from.min(whole);
    out.to = out.to.min(whole).max(out.from);
    out
}

/// Whether the colon of a key stands at this place of a line.
fn follows_colon(line: &str, at: usize) -> bool {
    line.get(at..).is_some_and(|rest| rest.starts_with([':', '：']) && is_between(rest))
}

/// A part of a line.
struct Piece {
    at: Range<usize>,
    is_word: bool,
    is_comment: bool,
}

/// A line cut into words and separators. A variable is one piece that may be shown; a comment extends to the end.
fn pieces(line: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let mut at = 0;
    let mut after_space = true;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let next = rest.chars().next().unwrap_or_default();
        if next == '#' && after_space {
            found.push(Piece { at: at..line.len(), is_word: true, is_comment: true });
            break;
        }
        if let Some(length) = variable(rest) {
            found.push(Piece { at: at..at + length, is_word: false, is_comment: false });
            at += length;
            after_space = false;
            continue;
        }
        // The colon behind a name of ours ends it, also where its space is missing.
        let is_named = |end: usize| line.get(..end).is_some_and(|before| is_ours(last_word(before)));
        let is_word = !(is_between(rest) || next == ':' && is_named(at));
        let mut end = next.len_utf8();
        while let Some(more) = rest.get(end..).filter(|more| !more.is_empty()) {
            let is_end = is_between(more) || variable(more).is_some();
            if !is_word || is_end || more.starts_with(':') && is_named(at + end) {
                break;
            }
            end += more.chars().next().map_or(1, char::len_utf8);
        }
        found.push(Piece { at: at..at + end, is_word, is_comment: false });
        after_space = next.is_whitespace();
        at += end;
    }
    found
}

/// The word that a text ends with.
fn last_word(text: &str) -> &str {
    let is_edge = |c: char| c.is_whitespace() || "{}[],\"':".contains(c) || wide::is_mark(c);
    text.rsplit(is_edge).next().unwrap_or_default()
}

/// Whether a text begins with a separator.
fn is_between(text: &str) -> bool {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if c.is_whitespace() || "{}[],\"'".contains(c) || wide::is_mark(c) => true,
        Some(':') => chars.next().is_none_or(|c| c.is_whitespace() || "{}[],\"'".contains(c)),
        _ => false,
    }
}

/// How much of the variable at the beginning of a text may be shown: `${NAME}`, or `${NAME:-` without the default.
fn variable(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("${")?;
    let end = inside.find('}')?;
    let whole = inside.get(..end)?;
    let (name, shown) = whole.split_once(":-").map_or((whole, end + 3), |(name, _)| (name, name.len() + 4));
    (is_name(name) && is_plain_variable(name)).then_some(shown)
}

/// The bytes of a place.
fn bytes_of(text: &str, spot: Spot) -> Range<usize> {
    let line = start_of_line(text, spot.line);
    let forward = |start: usize, chars: u64| {
        let chars = usize::try_from(chars).unwrap_or(usize::MAX);
        let rest = text.get(start..).unwrap_or_default();
        rest.char_indices().nth(chars).map_or(text.len(), |(end, _)| start + end)
    };
    let start = spot.start.unwrap_or_else(|| forward(line, spot.column.saturating_sub(1)));
    start..forward(start, spot.chars)
}

/// Where a line begins, in bytes.
fn start_of_line(text: &str, number: u64) -> usize {
    let above = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    text.split_inclusive('\n').take(above).map(str::len).sum()
}

/// A name or value as it can be shown outside of a file's own problems.
pub(crate) fn safe(name: &str) -> String {
    printable(&REDACTOR.redact(name)).replace('\n', " ")
}

/// Spaces as wide as a text; tabs stay, so that both lines align.
fn blank(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\t' { "\t".to_owned() } else { " ".repeat(width(std::iter::once(c))) })
        .collect()
}

/// The width in columns of a terminal. Scripts from Hangul on are two columns wide; that is precise enough for a mark.
fn width(chars: impl Iterator<Item = char>) -> usize {
    chars.map(|c| if c >= '\u{1100}' && c != '…' { 2 } else { 1 }).sum()
}

/// The text without control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' && c != '\n' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    fn spot(line: u64, column: u64, chars: u64) -> Spot {
        Spot { line, column, start: None, chars }
    }

    fn said(source: &Source<'_>, spot: Spot) -> String {
        source.problem(spot, "", words("wrong", ""), Some(words("right", "").into())).to_string()
    }

    fn plain(text: &str, spot: Spot) -> String {
        said(&Source::plain("a.yaml", text), spot)
    }

    #[test]
    fn a_problem_shows_its_line_and_underlines_the_wrong_part() {
        assert_eq!(
            plain("x: 1\nretry: {attempts: five}\n", spot(2, 19, 4)),
            "a.yaml:2:19: wrong\n    |\n  2 | retry: {attempts: five}\n    |                   ^^^^\n  hint: right"
        );
    }

    #[test]
    fn wide_characters_and_tabs_keep_the_mark_in_place() {
        assert!(plain("日本: x\n", spot(1, 5, 1)).contains("| 日本: x\n    |       ^"));
        assert!(plain("\ta: x\n", spot(1, 5, 1)).contains("| \ta: x\n    | \t   ^"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}wrong{}", "a".repeat(500), "b".repeat(500));
        let said = plain(&text, spot(1, 501, 5));
        assert!(said.lines().all(|line| line.chars().count() < LINE_CHARS + 20), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[2].find("wrong").map(|at| lines[2][..at].chars().count()), lines[3].find('^'));
    }

    #[test]
    fn of_broken_yaml_only_our_own_words_are_shown_and_the_mark_moves_with_them() {
        let text = "retry: {max_attempts: 3, keys: [\"hunter2-admin-key\", ${NAME}} # was hunter3-key\n";
        let said = said(&Source::broken("a.yaml", text), spot(1, 34, 17));
        assert!(said.contains("| retry: {max_attempts: 3, keys: [\"***\", ${NAME}} # …\n"), "{said}");
        assert!(said.contains("|                                  ^^^\n"), "{said}");
    }

    #[test]
    fn names_of_keys_are_shown_where_the_yaml_is_broken_by_what_follows_them() {
        for (text, shown) in [
            ("routes：\n", "| routes：\n"),
            ("    key: sk-abc\n", "|     key: ***\n"),
            ("    key： sk-abc\n", "|     key： ***\n"),
            ("alice: 5f2c9a7be01d4c55a0aa93e1b6f1d2aa\n", "| alice: ***\n"),
            ("listen:127.0.0.1:4141\n", "| listen:***\n"),
            ("hunter2-admin-key: x\n", "| ***: ***\n"),
            ("sk-abc-hunter2：x\n", "| ***：***\n"),
        ] {
            let said = said(&Source::broken("a.yaml", text), spot(1, 1, 1));
            assert!(said.contains(shown), "{text}: {said}");
        }
    }

    #[test]
    fn control_characters_are_not_shown() {
        let said = plain("redsi: redis://:hunter2secret@h:1/0 \u{1b}[31m\n", spot(1, 1, 5));
        assert!(!said.contains("hunter2") && !said.contains('\u{1b}'), "{said}");
        assert!(said.contains("^^^^^"), "{said}");
    }
}
