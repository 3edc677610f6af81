//! How an answer is written: the vendor's own frames and bodies, dialect by dialect.
//!
//! They are written here and not by `koboshi-wire`, whose writers write what a gateway sends: a simulated vendor sends what the vendor sends (pings, whole
//! response objects, the cost in every chunk, arguments in pieces), and so the tests' readers are not tested against their own writers.

mod chat;
mod gemini;
mod messages;
mod responses;

use koboshi_wire::Dialect;
use serde_json::Value;

use crate::acts::{Act, Head, TokenCount};
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
pub(crate) enum Writer {
    Chat(chat::Writer),
    Messages(messages::Writer),
    Responses(Box<responses::Writer>),
    Gemini(Box<gemini::Writer>),
}

impl Writer {
    /// For a stream. `usage`: the cost is sent apart (chat). `list`: the stream is one JSON list (Gemini).
    pub(crate) fn new(dialect: Dialect, stamp: Stamp, usage: bool, list: bool) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat(chat::Writer::new(&stamp, usage)),
            Dialect::Messages => Self::Messages(messages::Writer::new(stamp)),
            Dialect::Responses => Self::Responses(Box::new(responses::Writer::new(stamp))),
            Dialect::Gemini => Self::Gemini(Box::new(gemini::Writer::new(stamp, list))),
        }
    }

    /// What is sent for an act; empty where the dialect sends nothing for it.
    pub(crate) fn write(&mut self, act: Act) -> String {
        match self {
            Self::Chat(writer) => writer.write(act),
            Self::Messages(writer) => writer.write(act),
            Self::Responses(writer) => writer.write(act),
            Self::Gemini(writer) => writer.write(act),
        }
    }

    /// The error that ends a stream in the middle.
    pub(crate) fn error(&mut self) -> String {
        match self {
            Self::Chat(_) => format!("data: {}\n\n", crate::error::in_band(Dialect::Chat)),
            Self::Messages(_) => {
                format!("event: error\ndata: {}\n\n", crate::error::in_band(Dialect::Messages))
            }
            Self::Responses(writer) => writer.failed(),
            Self::Gemini(writer) => writer.failed(),
        }
    }

    /// What has come of a call that is not whole, where calls come in one piece.
    pub(crate) fn opening(&mut self) -> String {
        match self {
            Self::Gemini(writer) => writer.opening(),
            Self::Chat(_) | Self::Messages(_) | Self::Responses(_) => String::new(),
        }
    }
}

/// All of an answer.
#[derive(Debug, Default)]
pub(crate) struct WholeAnswer {
    /// Text and signature of the thought.
    pub(crate) thought: Option<(String, String)>,
    pub(crate) text: String,
    /// The calls with their arguments.
    pub(crate) calls: Vec<(Head, String)>,
    pub(crate) reason: &'static str,
    pub(crate) tokens: TokenCount,
}

impl WholeAnswer {
    /// Everything, or what comes before the filter, which takes effect after this many pieces of the text.
    pub(crate) fn of(answer: &Answer, filtered: Option<u64>) -> Self {
        let mut whole_answer = Self::default();
        if let Some(thought) = &answer.thought {
            let mut words = String::new();
            for piece in thought.words.clone() {
                whole_answer.tokens.thought = whole_answer.tokens.thought.saturating_add(1);
                words.push_str(&piece);
            }
            whole_answer.thought = Some((words, thought.signature.clone()));
        }
        let max = filtered.map_or(usize::MAX, |after| usize::try_from(after).unwrap_or(usize::MAX));
        let mut speech = answer.speech.clone();
        for piece in speech.by_ref().take(max) {
            whole_answer.tokens.given = whole_answer.tokens.given.saturating_add(1);
            whole_answer.text.push_str(&piece);
        }
        whole_answer.reason = answer.finish(&speech);
        if filtered.is_some() {
            return Self { reason: "content_filter", ..whole_answer };
        }
        for (index, call) in (0..).zip(&answer.calls) {
            whole_answer.tokens.given = whole_answer.tokens.given.saturating_add(call.arguments.len() as u64);
            let head =
                Head { index, id: call.id.clone(), name: call.name.clone(), free_text: call.free_text };
            whole_answer.calls.push((head, call.arguments.concat()));
        }
        whole_answer
    }
}

/// The body of an answer that is no stream.
pub(crate) fn whole(dialect: Dialect, stamp: &Stamp, whole_answer: &WholeAnswer) -> String {
    match dialect {
        Dialect::Chat => chat::whole(stamp, whole_answer),
        Dialect::Messages => messages::whole(stamp, whole_answer),
        Dialect::Responses => responses::whole(stamp, whole_answer),
        Dialect::Gemini => gemini::whole(stamp, whole_answer),
    }
}

/// The body of an answer with nothing in it.
pub(crate) fn empty(dialect: Dialect, stamp: &Stamp) -> String {
    match dialect {
        Dialect::Chat => chat::empty(stamp),
        Dialect::Gemini => gemini::empty(stamp),
        Dialect::Messages | Dialect::Responses => {
            whole(dialect, stamp, &WholeAnswer { reason: "stop", ..WholeAnswer::default() })
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
