//! A Gemini request as borrowed data.
//!
//! The model and the wish for a stream stand in the path, so they are handed in. The body is scanned once for its fields and once more for its
//! contents. Names are read in both ways that proto3 JSON allows, and a field that is
//! given in both is refused: which one counts would be chance.
//!
//! *Not here*: whether the provider will like the request.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::part::{Content, Several};
use super::reading::{Node, Pairs, at, full, is_named};
use super::turns::Reader;
use super::{part, settings};
use crate::form::{Form, Left, Part, Role};
use crate::intake::{Body, IntakeError, metadata_of};
use crate::lenient::{is_full, text_of};
use crate::splice::place;

/// Fields of the body that are read.
const KNOWN: [&str; 9] = [
    "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
    "cachedContent", "labels", "model",
];

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
    pub(super) top: Node<'a>,
    pub(super) contents: &'a RawValue,
    form: Form<'a>,
}

impl<'a> GeminiRequest<'a> {
    /// A field of the top level by the name that it has there, as it is written.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.top.0.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    /// Reads a request to this model.
    ///
    /// # Errors
    /// What cannot be understood, with its place.
    pub fn parse(model: impl Into<Cow<'a, str>>, stream: bool, body: &'a [u8]) -> Result<Self, IntakeError> {
        let Body { all } = Body::of(body)?;
        for known in KNOWN {
            if all.iter().filter(|(name, _)| is_named(name, known)).count() > 1 {
                return Err(IntakeError::Twice(known.to_owned()));
            }
        }
        let top = Node(all);
        let contents = top.get("contents").ok_or(IntakeError::Missing("contents"))?;
        let form = Form { model: model.into(), stream, ..Form::default() };
        let form = read(&top, found(contents)?, form);
        Ok(Self { body, top, contents, form })
    }

    /// The model that is asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.form.model
    }

    /// Whether the answer is to be a stream.
    #[must_use]
    pub fn stream(&self) -> bool {
        self.form.stream
    }

    /// The request in the form of no dialect.
    #[must_use]
    pub fn form(&self) -> &Form<'a> {
        &self.form
    }

    /// The tools that are offered: their names, and the JSON schemas of their arguments where they have one.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Option<&RawValue>)> {
        self.form.names_and_schemas()
    }

    /// How the conversation began: the contents up to the end of the first words of the user, raw. It stays the same from turn to turn, so that a
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
        let last = text.or_else(|| at(self.contents, first).and_then(|raw| place(self.body, raw.get())));
        let from = place(self.body, self.contents.get()).map_or(0, |range| range.start);
        let end = last.map_or(from, |range| range.end);
        self.body.get(from..end).unwrap_or_default()
    }

    /// A label of the request, which is what this dialect has in place of metadata: a text, or a number or flag as it is written.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        metadata_of(self.top.get("labels")?, key)
    }
}

fn found(contents: &RawValue) -> Result<Vec<Option<Content<'_>>>, IntakeError> {
    let several: Several<Content<'_>> =
        serde_json::from_str(contents.get()).map_err(|error| IntakeError::of(&error))?;
    if matches!(several, Several::Neither | Several::Absent) {
        return Err(IntakeError::WrongType { param: "contents", must_be: "a list of contents" });
    }
    let all = several.all();
    match all.iter().position(Option::is_none) {
        Some(index) => Err(IntakeError::NotObject { list: "contents", index }),
        None => Ok(all),
    }
}

fn read<'a>(top: &Node<'a>, contents: Vec<Option<Content<'a>>>, mut form: Form<'a>) -> Form<'a> {
    if let Some(raw) = top.get("systemInstruction") {
        system(raw, &mut form);
    }
    form.turns = Reader::new(&mut form.left).turns(contents);
    if let Some(raw) = top.get("tools") {
        settings::tools(raw, &mut form);
    }
    if let Some(raw) = top.get("toolConfig") {
        settings::choice(raw, &mut form);
    }
    if let Some(raw) = top.get("generationConfig") {
        settings::generation(raw, &mut form);
    }
    for (name, value) in &top.0 {
        let left = if is_named(name, "cachedContent") {
            Left::needed("needs_cached_content", name.as_ref())
        } else if is_named(name, "safetySettings") {
            Left::dropped("drop_safety_settings", name.as_ref())
        } else if is_named(name, "labels") {
            Left::dropped("drop_labels", name.as_ref())
        } else if KNOWN.iter().any(|known| is_named(name, known)) {
            continue;
        } else {
            Left::dropped("drop_unknown_field", name.as_ref())
        };
        // What says nothing is not missed.
        if is_full(value) {
            form.left.push(left);
        }
    }
    form
}

/// What stands before the conversation: a content, or simply a text.
fn system<'a>(raw: &'a RawValue, form: &mut Form<'a>) {
    if let Some(text) = text_of(raw) {
        return form.system.push(text);
    }
    let content: Several<Content<'a>> = serde_json::from_str(raw.get()).unwrap_or_default();
    let parts = content.all().into_iter().flatten().flat_map(|content| content.parts);
    for (place, part) in parts.enumerate() {
        let part: part::Part<'a> = part.unwrap_or_default();
        match full(part.text) {
            Some(text) => form.system.push(text),
            None if part.text.is_some() => {}
            None => {
                form.left
                    .push(Left::dropped("drop_system_part", format!("systemInstruction.parts[{place}]")));
            }
        }
    }
}

/// The field of this name, in either way of writing it.
pub(super) fn entry_of<'a>(all: &Pairs<'a>, camel: &str) -> Option<&'a RawValue> {
    all.iter().rev().find(|(name, _)| is_named(name, camel)).map(|(_, raw)| *raw)
}
