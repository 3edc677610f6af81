//! `gate`, `error_protection` and `cooldown`: limits, and what cools down for how long.

use std::time::Duration;

use koboshi::cooldown::{ClassPolicy, CooldownPolicy};
use koboshi::gate::MAX_QUEUE;

use super::super::{Field, Key, Range};
use super::build::{
    ANY_LENGTH, GROWTH, SHARE, SOME_COUNT, SOME_LENGTH, at, count, count_at, flag, length, number,
    optional_count, optional_count_at, seconds, section,
};

pub(super) fn gate() -> Vec<Key> {
    vec![
        section("gate", "Rate limits and concurrency of each target"),
        optional_count(
            "gate.max_concurrency",
            SOME_COUNT,
            optional_count_at!(gate.concurrency),
            "Maximum number of concurrent calls per target; `off` leaves it to the provider",
        ),
        count(
            "gate.max_queue",
            Range::of(0, MAX_QUEUE as u64),
            count_at!(gate.queue),
            "Maximum number of requests that may wait; further ones are refused at once",
        ),
        length(
            "gate.max_wait",
            ANY_LENGTH,
            at!(gate.max_wait),
            "Maximum time that a request waits in the queue",
        ),
        length(
            "gate.stagger",
            ANY_LENGTH,
            at!(gate.stagger),
            "Time between two requests that follow the first one after a rate limit or a cooldown ends, over all gateways of a store",
        ),
        number(
            "gate.headroom",
            Range::below(0.0, 1.0),
            at!(gate.headroom),
            "Share of a rate limit that is left unused for other programs of the same account",
        ),
        length(
            "gate.forget_after",
            ANY_LENGTH,
            at!(gate.forget_after),
            "Limits learned from response headers are forgotten after this time without an update",
        ),
    ]
}

/// The four keys of one class.
macro_rules! class {
    ($name:ident, $meaning:literal) => {
        [
            section(concat!("cooldown.", stringify!($name)), $meaning),
            length(
                concat!("cooldown.", stringify!($name), ".initial"),
                SOME_LENGTH,
                at!(cooldown.$name.base),
                "First cooldown",
            ),
            number(
                concat!("cooldown.", stringify!($name), ".multiplier"),
                GROWTH,
                at!(cooldown.$name.growth),
                "Factor by which the cooldown grows with each further failure in a row",
            ),
            length(
                concat!("cooldown.", stringify!($name), ".max"),
                SOME_LENGTH,
                at!(cooldown.$name.cap),
                "Maximum cooldown that Koboshi picks itself; a provider's `Retry-After` may be longer",
            ),
            optional_count(
                concat!("cooldown.", stringify!($name), ".park_after"),
                SOME_COUNT,
                optional_count_at!(cooldown.$name.park_after),
                "Number of failures in a row after which it is parked: stopped until an operator resumes it",
            ),
        ]
    };
}

/// `max_cooldown_seconds`: the maximum cooldown of every class. Classes whose own maximum is lower than the default hour keep
/// it when the limit is higher, so that the default values change nothing.
fn limit_cooldowns(cooldown: &mut CooldownPolicy, max: Duration) {
    let limit = |class: &mut ClassPolicy, seed: Duration| {
        class.cap = if class.cap == seed { max } else { class.cap.min(max) };
        class.base = class.base.min(max);
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
        section("error_protection", "Four settings of the spawn protection, in seconds without a unit"),
        flag(
            "error_protection.enabled",
            at!(cooldown.enabled),
            "`false`: failures cause no cooldown; cooldowns set by an operator still apply",
        ),
        seconds(
            "error_protection.max_cooldown_seconds",
            Field {
                get: |c, _| Some(c.cooldown.error.cap),
                set: |c, _, max| {
                    if let Some(max) = max {
                        limit_cooldowns(&mut c.cooldown, max);
                    }
                },
            },
            "Maximum cooldown that Koboshi picks itself (a provider's `Retry-After` may be longer). Do not set `cooldown.*.max` as well",
        ),
        seconds(
            "error_protection.default_cooldown_seconds",
            at!(cooldown.error.base),
            "First cooldown after an error. Do not set `cooldown.error.initial` as well",
        ),
        flag(
            "error_protection.quota_detection_enabled",
            at!(cooldown.detection),
            "`false`: every failure counts as class `error`, also quota and rate limit errors",
        ),
        section("cooldown", "How long a failed target is not used"),
    ];
    keys.extend(class!(error, "Failures with a cause of their own"));
    keys.extend(class!(network, "The target cannot be reached"));
    keys.extend(class!(overloaded, "The provider is overloaded"));
    keys.extend(class!(rate_limit, "A rate limit over a short time"));
    keys.extend(class!(quota, "A quota over a long time is used up"));
    keys.extend(cooldown_keys());
    keys
}

fn cooldown_keys() -> [Key; 14] {
    [
        section("cooldown.margin", "Safety margin added to a wait that a provider stated"),
        length(
            "cooldown.margin.min",
            ANY_LENGTH,
            at!(cooldown.margin.min),
            "Minimum that is added to a stated length of time",
        ),
        number(
            "cooldown.margin.share",
            SHARE,
            at!(cooldown.margin.share),
            "Share of a stated length of time that is added to it",
        ),
        length(
            "cooldown.margin.max",
            ANY_LENGTH,
            at!(cooldown.margin.max),
            "Maximum that is added to a stated length of time",
        ),
        length(
            "cooldown.margin.instant",
            ANY_LENGTH,
            at!(cooldown.margin.instant),
            "Added to a reset that was stated as a point in time",
        ),
        length(
            "cooldown.max_stated",
            ANY_LENGTH,
            at!(cooldown.max_stated),
            "Longest stated wait that is believed",
        ),
        number(
            "cooldown.jitter",
            SHARE,
            at!(cooldown.jitter),
            "Random share added to every cooldown that Koboshi picks itself, except the first",
        ),
        length(
            "cooldown.min_healthy_run",
            ANY_LENGTH,
            at!(cooldown.healthy_run),
            "A run that lasted this long was healthy: earlier failures are forgotten",
        ),
        length(
            "cooldown.min_run",
            ANY_LENGTH,
            at!(cooldown.min_run),
            "A successful run that was shorter than this does not count as a success",
        ),
        count(
            "cooldown.max_starts",
            SOME_COUNT,
            count_at!(cooldown.starts),
            "Maximum number of starts within `starts_window`",
        ),
        length(
            "cooldown.starts_window",
            ANY_LENGTH,
            at!(cooldown.starts_within),
            "Time window of `max_starts`; all starts count, whatever their exit codes",
        ),
        length(
            "cooldown.max_probe_time",
            ANY_LENGTH,
            at!(cooldown.max_probe_time),
            "After a cooldown one start or request goes first; a run that has met no limit by this time counts as a success, and a request without a result lets the next one go (after 10s at most)",
        ),
        length(
            "cooldown.stagger",
            ANY_LENGTH,
            at!(cooldown.stagger),
            "Time between two starts of agents that follow a successful one",
        ),
        length(
            "cooldown.release_time",
            ANY_LENGTH,
            at!(cooldown.release),
            "How long starts and requests follow one by one after the first success; then there is no limit",
        ),
    ]
}
