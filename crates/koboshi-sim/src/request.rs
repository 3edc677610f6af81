//! A request, as far as the simulated provider reads it: a conversation in no dialect.
//!
//! It is read by `koboshi-wire` into the form that all dialects share, and then put into one form: the texts of one role until another follows are one
//! entry, results of tools come before the user's own text, blank texts and thoughts are left out. A gateway that translates a conversation from one
//! dialect to another may do all of that, and it must stay the same conversation, because the text of the answer is drawn from it.
//!
//! *Not here*: what no answer depends on. An error is a sentence with the name of the field.

use std::borrow::Cow;

use koboshi_wire::any;
use koboshi_wire::form::{self, Form, Output, Thinking, ToolInput, free_text};
use koboshi_wire::{Dialect, IntakeError, gemini};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chance::Fingerprint;
use crate::error::{Problem, excerpt};
use crate::message::{Message, Role, messages};
use crate::play::Ask;

/// A request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    message: Vec<Message<'a>>,
    tools: Vec<form::Tool<'a>>,
    choice: form::Choice<'a>,
    shape: Shape<'a>,
    tokens: u64,
    streams: bool,
    wants_usage: bool,
    max_output: Option<u64>,
    parallel: bool,
    thinks: Thinks,
}

/// Which tools the caller wants called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice<'r> {
    None,
    Auto,
    Required,
    Named(&'r str),
}

/// What the answer must be.
#[derive(Debug, Clone)]
pub(crate) enum Shape<'a> {
    Text,
    Object,
    Schema(Cow<'a, RawValue>),
}

/// What is shown of the thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinks {
    /// The request asks for none.
    No,
    /// The signature alone.
    Silently,
    /// Text and signature.
    Aloud,
}

impl<'a> Request<'a> {
    /// Reads the body of an ask, or what [`with_model`] made of it.
    pub(crate) fn read(ask: &Ask<'a>, body: &'a [u8]) -> Result<Self, BodyError> {
        let named = Some((ask.model, ask.stream.unwrap_or(false)));
        let request = any::Request::parse(ask.dialect, body, named)?;
        if let any::Request::Chat(chat) = &request {
            check(chat)?;
        }
        let form = request.form().into_owned();
        let thinks = thinks(ask.dialect, &form, body);
        let streams = ask.stream.unwrap_or_else(|| request.stream());
        // Calls in the old form are not made: a client that offers `functions` gets text.
        let offers = !request.is_legacy();
        Ok(Self {
            thinks,
            streams,
            wants_usage: request.include_usage(),
            ..Self::of(form, ask.dialect, offers)
        })
    }

    /// Reads what is to be counted.
    pub(crate) fn read_count(ask: &Ask<'a>, body: &'a [u8]) -> Result<Self, BodyError> {
        match ask.dialect {
            Dialect::Gemini => {
                let request = gemini::count::parse(ask.model, body)?;
                Ok(Self::of(request.form().clone(), ask.dialect, true))
            }
            Dialect::Chat | Dialect::Responses | Dialect::Messages => Self::read(ask, body),
        }
    }

    fn of(mut form: Form<'a>, dialect: Dialect, offers: bool) -> Self {
        let shape = match std::mem::take(&mut form.output) {
            Output::Text if dialect.asks_for_json_in_words() => asked_in_words(&mut form.system),
            Output::Text => Shape::Text,
            Output::Json => Shape::Object,
            Output::Schema { schema, .. } => Shape::Schema(schema),
        };
        if !offers {
            form.tools.clear();
        }
        Self {
            tokens: tokens(&form),
            message: messages(form.system, form.turns),
            tools: form.tools,
            choice: form.choice,
            shape,
            streams: form.stream,
            wants_usage: true,
            max_output: form.max_output,
            parallel: form.parallel.unwrap_or(true),
            thinks: Thinks::No,
        }
    }

    pub(crate) fn streams(&self) -> bool {
        self.streams
    }

    pub(crate) fn wants_usage(&self) -> bool {
        self.wants_usage
    }

    /// How many tokens the answer may have.
    pub(crate) fn max_output(&self) -> Option<u64> {
        self.max_output
    }

    pub(crate) fn parallel(&self) -> bool {
        self.parallel
    }

    pub(crate) fn thinks(&self) -> Thinks {
        self.thinks
    }

    pub(crate) fn tools(&self) -> &[form::Tool<'a>] {
        &self.tools
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&form::Tool<'a>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(crate) fn choice(&self) -> Choice<'_> {
        match &self.choice {
            _ if self.tools.is_empty() => Choice::None,
            form::Choice::Never => Choice::None,
            form::Choice::Any => Choice::Required,
            form::Choice::Tool(name) => Choice::Named(name),
            form::Choice::Unspecified | form::Choice::Auto => Choice::Auto,
        }
    }

    pub(crate) fn shape(&self) -> &Shape<'a> {
        &self.shape
    }

    /// The text with which the conversation ends, if it is the assistant's: the answer continues it.
    pub(crate) fn prefill(&self) -> Option<String> {
        let last = self.message.last()?;
        (last.role == Role::Assistant && last.calls.is_empty()).then(|| last.texts.concat())
    }

    /// Without the text to be continued.
    pub(crate) fn conversation(&self) -> &[Message<'a>] {
        match self.message.split_last() {
            Some((_, before)) if self.prefill().is_some() => before,
            _ => &self.message,
        }
    }

    /// What the text of the answer depends on.
    pub(crate) fn print(&self) -> Fingerprint {
        self.conversation().iter().fold(Fingerprint::new(), |print, message| {
            let print = print.add(message.role.name()).add(&message.text());
            message.calls.iter().fold(print, |print, call| print.add(&call.name).add(&arguments(call)))
        })
    }

    /// About how many tokens the conversation has: four bytes each.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    fn last_of_user(&self) -> Option<&Message<'a>> {
        self.message.iter().rev().find(|message| message.role == Role::User)
    }

    pub(crate) fn last_user(&self) -> Cow<'_, str> {
        self.last_of_user().map_or(Cow::Borrowed(""), Message::text)
    }

    /// A user has asked, and waits for text or calls.
    pub(crate) fn is_asked(&self) -> bool {
        self.message.last().is_some_and(|last| last.role == Role::User)
    }

    /// How many images and files came with the user's question.
    pub(crate) fn pictures(&self) -> usize {
        self.conversation().last().filter(|last| last.role == Role::User).map_or(0, |last| last.pictures)
    }

    /// Nothing was answered in this conversation yet.
    pub(crate) fn is_first_ask(&self) -> bool {
        !self.conversation().iter().any(|message| message.role == Role::Assistant)
    }
}

/// The arguments of an earlier call as every dialect can write them: on one line, and free text as the object that stands for it elsewhere.
fn arguments<'c>(call: &'c form::Call<'_>) -> Cow<'c, str> {
    if call.free_text {
        return Cow::Owned(free_text::wrapped(&call.arguments));
    }
    let text = call.arguments.trim();
    if text.contains(['\n', '\r']) {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It does not name its model, which the ask names apart.
    NoModel,
    /// It is wrong.
    InvalidName(Problem),
}

impl From<IntakeError> for BodyError {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::Missing("model") => Self::NoModel,
            error => {
                let why = excerpt(&error.to_string(), 200);
                let says = format!("We could not parse the JSON body of your request: {why}.");
                Self::InvalidName(Problem::Request { says, param: error.param().map(Cow::into_owned) })
            }
        }
    }
}

/// A body that does not name its model, with one. The ask names the model apart, so nothing depends on it.
pub(crate) fn with_model(body: &[u8]) -> Vec<u8> {
    let inside = body.trim_ascii().strip_prefix(b"{").unwrap_or_default();
    let comma: &[u8] = if inside.trim_ascii_start().starts_with(b"}") { b"" } else { b"," };
    [b"{\"model\":\"sim\"", comma, inside].concat()
}

/// What OpenAI refuses and a gateway would let pass.
fn check(chat: &koboshi_wire::chat::ChatRequest<'_>) -> Result<(), BodyError> {
    let wrong = |says: &str, param: &str| {
        Err(BodyError::InvalidName(Problem::Request { says: says.to_owned(), param: Some(param.to_owned()) }))
    };
    if chat.messages().is_empty() {
        return wrong(
            "Invalid 'messages': empty array. Expected an array with minimum length 1.",
            "messages",
        );
    }
    if chat.n() != 1 {
        return wrong("Invalid 'n': the simulated provider gives one choice.", "n");
    }
    let mut contents = chat.messages().iter().filter_map(|message| message.content);
    if contents.any(|raw| !raw.get().starts_with(['"', '['])) {
        return wrong("Invalid 'content': expected a string, a list of parts or null.", "messages");
    }
    Ok(())
}

/// About how many tokens there are: four bytes each, and some for each message and tool.
fn tokens(form: &Form<'_>) -> u64 {
    let system: usize = form.system.iter().map(|text| text.len() / 4 + 4).sum();
    let turns: usize = form.turns.iter().map(tokens_of).sum();
    let schema = |tool: &form::Tool<'_>| match &tool.input {
        ToolInput::Schema(Some(schema)) => schema.get().len(),
        ToolInput::Schema(None) | ToolInput::FreeText => 0,
    };
    let tools: usize = form.tools.iter().map(|tool| (tool.name.len() + schema(tool)) / 4 + 8).sum();
    let all = system.saturating_add(turns).saturating_add(tools);
    u64::try_from(all).unwrap_or(u64::MAX).saturating_add(3)
}

fn tokens_of(turn: &form::Turn<'_>) -> usize {
    let (mut results, mut spoken, mut speaks) = (0, 0, turn.parts.is_empty());
    for part in &turn.parts {
        match part {
            form::Part::Outcome(outcome) => {
                let texts = outcome
                    .parts
                    .iter()
                    .map(|part| if let form::Part::Text(text) = part { text.len() } else { 0 });
                results += texts.sum::<usize>() / 4 + 4;
            }
            form::Part::Text(text) => (spoken, speaks) = (spoken + text.len(), true),
            _ => speaks = true,
        }
    }
    results + if speaks { spoken / 4 + 4 } else { 0 }
}

/// A dialect without a field for the form of an answer asks for it in the prompt, and a real model follows that. It is the last system text, and no part
/// of the conversation.
fn asked_in_words<'a>(system: &mut Vec<Cow<'a, str>>) -> Shape<'a> {
    const OBJECT: &str = "Answer with one JSON object and nothing else.";
    const SCHEMA: &str = "Answer with one JSON value that follows this JSON schema, and nothing else:";
    let shape = match system.last() {
        Some(last) if last.trim() == OBJECT => Shape::Object,
        Some(last) => {
            match last.strip_prefix(SCHEMA).map(|schema| RawValue::from_string(schema.trim().to_owned())) {
                Some(Ok(schema)) => Shape::Schema(Cow::Owned(schema)),
                _ => return Shape::Text,
            }
        }
        None => return Shape::Text,
    };
    system.pop();
    shape
}

fn thinks(dialect: Dialect, form: &Form<'_>, body: &[u8]) -> Thinks {
    let asked = match form.thinking {
        Thinking::Unspecified | Thinking::Off | Thinking::Budget(0) => false,
        Thinking::Adaptive | Thinking::Effort(_) | Thinking::Budget(_) => true,
    };
    let is_left = |rule: &str| form.left.iter().any(|left| left.rule == rule);
    let shown = match dialect {
        // OpenAI does not show it there.
        Dialect::Chat => return Thinks::No,
        Dialect::Messages => true,
        Dialect::Responses => is_left("drop_summary"),
        Dialect::Gemini => includes_thoughts(body),
    };
    match (asked || is_left("drop_include_thoughts"), shown) {
        (false, _) => Thinks::No,
        (true, false) => Thinks::Silently,
        (true, true) => Thinks::Aloud,
    }
}

/// Whether a Gemini request wants to see the thoughts: the form has no place for that.
fn includes_thoughts(body: &[u8]) -> bool {
    let of = |value: &Value, camel: &str, snake: &str| value.get(camel).or_else(|| value.get(snake)).cloned();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let config = of(&body, "generationConfig", "generation_config").unwrap_or_default();
    let thinking = of(&config, "thinkingConfig", "thinking_config").unwrap_or_default();
    of(&thinking, "includeThoughts", "include_thoughts") == Some(Value::Bool(true))
}

/// A schema, read; one that is nested too deeply is none.
pub(crate) fn parsed(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null)
}
