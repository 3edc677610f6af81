//! The page of metrics of a supervisor without a gateway: `GET /metrics`, one request for each connection, one connection at a time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use koboshi_store::{Clock, SystemClock};
use koboshi_supervisor::keep::AgentMeters;

/// How long a caller may take to ask, and to take the answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A longer head is no request for this page.
const MAX_HEAD: usize = 8 * 1024;

/// Serves the page on a thread of its own for as long as the process runs; returns the address.
pub(super) fn serve(at: SocketAddr, meters: Arc<AgentMeters>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(at)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            // A broken caller does not concern the others; where the machine has no descriptor left, the next one may find one.
            let _ = stream.and_then(|stream| answer(&stream, &meters));
        }
    })?;
    Ok(address)
}

fn answer(mut stream: &TcpStream, meters: &AgentMeters) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let head = head_of(stream)?;
    let mut words = head.split(|byte| *byte == b' ');
    let is_page = (words.next(), words.next()) == (Some(b"GET"), Some(b"/metrics"));
    let (status, body) = if is_page { ("200 OK", meters.text()) } else { ("404 Not Found", String::new()) };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The head of a request, which comes in time and is short.
fn head_of(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let (begun, mut head, mut buffer) = (SystemClock.moment(), Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = TIMEOUT.saturating_sub(SystemClock.moment().since(begun));
        if left.is_zero() || head.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
    Ok(head)
}
