//! A messages request as borrowed data, and its form.
//!
//! Only what the gateway itself must understand is refused, with its place; for the rest the upstream has better words. `max_tokens` may be
//! missing, so that requests to count tokens are read in the same way. The body stays as it is: [`Rewrite`](super::Rewrite) changes
//! it by splices.

use serde_json::value::RawValue;

use super::message::{Message, Role, messages};
use super::read_settings;
use super::read_turns::Reader;
use crate::common::asked_by_form;
use crate::form::Form;
use crate::intake::{Body, IntakeError, metadata_of, stream_of};
use crate::splice::place;

/// A messages request.
///
/// ```
/// use koboshi_wire::messages::MessagesRequest;
///
/// let body = br#"{"model":"claude-sonnet-5","max_tokens":64,"system":"Be brief.","messages":[{"role":"user","content":"Hi"}]}"#;
/// let request = MessagesRequest::parse(body)?;
/// assert_eq!((request.model(), request.stream()), ("claude-sonnet-5", false));
/// assert_eq!(request.form().system, ["Be brief."]);
///
/// let error = MessagesRequest::parse(br#"{"model":"m","messages":[{"content":"Hi"}]}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`messages[0].role` is missing");
/// # Ok::<(), koboshi_wire::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct MessagesRequest<'a> {
    pub(super) body: &'a [u8],
    pub(super) fields: Body<'a>,
    /// The messages as they stand in the body.
    pub(super) list: &'a RawValue,
    pub(super) messages: Vec<Message<'a>>,
    form: Form<'a>,
}

asked_by_form!(MessagesRequest);

impl<'a> MessagesRequest<'a> {
    /// Reads a request, also one to count tokens.
    ///
    /// # Errors
    /// What cannot be understood, with its place.
    pub fn parse(body: &'a [u8]) -> Result<Self, IntakeError> {
        let fields = Body::of(body)?;
        let (model, _) = fields.model()?;
        let list = fields.get("messages").ok_or(IntakeError::Missing("messages"))?;
        let messages = messages(list)?;
        let stream = stream_of(fields.get("stream"))?;
        let mut reader = Reader::default();
        if let Some(system) = fields.get("system") {
            reader.prompt(system, "system");
        }
        for (index, message) in messages.iter().enumerate() {
            reader.message(index, message);
        }
        let Reader { system, turns, left, .. } = reader;
        let mut form = Form { model, stream, system, turns, left, ..Form::default() };
        read_settings::read(&fields.all, &mut form);
        Ok(Self { body, fields, list, messages, form })
    }

    /// A field of the request, raw; `null` counts as absent.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.get(name)
    }

    /// How the conversation began: the messages up to the last text of the first one of the user, raw. It stays the same from turn to turn, so
    /// that a conversation can be known again without an id. What stands behind that text is left out: clients move their
    /// marks for the cache on with every turn.
    #[must_use]
    pub fn opening(&self) -> &'a [u8] {
        let Some(list) = place(self.body, self.list.get()) else { return &[] };
        let of_user = self.messages.iter().find(|message| message.role == Role::User);
        let first = of_user.or(self.messages.first());
        let last = first.and_then(|message| {
            let text = message.blocks().into_iter().rev().find_map(|block| block.text);
            place(self.body, text.or(message.last)?.get())
        });
        let end = last.map_or(list.start, |value| value.end);
        self.body.get(list.start..end).unwrap_or_default()
    }

    /// A value of the request's `metadata`: a text, or a number or flag as it is written.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        metadata_of(self.raw("metadata")?, key)
    }

    /// The tools that are offered: their names, and the schemas of their arguments where they have one. Tools that the vendor runs are not
    /// among them.
    pub fn tools(&self) -> impl Iterator<Item = (&str, Option<&RawValue>)> {
        self.form.names_and_schemas()
    }
}
