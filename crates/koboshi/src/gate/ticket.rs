//! A place in the queue, and how it ends: let in, expired, or given up by dropping it.

use std::fmt;
use std::ops::Deref;
use std::task::Waker;

use crate::time::Moment;

use super::queue::TicketId;
use super::state::{EnterResult, PollResult};
use super::{Cost, Gate, Reservation};

/// The answer to a caller that arrives at a gate.
#[derive(Debug)]
#[must_use = "dropping it gives the place up"]
pub enum Entry<B: Deref<Target = Gate> + Clone> {
    /// It may pass.
    In(Reservation<B>),
    /// It must wait for its turn.
    Wait(Ticket<B>),
    /// It need not wait: it would not get in.
    Refused(Refusal),
}

/// Why a caller may not even wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The queue is full.
    #[error("too many callers wait already")]
    Full,
    /// The wait would certainly outlast the deadline.
    #[error("the wait would end after the deadline")]
    TooLate {
        /// When it would end, at the earliest.
        until: Moment,
    },
}

/// The result of polling a ticket.
#[derive(Debug)]
#[must_use = "dropping a reservation returns it"]
pub enum TicketState<B: Deref<Target = Gate>> {
    /// It may pass.
    In(Reservation<B>),
    /// Not yet.
    Wait {
        /// Poll again then at the latest; waiters get different moments.
        poll_at: Moment,
    },
    /// Its time is over, or it has passed already.
    Expired,
}

/// A place in the queue. Dropping it leaves the queue.
///
/// The gate has no clock: the holder of a ticket polls it at the named moment, or sooner when woken.
#[must_use = "dropping a ticket leaves the queue"]
pub struct Ticket<B: Deref<Target = Gate> + Clone> {
    gate: B,
    id: TicketId,
}

impl<B: Deref<Target = Gate> + Clone> Entry<B> {
    pub(super) fn of(gate: B, cost: Cost, entered: EnterResult) -> Self {
        match entered {
            EnterResult::In => Self::In(Reservation::new(gate, cost)),
            EnterResult::Wait(id) => Self::Wait(Ticket { gate, id }),
            EnterResult::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl<B: Deref<Target = Gate> + Clone> Ticket<B> {
    /// Polls whether it may pass.
    pub fn poll(&mut self, now: Moment) -> TicketState<B> {
        self.poll_with(now, None)
    }

    /// Polls whether it may pass, and registers a waker for the next change: when it comes to the head, when a
    /// place or an amount is returned, or when it has expired. One wake for one poll; one waiter is woken at a time.
    ///
    /// A hold that ends or a level that refills wakes no waiter: the named moment is for those.
    pub fn poll_woken(&mut self, now: Moment, waker: &Waker) -> TicketState<B> {
        // Cloned before the lock is taken: it may run any code.
        self.poll_with(now, Some(waker.clone()))
    }

    fn poll_with(&mut self, now: Moment, waker: Option<Waker>) -> TicketState<B> {
        match self.gate.locked(|state| state.poll(self.id, now, waker)) {
            PollResult::In(cost) => TicketState::In(Reservation::new(self.gate.clone(), cost)),
            PollResult::Wait(poll_at) => TicketState::Wait { poll_at },
            PollResult::Gone => TicketState::Expired,
        }
    }
}

impl<B: Deref<Target = Gate> + Clone> Drop for Ticket<B> {
    fn drop(&mut self) {
        self.gate.locked(|state| state.leave(self.id));
    }
}

impl<B: Deref<Target = Gate> + Clone> fmt::Debug for Ticket<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ticket").field("id", &self.id).finish_non_exhaustive()
    }
}
