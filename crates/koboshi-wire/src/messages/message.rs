//! Messages and blocks of a request, their values raw.
//!
//! A raw value is only scanned; texts are read when they are asked for. So unpaired surrogates, which some clients send, break nothing, and
//! every part knows its place in the body.

use std::borrow::Cow;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::intake::{FieldForm, IntakeError};
use crate::lenient::{Fields, List, Object, OptionalObject, text_of};

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    User,
    Assistant,
    System,
    #[default]
    Other,
}

/// A message of a request.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) role: Role,
    /// A text or a list of blocks.
    pub(super) content: Option<&'a RawValue>,
    /// The value that stands last in it: behind it the message ends.
    pub(super) last: Option<&'a RawValue>,
    has_role: bool,
}

impl<'a> Fields<'a> for Message<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let raw: &'a RawValue = map.next_value()?;
        self.last = Some(raw);
        match name {
            "role" => {
                self.has_role = raw.get() != "null";
                self.role = match text_of(raw).as_deref() {
                    Some("user") => Role::User,
                    Some("assistant") => Role::Assistant,
                    Some("system" | "developer") => Role::System,
                    _ => Role::Other,
                };
            }
            "content" => self.content = some(raw),
            _ => {}
        }
        Ok(())
    }
}

/// The messages of a list, if each can be taken.
pub(super) fn messages(list: &RawValue) -> Result<Vec<Message<'_>>, IntakeError> {
    if !list.get().starts_with('[') {
        return Err(IntakeError::WrongType { param: "messages", expected: FieldForm::Messages });
    }
    let List(found) = serde_json::from_str::<List<OptionalObject<Message<'_>>>>(list.get())
        .map_err(|error| IntakeError::of(&error))?;
    let each = found.into_iter().enumerate().map(|(index, OptionalObject(message))| match message {
        None => Err(IntakeError::NotObject { list: "messages", index }),
        Some(message) if !message.has_role => Err(IntakeError::NoRole { list: "messages", index }),
        Some(message) => Ok(message),
    });
    each.collect()
}

impl<'a> Message<'a> {
    /// Its blocks; none where it is a text.
    pub(super) fn blocks(&self) -> Vec<Block<'a>> {
        self.content.map(blocks).unwrap_or_default()
    }
}

/// The blocks of a list; none of anything else.
pub(super) fn blocks(list: &RawValue) -> Vec<Block<'_>> {
    let List(all) = serde_json::from_str::<List<Object<Block<'_>>>>(list.get()).unwrap_or_default();
    all.into_iter().map(|Object(block)| block).collect()
}

/// The same, each as it stands.
pub(super) fn raw_blocks(list: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str::<List<&RawValue>>(list.get()).unwrap_or_default().0
}

/// A block, its values raw.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) text: Option<&'a RawValue>,
    pub(super) source: Option<&'a RawValue>,
    pub(super) title: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Option<&'a RawValue>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Option<&'a RawValue>,
    pub(super) thinking: Option<&'a RawValue>,
    pub(super) signature: Option<&'a RawValue>,
    pub(super) data: Option<&'a RawValue>,
    pub(super) citations: bool,
    pub(super) context: bool,
    pub(super) cache_control: bool,
}

impl<'a> Fields<'a> for Block<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let raw: &'a RawValue = map.next_value()?;
        let value = some(raw);
        match name {
            "type" => self.kind = text_of(raw),
            "text" => self.text = value,
            "source" => self.source = value,
            "title" => self.title = value,
            "id" => self.id = value,
            "name" => self.name = value,
            "input" => self.input = value,
            "tool_use_id" => self.tool_use_id = value,
            "content" => self.content = value,
            "is_error" => self.is_error = value,
            "thinking" => self.thinking = value,
            "signature" => self.signature = value,
            "data" => self.data = value,
            "citations" => self.citations = value.is_some(),
            "context" => self.context = value.is_some(),
            "cache_control" => self.cache_control = value.is_some(),
            _ => {}
        }
        Ok(())
    }
}

impl Block<'_> {
    /// Whether it is of this type.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }
}

/// The value, unless it is `null`.
pub(super) fn some(raw: &RawValue) -> Option<&RawValue> {
    (raw.get() != "null").then_some(raw)
}

/// The text of a value; empty where there is none.
pub(super) fn text_or_empty(raw: Option<&RawValue>) -> Cow<'_, str> {
    raw.and_then(text_of).unwrap_or_default()
}

/// The text of a value; none where it is empty.
pub(super) fn full(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    raw.and_then(text_of).filter(|text| !text.is_empty())
}
