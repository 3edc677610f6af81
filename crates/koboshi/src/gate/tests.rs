//! The promises of the gate, one by one. Random schedules against a model are in `tests/model_gate.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use jiff::Timestamp;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Moment {
    Moment::START.after(Duration::from_millis(millis))
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn gate(policy: GatePolicy) -> Gate {
    Gate::new(policy, at(0))
}

fn stated(limit: u64, remaining: u64, seconds: u64) -> Allowance {
    let resets_in = Some(Duration::from_secs(seconds));
    Allowance { limit: Some(limit), remaining, resets_in, refill: Refill::Steady }
}

fn left(gate: &Gate, limit: Limit, now: Moment) -> Option<i64> {
    gate.snapshot(now).levels.iter().find(|level| level.limit == limit).map(|level| level.left)
}

fn ticket(entry: Entry<&Gate>) -> Ticket<&Gate> {
    match entry {
        Entry::Wait(ticket) => ticket,
        other => panic!("it should wait, but {other:?}"),
    }
}

fn wait<'a>(gate: &'a Gate, tenant: &str, now: Moment) -> Ticket<&'a Gate> {
    ticket(gate.enter(&Tenant::new(tenant), Cost::of(1, 1), now.after(20 * SECOND), now))
}

/// The reservation, if it may pass.
fn let_in<'a>(ticket: &mut Ticket<&'a Gate>, now: Moment) -> Option<Reservation<&'a Gate>> {
    match ticket.poll(now) {
        TicketState::In(reservation) => Some(reservation),
        _ => None,
    }
}

// ===== a smaller value never replaces a larger one; reasons are separate =====

#[test]
fn a_hold_only_grows_and_reasons_stay_apart() {
    let gate = gate(GatePolicy::default());
    assert!(gate.hold(Limit::Requests, wall(60), at(0), wall(0)));
    assert!(!gate.hold(Limit::Requests, wall(10), at(0), wall(0)), "shorter: nothing changes");
    assert!(gate.hold(Limit::Tokens, wall(30), at(0), wall(0)), "another reason has its own end");
    assert_eq!(gate.check(at(0)), Err(GateDelay { until: Some(at(60_000)), reason: Limit::Requests }));
    assert_eq!(gate.holds().until.len(), 2);
    assert_eq!(gate.check(at(60_000)), Ok(()));
}

#[test]
fn threads_that_hold_at_once_leave_the_longest() {
    let gate = gate(GatePolicy::default());
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let gate = &gate;
            scope.spawn(move || {
                for second in 0..100 {
                    gate.hold(Limit::Requests, wall(1 + second * 4 + thread), at(0), wall(0));
                }
            });
        }
    });
    assert_eq!(gate.check(at(0)).unwrap_err().until, Some(at(400_000)));
}

#[test]
fn a_clear_opens_and_a_stale_copy_does_not_close_again() {
    let gate = gate(GatePolicy::default());
    gate.hold(Limit::Quota, wall(3600), at(0), wall(0));
    let stale = gate.holds();
    gate.clear();
    assert_eq!(gate.check(at(0)), Ok(()));
    assert!(!gate.adopt(&stale, at(0), wall(0)), "no news");
    assert_eq!(gate.check(at(0)), Ok(()));
    let other = super::tests::gate(GatePolicy::default());
    other.adopt(&stale, at(0), wall(0));
    assert!(other.adopt(&gate.holds(), at(0), wall(0)), "the clear is news elsewhere");
    assert_eq!(other.check(at(0)), Ok(()));
    assert_eq!(other.holds(), gate.holds());
}

#[test]
fn no_hold_is_believed_for_longer_than_35_days_however_often_it_is_stated() {
    let gate = gate(GatePolicy::default());
    let mut absurd = Holds::default();
    absurd.hold(Limit::Operator, Timestamp::MAX);
    assert!(gate.adopt(&absurd, at(0), wall(0)));
    assert!(!gate.adopt(&absurd, at(1000), wall(1)), "stating it again does not stretch it");
    let end = at(0).after(MAX_HOLD);
    assert_eq!(gate.check(at(1000)).unwrap_err().until, Some(end));
    assert_eq!(gate.check(end), Ok(()));
    let endless = super::tests::gate(GatePolicy::default());
    endless.hold(Limit::Quota, Timestamp::MAX, at(0), wall(0));
    assert_eq!(endless.holds().until[&Limit::Quota], wall(35 * 86_400), "and it is not passed on");
}

#[test]
fn news_about_a_level_never_opens_a_hold() {
    let gate = gate(GatePolicy::default());
    gate.hold(Limit::Requests, wall(60), at(0), wall(0));
    gate.learn(Limit::Requests, stated(100, 100, 0), at(0));
    assert_eq!(gate.check(at(59_999)).unwrap_err().reason, Limit::Requests);
}

// ===== each kind of limit is counted apart =====

#[test]
fn each_kind_of_limit_closes_for_itself() {
    let cost = Cost { requests: 1, input_tokens: 30, output_tokens: 20 };
    for (limit, enough) in
        [(Limit::Requests, 1), (Limit::Tokens, 50), (Limit::InputTokens, 30), (Limit::OutputTokens, 20)]
    {
        let open = gate(GatePolicy::default());
        open.learn(limit, stated(1000, enough, 600), at(0));
        assert!(open.reserve(cost, at(0)).is_ok(), "{limit:?}");
        let short = gate(GatePolicy::default());
        short.learn(limit, stated(1000, enough - 1, 600), at(0));
        assert_eq!(short.reserve(cost, at(0)).unwrap_err().reason, limit);
        assert_eq!(short.snapshot(at(0)).in_flight, 0, "all or nothing");
    }
}

#[test]
fn limits_that_are_not_counted_teach_nothing() {
    let gate = gate(GatePolicy::default());
    for limit in [Limit::Concurrency, Limit::Quota, Limit::Operator] {
        gate.learn(limit, stated(10, 0, 600), at(0));
    }
    assert_eq!(gate.check(at(0)), Ok(()));
}

#[test]
fn of_several_limits_the_one_that_closes_longest_is_named() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Requests, stated(10, 0, 100), at(0));
    gate.learn(Limit::Tokens, stated(1000, 0, 100), at(0));
    let held = gate.reserve(Cost::of(500, 0), at(0)).unwrap_err();
    assert_eq!(held, GateDelay { until: Some(at(50_000)), reason: Limit::Tokens });
    gate.hold(Limit::Operator, wall(60), at(0), wall(0));
    assert_eq!(gate.reserve(Cost::of(500, 0), at(0)).unwrap_err().reason, Limit::Operator);
}

// ===== staggered release, bounded queue, deadline, fairness =====

#[test]
fn after_a_hold_waiters_follow_one_by_one() {
    let gate = gate(GatePolicy::default());
    gate.hold(Limit::Requests, wall(10), at(0), wall(0));
    let mut tickets: Vec<_> = (0..4).map(|_| wait(&gate, "a", at(0))).collect();
    for ticket in &mut tickets {
        assert!(let_in(ticket, at(9999)).is_none());
    }
    let mut passed = Vec::new();
    for millis in 10_000..10_300 {
        tickets.retain_mut(|ticket| match ticket.poll(at(millis)) {
            TicketState::In(_) => {
                passed.push(millis);
                false
            }
            _ => true,
        });
    }
    assert_eq!(passed, [10_000, 10_050, 10_100, 10_150]);
}

#[test]
fn a_new_window_is_no_stampede_either() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Requests, Allowance { refill: Refill::AtReset, ..stated(100, 0, 10) }, at(0));
    let (mut one, mut two) = (wait(&gate, "a", at(0)), wait(&gate, "a", at(0)));
    assert!(let_in(&mut one, at(10_000)).is_some());
    assert!(let_in(&mut two, at(10_049)).is_none());
    assert!(let_in(&mut two, at(10_050)).is_some());
}

#[test]
fn a_second_hold_does_not_hurry_the_pace() {
    let gate = gate(GatePolicy { stagger: SECOND, ..GatePolicy::default() });
    gate.hold(Limit::Requests, wall(10), at(0), wall(0));
    let mut tickets: Vec<_> = (0..3).map(|_| wait(&gate, "a", at(0))).collect();
    assert!(let_in(&mut tickets[0], at(10_000)).is_some());
    gate.hold(Limit::Tokens, wall(1), at(10_000), wall(0));
    gate.clear();
    assert!(let_in(&mut tickets[1], at(10_999)).is_none(), "a second has not passed since the first one");
    assert!(let_in(&mut tickets[1], at(11_000)).is_some());
}

#[test]
fn the_pace_ends_when_those_who_waited_have_passed() {
    let gate = gate(GatePolicy { stagger: SECOND, ..GatePolicy::default() });
    gate.hold(Limit::Requests, wall(10), at(0), wall(0));
    let mut first = wait(&gate, "a", at(0));
    let mut second = wait(&gate, "a", at(0));
    assert!(let_in(&mut first, at(10_000)).is_some());
    let (mut third, mut fourth) = (wait(&gate, "a", at(10_000)), wait(&gate, "a", at(10_000)));
    assert!(let_in(&mut second, at(11_000)).is_some());
    assert!(let_in(&mut third, at(11_999)).is_none(), "two waited, so two seconds are paced");
    assert!(let_in(&mut third, at(12_000)).is_some());
    assert!(let_in(&mut fourth, at(12_000)).is_some(), "then it flows again");
}

#[test]
fn a_clear_is_no_stampede_either() {
    let gate = gate(GatePolicy::default());
    gate.hold(Limit::Operator, wall(10), at(0), wall(0));
    let (mut one, mut two) = (wait(&gate, "a", at(0)), wait(&gate, "a", at(0)));
    gate.clear();
    assert!(let_in(&mut two, at(1)).is_none(), "not its turn");
    assert!(let_in(&mut one, at(1)).is_some());
    assert!(let_in(&mut two, at(50)).is_none());
    assert!(let_in(&mut two, at(51)).is_some());
}

#[test]
fn the_queue_is_bounded_and_a_hopeless_wait_is_refused_at_once() {
    let gate = gate(GatePolicy { queue: 2, concurrency: Some(1), ..GatePolicy::default() });
    let tenant = Tenant::new("a");
    let enter = |deadline: u64| gate.enter(&tenant, Cost::of(1, 1), at(deadline), at(0));
    let inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let first = ticket(enter(5000));
    let second = ticket(enter(5000));
    assert!(matches!(enter(5000), Entry::Refused(Refusal::Full)));
    drop(first);
    let third = ticket(enter(5000));
    drop((second, third, inside));
    gate.hold(Limit::Requests, wall(6), at(0), wall(0));
    assert!(matches!(enter(5999), Entry::Refused(Refusal::TooLate { until }) if until == at(6000)));
    assert!(matches!(enter(6000), Entry::Wait(_)), "just in time");
    let late = gate.enter(&tenant, Cost::of(1, 1), at(6999), at(7000));
    assert!(matches!(late, Entry::Refused(Refusal::TooLate { .. })), "open, but its time is over");
}

#[test]
fn nobody_waits_longer_than_the_policy_allows() {
    let gate = gate(GatePolicy { max_wait: SECOND, concurrency: Some(1), ..GatePolicy::default() });
    let _inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let mut ticket = wait(&gate, "a", at(0));
    assert!(matches!(ticket.poll(at(1000)), TicketState::Wait { .. }));
    assert!(matches!(ticket.poll(at(1001)), TicketState::Expired));
    assert_eq!(gate.snapshot(at(1001)).waiting, 0);
}

#[test]
fn the_expired_make_room_even_if_they_never_poll_again() {
    let gate = gate(GatePolicy { queue: 1, concurrency: Some(1), ..GatePolicy::default() });
    let _inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let _lost = wait(&gate, "a", at(0));
    drop(wait(&gate, "b", at(20_001)));
}

#[test]
fn one_tenants_crowd_does_not_keep_another_out() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let mut inside = gate.reserve(Cost::of(1, 1), at(0)).ok();
    let mut crowd: Vec<_> = (0..10).map(|_| wait(&gate, "crowd", at(0))).collect();
    let mut single = wait(&gate, "single", at(0));
    drop(inside.take());
    assert!(let_in(&mut single, at(1)).is_none());
    inside = let_in(&mut crowd[0], at(1));
    assert!(inside.is_some());
    drop(inside);
    assert!(let_in(&mut crowd[1], at(2)).is_none(), "the other tenant's turn");
    assert!(let_in(&mut single, at(2)).is_some());
}

#[test]
fn nobody_overtakes_those_who_wait() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let mut waiting = wait(&gate, "a", at(0));
    drop(inside);
    let held = GateDelay { until: None, reason: Limit::Concurrency };
    assert_eq!(gate.reserve(Cost::of(1, 1), at(1)).unwrap_err(), held);
    assert_eq!(gate.check(at(1)), Err(held));
    let late = wait(&gate, "b", at(1));
    assert!(let_in(&mut waiting, at(1)).is_some());
    drop(late);
    assert!(gate.reserve(Cost::of(1, 1), at(2)).is_ok());
}

#[test]
fn a_waiter_that_does_not_come_is_passed_over_and_not_lost() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let mut stuck = wait(&gate, "a", at(0));
    let mut next = wait(&gate, "b", at(0));
    drop(inside);
    assert!(let_in(&mut next, at(10)).is_none(), "the stuck one is called");
    assert!(let_in(&mut next, at(1009)).is_none(), "and has a second to come");
    let passed = let_in(&mut next, at(1010));
    assert!(passed.is_some());
    drop(passed);
    assert!(let_in(&mut stuck, at(1011)).is_some());
}

#[test]
fn the_second_caller_starts_over_when_it_was_closed_in_between() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let (mut first, mut next) = (wait(&gate, "a", at(0)), wait(&gate, "b", at(0)));
    drop(inside);
    assert!(let_in(&mut next, at(10)).is_none(), "the first is called");
    gate.hold(Limit::Requests, wall(2), at(10), wall(0));
    assert!(let_in(&mut next, at(20)).is_none());
    assert!(let_in(&mut next, at(2010)).is_none(), "open again: the first still has its second");
    assert!(let_in(&mut first, at(2020)).is_some());
}

#[test]
fn if_all_who_waited_are_lost_the_check_opens_again() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    std::mem::forget(wait(&gate, "a", at(0)));
    drop(inside);
    assert!(gate.check(at(19_000)).is_err());
    assert_eq!(gate.check(at(20_001)), Ok(()));
    assert!(gate.reserve(Cost::of(1, 1), at(20_001)).is_ok());
}

#[test]
fn waiters_get_different_moments_to_poll_again() {
    let gate = gate(GatePolicy::default());
    gate.hold(Limit::Requests, wall(10), at(0), wall(0));
    let mut tickets: Vec<_> = (0..5).map(|_| wait(&gate, "a", at(0))).collect();
    let moments: Vec<_> = tickets
        .iter_mut()
        .map(|ticket| match ticket.poll(at(1)) {
            TicketState::Wait { poll_at } => poll_at,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(moments[0], at(10_000), "the first polls when the hold ends");
    assert!(moments.windows(2).all(|pair| pair[0] < pair[1]), "{moments:?}");
}

// ===== Waking =====

#[derive(Default)]
struct WakeCounter(AtomicUsize);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn only_the_one_whose_turn_it_is_is_woken() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let counters: Vec<Arc<WakeCounter>> = (0..3).map(|_| Arc::default()).collect();
    let mut tickets: Vec<_> = (0..3).map(|_| wait(&gate, "a", at(0))).collect();
    for (ticket, counter) in tickets.iter_mut().zip(&counters) {
        let state = ticket.poll_woken(at(1), &Waker::from(Arc::clone(counter)));
        assert!(matches!(state, TicketState::Wait { .. }));
    }
    let wakes = || counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
    assert_eq!(wakes(), [0, 0, 0]);
    inside.settle(Cost::of(1, 1), at(2));
    assert_eq!(wakes(), [1, 0, 0], "a place is free");
    let second = let_in(&mut tickets[0], at(3));
    assert_eq!(wakes(), [1, 1, 0], "the next one comes to the head");
    let _ = tickets[1].poll_woken(at(3), &Waker::from(Arc::clone(&counters[1])));
    drop(second);
    assert_eq!(wakes(), [1, 2, 0]);
    drop(tickets.remove(1));
    assert_eq!(wakes(), [1, 2, 1], "one that leaves hands the turn on");
}

#[test]
fn news_a_clear_and_the_deadline_wake_too() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let _inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
    let counter = Arc::<WakeCounter>::default();
    let waker = Waker::from(Arc::clone(&counter));
    let wakes = || counter.0.load(Ordering::Relaxed);
    let mut ticket = ticket(gate.enter(&Tenant::new("a"), Cost::of(1, 1), at(400), at(0)));
    let _ = ticket.poll_woken(at(1), &waker);
    gate.learn(Limit::Requests, stated(10, 5, 600), at(2));
    assert_eq!(wakes(), 1, "news");
    gate.learn(Limit::Requests, stated(10, 6, 600), at(2));
    assert_eq!(wakes(), 1, "one wake for one poll");
    let _ = ticket.poll_woken(at(3), &waker);
    gate.clear();
    assert_eq!(wakes(), 2, "a clear");
    let _ = ticket.poll_woken(at(4), &waker);
    let before = wakes();
    let _ = gate.snapshot(at(401));
    assert_eq!(wakes(), before + 1, "its time is over");
    assert!(matches!(ticket.poll(at(401)), TicketState::Expired));
}

#[test]
fn a_waiter_that_polls_only_when_woken_is_not_forgotten() {
    let gate = gate(GatePolicy { concurrency: Some(2), ..GatePolicy::default() });
    let mut inside: Vec<_> = (0..2).map(|_| gate.reserve(Cost::of(1, 1), at(0)).unwrap()).collect();
    let mut waiting: Vec<_> = (0..20)
        .map(|number| (wait(&gate, ["a", "b", "c"][number % 3], at(0)), Arc::<WakeCounter>::default()))
        .collect();
    for (ticket, counter) in &mut waiting {
        assert!(matches!(
            ticket.poll_woken(at(0), &Waker::from(Arc::clone(counter))),
            TicketState::Wait { .. }
        ));
    }
    for millis in 1..=20 {
        let before = waiting.len();
        inside.remove(0).settle(Cost::of(1, 1), at(millis));
        // As an executor does it: every woken waiter polls, until none is woken.
        while let Some(woken) =
            waiting.iter().position(|(_, counter)| counter.0.swap(0, Ordering::Relaxed) > 0)
        {
            let (ticket, counter) = &mut waiting[woken];
            if let TicketState::In(reservation) =
                ticket.poll_woken(at(millis), &Waker::from(Arc::clone(counter)))
            {
                inside.push(reservation);
                drop(waiting.remove(woken));
            }
        }
        assert_eq!(waiting.len(), before - 1, "a place became free, so one passed, without any timer");
    }
}

/// Drops a ticket of the same gate when it is dropped itself, as the last handle of a task does.
struct Task(Arc<Gate>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Task {
    fn drop(&mut self) {
        let _ = self.0.snapshot(at(0));
    }
}

#[test]
fn wakers_are_used_and_dropped_without_the_lock() {
    let gate = Arc::new(gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() }));
    let inside = gate.reserve_owned(Cost::of(1, 1), at(0)).unwrap();
    let Entry::Wait(mut ticket) = gate.enter_owned(&Tenant::new("a"), Cost::of(1, 1), at(5000), at(0)) else {
        panic!("it waits")
    };
    for _ in 0..3 {
        // Each replaces the last handle of the one before: a drop under the lock would hang here.
        let _ = ticket.poll_woken(at(1), &Waker::from(Arc::new(Task(Arc::clone(&gate)))));
    }
    drop(inside);
    let _ = ticket.poll_woken(at(2), &Waker::from(Arc::new(Task(Arc::clone(&gate)))));
    let _ = ticket.poll_woken(at(3), &Waker::from(Arc::new(Task(Arc::clone(&gate)))));
}

// ===== the check and what it allows are one step =====

#[test]
fn threads_together_get_exactly_what_was_left() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Requests, Allowance { limit: None, remaining: 100, ..stated(0, 0, 600) }, at(0));
    let passed: usize = std::thread::scope(|scope| {
        let pass = || {
            let reservations = (0..100).filter_map(|_| gate.reserve(Cost::of(1, 1), at(1)).ok());
            reservations.map(|reservation| reservation.settle(Cost::of(1, 1), at(1))).count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(pass)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 100);
}

#[test]
fn threads_that_wait_all_get_in_and_never_too_many_at_once() {
    let gate = gate(GatePolicy { concurrency: Some(2), ..GatePolicy::default() });
    let (inside, max) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let pass = |tenant: &Tenant| {
        let reservation = match gate.enter(tenant, Cost::of(1, 1), at(10_000), at(1)) {
            Entry::In(reservation) => reservation,
            Entry::Wait(mut ticket) => loop {
                match ticket.poll(at(1)) {
                    TicketState::In(reservation) => break reservation,
                    _ => std::thread::yield_now(),
                }
            },
            Entry::Refused(refusal) => panic!("{refusal}"),
        };
        max.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        inside.fetch_sub(1, Ordering::SeqCst);
        reservation.settle(Cost::of(1, 1), at(1));
    };
    std::thread::scope(|scope| {
        for name in ["a", "a", "b", "c"] {
            scope.spawn(move || (0..200).for_each(|_| pass(&Tenant::new(name))));
        }
    });
    assert!(max.load(Ordering::SeqCst) <= 2);
    let snapshot = gate.snapshot(at(1));
    assert_eq!((snapshot.in_flight, snapshot.waiting), (0, 0));
}

#[test]
fn a_gate_and_what_it_hands_out_go_to_other_threads() {
    fn goes<T: Send + Sync>() {}
    goes::<Gate>();
    goes::<Reservation<Arc<Gate>>>();
    goes::<super::Ticket<Arc<Gate>>>();
}

#[test]
fn a_panic_of_a_caller_costs_no_other_caller_anything() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    let outcome = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let _inside = gate.reserve(Cost::of(1, 1), at(0)).unwrap();
            panic!("a caller fails");
        });
        caller.join()
    });
    assert!(outcome.is_err());
    assert!(gate.reserve(Cost::of(1, 1), at(1)).is_ok());
}

// ===== whole estimates, true costs, and a warning that comes =====

#[test]
fn settling_corrects_to_the_true_cost_in_both_directions() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Tokens, stated(1000, 500, 5000), at(0));
    let cheap = gate.reserve(Cost::of(100, 300), at(0)).unwrap();
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(100), "the estimate is of the whole request");
    cheap.settle(Cost::of(100, 50), at(0));
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(350));
    let dear = gate.reserve(Cost::of(100, 100), at(0)).unwrap();
    dear.settle(Cost::of(100, 450), at(0));
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(-200), "a debt");
    let held = gate.reserve(Cost::of(0, 0), at(0)).unwrap_err();
    let held_until_forgotten = GateDelay { until: Some(at(600_000)), reason: Limit::Tokens };
    assert_eq!(held, held_until_forgotten, "every caller waits, but not longer than news is believed");
}

#[test]
fn what_was_sent_and_dropped_keeps_its_estimate_and_frees_its_place() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    gate.learn(Limit::Tokens, stated(1000, 500, 5000), at(0));
    drop(gate.reserve(Cost::of(100, 300), at(0)).unwrap());
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(500), "never sent: all of it comes back");
    let mut failed = gate.reserve(Cost::of(100, 300), at(0)).unwrap();
    failed.sent();
    drop(failed);
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(100), "sent: it may have cost all of it");
    assert_eq!(gate.snapshot(at(0)).in_flight, 0);
    let mut cut_off = gate.reserve(Cost::of(10, 50), at(0)).unwrap();
    cut_off.sent();
    cut_off.settle(Cost::of(10, 5), at(0));
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(85), "what is known of a failed one counts");
}

#[test]
fn news_counts_what_is_on_its_way_once() {
    let gate = gate(GatePolicy::default());
    let mut answered = gate.reserve(Cost::of(10, 90), at(0)).unwrap();
    let mut on_its_way = gate.reserve(Cost::of(20, 80), at(0)).unwrap();
    answered.sent();
    on_its_way.sent();
    answered.seen();
    gate.learn(Limit::Tokens, stated(1000, 900, 5000), at(0));
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(800), "the answered one is in the nine hundred");
    answered.settle(Cost::of(10, 40), at(0));
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(800), "so it has nothing to give back");
    on_its_way.seen();
    on_its_way.settle(Cost::of(20, 30), at(0));
    assert_eq!(left(&gate, Limit::Tokens, at(0)), Some(850), "no news since: it was still ours");
}

#[test]
fn what_was_counted_in_the_last_window_gives_nothing_back_in_the_next() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Tokens, Allowance { refill: Refill::AtReset, ..stated(1000, 900, 10) }, at(0));
    let mut old = gate.reserve(Cost::of(100, 400), at(0)).unwrap();
    old.seen();
    let new = gate.reserve(Cost::of(100, 200), at(10_000)).unwrap();
    old.settle(Cost::of(100, 0), at(10_000));
    assert_eq!(left(&gate, Limit::Tokens, at(10_000)), Some(700));
    drop(new);
}

#[test]
fn a_dear_settlement_counts_from_when_it_is_reported() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Tokens, stated(100, 90, 10), at(0));
    let long = gate.reserve(Cost::of(10, 0), at(0)).unwrap();
    long.settle(Cost::of(10, 20), at(60_000));
    assert_eq!(left(&gate, Limit::Tokens, at(60_000)), Some(80), "the minute before cannot pay for it");
}

#[test]
fn output_tokens_stated_apart_are_on_their_way_until_the_end() {
    let gate = gate(GatePolicy::default());
    let mut stream = gate.reserve(Cost::of(10, 300), at(0)).unwrap();
    stream.seen();
    gate.learn(Limit::OutputTokens, stated(1000, 1000, 0), at(0));
    gate.learn(Limit::InputTokens, stated(1000, 990, 5000), at(0));
    assert_eq!(left(&gate, Limit::OutputTokens, at(0)), Some(700));
    assert_eq!(left(&gate, Limit::InputTokens, at(0)), Some(990));
    stream.settle(Cost::of(10, 200), at(0));
    assert_eq!(left(&gate, Limit::OutputTokens, at(0)), Some(800));
}

#[test]
fn the_warning_at_eighty_percent_comes_once_in_a_window() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Requests, stated(10, 9, 10), at(0));
    let spend = |count: usize, now: Moment| {
        for _ in 0..count {
            gate.reserve(Cost::of(1, 1), now).unwrap().settle(Cost::of(1, 1), now);
        }
    };
    spend(6, at(0));
    assert_eq!(gate.drain_events(), [], "seventy percent");
    spend(1, at(0));
    let warning = |used_percent| GateEvent::Nearly { limit: Limit::Requests, used_percent };
    assert_eq!(gate.drain_events(), [warning(80)]);
    spend(2, at(0));
    gate.learn(Limit::Requests, stated(10, 1, 90), at(1000));
    assert_eq!(gate.drain_events(), [], "once in a window, news or not");
    // Eighty seconds from the warning it would have been full again at the pace of then.
    gate.learn(Limit::Requests, stated(10, 1, 90), at(80_000));
    assert_eq!(gate.drain_events(), [warning(90)], "the next window warns again");
}

#[test]
fn the_warning_comes_for_headroom_news_and_dear_settlements_too() {
    let warned = |gate: &Gate| gate.drain_events().len();
    let shared = gate(GatePolicy { headroom: 0.5, ..GatePolicy::default() });
    shared.learn(Limit::Tokens, stated(1000, 600, 60), at(0));
    assert_eq!(warned(&shared), 1, "four hundred of the five hundred that we may use");
    let dear = gate(GatePolicy::default());
    dear.learn(Limit::Tokens, stated(1000, 900, 60), at(0));
    dear.reserve(Cost::of(1, 1), at(0)).unwrap().settle(Cost::of(400, 400), at(0));
    assert_eq!(warned(&dear), 1);
}

// ===== Events and the picture from outside =====

#[test]
fn events_tell_what_happened_and_are_bounded() {
    let gate = gate(GatePolicy::default());
    gate.hold(Limit::Requests, wall(10), at(0), wall(0));
    gate.hold(Limit::Requests, wall(5), at(0), wall(0));
    assert_eq!(gate.drain_events(), [GateEvent::Held { reason: Limit::Requests, until: wall(10) }]);
    let _ = gate.snapshot(at(10_000));
    assert_eq!(gate.drain_events(), [GateEvent::Opened]);
    gate.hold(Limit::Quota, wall(90), at(10_000), wall(10));
    gate.clear();
    let _ = gate.snapshot(at(10_001));
    assert_eq!(gate.drain_events().last(), Some(&GateEvent::Cleared), "a clear is not reported twice");
    for second in 0..100 {
        gate.hold(Limit::Requests, wall(100 + second), at(0), wall(0));
    }
    assert_eq!(gate.snapshot(at(0)).lost_events, 36);
    assert_eq!(gate.drain_events().len(), 64);
}

#[test]
fn the_snapshot_shows_what_there_is() {
    let gate = gate(GatePolicy { concurrency: Some(1), ..GatePolicy::default() });
    gate.learn(Limit::Tokens, stated(1000, 500, 5000), at(0));
    let _inside = gate.reserve(Cost::of(100, 0), at(0)).unwrap();
    let _waiting = wait(&gate, "a", at(0));
    let snapshot = gate.snapshot(at(0));
    assert_eq!((snapshot.in_flight, snapshot.waiting), (1, 1));
    assert_eq!(snapshot.levels, [Level { limit: Limit::Tokens, left: 400, max: Some(1000) }]);
    assert_eq!((snapshot.held_by, snapshot.opens_in), (Some(Limit::Concurrency), None));
    let json = serde_json::to_value(&snapshot).unwrap();
    assert_eq!(json["levels"][0]["limit"], "tokens");
}

#[test]
fn a_request_larger_than_the_limit_passes_when_it_is_full() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Tokens, stated(1000, 900, 10), at(0));
    let held = gate.reserve(Cost::of(5000, 0), at(0)).unwrap_err();
    assert_eq!(held.until, Some(at(10_000)));
    assert!(gate.reserve(Cost::of(5000, 0), at(10_000)).is_ok());
}

#[test]
fn time_that_seems_to_run_backwards_does_no_harm() {
    let gate = gate(GatePolicy::default());
    gate.learn(Limit::Requests, stated(10, 0, 10), at(1000));
    assert!(gate.reserve(Cost::of(1, 1), at(2000)).is_ok());
    assert!(gate.reserve(Cost::of(1, 1), at(1500)).is_ok(), "the first one was dropped and returned");
    assert_eq!(left(&gate, Limit::Requests, at(2000)), Some(1));
    gate.hold(Limit::Tokens, wall(10), at(2000), wall(0));
    let _ = gate.snapshot(at(12_000));
    assert!(
        gate.reserve(Cost::of(1, 1), at(11_999)).is_ok(),
        "what one caller saw open does not close again"
    );
}
