//! Answers that are there at once.

use bytes::Bytes;

use crate::http::flow::Flow;
use crate::reply::{Told, head};
use crate::shared::disclosure::Disclosure;
use crate::shared::story::Story;

/// An error that is there at once.
pub(crate) fn say(told: Told) -> Flow {
    let body = told.body();
    Flow::at_once(told.heading, body)
}

pub(crate) fn say_json(story: &Story, status: u16, body: &serde_json::Value) -> Flow {
    say_bytes(story, status, body.to_string().into())
}

pub(crate) fn say_bytes(story: &Story, status: u16, body: Bytes) -> Flow {
    Flow::at_once(head(status, "application/json", story, &Disclosure::default()), body)
}
