//! What is wrong with a config, in a form for people and one for programs.
//!
//! A [`Problem`] names its place, shows the line with the wrong part underlined, says what is wrong and what would be
//! right. [`Problems`] holds all of them in the order of the file: who fixes a file wants to see everything at once.
//!
//! What is shown is safe to paste: lines and quoted values are redacted, the values of secret keys are never
//! shown, and control characters are replaced, so that a file cannot drive the terminal of whoever checks it.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use koboshi::redact::{Redactor, shorten};

use crate::tree::Spot;

/// More problems than this are counted, not kept: nobody reads them.
pub(crate) const MOST: usize = 100;
/// A longer line is cut around the place.
const LINE_CHARS: usize = 100;
/// A longer value is shortened where it is quoted.
const VALUE_CHARS: usize = 40;

/// Line and column, both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

/// The line of a problem, as it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    line: String,
    /// What stands under the line up to the wrong part, and the marks under that; none where redaction moved it.
    marks: Option<(String, String)>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the caller named it.
    pub file: String,
    /// Where in the file; none when the file as a whole is meant.
    pub place: Option<Place>,
    /// The key, such as `breaker.open.first`; empty when no key is meant.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
    shown: Option<Shown>,
}

impl Problem {
    /// A problem of a file as a whole.
    pub(crate) fn of_file(file: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            path: String::new(),
            message: message.into(),
            hint,
            shown: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(place) = self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let (Some(place), Some(shown)) = (self.place, &self.shown) {
            let number = place.line.to_string();
            let gap = " ".repeat(number.len());
            write!(f, "\n  {gap} |\n  {number} | {}", shown.line)?;
            if let Some((before, marks)) = &shown.marks {
                write!(f, "\n  {gap} | {before}{marks}")?;
            }
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    left_out: usize,
    unreadable: bool,
}

impl Problems {
    /// Sorts them by place; those of the first one's file come first.
    pub(crate) fn new(list: Vec<Problem>) -> Self {
        Self::with_more(list, 0)
    }

    /// The same with others that were only counted.
    pub(crate) fn with_more(mut list: Vec<Problem>, more: usize) -> Self {
        let first = list.first().map(|problem| problem.file.clone()).unwrap_or_default();
        list.sort_by_key(|problem| (problem.file != first, problem.place));
        let left_out = list.len().saturating_sub(MOST).saturating_add(more);
        list.truncate(MOST);
        Self { list, left_out, unreadable: false }
    }

    /// The file could not be read at all.
    pub(crate) fn unreadable(problem: Problem) -> Self {
        Self { list: vec![problem], left_out: 0, unreadable: true }
    }

    /// The problems, first of the file first.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len() + self.left_out
    }

    /// How many there are beyond those that are listed.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The file could not be read, so nothing is known about what is in it.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.left_out > 0 {
            write!(f, "\n\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Compiled when the first problem is shown.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// A text with its name: where problems get their place and their line from.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// Bytes that are never shown, in order.
    hidden: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text, hidden: Vec::new() }
    }

    /// A text of which these places are never shown.
    pub(crate) fn hiding(name: &'a str, text: &'a str, spots: &[Spot]) -> Self {
        let mut hidden: Vec<Range<usize>> = spots
            .iter()
            .filter_map(|spot| {
                let start = spot.start.unwrap_or_else(|| start_of_line(text, spot.line));
                let rest = text.get(start..)?;
                let chars = usize::try_from(spot.chars).unwrap_or(usize::MAX);
                let end = rest.char_indices().nth(chars).map_or(text.len(), |(end, _)| start + end);
                Some(start..end)
            })
            .collect();
        hidden.sort_by_key(|range| range.start);
        Self { name, text, hidden }
    }

    /// A line, with marks in place of what must not be shown.
    fn line(&self, number: u64) -> Option<String> {
        let start = start_of_line(self.text, number);
        let line = self.text.get(start..)?.split_inclusive('\n').next()?.trim_end_matches(['\r', '\n']);
        let mut hidden = self.hidden.iter().skip_while(|range| range.end <= start).peekable();
        let mask = |(at, c): (usize, char)| {
            while hidden.next_if(|range| range.end <= start + at).is_some() {}
            if hidden.peek().is_some_and(|range| range.contains(&(start + at))) { '*' } else { c }
        };
        Some(line.char_indices().map(mask).collect())
    }

    /// A problem at a place of the text. With `hide`, the line is not shown from that place on.
    pub(crate) fn problem(
        &self,
        spot: Spot,
        path: &str,
        message: impl Into<String>,
        hint: Option<String>,
        hide: Option<Place>,
    ) -> Problem {
        let line = self.line(spot.line);
        let shown = match hide {
            Some(hide) if hide.line != spot.line => None,
            Some(hide) => line.map(|line| self.show_until(&line, hide)),
            None => line.map(|line| self.show(&line, spot)),
        };
        Problem {
            file: self.name.to_owned(),
            place: Some(spot.place()),
            path: path.to_owned(),
            message: message.into(),
            hint,
            shown,
        }
    }

    /// A value as it can be quoted in a message.
    pub(crate) fn quote(&self, value: &str) -> String {
        let redacted = REDACTOR.redact(value);
        printable(&shorten(&redacted, VALUE_CHARS)).replace('\n', " ")
    }

    /// The line up to a value that must not be shown.
    fn show_until(&self, line: &str, hide: Place) -> Shown {
        let before: String = line.chars().take(chars_before(hide.column)).collect();
        let before = REDACTOR.redact(&before);
        Shown { line: printable(&format!("{before}***")), marks: Some((blank(&before), "^^^".to_owned())) }
    }

    fn show(&self, line: &str, spot: Spot) -> Shown {
        let column = chars_before(spot.column);
        let before: String = line.chars().take(column).collect();
        let redacted = REDACTOR.redact(line);
        let Some(rest) = redacted.strip_prefix(before.as_str()) else {
            return Shown { line: printable(&shorten(&redacted, LINE_CHARS)), marks: None };
        };
        // A long line is shown from a little before the place on.
        let skip = if line.chars().count() > LINE_CHARS { column.saturating_sub(LINE_CHARS / 2) } else { 0 };
        let lead: String =
            if skip > 0 { "…".chars().chain(before.chars().skip(skip)).collect() } else { before };
        let room = LINE_CHARS.saturating_sub(lead.chars().count());
        let mut tail: String = rest.chars().take(room).collect();
        let wrong = usize::try_from(spot.chars).unwrap_or(usize::MAX).clamp(1, tail.chars().count().max(1));
        let marks = "^".repeat(width(tail.chars().take(wrong)).max(1));
        if rest.chars().count() > room {
            tail.push('…');
        }
        Shown { line: printable(&format!("{lead}{tail}")), marks: Some((blank(&lead), marks)) }
    }
}

/// Where a line begins, in bytes.
fn start_of_line(text: &str, number: u64) -> usize {
    let above = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    text.split_inclusive('\n').take(above).map(str::len).sum()
}

/// A name as it can be shown: people put keys into all places.
pub(crate) fn safe(name: &str) -> String {
    printable(&REDACTOR.redact(name)).replace('\n', " ")
}

/// Characters before a column.
fn chars_before(column: u64) -> usize {
    usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX)
}

/// Spaces as wide as a text; tabs stay, so that both lines jump alike.
fn blank(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\t' { "\t".to_owned() } else { " ".repeat(width(std::iter::once(c))) })
        .collect()
}

/// Columns of a terminal. Scripts from Hangul on are drawn two columns wide; that is near enough for a mark.
fn width(chars: impl Iterator<Item = char>) -> usize {
    chars.map(|c| if c >= '\u{1100}' && c != '…' { 2 } else { 1 }).sum()
}

/// The text without characters that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' && c != '\n' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(line: u64, column: u64, chars: u64) -> Spot {
        Spot { line, column, start: None, chars }
    }

    fn said(text: &str, spot: Spot) -> String {
        Source::new("a.yaml", text).problem(spot, "", "wrong", Some("right".to_owned()), None).to_string()
    }

    #[test]
    fn a_problem_shows_its_line_and_underlines_the_wrong_part() {
        assert_eq!(
            said("x: 1\nretry: {attempts: five}\n", spot(2, 19, 4)),
            "a.yaml:2:19: wrong\n    |\n  2 | retry: {attempts: five}\n    |                   ^^^^\n  hint: right"
        );
    }

    #[test]
    fn wide_characters_and_tabs_keep_the_mark_in_place() {
        assert!(said("日本: x\n", spot(1, 5, 1)).contains("| 日本: x\n    |       ^"));
        assert!(said("\ta: x\n", spot(1, 5, 1)).contains("| \ta: x\n    | \t   ^"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}wrong{}", "a".repeat(500), "b".repeat(500));
        let said = said(&text, spot(1, 501, 5));
        assert!(said.lines().all(|line| line.chars().count() < LINE_CHARS + 20), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[2].find("wrong").map(|at| lines[2][..at].chars().count()), lines[3].find('^'));
    }

    #[test]
    fn passwords_and_control_characters_are_not_shown() {
        let said = said("redsi: redis://:hunter2secret@h:1/0 \u{1b}[31m\n", spot(1, 1, 5));
        assert!(!said.contains("hunter2") && !said.contains('\u{1b}'), "{said}");
        assert!(said.contains("^^^^^"), "{said}");
    }

    #[test]
    fn many_problems_are_counted_and_not_kept() {
        let problems = Problems::new(vec![Problem::of_file("a", "x", None); 250]);
        assert_eq!((problems.iter().count(), problems.count()), (100, 250));
        assert!(problems.to_string().ends_with("and 150 more"));
    }
}
