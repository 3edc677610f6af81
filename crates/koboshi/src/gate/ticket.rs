//! A place in the queue, and how it ends: let in, expired, or given up by dropping it.

use std::fmt;
use std::ops::Deref;
use std::task::Waker;

use crate::time::Moment;

use super::queue::TicketId;
use super::state::{Entered, PollResult};
use super::{Cost, Gate, Reservation};

/// The answer to one who comes to a gate.
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
    /// As many wait as may.
    #[error("too many callers wait already")]
    Full,
    /// The wait would surely end behind the deadline.
    #[error("the wait would end after the deadline")]
    TooLate {
        /// When it would end, at the earliest.
        until: Moment,
    },
}

/// What a look at a ticket finds.
#[derive(Debug)]
#[must_use = "dropping a reservation returns it"]
pub enum TicketState<B: Deref<Target = Gate>> {
    /// It may pass.
    In(Reservation<B>),
    /// Not yet.
    Wait {
        /// Look again then at the latest; waiters are told different moments.
        look_again: Moment,
    },
    /// Its time is over, or it has passed already.
    Expired,
}

/// A place in the queue. Dropping it leaves the queue.
///
/// The gate has no clock: the holder of a ticket looks at it at the told moment, or sooner when woken.
#[must_use = "dropping a ticket leaves the queue"]
pub struct Ticket<B: Deref<Target = Gate> + Clone> {
    gate: B,
    id: TicketId,
}

impl<B: Deref<Target = Gate> + Clone> Entry<B> {
    pub(super) fn of(gate: B, cost: Cost, entered: Entered) -> Self {
        match entered {
            Entered::In => Self::In(Reservation::new(gate, cost)),
            Entered::Wait(id) => Self::Wait(Ticket { gate, id }),
            Entered::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl<B: Deref<Target = Gate> + Clone> Ticket<B> {
    /// Looks whether it may pass.
    pub fn poll(&mut self, now: Moment) -> TicketState<B> {
        self.poll_with(now, None)
    }

    /// Looks whether it may pass, and asks to be woken when something changed: when it comes to the head, when a
    /// place or an amount is returned, or when it has expired. One wake for one look; one waiter is woken at a time.
    ///
    /// A hold that ends or a level that refills wakes no waiter: that is what the told moment is for.
    pub fn poll_woken(&mut self, now: Moment, waker: &Waker) -> TicketState<B> {
        // Cloned before the lock is taken: it may run any code.
        self.poll_with(now, Some(waker.clone()))
    }

    fn poll_with(&mut self, now: Moment, waker: Option<Waker>) -> TicketState<B> {
        match self.gate.locked(|state| state.poll(self.id, now, waker)) {
            PollResult::In(cost) => TicketState::In(Reservation::new(self.gate.clone(), cost)),
            PollResult::Wait(look_again) => TicketState::Wait { look_again },
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
