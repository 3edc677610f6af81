//! Keeps traffic below what a provider allows, so that limits are approached and not hit.
//!
//! One [`Gate`] stands before one account or model. It gets the time as an argument and touches nothing: a caller that
//! waits at it polls its ticket again at the moment that the gate named. The fast check is one or two atomic loads;
//! everything else is a short critical section, so that a check and what it allows are one step.
//!
//! Where to look: `not_before` (stated holds on both clocks), `bucket` and `meter` (levels, reserve and settle), `queue` (turns
//! of tenants), `state` (all of it together), `header` (what answers say), `word` (the fast check).
//!
//! It does not read a clock, sleep, send, or store: [`Gate::holds`] and [`Gate::adopt`] are what a store needs.
#![doc = include_str!("../docs/gate.md")]

mod bucket;
mod cost;
mod event;
mod header;
mod hold;
mod meter;
mod not_before;
mod policy;
mod queue;
mod reservation;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;
mod ticket;
mod word;

use std::sync::Arc;

use jiff::Timestamp;

use crate::cooldown::FleetPlace;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::time::Moment;

pub use bucket::{Allowance, Refill};
pub use cost::{Cost, Tenant};
pub use event::GateEvent;
pub use header::allowances;
pub use hold::{Holds, Limit};
pub use not_before::MAX_HOLD;
pub use policy::{GatePolicy, GatePolicyError, MAX_QUEUE};
pub use reservation::Reservation;
pub use snapshot::{GateSnapshot, Level};
pub use ticket::{Entry, Refusal, Ticket, TicketState};

use state::State;

/// Why nothing passes now, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gate is closed by its limit of {}", reason.name())]
pub struct GateDelay {
    /// When it may pass, at the earliest. None: when another call is done.
    pub until: Option<Moment>,
    /// What closes it. Of several, what closes it longest.
    pub reason: Limit,
}

/// Keeps traffic below what a provider allows. Share one by reference or [`Arc`].
#[derive(Debug)]
pub struct Gate {
    /// Until when nothing may pass, and why.
    shut: AtomicU64,
    /// Until when places or waiters are in the way, and why.
    busy: AtomicU64,
    state: Mutex<State>,
}

impl Gate {
    /// An open gate that knows nothing yet.
    ///
    /// A policy that does not [validate](GatePolicy::validate) is clamped to the nearest one that does.
    #[must_use]
    pub fn new(policy: GatePolicy, now: Moment) -> Self {
        let policy = GatePolicy {
            concurrency: policy.concurrency.map(|max| max.max(1)),
            queue: policy.queue.min(MAX_QUEUE),
            headroom: if policy.headroom.is_nan() { 0.0 } else { policy.headroom.clamp(0.0, MAX_HEADROOM) },
            ..policy
        };
        let state = Mutex::new(State::new(policy, now));
        Self { shut: AtomicU64::new(word::OPEN), busy: AtomicU64::new(word::OPEN), state }
    }

    /// Whether anything may pass now. Takes nothing, so it promises nothing: use it to choose a target, then
    /// [`reserve`](Self::reserve) or [`enter`](Self::enter).
    ///
    /// # Errors
    /// It is closed, all places are taken, or others wait.
    pub fn check(&self, now: Moment) -> Result<(), GateDelay> {
        // Each word is whole in itself and guards no other memory, so no ordering is needed.
        if let Some((until, reason)) = word::closed(self.shut.load(Ordering::Relaxed), now) {
            return Err(GateDelay { until: Some(until), reason });
        }
        match word::closed(self.busy.load(Ordering::Relaxed), now) {
            Some((_, reason)) => Err(GateDelay { until: None, reason }),
            None => Ok(()),
        }
    }

    /// Takes a place and an estimated cost, all or nothing.
    ///
    /// A cost above the whole of a limit passes when that limit is full, and leaves a debt.
    ///
    /// # Errors
    /// It is closed, something is used up, all places are taken, or others wait: no caller overtakes them.
    pub fn reserve(&self, cost: Cost, now: Moment) -> Result<Reservation<&Self>, GateDelay> {
        let cost = cost.clamped();
        self.locked(|state| state.reserve(cost, now)).map(|()| Reservation::new(self, cost))
    }

    /// As [`reserve`](Self::reserve), for a reservation that goes to another thread or task.
    ///
    /// # Errors
    /// As there.
    pub fn reserve_owned(
        self: &Arc<Self>,
        cost: Cost,
        now: Moment,
    ) -> Result<Reservation<Arc<Self>>, GateDelay> {
        let cost = cost.clamped();
        self.locked(|state| state.reserve(cost, now)).map(|()| Reservation::new(Arc::clone(self), cost))
    }

    /// Passes, or waits for its turn until the deadline or [`GatePolicy::max_wait`], whichever comes first.
    pub fn enter(&self, tenant: &Tenant, cost: Cost, deadline: Moment, now: Moment) -> Entry<&Self> {
        let cost = cost.clamped();
        let entered = self.locked(|state| state.enter(tenant, cost, deadline, now));
        Entry::of(self, cost, entered)
    }

    /// As [`enter`](Self::enter), for a reservation or ticket that goes to another thread or task.
    pub fn enter_owned(
        self: &Arc<Self>,
        tenant: &Tenant,
        cost: Cost,
        deadline: Moment,
        now: Moment,
    ) -> Entry<Arc<Self>> {
        let cost = cost.clamped();
        let entered = self.locked(|state| state.enter(tenant, cost, deadline, now));
        Entry::of(Arc::clone(self), cost, entered)
    }

    /// Closes until then. A hold that ends later stays, and other reasons stay beside it. Says whether
    /// it closes for longer now.
    ///
    /// The instant is turned into a length with `wall` at once; later only the monotonic clock counts.
    pub fn hold(&self, reason: Limit, until: Timestamp, now: Moment, wall: Timestamp) -> bool {
        self.locked(|state| {
            let now = state.advance(now);
            let longer = state.not_before.hold(reason, until, now, wall);
            if let Some(until) = longer {
                state.held(reason, until);
            }
            longer.is_some()
        })
    }

    /// Takes over what others know; says whether any of it was news.
    pub fn adopt(&self, others: &Holds, now: Moment, wall: Timestamp) -> bool {
        self.locked(|state| {
            let now = state.advance(now);
            let adopted = state.not_before.adopt(others, now, wall);
            if adopted.cleared {
                state.cleared();
            }
            for (reason, until) in adopted.longer {
                state.held(reason, until);
            }
            adopted.is_news
        })
    }

    /// The stated holds, to be stored and shared.
    #[must_use]
    pub fn holds(&self) -> Holds {
        self.locked(|state| state.not_before.record().clone())
    }

    /// An operator opens it: holds and learned levels are forgotten, here and, by the raised epoch, wherever the
    /// record is adopted. Those who wait still follow one by one.
    pub fn clear(&self) {
        self.locked(|state| {
            state.not_before.clear();
            state.cleared();
        });
    }

    /// What a provider said about a limit. It never opens a hold; limits that are not counted are ignored.
    ///
    /// Reservations that the provider may not have counted yet are taken off the stated number, see
    /// [`Reservation::seen`].
    pub fn learn(&self, limit: Limit, allowance: Allowance, now: Moment) {
        self.learn_share(limit, allowance, FleetPlace::ALONE, now);
    }

    /// The same where several nodes share the limit: this one uses its own part and no more, so that together they stay below
    /// what the provider states.
    pub fn learn_share(&self, limit: Limit, allowance: Allowance, place: FleetPlace, now: Moment) {
        self.locked(|state| {
            let now = state.advance(now);
            state.meter.learn(limit, allowance, place, &state.policy, now);
            state.request_wake();
            state.warn();
        });
    }

    /// The events since the last call, oldest first; the last 64.
    #[must_use = "what is drained is gone"]
    pub fn drain_events(&self) -> Vec<GateEvent> {
        self.locked(|state| state.events.drain())
    }

    /// What it looks like now.
    #[must_use]
    pub fn snapshot(&self, now: Moment) -> GateSnapshot {
        let mut snapshot = self.locked(|state| {
            state.advance(now);
            GateSnapshot {
                holds: state.not_before.record().clone(),
                held_by: None,
                opens_in: None,
                levels: state.meter.levels(),
                in_flight: state.in_flight,
                waiting: state.queue.len(),
                lost_events: state.events.lost(),
            }
        });
        if let Err(held) = self.check(now) {
            snapshot.held_by = Some(held.reason);
            snapshot.opens_in = held.until.map(|until| until.since(now));
        }
        snapshot
    }

    /// Does something under the lock, and wakes the waiters afterwards, without the lock.
    fn locked<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        // No code of others runs under the lock, so a poisoned one is as sound as any.
        let mut state = lock(&self.state);
        let result = work(&mut state);
        let (shut, busy) = state.words();
        self.shut.store(shut, Ordering::Relaxed);
        self.busy.store(busy, Ordering::Relaxed);
        let (woken, discarded) = state.take_wakers();
        drop(state);
        woken.into_iter().for_each(std::task::Waker::wake);
        drop(discarded);
        result
    }
}

/// At least a thousandth of a limit may be used.
const MAX_HEADROOM: f64 = 0.999;
