//! Reads the data of one frame of a chat stream.
//!
//! One pass, borrowed, into a [`Step`]: a usual text chunk costs no allocation. Unknown fields are passed over, known ones of an
//! unexpected type count as absent, because compatible servers differ in all of that. What is not JSON at all is
//! [`Malformed`]; what an error object says is not read here but by `koboshi::classify`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::output::{MessageFields, UsageFields};
use crate::Malformed;
use crate::lenient::{
    Fields, Fill, Number, Object, Text, Truthiness, filled, otherwise, skip, without_halves,
};
use crate::step::{CallPiece, Step};

/// What this data says.
///
/// ```
/// let step = koboshi_wire::chat::event::read(r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#).unwrap();
/// assert_eq!(step.text.as_deref(), Some("Hi"));
/// assert!(koboshi_wire::chat::event::read("[DONE]").unwrap().done);
/// ```
///
/// # Errors
/// It is not a JSON object.
pub fn read(data: &str) -> Result<Step<'_>, Malformed> {
    let trimmed = data.trim_ascii();
    if trimmed.starts_with("[DONE]") {
        return Ok(Step { done: true, ..Step::default() });
    }
    if trimmed.is_empty() {
        // An event without data is no event; some servers send one as a keep-alive.
        return Ok(Step::default());
    }
    match filled::<Chunk<'_>>(trimmed) {
        Ok(Chunk(step)) => Ok(step),
        Err(error) => match without_halves(trimmed) {
            Some(whole) => filled::<Chunk<'_>>(&whole).map(|Chunk(step)| step.into_owned()),
            None => Err(error),
        },
    }
}

#[derive(Default)]
struct Chunk<'a>(Step<'a>);

impl<'a> Fields<'a> for Chunk<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let step = &mut self.0;
        match name {
            "id" => step.id = map.next_value::<Text<'a>>()?.full(),
            "model" => step.model = map.next_value::<Text<'a>>()?.full(),
            "choices" => map.next_value_seed(Choices(step))?,
            "usage" => step.usage = map.next_value::<Object<UsageFields>>()?.0.usage().or(step.usage),
            "x_groq" => {
                let Object(groq) = map.next_value::<Object<Groq>>()?;
                step.usage = step.usage.or(groq.spent.usage());
                step.error |= groq.error;
            }
            "error" => step.error |= map.next_value::<Truthiness>()?.0,
            // vLLM and Mistral send an error object without a wrapper.
            "object" => step.error |= map.next_value::<Text<'a>>()?.0.as_deref() == Some("error"),
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Groq's own part of the last chunk.
#[derive(Default)]
struct Groq {
    spent: UsageFields,
    error: bool,
}

impl<'a> Fields<'a> for Groq {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "usage" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            "error" => self.error = map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Reads the choices into a step, one after the other, without a list of them.
struct Choices<'s, 'a>(&'s mut Step<'a>);

impl<'a> DeserializeSeed<'a> for Choices<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Choices<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let mut place = 0;
        loop {
            let mut choice = Choice::default();
            if list.next_element_seed(Fill(&mut choice))?.is_none() {
                break;
            }
            take(self.0, choice, place);
            place += 1;
        }
        self.0.choices = place;
        Ok(())
    }

    otherwise!(texts, numbers, flags, null, objects);
}

#[derive(Default)]
struct Choice<'a> {
    index: Option<u32>,
    message: MessageFields<'a>,
    finish: Option<Cow<'a, str>>,
    spent: UsageFields,
    error: bool,
}

impl<'a> Fields<'a> for Choice<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => self.index = map.next_value::<Number>()?.small(),
            // A few servers send whole messages as the pieces of a stream.
            "delta" | "message" => {
                map.next_value_seed(Fill(&mut self.message))?;
            }
            // Some relays send an empty reason in every chunk.
            "finish_reason" => self.finish = map.next_value::<Text<'a>>()?.full(),
            // Moonshot.
            "usage" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            "error" => self.error = map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Adds what a choice says to its step.
fn take<'a>(step: &mut Step<'a>, choice: Choice<'a>, place: u32) {
    let index = choice.index.unwrap_or(place);
    let message = choice.message;
    if message.text.is_some()
        || message.reasoning
        || message.refusal
        || message.audio
        || !message.calls.is_empty()
    {
        step.speaking |= 1_u128.checked_shl(index).unwrap_or(1 << 127);
    }
    match (message.text, index) {
        (None, _) => {}
        (Some(text), 0) => match &mut step.text {
            None => step.text = Some(text),
            Some(before) => before.to_mut().push_str(&text),
        },
        (Some(_), _) => step.other_text = true,
    }
    step.reasoning |= message.reasoning;
    step.refusal |= message.refusal;
    if index == 0 {
        step.thought = step.thought.take().or(message.thought);
        step.refused = step.refused.take().or(message.refused);
    }
    step.audio |= message.audio;
    for (place, call) in (0..).zip(message.calls) {
        step.calls.push(CallPiece {
            choice: index,
            index: call.index.unwrap_or(place),
            arguments: call.function.arguments_text(),
            name: call.function.name,
            id: call.id,
            free_text: call.free_text,
            ..CallPiece::default()
        });
    }
    step.usage = step.usage.or(choice.spent.usage());
    step.error |= choice.error;
    if let Some(reason) = choice.finish {
        step.error |= reason == "error";
        step.finish.push((index, reason));
    }
}
