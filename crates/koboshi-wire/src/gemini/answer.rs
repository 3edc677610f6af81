//! Reads an answer that is no stream.
//!
//! Borrowed, and changed by splices like those of the other dialects. Arguments are an object here, not a text that holds one.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;

use super::event::only;
use super::frames::usage_json;
use super::output::{Candidate, Feedback, UsageFields, finish_of};
use super::write_parts;
use crate::Malformed;
use crate::amend;
use crate::dialect::finish;
use crate::lenient::{Fields, List, Object, Text, Truthiness, filled, skip};
use crate::splice::place;
use crate::step::Usage;

pub use crate::amend::with_note;
pub use crate::whole::{Call, Choice, Whole};

/// Reads an answer. A prompt that was refused is a choice without content that a filter ended.
///
/// # Errors
/// It is not a JSON object.
pub fn read(body: &[u8]) -> Result<Whole<'_>, Malformed> {
    crate::whole::read(body, whole)
}

fn whole(text: &str) -> Result<Whole<'_>, Malformed> {
    let answer = filled::<Answer<'_>>(only(text.trim_ascii()))?;
    let body = text.as_bytes();
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
    Ok(whole)
}

fn choice<'a>(found: Candidate<'a>, index: u32, body: &[u8]) -> Choice<'a> {
    let content = found.content;
    let has_calls = !content.calls.is_empty();
    let reasoning = content.has_thought();
    let calls = content.calls.into_iter().map(|call| Call {
        arguments: call.arguments().unwrap_or_default(),
        span: call.args.and_then(|raw| place(body, raw.get())),
        id: call.id,
        name: call.name,
        namespace: None,
        free_text: false,
        signature: call.signature,
    });
    Choice {
        index: found.index.unwrap_or(index),
        calls: calls.collect(),
        text: content.text,
        reasoning,
        thoughts: content.thoughts,
        refusal: false,
        refused: None,
        audio: content.other,
        finish: found.finish.map(|reason| finish_of(reason, has_calls)),
    }
}

/// The answer with other arguments: each object in place of the value at its span. What is no object is put into one.
#[must_use]
pub fn with_arguments(body: &Bytes, changes: &[(Range<usize>, &str)]) -> Bytes {
    amend::with_arguments(body, changes, |text| write_parts::object(text, false).get().to_owned())
}

/// The answer with another cost: what all attempts together cost.
#[must_use]
pub fn with_usage(body: &Bytes, usage: &Usage) -> Bytes {
    amend::with_cost(body, "usageMetadata", &["usage_metadata"], usage_json(usage))
}

#[derive(Default)]
struct Answer<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    candidates: Vec<Object<Candidate<'a>>>,
    spent: UsageFields,
    blocked: bool,
    error: bool,
}

impl<'a> Fields<'a> for Answer<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "responseId" | "response_id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "modelVersion" | "model_version" => self.model = map.next_value::<Text<'a>>()?.full(),
            "candidates" => self.candidates = map.next_value::<List<_>>()?.0,
            "usageMetadata" | "usage_metadata" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            "promptFeedback" | "prompt_feedback" => {
                self.blocked = map.next_value::<Object<Feedback>>()?.0.blocked;
            }
            "error" => self.error |= map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
