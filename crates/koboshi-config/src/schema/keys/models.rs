//! `models` and `models_file`: what models can do, and which parameters they take.

use koboshi::models::{Effort, Efforts, Sampling, Thinking};

use super::super::{Field, Key, Range, Shape};
use super::build::{NONE, count, entries, flag, of_entry, section, texts, timeouts, word};
use super::forms::{EFFORT, MODELS};
use crate::gateway::ModelConfig;

/// Tokens: a number that must fit into what the dialects can say.
const TOKENS: Range<u64> = Range::of(1, u32::MAX as u64);
/// The same where none is a number too.
const FROM_NONE: Range<u64> = Range::of(0, u32::MAX as u64);

/// A fact that is one of a few words.
macro_rules! word_of {
    ($type:ident, $key:ident) => {
        Field {
            get: |c, name| c.models.get(name)?.facts.$key.map($type::name),
            set: |c, name, word| {
                if let Some(one) = c.models.get_mut(name) {
                    one.facts.$key = word.and_then($type::from_name);
                }
            },
        }
    };
}

pub(super) fn models() -> Vec<Key> {
    let mut keys = vec![
        section("models", "Capabilities and limits of models, by `provider/model`; `*` matches anything"),
        Key {
            path: "models.*",
            shape: entries!(models, ModelConfig::default(), MODELS, required: &[], short: None),
            meaning: "One model, or all that the pattern matches",
            unset: NONE,
        },
    ];
    keys.extend(abilities());
    keys.extend(parameters());
    keys = keys.into_iter().map(|key| key.unset("built-in table", "内蔵の表")).collect();
    keys.extend(timeouts!(models, "models.*", "those of the provider", "プロバイダーの値"));
    keys.push(Key {
        path: "models_file",
        shape: Shape::Path {
            field: Field { get: |c, _| c.models_file.clone(), set: |c, _, path| c.models_file = path },
        },
        meaning: "Your own file with facts of models, which go before the built-in ones (see models.md)",
        unset: NONE,
    });
    keys
}

/// What they can do.
fn abilities() -> Vec<Key> {
    vec![
        count(
            "models.*.context_window",
            TOKENS,
            of_entry!(models, facts.context_window),
            "Context window: tokens of input and output together",
        ),
        count(
            "models.*.max_output_tokens",
            TOKENS,
            of_entry!(models, facts.max_output_tokens),
            "Maximum number of output tokens",
        ),
        flag("models.*.tools", of_entry!(models, facts.tools), "Supports tool calls"),
        flag("models.*.images", of_entry!(models, facts.images), "Accepts images"),
        flag("models.*.json", of_entry!(models, facts.json), "Supports JSON output"),
        flag(
            "models.*.prefill",
            of_entry!(models, facts.prefill),
            "Continues an answer whose beginning is given as the last message",
        ),
        flag("models.*.reasoning", of_entry!(models, facts.reasoning), "Is a reasoning model"),
    ]
}

/// Which parameters they take.
fn parameters() -> Vec<Key> {
    vec![
        word(
            "models.*.thinking",
            Thinking::NAMES,
            word_of!(Thinking, thinking),
            "Messages and Gemini APIs: how the model is told to think",
        ),
        count(
            "models.*.min_thinking_tokens",
            FROM_NONE,
            of_entry!(models, facts.min_thinking_tokens),
            "Gemini: minimum number of tokens for thinking; above 0, thinking cannot be turned off",
        ),
        count(
            "models.*.max_thinking_tokens",
            TOKENS,
            of_entry!(models, facts.max_thinking_tokens),
            "Gemini: maximum number of tokens for thinking",
        ),
        texts(
            "models.*.efforts",
            EFFORT,
            Range::of(1, 6),
            Field {
                get: |c, name| {
                    let known = c.models.get(name)?.facts.efforts?;
                    Some(known.iter().map(|effort| effort.name().to_owned()).collect())
                },
                set: |c, name, words| {
                    if let Some(one) = c.models.get_mut(name) {
                        let words = words.unwrap_or_default();
                        one.facts.efforts =
                            Efforts::of(words.iter().filter_map(|word| Effort::from_name(word)));
                    }
                },
            },
            "OpenAI and Gemini: efforts that the model knows; the next higher one is sent for any other",
        ),
        word(
            "models.*.sampling",
            Sampling::NAMES,
            word_of!(Sampling, sampling),
            "OpenAI and the Messages API: which of `temperature` and `top_p` are sent: both, one of them, or none",
        ),
        flag(
            "models.*.structured_outputs",
            of_entry!(models, facts.structured_outputs),
            "Messages API: follows a JSON Schema in answers and tool calls",
        ),
        flag(
            "models.*.parallel_tool_calls",
            of_entry!(models, facts.parallel_tool_calls),
            "OpenAI: accepts the parameter `parallel_tool_calls`",
        ),
        flag(
            "models.*.reasoning_with_tools",
            of_entry!(models, facts.reasoning_with_tools),
            "OpenAI, chat completions: calls tools while it reasons",
        ),
        flag(
            "models.*.reasoning_content",
            of_entry!(models, facts.reasoning_content),
            "OpenAI-compatible servers: wants `reasoning_content` back with its tool calls",
        ),
        flag(
            "models.*.responses_api",
            of_entry!(models, facts.responses_api),
            "OpenAI: the Responses API is used for clients of other vendors' dialects",
        ),
        flag(
            "models.*.json_with_tools",
            of_entry!(models, facts.json_with_tools),
            "Gemini: supports JSON output together with tools",
        ),
        flag(
            "models.*.images_in_results",
            of_entry!(models, facts.images_in_results),
            "Gemini: accepts images inside of tool results",
        ),
    ]
}
