//! The line to one client: is it still there?
//!
//! A client that has said all may close its half of the connection and wait for the answer. One that goes away closes both halves, and the
//! first thing that is seen of it is the same. The difference shows only when something is sent: a client that is gone refuses it, and
//! the line breaks. So hyper is told to allow half of a connection, and [`Line::gone`] watches the other: after the end of what the client
//! says, it is sent `100 Continue` now and then for as long as nothing of the answer is out, which every client of HTTP/1.1 passes over
//! (RFC 9110, 15.2), and which is only sent where it can stand between two answers. A stream needs none: its content and its
//! keep-alives ask the same question. A client of HTTP/1.0 is not asked, and noticed when its answer is sent.
//!
//! All of it is in one task with the connection, so the one waker of the socket is enough, and looking costs no call while nothing comes.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Most answers are there by then.
const AT_FIRST: Duration = Duration::from_millis(50);
/// How often it is looked whether the line broke.
const LOOK: Duration = Duration::from_millis(100);
/// So many looks from one question to the next.
const LOOKS: u8 = 20;
/// What a client passes over that waits for its answer.
const STILL_THERE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A client's connection, as hyper and the watch share it.
#[derive(Clone)]
pub(crate) struct Line(Rc<Shared>);

struct Shared {
    stream: RefCell<TcpStream>,
    /// Something was written that may not be out yet.
    writes: Cell<bool>,
    /// A request is being worked on, and nothing of its answer is out; and whether its client may be asked.
    waits: Cell<bool>,
}

impl Line {
    pub(crate) fn of(stream: TcpStream) -> Self {
        Self(Rc::new(Shared {
            stream: RefCell::new(stream),
            writes: Cell::new(false),
            waits: Cell::new(false),
        }))
    }

    /// A request of this version came.
    pub(crate) fn asked(&self, version: Version) {
        self.0.waits.set(version == Version::HTTP_11);
    }

    /// Its answer goes out.
    pub(crate) fn answers(&self) {
        self.0.waits.set(false);
    }

    /// Comes back when the client is gone. Poll it after the connection: what the client says is not for this one.
    pub(crate) async fn gone(&self) {
        if poll_fn(|context| self.poll_end(context)).await.is_err() {
            return;
        }
        sleep(AT_FIRST).await;
        for look in (0..LOOKS).cycle() {
            if self.is_broken() || (look == 0 && !self.ask()) {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// The client has said all. What it has said and nobody has read yet is another request, and no end.
    fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut byte = [0; 1];
        match self.0.stream.borrow().poll_peek(context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }

    /// What was sent was refused.
    fn is_broken(&self) -> bool {
        !matches!(self.0.stream.borrow().take_error(), Ok(None))
    }

    /// Sends what only a client that is there takes, where it may stand. False if the line is spoiled.
    fn ask(&self) -> bool {
        if !self.0.waits.get() || self.0.writes.get() {
            return true;
        }
        match self.0.stream.borrow().try_write(STILL_THERE) {
            Ok(sent) => sent == STILL_THERE.len(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.writes.set(true);
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.writes.set(true);
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.stream.borrow().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Called when nothing is left to write.
        self.0.writes.set(false);
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.stream.borrow_mut()).poll_shutdown(context)
    }
}
