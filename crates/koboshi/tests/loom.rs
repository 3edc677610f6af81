//! The concurrent parts under every order of steps that the memory model allows.
//!
//! Runs only with `--cfg koboshi_loom` (see `scripts/test`): loom then stands in for the locks and atomics.
#![cfg(koboshi_loom)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use koboshi::breaker::{Breaker, BreakerPolicy, ForcedMode, Mode};
use koboshi::budget::{RetryShare, SharePolicy};
use koboshi::chance::Seed;
use koboshi::gate::{Allowance, Cost, Gate, GatePolicy, Limit, Refill};
use koboshi::time::Moment;
use loom::thread;

const OPEN: Duration = Duration::from_secs(5);

fn at(seconds: u64) -> Moment {
    Moment::START.after(Duration::from_secs(seconds))
}

fn breaker(consecutive: u32, successes: u32) -> Breaker {
    let policy = BreakerPolicy::WINDOW.with(|policy| {
        policy.consecutive = Some(consecutive);
        policy.open = BreakerPolicy::BOTH.open.with(|policy| {
            policy.first = OPEN;
            policy.growth = 1.0;
            policy.cap = OPEN;
            policy.jitter = 0.0;
        });
        policy.probe = BreakerPolicy::WINDOW.probe.with(|policy| {
            policy.permits = 1;
            policy.successes = successes;
        });
    });
    Breaker::new(policy, Seed::new(1), at(0)).unwrap()
}

#[test]
fn two_failures_at_the_same_time_are_two() {
    loom::model(|| {
        let breaker = Arc::new(breaker(2, 1));
        let other = Arc::clone(&breaker);
        let thread = thread::spawn(move || other.admit(at(0)).unwrap().fail(at(0)));
        // The other thread may have opened nothing yet: one failure is not enough.
        breaker.admit(at(0)).unwrap().fail(at(0));
        thread.join().unwrap();
        assert_eq!(breaker.mode(), Mode::Open);
    });
}

#[test]
fn a_success_and_a_failure_never_lose_each_other() {
    loom::model(|| {
        let breaker = Arc::new(breaker(2, 1));
        breaker.admit(at(0)).unwrap().fail(at(0));
        let other = Arc::clone(&breaker);
        let thread = thread::spawn(move || {
            if let Ok(permit) = other.admit(at(0)) {
                permit.succeed(at(0));
            }
        });
        if let Ok(permit) = breaker.admit(at(0)) {
            permit.fail(at(0));
        }
        thread.join().unwrap();
        // failure, failure, success opens; failure, success, failure does not. Nothing else can have happened.
        match breaker.mode() {
            Mode::Open => assert!(breaker.admit(at(1)).is_err()),
            Mode::Closed => {
                breaker.admit(at(1)).unwrap().fail(at(1));
                assert_eq!(breaker.mode(), Mode::Open, "one of the two failures still counted");
            }
            mode => panic!("{mode:?}"),
        }
    });
}

#[test]
fn one_probe_at_a_time_and_none_is_lost() {
    loom::model(|| {
        let breaker = Arc::new(breaker(1, 1));
        breaker.admit(at(0)).unwrap().fail(at(0));
        let ask = |breaker: &Breaker| breaker.admit(at(5)).map(|permit| assert!(permit.is_probe())).is_ok();
        let other = Arc::clone(&breaker);
        let thread = thread::spawn(move || ask(&other));
        let here = ask(&breaker);
        let there = thread.join().unwrap();
        assert!(here || there, "one of them was let through");
        assert!(breaker.admit(at(5)).unwrap().is_probe(), "and the permit came back");
    });
}

#[test]
fn a_late_failure_never_counts_into_the_next_generation() {
    loom::model(|| {
        let breaker = Arc::new(breaker(1, 1));
        let early = breaker.admit_owned(at(0)).unwrap();
        let thread = thread::spawn(move || early.fail(at(0)));
        // One of the two opens it, the other is late: before the opening, while open, or after the closing.
        if let Ok(permit) = breaker.admit(at(0)) {
            permit.fail(at(0));
        }
        breaker.admit(at(5)).unwrap().succeed(at(5));
        thread.join().unwrap();
        assert_eq!(breaker.mode(), Mode::Closed);
    });
}

#[test]
fn a_hint_and_a_success_leave_a_closed_breaker_that_works() {
    loom::model(|| {
        let breaker = Arc::new(breaker(2, 1));
        let remote = {
            let opened = self::breaker(1, 1);
            opened.admit(at(0)).unwrap().fail(at(0));
            opened.snapshot(at(0), jiff::Timestamp::UNIX_EPOCH)
        };
        let other = Arc::clone(&breaker);
        let thread = thread::spawn(move || other.hint(&remote));
        breaker.admit(at(0)).unwrap().succeed(at(0));
        thread.join().unwrap();
        assert_eq!(breaker.mode(), Mode::Closed);
        // With the hint one failure opens it, without it two: nothing else.
        breaker.admit(at(0)).unwrap().fail(at(0));
        if breaker.mode() == Mode::Closed {
            breaker.admit(at(0)).unwrap().fail(at(0));
        }
        assert_eq!(breaker.mode(), Mode::Open);
    });
}

#[test]
fn an_operator_and_a_failure_never_fight() {
    loom::model(|| {
        let breaker = Arc::new(breaker(1, 1));
        let other = Arc::clone(&breaker);
        let thread = thread::spawn(move || {
            if let Ok(permit) = other.admit(at(0)) {
                permit.fail(at(0));
            }
        });
        breaker.force(ForcedMode::Closed, at(0));
        thread.join().unwrap();
        assert_eq!(breaker.mode(), Mode::ForcedClosed);
        breaker.release(at(0));
        // The failure came before the force (void) or under it (counted, so that it opens now).
        if breaker.mode() == Mode::Closed {
            breaker.admit(at(0)).unwrap().fail(at(0));
        }
        assert_eq!(breaker.mode(), Mode::Open);
    });
}

#[test]
fn the_last_retry_is_paid_once() {
    loom::model(|| {
        let share = Arc::new(RetryShare::new(
            SharePolicy::default().with(|policy| {
                policy.share = 0.0;
                policy.per_second = 0.0;
            }),
            at(0),
        ));
        let other = Arc::clone(&share);
        let thread = thread::spawn(move || other.withdraw(at(0)));
        let here = share.withdraw(at(0));
        let there = thread.join().unwrap();
        assert!(here ^ there, "one of the two, and not both");
    });
}

#[test]
fn a_retry_that_is_put_back_is_not_lost() {
    loom::model(|| {
        let share = Arc::new(RetryShare::new(
            SharePolicy::default().with(|policy| {
                policy.share = 0.0;
                policy.per_second = 0.0;
            }),
            at(0),
        ));
        assert!(share.withdraw(at(0)));
        let other = Arc::clone(&share);
        let thread = thread::spawn(move || other.refund());
        let here = share.withdraw(at(0));
        thread.join().unwrap();
        assert!(here ^ share.withdraw(at(0)));
    });
}

fn gate_with_one_left() -> Gate {
    let gate = Gate::new(GatePolicy::default(), at(0));
    let allowance = Allowance {
        limit: Some(10),
        remaining: 1,
        resets_in: Some(Duration::from_secs(60)),
        refill: Refill::AtReset,
    };
    gate.learn(Limit::Requests, allowance, at(0));
    gate
}

#[test]
fn the_last_place_is_given_once() {
    loom::model(|| {
        let gate = Arc::new(gate_with_one_left());
        let other = Arc::clone(&gate);
        let pass = |gate: &Gate| match gate.reserve(Cost::of(0, 0), at(0)) {
            Ok(mut reservation) => {
                reservation.sent();
                true
            }
            Err(_) => false,
        };
        let thread = thread::spawn(move || pass(&other));
        let here = pass(&gate);
        let there = thread.join().unwrap();
        assert!(here ^ there);
        assert!(gate.check(at(0)).is_err(), "and both threads see that none is left");
    });
}

#[test]
fn a_place_that_is_given_back_is_there_for_the_next() {
    loom::model(|| {
        let gate = Arc::new(gate_with_one_left());
        let reservation = gate.reserve_owned(Cost::of(0, 0), at(0)).unwrap();
        let thread = thread::spawn(move || drop(reservation));
        let here = gate.reserve(Cost::of(0, 0), at(0)).is_ok();
        thread.join().unwrap();
        assert!(here || gate.reserve(Cost::of(0, 0), at(0)).is_ok());
    });
}
