//! `routes`, `tool_calls` and `degrade`: what happens to a request, and what is answered when nobody can.

use koboshi::args::DEEPEST;

use super::super::{Field, Key, Range, Shape};
use super::build::{
    ANY_LENGTH, SOME_COUNT, always_of_entry, at, count, count_at, entries, flag, length, of_entry, section,
    text, texts, word, word_at,
};
use super::forms::{NAME, TARGET};
use crate::gateway::{CacheMode, Commit, GuardMode, RouteConfig};

pub(super) fn routes() -> Vec<Key> {
    vec![
        section("routes", "What happens to requests, by model name; `*` stands for anything"),
        Key {
            path: "routes.*",
            shape: entries!(routes, RouteConfig::default(), NAME, required: &["chain"], short: Some("chain")),
            meaning: "One route; its chain alone may be written in its place",
            unset: "none",
        },
        texts(
            "routes.*.chain",
            TARGET,
            Range::of(1, 16),
            always_of_entry!(routes, chain),
            "Whom to ask, best first",
        ),
        word(
            "routes.*.commit",
            Commit::NAMES,
            Field {
                get: |c, name| c.routes.get(name).map(|one| one.commit.name()),
                set: |c, name, word| {
                    if let (Some(one), Some(commit)) =
                        (c.routes.get_mut(name), word.and_then(Commit::from_name))
                    {
                        one.commit = commit;
                    }
                },
            },
            "When the client sees the first byte: with the first content, or when the answer is whole",
        ),
        word(
            "routes.*.guard",
            GuardMode::NAMES,
            Field {
                get: |c, name| c.routes.get(name).and_then(|one| one.guard).map(GuardMode::name),
                set: |c, name, word| {
                    if let Some(one) = c.routes.get_mut(name) {
                        one.guard = word.and_then(GuardMode::from_name);
                    }
                },
            },
            "What the loop guard may do here",
        )
        .unset("that of `guard.mode`"),
        text(
            "routes.*.simple",
            TARGET,
            of_entry!(routes, simple),
            "A simpler model that answers when the chain cannot",
        )
        .unset("that of `degrade.simple`"),
        word(
            "routes.*.cache",
            CacheMode::NAMES,
            Field {
                get: |c, name| c.routes.get(name).and_then(|one| one.cache).map(CacheMode::name),
                set: |c, name, word| {
                    if let Some(one) = c.routes.get_mut(name) {
                        one.cache = word.and_then(CacheMode::from_name);
                    }
                },
            },
            "What the cache does here",
        )
        .unset("that of `degrade.cache.mode`"),
    ]
}

/// A number of bytes or levels.
macro_rules! size_at {
    ($($name:ident).+) => {
        Field {
            get: |c, _| u64::try_from(c.$($name).+).ok(),
            set: |c, _, size| {
                if let Some(size) = size.and_then(|size| usize::try_from(size).ok()) {
                    c.$($name).+ = size;
                }
            },
        }
    };
}

pub(super) fn tool_calls() -> Vec<Key> {
    vec![
        section("tool_calls", "How the arguments of tool calls are read"),
        Key {
            path: "tool_calls.repair",
            shape: Shape::Flag { words: true, field: at!(args.repair) },
            meaning: "Read other notations where exactly one reading exists; otherwise only strict JSON passes",
            unset: "none",
        },
        count(
            "tool_calls.most_bytes",
            SOME_COUNT,
            size_at!(args.most_bytes),
            "Longer arguments are refused unread",
        ),
        count(
            "tool_calls.most_depth",
            Range::of(1, DEEPEST as u64),
            size_at!(args.most_depth),
            "Deeper nesting is refused",
        ),
        count(
            "tool_calls.attempts",
            SOME_COUNT,
            count_at!(reask.max_attempts),
            "So many invalid answers end a call",
        ),
    ]
}

pub(super) fn degrade() -> Vec<Key> {
    vec![
        section("degrade", "What is answered when the chain is spent"),
        section("degrade.cache", "The response cache"),
        word(
            "degrade.cache.mode",
            CacheMode::NAMES,
            word_at!(CacheMode, degrade.cache),
            "`fallback` answers when the chain cannot, `serve` also before anybody is asked",
        ),
        length("degrade.cache.ttl", ANY_LENGTH, at!(degrade.cache_ttl), "How long an answer counts as fresh"),
        length(
            "degrade.cache.stale",
            ANY_LENGTH,
            at!(degrade.cache_stale),
            "How much longer it may serve when nobody answers",
        ),
        flag(
            "degrade.cache.tools",
            at!(degrade.cache_tools),
            "Whether answers to requests with tools are kept",
        ),
        text(
            "degrade.simple",
            TARGET,
            Field { get: |c, _| c.degrade.simple.clone(), set: |c, _, target| c.degrade.simple = target },
            "A simpler model",
        ),
        Key {
            path: "degrade.answers",
            shape: Shape::Path {
                field: Field {
                    get: |c, _| c.degrade.answers.clone(),
                    set: |c, _, path| c.degrade.answers = path,
                },
            },
            meaning: "The file of static answers",
            unset: "none",
        },
        Key {
            path: "degrade.status",
            shape: Shape::Choice {
                numbers: &[200, 503],
                field: Field {
                    get: |c, _| Some(u64::from(c.degrade.status)),
                    set: |c, _, status| {
                        if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
                            c.degrade.status = status;
                        }
                    },
                },
            },
            meaning: "The status of a static answer, whole or streamed; 503 is for clients that look at it. A stream that was kept open (`serve.hold`) has begun with 200",
            unset: "none",
        },
    ]
}
