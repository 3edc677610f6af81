//! One request over its chain of targets: cooldown → gate → breaker permit → send → classify → remedy.
//!
//! The library decides ([`Call`], `remedy`); this module calls it in order, and sleeps, sends and records in between. A journey continues after
//! an answer has begun: a stream that breaks is one more failed attempt.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use koboshi::breaker::Breaker;
use koboshi::call::{Attempt, Call, Choice, End};
use koboshi::fault::{Fault, Kind, Scope};
use koboshi::gate::{Cost, Gate, Reservation};
use koboshi::remedy::{Remedy, RemedyPolicy};
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};
use koboshi_wire::any::Request;
use koboshi_wire::step::Usage;
use tokio::time::sleep;

pub(crate) use crate::attempt::exhausted::JourneyEnd;
use crate::attempt::learn;
use crate::attempt::probe;
use crate::attempt::queue::{self, Turn};
use crate::attempt::rescue;
use crate::attempt::unavailable::Unavailable;
use crate::attempt::{BegunAttempt, ErrorFields, Limits, Shape};
use crate::http::memory::MemoryShare;
use crate::http::upstream::connection_fault::is_local_shortage;
use crate::http::upstream::interface::Interface;
use crate::http::upstream::{Body, UpstreamAnswer};
use crate::observe::transition;
use crate::route::credential::Credential;
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::attempt_guard::{AttemptGuard, WithdrawReason};
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::notice::Notice;
use crate::shared::reopenings;
use crate::shared::spend::{Payer, Spending};
use crate::shared::state::SharedState;
use koboshi_wire::http1::Fields;

/// Another target is not asked where the wait for this one's turn is no longer than this.
const SHORT_WAIT: Duration = Duration::from_millis(250);

/// An attempt whose answer has begun.
pub(crate) struct OpenAttempt {
    pub(crate) target: Arc<Target>,
    /// Its place in the chain.
    pub(crate) place: usize,
    pub(crate) head: Fields,
    pub(crate) body: Body,
    pub(crate) limits: Limits,
    /// What a large answer takes of `serve.memory`.
    pub(crate) memory: Option<MemoryShare>,
    attempt: Attempt<Arc<Breaker>>,
    pub(crate) attempt_guard: AttemptGuard,
    began: Moment,
    wall: Timestamp,
}

impl OpenAttempt {
    /// Records the first content.
    pub(crate) fn observe_first_content(&mut self, state: &SharedState) {
        self.attempt.content_began();
        if let Some(first) = self.attempt_guard.take_first() {
            // The others need not wait for the end of the answer.
            learn::from_success(state, &self.target, self.wall);
            drop(first);
        }
        self.target.meters.first_content.observe(SystemClock.moment().since(self.began).as_secs_f64());
    }

    /// The body failed after this long without content.
    pub(crate) fn failed_after(&mut self, pause: Duration) {
        self.attempt.paused_for(pause);
    }
}

/// Changes a request so that a target accepts it.
pub(crate) trait ChangeRequest {
    /// Shortens the conversation for this target; false if nothing can be left out.
    fn trim(&self, target: &Target) -> bool;

    /// Whether the conversation can be mended for a target that refused the client's own bytes with this fault.
    fn mend(&self, target: &Target, fault: &Fault) -> bool;

    /// Whether the target refused our translation, and not the client's own request.
    fn was_translated(&self, target: &Target, fault: &Fault) -> bool;

    /// Records that the translation was refused and that another target is asked.
    fn note_refused_translation(&self, target: &Target);
}

/// A request over its chain.
pub(crate) struct Journey<'j> {
    pub(crate) core: &'j CoreState,
    pub(crate) plan: &'j Plan,
    pub(crate) context: &'j RequestContext,
    pub(super) targets: &'j [Arc<Target>],
    pub(super) call: Call<'j, Arc<Breaker>>,
    /// The targets that were skipped: their places, and why.
    pub(super) skipped: Vec<(usize, Unavailable)>,
    /// Targets in whose dialect the request cannot be expressed.
    pub(super) unwritable: Vec<usize>,
    /// The request, where a user wrote it: what an error repeats of it is private.
    pub(super) request: Option<&'j Request<'j>>,
    /// Changes the request so that a target accepts it.
    changes: Option<&'j dyn ChangeRequest>,
    /// Whether failures count against the health of their targets.
    pub(super) counts_against_health: bool,
    /// How the last target that was asked named the mistake of the request.
    pub(super) fields: Option<Box<ErrorFields>>,
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
            request: None,
            changes: None,
            counts_against_health: true,
            fields: None,
        }
    }

    /// For an endpoint that many servers do not have: a failure there says nothing about the target's other endpoints.
    pub(crate) fn without_health(mut self) -> Self {
        self.counts_against_health = false;
        self
    }

    /// A probe for which no one waits, by a policy other than the config's.
    pub(crate) fn beside(mut self, policy: &'j RemedyPolicy, breakers: &'j [Arc<Breaker>]) -> Self {
        let state = &self.core.state;
        self.call =
            Call::new(breakers, &state.share, policy, state.seed()).until(self.context.deadline).beside();
        self
    }

    /// For this request of a user.
    pub(crate) fn about(mut self, request: &'j Request<'j>) -> Self {
        self.request = Some(request);
        self
    }

    /// Lets `changes` change the request where a target does not accept it.
    pub(crate) fn changing(mut self, changes: &'j dyn ChangeRequest) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Shortens the request if the remedy asks for that; returns whether the journey continues with it.
    pub(crate) fn trim(&mut self, target: &Target, remedy: Remedy) -> bool {
        let trims = remedy == Remedy::Trim && self.changes.is_some_and(|changes| changes.trim(target));
        if trims {
            self.call.go_on(remedy);
        }
        trims
    }

    /// Asks targets until one begins to answer. `make` writes the request for a target; a target for which it cannot be written is skipped.
    pub(crate) fn open(
        &mut self,
        shape: &Shape,
        make: &mut dyn FnMut(&Target) -> Option<Bytes>,
    ) -> impl Future<Output = Result<Box<OpenAttempt>, JourneyEnd>> {
        self.begin_answer(shape, make, false)
    }

    /// As `open`, but gives targets that support it the beginning of the answer. A target that refuses it is asked again without.
    pub(crate) async fn begin_answer(
        &mut self,
        shape: &Shape,
        make: &mut dyn FnMut(&Target) -> Option<Bytes>,
        resuming: bool,
    ) -> Result<Box<OpenAttempt>, JourneyEnd> {
        loop {
            let now = self.core.state.now();
            self.bar_unavailable(now);
            self.pass_over_dear_probes(shape, now);
            let candidate = match self.call.choose(now) {
                Choice::Target(candidate) => candidate,
                Choice::Pause(pause) => {
                    self.context.notify(|| Notice::Retry {
                        attempt: pause.attempt.saturating_sub(1),
                        max_attempts: pause.max_attempts,
                        delay: pause.length,
                        kind: pause.why,
                    });
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
            let cost = Cost::estimate(body.len(), shape.max_output);
            let Some(turn) = self.wait_turn(place, &target, now).await else {
                self.call.bar(place);
                continue;
            };
            let Some(reservation) = self.reserve(place, &target, cost, now).await else {
                self.call.bar(place);
                continue;
            };
            // A rest that ended during the wait at the gate has a first request too.
            let first = match turn {
                Turn::Free if self.must_wait_longer_than(&target, Duration::ZERO) => continue,
                Turn::Free | Turn::Following => None,
                Turn::First(first) => Some(first),
            };
            // Last of all, so that no probe is held during a wait at the gate. Refused only where another request was faster.
            let began = self.core.state.now();
            let Ok(attempt) = self.call.admit(candidate, began) else { continue };
            let mut attempt_guard =
                AttemptGuard::new(reservation, &target, &self.context.trace, self.spending(shape));
            attempt_guard.set_first(first);
            match self.send(&target, shape, &body, began, &mut attempt_guard).await {
                Ok(sent) => {
                    let BegunAttempt { answer, limits, wall, token: issued } = sent;
                    let UpstreamAnswer { status, head, body } = answer;
                    attempt_guard.answer_began(status.is_success());
                    let open = Box::new(OpenAttempt {
                        target,
                        place,
                        head,
                        body,
                        limits,
                        memory: None,
                        attempt,
                        attempt_guard,
                        began,
                        wall,
                    });
                    if status.is_success() {
                        learn::from_headers(&self.core.state, &open.target, &open.head);
                        return Ok(open);
                    }
                    let (open, mut fault) =
                        Box::pin(self.classify_failed_answer(open, status.as_u16())).await;
                    if let (Credential::Token(token), Some(issued)) = (&open.target.credential, &issued) {
                        fault = token.judge(issued, fault);
                    }
                    if resuming && open.target.prefills() && fault.kind == Kind::InvalidRequest {
                        open.target.mark_prefill_refused();
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

    /// Records that the attempt failed after its answer had begun, and returns the remedy; the next [`Journey::open`] follows it where it
    /// can.
    pub(crate) fn after(&mut self, open: Box<OpenAttempt>, fault: Box<Fault>) -> Remedy {
        let OpenAttempt { target, place, attempt, attempt_guard, wall, began, .. } = *open;
        attempt_guard.fail(self.core.state.now());
        target.meters.duration.observe(self.core.state.now().since(began).as_secs_f64());
        self.note(&target, place, attempt, fault, wall)
    }

    /// Continues after the request was changed as the remedy asked.
    pub(crate) fn go_on(&mut self, remedy: Remedy) {
        self.call.go_on(remedy);
    }

    /// Continues with the unchanged request, but not with this target.
    pub(crate) fn leave(&mut self, place: usize, remedy: Remedy) {
        self.call.bar(place);
        self.call.go_on(remedy);
    }

    /// Records that the attempt was answered to its end.
    pub(crate) fn succeeded(&self, mut open: Box<OpenAttempt>, usage: Option<Usage>) {
        let now = self.core.state.now();
        open.attempt_guard.finish_whole(usage, now);
        let OpenAttempt { target, place, attempt, began, wall, .. } = *open;
        self.credit(&target, place, attempt, began, wall, now);
    }

    /// As `succeeded`, but the usage may still come.
    pub(crate) fn whole(&self, open: Box<OpenAttempt>) -> (Body, AttemptGuard) {
        let OpenAttempt { target, place, attempt, mut attempt_guard, began, wall, body, .. } = *open;
        attempt_guard.mark_whole();
        self.credit(&target, place, attempt, began, wall, self.core.state.now());
        (body, attempt_guard)
    }

    /// Counts a complete answer in favour of its target.
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

    /// Ends the attempt without counting it against the target: the request was our own idea.
    pub(crate) fn withdraw(&self, open: Box<OpenAttempt>, why: WithdrawReason, fault: Option<&Fault>) {
        if why == WithdrawReason::Differs {
            rescue::note_differs(&self.core.state, self.context, &open.target);
        }
        open.attempt_guard.withdraw(why, fault, self.core.state.now());
    }

    /// Whether another target is asked when a content filter ends an answer.
    pub(crate) fn goes_around_filters(&self) -> bool {
        self.plan.config.remedy.route_around_filters && self.call.could_turn(self.core.state.now())
    }

    /// Records an answer that a content filter ended and that the client gets: in metrics and journal, and not against the target.
    pub(crate) fn note_filtered(&self, target: &Target, fault: &Fault) {
        learn::report_fault(&self.core.state, self.plan, target, fault, Remedy::Stop, self.context);
    }

    /// The last fault of this request.
    pub(super) fn last_failure(&self) -> Option<&Fault> {
        self.call.failures().last().map(|failed| &*failed.fault)
    }

    /// The kind of the last fault of this request.
    pub(crate) fn last_fault(&self) -> Option<&'static str> {
        self.call.failures().last().map(|failed| failed.fault.kind.name())
    }

    /// Marks a timeout at the deadline of the request with whose deadline it was; returns whether it was one.
    pub(super) fn mark_deadline(&self, fault: &mut Fault, now: Moment) -> bool {
        let is_deadline = fault.kind == Kind::Timeout && now >= self.context.deadline;
        if is_deadline {
            fault.sub = Some(self.context.deadline_sub());
        }
        is_deadline
    }

    /// Records that the changed request (shortened, or a re-ask) cannot be written for a target that was asked before.
    fn note_unbuilt(&self, target: &Target) {
        let text = format!("{}: the changed request cannot be built for it", target.name);
        learn::own_fault(&self.core.state, self.plan, Kind::ContextBuildFailed, &text, self.context);
    }

    fn bar_unavailable(&mut self, now: Moment) {
        let current = self.call.failures().last().map(|failed| failed.target);
        for (place, target) in self.targets.iter().enumerate() {
            // The remedy handles a wait that is in progress.
            if current == Some(place) || self.call.is_barred(place) {
                continue;
            }
            if let Some(unavailable) = Unavailable::of(&self.core.state, target, now) {
                self.call.bar(place);
                self.skipped.push((place, unavailable));
            } else if self.must_wait_longer_than(target, SHORT_WAIT) {
                self.call.defer(place);
            }
        }
    }

    /// Defers targets that are better probed beside this request, while another one may be asked.
    fn pass_over_dear_probes(&mut self, shape: &Shape, now: Moment) {
        if self.targets.len() < 2 || !matches!(shape.interface, Interface::Generate(_)) {
            return;
        }
        for (place, target) in self.targets.iter().enumerate() {
            let is_left = |(other, one): (usize, &Arc<Target>)| {
                other != place && !self.call.is_barred(other) && one.breaker.would_admit(now)
            };
            if target.breaker.probe_is_dear()
                && self.targets.iter().enumerate().any(is_left)
                && probe::is_beside(self.core, target)
            {
                self.call.defer(place);
            }
        }
    }

    /// Whether other requests go before this one after a rest of the target, for longer than this.
    fn must_wait_longer_than(&self, target: &Target, within: Duration) -> bool {
        let reopenings = &self.core.state.reopenings;
        reopenings.concern(&target.scopes)
            && !reopenings.would_go(&target.scopes, &reopenings::policy(&self.plan.config), within)
    }

    /// How long this request may wait before it is sent.
    fn patience(&self, now: Moment) -> Duration {
        self.plan.config.remedy.request.patience.min(self.context.deadline.since(now))
    }

    /// Waits for the turn of this request after a rest of the target.
    async fn wait_turn(&mut self, place: usize, target: &Target, now: Moment) -> Option<Turn> {
        let state = &self.core.state;
        if !state.reopenings.concern(&target.scopes) {
            return Some(Turn::Free);
        }
        let turn = queue::turn(state, self.plan, target, self.patience(now));
        match Box::pin(turn).await {
            Ok(turn) => Some(turn),
            Err(unavailable) => {
                self.skipped.push((place, unavailable));
                None
            }
        }
    }

    /// Where the cost of an attempt is counted; a count of tokens costs nothing.
    fn spending(&self, shape: &Shape) -> Option<(Arc<Spending>, Payer)> {
        let costs = !matches!(shape.interface, Interface::Count(_));
        costs.then(|| (Arc::clone(&self.core.state.spending), self.context.payer()))
    }

    /// Takes a place at the gate, and waits for it no longer than patience allows.
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
        Box::pin(queue::wait(state, target, &self.context.tenant, cost, self.patience(now))).await
    }

    fn note(
        &mut self,
        target: &Target,
        place: usize,
        attempt: Attempt<Arc<Breaker>>,
        fault: Box<Fault>,
        wall: Timestamp,
    ) -> Remedy {
        // The journal gets the fault first, then what it did to the breaker.
        let _after = transition::hold_reports();
        let state = &self.core.state;
        let now = state.now();
        let mut fault = fault;
        // Neither a client that could not wait nor a target in cooldown is evidence against the target.
        let hit_deadline = self.mark_deadline(&mut fault, now);
        let original = fault.clone();
        if hit_deadline
            || !self.counts_against_health
            || learn::is_covered_by_cooldown(state, self.plan, target, &fault)
        {
            fault.advice.health = false;
        }
        // The target refused our translation, not the client's own words: another target may accept its translation.
        let refused = self.changes.filter(|changes| changes.was_translated(target, &fault));
        // Without another target it may still be the client's mistake, and the advice stays: a lesser answer would hide it.
        if refused.is_some() && self.call.could_turn(now) {
            fault.advice.other = true;
        }
        let remedy = self.call.failed(attempt, fault, now);
        if is_local_shortage(&original) {
            learn::local_shortage(state, self.plan, &original, remedy, self.context);
        } else if self.counts_against_health {
            learn::from_fault(state, self.plan, target, &original, remedy, self.context, wall);
        } else {
            learn::report_fault(state, self.plan, target, &original, remedy, self.context);
        }
        if let Some(changes) = refused.filter(|_| remedy == Remedy::Elsewhere) {
            changes.note_refused_translation(target);
        }
        self.context.trace.failed(target, wall, &original, remedy);
        // Its cooldown is longer than this request may wait: no need to check again.
        if matches!(remedy, Remedy::Elsewhere) {
            self.call.bar(place);
            if matches!(original.scope, Scope::Provider | Scope::Network) {
                self.defer_siblings(target);
            }
        }
        remedy
    }

    /// Defers the other keys and models of a provider that failed as a whole, or that could not be reached: they are asked when no other
    /// target is left.
    fn defer_siblings(&mut self, failed: &Target) {
        for (place, target) in self.targets.iter().enumerate() {
            if target.provider.name == failed.provider.name {
                self.call.defer(place);
            }
        }
    }
}
