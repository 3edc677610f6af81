//! A look at an idle HTTP/1.1 connection right before it is used: is it quiet, has it ended, or did the provider speak unasked?
//!
//! The runtime's memory of what a socket can do is as old as its last look at all sockets, which on a busy core is milliseconds ago. What came
//! since then would be taken for the answer to the next request, and so reach another client. So the socket itself is asked. That is one
//! system call a request; what is still on its way from the provider cannot be seen by anybody.
//!
//! With TLS bytes may wait that are no answer (session tickets, new keys): they are read and only what was decrypted counts.

use std::io::{self, Read};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::connect::Wire;

/// How an unasked answer begins that only says that the connection is closed, because nobody used it.
const FAREWELLS: [&[u8]; 2] = [b"HTTP/1.1 408", b"HTTP/1.0 408"];
/// Reads of TLS records that are no answer; a provider that sends more of them is not waited for.
const MAX_RECORD_READS: usize = 8;

/// What an idle connection is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// It can be used.
    Quiet,
    /// The provider has closed it.
    Ended,
    /// The provider said something that was no answer to anything.
    Unsolicited,
}

impl Wire {
    /// Looks at the connection as it is now.
    pub(super) fn peek(&mut self) -> Idle {
        match self {
            Self::Plain(tcp) => peek_plain(tcp),
            Self::Secure(stream) => peek_secure(stream),
        }
    }
}

fn peek_plain(tcp: &TcpStream) -> Idle {
    let mut begin = [0; 12];
    match recv(tcp, &mut begin, RecvFlags::PEEK) {
        Err(Errno::AGAIN) => Idle::Quiet,
        Ok((length, _)) => idle_of(begin.get(..length).unwrap_or_default()),
        Err(_) => Idle::Ended,
    }
}

fn peek_secure(stream: &mut TlsStream<TcpStream>) -> Idle {
    let (tcp, session) = stream.get_mut();
    for _ in 0..MAX_RECORD_READS {
        // It wants nothing more if something is decrypted already, or the provider said that it closes.
        if !session.wants_read() {
            break;
        }
        if recv(&*tcp, &mut [0; 1], RecvFlags::PEEK) == Err(Errno::AGAIN) {
            return Idle::Quiet;
        }
        let is_read = matches!(session.read_tls(&mut Socket(tcp)), Ok(1..));
        if !is_read || session.process_new_packets().is_err() {
            return Idle::Ended;
        }
    }
    let mut begin = [0; 12];
    match session.reader().read(&mut begin) {
        Ok(length) => idle_of(begin.get(..length).unwrap_or_default()),
        Err(_) => Idle::Ended,
    }
}

/// What these first bytes on an idle connection mean; none are its end.
fn idle_of(begin: &[u8]) -> Idle {
    if begin.is_empty() || FAREWELLS.contains(&begin) { Idle::Ended } else { Idle::Unsolicited }
}

/// Reads what the socket has now, whatever the runtime remembers of it.
struct Socket<'t>(&'t TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, into, RecvFlags::empty())?.0)
    }
}
