//! `models` and `models_file`: what models can do, and which parameters they take.

use koboshi::models::{Effort, Efforts, Sampling, Thinking};

use super::super::{Field, Key, Range, Shape};
use super::build::{NONE, count, entries, flag, of_entry, section, texts, timeouts, word};
use super::forms::{EFFORT, MODELS};
use crate::gateway::ModelConfig;

/// Tokens: a number that all dialects can express.
const TOKENS: Range<u64> = Range::of(1, u32::MAX as u64);
/// The same including zero.
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

/// A fact that is true or false.
macro_rules! fact {
    ($key:ident, $meaning:literal) => {
        flag(concat!("models.*.", stringify!($key)), of_entry!(models, facts.$key), $meaning)
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

/// Their abilities.
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
        fact!(tools, "Supports tool calls"),
        fact!(images, "Accepts images"),
        fact!(json, "Supports JSON output"),
        fact!(prefill, "Continues an answer whose beginning is given as the last message"),
        fact!(reasoning, "Is a reasoning model"),
    ]
}

/// Which parameters they take.
fn parameters() -> Vec<Key> {
    vec![
        word(
            "models.*.thinking",
            Thinking::NAMES,
            word_of!(Thinking, thinking),
            "Messages and Gemini APIs: how a request asks for thinking",
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
        fact!(structured_outputs, "Messages API: follows a JSON Schema in answers and tool calls"),
        fact!(parallel_tool_calls, "OpenAI: accepts the parameter `parallel_tool_calls`"),
        fact!(reasoning_with_tools, "OpenAI, chat completions: calls tools while it reasons"),
        fact!(
            reasoning_content,
            "OpenAI-compatible servers: wants `reasoning_content` back with its tool calls"
        ),
        fact!(responses_api, "OpenAI: the Responses API is used for clients of other vendors' dialects"),
        fact!(json_with_tools, "Gemini: supports JSON output together with tools"),
        fact!(images_in_results, "Gemini: accepts images inside of tool results"),
    ]
}
