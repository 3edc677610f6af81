//! Connections of one core to all providers: who is idle, who can take one more stream, and when a new one is made.
//!
//! One pool per core needs no lock, and a request never changes the core. HTTP/1.1 connections are taken and given back when
//! the answer was read to its end; an HTTP/2 connection is shared until its streams are used up, then the next one is opened,
//! because long streams would queue behind each other. Of many requests that come at once to a server that may speak HTTP/2,
//! one opens the connection and the others wait for it. A provider that says something unasked loses all its idle connections.
//!
//! A server may close an idle connection at the moment we use it, or refuse a stream on one that it is about to close. That is
//! nobody's fault: such a request is sent again on a new connection, once, and no attempt is counted for it.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use koboshi::fault::{Fault, Sub};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::body::Body;
use super::connect::{Connected, Connector, Via};
use super::link::{Letter, Link, Room, Unanswered};
use super::origin::Origin;
use super::peek::Idle;
use super::shared::{Shared, Stream, Turn};
use super::trouble::{Stage, fault_of, timed_out};
use super::{Answered, Writer};
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::out::content_length;

/// Idle connections that are kept to one provider.
const MOST_IDLE: usize = 512;
/// An older idle connection is not trusted.
pub(super) const OLDEST_IDLE: Duration = Duration::from_secs(50);
/// Connections to a provider that spoke unasked serve one request each for this long.
const DISTRUST: Duration = Duration::from_secs(60);
/// How often all idle connections are looked at.
const SWEEP: Duration = Duration::from_secs(1);
pub(super) type Payload = Full<Bytes>;

#[derive(Default)]
struct Shelf {
    /// The one that was used last at the end.
    #[expect(clippy::vec_box, reason = "each goes from here to a request and back in its box")]
    idle: Vec<Box<Home>>,
    shared: Vec<Shared>,
    /// Whether its connections are shared, once one was made.
    shares: Option<bool>,
    /// Held by whoever opens a connection that others may share, until it is known how many may.
    door: Arc<Mutex<()>>,
    /// Until then no connection is kept: the provider spoke unasked, and what it says next may be the answer to somebody else.
    distrusted_until: Option<Instant>,
}

impl Shelf {
    /// The provider spoke unasked on a connection: it may do so on all of them.
    fn distrust(&mut self) {
        self.idle.clear();
        self.distrusted_until = Some(Instant::now() + DISTRUST);
    }

    fn may_keep(&self, now: Instant) -> bool {
        self.idle.len() < MOST_IDLE && self.distrusted_until.is_none_or(|until| until <= now)
    }

    /// Lets go of connections that are too old, have ended, or on which the provider spoke.
    fn sweep(&mut self) {
        let mut spoke = false;
        self.idle.retain_mut(|idle| {
            let found = if idle.is_old() { Idle::Ended } else { idle.link.peek() };
            spoke |= found == Idle::Spoke;
            found == Idle::Quiet
        });
        if spoke {
            self.distrust();
        }
    }

    /// The connection that was used last and can be used now.
    fn take_idle(&mut self) -> Option<Box<Home>> {
        while let Some(mut home) = self.idle.pop() {
            if home.is_old() {
                continue;
            }
            match home.link.peek() {
                Idle::Quiet => return Some(home),
                Idle::Ended => {}
                Idle::Spoke => self.distrust(),
            }
        }
        None
    }
}

/// The connections of one core.
pub(crate) struct Pool {
    connector: Connector,
    shelves: RefCell<Shelves>,
    /// Where connections read into.
    room: Room,
    /// Where heads are written.
    desk: Cell<Vec<u8>>,
    /// When all idle connections were looked at last.
    swept: Cell<Instant>,
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

/// A connection for one request at a time, and where it goes when its answer was read. It stays in its box from one request to the next.
pub(crate) struct Home {
    pub(super) link: Link,
    via: Option<Arc<Via>>,
    origin: Origin,
    /// Only while an answer comes on it: on the shelf it must not keep what keeps it.
    pool: Option<Rc<Pool>>,
    /// When it was opened, or put there last.
    since: Instant,
}

impl Home {
    fn is_old(&self) -> bool {
        self.since.elapsed() >= OLDEST_IDLE
    }

    /// The answer was read to its end.
    pub(super) fn give_back(mut self: Box<Self>) {
        let Some(pool) = self.pool.take() else { return };
        let mut shelves = pool.shelves.borrow_mut();
        let Some(shelf) = shelves.of(&self.origin) else { return };
        if self.link.has_unasked() {
            return shelf.distrust();
        }
        self.since = Instant::now();
        if self.link.is_reusable() && shelf.may_keep(self.since) {
            shelf.idle.push(self);
        }
    }
}

/// A request.
pub(crate) struct Ask<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) path: &'a PathAndQuery,
    /// Tells the headers to whoever writes them down; one that meets a dead connection is told twice.
    pub(crate) headers: &'a dyn Fn(&mut Writer<'_>),
    pub(crate) body: &'a Bytes,
    pub(crate) connect_limit: Duration,
}

impl Ask<'_> {
    /// As text. A proxy wants the whole address, and may want to know who asks.
    fn write(&self, out: &mut Vec<u8>, via: Option<&Via>) {
        out.extend_from_slice(b"POST ");
        let whole = via.and_then(|_| self.origin.absolute(self.path));
        match whole {
            Some(address) => out.extend_from_slice(address.to_string().as_bytes()),
            None => out.extend_from_slice(self.path.as_str().as_bytes()),
        }
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let mut put = |name: &HeaderName, value: &HeaderValue| {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
        };
        put(&HOST, self.origin.authority());
        (self.headers)(&mut put);
        if let Some(auth) = via.and_then(Via::auth) {
            put(&PROXY_AUTHORIZATION, auth);
        }
        content_length(out, self.body.len() as u64);
        out.extend_from_slice(b"\r\n");
    }

    /// As HTTP/2 takes it: the address says who is meant.
    fn message(&self) -> Request<Payload> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        if let Some(address) = self.origin.absolute(self.path) {
            *request.uri_mut() = address;
        }
        let headers = request.headers_mut();
        (self.headers)(&mut |name, value| {
            headers.insert(name, value.clone());
        });
        request
    }
}

/// A connection that can take a request now.
enum Line {
    Http1(Box<Home>),
    Http2(http2::SendRequest<Payload>, Stream),
}

/// What came of sending on a connection.
enum Sent {
    Answer(Answered),
    /// The connection was dead before the request left, or died before any answer on a connection that was idle.
    Stale,
    Failed(Box<Fault>),
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Rc<Self> {
        let (shelves, room, desk) = (RefCell::default(), Room::default(), Cell::default());
        Rc::new(Self { connector, shelves, room, desk, swept: Cell::new(Instant::now()) })
    }

    /// Lets go of connections that can no longer be used. It may be called often.
    pub(crate) fn tidy(&self) {
        if self.swept.get().elapsed() >= SWEEP {
            self.swept.set(Instant::now());
            self.shelves.borrow_mut().0.iter_mut().for_each(|(_, shelf)| shelf.sweep());
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(self: &Rc<Self>, ask: &Ask<'_>) -> Result<Answered, Box<Fault>> {
        // One that was idle may be dead; a second such try would be an attempt that nobody counts.
        if let Some(line) = self.ready_line(ask.origin) {
            match self.send_on(line, ask, true).await {
                Sent::Answer(answer) => return Ok(answer),
                Sent::Stale => {}
                Sent::Failed(fault) => return Err(fault),
            }
        }
        // Rare and large, so apart from the request that needs it.
        let line = Box::pin(self.open_or_join(ask.origin, ask.connect_limit)).await?;
        match self.send_on(line, ask, false).await {
            Sent::Answer(answer) => Ok(answer),
            Sent::Failed(fault) => Err(fault),
            Sent::Stale => Err(super::trouble::cut("the connection closed before the request was sent")),
        }
    }

    fn ready_line(&self, origin: &Origin) -> Option<Line> {
        if let Some(line) = self.shared_line(origin) {
            return Some(line);
        }
        self.shelves.borrow_mut().find(origin)?.take_idle().map(Line::Http1)
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
    async fn open_or_join(&self, origin: &Origin, limit: Duration) -> Result<Line, Box<Fault>> {
        let Some(door) = self.door(origin) else { return self.open(origin, limit, None).await };
        let turn = timeout(limit, door.lock_owned()).await.map_err(|_| timed_out(Sub::Connect))?;
        if let Some(line) = self.shared_line(origin) {
            return Ok(line);
        }
        // Where it turned out that nobody can share, nobody need wait.
        let turn = self.door(origin).map(|_| turn);
        self.open(origin, limit, turn).await
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
    async fn open(&self, origin: &Origin, limit: Duration, turn: Option<Turn>) -> Result<Line, Box<Fault>> {
        let Connected { wire, http2, via } = self.connector.connect(origin, limit).await?;
        let broke = |error: hyper::Error| fault_of(&error, Stage::Connect);
        if origin.is_secure() {
            self.on_shelf(origin, |shelf| shelf.shares = Some(http2));
        }
        if !http2 {
            let link = Link::new(wire, Rc::clone(&self.room));
            let origin = origin.clone();
            return Ok(Line::Http1(Box::new(Home { link, via, origin, pool: None, since: Instant::now() })));
        }
        let shared = Shared::begin(wire, turn).await.map_err(broke)?;
        let (line, stream) = shared.stream();
        self.on_shelf(origin, |shelf| shelf.shared.push(shared));
        Ok(Line::Http2(line, stream))
    }

    async fn send_on(self: &Rc<Self>, line: Line, ask: &Ask<'_>, reused: bool) -> Sent {
        let mut home = match line {
            Line::Http1(home) => home,
            Line::Http2(mut line, stream) => {
                // On the heap: a request on a connection of its own would carry the room for it.
                let sent = Box::pin(line.try_send_request(ask.message())).await;
                return sort(sent, reused, stream);
            }
        };
        let mut letter = Letter::new(&self.desk, ask.body, |head| ask.write(head, home.via.as_deref()));
        match home.link.send(&mut letter).await {
            Ok(reply) => {
                home.pool = Some(Rc::clone(self));
                Sent::Answer(Answered { status: reply.status, head: reply.fields, body: Body::of_link(home) })
            }
            // The other side closed while we sent; on a fresh connection the same is a real fault.
            Err(Unanswered { error, is_silent: true }) if reused && has_ended(error.kind()) => Sent::Stale,
            Err(Unanswered { error, .. }) => Sent::Failed(fault_of(&error, Stage::Waiting)),
        }
    }
}

/// What came of sending on a connection that others share.
fn sort(
    sent: Result<Response<Incoming>, TrySendError<Request<Payload>>>,
    reused: bool,
    stream: Stream,
) -> Sent {
    match sent {
        Ok(answer) => {
            let (parts, incoming) = answer.into_parts();
            Sent::Answer(Answered {
                status: parts.status,
                head: Fields::of(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))),
                body: Body::of_stream(incoming, stream),
            })
        }
        Err(mut error) => {
            let unsent = error.take_message().is_some();
            let error = error.into_error();
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
    let io = beneath::<io::Error>(error).map(io::Error::kind);
    io.is_some_and(has_ended) || beneath::<h2::Error>(error).is_some_and(h2::Error::is_io)
}

fn has_ended(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    // The last one: without a farewell.
    matches!(kind, ConnectionReset | BrokenPipe | ConnectionAborted | UnexpectedEof)
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

#[cfg(test)]
mod tests;
