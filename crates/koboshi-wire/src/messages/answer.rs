//! Reads an answer that is no stream.
//!
//! Borrowed, like everything here. Mended arguments of tool calls are put where they stand by [`with_arguments`], and the rest of the answer
//! stays the bytes it was. The arguments are an object here, not its text.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;

use super::event::{BlockFields, StopDetails};
use super::output::{UsageFields, UsageJson};
use super::{arguments, output};
use crate::Malformed;
use crate::amend;
use crate::dialect::Dialect;
use crate::form::{Signature, Thought};
use crate::json;
use crate::lenient::{Fields, List, Object, Text, Truthiness, arguments_of, filled, skip};
use crate::splice::place;
use crate::step::{Usage, join};

pub use crate::amend::with_note;
pub use crate::whole::{Call, Choice, Whole};

/// Reads an answer.
///
/// # Errors
/// It is not a JSON object.
pub fn read(body: &[u8]) -> Result<Whole<'_>, Malformed> {
    crate::whole::read(body, whole)
}

fn whole(text: &str) -> Result<Whole<'_>, Malformed> {
    let answer = filled::<Answer<'_>>(text)?;
    let mut choice = Choice {
        refusal: answer.explanation.is_some(),
        refused: answer.explanation,
        finish: answer.stop.map(output::finish_of),
        ..Choice::default()
    };
    let is_answer = answer.content.is_some();
    for Object(block) in answer.content.unwrap_or_default() {
        take(&mut choice, block, text.as_bytes());
    }
    Ok(Whole {
        id: answer.id,
        model: answer.model,
        created: None,
        choices: if is_answer { vec![choice] } else { Vec::new() },
        usage: answer.spent.usage(),
        error: answer.error,
    })
}

/// Adds what a block says.
fn take<'a>(choice: &mut Choice<'a>, block: BlockFields<'a>, body: &[u8]) {
    let signature = |data| Signature { of: Dialect::Messages, id: None, data };
    match block.kind.as_deref() {
        Some("text") => {
            if let Some(text) = block.text {
                join(&mut choice.text, text, "");
            }
        }
        Some("thinking") => {
            choice.reasoning |= block.thinking.is_some();
            choice.thoughts.push(Thought {
                text: block.thinking.unwrap_or_default(),
                signature: block.signature.map(signature),
                hidden: false,
            });
        }
        Some("redacted_thinking") => {
            choice.reasoning = true;
            choice.thoughts.push(Thought {
                signature: block.data.map(signature),
                hidden: true,
                ..Thought::default()
            });
        }
        Some("tool_use") => {
            choice.calls.push(Call {
                id: block.id,
                name: block.name,
                namespace: None,
                // A few servers send the text of the object.
                arguments: block.input.and_then(arguments_of).unwrap_or_default(),
                span: block.input.and_then(|raw| place(body, raw.get())),
                free_text: false,
                signature: None,
            });
        }
        // A tool that the provider runs, or what it found.
        Some(_) => choice.audio = true,
        None => {}
    }
}

/// The answer with other arguments: each text is written as the object it is in place of the value at its span. One that is no object stands in
/// the field `_raw`.
#[must_use]
pub fn with_arguments(body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    amend::with_arguments(body, changes, |text| arguments::object(text, false).into_owned())
}

/// The answer with another cost: what all attempts together cost.
#[must_use]
pub fn with_usage(body: &Bytes, usage: &Usage) -> Bytes {
    amend::with_cost(body, "usage", &[], json::bytes(&UsageJson::of(usage)))
}

#[derive(Default)]
struct Answer<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    content: Option<Vec<Object<BlockFields<'a>>>>,
    stop: Option<Cow<'a, str>>,
    explanation: Option<Cow<'a, str>>,
    spent: UsageFields,
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
            "usage" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            "error" => self.error |= map.next_value::<Truthiness>()?.0,
            "type" => self.error |= map.next_value::<Text<'a>>()?.0.as_deref() == Some("error"),
            _ => skip(map)?,
        }
        Ok(())
    }
}
