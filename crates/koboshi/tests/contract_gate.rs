//! What callers may rely on at a gate: admission, cancellation, clocks and edges of its settings.
//!
//! One test for each cell of the contract matrix; the names are the cells.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::gate::{
    Allowance, Cost, Entry, Gate, GateDelay, GatePolicy, Limit, MAX_QUEUE, Refill, Refusal, Tenant,
    TicketState,
};
use koboshi::time::Moment;

const ONE: Cost = Cost::of(1, 1);

fn at(millis: u64) -> Moment {
    Moment::START.after(Duration::from_millis(millis))
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn requests(limit: Option<u64>, remaining: u64, resets_in: Option<Duration>) -> Allowance {
    Allowance { limit, remaining, resets_in, refill: Refill::Steady }
}

fn tenant() -> Tenant {
    Tenant::new("a")
}

/// What is admitted is counted in the same step: no more than the places and amounts there are, from
/// any number of threads, and a refusal takes nothing.
#[test]
fn gate_admission() {
    let gate = Gate::new(
        GatePolicy::default().with(|policy| {
            policy.concurrency = Some(3);
            policy.queue = 0;
        }),
        at(0),
    );
    let inside: Vec<_> = (0..5).filter_map(|_| gate.reserve(ONE, at(0)).ok()).collect();
    assert_eq!(inside.len(), 3);
    let full = GateDelay { until: None, reason: Limit::Concurrency };
    assert_eq!(gate.reserve(ONE, at(0)).unwrap_err(), full);
    assert!(matches!(gate.enter(&tenant(), ONE, at(1000), at(0)), Entry::Refused(Refusal::Full)));
    drop(inside);
    assert_eq!(gate.snapshot(at(0)).in_flight, 0, "refusals took nothing");
    gate.hold(Limit::Quota, wall(60), at(0), wall(0));
    assert_eq!(gate.reserve(ONE, at(59_999)).unwrap_err().reason, Limit::Quota, "nothing passes a hold");
    assert!(gate.reserve(ONE, at(60_000)).is_ok());

    let gate = Gate::new(
        GatePolicy::default().with(|policy| {
            policy.concurrency = Some(1);
        }),
        at(0),
    );
    let inside = gate.reserve(ONE, at(0)).unwrap();
    let Entry::Wait(mut waiting) = gate.enter(&tenant(), ONE, at(1000), at(0)) else { panic!("it waits") };
    drop(inside);
    assert!(gate.reserve(ONE, at(1)).is_err(), "no caller overtakes a waiter");
    assert!(matches!(waiting.poll(at(1)), TicketState::In(_)));

    let gate = Arc::new(Gate::new(GatePolicy::default(), at(0)));
    gate.learn(Limit::Tokens, requests(None, 200, None), at(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || {
                let passes = (0..100).filter_map(|_| gate.reserve_owned(ONE, at(1)).ok());
                passes.map(|reservation| reservation.settle(ONE, at(1))).count()
            })
        })
        .collect();
    let passed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(passed, 100, "two tokens each");
}

/// A dropped guard gives back what it holds: unsent reservations everything, sent ones their place, tickets their turn.
#[test]
fn gate_cancellation() {
    let gate = Gate::new(
        GatePolicy::default().with(|policy| {
            policy.concurrency = Some(1);
        }),
        at(0),
    );
    gate.learn(Limit::Requests, requests(None, 2, None), at(0));
    for _ in 0..100 {
        drop(gate.reserve(ONE, at(0)).unwrap());
    }
    let mut sent = gate.reserve(ONE, at(0)).unwrap();
    sent.sent();
    let Entry::Wait(first) = gate.enter(&tenant(), ONE, at(5000), at(0)) else { panic!("it waits") };
    let Entry::Wait(mut second) = gate.enter(&tenant(), ONE, at(5000), at(0)) else { panic!("it waits") };
    drop(sent);
    assert!(matches!(second.poll(at(1)), TicketState::Wait { .. }), "not its turn");
    drop(first);
    let TicketState::In(last) = second.poll(at(2)) else { panic!("the turn was handed on") };
    last.settle(ONE, at(2));
    assert!(matches!(second.poll(at(3)), TicketState::Expired), "a ticket is good for one pass");
    assert_eq!(gate.reserve(ONE, at(3)).unwrap_err().reason, Limit::Requests, "both are used up");
    drop(second);
    let snapshot = gate.snapshot(at(3));
    assert_eq!((snapshot.in_flight, snapshot.waiting), (0, 0));
}

/// A wall clock that is set neither stretches nor cuts a hold, and no record that comes back does.
#[test]
fn gate_clock_jump() {
    for jump in [-1_000_000, -61, 61, 1_000_000] {
        let gate = Gate::new(GatePolicy::default(), at(0));
        gate.hold(Limit::Quota, wall(60), at(0), wall(0));
        let record = gate.holds();
        for millis in [0, 30_000, 59_999] {
            assert!(!gate.adopt(&record, at(millis), wall(jump)), "its own record is no news");
            assert_eq!(gate.check(at(millis)).unwrap_err().until, Some(at(60_000)), "a jump of {jump} s");
        }
        assert_eq!(gate.check(at(60_000)), Ok(()));
        gate.adopt(&record, at(60_000), wall(jump));
        assert_eq!(gate.check(at(60_000)), Ok(()), "an ended hold stays ended");
        gate.hold(Limit::Quota, wall(jump + 10), at(60_000), wall(jump));
        assert_eq!(gate.check(at(69_999)).unwrap_err().until, Some(at(70_000)), "a new one counts from now");
        assert_eq!(gate.check(at(70_000)), Ok(()));
    }
}

/// The ends of every setting work, and settings beyond them are clamped: nothing panics, nothing closes for good.
#[test]
fn gate_edge_config() {
    let base = GatePolicy::default();
    let gate = Gate::new(
        base.with(|policy| {
            policy.concurrency = Some(0);
        }),
        at(0),
    );
    assert!(gate.reserve(ONE, at(0)).is_ok(), "at least one at a time");

    let gate = Gate::new(
        base.with(|policy| {
            policy.queue = u32::MAX;
            policy.concurrency = Some(1);
        }),
        at(0),
    );
    let _inside = gate.reserve(ONE, at(0)).unwrap();
    let waiting = (0..=MAX_QUEUE).map(|_| gate.enter(&tenant(), ONE, at(5000), at(0)));
    let waiting: Vec<_> = waiting.collect();
    assert!(matches!(waiting.last(), Some(Entry::Refused(Refusal::Full))));
    assert_eq!(gate.snapshot(at(0)).waiting, usize::try_from(MAX_QUEUE).unwrap());

    let gate = Gate::new(base, at(0));
    gate.learn(Limit::Tokens, requests(Some(10), 10, Some(Duration::from_secs(10))), at(0));
    let huge = Cost::of(1_000, 1_000);
    assert!(gate.reserve(huge, at(0)).is_ok(), "larger than the whole limit passes when that is full");
    gate.reserve(ONE, at(0)).unwrap().settle(ONE, at(0));
    assert!(gate.reserve(huge, at(0)).is_err(), "and only then");

    for headroom in [f64::NAN, -1.0, 1.0, f64::INFINITY] {
        let gate = Gate::new(
            base.with(|policy| {
                policy.headroom = headroom;
            }),
            at(0),
        );
        gate.learn(Limit::Requests, requests(Some(10), 10, Some(Duration::from_secs(1))), at(0));
        assert!(gate.reserve(ONE, at(0)).is_ok(), "headroom {headroom} leaves at least one");
    }

    for length in [Duration::ZERO, Duration::MAX] {
        let policy = base.with(|policy| {
            policy.max_wait = length;
            policy.stagger = length;
            policy.forget_after = length;
            policy.concurrency = Some(1);
        });
        let gate = Gate::new(policy, at(0));
        gate.learn(Limit::Requests, requests(Some(0), 0, Some(length)), at(0));
        gate.hold(Limit::Requests, Timestamp::MAX, at(0), wall(0));
        gate.clear();
        let inside = gate.reserve(ONE, at(0)).unwrap();
        let Entry::Wait(mut ticket) = gate.enter(&tenant(), ONE, at(9), at(0)) else { panic!("it waits") };
        drop(inside);
        assert!(matches!(ticket.poll(at(0)), TicketState::In(_)), "the first after a clear is not paced");
    }

    let gate = Gate::new(base, Moment::from_nanos(u64::MAX));
    gate.hold(Limit::Requests, wall(60), Moment::from_nanos(u64::MAX), wall(0));
    gate.learn(
        Limit::Requests,
        requests(Some(u64::MAX), 0, Some(Duration::MAX)),
        Moment::from_nanos(u64::MAX),
    );
    let _ = gate.reserve(Cost { requests: u64::MAX, ..ONE }, Moment::from_nanos(u64::MAX));
    let _ = gate.snapshot(Moment::from_nanos(u64::MAX));
}
