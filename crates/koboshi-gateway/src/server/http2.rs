//! HTTP/2 from clients: hyper speaks it, and every stream is served as a connection of HTTP/1.1 inside this process.
//!
//! So there is one way from a request to its answer, with one set of limits: a stream has the time limits of a connection, a client that stops
//! reading is noticed in the same way, and what it cancels ends with its pipe. It costs two copies of what passes, which is small beside TLS.
//! There is no WebSocket over HTTP/2: browsers open a connection of their own for it.

use std::cell::Cell;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use h2::Reason;
use http::header::{CONNECTION, COOKIE, EXPECT, HOST, HeaderValue, TE, TRANSFER_ENCODING};
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use koboshi_wire::http1::head::MAX_HEAD;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::server::TlsStream;

use super::clients::ConnectionCount;
use crate::http::client::ClientStream;
use crate::server::connection::connection;
use crate::shared::core_state::CoreState;

/// Streams on one connection.
const MAX_STREAMS: u32 = 100;
/// What a pipe holds of each direction.
const PIPE: usize = 64 * 1024;
/// How often a silent client is asked whether it is still there, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(20);

/// Why a stream is not served.
type StreamError = Box<dyn std::error::Error + Send + Sync>;

/// Runs hyper's tasks on this thread.
#[derive(Clone)]
struct LocalTasks;

impl<F: Future + 'static> Executor<F> for LocalTasks {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(async move {
            task.await;
        });
    }
}

/// Serves the streams of a connection until it ends, the gateway stops, or no request comes for as long as a head may take.
pub(super) async fn serve(
    core: &Rc<CoreState>,
    stream: TlsStream<TcpStream>,
    peer: IpAddr,
    count: &ConnectionCount,
    mut stop: watch::Receiver<bool>,
) {
    let used = Rc::new(Use::default());
    let service = service_fn(|request| {
        let open = count.one_more().map(|one_more| (one_more, Use::begin(&used)));
        exchange(Rc::clone(core), open, request, peer)
    });
    let mut builder = http2::Builder::new(LocalTasks);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        let limit = core.state.plan().config.serve.head_time;
        tokio::select! {
            // The end of a client's connection, good or bad, is no error of ours.
            _ = serving.as_mut() => return,
            _ = stop.wait_for(|stop| *stop), if !core.connections.are_stopping() => break,
            () = sleep_until(used.last.get() + limit) => {
                if used.is_idle_for(limit) {
                    break;
                }
                used.touch();
            }
        }
    }
    serving.as_mut().graceful_shutdown();
    let limit = core.state.plan().config.serve.head_time;
    loop {
        tokio::select! {
            _ = serving.as_mut() => return,
            // A client that does not close an idle connection is not waited for.
            () = sleep_until(used.last.get().max(Instant::now()) + limit) => {
                if used.open.get() == 0 {
                    return;
                }
            }
        }
    }
}

/// Serves one stream. What is open ends with the pipe: when the answer is complete, or the client gave it up.
async fn exchange(
    core: Rc<CoreState>,
    open: Option<(ConnectionCount, InUse)>,
    request: Request<Incoming>,
    peer: IpAddr,
) -> Result<Response<Incoming>, StreamError> {
    // The client may send it again: on another connection, or later.
    let open = open.ok_or_else(|| h2::Error::from(Reason::REFUSED_STREAM))?;
    let (near, far) = tokio::io::duplex(PIPE);
    let client = core.connections.add(ClientStream::Pipe(far));
    tokio::task::spawn_local(async move {
        let _open = open;
        connection(core, client, peer).await;
    });
    let (mut sender, driver) = http1::handshake(TokioIo::new(near)).await?;
    tokio::task::spawn_local(driver);
    Ok(sender.send_request(as_http1(request)?).await?)
}

/// The same request in HTTP/1.1 (RFC 9113, 8.2.3 and 8.3.1).
fn as_http1(request: Request<Incoming>) -> Result<Request<Incoming>, http::Error> {
    let (mut parts, body) = request.into_parts();
    parts.version = Version::HTTP_11;
    if let Some(authority) = parts.uri.authority() {
        parts.headers.insert(HOST, HeaderValue::from_str(authority.as_str())?);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = Uri::builder().path_and_query(path).build()?;
    for of_a_connection in [CONNECTION, TE, TRANSFER_ENCODING, EXPECT] {
        parts.headers.remove(of_a_connection);
    }
    // HTTP/2 may send a cookie in pieces.
    let cookies: Vec<&[u8]> = parts.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1 {
        let cookies = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))?;
        parts.headers.insert(COOKIE, cookies);
    }
    Ok(Request::from_parts(parts, body))
}

/// How a connection is used.
struct Use {
    open: Cell<u32>,
    last: Cell<Instant>,
}

impl Default for Use {
    fn default() -> Self {
        Self { open: Cell::new(0), last: Cell::new(Instant::now()) }
    }
}

impl Use {
    fn begin(used: &Rc<Self>) -> InUse {
        used.open.set(used.open.get() + 1);
        InUse(Rc::clone(used))
    }

    fn touch(&self) {
        self.last.set(Instant::now());
    }

    fn is_idle_for(&self, limit: Duration) -> bool {
        self.open.get() == 0 && self.last.get().elapsed() >= limit
    }
}

/// A stream that is open.
struct InUse(Rc<Use>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
        self.0.touch();
    }
}
