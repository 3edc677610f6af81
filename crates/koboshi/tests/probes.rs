//! How soon a target that failed is back in use, and what that costs: random outages, played against the real breaker on a
//! clock of its own, with the figures that the documentation names.
//!
//! One request every four seconds, and a second target that always answers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "helpers of tests"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use koboshi::breaker::{Breaker, BreakerPolicy, Mode};
use koboshi::budget::{RetryShare, SharePolicy};
use koboshi::call::{Attempt, Call, Next};
use koboshi::chance::Seed;
use koboshi::fault::{Fault, Kind};
use koboshi::remedy::RemedyPolicy;
use koboshi::time::Moment;

const EVERY: Duration = Duration::from_secs(4);

/// How a target fails.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Failing {
    kind: Kind,
    after: Duration,
}

const QUICK: Failing = Failing { kind: Kind::Unavailable, after: Duration::from_millis(100) };
const SILENT: Failing = Failing { kind: Kind::Timeout, after: Duration::from_secs(30) };

/// What an outage cost.
#[derive(Debug, Default)]
struct Toll {
    /// From the end of the outage to the first request that the target serves.
    back_after: Duration,
    /// Calls that failed.
    wasted: u32,
    /// How long a request waited that came while the breaker was not closed, at most.
    delay: Duration,
}

/// What happens at a time.
enum Event<'a> {
    Request,
    /// A request goes on: where it is, and when it came.
    GoesOn(Box<Call<'a, Arc<Breaker>>>, Came),
    /// An attempt on the first target ends.
    Ends(Option<Box<Call<'a, Arc<Breaker>>>>, Attempt<Arc<Breaker>>, Came, bool),
    /// The target is probed beside requests, if its breaker lets a probe through.
    Probe,
}

#[derive(Clone, Copy)]
struct Came {
    at: Moment,
    was_open: bool,
}

/// Plays one outage that begins at `begin`. Where probes are dear, they go beside the requests, as the gateway sends them.
fn play(policy: BreakerPolicy, failing: Failing, (begin, length): (Duration, Duration), seed: u64) -> Toll {
    let start = Moment::START;
    let breakers = [0, 1].map(|nth| Arc::new(Breaker::new(policy, Seed::new(seed).nth(nth), start).unwrap()));
    let share = RetryShare::new(SharePolicy::default(), start);
    let remedy = RemedyPolicy::default();
    let (from, to) = (start.after(begin), start.after(begin + length));
    let mut events: BTreeMap<(Moment, u64), Event<'_>> = BTreeMap::new();
    let mut toll = Toll::default();
    let mut number = 0;
    let mut probes_beside = false;
    let mut put = |events: &mut BTreeMap<_, _>, at: Moment, event| {
        number += 1;
        events.insert((at, number), event);
    };
    put(&mut events, start, Event::Request);
    while let Some(((now, _), event)) = events.pop_first() {
        let is_down = now >= from && now < to;
        let takes = if is_down { failing.after } else { Duration::from_millis(500) };
        let (mut call, came) = match event {
            Event::Request => {
                put(&mut events, now.after(EVERY), Event::Request);
                let call = Call::new(&breakers, &share, &remedy, Seed::new(seed ^ now.nanos()));
                let was_open = breakers[0].mode() != Mode::Closed;
                (Box::new(call), Came { at: now, was_open })
            }
            Event::GoesOn(call, came) => (call, came),
            Event::Ends(call, attempt, came, failed) => {
                if !failed {
                    attempt.succeeded(now);
                    if now > to && call.is_some() {
                        toll.back_after = came.at.since(to);
                        return toll;
                    }
                    continue;
                }
                toll.wasted += 1;
                let fault = Fault::of(failing.kind, "test");
                match call {
                    Some(mut call) => {
                        let _ = call.failed(attempt, fault, now);
                        (call, came)
                    }
                    None => {
                        let mut call = Call::new(&breakers, &share, &remedy, Seed::new(seed)).beside();
                        let _ = call.failed(attempt, fault, now);
                        continue;
                    }
                }
            }
            Event::Probe => {
                probes_beside = breakers[0].probe_is_dear();
                if !probes_beside {
                    continue;
                }
                let pause = breakers[0].refusal_beside(now).and_then(|refused| refused.wait(now));
                let pause = pause.unwrap_or(Duration::from_millis(100)).max(Duration::from_millis(100));
                put(&mut events, now.after(pause.min(Duration::from_secs(10))), Event::Probe);
                if breakers[0].refusal_beside(now).is_none() {
                    let mut call = Call::new(&breakers[..1], &share, &remedy, Seed::new(seed)).beside();
                    if let Next::Try(attempt) = call.next(now) {
                        put(
                            &mut events,
                            now.after(takes),
                            Event::Ends(None, attempt, Came { at: now, was_open: true }, is_down),
                        );
                    }
                }
                continue;
            }
        };
        if breakers[0].probe_is_dear() {
            call.defer(0);
            if !probes_beside {
                probes_beside = true;
                put(&mut events, now, Event::Probe);
            }
        }
        match call.next(now) {
            Next::Try(attempt) if attempt.target() == 0 => {
                put(&mut events, now.after(takes), Event::Ends(Some(call), attempt, came, is_down));
            }
            Next::Try(attempt) => {
                attempt.succeeded(now);
                if came.was_open {
                    toll.delay = toll.delay.max(now.since(came.at));
                }
            }
            Next::Pause(pause) => put(&mut events, now.after(pause.length), Event::GoesOn(call, came)),
            Next::Over(_) => panic!("the second target always answers"),
        }
    }
    toll
}

/// Outages of 5 to 300 s, or of one length, that begin at any time between two requests.
fn outages(policy: BreakerPolicy, failing: Failing, length: Option<u64>) -> Vec<Toll> {
    let play = |seed: u64| {
        let chance = Seed::new(seed);
        let any = |nth, from: u64, to: u64| {
            chance.nth(nth).between(Duration::from_millis(from), Duration::from_millis(to))
        };
        let length = length.map_or_else(|| any(1, 5_000, 300_000), Duration::from_secs);
        play(policy, failing, (any(2, 60_000, 64_000), length), seed)
    };
    (0..2_000).map(play).collect()
}

fn in_use_within(tolls: &[Toll], within: Duration) -> f64 {
    tolls.iter().filter(|toll| toll.back_after <= within).count() as f64 / tolls.len() as f64
}

fn quantile(tolls: &[Toll], share: f64) -> f64 {
    let mut all: Vec<_> = tolls.iter().map(|toll| toll.back_after).collect();
    all.sort_unstable();
    all[((all.len() - 1) as f64 * share) as usize].as_secs_f64()
}

#[test]
fn a_target_that_failed_quickly_is_back_within_ten_seconds_and_few_calls_are_wasted() {
    let any = outages(BreakerPolicy::BOTH, QUICK, None);
    let minute = outages(BreakerPolicy::BOTH, QUICK, Some(60));
    let wasted = minute.iter().map(|toll| toll.wasted).max().unwrap();
    let (half, most) = (quantile(&any, 0.5), quantile(&any, 0.95));
    let within = in_use_within(&any, Duration::from_secs(10));
    eprintln!(
        "quick: back after {half:.1} s, 95 % after {most:.1} s, {within:.3} within 10 s; {wasted} wasted in 60 s"
    );
    assert!(within >= 0.95, "only {within} within ten seconds");
    assert!(wasted <= 12, "{wasted} calls wasted in a minute");
    let delay = any.iter().map(|toll| toll.delay).max().unwrap();
    assert!(delay < Duration::from_secs(1), "a request that was a probe lost {delay:?}");
}

#[test]
fn no_request_waits_for_a_probe_of_a_silent_target_and_it_is_back_within_ten_seconds() {
    let any = outages(BreakerPolicy::BOTH, SILENT, None);
    let minute = outages(BreakerPolicy::BOTH, SILENT, Some(60));
    let delay = any.iter().chain(&minute).map(|toll| toll.delay).max().unwrap();
    let wasted = minute.iter().map(|toll| toll.wasted).max().unwrap();
    let (half, most) = (quantile(&any, 0.5), quantile(&any, 0.95));
    eprintln!(
        "silent: back after {half:.1} s, 95 % after {most:.1} s; {wasted} wasted in 60 s; delay {delay:?}"
    );
    assert_eq!(delay, Duration::ZERO, "a request that came while the breaker was open was delayed");
    let within = in_use_within(&any, Duration::from_secs(10));
    assert!(within >= 0.95, "only {within} within ten seconds");
    assert!(wasted <= 12, "{wasted} calls wasted in a minute");
}
