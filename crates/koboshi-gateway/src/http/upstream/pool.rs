//! Connections of one core to all providers: who is idle, who can take one more stream, and when a new one is made.
//!
//! One pool per core needs no lock, and a request never changes the core. HTTP/1.1 connections are taken and given back when
//! the answer was read to its end; an HTTP/2 connection is shared until its streams are used up, then the next one is opened,
//! because long streams would queue behind each other. Of many requests that come at once to a server that may speak HTTP/2,
//! one opens the connection and the others wait for it. A provider that says something unasked loses all its idle connections.
//!
//! A server may close an idle connection at the moment we use it, or refuse a stream on one that it is about to close. That is
//! nobody's fault: such a request is sent again on a new connection ([`stale`](super::stale)), and no attempt is counted for it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http2;
use koboshi::fault::{Fault, Sub};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Answered;
use super::ask::{Ask, Payload};
use super::body::Body;
use super::connect::{Connected, Connector, Via};
use super::link::{Letter, Link, Room};
use super::origin::Origin;
use super::peek::Idle;
use super::shared::{Shared, Stream, Turn};
use super::stale::{is_stale_link, is_stale_stream};
use super::trouble::{Stage, cut, fault_of, is_own_lack, timed_out};
use koboshi_wire::http1::Fields;

/// Idle connections that are kept to one provider.
const MOST_IDLE: usize = 512;
/// An older idle connection is not trusted.
pub(super) const OLDEST_IDLE: Duration = Duration::from_secs(50);
/// Connections to a provider that spoke unasked serve one request each for this long.
const DISTRUST: Duration = Duration::from_secs(60);
/// How often all idle connections are looked at.
const SWEEP: Duration = Duration::from_secs(1);

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
        let (now, mut spoke) = (Instant::now(), false);
        self.idle.retain_mut(|idle| {
            let found = if idle.is_old(now) { Idle::Ended } else { idle.link.peek() };
            spoke |= found == Idle::Spoke;
            found == Idle::Quiet
        });
        if spoke {
            self.distrust();
        }
    }

    /// The connection that was used last and can be used now.
    fn take_idle(&mut self) -> Option<Box<Home>> {
        let now = Instant::now();
        while let Some(mut home) = self.idle.pop() {
            if home.is_old(now) {
                continue;
            }
            match home.link.peek() {
                Idle::Quiet => {
                    home.since = now;
                    return Some(home);
                }
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
    /// When it was opened, put there or taken last.
    since: Instant,
}

impl Home {
    fn is_old(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= OLDEST_IDLE
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

/// A connection that can take a request now.
enum Line {
    Http1(Box<Home>),
    Http2(http2::SendRequest<Payload>, Stream),
}

/// What came of sending on a connection.
enum Sent {
    Answer(Answered),
    /// The connection was dead before anything of the request left.
    Unsent,
    /// The connection died, and nobody can have worked on the request.
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

    /// Closes all connections that nobody uses: somebody needs their descriptors. Says whether there were any.
    fn close_idle(&self) -> bool {
        let mut shelves = self.shelves.borrow_mut();
        let idle: Vec<_> = shelves.0.iter_mut().flat_map(|(_, shelf)| shelf.idle.drain(..)).collect();
        !idle.is_empty()
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(self: &Rc<Self>, ask: &Ask<'_>) -> Result<Answered, Box<Fault>> {
        let may_resend = ask.sends.may_resend();
        if let Some(line) = self.ready_line(ask.origin, may_resend) {
            match self.send_on(line, ask, may_resend).await {
                Sent::Answer(answer) => return Ok(answer),
                Sent::Failed(fault) => return Err(fault),
                Sent::Unsent => {}
                Sent::Stale => {
                    ask.sends.resend();
                    (ask.on_resend)();
                }
            }
        }
        // Rare and large, so apart from the request that needs it.
        let line = Box::pin(self.open_or_join(ask.origin, ask.connect_limit)).await?;
        match self.send_on(line, ask, false).await {
            Sent::Answer(answer) => Ok(answer),
            Sent::Failed(fault) => Err(fault),
            Sent::Unsent | Sent::Stale => Err(cut("the connection closed before the request was sent")),
        }
    }

    /// A connection that is open. One that was idle may be dead: a request that may not be sent again gets none of those.
    fn ready_line(&self, origin: &Origin, may_resend: bool) -> Option<Line> {
        if let Some(line) = self.shared_line(origin) {
            return Some(line);
        }
        if !may_resend {
            return None;
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
        let connected = match self.connector.connect(origin, limit).await {
            Err(fault) if is_own_lack(&fault) && self.close_idle() => {
                self.connector.connect(origin, limit).await
            }
            connected => connected,
        };
        let Connected { wire, http2, via } = connected?;
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

    /// Sends on this connection. One that was used before may be stale.
    async fn send_on(self: &Rc<Self>, line: Line, ask: &Ask<'_>, reused: bool) -> Sent {
        ask.sends.begin();
        let sent = match line {
            Line::Http1(home) => self.send_on_link(home, ask, reused).await,
            Line::Http2(line, stream) => Box::pin(send_on_stream(line, stream, ask, reused)).await,
        };
        if matches!(sent, Sent::Unsent) {
            ask.sends.take_back();
        }
        sent
    }

    async fn send_on_link(self: &Rc<Self>, mut home: Box<Home>, ask: &Ask<'_>, reused: bool) -> Sent {
        let mut letter = Letter::new(&self.desk, ask.body, |head| ask.write(head, home.via.as_deref()));
        match home.link.send(&mut letter).await {
            Ok(reply) => {
                home.pool = Some(Rc::clone(self));
                Sent::Answer(Answered { status: reply.status, head: reply.fields, body: Body::of_link(home) })
            }
            Err(unanswered) if reused && is_stale_link(&unanswered, &letter, home.since) => {
                if letter.has_begun() { Sent::Stale } else { Sent::Unsent }
            }
            Err(unanswered) => Sent::Failed(fault_of(&unanswered.error, Stage::Waiting)),
        }
    }
}

async fn send_on_stream(
    mut line: http2::SendRequest<Payload>,
    mut stream: Stream,
    ask: &Ask<'_>,
    reused: bool,
) -> Sent {
    let began = Instant::now();
    let mut error = match line.try_send_request(ask.message()).await {
        Ok(answer) => {
            stream.answered();
            let (parts, incoming) = answer.into_parts();
            let head =
                Fields::of(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
            return Sent::Answer(Answered {
                status: parts.status,
                head,
                body: Body::of_stream(incoming, stream),
            });
        }
        Err(error) => error,
    };
    if error.take_message().is_some() {
        return Sent::Unsent;
    }
    let error = error.into_error();
    if reused && is_stale_stream(&error, began) {
        Sent::Stale
    } else {
        Sent::Failed(fault_of(&error, Stage::Waiting))
    }
}

#[cfg(test)]
mod tests;
