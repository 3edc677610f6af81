//! An agent's log and exit code become a fault, or nothing.
//!
//! The log is read from its end. The last structured event decides if there is one; otherwise the last
//! line that reports a failure. On the way up, the agent's own words, diffs, listings and tool results are
//! passed over (they may talk about limits all day), a client's pause between two tries shows what fails
//! but states no wait, and work that went on ends the search: what failed before it is history.
//!
//! Exit 0 is a good run unless the last event itself says otherwise. A failed run in which nothing is
//! recognised is an agent's own failure, with low confidence.

mod event;
mod line;

use std::ops::Range;

use jiff::Zoned;
use serde_json::Value;

use self::event::Event;
use self::line::{Line, Marker};
use super::Classifier;
use super::answer::{ErrorText, status_in_text};
use super::lexicon::{Bits, Clause};
use super::plain::push_plain;
use super::ruleset::{Fact, Rules, Seen};
use crate::fault::{Confidence, Fault, Kind, Origin, Scope, Sub};
use crate::wait::{Clock, Wait, exhausted_bucket_wait, field_wait, header_wait, headers_in_text, stated_wait};

/// How much of the end of a log is read: more than any failure needs.
pub const TAIL_BYTES: usize = 256 * 1024;
/// How far from the evidence its wait may stand.
const NEAR: usize = 8;
/// Longer lines are read up to here.
const LONGEST_LINE: usize = 32 * 1024;
/// The longest JSON block over several lines.
const LONGEST_BLOCK: usize = 400;

/// What an agent left behind.
#[derive(Debug, Clone, Copy)]
pub struct AgentLog<'a> {
    /// The log, or its tail.
    pub text: &'a str,
    /// Exit status (128 + n for a signal), if it is known.
    pub exit_code: Option<i32>,
}

/// Concepts that the reader asks for by name.
#[derive(Debug)]
pub(super) struct Voices {
    pause: Option<Clause>,
    foreign: Option<Clause>,
    wrapper: Option<Clause>,
    work: Option<Clause>,
    prose: Option<Clause>,
    limit: Option<Clause>,
}

impl Voices {
    pub(super) fn of(rules: &Rules) -> Self {
        Self {
            pause: rules.concept("retry_pause"),
            foreign: rules.concept("foreign"),
            wrapper: rules.concept("wrapper"),
            work: rules.concept("work"),
            prose: rules.concept("prose"),
            limit: rules.concept("limit_word"),
        }
    }
}

/// What is known so far, on the way up.
#[derive(Default)]
struct Findings {
    /// Exhausted windows stated by events.
    rejected: Vec<Value>,
    /// A failure without a reason of its own: the reason may stand above it.
    bare: Option<(usize, ErrorText)>,
    /// What the client kept retrying.
    pause: Option<(usize, ErrorText)>,
    /// Words of the process itself.
    process: Option<Fault>,
    /// A line that shows a status and nothing else.
    status: Option<Fault>,
    /// A line that began as an error but that no rule knows.
    unknown: Option<usize>,
}

enum Step {
    Decided(Option<Fault>),
    Stop,
    Up,
}

struct Reader<'a> {
    classifier: &'a Classifier,
    now: &'a Zoned,
    lines: Vec<&'a str>,
    /// Where each line begins in the whole log.
    starts: Vec<usize>,
    good_exit: bool,
}

impl Classifier {
    /// Why this run failed, if it did.
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
            .map(|line| line.get(..line.floor_char_boundary(LONGEST_LINE)).unwrap_or(line))
            .collect();
        let reader = Reader { classifier: self, now, lines, starts, good_exit: log.exit_code == Some(0) };
        reader.verdict(log.exit_code)
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
        let mut findings = Findings::default();
        let mut index = self.lines.len();
        while index > 0 {
            index -= 1;
            let (step, from) = self.step(index, &mut findings);
            index = from;
            match step {
                Step::Decided(fault) => return fault,
                Step::Stop => break,
                Step::Up => {}
            }
        }
        if self.good_exit {
            return None;
        }
        self.leftover(findings, exit_code)
    }

    /// Looks at one line, or at the block that ends with it. Gives back where to go on.
    fn step(&self, index: usize, findings: &mut Findings) -> (Step, usize) {
        let Some(raw) = self.lines.get(index) else { return (Step::Up, index) };
        if let Some((value, from)) = self.json_at(index, raw) {
            return (self.event_step(index, value, findings), from);
        }
        if self.good_exit {
            return (Step::Up, index);
        }
        let line = Line::read(raw);
        let step = match line.marker {
            Marker::Noise => Step::Up,
            Marker::Work => Step::Stop,
            Marker::Agent => self.agent_step(&line),
            Marker::Plain | Marker::Error => self.line_step(index, &line, findings),
        };
        (step, index)
    }

    /// The JSON object that stands in this line or ends in it.
    fn json_at(&self, index: usize, raw: &str) -> Option<(Value, usize)> {
        let text = raw.trim();
        if text.starts_with('{') {
            let parsed = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            return parsed.map(|value| (value, index));
        }
        // A pretty-printed object ends with a lone brace at the margin.
        if raw.trim_end() != "}" && raw.trim_end() != "]" {
            return None;
        }
        let open = if raw.starts_with('}') { "{" } else { "[" };
        let from = (index.saturating_sub(LONGEST_BLOCK)..index).rev().find(|at| self.lines.get(*at).is_some_and(|line| line.trim_end() == open))?;
        let block = self.lines.get(from..=index)?.join("\n");
        let value = serde_json::from_str::<Value>(&block).ok()?;
        let value = match value {
            Value::Array(mut items) if !items.is_empty() => items.swap_remove(0),
            other => other,
        };
        value.is_object().then_some((value, from))
    }

    fn event_step(&self, index: usize, value: Value, findings: &mut Findings) -> Step {
        match event::read(value) {
            Event::Succeeded => Step::Decided(None),
            Event::Rejected(value) => {
                findings.rejected.push(value);
                Step::Up
            }
            Event::Retry(value) => {
                if !self.good_exit && findings.pause.is_none() {
                    findings.pause = Some((index, self.event_words(&value)));
                }
                Step::Up
            }
            Event::Failed(value) => self.failed_step(index, &value, findings),
            Event::Other => Step::Up,
        }
    }

    fn event_words(&self, value: &Value) -> ErrorText {
        let mut error = ErrorText::default();
        error.add_value(&event::words(value));
        error
    }

    fn failed_step(&self, index: usize, value: &Value, findings: &mut Findings) -> Step {
        let error = self.event_words(value);
        if self.bits(&error.messages.join(" ")).1.is_some_and(|bits| has(&bits, self.classifier.voices.pause)) {
            findings.pause.get_or_insert((index, error));
            return Step::Up;
        }
        if error.messages.is_empty() && error.codes.is_empty() && error.status.is_none() {
            findings.bare.get_or_insert((index, error));
            return Step::Up;
        }
        findings.rejected.extend(self.rejected_above(index));
        let fault = self.event_fault(index, &error, findings);
        Step::Decided(Some(fault))
    }

    /// Windows that events above a failure call exhausted.
    fn rejected_above(&self, index: usize) -> Vec<Value> {
        let above = self.lines.get(index.saturating_sub(50)..index).unwrap_or_default();
        let parsed = above.iter().filter(|line| line.contains("rate_limit_event")).filter_map(|line| serde_json::from_str(line.trim()).ok());
        parsed.filter_map(|value| if let Event::Rejected(value) = event::read(value) { Some(value) } else { None }).collect()
    }

    fn event_fault(&self, index: usize, error: &ErrorText, findings: &Findings) -> Fault {
        let clock = self.classifier.clock(self.now);
        let text = error.messages.join(" ");
        let headers = error.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let wait = header_wait(headers.clone(), clock)
            .or_else(|| error.stated_field_wait(clock))
            .or_else(|| stated_wait(&text, clock).map(|stated| stated.wait))
            .or_else(|| exhausted_bucket_wait(headers, clock))
            .or_else(|| self.rejected_wait(&findings.rejected))
            .or_else(|| self.near_wait(index));
        let mut error_with_windows = ErrorText { status: error.status, codes: error.codes.clone(), messages: error.messages.clone(), ..ErrorText::default() };
        if !findings.rejected.is_empty() {
            error_with_windows.codes.push("unified rejected".to_owned());
        }
        let mut fault = self.conclude(&error_with_windows, wait);
        if let Some(window) = self.rejected_wait(&findings.rejected).filter(|_| fault.kind == Kind::QuotaExceeded) {
            // Of several exhausted windows the last to open counts.
            fault.wait = Some(fault.wait.filter(|wait| wait.after > window.after).unwrap_or(window));
        }
        fault.confidence = Confidence::High;
        fault.evidence.span = self.span(index);
        fault
    }

    fn rejected_wait(&self, rejected: &[Value]) -> Option<Wait> {
        let clock = self.classifier.clock(self.now);
        let resets = rejected.iter().filter_map(|event| {
            let reset = event.pointer("/rate_limit_info/resetsAt")?;
            field_wait("resetsat", &reset.to_string(), clock)
        });
        resets.max_by_key(|wait| wait.after)
    }

    fn agent_step(&self, line: &Line<'_>) -> Step {
        let bits = self.bits(&line.text).0;
        if has(&bits, self.classifier.voices.work) { Step::Stop } else { Step::Up }
    }

    fn line_step(&self, index: usize, line: &Line<'_>, findings: &mut Findings) -> Step {
        let voices = &self.classifier.voices;
        let (bits, _) = self.bits(&line.text);
        if line.marker == Marker::Plain && has(&bits, voices.work) && status_in_text(&line.text).is_none() {
            return Step::Stop;
        }
        let error = ErrorText::of_text(&line.text);
        if has(&bits, voices.pause) {
            findings.pause.get_or_insert((index, error));
            return Step::Up;
        }
        if line.marker == Marker::Plain && self.is_prose(index, &bits, line) {
            return Step::Up;
        }
        if has(&bits, voices.foreign) {
            let mut fault = Fault::of(Kind::AgentError, "log.other_service");
            fault.evidence.span = self.span(index);
            fault.detail = self.classifier.detail(&line.text);
            return Step::Decided(Some(fault));
        }
        if let Some(fault) = self.process_fault(index, &bits, line) {
            if fault.confidence >= Confidence::Medium {
                return Step::Decided(Some(fault));
            }
            findings.process.get_or_insert(fault);
        }
        let (mut fault, mut known) = self.provider_fault(&error, None);
        if known || has(&bits, voices.limit) {
            // Only a line that may be the evidence is worth a look around for its wait.
            let wait = self.line_wait(index, &error);
            (fault, known) = self.provider_fault(&error, wait);
        }
        if known {
            let mut fault = keep_wait(fault);
            fault.evidence.span = self.span(index);
            if fault.confidence > Confidence::Low || line.marker == Marker::Error {
                return Step::Decided(Some(fault));
            }
            findings.status.get_or_insert(fault);
            return Step::Up;
        }
        if line.marker == Marker::Error && !has(&bits, voices.wrapper) {
            findings.unknown.get_or_insert(index);
            // A failure with words of its own is the last failure, even if nobody knows them.
            return if is_bare(&line.text) { Step::Up } else { Step::Stop };
        }
        Step::Up
    }

    /// A plain line that reads like someone telling, not like a program failing.
    fn is_prose(&self, index: usize, bits: &Bits, line: &Line<'_>) -> bool {
        let signed = self.lines.get(index).is_some_and(|raw| raw.trim_start().starts_with(|c: char| !c.is_ascii() && !c.is_alphanumeric()));
        has(bits, self.classifier.voices.prose) || line.text.contains('`') || (!signed && self.under_agent_heading(index))
    }

    /// Some programs print the agent's words under a heading of one word.
    fn under_agent_heading(&self, index: usize) -> bool {
        let above = self.lines.get(index.saturating_sub(40)..index).unwrap_or_default();
        for line in above.iter().rev() {
            match line.trim() {
                "codex" | "assistant" | "thinking" | "exec" | "user" => return true,
                text if text.starts_with("ERROR") || text.starts_with("--------") || text.starts_with("tokens used") => return false,
                _ => {}
            }
        }
        false
    }

    fn process_fault(&self, index: usize, bits: &Bits, line: &Line<'_>) -> Option<Fault> {
        let mut seen = Seen { all: *bits, ..Seen::default() };
        seen.fact(Fact::Log);
        let rule = Rules::decide(&self.classifier.rules.process, &seen)?;
        let mut fault = rule.fault();
        fault.evidence.span = self.span(index);
        fault.detail = self.classifier.detail(&line.text);
        Some(fault)
    }

    fn provider_fault(&self, error: &ErrorText, wait: Option<Wait>) -> (Fault, bool) {
        self.classifier.judge(error, wait, |seen| seen.fact(Fact::Log))
    }

    /// The fault of a failure that is certain; what no rule knows is the agent's own.
    fn conclude(&self, error: &ErrorText, wait: Option<Wait>) -> Fault {
        let mut seen = Seen::default();
        for text in error.messages.iter().chain(&error.codes) {
            seen.all.add(&self.bits(text).0);
        }
        if let Some(rule) = Rules::decide(&self.classifier.rules.process, &seen) {
            let mut fault = rule.fault();
            fault.detail = self.classifier.detail(&error.messages.join(" · "));
            return fault;
        }
        let (fault, known) = self.provider_fault(error, wait);
        if known {
            return keep_wait(fault);
        }
        let mut own = Fault::of(Kind::AgentError, "log.event");
        own.detail = fault.detail;
        own
    }

    fn line_wait(&self, index: usize, error: &ErrorText) -> Option<Wait> {
        let clock = self.classifier.clock(self.now);
        error.stated_field_wait(clock).or_else(|| self.near_wait(index))
    }

    /// A wait stated at the evidence, below it or just above it.
    fn near_wait(&self, index: usize) -> Option<Wait> {
        let clock = self.classifier.clock(self.now);
        let below = self.joined(index, (index + NEAR).min(self.lines.len()));
        let above = self.joined(index.saturating_sub(NEAR), index);
        let just_above = self.joined(index.saturating_sub(2), index);
        let headers_below = headers_in_text(&below);
        let headers_above = headers_in_text(&above);
        header_wait(headers_below.iter().copied(), clock)
            .or_else(|| header_wait(headers_above.iter().copied(), clock))
            .or_else(|| fields_in_text(&below, clock))
            .or_else(|| stated_wait(&below, clock).map(|stated| stated.wait))
            .or_else(|| fields_in_text(&above, clock))
            .or_else(|| stated_wait(&just_above, clock).map(|stated| stated.wait))
            .or_else(|| exhausted_bucket_wait(headers_below.iter().chain(&headers_above).copied(), clock))
    }

    /// The program's own words in a range of lines; the agent's are left out.
    fn joined(&self, from: usize, to: usize) -> String {
        let mut text = String::new();
        for raw in self.lines.get(from..to).unwrap_or_default() {
            let line = Line::read(raw);
            let ours = matches!(line.marker, Marker::Plain | Marker::Error);
            if ours && !has(&self.bits(&line.text).0, self.classifier.voices.pause) {
                text.push_str(line.text.get(..line.text.floor_char_boundary(2048)).unwrap_or_default());
                text.push('\n');
            }
        }
        text
    }

    /// Nothing decided on the way up.
    fn leftover(&self, findings: Findings, exit_code: Option<i32>) -> Option<Fault> {
        if !findings.rejected.is_empty() {
            return Some(self.event_fault(self.lines.len().saturating_sub(1), &ErrorText::default(), &findings));
        }
        if let Some((index, error)) = &findings.pause
            && findings.unknown.is_none()
        {
            let (mut fault, known) = self.provider_fault(error, None);
            if known {
                fault.evidence.span = self.span(*index);
                return Some(fault);
            }
        }
        if let Some(fault) = findings.process.or(findings.status) {
            return Some(fault);
        }
        let known_failure = findings.unknown.or(findings.bare.map(|(index, _)| index));
        if exit_code.is_none() && known_failure.is_none() {
            return None;
        }
        if let Some(fault) = exit_code.and_then(|code| self.by_exit_code(code)) {
            return Some(fault);
        }
        let mut fault = Fault::of(Kind::AgentError, "log.unknown");
        fault.confidence = Confidence::Low;
        if let Some(index) = known_failure {
            fault.evidence.span = self.span(index);
            fault.detail = self.classifier.detail(self.lines.get(index).copied().unwrap_or_default());
        }
        Some(fault)
    }

    /// What is left to read when the log says nothing.
    fn by_exit_code(&self, code: i32) -> Option<Fault> {
        // One agent exits with the HTTP status modulo 256; these values would be no usual signals.
        let status = match code {
            144 => Some(400),
            145 => Some(401),
            146 => Some(402),
            147 => Some(403),
            157 => Some(413),
            173 => Some(429),
            247 => Some(503),
            _ => None,
        };
        if let Some(status) = status.filter(|_| self.lines.iter().any(|line| line.contains("gemini"))) {
            let error = ErrorText { status: Some(status), ..ErrorText::default() };
            return Some(self.provider_fault(&error, None).0);
        }
        (code > 128).then(|| {
            let mut fault = Fault::of(Kind::ProcessFailed, "log.signal");
            fault.sub = Some(Sub::Signal);
            fault.origin = Origin::Process;
            fault.scope = Scope::Request;
            fault
        })
    }

    /// Clauses of a text; none for a text without words.
    fn bits(&self, text: &str) -> (Bits, Option<Bits>) {
        let mut words = String::new();
        push_plain(&mut words, text);
        let bits = self.classifier.rules.lexicon.scan(&words);
        (bits, (words.len() > 2).then_some(bits))
    }

    fn span(&self, index: usize) -> Range<usize> {
        let start = self.starts.get(index).copied().unwrap_or_default();
        start..start + self.lines.get(index).map_or(0, |line| line.len())
    }
}

fn has(bits: &Bits, clause: Option<Clause>) -> bool {
    clause.is_some_and(|clause| bits.has(clause))
}

/// A wait belongs to faults that time cures; anywhere else a number near the line was meant otherwise.
fn keep_wait(mut fault: Fault) -> Fault {
    let cured = matches!(fault.kind, Kind::QuotaExceeded | Kind::RateLimited | Kind::Overloaded | Kind::Unavailable | Kind::CoolingDown);
    if !cured {
        fault.wait = None;
    }
    fault
}

/// The last wait that a text gives as a field: `"retryDelay": "37s"`, `resets_in_seconds: 120`.
fn fields_in_text(text: &str, clock: Clock<'_>) -> Option<Wait> {
    const FIELDS: &[&str] = &["retryDelay", "retryDelayMs", "retry_after_ms", "retry_after", "retryAfter", "resets_in_seconds", "resets_at", "resetsAt", "reset_time", "reset_at"];
    let found = FIELDS.iter().filter_map(|field| {
        let at = text.rfind(field)?;
        let rest = text.get(at + field.len()..)?.trim_start_matches(['"', '\'', '\\', ':', '=', ' ']);
        let value = rest.split(['"', '\'', ',', '}', '\\', '\n']).next()?.trim();
        Some((at, field_wait(field, value, clock)?))
    });
    found.max_by_key(|(at, _)| *at).map(|(_, wait)| wait)
}

/// An error line without content: `Error:`, `Error: undefined`, `Failed.`
fn is_bare(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count() <= 2
}
