//! `breaker`: when a target that keeps failing is left alone.

use std::time::Duration;

use koboshi::breaker::{
    BreakerPolicy, LARGEST_WINDOW, LONGEST_STREAK, LONGEST_WINDOW, SlowPolicy, Span, WindowPolicy,
};

use super::super::{Field, Key, Range};
use super::build::{
    GROWTH, INSTANT, RATE, SOME_COUNT, SOME_LENGTH, at, count, count_at, length, narrow, number,
    optional_count, optional_count_at, optional_length, section, word,
};
use crate::config::Config;

const PRESETS: [(&str, BreakerPolicy); 3] = [
    ("consecutive", BreakerPolicy::CONSECUTIVE),
    ("window", BreakerPolicy::WINDOW),
    ("both", BreakerPolicy::BOTH),
];

/// The share of slow calls that opens a breaker, where only their length is set.
const SLOW_RATE: f64 = 0.5;

/// Changes the window; a preset that has none gets the one of the design first.
fn with_window(config: &mut Config, change: impl FnOnce(&mut WindowPolicy)) {
    config.breaker.window = config.breaker.window.or(BreakerPolicy::WINDOW.window);
    if let Some(window) = &mut config.breaker.window {
        change(window);
    }
}

/// Changes what a slow call is; until its length is set, a slow call of no length is refused by the core.
fn with_slow(config: &mut Config, change: impl FnOnce(&mut SlowPolicy)) {
    with_window(config, |window| {
        change(window.slow.get_or_insert(SlowPolicy { longer_than: Duration::ZERO, rate: SLOW_RATE }));
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
        section("breaker", "When a target that keeps failing is left alone"),
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
            "Where the other keys of `breaker` start from",
        ),
        optional_count(
            "breaker.consecutive",
            Range::of(1, LONGEST_STREAK as u64),
            optional_count_at!(breaker.consecutive),
            "Opens after so many failures in a row",
        ),
        section("breaker.window", "Opens by the share of failed or slow calls"),
        count(
            "breaker.window.calls",
            Range::of(1, LARGEST_WINDOW as u64),
            window!(
                window => match window.span { Span::Calls(calls) => Some(u64::from(calls)), _ => None },
                calls => window.span = Span::Calls(narrow(calls))
            ),
            "Looks back on the last so many calls; this or `time`",
        ),
        length(
            "breaker.window.time",
            Range::of(INSTANT, LONGEST_WINDOW),
            window!(
                window => match window.span { Span::Time(length) => Some(length), _ => None },
                length => window.span = Span::Time(length)
            ),
            "Looks back on the calls of so long; this or `calls`",
        ),
        count(
            "breaker.window.least_calls",
            SOME_COUNT,
            window!(window => Some(u64::from(window.least_calls)), calls => window.least_calls = narrow(calls)),
            "With fewer calls nothing is concluded; at most `calls`",
        ),
        number(
            "breaker.window.failure_rate",
            RATE,
            window!(window => Some(window.failure_rate), rate => window.failure_rate = rate),
            "This share of failures opens it",
        ),
        section(
            "breaker.window.slow",
            "Calls that answer, but too slowly; counted once `longer_than` is set",
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
            "A call that takes longer is slow",
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
            "This share of slow calls opens it",
        ),
        section("breaker.open", "How long it stays open"),
        length(
            "breaker.open.first",
            SOME_LENGTH,
            at!(breaker.open.first),
            "How long it stays open the first time",
        ),
        number(
            "breaker.open.growth",
            GROWTH,
            at!(breaker.open.growth),
            "What it is multiplied by each time that the probes fail",
        ),
        length("breaker.open.cap", SOME_LENGTH, at!(breaker.open.cap), "It never stays open longer"),
        number(
            "breaker.open.jitter",
            Range::below(0.0, 1.0),
            at!(breaker.open.jitter),
            "Up to this share of it is left out by chance, so that breakers do not probe in step",
        ),
        section("breaker.probe", "How it finds out whether the target is back"),
        count(
            "breaker.probe.permits",
            SOME_COUNT,
            count_at!(breaker.probe.permits),
            "Probes at the same time",
        ),
        count(
            "breaker.probe.successes",
            SOME_COUNT,
            count_at!(breaker.probe.successes),
            "Successes in a row that close it",
        ),
        length(
            "breaker.probe.longest",
            SOME_LENGTH,
            at!(breaker.probe.longest),
            "A probe that has not come back for so long is written off",
        ),
        optional_length(
            "breaker.probe.last_target_every",
            SOME_LENGTH,
            Field {
                get: |c, _| c.breaker.probe.last_target_every,
                set: |c, _, every| c.breaker.probe.last_target_every = every,
            },
            "When no other target is left, one call in each such stretch passes an open breaker",
        ),
    ]
}
