//! A client's connection: reads requests and writes answers. [`liveness`] detects whether the client is still there.
//!
//! The connections of a core share the buffers for reading and writing: a connection that waits holds none.

mod connections;
mod liveness;
mod stream;

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use koboshi_wire::http1::head::{BadHead, Head, MAX_HEAD, RequestBody};

use self::connections::Common;
pub(crate) use self::connections::{Connections, TICK};
use self::liveness::ClientState;
pub(crate) use self::stream::ClientStream;
use crate::http::pace::{LARGE, Pace};

/// An informational answer, which a waiting client ignores.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How much is read at once.
const READ_SIZE: usize = 32 * 1024;

/// A client's connection.
#[derive(Clone)]
pub(crate) struct Connection(Rc<Inner>);

struct Inner {
    stream: RefCell<ClientStream>,
    /// Bytes received and not yet consumed: the beginning of a head, a body, another request.
    received: RefCell<BytesMut>,
    /// How many of them were searched for the end of a head.
    scanned: Cell<usize>,
    /// What is left of the body of the request.
    remaining_body: Cell<RequestBody>,
    /// The client waits for `100 Continue` before it sends the body.
    expects_continue: Cell<bool>,
    state: Cell<ClientState>,
    /// The task of the connection.
    task: RefCell<Option<Waker>>,
    is_gone: Cell<bool>,
    common: Rc<Common>,
}

impl Connection {
    /// Records that a request began.
    pub(crate) fn request_began(&self, head: &Head) {
        self.0.remaining_body.set(head.coming);
        self.0.expects_continue.set(head.expects);
        if !matches!(head.coming, RequestBody::Length(length) if length > LARGE as u64) {
            self.0.common.pace.ordinary_request_began();
        }
        // In HTTP/1.0 a connection closes after its answer, unless the client asks for keep-alive.
        let keeps = |said: &[u8]| {
            said.split(|byte| *byte == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"keep-alive"))
        };
        let closes = || !head.fields.get("connection").is_some_and(keeps);
        self.0.state.set(if head.version == Version::HTTP_11 {
            ClientState::New
        } else {
            ClientState::Old(closes())
        });
    }

    /// Records that its answer begins.
    pub(crate) fn answer_began(&self) {
        self.0.state.set(ClientState::Answering);
    }

    /// Records that its answer ended, and that another request may come.
    pub(crate) fn answer_ended(&self) {
        self.0.state.set(ClientState::Head(0));
    }

    /// Whether another request may follow: the gateway does not stop, and this request was read to its end.
    pub(crate) fn may_keep_alive(&self) -> bool {
        !self.0.common.stopping.get() && self.0.remaining_body.get() == RequestBody::Nothing
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_gone.get()
    }

    /// Sets the waker for when the client is gone or all requests are to end.
    pub(crate) fn register_waker(&self, waker: &Waker) {
        let mut task = self.0.task.borrow_mut();
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// The `Date` header.
    pub(crate) fn date(&self) -> Rc<[u8]> {
        Rc::clone(&self.0.common.date.borrow())
    }

    /// The head of the next request; none when the client has closed its half, or the gateway stops.
    pub(crate) fn poll_head(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Result<Option<Head>, BadHead>>> {
        let mut received = self.0.received.borrow_mut();
        if !received.is_empty() && self.0.scanned.get() == 0 {
            // What came along with the request before.
            match self.parse_received(&mut received) {
                Ok(None) => {}
                done => return Poll::Ready(Ok(done)),
            }
        }
        loop {
            let mut buffer = self.0.common.read_buffer.take();
            buffer.resize(READ_SIZE, 0);
            let read = self.poll_read(context, &mut buffer);
            let parsed = match &read {
                Poll::Ready(Ok(length)) => {
                    self.parse_new(&mut received, buffer.get(..*length).unwrap_or_default())
                }
                _ => Ok(None),
            };
            self.0.common.read_buffer.set(buffer);
            match (read, parsed) {
                (_, Ok(Some(head))) => return Poll::Ready(Ok(Ok(Some(head)))),
                (_, Err(refused)) => return Poll::Ready(Ok(Err(refused))),
                (Poll::Ready(Ok(0)), _) => return Poll::Ready(Ok(Ok(None))),
                (Poll::Ready(Ok(_)), _) => {}
                (Poll::Ready(Err(error)), _) => return Poll::Ready(Err(error)),
                (Poll::Pending, _) if received.is_empty() && self.0.common.stopping.get() => {
                    return Poll::Ready(Ok(Ok(None)));
                }
                (Poll::Pending, _) => return Poll::Pending,
            }
        }
    }

    /// Parses a head from these bytes and those before, if it is complete. Bytes after it are kept.
    fn parse_new(&self, received: &mut BytesMut, bytes: &[u8]) -> Result<Option<Head>, BadHead> {
        if received.is_empty()
            && let Some((head, length)) = Head::parse(bytes)?
        {
            *received = BytesMut::from(bytes.get(length..).unwrap_or_default());
            return Ok(Some(head));
        }
        received.extend_from_slice(bytes);
        self.parse_received(received)
    }

    /// Parses a head from the received bytes, if it is complete. Only new bytes are searched for its end: a head that comes in single bytes
    /// costs no more.
    fn parse_received(&self, received: &mut BytesMut) -> Result<Option<Head>, BadHead> {
        let from = self.0.scanned.replace(received.len());
        let news = received.get(from.saturating_sub(3)..).unwrap_or_default();
        let may_end =
            news.windows(2).any(|two| two == b"\n\n") || news.windows(3).any(|three| three == b"\n\r\n");
        if !(may_end || from == 0 || received.len() >= MAX_HEAD) {
            return Ok(None);
        }
        let Some((head, length)) = Head::parse(received)? else { return Ok(None) };
        self.0.scanned.set(0);
        received.advance(length);
        Ok(Some(head))
    }

    fn poll_read(&self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        ready!(Pin::new(&mut *self.0.stream.borrow_mut()).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Writes as much of these pieces as the client accepts.
    pub(crate) fn poll_write(
        &self,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.0.stream.borrow_mut();
        let polled = match pieces {
            [only] => Pin::new(&mut *stream).poll_write(context, only),
            all => Pin::new(&mut *stream).poll_write_vectored(context, all),
        };
        self.0.write_progressed(polled.is_ready());
        let sent = ready!(polled)?;
        if sent == 0 && pieces.iter().any(|piece| !piece.is_empty()) {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        Poll::Ready(Ok(sent))
    }

    /// Passes on what TLS still holds of what was written.
    pub(crate) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.0.stream.borrow_mut();
        if !stream.holds_back() {
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut *stream).poll_flush(context);
        self.0.write_progressed(polled.is_ready());
        polled
    }

    /// An empty buffer for an answer.
    pub(crate) fn take_write_buffer(&self) -> Vec<u8> {
        let mut buffer = self.0.common.write_buffer.take();
        buffer.clear();
        buffer
    }

    /// Returns the buffer.
    pub(crate) fn return_write_buffer(&self, buffer: Vec<u8>) {
        self.0.common.write_buffer.set(buffer);
    }

    /// Closes our half, and waits until the client has closed its own: what it still sends is discarded, because closing at once would
    /// destroy the answer on its way. The tick closes clients that take too long.
    pub(crate) async fn linger_and_close(&self) -> io::Result<()> {
        self.0.state.set(ClientState::Leaves(0));
        poll_fn(|context| Pin::new(&mut *self.0.stream.borrow_mut()).poll_shutdown(context)).await?;
        *self.0.received.borrow_mut() = BytesMut::new();
        loop {
            let discarded = poll_fn(|context| self.poll_discard(context)).await?;
            if discarded == 0 {
                return Ok(());
            }
            // Boxed: most connections never need it.
            Box::pin(self.0.common.pace.after_discarding(discarded)).await;
        }
    }

    /// Discards some of what the client sends. Nothing at its end, and when the gateway stops.
    fn poll_discard(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let common = &self.0.common;
        if common.stopping.get() {
            return Poll::Ready(Ok(0));
        }
        let mut buffer = common.read_buffer.take();
        buffer.resize(READ_SIZE, 0);
        let read = self.poll_read(context, &mut buffer);
        common.read_buffer.set(buffer);
        read
    }
}

/// For reading a body.
impl Connection {
    /// How the rest of the body comes.
    pub(crate) fn remaining_body(&self) -> RequestBody {
        self.0.remaining_body.get()
    }

    /// Records that the body will not be read to its end.
    pub(crate) fn abandon_body(&self) {
        self.0.remaining_body.set(RequestBody::Abandoned);
    }

    /// Records that the body was read to its end.
    pub(crate) fn body_was_read(&self) {
        self.0.remaining_body.set(RequestBody::Nothing);
    }

    /// This many bytes, if they have come.
    pub(crate) fn take(&self, length: usize) -> Option<Bytes> {
        let mut received = self.0.received.borrow_mut();
        match received.len() {
            all if all == length => Some(std::mem::take(&mut *received).freeze()),
            more if more > length => Some(received.split_to(length).freeze()),
            _ => None,
        }
    }

    /// All bytes that have come.
    pub(crate) fn take_all(&self) -> BytesMut {
        std::mem::take(&mut self.0.received.borrow_mut())
    }

    /// Returns bytes of the next request.
    pub(crate) fn put_back(&self, rest: BytesMut) {
        *self.0.received.borrow_mut() = rest;
    }

    /// Sends `100 Continue` if the client waits for it.
    pub(crate) fn send_continue(&self) {
        if self.0.expects_continue.replace(false) {
            // If twenty-five bytes do not fit, the client does not read; the body timeout ends that.
            let _ = self.0.stream.borrow_mut().try_write(CONTINUE);
        }
    }

    pub(crate) fn stream(&self) -> RefMut<'_, ClientStream> {
        self.0.stream.borrow_mut()
    }

    /// How fast large bodies are read.
    pub(super) fn pace(&self) -> &Pace {
        &self.0.common.pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::body::{BodyError, BodyLimits};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Reads a body of at most this many bytes.
    async fn read(connection: &Connection, max_bytes: usize) -> Result<Bytes, BodyError> {
        let mut share = std::sync::Arc::<crate::http::memory::MemoryBudget>::default().share();
        crate::http::body::read(
            connection,
            BodyLimits { max_bytes, memory: u64::MAX, share: &mut share },
            TICK,
        )
        .await
    }

    /// A connection, and the client at its other end.
    async fn pair(connections: &Connections) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.set_nodelay(true).unwrap();
        (connections.add(ClientStream::Plain(stream)), client)
    }

    async fn head(connection: &Connection) -> Option<Head> {
        poll_fn(|context| connection.poll_head(context)).await.unwrap().unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_takes_too_long_over_a_head_is_closed_and_no_other() {
        let connections = Connections::default();
        let (slow, _one) = pair(&connections).await;
        let (asks, mut two) = pair(&connections).await;
        two.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        asks.request_began(&head(&asks).await.unwrap());
        let time = TICK * 3;
        for _ in 0..3 {
            connections.tick(time, TICK);
            assert!(!slow.is_gone());
        }
        connections.tick(time, TICK);
        assert!(slow.is_gone() && !asks.is_gone(), "one that waits for its answer is not slow");
        asks.answer_began();
        asks.answer_ended();
        for _ in 0..4 {
            assert!(!asks.is_gone(), "its time begins again after its answer");
            connections.tick(time, TICK);
        }
        assert!(asks.is_gone());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_stops_reading_is_closed_and_a_slow_reader_is_not() {
        let connections = Connections::default();
        let (connection, mut client) = pair(&connections).await;
        connection.answer_began();
        let piece = vec![b'x'; 1 << 20];
        let fill = async || {
            poll_fn(|context| {
                while connection.poll_write(context, &[IoSlice::new(&piece)])?.is_ready() {}
                Poll::Ready(io::Result::Ok(()))
            })
            .await
            .unwrap();
        };
        let (head_time, time) = (TICK, TICK * 3);
        fill().await;
        for _ in 0..5 {
            for _ in 0..2 {
                connections.tick(head_time, time);
            }
            // It reads until there is space for more.
            let mut taken = vec![0; 64 << 10];
            loop {
                tokio::select! {
                    biased;
                    sent = poll_fn(|context| connection.poll_write(context, &[IoSlice::new(&piece)])) => { sent.unwrap(); break; }
                    read = client.read(&mut taken) => assert!(read.unwrap() > 0),
                }
            }
            fill().await;
            assert!(!connection.is_gone());
        }
        for _ in 0..4 {
            assert!(!connection.is_gone());
            connections.tick(head_time, time);
        }
        assert!(connection.is_gone());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn requests_that_come_together_or_byte_by_byte_are_heads_one_by_one() {
        let connections = Connections::default();
        let (connection, mut client) = pair(&connections).await;
        client
            .write_all(b"GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 4\r\n\r\nbodyGET /c")
            .await
            .unwrap();
        assert_eq!(head(&connection).await.unwrap().path(), "/a");
        let second = head(&connection).await.unwrap();
        assert_eq!(second.path(), "/b");
        connection.request_began(&second);
        assert_eq!(read(&connection, 100).await.unwrap(), "body");
        let writer = tokio::spawn(async move {
            for byte in b" HTTP/1.1\r\nx: y\r\n\r\n" {
                client.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            client
        });
        assert_eq!(head(&connection).await.unwrap().path(), "/c");
        drop(writer.await.unwrap());
        assert!(head(&connection).await.is_none(), "the client has closed its half");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn after_an_unread_body_the_connection_is_not_reused() {
        let connections = Connections::default();
        let (connection, mut client) = pair(&connections).await;
        client.write_all(b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody").await.unwrap();
        connection.request_began(&head(&connection).await.unwrap());
        assert!(!connection.may_keep_alive(), "what follows would be taken for a request");
        assert_eq!(read(&connection, 3).await, Err(BodyError::Large));
        assert!(!connection.may_keep_alive());
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn no_more_requests_are_read_when_the_gateway_stops() {
        let connections = Connections::default();
        let (connection, _client) = pair(&connections).await;
        connections.stop();
        assert!(head(&connection).await.is_none());
        assert!(!connection.may_keep_alive());
    }
}
