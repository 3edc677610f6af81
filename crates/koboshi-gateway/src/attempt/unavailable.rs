//! Why a target is not asked now, and the fault that a client gets for it.
//!
//! The second error equals the first: a request that comes while a target is in cooldown, absent, held by a limit or behind an open breaker
//! gets the fault that put it there, with the same kind, status and sentence. Every request that skips such a target makes this check, so it
//! copies nothing; the fault itself is only built when the request ends without an answer.
//!
//! What a provider stated is shared through the store and outlives a restart. Only this process keeps the fault behind a limit or an open
//! breaker: another process that obeys the same limit knows only that it is a rate limit, and one that obeys a breaker from before its start
//! answers `cooling_down`, because it knows no cause.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use koboshi::breaker::Mode;
use koboshi::cooldown::{Cause, Class, Rest, Standing};
use koboshi::fault::{Confidence, Fault, Kind, Scope, Sub};
use koboshi::gate::{GateDelay, Limit};
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::time::Moment;
use koboshi::wait::{Form, Wait, WaitZone};

use crate::route::target::Target;
use crate::shared::state::SharedState;

/// The rule that a repeated fault names.
const RULE: &str = "gateway.unavailable";

/// How far two clocks that report the same time may differ.
const MAX_CLOCK_DRIFT: SignedDuration = SignedDuration::from_secs(1);

/// When a request that others go before may come again.
const REOPENING_RETRY: Duration = Duration::from_secs(1);

/// A target that is not asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable {
    /// When it may be asked again; none where that does not happen by itself.
    pub(crate) until: Option<Timestamp>,
    reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The provider has no such model.
    Absent,
    /// A limit that was stated, or that our own requests used up.
    Limit(Limit),
    /// A cooldown that was stated or decided, or a parked key.
    Cooldown,
    /// The provider stated until when it is down or overloaded.
    Down,
    /// Too many failures.
    Breaker,
    /// Its rest is over, and other requests go before this one.
    Reopening,
}

impl Reason {
    /// Why a key is in cooldown. A cooldown of one target alone was stated by its provider, or ordered by an operator.
    fn of(key: &ScopeKey, rest: &Rest) -> Self {
        match rest.cause.filter(|_| key.level() == ScopeLevel::Target) {
            Some(_) if rest.is_absence() => Self::Absent,
            Some(_) => Self::Down,
            None => Self::Cooldown,
        }
    }
}

impl Unavailable {
    /// Whether a target may not be asked, for any reason but its breaker.
    pub(crate) fn of(state: &SharedState, target: &Target, now: Moment) -> Option<Self> {
        // An absent model is tried again once a minute, but it may never exist, so there is no end.
        if target.is_absent(now) {
            return Some(Self { until: None, reason: Reason::Absent });
        }
        match target.gate.check(now) {
            Ok(()) => Self::cooling(state, target),
            Err(held) => {
                let held = Self::held(state, held, now);
                // The account may be in cooldown for longer than the limit of this target lasts.
                Some(Self::cooling(state, target).filter(|cooling| cooling.outlasts(&held)).unwrap_or(held))
            }
        }
    }

    /// Whether this ends clearly later than the other, or not by itself.
    fn outlasts(&self, other: &Self) -> bool {
        match (self.until, other.until) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own.duration_since(other) > MAX_CLOCK_DRIFT,
        }
    }

    /// What is wrong with this target itself, whatever else it shares with others.
    pub(crate) fn own_kind(state: &SharedState, target: &Target, now: Moment) -> Option<Kind> {
        if target.is_absent(now) {
            return Some(Kind::ModelNotFound);
        }
        if target.gate.check(now).is_err() {
            return Some(Kind::RateLimited);
        }
        let cooldown = state.ledger.cooldown(target.scopes.target.as_ref()?)?;
        match cooldown.standing(state.wall()) {
            Standing::Cooling { rest, .. } | Standing::Parked(rest) => rest.cause.map(|cause| cause.kind),
            _ => None,
        }
    }

    /// Its gate is closed.
    pub(crate) fn held(state: &SharedState, held: GateDelay, now: Moment) -> Self {
        let until = held.until.and_then(|until| state.wall().checked_add(until.since(now)).ok());
        Self { until, reason: Reason::Limit(held.reason) }
    }

    /// Whether a target is in cooldown.
    pub(crate) fn cooling(state: &SharedState, target: &Target) -> Option<Self> {
        if !state.ledger.has_cooldowns() {
            return None;
        }
        longest_cooldown(state, target, |until, key, rest| match Reason::of(key, rest) {
            Reason::Absent => Self { until: None, reason: Reason::Absent },
            reason => Self { until, reason },
        })
    }

    /// Its rest is over, and other requests go before this one.
    pub(crate) fn by_reopening(state: &SharedState) -> Self {
        Self { until: state.wall().checked_add(REOPENING_RETRY).ok(), reason: Reason::Reopening }
    }

    /// Its breaker is open until then.
    pub(crate) fn by_breaker(until: Option<Timestamp>) -> Self {
        Self { until, reason: Reason::Breaker }
    }

    /// Whether the gateway's own limit of concurrent requests is reached: it ends when one of them ends, at an unknown time. A provider's
    /// limit of the same name is a hold, which has an end.
    pub(crate) fn is_by_own_concurrency(&self) -> bool {
        self.reason == Reason::Limit(Limit::Concurrency) && self.until.is_none()
    }

    /// When it may be asked again, as clients see it. A limit is obeyed by the monotonic clock: clients get the time that the provider stated,
    /// so that every error names the same time.
    pub(crate) fn stated_until(&self, target: &Target) -> Option<Timestamp> {
        let until = self.until?;
        let stated = match self.reason {
            Reason::Limit(_) => target.causes.limit_ends(),
            // It may be asked again before a stated end that is far off.
            Reason::Down => return target.causes.down(until).and_then(|fault| fault.until()).or(Some(until)),
            _ => None,
        };
        let is_same = |stated: &Timestamp| stated.duration_since(until).abs() <= MAX_CLOCK_DRIFT;
        Some(stated.filter(is_same).unwrap_or(until))
    }

    /// What is parked: only an operator ends that, not time.
    pub(crate) fn parked(&self, state: &SharedState, target: &Target) -> Option<ScopeKey> {
        if self.reason != Reason::Cooldown || self.until.is_some() {
            return None;
        }
        let wall = state.wall();
        let is_parked = |key: &&ScopeKey| {
            state
                .ledger
                .cooldown(key)
                .is_some_and(|known| matches!(known.standing(wall), Standing::Parked(_)))
        };
        target.scopes.cooldown_keys().find(is_parked).cloned()
    }

    /// The fault for the client.
    pub(crate) fn fault(self, state: &SharedState, target: &Target) -> Box<Fault> {
        match self.reason {
            Reason::Absent => target
                .causes
                .absent()
                .or_else(|| longest_cooldown(state, target, |_, key, rest| cooldown_fault(key, rest)))
                .unwrap_or_else(|| of(Kind::ModelNotFound, None)),
            Reason::Limit(_) if self.is_by_own_concurrency() => of(Kind::RateLimited, Some(Sub::Operator)),
            Reason::Limit(Limit::Concurrency) => {
                target.causes.limited().unwrap_or_else(|| of(Kind::RateLimited, Some(Sub::Concurrency)))
            }
            Reason::Limit(_) => target.causes.limited().unwrap_or_else(|| of(Kind::RateLimited, None)),
            Reason::Cooldown => longest_cooldown(state, target, |_, key, rest| cooldown_fault(key, rest))
                .unwrap_or_else(unknown),
            Reason::Down => self
                .until
                .and_then(|until| target.causes.down(until))
                .or_else(|| longest_cooldown(state, target, |_, key, rest| cooldown_fault(key, rest)))
                .unwrap_or_else(unknown),
            Reason::Reopening => due_cooldown(state, target)
                .or_else(|| target.causes.limited())
                .unwrap_or_else(|| of(Kind::RateLimited, None)),
            Reason::Breaker => {
                if target.breaker.snapshot(state.now(), state.wall()).mode == Mode::ForcedOpen {
                    return by_operator(ScopeLevel::Target, "");
                }
                target.causes.failing().unwrap_or_else(unknown)
            }
        }
    }
}

/// The longest cooldown of a target; a parked key beats all others.
fn longest_cooldown<T>(
    state: &SharedState,
    target: &Target,
    mut make: impl FnMut(Option<Timestamp>, &ScopeKey, &Rest) -> T,
) -> Option<T> {
    let wall = state.wall();
    let mut longest: Option<(Timestamp, T)> = None;
    for key in target.scopes.cooldown_keys() {
        let Some(cooldown) = state.ledger.cooldown(key) else { continue };
        match cooldown.standing(wall) {
            Standing::Parked(rest) => return Some(make(None, key, rest)),
            Standing::Cooling { rest, until } if longest.as_ref().is_none_or(|(known, _)| *known < until) => {
                longest = Some((until, make(Some(until), key, rest)));
            }
            _ => {}
        }
    }
    longest.map(|(_, make)| make)
}

/// The fault behind a cooldown that is over, and after which no request has succeeded yet. The wait that was stated with it is over.
fn due_cooldown(state: &SharedState, target: &Target) -> Option<Box<Fault>> {
    let wall = state.wall();
    target.scopes.cooldown_keys().find_map(|key| {
        let cooldown = state.ledger.cooldown(key)?;
        let Standing::Due(rest) = cooldown.standing(wall) else { return None };
        let mut fault = cooldown_fault(key, rest);
        fault.wait = None;
        Some(fault)
    })
}

/// The fault behind a cooldown.
fn cooldown_fault(key: &ScopeKey, rest: &Rest) -> Box<Fault> {
    match rest.cause.or_else(|| Cause::of_class(rest.class)) {
        Some(cause) => {
            let mut fault = cause.fault(RULE, &rest.detail);
            // Weak evidence parks nothing: the provider is asked again after the cooldown, and the fault says so.
            let needs_a_person = matches!(Class::of(&fault), Class::Auth | Class::Billing);
            if needs_a_person && !rest.parked && rest.class == Class::Error {
                fault.advice.later = true;
                fault.confidence = Confidence::Low;
            }
            // The key shows what was taken out of use: a refusal of one model does not affect the account.
            if key.level() != ScopeLevel::Target {
                fault.scope = scope_of(key.level());
            }
            fault.wait = rest.stated.then(|| stated_wait(rest));
            Box::new(fault)
        }
        None => by_operator(key.level(), &rest.detail),
    }
}

/// The wait that the provider stated when the rest was set.
fn stated_wait(rest: &Rest) -> Wait {
    let after = Duration::try_from(rest.until.duration_since(rest.set)).unwrap_or_default();
    Wait { after, until: rest.until, form: Form::Instant, zone: WaitZone::Unneeded }
}

fn scope_of(level: ScopeLevel) -> Scope {
    match level {
        ScopeLevel::Provider => Scope::Provider,
        ScopeLevel::Account => Scope::Account,
        ScopeLevel::Key => Scope::Key,
        _ => Scope::Model,
    }
}

fn by_operator(level: ScopeLevel, reason: &str) -> Box<Fault> {
    let mut fault = of(Kind::CoolingDown, Some(Sub::Operator));
    fault.scope = scope_of(level);
    reason.clone_into(&mut fault.detail);
    fault
}

fn unknown() -> Box<Fault> {
    of(Kind::CoolingDown, None)
}

fn of(kind: Kind, sub: Option<Sub>) -> Box<Fault> {
    let mut fault = Box::new(Fault::of(kind, RULE));
    fault.sub = sub;
    fault
}
