//! The turns of a form as chat messages.
//!
//! Chat wants results right behind their calls, and images only from the user. So results of a turn come first, and images that stand
//! elsewhere wait until all results are written and then come in a message of their own; the result says where to look. Thoughts are left out,
//! except to those models that refuse their own calls without the thought before them.

use std::borrow::Cow;

use serde::Serialize;

use super::body::{Notes, fit_id};
use super::model::Flavor;
use crate::form::{
    ASKS_FOR_JSON, Call, Form, Image, Media, Omission, Outcome, Output, Part, Role, Turn, free_text,
    names_json,
};

/// What stands in a result in place of an image.
const ELSEWHERE: &str = "[image: in the next message]";

/// What stands where a thought must be and none is known.
const UNKNOWN_THOUGHT: &str = ".";

/// A message.
#[derive(Serialize, Debug, Default)]
pub(super) struct Message<'f> {
    role: &'static str,
    content: Content<'f>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Cow<'f, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'f, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallJson<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'f, str>>,
}

#[derive(Serialize, Debug, Default)]
#[serde(untagged)]
enum Content<'f> {
    #[default]
    Null,
    Text(Cow<'f, str>),
    Pieces(Vec<Piece<'f>>),
}

#[derive(Serialize, Debug)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'f> {
    Text { text: &'f str },
    ImageUrl { image_url: Url<'f> },
    InputAudio { input_audio: Audio<'f> },
    File { file: File<'f> },
}

#[derive(Serialize, Debug)]
struct Url<'f> {
    url: Cow<'f, str>,
}

#[derive(Serialize, Debug)]
struct Audio<'f> {
    data: &'f str,
    format: &'static str,
}

#[derive(Serialize, Debug)]
struct File<'f> {
    filename: &'f str,
    file_data: String,
}

#[derive(Serialize, Debug)]
struct CallJson<'f> {
    id: Cow<'f, str>,
    #[serde(flatten)]
    kind: Kind<'f>,
}

#[derive(Serialize, Debug)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'f> {
    Function { function: Function<'f> },
    Custom { custom: Custom<'f> },
}

#[derive(Serialize, Debug)]
struct Function<'f> {
    name: &'f str,
    arguments: Cow<'f, str>,
}

#[derive(Serialize, Debug)]
struct Custom<'f> {
    name: &'f str,
    input: &'f str,
}

/// All messages of a form.
pub(super) fn messages<'f>(form: &'f Form<'_>, flavor: Flavor, notes: &mut Notes) -> Vec<Message<'f>> {
    let mut history = History { flavor, notes, all: Vec::new(), pending: Vec::new(), at: String::new() };
    let system = form.system.iter().map(AsRef::as_ref).chain(history.naming_json(form));
    let mut system = system.peekable();
    if system.peek().is_some() {
        // One text: many chat templates fail on several system messages.
        let system = joined(system, "\n\n");
        history.push("system", Content::Text(system));
    }
    for (index, turn) in form.turns.iter().enumerate() {
        history.at = format!("turns[{index}]");
        history.turn(turn);
    }
    history.flush();
    history.all
}

struct History<'f, 'n> {
    flavor: Flavor,
    notes: &'n mut Notes,
    all: Vec<Message<'f>>,
    /// Images and files that wait for the end of the results.
    pending: Vec<Piece<'f>>,
    /// The place in the form, for notes.
    at: String,
}

impl<'f> History<'f, '_> {
    fn push(&mut self, role: &'static str, content: Content<'f>) {
        self.all.push(Message { role, content, ..Message::default() });
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            let pieces = std::mem::take(&mut self.pending);
            self.push("user", Content::Pieces(pieces));
        }
    }

    /// The sentence that asks for JSON, where the conversation does not mention it.
    fn naming_json(&mut self, form: &Form<'_>) -> Option<&'static str> {
        let is_named =
            || form.system.iter().any(|text| names_json(text)) || form.turns.iter().any(Turn::names_json);
        if !matches!(form.output, Output::Json) || is_named() {
            return None;
        }
        self.notes.add(Omission::dropped("name_json", "output"));
        Some(ASKS_FOR_JSON)
    }

    fn note(&mut self, rule: &'static str) {
        self.notes.add(Omission::dropped(rule, self.at.clone()));
    }

    fn turn(&mut self, turn: &'f Turn<'_>) {
        let outcomes = turn.parts.iter().filter_map(|part| match part {
            Part::Outcome(outcome) => Some(outcome),
            _ => None,
        });
        match turn.role {
            Role::User => {
                outcomes.for_each(|outcome| self.outcome(outcome));
                self.user(turn);
            }
            Role::Assistant => self.assistant(turn),
            Role::System => {
                let texts = texts(turn);
                if !texts.is_empty() {
                    self.flush();
                    self.push("system", Content::Text(joined(texts.into_iter(), "\n\n")));
                }
            }
        }
    }

    fn user(&mut self, turn: &'f Turn<'_>) {
        let mut pieces = Vec::new();
        for part in &turn.parts {
            match part {
                Part::Outcome(_) => {}
                Part::Call(_) | Part::Thought(_) | Part::Refusal(_) => self.note("drop_misplaced_part"),
                Part::Text(text) => pieces.push(Piece::Text { text }),
                Part::Image(_) | Part::Media(_) => pieces.extend(self.piece(part)),
            }
        }
        if pieces.is_empty() {
            return;
        }
        self.flush();
        let content = match pieces.as_slice() {
            [Piece::Text { text }] => Content::Text(Cow::Borrowed(*text)),
            _ => Content::Pieces(pieces),
        };
        self.push("user", content);
    }

    fn assistant(&mut self, turn: &'f Turn<'_>) {
        self.flush();
        let mut written = texts(turn);
        let mut message = Message { role: "assistant", ..Message::default() };
        let recalls = self.flavor.recalls && turn.parts.iter().any(|part| matches!(part, Part::Call(_)));
        if recalls {
            message.reasoning_content = Some(self.thought(turn));
        }
        for part in &turn.parts {
            match part {
                Part::Text(_) => {}
                Part::Call(call) => message.tool_calls.push(self.call(call)),
                Part::Thought(_) if recalls => {}
                Part::Thought(_) => self.note("drop_foreign_thought"),
                Part::Refusal(words) if self.flavor.openai => message.refusal = Some(Cow::Borrowed(words)),
                Part::Refusal(words) => {
                    self.note("say_refusal_as_text");
                    written.push(words);
                }
                Part::Image(_) | Part::Media(_) => {
                    self.note("move_assistant_image");
                    let piece = self.piece(part);
                    self.pending.extend(piece);
                }
                Part::Outcome(_) => self.note("drop_misplaced_part"),
            }
        }
        let is_empty = written.is_empty() && message.refusal.is_none() && message.tool_calls.is_empty();
        if !written.is_empty() {
            message.content = Content::Text(joined(written.into_iter(), "\n\n"));
        }
        // A turn is empty only if everything in it was dropped.
        if !is_empty {
            self.all.push(message);
        }
    }

    /// What was thought before the calls of a turn. Where that is not known, a placeholder stands there: an empty thought counts as missing.
    fn thought(&mut self, turn: &'f Turn<'_>) -> Cow<'f, str> {
        let thoughts = turn.parts.iter().filter_map(|part| match part {
            Part::Thought(thought) if !thought.hidden => Some(thought.text.as_ref()),
            _ => None,
        });
        let thought = joined(thoughts, "\n\n");
        if thought.trim().is_empty() {
            self.note("add_missing_thought");
            return Cow::Borrowed(UNKNOWN_THOUGHT);
        }
        thought
    }

    fn call(&mut self, call: &'f Call<'_>) -> CallJson<'f> {
        if call.signature.is_some() {
            self.note("drop_foreign_seal");
        }
        let name = call.name.as_ref();
        let kind = if !call.free_text {
            Kind::Function { function: Function { name, arguments: Cow::Borrowed(&call.arguments) } }
        } else if self.flavor.openai {
            Kind::Custom { custom: Custom { name, input: &call.arguments } }
        } else {
            let arguments = Cow::Owned(free_text::wrapped(&call.arguments));
            Kind::Function { function: Function { name, arguments } }
        };
        CallJson { id: fit_id(&call.id, self.flavor), kind }
    }

    fn outcome(&mut self, outcome: &'f Outcome<'_>) {
        let mut texts: Vec<&'f str> = Vec::new();
        for part in &outcome.parts {
            match part {
                Part::Text(text) | Part::Refusal(text) => texts.push(text),
                Part::Image(_) | Part::Media(_) => {
                    self.note("move_tool_image");
                    texts.push(ELSEWHERE);
                    let piece = self.piece(part);
                    self.pending.extend(piece);
                }
                Part::Call(_) | Part::Outcome(_) | Part::Thought(_) => self.note("drop_misplaced_part"),
            }
        }
        let mut text = joined(texts.into_iter(), "\n");
        if outcome.failed == Some(true) {
            self.note("drop_error_flag");
            if text.is_empty() {
                // The error flag was all that the result had.
                text = Cow::Borrowed("error");
            }
        }
        self.all.push(Message {
            role: "tool",
            content: Content::Text(text),
            tool_call_id: Some(fit_id(&outcome.id, self.flavor)),
            ..Message::default()
        });
    }

    fn piece(&mut self, part: &'f Part<'_>) -> Option<Piece<'f>> {
        match part {
            Part::Image(Image::Url(url)) => {
                Some(Piece::ImageUrl { image_url: Url { url: Cow::Borrowed(url) } })
            }
            Part::Image(Image::Data { media_type, data }) => {
                Some(Piece::ImageUrl { image_url: Url { url: Cow::Owned(data_url(media_type, data)) } })
            }
            Part::Media(media) => self.media(media),
            _ => None,
        }
    }

    fn media(&mut self, media: &'f Media<'_>) -> Option<Piece<'f>> {
        let format = match media.media_type.as_ref() {
            "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
            "audio/mpeg" | "audio/mp3" => Some("mp3"),
            _ => None,
        };
        if let Some(format) = format {
            return Some(Piece::InputAudio { input_audio: Audio { data: &media.data, format } });
        }
        if media.media_type.starts_with("audio/") || media.media_type.starts_with("video/") {
            self.notes.add(Omission::needed("needs_media", self.at.clone()));
            return None;
        }
        let pdf = media.media_type == "application/pdf";
        let filename = media.name.as_deref().unwrap_or(if pdf { "file.pdf" } else { "file" });
        Some(Piece::File { file: File { filename, file_data: data_url(&media.media_type, &media.data) } })
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

fn texts<'f>(turn: &'f Turn<'_>) -> Vec<&'f str> {
    let texts = turn.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    texts.collect()
}

fn joined<'f>(mut texts: impl Iterator<Item = &'f str>, between: &str) -> Cow<'f, str> {
    let mut all = Cow::Borrowed(texts.next().unwrap_or_default());
    for text in texts {
        let all = all.to_mut();
        all.push_str(between);
        all.push_str(text);
    }
    all
}
