//! Connections of one core to all providers: who is idle, who can take one more stream, and when a new one is made.
//!
//! One pool per core needs no lock, and a request never changes the core. HTTP/1.1 connections are taken and given back when
//! the answer was read to its end; an HTTP/2 connection is shared until its streams are used up, then the next one is opened,
//! because long streams would queue behind each other. Of many requests that come at once to a server that may speak HTTP/2,
//! one opens the connection and the others wait for it.
//!
//! A server may close an idle connection at the moment we use it, or refuse a stream on one that it is about to close. That is
//! nobody's fault: such a request is sent again on a new connection, once, and no attempt is counted for it.

use std::cell::RefCell;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::header::HOST;
use http::{Request, Response, Uri, Version};
use http_body::{Body as _, Frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::TokioIo;
use koboshi::fault::{Fault, Sub};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::body::Body;
use super::connect::{Connected, Connector, Via};
use super::link::Link;
use super::origin::Origin;
use super::shared::{Shared, Stream, Turn};
use super::trouble::{Stage, fault_of, timed_out};

/// Idle connections that are kept to one provider.
const MOST_IDLE: usize = 512;
/// An older idle connection is not trusted.
pub(super) const OLDEST_IDLE: Duration = Duration::from_secs(50);
pub(super) type Payload = Full<Bytes>;

/// A connection for one request at a time.
pub(crate) enum Single {
    /// Moved along by a task of its own: cheapest for an answer that comes as a whole.
    Tasked(http1::SendRequest<Payload>),
    /// Moved along by its request: cheapest for many pieces.
    Own(Link),
}

impl Single {
    async fn is_ready(&mut self) -> bool {
        match self {
            Self::Tasked(line) => line.ready().await.is_ok(),
            Self::Own(link) => link.is_ready().await,
        }
    }

    async fn send(
        &mut self,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Payload>>> {
        match self {
            Self::Tasked(line) => line.try_send_request(request).await,
            Self::Own(link) => link.send(request).await,
        }
    }

    /// The next piece of an answer.
    pub(super) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self {
            Self::Tasked(_) => Pin::new(incoming).poll_frame(context),
            Self::Own(link) => link.poll_frame(incoming, context),
        }
    }

    /// Nobody uses it for now.
    fn rest(&self) {
        if let Self::Own(link) = self {
            link.rest();
        }
    }
}

/// One that nobody uses.
struct Idle {
    single: Single,
    since: Instant,
    via: Option<Arc<Via>>,
}

#[derive(Default)]
struct Shelf {
    /// For whole answers and for streams, the one that was used last at the end.
    idle: Vec<Idle>,
    idle_for_streams: Vec<Idle>,
    shared: Vec<Shared>,
    /// Whether its connections are shared, once one was made.
    shares: Option<bool>,
    /// Held by whoever opens a connection that others may share, until it is known how many may.
    door: Arc<Mutex<()>>,
}

impl Shelf {
    /// One of the kind that suits best, or one of the other. Only where a new one is cheap, a stream rather gets that: it is made once, and
    /// every piece of every stream after it costs less.
    fn take(&mut self, for_streams: bool, is_new_cheap: bool) -> Option<Idle> {
        let best = self.idle(for_streams).pop();
        if best.is_some() || (for_streams && is_new_cheap) {
            return best;
        }
        self.idle(!for_streams).pop()
    }

    fn idle(&mut self, for_streams: bool) -> &mut Vec<Idle> {
        if for_streams { &mut self.idle_for_streams } else { &mut self.idle }
    }
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

    /// The same, made if it is not there.
    fn of(&mut self, origin: &Origin) -> Option<&mut Shelf> {
        if self.find(origin).is_none() {
            self.0.push((origin.clone(), Shelf::default()));
        }
        self.find(origin)
    }
}

/// Gives a connection back when its answer was read; counts a stream down when it is dropped.
pub(crate) enum Home {
    Http1 { single: Single, via: Option<Arc<Via>>, pool: Rc<Pool>, origin: Origin },
    Http2(#[expect(dead_code, reason = "counts down when it is dropped")] Stream),
}

impl Home {
    /// The answer was read to its end.
    pub(super) fn give_back(self) {
        if let Self::Http1 { single, via, pool, origin } = self {
            single.rest();
            pool.on_shelf(&origin, |shelf| {
                let idle = shelf.idle(matches!(single, Single::Own(_)));
                if idle.len() < MOST_IDLE {
                    idle.push(Idle { single, since: Instant::now(), via });
                }
            });
        }
    }
}

/// A connection that can take a request now.
enum Line {
    Http1 { single: Single, via: Option<Arc<Via>> },
    Http2(http2::SendRequest<Payload>, Stream),
}

/// What came of sending on a connection.
#[expect(clippy::large_enum_variant, reason = "taken apart where it is made")]
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

    /// Lets go of connections that nobody has used for long.
    pub(crate) fn tidy(&self) {
        for (_, shelf) in &mut self.shelves.borrow_mut().0 {
            for idle in [&mut shelf.idle, &mut shelf.idle_for_streams] {
                if idle.first().is_some_and(|oldest| oldest.since.elapsed() >= OLDEST_IDLE) {
                    idle.retain(|idle| idle.since.elapsed() < OLDEST_IDLE);
                }
            }
        }
    }

    /// Sends a request and waits for the head of the answer. `make` makes it with a path, or with a whole address for a
    /// proxy; it may be asked twice.
    pub(crate) async fn send(
        self: &Rc<Self>,
        origin: &Origin,
        connect_limit: Duration,
        streams: bool,
        make: impl Fn(bool) -> Request<Payload>,
    ) -> Result<Response<Body>, Box<Fault>> {
        // One that was idle may be dead; a second such try would be an attempt that nobody counts.
        if let Some(line) = self.ready_line(origin, streams).await {
            match self.send_on(line, origin, true, &make).await {
                Sent::Answer(answer) => return Ok(answer),
                Sent::Stale => {}
                Sent::Failed(fault) => return Err(fault),
            }
        }
        // Rare and large, so apart from the request that needs it.
        let line = Box::pin(self.open_or_join(origin, connect_limit, streams)).await?;
        match self.send_on(line, origin, false, &make).await {
            Sent::Answer(answer) => Ok(answer),
            Sent::Failed(fault) => Err(fault),
            Sent::Stale => Err(super::trouble::cut("the connection closed before the request was sent")),
        }
    }

    async fn ready_line(&self, origin: &Origin, streams: bool) -> Option<Line> {
        loop {
            if let Some(line) = self.shared_line(origin) {
                return Some(line);
            }
            let mut idle = self.shelves.borrow_mut().find(origin)?.take(streams, !origin.is_secure())?;
            if idle.since.elapsed() < OLDEST_IDLE && idle.single.is_ready().await {
                return Some(Line::Http1 { single: idle.single, via: idle.via });
            }
        }
    }

    fn shared_line(&self, origin: &Origin) -> Option<Line> {
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.find(origin)?;
        if shelf.shared.is_empty() {
            return None;
        }
        shelf.shared.retain(Shared::is_trusted);
        let (line, stream) = shelf.shared.iter().find(|shared| shared.has_room())?.stream();
        Some(Line::Http2(line, stream))
    }

    /// A new connection, or one that somebody else opened meanwhile for all.
    async fn open_or_join(
        &self,
        origin: &Origin,
        limit: Duration,
        streams: bool,
    ) -> Result<Line, Box<Fault>> {
        let Some(door) = self.door(origin) else { return self.open(origin, limit, streams, None).await };
        let turn = timeout(limit, door.lock_owned()).await.map_err(|_| timed_out(Sub::Connect))?;
        if let Some(line) = self.shared_line(origin) {
            return Ok(line);
        }
        // Where it turned out that nobody can share, nobody need wait.
        let turn = self.door(origin).map(|_| turn);
        self.open(origin, limit, streams, turn).await
    }

    /// Where to wait for one's turn to open a connection; none where connections are not shared.
    fn door(&self, origin: &Origin) -> Option<Arc<Mutex<()>>> {
        if !origin.is_secure() {
            return None;
        }
        let mut shelves = self.shelves.borrow_mut();
        let shelf = shelves.of(origin)?;
        (shelf.shares != Some(false)).then(|| Arc::clone(&shelf.door))
    }

    fn on_shelf(&self, origin: &Origin, change: impl FnOnce(&mut Shelf)) {
        if let Some(shelf) = self.shelves.borrow_mut().of(origin) {
            change(shelf);
        }
    }

    /// A new connection. The turn to open one is over when others can share it.
    async fn open(
        &self,
        origin: &Origin,
        limit: Duration,
        streams: bool,
        turn: Option<Turn>,
    ) -> Result<Line, Box<Fault>> {
        let Connected { wire, http2, via } = self.connector.connect(origin, limit).await?;
        let broke = |error: hyper::Error| fault_of(&error, Stage::Connect);
        if origin.is_secure() {
            self.on_shelf(origin, |shelf| shelf.shares = Some(http2));
        }
        if !http2 {
            if streams {
                let link = Link::begin(wire).await.map_err(broke)?;
                return Ok(Line::Http1 { single: Single::Own(link), via });
            }
            let (line, connection) = http1::handshake(TokioIo::new(wire)).await.map_err(broke)?;
            tokio::task::spawn_local(async move {
                // Its requests learn of the end by themselves.
                let _ = connection.await;
            });
            return Ok(Line::Http1 { single: Single::Tasked(line), via });
        }
        let shared = Shared::begin(wire, turn).await.map_err(broke)?;
        let (line, stream) = shared.stream();
        self.on_shelf(origin, |shelf| shelf.shared.push(shared));
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
            Line::Http1 { mut single, via } => {
                let mut request = make(via.is_some());
                if let Some(via) = &via {
                    via.sign(request.headers_mut());
                }
                let sent = single.send(request).await;
                let home = |pool: &Rc<Self>| Home::Http1 {
                    single,
                    via,
                    pool: Rc::clone(pool),
                    origin: origin.clone(),
                };
                sort(sent, reused, |answer| Body::of(answer, home(self)))
            }
            Line::Http2(mut line, stream) => {
                let mut request = make(true);
                *request.version_mut() = Version::HTTP_2;
                // The address says it.
                request.headers_mut().remove(HOST);
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
            let closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
            if unsent || is_unseen(&error) || (reused && (closed || is_ended(&error))) {
                Sent::Stale
            } else {
                Sent::Failed(fault_of(&error, Stage::Waiting))
            }
        }
    }
}

/// Whether the other side says that it did not look at the request.
fn is_unseen(error: &hyper::Error) -> bool {
    let Some(http2) = beneath::<h2::Error>(error) else { return false };
    let left = http2.is_go_away() && http2.is_remote() && http2.reason() == Some(Reason::NO_ERROR);
    left || http2.reason() == Some(Reason::REFUSED_STREAM)
}

/// Whether the connection had ended.
fn is_ended(error: &hyper::Error) -> bool {
    let ended = |kind: ErrorKind| {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        // The last one: TLS without a farewell.
        matches!(kind, ConnectionReset | BrokenPipe | ConnectionAborted | UnexpectedEof)
    };
    let io = beneath::<io::Error>(error).map(io::Error::kind);
    io.is_some_and(ended) || beneath::<h2::Error>(error).is_some_and(h2::Error::is_io)
}

/// The first cause of this kind.
fn beneath<E: Error + 'static>(error: &hyper::Error) -> Option<&E> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The address of a request on a connection: a path, or all of it.
pub(crate) fn address(origin: &Origin, path: &http::uri::PathAndQuery, absolute: bool) -> Uri {
    let whole = absolute.then(|| origin.absolute(path)).flatten();
    whole.unwrap_or_else(|| Uri::from(path.clone()))
}
