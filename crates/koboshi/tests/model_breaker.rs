//! The breaker against a naive model: random schedules, every answer compared.
//!
//! The model keeps the whole history of its generation in a list and computes everything again at each step; it shares
//! no code with the breaker.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "helpers of tests"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::breaker::{
    Breaker, BreakerPolicy, BreakerSnapshot, ForcedMode, Mode, Outcome, Permit, SlowPolicy, Span,
};
use koboshi::chance::Seed;
use koboshi::time::Moment;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Admit { last: bool },
    AdmitBeside,
    Record { which: usize, outcome: Outcome },
    Drop { which: usize },
    Advance { millis: u64 },
    Force(ForcedMode),
    Release,
    Reset,
    Hint,
}

/// A call that was let through.
struct Sent {
    generation: u64,
    /// Number of the probe, if it is one.
    probe: Option<u64>,
    paced: bool,
    at: Moment,
}

struct Model {
    policy: BreakerPolicy,
    generation: u64,
    mode: Mode,
    until: Moment,
    openings: u32,
    /// Those of them whose failure took longer than a second.
    long_openings: u32,
    /// Calls that ended in this generation: when, failed, slow.
    ended: Vec<(Moment, bool, bool)>,
    wary: bool,
    /// Probes that keep others out: number and start.
    out: Vec<(u64, Moment)>,
    launched: u64,
    good: u32,
    next_paced: Option<Moment>,
    next_beside: Moment,
}

impl Model {
    fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            generation: 0,
            mode: Mode::Closed,
            until: Moment::START,
            openings: 0,
            long_openings: 0,
            ended: Vec::new(),
            wary: false,
            out: Vec::new(),
            launched: 0,
            good: 0,
            next_paced: None,
            next_beside: Moment::START,
        }
    }

    fn enter(&mut self, mode: Mode, now: Moment) {
        self.generation += 1;
        self.mode = mode;
        self.ended.clear();
        self.wary = false;
        self.out.clear();
        self.good = 0;
        self.next_paced = self.policy.probe.last_target_every.map(|pace| now.after(pace));
    }

    fn open(&mut self, was_quick: bool, now: Moment) {
        if self.mode == Mode::Closed {
            self.next_beside = now.after(self.policy.probe.beside_every);
        }
        self.openings += 1;
        self.long_openings += u32::from(!was_quick);
        let mut length = self.policy.open.first;
        for _ in 1..if was_quick { 1 } else { self.long_openings } {
            length = length.mul_f64(self.policy.open.growth).min(self.policy.open.cap);
        }
        self.until = now.after(length);
        self.enter(Mode::Open, now);
    }

    fn admit(&mut self, last: bool, now: Moment) -> Option<Sent> {
        let sent =
            |model: &Self, probe, paced| Some(Sent { generation: model.generation, probe, paced, at: now });
        match self.mode {
            Mode::Closed | Mode::ForcedClosed | Mode::Disabled => return sent(self, None, false),
            Mode::ForcedOpen => return None,
            Mode::Open if now < self.until => {
                if last && self.next_paced.is_some_and(|next| now >= next) {
                    self.next_paced = self.policy.probe.last_target_every.map(|pace| now.after(pace));
                    return sent(self, None, true);
                }
                return None;
            }
            Mode::Open => self.enter(Mode::Probing, now),
            _ => {}
        }
        let timeout = self.policy.probe.timeout;
        self.out.retain(|(_, since)| now < since.after(timeout));
        if self.out.len() >= self.policy.probe.permits as usize {
            if !last || self.next_paced.is_none_or(|next| now < next) {
                return None;
            }
            self.next_paced = self.policy.probe.last_target_every.map(|pace| now.after(pace));
        }
        self.launched += 1;
        self.out.push((self.launched, now));
        sent(self, Some(self.launched), false)
    }

    fn admit_beside(&mut self, now: Moment) -> Option<Sent> {
        let is_ordinary = matches!(self.mode, Mode::Closed | Mode::ForcedClosed | Mode::Disabled);
        let may = match self.mode {
            Mode::ForcedOpen => false,
            Mode::Open | Mode::Probing => now >= self.next_beside,
            _ => true,
        };
        if may && !is_ordinary {
            self.next_beside = now.after(self.policy.probe.beside_every);
        }
        let generation = self.generation;
        may.then_some(Sent { generation, probe: None, paced: !is_ordinary, at: now })
    }

    fn record(&mut self, sent: &Sent, outcome: Outcome, now: Moment) {
        if sent.generation != self.generation || matches!(self.mode, Mode::Disabled | Mode::ForcedOpen) {
            return;
        }
        let slow = self.policy.window.and_then(|window| window.slow);
        let slow = slow.is_some_and(|slow| now.since(sent.at) > slow.longer_than);
        let is_quick = now.since(sent.at) <= Duration::from_secs(1);
        if sent.probe.is_some() || sent.paced {
            self.out.retain(|(number, _)| Some(*number) != sent.probe);
            match outcome {
                Outcome::Success if !slow => {
                    self.good += 1;
                    let good = self.good;
                    if good >= self.policy.probe.successes {
                        (self.openings, self.long_openings) = (0, 0);
                        self.enter(Mode::Closed, now);
                    } else if self.mode == Mode::Open {
                        self.enter(Mode::Probing, now);
                        self.good = good;
                    }
                }
                Outcome::Ignored => {}
                _ if self.mode == Mode::Probing && !sent.paced => {
                    self.open(outcome != Outcome::Success && is_quick, now);
                }
                _ => {}
            }
            return;
        }
        if outcome == Outcome::Ignored {
            return;
        }
        let failed = outcome != Outcome::Success;
        self.ended.push((now, failed, slow));
        let warned = self.wary && failed;
        self.wary &= failed;
        if (warned || self.is_bad(now)) && self.mode == Mode::Closed {
            self.open(failed && is_quick, now);
        }
    }

    fn is_bad(&self, now: Moment) -> bool {
        let streak = self.ended.iter().rev().take_while(|call| call.1).count() as u32;
        if self.policy.consecutive.is_some_and(|max| streak >= max) && !self.wary {
            return true;
        }
        let Some(window) = self.policy.window else { return false };
        let last: Vec<_> = match window.span {
            Span::Calls(calls) => self.ended.iter().rev().take(calls as usize).collect(),
            Span::Time(length) => {
                let part = |at: Moment| at.nanos() / (length.as_nanos() as u64 / 10);
                self.ended.iter().filter(|call| part(now) - part(call.0) < 10).collect()
            }
            _ => unreachable!(),
        };
        let share = |count: usize| count as f64 / last.len() as f64;
        last.len() >= window.min_calls as usize
            && (share(last.iter().filter(|call| call.1).count()) >= window.failure_rate
                || window
                    .slow
                    .is_some_and(|slow| share(last.iter().filter(|call| call.2).count()) >= slow.rate))
    }
}

fn any_policy() -> impl Strategy<Value = BreakerPolicy> {
    let span = prop_oneof![
        (1_u32..=16).prop_map(Span::Calls),
        (17_u32..30).prop_map(Span::Calls),
        (1_u64..20).prop_map(|seconds| Span::Time(Duration::from_secs(seconds))),
    ];
    let rate = prop_oneof![Just(0.25), Just(0.5), Just(1.0)];
    let slow = proptest::option::of((1_u64..5, rate.clone()));
    let window = proptest::option::of((span, 1_u32..8, rate, slow));
    let consecutive = proptest::option::of(1_u32..6);
    let probe = (1_u32..4, 1_u32..4, 1_u64..8, proptest::option::of(1_u64..3));
    let open = (1_u64..6, prop_oneof![Just(1.0), Just(2.0)], 6_u64..20);
    (consecutive, window, open, probe).prop_map(|(consecutive, window, open, probe)| {
        let window = window.map(|(span, min, failure_rate, slow)| {
            BreakerPolicy::WINDOW.window.unwrap().with(|policy| {
                policy.span = span;
                policy.min_calls = if let Span::Calls(calls) = span { min.min(calls) } else { min };
                policy.failure_rate = failure_rate;
                policy.slow = slow.map(|(seconds, rate)| SlowPolicy::new(Duration::from_secs(seconds), rate));
            })
        });
        BreakerPolicy::BOTH.with(|policy| {
            policy.consecutive = consecutive.or(window.is_none().then_some(3));
            policy.window = window;
            policy.open = BreakerPolicy::BOTH.open.with(|policy| {
                policy.first = Duration::from_secs(open.0);
                policy.growth = open.1;
                policy.cap = Duration::from_secs(open.2);
                policy.jitter = 0.0;
            });
            policy.probe = BreakerPolicy::BOTH.probe.with(|policy| {
                policy.permits = probe.0;
                policy.successes = probe.1;
                policy.timeout = Duration::from_secs(probe.2);
                policy.last_target_every = probe.3.map(Duration::from_secs);
                policy.beside_every = Duration::from_secs(probe.2);
            });
        })
    })
}

/// A step; for one failure there are a third of `good` successes.
fn any_step(good: u32) -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![2 => Just(Outcome::Failure), 1 => Just(Outcome::Unreachable), good => Just(Outcome::Success), 1 => Just(Outcome::Ignored)];
    prop_oneof![
        4 * good => any::<bool>().prop_map(|last| Step::Admit { last }),
        good => Just(Step::AdmitBeside),
        4 * good => (any::<usize>(), outcome).prop_map(|(which, outcome)| Step::Record { which, outcome }),
        2 => any::<usize>().prop_map(|which| Step::Drop { which }),
        6 => (1_u64..4000).prop_map(|millis| Step::Advance { millis }),
        1 => prop_oneof![Just(ForcedMode::Open), Just(ForcedMode::Closed), Just(ForcedMode::Disabled)].prop_map(Step::Force),
        2 => Just(Step::Release),
        1 => Just(Step::Reset),
        1 => Just(Step::Hint),
    ]
}

fn remote_opening() -> BreakerSnapshot {
    let at = Timestamp::UNIX_EPOCH;
    BreakerSnapshot { at, mode: Mode::Open, since: at, until: None, openings: 1, why: None, is_local: false }
}

/// Plays the steps on both and compares every answer.
fn compare(policy: BreakerPolicy, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let changes = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&changes);
    let breaker = Breaker::new(policy, Seed::new(1), Moment::START).unwrap().watched(move |transition| {
        let before = seen.swap(transition.generation, Ordering::Relaxed);
        assert_eq!(before + 1, transition.generation, "every change is reported, in order");
    });
    let mut model = Model::new(policy);
    let mut now = Moment::START;
    let mut sent: Vec<(Permit<&Breaker>, Sent)> = Vec::new();
    for step in steps {
        match step {
            Step::Admit { last } => {
                let answer = if last { breaker.admit_last(now) } else { breaker.admit(now) };
                let expected = model.admit(last, now);
                prop_assert_eq!(answer.is_ok(), expected.is_some());
                if let (Ok(permit), Some(call)) = (answer, expected) {
                    prop_assert_eq!(permit.is_probe(), call.probe.is_some() || call.paced);
                    sent.push((permit, call));
                }
            }
            Step::AdmitBeside => {
                prop_assert_eq!(
                    breaker.refusal_beside(now).is_none(),
                    model.mode != Mode::ForcedOpen
                        && (now >= model.next_beside || !matches!(model.mode, Mode::Open | Mode::Probing))
                );
                let answer = breaker.admit_beside(now);
                let expected = model.admit_beside(now);
                prop_assert_eq!(answer.is_ok(), expected.is_some());
                if let (Ok(permit), Some(call)) = (answer, expected) {
                    sent.push((permit, call));
                }
            }
            Step::Record { which, outcome } if !sent.is_empty() => {
                let (permit, call) = sent.swap_remove(which % sent.len());
                permit.record(outcome, now);
                model.record(&call, outcome, now);
            }
            Step::Drop { which } if !sent.is_empty() => {
                let (permit, call) = sent.swap_remove(which % sent.len());
                drop(permit);
                if call.generation == model.generation {
                    model.out.retain(|(number, _)| Some(*number) != call.probe);
                }
            }
            Step::Advance { millis } => now = now.after(Duration::from_millis(millis)),
            Step::Force(forced) => {
                breaker.force(forced, now);
                let mode = match forced {
                    ForcedMode::Open => Mode::ForcedOpen,
                    ForcedMode::Closed => Mode::ForcedClosed,
                    _ => Mode::Disabled,
                };
                model.enter(mode, now);
            }
            Step::Reset => {
                breaker.reset(now);
                (model.openings, model.long_openings) = (0, 0);
                model.enter(Mode::Closed, now);
            }
            Step::Release => {
                breaker.release(now);
                match model.mode {
                    Mode::ForcedOpen | Mode::Disabled => {
                        (model.openings, model.long_openings) = (0, 0);
                        model.enter(Mode::Closed, now);
                    }
                    Mode::ForcedClosed => {
                        model.generation += 1;
                        model.mode = Mode::Closed;
                        if model.is_bad(now) {
                            model.open(false, now);
                        }
                    }
                    _ => {}
                }
            }
            Step::Hint => {
                breaker.hint(&remote_opening());
                model.wary |= matches!(model.mode, Mode::Closed | Mode::ForcedClosed);
            }
            _ => {}
        }
        prop_assert_eq!(breaker.mode(), model.mode);
        prop_assert_eq!(changes.load(Ordering::Relaxed), model.generation);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_breaker_does_what_the_model_does(policy in any_policy(), steps in proptest::collection::vec(any_step(3), 1..150)) {
        compare(policy, steps)?;
    }

    /// Long stretches without a failure, so that full and spotless windows are met too.
    #[test]
    fn a_mostly_healthy_breaker_does_so_too(policy in any_policy(), steps in proptest::collection::vec(any_step(60), 1..300)) {
        compare(policy, steps)?;
    }

    #[test]
    fn a_breaker_is_never_stuck(policy in any_policy(), steps in proptest::collection::vec(any_step(3), 1..100)) {
        let breaker = Breaker::new(policy, Seed::new(1), Moment::START).unwrap();
        let mut now = Moment::START;
        let mut sent: Vec<Permit<&Breaker>> = Vec::new();
        for step in steps {
            match step {
                Step::Admit { .. } => sent.extend(breaker.admit(now)),
                Step::Record { which, outcome } if !sent.is_empty() => {
                    let index = which % sent.len();
                    sent.swap_remove(index).record(outcome, now);
                }
                // The worst caller: it loses its permits.
                Step::Drop { which } if !sent.is_empty() => std::mem::forget(sent.swap_remove(which % sent.len())),
                Step::Advance { millis } => now = now.after(Duration::from_millis(millis)),
                _ => {}
            }
        }
        let patience = policy.open.cap + policy.probe.timeout;
        now = now.after(patience);
        prop_assert!(breaker.admit(now).is_ok(), "{:?}", breaker.mode());
    }
}
