//! `breaker`: when a target that keeps failing is no longer asked.

use std::time::Duration;

use koboshi::breaker::{
    BreakerPolicy, MAX_STREAK, MAX_WINDOW_CALLS, MAX_WINDOW_TIME, SlowPolicy, Span, WindowPolicy,
};

use super::super::{Field, Key, Range};
use super::build::{
    GROWTH, INSTANT, RATE, SOME_COUNT, SOME_LENGTH, at, count, count_at, flag, length, narrow, number,
    optional_count, optional_count_at, optional_length, section, word,
};
use crate::config::Config;

const PRESETS: [(&str, BreakerPolicy); 3] = [
    ("consecutive", BreakerPolicy::CONSECUTIVE),
    ("window", BreakerPolicy::WINDOW),
    ("both", BreakerPolicy::BOTH),
];

/// The default share of slow calls that opens a breaker, where only their length is set.
const SLOW_RATE: f64 = 0.5;

/// Changes the window; a preset without one gets the default window first.
fn with_window(config: &mut Config, change: impl FnOnce(&mut WindowPolicy)) {
    config.breaker.window = config.breaker.window.or(BreakerPolicy::WINDOW.window);
    if let Some(window) = &mut config.breaker.window {
        change(window);
    }
}

/// Changes what a slow call is; until its length is set, the core refuses a slow call of zero length.
fn with_slow(config: &mut Config, change: impl FnOnce(&mut SlowPolicy)) {
    with_window(config, |window| {
        change(window.slow.get_or_insert(SlowPolicy::new(Duration::ZERO, SLOW_RATE)));
    });
}

/// A field of the window.
macro_rules! window {
    ($window:ident => $get:expr, $value:ident => $set:expr) => {
        Field {
            get: |c, _| c.breaker.window.and_then(|$window| $get),
            set: |c, _, value| {
                if let Some($value) = value {
                    with_window(c, |$window| $set);
                }
            },
        }
    };
}

pub(super) fn keys() -> Vec<Key> {
    vec![
        section("breaker", "Circuit breaker of each target"),
        word(
            "breaker.preset",
            &["consecutive", "window", "both"],
            Field {
                get: |c, _| PRESETS.iter().find(|(_, policy)| *policy == c.breaker).map(|(name, _)| *name),
                set: |c, _, name| {
                    if let Some((_, policy)) = PRESETS.iter().find(|preset| Some(preset.0) == name) {
                        c.breaker = *policy;
                    }
                },
            },
            "Values that the other keys of `breaker` start from",
        ),
        optional_count(
            "breaker.consecutive_failures",
            Range::of(1, MAX_STREAK as u64),
            optional_count_at!(breaker.consecutive),
            "Number of failures in a row that opens the breaker",
        ),
        section("breaker.window", "Opens the breaker by the share of failed or slow calls"),
        count(
            "breaker.window.calls",
            Range::of(1, MAX_WINDOW_CALLS as u64),
            window!(
                window => match window.span { Span::Calls(calls) => Some(u64::from(calls)), _ => None },
                calls => window.span = Span::Calls(narrow(calls))
            ),
            "Number of latest calls that are counted; set this or `time`",
        ),
        length(
            "breaker.window.time",
            Range::of(INSTANT, MAX_WINDOW_TIME),
            window!(
                window => match window.span { Span::Time(length) => Some(length), _ => None },
                length => window.span = Span::Time(length)
            ),
            "Length of the time window that is counted; set this or `calls`",
        ),
        count(
            "breaker.window.min_calls",
            SOME_COUNT,
            window!(window => Some(u64::from(window.min_calls)), calls => window.min_calls = narrow(calls)),
            "Minimum number of calls before the breaker may open; at most `calls`",
        ),
        number(
            "breaker.window.failure_rate",
            RATE,
            window!(window => Some(window.failure_rate), rate => window.failure_rate = rate),
            "Share of failed calls that opens the breaker",
        ),
        section(
            "breaker.window.slow",
            "Calls that succeed but are too slow; counted when `longer_than` is set",
        ),
        length(
            "breaker.window.slow.longer_than",
            SOME_LENGTH,
            Field {
                get: |c, _| c.breaker.window.and_then(|window| window.slow).map(|slow| slow.longer_than),
                set: |c, _, length| {
                    if let Some(length) = length {
                        with_slow(c, |slow| slow.longer_than = length);
                    }
                },
            },
            "A call that takes longer counts as slow",
        ),
        number(
            "breaker.window.slow.rate",
            RATE,
            Field {
                get: |c, _| {
                    Some(c.breaker.window.and_then(|window| window.slow).map_or(SLOW_RATE, |slow| slow.rate))
                },
                set: |c, _, rate| {
                    if let Some(rate) = rate {
                        with_slow(c, |slow| slow.rate = rate);
                    }
                },
            },
            "Share of slow calls that opens the breaker",
        ),
        section("breaker.open", "How long the breaker stays open"),
        length(
            "breaker.open.initial",
            SOME_LENGTH,
            at!(breaker.open.first),
            "How long the breaker stays open the first time",
        ),
        number(
            "breaker.open.multiplier",
            GROWTH,
            at!(breaker.open.growth),
            "Factor by which the open time grows each time the probes fail; it does not grow where they fail within a second",
        ),
        length(
            "breaker.open.max",
            SOME_LENGTH,
            at!(breaker.open.cap),
            "Maximum time that the breaker stays open",
        ),
        number(
            "breaker.open.jitter",
            Range::below(0.0, 1.0),
            at!(breaker.open.jitter),
            "Random share by which the open time is shortened, so that breakers do not probe at the same time",
        ),
        section("breaker.probe", "Trial calls that decide whether the target works again"),
        count(
            "breaker.probe.max_concurrent",
            SOME_COUNT,
            count_at!(breaker.probe.permits),
            "Maximum number of probes at the same time",
        ),
        count(
            "breaker.probe.successes",
            SOME_COUNT,
            count_at!(breaker.probe.successes),
            "Number of successful probes in a row that closes the breaker",
        ),
        length(
            "breaker.probe.timeout",
            SOME_LENGTH,
            at!(breaker.probe.timeout),
            "A probe without a result after this time counts as lost",
        ),
        flag(
            "breaker.probe.beside",
            at!(breaker.probe.beside),
            "While other targets answer, a target that fails slowly is probed with a tiny request of Koboshi's own, so that no client waits for it",
        ),
        length(
            "breaker.probe.beside_interval",
            SOME_LENGTH,
            at!(breaker.probe.beside_every),
            "Time between two of these requests; one does not wait for the one before it",
        ),
        optional_length(
            "breaker.probe.last_target_interval",
            SOME_LENGTH,
            Field {
                get: |c, _| c.breaker.probe.last_target_every,
                set: |c, _, every| c.breaker.probe.last_target_every = every,
            },
            "When no other target is left, one call per interval may pass an open breaker",
        ),
    ]
}
