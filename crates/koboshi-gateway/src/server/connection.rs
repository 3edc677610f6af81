//! Serves one connection: reads requests and writes answers, one after the other.
//!
//! It does not decide about answers. A request's body is read only when its handler wants it, and an answer is written as it is made: a slow
//! client slows its source down.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Method, Version};

use crate::edge;
use crate::http::client::Connection;
use crate::http::exchange::{Request, Response};
use crate::http::response_future::ResponseFuture;
use crate::session;
use crate::shared::core_state::CoreState;
use crate::shared::panics::caught;
use koboshi_wire::http1::Heading;
use koboshi_wire::http1::head::Head;
use koboshi_wire::http1::out::{self, AnswerBody, CHUNK_END, LAST_CHUNK};

/// How much is joined before it is sent; a larger piece is not copied.
const MAX_JOINED: usize = 16 * 1024;

/// Serves a connection until it ends or its client is gone.
pub(crate) async fn connection(core: Rc<CoreState>, connection: Connection, peer: IpAddr) {
    let mut requests = pin!(serve_requests(&core, &connection, peer));
    poll_fn(|context| {
        connection.register_waker(context.waker());
        if connection.is_gone() {
            return Poll::Ready(());
        }
        // The end of a client's connection, good or bad, is no error of ours. A panic is: it costs this connection, and the log says so.
        let polled = caught(&core.state.log, "a request failed, and its connection is closed", || {
            requests.as_mut().poll(context)
        });
        polled.map_or(Poll::Ready(()), |polled| polled.map(drop))
    })
    .await;
}

async fn serve_requests(core: &Rc<CoreState>, connection: &Connection, peer: IpAddr) -> io::Result<()> {
    loop {
        let head = match poll_fn(|context| connection.poll_head(context)).await? {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(()),
            Err(refused) => {
                let text = out::refusal(refused.status, refused.message, &connection.date());
                let mut unsent = VecDeque::from([Bytes::from(text)]);
                poll_fn(|context| poll_unsent(connection, &mut unsent, context)).await?;
                return connection.linger_and_close().await;
            }
        };
        connection.request_began(&head);
        let request = Request { head, connection: connection.clone() };
        let mut pending = edge::accept(core, peer, &request).await;
        if let Some(upgrade) = pending.take_upgrade() {
            drop(request);
            connection.answer_began();
            let mut unsent = VecDeque::from([Bytes::from(upgrade.answer())]);
            poll_fn(|context| poll_unsent(connection, &mut unsent, context)).await?;
            // Boxed: a session needs more memory than a stream, and most connections never have one.
            Box::pin(session::connection::serve(core, connection.clone(), *upgrade)).await;
            return Ok(());
        }
        let request_facts = RequestFacts::of(&request.head);
        // Its head may be large, and the answer may take long.
        drop(request);
        let response = pending.response().await;
        connection.answer_began();
        let mut outgoing = OutgoingAnswer::of(connection, response, request_facts);
        poll_fn(|context| outgoing.poll(context)).await?;
        if !outgoing.keeps_alive {
            return connection.linger_and_close().await;
        }
        drop(outgoing);
        connection.answer_ended();
    }
}

/// What the answer needs to know of the request.
#[derive(Clone, Copy)]
struct RequestFacts {
    version: Version,
    /// Whether another request may follow.
    keeps_alive: bool,
    /// Whether only the head is wanted.
    only_head: bool,
}

impl RequestFacts {
    fn of(head: &Head) -> Self {
        Self { version: head.version, keeps_alive: head.stays, only_head: head.method == Method::HEAD }
    }
}

/// An answer on its way out.
struct OutgoingAnswer<'l> {
    connection: &'l Connection,
    version: Version,
    /// The head, until it is written.
    head: Option<Heading>,
    /// The source of the body, until it has ended.
    future: Option<ResponseFuture>,
    framing: AnswerBody,
    /// Whether another request may follow.
    keeps_alive: bool,
    /// What the client has not accepted yet.
    unsent: VecDeque<Bytes>,
}

impl<'l> OutgoingAnswer<'l> {
    fn of(connection: &'l Connection, response: Response, request_facts: RequestFacts) -> Self {
        let Response { heading, future } = response;
        let framing = AnswerBody::of(request_facts.version, heading.status, future.length());
        Self {
            connection,
            version: request_facts.version,
            future: Some(future).filter(|_| !request_facts.only_head && framing != AnswerBody::Never),
            framing,
            keeps_alive: request_facts.keeps_alive
                && framing != AnswerBody::UntilEnd
                && connection.may_keep_alive(),
            head: Some(heading),
            unsent: VecDeque::new(),
        }
    }

    /// Sends until all is sent, the client accepts no more, or there is nothing to send for now.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(poll_unsent(self.connection, &mut self.unsent, context))?;
            if self.head.is_none() && self.future.is_none() {
                return Poll::Ready(Ok(()));
            }
            let mut text = self.connection.take_write_buffer();
            let (large, waits) = self.gather(&mut text, context);
            let written = self.write(&text, large, context);
            self.connection.return_write_buffer(text);
            written?;
            if waits && self.unsent.is_empty() {
                return Poll::Pending;
            }
        }
    }

    /// Joins what there is. A large piece stays apart, and is the last. The flag says that more will come later.
    fn gather(&mut self, text: &mut Vec<u8>, context: &mut Context<'_>) -> (Option<Bytes>, bool) {
        if let Some(heading) = self.head.take() {
            out::head(text, self.version, &heading, self.framing, self.keeps_alive, &self.connection.date());
        }
        while text.len() < MAX_JOINED {
            let Some(future) = &mut self.future else { return (None, false) };
            match future.poll_piece(context) {
                Poll::Pending => return (None, true),
                Poll::Ready(None) => {
                    self.future = None;
                    if self.framing == AnswerBody::Chunked {
                        text.extend_from_slice(LAST_CHUNK);
                    }
                }
                Poll::Ready(Some(piece)) => {
                    let is_chunk = self.framing == AnswerBody::Chunked;
                    if is_chunk {
                        out::chunk(text, piece.len());
                    }
                    if piece.len() > MAX_JOINED {
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

    /// Sends this; what the client does not accept at once is kept.
    fn write(&mut self, text: &[u8], large: Option<Bytes>, context: &mut Context<'_>) -> io::Result<()> {
        let large = large.unwrap_or_default();
        let end = if self.framing == AnswerBody::Chunked && !large.is_empty() { CHUNK_END } else { b"" };
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
                self.unsent.push_back(make(passed));
            }
        };
        keep(text.len(), &|from| Bytes::copy_from_slice(text.get(from..).unwrap_or_default()));
        keep(large.len(), &|from| large.slice(from..));
        keep(end.len(), &|from| Bytes::from_static(end.get(from..).unwrap_or_default()));
        Ok(())
    }
}

/// Sends what was kept, here and by TLS.
fn poll_unsent(
    connection: &Connection,
    unsent: &mut VecDeque<Bytes>,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while let Some(piece) = unsent.front_mut() {
        let sent = ready!(connection.poll_write(context, &[IoSlice::new(piece)]))?;
        piece.advance(sent.min(piece.len()));
        if piece.is_empty() {
            unsent.pop_front();
        }
    }
    connection.poll_flush(context)
}
