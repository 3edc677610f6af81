//! `breaker`, `gate`, `error_protection` and `cooldown`: when something is left alone, and for how long.

use std::time::Duration;

use koboshi::breaker::{
    BreakerPolicy, LARGEST_WINDOW, LONGEST_STREAK, LONGEST_WINDOW, SlowPolicy, Span, WindowPolicy,
};
use koboshi::cooldown::{ClassPolicy, CooldownPolicy};
use koboshi::gate::LARGEST_QUEUE;

use super::super::{Field, Key, Range};
use super::build::{
    ANY_LENGTH, GROWTH, INSTANT, RATE, SHARE, SOME_COUNT, SOME_LENGTH, at, count, count_at, flag, length,
    narrow, number, optional_count, optional_count_at, optional_length, seconds, section, word,
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
            get: |c| c.breaker.window.and_then(|$window| $get),
            set: |c, value| {
                if let Some($value) = value {
                    with_window(c, |$window| $set);
                }
            },
        }
    };
}

pub(super) fn breaker() -> Vec<Key> {
    vec![
        section("breaker", "When a target that keeps failing is left alone"),
        word(
            "breaker.preset",
            &["consecutive", "window", "both"],
            Field {
                get: |c| PRESETS.iter().find(|(_, policy)| *policy == c.breaker).map(|(name, _)| *name),
                set: |c, name| {
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
                get: |c| c.breaker.window.and_then(|window| window.slow).map(|slow| slow.longer_than),
                set: |c, length| {
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
                get: |c| {
                    Some(c.breaker.window.and_then(|window| window.slow).map_or(SLOW_RATE, |slow| slow.rate))
                },
                set: |c, rate| {
                    if let Some(rate) = rate {
                        with_slow(c, |slow| slow.rate = rate);
                    }
                },
            },
            "This share of slow calls opens it",
        ),
        section("breaker.open", "How long it stays open"),
        length("breaker.open.first", SOME_LENGTH, at!(breaker.open.first), "How long it stays open the first time"),
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
                get: |c| c.breaker.probe.last_target_every,
                set: |c, every| c.breaker.probe.last_target_every = every,
            },
            "When no other target is left, one call in each such stretch passes an open breaker",
        ),
    ]
}

pub(super) fn gate() -> Vec<Key> {
    vec![
        section("gate", "How close to a limit traffic may go"),
        optional_count(
            "gate.concurrency",
            SOME_COUNT,
            optional_count_at!(gate.concurrency),
            "Calls at the same time; `off` leaves it to the provider",
        ),
        count(
            "gate.queue",
            Range::of(0, LARGEST_QUEUE as u64),
            count_at!(gate.queue),
            "Callers that may wait; one more is refused at once",
        ),
        length("gate.longest_wait", ANY_LENGTH, at!(gate.longest_wait), "No caller waits longer"),
        length(
            "gate.stagger",
            ANY_LENGTH,
            at!(gate.stagger),
            "After a hold, waiters are let through one in each such stretch",
        ),
        number(
            "gate.headroom",
            Range::below(0.0, 1.0),
            at!(gate.headroom),
            "This share of a learned limit is left for other programs of the account",
        ),
        length(
            "gate.forget_after",
            ANY_LENGTH,
            at!(gate.forget_after),
            "What was learned from headers is forgotten after so long without news",
        ),
    ]
}

/// The four keys of one class.
macro_rules! class {
    ($name:ident, $meaning:literal) => {
        [
            section(concat!("cooldown.", stringify!($name)), $meaning),
            length(
                concat!("cooldown.", stringify!($name), ".base"),
                SOME_LENGTH,
                at!(cooldown.$name.base),
                "The first rest",
            ),
            number(
                concat!("cooldown.", stringify!($name), ".growth"),
                GROWTH,
                at!(cooldown.$name.growth),
                "What the rest is multiplied by at each further failure in a row",
            ),
            length(
                concat!("cooldown.", stringify!($name), ".cap"),
                SOME_LENGTH,
                at!(cooldown.$name.cap),
                "No rest of our own choice is longer; a stated one may be",
            ),
            optional_count(
                concat!("cooldown.", stringify!($name), ".park_after"),
                SOME_COUNT,
                optional_count_at!(cooldown.$name.park_after),
                "After so many failures in a row a person must resume it",
            ),
        ]
    };
}

/// `max_cooldown_seconds`: every class rests so long at most. Classes that by design end sooner than the seed's hour keep
/// their own end when the limit is higher, so that the seed's own values change nothing.
fn limit_rests(cooldown: &mut CooldownPolicy, most: Duration) {
    let limit = |class: &mut ClassPolicy, seed: Duration| {
        class.cap = if class.cap == seed { most } else { class.cap.min(most) };
        class.base = class.base.min(most);
    };
    let seed = CooldownPolicy::default().error.cap;
    limit(&mut cooldown.error, seed);
    limit(&mut cooldown.network, seed);
    limit(&mut cooldown.overloaded, seed);
    limit(&mut cooldown.rate_limit, seed);
    limit(&mut cooldown.quota, seed);
}

pub(super) fn cooldown() -> Vec<Key> {
    let mut keys = vec![
        section(
            "error_protection",
            "The four keys of the spawn protection, in seconds as its design writes them",
        ),
        flag(
            "error_protection.enabled",
            at!(cooldown.enabled),
            "Off: failures are not counted and nothing rests; what a person set still holds",
        ),
        seconds(
            "error_protection.max_cooldown_seconds",
            Field {
                get: |c| Some(c.cooldown.error.cap),
                set: |c, most| {
                    if let Some(most) = most {
                        limit_rests(&mut c.cooldown, most);
                    }
                },
            },
            "No class rests longer by our own choice; this or the `cap` of `cooldown`",
        ),
        seconds(
            "error_protection.default_cooldown_seconds",
            at!(cooldown.error.base),
            "The first rest after an error; this or `cooldown.error.base`",
        ),
        flag(
            "error_protection.quota_detection_enabled",
            at!(cooldown.detection),
            "Off: every failure counts as an `error`, whatever was read",
        ),
        section("cooldown", "How long things rest after they failed"),
    ];
    keys.extend(class!(error, "It failed for a reason of its own"));
    keys.extend(class!(network, "It cannot be reached"));
    keys.extend(class!(overloaded, "It lacks capacity"));
    keys.extend(class!(rate_limit, "Too much in a short window"));
    keys.extend(class!(quota, "An allowance for a long window is used up"));
    keys.extend(rests());
    keys
}

fn rests() -> [Key; 14] {
    [
        section("cooldown.margin", "What is added to a wait that a provider stated"),
        length(
            "cooldown.margin.least",
            ANY_LENGTH,
            at!(cooldown.margin.least),
            "Added to a countdown, at least",
        ),
        number("cooldown.margin.share", SHARE, at!(cooldown.margin.share), "Added to a countdown, as a share of it"),
        length("cooldown.margin.most", ANY_LENGTH, at!(cooldown.margin.most), "Added to a countdown, at most"),
        length(
            "cooldown.margin.instant",
            ANY_LENGTH,
            at!(cooldown.margin.instant),
            "Added to a reset that was stated as an instant",
        ),
        length(
            "cooldown.longest_stated",
            ANY_LENGTH,
            at!(cooldown.longest_stated),
            "A stated wait is believed up to this",
        ),
        number(
            "cooldown.jitter",
            SHARE,
            at!(cooldown.jitter),
            "Up to this share is added to every rest of our own choice but the first",
        ),
        length(
            "cooldown.healthy_run",
            ANY_LENGTH,
            at!(cooldown.healthy_run),
            "A run that lasted so long was healthy: the failures before it are forgotten",
        ),
        length(
            "cooldown.least_run",
            ANY_LENGTH,
            at!(cooldown.least_run),
            "A run that ended well sooner than this was no success",
        ),
        count("cooldown.starts", SOME_COUNT, count_at!(cooldown.starts), "At most so many starts within `starts_within`"),
        length(
            "cooldown.starts_within",
            ANY_LENGTH,
            at!(cooldown.starts_within),
            "The stretch that `starts` counts in, whatever the exit codes",
        ),
        length(
            "cooldown.longest_probe",
            ANY_LENGTH,
            at!(cooldown.longest_probe),
            "After a rest one probe goes first; if nothing is heard of it for so long, the next one may",
        ),
        length(
            "cooldown.stagger",
            ANY_LENGTH,
            at!(cooldown.stagger),
            "After the probe's success the others follow, one in each such stretch",
        ),
        length(
            "cooldown.release",
            ANY_LENGTH,
            at!(cooldown.release),
            "How long the others follow one by one; then the key is free",
        ),
    ]
}
