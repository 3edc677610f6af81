//! The contract matrix (`docs/contracts.md`), one test per cell. The gate's cells are in `contract_gate.rs`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::time::Duration;

use jiff::Timestamp;
use koboshi::backoff::{BackoffPolicy, Jitter};
use koboshi::breaker::{Breaker, BreakerPolicy, Mode};
use koboshi::budget::{RetryShare, SharePolicy};
use koboshi::call::{Call, End, Next};
use koboshi::chance::Seed;
use koboshi::cooldown::{Class, CooldownPolicy, Cooldowns, Failure, Standing, StartRefusalReason};
use koboshi::fault::{Fault, Kind};
use koboshi::key::ScopeKey;
use koboshi::remedy::RemedyPolicy;
use koboshi::time::Moment;

const SEED: Seed = Seed::new(1);
const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Moment {
    Moment::START.after(Duration::from_secs(seconds))
}

fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

// ===== backoff =====

#[test]
fn backoff_admission() {
    for attempts in 1..10 {
        let policy = BackoffPolicy::SERVICE.with(|policy| {
            policy.attempts = attempts;
        });
        assert_eq!(
            policy.pauses(SEED).count(),
            attempts as usize - 1,
            "no pause without an attempt after it"
        );
    }
}

#[test]
fn backoff_cancellation() {
    let mut pauses = BackoffPolicy::NETWORK.pauses(SEED);
    let all: Vec<_> = BackoffPolicy::NETWORK.pauses(SEED).collect();
    assert_eq!(pauses.next(), Some(all[0]));
    let left_off = pauses.clone();
    assert_eq!(left_off.collect::<Vec<_>>(), all[1..], "a series holds nothing but its place");
}

#[test]
fn backoff_clock_jump() {
    let policy = BackoffPolicy::SERVICE.with(|policy| {
        policy.jitter = Jitter::None;
    });
    assert_eq!(policy.pause(3, None, None, SEED), policy.pause(3, None, None, SEED), "it knows no clock");
}

#[test]
fn backoff_edge_config() {
    let nothing = BackoffPolicy::SERVICE.with(|policy| {
        policy.first = Duration::ZERO;
        policy.cap = Duration::ZERO;
    });
    assert_eq!(nothing.validate(), Ok(()));
    assert_eq!(nothing.pause(u32::MAX, None, None, SEED), Duration::ZERO);
    let huge = BackoffPolicy::SERVICE.with(|policy| {
        policy.first = Duration::MAX;
        policy.cap = Duration::MAX;
        policy.growth = 1e300;
        policy.jitter = Jitter::None;
    });
    assert_eq!(huge.pause(u32::MAX, Some(Duration::MAX), None, SEED), Duration::MAX);
}

// ===== budget =====

#[test]
fn budget_admission() {
    let share = RetryShare::new(
        SharePolicy::default().with(|policy| {
            policy.share = 0.0;
            policy.per_second = 0.1;
        }),
        at(0),
    );
    assert!(share.withdraw(at(0)));
    assert!(!share.withdraw(at(0)), "an empty account pays nothing");
}

#[test]
fn budget_cancellation() {
    let share = RetryShare::new(
        SharePolicy::default().with(|policy| {
            policy.share = 0.0;
            policy.per_second = 0.1;
        }),
        at(0),
    );
    assert!(share.withdraw(at(0)));
    share.refund();
    assert!(share.withdraw(at(0)), "a retry that was not made is put back");
}

#[test]
fn budget_clock_jump() {
    let share = RetryShare::new(
        SharePolicy::default().with(|policy| {
            policy.share = 0.0;
            policy.per_second = 1.0;
        }),
        at(100),
    );
    while share.withdraw(at(100)) {}
    assert!(!share.withdraw(at(0)), "a moment before the last earns nothing");
    assert_eq!(share.left(at(1_000_000_000)), 10, "and a far one earns ten seconds' worth");
}

#[test]
fn budget_edge_config() {
    let none = RetryShare::new(
        SharePolicy::default().with(|policy| {
            policy.share = 0.0;
            policy.per_second = 0.0;
        }),
        at(0),
    );
    assert!(none.withdraw(at(0)), "the account begins with one");
    assert!(!none.withdraw(at(1_000_000)), "and never earns another");
}

// ===== breaker =====

fn opened(policy: BreakerPolicy) -> Breaker {
    let breaker = Breaker::new(policy, SEED, at(0)).unwrap();
    for _ in 0..5 {
        breaker.admit(at(0)).unwrap().fail(at(0));
    }
    assert_eq!(breaker.mode(), Mode::Open);
    breaker
}

#[test]
fn breaker_admission() {
    let breaker = opened(BreakerPolicy::WINDOW);
    assert!(breaker.admit(at(29)).is_err());
    let probes: Vec<_> = (0..10).filter_map(|_| breaker.admit(at(30)).ok()).collect();
    assert_eq!(probes.len(), 3, "as many probes as permits");
}

#[test]
fn breaker_cancellation() {
    let breaker = opened(BreakerPolicy::CONSECUTIVE);
    for _ in 0..100 {
        drop(breaker.admit(at(30)).unwrap());
    }
    assert_eq!(breaker.mode(), Mode::Probing, "cancelled probes neither close nor reopen, and none is lost");
}

#[test]
fn breaker_clock_jump() {
    let breaker = opened(BreakerPolicy::CONSECUTIVE);
    assert!(breaker.admit(at(0)).is_err(), "a thread that lags behind is refused, not confused");
    let permit = breaker.admit(at(40)).unwrap();
    permit.succeed(at(1));
    assert_eq!(breaker.mode(), Mode::Probing, "an end before its beginning took no time");
    let restored = Breaker::new(BreakerPolicy::CONSECUTIVE, SEED, at(0)).unwrap();
    restored.restore(&opened(BreakerPolicy::CONSECUTIVE).snapshot(at(0), wall(1_000_000)), at(0), wall(0));
    assert!(restored.admit(at(30)).is_ok(), "a wall clock that was set back does not keep it open");
}

#[test]
fn breaker_edge_config() {
    let touchy = BreakerPolicy::BOTH.with(|policy| {
        policy.consecutive = Some(1);
        policy.window = None;
        policy.open = BreakerPolicy::BOTH.open.with(|policy| {
            policy.first = Duration::from_nanos(1);
            policy.growth = 1e300;
            policy.cap = Duration::from_nanos(2);
            policy.jitter = 0.0;
        });
        policy.probe = BreakerPolicy::BOTH.probe.with(|policy| {
            policy.permits = 1;
            policy.successes = 1;
            policy.timeout = Duration::from_nanos(1);
            policy.last_target_every = None;
        });
    });
    let breaker = Breaker::new(touchy, SEED, at(0)).unwrap();
    for second in 0..100 {
        breaker.admit(at(second)).unwrap().fail(at(second));
        assert_eq!(breaker.mode(), Mode::Open);
    }
    breaker.admit(at(200)).unwrap().succeed(at(200));
    assert_eq!(breaker.mode(), Mode::Closed);
    let never = touchy.with(|policy| {
        policy.consecutive = None;
        policy.window = None;
    });
    assert!(Breaker::new(never, SEED, at(0)).is_err(), "a policy that could never open is refused");
}

// ===== cooldown =====

fn account() -> ScopeKey {
    "account:main".parse().unwrap()
}

fn resting() -> Cooldowns {
    let mut cooldowns = Cooldowns::new(CooldownPolicy::default()).unwrap();
    cooldowns.fail(&account(), &Failure::of_class(Class::Error), wall(1000), SEED);
    cooldowns
}

#[test]
fn cooldown_admission() {
    let mut cooldowns = resting();
    assert_eq!(
        cooldowns.start(&account(), true, wall(1059), SEED).unwrap_err().why,
        StartRefusalReason::Rest
    );
    assert!(cooldowns.start(&account(), true, wall(1060), SEED).unwrap().probe);
    assert_eq!(
        cooldowns.start(&account(), true, wall(1060), SEED).unwrap_err().why,
        StartRefusalReason::Probe
    );
}

#[test]
fn cooldown_cancellation() {
    let mut cooldowns = resting();
    cooldowns.start(&account(), true, wall(1060), SEED).unwrap();
    cooldowns.give_up_probe(&account());
    assert!(cooldowns.start(&account(), true, wall(1061), SEED).unwrap().probe);
    assert_eq!(
        cooldowns.record(&account()).unwrap().rest.as_ref().unwrap().streak(),
        1,
        "no failure, no success"
    );
}

#[test]
fn cooldown_clock_jump() {
    let mut cooldowns = resting();
    assert!(cooldowns.check(&account(), wall(0)).is_none(), "set back: it is over, not stretched");
    assert!(cooldowns.start(&account(), true, wall(0), SEED).unwrap().probe, "and one goes first");
    let mut cooldowns = resting();
    assert!(cooldowns.start(&account(), true, wall(999_999), SEED).unwrap().probe, "set on: one goes first");
}

#[test]
fn cooldown_edge_config() {
    let class = CooldownPolicy::default().error.with(|policy| {
        policy.base = SECOND;
        policy.growth = 1e300;
        policy.cap = Duration::MAX;
        policy.park_after = Some(3);
    });
    let policy = CooldownPolicy::default().with(|policy| {
        policy.error = class;
        policy.jitter = 1.0;
    });
    let mut cooldowns = Cooldowns::new(policy).unwrap();
    for _ in 0..2 {
        cooldowns.fail(&account(), &Failure::of_class(Class::Error), wall(0), SEED);
    }
    assert!(
        matches!(cooldowns.standing(&account(), wall(0)), Standing::Cooling { until, .. } if until == Timestamp::MAX)
    );
    cooldowns.fail(&account(), &Failure::of_class(Class::Error), Timestamp::MAX, SEED);
    assert!(
        matches!(cooldowns.standing(&account(), Timestamp::MAX), Standing::Parked(_)),
        "the third one parks"
    );
    assert!(
        Cooldowns::new(policy.with(|policy| {
            policy.starts = 0;
        }))
        .is_err(),
        "nothing could ever start"
    );
}

// ===== call =====

#[test]
fn call_admission() {
    let (one, two) =
        (opened(BreakerPolicy::CONSECUTIVE), Breaker::new(BreakerPolicy::BOTH, SEED, at(0)).unwrap());
    let breakers = [&one, &two];
    let share = RetryShare::new(SharePolicy::default(), at(0));
    let policy = RemedyPolicy::default();
    let mut call = Call::new(&breakers, &share, &policy, SEED);
    assert!(
        matches!(call.next(at(0)), Next::Try(attempt) if attempt.target() == 1),
        "open targets are passed over"
    );
}

#[test]
fn call_cancellation() {
    let breaker = opened(BreakerPolicy::CONSECUTIVE);
    let breakers = [&breaker];
    let share = RetryShare::new(SharePolicy::default(), at(0));
    let policy = RemedyPolicy::default();
    drop(Call::new(&breakers, &share, &policy, SEED).next(at(30)));
    assert!(breakers[0].admit(at(30)).is_ok(), "a call that was given up holds no probe");
}

#[test]
fn call_clock_jump() {
    let breaker = Breaker::new(BreakerPolicy::BOTH, SEED, at(0)).unwrap();
    let breakers = [&breaker];
    let share = RetryShare::new(SharePolicy::default(), at(0));
    let policy = RemedyPolicy::default();
    let mut call = Call::new(&breakers, &share, &policy, SEED).until(at(10));
    let Next::Try(attempt) = call.next(at(0)) else { panic!("an attempt") };
    call.failed(attempt, Fault::of(Kind::Unavailable, "test"), at(1_000_000));
    assert!(
        matches!(call.next(at(1_000_000)), Next::Over(_)),
        "a machine that slept wakes up past the deadline"
    );
}

#[test]
fn call_edge_config() {
    let share = RetryShare::new(SharePolicy::default(), at(0));
    let policy = RemedyPolicy::default();
    let no_targets: [&Breaker; 0] = [];
    let end =
        Call::new(&no_targets, &share, &policy, SEED).run(|| at(0), |_| {}, |_| Ok::<(), Box<Fault>>(()));
    assert_eq!(end, Err(End::Nothing));
}
