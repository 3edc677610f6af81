//! Reads the body of a request, up to a size and a time.

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
use koboshi_wire::http1::chunks::Chunks;
use koboshi_wire::http1::head::RequestBody;

/// The most that is read at a time; after that other requests have their turn.
const STEP: usize = 256 * 1024;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    Large,
    Slow,
    Broken,
    /// The bodies of all requests would take more memory than they may.
    NoMemory,
}

/// How large a body may be: by itself, and together with all others.
pub(crate) struct BodyLimits<'r> {
    pub(crate) max_bytes: usize,
    pub(crate) memory: u64,
    pub(crate) share: &'r mut MemoryShare,
}

impl BodyLimits<'_> {
    fn fits(&mut self, bytes: usize) -> Result<(), BodyError> {
        if self.share.fit(bytes, self.memory) { Ok(()) } else { Err(BodyError::NoMemory) }
    }
}

/// The body of the request that came on this line last, if it is there in time and not larger than that. A body that is not read to its end
/// spoils the line for another request.
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
            // Before it is read: what is announced may all come.
            limits.fits(length)?;
            match connection.take(length) {
                Some(whole) => whole,
                None => Box::pin(read_in_time(connection, time, read_length(connection, length))).await?,
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

async fn read_length(connection: &Connection, length: usize) -> Result<Bytes, BodyError> {
    let mut whole = connection.take_all();
    let mut turn = STEP;
    while whole.len() < length {
        // Not more, though the room grows faster than that: a kernel that holds megabytes would give them all, and others would wait.
        let step = STEP.min(length - whole.len());
        // What is announced may never come, so the rest gets its room only after a first part came. All at once: a buffer that grows in steps is
        // moved by the kernel again and again, and takes up to twice the room.
        whole.reserve(if whole.len() < STEP { step } else { length - whole.len() });
        let read = poll_fn(|context| poll_read(connection, &mut whole, step, context)).await;
        if read.map_err(|_| BodyError::Broken)? == 0 {
            return Err(BodyError::Broken);
        }
        if whole.len() >= turn {
            turn = whole.len() + STEP;
            yield_now().await;
        }
    }
    Ok(whole.freeze())
}

async fn read_chunked(connection: &Connection, limits: &mut BodyLimits<'_>) -> Result<Bytes, BodyError> {
    let max_bytes = limits.max_bytes;
    let (mut chunks, mut from, mut whole) = (Chunks::default(), connection.take_all(), BytesMut::new());
    loop {
        // One more than allowed, to see that it is too much.
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
            if read.map_err(|_| BodyError::Broken)? == 0 {
                return Err(BodyError::Broken);
            }
        }
    }
}

/// Reads some bytes, at most so many.
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
