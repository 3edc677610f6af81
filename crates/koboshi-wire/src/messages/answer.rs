//! Reads an answer that is no stream.
//!
//! Borrowed, like everything here. Mended arguments of tool calls are put where they stand by [`with_arguments`], and the rest of the answer
//! stays the bytes it was. The arguments are an object here, not its text.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;
use serde_json::Value;
use serde_json::value::RawValue;

use super::event::{Begun, StopDetails};
use super::usage::{Counts, Spent};
use super::{arguments, frame, stop};
use crate::Malformed;
use crate::dialect::Dialect;
use crate::form::{Seal, Thought};
use crate::lenient::{Fields, List, Object, Text, Truth, filled, skip, text_of, without_halves};
use crate::splice::{Splices, place, quoted};
use crate::step::Usage;

pub use crate::whole::{Call, Choice, Whole};

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
    let mut choice = Choice {
        refusal: answer.explanation.is_some(),
        refused: answer.explanation,
        finish: answer.stop.map(stop::read),
        ..Choice::default()
    };
    let is_answer = answer.content.is_some();
    for Object(block) in answer.content.unwrap_or_default() {
        take(&mut choice, block, body);
    }
    Whole {
        id: answer.id,
        model: answer.model,
        created: None,
        choices: if is_answer { vec![choice] } else { Vec::new() },
        usage: answer.spent.usage(),
        error: answer.error,
    }
}

/// Adds what a block says.
fn take<'a>(choice: &mut Choice<'a>, block: Begun<'a>, body: &[u8]) {
    let seal = |data| Seal { of: Dialect::Messages, id: None, data };
    match block.kind.as_deref() {
        Some("text") => match (&mut choice.text, block.text) {
            (Some(before), Some(text)) => before.to_mut().push_str(&text),
            (before, Some(text)) => *before = Some(text),
            (_, None) => {}
        },
        Some("thinking") => {
            choice.reasoning |= block.thinking.is_some();
            choice.thoughts.push(Thought {
                text: block.thinking.unwrap_or_default(),
                seal: block.signature.map(seal),
                hidden: false,
            });
        }
        Some("redacted_thinking") => {
            choice.reasoning = true;
            choice.thoughts.push(Thought { seal: block.data.map(seal), hidden: true, ..Thought::default() });
        }
        Some("tool_use") => {
            let raw = block.input.filter(|raw| raw.get() != "null");
            choice.calls.push(Call {
                id: block.id,
                name: block.name,
                namespace: None,
                // A few servers send the text of the object.
                arguments: raw
                    .map_or(Cow::Borrowed(""), |raw| text_of(raw).unwrap_or(Cow::Borrowed(raw.get()))),
                span: block.input.and_then(|raw| place(body, raw.get())),
                free_text: false,
                seal: None,
            });
        }
        _ => {}
    }
}

/// The answer with other arguments: each text is written as the object it is in place of the value at its span. One that is no object stands in
/// the field `_raw`.
#[must_use]
pub fn with_arguments(body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    let mut splices = Splices::default();
    for (span, text) in changes {
        splices.replace(span.clone(), arguments::object(text, false).into_owned());
    }
    splices.apply(body)
}

/// The answer with another cost: what all attempts together cost.
#[must_use]
pub fn with_usage(body: &Bytes, usage: &Usage) -> Bytes {
    let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
    let place_in = |text: &str| {
        filled::<Cost<'_>>(text).map(|Cost(raw)| raw.and_then(|raw| place(text.as_bytes(), raw.get())))
    };
    // Places are the same without halves of letters.
    let known =
        place_in(text).or_else(|error| without_halves(text).map_or(Err(error), |whole| place_in(&whole)));
    let Ok(known) = known else { return body.clone() };
    let mut json = Vec::new();
    frame::json(&mut json, &Counts::of(usage));
    match known {
        Some(range) => {
            let mut splices = Splices::default();
            splices.replace(range, json);
            splices.apply(body)
        }
        None => with_field(body, "usage", &json),
    }
}

/// The answer with what Koboshi has to say of it.
#[must_use]
pub fn with_note(body: &Bytes, koboshi: &Value) -> Bytes {
    with_field(body, "koboshi", koboshi.to_string().as_bytes())
}

/// The answer with one more field in front of the others; an answer always has others.
fn with_field(body: &Bytes, name: &str, json: &[u8]) -> Bytes {
    let Some(brace) = body.iter().position(|byte| *byte == b'{') else { return body.clone() };
    let mut field = quoted(name).into_bytes();
    field.push(b':');
    field.extend_from_slice(json);
    field.push(b',');
    let mut splices = Splices::default();
    splices.insert(brace + 1, field);
    splices.apply(body)
}

/// Where the cost stands.
#[derive(Default)]
struct Cost<'a>(Option<&'a RawValue>);

impl<'a> Fields<'a> for Cost<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "usage" => self.0 = Some(map.next_value()?),
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct Answer<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    content: Option<Vec<Object<Begun<'a>>>>,
    stop: Option<Cow<'a, str>>,
    explanation: Option<Cow<'a, str>>,
    spent: Spent,
    error: bool,
}

impl<'a> Fields<'a> for Answer<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "model" => self.model = map.next_value::<Text<'a>>()?.full(),
            "content" => self.content = Some(map.next_value::<List<_>>()?.0),
            "stop_reason" => self.stop = map.next_value::<Text<'a>>()?.full(),
            "stop_details" => self.explanation = map.next_value::<Object<StopDetails<'a>>>()?.0.0,
            "usage" => self.spent = map.next_value::<Object<Spent>>()?.0,
            "error" => self.error |= map.next_value::<Truth>()?.0,
            "type" => self.error |= map.next_value::<Text<'a>>()?.0.as_deref() == Some("error"),
            _ => skip(map)?,
        }
        Ok(())
    }
}
