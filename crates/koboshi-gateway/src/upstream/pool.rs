//! Connections of one core to all providers: who is idle, who can take one more stream, and when a new one is made.
//!
//! One pool per core needs no lock, and a request never changes the core. HTTP/1.1 connections are taken and given back when
//! the answer was read to its end; an HTTP/2 connection is shared until its streams are used up, then the next one is opened,
//! because long streams would queue behind each other.
//!
//! A server may close an idle connection at the moment we use it. That is nobody's fault: such a request is sent again on a
//! new connection, once, and no attempt is counted for it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use koboshi::fault::Fault;
use tokio::time::Instant;

use super::body::Body;
use super::connect::{Connected, Connector, OnThisCore};
use super::origin::Origin;
use super::trouble::{Stage, fault_of};

/// Idle connections that are kept to one provider.
const MOST_IDLE: usize = 512;
/// An older idle connection is not trusted.
const OLDEST_IDLE: Duration = Duration::from_secs(50);
/// Streams on one HTTP/2 connection, if the other side allows more.
const MOST_STREAMS: u32 = 100;

type Payload = Full<Bytes>;

/// A connection for one request at a time.
struct Idle {
    line: http1::SendRequest<Payload>,
    since: Instant,
    absolute: bool,
}

/// A connection for many requests.
struct Shared {
    line: http2::SendRequest<Payload>,
    streams: Rc<Cell<u32>>,
    /// How many the other side allows.
    most: Rc<Cell<u32>>,
}

#[derive(Default)]
struct Shelf {
    idle: Vec<Idle>,
    shared: Vec<Shared>,
}

/// The connections of one core.
pub(crate) struct Pool {
    connector: Connector,
    shelves: RefCell<Shelves>,
}

/// Providers are few, and nearly always the same ones: looking through them is quicker than a hash of their address.
#[derive(Default)]
struct Shelves(Vec<(Origin, Shelf)>);

impl Shelves {
    fn find(&mut self, origin: &Origin) -> Option<&mut Shelf> {
        self.0.iter_mut().find(|(known, _)| known == origin).map(|(_, shelf)| shelf)
    }

    fn add(&mut self, origin: &Origin, change: impl FnOnce(&mut Shelf)) {
        if let Some(shelf) = self.find(origin) {
            return change(shelf);
        }
        let mut shelf = Shelf::default();
        change(&mut shelf);
        self.0.push((origin.clone(), shelf));
    }
}

/// Gives a connection back when its answer was read; counts a stream down when it is dropped.
pub(crate) enum Home {
    Http1 { line: http1::SendRequest<Payload>, absolute: bool, pool: Rc<Pool>, origin: Origin },
    Http2(#[expect(dead_code, reason = "counts down when it is dropped")] Stream),
}

impl Home {
    /// The answer was read to its end.
    pub(super) fn give_back(self) {
        if let Self::Http1 { line, absolute, pool, origin } = self {
            pool.shelves.borrow_mut().add(&origin, |shelf| {
                if shelf.idle.len() < MOST_IDLE {
                    shelf.idle.push(Idle { line, since: Instant::now(), absolute });
                }
            });
        }
    }
}

/// One stream of a shared connection.
pub(crate) struct Stream(Rc<Cell<u32>>);

impl Stream {
    fn on(streams: &Rc<Cell<u32>>) -> Self {
        streams.set(streams.get().saturating_add(1));
        Self(Rc::clone(streams))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// A connection that can take a request now.
enum Line {
    Http1 { line: http1::SendRequest<Payload>, absolute: bool },
    Http2(http2::SendRequest<Payload>, Stream),
}

/// What came of sending on a connection.
enum Sent {
    Answer(Response<Body>),
    /// The connection was dead before the request left, or died before any answer on a connection that was idle.
    Stale,
    Failed(Box<Fault>),
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Rc<Self> {
        Rc::new(Self { connector, shelves: RefCell::default() })
    }

    /// Sends a request and waits for the head of the answer. `make` makes it with a path, or with a whole address for a
    /// proxy; it may be asked twice.
    pub(crate) async fn send(
        self: &Rc<Self>,
        origin: &Origin,
        connect_limit: Duration,
        make: impl Fn(bool) -> Request<Payload>,
    ) -> Result<Response<Body>, Box<Fault>> {
        // One that was idle may be dead; a second such try would be an attempt that nobody counts.
        if let Some(line) = self.ready_line(origin).await {
            match self.send_on(line, origin, true, &make).await {
                Sent::Answer(answer) => return Ok(answer),
                Sent::Stale => {}
                Sent::Failed(fault) => return Err(fault),
            }
        }
        // Rare and large, so apart from the request that needs it.
        let line = Box::pin(self.open(origin, connect_limit)).await?;
        match self.send_on(line, origin, false, &make).await {
            Sent::Answer(answer) => Ok(answer),
            Sent::Failed(fault) => Err(fault),
            Sent::Stale => Err(super::trouble::cut("the connection closed before the request was sent")),
        }
    }

    async fn ready_line(&self, origin: &Origin) -> Option<Line> {
        loop {
            if let Some(line) = self.shared_line(origin) {
                return Some(line);
            }
            let mut idle = self.shelves.borrow_mut().find(origin)?.idle.pop()?;
            if idle.since.elapsed() < OLDEST_IDLE && idle.line.ready().await.is_ok() {
                return Some(Line::Http1 { line: idle.line, absolute: idle.absolute });
            }
        }
    }

    fn shared_line(&self, origin: &Origin) -> Option<Line> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.find(origin)?;
        if shelf.shared.is_empty() {
            return None;
        }
        shelf.shared.retain(|shared| !shared.line.is_closed());
        let room = |shared: &&Shared| shared.streams.get() < shared.most.get().min(MOST_STREAMS);
        let shared = shelf.shared.iter().find(room)?;
        Some(Line::Http2(shared.line.clone(), Stream::on(&shared.streams)))
    }

    async fn open(&self, origin: &Origin, limit: Duration) -> Result<Line, Box<Fault>> {
        let Connected { wire, http2, absolute } = self.connector.connect(origin, limit).await?;
        let broke = |error: hyper::Error| fault_of(&error, Stage::Connect);
        if !http2 {
            let (line, connection) = http1::handshake(TokioIo::new(wire)).await.map_err(broke)?;
            tokio::task::spawn_local(async move {
                // Its requests learn of the end by themselves.
                let _ = connection.await;
            });
            return Ok(Line::Http1 { line, absolute });
        }
        let (line, connection) = http2::Builder::new(OnThisCore)
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .handshake(TokioIo::new(wire))
            .await
            .map_err(broke)?;
        let (streams, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(MOST_STREAMS)));
        let allowed = Rc::clone(&most);
        tokio::task::spawn_local(async move {
            let mut connection = std::pin::pin!(connection);
            let _ = poll_fn(|context| {
                let polled = connection.as_mut().poll(context);
                allowed.set(u32::try_from(connection.current_max_send_streams()).unwrap_or(u32::MAX));
                polled
            })
            .await;
        });
        let stream = Stream::on(&streams);
        let shared = Shared { line: line.clone(), streams, most };
        self.shelves.borrow_mut().add(origin, |shelf| shelf.shared.push(shared));
        Ok(Line::Http2(line, stream))
    }

    async fn send_on(
        self: &Rc<Self>,
        line: Line,
        origin: &Origin,
        reused: bool,
        make: &impl Fn(bool) -> Request<Payload>,
    ) -> Sent {
        match line {
            Line::Http1 { mut line, absolute } => {
                let sent = line.try_send_request(make(absolute)).await;
                let home = |pool: &Rc<Self>| Home::Http1 {
                    line,
                    absolute,
                    pool: Rc::clone(pool),
                    origin: origin.clone(),
                };
                sort(sent, reused, |answer| Body::of(answer, home(self)))
            }
            Line::Http2(mut line, stream) => {
                let mut request = make(true);
                *request.version_mut() = Version::HTTP_2;
                let sent = line.try_send_request(request).await;
                sort(sent, reused, |answer| Body::of(answer, Home::Http2(stream)))
            }
        }
    }
}

fn sort(
    sent: Result<Response<Incoming>, TrySendError<Request<Payload>>>,
    reused: bool,
    keep: impl FnOnce(Incoming) -> Body,
) -> Sent {
    match sent {
        Ok(answer) => Sent::Answer(answer.map(keep)),
        Err(mut error) => {
            let unsent = error.take_message().is_some();
            let error = error.into_error();
            // The other side closed while we sent; on a fresh connection the same is a real fault.
            let closed =
                error.is_incomplete_message() || error.is_closed() || error.is_canceled() || is_reset(&error);
            if unsent || (reused && closed) {
                Sent::Stale
            } else {
                Sent::Failed(fault_of(&error, Stage::Waiting))
            }
        }
    }
}

fn is_reset(error: &hyper::Error) -> bool {
    use std::error::Error;
    use std::io::ErrorKind;
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(
                io.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
            );
        }
        next = error.source();
    }
    false
}

/// The address of a request on a connection: a path, or all of it.
pub(crate) fn address(origin: &Origin, path: &http::uri::PathAndQuery, absolute: bool) -> Uri {
    let whole = absolute.then(|| origin.absolute(path)).flatten();
    whole.unwrap_or_else(|| Uri::from(path.clone()))
}
