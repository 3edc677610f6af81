//! What a failure, a success or a person makes of one key's record.
//!
//! These are the rules; the table ([`super::Cooldowns`]) only adds what is local to a process. The streak is kept
//! apart from the deadline: a design that drops both when the rest is over starts at one for ever, because nothing
//! can fail again before it is over.

use std::time::Duration;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::fault::Fault;
use crate::wait::{Form, Wait};

use super::{Class, Cleared, Cooldown, CooldownPolicy, Rest};

/// Details longer than this are cut: they are for one line of a status page.
const LONGEST_DETAIL: usize = 300;

/// A failure, as far as resting is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Why it failed.
    pub class: Class,
    /// The wait that was stated, if one was.
    pub wait: Option<Wait>,
    /// Trying again cannot help: park it at once.
    pub stop: bool,
    /// When the failed attempt began, if known. One that began before the rest was set tells nothing new.
    pub started: Option<Timestamp>,
    /// How long it had run, if known. After a healthy run the failures before it are forgotten.
    pub ran: Option<Duration>,
    /// What was said, already redacted.
    pub detail: String,
}

impl Failure {
    /// A failure of this class, with nothing else known.
    #[must_use]
    pub fn of_class(class: Class) -> Self {
        Self { class, wait: None, stop: false, started: None, ran: None, detail: String::new() }
    }

    /// The failure that a fault means.
    #[must_use]
    pub fn of(fault: &Fault) -> Self {
        Self {
            class: Class::of(fault),
            wait: fault.wait,
            stop: Class::needs_a_person(fault),
            detail: fault.detail.clone(),
            ..Self::of_class(Class::Error)
        }
    }
}

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing<'a> {
    /// Nothing is known against it.
    Free,
    /// It rests.
    Cooling {
        /// Why and since when.
        rest: &'a Rest,
        /// Until when, as seen from now.
        until: Timestamp,
    },
    /// The rest is over; nobody has tried since. One should go first.
    Due(&'a Rest),
    /// A person must resume it.
    Parked(&'a Rest),
}

impl Cooldown {
    /// Where the key stands.
    #[must_use]
    pub fn standing(&self, now: Timestamp) -> Standing<'_> {
        match &self.rest {
            None => Standing::Free,
            Some(rest) if rest.parked => Standing::Parked(rest),
            Some(rest) => {
                let until = rest.ends(now);
                if now < until { Standing::Cooling { rest, until } } else { Standing::Due(rest) }
            }
        }
    }

    /// Takes a failure in.
    pub fn fail(&mut self, failure: &Failure, policy: &CooldownPolicy, now: Timestamp, seed: Seed) {
        let (class, wait) =
            if policy.detection { (failure.class, failure.wait) } else { (Class::Error, None) };
        let before = self.rest.take().filter(|_| failure.ran.is_none_or(|ran| ran < policy.healthy_run));
        let known = before.as_ref().is_some_and(|rest| failure.started.is_some_and(|at| at < rest.set));
        let mut streaks = before.as_ref().map(|rest| rest.streaks.clone()).unwrap_or_default();
        let streak = streaks.entry(class).or_insert(0);
        *streak = if known { (*streak).max(1) } else { streak.saturating_add(1) };
        let streak = *streak;

        let own = policy.class(class);
        let too_often = own.and_then(|own| own.park_after).is_some_and(|most| streak >= most);
        let length = match (wait, own) {
            (Some(wait), _) => policy.stated(&wait),
            (None, Some(own)) => guessed(own.rest(streak), own.cap, streak, policy.jitter, seed),
            (None, None) => Duration::ZERO,
        };
        let rest = Rest {
            parked: own.is_none() || too_often || failure.stop,
            until: now.saturating_add(length).unwrap_or(Timestamp::MAX),
            set: now,
            since: before.as_ref().map_or(now, |rest| rest.since),
            class,
            fixed: wait.is_some_and(|wait| wait.form != Form::Countdown),
            streaks,
            detail: cut(&failure.detail),
        };
        self.rest = Some(match before {
            Some(before) if before.outlasts(&rest, now) => Rest { streaks: rest.streaks, ..before },
            _ => rest,
        });
    }

    /// Takes a success in, of an attempt that began then (if known). Says whether that ended a series of failures.
    ///
    /// What a person decided stays, and so does what failed after the attempt had begun.
    pub fn succeed(&mut self, started: Option<Timestamp>, now: Timestamp) -> bool {
        let Some(rest) = &self.rest else { return false };
        let newer = started.is_some_and(|started| started < rest.set);
        if rest.parked || rest.class == Class::Operator || newer {
            return false;
        }
        self.clear(Cleared { at: now, by_person: false });
        true
    }

    /// A person lets it rest until then, whatever was known before.
    pub fn cool(&mut self, until: Timestamp, detail: &str, now: Timestamp) {
        self.clear(Cleared { at: now, by_person: true });
        self.rest = Some(Rest {
            parked: false,
            until,
            set: now,
            since: now,
            class: Class::Operator,
            fixed: true,
            streaks: std::collections::BTreeMap::new(),
            detail: cut(detail),
        });
    }

    /// A person resumes it, whatever was known before. Says whether there was anything to resume.
    pub fn resume(&mut self, now: Timestamp) -> bool {
        let rested = self.rest.is_some();
        self.clear(Cleared { at: now, by_person: true });
        rested
    }
}

impl Rest {
    /// Whether this rest goes on where `new` would end it sooner.
    fn outlasts(&self, new: &Self, now: Timestamp) -> bool {
        !new.parked && (self.parked || self.ends(now) > new.until)
    }
}

/// The first rest is exact, later ones are spread so that keys do not wake together. The cap holds in the end.
fn guessed(rest: Duration, cap: Duration, streak: u32, jitter: f64, seed: Seed) -> Duration {
    if streak <= 1 {
        return rest;
    }
    let most = rest.saturating_add(rest.mul_f64(jitter.clamp(0.0, 1.0)));
    seed.nth(u64::from(streak)).between(rest, most).min(cap)
}

fn cut(detail: &str) -> String {
    let end = (0..=LONGEST_DETAIL.min(detail.len())).rev().find(|end| detail.is_char_boundary(*end));
    detail.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}
