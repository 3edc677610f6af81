//! What happened at a gate, for logs, notices and metrics.
//!
//! Events are drained and not returned: a hold ends because time passes and a level falls under a dropped guard,
//! where there is no result to put an event into. The buffer is bounded; when the caller does not drain it the oldest go first, and
//! the snapshot says how many were lost.

use std::collections::VecDeque;

use jiff::Timestamp;

use super::Limit;

/// The most events that are kept.
const KEPT: usize = 64;

/// What happened at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateEvent {
    /// It closes until then, later than was known for this reason.
    Held {
        /// Why.
        reason: Limit,
        /// Until when.
        until: Timestamp,
    },
    /// The last hold has ended. Seen by the first caller after that.
    Opened,
    /// Nearly all that may be used of a limit is used or reserved. Reported once in a window.
    Nearly {
        /// Which limit.
        limit: Limit,
        /// How much, from 80 to 100.
        used_percent: u8,
    },
    /// A caller cleared it, here or in another process.
    Cleared,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    kept: VecDeque<GateEvent>,
    lost: u64,
}

impl Events {
    pub(super) fn push(&mut self, event: GateEvent) {
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
            self.lost = self.lost.saturating_add(1);
        }
        self.kept.push_back(event);
    }

    pub(super) fn drain(&mut self) -> Vec<GateEvent> {
        self.kept.drain(..).collect()
    }

    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}
