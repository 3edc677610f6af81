//! Our own frames, in any dialect.

use bytes::Bytes;
use serde_json::Value;

use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::step::{Step, Usage};
use crate::writer::{Head, WholeCall};
use crate::{chat, gemini, messages, responses};

/// How a client wants its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamOptions {
    /// Its dialect.
    pub dialect: Dialect,
    /// The upstream is of the same vendor: its signatures are forwarded.
    pub forward_signatures: bool,
    /// Chat: the cost comes at the end.
    pub include_usage: bool,
    /// Chat: calls go out in the old form.
    pub legacy: bool,
    /// A silent stream is kept open by frames: for clients that stumble over comments and empty lines.
    pub frames_only: bool,
    /// Gemini: the stream is one JSON list.
    pub list: bool,
}

/// Writes the frames of one stream.
#[derive(Debug)]
pub enum Writer {
    /// Chat completions.
    Chat(chat::writer::Writer),
    /// Messages.
    Messages(Box<messages::writer::Writer>),
    /// Responses.
    Responses(Box<responses::Writer>),
    /// Gemini.
    Gemini(Box<gemini::writer::Writer>),
}

macro_rules! each {
    ($self:ident, $writer:ident => $call:expr) => {
        match $self {
            Self::Chat($writer) => $call,
            Self::Messages($writer) => $call,
            Self::Responses($writer) => $call,
            Self::Gemini($writer) => $call,
        }
    };
}

impl Writer {
    /// For a stream with these names.
    #[must_use]
    pub fn new(head: Head, manner: StreamOptions) -> Self {
        let StreamOptions { dialect, forward_signatures, include_usage, legacy, frames_only, list } = manner;
        match dialect {
            Dialect::Chat => Self::Chat(
                chat::writer::Writer::new(head, forward_signatures)
                    .include_usage(include_usage)
                    .legacy(legacy)
                    .frames_only(frames_only),
            ),
            Dialect::Messages => {
                Self::Messages(Box::new(messages::writer::Writer::new(head, forward_signatures)))
            }
            Dialect::Responses => Self::Responses(Box::new(responses::Writer::new(head, forward_signatures))),
            Dialect::Gemini => {
                let shape = if list { gemini::writer::Shape::List } else { gemini::writer::Shape::Events };
                let alive =
                    if frames_only { gemini::writer::Alive::Chunk } else { gemini::writer::Alive::Line };
                let writer = gemini::writer::Writer::new(head, forward_signatures).shaped(shape).alive(alive);
                Self::Gemini(Box::new(writer))
            }
        }
    }

    /// Whether signatures go along from here on: another upstream may answer, of the same vendor or not.
    pub fn forward_signatures(&mut self, keep: bool) {
        match self {
            // Chat completions has no signatures.
            Self::Chat(_) => {}
            Self::Messages(writer) => writer.forward_signatures(keep),
            Self::Responses(writer) => writer.forward_signatures(keep),
            Self::Gemini(writer) => writer.forward_signatures(keep),
        }
    }

    /// A frame of the upstream with this step went to the client as it was.
    pub fn passed(&mut self, step: &Step<'_>) {
        each!(self, writer => writer.passed(step));
    }

    /// An upstream's frame with this step, its data unchanged, in the form of this client's stream. It counts as passed. Only Gemini's
    /// streams have more forms than one.
    pub fn pass(&mut self, step: &Step<'_>, data: &str) -> Bytes {
        match self {
            Self::Gemini(writer) => writer.pass(step, data),
            Self::Chat(_) | Self::Messages(_) | Self::Responses(_) => {
                self.passed(step);
                Bytes::copy_from_slice(data.as_bytes())
            }
        }
    }

    /// What stands before content. Nothing if it is open.
    pub fn open(&mut self, koboshi: Option<&Value>) -> Bytes {
        each!(self, writer => writer.open(koboshi))
    }

    /// Text, thinking, signature and refusal of a step of any dialect; never its calls, its end or its cost.
    pub fn write_step(&mut self, step: &Step<'_>) -> Bytes {
        each!(self, writer => writer.write_step(step))
    }

    /// Whole tool calls.
    pub fn calls(&mut self, calls: &[WholeCall<'_>]) -> Bytes {
        each!(self, writer => writer.calls(calls))
    }

    /// The end of the answer and the terminal mark.
    pub fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        each!(self, writer => writer.finish(reason, usage))
    }

    /// The error that ends a stream. Nothing comes after it.
    pub fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        each!(self, writer => writer.error(failure))
    }

    /// Keeps a silent stream open.
    pub fn keep_alive(&mut self) -> Bytes {
        each!(self, writer => writer.keep_alive())
    }
}
