//! Accepting connections and performing plays on them.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use koboshi_sim::{Ask, Beat, End, Head, Operation, Play, count, embed, endpoint, names, play};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::count::SharedState;
use super::http::{Request, Stream, Wire};
use super::streams::{self, Shutdown, TestSignals};
use super::tls::Secure;

/// A command of a test to the upstream; the sender is notified when it is done.
pub(super) enum Command {
    StopListening(mpsc::Sender<()>),
    ListenAgain(mpsc::Sender<()>),
    Stale(mpsc::Sender<()>),
    StaleOnUse(mpsc::Sender<()>),
    SpeakUnasked(Bytes, mpsc::Sender<()>),
    Shutdown(Shutdown, mpsc::Sender<()>),
    End,
}

/// Serves until the test ends it.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    tls: Option<Secure>,
    shared: Arc<SharedState>,
    mut commands: UnboundedReceiver<Command>,
) {
    let address = listener.local_addr().unwrap();
    let mut listener = Some(TcpListener::from_std(listener).unwrap());
    let (stale, _) = watch::channel(());
    let (shutdown, _) = watch::channel(Shutdown::Graceful);
    let (unsolicited, _) = watch::channel(Bytes::new());
    loop {
        let command = tokio::select! {
            command = commands.recv() => command,
            accepted = accept(listener.as_ref()) => {
                let (stale, shutdown, unsolicited) = (stale.subscribe(), shutdown.subscribe(), unsolicited.subscribe());
                let signals = TestSignals { stale, shutdown, unsolicited };
                tokio::spawn(handshake(accepted, tls.clone(), Arc::clone(&shared), signals));
                continue;
            }
        };
        let done = match command {
            None | Some(Command::End) => return,
            Some(Command::StopListening(done)) => {
                listener = None;
                done
            }
            Some(Command::ListenAgain(done)) => {
                if listener.is_none() {
                    listener = Some(TcpListener::bind(address).await.unwrap());
                }
                done
            }
            Some(Command::StaleOnUse(done)) => {
                shared.doom();
                done
            }
            Some(Command::SpeakUnasked(bytes, done)) => {
                let waiting = shared.start_unsolicited();
                let _ = unsolicited.send(bytes);
                while shared.awaits_unsolicited(&waiting) {
                    tokio::task::yield_now().await;
                }
                done
            }
            Some(Command::Shutdown(how, done)) => {
                let _ = shutdown.send(how);
                done
            }
            Some(Command::Stale(done)) => {
                let idle = shared.idle();
                let _ = stale.send(());
                while shared.idle().intersection(&idle).next().is_some() {
                    tokio::task::yield_now().await;
                }
                done
            }
        };
        // The sender may be gone.
        let _ = done.send(());
    }
}

async fn accept(listener: Option<&TcpListener>) -> tokio::net::TcpStream {
    match listener {
        // An error concerns one connection that was gone before it was accepted.
        Some(listener) => loop {
            if let Ok((stream, _)) = listener.accept().await {
                return stream;
            }
        },
        None => std::future::pending().await,
    }
}

/// Does the TLS handshake where there is one, and serves the protocol that was negotiated. A client that refuses the certificate is not counted.
async fn handshake(tcp: TcpStream, tls: Option<Secure>, shared: Arc<SharedState>, signals: TestSignals) {
    // A frame must leave when it is written. It fails only where the client is gone already.
    let _ = tcp.set_nodelay(true);
    let Some(Secure { tls, streams: max }) = tls else {
        return connection(Wire::new(Stream::Plain(tcp)), shared, signals).await;
    };
    let Ok(secure) = TlsAcceptor::from(tls).accept(tcp).await else { return };
    if secure.get_ref().1.alpn_protocol() == Some(b"h2") {
        return streams::connection(secure, max, shared, signals).await;
    }
    connection(Wire::new(Stream::Secure(Box::new(secure))), shared, signals).await;
}

async fn connection(mut wire: Wire, shared: Arc<SharedState>, mut signals: TestSignals) {
    let guard = shared.begin();
    loop {
        // Commands that came while it was busy did not concern it.
        signals.stale.mark_unchanged();
        signals.unsolicited.mark_unchanged();
        guard.rests();
        let awake = loop {
            tokio::select! {
                awake = wire.wakes() => break awake,
                _ = signals.stale.changed() => break false,
                Ok(()) = signals.unsolicited.changed() => {
                    let bytes = signals.unsolicited.borrow_and_update().clone();
                    // A client that is gone gets nothing.
                    let _ = wire.write(&bytes).await;
                    guard.spoke();
                }
            }
        };
        let may_live = guard.wakes();
        if !awake {
            return;
        }
        if !may_live {
            return wire.abandon().await;
        }
        let Ok(Some(request)) = wire.request().await else { return };
        let keeps = request.keeps;
        wire = match answer(wire, &request, &shared, guard.id).await {
            Some(wire) if keeps => wire,
            _ => return,
        };
    }
}

/// Answers a request. The connection comes back if it can be used again.
async fn answer(wire: Wire, request: &Request, shared: &SharedState, connection: u64) -> Option<Wire> {
    let (fate, wire) = perform(wire, choose(request, shared, connection)).await;
    if fate == PlayEnd::Left {
        shared.cancel();
    }
    wire
}

/// What is played to a request.
pub(super) fn choose(request: &Request, shared: &SharedState, connection: u64) -> Play {
    let endpoint = endpoint(&request.path).filter(|_| request.method == "POST");
    if let Some(endpoint) = endpoint {
        let (model, tally, other) = shared.count(request, &endpoint, connection);
        let (dialect, stream, list) = (endpoint.dialect, endpoint.stream, endpoint.list);
        let ask = Ask { model: &model, dialect, stream, list, body: &request.body, tally };
        return match (other, endpoint.what) {
            (Some(other), _) => other(&ask),
            (None, Operation::Answer) => play(&ask),
            (None, Operation::Count) => count(&ask),
            (None, Operation::Embed) => embed(&ask),
        };
    }
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method == "GET" && path.ends_with("/models") {
        let models: Vec<_> = names()
            .iter()
            .map(|name| json!({"id": name.example, "object": "model", "owned_by": "sim"}))
            .collect();
        return whole(200, &json!({"object": "list", "data": models}));
    }
    let says = format!("Unknown request URL: {} {path}.", request.method);
    whole(
        404,
        &json!({"error": {"message": says, "type": "invalid_request_error", "param": null, "code": "unknown_url"}}),
    )
}

/// An answer that is no play of the sim's.
fn whole(status: u16, body: &Value) -> Play {
    let headers = vec![("content-type", "application/json".to_owned())];
    let beat = Beat { after: Duration::ZERO, bytes: body.to_string().into() };
    let head = Head::Answer { after: Duration::ZERO, status, headers };
    Play { head, beats: vec![beat].into(), end: End::Clean }
}

/// How a play came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayEnd {
    /// As it was written.
    Played,
    /// The client left before.
    Left,
}

async fn perform(mut wire: Wire, play: Play) -> (PlayEnd, Option<Wire>) {
    let Play { head, beats, end } = play;
    match head {
        Head::Silence => {
            wire.gone().await;
            (PlayEnd::Left, None)
        }
        Head::Reset { after } => {
            if !wire.pause(after).await {
                return (PlayEnd::Left, None);
            }
            wire.reset().await;
            (PlayEnd::Played, None)
        }
        Head::Answer { after, status, headers } => {
            if !wire.pause(after).await {
                return (PlayEnd::Left, None);
            }
            match body(&mut wire, status, &headers, beats, end).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return (PlayEnd::Left, None),
            }
            match end {
                End::Clean => (PlayEnd::Played, Some(wire)),
                End::Cut => {
                    wire.reset().await;
                    (PlayEnd::Played, None)
                }
                End::Stall => {
                    wire.gone().await;
                    (PlayEnd::Left, None)
                }
            }
        }
    }
}

/// Sends head and body; false if the client left.
async fn body(
    wire: &mut Wire,
    status: u16,
    headers: &[(&'static str, String)],
    beats: koboshi_sim::Beats,
    end: End,
) -> io::Result<bool> {
    let mut beats = beats.peekable();
    let first = beats.next();
    let streams = headers.iter().any(|(_, value)| value.starts_with("text/event-stream"));
    // A list that comes in pieces is a stream too.
    let streams = streams || beats.peek().is_some();
    let beats = first.into_iter().chain(beats);
    if !streams && end == End::Clean {
        // A whole body goes out with its length, as servers do.
        let mut whole = Vec::new();
        let mut pause = Duration::ZERO;
        for beat in beats {
            pause += beat.after;
            whole.extend_from_slice(&beat.bytes);
        }
        if !wire.pause(pause).await {
            return Ok(false);
        }
        let mut out = head(status, headers, &Framing::Length(whole.len())).into_bytes();
        out.extend(whole);
        wire.write(&out).await?;
        return Ok(true);
    }
    wire.write(head(status, headers, &Framing::Chunked).as_bytes()).await?;
    for beat in beats {
        if !wire.pause(beat.after).await {
            return Ok(false);
        }
        let mut chunk = format!("{:x}\r\n", beat.bytes.len()).into_bytes();
        chunk.extend_from_slice(&beat.bytes);
        chunk.extend_from_slice(b"\r\n");
        wire.write(&chunk).await?;
    }
    if end == End::Clean {
        wire.write(b"0\r\n\r\n").await?;
    }
    Ok(true)
}

enum Framing {
    Length(usize),
    Chunked,
}

fn head(status: u16, headers: &[(&'static str, String)], framing: &Framing) -> String {
    let reason = match status {
        200 => "OK",
        400..500 => "Client Error",
        _ => "Server Error",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match framing {
        Framing::Length(length) => head.push_str(&format!("content-length: {length}\r\n\r\n")),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n\r\n"),
    }
    head
}
