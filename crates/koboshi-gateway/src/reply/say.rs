//! Answers that are there at once.

use bytes::Bytes;

use crate::http::response_future::ResponseFuture;
use crate::reply::{Told, head};
use crate::shared::context::RequestContext;
use crate::shared::disclosure::Disclosure;

/// An error that is there at once.
pub(crate) fn say(told: Told) -> ResponseFuture {
    let body = told.body();
    ResponseFuture::at_once(told.heading, body)
}

pub(crate) fn say_json(context: &RequestContext, status: u16, body: &serde_json::Value) -> ResponseFuture {
    say_bytes(context, status, body.to_string().into())
}

pub(crate) fn say_bytes(context: &RequestContext, status: u16, body: Bytes) -> ResponseFuture {
    ResponseFuture::at_once(head(status, "application/json", context, &Disclosure::default()), body)
}
