//! `retry`, `request` and `retry_share`: what a request may try, and what that may cost.

use koboshi::backoff::{BackoffPolicy, Jitter};

use super::super::{Field, Key, Range};
use super::build::{
    ANY_COUNT, ANY_LENGTH, GROWTH, SHARE, SOME_COUNT, at, count, count_at, flag, length, number,
    optional_count_at, section, texts, word,
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
        section("retry", "Retries on the same target"),
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
            "Values that the other keys of `retry` start from",
        ),
        count(
            "retry.max_attempts",
            SOME_COUNT,
            count_at!(remedy.backoff.attempts),
            "Maximum number of attempts on one target, including the first one",
        ),
        length("retry.initial_delay", ANY_LENGTH, at!(remedy.backoff.first), "Delay before the first retry"),
        number(
            "retry.multiplier",
            GROWTH,
            at!(remedy.backoff.growth),
            "Factor by which each further delay grows",
        ),
        length(
            "retry.max_delay",
            ANY_LENGTH,
            at!(remedy.backoff.cap),
            "Maximum delay that Koboshi picks itself; a provider's `Retry-After` may be longer",
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
            "How delays are randomised, so that clients do not all retry at the same time",
        ),
        section("request", "Limits for one request over all its targets"),
        count(
            "request.max_attempts",
            SOME_COUNT,
            optional_count_at!(remedy.request.in_all),
            "Maximum number of attempts over all targets",
        )
        .unset(
            "6, and at least one more than the route has targets",
            "6。ルートのターゲット数 + 1 がそれより多い場合はその数",
        ),
        length(
            "request.max_wait",
            ANY_LENGTH,
            at!(remedy.request.patience),
            "Longest `Retry-After` that a request waits for; if it is longer, the next target is tried",
        ),
        length(
            "request.quick_retry_delay",
            ANY_LENGTH,
            at!(remedy.quick),
            "Delay before the single quick retry on a target while other targets are left",
        ),
        count(
            "request.max_reasks",
            ANY_COUNT,
            count_at!(remedy.max_reasks),
            "How often the model is asked again after an invalid tool call",
        ),
        count(
            "request.max_trims",
            ANY_COUNT,
            count_at!(remedy.max_trims),
            "How often a request that exceeds the context window may be shortened; 0 disables it",
        ),
        texts(
            "request.pinned",
            NAME,
            Range::of(0, 100),
            Field {
                get: |c, _| Some(c.pinned.clone()),
                set: |c, _, pinned| c.pinned = pinned.unwrap_or_default(),
            },
            "Messages and tool results that contain one of these texts are kept when a request is shortened",
        ),
        flag(
            "request.route_around_filters",
            at!(remedy.route_around_filters),
            "Whether a request that one vendor's content filter refused may be sent to another vendor",
        ),
        section("retry_budget", "Limit for the share of all traffic that may be retries on the same target"),
        number("retry_budget.ratio", SHARE, at!(retry_share.share), "Retries allowed per first attempt"),
        number(
            "retry_budget.min_per_second",
            Range::of(0.0, 1_000_000.0),
            at!(retry_share.per_second),
            "Retries per second that are always allowed, for low traffic",
        ),
    ]
}
