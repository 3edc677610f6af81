//! The cooldown table against a naive model: random schedules over two keys, every answer compared.
//!
//! The model counts in whole seconds, keeps one plain struct per key and shares no code with the table.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::chance::Seed;
use koboshi::cooldown::{Class, CooldownPolicy, Cooldowns, Failure, RunEnd, Standing, StartRefusalReason};
use koboshi::key::ScopeKey;
use koboshi::wait::{Form, Wait, WaitZone};
use proptest::prelude::*;

const SEED: Seed = Seed::new(1);
const CLASSES: &[Class] = &[
    Class::Error,
    Class::Network,
    Class::Overloaded,
    Class::RateLimit,
    Class::Quota,
    Class::Auth,
    Class::Billing,
];

#[derive(Debug, Clone)]
enum Step {
    Start { may_probe: bool },
    Fail { class: usize, wait: Option<(i64, bool)>, began: Option<i64> },
    Succeed { began: Option<i64> },
    Exit { good: bool, ran: i64 },
    Cool { seconds: i64 },
    Resume,
    Advance { seconds: i64 },
    ClockBack { seconds: i64 },
}

#[derive(Default, Clone)]
struct Key {
    /// set, until, class, fixed, parked
    rest: Option<(i64, i64, Class, bool, bool)>,
    /// Until when a person told it to rest.
    by_operator: Option<i64>,
    streaks: BTreeMap<Class, u32>,
    probe: Option<i64>,
    release: Option<(i64, i64)>,
    starts: Vec<i64>,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Go { probe: bool },
    Held(StartRefusalReason, Option<i64>),
}

fn seconds(length: Duration) -> i64 {
    i64::try_from(length.as_secs()).unwrap()
}

impl Key {
    fn learned_ends(&self, now: i64) -> i64 {
        let Some((set, until, _, fixed, _)) = self.rest else { return i64::MIN };
        if !fixed && now + 60 < set { now } else { until }
    }

    fn ends(&self, now: i64) -> i64 {
        self.learned_ends(now).max(self.by_operator.unwrap_or(i64::MIN))
    }

    fn standing(&self, now: i64) -> &'static str {
        match self.rest {
            Some((.., true)) => "parked",
            _ if now < self.ends(now) => "cooling",
            None => "free",
            Some(_) => "due",
        }
    }

    fn fail(
        &mut self,
        policy: &CooldownPolicy,
        class: Class,
        wait: Option<(i64, bool)>,
        began: Option<i64>,
        ran: Option<i64>,
        now: i64,
    ) {
        (self.probe, self.release) = (None, None);
        if ran.is_some_and(|ran| ran >= seconds(policy.healthy_run)) {
            self.streaks.clear();
            let parked = matches!(self.rest, Some((.., true)));
            if !parked && now >= self.learned_ends(now) {
                self.rest = None;
            }
        }
        let known = matches!((self.rest, began), (Some((set, ..)), Some(began)) if began < set)
            && self.streaks.contains_key(&class);
        if known && wait.is_none() {
            return;
        }
        let streak = self.streaks.entry(class).or_insert(0);
        *streak += u32::from(!known);
        let streak = *streak;
        let own = policy.class(class);
        let stated = wait.map(|(after, instant)| {
            let margin = if instant { 60 } else { (after / 10).clamp(5, 300) };
            (after + margin).min(35 * 86_400)
        });
        let mut guess = own.map_or(0, |own| seconds(own.base));
        for _ in 1..streak {
            guess = (guess * 2).min(own.map_or(0, |own| seconds(own.cap)));
        }
        let length = match stated {
            Some(stated) if class == Class::Error => stated.max(guess),
            Some(stated) => stated,
            None => guess,
        };
        let park = own.is_none() || own.unwrap().park_after.is_some_and(|max| streak >= max);
        let longer = self.rest.is_some_and(|(.., parked)| parked || self.learned_ends(now) > now + length);
        if park || !longer {
            self.rest = Some((now, now + length, class, wait.is_some_and(|wait| wait.1), park));
        }
    }

    fn clear(&mut self) {
        let starts = std::mem::take(&mut self.starts);
        *self = Self { starts, by_operator: self.by_operator, ..Self::default() };
    }

    fn succeed(&mut self, policy: &CooldownPolicy, began: Option<i64>, now: i64) {
        let Some((set, _, _, _, parked)) = self.rest else { return };
        if parked || began.is_some_and(|began| began < set) {
            return;
        }
        self.clear();
        self.release = Some((now + seconds(policy.stagger), now + seconds(policy.release)));
    }

    fn start(&mut self, policy: &CooldownPolicy, may_probe: bool, now: i64) -> Answer {
        let stagger = seconds(policy.stagger);
        self.probe = self.probe.map(|until| until.min(now + seconds(policy.max_probe_time)));
        let release = now + seconds(policy.release);
        self.release = self.release.map(|(next, all)| (next.min(now + stagger), all.min(release)));
        let probe = match self.standing(now) {
            "parked" => return Answer::Held(StartRefusalReason::Parked, None),
            "cooling" => return Answer::Held(StartRefusalReason::Rest, Some(self.ends(now))),
            "due" => {
                if let Some(until) = self.probe.filter(|until| now < *until) {
                    return Answer::Held(StartRefusalReason::Probe, Some(until));
                }
                if !may_probe {
                    return Answer::Held(StartRefusalReason::Probe, Some(now + stagger));
                }
                true
            }
            _ => {
                if let Some((next, all)) = self.release.filter(|(_, all)| now < *all) {
                    if now < next {
                        return Answer::Held(StartRefusalReason::Turn, Some(next));
                    }
                    self.release = Some((now + stagger, all));
                }
                false
            }
        };
        self.starts.retain(|start| *start <= now && start + seconds(policy.starts_within) > now);
        if self.starts.len() >= policy.starts as usize {
            let (probe, release) = (self.probe, self.release);
            self.fail(policy, Class::Error, None, None, None, now);
            (self.probe, self.release) = (probe, release);
            self.starts.clear();
            return match self.standing(now) {
                "parked" => Answer::Held(StartRefusalReason::Parked, None),
                _ => Answer::Held(StartRefusalReason::Rest, Some(self.ends(now))),
            };
        }
        self.starts.push(now);
        if probe {
            self.probe = Some(now + seconds(policy.max_probe_time));
        }
        Answer::Go { probe }
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn any_step() -> impl Strategy<Value = Step> {
    let wait = proptest::option::of((1_i64..100_000, any::<bool>()));
    let began = || proptest::option::of(0_i64..200);
    prop_oneof![
        10 => any::<bool>().prop_map(|may_probe| Step::Start { may_probe }),
        5 => (0..CLASSES.len(), wait, began()).prop_map(|(class, wait, began)| Step::Fail { class, wait, began }),
        3 => began().prop_map(|began| Step::Succeed { began }),
        4 => (any::<bool>(), prop_oneof![0_i64..20, 500_i64..2000]).prop_map(|(good, ran)| Step::Exit { good, ran }),
        1 => (1_i64..5000).prop_map(|seconds| Step::Cool { seconds }),
        1 => Just(Step::Resume),
        8 => prop_oneof![1_i64..10, 50_i64..70, 1000_i64..100_000].prop_map(|seconds| Step::Advance { seconds }),
        1 => (1_i64..10_000).prop_map(|seconds| Step::ClockBack { seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_table_does_what_the_model_does(steps in proptest::collection::vec((0..2_usize, any_step()), 1..120)) {
        let policy = CooldownPolicy::default().with(|policy| { policy.jitter = 0.0; });
        let mut table = Cooldowns::new(policy).unwrap();
        let keys: [ScopeKey; 2] = ["agent:a/p".parse().unwrap(), "account:main".parse().unwrap()];
        let mut models = [Key::default(), Key::default()];
        let mut now = 1_000_000_i64;
        for (which, step) in steps {
            let (key, model) = (&keys[which], &mut models[which]);
            match step {
                Step::Start { may_probe } => {
                    let answer = match table.start(key, may_probe, at(now), SEED) {
                        Ok(started) => Answer::Go { probe: started.probe },
                        Err(held) => Answer::Held(held.why, held.until.map(Timestamp::as_second)),
                    };
                    prop_assert_eq!(answer, model.start(&policy, may_probe, now));
                }
                Step::Fail { class, wait, began } => {
                    let began = began.map(|ago| now - ago);
                    // Tenths that are no whole seconds would only test rounding.
                    let wait = wait.map(|(after, fixed)| (if fixed { after } else { after / 10 * 10 + 10 }, fixed));
                    let stated = wait.map(|(after, fixed)| Wait {
                        after: Duration::from_secs(after.unsigned_abs()),
                        until: at(now + after),
                        form: if fixed { Form::Instant } else { Form::Countdown },
                        zone: WaitZone::Unneeded,
                    });
                    let failure = Failure {
                        wait: stated, started: began.map(at), ..Failure::of_class(CLASSES[class])
                    };
                    table.fail(key, &failure, at(now), SEED);
                    model.fail(&policy, CLASSES[class], wait, began, None, now);
                }
                Step::Succeed { began } => {
                    let began = began.map(|ago| now - ago);
                    table.succeed(key, began.map(at), at(now));
                    model.succeed(&policy, began, now);
                }
                Step::Exit { good, ran } => {
                    let ran_for = Some(Duration::from_secs(ran.unsigned_abs()));
                    let end = RunEnd { exit_code: Some(i32::from(!good)), ran: ran_for, fault: None };
                    table.run_ended(key, &end, at(now), SEED);
                    match good {
                        false => model.fail(&policy, Class::Error, None, Some(now - ran), Some(ran), now),
                        true if ran < seconds(policy.min_run) => model.probe = None,
                        true => model.succeed(&policy, Some(now - ran), now),
                    }
                }
                Step::Cool { seconds } => {
                    table.cool(key, at(now + seconds), "", at(now));
                    model.clear();
                    model.by_operator = Some(now + seconds);
                }
                Step::Resume => {
                    table.resume(key, at(now));
                    *model = Key::default();
                }
                Step::Advance { seconds } => now += seconds,
                Step::ClockBack { seconds } => now -= seconds,
            }
            for (key, model) in keys.iter().zip(&models) {
                let standing = match table.standing(key, at(now)) {
                    Standing::Free => "free",
                    Standing::Cooling { until, .. } => {
                        prop_assert_eq!(until.as_second(), model.ends(now));
                        "cooling"
                    }
                    Standing::Due(_) => "due",
                    Standing::Parked(_) => "parked",
                    _ => unreachable!(),
                };
                prop_assert_eq!(standing, model.standing(now));
                let streaks = table.record(key).and_then(|record| record.rest.as_ref());
                if let Some(rest) = streaks {
                    prop_assert_eq!(&rest.streaks, &model.streaks);
                }
            }
        }
    }

    /// Whatever happens, a key that no person must resume is let go again.
    #[test]
    fn no_key_rests_for_ever(steps in proptest::collection::vec(any_step(), 1..60)) {
        let mut table = Cooldowns::new(CooldownPolicy::default()).unwrap();
        let key: ScopeKey = "account:main".parse().unwrap();
        let (mut now, mut latest) = (1_000_000_i64, 1_000_000_i64);
        for step in steps {
            latest = latest.max(now);
            match step {
                Step::Start { may_probe } => drop(table.start(&key, may_probe, at(now), SEED)),
                Step::Fail { class, .. } if class < 5 => {
                    table.fail(&key, &Failure::of_class(CLASSES[class]), at(now), SEED);
                }
                Step::Advance { seconds } => now += seconds,
                Step::ClockBack { seconds } => now -= seconds,
                _ => {}
            }
        }
        // At the latest when a clock that was set back has caught up.
        let later = latest.max(now) + 2 * 3600;
        let answer = table.start(&key, true, at(later), SEED);
        let parked = matches!(table.standing(&key, at(later)), Standing::Parked(_));
        prop_assert!(parked || answer.is_ok(), "{answer:?}");
    }
}
