//! The content of one frame of a stream, in no dialect.
//!
//! The relay works on steps alone, so that another dialect only brings a decoder and writers. A step borrows from its frame
//! and holds what must be known to judge a stream: has content come, is a tool call under way, how did it end. It is never
//! written back: the frame itself is what passes.

use std::borrow::Cow;

/// The content of a frame.
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
    /// The words of the thinking, where they are given; never empty. With it, `reasoning` is set.
    pub thought: Option<Cow<'a, str>>,
    /// A piece of the provider's signature of its thinking, or of the encrypted thought, to be joined.
    pub signature: Option<Cow<'a, str>>,
    /// The signature is a whole thought whose words are withheld: Anthropic's `redacted_thinking`.
    pub hidden: bool,
    /// There is a refusal that is not empty.
    pub refusal: bool,
    /// The words of the refusal, where they are given; never empty. With it, `refusal` is set.
    pub refused: Option<Cow<'a, str>>,
    /// There is audio, or an image, or something else that only its dialect carries.
    pub audio: bool,
    /// The provider worked with a tool of its own here. What it found comes as text, but it may be all that a turn has.
    pub hosted: bool,
    /// Pieces of tool calls.
    pub calls: Vec<CallPiece<'a>>,
    /// Choices that end here, and why, in the words of [`finish`](crate::dialect::finish). A reason that is not known is given as it is.
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
    /// A block of the answer opens or closes here, in dialects that number them.
    pub block: Option<Block>,
    /// What happens to an item of the answer here, in dialects whose items have ids.
    pub item: Option<Item<'a>>,
    /// Number of the frame, in dialects that number them.
    pub number: Option<u64>,
}

/// Where a numbered block of an answer opens or closes: Anthropic's content blocks, the output items of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub index: u32,
    /// It closes here; else it opens.
    pub closes: bool,
}

/// What happens to an item of an answer, where answers are made of items with ids. Frames that only bring a piece of an item have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item<'a> {
    /// Its number in the answer.
    pub index: u32,
    /// Its id.
    pub id: Option<Cow<'a, str>>,
    /// What it is.
    pub kind: ItemKind,
    /// What happens to it.
    pub mark: ItemMark,
}

/// What an item of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ItemKind {
    /// Text or a refusal.
    Message,
    /// Thinking.
    Thought,
    /// A call of one of the client's tools.
    Call,
    /// An item that only its dialect has.
    #[default]
    Other,
}

/// What happens to an item of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ItemMark {
    /// It opens.
    #[default]
    Opens,
    /// A part of it opens.
    PartOpens,
    /// A part of it closes.
    PartCloses,
    /// It closes.
    Closes,
}

impl Step<'_> {
    /// Whether there is real content: text, thinking, a refusal, audio or a piece of a tool call. Role, empty, ping and
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
            namespace: owned(call.namespace),
            arguments: owned(call.arguments),
            signature: owned(call.signature),
            ..call
        });
        let finish =
            self.finish.into_iter().map(|(choice, reason)| (choice, Cow::Owned(reason.into_owned())));
        Step {
            id: owned(self.id),
            model: owned(self.model),
            text: owned(self.text),
            thought: owned(self.thought),
            signature: owned(self.signature),
            refused: owned(self.refused),
            calls: calls.collect(),
            finish: finish.collect(),
            item: self.item.map(|item| Item { id: owned(item.id), ..item }),
            ..self
        }
    }
}

pub(crate) fn owned(text: Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
    text.map(|text| Cow::Owned(text.into_owned()))
}

/// Puts one more text behind those that are there.
pub(crate) fn join<'a>(all: &mut Option<Cow<'a, str>>, text: Cow<'a, str>, between: &str) {
    match all {
        None => *all = Some(text),
        Some(before) => {
            let before = before.to_mut();
            before.push_str(between);
            before.push_str(&text);
        }
    }
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
    /// The group that the tool stands in, in dialects that have groups.
    pub namespace: Option<Cow<'a, str>>,
    /// A piece of the arguments' text.
    pub arguments: Option<Cow<'a, str>>,
    /// The tool takes free text: its arguments are not meant to be JSON.
    pub free_text: bool,
    /// The provider's signature of this call, whole.
    pub signature: Option<Cow<'a, str>>,
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
    /// Of the sent ones, written to a cache.
    pub stored: u64,
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
            stored: self.stored.saturating_add(other.stored),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}
