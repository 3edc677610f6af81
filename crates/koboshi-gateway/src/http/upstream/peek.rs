//! Checks an idle HTTP/1.1 connection right before it is used: is it quiet, closed, or has the provider sent something unsolicited?
//!
//! The runtime's view of a socket is as old as its last poll of all sockets, which on a busy core is milliseconds ago. What came since then
//! would be taken for the answer to the next request, and so reach another client. So the socket itself is asked. That is one system call
//! per request; what is still on its way from the provider cannot be detected.
//!
//! With TLS there may be bytes that are no answer (session tickets, new keys): they are read, and only decrypted content counts.

use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::connect::Wire;

/// How an unsolicited answer begins that only announces that the idle connection is closed.
const CLOSING_ANSWERS: [&[u8]; 2] = [b"HTTP/1.1 408", b"HTTP/1.0 408"];
/// How many reads of TLS records without content are tried.
const MAX_RECORD_READS: usize = 8;

/// The state of an idle connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleState {
    /// It can be used.
    Quiet,
    /// The provider has closed it.
    Ended,
    /// The provider sent something without a request.
    Unsolicited,
}

impl Wire {
    /// Checks the connection.
    pub(super) fn peek(&mut self) -> IdleState {
        match self {
            Self::Plain(tcp) => peek_plain(tcp),
            Self::Secure(stream) => peek_secure(stream),
        }
    }
}

fn peek_plain(tcp: &TcpStream) -> IdleState {
    // Asking for events costs less than asking for bytes: it takes no lock of the socket.
    let mut socket = [PollFd::new(tcp, PollFlags::IN | PollFlags::RDHUP)];
    if poll(&mut socket, Some(&Timespec::default())) == Ok(0) {
        return IdleState::Quiet;
    }
    let mut begin = [0; 12];
    match recv(tcp, &mut begin, RecvFlags::PEEK) {
        Err(Errno::AGAIN) => IdleState::Quiet,
        Ok((length, _)) => idle_of(begin.get(..length).unwrap_or_default()),
        Err(_) => IdleState::Ended,
    }
}

fn peek_secure(stream: &mut TlsStream<TcpStream>) -> IdleState {
    let (tcp, session) = stream.get_mut();
    for _ in 0..MAX_RECORD_READS {
        // It needs no more bytes if something is decrypted already, or the provider has announced the close.
        if !session.wants_read() {
            break;
        }
        if recv(&*tcp, &mut [0; 1], RecvFlags::PEEK) == Err(Errno::AGAIN) {
            return IdleState::Quiet;
        }
        let is_read = matches!(session.read_tls(&mut Socket(tcp)), Ok(1..));
        if !is_read || session.process_new_packets().is_err() {
            return IdleState::Ended;
        }
    }
    let mut begin = [0; 12];
    match session.reader().read(&mut begin) {
        Ok(length) => idle_of(begin.get(..length).unwrap_or_default()),
        Err(_) => IdleState::Ended,
    }
}

/// What the first bytes on an idle connection mean; no bytes mean its end.
fn idle_of(begin: &[u8]) -> IdleState {
    if begin.is_empty() || CLOSING_ANSWERS.contains(&begin) {
        IdleState::Ended
    } else {
        IdleState::Unsolicited
    }
}

/// Reads what the socket has now, independent of the runtime's view.
struct Socket<'t>(&'t TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, into, RecvFlags::empty())?.0)
    }
}
