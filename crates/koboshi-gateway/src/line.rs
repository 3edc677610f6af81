//! The lines to the clients of one core: are they still there?
//!
//! A client that has said all may close its half of the connection and wait for the answer. One that goes away closes both halves, and the
//! first thing that is seen of it is the same. The difference shows only when something is sent: a client that is gone refuses it, and
//! the line breaks. So hyper is told to allow half of a connection, and [`Lines::look`] watches the other: after the end of what the client
//! says, it is sent `100 Continue` now and then for as long as nothing of the answer is out, which every client of HTTP/1.1 passes over
//! (RFC 9110, 15.2), and which is only sent where it can stand between two answers. A stream needs none: its content and its
//! keep-alives ask the same question. A client of HTTP/1.0 is not asked, and noticed when its answer is sent.
//!
//! The same look finds those who take too long over the head of a request, or do not send another one.
//!
//! All lines are looked at together, a few times a second, and told to end together. A request that is answered sooner pays nothing for it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::gather::poll_write_pieces;

/// How often it is looked whether clients are there.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// So many looks from one question to the next.
const LOOKS: u8 = 20;
/// What a client passes over that waits for its answer.
const STILL_THERE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The lines of one core.
#[derive(Default)]
pub(crate) struct Lines {
    open: RefCell<Vec<Weak<Shared>>>,
    stopping: Cell<bool>,
}

impl Lines {
    /// A new one.
    pub(crate) fn add(&self, stream: TcpStream) -> Line {
        let line = Line(Rc::new(Shared {
            stream: RefCell::new(stream),
            writes: Cell::new(false),
            watch: Cell::new(Watch::Head(0)),
            task: RefCell::new(None),
            gone: Cell::new(false),
        }));
        self.open.borrow_mut().push(Rc::downgrade(&line.0));
        line
    }

    pub(crate) fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    pub(crate) fn are_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Every connection ends when its request is answered.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        for line in self.open.borrow().iter().filter_map(Weak::upgrade) {
            line.wake();
        }
    }

    /// Looks who is gone, or has said nothing for so long. Comes again after [`LOOK`].
    pub(crate) fn look(&self, head_time: Duration) {
        let most = u32::try_from(head_time.as_millis().div_ceil(LOOK.as_millis())).unwrap_or(u32::MAX);
        self.open.borrow_mut().retain(|line| {
            let Some(line) = line.upgrade() else { return false };
            if line.look(most) {
                line.gone.set(true);
                line.wake();
            }
            true
        });
    }
}

/// A client's connection, as hyper and the watch share it.
#[derive(Clone)]
pub(crate) struct Line(Rc<Shared>);

struct Shared {
    stream: RefCell<TcpStream>,
    /// Something was written that may not be out yet.
    writes: Cell<bool>,
    watch: Cell<Watch>,
    /// The task of the connection.
    task: RefCell<Option<Waker>>,
    gone: Cell<bool>,
}

/// What is known of a client that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// It is to send the head of a request; so many looks ago it could begin.
    Head(u32),
    /// It is being answered, or must not be asked.
    Answered,
    /// It has waited since the last look. Most answers come sooner.
    New,
    /// It has waited for longer.
    Waits,
    /// It has said all; so many looks ago it was asked.
    Ended(u8),
}

impl Line {
    /// A request of this version came.
    pub(crate) fn asked(&self, version: Version) {
        self.0.watch.set(if version == Version::HTTP_11 { Watch::New } else { Watch::Answered });
    }

    /// Its answer goes out.
    pub(crate) fn answers(&self) {
        self.0.watch.set(Watch::Answered);
    }

    /// It was answered, and may ask for something else.
    pub(crate) fn finished(&self) {
        self.0.watch.set(Watch::Head(0));
    }

    /// Serves a connection until it ends or its client is gone. When all are to end, `end` is called once.
    pub(crate) async fn serve<C: Future>(
        &self,
        lines: &Lines,
        connection: Pin<&mut C>,
        end: impl Fn(Pin<&mut C>),
    ) {
        let mut connection = connection;
        let mut told = false;
        poll_fn(|context| {
            self.0.belongs_to(context.waker());
            if self.0.gone.get() {
                return Poll::Ready(());
            }
            if !told && lines.are_stopping() {
                told = true;
                end(connection.as_mut());
            }
            // How a client's connection ended is the client's business.
            connection.as_mut().poll(context).map(drop)
        })
        .await;
    }
}

impl Shared {
    fn belongs_to(&self, waker: &Waker) {
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Whether the client is gone.
    fn look(&self, most: u32) -> bool {
        match self.watch.get() {
            Watch::Answered => false,
            // Whoever still reads its last answer does not keep us waiting.
            Watch::Head(_) if self.writes.get() => false,
            Watch::Head(looks) => {
                self.watch.set(Watch::Head(looks.saturating_add(1)));
                looks >= most
            }
            Watch::New => {
                self.watch.set(Watch::Waits);
                false
            }
            Watch::Waits => match self.has_ended() {
                Ok(false) => false,
                Ok(true) => {
                    self.watch.set(Watch::Ended(1));
                    !self.ask()
                }
                Err(_) => true,
            },
            Watch::Ended(looks) => {
                self.watch.set(Watch::Ended((looks + 1) % LOOKS));
                self.is_broken() || (looks == 0 && !self.ask())
            }
        }
    }

    /// Whether the client has said all. What it has said and nobody has read yet is another request, and no end.
    fn has_ended(&self) -> io::Result<bool> {
        let Some(task) = self.task.borrow().clone() else { return Ok(false) };
        let mut byte = [0; 1];
        // With the waker of the task that reads: a socket has room for one.
        let mut context = Context::from_waker(&task);
        match self.stream.borrow().poll_peek(&mut context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(peeked) => peeked.map(|bytes| bytes == 0),
            Poll::Pending => Ok(false),
        }
    }

    /// What was sent was refused.
    fn is_broken(&self) -> bool {
        !matches!(self.stream.borrow().take_error(), Ok(None))
    }

    /// Sends what only a client that is there takes, where it may stand. False if the line is spoiled.
    fn ask(&self) -> bool {
        if self.writes.get() {
            return true;
        }
        match self.stream.borrow().try_write(STILL_THERE) {
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
        poll_write_pieces(&mut self.0.stream.borrow_mut(), context, parts)
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
