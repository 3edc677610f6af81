//! A healthy target is always asked: whatever the targets before it do, the client gets its answer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::breaker::{Breaker, BreakerPolicy, ForcedMode};
use koboshi::budget::{RetryShare, SharePolicy};
use koboshi::call::{Call, Next};
use koboshi::chance::Seed;
use koboshi::fault::{Fault, Kind, Scope};
use koboshi::remedy::{Remedy, RemedyPolicy};
use koboshi::time::Moment;
use koboshi::wait::{Form, Wait, WaitZone};
use proptest::prelude::*;

/// What a target does.
#[derive(Debug, Clone)]
struct Behaviour {
    /// It fails like this every time; none: it answers.
    fault: Option<(Kind, Option<u64>)>,
    provider: u8,
    /// Its breaker is open.
    is_open: bool,
}

fn fault(kind: Kind, wait: Option<u64>) -> Fault {
    let mut fault = Fault::of(kind, "test");
    fault.wait = wait.map(|seconds| {
        let after = Duration::from_secs(seconds);
        let until = Timestamp::UNIX_EPOCH.saturating_add(after).unwrap();
        Wait { after, until, form: Form::Countdown, zone: WaitZone::Unneeded }
    });
    fault
}

/// Faults after which another target may succeed.
fn kinds() -> Vec<Kind> {
    let filtered = |kind: &Kind| *kind != Kind::ContentFiltered;
    let others = |kind: &Kind| Fault::of(*kind, "test").advice.other;
    Kind::ALL.iter().copied().filter(filtered).filter(others).collect()
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    let fault = prop_oneof![
        4 => (proptest::sample::select(kinds()), proptest::option::of(0_u64..6)).prop_map(Some),
        1 => Just(None),
    ];
    (fault, 0_u8..4, proptest::bool::weighted(0.2)).prop_map(|(fault, provider, is_open)| Behaviour {
        fault,
        provider,
        is_open,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_healthy_target_that_may_be_asked_answers(
        mut chain in proptest::collection::vec(behaviour(), 1..=8), healthy in any::<proptest::sample::Index>(), seed in any::<u64>(),
        quiet in any::<bool>(),
    ) {
        let healthy = healthy.index(chain.len());
        (chain[healthy].fault, chain[healthy].is_open) = (None, false);
        let breaker = |one: &Behaviour| {
            let breaker = Breaker::new(BreakerPolicy::BOTH, Seed::new(seed), Moment::START).unwrap();
            if one.is_open {
                breaker.force(ForcedMode::Open, Moment::START);
            }
            Arc::new(breaker)
        };
        let breakers: Vec<_> = chain.iter().map(breaker).collect();
        // A quiet gateway has retries to spend, a busy one has none.
        let per_second = if quiet { 10.0 } else { 0.0 };
        let share = RetryShare::new(SharePolicy::default().with(|policy| { policy.share = 0.0; policy.per_second = per_second; }), Moment::START);
        let policy = RemedyPolicy::default();
        let mut call = Call::new(&breakers, &share, &policy, Seed::new(seed));
        let mut now = Moment::START;
        let mut sent = Vec::new();
        let answered = loop {
            match call.next(now) {
                Next::Pause(pause) => now = now.after(pause.length),
                Next::Over(_) => break false,
                Next::Try(attempt) => {
                    let place = attempt.target();
                    sent.push(place);
                    let Some((kind, wait)) = chain[place].fault else {
                        attempt.succeeded(now);
                        break true;
                    };
                    let fault = fault(kind, wait);
                    let scope = fault.scope;
                    let remedy = call.failed(attempt, fault, now);
                    call.go_on(remedy);
                    if remedy == Remedy::Elsewhere && scope == Scope::Provider {
                        let provider = chain[place].provider;
                        let siblings = chain.iter().enumerate().filter(|(_, one)| one.provider == provider);
                        siblings.for_each(|(sibling, _)| call.defer(sibling));
                    }
                }
            }
        };
        prop_assert!(answered, "asked {sent:?}");
    }
}
