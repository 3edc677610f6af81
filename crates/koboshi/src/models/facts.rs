//! What can be known of a model: each fact once, with its key in the files.

use serde::{Deserialize, Serialize};

use super::efforts::Efforts;

/// An enum whose values have names in the files.
macro_rules! named {
    ($(#[doc = $about:literal])+ $type:ident { $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $type {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $type {
            /// The names of all values.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|one| one.name() == name)
            }
        }
    };
}

named! {
    /// How a request states how much a model thinks.
    Thinking {
        /// Not at all: it refuses such parameters.
        None = "none",
        /// With a budget of tokens.
        Budget = "budget",
        /// With a budget, or adaptively.
        Both = "both",
        /// Adaptively, with an effort.
        Adaptive = "adaptive",
        /// With a level, as Gemini from generation 3 on.
        Levels = "levels",
    }
}

named! {
    /// Which sampling parameters a model takes.
    Sampling {
        /// None of them.
        None = "none",
        /// Temperature or `top_p`, but not both.
        One = "one",
        /// Both together.
        Both = "both",
    }
}

/// The facts of a model, and a row of a models file with the same keys.
macro_rules! facts {
    ($($(#[doc = $doc:literal])+ $key:ident: $type:ty,)+) => {
        /// What is known of a model. What is not stated is unknown, and each reader says what it assumes then.
        ///
        /// ```
        /// use koboshi::models::Facts;
        ///
        /// let facts = Facts::default().with(|facts| facts.context_window = Some(128_000));
        /// assert_eq!(facts.stated().collect::<Vec<_>>(), ["context_window"]);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        #[non_exhaustive]
        pub struct Facts {
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )+
        }

        impl Facts {
            /// The keys of all facts, in the order of the documentation.
            pub const KEYS: &[&str] = &[$(stringify!($key)),+];

            /// These facts, and another's where these say nothing.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($key: self.$key.or(other.$key),)+ }
            }

            /// The keys of the facts that are stated.
            pub fn stated(&self) -> impl Iterator<Item = &'static str> {
                [$(self.$key.is_some().then_some(stringify!($key))),+].into_iter().flatten()
            }

            /// The same facts with changes.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }
        }

        /// An entry of a models file as it is written.
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Row {
            #[serde(default, rename = "match")]
            pub(super) pattern: Option<String>,
            #[serde(default)]
            pub(super) family: Option<String>,
            #[serde(default)]
            pub(super) version: Option<String>,
            /// Why the entry is as it is; not read by the program.
            #[serde(default, rename = "why")]
            pub(super) _why: Option<String>,
            $(#[serde(default)] $key: Option<$type>,)+
        }

        impl Row {
            pub(super) fn facts(&self) -> Facts {
                Facts { $($key: self.$key,)+ }
            }
        }
    };
}

impl Facts {
    /// What is assumed where nothing is known. How a request states thinking is assumed by each API: by budget in the Messages API, with
    /// levels in Gemini's. Limits that are not known are not checked.
    #[must_use]
    pub fn assumed() -> Self {
        Self {
            tools: Some(true),
            images: Some(true),
            json: Some(true),
            prefill: Some(false),
            reasoning: Some(false),
            min_thinking_tokens: Some(0),
            max_thinking_tokens: Some(24_576),
            efforts: Some(Efforts::USUAL),
            sampling: Some(Sampling::Both),
            structured_outputs: Some(false),
            parallel_tool_calls: Some(true),
            reasoning_with_tools: Some(true),
            reasoning_content: Some(false),
            responses_api: Some(false),
            json_with_tools: Some(true),
            images_in_results: Some(true),
            ..Self::default()
        }
    }
}

facts! {
    /// Tokens of input and output together. Where a window depends on more than the name, the larger one.
    context_window: u64,
    /// The most tokens that it writes.
    max_output_tokens: u64,
    /// It calls tools.
    tools: bool,
    /// It sees images.
    images: bool,
    /// It answers in JSON when a request asks for it.
    json: bool,
    /// It continues an answer whose beginning it is given.
    prefill: bool,
    /// It thinks before it answers.
    reasoning: bool,
    /// How a request states thinking, in the Messages and Gemini APIs.
    thinking: Thinking,
    /// Gemini: the fewest tokens for thinking. More than none: thinking cannot be turned off.
    min_thinking_tokens: u64,
    /// Gemini: the most tokens for thinking.
    max_thinking_tokens: u64,
    /// The efforts that it knows, in OpenAI's APIs and as Gemini's levels.
    efforts: Efforts,
    /// Which sampling parameters it takes.
    sampling: Sampling,
    /// Messages API: it can be held to a schema.
    structured_outputs: bool,
    /// OpenAI: it takes `parallel_tool_calls`. One that calls one tool at a time refuses the parameter.
    parallel_tool_calls: bool,
    /// OpenAI's Chat Completions: it calls tools while it thinks.
    reasoning_with_tools: bool,
    /// Compatible servers: it wants its `reasoning_content` back with its tool calls.
    reasoning_content: bool,
    /// OpenAI serves it better by the Responses API than by Chat Completions.
    responses_api: bool,
    /// Gemini: JSON output and tools go together.
    json_with_tools: bool,
    /// Gemini: images may stand inside of a tool's result.
    images_in_results: bool,
}
