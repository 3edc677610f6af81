//! A Gemini request as borrowed data.
//!
//! The model and the wish for a stream stand in the path, so they are handed in. Names are read in both ways that proto3 JSON allows, and a
//! field that is given in both is refused: which one counts would be chance.
//!
//! *Not here*: whether the provider will like the request.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::intake::{RequestFields, is_read};
use super::proto_json::{Node, Pairs, at, camel, first, is_named};
use super::read_settings::{self, Generation};
use super::read_turns::Reader;
use crate::common::asked_by_form;
use crate::form::{Form, Omission, Part, Role};
use crate::intake::{Body, IntakeError, metadata_of};
use crate::lenient::is_full;
use crate::splice::place;

/// A request.
///
/// ```
/// use koboshi_wire::gemini::GeminiRequest;
///
/// let body = br#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#;
/// let request = GeminiRequest::parse("gemini-2.5-flash", true, body)?;
/// assert_eq!((request.model(), request.stream()), ("gemini-2.5-flash", true));
/// assert_eq!(request.form().turns.len(), 1);
///
/// let error = GeminiRequest::parse("gemini-2.5-flash", true, b"{}").unwrap_err();
/// assert_eq!(error.to_string(), "`contents` is missing");
/// # Ok::<(), koboshi_wire::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct GeminiRequest<'a> {
    pub(super) body: &'a [u8],
    /// All fields but those that are read at once.
    pub(super) fields: Node<'a>,
    /// Where the contents begin.
    start: usize,
    form: Form<'a>,
}

asked_by_form!(GeminiRequest);

impl<'a> GeminiRequest<'a> {
    /// The contents, raw. They are not kept so: a caller that wants them reads them once more.
    pub(super) fn contents(&self) -> Option<&'a RawValue> {
        let from = std::str::from_utf8(self.body.get(self.start..)?).ok()?;
        first(from)
    }

    /// A field of the top level in either way of writing its name, raw. One that was read is looked for again: only the code that changes the
    /// request wants it.
    pub(super) fn entry(&self, camel: &str) -> Option<&'a RawValue> {
        if is_read(camel) {
            return Node(Body::of(self.body).ok()?.all).entry(camel);
        }
        self.fields.entry(camel)
    }

    /// A field of the top level that stayed raw, by the name that it has there, as it is written.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.0.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    /// Reads a request to this model.
    ///
    /// # Errors
    /// What cannot be understood, with its place.
    pub fn parse(model: impl Into<Cow<'a, str>>, stream: bool, body: &'a [u8]) -> Result<Self, IntakeError> {
        let mut top = RequestFields::default();
        top.read(body)?;
        let RequestFields { fields, start, talk: Reader { turns, left, .. }, system, generation } = top;
        let mut form = Form {
            model: model.into(),
            stream,
            system: system.texts,
            turns,
            left: system.left,
            ..Form::default()
        };
        form.left.extend(left);
        read(&fields, generation, &mut form);
        Ok(Self { body, fields, start, form })
    }

    /// The tools that are offered: their names, and the JSON schemas of their arguments where they have one.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Option<&RawValue>)> {
        self.form.names_and_schemas()
    }

    /// How the conversation began: the contents up to the end of the user's first text, raw. It stays the same from turn to turn, so that a
    /// conversation can be known again without an id.
    #[must_use]
    pub fn opening(&self) -> &'a [u8] {
        let turns = &self.form().turns;
        let first = turns.iter().position(|turn| turn.role == Role::User).unwrap_or(0);
        // Mostly it ends with a text that stands in the body as it is.
        let text = turns.get(first).and_then(|turn| match turn.parts.last() {
            Some(Part::Text(Cow::Borrowed(text))) => place(self.body, text),
            _ => None,
        });
        let last = text.or_else(|| {
            let content = at(self.contents()?, first)?;
            place(self.body, content.get())
        });
        let end = last.map_or(self.start, |range| range.end);
        self.body.get(self.start..end).unwrap_or_default()
    }

    /// A label of the request, which is what this dialect has in place of metadata: a text, or a number or flag as it is written.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        metadata_of(self.fields.get("labels")?, key)
    }
}

/// Reads everything but the conversation and the system instruction.
fn read<'a>(fields: &Node<'a>, generation: Generation<'a>, form: &mut Form<'a>) {
    let (mut tools, mut choice) = (None, None);
    let mut left = Vec::new();
    for (name, value) in &fields.0 {
        match camel(name).as_ref() {
            "tools" => tools = Some(*value),
            "toolConfig" => choice = Some(*value),
            "model" => {}
            // An empty value is not noted as left out.
            _ if !is_full(value) => {}
            "cachedContent" => left.push(Omission::needed("needs_cached_content", name.as_ref())),
            "safetySettings" => left.push(Omission::dropped("drop_safety_settings", name.as_ref())),
            "labels" => left.push(Omission::dropped("drop_labels", name.as_ref())),
            _ => left.push(Omission::dropped("drop_unknown_field", name.as_ref())),
        }
    }
    let is_given = |raw: &&RawValue| raw.get() != "null";
    if let Some(raw) = tools.filter(is_given) {
        read_settings::tools(raw, form);
    }
    if let Some(raw) = choice.filter(is_given) {
        read_settings::choice(raw, form);
    }
    generation.put_into(form);
    form.left.append(&mut left);
}

/// The field of this name, in either way of writing it.
pub(super) fn entry_of<'a>(all: &Pairs<'a>, camel: &str) -> Option<&'a RawValue> {
    all.iter().rev().find(|(name, _)| is_named(name, camel)).map(|(_, raw)| *raw)
}
