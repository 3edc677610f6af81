//! Takes a request body apart at its top level, and says in plain words why one cannot be taken.
//!
//! The body stays as it is: fields are borrowed raw. What would read differently for two readers is refused here, because
//! the gateway and the upstream must see the same request: a key that comes twice, bytes that are no text, nesting
//! that only some readers bear.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::message::Messages;
use crate::json;
use crate::lenient::{Text, otherwise, text_of};
use crate::splice::place;

/// Lists and objects may be nested so deep.
pub(crate) const DEEPEST: usize = 128;

/// Why a request body cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntakeError {
    /// The bytes are no text.
    #[error("the request body must be UTF-8; byte {at} does not fit")]
    NotUtf8 {
        /// The first byte that does not fit.
        at: usize,
    },
    /// It is not JSON.
    #[error("the request body is not JSON: there is a mistake at line {line}, column {column}")]
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// It ends in the middle.
    #[error("the request body ends too early, at line {line}, column {column}")]
    Cut {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// It is JSON, but no object.
    #[error("the request body must be a JSON object")]
    NotAnObject,
    /// Nested too deep.
    #[error("the request body is nested deeper than {DEEPEST} levels")]
    TooDeep,
    /// A key comes twice: which of the two counts would be chance.
    #[error("`{0}` is given twice; give it once")]
    Twice(String),
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("`{param}` must be {must_be}")]
    WrongType {
        /// The field.
        param: &'static str,
        /// What it must be.
        must_be: &'static str,
    },
    /// A message is no object.
    #[error("`messages[{0}]` must be an object")]
    MessageNotObject(usize),
    /// A message does not say who speaks.
    #[error("`messages[{0}].role` is missing")]
    NoRole(usize),
}

impl IntakeError {
    /// The field it is about, as an OpenAI error names it.
    #[must_use]
    pub fn param(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Twice(name) => Some(Cow::Borrowed(name)),
            Self::Missing(name) | Self::WrongType { param: name, .. } => Some(Cow::Borrowed(name)),
            Self::MessageNotObject(index) => Some(Cow::Owned(format!("messages[{index}]"))),
            Self::NoRole(index) => Some(Cow::Owned(format!("messages[{index}].role"))),
            _ => None,
        }
    }

    fn of(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() { Self::Cut { line, column } } else { Self::NotJson { line, column } }
    }
}

/// A body taken apart.
#[derive(Debug)]
pub(crate) struct Top<'a> {
    pub(crate) body: &'a str,
    /// All fields but the messages, raw, in their order.
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    messages: Option<(From<'a>, Messages<'a>)>,
}

/// Where the list of messages begins. Its own text is never held as a whole: reading it twice would cost as much again.
#[derive(Debug, Clone, Copy)]
enum From<'a> {
    /// Behind this key.
    Key(&'a str),
    /// With this value, where the key is written with escapes.
    Value(&'a str),
}

impl<'a> Top<'a> {
    /// Takes a body apart.
    pub(crate) fn of(body: &'a [u8]) -> Result<Self, IntakeError> {
        let body =
            std::str::from_utf8(body).map_err(|error| IntakeError::NotUtf8 { at: error.valid_up_to() })?;
        let Found { is_object, fields, messages, messages_twice } =
            json::read(body).map_err(|error| IntakeError::of(&error))?;
        if !is_object {
            return Err(IntakeError::NotAnObject);
        }
        let twice = if messages_twice { Some("messages".to_owned()) } else { twice(&fields) };
        if let Some(name) = twice {
            return Err(IntakeError::Twice(name));
        }
        if fields.iter().any(|(_, raw)| is_deeper(raw, DEEPEST - 1)) {
            return Err(IntakeError::TooDeep);
        }
        Ok(Self { body, fields, messages })
    }

    /// The field of this name, `null` or not. Never the messages.
    pub(crate) fn entry(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    /// The field of this name; `null` counts as absent. Never the messages.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.entry(name).filter(|raw| raw.get() != "null")
    }

    /// The model's name, which every request must have, and where it stands.
    pub(crate) fn model(&self) -> Result<(Cow<'a, str>, &'a RawValue), IntakeError> {
        let raw = self.get("model").ok_or(IntakeError::Missing("model"))?;
        let name = text_of(raw).filter(|name| !name.is_empty());
        name.map(|name| (name, raw))
            .ok_or(IntakeError::WrongType { param: "model", must_be: "the name of a model, as text" })
    }

    /// The messages, and where their list begins.
    pub(crate) fn messages(&mut self) -> Result<(usize, Messages<'a>), IntakeError> {
        let (from, messages) = self.messages.take().ok_or(IntakeError::Missing("messages"))?;
        let body = self.body.as_bytes();
        let start = match from {
            From::Key(key) => {
                place(body, key).map(|key| after_spaces(body, after_spaces(body, key.end + 1) + 1))
            }
            From::Value(value) => place(body, value).map(|value| value.start),
        };
        Ok((start.unwrap_or(0), messages))
    }
}

/// The place of the next byte that is no space.
pub(crate) fn after_spaces(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The fields of a raw object; none of anything else.
pub(crate) fn fields(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    let pairs = json::read::<Pairs<'_>>(raw.get()).ok()?;
    Some(pairs.0)
}

/// A key that comes twice, if any does. Names in error messages are bounded: the key is the client's, but the log is ours.
fn twice(fields: &[(Cow<'_, str>, &RawValue)]) -> Option<String> {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    names.windows(2).find_map(|two| match two {
        [one, other] if one == other => Some(one.chars().filter(|c| !c.is_control()).take(80).collect()),
        _ => None,
    })
}

#[derive(Default)]
struct Found<'a> {
    is_object: bool,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    messages: Option<(From<'a>, Messages<'a>)>,
    messages_twice: bool,
}

struct FoundVisitor;

impl<'a> Visitor<'a> for FoundVisitor {
    type Value = Found<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Found<'a>, A::Error> {
        let mut found = Found { is_object: true, fields: Vec::with_capacity(8), ..Found::default() };
        while let Some(Text(name)) = map.next_key::<Text<'a>>()? {
            let name = name.unwrap_or_default();
            if name != "messages" {
                found.fields.push((name, map.next_value()?));
                continue;
            }
            found.messages_twice |= found.messages.is_some();
            found.messages = Some(match name {
                Cow::Borrowed(key) => (From::Key(key), map.next_value()?),
                Cow::Owned(_) => {
                    let raw: &'a RawValue = map.next_value()?;
                    (From::Value(raw.get()), json::read(raw.get()).map_err(A::Error::custom)?)
                }
            });
        }
        Ok(found)
    }

    otherwise!(texts, numbers, flags, null, lists);
}

impl<'a> Deserialize<'a> for Found<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoundVisitor)
    }
}

struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

struct PairsVisitor;

impl<'a> Visitor<'a> for PairsVisitor {
    type Value = Pairs<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Pairs<'a>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Text(name), raw)) = map.next_entry::<Text<'a>, &'a RawValue>()? {
            fields.push((name.unwrap_or_default(), raw));
        }
        Ok(Pairs(fields))
    }
}

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// Whether a raw value is nested deeper than this. Reading a raw value puts no limit on it, so it is looked at by itself;
/// texts and numbers, most of a request, are not nested at all.
pub(crate) fn is_deeper(raw: &RawValue, most: usize) -> bool {
    let text = raw.get().as_bytes();
    // What has fewer bytes or brackets than levels cannot be deeper.
    let is_nested = matches!(text.first(), Some(b'{' | b'['));
    if !is_nested
        || text.len() <= most
        || text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= most
    {
        return false;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(text, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}

/// Behind the closing quote of the string whose inside begins here.
fn after_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        let is_end = text.get(at + found) == Some(&b'"');
        at += found + if is_end { 1 } else { 2 };
        if is_end {
            return at;
        }
    }
    text.len()
}
