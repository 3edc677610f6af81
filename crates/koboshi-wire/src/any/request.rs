//! A request of any dialect: what the gateway must know of it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::chat::ChatRequest;
use crate::dialect::Dialect;
use crate::form::{Form, GuardCall, Needs, Part, Role};
use crate::gemini::GeminiRequest;
use crate::messages::MessagesRequest;
use crate::numbers;
use crate::responses::ResponsesRequest;
use crate::{IntakeError, chat};

/// A request.
#[derive(Debug)]
pub enum Request<'a> {
    /// Chat completions.
    Chat(ChatRequest<'a>),
    /// Messages.
    Messages(Box<MessagesRequest<'a>>),
    /// Responses.
    Responses(Box<ResponsesRequest<'a>>),
    /// Gemini.
    Gemini(Box<GeminiRequest<'a>>),
}

impl<'a> Request<'a> {
    /// A field of the top level, as it is written.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        match self {
            Self::Chat(request) => request.raw(name),
            Self::Messages(request) => request.raw(name),
            Self::Responses(request) => request.raw(name),
            Self::Gemini(request) => request.raw(name),
        }
    }

    /// Reads a request. `named` is the model in the path and whether a stream is asked for there, as Gemini has it.
    ///
    /// # Errors
    /// What cannot be understood, with its place.
    pub fn parse(
        dialect: Dialect,
        body: &'a [u8],
        named: Option<(&'a str, bool)>,
    ) -> Result<Self, IntakeError> {
        Ok(match dialect {
            Dialect::Chat => Self::Chat(ChatRequest::parse(body)?),
            Dialect::Messages => Self::Messages(Box::new(MessagesRequest::parse(body)?)),
            Dialect::Responses => Self::Responses(Box::new(ResponsesRequest::parse(body)?)),
            Dialect::Gemini => {
                let (model, stream) = named.ok_or(IntakeError::Missing("model"))?;
                Self::Gemini(Box::new(GeminiRequest::parse(model, stream, body)?))
            }
        })
    }

    /// Its dialect.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Chat(_) => Dialect::Chat,
            Self::Messages(_) => Dialect::Messages,
            Self::Responses(_) => Dialect::Responses,
            Self::Gemini(_) => Dialect::Gemini,
        }
    }

    /// The model that is asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        match self {
            Self::Chat(request) => request.model(),
            Self::Messages(request) => request.model(),
            Self::Responses(request) => request.model(),
            Self::Gemini(request) => request.model(),
        }
    }

    /// Whether the answer is to be a stream.
    #[must_use]
    pub fn stream(&self) -> bool {
        match self {
            Self::Chat(request) => request.stream(),
            Self::Messages(request) => request.stream(),
            Self::Responses(request) => request.stream(),
            Self::Gemini(request) => request.stream(),
        }
    }

    /// The request in the internal form; for chat completions it is made each time.
    #[must_use]
    pub fn form(&self) -> Cow<'_, Form<'a>> {
        self.ask(|request| Cow::Owned(request.form()), Cow::Borrowed)
    }

    /// Asks chat completions itself, and of the others the form that was made while reading.
    fn ask<'s, T>(
        &'s self,
        chat: impl FnOnce(&'s ChatRequest<'a>) -> T,
        form: impl FnOnce(&'s Form<'a>) -> T,
    ) -> T {
        match self {
            Self::Chat(request) => chat(request),
            Self::Messages(request) => form(request.form()),
            Self::Responses(request) => form(request.form()),
            Self::Gemini(request) => form(request.form()),
        }
    }

    /// Whether the cost must stand at the end of a stream. All dialects but chat completions always state it.
    #[must_use]
    pub fn include_usage(&self) -> bool {
        self.ask(ChatRequest::include_usage, |_| true)
    }

    /// How many answers are asked for.
    #[must_use]
    pub fn n(&self) -> u32 {
        self.ask(ChatRequest::n, |form| form.sampling.answers.unwrap_or(1))
    }

    /// The most tokens that may come back.
    #[must_use]
    pub fn max_output(&self) -> Option<u64> {
        self.ask(ChatRequest::max_output, |form| form.max_output)
    }

    /// A limit or a level that cannot be understood. A target of the client's own dialect gets it as it is, no other one can.
    #[must_use]
    pub fn unreadable_number(&self) -> Option<IntakeError> {
        self.ask(ChatRequest::unreadable_number, |form| numbers::noted(&form.left))
    }

    /// What a target must be able to do.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.ask(ChatRequest::needs, Form::needs)
    }

    /// Number of the current user turn.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.ask(ChatRequest::turn, Form::turn)
    }

    /// The answered tool calls since the user last wrote, oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<GuardCall<'_>> {
        self.ask(ChatRequest::calls, Form::calls)
    }

    /// What the user wrote last.
    #[must_use]
    pub fn last_user_text(&self) -> Option<Cow<'_, str>> {
        self.ask(ChatRequest::last_user_text, Form::last_user_text)
    }

    /// How the conversation began, raw: it stays the same from turn to turn.
    #[must_use]
    pub fn opening(&self) -> &'a [u8] {
        match self {
            Self::Chat(request) => request.opening(),
            Self::Messages(request) => request.opening(),
            Self::Responses(request) => request.opening(),
            Self::Gemini(request) => request.opening(),
        }
    }

    /// Whether the conversation ends with the result of a tool.
    #[must_use]
    pub fn ends_with_tool_result(&self) -> bool {
        use chat::request::Role::{Function, Tool};
        self.ask(
            |chat| chat.messages().last().is_some_and(|message| matches!(message.role, Tool | Function)),
            |form| {
                let last = form.turns.last();
                last.is_some_and(|turn| turn.parts.iter().any(|part| matches!(part, Part::Outcome(_))))
            },
        )
    }

    /// Whether the model has answered before.
    #[must_use]
    pub fn has_earlier_answer(&self) -> bool {
        self.ask(
            |chat| chat.messages().iter().any(|message| message.role == chat::request::Role::Assistant),
            |form| form.turns.iter().any(|turn| turn.role == Role::Assistant),
        )
    }

    /// A value of the request's metadata.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<String> {
        match self {
            Self::Chat(request) => request.metadata(key),
            Self::Messages(request) => request.metadata(key),
            Self::Responses(request) => request.metadata(key),
            Self::Gemini(request) => request.metadata(key),
        }
    }

    /// Whether tools are offered in the old form of chat completions.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        match self {
            Self::Chat(request) => request.is_legacy(),
            Self::Messages(_) | Self::Responses(_) | Self::Gemini(_) => false,
        }
    }

    /// The field by which the request continues something that only its own provider holds, if it does.
    #[must_use]
    pub fn bound_by(&self) -> Option<&'static str> {
        match self {
            Self::Responses(request) => request.bound_by(),
            Self::Chat(_) | Self::Messages(_) | Self::Gemini(_) => None,
        }
    }

    /// Whether only the provider that holds the conversation can continue it.
    #[must_use]
    pub fn is_bound_to_provider(&self) -> bool {
        match self {
            Self::Responses(request) => request.is_bound_to_provider(),
            Self::Chat(_) | Self::Messages(_) | Self::Gemini(_) => false,
        }
    }

    /// The id of the answer that the request continues, where its provider holds that one.
    #[must_use]
    pub fn previous_answer_id(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Responses(request) => request.previous(),
            Self::Chat(_) | Self::Messages(_) | Self::Gemini(_) => None,
        }
    }

    /// The tools that are offered: their names, and the schemas of their arguments where they have one.
    #[must_use]
    pub fn tools(&self) -> Vec<(Cow<'_, str>, Option<&RawValue>)> {
        match self {
            Self::Chat(request) => request.tools().collect(),
            Self::Messages(request) => {
                request.tools().map(|(name, schema)| (Cow::Borrowed(name), schema)).collect()
            }
            Self::Responses(request) => request.tools().collect(),
            Self::Gemini(request) => {
                request.tools().map(|(name, schema)| (Cow::Borrowed(name), schema)).collect()
            }
        }
    }

    /// The group and the name of a tool whose name is made of both, because a target knows no groups.
    #[must_use]
    pub fn in_group(&self, flat: &str) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        match self {
            Self::Responses(request) => request.in_group(flat),
            Self::Chat(_) | Self::Messages(_) | Self::Gemini(_) => None,
        }
    }

    /// Whether any tool is offered.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        self.ask(|request| request.tools().next().is_some(), |form| !form.tools.is_empty())
    }
}
