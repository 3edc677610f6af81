//! Promises of the cooldown, one by one. The whole against a naive model: `tests/model_cooldown.rs`.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::chance::Seed;
use crate::fault::{Fault, Kind, Sub};
use crate::key::ScopeKey;
use crate::wait::{Form, Wait, WaitZone};

const SEED: Seed = Seed::new(7);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key() -> ScopeKey {
    ScopeKey::agent("agt_001", "prj_001").unwrap()
}

fn cooldowns() -> Cooldowns {
    Cooldowns::new(CooldownPolicy::default()).unwrap()
}

fn error() -> Failure {
    Failure::of_class(Class::Error)
}

fn stated(class: Class, after: u64, form: Form, now: i64) -> Failure {
    let after = Duration::from_secs(after);
    let wait = Wait { after, until: at(now).saturating_add(after).unwrap(), form, zone: WaitZone::Unneeded };
    Failure { wait: Some(wait), ..Failure::of_class(class) }
}

/// How long a key rests from now, in seconds.
fn left(cooldowns: &Cooldowns, now: i64) -> i64 {
    match cooldowns.standing(&key(), at(now)) {
        Standing::Cooling { until, .. } => until.as_second() - now,
        standing => panic!("{standing:?}"),
    }
}

#[test]
fn a_stated_absence_is_no_series_and_a_person_ends_it() {
    let mut fault = Fault::of(Kind::Unavailable, "test");
    fault.status = Some(503);
    let mut cooldown = Cooldown::default();
    for now in 0..9 {
        cooldown.rest_until(&fault, at(now + 30), at(now));
    }
    let Standing::Cooling { rest, until } = cooldown.standing(at(9)) else { panic!("it is in cooldown") };
    assert_eq!((until, rest.streak(), rest.since), (at(38), 0, at(0)), "nothing grows, nothing is parked");
    assert_eq!(rest.cause.and_then(|cause| cause.status), Some(503));
    cooldown.rest_until(&fault, at(12), at(9));
    assert!(
        matches!(cooldown.standing(at(9)), Standing::Cooling { until, .. } if until == at(38)),
        "the later end"
    );
    assert!(cooldown.resume(at(10)));
    assert_eq!((cooldown.standing(at(10)), cooldown.resumed_at()), (Standing::Free, Some(at(10))));
    cooldown.cool(at(90), "incident", at(11));
    assert_eq!(cooldown.resumed_at(), None, "the last order was another one");
    cooldown.rest_until(&fault, at(200), at(12));
    assert!(cooldown.resume_learned(at(13)));
    assert!(
        matches!(cooldown.standing(at(14)), Standing::Cooling { until, .. } if until == at(90)),
        "the operator's rest stays"
    );
    assert_eq!(cooldown.resumed_at(), Some(at(13)));
}

/// The design that this feature comes from lost the streak when the rest ended.
#[test]
fn the_streak_survives_the_rest_so_rests_grow_and_the_fifth_parks() {
    let mut cooldowns = cooldowns();
    let mut now = 0;
    let mut rests = Vec::new();
    loop {
        cooldowns.start(&key(), true, at(now), SEED).expect("the rest is over");
        cooldowns.fail(&key(), &error(), at(now + 1), SEED);
        if let Standing::Parked(rest) = cooldowns.standing(&key(), at(now + 1)) {
            assert_eq!(rest.streak(), 5);
            break;
        }
        rests.push(left(&cooldowns, now + 1));
        now += 2 + rests.last().unwrap();
    }
    assert_eq!(rests.len(), 4);
    assert_eq!(rests[0], 60, "the first is exact");
    assert!(
        rests.windows(2).all(|pair| pair[1] > pair[0]),
        "each waits longer than the one before: {rests:?}"
    );
    assert_eq!(
        cooldowns.start(&key(), true, at(now + 1_000_000), SEED).unwrap_err().why,
        StartRefusalReason::Parked
    );
}

#[test]
fn a_parked_key_waits_for_a_person_and_then_starts_from_one() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &Failure::of_class(Class::Billing), at(0), SEED);
    assert_eq!(cooldowns.succeed(&key(), None, at(5)), None, "no success of a sibling resumes it");
    assert!(matches!(cooldowns.standing(&key(), at(1_000_000)), Standing::Parked(_)));
    assert_eq!(cooldowns.resume(&key(), at(10)).unwrap().what, CooldownChange::Resumed);
    assert_eq!(cooldowns.standing(&key(), at(10)), Standing::Free);
    cooldowns.fail(&key(), &error(), at(11), SEED);
    assert_eq!(left(&cooldowns, 11), 60);
}

#[test]
fn credentials_money_and_context_park_at_once_and_limits_never() {
    for class in [Class::Auth, Class::Billing, Class::Context] {
        let mut cooldowns = cooldowns();
        cooldowns.fail(&key(), &Failure::of_class(class), at(0), SEED);
        assert!(matches!(cooldowns.standing(&key(), at(0)), Standing::Parked(_)), "{}", class.name());
    }
    for class in [Class::Quota, Class::RateLimit, Class::Overloaded, Class::Network] {
        let mut cooldowns = cooldowns();
        for day in 0..100 {
            cooldowns.fail(&key(), &Failure::of_class(class), at(day * 86_400), SEED);
        }
        assert!(cooldowns.standing(&key(), at(9_000_000)) != Standing::Free);
        assert!(
            !matches!(cooldowns.standing(&key(), at(9_000_000)), Standing::Parked(_)),
            "{}",
            class.name()
        );
    }
}

#[test]
fn a_program_that_is_missing_parks_and_a_busy_machine_does_not() {
    let mut missing = Fault::of(Kind::SpawnFailed, "test");
    missing.advice.same = false;
    let mut table = cooldowns();
    table.fail(&key(), &Failure::of(&missing), at(0), SEED);
    assert!(matches!(table.standing(&key(), at(0)), Standing::Parked(_)));
    let mut busy = Fault::of(Kind::SpawnFailed, "test");
    busy.advice.same = true;
    let mut table = cooldowns();
    table.fail(&key(), &Failure::of(&busy), at(0), SEED);
    assert_eq!(left(&table, 0), 60, "a failed start counts like a failed run");
}

#[test]
fn margins_are_in_proportion_for_countdowns_fixed_for_instants_and_none_for_guesses() {
    let rest = |failure: Failure| {
        let mut cooldowns = cooldowns();
        cooldowns.fail(&key(), &failure, at(0), SEED);
        left(&cooldowns, 0)
    };
    assert_eq!(rest(stated(Class::Quota, 600, Form::Countdown, 0)), 660);
    assert_eq!(rest(stated(Class::RateLimit, 2, Form::Countdown, 0)), 7, "at least five seconds");
    assert_eq!(
        rest(stated(Class::Quota, 432_000, Form::Countdown, 0)),
        432_300,
        "no half day lost on five days"
    );
    assert_eq!(rest(stated(Class::Quota, 3600, Form::Instant, 0)), 3660);
    assert_eq!(rest(Failure::of_class(Class::Quota)), 1800);
    assert_eq!(rest(Failure::of_class(Class::RateLimit)), 300);
}

#[test]
fn a_stated_reset_is_honoured_beyond_the_cap_up_to_a_sane_bound() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &stated(Class::Quota, 7 * 86_400, Form::Instant, 0), at(0), SEED);
    assert_eq!(left(&cooldowns, 0), 7 * 86_400 + 60);
    cooldowns.resume(&key(), at(1));
    cooldowns.fail(&key(), &stated(Class::Quota, 300 * 86_400, Form::Instant, 2), at(2), SEED);
    assert_eq!(left(&cooldowns, 2), 35 * 86_400);
}

#[test]
fn a_shorter_rest_never_replaces_a_longer_one() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &stated(Class::Quota, 7200, Form::Instant, 0), at(0), SEED);
    cooldowns.fail(&key(), &error(), at(10), SEED);
    assert_eq!(left(&cooldowns, 10), 7260 - 10);
    assert_eq!(cooldowns.check(&key(), at(10)).unwrap().class, Class::Quota);
}

#[test]
fn siblings_that_hit_the_same_wall_are_one_failure() {
    let mut cooldowns = cooldowns();
    let failure = Failure { started: Some(at(0)), ..Failure::of_class(Class::Quota) };
    for second in 100..111 {
        cooldowns.fail(&key(), &failure, at(second), SEED);
    }
    assert_eq!(cooldowns.check(&key(), at(111)).unwrap().streak(), 1);
}

#[test]
fn a_success_clears_only_what_it_is_newer_than() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &error(), at(100), SEED);
    assert_eq!(cooldowns.succeed(&key(), Some(at(50)), at(110)), None, "it began before the failure");
    assert!(cooldowns.check(&key(), at(110)).is_some());
    assert!(cooldowns.succeed(&key(), Some(at(160)), at(170)).is_some());
    assert_eq!(cooldowns.standing(&key(), at(170)), Standing::Free);
}

#[test]
fn a_success_of_one_key_says_nothing_of_another() {
    let mut cooldowns = cooldowns();
    let account: ScopeKey = "account:main".parse().unwrap();
    cooldowns.fail(&account, &Failure::of_class(Class::Quota), at(0), SEED);
    cooldowns.fail(&key(), &error(), at(0), SEED);
    cooldowns.succeed(&key(), None, at(1));
    assert!(cooldowns.check(&account, at(1)).is_some());
}

#[test]
fn a_healthy_run_before_the_failure_forgets_the_failures_before_it() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &error(), at(0), SEED);
    cooldowns.fail(&key(), &error(), at(100), SEED);
    let long = RunEnd { exit_code: Some(1), ran: Some(Duration::from_secs(3600)), fault: None };
    cooldowns.run_ended(&key(), &long, at(10_000), SEED);
    assert_eq!(cooldowns.check(&key(), at(10_000)).unwrap().streak(), 1);
}

#[test]
fn a_good_exit_in_seconds_is_no_success() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &error(), at(0), SEED);
    cooldowns.start(&key(), true, at(60), SEED).unwrap();
    let quick = RunEnd { exit_code: Some(0), ran: Some(Duration::from_secs(1)), fault: None };
    cooldowns.run_ended(&key(), &quick, at(61), SEED);
    cooldowns.start(&key(), true, at(61), SEED).expect("it may go again");
    let crashed = RunEnd { exit_code: Some(1), ran: Some(Duration::from_secs(1)), fault: None };
    cooldowns.run_ended(&key(), &crashed, at(62), SEED);
    assert_eq!(cooldowns.check(&key(), at(62)).unwrap().streak(), 2, "the failure before was not forgotten");
    let lasting = RunEnd { exit_code: Some(0), ran: Some(Duration::from_secs(30)), fault: None };
    cooldowns.run_ended(&key(), &lasting, at(400), SEED);
    assert_eq!(cooldowns.standing(&key(), at(400)), Standing::Free);
}

#[test]
fn good_exits_in_seconds_are_held_back_by_their_rate_and_parked_in_the_end() {
    let mut cooldowns = cooldowns();
    let quick = RunEnd { exit_code: Some(0), ran: Some(Duration::from_secs(1)), fault: None };
    let (mut now, mut starts) = (0, 0);
    while now < 86_400 {
        if cooldowns.start(&key(), true, at(now), SEED).is_ok() {
            starts += 1;
            cooldowns.run_ended(&key(), &quick, at(now + 1), SEED);
        }
        now += 2;
    }
    assert_eq!(starts, 25, "a day of polling every two seconds: five times five, then parked");
    assert!(matches!(cooldowns.standing(&key(), at(now)), Standing::Parked(_)));
}

#[test]
fn a_fault_in_the_log_counts_even_with_a_good_exit() {
    let mut cooldowns = cooldowns();
    let mut fault = Fault::of(Kind::QuotaExceeded, "test");
    fault.sub = Some(Sub::Day);
    let end = RunEnd { exit_code: Some(0), ran: Some(Duration::from_secs(100)), fault: Some(&fault) };
    cooldowns.run_ended(&key(), &end, at(100), SEED);
    assert_eq!(cooldowns.check(&key(), at(100)).unwrap().class, Class::Quota);
}

#[test]
fn after_a_rest_one_goes_first_and_the_others_follow_one_by_one() {
    let account: ScopeKey = "account:main".parse().unwrap();
    let mut cooldowns = cooldowns();
    cooldowns.fail(&account, &Failure::of_class(Class::Quota), at(0), SEED);
    assert!(cooldowns.start(&account, true, at(1799), SEED).is_err());
    let first = cooldowns.start(&account, true, at(1800), SEED).unwrap();
    assert!(first.probe && first.ended.unwrap().to_string().contains("spawn allowed"));
    let held = cooldowns.start(&account, true, at(1801), SEED).unwrap_err();
    assert_eq!((held.why, held.until), (StartRefusalReason::Probe, Some(at(2400))));
    cooldowns.succeed(&account, Some(at(1800)), at(1850));
    let mut started = Vec::new();
    for second in 1850..1860 {
        started.extend(cooldowns.start(&account, true, at(second), SEED).is_ok().then_some(second));
    }
    assert_eq!(started, [1852, 1854, 1856, 1858], "staggered");
}

#[test]
fn a_probe_of_which_nothing_is_heard_does_not_keep_the_others_for_ever() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &error(), at(0), SEED);
    cooldowns.start(&key(), true, at(60), SEED).unwrap();
    assert!(cooldowns.start(&key(), true, at(659), SEED).is_err());
    assert!(cooldowns.start(&key(), true, at(660), SEED).unwrap().probe);
    cooldowns.give_up_probe(&key());
    assert!(cooldowns.start(&key(), true, at(661), SEED).unwrap().probe, "called off: the next may go");
}

#[test]
fn whoever_lacks_the_fleets_permit_does_not_go_first() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &error(), at(0), SEED);
    assert_eq!(cooldowns.start(&key(), false, at(60), SEED).unwrap_err().why, StartRefusalReason::Probe);
    assert!(cooldowns.start(&key(), true, at(60), SEED).is_ok());
}

#[test]
fn switched_off_nothing_rests_but_a_persons_word_holds() {
    let policy = CooldownPolicy { enabled: false, ..CooldownPolicy::default() };
    let mut cooldowns = Cooldowns::new(policy).unwrap();
    assert_eq!(cooldowns.fail(&key(), &error(), at(0), SEED), None);
    assert_eq!(cooldowns.standing(&key(), at(0)), Standing::Free);
    cooldowns.cool(&key(), at(100), "maintenance", at(0));
    assert!(cooldowns.start(&key(), true, at(50), SEED).is_err());
}

#[test]
fn without_detection_everything_is_an_error() {
    let policy = CooldownPolicy { detection: false, ..CooldownPolicy::default() };
    let mut cooldowns = Cooldowns::new(policy).unwrap();
    cooldowns.fail(&key(), &stated(Class::Quota, 7200, Form::Instant, 0), at(0), SEED);
    assert_eq!((left(&cooldowns, 0), cooldowns.check(&key(), at(0)).unwrap().class), (60, Class::Error));
}

#[test]
fn a_person_may_let_a_key_rest_shorter_than_it_would() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &stated(Class::Quota, 7200, Form::Instant, 0), at(0), SEED);
    cooldowns.cool(&key(), at(100), "I know better", at(10));
    assert_eq!(left(&cooldowns, 10), 90);
    assert_eq!(cooldowns.succeed(&key(), None, at(20)), None, "and a success does not end what a person set");
}

#[test]
fn a_quiet_key_is_forgotten_and_a_parked_one_is_not() {
    let mut cooldowns = cooldowns();
    let parked: ScopeKey = "account:broke".parse().unwrap();
    cooldowns.fail(&key(), &error(), at(0), SEED);
    cooldowns.fail(&parked, &Failure::of_class(Class::Billing), at(0), SEED);
    cooldowns.forget_quiet(at(86_400));
    assert_eq!(cooldowns.len(), 2);
    cooldowns.forget_quiet(at(30 * 86_400));
    assert_eq!(cooldowns.len(), 1);
    assert_eq!(cooldowns.records().next().unwrap().0, &parked);
}

#[test]
fn what_another_process_learned_is_taken_in() {
    let (mut here, mut there) = (cooldowns(), cooldowns());
    here.fail(&key(), &stated(Class::Quota, 7200, Form::Instant, 0), at(0), SEED);
    assert!(!there.adopt(&key(), here.record(&key()).unwrap(), at(1)), "it has nothing to add");
    assert_eq!(left(&there, 0), 7260);
    there.resume(&key(), at(10));
    here.adopt(&key(), there.record(&key()).unwrap(), at(10));
    assert_eq!(here.standing(&key(), at(10)), Standing::Free);
}

#[test]
fn a_rest_set_by_a_person_ends_by_itself_and_outlives_failures_and_successes() {
    let mut cooldowns = cooldowns();
    cooldowns.cool(&key(), at(1000), "maintenance", at(0));
    cooldowns.fail(&key(), &stated(Class::Quota, 7200, Form::Instant, 10), at(10), SEED);
    assert_eq!(left(&cooldowns, 10), 7260, "the longer of the two");
    cooldowns.succeed(&key(), None, at(20));
    assert_eq!(left(&cooldowns, 20), 980, "a success ends what was learned, not the operator's rest");
    assert_eq!(cooldowns.standing(&key(), at(1000)), Standing::Free, "nothing is wrong with the key");
    assert!((0..3).all(|n| cooldowns.start(&key(), true, at(2000 + n), SEED).is_ok()), "no probe, no turns");
}

#[test]
fn a_healthy_run_ends_the_series_but_no_rest_that_still_runs() {
    let long = || Failure { ran: Some(Duration::from_secs(3600)), ..error() };
    let mut table = cooldowns();
    table.fail(&key(), &stated(Class::Quota, 432_000, Form::Instant, 0), at(0), SEED);
    table.fail(&key(), &long(), at(10), SEED);
    assert_eq!(left(&table, 10), 432_050, "a week's quota is not undone by a crash");
    let mut table = cooldowns();
    table.fail(&key(), &Failure::of_class(Class::Billing), at(0), SEED);
    table.fail(&key(), &long(), at(10), SEED);
    assert!(matches!(table.standing(&key(), at(10)), Standing::Parked(_)));
    let mut table = cooldowns();
    for second in [0, 1000, 2000, 3000] {
        table.fail(&key(), &error(), at(second), SEED);
    }
    let stored = table.record(&key()).unwrap().clone();
    table.fail(&key(), &long(), at(50_000), SEED);
    let merged = table.record(&key()).unwrap().merge(&stored);
    assert_eq!(merged.rest.unwrap().streak(), 1, "and what was forgotten does not come back from the store");
}

#[test]
fn weak_evidence_parks_nothing_and_only_lengthens() {
    let mut fault = Fault::of(Kind::Unauthorized, "test");
    fault.confidence = crate::fault::Confidence::Low;
    let mut table = cooldowns();
    table.fail(&key(), &Failure::of(&fault), at(0), SEED);
    assert_eq!(left(&table, 0), 60);
    fault.confidence = crate::fault::Confidence::Medium;
    table.fail(&key(), &Failure::of(&fault), at(100), SEED);
    assert!(matches!(table.standing(&key(), at(100)), Standing::Parked(_)));
    let rest = |after| {
        let mut table = cooldowns();
        table.fail(&key(), &stated(Class::Error, after, Form::Countdown, 0), at(0), SEED);
        left(&table, 0)
    };
    assert_eq!((rest(10), rest(600)), (60, 660));
}

#[test]
fn siblings_that_end_together_are_one_failure_and_move_no_guess() {
    let mut cooldowns = cooldowns();
    let crashed = RunEnd { exit_code: Some(1), ran: Some(Duration::from_secs(50)), fault: None };
    for second in 100..105 {
        cooldowns.run_ended(&key(), &crashed, at(second), SEED);
    }
    assert_eq!(cooldowns.check(&key(), at(105)).unwrap().streak(), 1);
    assert_eq!(left(&cooldowns, 105), 55, "sixty seconds from the first of them");
    let quota = Failure { started: Some(at(50)), ..Failure::of_class(Class::Quota) };
    cooldowns.fail(&key(), &quota, at(106), SEED);
    assert_eq!(left(&cooldowns, 106), 1800, "another class is news, whenever it began");
}

#[test]
fn too_many_starts_lead_to_a_rest_and_in_the_end_to_parking() {
    let policy = CooldownPolicy {
        error: ClassPolicy { base: Duration::from_secs(1), ..CooldownPolicy::default().error },
        ..CooldownPolicy::default()
    };
    let mut cooldowns = Cooldowns::new(policy).unwrap();
    for second in 0..5 {
        cooldowns.start(&key(), true, at(second), SEED).unwrap();
    }
    let held = cooldowns.start(&key(), true, at(5), SEED).unwrap_err();
    assert!(held.to_string().starts_with("Cooldown set for"), "{held}");
    cooldowns.start(&key(), true, at(6), SEED).expect("a short rest does not count the same starts again");
    for _ in 0..4 {
        cooldowns.fail(&key(), &error(), at(1000), SEED);
    }
    let held = cooldowns.start(&key(), true, at(1000), SEED).unwrap_err();
    assert!(held.to_string().contains("koboshi resume"), "{held}");
}

#[test]
fn a_success_elsewhere_lets_the_others_follow_one_by_one_here_too() {
    let (mut here, mut there) = (cooldowns(), cooldowns());
    here.fail(&key(), &Failure::of_class(Class::Quota), at(0), SEED);
    there.adopt(&key(), here.record(&key()).unwrap(), at(0));
    here.start(&key(), true, at(1800), SEED).unwrap();
    let recovered = here.succeed(&key(), Some(at(1800)), at(1850)).unwrap();
    assert_eq!(recovered.what, CooldownChange::Recovered);
    there.adopt(&key(), here.record(&key()).unwrap(), at(1850));
    let started: Vec<i64> =
        (1850..1856).filter(|now| there.start(&key(), true, at(*now), SEED).is_ok()).collect();
    assert_eq!(started, [1852, 1854]);
}

#[test]
fn asking_after_the_clock_was_set_back_does_not_stretch_a_rest() {
    let mut cooldowns = cooldowns();
    cooldowns.fail(&key(), &error(), at(100_000), SEED);
    assert!(cooldowns.check(&key(), at(50_000)).is_none());
    assert!(cooldowns.start(&key(), true, at(50_000), SEED).unwrap().probe, "one goes first");
}

#[test]
fn details_are_cut_between_characters_and_those_of_a_fault_are_not() {
    let mut cooldowns = cooldowns();
    let failure = Failure { detail: "あ".repeat(1000), ..error() };
    cooldowns.fail(&key(), &failure, at(0), SEED);
    assert_eq!(cooldowns.check(&key(), at(0)).unwrap().detail.chars().count(), 1600 / 3);
    let failure = Failure { detail: "😀".repeat(400), ..error() };
    cooldowns.fail(&key(), &failure, at(1), SEED);
    assert_eq!(cooldowns.check(&key(), at(1)).unwrap().detail, failure.detail);
}

#[test]
fn jitter_differs_from_failure_to_failure_and_never_exceeds_the_cap() {
    let policy = CooldownPolicy { jitter: 1.0, ..CooldownPolicy::default() };
    let mut shares = Vec::new();
    for streak in 2..7_u32 {
        let mut record = Cooldown::default();
        for _ in 0..streak {
            record.fail(&Failure::of_class(Class::Quota), &policy, at(0), SEED);
        }
        let rest = record.rest.unwrap();
        let length = rest.until.duration_since(at(0)).as_secs_f64();
        assert!(length <= 3600.0, "{length}");
        let mut record = Cooldown::default();
        for _ in 0..streak {
            record.fail(&Failure::of_class(Class::Network), &policy, at(0), SEED);
        }
        let own = policy.network.rest(streak).as_secs_f64();
        shares.push(record.rest.unwrap().until.duration_since(at(0)).as_secs_f64() / own);
    }
    assert!(shares[..3].windows(2).all(|pair| (pair[0] - pair[1]).abs() > 1e-6), "{shares:?}");
}
