//! Which fault the client gets when no target answered.
//!
//! The same faults lead to the same error, whether the targets failed just now, are out of use since an earlier request, or both:
//! every target has one fault, and the client gets the one that ends soonest. A fault that passes by itself and states no end may end at any
//! moment, so it comes first; then those with an end, by that end; then those that an operator must fix. Of equals the first in the chain
//! wins. A breaker's pauses do not change this order: they are ours and grow from one request to the next.
//!
//! A fault that only this request caused (another target would answer the same) is returned as it is.

use jiff::Timestamp;
use koboshi::breaker::Mode;
use koboshi::call::{End, FailedAttempt};
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::key::ScopeKey;
use koboshi::time::Moment;

use crate::attempt::ErrorFields;
use crate::attempt::journey::Journey;
use crate::attempt::unavailable::Unavailable;
use crate::route::target::Target;

/// The end of a journey without an answer.
#[derive(Debug)]
pub(crate) struct JourneyEnd {
    /// The fault for the client.
    pub(crate) fault: Box<Fault>,
    pub(crate) failed: Vec<FailedAttempt>,
    /// When the fault ends, as stated or decided. A time and not a length: a length would be counted from another moment each time it is
    /// passed on.
    pub(crate) until: Option<Timestamp>,
    /// No target was asked.
    pub(crate) untried: bool,
    /// Every target is out of use from now on until a time that is known, so the gateway would ask none of them before then.
    pub(crate) rests: bool,
    /// What an operator must resume, once the cause is fixed.
    pub(crate) parked: Option<ScopeKey>,
    /// How the provider named the mistake of the request, in fields that the client knows.
    pub(crate) fields: Option<Box<ErrorFields>>,
    /// More about the chain, where the fault is one of several. Boxed, because errors must be small.
    pub(crate) chain: Option<Box<Chain>>,
}

/// What is known of a chain without an answer.
#[derive(Debug)]
pub(crate) struct Chain {
    /// When a breaker admits the next request, where every usable target is behind one. It is not the end of the fault, and only programs
    /// get it.
    pub(crate) next_probe: Option<Timestamp>,
    /// If every target failed or is out of use: their places with their faults.
    pub(crate) all: Vec<(usize, Kind)>,
    /// The place of the target whose fault the client gets.
    told: usize,
}

impl JourneyEnd {
    /// With this fault, and no target was asked.
    pub(crate) fn unasked(fault: Box<Fault>) -> Self {
        Self { untried: true, ..Self::after(fault, Vec::new()) }
    }

    /// With this fault, after these.
    fn after(fault: Box<Fault>, failed: Vec<FailedAttempt>) -> Self {
        let until = fault.until();
        Self { fault, failed, until, untried: false, rests: false, parked: None, fields: None, chain: None }
    }

    /// The place of the target whose fault the client gets, where it is the fault of one target.
    pub(crate) fn target(&self) -> Option<usize> {
        let last = || self.failed.last().filter(|last| last.fault.kind == self.fault.kind);
        self.chain.as_ref().map(|chain| chain.told).or_else(|| Some(last()?.target))
    }
}

/// When a target may answer again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Recovery {
    AnyMoment,
    At(Timestamp),
    /// When an operator fixes something.
    Mended,
}

/// Why one target did not answer.
struct TargetFailure {
    place: usize,
    /// What the list of all targets says of it: its own fault. An account that is out of use as well is named once, as the fault.
    listed: Kind,
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
        Self { place, listed: fault.kind, recovery, fault, until, parked: None }
    }
}

impl Journey<'_> {
    /// Ends the journey with this fault.
    pub(crate) fn give_up(&mut self, mut fault: Box<Fault>) -> JourneyEnd {
        self.mark_deadline(&mut fault, self.core.state.now());
        JourneyEnd::after(fault, self.call.failures().to_vec())
    }

    /// Ends the journey because the target at this place was asked to continue an answer and gave another one, so the first answer stays cut.
    pub(crate) fn give_up_after_other_answer(&mut self, fault: Box<Fault>, place: usize) -> JourneyEnd {
        let mut ended = self.give_up(fault);
        let mut other = Box::new(Fault::of(Kind::ResponseInvalid, "gateway.differs"));
        (other.sub, other.status) = (Some(Sub::Differs), Some(200));
        ended.failed.push(FailedAttempt { target: place, fault: other });
        ended
    }

    /// Ends the journey after an attempt that failed before the client got any content.
    pub(crate) fn give_up_before_content(&mut self, mut fault: Box<Fault>) -> JourneyEnd {
        let now = self.core.state.now();
        self.mark_deadline(&mut fault, now);
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
                (fault.sub, fault.advice.other) = (Some(Sub::Capability), true);
                JourneyEnd::unasked(fault)
            }
            End::Nothing if now >= self.context.deadline => {
                let mut fault = Box::new(Fault::of(Kind::Timeout, "gateway.deadline"));
                fault.sub = Some(self.context.deadline_sub());
                JourneyEnd::unasked(fault)
            }
            _ => {
                let unknown = Box::new(Fault::of(Kind::CoolingDown, "gateway.unavailable"));
                self.of_chain(&[], now).unwrap_or_else(|| JourneyEnd::unasked(unknown))
            }
        }
    }

    /// The last fault where it concerns this request alone, else the chain's.
    fn failure_after(&self, last: Box<Fault>, failed: Vec<FailedAttempt>, now: Moment) -> JourneyEnd {
        let is_of_request = !last.advice.other || now >= self.context.deadline;
        let ended = if is_of_request || !self.counts_against_health {
            JourneyEnd::after(last, failed)
        } else {
            match self.of_chain(&failed, now) {
                Some(ended) => JourneyEnd { failed, untried: false, ..ended },
                None => JourneyEnd::after(last, failed),
            }
        };
        // Fields that another target named do not belong to this fault.
        let fields = self.fields.clone().filter(|fields| ended.target() == Some(fields.place));
        JourneyEnd { fields, ..ended }
    }

    /// The fault of the chain that ends soonest.
    fn of_chain(&self, failed: &[FailedAttempt], now: Moment) -> Option<JourneyEnd> {
        let wall = self.core.state.wall();
        let places = self.targets.iter().enumerate();
        let whys: Vec<TargetFailure> =
            places.filter_map(|(place, target)| self.why(place, target, failed, now, wall)).collect();
        let is_whole = whys.len() == self.targets.len();
        let all =
            if is_whole { whys.iter().map(|why| (why.place, why.listed)).collect() } else { Vec::new() };
        let TargetFailure { fault, until, parked, place, .. } =
            whys.into_iter().min_by_key(|why| why.recovery)?;
        let chain = Some(Box::new(Chain { next_probe: self.next_probe(now, wall), all, told: place }));
        let rests = self.rests(now);
        Some(JourneyEnd { until, parked, chain, rests, ..JourneyEnd::unasked(fault) })
    }

    /// Whether every target is out of use until a known time.
    fn rests(&self, now: Moment) -> bool {
        let until =
            |target: &Target| Unavailable::of(&self.core.state, target, now).and_then(|why| why.until);
        self.targets
            .iter()
            .enumerate()
            .all(|(place, target)| self.unwritable.contains(&place) || until(target).is_some())
    }

    /// When the first breaker of the chain admits a request; none where a target would be asked at once, or no breaker is open.
    fn next_probe(&self, now: Moment, wall: Timestamp) -> Option<Timestamp> {
        let mut soonest: Option<Moment> = None;
        for (place, target) in self.targets.iter().enumerate() {
            if self.unwritable.contains(&place) || Unavailable::of(&self.core.state, target, now).is_some() {
                continue;
            }
            let until = target.breaker.refusal_last(now)?.until;
            soonest = [soonest, until].into_iter().flatten().min();
        }
        wall.checked_add(soonest?.since(now)).ok()
    }

    /// Why a target did not answer: what keeps it out of use now, else its last failure in this request, else its breaker.
    fn why(
        &self,
        place: usize,
        target: &Target,
        failed: &[FailedAttempt],
        now: Moment,
        wall: Timestamp,
    ) -> Option<TargetFailure> {
        let state = &self.core.state;
        let skipped = self.skipped.iter().rfind(|(at, _)| *at == place).map(|(_, why)| *why);
        let last = failed.iter().rfind(|failed| failed.target == place);
        if let Some(why) = Unavailable::of(state, target, now).or(skipped.filter(|_| last.is_none())) {
            let failure = TargetFailure::new(place, why.fault(state, target), why.stated_until(target), wall);
            let parked = why.parked(state, target);
            // What an operator must fix has no end time.
            let recovery = if why.until.is_none() && !why.is_by_own_concurrency() {
                Recovery::Mended
            } else {
                failure.recovery
            };
            let own = last.map(|last| last.fault.kind).or_else(|| Unavailable::own_kind(state, target, now));
            let listed = own.unwrap_or(failure.listed);
            return Some(TargetFailure { parked, recovery, listed, ..failure });
        }
        if let Some(last) = last {
            return Some(TargetFailure::new(place, last.fault.clone(), last.fault.until(), wall));
        }
        // A breaker that is not closed keeps its target out of use, also where it lets the next request through to find out.
        let mode = target.breaker.snapshot(now, wall).mode;
        let is_out_of_use = matches!(mode, Mode::Open | Mode::Probing | Mode::ForcedOpen);
        let is_refused = !self.unwritable.contains(&place) && is_out_of_use;
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
    fn what_may_pass_at_any_moment_comes_first_and_what_must_be_fixed_last() {
        let (soon, late) = (why(Kind::RateLimited, Some(10)), why(Kind::QuotaExceeded, Some(20)));
        assert!(why(Kind::Unavailable, None) < soon && soon < late);
        assert!(late < why(Kind::ModelNotFound, None) && late < why(Kind::Unauthorized, Some(1)));
        assert_eq!(why(Kind::Overloaded, Some(-5)), Recovery::AnyMoment, "its time is over");
    }
}
