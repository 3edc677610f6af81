//! What a breaker reports about itself: every change of mode, and every refusal.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time::Moment;

use super::snapshot::on_wall;
use super::{BreakerSnapshot, Mode};

/// Why a breaker changed its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// This many failures in a row.
    Consecutive {
        /// How many.
        failures: u32,
    },
    /// Too many of the calls in the window failed.
    FailureRate {
        /// Failed calls.
        failed: u32,
        /// All calls.
        calls: u32,
    },
    /// Too many of the calls in the window were slow.
    SlowRate {
        /// Slow calls.
        slow: u32,
        /// All calls.
        calls: u32,
    },
    /// One failure, after another node had warned.
    Warned,
    /// The open time is over.
    WaitOver,
    /// A probe failed.
    ProbeFailed,
    /// Enough probes succeeded.
    ProbesSucceeded,
    /// An operator forced it.
    Forced,
    /// An operator let it go again, or closed one that had opened.
    Released,
    /// Taken over from a snapshot.
    Restored,
}

impl Why {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consecutive { .. } => "consecutive",
            Self::FailureRate { .. } => "failure_rate",
            Self::SlowRate { .. } => "slow_rate",
            Self::Warned => "warned",
            Self::WaitOver => "wait_over",
            Self::ProbeFailed => "probe_failed",
            Self::ProbesSucceeded => "probes_succeeded",
            Self::Forced => "forced",
            Self::Released => "released",
            Self::Restored => "restored",
        }
    }
}

/// A change of mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The mode before.
    pub from: Mode,
    /// The mode now.
    pub to: Mode,
    /// Why.
    pub why: Why,
    /// Why it is in the mode now: the same, except for a mode that was taken over, whose reason is older.
    pub cause: Why,
    /// Since when it is in the mode now, where that was before a restart.
    pub since: Option<Timestamp>,
    /// Number of the change. Watchers on several threads put changes in order by it.
    pub generation: u64,
    /// When.
    pub at: Moment,
    /// When an open breaker begins to probe.
    pub until: Option<Moment>,
    /// How often it opened in a row without closing in between.
    pub openings: u32,
    /// Whether it opened because this machine could not reach the target.
    pub is_local: bool,
}

impl Transition {
    /// The breaker right after the change, as others may see it. `now` and `wall` are the same instant on both clocks.
    #[must_use]
    pub fn snapshot(&self, now: Moment, wall: Timestamp) -> BreakerSnapshot {
        BreakerSnapshot {
            at: wall,
            mode: self.to,
            since: self
                .since
                .unwrap_or_else(|| wall.saturating_sub(now.since(self.at)).unwrap_or(Timestamp::MIN)),
            until: self.until.map(|until| on_wall(until, now, wall)),
            openings: self.openings,
            why: Some(self.cause),
            is_local: self.is_local,
        }
    }
}

/// The breaker does not let the call through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the target is not asked now: its breaker is {}", mode.name())]
pub struct BreakerRefusal {
    /// The mode that refuses: open, probing (all probes are out) or forced open.
    pub mode: Mode,
    /// When asking again may help; none where an operator decides.
    pub until: Option<Moment>,
}

impl BreakerRefusal {
    /// How long until asking again may help.
    #[must_use]
    pub fn wait(&self, now: Moment) -> Option<Duration> {
        self.until.map(|until| until.since(now))
    }
}
