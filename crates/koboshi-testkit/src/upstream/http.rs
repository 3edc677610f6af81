//! HTTP/1.1 by hand: enough to read any client's request, and to break an answer at any byte.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What has been written is on its way to the client's buffer; a reset must not overtake it.
pub(super) const SETTLE: Duration = Duration::from_millis(20);
const MAX_HEAD: usize = 1 << 20;
const MAX_BODY: usize = 1 << 28;

/// A request, whole.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The client keeps the connection.
    pub(super) keeps: bool,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A connection, and what came on it and was not read yet.
pub(super) struct Wire {
    stream: Stream,
    held: Vec<u8>,
}

/// A socket, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Stream {
    async fn read(&mut self, held: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_buf(held).await,
            Self::Secure(stream) => stream.read_buf(held).await,
        }
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(stream) => stream.get_ref().0,
        }
    }
}

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, held: Vec::new() }
    }

    /// Waits until something is there to be read; false if the client went away.
    pub(super) async fn wakes(&mut self) -> bool {
        !self.held.is_empty() || matches!(self.stream.read(&mut self.held).await, Ok(1..))
    }

    /// The next request; nothing if the client went away or sent no HTTP.
    pub(super) async fn request(&mut self) -> io::Result<Option<Request>> {
        let Some(head) = self.through(b"\r\n\r\n", MAX_HEAD).await? else { return Ok(None) };
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let old = first.next() != Some("HTTP/1.1");
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
            keeps: true,
        };
        request.keeps = match request.header("connection") {
            Some(word) => {
                word.eq_ignore_ascii_case("keep-alive") || !(old || word.eq_ignore_ascii_case("close"))
            }
            None => !old,
        };
        if request.header("expect").is_some() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = if request.header("transfer-encoding").is_some() {
            self.chunks().await?
        } else {
            let length = request.header("content-length").and_then(|length| length.parse().ok());
            self.exactly(length.unwrap_or(0)).await?
        };
        Ok(body.map(|body| Request { body, ..request }))
    }

    async fn chunks(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        loop {
            let Some(line) = self.through(b"\r\n", 1024).await? else { return Ok(None) };
            let line = String::from_utf8_lossy(&line).into_owned();
            let size = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else { return Ok(None) };
            let Some(chunk) = self.exactly(size.saturating_add(2)).await? else { return Ok(None) };
            body.extend(chunk.into_iter().take(size));
            if size == 0 || body.len() > MAX_BODY {
                return Ok(Some(body));
            }
        }
    }

    /// Everything up to this mark, without it.
    async fn through(&mut self, mark: &[u8], max: usize) -> io::Result<Option<Vec<u8>>> {
        let mut scanned = 0;
        loop {
            let rest = self.held.get(scanned..).unwrap_or_default();
            if let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
                let mut taken: Vec<u8> = self.held.drain(..scanned + at + mark.len()).collect();
                taken.truncate(scanned + at);
                return Ok(Some(taken));
            }
            scanned = self.held.len().saturating_sub(mark.len() - 1);
            if self.held.len() > max || self.stream.read(&mut self.held).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Option<Vec<u8>>> {
        while self.held.len() < length {
            if length > MAX_BODY || self.stream.read(&mut self.held).await? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(self.held.drain(..length).collect()))
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(bytes).await,
            Stream::Secure(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Waits; false if the client goes away meanwhile.
    pub(super) async fn pause(&mut self, length: Duration) -> bool {
        if length.is_zero() {
            // Others must have their turn in a long stream, and a client that left must be seen.
            tokio::task::yield_now().await;
            return match &mut self.stream {
                Stream::Plain(stream) => !matches!(stream.try_read_buf(&mut self.held), Ok(0)),
                Stream::Secure(_) => tokio::time::timeout(Duration::ZERO, self.gone()).await.is_err(),
            };
        }
        tokio::select! {
            () = tokio::time::sleep(length) => true,
            () = self.gone() => false,
        }
    }

    /// Waits until the client goes away.
    pub(super) async fn gone(&mut self) {
        while matches!(self.stream.read(&mut self.held).await, Ok(1..)) {}
    }

    /// Ends the connection as a server does that has dropped it: with a reset, or without TLS's close_notify.
    pub(super) async fn abandon(self) {
        if matches!(self.stream, Stream::Plain(_)) {
            self.reset().await;
        }
    }

    /// Ends the connection with a reset, after what was written has arrived.
    pub(super) async fn reset(self) {
        tokio::time::sleep(SETTLE).await;
        // It fails only where the client is gone already.
        let _ = self.stream.socket().set_zero_linger();
    }
}
