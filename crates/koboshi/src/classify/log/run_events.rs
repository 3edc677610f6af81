//! What structured events say about a run, while the log is read upwards.

use serde_json::Value;

use super::event::{self, Event};
use super::{Findings, Reader, Step, has, keep_wait};
use crate::classify::answer::ErrorText;
use crate::fault::{Confidence, Fault, Kind};
use crate::wait::Wait;

/// The longest JSON block over several lines.
const MAX_BLOCK: usize = 400;
/// An event that says that the run failed, in words that no rule knows.
const UNKNOWN_EVENT: &str = "log.event";
/// How far above a failure the events that explain it may stand.
const EVENTS_ABOVE: usize = 50;

impl Reader<'_> {
    /// The JSON object that stands in this line or ends in it.
    pub(super) fn json_at(&self, index: usize, raw: &str) -> Option<(Value, usize)> {
        let text = raw.trim();
        if text.starts_with('{') {
            let parsed = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
            return parsed.map(|value| (value, index));
        }
        // A pretty-printed object ends with a lone brace at the margin.
        let close = raw.trim_end();
        if close != "}" && close != "]" {
            return None;
        }
        let open = if close == "}" { "{" } else { "[" };
        let begins = |at: &usize| self.lines.get(*at).is_some_and(|line| line.trim_end() == open);
        let from = (index.saturating_sub(MAX_BLOCK)..index).rev().find(begins)?;
        let block = self.lines.get(from..=index)?.join("\n");
        let value = match serde_json::from_str::<Value>(&block).ok()? {
            Value::Array(mut items) if !items.is_empty() => items.swap_remove(0),
            other => other,
        };
        value.is_object().then_some((value, from))
    }

    pub(super) fn event_step(&self, index: usize, value: Value, findings: &mut Findings) -> Step {
        let is_last = !std::mem::replace(&mut findings.events, true);
        if self.good_exit && !is_last && findings.bare.is_none() && !event::is_about_run(&value) {
            // A run that ended well may have met errors on the way.
            return Step::Up;
        }
        match event::read(value) {
            Event::Succeeded => Step::Decided(None),
            Event::Rejected(value) => {
                findings.rejected.push(value);
                Step::Up
            }
            Event::Retry(value) => {
                if !self.good_exit && findings.pause.is_none() {
                    findings.pause = Some((index, event_words(&value)));
                }
                Step::Up
            }
            Event::Failed(value) => self.failed_step(index, &value, findings),
            Event::Other => Step::Up,
        }
    }

    fn failed_step(&self, index: usize, value: &Value, findings: &mut Findings) -> Step {
        let error = event_words(value);
        if error.messages.is_empty() && error.codes.is_empty() && error.status.is_none() {
            findings.bare.get_or_insert(index);
            return Step::Up;
        }
        if has(&self.words(&error.messages.join(" ")).bits, self.classifier.log_concepts.pause) {
            findings.pause.get_or_insert((index, error));
            return Step::Up;
        }
        findings.rejected.extend(self.rejected_above(index));
        let says_nothing = error.messages.is_empty() && error.status.is_none();
        let fault = self.event_fault(index, error, &findings.rejected);
        if says_nothing && &*fault.evidence.rule == UNKNOWN_EVENT {
            findings.bare.get_or_insert(index);
            return Step::Up;
        }
        Step::Decided(Some(fault))
    }

    /// Windows that events above a failure call exhausted.
    fn rejected_above(&self, index: usize) -> Vec<Value> {
        let above = self.lines.get(index.saturating_sub(EVENTS_ABOVE)..index).unwrap_or_default();
        let events = above
            .iter()
            .filter(|line| line.contains("rate_limit_event"))
            .filter_map(|line| serde_json::from_str(line.trim()).ok());
        events
            .filter_map(
                |value| if let Event::Rejected(value) = event::read(value) { Some(value) } else { None },
            )
            .collect()
    }

    pub(super) fn event_fault(&self, index: usize, mut error: ErrorText, rejected: &[Value]) -> Fault {
        let wait = self.event_wait(index, &error, rejected);
        if !rejected.is_empty() {
            error.codes.push("unified rejected".to_owned());
        }
        let mut fault = self.conclude(&error, wait);
        if let Some(window) = self.rejected_wait(rejected).filter(|_| fault.kind == Kind::QuotaExceeded) {
            fault.wait = Some(fault.wait.filter(|wait| wait.after > window.after).unwrap_or(window));
        }
        fault.confidence = Confidence::High;
        fault.evidence.span = self.span(index);
        fault
    }

    /// The fault of a failure that is certain; what no rule knows is the agent's own.
    fn conclude(&self, error: &ErrorText, wait: Option<Wait>) -> Fault {
        let words =
            error.messages.iter().chain(&error.codes).map(String::as_str).collect::<Vec<_>>().join(" ");
        if let Some(mut fault) = self.process_fault(&self.words(&words)) {
            fault.detail = self.classifier.detail(&error.messages.join(" · "));
            return fault;
        }
        let (fault, known) = self.classifier.judge(error, wait, true);
        if known {
            return keep_wait(fault);
        }
        let mut own = Fault::of(Kind::AgentError, UNKNOWN_EVENT);
        own.detail = fault.detail;
        own
    }
}

fn event_words(value: &Value) -> ErrorText {
    let mut error = ErrorText::default();
    error.add_value(&event::words(value));
    error
}
