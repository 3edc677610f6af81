//! The wait that belongs to a failure in a log: stated in its own line, below it, or just above it.

use jiff::Zoned;
use serde_json::Value;

use super::Reader;
use super::line::{Line, Marker};
use crate::classify::answer::ErrorText;
use crate::wait::{
    Clock, Wait, exhausted_bucket_wait, field_wait, header_wait, headers_in_text, stated_wait,
};

/// How far from the evidence its wait may stand.
pub(super) const NEAR: usize = 8;
/// How far above it a sentence may stand; headers and fields may stand further.
const JUST_ABOVE: usize = 4;
/// How much of a line is searched.
const MAX_LINE: usize = 2048;

impl Reader<'_> {
    pub(super) fn line_wait(&self, index: usize, error: &ErrorText) -> Option<Wait> {
        let written = self.written(index);
        error.field_wait(self.classifier.clock(&written)).or_else(|| self.near_wait(index, &written))
    }

    /// The wait that an error states itself.
    pub(super) fn own_wait(&self, index: usize, error: &ErrorText) -> Option<Wait> {
        let written = self.written(index);
        let clock = self.classifier.clock(&written);
        error
            .field_wait(clock)
            .or_else(|| stated_wait(&error.messages.join(" "), clock).map(|stated| stated.wait))
    }

    /// The wait that a structured failure states itself, or that stands near it.
    pub(super) fn event_wait(&self, index: usize, error: &ErrorText, rejected: &[Value]) -> Option<Wait> {
        let written = self.written(index);
        let clock = self.classifier.clock(&written);
        let headers = error.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        header_wait(headers.clone(), clock)
            .or_else(|| error.field_wait(clock))
            .or_else(|| stated_wait(&error.messages.join(" "), clock).map(|stated| stated.wait))
            .or_else(|| exhausted_bucket_wait(headers, clock))
            .or_else(|| self.rejected_wait(rejected))
            .or_else(|| self.near_wait(index, &written))
    }

    /// Of several exhausted windows the last to open counts.
    pub(super) fn rejected_wait(&self, rejected: &[Value]) -> Option<Wait> {
        let resets = rejected.iter().filter_map(|event| {
            let reset = event.pointer("/rate_limit_info/resetsAt")?;
            field_wait("resetsAt", &reset.to_string(), self.classifier.clock(self.now))
        });
        resets.max_by_key(|wait| wait.after)
    }

    fn near_wait(&self, index: usize, written: &Zoned) -> Option<Wait> {
        let clock = self.classifier.clock(written);
        let below = self.joined(index, (index + NEAR).min(self.lines.len()));
        let above = self.joined(index.saturating_sub(NEAR), index);
        let just_above = self.joined(index.saturating_sub(JUST_ABOVE), index);
        let headers_below = headers_in_text(&below);
        let headers_above = headers_in_text(&above);
        header_wait(headers_below.iter().copied(), clock)
            .or_else(|| header_wait(headers_above.iter().copied(), clock))
            .or_else(|| last_field_wait(&below, clock))
            .or_else(|| stated_wait(&below, clock).map(|stated| stated.wait))
            .or_else(|| last_field_wait(&above, clock))
            .or_else(|| stated_wait(&just_above, clock).map(|stated| stated.wait))
            .or_else(|| exhausted_bucket_wait(headers_below.iter().chain(&headers_above).copied(), clock))
    }

    /// The program's own words in a range of lines; the agent's words and the client's pauses are left out.
    pub(super) fn joined(&self, from: usize, to: usize) -> String {
        let mut text = String::new();
        for raw in self.lines.get(from..to).unwrap_or_default() {
            let line = Line::read(raw.get(..raw.floor_char_boundary(MAX_LINE)).unwrap_or_default());
            let ours = matches!(line.marker, Marker::Plain | Marker::Error);
            if ours && !self.holds(&self.words(&line.text), self.classifier.log_concepts.pause) {
                text.push_str(&line.text);
                text.push('\n');
            }
        }
        text
    }

    /// When a line was written: its waits are counted from there. Without a stamp it is the time of reading.
    fn written(&self, index: usize) -> Zoned {
        let above = self.lines.get(..=index).unwrap_or(&self.lines).iter().rev().copied();
        let stamp = self.classifier.last_stamp(above, self.since, self.now);
        stamp.map_or_else(|| self.now.clone(), |at| at.to_zoned(self.now.time_zone().clone()))
    }
}

/// The last wait that a text gives as a field: `"retryDelay": "37s"`, `resets_in_seconds: 120`.
fn last_field_wait(text: &str, clock: Clock<'_>) -> Option<Wait> {
    const FIELDS: &[&str] = &[
        "retryDelay", "retry_after_ms", "retry_after", "retryAfter", "resets_in_seconds", "resets_at",
        "resetsAt", "reset_time", "reset_at",
    ];
    let found = FIELDS.iter().filter_map(|field| {
        let at = text.rfind(field)?;
        let rest = text.get(at + field.len()..)?.trim_start_matches(['"', '\'', '\\', ':', '=', ' ']);
        let value = rest.split(['"', '\'', ',', '}', '\\', '\n']).next()?.trim();
        Some((at, field_wait(field, value, clock)?))
    });
    found.max_by_key(|(at, _)| *at).map(|(_, wait)| wait)
}
