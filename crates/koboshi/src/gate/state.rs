//! Everything a gate knows, under its lock: which callers may pass now, which wait, and which are to be woken.
//!
//! Every timed call first [advances](State::advance): levels refill, deadlines pass, an ended hold is noticed. Then it
//! decides. Deciding and taking are one step under one lock, so there is no gap between a check and what it allowed.
//!
//! Release is by turn, and each waiter collects its own: nothing is reserved for a waiter that may never come. The
//! one at the head is *called*; if it does not come within [`HEAD_TIMEOUT`] although it could pass, it goes to the
//! end of its line, so that one stuck caller does not stop all others. When much is let
//! go at once (a hold ends, a window begins again), waiters are *paced*: one in each `stagger`, for as long as those
//! who wait then need. Then the pace ends, else a busy gate would stay slow.
//!
//! Wakers are collected here and used by the gate after the lock is gone: waking or dropping one may run any code.

use std::task::Waker;
use std::time::Duration;

use crate::time::Moment;

use super::event::{Events, GateEvent};
use super::meter::{End, Meter, Stamp};
use super::not_before::NotBefore;
use super::queue::{Queue, TicketId};
use super::word::{self, NEVER};
use super::{Cost, GateDelay, GatePolicy, Limit, Refusal, Tenant};

/// How long a waiter that could pass has to come before the next one is asked.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);
/// A waiter is never asked to poll again sooner than this.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// The answer to a caller that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnterResult {
    In,
    Wait(TicketId),
    Refused(Refusal),
}

/// The answer to a waiter that polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollResult {
    In(Cost),
    Wait(Moment),
    Gone,
}

/// How waiters are let through after a hold.
#[derive(Debug, Clone, Copy)]
struct Pace {
    next: Moment,
    over: Moment,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) policy: GatePolicy,
    /// The latest time that a caller handed in.
    now: Moment,
    pub(super) not_before: NotBefore,
    /// A hold was in force at the last call.
    is_held: bool,
    pub(super) meter: Meter,
    pub(super) in_flight: u32,
    pub(super) queue: Queue,
    pace: Option<Pace>,
    /// The waiter that could pass, and since when.
    called: Option<(TicketId, Moment)>,
    /// What the waiter at the head was last seen waiting for.
    waiting_for: Limit,
    pub(super) events: Events,
    /// The head at the last call, and whether it has something to poll for.
    head: Option<TicketId>,
    must_wake: bool,
    /// To be woken, and to be dropped, once the lock is gone.
    woken: Vec<Waker>,
    discarded: Vec<Waker>,
}

impl State {
    pub(super) fn new(policy: GatePolicy, now: Moment) -> Self {
        Self {
            policy,
            now,
            not_before: NotBefore::default(),
            is_held: false,
            meter: Meter::new(),
            in_flight: 0,
            queue: Queue::default(),
            pace: None,
            called: None,
            waiting_for: Limit::Requests,
            events: Events::default(),
            head: None,
            must_wake: false,
            woken: Vec::new(),
            discarded: Vec::new(),
        }
    }

    /// Brings everything up to this moment. Callers read the clock before they get the lock, so time may seem to run
    /// backwards by a little; then the later time counts.
    pub(super) fn advance(&mut self, now: Moment) -> Moment {
        self.now = self.now.max(now);
        let now = self.now;
        let let_go = self.meter.refresh(now);
        while let Some(late) = self.queue.expire(now) {
            self.woken.extend(late.waker);
        }
        let opened = self.is_held && self.not_before.last().is_none_or(|(end, _)| now >= end);
        if opened || let_go {
            self.release_in_turn();
        }
        if opened {
            self.is_held = false;
            // A clear has its own event.
            if self.not_before.last().is_some() {
                self.events.push(GateEvent::Opened);
            }
        }
        if self.queue.is_empty() || self.pace.is_some_and(|pace| now >= pace.over) {
            self.pace = None;
        }
        now
    }

    /// Those who wait now pass one in each stagger, for as long as all of them need.
    fn release_in_turn(&mut self) {
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        let next = self.pace.map_or(self.now, |pace| pace.next.max(self.now));
        self.pace = Some(Pace { next, over: next.after(self.policy.stagger.saturating_mul(waiting)) });
        self.must_wake = true;
    }

    /// What keeps this cost back, waiters and pace aside.
    fn blocked(&self, cost: Cost) -> Option<GateDelay> {
        let held = self.not_before.last().filter(|(end, _)| *end > self.now);
        let timed = held.into_iter().chain(self.meter.wait(cost)).max_by_key(|(until, _)| *until);
        match timed {
            Some((until, reason)) => Some(GateDelay { until: Some(until), reason }),
            None => self.is_full().then_some(GateDelay { until: None, reason: Limit::Concurrency }),
        }
    }

    fn is_full(&self) -> bool {
        self.policy.concurrency.is_some_and(|max| self.in_flight >= max)
    }

    /// What keeps one back that has not waited.
    fn refused(&self, cost: Cost) -> Option<GateDelay> {
        let blocked = self.blocked(cost);
        if self.queue.is_empty() || blocked.is_some_and(|held| held.until.is_some()) {
            return blocked;
        }
        Some(GateDelay { until: None, reason: self.in_the_way() })
    }

    /// What the waiters wait for; without a waiter only a place can be missing.
    fn in_the_way(&self) -> Limit {
        if self.queue.is_empty() { Limit::Concurrency } else { self.waiting_for }
    }

    /// What keeps the waiter at the head back.
    fn kept_back(&self, cost: Cost) -> Option<GateDelay> {
        let next = self.pace.map(|pace| pace.next).filter(|next| *next > self.now);
        let paced = next.map(|next| GateDelay { until: Some(next), reason: self.waiting_for });
        self.blocked(cost).or(paced)
    }

    pub(super) fn reserve(&mut self, cost: Cost, now: Moment) -> Result<(), GateDelay> {
        self.advance(now);
        self.call(None);
        match self.refused(cost) {
            Some(held) => Err(held),
            None => {
                self.admit(cost);
                Ok(())
            }
        }
    }

    pub(super) fn enter(
        &mut self,
        tenant: &Tenant,
        cost: Cost,
        deadline: Moment,
        now: Moment,
    ) -> EnterResult {
        let now = self.advance(now);
        self.call(None);
        if deadline < now {
            return EnterResult::Refused(Refusal::TooLate { until: now });
        }
        let Some(held) = self.refused(cost) else {
            self.admit(cost);
            return EnterResult::In;
        };
        let deadline = deadline.min(now.after(self.policy.max_wait));
        if let Some(until) = held.until.filter(|until| *until > deadline) {
            return EnterResult::Refused(Refusal::TooLate { until });
        }
        if self.queue.len() >= usize::try_from(self.policy.queue).unwrap_or(usize::MAX) {
            return EnterResult::Refused(Refusal::Full);
        }
        if self.queue.is_empty() {
            self.waiting_for = held.reason;
        }
        EnterResult::Wait(self.queue.join(tenant, cost, deadline))
    }

    /// A waiter polls whether it may pass.
    pub(super) fn poll(&mut self, id: TicketId, now: Moment, waker: Option<Waker>) -> PollResult {
        self.advance(now);
        self.call(Some(id));
        let Some(waiter) = self.queue.get(id) else {
            self.discarded.extend(waker);
            return PollResult::Gone;
        };
        let (cost, deadline, place) = (waiter.cost, waiter.deadline, waiter.place);
        let is_head = self.queue.head() == Some(id);
        if is_head && self.kept_back(cost).is_none() {
            self.discarded.extend(waker);
            self.admit_waiter(id, cost);
            return PollResult::In(cost);
        }
        let poll_at = self.poll_at(is_head, place, waker.is_some());
        self.register(id, waker);
        if is_head {
            // It polls right now, so it need not be woken for what this call found.
            (self.head, self.must_wake) = (Some(id), false);
        }
        // After its deadline it can only expire.
        PollResult::Wait(poll_at.min(deadline.after(Duration::from_nanos(1))))
    }

    fn admit_waiter(&mut self, id: TicketId, cost: Cost) {
        self.discarded.extend(self.queue.serve(id).and_then(|served| served.waker));
        if let Some(pace) = &mut self.pace {
            pace.next = self.now.after(self.policy.stagger);
        }
        self.admit(cost);
    }

    /// The head polls when it can pass; the others one after another, so that they do not all poll together.
    fn poll_at(&self, is_head: bool, place: u64, is_woken: bool) -> Moment {
        let head = self.queue.head().and_then(|head| self.queue.get(head));
        let until = head.and_then(|head| self.kept_back(head.cost)).and_then(|held| held.until);
        let pause = self.policy.stagger.max(MIN_PAUSE);
        if is_head {
            // A free place wakes the waiter; without a waker it has to poll.
            return until.unwrap_or_else(|| self.now.after(if is_woken { HEAD_TIMEOUT } else { pause }));
        }
        let ahead = place.saturating_sub(head.map_or(0, |head| head.place)).clamp(1, 1_000_000);
        let distance =
            pause.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX)).min(HEAD_TIMEOUT.max(pause));
        // A waiter with a waker polls only to notice that the one before it is stuck.
        let spare = if is_woken { HEAD_TIMEOUT } else { Duration::ZERO };
        until.unwrap_or(self.now).after(distance).after(spare)
    }

    fn register(&mut self, id: TicketId, waker: Option<Waker>) {
        let (Some(waiter), Some(waker)) = (self.queue.get_mut(id), waker) else { return };
        self.discarded.extend(waiter.waker.replace(waker));
    }

    /// Calls the waiter at the head if it can pass; one that was called and did not come goes to the end of its line.
    ///
    /// The one that is `asking` has polled, however late.
    fn call(&mut self, asking: Option<TicketId>) {
        let Some(head) = self.queue.head() else { return };
        let Some(waiter) = self.queue.get(head) else { return };
        if let Some(held) = self.kept_back(waiter.cost) {
            (self.waiting_for, self.called) = (held.reason, None);
            return;
        }
        match self.called {
            Some((called, since)) if called == head => {
                if asking != Some(head) && self.now >= since.after(HEAD_TIMEOUT) {
                    self.queue.send_back(head);
                    self.called = self.queue.head().map(|next| (next, self.now));
                    self.must_wake = true;
                }
            }
            _ => {
                self.called = Some((head, self.now));
                self.must_wake = true;
            }
        }
    }

    fn admit(&mut self, cost: Cost) {
        self.in_flight = self.in_flight.saturating_add(1);
        self.meter.take(cost);
        self.warn();
    }

    pub(super) fn warn(&mut self) {
        for (limit, used_percent) in self.meter.warnings(self.now) {
            self.events.push(GateEvent::Nearly { limit, used_percent });
        }
    }

    /// A reservation has ended.
    pub(super) fn end(&mut self, cost: Cost, stamp: Option<Stamp>, end: End) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.meter.end(cost, stamp, end);
        self.must_wake = true;
    }

    pub(super) fn leave(&mut self, id: TicketId) {
        self.discarded.extend(self.queue.leave(id).and_then(|waiter| waiter.waker));
    }

    /// Something now closes the gate, or more of it.
    pub(super) fn held(&mut self, reason: Limit, until: jiff::Timestamp) {
        self.is_held = true;
        self.events.push(GateEvent::Held { reason, until });
    }

    /// All holds and levels are forgotten; the waiters follow one by one.
    pub(super) fn cleared(&mut self) {
        self.meter.forget();
        // The next timed call finds the hold ended and begins the pace.
        self.is_held = true;
        self.must_wake = true;
        self.events.push(GateEvent::Cleared);
    }

    pub(super) fn request_wake(&mut self) {
        self.must_wake = true;
    }

    /// The wakers to be woken and dropped now: at most the head's, and those of expired waiters.
    pub(super) fn take_wakers(&mut self) -> (Vec<Waker>, Vec<Waker>) {
        let head = self.queue.head();
        if self.must_wake || head != self.head {
            let waker = head.and_then(|head| self.queue.get_mut(head)).and_then(|head| head.waker.take());
            self.woken.extend(waker);
        }
        (self.head, self.must_wake) = (head, false);
        (std::mem::take(&mut self.woken), std::mem::take(&mut self.discarded))
    }

    /// What the fast check reads: until when nothing may pass, and until when something else is in the way.
    pub(super) fn words(&self) -> (u64, u64) {
        let held = self.not_before.last().filter(|(end, _)| *end > self.now);
        let timed = held.into_iter().chain(self.meter.wait(Cost::of(0, 0))).max_by_key(|(until, _)| *until);
        let shut = timed.map_or(word::OPEN, |(until, reason)| word::pack(until, reason));
        let busy = match self.queue.last_deadline() {
            _ if self.is_full() => word::pack(NEVER, self.in_the_way()),
            // Not for ever: if the waiters were lost, no caller would find out.
            Some(deadline) => word::pack(deadline, self.in_the_way()),
            None => word::OPEN,
        };
        (shut, busy)
    }
}
