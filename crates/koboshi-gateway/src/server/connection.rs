//! Serves one connection: requests come in, answers go out, one after the other.
//!
//! Nothing here decides what is answered. A request's body is read only when somebody wants it, and an answer is written as it is made: what
//! the client does not take holds back whoever makes it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Method, Version};

use crate::edge;
use crate::http::client::Connection;
use crate::http::exchange::{Request, Response};
use crate::http::response_future::ResponseFuture;
use crate::shared::core_state::CoreState;
use koboshi_wire::http1::Heading;
use koboshi_wire::http1::head::Head;
use koboshi_wire::http1::out::{self, AnswerBody, CHUNK_END, LAST_CHUNK};

/// So much is put together before it is sent; a larger piece is not copied.
const ENOUGH: usize = 16 * 1024;

/// Serves a connection until it ends or its client is gone.
pub(crate) async fn connection(core: Rc<CoreState>, connection: Connection, peer: SocketAddr) {
    let mut conversation = pin!(converse(&core, &connection, peer));
    poll_fn(|context| {
        connection.belongs_to(context.waker());
        if connection.is_gone() {
            return Poll::Ready(());
        }
        // How a client's connection ended is the client's business.
        conversation.as_mut().poll(context).map(drop)
    })
    .await;
}

async fn converse(core: &Rc<CoreState>, connection: &Connection, peer: SocketAddr) -> io::Result<()> {
    loop {
        let head = match poll_fn(|context| connection.poll_head(context)).await? {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(()),
            Err(refused) => {
                let text = out::refusal(refused.status, refused.message, &connection.date());
                let mut rest = VecDeque::from([Bytes::from(text)]);
                poll_fn(|context| poll_rest(connection, &mut rest, context)).await?;
                return connection.leave().await;
            }
        };
        connection.asked(&head);
        let request = Request { head, connection: connection.clone() };
        let taken = edge::take(core, peer, &request).await;
        let asked = Asked::of(&request.head);
        // Its head may be large, and the answer may take long.
        drop(request);
        let response = taken.begun().await;
        connection.answers();
        let mut sending = Sending::of(connection, response, asked);
        poll_fn(|context| sending.poll(context)).await?;
        if !sending.stays {
            return connection.leave().await;
        }
        drop(sending);
        connection.finished();
    }
}

/// What the answer must know of the request.
#[derive(Clone, Copy)]
struct Asked {
    version: Version,
    /// Another request may follow.
    stays: bool,
    /// Only the head is wanted.
    only_head: bool,
}

impl Asked {
    fn of(head: &Head) -> Self {
        Self { version: head.version, stays: head.stays, only_head: head.method == Method::HEAD }
    }
}

/// An answer on its way out.
struct Sending<'l> {
    connection: &'l Connection,
    version: Version,
    /// The head, until it was written.
    head: Option<Heading>,
    /// What makes the body, until it has ended.
    future: Option<ResponseFuture>,
    going: AnswerBody,
    /// Another request may follow.
    stays: bool,
    /// What the client has not taken yet.
    rest: VecDeque<Bytes>,
}

impl<'l> Sending<'l> {
    fn of(connection: &'l Connection, response: Response, asked: Asked) -> Self {
        let Response { heading, future } = response;
        let going = AnswerBody::of(asked.version, heading.status, future.length());
        Self {
            connection,
            version: asked.version,
            future: Some(future).filter(|_| !asked.only_head && going != AnswerBody::Never),
            going,
            stays: asked.stays && going != AnswerBody::UntilEnd && connection.may_stay(),
            head: Some(heading),
            rest: VecDeque::new(),
        }
    }

    /// Sends until all is out, the client takes no more, or there is nothing to send for now.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(poll_rest(self.connection, &mut self.rest, context))?;
            if self.head.is_none() && self.future.is_none() {
                return Poll::Ready(Ok(()));
            }
            let mut text = self.connection.take_room();
            let (large, waits) = self.gather(&mut text, context);
            let written = self.write(&text, large, context);
            self.connection.give_room(text);
            written?;
            if waits && self.rest.is_empty() {
                return Poll::Pending;
            }
        }
    }

    /// Puts together what there is. A large piece stays apart, and is the last. The flag says that more will come later.
    fn gather(&mut self, text: &mut Vec<u8>, context: &mut Context<'_>) -> (Option<Bytes>, bool) {
        if let Some(heading) = self.head.take() {
            out::head(text, self.version, &heading, self.going, self.stays, &self.connection.date());
        }
        while text.len() < ENOUGH {
            let Some(future) = &mut self.future else { return (None, false) };
            match future.poll_piece(context) {
                Poll::Pending => return (None, true),
                Poll::Ready(None) => {
                    self.future = None;
                    if self.going == AnswerBody::Chunked {
                        text.extend_from_slice(LAST_CHUNK);
                    }
                }
                Poll::Ready(Some(piece)) => {
                    let is_chunk = self.going == AnswerBody::Chunked;
                    if is_chunk {
                        out::chunk(text, piece.len());
                    }
                    if piece.len() > ENOUGH {
                        return (Some(piece), false);
                    }
                    text.extend_from_slice(&piece);
                    if is_chunk {
                        text.extend_from_slice(CHUNK_END);
                    }
                }
            }
        }
        (None, false)
    }

    /// Sends this; what the client does not take at once is kept.
    fn write(&mut self, text: &[u8], large: Option<Bytes>, context: &mut Context<'_>) -> io::Result<()> {
        let large = large.unwrap_or_default();
        let end = if self.going == AnswerBody::Chunked && !large.is_empty() { CHUNK_END } else { b"" };
        let pieces = [IoSlice::new(text), IoSlice::new(&large), IoSlice::new(end)];
        let mut sent = match self
            .connection
            .poll_write(context, if large.is_empty() { &pieces[..1] } else { &pieces })
        {
            Poll::Pending => 0,
            Poll::Ready(sent) => sent?,
        };
        let mut keep = |length: usize, make: &dyn Fn(usize) -> Bytes| {
            let passed = sent.min(length);
            sent -= passed;
            if passed < length {
                self.rest.push_back(make(passed));
            }
        };
        keep(text.len(), &|from| Bytes::copy_from_slice(text.get(from..).unwrap_or_default()));
        keep(large.len(), &|from| large.slice(from..));
        keep(end.len(), &|from| Bytes::from_static(end.get(from..).unwrap_or_default()));
        Ok(())
    }
}

/// Sends what was kept.
fn poll_rest(
    connection: &Connection,
    rest: &mut VecDeque<Bytes>,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while let Some(piece) = rest.front_mut() {
        let sent = ready!(connection.poll_write(context, &[IoSlice::new(piece)]))?;
        piece.advance(sent.min(piece.len()));
        if piece.is_empty() {
            rest.pop_front();
        }
    }
    Poll::Ready(Ok(()))
}
