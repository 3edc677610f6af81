//! The holds of one gate on both clocks: wall time to share, monotonic time to obey.
//!
//! A hold is stated as an instant. At the moment of learning it becomes a length, and from then on only the monotonic
//! clock counts: a wall clock that is set later neither stretches nor cuts it. The stated instants are kept
//! beside it as the mergeable record, also after they have ended: a copy of one that comes back from a
//! store is then known and not taken for news.
//!
//! Invariants: per reason the end only moves later, except by a clear; nothing is believed for longer than
//! [`MAX_HOLD`] from the moment of learning.

use std::time::Duration;

use jiff::Timestamp;

use crate::time::Moment;

use super::{Holds, Limit};

/// A hold is believed for at most this long: 35 days, a monthly quota and some slack.
pub const MAX_HOLD: Duration = Duration::from_secs(35 * 24 * 60 * 60);

/// What an adoption changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HoldChanges {
    pub(super) is_news: bool,
    /// Another process cleared it.
    pub(super) cleared: bool,
    /// Holds that now end later.
    pub(super) longer: Vec<(Limit, Timestamp)>,
}

#[derive(Debug, Default)]
pub(super) struct NotBefore {
    record: Holds,
    ends: [Moment; Limit::ALL.len()],
}

impl NotBefore {
    pub(super) const fn record(&self) -> &Holds {
        &self.record
    }

    /// The hold that ends last, ended or not.
    pub(super) fn last(&self) -> Option<(Moment, Limit)> {
        let ends = self.ends.iter().zip(Limit::ALL).filter(|(end, _)| **end > Moment::START);
        ends.map(|(end, reason)| (*end, *reason)).max_by_key(|(end, _)| *end)
    }

    /// Closes until then; says until when it is recorded if that is later than what was known.
    pub(super) fn hold(
        &mut self,
        reason: Limit,
        until: Timestamp,
        now: Moment,
        wall: Timestamp,
    ) -> Option<Timestamp> {
        let length = length_of(until, wall)?;
        let until = wall.saturating_add(length).unwrap_or(Timestamp::MAX);
        self.record.hold(reason, until);
        self.extend(reason, now.after(length)).then_some(until)
    }

    /// Takes over what others know.
    pub(super) fn adopt(&mut self, other: &Holds, now: Moment, wall: Timestamp) -> HoldChanges {
        let merged = self.record.merge(other);
        if merged == self.record {
            return HoldChanges::default();
        }
        let known = std::mem::replace(&mut self.record, merged.clone());
        let cleared = merged.epoch > known.epoch;
        if cleared {
            self.ends = Default::default();
        }
        let is_news = |reason, until| cleared || known.until.get(reason) != Some(until);
        let mut longer = Vec::new();
        for (reason, until) in merged.until.iter().filter(|(reason, until)| is_news(reason, until)) {
            let Some(length) = length_of(*until, wall) else { continue };
            if self.extend(*reason, now.after(length)) {
                longer.push((*reason, *until));
            }
        }
        HoldChanges { is_news: true, cleared, longer }
    }

    pub(super) fn clear(&mut self) {
        self.record.clear();
        self.ends = Default::default();
    }

    fn extend(&mut self, reason: Limit, end: Moment) -> bool {
        let known = self.ends.iter_mut().zip(Limit::ALL).find(|(_, other)| **other == reason);
        let Some((known, _)) = known.filter(|(known, _)| end > **known) else { return false };
        *known = end;
        true
    }
}

/// How long it is until then; none if it has passed.
fn length_of(until: Timestamp, wall: Timestamp) -> Option<Duration> {
    let length = Duration::try_from(until.duration_since(wall)).ok()?;
    (!length.is_zero()).then(|| length.min(MAX_HOLD))
}
