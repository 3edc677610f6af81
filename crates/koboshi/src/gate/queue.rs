//! Which callers wait, and whose turn it is: tenants in turn, and within a tenant first come, first served.
//!
//! Every operation costs the logarithm of the number of waiters. A tenant that has been served goes to the end of
//! the turn order, and so does one that comes new; so each tenant is served once before any is served twice,
//! however many waiters one of them has.
//!
//! The queue knows nothing about limits and time beyond deadlines; the gate, which puts waiters in, keeps its bound.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;

use crate::time::Moment;

use super::{Cost, Tenant};

/// The number of a ticket; never used twice.
pub(super) type TicketId = u64;

#[derive(Debug)]
pub(super) struct Waiter {
    tenant: Tenant,
    /// Its place in the line of its tenant. Counts all tickets, so the difference of two is their distance.
    pub(super) place: u64,
    pub(super) cost: Cost,
    pub(super) deadline: Moment,
    pub(super) waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct TenantLine {
    turn: u64,
    places: BTreeMap<u64, TicketId>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiters: BTreeMap<TicketId, Waiter>,
    lines: BTreeMap<Tenant, TenantLine>,
    turns: BTreeMap<u64, Tenant>,
    deadlines: BTreeSet<(Moment, TicketId)>,
    /// The next place, turn and ticket number.
    next: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn get(&self, id: TicketId) -> Option<&Waiter> {
        self.waiters.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: TicketId) -> Option<&mut Waiter> {
        self.waiters.get_mut(&id)
    }

    /// Whose turn it is.
    pub(super) fn head(&self) -> Option<TicketId> {
        let (_, tenant) = self.turns.first_key_value()?;
        let (_, id) = self.lines.get(tenant)?.places.first_key_value()?;
        Some(*id)
    }

    /// The last moment at which a waiter is still in the queue.
    pub(super) fn last_deadline(&self) -> Option<Moment> {
        self.deadlines.last().map(|(deadline, _)| *deadline)
    }

    /// Puts a waiter at the end of the line of its tenant.
    pub(super) fn join(&mut self, tenant: &Tenant, cost: Cost, deadline: Moment) -> TicketId {
        let id = self.number();
        self.deadlines.insert((deadline, id));
        self.line_up(tenant, id, id);
        self.waiters.insert(id, Waiter { tenant: tenant.clone(), place: id, cost, deadline, waker: None });
        id
    }

    /// Takes a waiter out; the turns of others stay.
    pub(super) fn leave(&mut self, id: TicketId) -> Option<Waiter> {
        let waiter = self.waiters.remove(&id)?;
        self.deadlines.remove(&(waiter.deadline, id));
        self.step_out(&waiter.tenant, waiter.place);
        Some(waiter)
    }

    /// Takes a waiter out because it is served: its tenant goes to the end of the turns.
    pub(super) fn serve(&mut self, id: TicketId) -> Option<Waiter> {
        let waiter = self.leave(id)?;
        self.pass_turn(&waiter.tenant);
        Some(waiter)
    }

    /// A waiter that does not come when it is called goes to the end of its line, and its tenant loses the turn.
    pub(super) fn send_back(&mut self, id: TicketId) {
        let place = self.number();
        let Some(waiter) = self.waiters.get_mut(&id) else { return };
        let before = std::mem::replace(&mut waiter.place, place);
        let tenant = waiter.tenant.clone();
        self.step_out(&tenant, before);
        self.line_up(&tenant, place, id);
        self.pass_turn(&tenant);
    }

    /// Takes out one waiter whose deadline is over.
    pub(super) fn expire(&mut self, now: Moment) -> Option<Waiter> {
        let (_, id) = self.deadlines.first().filter(|(deadline, _)| *deadline < now)?;
        self.leave(*id)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn line_up(&mut self, tenant: &Tenant, place: u64, id: TicketId) {
        let turn = self.number();
        let line = self.lines.entry(tenant.clone()).or_insert_with(|| {
            self.turns.insert(turn, tenant.clone());
            TenantLine { turn, places: BTreeMap::new() }
        });
        line.places.insert(place, id);
    }

    fn step_out(&mut self, tenant: &Tenant, place: u64) {
        let Some(line) = self.lines.get_mut(tenant) else { return };
        line.places.remove(&place);
        if line.places.is_empty() {
            self.turns.remove(&line.turn);
            self.lines.remove(tenant);
        }
    }

    fn pass_turn(&mut self, tenant: &Tenant) {
        let turn = self.number();
        let Some(line) = self.lines.get_mut(tenant) else { return };
        self.turns.remove(&line.turn);
        line.turn = turn;
        self.turns.insert(turn, tenant.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(queue: &mut Queue) -> Vec<String> {
        let order = std::iter::from_fn(|| queue.head().and_then(|id| queue.serve(id)));
        order.map(|waiter| format!("{}{}", waiter.tenant, waiter.cost.input_tokens)).collect()
    }

    fn join(queue: &mut Queue, tenant: &str, number: u64) -> TicketId {
        queue.join(&Tenant::new(tenant), Cost::of(number, 0), Moment::from_nanos(number))
    }

    #[test]
    fn tenants_take_turns_and_each_line_keeps_its_order() {
        let mut queue = Queue::default();
        for (tenant, number) in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("b", 2)] {
            join(&mut queue, tenant, number);
        }
        assert_eq!(served(&mut queue), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(queue.is_empty() && queue.turns.is_empty() && queue.lines.is_empty());
    }

    #[test]
    fn leaving_the_queue_changes_no_other_turn() {
        let mut queue = Queue::default();
        let first = join(&mut queue, "a", 1);
        let only = join(&mut queue, "b", 1);
        join(&mut queue, "a", 2);
        join(&mut queue, "c", 1);
        queue.leave(first);
        queue.leave(only);
        assert_eq!(served(&mut queue), ["a2", "c1"]);
    }

    #[test]
    fn who_does_not_come_loses_the_turn_but_stays() {
        let mut queue = Queue::default();
        let slow = join(&mut queue, "a", 1);
        join(&mut queue, "a", 2);
        join(&mut queue, "b", 1);
        queue.send_back(slow);
        assert_eq!(served(&mut queue), ["b1", "a2", "a1"]);
    }

    #[test]
    fn only_what_is_over_expires() {
        let mut queue = Queue::default();
        join(&mut queue, "a", 5);
        join(&mut queue, "a", 3);
        assert!(queue.expire(Moment::from_nanos(3)).is_none(), "the deadline itself is still in time");
        assert!(queue.expire(Moment::from_nanos(4)).is_some());
        assert_eq!(queue.last_deadline(), Some(Moment::from_nanos(5)));
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.deadlines.len(), 1, "nothing is left behind");
    }
}
