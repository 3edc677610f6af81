//! Detects whether the client of a connection is still there.
//!
//! A client that has sent its request may close its half of the connection and wait for the answer. A client that disconnects closes both
//! halves, which looks the same at first. Only sending shows the difference: a client that is gone resets the connection. So a half-closed
//! connection is served on, and the tick probes it: after the client's end of stream, it sends `100 Continue` now and then until
//! the answer begins, which every client of HTTP/1.1 ignores (RFC 9110, 15.2). A stream needs no probe: its content and its keep-alive frames
//! do the same. A client of HTTP/1.0 cannot be probed: a reset shows that it is gone, and so does its end of stream, because
//! the connection is closed after the answer anyway, unless it asked for keep-alive.
//!
//! Under TLS and HTTP/2 no client closes one half alone: the end of such a stream means that its client is gone. What comes before that end must
//! be read to be decrypted, so a little of what follows the request is read early.
//!
//! The same tick finds clients that take too long to send a head or another request, or that stop reading their answer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use koboshi_wire::http1::head::RequestBody;
use tokio::io::{AsyncRead, ReadBuf};

use super::{CONTINUE, ClientStream, Inner};

/// How many ticks from one probe to the next.
const TICKS_PER_PROBE: u8 = 20;
/// How much is read of what follows a request, at most.
const MAX_AHEAD: usize = 16 * 1024;

/// Timeouts of a client, in ticks.
pub(super) struct TickLimits {
    /// To send a head.
    pub(super) head: u32,
    /// To read some of its answer.
    pub(super) send: u32,
}

/// What a client is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientState {
    /// It is to send the head of a request, since this many ticks.
    Head(u32),
    /// It got its last answer, and what it still sends is discarded, since this many ticks.
    Leaves(u32),
    /// It is being answered, or must not be probed.
    Answering,
    /// It is being answered and has read nothing for this many ticks.
    Full(u32),
    /// It has waited since the last tick. Most answers come sooner.
    New,
    /// It has waited for longer.
    Waits,
    /// It has closed its half; this many ticks ago it was probed.
    Ended(u8),
    /// It waits and cannot be probed. The flag: its end of stream means that it is gone.
    Old(bool),
}

impl Inner {
    pub(super) fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Records whether the client accepted some of what was to be sent.
    pub(super) fn write_progressed(&self, some: bool) {
        match (some, self.state.get()) {
            (true, ClientState::Full(_)) => self.state.set(ClientState::Answering),
            (false, ClientState::Answering) => self.state.set(ClientState::Full(0)),
            _ => {}
        }
    }

    /// Whether the client is gone, or timed out.
    pub(super) fn tick(&self, limits: &TickLimits) -> bool {
        match self.state.get() {
            // Nothing is written while a provider is silent, so only this shows that a stream of HTTP/2 was cancelled.
            ClientState::Answering => self.is_pipe() && self.has_ended().unwrap_or(true),
            ClientState::Head(ticks) => {
                self.state.set(ClientState::Head(ticks.saturating_add(1)));
                ticks >= limits.head
            }
            ClientState::Leaves(ticks) => {
                self.state.set(ClientState::Leaves(ticks.saturating_add(1)));
                ticks >= limits.head
            }
            ClientState::Full(ticks) => {
                self.state.set(ClientState::Full(ticks.saturating_add(1)));
                ticks >= limits.send
            }
            ClientState::New => {
                self.state.set(ClientState::Waits);
                false
            }
            ClientState::Waits => match self.has_ended() {
                Ok(false) => false,
                Ok(true) if !self.may_close_one_half() => true,
                Ok(true) => {
                    self.state.set(ClientState::Ended(1));
                    !self.probe()
                }
                Err(_) => true,
            },
            ClientState::Old(closes) => match self.has_ended() {
                Ok(ended) => (ended && closes) || self.is_broken(),
                // The peek took the reset off the socket: it is reported once.
                Err(_) => true,
            },
            ClientState::Ended(ticks) => {
                self.state.set(ClientState::Ended((ticks + 1) % TICKS_PER_PROBE));
                self.is_broken() || (ticks == 0 && !self.probe())
            }
        }
    }

    /// Whether the client has closed its half. Bytes that are not read yet are another request, and no end.
    fn has_ended(&self) -> io::Result<bool> {
        let Some(task) = self.task.borrow().clone() else { return Ok(false) };
        let mut byte = [0; 1];
        // With the waker of the task that reads: a socket stores only one.
        let mut context = Context::from_waker(&task);
        let ClientStream::Plain(stream) = &*self.stream.borrow() else {
            return self.read_ahead(&mut context);
        };
        match stream.poll_peek(&mut context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(peeked) => peeked.map(|bytes| bytes == 0),
            Poll::Pending => Ok(false),
        }
    }

    /// Reads what follows a request that was read to its end. True at the end of the stream.
    fn read_ahead(&self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut received = self.received.borrow_mut();
        if self.remaining_body.get() != RequestBody::Nothing || received.len() >= MAX_AHEAD {
            return Ok(false);
        }
        let mut bytes = [0; 1024];
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *self.stream.borrow_mut()).poll_read(context, &mut buffer) {
            Poll::Ready(read) => read.map(|()| {
                received.extend_from_slice(buffer.filled());
                buffer.filled().is_empty()
            }),
            Poll::Pending => Ok(false),
        }
    }

    fn is_pipe(&self) -> bool {
        matches!(&*self.stream.borrow(), ClientStream::Pipe(_))
    }

    fn may_close_one_half(&self) -> bool {
        matches!(&*self.stream.borrow(), ClientStream::Plain(_))
    }

    /// Whether the client reset the connection.
    fn is_broken(&self) -> bool {
        self.stream.borrow().is_broken()
    }

    /// Sends a probe that only a living client accepts, where one is allowed. False if the connection is broken.
    fn probe(&self) -> bool {
        match self.stream.borrow_mut().try_write(CONTINUE) {
            Ok(sent) => sent == CONTINUE.len(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
