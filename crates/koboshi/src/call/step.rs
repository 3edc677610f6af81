//! What a call says to its caller: what to do next, which target, how long to pause, how it ended.
//!
//! The decisions are in [`Call`](super::Call); these types only carry them.

use std::ops::Deref;
use std::time::Duration;

use crate::breaker::{Admission, Breaker, BreakerRefusal, Permit};
use crate::fault::{Fault, Kind};
use crate::time::Moment;

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// On which target: its place in the list.
    pub target: usize,
    /// How.
    pub fault: Box<Fault>,
}

/// What to do next.
#[derive(Debug)]
#[must_use]
pub enum Next<B: Deref<Target = Breaker>> {
    /// Send to the target, and report how it ended.
    Try(Attempt<B>),
    /// Report the pause, wait, and call again.
    Pause(Pause),
    /// Give up.
    Over(End),
}

/// What to do next, before a permit is taken.
#[derive(Debug)]
#[must_use]
pub enum Choice {
    /// This target may be asked; [`Call::admit`](super::Call::admit) takes the permit.
    Target(Candidate),
    /// Report the pause, wait, and call again.
    Pause(Pause),
    /// Give up.
    Over(End),
}

/// A target that may be asked now. It holds nothing: another call may take the permit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub(super) target: usize,
    /// On what terms it is asked.
    pub(super) admission: Admission,
}

impl Candidate {
    /// Which target it is: its place in the list.
    #[must_use]
    pub const fn target(&self) -> usize {
        self.target
    }
}

/// A pause before the same target is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// How long.
    pub length: Duration,
    /// Number of the attempt on this target that follows, from 1.
    pub attempt: u32,
    /// The most attempts on this target.
    pub max_attempts: u32,
    /// What made it necessary.
    pub why: Kind,
}

/// How a call ended that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// Every attempt that was made failed; the last one is at the end.
    #[error("{} attempts failed, the last with {}", .0.len(), .0.last().map_or("nothing", |last| last.fault.kind.name()))]
    Failed(Vec<FailedAttempt>),
    /// No target was asked: every breaker refused. This one lets calls through first.
    #[error(transparent)]
    Refused(BreakerRefusal),
    /// No target was asked: the deadline had passed, or the list of targets is empty.
    #[error("nothing was tried: the deadline had passed, or there is no target")]
    Nothing,
}

impl End {
    /// The last fault, if a target was asked.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Failed(failed) => failed.last().map(|last| last.fault.as_ref()),
            Self::Refused(_) | Self::Nothing => None,
        }
    }
}

/// One attempt on one target. Dropping it records nothing about the target.
#[derive(Debug)]
#[must_use]
pub struct Attempt<B: Deref<Target = Breaker>> {
    pub(super) target: usize,
    pub(super) permit: Permit<B>,
    pub(super) has_content: bool,
    /// How long it was silent at last, where the caller measured it.
    pub(super) pause: Option<Duration>,
}

impl<B: Deref<Target = Breaker>> Attempt<B> {
    /// Which target to send to: its place in the list.
    #[must_use]
    pub const fn target(&self) -> usize {
        self.target
    }

    /// The target has begun to answer: a failure from here on is no silence.
    pub const fn content_began(&mut self) {
        self.has_content = true;
    }

    /// The target said nothing for this long, in the midst of its answer: a failure after a long pause is silence too.
    pub const fn paused_for(&mut self, length: Duration) {
        self.pause = Some(length);
    }

    /// How long the target has said nothing; none once it has begun to answer, unless the caller measured it.
    pub(super) fn silence(&self, now: Moment) -> Option<Duration> {
        if self.has_content { self.pause } else { Some(now.since(self.permit.since())) }
    }

    /// It succeeded. For a stream: when it ends, not when it begins.
    pub fn succeeded(self, now: Moment) {
        self.permit.succeed(now);
    }
}
