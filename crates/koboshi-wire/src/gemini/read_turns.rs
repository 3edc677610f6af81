//! The conversation of a request in the form of no dialect.
//!
//! Calls have ids only where a client or a newer model gave them one. The others get `call_<n>`, counted over the whole conversation, so that
//! they are the same from request to request. A result is paired by id, else with the oldest call of its name that is still open: clients give
//! results an id also where the call had none.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;

use super::message::{Blob, CallFields, Content, Part as Found, Response};
use super::proto_json::{Node, base64, full};
use crate::dialect::Dialect;
use crate::form::{Call, Image, Media, Omission, Outcome, Part, Role, Signature, Thought, Turn};
use crate::lenient::{add, arguments_of, text_of};

/// What Google's own clients write in place of a signature that is not there. It signs nothing, so it is dropped.
pub(super) const STAND_IN: &str = "skip_thought_signature_validator";

/// Reads a conversation, content after content.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    /// One turn for each content.
    pub(super) turns: Vec<Turn<'a>>,
    /// What found no place.
    pub(super) left: Vec<Omission>,
    /// The number of calls that were read.
    calls: usize,
    /// The number of results without a call that were read.
    orphans: usize,
    /// Most conversations have no calls.
    open: Option<Box<UnansweredCalls<'a>>>,
    /// The part that is being read.
    at: usize,
}

/// Calls that wait for their results.
#[derive(Debug, Default)]
struct UnansweredCalls<'a> {
    all: Vec<Option<(Cow<'a, str>, Cow<'a, str>)>>,
    by_id: HashMap<Cow<'a, str>, usize>,
    by_name: HashMap<Cow<'a, str>, VecDeque<usize>>,
    /// Something else than a call came after them: the next call begins a new round.
    is_answered: bool,
}

impl<'a> UnansweredCalls<'a> {
    fn add(&mut self, id: Cow<'a, str>, name: Cow<'a, str>) {
        if self.is_answered {
            *self = Self::default();
        }
        self.by_id.insert(id.clone(), self.all.len());
        self.by_name.entry(name.clone()).or_default().push_back(self.all.len());
        self.all.push(Some((id, name)));
    }

    /// Id and name of the call that this is the result of.
    fn take(&mut self, id: Option<&str>, name: Option<&str>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        self.is_answered = true;
        let of_id = id.and_then(|id| self.by_id.get(id).copied());
        if let Some(call) = of_id.and_then(|at| self.all.get_mut(at)).and_then(Option::take) {
            return Some(call);
        }
        let of_name = self.by_name.get_mut(name.unwrap_or_default())?;
        while let Some(at) = of_name.pop_front() {
            if let Some(call) = self.all.get_mut(at).and_then(Option::take) {
                return Some(call);
            }
        }
        None
    }
}

impl<'a> Reader<'a> {
    /// Takes the next content; what held it can hold another one then.
    pub(super) fn take(&mut self, content: &mut Content<'a>) {
        let role = role_of(content.role.take());
        if let Some(open) = &mut self.open {
            open.is_answered |= role != Role::Assistant;
        }
        let mut parts = Vec::with_capacity(content.parts.len());
        for (place, found) in content.parts.drain(..).enumerate() {
            self.at = place;
            match found {
                Some(found) => self.part(found, role, &mut parts),
                None => self.needs("needs_readable_part"),
            }
        }
        add(&mut self.turns, Turn { role, parts });
    }

    fn needs(&mut self, rule: &'static str) {
        self.left.push(Omission::needed(rule, self.place()));
    }

    fn place(&self) -> String {
        format!("contents[{}].parts[{}]", self.turns.len(), self.at)
    }

    fn part(&mut self, found: Found<'a>, role: Role, parts: &mut Vec<Part<'a>>) {
        if let Some(rule) = found.needed {
            return self.needs(rule);
        }
        if found.has_view {
            self.left.push(Omission::dropped("drop_media_view", self.place()));
        }
        let signature = full(found.signature).filter(|data| data != STAND_IN).map(|data| Signature {
            of: Dialect::Gemini,
            id: None,
            data,
        });
        if let Some(call) = found.call {
            return parts.push(Part::Call(self.call(&call, signature)));
        }
        if let Some(response) = found.response {
            let outcome = self.outcome(*response);
            return parts.push(Part::Outcome(outcome));
        }
        if found.inline.is_some() || found.file.is_some() {
            return parts.extend(self.media(found.inline, found.file));
        }
        let text = found.text.and_then(text_of);
        if found.is_thought {
            let text = text.unwrap_or_default();
            return parts.push(Part::Thought(Thought { text, signature, hidden: false }));
        }
        parts.extend(text.filter(|text| !text.is_empty()).map(Part::Text));
        if signature.is_some() && role == Role::Assistant {
            parts.push(Part::Thought(Thought { signature, ..Thought::default() }));
        }
    }

    fn call(&mut self, called: &CallFields<'a>, signature: Option<Signature<'a>>) -> Call<'a> {
        let id = full(called.id).unwrap_or_else(|| Cow::Owned(format!("call_{}", self.calls)));
        self.calls += 1;
        let name = full(called.name).unwrap_or_default();
        self.open.get_or_insert_default().add(id.clone(), name.clone());
        let arguments = called.args.and_then(arguments_of).filter(|text| !text.is_empty());
        let arguments = arguments.unwrap_or(Cow::Borrowed("{}"));
        Call { id, name, arguments, free_text: false, signature }
    }

    fn outcome(&mut self, response: Response<'a>) -> Outcome<'a> {
        let (given, name) = (full(response.id), full(response.name));
        let call = self.open.as_mut().and_then(|open| open.take(given.as_deref(), name.as_deref()));
        let (id, name) = match call {
            Some((id, called)) => (id, Some(called)),
            None => {
                self.orphans += 1;
                let made = || Cow::Owned(format!("result_{}", self.orphans - 1));
                (given.unwrap_or_else(made), name)
            }
        };
        let (text, failed) = response.response.map_or((None, None), spoken);
        let mut parts: Vec<Part<'a>> =
            text.filter(|text| !text.is_empty()).map(Part::Text).into_iter().collect();
        for part in response.parts {
            match part {
                Some(part) => parts.extend(self.media(part.inline, part.file)),
                None => self.needs("needs_readable_part"),
            }
        }
        Outcome { id, name, parts, failed, free_text: false }
    }

    fn media(&mut self, inline: Option<Box<Blob<'a>>>, file: Option<Box<Blob<'a>>>) -> Option<Part<'a>> {
        if let Some(blob) = inline {
            let media_type = full(blob.media_type).unwrap_or(Cow::Borrowed("application/octet-stream"));
            let data = base64(full(blob.data).unwrap_or_default());
            return Some(if media_type.starts_with("image/") {
                Part::Image(Image::Data { media_type, data })
            } else {
                Part::Media(Media { media_type, data, name: full(blob.name) })
            });
        }
        let file = file?;
        let uri = full(file.uri).unwrap_or_default();
        let is_image = full(file.media_type).is_some_and(|kind| kind.starts_with("image/"));
        if is_image && is_public(&uri) {
            return Some(Part::Image(Image::Url(uri)));
        }
        self.needs("needs_stored_file");
        None
    }
}

/// Whether any server can fetch it: what was uploaded to Google is an https address too.
fn is_public(uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix("https://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !host.is_empty() && host != "generativelanguage.googleapis.com"
}

fn role_of(raw: Option<&RawValue>) -> Role {
    if raw.is_some_and(|raw| raw.get() == r#""user""#) {
        return Role::User;
    }
    let role = full(raw).unwrap_or_default();
    if role.eq_ignore_ascii_case("model") || role.eq_ignore_ascii_case("assistant") {
        Role::Assistant
    } else if role.eq_ignore_ascii_case("system") {
        Role::System
    } else {
        Role::User
    }
}

/// What came back, as text, and whether the tool failed. The one field that clients put a text into is opened; an object is its text.
fn spoken(raw: &RawValue) -> (Option<Cow<'_, str>>, Option<bool>) {
    let Node(fields) = Node::of(raw);
    let text =
        |value: &RawValue| -> Cow<'_, str> { arguments_of(value).unwrap_or_default().into_owned().into() };
    match fields.as_slice() {
        [(name, value)] if name == "output" || name == "result" => (Some(text(value)), None),
        [(name, value)] if name == "error" => (Some(text(value)), Some(true)),
        _ => (arguments_of(raw), None),
    }
}

/// Whether an object would be opened by the reader above.
pub(super) fn is_opened(raw: &RawValue) -> bool {
    let Node(fields) = Node::of(raw);
    matches!(fields.as_slice(), [(name, _)] if name == "output" || name == "result" || name == "error")
}
