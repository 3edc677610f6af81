//! What is told when no target answered.
//!
//! The same faults lead to the same error, whether the targets were asked just now, are out of use since an earlier request, or some of each:
//! every target has one fault, and the fault that ends soonest is told. One that passes by itself and states no end may end at any
//! moment, so it comes first; then those with an end, by that end; then those that somebody must mend. Of equals the first in the chain is
//! told. What a breaker decides by itself has no say in this order: its pauses are ours and grow from one request to the next.
//!
//! A fault that only this request caused (another target would say the same) is told as it is.

use jiff::Timestamp;
use koboshi::call::{End, Failed};
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::key::ScopeKey;
use koboshi::time::Moment;

use crate::attempt::journey::Journey;
use crate::attempt::unavailable::Unavailable;
use crate::route::target::Target;

/// How a journey ended that brought no answer.
#[derive(Debug)]
pub(crate) struct JourneyEnd {
    /// What to tell.
    pub(crate) fault: Box<Fault>,
    pub(crate) failed: Vec<Failed>,
    /// When the fault ends, as it was stated or decided. A time and no length: a length would be counted from another moment each time it is
    /// passed on.
    pub(crate) until: Option<Timestamp>,
    /// Nobody was asked.
    pub(crate) untried: bool,
    /// What an operator must resume, once the cause is fixed.
    pub(crate) parked: Option<ScopeKey>,
    /// More about the chain, where the fault is one of several. Boxed: an end is handed on as an error, and those are small.
    pub(crate) chain: Option<Box<Chain>>,
}

/// What is known of a chain of which no target answered.
#[derive(Debug)]
pub(crate) struct Chain {
    /// When a breaker lets the next request through. It is no end of the fault and told to programs only.
    pub(crate) next_probe: Option<Timestamp>,
    /// Where every target failed or is out of use: their places with their faults.
    pub(crate) all: Vec<(usize, Kind)>,
}

impl JourneyEnd {
    /// With this fault, and no target was asked.
    pub(crate) fn unasked(fault: Box<Fault>) -> Self {
        Self { untried: true, ..Self::after(fault, Vec::new()) }
    }

    /// With this fault, after these.
    fn after(fault: Box<Fault>, failed: Vec<Failed>) -> Self {
        let until = fault.until();
        Self { fault, failed, until, untried: false, parked: None, chain: None }
    }
}

/// When a target may answer again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Recovery {
    AnyMoment,
    At(Timestamp),
    /// When somebody mends something.
    Mended,
}

/// Why one target did not answer.
struct TargetFailure {
    place: usize,
    recovery: Recovery,
    fault: Box<Fault>,
    until: Option<Timestamp>,
    parked: Option<ScopeKey>,
}

impl TargetFailure {
    fn new(place: usize, fault: Box<Fault>, until: Option<Timestamp>, wall: Timestamp) -> Self {
        let until = until.filter(|until| *until > wall);
        let recovery = match until {
            _ if !fault.advice.later => Recovery::Mended,
            Some(until) => Recovery::At(until),
            None => Recovery::AnyMoment,
        };
        Self { place, recovery, fault, until, parked: None }
    }
}

impl Journey<'_> {
    /// No more attempts: what to tell.
    pub(crate) fn give_up(&mut self, mut fault: Box<Fault>) -> JourneyEnd {
        self.name_deadline(&mut fault, self.core.state.now());
        JourneyEnd::after(fault, self.call.failures().to_vec())
    }

    /// The last attempt failed like this, and nothing of its answer has reached the client.
    pub(crate) fn give_up_before_content(&mut self, mut fault: Box<Fault>) -> JourneyEnd {
        let now = self.core.state.now();
        self.name_deadline(&mut fault, now);
        let failed = self.call.failures().to_vec();
        self.failure_after(fault, failed, now)
    }

    pub(super) fn ended(&mut self, end: End) -> JourneyEnd {
        let now = self.core.state.now();
        match end {
            End::Failed(failed) => {
                let last = failed.last().map(|last| last.fault.clone());
                let last = last.unwrap_or_else(|| Box::new(Fault::of(Kind::Internal, "gateway")));
                self.failure_after(last, failed, now)
            }
            _ if self.unwritable.len() == self.targets.len() => {
                let mut fault = Box::new(Fault::of(Kind::InvalidRequest, "gateway.translation"));
                fault.sub = Some(Sub::Capability);
                JourneyEnd::unasked(fault)
            }
            End::Nothing if now >= self.context.deadline => {
                let mut fault = Box::new(Fault::of(Kind::Timeout, "gateway.deadline"));
                fault.sub = Some(self.context.deadline_sub());
                JourneyEnd::unasked(fault)
            }
            end => {
                let unknown = Box::new(Fault::of(Kind::CoolingDown, "gateway.unavailable"));
                let mut ended = self.of_chain(&[], now).unwrap_or_else(|| JourneyEnd::unasked(unknown));
                let until = if let End::Refused(refused) = end { refused.until } else { None };
                if let Some((chain, until)) = ended.chain.as_mut().zip(until) {
                    chain.next_probe = self.core.state.wall().checked_add(until.since(now)).ok();
                }
                ended
            }
        }
    }

    /// The last fault is told where it is about this request alone, else the chain's.
    fn failure_after(&self, last: Box<Fault>, failed: Vec<Failed>, now: Moment) -> JourneyEnd {
        let is_of_request = !last.advice.other || now >= self.context.deadline;
        if is_of_request || !self.counts_against_health {
            return JourneyEnd::after(last, failed);
        }
        match self.of_chain(&failed, now) {
            Some(ended) => JourneyEnd { failed, untried: false, ..ended },
            None => JourneyEnd::after(last, failed),
        }
    }

    /// The fault that ends soonest, where these were asked in vain.
    fn of_chain(&self, failed: &[Failed], now: Moment) -> Option<JourneyEnd> {
        let wall = self.core.state.wall();
        let places = self.targets.iter().enumerate();
        let whys: Vec<TargetFailure> =
            places.filter_map(|(place, target)| self.why(place, target, failed, now, wall)).collect();
        let is_whole = whys.len() == self.targets.len();
        let all =
            if is_whole { whys.iter().map(|why| (why.place, why.fault.kind)).collect() } else { Vec::new() };
        let TargetFailure { fault, until, parked, .. } = whys.into_iter().min_by_key(|why| why.recovery)?;
        let chain = Some(Box::new(Chain { next_probe: None, all }));
        Some(JourneyEnd { until, parked, chain, ..JourneyEnd::unasked(fault) })
    }

    /// Why a target did not answer: what keeps it out of use now, else its last failure in this request, else its breaker.
    fn why(
        &self,
        place: usize,
        target: &Target,
        failed: &[Failed],
        now: Moment,
        wall: Timestamp,
    ) -> Option<TargetFailure> {
        let state = &self.core.state;
        let skipped = self.skipped.iter().rfind(|(at, _)| *at == place).map(|(_, why)| *why);
        let last = failed.iter().rfind(|failed| failed.target == place);
        if let Some(why) = Unavailable::of(state, target, now).or(skipped.filter(|_| last.is_none())) {
            let failure = TargetFailure::new(place, why.fault(state, target), why.stated_until(target), wall);
            let parked = why.parked(state, target);
            // What ends only when somebody does something has no time.
            let recovery = if why.until.is_none() && !why.is_by_concurrency() {
                Recovery::Mended
            } else {
                failure.recovery
            };
            return Some(TargetFailure { parked, recovery, ..failure });
        }
        if let Some(last) = last {
            return Some(TargetFailure::new(place, last.fault.clone(), last.fault.until(), wall));
        }
        let is_refused = !self.unwritable.contains(&place) && !target.breaker.would_admit_last(now);
        let why = is_refused.then(|| Unavailable::by_breaker(None))?;
        let fault = why.fault(state, target);
        let until = fault.until();
        Some(TargetFailure::new(place, fault, until, wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(kind: Kind, seconds: Option<i64>) -> Recovery {
        let wall = Timestamp::UNIX_EPOCH;
        let until = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        TargetFailure::new(0, Box::new(Fault::of(kind, "test")), until, wall).recovery
    }

    #[test]
    fn what_may_pass_at_any_moment_is_told_first_and_what_must_be_mended_last() {
        let (soon, late) = (why(Kind::RateLimited, Some(10)), why(Kind::QuotaExceeded, Some(20)));
        assert!(why(Kind::Unavailable, None) < soon && soon < late);
        assert!(late < why(Kind::ModelNotFound, None) && late < why(Kind::Unauthorized, Some(1)));
        assert_eq!(why(Kind::Overloaded, Some(-5)), Recovery::AnyMoment, "its time is over");
    }
}
