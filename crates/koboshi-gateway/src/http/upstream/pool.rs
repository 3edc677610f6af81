//! The connections of one core to all providers: which are idle, which can take one more stream, and when a new one is opened.
//!
//! One pool per core needs no lock, and a request never changes the core. HTTP/1.1 connections are returned when the answer was read to its
//! end; an HTTP/2 connection is shared until its streams are used up, then the next one is opened,
//! because long streams would queue behind each other. Of many requests that come at once to a server that may speak HTTP/2,
//! one opens the connection and the others wait for it. A provider that sends something unsolicited loses all its idle connections.
//!
//! A server may close an idle connection at the moment we use it, or refuse a stream on one that it is about to close. That is no
//! failure: such a request is sent again on a new connection ([`stale`](super::stale)), and counts as no further attempt.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::http2;
use koboshi::fault::{Fault, Sub};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::UpstreamAnswer;
use super::body::Body;
use super::connect::{Connector, ForwardProxy, NewConnection};
use super::connection_fault::{Stage, cut, fault_of, is_local_shortage, timed_out};
use super::http1_connection::{Http1Connection, OutgoingRequest, ReadBuffer};
use super::http2_connection::{Http2Connection, Http2Stream, OpenLock};
use super::origin::Origin;
use super::peek::IdleState;
use super::server_request::{Payload, ServerRequest};
use super::stale::{is_stale_http1, is_stale_http2};
use koboshi_wire::http1::Fields;

/// How many idle connections to one provider are kept.
const MAX_IDLE: usize = 512;
/// Older idle connections are not used.
pub(super) const MAX_IDLE_AGE: Duration = Duration::from_secs(50);
/// For how long connections to a provider that sent something unsolicited are not reused.
const DISTRUST: Duration = Duration::from_secs(60);
/// How often all idle connections are checked.
const SWEEP: Duration = Duration::from_secs(1);

#[derive(Default)]
struct HostPool {
    /// The most recently used one is last.
    #[expect(clippy::vec_box, reason = "each goes from here to a request and back in its box")]
    idle: Vec<Box<PooledConnection>>,
    shared: Vec<Http2Connection>,
    /// Whether its connections are shared, known once one was opened.
    shares: Option<bool>,
    /// Held while a connection that others may share is being opened, until its stream limit is known.
    open_lock: Arc<Mutex<()>>,
    /// Until then no connection is kept: the provider sent something unsolicited, and the next such bytes may belong to another request.
    distrusted_until: Option<Instant>,
}

impl HostPool {
    /// The provider sent something unsolicited on a connection: it may do so on all of them.
    fn distrust(&mut self) {
        self.idle.clear();
        self.distrusted_until = Some(Instant::now() + DISTRUST);
    }

    fn may_keep(&self, now: Instant) -> bool {
        self.idle.len() < MAX_IDLE && self.distrusted_until.is_none_or(|until| until <= now)
    }

    /// Closes connections that are too old, have ended, or have unsolicited bytes.
    fn sweep(&mut self) {
        let (now, mut is_unsolicited) = (Instant::now(), false);
        self.idle.retain_mut(|idle| {
            let found = if idle.is_old(now) { IdleState::Ended } else { idle.connection.peek() };
            is_unsolicited |= found == IdleState::Unsolicited;
            found == IdleState::Quiet
        });
        if is_unsolicited {
            self.distrust();
        }
    }

    /// The most recently used idle connection that can be used now.
    fn take_idle(&mut self, now: Instant) -> Option<Box<PooledConnection>> {
        while let Some(mut pooled) = self.idle.pop() {
            if pooled.is_old(now) {
                continue;
            }
            match pooled.connection.peek() {
                IdleState::Quiet => {
                    pooled.since = now;
                    return Some(pooled);
                }
                IdleState::Ended => {}
                IdleState::Unsolicited => self.distrust(),
            }
        }
        None
    }
}

/// The connections of one core.
pub(crate) struct Pool {
    connector: Connector,
    hosts: RefCell<HostPools>,
    /// The shared read buffer.
    read_buffer: ReadBuffer,
    /// The shared buffer for heads.
    head_buffer: Cell<Vec<u8>>,
    /// When all idle connections were checked last.
    last_sweep: Cell<Instant>,
    /// When [`Pool::tidy`] was called last.
    last_tick: Cell<Instant>,
}

/// Providers are few, and nearly always the same ones: searching a list is quicker than hashing an address.
#[derive(Default)]
struct HostPools(Vec<(Origin, HostPool)>);

impl HostPools {
    fn find(&mut self, origin: &Origin) -> Option<&mut HostPool> {
        self.0.iter_mut().find(|(known, _)| known == origin).map(|(_, host)| host)
    }

    /// As `find`, but adds a missing one.
    fn of(&mut self, origin: &Origin) -> Option<&mut HostPool> {
        if self.find(origin).is_none() {
            self.0.push((origin.clone(), HostPool::default()));
        }
        self.find(origin)
    }
}

/// A connection for one request at a time, and the pool that it returns to. It stays in its box from one request to the next.
pub(crate) struct PooledConnection {
    pub(super) connection: Http1Connection,
    via: Option<Arc<ForwardProxy>>,
    origin: Origin,
    /// Only while an answer comes on it: an idle connection must not keep its own pool alive.
    pool: Option<Rc<Pool>>,
    /// When it was last opened, returned or taken.
    since: Instant,
}

impl PooledConnection {
    fn is_old(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= MAX_IDLE_AGE
    }

    /// Returns the connection, after its answer was read to its end.
    pub(super) fn return_to_pool(mut self: Box<Self>) {
        let Some(pool) = self.pool.take() else { return };
        let mut hosts = pool.hosts.borrow_mut();
        let Some(host) = hosts.of(&self.origin) else { return };
        if self.connection.has_unsolicited() {
            return host.distrust();
        }
        // Near enough for its age, and it costs no reading of the clock.
        self.since = self.since.max(pool.last_tick.get());
        if self.connection.is_reusable() && host.may_keep(self.since) {
            host.idle.push(self);
        }
    }
}

/// A connection that can take a request now.
enum ReadyConnection {
    Http1(Box<PooledConnection>),
    Http2(http2::SendRequest<Payload>, Http2Stream),
}

/// The result of sending on a connection.
enum SendOutcome {
    Answer(UpstreamAnswer),
    /// The connection was dead before any of the request was sent.
    Unsent,
    /// The connection died, and no server can have processed the request.
    Stale,
    Failed(Box<Fault>),
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Rc<Self> {
        let (hosts, read_buffer, head_buffer) = (RefCell::default(), ReadBuffer::default(), Cell::default());
        let (last_sweep, last_tick) = (Cell::new(Instant::now()), Cell::new(Instant::now()));
        Rc::new(Self { connector, hosts, read_buffer, head_buffer, last_sweep, last_tick })
    }

    /// Closes connections that can no longer be used. It may be called often.
    pub(crate) fn tidy(&self) {
        let now = Instant::now();
        self.last_tick.set(now);
        if now.duration_since(self.last_sweep.get()) >= SWEEP {
            self.last_sweep.set(now);
            self.hosts.borrow_mut().0.iter_mut().for_each(|(_, host)| host.sweep());
        }
    }

    /// Closes all idle connections, because their descriptors are needed; returns whether there were any.
    fn close_idle(&self) -> bool {
        let mut hosts = self.hosts.borrow_mut();
        let idle: Vec<_> = hosts.0.iter_mut().flat_map(|(_, host)| host.idle.drain(..)).collect();
        !idle.is_empty()
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(
        self: &Rc<Self>,
        request: &ServerRequest<'_>,
    ) -> Result<UpstreamAnswer, Box<Fault>> {
        let may_resend = request.sends.may_resend();
        if let Some(connection) = self.ready_connection(request, may_resend) {
            match self.send_on(connection, request, may_resend).await {
                SendOutcome::Answer(answer) => return Ok(answer),
                SendOutcome::Failed(fault) => return Err(fault),
                SendOutcome::Unsent => {}
                SendOutcome::Stale => {
                    request.sends.resend();
                    (request.on_resend)();
                }
            }
        }
        // Rare and large, so boxed apart from the request.
        let connection = Box::pin(self.open_or_join(request.origin, request.connect_limit)).await?;
        match self.send_on(connection, request, false).await {
            SendOutcome::Answer(answer) => Ok(answer),
            SendOutcome::Failed(fault) => Err(fault),
            SendOutcome::Unsent | SendOutcome::Stale => {
                Err(cut("the connection closed before the request was sent"))
            }
        }
    }

    /// An open connection. An idle one may be dead: a request that may not be sent again gets none of those.
    fn ready_connection(&self, request: &ServerRequest<'_>, may_resend: bool) -> Option<ReadyConnection> {
        if let Some(connection) = self.shared_connection(request.origin) {
            return Some(connection);
        }
        if !may_resend {
            return None;
        }
        self.hosts.borrow_mut().find(request.origin)?.take_idle(request.began).map(ReadyConnection::Http1)
    }

    fn shared_connection(&self, origin: &Origin) -> Option<ReadyConnection> {
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.find(origin)?;
        if host.shared.is_empty() {
            return None;
        }
        host.shared.retain(Http2Connection::is_trusted);
        let (connection, stream) = host.shared.iter().find(|shared| shared.has_room())?.stream();
        Some(ReadyConnection::Http2(connection, stream))
    }

    /// A new connection, or a shared one that another request opened meanwhile.
    async fn open_or_join(&self, origin: &Origin, limit: Duration) -> Result<ReadyConnection, Box<Fault>> {
        let Some(open_lock) = self.open_lock(origin) else { return self.open(origin, limit, None).await };
        let lock = timeout(limit, open_lock.lock_owned()).await.map_err(|_| timed_out(Sub::Connect))?;
        if let Some(connection) = self.shared_connection(origin) {
            return Ok(connection);
        }
        // If connections turned out not to be shared, others need not wait.
        let lock = self.open_lock(origin).map(|_| lock);
        self.open(origin, limit, lock).await
    }

    /// The lock for opening a connection; none where connections are not shared.
    fn open_lock(&self, origin: &Origin) -> Option<Arc<Mutex<()>>> {
        if !origin.is_secure() {
            return None;
        }
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.of(origin)?;
        (host.shares != Some(false)).then(|| Arc::clone(&host.open_lock))
    }

    fn with_host(&self, origin: &Origin, change: impl FnOnce(&mut HostPool)) {
        if let Some(host) = self.hosts.borrow_mut().of(origin) {
            change(host);
        }
    }

    /// Opens a connection. The lock is released when others can share it.
    async fn open(
        &self,
        origin: &Origin,
        limit: Duration,
        lock: Option<OpenLock>,
    ) -> Result<ReadyConnection, Box<Fault>> {
        let connected = match self.connector.connect(origin, limit).await {
            Err(fault) if is_local_shortage(&fault) && self.close_idle() => {
                self.connector.connect(origin, limit).await
            }
            connected => connected,
        };
        let NewConnection { wire, http2, via } = connected?;
        let broke = |error: hyper::Error| fault_of(&error, Stage::Connect);
        if origin.is_secure() {
            self.with_host(origin, |host| host.shares = Some(http2));
        }
        if !http2 {
            let connection = Http1Connection::new(wire, Rc::clone(&self.read_buffer));
            let origin = origin.clone();
            return Ok(ReadyConnection::Http1(Box::new(PooledConnection {
                connection,
                via,
                origin,
                pool: None,
                since: Instant::now(),
            })));
        }
        let shared = Http2Connection::begin(wire, lock).await.map_err(broke)?;
        let (connection, stream) = shared.stream();
        self.with_host(origin, |host| host.shared.push(shared));
        Ok(ReadyConnection::Http2(connection, stream))
    }

    /// Sends on this connection. One that was used before may be stale.
    async fn send_on(
        self: &Rc<Self>,
        connection: ReadyConnection,
        request: &ServerRequest<'_>,
        reused: bool,
    ) -> SendOutcome {
        request.sends.begin();
        let sent = match connection {
            ReadyConnection::Http1(pooled) => self.send_on_http1(pooled, request, reused).await,
            ReadyConnection::Http2(connection, stream) => {
                Box::pin(send_on_http2(connection, stream, request, reused)).await
            }
        };
        if matches!(sent, SendOutcome::Unsent) {
            request.sends.take_back();
        }
        sent
    }

    async fn send_on_http1(
        self: &Rc<Self>,
        mut pooled: Box<PooledConnection>,
        request: &ServerRequest<'_>,
        reused: bool,
    ) -> SendOutcome {
        let mut outgoing = OutgoingRequest::new(&self.head_buffer, request.body, |head| {
            request.write(head, pooled.via.as_deref());
        });
        match pooled.connection.send(&mut outgoing).await {
            Ok(reply) => {
                pooled.pool = Some(Rc::clone(self));
                SendOutcome::Answer(UpstreamAnswer {
                    status: reply.status,
                    head: reply.fields,
                    body: Body::of_http1(pooled),
                })
            }
            Err(failure) if reused && is_stale_http1(&failure, &outgoing, pooled.since) => {
                if outgoing.has_sent_any() { SendOutcome::Stale } else { SendOutcome::Unsent }
            }
            Err(failure) => SendOutcome::Failed(fault_of(&failure.error, Stage::Waiting)),
        }
    }
}

async fn send_on_http2(
    mut connection: http2::SendRequest<Payload>,
    mut stream: Http2Stream,
    request: &ServerRequest<'_>,
    reused: bool,
) -> SendOutcome {
    let began = Instant::now();
    let mut error = match connection.try_send_request(request.message()).await {
        Ok(answer) => {
            stream.answer_began();
            let (parts, incoming) = answer.into_parts();
            let head =
                Fields::of(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
            return SendOutcome::Answer(UpstreamAnswer {
                status: parts.status,
                head,
                body: Body::of_http2(incoming, stream),
            });
        }
        Err(error) => error,
    };
    if error.take_message().is_some() {
        return SendOutcome::Unsent;
    }
    let error = error.into_error();
    if reused && is_stale_http2(&error, began) {
        SendOutcome::Stale
    } else {
        SendOutcome::Failed(fault_of(&error, Stage::Waiting))
    }
}

#[cfg(test)]
mod tests;
