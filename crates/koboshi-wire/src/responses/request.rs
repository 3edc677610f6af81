//! A responses request as borrowed data, and as a form.
//!
//! The body is scanned once for its fields; the input once more for its items, which stay raw beside the form, so that
//! [`Rewrite`](super::Rewrite) can change the body by splices.
//!
//! *Not here*: whether the provider will like the request. Only what the gateway itself must understand is refused; for the
//! rest the upstream has better words.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::read_settings::read_field;
use super::read_turns::Reader;
use super::tools::{in_group, names_and_schemas, read_choice, read_tools};
use crate::common::asked_by_form;
use crate::form::{Form, Part, Role, Turn};
use crate::intake::{Body, FieldForm, IntakeError, metadata_of, stream_of};
use crate::lenient::text_of;
use crate::raw::{Raw, flag, list};
use crate::splice::place;

/// A responses request.
///
/// ```
/// use koboshi_wire::responses::ResponsesRequest;
///
/// let request = ResponsesRequest::parse(br#"{"model":"gpt-5.1","input":"Hi","instructions":"Be brief."}"#)?;
/// assert_eq!((request.model(), request.stream()), ("gpt-5.1", false));
/// assert_eq!(request.form().system, ["Be brief."]);
/// # Ok::<(), koboshi_wire::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct ResponsesRequest<'a> {
    pub(super) text: &'a str,
    pub(super) body: Body<'a>,
    pub(super) input: Input<'a>,
    form: Form<'a>,
    /// The field by which the request continues something that only its provider holds.
    bound_by: Option<&'static str>,
}

/// The input.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// Nothing: the provider knows the rest.
    Absent,
    /// One text of the user.
    Text(&'a RawValue),
    /// Items.
    Items { list: &'a RawValue, items: Vec<Item<'a>> },
}

/// An item, raw, and what a change must know of it.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) raw: &'a RawValue,
    pub(super) kind: Kind,
    /// A message's content, or a result's output.
    pub(super) content: Option<&'a RawValue>,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message of the user.
    User,
    /// A message of the assistant.
    Assistant,
    /// A tool's result.
    Result,
    /// A thought without a provider's signature, known as our own by its id.
    OwnThought,
    /// Something that stands in the provider's store.
    Reference,
    /// Anything else.
    Other,
}

impl<'a> Item<'a> {
    fn of(raw: &'a RawValue, node: &Raw<'a>) -> Self {
        let content = node.get("content");
        let (kind, content) = match (node.kind().as_deref(), node.text("role").as_deref()) {
            (None | Some("message"), Some("user")) => (Kind::User, content),
            (None | Some("message"), Some("assistant")) => (Kind::Assistant, content),
            (Some("function_call_output" | "custom_tool_call_output"), _) => {
                (Kind::Result, node.get("output"))
            }
            (Some("reasoning"), _) => {
                let is_own = node.get("encrypted_content").is_none()
                    && node.text("id").is_some_and(|id| id.starts_with(super::writer::OWN_THOUGHT));
                (if is_own { Kind::OwnThought } else { Kind::Other }, None)
            }
            (Some("item_reference"), _) => (Kind::Reference, None),
            _ => (Kind::Other, None),
        };
        Self { raw, kind, content }
    }
}

asked_by_form!(ResponsesRequest);

impl<'a> ResponsesRequest<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// What cannot be understood, with its place.
    pub fn parse(body: &'a [u8]) -> Result<Self, IntakeError> {
        let fields = Body::of(body)?;
        // It is text: its fields were read.
        let text = std::str::from_utf8(body).unwrap_or_default();
        let (model, _) = fields.model()?;
        let stream = stream_of(fields.get("stream"))?;
        let mut form = Form { model, stream, ..Form::default() };
        form.system.extend(fields.get("instructions").and_then(text_of).filter(|text| !text.is_empty()));
        let input = read_input(&fields, &mut form)?;
        if let Some(raw) = fields.get("tools") {
            read_tools(raw, &mut form);
        }
        if let Some(raw) = fields.get("tool_choice") {
            read_choice(raw, &mut form);
        }
        for (name, raw) in fields.all.iter().filter(|(_, raw)| raw.get() != "null") {
            read_field(name, raw, &mut form);
        }
        let refers = matches!(&input, Input::Items { items, .. } if items.iter().any(|item| item.kind == Kind::Reference));
        let bound_by = ["previous_response_id", "conversation"]
            .into_iter()
            .find(|name| fields.get(name).is_some())
            .or(refers.then_some("input"));
        Ok(Self { text, body: fields, input, form, bound_by })
    }

    /// Whether the conversation is kept in the provider's store, so that no other provider can continue it.
    #[must_use]
    pub fn is_bound_to_provider(&self) -> bool {
        self.bound_by.is_some()
    }

    /// The field that says so.
    #[must_use]
    pub fn bound_by(&self) -> Option<&'static str> {
        self.bound_by
    }

    /// A field of the top level, as it is written.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.body.get(name)
    }

    /// Whether the provider is to store the answer, where the request states it.
    pub(crate) fn store(&self) -> Option<bool> {
        self.body.get("store").and_then(flag)
    }

    /// The id of the answer that the request continues.
    #[must_use]
    pub fn previous(&self) -> Option<Cow<'a, str>> {
        self.body.get("previous_response_id").and_then(text_of)
    }

    /// The tools that are offered: their names, and the schemas of their arguments where they have one. A tool that takes free text has
    /// none; those that the provider runs are not among them.
    pub fn tools(&self) -> impl Iterator<Item = (Cow<'a, str>, Option<&'a RawValue>)> {
        self.body.get("tools").into_iter().flat_map(names_and_schemas)
    }

    /// The group and the name of the tool that has this name where there are no groups; none for a tool that stands in none.
    #[must_use]
    pub fn in_group(&self, flat: &str) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        in_group(self.body.get("tools")?, flat)
    }

    /// How the conversation began: the input up to the first message of the user, raw. It stays the same from turn to turn, so
    /// that a conversation can be known again without an id.
    #[must_use]
    pub fn opening(&self) -> &'a [u8] {
        let body = self.text.as_bytes();
        let range = match &self.input {
            Input::Absent => None,
            Input::Text(raw) => place(body, raw.get()),
            Input::Items { list, items } => {
                let first = items.iter().find(|item| item.kind == Kind::User).or(items.first());
                let end = first.and_then(|item| place(body, item.raw.get())).map(|item| item.end);
                place(body, list.get()).map(|list| list.start..end.unwrap_or(list.start))
            }
        };
        range.and_then(|range| body.get(range)).unwrap_or_default()
    }

    /// A value of the request's `metadata`: a text, or a number or flag as it is written.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        metadata_of(self.body.get("metadata")?, key)
    }
}

fn read_input<'a>(body: &Body<'a>, form: &mut Form<'a>) -> Result<Input<'a>, IntakeError> {
    let Some(raw) = body.get("input") else {
        // A stored conversation or prompt may be the whole input.
        let is_stored = ["previous_response_id", "conversation", "prompt"];
        let is_stored = is_stored.iter().any(|name| body.get(name).is_some());
        return if is_stored { Ok(Input::Absent) } else { Err(IntakeError::Missing("input")) };
    };
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text = text_of(raw).unwrap_or_default();
            form.turns.push(Turn { role: Role::User, parts: vec![Part::Text(text)] });
            Ok(Input::Text(raw))
        }
        Some(b'[') => {
            let mut reader = Reader::of(form);
            let mut items = Vec::new();
            for (index, item) in list(raw).unwrap_or_default().into_iter().enumerate() {
                let node = Raw::of(item).ok_or(IntakeError::NotObject { list: "input", index })?;
                if matches!(node.kind().as_deref(), None | Some("message")) && node.get("role").is_none() {
                    return Err(IntakeError::NoRole { list: "input", index });
                }
                reader.item(index, &node);
                items.push(Item::of(item, &node));
            }
            Ok(Input::Items { list: raw, items })
        }
        _ => Err(IntakeError::WrongType { param: "input", expected: FieldForm::TextOrItems }),
    }
}
