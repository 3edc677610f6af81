//! The concurrent parts under every order of steps that the memory model allows.
//!
//! Runs only with `--cfg koboshi_loom` (see `scripts/test`): loom then stands in for the locks and atomics.
#![cfg(koboshi_loom)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use koboshi::breaker::{Breaker, BreakerPolicy, Mode, OpenPolicy, ProbePolicy};
use koboshi::chance::Seed;
use koboshi::time::Moment;
use loom::thread;

const OPEN: Duration = Duration::from_secs(5);

fn at(seconds: u64) -> Moment {
    Moment::START.after(Duration::from_secs(seconds))
}

fn breaker(consecutive: u32, successes: u32) -> Breaker {
    let policy = BreakerPolicy {
        consecutive: Some(consecutive),
        open: OpenPolicy { first: OPEN, growth: 1.0, cap: OPEN, jitter: 0.0 },
        probe: ProbePolicy { permits: 1, successes, ..BreakerPolicy::WINDOW.probe },
        ..BreakerPolicy::WINDOW
    };
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
        assert!(here || there, "somebody was let through");
        assert!(breaker.admit(at(5)).unwrap().is_probe(), "and the permit came back");
    });
}

#[test]
fn a_late_failure_never_counts_into_the_next_generation() {
    loom::model(|| {
        let breaker = Arc::new(breaker(1, 1));
        let early = breaker.admit_shared(false, at(0)).unwrap();
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
