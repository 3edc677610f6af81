//! `routes`, `tool_calls` and `degrade`: how requests are routed, and lesser answers when no target can answer.

use koboshi::args::MAX_DEPTH;

use super::super::{Field, Key, Range, Shape};
use super::build::{
    ANY_LENGTH, NONE, SOME_COUNT, always_of_entry, at, count, count_at, entries, flag, length, of_entry,
    section, text, texts, word, word_at,
};
use super::forms::{NAME, TARGET};
use crate::gateway::{CacheMode, Commit, GuardMode, RouteConfig};

pub(super) fn routes() -> Vec<Key> {
    vec![
        section(
            "routes",
            "Which targets serve a request, by the model name that the client asks for; `*` matches anything",
        ),
        Key {
            path: "routes.*",
            shape: entries!(routes, RouteConfig::default(), NAME, required: &["chain"], short: Some("chain")),
            meaning: "One route; a list is short for its `chain`",
            unset: NONE,
        },
        texts(
            "routes.*.chain",
            TARGET,
            Range::of(1, 16),
            always_of_entry!(routes, chain),
            "Targets to try, in order: each one is the fallback of those before it",
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
            "When the client gets the first byte: `first` with the first content, `complete` when the whole response is there",
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
            "What the loop guard does on this route",
        )
        .unset("that of `guard.mode`", "`guard.mode` の値"),
        text(
            "routes.*.simple_model",
            TARGET,
            of_entry!(routes, simple_model),
            "A simpler model that answers when all targets of the chain have failed",
        )
        .unset("that of `degrade.simple_model`", "`degrade.simple_model` の値"),
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
            "What the response cache does on this route",
        )
        .unset("that of `degrade.cache.mode`", "`degrade.cache.mode` の値"),
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
        section("tool_calls", "Checks and repair of tool call arguments"),
        Key {
            path: "tool_calls.repair",
            shape: Shape::Flag { words: true, field: at!(args.repair) },
            meaning: "Repair arguments that are not valid JSON where exactly one reading exists; `off` accepts strict JSON only",
            unset: NONE,
        },
        count(
            "tool_calls.max_bytes",
            SOME_COUNT,
            size_at!(args.max_bytes),
            "Maximum size of the arguments of one call, in bytes; longer ones are rejected",
        ),
        count(
            "tool_calls.max_depth",
            Range::of(1, MAX_DEPTH as u64),
            size_at!(args.max_depth),
            "Maximum nesting depth of the arguments",
        ),
        count(
            "tool_calls.max_attempts",
            SOME_COUNT,
            count_at!(reask.max_attempts),
            "Maximum number of invalid answers to one tool call before it fails",
        ),
    ]
}

pub(super) fn degrade() -> Vec<Key> {
    vec![
        section("degrade", "What is answered when all targets of a chain have failed"),
        section("degrade.cache", "The response cache"),
        word(
            "degrade.cache.mode",
            CacheMode::NAMES,
            word_at!(CacheMode, degrade.cache),
            "`fallback` uses cached responses when all targets have failed, `serve` also before any target is tried",
        ),
        length(
            "degrade.cache.ttl",
            ANY_LENGTH,
            at!(degrade.cache_ttl),
            "How long a cached response is fresh",
        ),
        length(
            "degrade.cache.stale_if_error",
            ANY_LENGTH,
            at!(degrade.cache_stale),
            "How much longer a cached response may be used when all targets have failed",
        ),
        flag(
            "degrade.cache.tools",
            at!(degrade.cache_tools),
            "Whether responses to requests with tools are cached",
        ),
        text(
            "degrade.simple_model",
            TARGET,
            Field {
                get: |c, _| c.degrade.simple_model.clone(),
                set: |c, _, target| c.degrade.simple_model = target,
            },
            "A simpler model that answers when all targets of a chain have failed",
        ),
        Key {
            path: "degrade.answers_file",
            shape: Shape::Path {
                field: Field {
                    get: |c, _| c.degrade.answers_file.clone(),
                    set: |c, _, path| c.degrade.answers_file = path,
                },
            },
            meaning: "File with static answers",
            unset: NONE,
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
            meaning: "HTTP status of a static answer. A stream whose headers were already sent (see `serve.first_byte_hold`) has status 200",
            unset: NONE,
        },
    ]
}
