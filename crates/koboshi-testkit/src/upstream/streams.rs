//! HTTP/2: the same plays on streams of one connection, and the ways in which only such a connection can fall.
//!
//! What resets a connection on HTTP/1.1 resets a stream here. A stream on a connection that is doomed is refused, which says
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

use super::count::Shared;
use super::http::{Request, SETTLE};
use super::serve::{Fate, choose};

/// How the server takes its leave of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// No new streams; those that run may end.
    Gently,
    /// At once, with an error.
    Rudely,
}

/// What a connection hears from outside.
pub(super) struct Ears {
    pub(super) stale: watch::Receiver<()>,
    pub(super) leave: watch::Receiver<Leave>,
    pub(super) speak: watch::Receiver<Bytes>,
}

pub(super) async fn connection(wire: TlsStream<TcpStream>, most: u32, shared: Arc<Shared>, mut ears: Ears) {
    let guard = shared.begin();
    let shaken = h2::server::Builder::new().max_concurrent_streams(most).handshake(wire).await;
    let Ok(mut line) = shaken else { return };
    let (busy, freed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    ears.stale.mark_unchanged();
    ears.leave.mark_unchanged();
    guard.rests();
    loop {
        let accepted = tokio::select! {
            accepted = line.accept() => accepted,
            () = freed.notified() => {
                if busy.load(Ordering::SeqCst) == 0 {
                    guard.rests();
                }
                continue;
            }
            _ = ears.stale.changed() => {
                if busy.load(Ordering::SeqCst) == 0 {
                    return;
                }
                continue;
            }
            _ = ears.leave.changed() => {
                match *ears.leave.borrow() {
                    Leave::Gently => line.graceful_shutdown(),
                    Leave::Rudely => line.abrupt_shutdown(Reason::INTERNAL_ERROR),
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
                if perform(respond, play).await == Fate::Left {
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

async fn perform(mut respond: SendResponse<Bytes>, play: Play) -> Fate {
    let Play { head, beats, end } = play;
    let (after, status, headers) = match head {
        Head::Silence => {
            let _ = poll_fn(|context| respond.poll_reset(context)).await;
            return Fate::Left;
        }
        Head::Reset { after } => {
            sleep(after).await;
            respond.send_reset(Reason::INTERNAL_ERROR);
            return Fate::Played;
        }
        Head::Answer { after, status, headers } => (after, status, headers),
    };
    tokio::select! {
        () = sleep(after) => {}
        _ = poll_fn(|context| respond.poll_reset(context)) => return Fate::Left,
    }
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let Ok(mut stream) = respond.send_response(response.body(()).unwrap(), false) else { return Fate::Left };
    for beat in beats {
        if left(&mut stream, beat.after).await || stream.send_data(beat.bytes, false).is_err() {
            return Fate::Left;
        }
    }
    match end {
        End::Clean => match stream.send_data(Bytes::new(), true) {
            Ok(()) => Fate::Played,
            Err(_) => Fate::Left,
        },
        End::Cut => {
            // A reset takes back what has not left yet.
            sleep(SETTLE).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
            Fate::Played
        }
        End::Stall => {
            let _ = poll_fn(|context| stream.poll_reset(context)).await;
            Fate::Left
        }
    }
}

/// Waits; says whether the client went away meanwhile.
async fn left(stream: &mut SendStream<Bytes>, length: Duration) -> bool {
    // Others must have their turn in a long stream.
    tokio::task::yield_now().await;
    timeout(length, poll_fn(|context| stream.poll_reset(context))).await.is_ok()
}
