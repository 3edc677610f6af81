//! What streams and whole answers have in common: why an answer ended, and what it cost in the counts of this dialect.
//!
//! Here `input_tokens` leaves out what was read from or written to a cache; [`Usage::input`] is all that was sent. So the three are added
//! when read and taken apart when written. Counts of a stream are totals and only grow: a later one that is smaller was left out.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::MapAccess;

use crate::dialect::finish;
use crate::lenient::{Fields, Number, Object, skip};
use crate::step::Usage;

/// The counts, as far as they were stated.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UsageFields {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    stored: Option<u64>,
    thinking: Option<u64>,
}

impl UsageFields {
    /// The cost, if any was stated.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let (cached, stored) = (self.cached.unwrap_or(0), self.stored.unwrap_or(0));
        Some(Usage {
            input: self.input.unwrap_or(0).saturating_add(cached).saturating_add(stored),
            output: self.output.unwrap_or(0),
            cached,
            stored,
            reasoning: self.thinking.unwrap_or(0),
        })
    }

    /// With the counts of a later frame.
    pub(super) fn grow(&mut self, later: Self) {
        self.input = self.input.max(later.input);
        self.output = self.output.max(later.output);
        self.cached = self.cached.max(later.cached);
        self.stored = self.stored.max(later.stored);
        self.thinking = self.thinking.max(later.thinking);
    }
}

impl<'a> Fields<'a> for UsageFields {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "input_tokens" => self.input = map.next_value::<Number>()?.0,
            "output_tokens" => self.output = map.next_value::<Number>()?.0,
            "cache_read_input_tokens" => self.cached = map.next_value::<Number>()?.0,
            "cache_creation_input_tokens" => self.stored = map.next_value::<Number>()?.0,
            "output_tokens_details" => self.thinking = map.next_value::<Object<Details>>()?.0.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct Details(Option<u64>);

impl<'a> Fields<'a> for Details {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "thinking_tokens" => self.0 = map.next_value::<Number>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// A cost as this dialect writes it.
#[derive(Debug, Serialize)]
pub(super) struct UsageJson {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<ThinkingTokens>,
}

#[derive(Debug, Serialize)]
struct ThinkingTokens {
    thinking_tokens: u64,
}

impl UsageJson {
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input.saturating_sub(usage.cached.saturating_add(usage.stored)),
            cache_creation_input_tokens: usage.stored,
            cache_read_input_tokens: usage.cached,
            output_tokens: usage.output,
            output_tokens_details: (usage.reasoning > 0)
                .then_some(ThinkingTokens { thinking_tokens: usage.reasoning }),
        }
    }
}

/// A stop reason in our words; one that has none here stays as it is.
pub(super) fn finish_of(reason: Cow<'_, str>) -> Cow<'_, str> {
    match reason.as_ref() {
        // A pause comes only with tools that the provider runs, and those never leave their dialect: its client sees the frame itself.
        "end_turn" | "stop_sequence" | "pause_turn" => Cow::Borrowed(finish::STOP),
        "max_tokens" | "model_context_window_exceeded" => Cow::Borrowed(finish::LENGTH),
        "tool_use" => Cow::Borrowed(finish::TOOL_CALLS),
        "refusal" => Cow::Borrowed(finish::CONTENT_FILTER),
        _ => reason,
    }
}

/// A reason in the words of this dialect. A word that is not known here means an answer that was cut: it must not count as complete.
pub(super) fn finish_word(reason: &str) -> &str {
    match reason {
        finish::STOP => "end_turn",
        finish::TOOL_CALLS | finish::FUNCTION_CALL => "tool_use",
        finish::CONTENT_FILTER => "refusal",
        "end_turn"
        | "stop_sequence"
        | "pause_turn"
        | "tool_use"
        | "refusal"
        | "model_context_window_exceeded" => reason,
        _ => "max_tokens",
    }
}
