//! A chat request as borrowed data: what routing, guard and relay must know of it, and nothing else.
//!
//! The body is scanned once for its fields and once more for its messages; texts stay where they are until asked for. The
//! rest of the request is not kept here: it passes with the body, which [`Rewrite`](super::Rewrite) changes by
//! splices.
//!
//! *Not here*: whether the provider will like the request. Only what the gateway itself must understand is refused; for the
//! rest the upstream has better words.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::content::{self, Weight};
use super::intake::{IntakeError, RequestFields};
use super::tools::{Offer, kind_of};
use crate::form::{BYTES_PER_TOKEN, TOKENS_OF_ENCODED};
use crate::intake::{after_spaces, fields, metadata_of, stream_of};
use crate::lenient::{List, Number, Object, is_full, text_of};
use crate::numbers;
use crate::splice::place;

pub use super::message::{Message, Role};
pub use crate::form::{GuardCall, JsonNeed, Needs};

/// A chat request.
///
/// ```
/// use koboshi_wire::chat::ChatRequest;
///
/// let body = br#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
/// let request = ChatRequest::parse(body)?;
/// assert_eq!((request.model(), request.stream()), ("gpt-4o", true));
/// assert_eq!(request.last_user_text().as_deref(), Some("Hi"));
///
/// let error = ChatRequest::parse(br#"{"messages":[]}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`model` is missing");
/// # Ok::<(), koboshi_wire::chat::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct ChatRequest<'a> {
    pub(super) top: RequestFields<'a>,
    model: Cow<'a, str>,
    stream: bool,
    include_usage: bool,
    /// Where the list of messages begins.
    start: usize,
    pub(super) messages: Vec<Message<'a>>,
}

/// The numbers that have to be understood where a request is translated.
pub(super) const NUMBERS: [&str; 5] = ["max_completion_tokens", "max_tokens", "n", "temperature", "top_p"];

impl<'a> ChatRequest<'a> {
    /// Reads a request.
    ///
    /// # Errors
    /// What cannot be understood, with its place.
    pub fn parse(body: &'a [u8]) -> Result<Self, IntakeError> {
        let mut top = RequestFields::of(body)?;
        let (model, _) = top.model()?;
        let (start, messages) = top.messages()?;
        let messages = messages.taken()?;
        let stream = stream_of(top.get("stream"))?;
        let include_usage = top.get("stream_options").is_some_and(includes_usage);
        Ok(Self { top, model, stream, include_usage, start, messages })
    }

    /// The model that is asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn name(&self) -> &Cow<'a, str> {
        &self.model
    }

    /// Whether the answer is to be a stream.
    #[must_use]
    pub fn stream(&self) -> bool {
        self.stream
    }

    /// Whether the client asked for the usage at the end of the stream.
    #[must_use]
    pub fn include_usage(&self) -> bool {
        self.include_usage
    }

    /// How many answers are asked for.
    #[must_use]
    pub fn n(&self) -> u32 {
        self.number("n").and_then(|number| u32::try_from(number).ok()).unwrap_or(1)
    }

    /// The most tokens that may come back, under its new or its old name.
    #[must_use]
    pub fn max_output(&self) -> Option<u64> {
        self.number("max_completion_tokens").or_else(|| self.number("max_tokens"))
    }

    /// Whether parallel tool calls are allowed, where the request states it.
    #[must_use]
    pub fn parallel_tool_calls(&self) -> Option<bool> {
        match self.raw("parallel_tool_calls")?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The end user's id.
    #[must_use]
    pub fn user(&self) -> Option<Cow<'a, str>> {
        self.raw("user").and_then(text_of)
    }

    /// The form of the answer, raw.
    #[must_use]
    pub fn response_format(&self) -> Option<&'a RawValue> {
        self.raw("response_format")
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Message<'a>] {
        &self.messages
    }

    /// Whether tools are offered in the old form (`functions`), so that calls must be written in it.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.raw("tools").is_none() && self.raw("functions").is_some()
    }

    /// A field of the request, raw; `null` counts as absent. Not the messages: they are read already.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.top.get(name)
    }

    /// A limit or a level that cannot be understood, so that the request cannot be translated.
    pub(crate) fn unreadable_number(&self) -> Option<IntakeError> {
        NUMBERS.into_iter().find_map(|name| numbers::error(name, self.raw(name)?.get()))
    }

    fn number(&self, name: &str) -> Option<u64> {
        serde_json::from_str::<Number>(self.raw(name)?.get()).ok()?.0
    }

    /// What a target must be able to do.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let offered = [self.raw("tools"), self.raw("functions")];
        let mut bytes: usize = offered.iter().flatten().map(|raw| raw.get().len()).sum();
        let (mut encoded, mut images) = (0, false);
        for message in &self.messages {
            let of_content = message.content.map_or(Weight::default(), content::weigh);
            bytes += of_content.bytes;
            encoded += of_content.encoded;
            images |= of_content.has_image;
            let calls = [message.tool_calls, message.function_call];
            bytes += calls.iter().flatten().map(|raw| raw.get().len()).sum::<usize>();
        }
        let tokens = bytes.div_ceil(BYTES_PER_TOKEN) + encoded * TOKENS_OF_ENCODED;
        Needs {
            tools: offered.iter().flatten().any(|raw| is_full(raw)),
            images,
            json: self.json_need(),
            prefill: self.messages.last().is_some_and(Message::is_prefill),
            output: self.max_output(),
            input_tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
        }
    }

    fn json_need(&self) -> JsonNeed {
        match self.raw("response_format").and_then(kind_of).as_deref() {
            Some("json_object") => JsonNeed::Object,
            Some("json_schema") => JsonNeed::Schema,
            _ => JsonNeed::None,
        }
    }

    /// The tools that are offered: their names, and the schemas of their arguments where they have one. A tool that takes
    /// free text has none.
    pub fn tools(&self) -> impl Iterator<Item = (Cow<'a, str>, Option<&'a RawValue>)> {
        self.offers().into_iter().filter_map(|offer| Some((offer.name?, offer.schema)))
    }

    pub(super) fn offers(&self) -> Vec<Offer<'a>> {
        let list = |name| {
            let raw: Option<&'a RawValue> = self.raw(name);
            raw.and_then(|raw| serde_json::from_str::<List<Object<Offer<'a>>>>(raw.get()).ok())
                .unwrap_or_default()
        };
        let (List(mut offers), List(old)) = (list("tools"), list("functions"));
        offers.extend(old);
        offers.into_iter().map(|Object(offer)| offer).collect()
    }

    /// What the user wrote last.
    #[must_use]
    pub fn last_user_text(&self) -> Option<Cow<'a, str>> {
        let last = (0..self.messages.len()).rev().find(|index| self.is_real_user(*index))?;
        self.messages.get(last)?.text()
    }

    /// How the conversation began: everything up to the first message of the user, raw. It stays the same from turn to turn, so
    /// that a conversation can be known again without an id.
    #[must_use]
    pub fn opening(&self) -> &'a [u8] {
        let of_user = self.messages.iter().find(|message| message.role == Role::User);
        let body = self.top.body.as_bytes();
        let last = of_user.or(self.messages.first()).and_then(|message| place(body, message.last?.get()));
        let end = last.map_or(self.start, |value| value.end);
        body.get(self.start..end).unwrap_or_default()
    }

    /// Behind the last message, or where the first one would stand.
    pub(super) fn end_of_messages(&self) -> usize {
        let body = self.top.body.as_bytes();
        let last = self.messages.last().and_then(|message| place(body, message.last?.get()));
        // Behind the last value the message closes.
        last.map_or(self.start, |value| after_spaces(body, value.end)) + 1
    }

    /// A value of the request's `metadata`: a text, or a number or flag as it is written.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        metadata_of(self.raw("metadata")?, key)
    }

    /// Whether this is a message that a user wrote. One that only brings images right after a tool's result is the
    /// result's second half: tool messages cannot carry images.
    pub(super) fn is_real_user(&self, index: usize) -> bool {
        let Some(message) = self.messages.get(index).filter(|message| message.role == Role::User) else {
            return false;
        };
        let before = index.checked_sub(1).and_then(|before| self.messages.get(before));
        let after_result = before.is_some_and(|message| matches!(message.role, Role::Tool | Role::Function));
        let Some(content) = message.content else { return false };
        if content::is_list(content) {
            return !after_result || content::text(content).is_some_and(|text| !text.trim().is_empty());
        }
        !content.get().trim_matches('"').trim().is_empty()
    }
}

/// Whether stream options ask for the usage.
fn includes_usage(raw: &RawValue) -> bool {
    let switch =
        fields(raw).and_then(|fields| fields.into_iter().rev().find(|(name, _)| name == "include_usage"));
    switch.is_some_and(|(_, raw)| raw.get() == "true")
}
