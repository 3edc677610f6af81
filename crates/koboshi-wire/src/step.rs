//! What one frame of a stream says, in no dialect.
//!
//! The relay works on steps alone, so that another dialect only brings a decoder and writers. A step borrows from its frame
//! and says what must be known to judge a stream: has content come, is a tool call under way, how did it end. It is never
//! written back: the frame itself is what passes.

use std::borrow::Cow;

/// What a frame says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step<'a> {
    /// Id of the answer.
    pub id: Option<Cow<'a, str>>,
    /// The model that answers, as it calls itself.
    pub model: Option<Cow<'a, str>>,
    /// Visible text of choice 0; never empty.
    pub text: Option<Cow<'a, str>>,
    /// Another choice has text.
    pub other_text: bool,
    /// There is thinking that is not empty.
    pub reasoning: bool,
    /// There is a refusal that is not empty.
    pub refusal: bool,
    /// There is sound.
    pub audio: bool,
    /// Pieces of tool calls.
    pub calls: Vec<CallPiece<'a>>,
    /// Choices that end here, and why. A reason that is not known is given as it is.
    pub finish: Vec<(u32, Cow<'a, str>)>,
    /// What the answer cost.
    pub usage: Option<Usage>,
    /// It carries an error object, or a choice ended for an error.
    pub error: bool,
    /// It is the terminal mark.
    pub done: bool,
    /// How many choices the frame has.
    pub choices: u32,
    /// Choices with content in this frame, as bits; those from 127 on share the last.
    pub speaking: u128,
}

impl Step<'_> {
    /// Whether there is real content: text, thinking, a refusal, sound or a piece of a tool call. Role, empty, ping and
    /// filter frames have none.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.text.is_some()
            || self.other_text
            || self.reasoning
            || self.refusal
            || self.audio
            || !self.calls.is_empty()
    }
}

impl Step<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Step<'static> {
        let calls = self.calls.into_iter().map(|call| CallPiece {
            id: owned(call.id),
            name: owned(call.name),
            arguments: owned(call.arguments),
            ..call
        });
        let finish =
            self.finish.into_iter().map(|(choice, reason)| (choice, Cow::Owned(reason.into_owned())));
        Step {
            id: owned(self.id),
            model: owned(self.model),
            text: owned(self.text),
            calls: calls.collect(),
            finish: finish.collect(),
            ..self
        }
    }
}

pub(crate) fn owned(text: Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
    text.map(|text| Cow::Owned(text.into_owned()))
}

/// A piece of a tool call. The first one of a call has its id and name, the arguments come in pieces to be joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPiece<'a> {
    /// The choice that calls.
    pub choice: u32,
    /// Which call of the choice; its place in the frame where the frame does not say.
    pub index: u32,
    /// Id of the call.
    pub id: Option<Cow<'a, str>>,
    /// Name of the tool.
    pub name: Option<Cow<'a, str>>,
    /// A piece of the arguments' text.
    pub arguments: Option<Cow<'a, str>>,
    /// The tool takes free text: its arguments are not meant to be JSON.
    pub free_text: bool,
}

/// What an answer cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sent, cached ones included.
    pub input: u64,
    /// Received, thinking included.
    pub output: u64,
    /// Of the sent ones, read from a cache.
    pub cached: u64,
    /// Of the received ones, thinking.
    pub reasoning: u64,
}

impl Usage {
    /// Both together, as one request that took several attempts cost them.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}
