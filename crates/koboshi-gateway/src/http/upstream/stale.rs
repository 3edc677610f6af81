//! Whether a request that got no answer may be sent again without a further attempt, because its connection was dead.
//!
//! It may where no server can have processed it: it was not sent completely, the server says that it did not process it, or the connection
//! ended without a byte right after the send. A connection that ends later may have ended in the middle of paid work: that is a fault
//! of the provider, which breaker, journal and trace record.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use h2::Reason;
use tokio::time::Instant;

use super::http1_connection::{NoAnswer, OutgoingRequest};

/// A connection that was dead when it was used fails within this time: a round trip, and some margin.
const STALE_WITHIN: Duration = Duration::from_secs(1);

/// Whether an HTTP/1.1 connection that was taken at this time was dead.
pub(super) fn is_stale_http1(failure: &NoAnswer, outgoing: &OutgoingRequest<'_>, taken: Instant) -> bool {
    let is_unprocessed = !outgoing.is_sent() || taken.elapsed() < STALE_WITHIN;
    failure.is_silent && has_ended(failure.error.kind()) && is_unprocessed
}

/// Whether an HTTP/2 connection was dead, or about to be closed, when a request was sent on it at this time.
pub(super) fn is_stale_http2(error: &hyper::Error, began: Instant) -> bool {
    let is_closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    is_unprocessed(error) || ((is_closed || is_ended(error)) && began.elapsed() < STALE_WITHIN)
}

/// Whether the server says that it did not process the request.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let Some(http2) = source_of::<h2::Error>(error) else { return false };
    let goes_away = http2.is_go_away() && http2.is_remote() && http2.reason() == Some(Reason::NO_ERROR);
    goes_away || http2.reason() == Some(Reason::REFUSED_STREAM)
}

/// Whether the connection had ended.
fn is_ended(error: &hyper::Error) -> bool {
    let io = source_of::<io::Error>(error).map(io::Error::kind);
    io.is_some_and(has_ended) || source_of::<h2::Error>(error).is_some_and(h2::Error::is_io)
}

fn has_ended(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    // The last one: closed without a TLS close message.
    matches!(kind, ConnectionReset | BrokenPipe | ConnectionAborted | UnexpectedEof)
}

/// The first cause of this type.
fn source_of<E: Error + 'static>(error: &hyper::Error) -> Option<&E> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
