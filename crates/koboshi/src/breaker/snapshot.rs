//! What a breaker looks like from outside, in the form that is shown, stored and shared.
//!
//! A breaker counts on the monotonic clock of its own process; a snapshot speaks in wall time, so that another process
//! or a restarted one can read it. Another machine's snapshot is a hint and no more: one node's bad network must
//! not stop a fleet.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::Why;
use crate::time::Moment;

/// What a breaker does with calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Lets everything through.
    Closed,
    /// Refuses.
    Open,
    /// Lets a few through to find out.
    Probing,
    /// An operator keeps it closed: everything goes through, and is still counted.
    ForcedClosed,
    /// An operator keeps it open: nothing goes through, not even for the last target.
    ForcedOpen,
    /// An operator switched it off: everything goes through, nothing is counted.
    Disabled,
}

impl Mode {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Probing => "probing",
            Self::ForcedClosed => "forced_closed",
            Self::ForcedOpen => "forced_open",
            Self::Disabled => "disabled",
        }
    }
}

/// A breaker at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSnapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// What it did with calls.
    pub mode: Mode,
    /// Since when.
    pub since: Timestamp,
    /// When an open one begins to probe.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// How often it opened in a row without closing in between.
    #[serde(default)]
    pub openings: u32,
    /// Why it is in this mode; none where it has not changed yet, or an older program took the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known")]
    pub why: Option<Why>,
    /// Whether it opened because its node could not reach the target: its own network may be what is broken.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_local: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in a reference")]
const fn is_false(yes: &bool) -> bool {
    !*yes
}

/// A reason that only a newer program knows is none: the rest of the snapshot still counts.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Why>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Reason {
        Known(Why),
        Other(IgnoredAny),
    }
    Ok(match Option::<Reason>::deserialize(deserializer)? {
        Some(Reason::Known(why)) => Some(why),
        Some(Reason::Other(_)) | None => None,
    })
}

/// A moment on the wall clock; `now` and `wall` are the same instant on both clocks. One that has passed keeps its place, so that
/// every later snapshot names the same end.
pub(super) fn on_wall(moment: Moment, now: Moment, wall: Timestamp) -> Timestamp {
    if moment >= now {
        wall.saturating_add(moment.since(now)).unwrap_or(Timestamp::MAX)
    } else {
        wall.saturating_sub(now.since(moment)).unwrap_or(Timestamp::MIN)
    }
}

impl BreakerSnapshot {
    /// What the breaker does with calls at `now`, if nothing has changed it since the snapshot: an open one whose time is over
    /// lets the next call through as a probe.
    #[must_use]
    pub fn mode_at(&self, now: Timestamp) -> Mode {
        let is_over = self.until.is_some_and(|until| until <= now);
        if self.mode == Mode::Open && is_over { Mode::Probing } else { self.mode }
    }

    /// The later of two snapshots of one breaker.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let rank = |one: &Self| (one.at, one.since, one.mode, one.until, one.openings, one.why, one.is_local);
        if rank(self) >= rank(other) { self.clone() } else { other.clone() }
    }
}
