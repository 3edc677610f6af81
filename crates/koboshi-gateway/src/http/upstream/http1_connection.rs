//! An HTTP/1.1 connection to a provider, driven by the request that uses it.
//!
//! It serves one request at a time: so sending and reading are plain functions that the request polls, without a task or a
//! channel between them. Everything that a read returns is forwarded as one block, because forwarding one costs less than forwarding
//! many. An idle connection is not polled: what its server did meanwhile is detected when it is used next, before anything is sent
//! ([`peek`](super::peek)).

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connect::Wire;
use super::peek::IdleState;
use koboshi_wire::http1::chunks::Chunks;
use koboshi_wire::http1::reply::{NoReply, ReplyBody, ReplyHead};

/// How much one system call writes at most: while the kernel copies, no other thread gets this processor.
const MAX_WRITE: usize = 64 * 1024;

/// How much is read at once.
const READ_SIZE: usize = 32 * 1024;
/// A body up to this length is sent in one piece with its head.
const SMALL: usize = 16 * 1024;
/// How many informational heads may precede an answer.
const MAX_INFORMATIONAL: usize = 10;

/// The read buffer: one for all connections of a core, taken while it is used.
pub(super) type ReadBuffer = Rc<Cell<Vec<u8>>>;

/// A connection.
pub(crate) struct Http1Connection {
    wire: Wire,
    read_buffer: ReadBuffer,
    /// Bytes received and not yet consumed.
    received: BytesMut,
    remaining: RemainingBody,
    /// Whether another request may follow when this one is answered.
    keeps_alive: bool,
    /// Bytes came after an answer, without a request.
    has_unsolicited: bool,
}

/// What is left of an answer's body.
enum RemainingBody {
    Nothing,
    Length(u64),
    Chunked(Chunks),
    UntilEnd,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct NoAnswer {
    pub(super) error: io::Error,
    /// No byte of an answer came: the connection may have been dead before.
    pub(super) is_silent: bool,
}

/// A request that is being sent.
pub(super) struct OutgoingRequest<'d> {
    /// The shared buffer that holds its head until it is sent.
    head_buffer: &'d Cell<Vec<u8>>,
    head: Vec<u8>,
    body: &'d [u8],
    sent: usize,
    /// All of it was sent, and the buffer returned.
    is_sent: bool,
}

impl Http1Connection {
    pub(super) fn new(wire: Wire, read_buffer: ReadBuffer) -> Self {
        Self {
            wire,
            read_buffer,
            received: BytesMut::new(),
            remaining: RemainingBody::Nothing,
            keeps_alive: true,
            has_unsolicited: false,
        }
    }

    /// What the server did while the connection was idle.
    pub(super) fn peek(&mut self) -> IdleState {
        self.wire.peek()
    }

    /// Whether the answer was read to its end, and another request may follow.
    pub(super) fn is_reusable(&self) -> bool {
        self.keeps_alive && !self.has_unsolicited() && matches!(self.remaining, RemainingBody::Nothing)
    }

    /// Whether bytes came after the complete answer.
    pub(super) fn has_unsolicited(&self) -> bool {
        self.has_unsolicited
            || (matches!(self.remaining, RemainingBody::Nothing) && !self.received.is_empty())
    }

    /// Sends, and waits for the head of the answer.
    pub(super) async fn send(&mut self, outgoing: &mut OutgoingRequest<'_>) -> Result<ReplyHead, NoAnswer> {
        let reply = poll_fn(|context| self.poll_exchange(outgoing, context)).await?;
        self.keeps_alive = reply.stays && outgoing.is_sent;
        self.remaining = match reply.body {
            ReplyBody::Length(0) => RemainingBody::Nothing,
            ReplyBody::Length(length) => RemainingBody::Length(length),
            ReplyBody::Chunked => RemainingBody::Chunked(Chunks::default()),
            ReplyBody::UntilEnd => RemainingBody::UntilEnd,
        };
        Ok(reply)
    }

    /// Sends and reads at the same time: a server may answer before it has read all, and close the connection without reading the rest.
    fn poll_exchange(
        &mut self,
        outgoing: &mut OutgoingRequest<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<ReplyHead, NoAnswer>> {
        let broken = match outgoing.poll_send(&mut self.wire, context) {
            Poll::Ready(Err(error)) => Some(error),
            _ => None,
        };
        for _ in 0..=MAX_INFORMATIONAL {
            match self.poll_head(context) {
                Poll::Pending => {
                    let Some(error) = broken else { return Poll::Pending };
                    return Poll::Ready(Err(NoAnswer { error, is_silent: self.received.is_empty() }));
                }
                Poll::Ready(Ok(head)) if head.is_interim() => {}
                Poll::Ready(Ok(head)) if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                    let error =
                        io::Error::new(ErrorKind::InvalidData, "the provider switched protocols (101)");
                    return Poll::Ready(Err(NoAnswer { error, is_silent: false }));
                }
                Poll::Ready(Ok(head)) => return Poll::Ready(Ok(head)),
                Poll::Ready(Err(error)) => {
                    let error = broken.unwrap_or(error);
                    return Poll::Ready(Err(NoAnswer { error, is_silent: self.received.is_empty() }));
                }
            }
        }
        let error = io::Error::new(ErrorKind::InvalidData, "the provider announces answers and sends none");
        Poll::Ready(Err(NoAnswer { error, is_silent: false }))
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ReplyHead>> {
        loop {
            if !self.received.is_empty()
                && let Some((head, length)) = ReplyHead::parse(&self.received).map_err(wrong)?
            {
                self.received.advance(length);
                return Poll::Ready(Ok(head));
            }
            let (read_buffer, length) = ready!(self.poll_read(context))?;
            let found = self.parse_head(read_buffer.get(..length).unwrap_or_default());
            self.read_buffer.set(read_buffer);
            if let Some(head) = found? {
                return Poll::Ready(Ok(head));
            }
        }
    }

    /// Parses the head of an answer, if it is complete. Bytes after it are kept.
    fn parse_head(&mut self, bytes: &[u8]) -> io::Result<Option<ReplyHead>> {
        if bytes.is_empty() {
            return Err(ended());
        }
        if self.received.is_empty()
            && let Some((head, length)) = ReplyHead::parse(bytes).map_err(wrong)?
        {
            self.received = BytesMut::from(bytes.get(length..).unwrap_or_default());
            return Ok(Some(head));
        }
        self.received.extend_from_slice(bytes);
        Ok(None)
    }

    /// The next block of an answer; none at its end.
    pub(super) fn poll_block(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if matches!(self.remaining, RemainingBody::Nothing) {
                return Poll::Ready(None);
            }
            let block = if self.received.is_empty() {
                let (read_buffer, length) = match ready!(self.poll_read(context)) {
                    Ok(read) => read,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                };
                let block = self.decode_body(read_buffer.get(..length).unwrap_or_default());
                self.read_buffer.set(read_buffer);
                block
            } else {
                let received = std::mem::take(&mut self.received);
                if let RemainingBody::Length(length) = self.remaining
                    && received.len() as u64 == length
                {
                    // All of it came with its head, as nearly every answer that is no stream does.
                    self.remaining = RemainingBody::Nothing;
                    return Poll::Ready(Some(Ok(received.freeze())));
                }
                self.decode_body(&received)
            };
            match block {
                Ok(block) if block.is_empty() => {}
                block => return Poll::Ready(Some(block)),
            }
        }
    }

    /// Decodes bytes of the body. Bytes after its end are unsolicited: the connection cannot be reused.
    fn decode_body(&mut self, bytes: &[u8]) -> io::Result<Bytes> {
        let is_end = bytes.is_empty();
        match &mut self.remaining {
            RemainingBody::UntilEnd if is_end => self.remaining = RemainingBody::Nothing,
            _ if is_end => return Err(ended()),
            RemainingBody::Nothing | RemainingBody::UntilEnd => return Ok(Bytes::copy_from_slice(bytes)),
            RemainingBody::Length(length) => {
                let taken = usize::try_from(*length).unwrap_or(usize::MAX).min(bytes.len());
                *length -= taken as u64;
                self.has_unsolicited |= taken < bytes.len();
                if *length == 0 {
                    self.remaining = RemainingBody::Nothing;
                }
                return Ok(Bytes::copy_from_slice(bytes.get(..taken).unwrap_or_default()));
            }
            RemainingBody::Chunked(chunks) => {
                let mut content = BytesMut::with_capacity(bytes.len());
                let taken = chunks.take(bytes, &mut content, usize::MAX).map_err(|_| {
                    io::Error::new(ErrorKind::InvalidData, "the chunks of the answer are broken")
                })?;
                if chunks.is_done() {
                    self.has_unsolicited |= taken < bytes.len();
                    self.remaining = RemainingBody::Nothing;
                }
                return Ok(content.freeze());
            }
        }
        Ok(Bytes::new())
    }

    /// Reads into the shared buffer, which the caller must return; with the length, which is 0 at the end of the stream.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(Vec<u8>, usize)>> {
        let mut read_buffer = self.read_buffer.take();
        // Only the first time.
        read_buffer.resize(READ_SIZE, 0);
        let mut into = ReadBuf::new(&mut read_buffer);
        let read = Pin::new(&mut self.wire).poll_read(context, &mut into);
        let length = into.filled().len();
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(Ok((read_buffer, length))),
            other => {
                self.read_buffer.set(read_buffer);
                other.map_ok(|()| (Vec::new(), 0))
            }
        }
    }
}

impl<'d> OutgoingRequest<'d> {
    /// A request with this body, whose head is written into the buffer.
    pub(super) fn new(
        head_buffer: &'d Cell<Vec<u8>>,
        body: &'d [u8],
        write_head: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        let mut head = head_buffer.take();
        head.clear();
        write_head(&mut head);
        let is_small = body.len() <= SMALL;
        if is_small {
            head.extend_from_slice(body);
        }
        Self { head_buffer, head, body: if is_small { &[] } else { body }, sent: 0, is_sent: false }
    }

    /// Whether all of it was sent.
    pub(super) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Whether any of it was sent.
    pub(super) fn has_sent_any(&self) -> bool {
        self.sent > 0
    }

    fn poll_send(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_sent {
            return Poll::Ready(Ok(()));
        }
        while self.sent < self.head.len() + self.body.len() {
            let head = self.head.get(self.sent..).unwrap_or_default();
            let body = self.body.get(self.sent.saturating_sub(self.head.len())..).unwrap_or_default();
            let body = body.get(..MAX_WRITE).unwrap_or(body);
            let sent = if body.is_empty() {
                ready!(Pin::new(&mut *wire).poll_write(context, head))?
            } else {
                let pieces = [IoSlice::new(head), IoSlice::new(body)];
                ready!(Pin::new(&mut *wire).poll_write_vectored(context, &pieces))?
            };
            if sent == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
        }
        ready!(Pin::new(wire).poll_flush(context))?;
        self.is_sent = true;
        self.head_buffer.set(std::mem::take(&mut self.head));
        self.body = &[];
        Poll::Ready(Ok(()))
    }
}

fn wrong(error: NoReply) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection ended before the answer was whole")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// A connection, and the other end of it.
    async fn pair() -> (Http1Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        (Http1Connection::new(Wire::Plain(near), ReadBuffer::default()), far)
    }

    /// Sends a small request; the server answers in these pieces, and then closes the connection if `closes`.
    async fn asked(
        pieces: Vec<Vec<u8>>,
        closes: bool,
    ) -> (Http1Connection, Result<ReplyHead, NoAnswer>, Option<TcpStream>) {
        let (mut connection, mut far) = pair().await;
        far.set_nodelay(true).unwrap();
        let server = tokio::spawn(async move {
            let mut seen = [0; 1024];
            let _ = far.read(&mut seen).await.unwrap();
            for piece in pieces {
                far.write_all(&piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            (!closes).then_some(far)
        });
        let reply = send(&mut connection, b"{}", &Cell::default()).await;
        (connection, reply, server.await.unwrap())
    }

    async fn send(
        connection: &mut Http1Connection,
        body: &[u8],
        head_buffer: &Cell<Vec<u8>>,
    ) -> Result<ReplyHead, NoAnswer> {
        let head = b"POST / HTTP/1.1\r\n\r\n";
        connection.send(&mut OutgoingRequest::new(head_buffer, body, |out| out.extend_from_slice(head))).await
    }

    async fn body(connection: &mut Http1Connection) -> io::Result<String> {
        let mut all = Vec::new();
        while let Some(block) = poll_fn(|context| connection.poll_block(context)).await {
            all.extend_from_slice(&block?);
        }
        Ok(String::from_utf8(all).unwrap())
    }

    fn bytewise(text: &str) -> Vec<Vec<u8>> {
        text.bytes().map(|byte| vec![byte]).collect()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_answer_is_read_however_it_is_cut_and_the_connection_serves_again() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\n\r\n",
        ] {
            for pieces in [vec![text.as_bytes().to_vec()], bytewise(text)] {
                let (mut connection, reply, _far) = asked(pieces, false).await;
                assert_eq!(reply.unwrap().status, 200, "{text}");
                assert!(!connection.is_reusable(), "its body is not read");
                assert_eq!(body(&mut connection).await.unwrap(), "hello", "{text}");
                assert!(connection.is_reusable() && connection.peek() == IdleState::Quiet, "{text}");
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_answer_that_ends_with_its_connection_is_whole_and_nothing_follows() {
        let (mut connection, reply, _) = asked(bytewise("HTTP/1.1 200 OK\r\n\r\nhello"), true).await;
        assert_eq!(reply.unwrap().status, 200);
        assert_eq!(body(&mut connection).await.unwrap(), "hello");
        assert!(!connection.is_reusable() && connection.peek() == IdleState::Ended);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_body_that_is_cut_or_broken_is_an_error() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloX\r\n",
        ] {
            let (mut connection, reply, _) = asked(vec![text.as_bytes().to_vec()], true).await;
            assert_eq!(reply.unwrap().status, 200);
            assert!(body(&mut connection).await.is_err(), "{text}");
            assert!(!connection.is_reusable());
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn after_unsolicited_bytes_the_connection_is_not_reused() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nmore",
        ] {
            let (mut connection, _, _far) = asked(vec![text.as_bytes().to_vec()], false).await;
            assert_eq!(body(&mut connection).await.unwrap(), "hello");
            assert!(connection.has_unsolicited() && !connection.is_reusable(), "{text}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn silence_differs_from_a_broken_answer() {
        let (_, reply, _) = asked(vec![], true).await;
        assert!(reply.unwrap_err().is_silent);
        let (_, reply, _) = asked(vec![b"HTTP/1.1 20".to_vec()], true).await;
        assert!(!reply.unwrap_err().is_silent);
        let (_, reply, _) = asked(vec![b"SSH-2.0\r\n".to_vec()], false).await;
        assert_eq!(reply.unwrap_err().error.kind(), ErrorKind::InvalidData);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_answer_before_all_was_sent_counts_and_ends_the_connection() {
        let (mut connection, mut far) = pair().await;
        let server = tokio::spawn(async move {
            far.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
            far
        });
        let large = Bytes::from(vec![b' '; 64 * 1024 * 1024]);
        let reply = send(&mut connection, &large, &Cell::default()).await;
        assert_eq!(reply.unwrap().status, 413);
        assert_eq!(body(&mut connection).await.unwrap(), "no");
        assert!(!connection.is_reusable());
        drop(server.await.unwrap());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_large_request_arrives_whole() {
        let (mut connection, mut far) = pair().await;
        let large = Bytes::from(vec![b'x'; 3 * 1024 * 1024]);
        let length = large.len() + 19;
        let server = tokio::spawn(async move {
            let mut seen = vec![0; length];
            far.read_exact(&mut seen).await.unwrap();
            far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            (seen, far)
        });
        let head_buffer = Cell::default();
        let reply = send(&mut connection, &large, &head_buffer).await;
        assert!(head_buffer.take().capacity() > 0, "the buffer was returned");
        let (seen, _far) = server.await.unwrap();
        assert!(seen.starts_with(b"POST / HTTP/1.1\r\n\r\nx") && seen.ends_with(b"xx"));
        assert_eq!(reply.unwrap().status, 200);
        assert!(connection.is_reusable());
    }
}
