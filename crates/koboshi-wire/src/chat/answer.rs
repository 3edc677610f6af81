//! Reads an answer that is no stream.
//!
//! Borrowed, like everything here. Mended arguments of tool calls are put where they stand by [`with_arguments`], and the rest
//! of the answer stays the bytes it was.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;

use super::frames::usage_json;
use super::output::{MessageFields, UsageFields};
use crate::Malformed;
use crate::amend;
use crate::form::Thought;
use crate::lenient::{Fields, Fill, List, Number, Object, Text, Truthiness, filled, skip};
use crate::splice::{place, quoted};
use crate::step::Usage;

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
        whole.choices.push(choice(found, place, text.as_bytes()));
    }
    Ok(whole)
}

fn choice<'a>(found: ChoiceFields<'a>, index: u32, body: &[u8]) -> Choice<'a> {
    let message = found.message;
    let calls = message.calls.into_iter().map(|call| Call {
        arguments: call.function.arguments_text().unwrap_or_default(),
        span: call.function.arguments.and_then(|raw| place(body, raw.get())),
        id: call.id,
        name: call.function.name,
        namespace: None,
        free_text: call.free_text,
        signature: None,
    });
    Choice {
        index: found.index.unwrap_or(index),
        calls: calls.collect(),
        text: message.text,
        reasoning: message.reasoning,
        thoughts: message.thought.map(|text| Thought { text, ..Thought::default() }).into_iter().collect(),
        refusal: message.refusal,
        refused: message.refused,
        audio: message.audio,
        finish: found.finish,
    }
}

/// The answer with other arguments: each text is written as a JSON string in place of the value at its span.
#[must_use]
pub fn with_arguments(body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    amend::with_arguments(body, changes, quoted)
}

/// The answer with another cost: what all attempts together cost.
#[must_use]
pub fn with_usage(body: &Bytes, usage: &Usage) -> Bytes {
    amend::with_cost(body, "usage", &[], usage_json(usage))
}

#[derive(Default)]
struct Answer<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    created: Option<u64>,
    choices: Vec<Object<ChoiceFields<'a>>>,
    spent: UsageFields,
    error: bool,
}

impl<'a> Fields<'a> for Answer<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "model" => self.model = map.next_value::<Text<'a>>()?.full(),
            "created" => self.created = map.next_value::<Number>()?.0,
            "choices" => self.choices = map.next_value::<List<_>>()?.0,
            "usage" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            "error" => self.error |= map.next_value::<Truthiness>()?.0,
            "object" => self.error |= map.next_value::<Text<'a>>()?.0.as_deref() == Some("error"),
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct ChoiceFields<'a> {
    index: Option<u32>,
    message: MessageFields<'a>,
    finish: Option<Cow<'a, str>>,
    error: bool,
}

impl<'a> Fields<'a> for ChoiceFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => self.index = map.next_value::<Number>()?.small(),
            "message" => {
                map.next_value_seed(Fill(&mut self.message))?;
            }
            "finish_reason" => self.finish = map.next_value::<Text<'a>>()?.full(),
            "error" => self.error = map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn cost_and_note_change_nothing_else() {
        let usage = Usage { input: 7, output: 5, ..Usage::default() };
        for (body, rest) in [
            (r#"{ "id": "a", "usage": {"prompt_tokens": 1}, "x": 1 }"#, r#", "x": 1 }"#),
            (r#"{"id":"a","usage":null,"x":1}"#, r#","x":1}"#),
            (r#"{"id":"a","x":1}"#, r#""id":"a","x":1}"#),
            ("{ }", " }"),
        ] {
            let body = Bytes::from_static(body.as_bytes());
            let changed = with_note(&with_usage(&body, &usage), &json!({"source": "simple"}));
            let text = std::str::from_utf8(&changed).unwrap();
            assert!(text.ends_with(rest), "{text}");
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(value["usage"]["total_tokens"], 12, "{text}");
            assert_eq!(value["koboshi"]["source"], "simple", "{text}");
            assert_eq!(text.matches("\"usage\"").count(), 1, "{text}");
        }
        let page = Bytes::from_static(b"<html>");
        assert_eq!(with_note(&with_usage(&page, &usage), &json!({})), page);
    }
}
