//! An agent's log and exit code become a fault, or nothing.
//!
//! The log is read from its end. The last structured event decides if there is one; otherwise the last
//! line that reports a failure. On the way up, the agent's own words, diffs, listings and tool results are
//! passed over (they often mention limits), a client's pause between two tries shows what fails
//! but states no wait, and work that continued ends the search: what failed before it is history.
//!
//! Exit 0 is a good run unless the last event itself says otherwise. A failed run in which nothing is
//! recognised is an agent's own failure, with low confidence.

mod cause;
mod event;
mod last;
mod line;
mod near;
mod run_events;

use std::ops::Range;

use jiff::{Timestamp, Zoned};
use serde_json::Value;

pub use self::last::EXIT_CODE;
use self::line::{Line, Marker};
use super::Classifier;
use super::answer::{ErrorText, status_in_text};
use super::lexicon::{Bits, Clause};
use super::plain::plain;
use super::ruleset::{Fact, Observation, Rules};
use super::tool::ToolOutput;
use crate::fault::{Confidence, Fault, Kind};
use crate::wait::line_time;

/// How much of the end of a log is read: more than any failure needs.
pub const TAIL_BYTES: usize = 256 * 1024;
/// Longer lines are read up to here.
const MAX_LINE: usize = 32 * 1024;
/// The number of lines from the end that are read: what stands further up is not why the run ended.
const MAX_LINES: usize = 400;
/// How far above a line the stamp may stand that tells when it was written.
const STAMPS_ABOVE: usize = 50;

/// What an agent left behind.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentLog<'a> {
    /// The log, or its tail.
    pub text: &'a str,
    /// Exit status (128 + n for a signal), if it is known.
    pub exit_code: Option<i32>,
    /// When the run began, if it is known: no line is older, whatever a stamp without a zone seems to say.
    pub since: Option<Timestamp>,
}

/// The concepts of the rule files that this reader asks for by name.
#[derive(Debug)]
pub(super) struct LogConcepts {
    pause: Option<Clause>,
    foreign: Option<Clause>,
    program: Option<Clause>,
    wrapper: Option<Clause>,
    hint: Option<Clause>,
    work: Option<Clause>,
    prose: Option<Clause>,
    run_failed: Option<Clause>,
    disk_full: Option<Clause>,
    limit: Option<Clause>,
}

impl LogConcepts {
    pub(super) fn of(rules: &Rules) -> Self {
        Self {
            pause: rules.concept("retry_pause"),
            foreign: rules.concept("foreign"),
            program: rules.concept("program"),
            wrapper: rules.concept("wrapper"),
            hint: rules.concept("hint"),
            work: rules.concept("work"),
            prose: rules.concept("prose"),
            run_failed: rules.concept("run_failed"),
            disk_full: rules.concept("disk_full"),
            limit: rules.concept("limit_word"),
        }
    }
}

/// What is known while the log is read upwards.
#[derive(Default)]
struct Findings {
    /// Exhausted windows stated by events.
    rejected: Vec<Value>,
    /// An event was seen below.
    events: bool,
    /// A failure event without a reason of its own: the reason may stand above it.
    bare: Option<usize>,
    /// What the client kept retrying.
    pause: Option<(usize, ErrorText)>,
    /// A line that shows a status and nothing else.
    status: Option<Fault>,
    /// A line that began as an error but that no rule knows.
    unknown: Option<usize>,
    /// A line in which a build tool or a task runner says that its run failed.
    failed_run: Option<usize>,
    /// The agent spoke below: what a tool said before that is history.
    spoken: bool,
}

enum Step {
    Decided(Option<Fault>),
    Stop,
    Up,
}

/// A text in plain form, and what is in it.
struct Words {
    text: String,
    bits: Bits,
}

struct Reader<'a> {
    classifier: &'a Classifier,
    now: &'a Zoned,
    lines: Vec<&'a str>,
    /// Where each line begins in the whole log.
    starts: Vec<usize>,
    good_exit: bool,
    since: Option<Timestamp>,
}

impl Classifier {
    /// Why this run failed, if it did.
    ///
    /// A stated wait is counted from the time that its line or an earlier one is stamped with, else from `now`, which is when the log was
    /// written at the latest.
    #[must_use]
    pub fn log(&self, log: &AgentLog<'_>, now: &Zoned) -> Option<Fault> {
        let (tail, offset) = tail(log.text);
        let mut starts = Vec::new();
        let mut at = offset;
        let lines: Vec<&str> = tail
            .split('\n')
            .inspect(|line| {
                starts.push(at);
                at += line.len() + 1;
            })
            .collect();
        let good_exit = log.exit_code == Some(0);
        let reader = Reader { classifier: self, now, lines, starts, good_exit, since: log.since };
        reader.verdict(log.exit_code).map(|fault| fault.left_at(now.timestamp()))
    }

    /// When the line at this place of a log was written, as its stamp or that of the nearest line above says.
    #[must_use]
    pub fn written_at(&self, log: &AgentLog<'_>, place: usize, now: &Zoned) -> Option<Timestamp> {
        let end = log.text.get(place..)?.find('\n').map_or(log.text.len(), |length| place + length);
        let lines = log.text.get(..end)?.lines().rev();
        self.last_stamp(lines, log.since, now)
    }

    /// The stamp of the first of these lines that has one.
    fn last_stamp<'a>(
        &self,
        lines: impl Iterator<Item = &'a str>,
        since: Option<Timestamp>,
        now: &Zoned,
    ) -> Option<Timestamp> {
        let clock = self.clock(now);
        let stamp = |line: &str| {
            let line = line.get(..line.floor_char_boundary(MAX_LINE)).unwrap_or(line);
            // A stamp that the agent printed is about something else.
            let is_agents = Line::read(line).marker == Marker::Agent;
            if is_agents { None } else { line_time(&Line::shown(line), clock) }
        };
        let may_be = |time: &Timestamp| since.is_none_or(|since| *time >= since);
        lines.take(STAMPS_ABOVE).find_map(stamp).filter(may_be)
    }
}

/// The part of a log that is read, from a line's beginning.
fn tail(text: &str) -> (&str, usize) {
    if text.len() <= TAIL_BYTES {
        return (text, 0);
    }
    let from = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    let cut = text.get(from..).unwrap_or_default();
    let from = from + cut.find('\n').map_or(0, |at| at + 1);
    (text.get(from..).unwrap_or_default(), from)
}

impl Reader<'_> {
    fn verdict(&self, exit_code: Option<i32>) -> Option<Fault> {
        if let Some(fault) = exit_code.and_then(|code| self.not_started(code)) {
            return Some(fault);
        }
        let mut findings = Findings::default();
        let mut index = self.lines.len();
        let end = index.saturating_sub(MAX_LINES);
        while index > end {
            index -= 1;
            let (step, from) = self.step(index, &mut findings);
            index = from;
            match step {
                Step::Decided(fault) => return fault,
                Step::Stop => break,
                Step::Up => {}
            }
        }
        if self.good_exit { None } else { self.leftover(findings, exit_code) }
    }

    /// Reads one line, or at the block that ends with it. Returns where to continue.
    fn step(&self, index: usize, findings: &mut Findings) -> (Step, usize) {
        let Some(raw) = self.lines.get(index) else { return (Step::Up, index) };
        if let Some((value, from)) = self.json_at(index, raw) {
            return (self.event_step(index, value, findings), from);
        }
        if self.good_exit {
            return (Step::Up, index);
        }
        if is_cut_event(raw) {
            return (Step::Up, index);
        }
        let line = Line::read(raw.get(..raw.floor_char_boundary(MAX_LINE)).unwrap_or(raw));
        let step = match line.marker {
            Marker::Noise => Step::Up,
            Marker::Work | Marker::Act => Step::Stop,
            Marker::Agent if self.holds(&self.words(&line.text), self.classifier.log_concepts.work) => {
                Step::Stop
            }
            Marker::Agent => {
                findings.spoken = true;
                Step::Up
            }
            Marker::Plain | Marker::Error => self.line_step(index, &line, findings),
        };
        (step, index)
    }

    fn line_step(&self, index: usize, line: &Line<'_>, findings: &mut Findings) -> Step {
        let concepts = &self.classifier.log_concepts;
        let words = self.words(&line.text);
        let is = |concept: Option<Clause>| self.holds(&words, concept);
        if line.marker == Marker::Plain && is(concepts.work) && status_in_text(&line.text).is_none() {
            return Step::Stop;
        }
        if is(concepts.pause) {
            findings.pause.get_or_insert_with(|| (index, ErrorText::of_text(&line.text)));
            return Step::Up;
        }
        if line.marker == Marker::Plain && is(concepts.hint) {
            return Step::Up;
        }
        if line.marker == Marker::Plain && self.is_prose(index, &words.bits, &line.text) {
            findings.spoken = true;
            return Step::Up;
        }
        if let Some(fault) = self.process_fault(&words) {
            return Step::Decided(Some(self.seen_at(index, fault)));
        }
        if let Some(fault) = self.line_fault(index, line, &words) {
            if is(concepts.foreign) || is(concepts.program) {
                // The words of a provider's fault, but written by another service.
                return Step::Decided(Some(self.tool_line(index)));
            }
            if fault.confidence > Confidence::Low || line.marker == Marker::Error {
                return Step::Decided(Some(self.with_cause(index, fault)));
            }
            findings.status.get_or_insert(fault);
            return Step::Up;
        }
        if is(concepts.run_failed) || (line.marker == Marker::Plain && is(concepts.disk_full)) {
            // Of several such lines in a row, the first says most.
            if !findings.spoken && findings.failed_run.is_none_or(|below| below == index + 1) {
                findings.failed_run = Some(index);
            }
            return Step::Up;
        }
        if line.marker == Marker::Error && !is(concepts.wrapper) {
            findings.unknown.get_or_insert(index);
            // A failure with words of its own is the last failure, even if no rule knows them.
            return if is_bare(&line.text) { Step::Up } else { Step::Stop };
        }
        Step::Up
    }

    /// What the provider rules say of a line.
    fn line_fault(&self, index: usize, line: &Line<'_>, words: &Words) -> Option<Fault> {
        if line.text.contains('{') {
            // An error object may stand in the line: take it apart first.
            let error = ErrorText::of_text(&line.text);
            let known = self.classifier.judge(&error, None, true).1
                || has(&words.bits, self.classifier.log_concepts.limit);
            let wait = if known { self.line_wait(index, &error) } else { None };
            let (fault, known) = self.classifier.judge(&error, wait, true);
            return known.then(|| self.seen_at(index, keep_wait(fault)));
        }
        let mut seen = Observation {
            status: status_in_text(&line.text),
            text: &words.text,
            all: words.bits,
            ..Observation::default()
        };
        seen.fact(Fact::Log);
        // The wait is looked for only around a line that may be the evidence.
        let known =
            self.classifier.decide(seen, None).1 || has(&words.bits, self.classifier.log_concepts.limit);
        let wait = if known { self.line_wait(index, &ErrorText::default()) } else { None };
        let (fault, known) = self.classifier.decide(seen, wait);
        known.then(|| self.seen_at(index, keep_wait(fault)))
    }

    /// A plain line that reads like prose, not like a program failing.
    fn is_prose(&self, index: usize, bits: &Bits, text: &str) -> bool {
        let signed = self
            .lines
            .get(index)
            .is_some_and(|raw| raw.trim_start().starts_with(|c: char| !c.is_ascii() && !c.is_alphanumeric()));
        has(bits, self.classifier.log_concepts.prose)
            || is_instruction(text)
            || (!signed && self.under_agent_heading(index))
    }

    /// Some programs print the agent's words under a heading of one word.
    fn under_agent_heading(&self, index: usize) -> bool {
        let above = self.lines.get(index.saturating_sub(40)..index).unwrap_or_default();
        let below = self.lines.get(index + 1..).unwrap_or_default();
        if below.iter().all(|line| line.trim().is_empty())
            && above.last().is_some_and(|line| line.trim().is_empty())
        {
            // A last line that stands alone is the program's closing message.
            return false;
        }
        for line in above.iter().rev() {
            match line.trim() {
                "codex" | "assistant" | "thinking" | "exec" | "user" => return true,
                text if text.starts_with("ERROR")
                    || text.starts_with("--------")
                    || text.starts_with("tokens used") =>
                {
                    return false;
                }
                _ => {}
            }
        }
        false
    }

    fn process_fault(&self, words: &Words) -> Option<Fault> {
        let mut seen = Observation { text: &words.text, all: words.bits, ..Observation::default() };
        seen.fact(Fact::Log);
        let rules = &self.classifier.rules;
        rules.decide(&rules.process, &seen).map(|rule| rule.fault())
    }

    /// What failed is a tool or the service behind it. Its wait is not the provider's, so none is stated. The lines above may
    /// say more than the last one.
    fn tool_line(&self, index: usize) -> Fault {
        self.tool_lines(index, index.saturating_sub(near::NEAR)..index + 1)
    }

    fn tool_lines(&self, index: usize, near: Range<usize>) -> Fault {
        let text = self.joined(near.start, near.end);
        let output = ToolOutput { text: &text, is_error: Some(true) };
        let Some(mut fault) = self.classifier.tool(&output, self.now) else {
            return self.own_fault(index, "log.other_service", Confidence::Medium);
        };
        (fault.wait, fault.confidence) = (None, Confidence::Medium);
        fault.detail.clear();
        // Where one of these lines is the reason, that one is shown.
        let said = text.get(fault.evidence.span.clone()).filter(|_| last::is_reason(&fault)).map(str::trim);
        let says = |at: &usize| {
            self.lines
                .get(*at)
                .is_some_and(|raw| said.is_some_and(|said| Line::read(raw).text.trim() == said))
        };
        let line = near.rev().find(says).unwrap_or(index);
        self.seen_at(line, fault)
    }

    /// A failure of the agent's own.
    fn own_fault(&self, index: usize, rule: &str, confidence: Confidence) -> Fault {
        let mut fault = Fault::of(Kind::AgentError, rule);
        fault.confidence = confidence;
        self.seen_at(index, fault)
    }

    fn seen_at(&self, index: usize, mut fault: Fault) -> Fault {
        fault.evidence.span = self.span(index);
        if fault.detail.is_empty() {
            let raw = self.lines.get(index).copied().unwrap_or_default();
            fault.detail = self.classifier.detail(&Line::read(raw).text);
        }
        fault
    }

    fn words(&self, text: &str) -> Words {
        let text = plain(text);
        let bits = self.classifier.rules.lexicon.scan(&text);
        Words { text, bits }
    }

    /// Whether a text matches this concept, by its words or by a regular expression.
    fn holds(&self, words: &Words, concept: Option<Clause>) -> bool {
        let lexicon = &self.classifier.rules.lexicon;
        has(&words.bits, concept) || concept.is_some_and(|concept| lexicon.matches(concept, &words.text))
    }

    fn span(&self, index: usize) -> Range<usize> {
        let start = self.starts.get(index).copied().unwrap_or_default();
        start..start + self.lines.get(index).map_or(0, |line| line.len())
    }
}

/// `Fix timeout error in fetch`, `TODO: handle …`: titles and notes about work begin with what is to be done.
fn is_instruction(text: &str) -> bool {
    const VERBS: &[&str] = &[
        "fix", "fixes", "fixed", "handle", "add", "implement", "improve", "refactor", "update", "todo",
        "fixme", "note",
    ];
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    VERBS.iter().any(|verb| first.eq_ignore_ascii_case(verb))
}

/// A line of JSON that was cut off: whose words it holds is not known. An error object may still be read as text.
fn is_cut_event(raw: &str) -> bool {
    let text = raw.trim_start();
    text.starts_with("{\"") && !text.starts_with("{\"error\"") && !text.starts_with("{\"type\":\"error\"")
}

fn has(bits: &Bits, clause: Option<Clause>) -> bool {
    clause.is_some_and(|clause| bits.has(clause))
}

/// A wait belongs to faults that time cures; anywhere else a number near the line was meant otherwise.
fn keep_wait(mut fault: Fault) -> Fault {
    let cured = matches!(
        fault.kind,
        Kind::QuotaExceeded | Kind::RateLimited | Kind::Overloaded | Kind::Unavailable | Kind::CoolingDown
    );
    if !cured {
        fault.wait = None;
    }
    fault
}

/// An error line without content: `Error:`, `Error: undefined`, `Failed.`
fn is_bare(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count() <= 2
}
