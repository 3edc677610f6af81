//! The turns of a form as input items.

use std::borrow::Cow;

use serde::Serialize;

use crate::dialect::Dialect;
use crate::form::{Call, Form, Image, Media, Omission, Outcome, Part, Role, Thought};
use crate::hash;

/// The id of a call may have this many bytes.
const MAX_ID: usize = 64;

/// An input item.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Piece<'a>>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        summary: Vec<Summary<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: &'a str,
        arguments: &'a str,
    },
    CustomToolCall {
        call_id: Cow<'a, str>,
        name: &'a str,
        input: &'a str,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ResultJson<'a>,
    },
    CustomToolCallOutput {
        call_id: Cow<'a, str>,
        output: ResultJson<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Piece<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
    Refusal { refusal: &'a str },
    InputImage { image_url: Cow<'a, str> },
    InputFile { filename: &'a str, file_data: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Summary<'a> {
    SummaryText { text: &'a str },
}

/// What came back from a tool.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultJson<'a> {
    Text(&'a str),
    Parts(Vec<Piece<'a>>),
}

/// The conversation as items, in its order.
pub(super) fn items<'a>(form: &'a Form<'_>, left: &mut Vec<Omission>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for (at, turn) in form.turns.iter().enumerate() {
        let mut spoken = Vec::new();
        for (part_at, part) in turn.parts.iter().enumerate() {
            let place = || format!("turns[{at}].parts[{part_at}]");
            let item = match part {
                Part::Call(call) => call_item(call),
                Part::Outcome(outcome) => outcome_item(outcome, &place, left),
                Part::Thought(thought) => match thought_item(thought) {
                    Ok(item) => item,
                    Err(rule) => {
                        left.push(Omission::dropped(rule, place()));
                        continue;
                    }
                },
                part => {
                    match piece(part, turn.role) {
                        Ok(piece) => spoken.push(piece),
                        Err(unfit) => left.push(unfit.left(place())),
                    }
                    continue;
                }
            };
            message(&mut items, turn.role, &mut spoken);
            items.push(item);
        }
        message(&mut items, turn.role, &mut spoken);
    }
    items
}

/// The parts up to here, as a message.
fn message<'a>(items: &mut Vec<Item<'a>>, role: Role, spoken: &mut Vec<Piece<'a>>) {
    if !spoken.is_empty() {
        let role = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        items.push(Item::Message { role, content: std::mem::take(spoken) });
    }
}

fn call_item<'a>(call: &'a Call<'_>) -> Item<'a> {
    let call_id = fit_id(&call.id);
    if call.free_text {
        Item::CustomToolCall { call_id, name: &call.name, input: &call.arguments }
    } else {
        Item::FunctionCall { call_id, name: &call.name, arguments: &call.arguments }
    }
}

fn outcome_item<'a>(
    outcome: &'a Outcome<'_>,
    place: &dyn Fn() -> String,
    left: &mut Vec<Omission>,
) -> Item<'a> {
    if outcome.failed == Some(true) {
        // The dialect has no flag for a failure; the output states it.
        left.push(Omission::dropped("drop_error_flag", place()));
    }
    let output = match outcome.parts.as_slice() {
        [] => ResultJson::Text(""),
        [Part::Text(text)] => ResultJson::Text(text),
        parts => {
            let mut pieces = Vec::with_capacity(parts.len());
            for part in parts {
                match piece(part, Role::User) {
                    Ok(piece) => pieces.push(piece),
                    Err(unfit) => left.push(unfit.left(place())),
                }
            }
            ResultJson::Parts(pieces)
        }
    };
    let call_id = fit_id(&outcome.id);
    if outcome.free_text {
        Item::CustomToolCallOutput { call_id, output }
    } else {
        Item::FunctionCallOutput { call_id, output }
    }
}

/// A thought that this vendor signed; others it does not take.
fn thought_item<'a>(thought: &'a Thought<'_>) -> Result<Item<'a>, &'static str> {
    let signature = thought.signature.as_ref().ok_or("drop_foreign_thought")?;
    if !signature.is_of(Dialect::Responses) {
        return Err("drop_foreign_seal");
    }
    let summary = (!thought.text.is_empty()).then_some(Summary::SummaryText { text: &thought.text });
    Ok(Item::Reasoning {
        id: signature.id.as_deref(),
        summary: summary.into_iter().collect(),
        encrypted_content: &signature.data,
    })
}

/// Why a part cannot be written.
enum UnwritablePart {
    Dropped(&'static str),
    Needed(&'static str),
}

impl UnwritablePart {
    fn left(self, place: String) -> Omission {
        match self {
            Self::Dropped(rule) => Omission::dropped(rule, place),
            Self::Needed(rule) => Omission::needed(rule, place),
        }
    }
}

fn piece<'a>(part: &'a Part<'_>, role: Role) -> Result<Piece<'a>, UnwritablePart> {
    let is_answer = role == Role::Assistant;
    match part {
        Part::Text(text) if is_answer => Ok(Piece::OutputText { text }),
        Part::Text(text) => Ok(Piece::InputText { text }),
        Part::Refusal(refusal) if is_answer => Ok(Piece::Refusal { refusal }),
        Part::Refusal(text) => Ok(Piece::InputText { text }),
        Part::Image(_) | Part::Media(_) if is_answer => Err(UnwritablePart::Dropped("drop_answer_media")),
        Part::Image(Image::Url(url)) => Ok(Piece::InputImage { image_url: Cow::Borrowed(url) }),
        Part::Image(Image::Data { media_type, data }) => {
            Ok(Piece::InputImage { image_url: Cow::Owned(data_url(media_type, data)) })
        }
        Part::Media(media) if media.media_type.starts_with("audio/") => {
            Err(UnwritablePart::Needed("needs_audio"))
        }
        Part::Media(media) if media.media_type.starts_with("video/") => {
            Err(UnwritablePart::Needed("needs_video"))
        }
        Part::Media(media) => {
            let file_data = data_url(&media.media_type, &media.data);
            Ok(Piece::InputFile { filename: file_name(media), file_data })
        }
        // A part that holds parts does not stand inside one.
        Part::Call(_) | Part::Outcome(_) | Part::Thought(_) => {
            Err(UnwritablePart::Dropped("drop_misplaced_part"))
        }
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// A file must have a name, by which the vendor goes.
fn file_name<'a>(media: &'a Media<'_>) -> &'a str {
    match (media.name.as_deref(), &*media.media_type) {
        (Some(name), _) => name,
        (None, "application/pdf") => "file.pdf",
        (None, "text/plain") => "file.txt",
        (None, _) => "file",
    }
}

/// The id of a call as the vendor takes it.
fn fit_id(id: &str) -> Cow<'_, str> {
    if id.is_empty() { Cow::Borrowed("call_0") } else { hash::shortened(id, MAX_ID) }
}
