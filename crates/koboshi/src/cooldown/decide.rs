//! What a failure, a success or a person makes of one key's record.
//!
//! These are the rules; the table ([`super::Cooldowns`]) only adds what is local to a process. The streak is kept
//! apart from the deadline: a design that drops both when the rest is over starts at one for ever, because nothing
//! can fail again before it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::fault::{Confidence, Fault};
use crate::time::scaled;
use crate::wait::{Form, Wait, WaitZone};

use super::{Cause, Class, ClearMark, Cooldown, CooldownPolicy, Rest};

/// Details longer than this are cut. A fault's own detail, at most 400 characters of any script, stays whole: it is repeated to clients.
const MAX_DETAIL_BYTES: usize = 1600;

/// A failure, as far as resting is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Why it failed.
    pub class: Class,
    /// The wait that was stated, if one was.
    pub wait: Option<Wait>,
    /// Trying again cannot help: park it at once.
    pub stop: bool,
    /// When the failed attempt began, if known. One that began before the rest was set says nothing new.
    pub started: Option<Timestamp>,
    /// How long it had run, if known. After a healthy run the failures before it are forgotten.
    pub ran: Option<Duration>,
    /// The provider's sentence, already redacted.
    pub detail: String,
    /// The fault, as far as it is kept.
    pub cause: Option<Cause>,
}

impl Failure {
    /// A failure of this class, with nothing else known.
    #[must_use]
    pub fn of_class(class: Class) -> Self {
        Self { class, wait: None, stop: false, started: None, ran: None, detail: String::new(), cause: None }
    }

    /// The failure that a fault means.
    #[must_use]
    pub fn of(fault: &Fault) -> Self {
        // A bare status or exit code is weak evidence: it must not park anything, only lengthen the rest of an error.
        let weak = fault.confidence == Confidence::Low;
        Self {
            class: if weak { Class::Error } else { Class::of(fault) },
            wait: fault.wait,
            stop: Class::needs_a_person(fault),
            detail: fault.detail.clone(),
            cause: Some(Cause::of(fault)),
            ..Self::of_class(Class::Error)
        }
    }
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing<'a> {
    /// No failure is known.
    Free,
    /// The key is in cooldown.
    Cooling {
        /// Why and since when.
        rest: &'a Rest,
        /// Until when, as seen from now.
        until: Timestamp,
    },
    /// The cooldown is over and nothing was sent since. One call should go first.
    Due(&'a Rest),
    /// A person must resume it.
    Parked(&'a Rest),
}

impl Cooldown {
    /// The state of the key.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing<'_> {
        if let Some(rest) = self.rest.as_ref().filter(|rest| rest.parked) {
            return Standing::Parked(rest);
        }
        let both = [&self.by_operator, &self.rest];
        let running =
            both.into_iter().flatten().map(|rest| (rest.ends(now), rest)).filter(|(until, _)| now < *until);
        match (running.max_by_key(|(until, _)| *until), &self.rest) {
            (Some((until, rest)), _) => Standing::Cooling { rest, until },
            // A cooldown that an operator set ends silently: nothing is wrong with the key.
            (None, Some(rest)) => Standing::Due(rest),
            (None, None) => Standing::Free,
        }
    }

    /// Takes a failure in.
    pub fn fail(&mut self, failure: &Failure, policy: &CooldownPolicy, now: Timestamp, seed: Seed) {
        let (class, wait) =
            if policy.detection { (failure.class, failure.wait) } else { (Class::Error, None) };
        if failure.ran.is_some_and(|ran| ran >= policy.healthy_run) {
            self.forget_streaks(now);
        }
        let before = self.rest.take();
        let known = before.as_ref().is_some_and(|rest| rest.knows(class, failure.started));
        if known && wait.is_none() {
            self.rest = before;
            return;
        }
        let mut streaks = before.as_ref().map(|rest| rest.streaks.clone()).unwrap_or_default();
        let streak = streaks.entry(class).or_insert(0);
        *streak = streak.saturating_add(u32::from(!known));
        let streak = *streak;

        let own = policy.class(class);
        let too_often = own.and_then(|own| own.park_after).is_some_and(|max| streak >= max);
        let guess = own.map(|own| guessed(own.rest(streak), own.cap, streak, policy.jitter, seed));
        let length = match (wait.map(|wait| policy.stated(&wait)), guess) {
            // An error of its own that speaks of a wait: weak evidence, so it may only lengthen. So is a time without a zone that has
            // passed: in the zone that was meant it may be ahead.
            (Some(stated), Some(guess)) if class == Class::Error || wait.is_some_and(is_doubtful) => {
                stated.max(guess)
            }
            (Some(stated), _) => stated,
            (None, guess) => guess.unwrap_or(Duration::ZERO),
        };
        let rest = Rest {
            parked: own.is_none() || too_often || failure.stop,
            until: now.saturating_add(length).unwrap_or(Timestamp::MAX),
            set: now,
            since: before.as_ref().map_or(now, |rest| rest.since),
            class,
            stated: wait.is_some(),
            fixed: wait.is_some_and(|wait| wait.form != Form::Countdown),
            streaks,
            detail: cut(&failure.detail),
            cause: failure.cause,
        };
        self.rest = Some(match before {
            Some(before) if before.outlasts(&rest, now) => Rest { streaks: rest.streaks, ..before },
            _ => rest,
        });
    }

    /// Records the time until which a provider says that it is unavailable. That is no series of failures: no streak grows, and nothing is parked.
    pub fn rest_until(&mut self, fault: &Fault, until: Timestamp, now: Timestamp) {
        let before = self.rest.take();
        let rest = Rest {
            parked: false,
            until,
            set: now,
            since: before.as_ref().map_or(now, |rest| rest.since),
            class: Class::of(fault),
            stated: fault.wait.is_some(),
            fixed: fault.wait.is_some_and(|wait| wait.form != Form::Countdown),
            streaks: BTreeMap::new(),
            detail: cut(&fault.detail),
            cause: Some(Cause::of(fault)),
        };
        self.rest = Some(match before {
            Some(before) if before.outlasts(&rest, now) => before,
            _ => rest,
        });
    }

    /// A healthy run ends the series of failures, everywhere; a cooldown that still runs is kept.
    fn forget_streaks(&mut self, now: Timestamp) {
        let Some(rest) = self.rest.take() else { return };
        self.clear(ClearMark { at: now, by_person: false });
        if rest.parked || now < rest.ends(now) {
            self.rest = Some(Rest { streaks: BTreeMap::new(), since: now, ..rest });
        }
    }

    /// Takes a success in, of an attempt that began then (if known). Says whether that ended a series of failures.
    ///
    /// What a person decided stays, and so does what failed after the attempt had begun.
    pub fn succeed(&mut self, started: Option<Timestamp>, now: Timestamp) -> bool {
        let Some(rest) = &self.rest else { return false };
        if rest.parked || started.is_some_and(|started| started < rest.set) {
            return false;
        }
        self.clear(ClearMark { at: now, by_person: false });
        true
    }

    /// An operator puts the key into cooldown until then, whatever was known before.
    pub fn cool(&mut self, until: Timestamp, detail: &str, now: Timestamp) {
        self.clear(ClearMark { at: now, by_person: true });
        self.by_operator = Some(Rest {
            parked: false,
            until,
            set: now,
            since: now,
            class: Class::Operator,
            stated: false,
            fixed: true,
            streaks: BTreeMap::new(),
            detail: cut(detail),
            cause: None,
        });
    }

    /// A person resumes it, whatever was known before. Says whether there was anything to resume.
    pub fn resume(&mut self, now: Timestamp) -> bool {
        let rested = self.standing(now) != Standing::Free;
        self.clear(ClearMark { at: now, by_person: true });
        rested
    }

    /// An operator resumes something wider: what was learned about this key ends too, and a cooldown that an operator set stays.
    pub fn resume_learned(&mut self, now: Timestamp) -> bool {
        let by_operator = self.by_operator.take();
        let rested = self.resume(now);
        self.by_operator = by_operator;
        rested
    }

    /// When a person resumed it last, if that was the last thing that a person did.
    #[must_use]
    pub fn resumed_at(&self) -> Option<Timestamp> {
        let cleared = self.cleared.filter(|cleared| cleared.by_person)?;
        let is_resumed = self.by_operator.as_ref().is_none_or(|rest| rest.set < cleared.at);
        is_resumed.then_some(cleared.at)
    }
}

impl Rest {
    /// Whether a failure of this class says nothing new: its attempt began before the rest was set.
    fn knows(&self, class: Class, started: Option<Timestamp>) -> bool {
        self.streaks.contains_key(&class) && started.is_some_and(|started| started < self.set)
    }

    /// Whether this cooldown is kept where `new` would end it sooner.
    fn outlasts(&self, new: &Self, now: Timestamp) -> bool {
        !new.parked && (self.parked || self.ends(now) > new.until)
    }
}

/// The first cooldown is exact, later ones are spread so that keys do not wake together. The cap holds in the end.
fn guessed(rest: Duration, cap: Duration, streak: u32, jitter: f64, seed: Seed) -> Duration {
    if streak <= 1 {
        return rest;
    }
    let max = rest.saturating_add(scaled(rest, jitter));
    seed.nth(u64::from(streak)).between(rest, max).min(cap)
}

fn cut(detail: &str) -> String {
    let end = (0..=MAX_DETAIL_BYTES.min(detail.len())).rev().find(|end| detail.is_char_boundary(*end));
    detail.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// Whether a time that has passed may be one of another zone.
fn is_doubtful(wait: Wait) -> bool {
    wait.after.is_zero() && wait.zone == WaitZone::Assumed
}
