//! `guard`: how often calls may repeat, for all tools and for single ones.

use koboshi::guard::{Act, Effect, LOOK_BACK, Rule, RulePolicy, ToolPolicy};

use super::super::{Entries, Field, Key, Placeholder, Range, Shape};
use super::build::{NONE, SOME_COUNT, at, count, count_at, flag, narrow, section, word};
use super::forms::NAME;
use crate::config::Config;
use crate::gateway::GuardMode;

const ACTS: &[&str] = &["off", "note", "stop"];
const EFFECTS: &[&str] = &["looks", "waits", "changes", "ends"];
/// The range of repetitions that are remembered; a first call is no repetition.
const REPEATS: Range<u64> = Range::of(2, LOOK_BACK as u64);

fn act_name(act: Act) -> &'static str {
    match act {
        Act::Off => "off",
        Act::Note => "note",
        Act::Stop => "stop",
    }
}

fn act_of(word: &str) -> Option<Act> {
    [Act::Off, Act::Note, Act::Stop].into_iter().find(|act| act_name(*act) == word)
}

fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Looks => "looks",
        Effect::Waits => "waits",
        Effect::Changes => "changes",
        Effect::Ends => "ends",
    }
}

/// A rule for all tools: `off`, or its keys.
macro_rules! rule {
    ($name:ident, $range:expr, $meaning:literal) => {
        [
            Key {
                path: concat!("guard.", stringify!($name)),
                shape: Shape::Section {
                    word: Some(Placeholder { word: "off", set: |c, _| c.guard.policy.$name.act = Act::Off }),
                    short: None,
                },
                meaning: $meaning,
                unset: NONE,
            },
            count(
                concat!("guard.", stringify!($name), ".limit"),
                $range,
                count_at!(guard.policy.$name.limit),
                $meaning,
            ),
            word(
                concat!("guard.", stringify!($name), ".action"),
                ACTS,
                Field {
                    get: |c, _| Some(act_name(c.guard.policy.$name.act)),
                    set: |c, _, word| {
                        if let Some(act) = word.and_then(act_of) {
                            c.guard.policy.$name.act = act;
                        }
                    },
                },
                "What happens at the limit: nothing, a note to the model, or a note and then a stop",
            ),
        ]
    };
}

/// A tool's own rule. For a `free` tool one word stands for all rules.
fn own(config: &Config, tool: &str, rule: Rule) -> Option<RulePolicy> {
    let tool = config.guard.policy.tools.get(tool)?;
    if is_free(tool) { None } else { tool.rules.get(&rule).copied() }
}

fn is_free(tool: &ToolPolicy) -> bool {
    tool.rules == ToolPolicy::free().rules
}

/// Changes a rule of a tool; other settings are those of all tools.
fn with_own(config: &mut Config, tool: &str, rule: Rule, change: impl FnOnce(&mut RulePolicy)) {
    let general = config.guard.policy.rule(rule, "");
    let Some(tool) = config.guard.policy.tools.get_mut(tool) else { return };
    let own = tool.rules.entry(rule).or_insert(general);
    if *own == RulePolicy::OFF {
        own.limit = general.limit;
    }
    change(own);
}

/// A rule for one tool.
macro_rules! tool_rule {
    ($name:literal, $rule:ident, $meaning:literal) => {
        [
            Key {
                path: concat!("guard.tools.*.", $name),
                shape: Shape::Section {
                    word: Some(Placeholder {
                        word: "off",
                        set: |c, tool| with_own(c, tool, Rule::$rule, |own| own.act = Act::Off),
                    }),
                    short: None,
                },
                meaning: $meaning,
                unset: NONE,
            },
            count(
                concat!("guard.tools.*.", $name, ".limit"),
                REPEATS,
                Field {
                    get: |c, tool| {
                        let own = own(c, tool, Rule::$rule).filter(|own| *own != RulePolicy::OFF);
                        own.map(|own| u64::from(own.limit))
                    },
                    // A user who sets a limit wants the rule; `act` comes after this and may still turn it off.
                    set: |c, tool, limit| {
                        if let Some(limit) = limit {
                            with_own(c, tool, Rule::$rule, |own| {
                                own.limit = narrow(limit);
                                own.act = if own.act == Act::Off { Act::Stop } else { own.act };
                            });
                        }
                    },
                },
                $meaning,
            )
            .unset("as for all tools", "全ツール共通の値"),
            word(
                concat!("guard.tools.*.", $name, ".action"),
                ACTS,
                Field {
                    get: |c, tool| own(c, tool, Rule::$rule).map(|own| act_name(own.act)),
                    set: |c, tool, word| {
                        if let Some(act) = word.and_then(act_of) {
                            with_own(c, tool, Rule::$rule, |own| own.act = act);
                        }
                    },
                },
                "What happens at the limit for this tool",
            )
            .unset("as for all tools", "全ツール共通の値"),
        ]
    };
}

pub(super) fn keys() -> Vec<Key> {
    let mut keys = vec![
        section("guard", "The loop guard: limits for repeated tool calls in a conversation"),
        word(
            "guard.mode",
            GuardMode::NAMES,
            Field {
                get: |c, _| Some(c.guard.mode.name()),
                set: |c, _, word| {
                    if let Some(mode) = word.and_then(GuardMode::from_name) {
                        c.guard.mode = mode;
                        c.guard.policy.observe = mode == GuardMode::Observe;
                    }
                },
            },
            "`stop` tells the model what repeats and forbids it at the limit, `note` only tells the model, `observe` only reports what it would do, `off` does nothing",
        ),
        flag(
            "guard.enforce_depth",
            at!(guard.enforce_depth),
            "Whether `depth` may stop a conversation in the gateway; coding agents make far more than twenty calls",
        ),
    ];
    keys.extend(rule!(similar_errors, REPEATS, "Similar failures in a row"));
    keys.push(count(
        "guard.max_after_changes",
        REPEATS,
        count_at!(guard.policy.after_changes),
        "Limit for identical failures when something was changed between them",
    ));
    keys.extend(rule!(alternating_errors, REPEATS, "Similar failures with other failures in between"));
    keys.push(count(
        "guard.window",
        REPEATS,
        count_at!(guard.policy.window),
        "Number of latest calls that `alternating_errors` looks at",
    ));
    keys.extend(rule!(any_errors, REPEATS, "Failures of any kind in a row"));
    keys.extend(rule!(same_call, REPEATS, "The same call with the same result"));
    keys.push(count(
        "guard.max_waiting",
        REPEATS,
        count_at!(guard.policy.waiting),
        "Limit for the same call when its result is an unchanged waiting state (queued, pending, running)",
    ));
    keys.extend(rule!(cycle, REPEATS, "Repeated cycles of two or three calls with the same results"));
    keys.extend(rule!(
        stagnation,
        REPEATS,
        "One tool with different arguments and the same empty or blocked result"
    ));
    keys.extend(rule!(depth, SOME_COUNT, "Tool calls per user message"));
    keys.extend(rule!(width, SOME_COUNT, "Parallel tool calls per model response"));
    keys.extend(tools());
    keys
}

fn tools() -> Vec<Key> {
    let mut keys = vec![
        section("guard.tools", "Limits for single tools, by name"),
        Key {
            path: "guard.tools.*",
            shape: Shape::Entry(Entries {
                name: NAME,
                required: &[],
                short: None,
                names: |c| c.guard.policy.tools.keys().cloned().collect(),
                add: |c, name| {
                    c.guard.policy.tools.entry(name.to_owned()).or_default();
                },
            }),
            meaning: "One tool",
            unset: NONE,
        },
        word(
            "guard.tools.*.effect",
            EFFECTS,
            Field {
                get: |c, tool| c.guard.policy.tools.get(tool).and_then(|tool| tool.effect).map(effect_name),
                set: |c, tool, word| {
                    if let Some(tool) = c.guard.policy.tools.get_mut(tool) {
                        let all = [Effect::Looks, Effect::Waits, Effect::Changes, Effect::Ends];
                        tool.effect = all.into_iter().find(|effect| Some(effect_name(*effect)) == word);
                    }
                },
            },
            "Effect of a successful call: it only reads, it waits, or it changes something",
        )
        .unset("by the tool's name", "ツール名から判断"),
        flag(
            "guard.tools.*.unlimited",
            Field {
                get: |c, tool| c.guard.policy.tools.get(tool).map(is_free),
                set: |c, tool, free| {
                    if let (Some(tool), Some(true)) = (c.guard.policy.tools.get_mut(tool), free) {
                        tool.rules = ToolPolicy::free().rules;
                    }
                },
            },
            "No limits for this tool, except those that are set below for it",
        ),
    ];
    keys.extend(tool_rule!("similar_errors", SimilarErrors, "Similar failures in a row"));
    keys.extend(tool_rule!(
        "alternating_errors", AlternatingErrors, "Similar failures with other failures in between"
    ));
    keys.extend(tool_rule!("any_errors", AnyErrors, "Failures of any kind in a row"));
    keys.extend(tool_rule!("same_call", SameCall, "The same call with the same result"));
    keys.extend(tool_rule!("cycle", Cycle, "Repeated cycles of two or three calls with the same results"));
    keys.extend(tool_rule!(
        "stagnation", Stagnation, "Different arguments, the same empty or blocked result"
    ));
    keys
}
