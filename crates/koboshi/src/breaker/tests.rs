//! Promises of the breaker, one by one. The whole against a naive model: `tests/model_breaker.rs`.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::fault::{Fault, Kind};

fn at(seconds: f64) -> Moment {
    Moment::START.after(Duration::from_secs_f64(seconds))
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Without chance, so that times can be named.
fn breaker(policy: BreakerPolicy) -> Breaker {
    let policy = BreakerPolicy { open: OpenPolicy { jitter: 0.0, ..policy.open }, ..policy };
    Breaker::new(policy, Seed::new(1), at(0.0)).unwrap()
}

fn consecutive() -> Breaker {
    breaker(BreakerPolicy::CONSECUTIVE)
}

fn fail(breaker: &Breaker, times: u32, now: Moment) {
    for _ in 0..times {
        breaker.admit(now).unwrap().fail(now);
    }
}

fn opened() -> Breaker {
    let breaker = consecutive();
    fail(&breaker, 5, at(0.0));
    assert_eq!(breaker.mode(), Mode::Open);
    breaker
}

#[test]
fn a_success_in_between_restarts_the_count() {
    let breaker = consecutive();
    fail(&breaker, 4, at(0.0));
    breaker.admit(at(0.0)).unwrap().succeed(at(0.0));
    fail(&breaker, 4, at(0.0));
    assert_eq!(breaker.mode(), Mode::Closed);
    fail(&breaker, 1, at(0.0));
    assert_eq!(breaker.mode(), Mode::Open);
}

#[test]
fn the_window_of_the_assistant_design_opens_at_half_of_at_least_five() {
    let breaker = breaker(BreakerPolicy::WINDOW);
    fail(&breaker, 4, at(0.0));
    assert_eq!(breaker.mode(), Mode::Closed, "four calls conclude nothing");
    breaker.admit(at(0.0)).unwrap().succeed(at(0.0));
    assert_eq!(breaker.mode(), Mode::Open, "four of five failed");
}

#[test]
fn ten_failing_calls_block_the_next_one() {
    let breaker = breaker(BreakerPolicy::WINDOW);
    let sent = (0..10).filter(|_| breaker.admit(at(0.0)).map(|permit| permit.fail(at(0.0))).is_ok()).count();
    assert_eq!(sent, 5);
    assert!(breaker.admit(at(29.9)).is_err());
    assert!(breaker.admit(at(30.0)).is_ok());
}

#[test]
fn only_faults_of_health_count() {
    let breaker = consecutive();
    for kind in [Kind::InvalidRequest, Kind::ContentFiltered, Kind::RateLimited, Kind::ContextTooLarge] {
        for _ in 0..10 {
            let fault = Fault::of(kind, "test");
            breaker.admit(at(0.0)).unwrap().record(Outcome::of(&fault), at(0.0));
        }
    }
    assert_eq!(breaker.mode(), Mode::Closed, "one user's bad prompts must not open it for all");
    assert_eq!(Outcome::of(&Fault::of(Kind::Unavailable, "test")), Outcome::Failure);
    assert_eq!(Outcome::of_result::<()>(&Ok(())), Outcome::Success);
}

#[test]
fn probes_are_few_and_one_success_is_not_enough() {
    let breaker = opened();
    let first = breaker.admit(at(30.0)).unwrap();
    assert!(first.is_probe());
    let refused = breaker.admit(at(30.0)).unwrap_err();
    assert_eq!(refused.mode, Mode::Probing);
    first.succeed(at(31.0));
    assert_eq!(breaker.mode(), Mode::Probing);
    breaker.admit(at(31.0)).unwrap().succeed(at(31.0));
    assert_eq!(breaker.mode(), Mode::Closed);
}

#[test]
fn a_failed_probe_reopens_for_longer_up_to_the_cap() {
    let policy = BreakerPolicy {
        open: OpenPolicy {
            first: Duration::from_secs(5),
            growth: 2.0,
            cap: Duration::from_secs(30),
            jitter: 0.0,
        },
        ..BreakerPolicy::CONSECUTIVE
    };
    let breaker = breaker(policy);
    fail(&breaker, 5, at(0.0));
    let mut now = 0.0;
    // The first failures came at once; those of the probes take longer than a second, and the second of them is the first that grows.
    for length in [5.0, 5.0, 10.0, 20.0, 30.0, 30.0] {
        assert!(breaker.admit(at(now + length - 0.1)).is_err());
        now += length;
        let probe = breaker.admit(at(now)).unwrap();
        now += 1.1;
        probe.fail(at(now));
    }
}

#[test]
fn a_target_that_fails_quickly_is_probed_at_the_first_pace_and_a_silent_one_ever_more_seldom() {
    let breaker = breaker(BreakerPolicy::BOTH);
    fail(&breaker, 5, at(0.0));
    assert!(!breaker.probe_is_dear());
    let mut now = 0.0;
    for (took, next, dear) in
        [(0.2, 5.0, false), (0.2, 5.0, false), (30.0, 5.0, true), (30.0, 10.0, true), (0.2, 5.0, false)]
    {
        now += 5.0;
        let probe = (0..60).find_map(|step| {
            let at = at(now + f64::from(step));
            breaker.admit(at).ok().map(|probe| (probe, now + f64::from(step)))
        });
        let (probe, sent) = probe.unwrap();
        now = sent + took;
        probe.fail(at(now));
        let wait = breaker.admit(at(now)).unwrap_err().wait(at(now)).unwrap();
        assert_eq!((wait.as_secs_f64().round(), breaker.probe_is_dear()), (next, dear));
    }
    let probe = breaker.admit(at(now + 5.0)).unwrap();
    probe.succeed(at(now + 5.5));
    assert!(!breaker.probe_is_dear(), "it has just answered");
}

#[test]
fn a_breaker_that_opened_because_the_target_could_not_be_reached_is_no_hint() {
    let far = breaker(BreakerPolicy::BOTH);
    for _ in 0..5 {
        let fault = Fault::of(Kind::ConnectionFailed, "test");
        far.admit(at(0.0)).unwrap().record(Outcome::of(&fault), at(0.0));
    }
    let seen = far.snapshot(at(1.0), wall(1));
    assert!(seen.mode == Mode::Open && seen.is_local);
    let here = consecutive();
    here.hint(&seen);
    fail(&here, 1, at(1.0));
    assert_eq!(here.mode(), Mode::Closed);
    here.hint(&BreakerSnapshot { is_local: false, ..seen });
    fail(&here, 1, at(1.0));
    assert_eq!(here.mode(), Mode::Open);
}

#[test]
fn chance_only_shortens_the_open_time() {
    for seed in 0..200 {
        let breaker = Breaker::new(BreakerPolicy::BOTH, Seed::new(seed), at(0.0)).unwrap();
        fail(&breaker, 5, at(0.0));
        let wait = breaker.admit(at(0.0)).unwrap_err().wait(at(0.0)).unwrap().as_secs_f64();
        assert!((4.5..=5.0).contains(&wait), "{wait}");
    }
}

#[test]
fn a_rate_limit_on_a_probe_neither_closes_nor_reopens() {
    let breaker = opened();
    let fault = Fault::of(Kind::RateLimited, "test");
    breaker.admit(at(30.0)).unwrap().record(Outcome::of(&fault), at(30.0));
    assert_eq!(breaker.mode(), Mode::Probing);
    assert!(breaker.admit(at(30.0)).is_ok(), "and its permit is back");
}

#[test]
fn a_cancelled_or_panicking_probe_gives_its_permit_back() {
    let breaker = opened();
    drop(breaker.admit(at(30.0)).unwrap());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _permit = breaker.admit(at(30.0)).unwrap();
        panic!("the call went wrong");
    }));
    assert!(panicked.is_err());
    assert!(breaker.admit(at(30.0)).is_ok());
}

#[test]
fn probes_that_never_come_back_keep_others_out_for_a_while_only() {
    let breaker = opened();
    std::mem::forget(breaker.admit(at(30.0)).unwrap());
    assert!(!breaker.would_admit(at(59.9)) && breaker.would_admit(at(60.0)));
    let refused = breaker.admit(at(59.9)).unwrap_err();
    assert_eq!((refused.mode, refused.until), (Mode::Probing, Some(at(60.0))));
    breaker.admit(at(60.0)).expect("a lost permit blocks no other call").succeed(at(61.0));
}

#[test]
fn good_answers_that_take_longer_than_a_probe_may_close_it_all_the_same() {
    let breaker = opened();
    let long: Vec<_> = (0..2).map(|n| breaker.admit(at(30.0 + 30.0 * f64::from(n))).unwrap()).collect();
    for (permit, now) in long.into_iter().zip([80.0, 110.0]) {
        permit.succeed(at(now));
    }
    assert_eq!(breaker.mode(), Mode::Closed);
}

#[test]
fn what_happened_while_it_was_forced_closed_counts_when_it_is_let_go() {
    let breaker = consecutive();
    breaker.force(ForcedMode::Closed, at(0.0));
    fail(&breaker, 10, at(0.0));
    assert_eq!(breaker.mode(), Mode::ForcedClosed);
    breaker.release(at(1.0));
    assert_eq!(breaker.mode(), Mode::Open, "at once: it was bad all the time");
}

#[test]
fn a_breaker_that_is_reset_is_closed_at_once_and_counts_from_the_beginning() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let breaker =
        consecutive().watched(move |change| listener.lock().unwrap().push((change.from, change.to)));
    fail(&breaker, 5, at(0.0));
    breaker.reset(at(1.0));
    breaker.force(ForcedMode::Open, at(2.0));
    breaker.reset(at(3.0));
    fail(&breaker, 4, at(4.0));
    breaker.reset(at(5.0));
    fail(&breaker, 4, at(6.0));
    assert_eq!(breaker.mode(), Mode::Closed, "what was counted before counts no more");
    assert_eq!(
        *heard.lock().unwrap(),
        [
            (Mode::Closed, Mode::Open),
            (Mode::Open, Mode::Closed),
            (Mode::Closed, Mode::ForcedOpen),
            (Mode::ForcedOpen, Mode::Closed),
            (Mode::Closed, Mode::Closed),
        ]
    );
}

#[test]
fn a_restored_mode_is_reported_as_restored() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let after = consecutive().watched(move |transition| {
        listener.lock().unwrap().push((transition.from, transition.to, transition.why, transition.until));
    });
    let forced = consecutive();
    forced.force(ForcedMode::Open, at(0.0));
    after.restore(&forced.snapshot(at(1.0), wall(1)), at(2.0), wall(2));
    after.restore(&opened().snapshot(at(0.0), wall(0)), at(3.0), wall(0));
    assert_eq!(
        *heard.lock().unwrap(),
        [
            (Mode::Closed, Mode::ForcedOpen, Why::Restored, None),
            (Mode::ForcedOpen, Mode::Open, Why::Restored, Some(at(33.0))),
        ]
    );
}

#[test]
fn late_results_of_an_earlier_generation_are_ignored() {
    let breaker = consecutive();
    let early_failure = breaker.admit(at(0.0)).unwrap();
    let early_success = breaker.admit(at(0.0)).unwrap();
    fail(&breaker, 5, at(1.0));
    let until = breaker.admit(at(2.0)).unwrap_err().until;
    early_failure.fail(at(2.0));
    early_success.succeed(at(2.0));
    assert_eq!(breaker.mode(), Mode::Open, "a late success does not close it");
    assert_eq!(breaker.admit(at(2.0)).unwrap_err().until, until, "a late failure does not move the end");
}

#[test]
fn a_late_result_does_not_count_after_the_breaker_closed_again() {
    let breaker = consecutive();
    let late: Vec<_> = (0..5).map(|_| breaker.admit(at(0.0)).unwrap()).collect();
    fail(&breaker, 5, at(0.0));
    for _ in 0..2 {
        breaker.admit(at(30.0)).unwrap().succeed(at(30.0));
    }
    for permit in late {
        permit.fail(at(31.0));
    }
    assert_eq!(breaker.mode(), Mode::Closed);
}

#[test]
fn the_last_target_is_asked_at_a_pace() {
    let breaker = opened();
    assert!(breaker.admit_last(at(0.5)).is_err(), "it has just failed");
    let permit = breaker.admit_last(at(1.0)).unwrap();
    let refused = breaker.admit_last(at(1.1)).unwrap_err();
    assert_eq!(refused.until, Some(at(2.0)));
    assert!(breaker.admit(at(1.0)).is_err(), "who has another target is refused all the same");
    permit.fail(at(1.5));
    assert_eq!(breaker.mode(), Mode::Open);
    breaker.admit_last(at(2.0)).unwrap().succeed(at(2.5));
    assert_eq!(breaker.mode(), Mode::Probing, "an answer starts the probing early");
    breaker.admit(at(2.5)).unwrap().succeed(at(3.0));
    assert_eq!(breaker.mode(), Mode::Closed);
}

#[test]
fn the_last_target_rule_can_be_switched_off_and_never_beats_an_operator() {
    let mut policy = BreakerPolicy::CONSECUTIVE;
    policy.probe.last_target_every = None;
    let switched_off = breaker(policy);
    fail(&switched_off, 5, at(0.0));
    assert!(switched_off.admit_last(at(29.0)).is_err());
    let forced = consecutive();
    forced.force(ForcedMode::Open, at(0.0));
    let refused = forced.admit_last(at(1e6)).unwrap_err();
    assert_eq!((refused.mode, refused.until), (Mode::ForcedOpen, None));
}

#[test]
fn operators_force_it_and_let_it_go() {
    let breaker = opened();
    breaker.force(ForcedMode::Closed, at(1.0));
    fail(&breaker, 20, at(1.0));
    assert_eq!(breaker.mode(), Mode::ForcedClosed, "it counts but does not open");
    breaker.force(ForcedMode::Disabled, at(2.0));
    fail(&breaker, 20, at(2.0));
    assert_eq!(breaker.mode(), Mode::Disabled);
    breaker.release(at(3.0));
    assert_eq!(breaker.mode(), Mode::Closed);
    breaker.force(ForcedMode::Open, at(4.0));
    assert!(breaker.admit(at(1e9)).is_err());
    breaker.release(at(5.0));
    assert!(breaker.admit(at(5.0)).is_ok());
}

#[test]
fn slow_calls_open_it_where_they_matter() {
    let slow = SlowPolicy { longer_than: Duration::from_secs(10), rate: 0.5 };
    let window = WindowPolicy { slow: Some(slow), ..BreakerPolicy::WINDOW.window.unwrap() };
    let breaker = breaker(BreakerPolicy { window: Some(window), ..BreakerPolicy::WINDOW });
    for _ in 0..2 {
        breaker.admit(at(0.0)).unwrap().succeed(at(1.0));
    }
    for _ in 0..3 {
        breaker.admit(at(0.0)).unwrap().succeed(at(11.0));
    }
    assert_eq!(breaker.mode(), Mode::Open);
    breaker.admit(at(41.0)).unwrap().succeed(at(60.0));
    assert_eq!(breaker.mode(), Mode::Open, "a slow probe is no recovery");
}

#[test]
fn large_and_timed_windows_open_too() {
    let calls = WindowPolicy { span: Span::Calls(100), min_calls: 50, failure_rate: 0.5, slow: None };
    let large = breaker(BreakerPolicy { window: Some(calls), ..BreakerPolicy::WINDOW });
    fail(&large, 49, at(0.0));
    assert_eq!(large.mode(), Mode::Closed);
    fail(&large, 1, at(0.0));
    assert_eq!(large.mode(), Mode::Open);
    let time = WindowPolicy { span: Span::Time(Duration::from_secs(60)), ..calls };
    let timed = breaker(BreakerPolicy {
        window: Some(WindowPolicy { min_calls: 5, ..time }),
        ..BreakerPolicy::WINDOW
    });
    fail(&timed, 4, at(0.0));
    fail(&timed, 4, at(100.0));
    assert_eq!(timed.mode(), Mode::Closed, "the first four are too old");
    fail(&timed, 1, at(101.0));
    assert_eq!(timed.mode(), Mode::Open);
}

#[test]
fn another_nodes_opening_is_only_a_hint() {
    let remote = opened().snapshot(at(1.0), wall(1000));
    for policy in [
        BreakerPolicy::CONSECUTIVE,
        BreakerPolicy::WINDOW,
        BreakerPolicy {
            window: Some(WindowPolicy { span: Span::Calls(100), ..BreakerPolicy::WINDOW.window.unwrap() }),
            ..BreakerPolicy::WINDOW
        },
    ] {
        let here = breaker(policy);
        here.hint(&remote);
        assert!(here.admit(at(0.0)).is_ok(), "it goes on working");
        here.admit(at(0.0)).unwrap().succeed(at(0.0));
        fail(&here, 1, at(0.0));
        assert_eq!(here.mode(), Mode::Closed, "a success dispelled the hint");
        here.hint(&remote);
        fail(&here, 1, at(0.0));
        assert_eq!(here.mode(), Mode::Open, "with the hint one failure is enough");
    }
}

#[test]
fn a_restart_takes_the_open_time_over_but_never_more_than_the_cap() {
    let snapshot = opened().snapshot(at(10.0), wall(1010));
    assert_eq!((snapshot.mode, snapshot.until), (Mode::Open, Some(wall(1030))));
    assert_eq!(snapshot.since, wall(1000));
    let restarted = consecutive();
    restarted.restore(&snapshot, at(500.0), wall(1015));
    assert_eq!(restarted.snapshot(at(501.0), wall(1016)).since, wall(1000), "and since when it is open");
    assert_eq!(restarted.admit(at(500.0)).unwrap_err().wait(at(500.0)), Some(Duration::from_secs(15)));
    let clock_went_back = consecutive();
    clock_went_back.restore(&snapshot, at(500.0), wall(0));
    assert_eq!(clock_went_back.admit(at(500.0)).unwrap_err().wait(at(500.0)), Some(Duration::from_secs(30)));
    let clock_went_on = consecutive();
    clock_went_on.restore(&snapshot, at(500.0), wall(9999));
    assert!(clock_went_on.admit(at(500.0)).unwrap().is_probe());
}

#[test]
fn a_forced_mode_survives_a_restart() {
    for (forced, mode) in [
        (ForcedMode::Open, Mode::ForcedOpen),
        (ForcedMode::Closed, Mode::ForcedClosed),
        (ForcedMode::Disabled, Mode::Disabled),
    ] {
        let before = consecutive();
        before.force(forced, at(0.0));
        let after = consecutive();
        after.restore(&before.snapshot(at(1.0), wall(1)), at(2.0), wall(2));
        assert_eq!(after.mode(), mode);
    }
}

#[test]
fn every_change_is_reported_in_order_and_a_panicking_watcher_breaks_nothing() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let breaker = consecutive().watched(move |transition| {
        listener.lock().unwrap().push((
            transition.generation,
            transition.from,
            transition.to,
            transition.why.name(),
        ));
        assert!(transition.to != Mode::Probing, "a watcher that panics");
    });
    fail(&breaker, 5, at(0.0));
    for _ in 0..2 {
        breaker.admit(at(30.0)).unwrap().succeed(at(30.0));
    }
    breaker.force(ForcedMode::Open, at(31.0));
    breaker.release(at(32.0));
    let heard = heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert_eq!(
        *heard,
        [
            (1, Mode::Closed, Mode::Open, "consecutive"),
            (2, Mode::Open, Mode::Probing, "wait_over"),
            (3, Mode::Probing, Mode::Closed, "probes_succeeded"),
            (4, Mode::Closed, Mode::ForcedOpen, "forced"),
            (5, Mode::ForcedOpen, Mode::Closed, "released"),
        ]
    );
}

#[test]
fn a_shared_permit_moves_to_another_thread() {
    let breaker = Arc::new(consecutive());
    let permit = breaker.admit_owned(at(0.0)).unwrap();
    std::thread::spawn(move || permit.fail(at(1.0))).join().unwrap();
    fail(&breaker, 4, at(1.0));
    assert_eq!(breaker.mode(), Mode::Open);
}

/// A record that moves with the clock would be written again and again, and its end would never be over.
#[test]
fn a_snapshot_names_the_same_end_before_and_after_it() {
    let breaker = opened();
    let end = breaker.snapshot(at(10.0), wall(1010)).until;
    let after = breaker.snapshot(at(500.0), wall(1500));
    assert_eq!((after.until, after.mode_at(wall(1500))), (end, Mode::Probing));
}

#[test]
fn a_snapshot_says_why_and_the_transition_shows_the_same_one() {
    let heard: Arc<Mutex<Vec<Transition>>> = Arc::default();
    let listener = Arc::clone(&heard);
    let breaker = consecutive().watched(move |change| listener.lock().unwrap().push(*change));
    assert_eq!(breaker.snapshot(at(0.0), wall(0)).why, None);
    fail(&breaker, 5, at(0.0));
    let snapshot = breaker.snapshot(at(0.0), wall(0));
    assert_eq!(snapshot.why, Some(Why::Consecutive { failures: 5 }));
    assert_eq!(heard.lock().unwrap()[0].snapshot(at(0.0), wall(0)), snapshot);
    let listener = Arc::clone(&heard);
    let restored = consecutive().watched(move |change| listener.lock().unwrap().push(*change));
    restored.restore(&snapshot, at(90.0), wall(9));
    let after = restored.snapshot(at(90.0), wall(9));
    assert_eq!((after.why, after.since), (snapshot.why, snapshot.since), "a restart changes neither");
    assert_eq!(heard.lock().unwrap()[1].snapshot(at(90.0), wall(9)), after);
    let newer = serde_json::to_string(&snapshot).unwrap().replace("consecutive", "moon_phase");
    let read: BreakerSnapshot = serde_json::from_str(&newer).unwrap();
    assert_eq!((read.mode, read.why), (Mode::Open, None), "a reason that only a newer program knows");
}
