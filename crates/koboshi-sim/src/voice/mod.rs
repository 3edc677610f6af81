//! How an answer is written: the vendor's own frames and bodies, dialect by dialect.
//!
//! They are written here and not by `koboshi-wire`, whose writers speak as a gateway: a simulated vendor sends what the vendor sends (pings, whole
//! response objects, the cost in every chunk, arguments in pieces), and what reads it in the tests did not write it.

mod chat;
mod gemini;
mod messages;
mod responses;

use koboshi_wire::Dialect;
use serde_json::Value;

use crate::acts::{Act, Head, Spent};
use crate::answer::Answer;

/// What every piece of an answer carries.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: i64,
    /// Tokens of the conversation.
    pub(crate) prompt: u64,
}

/// Writes the frames of a stream.
#[derive(Debug)]
pub(crate) enum Voice {
    Chat(chat::Voice),
    Messages(messages::Voice),
    Responses(Box<responses::Voice>),
    Gemini(Box<gemini::Voice>),
}

impl Voice {
    /// For a stream. `usage`: the cost is said apart (chat). `list`: the stream is one JSON list (Gemini).
    pub(crate) fn new(dialect: Dialect, stamp: Stamp, usage: bool, list: bool) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat(chat::Voice::new(&stamp, usage)),
            Dialect::Messages => Self::Messages(messages::Voice::new(stamp)),
            Dialect::Responses => Self::Responses(Box::new(responses::Voice::new(stamp))),
            Dialect::Gemini => Self::Gemini(Box::new(gemini::Voice::new(stamp, list))),
        }
    }

    /// What is sent for an act; empty where the dialect has nothing to say to it.
    pub(crate) fn say(&mut self, act: Act) -> String {
        match self {
            Self::Chat(voice) => voice.say(act),
            Self::Messages(voice) => voice.say(act),
            Self::Responses(voice) => voice.say(act),
            Self::Gemini(voice) => voice.say(act),
        }
    }

    /// The error that ends a stream in the middle.
    pub(crate) fn error(&mut self) -> String {
        match self {
            Self::Chat(_) => format!("data: {}\n\n", crate::error::in_band(Dialect::Chat)),
            Self::Messages(_) => {
                format!("event: error\ndata: {}\n\n", crate::error::in_band(Dialect::Messages))
            }
            Self::Responses(voice) => voice.failed(),
            Self::Gemini(voice) => voice.failed(),
        }
    }

    /// What has come of a call that is not whole, where calls come in one piece.
    pub(crate) fn begun(&mut self) -> String {
        match self {
            Self::Gemini(voice) => voice.begun(),
            _ => String::new(),
        }
    }
}

/// All of an answer.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Words and seal of the thought.
    pub(crate) thought: Option<(String, String)>,
    pub(crate) text: String,
    /// The calls with their arguments.
    pub(crate) calls: Vec<(Head, String)>,
    pub(crate) reason: &'static str,
    pub(crate) spent: Spent,
}

impl Told {
    /// Everything, or what comes before the filter, which takes effect after so many pieces of the words.
    pub(crate) fn of(answer: &Answer, filtered: Option<u64>) -> Self {
        let mut told = Self::default();
        if let Some(thought) = &answer.thought {
            let mut words = String::new();
            for piece in thought.words.clone() {
                told.spent.thought = told.spent.thought.saturating_add(1);
                words.push_str(&piece);
            }
            told.thought = Some((words, thought.seal.clone()));
        }
        let most = filtered.map_or(usize::MAX, |after| usize::try_from(after).unwrap_or(usize::MAX));
        let mut speech = answer.speech.clone();
        for piece in speech.by_ref().take(most) {
            told.spent.given = told.spent.given.saturating_add(1);
            told.text.push_str(&piece);
        }
        told.reason = answer.finish(&speech);
        if filtered.is_some() {
            return Self { reason: "content_filter", ..told };
        }
        for (index, call) in (0..).zip(&answer.calls) {
            told.spent.given = told.spent.given.saturating_add(call.arguments.len() as u64);
            let head =
                Head { index, id: call.id.clone(), name: call.name.clone(), free_text: call.free_text };
            told.calls.push((head, call.arguments.concat()));
        }
        told
    }
}

/// The body of an answer that is no stream.
pub(crate) fn whole(dialect: Dialect, stamp: &Stamp, told: &Told) -> String {
    match dialect {
        Dialect::Chat => chat::whole(stamp, told),
        Dialect::Messages => messages::whole(stamp, told),
        Dialect::Responses => responses::whole(stamp, told),
        Dialect::Gemini => gemini::whole(stamp, told),
    }
}

/// The body of an answer with nothing in it.
pub(crate) fn empty(dialect: Dialect, stamp: &Stamp) -> String {
    match dialect {
        Dialect::Chat => chat::empty(stamp),
        Dialect::Gemini => gemini::empty(stamp),
        Dialect::Messages | Dialect::Responses => {
            whole(dialect, stamp, &Told { reason: "stop", ..Told::default() })
        }
    }
}

/// The body of an answer that has an error in it.
pub(crate) fn failed(dialect: Dialect, stamp: &Stamp) -> String {
    match dialect {
        Dialect::Responses => responses::failed(stamp),
        other => crate::error::in_band(other).to_string(),
    }
}

/// An object with one more field.
fn with(mut object: Value, name: &str, field: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert(name.to_owned(), field);
    }
    object
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
