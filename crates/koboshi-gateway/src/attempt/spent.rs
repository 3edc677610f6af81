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
pub(crate) struct Ended {
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

impl Ended {
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
enum Back {
    AnyMoment,
    At(Timestamp),
    /// When somebody mends something.
    Mended,
}

/// Why one target did not answer.
struct Why {
    place: usize,
    back: Back,
    fault: Box<Fault>,
    until: Option<Timestamp>,
    parked: Option<ScopeKey>,
}

impl Why {
    fn new(place: usize, fault: Box<Fault>, until: Option<Timestamp>, wall: Timestamp) -> Self {
        let until = until.filter(|until| *until > wall);
        let back = match until {
            _ if !fault.advice.later => Back::Mended,
            Some(until) => Back::At(until),
            None => Back::AnyMoment,
        };
        Self { place, back, fault, until, parked: None }
    }
}

impl Journey<'_> {
    /// No more attempts: what to tell.
    pub(crate) fn give_up(&mut self, mut fault: Box<Fault>) -> Ended {
        self.name_deadline(&mut fault, self.core.state.now());
        Ended::after(fault, self.call.failures().to_vec())
    }

    /// The last attempt failed like this, and nothing of its answer has reached the client.
    pub(crate) fn give_up_unheard(&mut self, mut fault: Box<Fault>) -> Ended {
        let now = self.core.state.now();
        self.name_deadline(&mut fault, now);
        let failed = self.call.failures().to_vec();
        self.told_after(fault, failed, now)
    }

    pub(super) fn ended(&mut self, end: End) -> Ended {
        let now = self.core.state.now();
        match end {
            End::Failed(failed) => {
                let last = failed.last().map(|last| last.fault.clone());
                let last = last.unwrap_or_else(|| Box::new(Fault::of(Kind::Internal, "gateway")));
                self.told_after(last, failed, now)
            }
            _ if self.untold.len() == self.targets.len() => {
                let mut fault = Box::new(Fault::of(Kind::InvalidRequest, "gateway.translation"));
                fault.sub = Some(Sub::Capability);
                Ended::unasked(fault)
            }
            End::Nothing if now >= self.context.deadline => {
                let mut fault = Box::new(Fault::of(Kind::Timeout, "gateway.deadline"));
                fault.sub = Some(self.context.deadline_sub());
                Ended::unasked(fault)
            }
            end => {
                let unknown = Box::new(Fault::of(Kind::CoolingDown, "gateway.unavailable"));
                let mut ended = self.of_the_chain(&[], now).unwrap_or_else(|| Ended::unasked(unknown));
                let until = if let End::Refused(refused) = end { refused.until } else { None };
                if let Some((chain, until)) = ended.chain.as_mut().zip(until) {
                    chain.next_probe = self.core.state.wall().checked_add(until.since(now)).ok();
                }
                ended
            }
        }
    }

    /// The last fault is told where it is about this request alone, else the chain's.
    fn told_after(&self, last: Box<Fault>, failed: Vec<Failed>, now: Moment) -> Ended {
        let is_of_request = !last.advice.other || now >= self.context.deadline;
        if is_of_request || !self.blames {
            return Ended::after(last, failed);
        }
        match self.of_the_chain(&failed, now) {
            Some(ended) => Ended { failed, untried: false, ..ended },
            None => Ended::after(last, failed),
        }
    }

    /// The fault that ends soonest, where these were asked in vain.
    fn of_the_chain(&self, failed: &[Failed], now: Moment) -> Option<Ended> {
        let wall = self.core.state.wall();
        let places = self.targets.iter().enumerate();
        let whys: Vec<Why> =
            places.filter_map(|(place, target)| self.why(place, target, failed, now, wall)).collect();
        let is_whole = whys.len() == self.targets.len();
        let all =
            if is_whole { whys.iter().map(|why| (why.place, why.fault.kind)).collect() } else { Vec::new() };
        let Why { fault, until, parked, .. } = whys.into_iter().min_by_key(|why| why.back)?;
        let chain = Some(Box::new(Chain { next_probe: None, all }));
        Some(Ended { until, parked, chain, ..Ended::unasked(fault) })
    }

    /// Why a target did not answer: what keeps it out of use now, else its last failure in this request, else its breaker.
    fn why(
        &self,
        place: usize,
        target: &Target,
        failed: &[Failed],
        now: Moment,
        wall: Timestamp,
    ) -> Option<Why> {
        let state = &self.core.state;
        let passed = self.passed.iter().rfind(|(at, _)| *at == place).map(|(_, why)| *why);
        let last = failed.iter().rfind(|failed| failed.target == place);
        if let Some(why) = Unavailable::of(state, target, now).or(passed.filter(|_| last.is_none())) {
            let told = Why::new(place, why.fault(state, target), why.told_until(target), wall);
            let parked = why.parked(state, target);
            // What ends only when somebody does something has no time.
            let back = if why.until.is_none() && !why.is_by_concurrency() { Back::Mended } else { told.back };
            return Some(Why { parked, back, ..told });
        }
        if let Some(last) = last {
            return Some(Why::new(place, last.fault.clone(), last.fault.until(), wall));
        }
        let is_refused = !self.untold.contains(&place) && !target.breaker.would_admit_last(now);
        let why = is_refused.then(|| Unavailable::by_breaker(None))?;
        let fault = why.fault(state, target);
        let until = fault.until();
        Some(Why::new(place, fault, until, wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(kind: Kind, seconds: Option<i64>) -> Back {
        let wall = Timestamp::UNIX_EPOCH;
        let until = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        Why::new(0, Box::new(Fault::of(kind, "test")), until, wall).back
    }

    #[test]
    fn what_may_pass_at_any_moment_is_told_first_and_what_must_be_mended_last() {
        let (soon, late) = (why(Kind::RateLimited, Some(10)), why(Kind::QuotaExceeded, Some(20)));
        assert!(why(Kind::Unavailable, None) < soon && soon < late);
        assert!(late < why(Kind::ModelNotFound, None) && late < why(Kind::Unauthorized, Some(1)));
        assert_eq!(why(Kind::Overloaded, Some(-5)), Back::AnyMoment, "its time is over");
    }
}
