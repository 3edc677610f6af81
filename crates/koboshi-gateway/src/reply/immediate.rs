//! Complete answers without an attempt.

use bytes::Bytes;

use crate::http::response_future::ResponseFuture;
use crate::reply::{ErrorReply, head};
use crate::shared::context::RequestContext;
use crate::shared::disclosure::Disclosure;

/// An error as a complete answer.
pub(crate) fn immediate_error(reply: ErrorReply) -> ResponseFuture {
    let body = reply.body();
    ResponseFuture::at_once(reply.heading, body)
}

pub(crate) fn immediate_json(
    context: &RequestContext,
    status: u16,
    body: &serde_json::Value,
) -> ResponseFuture {
    immediate_bytes(context, status, body.to_string().into())
}

pub(crate) fn immediate_bytes(context: &RequestContext, status: u16, body: Bytes) -> ResponseFuture {
    ResponseFuture::at_once(head(status, "application/json", context, &Disclosure::default()), body)
}
