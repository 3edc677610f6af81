//! `retry`, `request` and `retry_share`: what a request may try, and what that may cost.

use koboshi::backoff::{BackoffPolicy, Jitter};

use super::super::{Field, Key, Range};
use super::build::{
    ANY_COUNT, ANY_LENGTH, GROWTH, SHARE, SOME_COUNT, at, count, count_at, flag, length, number, section,
    texts, word,
};
use super::forms::NAME;

const PRESETS: [(&str, BackoffPolicy); 3] = [
    ("service", BackoffPolicy::SERVICE),
    ("network", BackoffPolicy::NETWORK),
    ("stream", BackoffPolicy::STREAM),
];

const JITTERS: [(&str, Jitter); 4] = [
    ("none", Jitter::None),
    ("full", Jitter::Full),
    ("equal", Jitter::Equal),
    ("decorrelated", Jitter::Decorrelated),
];

pub(super) fn keys() -> Vec<Key> {
    vec![
        section("retry", "Pauses between attempts on the same target"),
        word(
            "retry.preset",
            &["service", "network", "stream"],
            Field {
                get: |c, _| {
                    PRESETS.iter().find(|(_, policy)| *policy == c.remedy.backoff).map(|(name, _)| *name)
                },
                set: |c, _, name| {
                    if let Some((_, policy)) = PRESETS.iter().find(|preset| Some(preset.0) == name) {
                        c.remedy.backoff = *policy;
                    }
                },
            },
            "Where the other keys of `retry` start from",
        ),
        count(
            "retry.attempts",
            SOME_COUNT,
            count_at!(remedy.backoff.attempts),
            "Attempts on one target, the first included",
        ),
        length("retry.first", ANY_LENGTH, at!(remedy.backoff.first), "The pause after the first failure"),
        number(
            "retry.growth",
            GROWTH,
            at!(remedy.backoff.growth),
            "What each further pause is multiplied by",
        ),
        length(
            "retry.cap",
            ANY_LENGTH,
            at!(remedy.backoff.cap),
            "No pause of our own is longer; a server's wish may be",
        ),
        word(
            "retry.jitter",
            &["none", "full", "equal", "decorrelated"],
            Field {
                get: |c, _| {
                    JITTERS
                        .iter()
                        .find(|(_, jitter)| *jitter == c.remedy.backoff.jitter)
                        .map(|(name, _)| *name)
                },
                set: |c, _, name| {
                    if let Some((_, jitter)) = JITTERS.iter().find(|jitter| Some(jitter.0) == name) {
                        c.remedy.backoff.jitter = *jitter;
                    }
                },
            },
            "How pauses are spread by chance, so that callers do not come back together",
        ),
        section("request", "What one request may try"),
        count("request.attempts", SOME_COUNT, count_at!(remedy.request.in_all), "Attempts over all targets"),
        length(
            "request.patience",
            ANY_LENGTH,
            at!(remedy.request.patience),
            "A stated wait up to this long is waited out; a longer one means another target",
        ),
        length(
            "request.quick",
            ANY_LENGTH,
            at!(remedy.quick),
            "The pause before the one quick retry while other targets are left",
        ),
        count(
            "request.most_reasks",
            ANY_COUNT,
            count_at!(remedy.most_reasks),
            "How often a broken tool call is sent back to the model",
        ),
        count(
            "request.most_trims",
            ANY_COUNT,
            count_at!(remedy.most_trims),
            "How often a request may be made smaller; 0 forbids it",
        ),
        texts(
            "request.pinned",
            NAME,
            Range::of(0, 100),
            Field {
                get: |c, _| Some(c.pinned.clone()),
                set: |c, _, pinned| c.pinned = pinned.unwrap_or_default(),
            },
            "Messages and results that hold one of these texts stay whole when a request is made smaller",
        ),
        flag(
            "request.route_around_filters",
            at!(remedy.route_around_filters),
            "A refusal by one vendor's content policy may be taken to another",
        ),
        section("retry_share", "How much of all traffic may be retries on the same target"),
        number("retry_share.share", SHARE, at!(retry_share.share), "Retries earned by one first attempt"),
        number(
            "retry_share.per_second",
            Range::of(0.0, 1_000_000.0),
            at!(retry_share.per_second),
            "Retries a second that are always allowed, for quiet callers",
        ),
    ]
}
