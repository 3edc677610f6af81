//! `gate`, `error_protection` and `cooldown`: who waits, what rests, and for how long.

use std::time::Duration;

use koboshi::cooldown::{ClassPolicy, CooldownPolicy};
use koboshi::gate::LARGEST_QUEUE;

use super::super::{Field, Key, Range};
use super::build::{
    ANY_LENGTH, GROWTH, SHARE, SOME_COUNT, SOME_LENGTH, at, count, count_at, flag, length, number,
    optional_count, optional_count_at, seconds, section,
};

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
                get: |c, _| Some(c.cooldown.error.cap),
                set: |c, _, most| {
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
        number(
            "cooldown.margin.share",
            SHARE,
            at!(cooldown.margin.share),
            "Added to a countdown, as a share of it",
        ),
        length(
            "cooldown.margin.most",
            ANY_LENGTH,
            at!(cooldown.margin.most),
            "Added to a countdown, at most",
        ),
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
        count(
            "cooldown.starts",
            SOME_COUNT,
            count_at!(cooldown.starts),
            "At most so many starts within `starts_within`",
        ),
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
