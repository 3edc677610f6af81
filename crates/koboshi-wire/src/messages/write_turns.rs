//! The conversation as this vendor demands it.
//!
//! The roles take turns and the user begins. The results of calls stand first in the message right after them, one for each and no others. No text
//! is empty, none at the very end has spaces behind it, and a thought is never the last block. What a conversation lacks of that is made up
//! by rules with names; nothing but empty texts is dropped without one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::value::RawValue;

use super::write_parts::{Block, Message, Role, Source};
use super::{arguments, ids};
use crate::dialect::Dialect;
use crate::form::{self, Call, Image, Media, Omission, Outcome, Part, Thought, Turn};

/// What is put where a call has no result.
const NO_RESULT: &str = "This call has no result: it was interrupted.";
/// The user's text where the conversation begins with the model.
const FIRST: &str = "Continue.";

/// The messages of a conversation.
pub(super) fn messages<'f>(turns: &'f [Turn<'_>], left: &mut Vec<Omission>) -> Vec<Message<'f>> {
    let mut joined = TurnJoiner { messages: Vec::new(), given: CallIds::default(), left };
    for (place, turn) in turns.iter().enumerate() {
        joined.turn(place, turn);
    }
    let TurnJoiner { messages, .. } = joined;
    let mut messages = paired(messages, left);
    if messages.first().is_some_and(|first| first.role == Role::Assistant) {
        left.push(Omission::dropped("add_first_user_turn", "messages[0]"));
        messages.insert(0, Message { role: Role::User, content: vec![Block::Text { text: FIRST.into() }] });
    }
    trim(&mut messages, left);
    messages
}

/// Joins the turns of one role.
struct TurnJoiner<'f, 'l> {
    messages: Vec<Message<'f>>,
    given: CallIds,
    left: &'l mut Vec<Omission>,
}

/// The ids that calls were given.
#[derive(Default)]
struct CallIds {
    all: HashSet<String>,
    /// Of the last message with calls: those without a result yet, by the id they had.
    open: HashMap<String, VecDeque<String>>,
    /// The message that `open` belongs to.
    message: usize,
}

impl<'f> TurnJoiner<'f, '_> {
    fn add(&mut self, role: Role, block: Block<'f>) {
        match self.messages.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.push(block),
            None => self.messages.push(Message { role, content: vec![block] }),
        }
    }

    fn text(&mut self, role: Role, text: &'f str) {
        // The vendor refuses texts without a letter.
        if !text.trim().is_empty() {
            self.add(role, Block::Text { text: text.into() });
        }
    }

    fn turn(&mut self, place: usize, turn: &'f Turn<'_>) {
        let role = if turn.role == form::Role::Assistant { Role::Assistant } else { Role::User };
        if turn.role == form::Role::System {
            self.left.push(Omission::dropped("system_turn_as_user", format!("messages[{place}]")));
        }
        for (part_place, part) in turn.parts.iter().enumerate() {
            let at = || format!("messages[{place}].content[{part_place}]");
            match part {
                Part::Text(text) | Part::Refusal(text) => self.text(role, text),
                Part::Call(call) => self.call(call, at),
                Part::Outcome(outcome) => self.outcome(outcome, at),
                Part::Thought(thought) => self.thought(role, thought, at),
                Part::Image(_) | Part::Media(_) if role == Role::Assistant => {
                    self.left.push(Omission::dropped("drop_image_of_model", at()));
                }
                Part::Image(_) | Part::Media(_) => {
                    if let Some(block) = seen(part, self.left, at) {
                        self.add(role, block);
                    }
                }
            }
        }
    }

    fn thought(&mut self, role: Role, thought: &'f Thought<'_>, at: impl Fn() -> String) {
        match thought.signature.as_ref() {
            Some(signature) if signature.is_of(Dialect::Messages) && role == Role::Assistant => {
                let block = if thought.hidden {
                    Block::RedactedThinking { data: &signature.data }
                } else {
                    Block::Thinking { thinking: &thought.text, signature: &signature.data }
                };
                self.add(role, block);
            }
            signature => {
                if signature.is_some() {
                    self.left.push(Omission::dropped("drop_foreign_seal", at()));
                }
                if !thought.text.is_empty() {
                    self.left.push(Omission::dropped("drop_foreign_thought", at()));
                }
            }
        }
    }

    fn call(&mut self, call: &'f Call<'_>, at: impl Fn() -> String) {
        if call.signature.is_some() {
            self.left.push(Omission::dropped("drop_foreign_seal", at()));
        }
        if !ids::is_name(&call.name) {
            self.left.push(Omission::dropped("fit_tool_name", at()));
        }
        let input = match serde_json::from_str::<&RawValue>(&call.arguments) {
            Ok(raw) if raw.get().starts_with('{') && !call.free_text => Cow::Borrowed(raw),
            _ => {
                if !call.free_text && !call.arguments.trim_ascii().is_empty() {
                    self.left.push(Omission::dropped("wrap_broken_arguments", at()));
                }
                Cow::Owned(arguments::value(&call.arguments, call.free_text))
            }
        };
        let message = match self.messages.last() {
            Some(last) if last.role == Role::Assistant => self.messages.len(),
            _ => self.messages.len() + 1,
        };
        let id = self.given.give(&call.id, message);
        self.add(Role::Assistant, Block::ToolUse { id, name: ids::fitted_name(&call.name), input });
    }

    fn outcome(&mut self, outcome: &'f Outcome<'_>, at: impl Fn() -> String) {
        let mut content = Vec::with_capacity(outcome.parts.len());
        for part in &outcome.parts {
            match part {
                Part::Text(text) | Part::Refusal(text) if text.trim().is_empty() => {}
                Part::Text(text) | Part::Refusal(text) => {
                    content.push(Block::Text { text: text.as_ref().into() });
                }
                part => content.extend(seen(part, self.left, &at)),
            }
        }
        let mut is_error = outcome.failed;
        if is_error == Some(true) && content.iter().any(|block| !matches!(block, Block::Text { .. })) {
            // The vendor takes nothing but text in a result that failed.
            is_error = None;
            self.left.push(Omission::dropped("drop_error_flag", at()));
        }
        let tool_use_id = self.given.take(&outcome.id);
        self.add(Role::User, Block::ToolResult { tool_use_id, content, is_error });
    }
}

impl CallIds {
    /// An id for a call, its own if it fits and no other call has it.
    fn give(&mut self, id: &str, message: usize) -> String {
        if self.message != message {
            self.message = message;
            self.open.clear();
        }
        let mut given = ids::fitted(id).into_owned();
        if self.all.contains(&given) {
            given = format!("{given}_{}", self.all.len());
            while self.all.contains(&given) {
                given.push('x');
            }
        }
        self.all.insert(given.clone());
        self.open.entry(id.to_owned()).or_default().push_back(given.clone());
        given
    }

    /// The id of the call that this is the result of.
    fn take(&mut self, id: &str) -> String {
        let open = self.open.get_mut(id).and_then(VecDeque::pop_front);
        open.unwrap_or_else(|| ids::fitted(id).into_owned())
    }
}

/// An image or a document, if this dialect can show it.
fn seen<'f>(part: &'f Part<'_>, left: &mut Vec<Omission>, at: impl Fn() -> String) -> Option<Block<'f>> {
    match part {
        Part::Image(Image::Url(url)) => Some(Block::Image { source: Source::Url { url } }),
        Part::Image(Image::Data { media_type, data }) => match media_type.as_ref() {
            // Not its name, but a common one.
            "image/jpg" => Some(Block::Image { source: Source::Base64 { media_type: "image/jpeg", data } }),
            "image/jpeg" | "image/png" | "image/gif" | "image/webp" => {
                Some(Block::Image { source: Source::Base64 { media_type, data } })
            }
            _ => {
                left.push(Omission::needed("needs_media", at()));
                None
            }
        },
        Part::Media(Media { media_type, data, name }) if media_type == "application/pdf" => {
            Some(Block::Document { source: Source::Base64 { media_type, data }, title: name.as_deref() })
        }
        Part::Media(media) => {
            let is_sound = media.media_type.starts_with("audio/");
            left.push(Omission::needed(if is_sound { "needs_audio" } else { "needs_media" }, at()));
            None
        }
        _ => None,
    }
}

/// Puts the results of calls first in the message after them, one for each and no others.
fn paired<'f>(messages: Vec<Message<'f>>, left: &mut Vec<Omission>) -> Vec<Message<'f>> {
    let mut all: Vec<Message<'f>> = Vec::with_capacity(messages.len() + 1);
    let mut expected: Vec<String> = Vec::new();
    for mut message in messages {
        if message.role == Role::User {
            message.content = answered(&std::mem::take(&mut expected), message.content, left);
        } else {
            let thoughts = message.content.iter().rev().take_while(|block| block.is_thought()).count();
            if thoughts > 0 {
                left.push(Omission::dropped("drop_last_thought", "messages"));
                message.content.truncate(message.content.len() - thoughts);
            }
            expected = calls_of(&message);
        }
        if message.content.is_empty() {
            continue;
        }
        match all.last_mut().filter(|last| last.role == message.role) {
            Some(last) => last.content.append(&mut message.content),
            None => all.push(message),
        }
    }
    if !expected.is_empty() {
        let content = answered(&expected, Vec::new(), left);
        all.push(Message { role: Role::User, content });
    }
    all
}

fn calls_of(message: &Message<'_>) -> Vec<String> {
    let calls = message.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        _ => None,
    });
    calls.collect()
}

/// The blocks of a user's message: first the results that are expected, then the rest.
fn answered<'f>(expected: &[String], blocks: Vec<Block<'f>>, left: &mut Vec<Omission>) -> Vec<Block<'f>> {
    let places: HashMap<&str, usize> = expected.iter().zip(0..).map(|(id, at)| (id.as_str(), at)).collect();
    let mut results: Vec<Option<Block<'f>>> = Vec::new();
    results.resize_with(expected.len(), || None);
    let mut rest = Vec::new();
    for block in blocks {
        let id = if let Block::ToolResult { tool_use_id, .. } = &block { tool_use_id } else { "" };
        let place = places.get(id).and_then(|at| results.get_mut(*at)).filter(|place| place.is_none());
        match (place, block) {
            (Some(place), block) => *place = Some(block),
            // No call asked for it, so it is written as a text of the user.
            (None, Block::ToolResult { content, .. }) => {
                left.push(Omission::dropped("orphan_result_as_text", "messages"));
                rest.extend(content);
            }
            (None, block) => rest.push(block),
        }
    }
    let mut all = Vec::with_capacity(results.len() + rest.len());
    for (id, result) in expected.iter().zip(results) {
        all.push(result.unwrap_or_else(|| {
            left.push(Omission::dropped("add_missing_result", "messages"));
            let content = vec![Block::Text { text: NO_RESULT.into() }];
            Block::ToolResult { tool_use_id: id.clone(), content, is_error: Some(true) }
        }));
    }
    all.append(&mut rest);
    all
}

/// Takes the spaces off the end of an answer that is to be continued.
fn trim(messages: &mut [Message<'_>], left: &mut Vec<Omission>) {
    let last = messages.last_mut().filter(|last| last.role == Role::Assistant);
    if let Some(Block::Text { text }) = last.and_then(|last| last.content.last_mut()) {
        let trimmed = text.trim_end();
        if trimmed.len() < text.len() {
            *text = Cow::Owned(trimmed.to_owned());
            left.push(Omission::dropped("trim_prefill", "messages"));
        }
    }
}
