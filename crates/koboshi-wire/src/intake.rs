//! Takes a request body apart at its top level, and reports why one cannot be taken.
//!
//! The body stays as it is: fields are borrowed raw. What would read differently for two readers is refused here, because
//! the gateway and the upstream must see the same request: a key that comes twice, bytes that are no text, nesting
//! that only some readers accept.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::lenient::{Key, text_of};

/// The deepest nesting of lists and objects in a request.
pub const MAX_DEPTH: usize = 128;

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
    #[error("the request body is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A key comes twice: which of the two counts would be chance.
    #[error("`{0}` is given twice; give it once")]
    Twice(String),
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("`{param}` must be {expected}")]
    WrongType {
        /// The field.
        param: &'static str,
        /// What it must be.
        expected: FieldForm,
    },
    /// Something in a list is no object.
    #[error("`{list}[{index}]` must be an object")]
    NotObject {
        /// The list.
        list: &'static str,
        /// Its place, from 0.
        index: usize,
    },
    /// A message has no role.
    #[error("`{list}[{index}].role` is missing")]
    NoRole {
        /// The list.
        list: &'static str,
        /// Its place, from 0.
        index: usize,
    },
}

/// What a field of a request must be. A type and not a text, so that it can be translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldForm {
    /// The name of a model.
    ModelName,
    /// A flag.
    TrueOrFalse,
    /// A list of messages.
    Messages,
    /// A list of contents.
    Contents,
    /// A text, or a list of items.
    TextOrItems,
    /// A whole number from 1.
    Count,
    /// A number from 0.
    Level,
}

impl FieldForm {
    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ModelName => "model_name",
            Self::TrueOrFalse => "true_or_false",
            Self::Messages => "messages",
            Self::Contents => "contents",
            Self::TextOrItems => "text_or_items",
            Self::Count => "count",
            Self::Level => "level",
        }
    }
}

impl fmt::Display for FieldForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelName => "the name of a model, as text",
            Self::TrueOrFalse => "true or false",
            Self::Messages => "a list of messages",
            Self::Contents => "a list of contents",
            Self::TextOrItems => "a text or a list of items",
            Self::Count => "a whole number from 1",
            Self::Level => "a number from 0",
        })
    }
}

impl IntakeError {
    /// The field it is about.
    #[must_use]
    pub fn param(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Twice(name) => Some(Cow::Borrowed(name)),
            Self::Missing(name) | Self::WrongType { param: name, .. } => Some(Cow::Borrowed(name)),
            Self::NotObject { list, index } => Some(Cow::Owned(format!("{list}[{index}]"))),
            Self::NoRole { list, index } => Some(Cow::Owned(format!("{list}[{index}].role"))),
            _ => None,
        }
    }

    pub(crate) fn of(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        if error.is_eof() { Self::Cut { line, column } } else { Self::NotJson { line, column } }
    }
}

/// A body taken apart: all its fields, raw, in their order.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    pub(crate) all: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Body<'a> {
    /// Takes a body apart.
    pub(crate) fn of(body: &'a [u8]) -> Result<Self, IntakeError> {
        let body =
            std::str::from_utf8(body).map_err(|error| IntakeError::NotUtf8 { at: error.valid_up_to() })?;
        let Pairs(all) = serde_json::from_str(body).map_err(|error| match error.is_data() {
            true => IntakeError::NotAnObject,
            false => IntakeError::of(&error),
        })?;
        if let Some(name) = twice(&all) {
            return Err(IntakeError::Twice(name));
        }
        if all.iter().any(|(_, raw)| is_deeper(raw, MAX_DEPTH - 1)) {
            return Err(IntakeError::TooDeep);
        }
        Ok(Self { all })
    }

    /// The field of this name, `null` or not.
    pub(crate) fn entry(&self, name: &str) -> Option<&'a RawValue> {
        self.all.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    /// The field of this name; `null` counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.entry(name).filter(|raw| raw.get() != "null")
    }

    /// The model's name, and where it stands.
    pub(crate) fn model(&self) -> Result<(Cow<'a, str>, &'a RawValue), IntakeError> {
        model_of(self.get("model"))
    }
}

/// The model's name, and where it stands.
pub(crate) fn model_of(raw: Option<&RawValue>) -> Result<(Cow<'_, str>, &RawValue), IntakeError> {
    let raw = raw.ok_or(IntakeError::Missing("model"))?;
    let name = text_of(raw).filter(|name| !name.is_empty());
    name.map(|name| (name, raw))
        .ok_or(IntakeError::WrongType { param: "model", expected: FieldForm::ModelName })
}

/// Whether a stream is asked for.
pub(crate) fn stream_of(raw: Option<&RawValue>) -> Result<bool, IntakeError> {
    match raw.map(RawValue::get) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(IntakeError::WrongType { param: "stream", expected: FieldForm::TrueOrFalse }),
    }
}

/// A value of a request's metadata: a text, or a number or flag as it is written.
pub(crate) fn metadata_of(raw: &RawValue, key: &str) -> Option<String> {
    let (_, raw) = fields(raw)?.into_iter().rev().find(|(name, _)| name == key)?;
    match raw.get().as_bytes().first()? {
        b'"' => text_of(raw).map(Cow::into_owned),
        b'{' | b'[' | b'n' => None,
        _ => Some(raw.get().to_owned()),
    }
}

/// The place of the next byte that is no space.
pub(crate) fn after_spaces(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The fields of a raw object; none of anything else.
pub(crate) fn fields(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    let pairs = serde_json::from_str::<Pairs<'_>>(raw.get()).ok()?;
    Some(pairs.0)
}

/// A key that comes twice, if any does. Names in error messages are bounded: the key is the client's, but the log is ours.
pub(crate) fn twice(fields: &[(Cow<'_, str>, &RawValue)]) -> Option<String> {
    // A few are compared with each other sooner than sorted.
    if fields.len() <= 16 {
        let is_new = |at: usize, name: &str| fields.iter().take(at).all(|(other, _)| other != name);
        if fields.iter().enumerate().all(|(at, (name, _))| is_new(at, name)) {
            return None;
        }
    }
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    names.windows(2).find_map(|two| match two {
        [one, other] if one == other => Some(one.chars().filter(|c| !c.is_control()).take(80).collect()),
        _ => None,
    })
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
        while let Some(name) = map.next_key_seed(Key::<Self>::of())? {
            fields.push((name, map.next_value()?));
        }
        Ok(Pairs(fields))
    }
}

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// Whether a raw value is nested deeper than this. Reading a raw value puts no limit on it, so it is checked here;
/// texts and numbers, most of a request, are not nested at all.
pub(crate) fn is_deeper(raw: &RawValue, max: usize) -> bool {
    is_text_deeper(raw.get().as_bytes(), max)
}

/// The same of a text that is one JSON value.
pub(crate) fn is_text_deeper(text: &[u8], max: usize) -> bool {
    // What has fewer bytes or brackets than levels cannot be deeper.
    let is_nested = matches!(text.first(), Some(b'{' | b'['));
    if !is_nested || text.len() <= max || brackets(text) <= max {
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
        if depth > max {
            return true;
        }
    }
    false
}

/// How many lists and objects are opened at most. Counted in pieces whose count fits into a byte, which a processor adds up many at a time.
fn brackets(text: &[u8]) -> usize {
    let in_piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|piece| usize::from(in_piece(piece))).sum()
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
