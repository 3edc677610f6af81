//! Is the client of a line still there?
//!
//! A client that has said all may close its half of the connection and wait for the answer. One that goes away closes both halves, and the
//! first thing that is seen of it is the same. The difference shows only when something is sent: a client that is gone refuses it, and
//! the line breaks. So half of a connection is enough, and the look watches the other: after the end of what the client
//! says, it is sent `100 Continue` now and then for as long as nothing of the answer is out, which every client of HTTP/1.1 passes over
//! (RFC 9110, 15.2). A stream needs none: its content and its keep-alives ask the same question. A client of HTTP/1.0 cannot be asked: a
//! reset shows that it is gone, and so does the end of what it says if it wanted the connection closed anyway, as nginx does for its clients.
//!
//! The same look finds those who take too long over the head of a request, do not send another one, or take nothing of their answer.

use std::io;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use super::{CONTINUE, Inner};

/// So many looks from one question to the next.
const TICKS_PER_PROBE: u8 = 20;

/// For how many looks a client is waited for.
pub(super) struct TickLimits {
    /// That is to send a head.
    pub(super) head: u32,
    /// That is to take some of its answer.
    pub(super) send: u32,
}

/// What is known of a client that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClientState {
    /// It is to send the head of a request; so many looks ago it could begin.
    Head(u32),
    /// It was answered for the last time, and what it still sends is thrown away; so many looks ago that began.
    Leaves(u32),
    /// It is being answered, or must not be asked.
    UpstreamAnswer,
    /// It is being answered and takes nothing; so many looks ago it took something.
    Full(u32),
    /// It has waited since the last look. Most answers come sooner.
    New,
    /// It has waited for longer.
    Waits,
    /// It has said all; so many looks ago it was asked.
    Ended(u8),
    /// It waits and cannot be asked. The flag: where it has said all it is gone.
    Old(bool),
}

impl Inner {
    pub(super) fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Something was to be sent, and the client took of it or not.
    pub(super) fn write_progressed(&self, some: bool) {
        match (some, self.state.get()) {
            (true, ClientState::Full(_)) => self.state.set(ClientState::UpstreamAnswer),
            (false, ClientState::UpstreamAnswer) => self.state.set(ClientState::Full(0)),
            _ => {}
        }
    }

    /// Whether the client is gone, or as good as that.
    pub(super) fn tick(&self, limits: &TickLimits) -> bool {
        match self.state.get() {
            ClientState::UpstreamAnswer => false,
            ClientState::Head(ticks) => {
                self.state.set(ClientState::Head(ticks.saturating_add(1)));
                ticks >= limits.head
            }
            ClientState::Leaves(ticks) => {
                self.state.set(ClientState::Leaves(ticks.saturating_add(1)));
                self.wake();
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
                Ok(true) => {
                    self.state.set(ClientState::Ended(1));
                    !self.probe()
                }
                Err(_) => true,
            },
            ClientState::Old(closes) => {
                self.has_ended().is_ok_and(|ended| ended && closes) || self.is_broken()
            }
            ClientState::Ended(ticks) => {
                self.state.set(ClientState::Ended((ticks + 1) % TICKS_PER_PROBE));
                self.is_broken() || (ticks == 0 && !self.probe())
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
    fn probe(&self) -> bool {
        match self.stream.borrow().try_write(CONTINUE) {
            Ok(sent) => sent == CONTINUE.len(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
