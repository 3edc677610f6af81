//! A change as a store keeps it: its events, and with the last one what the log must know besides. What was stored whole once and the entries
//! after it are the log, so a change costs a small write however long the conversation is.

use serde::{Deserialize, Serialize};

use super::{Change, Limits, Log, TurnSpec};
use crate::session::event::Event;

/// An event as a store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// What is known of the change that ends with it.
    #[serde(default, skip_serializing_if = "Note::is_empty")]
    note: Note,
}

/// What follows from an order and stands in no event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Note {
    /// The order's id, and its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<(String, u64)>,
    /// The turn that an accepted message begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spec: Option<TurnSpec>,
    /// The model does not get turns before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context_from: Option<u64>,
    /// A recovery was counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) recovers: bool,
}

impl Note {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Change {
    /// What a store keeps of it.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let last = self.events.len().saturating_sub(1);
        let note = |at| if at == last { self.note.clone() } else { Note::default() };
        self.events
            .iter()
            .enumerate()
            .map(|(at, event)| Entry { event: event.clone(), note: note(at) })
            .collect()
    }
}

impl Log {
    /// Takes an entry that another process has written into this copy. False where it is not the next one.
    pub fn enter(&mut self, entry: Entry, limits: &Limits) -> bool {
        if entry.event.first() != self.seq() + 1 {
            return false;
        }
        self.follow(entry.event, limits);
        self.heed(entry.note);
        true
    }

    /// The log as a store has it: as it was stored whole, and the entries before and after that.
    #[must_use]
    pub fn restored(mut self, entries: impl IntoIterator<Item = Entry>, limits: &Limits) -> Self {
        for entry in entries {
            if entry.event.seq <= self.seq() {
                self.push_tail(entry.event, limits);
            } else {
                self.enter(entry, limits);
            }
        }
        self
    }

    /// What a change says besides its events.
    pub(super) fn heed(&mut self, note: Note) {
        let Note { id, spec, context_from, recovers } = note;
        if let Some((id, turn)) = id {
            self.remember(id, turn);
        }
        if let Some(spec) = spec.filter(|spec| !self.turns.iter().any(|known| known.turn == spec.turn)) {
            self.turns.push_back(spec);
        }
        self.context_from = context_from.unwrap_or(self.context_from);
        if recovers {
            self.recoveries += 1;
            self.recoveries_in_place += 1;
        }
    }
}
