//! The conversation in the order that Gemini wants.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use serde_json::value::RawValue;

use super::body::fitted;
use super::model::Model;
use super::read_turns::{STAND_IN, is_opened};
use super::write_parts::{self, Blob, File, Response};
use crate::dialect::Dialect;
use crate::form::{Call, Image, Media, Omission, Outcome, Part, Role, Signature, Thought, Turn};

/// The user's text where the model's turn comes first, or the conversation is empty.
const OPENING: &str = "(The conversation begins.)";
/// The text of a result that is missing.
const MISSING: &str = "The tool returned no result.";

/// The parts of one role.
#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<write_parts::Part<'a>>,
}

/// Puts a conversation in order.
pub(super) struct Builder<'a> {
    model: Model,
    contents: Vec<Content<'a>>,
    /// Calls that wait for their results.
    calls: Vec<&'a Call<'a>>,
    /// The user's parts since the last turn of the model.
    outcomes: Vec<(&'a Outcome<'a>, String)>,
    user_parts: Vec<write_parts::Part<'a>>,
    pub(super) left: Vec<Omission>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(model: Model) -> Self {
        Self {
            model,
            contents: Vec::new(),
            calls: Vec::new(),
            outcomes: Vec::new(),
            user_parts: Vec::new(),
            left: Vec::new(),
        }
    }

    /// All contents.
    pub(super) fn contents(&mut self, turns: &'a [Turn<'a>]) -> Vec<Content<'a>> {
        for (index, turn) in turns.iter().enumerate() {
            match turn.role {
                Role::Assistant => self.model(index, turn),
                Role::System => {
                    self.left.push(Omission::dropped("system_turn_as_user", format!("turns[{index}]")));
                    self.user(index, turn);
                }
                Role::User => self.user(index, turn),
            }
        }
        self.answer();
        if self.contents.first().is_none_or(|first| first.role != "user") {
            self.left.push(Omission::dropped("open_with_user", "turns"));
            let parts = vec![write_parts::Part::text(OPENING)];
            self.contents.insert(0, Content { role: "user", parts });
        }
        self.seal_first_calls();
        std::mem::take(&mut self.contents)
    }

    /// Adds to the last content, or begins one.
    fn push(&mut self, role: &'static str, parts: Vec<write_parts::Part<'a>>) {
        match self.contents.last_mut().filter(|last| last.role == role) {
            _ if parts.is_empty() => {}
            Some(last) => last.parts.extend(parts),
            None => self.contents.push(Content { role, parts }),
        }
    }

    fn model(&mut self, index: usize, turn: &'a Turn<'a>) {
        if !self.outcomes.is_empty() || !self.user_parts.is_empty() {
            self.answer();
        }
        let mut parts = Vec::with_capacity(turn.parts.len());
        for (place, part) in turn.parts.iter().enumerate() {
            let at = || format!("turns[{index}].parts[{place}]");
            match part {
                Part::Call(call) => {
                    let signature = self.own(call.signature.as_ref(), at);
                    self.calls.push(call);
                    let name = fitted(&call.name);
                    if matches!(name, Cow::Owned(_)) {
                        self.left.push(Omission::dropped("fit_tool_name", at()));
                    }
                    let function_call = write_parts::Call {
                        id: None,
                        name,
                        args: write_parts::object(&call.arguments, call.free_text),
                    };
                    parts.push(write_parts::Part {
                        function_call: Some(function_call),
                        thought_signature: signature,
                        ..write_parts::Part::default()
                    });
                }
                Part::Thought(thought) => parts.extend(self.thought(thought, at)),
                // A model's turn cannot hold results: some client mixed up the roles.
                Part::Outcome(outcome) => self.outcomes.push((outcome, at())),
                other => parts.extend(self.plain(other, at)),
            }
        }
        self.push("model", parts);
    }

    fn user(&mut self, index: usize, turn: &'a Turn<'a>) {
        for (place, part) in turn.parts.iter().enumerate() {
            let at = || format!("turns[{index}].parts[{place}]");
            match part {
                Part::Outcome(outcome) => self.outcomes.push((outcome, at())),
                Part::Call(_) => self.left.push(Omission::dropped("drop_misplaced_call", at())),
                Part::Thought(_) => self.left.push(Omission::dropped("drop_foreign_thought", at())),
                other => {
                    let part = self.plain(other, at);
                    self.user_parts.extend(part);
                }
            }
        }
    }

    /// A signature, if it is Gemini's.
    fn own(&mut self, signature: Option<&'a Signature<'a>>, at: impl Fn() -> String) -> Option<&'a str> {
        let signature = signature?;
        if !signature.is_of(Dialect::Gemini) {
            self.left.push(Omission::dropped("drop_foreign_seal", at()));
            return None;
        }
        Some(&signature.data)
    }

    /// A thought goes back only to the vendor that wrote it: one that Gemini has signed is its own.
    fn thought(
        &mut self,
        thought: &'a Thought<'a>,
        at: impl Fn() -> String,
    ) -> Option<write_parts::Part<'a>> {
        let Some(signature) = self.own(thought.signature.as_ref(), &at) else {
            self.left.push(Omission::dropped("drop_foreign_thought", at()));
            return None;
        };
        let is_thought = !thought.text.is_empty();
        Some(write_parts::Part {
            thought: is_thought,
            thought_signature: Some(signature),
            ..write_parts::Part::text(&*thought.text)
        })
    }

    /// Text, images, data.
    fn plain(&mut self, part: &'a Part<'a>, at: impl Fn() -> String) -> Option<write_parts::Part<'a>> {
        match part {
            Part::Text(text) | Part::Refusal(text) => {
                Some(text).filter(|text| !text.is_empty()).map(|text| write_parts::Part::text(&**text))
            }
            Part::Image(Image::Data { media_type, data }) => Some(inline(media_type, data)),
            Part::Media(Media { media_type, data, name }) => {
                // AI Studio refuses the field that Vertex has for it.
                if name.is_some() {
                    self.left.push(Omission::dropped("drop_file_name", at()));
                }
                Some(inline(media_type, data))
            }
            Part::Image(Image::Url(url)) => {
                let Some(mime_type) = image_type(url) else {
                    self.left.push(Omission::needed("needs_image_type", at()));
                    return None;
                };
                let file = File { mime_type, file_uri: url };
                Some(write_parts::Part { file_data: Some(file), ..write_parts::Part::default() })
            }
            Part::Call(_) | Part::Outcome(_) | Part::Thought(_) => None,
        }
    }

    /// The user's turn: a result for each call, in their order, then the other parts.
    fn answer(&mut self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (place, (outcome, _)) in outcomes.iter().enumerate() {
            open.entry(&outcome.id).or_default().push_back(place);
        }
        let mut is_used = vec![false; outcomes.len()];
        let (mut parts, mut beside) = (Vec::new(), Vec::new());
        for call in std::mem::take(&mut self.calls) {
            let place = open.get_mut(call.id.as_ref()).and_then(VecDeque::pop_front);
            let found = place.and_then(|place| outcomes.get(place));
            if let Some(used) = place.and_then(|place| is_used.get_mut(place)) {
                *used = true;
            }
            let response = match found {
                Some((outcome, at)) => self.response(&call.name, outcome, at, &mut beside),
                None => {
                    self.left.push(Omission::dropped(
                        "fill_missing_result",
                        format!("call {}", bounded(&call.id)),
                    ));
                    let response =
                        Cow::Owned(write_parts::raw(serde_json::json!({"error": MISSING}).to_string()));
                    Response { name: fitted(&call.name), response, parts: Vec::new() }
                }
            };
            parts.push(write_parts::Part {
                function_response: Some(response),
                ..write_parts::Part::default()
            });
        }
        for (place, (outcome, at)) in outcomes.iter().enumerate() {
            if is_used.get(place) == Some(&false) {
                self.left.push(Omission::dropped("orphan_result_as_text", at.clone()));
                self.orphan(outcome, at, &mut parts);
            }
        }
        parts.append(&mut beside);
        parts.append(&mut self.user_parts);
        self.push("user", parts);
    }

    fn response(
        &mut self,
        name: &'a str,
        outcome: &'a Outcome<'a>,
        at: &str,
        beside: &mut Vec<write_parts::Part<'a>>,
    ) -> Response<'a> {
        let response = object_of(&text_of(outcome), outcome.failed == Some(true));
        let mut inside = Vec::new();
        for part in outcome.parts.iter().filter(|part| matches!(part, Part::Image(_) | Part::Media(_))) {
            let Some(media) = self.plain(part, || at.to_owned()) else { continue };
            // Audio and video are not taken inside, nor is anything that must be fetched.
            let kind = media.inline_data.as_ref().map_or("", |blob| blob.mime_type);
            let fits = kind.starts_with("image/") || kind == "application/pdf";
            if fits && self.model.has_media_in_results() {
                inside.push(media);
            } else {
                self.left.push(Omission::dropped("move_result_media", at));
                beside.push(media);
            }
        }
        Response { name: fitted(name), response: Cow::Owned(response), parts: inside }
    }

    /// A result without its call, for reading.
    fn orphan(&mut self, outcome: &'a Outcome<'a>, at: &str, parts: &mut Vec<write_parts::Part<'a>>) {
        let name = outcome.name.as_deref().unwrap_or("a tool");
        parts.push(write_parts::Part::text(format!("Result of {name}: {}", text_of(outcome))));
        for part in outcome.parts.iter().filter(|part| matches!(part, Part::Image(_) | Part::Media(_))) {
            parts.extend(self.plain(part, || at.to_owned()));
        }
    }

    fn seal_first_calls(&mut self) {
        for content in self.contents.iter_mut().filter(|content| content.role == "model") {
            if let Some(first) = content.parts.iter_mut().find(|part| part.function_call.is_some()) {
                first.thought_signature.get_or_insert(STAND_IN);
            }
        }
    }
}

fn inline<'a>(mime_type: &'a str, data: &'a str) -> write_parts::Part<'a> {
    write_parts::Part { inline_data: Some(Blob { mime_type, data }), ..write_parts::Part::default() }
}

/// The type of an image, by the end of its address: Vertex does not look for itself.
fn image_type(url: &str) -> Option<&'static str> {
    let path = url.strip_prefix("https://")?.split(['?', '#']).next()?;
    let end = path.rsplit_once('.')?.1.to_ascii_lowercase();
    match end.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "heic" => Some("image/heic"),
        "heif" => Some("image/heif"),
        _ => None,
    }
}

/// The texts of a result, a line each.
fn text_of<'a>(outcome: &'a Outcome<'_>) -> Cow<'a, str> {
    let mut texts = outcome.parts.iter().filter_map(|part| match part {
        Part::Text(text) | Part::Refusal(text) => Some(text.as_ref()),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    match texts.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, second].into_iter().chain(texts).collect::<Vec<_>>().join("\n")),
    }
}

/// A result as the object that it must be. What is an object already is given as it is, unless its reader would take it for ours.
fn object_of(text: &str, failed: bool) -> Box<RawValue> {
    if failed {
        return write_parts::raw(serde_json::json!({"error": text}).to_string());
    }
    let object = serde_json::from_str::<&RawValue>(text).ok().filter(|_| text.starts_with('{'));
    if let Some(object) = object.filter(|raw| !is_opened(raw)) {
        return object.to_owned();
    }
    write_parts::raw(serde_json::json!({"output": text}).to_string())
}

/// The beginning of an id, for the journal.
fn bounded(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(80).collect()
}
