//! A tool's output becomes a category, or nothing.
//!
//! Two questions, asked apart. *Does this output report that the call failed?* Some wire formats carry a
//! flag for it; where there is none, the shape of the text decides ([`shape`]), because file contents,
//! search hits, logs and passing tests are full of the words of errors. *What failed?* That is for the rules to say:
//! the cause that a person can act on, not the wrapper around it.

mod cues;
mod failing;
mod reading;
mod shape;
mod traceback;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use self::shape::Report;
use self::traceback::without_code;
use jiff::Zoned;

use super::Classifier;
use super::plain::plain;
use super::ruleset::{Observation, Rule, ToolConclusion};
use crate::fault::{Confidence, Fault, Kind};
use crate::wait::{header_wait, headers_in_text, stated_wait};

/// How much of an output is read: its head and its tail.
const HEAD: usize = 8 * 1024;
const TAIL: usize = 24 * 1024;
/// The number of lines, from the end, that may be the one that decided.
const MAX_LINES_TRIED: usize = 64;

/// What a tool gave back.
#[derive(Debug, Clone, Copy)]
pub struct ToolOutput<'a> {
    /// The text of the result.
    pub text: &'a str,
    /// The error flag, if the wire format has one.
    pub is_error: Option<bool>,
}

impl Classifier {
    /// What this output reports, if it reports a failure: a fault of kind `tool_failed` with its category.
    #[must_use]
    pub fn tool(&self, output: &ToolOutput<'_>, now: &Zoned) -> Option<Fault> {
        let mut fault = self.report(&ends(output.text), output.is_error, now)?;
        fault.evidence.span = in_whole(output.text, fault.evidence.span);
        Some(fault)
    }

    fn report(&self, text: &str, is_error: Option<bool>, now: &Zoned) -> Option<Fault> {
        let report = match is_error {
            Some(true) => Report::Failed,
            Some(false) => Report::Fine,
            None => shape::report(text),
        };
        if report == Report::Fine {
            return self.spoilt(text);
        }
        let read = without_code(text);
        let words = plain(&read);
        let seen =
            Observation { text: &words, all: self.rules.lexicon.scan(&words), ..Observation::default() };
        let rule = self.rules.decide(&self.rules.tool, &seen);
        let failed = report == Report::Failed
            || (report == Report::Unclear && rule.is_some_and(|rule| rule.then.alone));
        if !failed {
            return self.spoilt(text);
        }
        let Some(rule) = rule else {
            return Some(self.tool_fault(text, "tool.unknown", "other", Confidence::Low));
        };
        let mut fault = self.tool_fault(text, &rule.id, &rule.then.category, Confidence::Medium);
        if let Some(line) = self.line_of(&read, rule) {
            fault.detail = self.detail(text.get(line.clone()).unwrap_or_default());
            fault.evidence.span = line;
        }
        fault.advice.same = rule.then.same.unwrap_or(fault.advice.same);
        if fault.advice.same {
            let clock = self.clock(now);
            let headers = headers_in_text(text);
            let stated = || stated_wait(text, clock).map(|stated| stated.wait);
            fault.wait = header_wait(headers.into_iter(), clock).or_else(stated);
        }
        Some(fault)
    }

    /// The last line on which the rule holds by itself: of those that begin as failures, else of all. What a program prints
    /// behind its complaint (where its log is, how to get help) begins the same way and says nothing.
    fn line_of(&self, text: &str, rule: &Rule<ToolConclusion>) -> Option<Range<usize>> {
        let holds = |line: &Range<usize>| {
            let words = plain(text.get(line.clone()).unwrap_or_default());
            let seen =
                Observation { text: &words, all: self.rules.lexicon.scan(&words), ..Observation::default() };
            self.rules.holds(rule, &seen)
        };
        let last = |lines: Vec<Range<usize>>| lines.into_iter().rev().take(MAX_LINES_TRIED).find(holds);
        last(shape::failing_lines(text)).or_else(|| last(shape::lines_with_words(text).collect()))
    }

    /// Missing glyphs spoil a figure although the run ends well.
    fn spoilt(&self, text: &str) -> Option<Fault> {
        shape::warns_of_fonts(text)
            .then(|| self.tool_fault(text, "tool.font_warning", "font", Confidence::Medium))
    }

    fn tool_fault(&self, text: &str, rule: &str, category: &str, confidence: Confidence) -> Fault {
        let mut fault = Fault::of(Kind::ToolFailed, rule);
        fault.category = Some(Arc::from(category));
        // What passes by itself may be called again; everything else needs a change first.
        fault.advice.same = matches!(category, "network" | "timeout" | "rate_limit");
        fault.confidence = confidence;
        let line = shape::deciding_line(text);
        fault.evidence.span = line.clone();
        fault.detail = self.detail(text.get(line).unwrap_or_default());
        fault
    }
}

/// The head and the tail of a long text.
fn ends(text: &str) -> Cow<'_, str> {
    let Some((head, tail)) = cut(text) else { return Cow::Borrowed(text) };
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    Cow::Owned(format!("{head}\n{tail}"))
}

/// Where the head of a long text ends and where its tail begins.
fn cut(text: &str) -> Option<(usize, usize)> {
    let is_long = text.len() > HEAD + TAIL;
    is_long.then(|| (text.floor_char_boundary(HEAD), text.ceil_char_boundary(text.len() - TAIL)))
}

/// A place in head and tail, as a place in the whole text.
fn in_whole(text: &str, span: Range<usize>) -> Range<usize> {
    match cut(text) {
        // One byte, the line break, stands between the two.
        Some((head, tail)) if span.start > head => {
            let skipped = tail - head - 1;
            span.start + skipped..span.end + skipped
        }
        _ => span,
    }
}
