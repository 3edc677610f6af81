//! Reads an answer that is no stream.
//!
//! Borrowed, and changed by splices like those of the other dialects. Arguments are an object here, not a text that holds one.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;
use serde_json::Value;
use serde_json::value::RawValue;

use super::event::only;
use super::out;
use super::said::{Candidate, Feedback, Spent, finish_of};
use super::write::usage_json;
use crate::Malformed;
use crate::dialect::finish;
use crate::lenient::{Fields, List, Object, Text, Truth, filled, skip, without_halves};
use crate::splice::{Splices, place, quoted};
use crate::step::Usage;

pub use crate::whole::{Call, Choice, Whole};

/// Reads an answer. A prompt that was refused is a choice without content that a filter ended.
///
/// # Errors
/// It is not a JSON object.
pub fn read(body: &[u8]) -> Result<Whole<'_>, Malformed> {
    let text = std::str::from_utf8(body)?;
    match filled::<Answer<'_>>(only(text.trim_ascii())) {
        Ok(answer) => Ok(whole(answer, body)),
        Err(error) => match without_halves(text) {
            // Places are the same in both.
            Some(text) => filled::<Answer<'_>>(only(text.trim_ascii()))
                .map(|answer| whole(answer, text.as_bytes()).into_owned()),
            None => Err(error),
        },
    }
}

fn whole<'a>(answer: Answer<'a>, body: &[u8]) -> Whole<'a> {
    let choices = (0..).zip(answer.candidates).map(|(place, Object(found))| choice(found, place, body));
    let mut whole = Whole {
        id: answer.id,
        model: answer.model,
        created: None,
        usage: answer.spent.usage(),
        error: answer.error,
        choices: choices.collect(),
    };
    if answer.blocked && whole.choices.is_empty() {
        let finish = Some(Cow::Borrowed(finish::CONTENT_FILTER));
        whole.choices.push(Choice { finish, ..Choice::default() });
    }
    whole
}

fn choice<'a>(found: Candidate<'a>, index: u32, body: &[u8]) -> Choice<'a> {
    let said = found.said;
    let has_calls = !said.calls.is_empty();
    let reasoning = said.has_thought();
    let calls = said.calls.into_iter().map(|call| Call {
        arguments: call.arguments().unwrap_or_default(),
        span: call.args.and_then(|raw| place(body, raw.get())),
        id: call.id,
        name: call.name,
        namespace: None,
        free_text: false,
        seal: call.seal,
    });
    Choice {
        index: found.index.unwrap_or(index),
        calls: calls.collect(),
        text: said.text,
        reasoning,
        thoughts: said.thoughts,
        refusal: false,
        refused: None,
        audio: said.other,
        finish: found.finish.map(|reason| finish_of(reason, has_calls)),
    }
}

/// The answer with other arguments: each object in place of the value at its span. What is no object is put into one.
#[must_use]
pub fn with_arguments(body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    let mut splices = Splices::default();
    for (span, text) in changes {
        splices.replace(span.clone(), out::object(text, false).get());
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
    let json = usage_json(usage);
    match known {
        Some(range) => {
            let mut splices = Splices::default();
            splices.replace(range, json);
            splices.apply(body)
        }
        None => with_field(body, "usageMetadata", &json),
    }
}

/// The answer with what Koboshi has to say of it.
#[must_use]
pub fn with_note(body: &Bytes, koboshi: &Value) -> Bytes {
    with_field(body, "koboshi", koboshi.to_string().as_bytes())
}

/// The answer with one more field in front of the others.
fn with_field(body: &Bytes, name: &str, json: &[u8]) -> Bytes {
    let Some(brace) = body.iter().position(|byte| *byte == b'{') else { return body.clone() };
    let is_empty = body.get(brace + 1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"}"));
    let mut field = quoted(name).into_bytes();
    field.push(b':');
    field.extend_from_slice(json);
    if !is_empty {
        field.push(b',');
    }
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
            "usageMetadata" | "usage_metadata" => self.0 = Some(map.next_value()?),
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct Answer<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    candidates: Vec<Object<Candidate<'a>>>,
    spent: Spent,
    blocked: bool,
    error: bool,
}

impl<'a> Fields<'a> for Answer<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "responseId" | "response_id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "modelVersion" | "model_version" => self.model = map.next_value::<Text<'a>>()?.full(),
            "candidates" => self.candidates = map.next_value::<List<_>>()?.0,
            "usageMetadata" | "usage_metadata" => self.spent = map.next_value::<Object<Spent>>()?.0,
            "promptFeedback" | "prompt_feedback" => {
                self.blocked = map.next_value::<Object<Feedback>>()?.0.blocked;
            }
            "error" => self.error |= map.next_value::<Truth>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
