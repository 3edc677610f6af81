//! HTTP/2: the same plays on streams of one connection, and the ways in which only such a connection can fall.
//!
//! What resets a connection on HTTP/1.1 resets a stream here. A stream on a connection that is about to be reset is refused, which says
//! that nothing was done about it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::Response;
use koboshi_sim::{End, Head, Play};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

use super::count::SharedState;
use super::http::{Request, SETTLE};
use super::serve::{PlayEnd, choose};

/// How the server closes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shutdown {
    /// No new streams; those that run may end.
    Graceful,
    /// At once, with an error.
    Abrupt,
}

/// The signals that a connection gets from the test.
pub(super) struct TestSignals {
    pub(super) stale: watch::Receiver<()>,
    pub(super) shutdown: watch::Receiver<Shutdown>,
    pub(super) unsolicited: watch::Receiver<Bytes>,
}

pub(super) async fn connection(
    wire: TlsStream<TcpStream>,
    max: u32,
    shared: Arc<SharedState>,
    mut signals: TestSignals,
) {
    let guard = shared.begin();
    let shaken = h2::server::Builder::new().max_concurrent_streams(max).handshake(wire).await;
    let Ok(mut connection) = shaken else { return };
    let (busy, freed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    signals.stale.mark_unchanged();
    signals.shutdown.mark_unchanged();
    guard.rests();
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = freed.notified() => {
                if busy.load(Ordering::SeqCst) == 0 {
                    guard.rests();
                }
                continue;
            }
            _ = signals.stale.changed() => {
                if busy.load(Ordering::SeqCst) == 0 {
                    return;
                }
                continue;
            }
            _ = signals.shutdown.changed() => {
                match *signals.shutdown.borrow() {
                    Shutdown::Graceful => connection.graceful_shutdown(),
                    Shutdown::Abrupt => connection.abrupt_shutdown(Reason::INTERNAL_ERROR),
                }
                continue;
            }
        };
        let Some(Ok((request, mut respond))) = accepted else { return };
        if !guard.wakes() {
            respond.send_reset(Reason::REFUSED_STREAM);
            continue;
        }
        busy.fetch_add(1, Ordering::SeqCst);
        let (busy, freed) = (Arc::clone(&busy), Arc::clone(&freed));
        let (shared, id) = (Arc::clone(&shared), guard.id);
        tokio::spawn(async move {
            if let Some(request) = whole(request).await {
                let play = choose(&request, &shared, id);
                if perform(respond, play).await == PlayEnd::Left {
                    shared.cancel();
                }
            }
            busy.fetch_sub(1, Ordering::SeqCst);
            freed.notify_one();
        });
    }
}

/// The request with its body; nothing if the client took it back.
async fn whole(request: http::Request<h2::RecvStream>) -> Option<Request> {
    let (head, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(block) = stream.data().await {
        let block = block.ok()?;
        let _ = stream.flow_control().release_capacity(block.len());
        body.extend_from_slice(&block);
    }
    let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let mut headers: Vec<_> =
        head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    headers.extend(head.uri.authority().map(|place| (":authority".to_owned(), place.to_string())));
    let path = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    Some(Request { method: head.method.to_string(), path, headers, body, keeps: true })
}

async fn perform(mut respond: SendResponse<Bytes>, play: Play) -> PlayEnd {
    let Play { head, beats, end } = play;
    let (after, status, headers) = match head {
        Head::Silence => {
            let _ = poll_fn(|context| respond.poll_reset(context)).await;
            return PlayEnd::Left;
        }
        Head::Reset { after } => {
            sleep(after).await;
            respond.send_reset(Reason::INTERNAL_ERROR);
            return PlayEnd::Played;
        }
        Head::Answer { after, status, headers } => (after, status, headers),
    };
    tokio::select! {
        () = sleep(after) => {}
        _ = poll_fn(|context| respond.poll_reset(context)) => return PlayEnd::Left,
    }
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let Ok(mut stream) = respond.send_response(response.body(()).unwrap(), false) else {
        return PlayEnd::Left;
    };
    for beat in beats {
        if left(&mut stream, beat.after).await || stream.send_data(beat.bytes, false).is_err() {
            return PlayEnd::Left;
        }
    }
    match end {
        End::Clean => match stream.send_data(Bytes::new(), true) {
            Ok(()) => PlayEnd::Played,
            Err(_) => PlayEnd::Left,
        },
        End::Cut => {
            // A reset takes back what has not left yet.
            sleep(SETTLE).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
            PlayEnd::Played
        }
        End::Stall => {
            let _ = poll_fn(|context| stream.poll_reset(context)).await;
            PlayEnd::Left
        }
    }
}

/// Waits; says whether the client went away meanwhile.
async fn left(stream: &mut SendStream<Bytes>, length: Duration) -> bool {
    // Others must have their turn in a long stream.
    tokio::task::yield_now().await;
    timeout(length, poll_fn(|context| stream.poll_reset(context))).await.is_ok()
}
