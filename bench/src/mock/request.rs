//! One request, read from a connection into a buffer that is used again.
//!
//! Only what a gateway sends is understood: a length must be stated, and a body in chunks is refused.

use std::io;
use std::ops::Range;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Where the parts of a request lie in the buffer.
pub(crate) struct Request {
    /// Method and path, as `POST /v1/chat/completions`.
    pub(crate) line: Range<usize>,
    /// The body.
    pub(crate) body: Range<usize>,
    /// The client wants no further answer here.
    pub(crate) last: bool,
}

/// Reads until a request is whole; nothing where the client has left.
pub(crate) async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Request>> {
    loop {
        if let Some(request) = whole(buffer)? {
            return Ok(Some(request));
        }
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn whole(buffer: &[u8]) -> io::Result<Option<Request>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut headers);
    let start = match head.parse(buffer).map_err(|_| io::ErrorKind::InvalidData)? {
        httparse::Status::Complete(start) => start,
        httparse::Status::Partial => return Ok(None),
    };
    let (mut length, mut last) = (0, false);
    for header in head.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            length = number(header.value).ok_or(io::ErrorKind::InvalidData)?;
        } else if header.name.eq_ignore_ascii_case("connection") {
            last = header.value.eq_ignore_ascii_case(b"close");
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(io::ErrorKind::Unsupported.into());
        }
    }
    let end = start + length;
    let line = 0..head.method.map_or(0, str::len) + 1 + head.path.map_or(0, str::len);
    Ok((buffer.len() >= end).then_some(Request { line, body: start..end, last }))
}

fn number(value: &[u8]) -> Option<usize> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}
