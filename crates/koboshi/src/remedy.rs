//! What to do about a fault: one function that can be read against the table.
//!
//! [`remedy`] gets the fault, what the request has spent, how many other targets are left, what is allowed, and
//! the time; it answers with one [`Remedy`]. It knows no clock and keeps no state: gateway, supervisor and your own
//! loop get the same answer for the same facts.
//!
//! | Situation | Remedy |
//! |---|---|
//! | the request is over (deadline, attempts) | `Degrade` where something is left to degrade to, else `Stop` |
//! | a content filter, unless routing around it is allowed | `Stop` |
//! | the context is too large | `Elsewhere` while a target is left, then `Trim`, then `Stop` |
//! | broken tool arguments | `Reask` up to the limit, then `Elsewhere` |
//! | an expired credential | one `Again`, for which the caller has refreshed it, then `Elsewhere` |
//! | a rate limit without a stated wait, another target left | `Elsewhere` |
//! | the same target may be tried, and the stated wait is within patience | `Wait`, never shorter than a quick retry |
//! | … and the stated wait is longer, or reaches past the deadline | `Elsewhere`, never a shorter wait |
//! | a transient fault, another target left | one quick `Again`, then `Elsewhere`; after a timeout, or more than 5 s without content, `Elsewhere` at once |
//! | a transient fault, nothing else left | `Again` for all attempts |
//! | only another target may succeed | `Elsewhere` |
//! | nothing may succeed now | `Degrade` or `Stop` |
//!
//! Never a pause when no attempt follows it. And every other target is asked: where the attempts that are left do not
//! reach past the targets that were not asked yet, none of them is spent on the same target again.
//!
//! # Defaults
//!
//! | | |
//! |---|---|
//! | attempts on one target, pauses | [`BackoffPolicy::SERVICE`]: 3, from 500 ms, × 2, at most 10 s |
//! | attempts in all | 6, and at least one more than there are targets |
//! | a stated wait is waited out up to | 3 s |
//! | the one quick retry | after 50 to 100 ms |
//! | re-asks of a broken tool call | 2 |
//! | trims | 0: forbidden |
//! | around a content filter | no |
//!
//! # Events
//!
//! None: the returned [`Remedy`] is what happens. The journal notes it beside its fault.
//!
//! # Anti-patterns
//!
//! - Reading `advice.same` alone: a rate limit may be tried again, but only after its wait.
//! - The wait of an earlier attempt.
//! - A pause first and the decision afterwards.

use std::time::Duration;

use jiff::Timestamp;

use crate::backoff::BackoffPolicy;
use crate::budget::{AttemptCount, RequestPolicy};
use crate::chance::Seed;
use crate::fault::{Fault, Kind};
use crate::time::Moment;

/// A connection that dies after this long without content was a silent one: the client would wait as long once more.
const MAX_QUICK_FAULT: Duration = Duration::from_secs(5);

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Try the same target again after a pause of our own choice.
    Again {
        /// How long to pause.
        after: Duration,
    },
    /// Try the same target again when the time that it stated has come.
    Wait {
        /// When.
        until: Timestamp,
        /// How long that is from now.
        after: Duration,
    },
    /// Try the next target, at once.
    Elsewhere,
    /// Try again with a smaller request.
    Trim,
    /// Send the model what was wrong and let it answer again.
    Reask,
    /// Give a lesser answer: from the cache, a simpler model, a fixed text.
    Degrade,
    /// Give the error back.
    Stop,
}

/// What is known about the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// Attempts made, the failed one included.
    pub spent: AttemptCount,
    /// The pause before the failed attempt, if there was one.
    pub pause: Option<Duration>,
    /// How often the model was asked to correct a tool call.
    pub reasks: u32,
    /// How often the request was made smaller.
    pub trims: u32,
    /// After this moment nothing more is tried.
    pub deadline: Option<Moment>,
    /// Whether the shared account pays for one more same-target retry.
    pub retry_paid: bool,
    /// How long the failed attempt was without content at last; none where content came until it failed.
    pub silence: Option<Duration>,
}

/// What is left besides the failed target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remaining {
    /// Attempts that may still be made, on whatever target.
    pub attempts: u32,
    /// Other targets that can take the request and were not asked yet.
    pub others: u32,
    /// A lesser answer can be given.
    pub lesser: bool,
}

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RemedyPolicy {
    /// Attempts and patience.
    pub request: RequestPolicy,
    /// Pauses on the same target.
    pub backoff: BackoffPolicy,
    /// The pause before the one quick retry while other targets are left.
    pub quick: Duration,
    /// How often a broken tool call is sent back to the model.
    pub max_reasks: u32,
    /// How often a request may be made smaller; 0 forbids it.
    pub max_trims: u32,
    /// A refusal by one vendor's content policy may be taken to another.
    pub route_around_filters: bool,
}

impl Default for RemedyPolicy {
    fn default() -> Self {
        Self {
            request: RequestPolicy::default(),
            backoff: BackoffPolicy::SERVICE,
            quick: Duration::from_millis(100),
            max_reasks: 2,
            max_trims: 0,
            route_around_filters: false,
        }
    }
}

/// What to do about this fault.
#[must_use]
pub fn remedy(
    fault: &Fault,
    history: &History,
    left: Remaining,
    policy: &RemedyPolicy,
    now: Moment,
    seed: Seed,
) -> Remedy {
    let case = Case { fault, history, left, policy, now, seed };
    if case.is_over() {
        return case.last_resort();
    }
    match fault.kind {
        Kind::ContentFiltered if !policy.route_around_filters => Remedy::Stop,
        Kind::ContextTooLarge => case.smaller_or_elsewhere(),
        Kind::ToolArgumentsInvalid if history.reasks < policy.max_reasks && !case.must_turn() => {
            Remedy::Reask
        }
        Kind::ToolArgumentsInvalid => case.elsewhere(),
        _ if !fault.advice.same => case.elsewhere(),
        _ => case.same_target(),
    }
}

struct Case<'a> {
    fault: &'a Fault,
    history: &'a History,
    left: Remaining,
    policy: &'a RemedyPolicy,
    now: Moment,
    seed: Seed,
}

impl Case<'_> {
    /// No attempt of any kind may follow.
    fn is_over(&self) -> bool {
        let late = self.history.deadline.is_some_and(|deadline| self.now >= deadline);
        late || self.left.attempts == 0
    }

    fn last_resort(&self) -> Remedy {
        // A request that is wrong gets no lesser answer: it would hide the mistake.
        let deserves = self.fault.advice.other || self.fault.advice.later;
        if self.left.lesser && deserves { Remedy::Degrade } else { Remedy::Stop }
    }

    /// Another target may take the request.
    fn can_turn(&self) -> bool {
        self.left.others > 0 && self.fault.advice.other
    }

    /// One more attempt on the same target would leave too few for those that were not asked yet.
    fn must_turn(&self) -> bool {
        self.can_turn() && self.left.attempts <= self.left.others
    }

    fn elsewhere(&self) -> Remedy {
        if self.can_turn() { Remedy::Elsewhere } else { self.last_resort() }
    }

    fn smaller_or_elsewhere(&self) -> Remedy {
        if self.can_turn() {
            return Remedy::Elsewhere;
        }
        if self.history.trims < self.policy.max_trims { Remedy::Trim } else { Remedy::Stop }
    }

    /// The same target may be tried again; whether it should, and when.
    fn same_target(&self) -> Remedy {
        // The second refusal came with a fresh credential.
        let refused = self.fault.kind == Kind::TokenExpired && self.history.spent.on_target > 1;
        let used_up = refused || self.history.spent.on_target >= self.policy.backoff.attempts;
        if used_up || !self.history.retry_paid || self.must_turn() {
            return self.elsewhere();
        }
        if let Some(wait) = self.fault.wait {
            let bearable = wait.after <= self.policy.request.patience && self.fits(wait.after);
            let after = self.policy.backoff.pause(
                self.history.spent.on_target,
                self.history.pause,
                Some(wait.after),
                self.seed,
            );
            return match (bearable, self.can_turn()) {
                // "Again at once" still means a moment later.
                (true, true) => Remedy::Wait { until: wait.until, after: wait.after.max(self.policy.quick) },
                // Alone, our own pause may be longer than the hint: it is a floor.
                (true, false) if self.fits(after) => Remedy::Wait { until: wait.until, after },
                _ => self.elsewhere(),
            };
        }
        if self.can_turn() { self.one_quick_retry() } else { self.with_backoff() }
    }

    fn one_quick_retry(&self) -> Remedy {
        // A target that stayed silent is not asked again while another can answer.
        let silence = self.history.silence.unwrap_or_default();
        let silent = self.fault.kind == Kind::Timeout || silence > MAX_QUICK_FAULT;
        // A limit that does not say how long it lasts is not over in a tenth of a second.
        let limited = self.fault.kind == Kind::RateLimited;
        if silent || limited || self.history.spent.on_target > 1 || !self.fits(self.policy.quick) {
            return Remedy::Elsewhere;
        }
        Remedy::Again { after: self.seed.between(self.policy.quick / 2, self.policy.quick) }
    }

    fn with_backoff(&self) -> Remedy {
        let after =
            self.policy.backoff.pause(self.history.spent.on_target, self.history.pause, None, self.seed);
        if self.fits(after) { Remedy::Again { after } } else { self.last_resort() }
    }

    /// Whether an attempt could still follow after this long.
    fn fits(&self, pause: Duration) -> bool {
        self.history.deadline.is_none_or(|deadline| self.now.after(pause) < deadline)
    }
}

#[cfg(test)]
mod tests;
