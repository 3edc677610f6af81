//! One request and its answer on one connection.

use std::io;

use koboshi_bench::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::events::{Dialect, Events};

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The status; 0 before the head.
    pub(crate) status: u16,
    /// What the stream said.
    pub(crate) events: Events,
    /// The body ended as its head had promised.
    pub(crate) complete: bool,
    /// The connection can be used again.
    pub(crate) reusable: bool,
    /// The body of an answer that is no stream.
    pub(crate) body: Vec<u8>,
}

/// How the end of a body is known.
#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunks,
    UntilClosed,
}

impl Answer {
    /// Nothing yet of an answer in this dialect.
    pub(crate) fn of(dialect: Dialect) -> Self {
        Self { events: Events::of(dialect), ..Self::default() }
    }

    /// Sends and reads to the end; what came before an error stays.
    pub(crate) async fn take(
        &mut self,
        socket: &mut TcpStream,
        request: &[u8],
        stream: bool,
    ) -> io::Result<()> {
        socket.write_all(request).await?;
        let mut buffer = Vec::with_capacity(16 * 1024);
        let mut framing = loop {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some((framing, start)) = self.head(&buffer)? {
                buffer.drain(..start);
                break framing;
            }
        };
        let stream = stream && self.status == 200;
        loop {
            if self.body(&mut buffer, &mut framing, stream)? {
                self.complete = true;
                return Ok(());
            }
            if socket.read_buf(&mut buffer).await? == 0 {
                self.reusable = false;
                self.complete = matches!(framing, Framing::UntilClosed);
                return if self.complete { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    fn head(&mut self, buffer: &[u8]) -> io::Result<Option<(Framing, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; 96];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(start) = head.parse(buffer).map_err(|_| io::ErrorKind::InvalidData)?
        else {
            return Ok(None);
        };
        self.status = head.code.unwrap_or(0);
        self.reusable = head.version == Some(1);
        let mut framing = Framing::UntilClosed;
        for header in head.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
            if header.name.eq_ignore_ascii_case("content-length") {
                framing = Framing::Length(value.parse().map_err(|_| io::ErrorKind::InvalidData)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                framing = Framing::Chunks;
            } else if header.name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close") {
                self.reusable = false;
            }
        }
        Ok(Some((framing, start)))
    }

    /// Takes what has arrived; true at the end of the body.
    fn body(&mut self, buffer: &mut Vec<u8>, framing: &mut Framing, stream: bool) -> io::Result<bool> {
        let at = clock::now();
        match framing {
            Framing::Length(left) => {
                *left -= buffer.len().min(*left);
                let ended = *left == 0;
                self.feed(buffer, stream, at);
                buffer.clear();
                Ok(ended)
            }
            Framing::UntilClosed => {
                self.feed(buffer, stream, at);
                buffer.clear();
                Ok(false)
            }
            Framing::Chunks => {
                let mut read = 0;
                let mut ended = false;
                while let Some(arrived) = buffer.get(read..).filter(|arrived| !ended && !arrived.is_empty()) {
                    let Some((start, size)) = chunk(arrived)? else { break };
                    let Some(data) =
                        arrived.get(start..start + size).filter(|_| arrived.len() >= start + size + 2)
                    else {
                        break;
                    };
                    self.feed(data, stream, at);
                    read += start + size + 2;
                    ended = size == 0;
                }
                buffer.drain(..read);
                Ok(ended)
            }
        }
    }

    fn feed(&mut self, data: &[u8], stream: bool, at: u64) {
        if stream {
            self.events.feed(data, at);
        } else if self.body.len() < 4096 {
            self.body.extend_from_slice(data);
        }
    }
}

/// Where the chunk's data begins, and its size.
fn chunk(arrived: &[u8]) -> io::Result<Option<(usize, usize)>> {
    match httparse::parse_chunk_size(arrived).map_err(|_| io::ErrorKind::InvalidData)? {
        httparse::Status::Complete((start, size)) => {
            Ok(Some((start, usize::try_from(size).map_err(|_| io::ErrorKind::InvalidData)?)))
        }
        httparse::Status::Partial => Ok(None),
    }
}
