//! Counting the tokens of a request: `:countTokens`.
//!
//! A client asks with `contents` alone, or with a whole request inside `generateContentRequest`; Vertex takes the fields of a request beside
//! `contents`. All three are read as a request.

use bytes::Bytes;
use serde::Serialize;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::request::{GeminiRequest, entry_of};
use crate::intake::{Body, IntakeError};
use crate::json;
use crate::lenient::{Fields, Number, filled, skip};
use crate::splice::quoted;

/// Reads what is to be counted.
///
/// # Errors
/// What cannot be understood, with its place.
pub fn parse<'a>(model: &'a str, body: &'a [u8]) -> Result<GeminiRequest<'a>, IntakeError> {
    let outer = Body::of(body)?;
    let inner: Option<&'a RawValue> = entry_of(&outer.all, "generateContentRequest");
    match inner.filter(|raw| raw.get() != "null") {
        Some(inner) => GeminiRequest::parse(model, false, inner.get().as_bytes()),
        None => GeminiRequest::parse(model, false, body),
    }
}

/// The answer.
#[must_use]
pub fn answer(tokens: u64) -> Bytes {
    json::bytes(&CountJson { total_tokens: tokens })
}

/// A body of `:generateContent` as the question how many tokens it has. Only AI Studio takes it in this form.
#[must_use]
pub fn question(model: &str, body: &[u8]) -> Bytes {
    let inside = body.trim_ascii().strip_prefix(b"{").unwrap_or_default();
    let is_empty = inside.trim_ascii_start().starts_with(b"}");
    let comma = if is_empty { "" } else { "," };
    let head =
        format!(r#"{{"generateContentRequest":{{"model":{}{comma}"#, quoted(&format!("models/{model}")));
    [head.as_bytes(), inside, b"}"].concat().into()
}

/// How many tokens an upstream counted, if the answer says it.
#[must_use]
pub fn read(body: &[u8]) -> Option<u64> {
    filled::<Total>(std::str::from_utf8(body).ok()?).ok()?.0
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CountJson {
    total_tokens: u64,
}

#[derive(Default)]
struct Total(Option<u64>);

impl<'a> Fields<'a> for Total {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "totalTokens" | "total_tokens" => self.0 = map.next_value::<Number>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
