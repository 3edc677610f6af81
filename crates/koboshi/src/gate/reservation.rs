//! The proof that a request may be sent, and the way to say what it cost in the end.
//!
//! A reservation goes through up to three stages. *Reserved*: dropping it returns everything. *Sent*: dropping it returns
//! only the place, the estimate stays, because a failed or cut-off request costs too, and how much is not known.
//! *Seen*: the answer has begun, so the provider has counted it, and what it states from then on contains it.
//! [`settle`](Reservation::settle) ends it with the true cost, at any stage.

use std::fmt;
use std::ops::Deref;

use crate::time::Moment;

use super::meter::{End, Stamp};
use super::{Cost, Gate};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reserved,
    Sent,
    Seen(Stamp),
    Ended,
}

/// A place at the gate and an estimated cost, taken until it is settled or dropped.
///
/// Generic over how the gate is held: `Reservation<&Gate>` from [`Gate::reserve`], `Reservation<Arc<Gate>>` from
/// [`Gate::reserve_owned`].
#[must_use = "dropping a reservation returns it"]
pub struct Reservation<B: Deref<Target = Gate>> {
    gate: B,
    cost: Cost,
    stage: Stage,
}

impl<B: Deref<Target = Gate>> Reservation<B> {
    pub(super) fn new(gate: B, cost: Cost) -> Self {
        Self { gate, cost, stage: Stage::Reserved }
    }

    /// What was reserved.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The gate it belongs to.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The request goes out now. Call it before the first byte: what may have been sent may have been counted.
    pub fn sent(&mut self) {
        if self.stage == Stage::Reserved {
            self.stage = Stage::Sent;
        }
    }

    /// The answer has begun, whatever it says: the provider has counted the request. Call it before
    /// [`Gate::learn`] gets the headers of that answer, else the request is taken off twice until the next ones.
    pub fn seen(&mut self) {
        if matches!(self.stage, Stage::Reserved | Stage::Sent) {
            let cost = self.cost;
            self.stage = Stage::Seen(self.gate.locked(|state| state.meter.seen(cost)));
        }
    }

    /// It has ended and cost this, also if it failed or was cut off: what was used counts.
    ///
    /// If it cost more than there was, the level goes below zero and later callers wait.
    pub fn settle(mut self, actual: Cost, now: Moment) {
        self.end(End::Cost(actual.clamped()), Some(now));
    }

    fn end(&mut self, end: End, now: Option<Moment>) {
        let stamp = match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Ended => return,
            Stage::Seen(stamp) => Some(stamp),
            Stage::Reserved | Stage::Sent => None,
        };
        let cost = self.cost;
        self.gate.locked(|state| {
            let Some(now) = now else { return state.end(cost, stamp, end) };
            state.advance(now);
            state.end(cost, stamp, end);
            // It may have cost more than was reserved; a drop never does.
            state.warn();
        });
    }
}

impl<B: Deref<Target = Gate>> Drop for Reservation<B> {
    fn drop(&mut self) {
        let end = if self.stage == Stage::Reserved { End::Returned } else { End::Kept };
        self.end(end, None);
    }
}

impl<B: Deref<Target = Gate>> fmt::Debug for Reservation<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reservation").field("cost", &self.cost).finish_non_exhaustive()
    }
}
