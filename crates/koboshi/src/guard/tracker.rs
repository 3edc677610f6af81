//! The guard with a memory, for an agent in the same process: one call at a time.
//!
//! It has the seed's operations (`handle_function_error`, `reset_error_tracking`, `stop_retrying`, a history of ten, a
//! dump) on top of the stateless guard, and corrects what the seed got wrong: successes count and end rows, parallel
//! failures are one attempt, the stop flag goes with the user turn, and nothing is kept that was not redacted.
//!
//! It needs `&mut`: one tracker belongs to one conversation.

use std::collections::VecDeque;

use jiff::Zoned;
use serde::Serialize;

use super::Guard;
use super::digest::{Call, Digest};
use super::finding::{Judgement, Reach, Verdict};
use super::suggestion::Suggestion;
use super::turn::Turn;
use crate::classify::Classifier;

/// Errors that the history keeps.
pub const HISTORY: usize = 10;

/// What happened to one call, for [`Tracker`]: the turn is the tracker's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Its arguments as text.
    pub args: &'a str,
    /// What came back.
    pub output: &'a str,
    /// The model response that made the call; the same number for parallel calls.
    pub batch: Option<u32>,
}

/// What to do after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallAdvice {
    /// What the guard says.
    pub judgement: Judgement,
    /// No more tools in this turn: this call or an earlier one stopped it.
    pub stop_retrying: bool,
    /// What to show the person. Set only for the call that stopped it, so that it is shown once.
    pub suggestion: Option<Suggestion>,
}

/// A failure that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PastError {
    /// Index of the call, from the beginning of the conversation.
    pub index: usize,
    /// The tool.
    pub tool: String,
    /// What it reports.
    pub category: String,
    /// The masked message.
    pub pattern: String,
    /// The message, redacted and shortened.
    pub example: String,
    /// The arguments, redacted and shortened.
    pub args: String,
}

/// Everything a tracker knows, for people who debug it. Redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dump {
    /// Number of the user turn, from 0.
    pub turn: u32,
    /// Calls in this turn.
    pub calls: u32,
    /// Model responses in this turn.
    pub responses: u32,
    /// Whether the turn was stopped.
    pub stop_retrying: bool,
    /// The rule that said so.
    pub stopped_by: Option<&'static str>,
    /// The last failures, oldest first; they outlive a user turn.
    pub errors: Vec<PastError>,
    /// Patterns in this turn and how often each was seen, most often first.
    pub patterns: Vec<(String, usize)>,
}

/// A guard that remembers one conversation.
#[derive(Debug, Clone)]
pub struct Tracker {
    guard: Guard,
    turn: Turn,
    number: u32,
    calls: usize,
    errors: VecDeque<PastError>,
    stopped_by: Option<&'static str>,
}

impl Tracker {
    /// A tracker at the beginning of a conversation.
    #[must_use]
    pub fn new(guard: Guard) -> Self {
        Self { guard, turn: Turn::new(), number: 0, calls: 0, errors: VecDeque::new(), stopped_by: None }
    }

    /// A tool has failed.
    pub fn handle_function_error(
        &mut self,
        outcome: &Outcome<'_>,
        classifier: &Classifier,
        now: &Zoned,
    ) -> CallAdvice {
        self.handle_function_result(outcome, Some(true), classifier, now)
    }

    /// A tool has succeeded. Report successes too: one ends a row, and all calls count for the depth.
    pub fn handle_function_success(
        &mut self,
        outcome: &Outcome<'_>,
        classifier: &Classifier,
        now: &Zoned,
    ) -> CallAdvice {
        self.handle_function_result(outcome, Some(false), classifier, now)
    }

    /// A tool has answered, and only its text shows whether it failed.
    pub fn handle_function_result(
        &mut self,
        outcome: &Outcome<'_>,
        is_error: Option<bool>,
        classifier: &Classifier,
        now: &Zoned,
    ) -> CallAdvice {
        let Outcome { tool, args, output, batch } = *outcome;
        let call = Call { tool, args, output, is_error, turn: self.number, batch };
        let digest = self.guard.read(&call, classifier, now);
        self.remember(&digest);
        self.turn.push(digest);
        let judgement = self.guard.assess(&self.turn);
        let first = judgement.verdict == Verdict::Stop && self.stopped_by.is_none();
        if first {
            self.stopped_by = judgement.gravest().map(|finding| finding.rule.name());
        }
        let suggestion = if first { judgement.suggestion() } else { None };
        CallAdvice { stop_retrying: self.stop_retrying(), suggestion, judgement }
    }

    fn remember(&mut self, digest: &Digest) {
        let index = self.calls;
        self.calls += 1;
        let Some(failure) = &digest.failure else { return };
        if self.errors.len() == HISTORY {
            self.errors.pop_front();
        }
        self.errors.push_back(PastError {
            index,
            tool: digest.tool.to_string(),
            category: failure.category.to_string(),
            pattern: failure.fingerprint.text.clone(),
            example: digest.example.clone(),
            args: digest.args.clone(),
        });
    }

    /// The user has written: all counts begin again and tools may be called again.
    pub fn user_turn(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.turn.begin();
        self.stopped_by = None;
    }

    /// Forgets everything, for a new conversation or to rewind a session by hand.
    pub fn reset_error_tracking(&mut self) {
        let guard = self.guard.clone();
        *self = Self::new(guard);
    }

    /// No more tools in this turn.
    #[must_use]
    pub fn stop_retrying(&self) -> bool {
        self.stopped_by.is_some()
    }

    /// How much was called in this turn.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.turn.reach()
    }

    /// The last failures, at most [`HISTORY`], oldest first.
    pub fn history(&self) -> impl ExactSizeIterator<Item = &PastError> {
        self.errors.iter()
    }

    /// Everything it knows.
    #[must_use]
    pub fn dump(&self) -> Dump {
        let mut patterns: Vec<(String, usize)> = Vec::new();
        for failure in self.turn.digests().filter_map(|digest| digest.failure.as_ref()) {
            let text = &failure.fingerprint.text;
            match patterns.iter_mut().find(|(pattern, _)| pattern == text) {
                Some((_, count)) => *count += 1,
                None => patterns.push((text.clone(), 1)),
            }
        }
        patterns.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let reach = self.reach();
        Dump {
            turn: self.number,
            calls: reach.calls,
            responses: reach.responses,
            stop_retrying: self.stop_retrying(),
            stopped_by: self.stopped_by,
            errors: self.errors.iter().cloned().collect(),
            patterns,
        }
    }
}
