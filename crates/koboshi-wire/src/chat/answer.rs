//! Reads an answer that is no stream.
//!
//! Borrowed, like everything here. The arguments of tool calls also say where they stand, so that mended ones can be put
//! there by [`with_arguments`] and the rest of the answer stays the bytes it was.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;

use super::said::{Said, Spent};
use crate::Malformed;
use crate::lenient::{Fields, Fill, List, Number, Object, Text, Truth, filled, skip, without_halves};
use crate::splice::{Splices, place, quoted};
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

/// One choice of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Its number; its place where the answer does not say.
    pub index: u32,
    /// The visible text; never empty.
    pub text: Option<Cow<'a, str>>,
    /// There is thinking.
    pub reasoning: bool,
    /// There is a refusal.
    pub refusal: bool,
    /// There is sound.
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
            arguments: Cow::Owned(call.arguments.into_owned()),
            span: call.span,
            free_text: call.free_text,
        });
        Choice { text: owned(self.text), calls: calls.collect(), finish: owned(self.finish), ..self }
    }
}

/// A tool call of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its id.
    pub id: Option<Cow<'a, str>>,
    /// Name of the tool.
    pub name: Option<Cow<'a, str>>,
    /// The text of the arguments; empty where there are none.
    pub arguments: Cow<'a, str>,
    /// Where the arguments' JSON value stands in the body, quotes included.
    pub span: Option<Range<usize>>,
    /// The tool takes free text: its arguments are not meant to be JSON.
    pub free_text: bool,
}

/// Reads an answer.
///
/// # Errors
/// It is not a JSON object.
pub fn read(body: &[u8]) -> Result<Whole<'_>, Malformed> {
    let text = std::str::from_utf8(body)?;
    match filled::<Answer<'_>>(text) {
        Ok(answer) => Ok(whole(answer, body)),
        Err(error) => match without_halves(text) {
            // Places are the same in both.
            Some(text) => {
                filled::<Answer<'_>>(&text).map(|answer| whole(answer, text.as_bytes()).into_owned())
            }
            None => Err(error),
        },
    }
}

fn whole<'a>(answer: Answer<'a>, body: &[u8]) -> Whole<'a> {
    let mut whole = Whole {
        id: answer.id,
        model: answer.model,
        created: answer.created,
        usage: answer.spent.usage(),
        error: answer.error,
        choices: Vec::with_capacity(answer.choices.len()),
    };
    for (place, Object(found)) in (0..).zip(answer.choices) {
        whole.error |= found.error || found.finish.as_deref() == Some("error");
        whole.choices.push(choice(found, place, body));
    }
    whole
}

fn choice<'a>(found: Found<'a>, index: u32, body: &[u8]) -> Choice<'a> {
    let said = found.said;
    let calls = said.calls.into_iter().map(|call| Call {
        arguments: call.function.arguments_text().unwrap_or_default(),
        span: call.function.arguments.and_then(|raw| place(body, raw.get())),
        id: call.id,
        name: call.function.name,
        free_text: call.free_text,
    });
    Choice {
        index: found.index.unwrap_or(index),
        calls: calls.collect(),
        text: said.text,
        reasoning: said.reasoning,
        refusal: said.refusal,
        audio: said.audio,
        finish: found.finish,
    }
}

/// The answer with other arguments: each text is written as a JSON string in place of the value at its span.
#[must_use]
pub fn with_arguments(body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    let mut splices = Splices::default();
    for (span, text) in changes {
        splices.replace(span.clone(), quoted(text));
    }
    splices.apply(body)
}

#[derive(Default)]
struct Answer<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    created: Option<u64>,
    choices: Vec<Object<Found<'a>>>,
    spent: Spent,
    error: bool,
}

impl<'a> Fields<'a> for Answer<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "model" => self.model = map.next_value::<Text<'a>>()?.full(),
            "created" => self.created = map.next_value::<Number>()?.0,
            "choices" => self.choices = map.next_value::<List<_>>()?.0,
            "usage" => self.spent = map.next_value::<Object<Spent>>()?.0,
            "error" => self.error |= map.next_value::<Truth>()?.0,
            "object" => self.error |= map.next_value::<Text<'a>>()?.0.as_deref() == Some("error"),
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct Found<'a> {
    index: Option<u32>,
    said: Said<'a>,
    finish: Option<Cow<'a, str>>,
    error: bool,
}

impl<'a> Fields<'a> for Found<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => self.index = map.next_value::<Number>()?.small(),
            "message" => {
                map.next_value_seed(Fill(&mut self.said))?;
            }
            "finish_reason" => self.finish = map.next_value::<Text<'a>>()?.full(),
            "error" => self.error = map.next_value::<Truth>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
