//! The one form between the dialects: what is asked, in no dialect.
//!
//! ```text
//!   body of dialect A ──► read ──► Form ──► sanitize, note, trim ──► write ──► body of dialect B
//! ```
//!
//! Everything borrows from the body it was read from; schemas and arguments stay the JSON they were, because a provider's prompt cache compares
//! the text. What a dialect has and the form has no place for is not lost silently: the reader names it in [`Form::left`], and a writer
//! names what its dialect cannot carry. A [`Omission`] either may be dropped, which the journal shows, or not, and then the target
//! cannot serve the request.
//!
//! *Not here*: traffic that stays in its dialect. It passes as bytes and never sees this form.

mod ask;
mod part;
pub mod sanitize;
pub mod trim;

use std::borrow::Cow;

use koboshi::models;
use serde_json::value::RawValue;

pub(crate) use ask::{ASKS_FOR_JSON, BYTES_PER_TOKEN, TOKENS_OF_ENCODED, calls_since, names_json};
pub use ask::{GuardCall, JsonNeed, Needs};
pub use part::{Call, Image, Media, Outcome, Part, Signature, Thought};

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Form<'a> {
    /// The model.
    pub model: Cow<'a, str>,
    /// Whether the answer is to be a stream.
    pub stream: bool,
    /// The system prompt: one text for each block or message, in order.
    pub system: Vec<Cow<'a, str>>,
    /// The conversation. Two turns of one role may follow each other; writers join them where their dialect wants that.
    pub turns: Vec<Turn<'a>>,
    /// The tools that are offered.
    pub tools: Vec<Tool<'a>>,
    /// Which of them is to be called.
    pub choice: Choice<'a>,
    /// Whether several calls may come at once, where the request states it.
    pub parallel: Option<bool>,
    /// The form of the answer.
    pub output: Output<'a>,
    /// Sampling.
    pub sampling: Sampling<'a>,
    /// The most tokens that may come back, thinking included.
    pub max_output: Option<u64>,
    /// How hard the model is to think.
    pub thinking: Thinking,
    /// The end user's id.
    pub user: Option<Cow<'a, str>>,
    /// What the reader found no place for.
    pub left: Vec<Omission>,
}

/// The parts of one role, until another role follows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn<'a> {
    /// The role.
    pub role: Role,
    /// The parts, in order.
    pub parts: Vec<Part<'a>>,
}

/// The role of a turn. Results of tools are in turns of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// The program, in the middle of the conversation; what stands in front is [`Form::system`].
    System,
    /// The user, and the tools.
    #[default]
    User,
    /// The model.
    Assistant,
}

/// A tool that is offered.
#[derive(Debug, Clone)]
pub struct Tool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// What it does.
    pub description: Option<Cow<'a, str>>,
    /// What it takes.
    pub input: ToolInput<'a>,
    /// Arguments must follow the schema, where the request states it.
    pub strict: Option<bool>,
}

/// What a tool takes.
#[derive(Debug, Clone)]
pub enum ToolInput<'a> {
    /// An object, by this JSON schema; without one, whatever the model likes.
    Schema(Option<Cow<'a, RawValue>>),
    /// Free text: OpenAI's custom tools. Dialects without them offer a tool with one field `input`, and
    /// [`free_text`] turns its calls back.
    FreeText,
}

/// Which tool is to be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The request does not state it.
    #[default]
    Unspecified,
    /// As the model likes.
    Auto,
    /// None.
    Never,
    /// Some tool.
    Any,
    /// This one.
    Tool(Cow<'a, str>),
}

/// The form of the answer.
#[derive(Debug, Clone, Default)]
pub enum Output<'a> {
    /// Text.
    #[default]
    Text,
    /// Some JSON object.
    Json,
    /// JSON by a schema.
    Schema {
        /// Name of the schema, where it has one.
        name: Option<Cow<'a, str>>,
        /// The schema.
        schema: Cow<'a, RawValue>,
        /// Whether it must be followed to the letter, where the request states it.
        strict: Option<bool>,
    },
}

/// Sampling parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling<'a> {
    /// Temperature.
    pub temperature: Option<f64>,
    /// Nucleus.
    pub top_p: Option<f64>,
    /// Candidates at each step.
    pub top_k: Option<u64>,
    /// Penalty for frequent tokens.
    pub frequency_penalty: Option<f64>,
    /// Penalty for tokens that were there.
    pub presence_penalty: Option<f64>,
    /// Seed.
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<Cow<'a, str>>,
    /// How many answers, where more than one is asked for.
    pub answers: Option<u32>,
}

/// How hard the model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// The request does not state it.
    #[default]
    Unspecified,
    /// Not at all.
    Off,
    /// As much as it likes.
    Adaptive,
    /// About this hard.
    Effort(Effort),
    /// With at most this many tokens.
    Budget(u64),
}

/// Steps of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// As little as there is.
    Minimal,
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// All that there is: `xhigh`, `max`.
    Max,
}

impl From<Effort> for models::Effort {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::Minimal => Self::Minimal,
            Effort::Low => Self::Low,
            Effort::Medium => Self::Medium,
            Effort::High => Self::High,
            Effort::Max => Self::Xhigh,
        }
    }
}

/// Something that could not be carried over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Name of the rule, stable: `drop_logit_bias`, `needs_audio`. The journal shows it.
    pub rule: &'static str,
    /// Where it stood: `messages[3].content[0]`, `logprobs`. Never what stood there.
    pub at: String,
    /// Whether the request means the same without it.
    pub droppable: bool,
}

impl Omission {
    /// Something that the answer can do without.
    #[must_use]
    pub fn dropped(rule: &'static str, at: impl Into<String>) -> Self {
        Self { rule, at: at.into(), droppable: true }
    }

    /// Something without which it would be another request.
    #[must_use]
    pub fn needed(rule: &'static str, at: impl Into<String>) -> Self {
        Self { rule, at: at.into(), droppable: false }
    }
}

/// A body in another dialect, and what did not come along.
#[derive(Debug, Clone)]
pub struct WrittenBody {
    /// The body.
    pub body: bytes::Bytes,
    /// What the dialect cannot carry, the reader's own findings not repeated. With one that is needed the body must not be sent.
    pub left: Vec<Omission>,
}

/// What a tool that takes an object sees in place of free text.
pub mod free_text {
    use std::borrow::Cow;

    use serde_json::value::RawValue;

    use crate::raw::Raw;

    /// The one field.
    pub const FIELD: &str = "input";
    /// Its schema.
    pub const SCHEMA: &str = r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#;

    /// The free text as arguments of such a tool.
    #[must_use]
    pub fn wrapped(text: &str) -> String {
        serde_json::json!({ FIELD: text }).to_string()
    }

    /// The free text of such arguments; none if they are something else.
    #[must_use]
    pub fn unwrapped(arguments: &str) -> Option<String> {
        let arguments = serde_json::from_str::<&RawValue>(arguments).ok()?;
        Raw::of(arguments)?.text(FIELD).map(Cow::into_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::free_text;

    #[test]
    fn free_text_comes_back_as_it_went() {
        for text in ["", "*** Begin Patch\n\"x\"", "日本"] {
            assert_eq!(free_text::unwrapped(&free_text::wrapped(text)).as_deref(), Some(text));
        }
        assert_eq!(free_text::unwrapped(r#"{"input":1}"#), None);
        assert_eq!(free_text::unwrapped("{"), None);
    }
}
