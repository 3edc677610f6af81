//! Requests with large bodies are served by cores of their own.
//!
//! A request is read and translated in one go, and 30 MB take a second of it: all other clients of that core would wait. So a request with a large
//! body goes to another core as a whole, where it is one future like every other, and what it says comes back through a channel
//! with one place: the client's slowness still reaches the upstream. The connection stays where it is, and a client that goes away closes the
//! channel. These cores have a lower priority than the others, so that small requests also go first where processors are few.
//!
//! What waits to be read is bounded in bytes; beyond that a request is refused and may be sent again a moment later.

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
use crate::shared::large::{Large, Place};

/// A body above this is large.
pub(crate) const LARGE: usize = 1024 * 1024;

/// A request for another core.
struct Request {
    intake: Intake,
    endpoint: Endpoint,
    parts_sender: mpsc::Sender<ResponsePart>,
    place: Place,
}

/// What is said to the client.
enum ResponsePart {
    /// A head; pieces follow.
    Head(Heading),
    Piece(Bytes),
    /// A head and all of the body.
    Whole(Heading, Bytes),
}

/// What answers a request with a large body.
pub(crate) fn serve(
    core: &Rc<CoreState>,
    large: &Large,
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

/// Passes on what the other core says. It is the other core that tells the client when the drain time is over, except where nothing was said yet:
/// it may be busy with the body of somebody else.
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

/// Serves one request until all was said or the client is gone.
async fn work(core: Rc<CoreState>, job: Request, mut end: watch::Receiver<bool>) {
    let Request { intake, endpoint, parts_sender, place } = job;
    let future = serve_on(Rc::clone(&core), intake, endpoint, None);
    let (mut sending, mut gone) = (pin!(send_all(future, &parts_sender)), pin!(parts_sender.closed()));
    let (mut ended, mut place) = (pin!(end.wait_for(|end| *end)), Some(place));
    poll_fn(|context| {
        // Whoever serves a request looks at this when it is woken.
        if !core.connections.are_ending() && ended.as_mut().poll(context).is_ready() {
            core.connections.end();
        }
        if gone.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let done = sending.as_mut().poll(context);
        // It was read, and is on its way: others have their turn.
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
