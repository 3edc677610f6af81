//! What the frames of a stream say, in any dialect.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::sse::Frame;
use crate::step::Step;
use crate::{Malformed, chat, gemini, messages, responses};

/// Reads the stream of an upstream.
#[derive(Debug)]
pub enum Events {
    /// Chat completions; every frame speaks for itself.
    Chat,
    /// Messages.
    Messages(Box<messages::event::Events>),
    /// Responses.
    Responses(Box<responses::Events>),
    /// Gemini.
    Gemini(Box<gemini::event::Events>),
}

impl Events {
    /// For a stream of this dialect.
    #[must_use]
    pub fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat,
            Dialect::Messages => Self::Messages(Box::default()),
            Dialect::Responses => Self::Responses(Box::default()),
            Dialect::Gemini => Self::Gemini(Box::default()),
        }
    }

    /// The data of a frame; none where it has none. Gemini sends errors without the name of a field before them.
    ///
    /// # Errors
    /// It is no text.
    pub fn data<'f>(&self, frame: &'f Frame) -> Result<Option<Cow<'f, str>>, Malformed> {
        match self {
            Self::Gemini(_) => gemini::event::data(frame),
            Self::Chat | Self::Messages(_) | Self::Responses(_) => frame.data(),
        }
    }

    /// What this data says.
    ///
    /// # Errors
    /// It is not what the dialect says.
    pub fn read<'a>(&mut self, event: Option<&str>, data: &'a str) -> Result<Step<'a>, Malformed> {
        match self {
            Self::Chat => chat::event::read(data),
            Self::Messages(events) => events.read(event, data),
            Self::Responses(events) => events.read(event, data),
            Self::Gemini(events) => events.read(event, data),
        }
    }
}
