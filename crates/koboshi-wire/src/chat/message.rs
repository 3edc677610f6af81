//! A message of a request, its parts raw.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::content;
use crate::intake::{FieldForm, IntakeError, MAX_DEPTH, is_deeper};
use crate::lenient::{Fields, OptionalObject, is_full, otherwise, text_of};

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Role {
    /// The program: `system` or `developer`.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
    /// A tool's result in the old form.
    Function,
    /// Something else.
    #[default]
    Other,
}

/// A message of a request, its parts raw.
#[derive(Debug, Default)]
pub struct Message<'a> {
    /// The role.
    pub role: Role,
    /// A text or a list of parts, raw; none where it is `null` or absent.
    pub content: Option<&'a RawValue>,
    /// The tool calls, raw.
    pub tool_calls: Option<&'a RawValue>,
    /// A call in the old form, raw.
    pub function_call: Option<&'a RawValue>,
    /// Which call this is the result of.
    pub tool_call_id: Option<Cow<'a, str>>,
    /// Name of the tool, in the old form.
    pub name: Option<Cow<'a, str>>,
    /// The words of a refusal, raw.
    pub refusal: Option<&'a RawValue>,
    /// What the model thought, under any of its names, raw.
    pub reasoning: Option<&'a RawValue>,
    /// An earlier answer's audio, raw.
    pub audio: Option<&'a RawValue>,
    /// A relay's own record of the thinking stands beside it.
    pub(super) has_details: bool,
    has_role: bool,
    is_too_deep: bool,
    /// The value that stands last in it: behind it the message ends.
    pub(super) last: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Its text: the content itself, or its text parts, a line each.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        content::text(self.content?)
    }

    /// Whether it is an answer that the model is to continue, not one that calls tools.
    pub(super) fn is_prefill(&self) -> bool {
        self.role == Role::Assistant && self.tool_calls.is_none() && self.function_call.is_none()
    }

    /// Whether it is the result of a tool.
    pub(super) fn is_result(&self) -> bool {
        matches!(self.role, Role::Tool | Role::Function)
    }
}

impl<'a> Fields<'a> for Message<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let raw: &'a RawValue = map.next_value()?;
        self.last = Some(raw);
        self.is_too_deep |= is_deeper(raw, MAX_DEPTH - LEVELS);
        let some = (raw.get() != "null").then_some(raw);
        match name {
            "role" => {
                self.has_role = some.is_some();
                self.role = Role::of(raw);
            }
            "content" => self.content = some,
            "tool_calls" => self.tool_calls = some,
            "function_call" => self.function_call = some,
            "tool_call_id" => self.tool_call_id = text_of(raw).filter(|id| !id.is_empty()),
            "name" => self.name = text_of(raw).filter(|name| !name.is_empty()),
            "refusal" => self.refusal = some,
            "reasoning_content" | "reasoning" => self.reasoning = self.reasoning.or(some),
            "reasoning_details" => self.has_details = some.is_some_and(is_full),
            "audio" => self.audio = some,
            _ => {}
        }
        Ok(())
    }
}

/// Levels around a value of a message: the body, the list and the message.
const LEVELS: usize = 3;

impl Role {
    fn of(raw: &RawValue) -> Self {
        match text_of(raw).as_deref() {
            Some("system" | "developer") => Self::System,
            Some("user") => Self::User,
            Some("assistant") => Self::Assistant,
            Some("tool") => Self::Tool,
            Some("function") => Self::Function,
            _ => Self::Other,
        }
    }
}

/// What stands where the messages should.
#[derive(Debug, Default)]
pub(crate) enum Messages<'a> {
    /// `null`.
    Absent,
    /// Something else than a list.
    #[default]
    NotList,
    /// A list.
    Listed(Vec<OptionalObject<Message<'a>>>),
}

impl<'a> Messages<'a> {
    /// The messages, if each can be taken.
    pub(super) fn taken(self) -> Result<Vec<Message<'a>>, IntakeError> {
        let found = match self {
            Self::Absent => return Err(IntakeError::Missing("messages")),
            Self::NotList => {
                return Err(IntakeError::WrongType { param: "messages", expected: FieldForm::Messages });
            }
            Self::Listed(found) => found,
        };
        let each = found.into_iter().enumerate().map(|(index, OptionalObject(message))| match message {
            None => Err(IntakeError::NotObject { list: "messages", index }),
            Some(message) if !message.has_role => Err(IntakeError::NoRole { list: "messages", index }),
            Some(message) if message.is_too_deep => Err(IntakeError::TooDeep),
            Some(message) => Ok(message),
        });
        each.collect()
    }
}

struct MessagesVisitor;

impl<'a> Visitor<'a> for MessagesVisitor {
    type Value = Messages<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Messages<'a>, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            all.push(one);
        }
        Ok(Messages::Listed(all))
    }

    fn visit_unit<E: Error>(self) -> Result<Messages<'a>, E> {
        Ok(Messages::Absent)
    }

    otherwise!(texts, numbers, flags, objects);
}

impl<'a> Deserialize<'a> for Messages<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MessagesVisitor)
    }
}
