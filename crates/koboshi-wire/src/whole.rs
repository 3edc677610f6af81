//! An answer that is no stream, in no dialect: what must be known to judge it, and to write it in another dialect.
//!
//! Borrowed from the body. The arguments of tool calls also say where they stand, so that mended ones can be put there and the rest of the
//! answer stays the bytes it was.

use std::borrow::Cow;
use std::ops::Range;

use crate::Malformed;
use crate::form::{Signature, Thought};
use crate::lenient::without_halves;
use crate::step::{Usage, owned};

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whole<'a> {
    /// Its id.
    pub id: Option<Cow<'a, str>>,
    /// The model that answered, as it calls itself.
    pub model: Option<Cow<'a, str>>,
    /// When, in seconds since 1970.
    pub created: Option<u64>,
    /// The choices, in the order of the answer.
    pub choices: Vec<Choice<'a>>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// It carries an error object, or a choice ended for an error.
    pub error: bool,
}

impl Whole<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Whole<'static> {
        Whole {
            id: owned(self.id),
            model: owned(self.model),
            created: self.created,
            choices: self.choices.into_iter().map(Choice::into_owned).collect(),
            usage: self.usage,
            error: self.error,
        }
    }
}

/// Reads an answer with the reader of a dialect. One that has unpaired surrogates in it is read without them, and then borrows nothing.
pub(crate) fn read(
    body: &[u8],
    of_dialect: impl Fn(&str) -> Result<Whole<'_>, Malformed>,
) -> Result<Whole<'_>, Malformed> {
    let text = std::str::from_utf8(body)?;
    of_dialect(text).or_else(|error| match without_halves(text) {
        // Places are the same in both.
        Some(text) => of_dialect(&text).map(Whole::into_owned),
        None => Err(error),
    })
}

/// One choice of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Its number; its place where the answer does not say.
    pub index: u32,
    /// The visible text; never empty.
    pub text: Option<Cow<'a, str>>,
    /// There is thinking.
    pub reasoning: bool,
    /// What it thought, where the answer states it.
    pub thoughts: Vec<Thought<'a>>,
    /// There is a refusal.
    pub refusal: bool,
    /// The words of the refusal; never empty.
    pub refused: Option<Cow<'a, str>>,
    /// There is audio, or an image, or something else that only its dialect carries.
    pub audio: bool,
    /// The tool calls.
    pub calls: Vec<Call<'a>>,
    /// Why it ended.
    pub finish: Option<Cow<'a, str>>,
}

impl Choice<'_> {
    /// Whether there is anything in it.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.text.is_some() || self.reasoning || self.refusal || self.audio || !self.calls.is_empty()
    }

    fn into_owned(self) -> Choice<'static> {
        let calls = self.calls.into_iter().map(|call| Call {
            id: owned(call.id),
            name: owned(call.name),
            namespace: owned(call.namespace),
            arguments: Cow::Owned(call.arguments.into_owned()),
            span: call.span,
            free_text: call.free_text,
            signature: call.signature.map(Signature::into_owned),
        });
        Choice {
            text: owned(self.text),
            thoughts: self.thoughts.into_iter().map(Thought::into_owned).collect(),
            refused: owned(self.refused),
            calls: calls.collect(),
            finish: owned(self.finish),
            ..self
        }
    }
}

/// A tool call of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its id.
    pub id: Option<Cow<'a, str>>,
    /// Name of the tool.
    pub name: Option<Cow<'a, str>>,
    /// The group that the tool stands in, in dialects that have groups.
    pub namespace: Option<Cow<'a, str>>,
    /// The text of the arguments; empty where there are none.
    pub arguments: Cow<'a, str>,
    /// Where the arguments' JSON value stands in the body, quotes included.
    pub span: Option<Range<usize>>,
    /// The tool takes free text: its arguments are not meant to be JSON.
    pub free_text: bool,
    /// The provider's signature of this call.
    pub signature: Option<Signature<'a>>,
}
