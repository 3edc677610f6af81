//! Serves requests with large bodies on cores of their own.
//!
//! A request is parsed and translated in one go, which takes a second for 30 MB: all other clients of that core would wait. So a request with
//! a large body moves to another core as a whole, where it is one future like every other, and its answer comes back through a channel
//! with one place: backpressure still reaches the upstream. The connection stays on its core, and a client that disconnects closes the
//! channel. These cores have a lower priority than the others, so that small requests also go first where processors are few.
//!
//! The bytes that wait to be read are bounded; beyond that a request is refused and may be sent again a moment later.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use koboshi_wire::http1::Heading;
use tokio::sync::{mpsc, watch};

use super::endpoint::Endpoint;
use super::serve_on;
use crate::http::response_future::{ResponseFuture, ResponseSender};
use crate::reply::ErrorReply;
use crate::reply::immediate::immediate_error;
use crate::reply::refusal::Refusal;
use crate::request::generate::{self, Intake, OpenRequest};
use crate::shared::core_state::CoreState;
use crate::shared::large::{LargeCores, QueuePlace};

/// A request for another core.
struct Request {
    intake: Intake,
    endpoint: Endpoint,
    parts_sender: mpsc::Sender<ResponsePart>,
    place: QueuePlace,
}

/// A part of the response.
enum ResponsePart {
    /// A head; pieces follow.
    Head(Heading),
    Piece(Bytes),
    /// A head and all of the body.
    Whole(Heading, Bytes),
}

/// The response to a request with a large body.
pub(crate) fn serve(
    core: &Rc<CoreState>,
    large: &LargeCores,
    intake: Intake,
    endpoint: Endpoint,
    open: OpenRequest,
) -> ResponseFuture {
    let error_reply =
        |refusal: Refusal, intake: &Intake| refusal.reply(&core.state, &intake.plan, &intake.context);
    let Some(place) = large.place(intake.body.len()) else {
        return immediate_error(error_reply(Refusal::busy(), &intake));
    };
    let stopping = error_reply(Refusal::stopping(), &intake);
    let (parts_sender, parts) = mpsc::channel(1);
    let request = Request { intake, endpoint, parts_sender, place };
    large.give(Box::new(move |core, end| Box::pin(work(core, request, end))));
    let core = Rc::clone(core);
    ResponseFuture::of(move |sender| async move {
        let _open = open;
        forward_parts(&core, parts, &sender, stopping).await;
    })
}

/// Forwards the parts from the other core. When the drain time is over, the other core ends the response, except before its first part: it
/// may still be busy with another request's body.
async fn forward_parts(
    core: &CoreState,
    mut parts: mpsc::Receiver<ResponsePart>,
    sender: &ResponseSender,
    stopping: ErrorReply,
) {
    let Some(first) = core.until_end(pin!(parts.recv())).await else {
        return generate::send_error(core, sender, stopping).await;
    };
    let mut next = first;
    while let Some(part) = next {
        match part {
            ResponsePart::Head(heading) => sender.head(heading),
            ResponsePart::Piece(piece) => sender.send(piece).await,
            ResponsePart::Whole(heading, body) => {
                sender.head(heading);
                return sender.send(body).await;
            }
        }
        next = parts.recv().await;
    }
}

/// Serves one request until the response is complete or the client is gone.
async fn work(core: Rc<CoreState>, job: Request, mut end: watch::Receiver<bool>) {
    let Request { intake, endpoint, parts_sender, place } = job;
    let future = serve_on(Rc::clone(&core), intake, endpoint, None);
    let (mut sending, mut gone) = (pin!(send_all(future, &parts_sender)), pin!(parts_sender.closed()));
    let (mut ended, mut place) = (pin!(end.wait_for(|end| *end)), Some(place));
    poll_fn(|context| {
        // The handler of a request checks this when it is woken.
        if !core.connections.are_ending() && ended.as_mut().poll(context).is_ready() {
            core.connections.end();
        }
        if gone.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let done = sending.as_mut().poll(context);
        // The body was read, and the request is on its way: the next one may begin.
        place = None;
        done
    })
    .await;
}

async fn send_all(mut future: ResponseFuture, parts_sender: &mpsc::Sender<ResponsePart>) {
    let heading = future.head().await.unwrap_or_else(|| Heading::of(500));
    if future.length().is_some() {
        let body = poll_fn(|context| future.poll_piece(context)).await.unwrap_or_default();
        let _ = parts_sender.send(ResponsePart::Whole(heading, body)).await;
        return;
    }
    let mut next = Some(ResponsePart::Head(heading));
    while let Some(parts) = next {
        if parts_sender.send(parts).await.is_err() {
            return;
        }
        next = poll_fn(|context| future.poll_piece(context)).await.map(ResponsePart::Piece);
    }
}
