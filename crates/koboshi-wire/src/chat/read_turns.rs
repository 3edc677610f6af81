//! The messages of a chat request as turns.
//!
//! System and developer messages in front are the form's system texts; later ones stay where they are. Results that follow each other are one
//! turn, as other dialects want them. Calls of the old form have no ids: each gets its number in the conversation, and a result goes to
//! the oldest open call of its name.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::message::{Message, Role as MessageRole};
use super::read_parts;
use crate::form::{Call, Omission, Outcome, Part, Role, Thought, Turn};
use crate::lenient::{is_full, text_of};
use crate::raw::{Raw, list};

/// A conversation.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    pub(super) system: Vec<Cow<'a, str>>,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) left: Vec<Omission>,
    /// How many calls there were.
    made: usize,
    /// Name of the tool, and whether it takes free text, by id of the call.
    known: HashMap<Cow<'a, str>, (Cow<'a, str>, bool)>,
    open: UnansweredCalls<'a>,
    /// The last message was a result.
    in_results: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn of(messages: &[Message<'a>]) -> Self {
        let mut talk = Self::default();
        for (index, message) in messages.iter().enumerate() {
            talk.take(message, index);
        }
        talk
    }

    fn take(&mut self, message: &Message<'a>, index: usize) {
        let in_results = std::mem::replace(&mut self.in_results, false);
        match message.role {
            MessageRole::System => self.program(message, index),
            MessageRole::User => {
                if message.name.is_some() {
                    self.left
                        .push(Omission::dropped("drop_participant_name", format!("messages[{index}].name")));
                }
                let parts = self.content(message, index);
                self.turns.push(Turn { role: Role::User, parts });
            }
            MessageRole::Assistant => self.answer(message, index),
            MessageRole::Tool | MessageRole::Function => {
                let outcome = Part::Outcome(self.outcome(message, index));
                match self.turns.last_mut().filter(|_| in_results) {
                    Some(turn) => turn.parts.push(outcome),
                    None => self.turns.push(Turn { role: Role::User, parts: vec![outcome] }),
                }
                self.in_results = true;
            }
            MessageRole::Other => {
                self.left.push(Omission::needed("needs_role", format!("messages[{index}].role")));
            }
        }
    }

    fn content(&mut self, message: &Message<'a>, index: usize) -> Vec<Part<'a>> {
        let at = format!("messages[{index}].content");
        message.content.map_or_else(Vec::new, |content| read_parts::read(content, &at, &mut self.left))
    }

    fn program(&mut self, message: &Message<'a>, index: usize) {
        let mut texts = Vec::new();
        for part in self.content(message, index) {
            match part {
                Part::Text(text) => texts.push(text),
                _ => self
                    .left
                    .push(Omission::needed("needs_system_part", format!("messages[{index}].content"))),
            }
        }
        if self.turns.is_empty() {
            self.system.extend(texts.into_iter().filter(|text| !text.is_empty()));
        } else {
            let parts = texts.into_iter().map(Part::Text).collect();
            self.turns.push(Turn { role: Role::System, parts });
        }
    }

    fn answer(&mut self, message: &Message<'a>, index: usize) {
        let thought = message.reasoning.and_then(text_of).filter(|text| !text.is_empty());
        let mut parts: Vec<Part<'a>> =
            thought.map(|text| Part::Thought(Thought { text, ..Thought::default() })).into_iter().collect();
        parts.extend(self.content(message, index));
        let refusal = message.refusal.and_then(text_of).filter(|text| !text.is_empty());
        parts.extend(refusal.map(Part::Refusal));
        if message.has_details {
            self.left.push(Omission::dropped("drop_reasoning_details", format!("messages[{index}]")));
        }
        // An earlier answer's audio: only its provider still has it.
        if message.audio.is_some_and(is_full) {
            self.left.push(Omission::needed("needs_audio", format!("messages[{index}].audio")));
        }
        let calls = message.tool_calls.and_then(list).unwrap_or_default();
        for (place, raw) in calls.into_iter().enumerate() {
            let called = Raw::of(raw).unwrap_or_default();
            match self.call(&called) {
                Some(call) => parts.push(Part::Call(call)),
                None => {
                    let at = format!("messages[{index}].tool_calls[{place}]");
                    self.left.push(Omission::dropped("drop_nameless_call", at));
                }
            }
        }
        if let Some(function) = message.function_call.and_then(Raw::of) {
            let call = self.named(None, &function, "arguments", false);
            parts.extend(call.map(Part::Call));
        }
        self.turns.push(Turn { role: Role::Assistant, parts });
    }

    fn call(&mut self, called: &Raw<'a>) -> Option<Call<'a>> {
        let id = called.full("id");
        match called.object("custom") {
            Some(custom) => self.named(id, &custom, "input", true),
            None => self.named(id, &called.object("function")?, "arguments", false),
        }
    }

    fn named(
        &mut self,
        id: Option<Cow<'a, str>>,
        function: &Raw<'a>,
        field: &str,
        free_text: bool,
    ) -> Option<Call<'a>> {
        let name = function.full("name")?;
        let arguments = function.get(field).map_or(Cow::Borrowed(""), |raw| {
            // Some servers send the object itself in place of its text.
            text_of(raw).unwrap_or(Cow::Borrowed(raw.get()))
        });
        let arguments =
            if free_text || !arguments.trim().is_empty() { arguments } else { Cow::Borrowed("{}") };
        let number = self.made;
        self.made += 1;
        let id = id.unwrap_or_else(|| {
            let id: Cow<'a, str> = Cow::Owned(format!("call_{number}"));
            self.open.add(id.clone(), name.clone());
            id
        });
        self.known.insert(id.clone(), (name.clone(), free_text));
        Some(Call { id, name, arguments, free_text, signature: None })
    }

    fn outcome(&mut self, message: &Message<'a>, index: usize) -> Outcome<'a> {
        let id = message.tool_call_id.clone().or_else(|| self.open.take(message.name.as_deref()));
        let id = id.unwrap_or_default();
        let known = self.known.get(&id);
        let free_text = known.is_some_and(|(_, free_text)| *free_text);
        let name = known.map(|(name, _)| name.clone()).or_else(|| message.name.clone());
        Outcome { id, name, parts: self.content(message, index), failed: None, free_text }
    }
}

/// Calls that had no id of their own and no result yet.
#[derive(Debug, Default)]
struct UnansweredCalls<'a> {
    /// Their ids, oldest first; none where a result has come.
    all: Vec<Option<Cow<'a, str>>>,
    /// All before have their results.
    done: usize,
    by_name: HashMap<Cow<'a, str>, VecDeque<usize>>,
}

impl<'a> UnansweredCalls<'a> {
    fn add(&mut self, id: Cow<'a, str>, name: Cow<'a, str>) {
        self.by_name.entry(name).or_default().push_back(self.all.len());
        self.all.push(Some(id));
    }

    /// The oldest of this name, or of any if no name is given. The total work is linear in the number of calls.
    fn take(&mut self, name: Option<&str>) -> Option<Cow<'a, str>> {
        if let Some(name) = name {
            let queue = self.by_name.get_mut(name)?;
            while let Some(at) = queue.pop_front() {
                if let Some(id) = self.all.get_mut(at).and_then(Option::take) {
                    return Some(id);
                }
            }
            return None;
        }
        while let Some(slot) = self.all.get_mut(self.done) {
            self.done += 1;
            if let Some(id) = slot.take() {
                return Some(id);
            }
        }
        None
    }
}
