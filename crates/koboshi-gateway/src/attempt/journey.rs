//! One request on its way over the chain: cooldown → gate → breaker permit → send → classify → remedy.
//!
//! The decisions are the core's ([`Call`], `remedy`); here is the order in which they are asked for, and the sleeping, sending and
//! noting between them. A journey goes on after an answer has begun: a stream that breaks is one more failed attempt.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use koboshi::breaker::Breaker;
use koboshi::call::{Attempt, Call, Choice, End};
use koboshi::fault::{Fault, Kind, Scope};
use koboshi::gate::{Cost, Gate, Reservation};
use koboshi::remedy::Remedy;
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};
use koboshi_wire::step::Usage;
use tokio::time::sleep;

pub(crate) use crate::attempt::exhausted::JourneyEnd;
use crate::attempt::learn;
use crate::attempt::rescue;
use crate::attempt::unavailable::Unavailable;
use crate::attempt::{BegunAttempt, Limits, Shape};
use crate::http::upstream::connection_fault::is_local_shortage;
use crate::http::upstream::{Body, UpstreamAnswer};
use crate::observe::transition;
use crate::route::credential::Credential;
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::attempt_guard::{AttemptGuard, WithdrawReason};
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use koboshi_wire::http1::Fields;

/// An attempt whose answer has begun.
pub(crate) struct Open {
    pub(crate) target: Arc<Target>,
    /// Its place in the chain.
    pub(crate) place: usize,
    pub(crate) head: Fields,
    pub(crate) body: Body,
    pub(crate) limits: Limits,
    attempt: Attempt<Arc<Breaker>>,
    pub(crate) attempt_guard: AttemptGuard,
    began: Moment,
    wall: Timestamp,
}

impl Open {
    /// The first content has come.
    pub(crate) fn observe_first_content(&self) {
        self.target.meters.first_content.observe(SystemClock.moment().since(self.began).as_secs_f64());
    }
}

/// What can change a request so that a target takes it.
pub(crate) trait ChangeRequest {
    /// Makes the conversation shorter for this target. False if nothing can be left out.
    fn trim(&self, target: &Target) -> bool;

    /// The target refused the client's own bytes with this fault: whether the conversation can be mended for it.
    fn mend(&self, target: &Target, fault: &Fault) -> bool;

    /// Whether the target refused a translation of ours and not the client's own request.
    fn was_translated(&self, target: &Target, fault: &Fault) -> bool;

    /// Notes that the translation was refused and that the request goes elsewhere.
    fn note_refused_translation(&self, target: &Target);
}

/// A request on its way.
pub(crate) struct Journey<'j> {
    pub(crate) core: &'j CoreState,
    pub(crate) plan: &'j Plan,
    pub(crate) context: &'j RequestContext,
    pub(super) targets: &'j [Arc<Target>],
    pub(super) call: Call<'j, Arc<Breaker>>,
    /// The targets that were passed over: their places, and why.
    pub(super) skipped: Vec<(usize, Unavailable)>,
    /// Targets in whose dialect the request cannot be said.
    pub(super) unwritable: Vec<usize>,
    /// What can change the request so that a target takes it.
    changes: Option<&'j dyn ChangeRequest>,
    /// What fails is held against its target.
    pub(super) counts_against_health: bool,
}

impl<'j> Journey<'j> {
    pub(crate) fn new(
        core: &'j CoreState,
        plan: &'j Plan,
        context: &'j RequestContext,
        targets: &'j [Arc<Target>],
        breakers: &'j [Arc<Breaker>],
        can_degrade: bool,
    ) -> Self {
        let call = Call::new(breakers, &core.state.share, &plan.config.remedy, core.state.seed());
        let call = call.until(context.deadline);
        let call = if can_degrade { call.or_lesser() } else { call };
        let (skipped, unwritable) = (Vec::new(), Vec::new());
        Self {
            core,
            plan,
            context,
            targets,
            call,
            skipped,
            unwritable,
            changes: None,
            counts_against_health: true,
        }
    }

    /// For a question that many servers do not have: that it is not answered says nothing about those that matter.
    pub(crate) fn without_health(mut self) -> Self {
        self.counts_against_health = false;
        self
    }

    /// Where a target does not take the request as it is, this one changes it.
    pub(crate) fn changing(mut self, changes: &'j dyn ChangeRequest) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Does what a remedy asks for, if it is to make the request shorter: whether it goes on with that.
    pub(crate) fn trim(&mut self, target: &Target, remedy: Remedy) -> bool {
        let trims = remedy == Remedy::Trim && self.changes.is_some_and(|changes| changes.trim(target));
        if trims {
            self.call.go_on(remedy);
        }
        trims
    }

    /// Asks until somebody begins to answer. `make` writes the request for a target; one for which it cannot be written is passed over.
    pub(crate) fn open(
        &mut self,
        shape: &Shape,
        make: &mut dyn FnMut(&Target) -> Option<Bytes>,
    ) -> impl Future<Output = Result<Box<Open>, JourneyEnd>> {
        self.open_resuming(shape, make, false)
    }

    /// The same, where targets that can are given the beginning of the answer. One that refuses it is asked again without.
    pub(crate) async fn open_resuming(
        &mut self,
        shape: &Shape,
        make: &mut dyn FnMut(&Target) -> Option<Bytes>,
        resuming: bool,
    ) -> Result<Box<Open>, JourneyEnd> {
        loop {
            let now = self.core.state.now();
            self.bar_unavailable(now);
            let candidate = match self.call.choose(now) {
                Choice::Target(candidate) => candidate,
                Choice::Pause(pause) => {
                    sleep(pause.length).await;
                    continue;
                }
                Choice::Over(end) => return Err(self.ended(end)),
            };
            let place = candidate.target();
            let Some(target) = self.targets.get(place).cloned() else { return Err(self.ended(End::Nothing)) };
            let Some(body) = make(&target) else {
                if self.context.attempts.get() > 0 {
                    self.note_unbuilt(&target);
                }
                self.unwritable.push(place);
                self.call.bar(place);
                continue;
            };
            let cost = Cost::estimate(body.len(), shape.most_output);
            let Some(reservation) = self.reserve(place, &target, cost, now).await else {
                self.call.bar(place);
                continue;
            };
            // Last of all, so that no probe is held up by a wait at the gate. Refused only where another request was faster.
            let Ok(attempt) = self.call.admit(candidate, self.core.state.now()) else { continue };
            let mut attempt_guard = AttemptGuard::new(reservation, &target, &self.context.trace);
            match self.send(&target, shape, &body, &mut attempt_guard).await {
                Ok(sent) => {
                    let BegunAttempt { answer, limits, began, wall, token: issued } = sent;
                    let UpstreamAnswer { status, head, body } = answer;
                    attempt_guard.answer_began(status.is_success());
                    let open = Box::new(Open {
                        target,
                        place,
                        head,
                        body,
                        limits,
                        attempt,
                        attempt_guard,
                        began,
                        wall,
                    });
                    if status.is_success() {
                        learn::from_headers(&self.core.state, &open.target, &open.head);
                        return Ok(open);
                    }
                    let (open, mut fault) = Box::pin(self.refusal(open, status.as_u16())).await;
                    if let (Credential::Token(token), Some(issued)) = (&open.target.credential, &issued) {
                        fault = token.judge(issued, fault);
                    }
                    if resuming && open.target.prefills() && fault.kind == Kind::InvalidRequest {
                        open.target.refused_prefill();
                        self.withdraw(open, WithdrawReason::Prefill, Some(&fault));
                        continue;
                    }
                    if self.changes.is_some_and(|changes| changes.mend(&open.target, &fault)) {
                        self.withdraw(open, WithdrawReason::History, Some(&fault));
                        continue;
                    }
                    let target = Arc::clone(&open.target);
                    let remedy = self.after(open, fault);
                    self.trim(&target, remedy);
                }
                Err((fault, wall)) => {
                    attempt_guard.fail(self.core.state.now());
                    self.note(&target, place, attempt, fault, wall);
                }
            }
        }
    }

    /// The attempt failed after its answer had begun. Says what is to be done; the next [`Journey::open`] does it where it
    /// can.
    pub(crate) fn after(&mut self, open: Box<Open>, fault: Box<Fault>) -> Remedy {
        let Open { target, place, attempt, attempt_guard, wall, began, .. } = *open;
        attempt_guard.fail(self.core.state.now());
        target.meters.duration.observe(self.core.state.now().since(began).as_secs_f64());
        self.note(&target, place, attempt, fault, wall)
    }

    /// The request was changed as the remedy asked.
    pub(crate) fn go_on(&mut self, remedy: Remedy) {
        self.call.go_on(remedy);
    }

    /// The request as it is goes on, but not with this target.
    pub(crate) fn leave(&mut self, place: usize, remedy: Remedy) {
        self.call.bar(place);
        self.call.go_on(remedy);
    }

    /// The attempt was answered to its end.
    pub(crate) fn succeeded(&self, mut open: Box<Open>, usage: Option<Usage>) {
        let now = self.core.state.now();
        open.attempt_guard.finish_whole(usage, now);
        let Open { target, place, attempt, began, wall, .. } = *open;
        self.credit(&target, place, attempt, began, wall, now);
    }

    /// The same, where what it cost may still come.
    pub(crate) fn whole(&self, open: Box<Open>) -> (Body, AttemptGuard) {
        let Open { target, place, attempt, mut attempt_guard, began, wall, body, .. } = *open;
        attempt_guard.mark_whole();
        self.credit(&target, place, attempt, began, wall, self.core.state.now());
        (body, attempt_guard)
    }

    /// An answer came to its end: that speaks for its target.
    fn credit(
        &self,
        target: &Target,
        place: usize,
        attempt: Attempt<Arc<Breaker>>,
        began: Moment,
        wall: Timestamp,
        now: Moment,
    ) {
        attempt.succeeded(now);
        target.meters.duration.observe(now.since(began).as_secs_f64());
        learn::from_success(&self.core.state, target, wall);
        let failed = self.call.failures();
        if self.counts_against_health && (place > 0 || !failed.is_empty()) {
            rescue::note(&self.core.state, self.context, self.targets, place, failed);
        }
    }

    /// The attempt is given up without a word against the target: what we asked for was our own idea.
    pub(crate) fn withdraw(&self, open: Box<Open>, why: WithdrawReason, fault: Option<&Fault>) {
        if why == WithdrawReason::Differs {
            rescue::note_differs(&self.core.state, self.context, &open.target);
        }
        open.attempt_guard.withdraw(why, fault, self.core.state.now());
    }

    /// Whether another target is asked where a content filter ends an answer.
    pub(crate) fn goes_around_filters(&self) -> bool {
        self.plan.config.remedy.route_around_filters && self.call.could_turn(self.core.state.now())
    }

    /// A content filter ended an answer that the client gets. It counts as that in metrics and journal, and not against the target.
    pub(crate) fn note_filtered(&self, target: &Target, fault: &Fault) {
        learn::report_fault(&self.core.state, self.plan, target, fault, Remedy::Stop, self.context);
    }

    /// The kind of the last fault on the way.
    pub(crate) fn last_fault(&self) -> Option<&'static str> {
        self.call.failures().last().map(|failed| failed.fault.kind.name())
    }

    /// A timeout at the deadline of the request says whose deadline it was; whether it was one.
    pub(super) fn name_deadline(&self, fault: &mut Fault, now: Moment) -> bool {
        let is_deadline = fault.kind == Kind::Timeout && now >= self.context.deadline;
        if is_deadline {
            fault.sub = Some(self.context.deadline_sub());
        }
        is_deadline
    }

    /// The target was asked before, and the changed request (shortened, or asking again) cannot be written for it.
    fn note_unbuilt(&self, target: &Target) {
        let text = format!("{}: the changed request cannot be built for it", target.name);
        learn::own_fault(&self.core.state, self.plan, Kind::ContextBuildFailed, &text, &self.context.id);
    }

    fn bar_unavailable(&mut self, now: Moment) {
        let current = self.call.failures().last().map(|failed| failed.target);
        for (place, target) in self.targets.iter().enumerate() {
            // A wait that is being waited out is the remedy's business.
            if current == Some(place) || self.call.is_barred(place) {
                continue;
            }
            if let Some(unavailable) = Unavailable::of(&self.core.state, target, now) {
                self.call.bar(place);
                self.skipped.push((place, unavailable));
            }
        }
    }

    /// Takes a place at the gate, waiting for it no longer than patience allows.
    async fn reserve(
        &mut self,
        place: usize,
        target: &Target,
        cost: Cost,
        now: Moment,
    ) -> Option<Reservation<Arc<Gate>>> {
        let state = &self.core.state;
        let held = match target.gate.reserve_owned(cost, now) {
            Ok(reservation) => return Some(reservation),
            Err(held) => held,
        };
        self.skipped.push((place, Unavailable::held(state, held, now)));
        let patience = self.plan.config.remedy.request.patience.min(self.context.deadline.since(now));
        Box::pin(crate::attempt::queue::wait(state, target, &self.context.tenant, cost, patience)).await
    }

    fn note(
        &mut self,
        target: &Target,
        place: usize,
        attempt: Attempt<Arc<Breaker>>,
        fault: Box<Fault>,
        wall: Timestamp,
    ) -> Remedy {
        // The journal tells of the fault first, then of what it did to the breaker.
        let _after = transition::hold_reports();
        let state = &self.core.state;
        let now = state.now();
        let mut fault = fault;
        // A client that could not wait proves nothing against a target, and neither does one that rests.
        let impatient = self.name_deadline(&mut fault, now);
        let original = fault.clone();
        if impatient
            || !self.counts_against_health
            || learn::is_covered_by_cooldown(state, self.plan, target, &fault)
        {
            fault.advice.health = false;
        }
        // The words that were refused are ours, not the client's: whoever is left may get it in better ones.
        let refused = self.changes.filter(|changes| changes.was_translated(target, &fault));
        // Where nobody is, it may be the client's mistake all the same, and the advice stays: a lesser answer would hide it.
        if refused.is_some() && self.call.could_turn(now) {
            fault.advice.other = true;
        }
        let remedy = self.call.failed(attempt, fault, now);
        if is_local_shortage(&original) {
            learn::local_shortage(state, self.plan, &original, remedy, &self.context.id);
        } else if self.counts_against_health {
            learn::from_fault(state, self.plan, target, &original, remedy, self.context, wall);
        } else {
            learn::report_fault(state, self.plan, target, &original, remedy, self.context);
        }
        if let Some(changes) = refused.filter(|_| remedy == Remedy::Elsewhere) {
            changes.note_refused_translation(target);
        }
        self.context.trace.failed(target, wall, &original, remedy);
        // Its rest is longer than this request may wait: nobody needs to look again.
        if matches!(remedy, Remedy::Elsewhere) {
            self.call.bar(place);
            if matches!(original.scope, Scope::Provider | Scope::Network) {
                self.defer_siblings(target);
            }
        }
        remedy
    }

    /// What is wrong with the whole provider, or on the way to it, is so for its other keys and models too: they are asked when no
    /// other target is left.
    fn defer_siblings(&mut self, failed: &Target) {
        for (place, target) in self.targets.iter().enumerate() {
            if target.provider.name == failed.provider.name {
                self.call.defer(place);
            }
        }
    }
}
