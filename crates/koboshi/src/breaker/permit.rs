//! The proof that a breaker let a call through.
//!
//! A permit is recorded, or it is dropped. A call that is cancelled, panics or is forgotten on the way gives back its
//! probe by being dropped and says nothing about the target. A result that comes after the breaker has moved on is
//! ignored: the permit carries the generation it was given in.

use std::fmt;
use std::ops::Deref;

use crate::fault::{Fault, Scope};
use crate::time::Moment;

use super::Breaker;

/// How a call ended, as far as the target's health is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The target answered.
    Success,
    /// The target failed.
    Failure,
    /// It could not be reached. It counts as a failure; but this machine's network may be what is broken, so the breaker
    /// that it opens is no hint to others.
    Unreachable,
    /// It says nothing about the target: a bad request, a content filter, a rate limit, a cancelled call.
    Ignored,
}

impl Outcome {
    /// How a call with this fault ended: only faults of health count.
    #[must_use]
    pub const fn of(fault: &Fault) -> Self {
        match fault.scope {
            _ if !fault.advice.health => Self::Ignored,
            Scope::Network => Self::Unreachable,
            _ => Self::Failure,
        }
    }

    pub(super) const fn is_failure(self) -> bool {
        matches!(self, Self::Failure | Self::Unreachable)
    }

    /// How this call ended.
    #[must_use]
    pub const fn of_result<T>(result: &Result<T, Fault>) -> Self {
        match result {
            Ok(_) => Self::Success,
            Err(fault) => Self::of(fault),
        }
    }
}

/// What a permit stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// A call through a closed breaker.
    Ordinary,
    /// One of the few calls of a probing breaker.
    Probe {
        /// Which of them.
        number: u32,
    },
    /// A call that an open breaker let through because no other target is left, or because no one waits for it.
    Paced,
}

/// A call that may go out. Record how it ended; dropping it says nothing and gives a probe back.
#[must_use = "a permit that is dropped at once protects nothing"]
pub struct Permit<B: Deref<Target = Breaker>> {
    breaker: B,
    generation: u64,
    pass: Pass,
    since: Moment,
    recorded: bool,
}

impl<B: Deref<Target = Breaker>> Permit<B> {
    #[inline]
    pub(super) const fn new(breaker: B, generation: u64, pass: Pass, since: Moment) -> Self {
        Self { breaker, generation, pass, since, recorded: false }
    }

    /// Whether this call decides if the target is back.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        !matches!(self.pass, Pass::Ordinary)
    }

    /// When the call was admitted.
    pub(crate) const fn since(&self) -> Moment {
        self.since
    }

    /// The call ended like this. For a stream: when it ends, not when it begins.
    #[inline]
    pub fn record(mut self, outcome: Outcome, now: Moment) {
        self.recorded = true;
        match self.pass {
            Pass::Ordinary => self.breaker.record_ordinary(self.generation, outcome, self.since, now),
            pass => self.breaker.record_probe(self.generation, pass, outcome, self.since, now),
        }
    }

    /// The target answered.
    #[inline]
    pub fn succeed(self, now: Moment) {
        self.record(Outcome::Success, now);
    }

    /// The target failed.
    #[inline]
    pub fn fail(self, now: Moment) {
        self.record(Outcome::Failure, now);
    }
}

impl<B: Deref<Target = Breaker>> Drop for Permit<B> {
    #[inline]
    fn drop(&mut self) {
        if let (false, Pass::Probe { number }) = (self.recorded, self.pass) {
            self.breaker.return_probe(self.generation, number);
        }
    }
}

impl<B: Deref<Target = Breaker>> fmt::Debug for Permit<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Permit")
            .field("generation", &self.generation)
            .field("pass", &self.pass)
            .finish_non_exhaustive()
    }
}
