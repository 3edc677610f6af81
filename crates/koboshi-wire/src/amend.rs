//! Changes to an answer that is no stream: other arguments, another cost, a note.
//!
//! One implementation for all dialects, because an answer is one JSON object in each of them; the names of fields and the way a value is written come
//! from the dialect. Everything is a splice, so the rest of the answer stays the bytes it was. What cannot be read is given back as it is.

use std::ops::Range;

use bytes::Bytes;
use serde::de::MapAccess;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Malformed;
use crate::dialect::Dialect;
use crate::lenient::{Fields, fill, skip, without_halves};
use crate::raw::{Raw, list};
use crate::splice::{Splices, place, quoted};

/// The answer with other arguments: each text, as the dialect `write`s it, in place of the value at its span.
pub(crate) fn with_arguments<'t, T: Into<Vec<u8>>>(
    body: &Bytes,
    changes: &[(Range<usize>, &'t str)],
    write: impl Fn(&'t str) -> T,
) -> Bytes {
    let mut splices = Splices::default();
    for (span, text) in changes {
        splices.replace(span.clone(), write(text));
    }
    splices.apply(body)
}

/// The answer with this JSON in its field for the cost. The field may have any of these names; where there is none yet it gets the `first`.
pub(crate) fn with_cost(
    body: &Bytes,
    first: &'static str,
    others: &'static [&'static str],
    json: impl Into<Vec<u8>>,
) -> Bytes {
    let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
    let place_in = |text: &str| place_of(text, first, others);
    // Replacing unpaired surrogates moves no place.
    let known =
        place_in(text).or_else(|error| without_halves(text).map_or(Err(error), |whole| place_in(&whole)));
    match known {
        Err(_) => body.clone(),
        Ok(None) => with_field(body, first, &json.into()),
        Ok(Some(range)) => {
            let mut splices = Splices::default();
            splices.replace(range, json);
            splices.apply(body)
        }
    }
}

/// The answer with tool calls as its finish reason, in place of the limit that cut it.
pub(crate) fn ended_for_calls(dialect: Dialect, body: &Bytes) -> Bytes {
    let Some(top) = serde_json::from_slice::<&RawValue>(body).ok().and_then(Raw::of) else {
        return body.clone();
    };
    let each = |name: &str| top.get(name).and_then(list).unwrap_or_default().into_iter().filter_map(Raw::of);
    let mut splices = Splices::default();
    let mut set = |raw: Option<&RawValue>, json: &'static str| {
        if let Some(range) = raw.and_then(|raw| place(body, raw.get())) {
            splices.replace(range, json);
        }
    };
    match dialect {
        Dialect::Chat => {
            let calls = |choice: &Raw<'_>| {
                choice.object("message").is_some_and(|message| message.get("tool_calls").is_some())
            };
            for choice in each("choices").filter(calls) {
                set(choice.get("finish_reason"), r#""tool_calls""#);
            }
        }
        Dialect::Messages => set(top.get("stop_reason"), r#""tool_use""#),
        Dialect::Responses => {
            set(top.get("status"), r#""completed""#);
            set(top.get("incomplete_details"), "null");
            for item in each("output") {
                set(item.get("status"), r#""completed""#);
            }
        }
        Dialect::Gemini => {
            for candidate in each("candidates") {
                set(candidate.get("finishReason").or(candidate.get("finish_reason")), r#""STOP""#);
            }
        }
    }
    splices.apply(body)
}

/// The answer with Koboshi's own object added.
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

/// Where the value of a field stands; of one that comes twice the last.
fn place_of(
    text: &str,
    first: &'static str,
    others: &'static [&'static str],
) -> Result<Option<Range<usize>>, Malformed> {
    let mut field = Field { first, others, value: None };
    fill(text, &mut field)?;
    Ok(field.value.and_then(|raw| place(text.as_bytes(), raw.get())))
}

/// A field by its names, and its value.
#[derive(Default)]
struct Field<'a> {
    first: &'static str,
    others: &'static [&'static str],
    value: Option<&'a RawValue>,
}

impl<'a> Fields<'a> for Field<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        if name == self.first || self.others.contains(&name) {
            self.value = Some(map.next_value()?);
            Ok(())
        } else {
            skip(map)
        }
    }
}
