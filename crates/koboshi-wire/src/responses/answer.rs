//! Reads an answer that is no stream.
//!
//! A response has one answer, so it is one choice: its messages are the text, its reasoning items the thoughts. Mended arguments are put where
//! they stand by [`with_arguments`], and the rest of the answer stays the bytes it was.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::said::{Output, Response};
use super::whole::usage_json;
use crate::Malformed;
use crate::chat::answer::with_field;
use crate::lenient::{Fields, List, Object, filled, skip, without_halves};
use crate::splice::{Splices, place};
use crate::step::{ItemKind, Usage};

pub use crate::chat::answer::{with_arguments, with_note};
pub use crate::whole::{Call, Choice, Whole};

/// Reads an answer.
///
/// # Errors
/// It is not a JSON object.
pub fn read(body: &[u8]) -> Result<Whole<'_>, Malformed> {
    let text = std::str::from_utf8(body)?;
    match whole(text) {
        Ok(whole) => Ok(whole),
        Err(error) => match without_halves(text) {
            // Places are the same in both.
            Some(text) => whole(&text).map(Whole::into_owned),
            None => Err(error),
        },
    }
}

fn whole(text: &str) -> Result<Whole<'_>, Malformed> {
    let response = filled::<Response<'_>>(text)?;
    let choice = match response.output {
        None => None,
        Some(output) => {
            let List(items) = serde_json::from_str::<List<Object<Output<'_>>>>(output.get())
                .map_err(|error| Malformed::of(&error))?;
            Some(choice(items, &response, text.as_bytes()))
        }
    };
    Ok(Whole {
        error: response.is_failed(),
        usage: response.spent.usage(),
        id: response.id,
        model: response.model,
        created: response.created,
        choices: choice.into_iter().collect(),
    })
}

fn choice<'a>(items: Vec<Object<Output<'a>>>, response: &Response<'a>, body: &[u8]) -> Choice<'a> {
    let mut choice = Choice::default();
    for Object(mut item) in items {
        match item.kind() {
            ItemKind::Message => {
                add(&mut choice.text, item.text());
                add(&mut choice.refused, item.refusal());
            }
            ItemKind::Thought => choice.thoughts.extend(item.whole_thought()),
            ItemKind::Call => choice.calls.push(Call {
                arguments: item.arguments_text().unwrap_or_default(),
                span: item.arguments.and_then(|raw| place(body, raw.get())),
                free_text: item.is_free_text(),
                id: item.call_id.or(item.id),
                name: item.name,
                namespace: item.namespace,
                seal: None,
            }),
            ItemKind::Other => {}
        }
    }
    choice.reasoning = choice.thoughts.iter().any(|thought| !thought.text.is_empty());
    choice.refusal = choice.refused.is_some();
    choice.finish = response.finish(!choice.calls.is_empty());
    choice
}

fn add<'a>(all: &mut Option<Cow<'a, str>>, text: Option<Cow<'a, str>>) {
    *all = super::said::joined([all.take(), text].into_iter().flatten(), "");
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
    let json = usage_json(usage);
    match known {
        Some(range) => {
            let mut splices = Splices::default();
            splices.replace(range, json);
            splices.apply(body)
        }
        None => with_field(body, "usage", &json),
    }
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
