//! Why a target is not asked now, and the fault that a client is told for it.
//!
//! The second error is the first one: whoever comes while a target is in cooldown, absent, held by a limit or behind an open breaker is told the
//! fault that put it there, with the same kind, status and sentence. Looking is done for every request that passes such a target over, so it
//! copies nothing; the fault itself is only put together when the request ends without an answer.
//!
//! What a provider stated is shared through the store and outlives a restart. The fault behind a limit or an open breaker is kept by this process
//! alone: another process that obeys the same limit knows only that it is a rate limit, and one that obeys a breaker of before its start
//! says `cooling_down`, because no cause is known.

use jiff::{SignedDuration, Timestamp};
use koboshi::breaker::Mode;
use koboshi::cooldown::{Cause, Rest, Standing};
use koboshi::fault::{Fault, Kind, Scope, Sub};
use koboshi::gate::{GateDelay, Limit};
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi::time::Moment;

use crate::route::target::Target;
use crate::shared::state::SharedState;

/// Where a fault says that it comes from when it is told again.
const RULE: &str = "gateway.unavailable";

/// How far two clocks may be apart that tell of the same time.
const DRIFT: SignedDuration = SignedDuration::from_secs(1);

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
    /// A limit that was stated, or that is used up by what was sent.
    Limit(Limit),
    /// A cooldown that was stated or decided, or a parked key.
    Cooldown,
    /// The provider said until when it is down or overloaded.
    Down,
    /// Too many failures.
    Breaker,
}

impl Reason {
    /// Why a key is in cooldown. What stands against one target alone was stated by its provider, or ordered by an operator.
    fn of(key: &ScopeKey, rest: &Rest) -> Self {
        match rest.cause.filter(|_| key.level() == ScopeLevel::Target) {
            Some(_) if rest.is_absence() => Self::Absent,
            Some(_) => Self::Down,
            None => Self::Cooldown,
        }
    }
}

impl Unavailable {
    /// Whether a target may not be asked, by anything but its breaker.
    pub(crate) fn of(state: &SharedState, target: &Target, now: Moment) -> Option<Self> {
        // Whether a model is there after all is looked at once a minute, but nothing says that it ever will be.
        if target.is_absent(now) {
            return Some(Self { until: None, reason: Reason::Absent });
        }
        match target.gate.check(now) {
            Err(held) => Some(Self::held(state, held, now)),
            Ok(()) => Self::cooling(state, target),
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
        longest(state, target, |until, key, rest| match Reason::of(key, rest) {
            Reason::Absent => Self { until: None, reason: Reason::Absent },
            reason => Self { until, reason },
        })
    }

    /// Its breaker is open until then.
    pub(crate) fn by_breaker(until: Option<Timestamp>) -> Self {
        Self { until, reason: Reason::Breaker }
    }

    /// Whether only as many requests run as may: it is over when one of them ends.
    pub(crate) fn is_by_concurrency(&self) -> bool {
        self.reason == Reason::Limit(Limit::Concurrency)
    }

    /// When it may be asked again, as a client is told. A limit is obeyed by another clock than the one on the wall: what the provider stated
    /// is told as it was stated, so that every error names the same time.
    pub(crate) fn stated_until(&self, target: &Target) -> Option<Timestamp> {
        let until = self.until?;
        let stated = match self.reason {
            Reason::Limit(_) => target.causes.limit_ends(),
            // It may be asked again before the end that was stated, if that is far off.
            Reason::Down => return target.causes.down(until).and_then(|fault| fault.until()).or(Some(until)),
            _ => None,
        };
        let is_same = |stated: &Timestamp| stated.duration_since(until).abs() <= DRIFT;
        Some(stated.filter(is_same).unwrap_or(until))
    }

    /// What is parked: no time ends that, only an operator.
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

    /// The fault that a client is told.
    pub(crate) fn fault(self, state: &SharedState, target: &Target) -> Box<Fault> {
        match self.reason {
            Reason::Absent => target
                .causes
                .absent()
                .or_else(|| longest(state, target, |_, key, rest| cooldown_fault(key, rest)))
                .unwrap_or_else(|| of(Kind::ModelNotFound, None)),
            Reason::Limit(Limit::Concurrency) => of(Kind::RateLimited, Some(Sub::Operator)),
            Reason::Limit(_) => target.causes.limited().unwrap_or_else(|| of(Kind::RateLimited, None)),
            Reason::Cooldown => {
                longest(state, target, |_, key, rest| cooldown_fault(key, rest)).unwrap_or_else(unknown)
            }
            Reason::Down => self
                .until
                .and_then(|until| target.causes.down(until))
                .or_else(|| longest(state, target, |_, key, rest| cooldown_fault(key, rest)))
                .unwrap_or_else(unknown),
            Reason::Breaker => {
                if target.breaker.snapshot(state.now(), state.wall()).mode == Mode::ForcedOpen {
                    return by_operator(ScopeLevel::Target, "");
                }
                target.causes.failing().unwrap_or_else(unknown)
            }
        }
    }
}

/// The cooldown that keeps a target away for longest: a parked one before all.
fn longest<T>(
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

/// The fault behind a cooldown.
fn cooldown_fault(key: &ScopeKey, rest: &Rest) -> Box<Fault> {
    match rest.cause.or_else(|| Cause::of_class(rest.class)) {
        Some(cause) => {
            let mut fault = cause.fault(RULE, &rest.detail);
            // The key says what was taken out of use: a refusal of one model does not affect the account.
            if key.level() != ScopeLevel::Target {
                fault.scope = scope_of(key.level());
            }
            Box::new(fault)
        }
        None => by_operator(key.level(), &rest.detail),
    }
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
