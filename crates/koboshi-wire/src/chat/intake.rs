//! Takes a chat body apart: its messages are read at once, everything else stays raw.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::message::Messages;
use crate::intake::{MAX_DEPTH, after_spaces, is_deeper, model_of, twice};
use crate::lenient::{Key, otherwise};
use crate::splice::place;

pub use crate::intake::IntakeError;

/// A body taken apart.
#[derive(Debug)]
pub(crate) struct RequestFields<'a> {
    pub(crate) body: &'a str,
    /// All fields but the messages, raw, in their order.
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    messages: Option<(MessagesStart<'a>, Messages<'a>)>,
}

/// Where the list of messages begins. Its own text is never held as a whole: reading it twice would cost as much again.
#[derive(Debug, Clone, Copy)]
enum MessagesStart<'a> {
    /// Behind this key.
    Key(&'a str),
    /// With this value, where the key is written with escapes.
    Value(&'a str),
}

impl<'a> RequestFields<'a> {
    /// Takes a body apart.
    pub(crate) fn of(body: &'a [u8]) -> Result<Self, IntakeError> {
        let body =
            std::str::from_utf8(body).map_err(|error| IntakeError::NotUtf8 { at: error.valid_up_to() })?;
        let TopFields { is_object, fields, messages, messages_twice } =
            serde_json::from_str(body).map_err(|error| IntakeError::of(&error))?;
        if !is_object {
            return Err(IntakeError::NotAnObject);
        }
        let twice = if messages_twice { Some("messages".to_owned()) } else { twice(&fields) };
        if let Some(name) = twice {
            return Err(IntakeError::Twice(name));
        }
        if fields.iter().any(|(_, raw)| is_deeper(raw, MAX_DEPTH - 1)) {
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

    /// All fields but the messages, raw, in their order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.fields.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }

    /// The model's name, which every request must have, and where it stands.
    pub(crate) fn model(&self) -> Result<(Cow<'a, str>, &'a RawValue), IntakeError> {
        model_of(self.get("model"))
    }

    /// The messages, and where their list begins.
    pub(crate) fn messages(&mut self) -> Result<(usize, Messages<'a>), IntakeError> {
        let (from, messages) = self.messages.take().ok_or(IntakeError::Missing("messages"))?;
        let body = self.body.as_bytes();
        let start = match from {
            MessagesStart::Key(key) => {
                place(body, key).map(|key| after_spaces(body, after_spaces(body, key.end + 1) + 1))
            }
            MessagesStart::Value(value) => place(body, value).map(|value| value.start),
        };
        Ok((start.unwrap_or(0), messages))
    }
}

#[derive(Default)]
struct TopFields<'a> {
    is_object: bool,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    messages: Option<(MessagesStart<'a>, Messages<'a>)>,
    messages_twice: bool,
}

struct TopVisitor;

impl<'a> Visitor<'a> for TopVisitor {
    type Value = TopFields<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<TopFields<'a>, A::Error> {
        let mut found = TopFields { is_object: true, fields: Vec::with_capacity(8), ..TopFields::default() };
        while let Some(name) = map.next_key_seed(Key::<Self>::of())? {
            if name != "messages" {
                found.fields.push((name, map.next_value()?));
                continue;
            }
            found.messages_twice |= found.messages.is_some();
            found.messages = Some(match name {
                Cow::Borrowed(key) => (MessagesStart::Key(key), map.next_value()?),
                Cow::Owned(_) => {
                    let raw: &'a RawValue = map.next_value()?;
                    (
                        MessagesStart::Value(raw.get()),
                        serde_json::from_str(raw.get()).map_err(A::Error::custom)?,
                    )
                }
            });
        }
        Ok(found)
    }

    otherwise!(texts, numbers, flags, null, lists);
}

impl<'a> Deserialize<'a> for TopFields<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TopVisitor)
    }
}
