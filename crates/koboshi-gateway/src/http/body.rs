//! Reads the body of a request, within limits of size and time.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::AsyncReadExt;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::http::client::Connection;
use crate::http::memory::MemoryShare;
use crate::http::pace::LARGE;
use koboshi_wire::http1::chunks::Chunks;
use koboshi_wire::http1::head::RequestBody;

/// How much is read at a time; after that other requests are polled.
const MAX_READ: usize = 256 * 1024;
/// How much of a large body is read at a time.
const MAX_READ_LARGE: usize = 64 * 1024;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    Large,
    Slow,
    Broken,
    /// The bodies of all requests together would exceed their memory budget.
    NoMemory,
}

/// The limits of a body: its own, and the budget of all together.
pub(crate) struct BodyLimits<'r> {
    pub(crate) max_bytes: usize,
    pub(crate) memory: u64,
    pub(crate) share: &'r mut MemoryShare,
}

impl BodyLimits<'_> {
    fn fits(&mut self, bytes: usize) -> Result<(), BodyError> {
        if self.share.fit(bytes, self.memory) { Ok(()) } else { Err(BodyError::NoMemory) }
    }

    fn could_fit(&self, bytes: usize) -> Result<(), BodyError> {
        if self.share.could_fit(bytes, self.memory) { Ok(()) } else { Err(BodyError::NoMemory) }
    }
}

/// Reads the body of the last request on this connection. After a body that is not read to its end, the connection cannot be
/// reused.
pub(crate) async fn read(
    connection: &Connection,
    mut limits: BodyLimits<'_>,
    time: Duration,
) -> Result<Bytes, BodyError> {
    let remaining_body = connection.remaining_body();
    connection.abandon_body();
    let whole = match remaining_body {
        RequestBody::Nothing => Bytes::new(),
        RequestBody::Abandoned => return Err(BodyError::Broken),
        RequestBody::Length(length) => {
            let length = usize::try_from(length)
                .ok()
                .filter(|length| *length <= limits.max_bytes)
                .ok_or(BodyError::Large)?;
            // Checked before it is read: all of the announced length may come. It is taken only when a first part came, because announcing
            // costs a client nothing.
            limits.could_fit(length)?;
            limits.fits(length.min(MAX_READ))?;
            match connection.take(length) {
                Some(whole) => limits.fits(length).map(|()| whole)?,
                None => {
                    let reading = read_length(connection, length, &mut limits);
                    Box::pin(read_in_time(connection, time, reading)).await?
                }
            }
        }
        RequestBody::Chunked => {
            Box::pin(read_in_time(connection, time, read_chunked(connection, &mut limits))).await?
        }
    };
    connection.body_was_read();
    Ok(whole)
}

async fn read_in_time(
    connection: &Connection,
    time: Duration,
    body: impl Future<Output = Result<Bytes, BodyError>>,
) -> Result<Bytes, BodyError> {
    connection.send_continue();
    timeout(time, body).await.unwrap_or(Err(BodyError::Slow))
}

async fn read_length(
    connection: &Connection,
    length: usize,
    limits: &mut BodyLimits<'_>,
) -> Result<Bytes, BodyError> {
    let mut whole = connection.take_all();
    let is_large = length > LARGE;
    let (max_read, mut turn) = (if is_large { MAX_READ_LARGE } else { MAX_READ }, MAX_READ);
    while whole.len() < length {
        if whole.len() >= MAX_READ {
            limits.fits(length)?;
        }
        // Not more, though the buffer grows faster: a kernel that holds megabytes would hand over all of them, and other requests would wait.
        let step = max_read.min(length - whole.len());
        // The announced length may never come, so the full buffer is only reserved after a first part came. All at once: a buffer that grows
        // in steps is moved again and again, and takes up to twice the memory.
        whole.reserve(if whole.len() < MAX_READ { step } else { length - whole.len() });
        let read = poll_fn(|context| poll_read(connection, &mut whole, step, context)).await;
        let read = read.map_err(|_| BodyError::Broken)?;
        if read == 0 {
            return Err(BodyError::Broken);
        }
        if is_large {
            connection.pace().after_reading(read).await;
        } else if whole.len() >= turn {
            turn = whole.len() + MAX_READ;
            yield_now().await;
        }
    }
    Ok(whole.freeze())
}

async fn read_chunked(connection: &Connection, limits: &mut BodyLimits<'_>) -> Result<Bytes, BodyError> {
    let max_bytes = limits.max_bytes;
    let (mut chunks, mut from, mut whole) = (Chunks::default(), connection.take_all(), BytesMut::new());
    loop {
        // One more than allowed, to detect that it is too much.
        let left = max_bytes.saturating_sub(whole.len()).saturating_add(1);
        chunks.read(&mut from, &mut whole, left).map_err(|_| BodyError::Broken)?;
        if whole.len() > max_bytes {
            return Err(BodyError::Large);
        }
        limits.fits(whole.len())?;
        if chunks.is_done() {
            connection.put_back(from);
            return Ok(whole.freeze());
        }
        if from.is_empty() {
            from.reserve(16 * 1024);
            let read = poll_fn(|context| poll_read(connection, &mut from, 16 * 1024, context)).await;
            let read = read.map_err(|_| BodyError::Broken)?;
            if read == 0 {
                return Err(BodyError::Broken);
            }
            if whole.len() > LARGE {
                connection.pace().after_reading(read).await;
            }
        }
    }
}

/// Reads some bytes, up to a maximum.
fn poll_read(
    connection: &Connection,
    into: &mut BytesMut,
    max_bytes: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut into = into.limit(max_bytes);
    let mut stream = connection.stream();
    let read = ready!(pin!(stream.read_buf(&mut into)).poll(context));
    Poll::Ready(read)
}
