//! Threads and sockets: one listener, one single-threaded runtime per core, connections assigned round-robin.
//!
//! A connection stays on its core, so requests share only what they must. Round-robin keeps the cores
//! evenly loaded also with a few connections.
//!
//! On a stop the listener closes first, so that new clients are refused at once and go elsewhere, and streams may end.
//! Requests that are left after the drain time get an error in the client's dialect ([`Cores::end`]), and [`ERROR_TIME`] to read it. Then
//! everything is dropped without waiting: a thread that resolves a name or waits for a disk may take minutes.
//!
//! A core that panics is started again ([`Worker`]): its connections are lost, but a process that accepts connections and serves none would
//! be worse, and no service manager would restart it.

mod clients;
mod connection;
pub(crate) mod gateway;
pub(crate) mod http2;
mod large;
pub(crate) mod preflight;
pub(crate) mod rehearsal;
pub(crate) mod tls;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::http::upstream::{Upstream, sim};
use crate::observe::log::Level;
use crate::server::clients::Clients;
use crate::server::tls::Certificate;
use crate::session;
use crate::shared::core_state::CoreState;
use crate::shared::large::LargeCores;
use crate::shared::panics::despite_panics;
use crate::shared::state::SharedState;

/// How often the gateway synchronises with the store.
const SYNC_INTERVAL: Duration = Duration::from_millis(250);

/// How long clients may take to read the error that ends their requests.
const ERROR_TIME: Duration = Duration::from_secs(1);
/// The usual maximum of connections that the kernel queues for a listener.
const MAX_BACKLOG: usize = 4096;
/// How often it is logged that connections cannot be accepted.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Connections that were accepted.
type ConnectionQueue = mpsc::UnboundedReceiver<(StdStream, SocketAddr)>;

/// The threads that serve.
pub(crate) struct Cores {
    senders: Vec<mpsc::UnboundedSender<(StdStream, SocketAddr)>>,
    threads: Vec<JoinHandle<()>>,
    open: Arc<AtomicUsize>,
    end: watch::Sender<bool>,
}

impl Cores {
    /// Starts a thread per core.
    pub(crate) fn start(
        state: &Arc<SharedState>,
        count: usize,
        tls: Option<&Arc<ClientConfig>>,
        certificate: Option<&Arc<Certificate>>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let open = Arc::new(AtomicUsize::new(0));
        let proxies = Arc::new(Matcher::from_env());
        let sim = Arc::new(sim::SimProvider::new());
        let (end, ended) = watch::channel(false);
        let worker = |large: Option<&Arc<LargeCores>>| Worker {
            state: Arc::clone(state),
            tls: tls.cloned(),
            proxies: Arc::clone(&proxies),
            sim: Arc::clone(&sim),
            large: large.cloned(),
        };
        let count = count.max(1);
        let large = large::start(count.div_ceil(2), &ended, || worker(None))?;
        let mut cores = Self { senders: Vec::new(), threads: Vec::new(), open, end };
        for number in 0..count {
            let (sender, mut queue) = mpsc::unbounded_channel();
            let (stop, end, open) = (stop.clone(), ended.clone(), Arc::clone(&cores.open));
            let certificate = certificate.cloned();
            let thread = worker(Some(&large)).spawn(format!("koboshi-{number}"), async move |core| {
                if number == 0 {
                    tokio::task::spawn_local(session::replicas::run(Rc::clone(&core)));
                }
                let clients = Clients { core, open: Arc::clone(&open), certificate: certificate.clone() };
                clients.serve(&mut queue, stop.clone(), end.clone()).await;
            })?;
            cores.senders.push(sender);
            cores.threads.push(thread);
        }
        Ok(cores)
    }

    /// Gives a connection to the next core.
    fn assign(&self, turn: usize, stream: StdStream, peer: SocketAddr) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let sender = self.senders.get(turn % self.senders.len().max(1));
        if sender.is_none_or(|sender| sender.send((stream, peer)).is_err()) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends every open request with an error.
    fn end(&self) {
        self.end.send_replace(true);
    }

    /// Waits for all of them to end.
    pub(crate) fn join(self) {
        drop(self.senders);
        for thread in self.threads {
            // A thread that panicked has logged it.
            let _ = thread.join();
        }
    }
}

/// What a core's thread needs to serve, and to start again after a panic.
pub(crate) struct Worker {
    state: Arc<SharedState>,
    tls: Option<Arc<ClientConfig>>,
    proxies: Arc<Matcher>,
    sim: Arc<sim::SimProvider>,
    /// The cores for large requests; none for a core that is one.
    large: Option<Arc<LargeCores>>,
}

impl Worker {
    /// Starts a thread that runs `serve` to its end.
    pub(crate) fn spawn(
        self,
        name: String,
        serve: impl AsyncFnMut(Rc<CoreState>) + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let (started_sender, started) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            match self.runtime() {
                Ok(runtime) => {
                    let _ = started_sender.send(Ok(()));
                    self.serve(runtime, serve);
                }
                // Fails only if the start was given up.
                Err(error) => drop(started_sender.send(Err(error))),
            }
        })?;
        started.recv().unwrap_or_else(|_| Err(io::Error::other("a thread ended before it began")))?;
        Ok(thread)
    }

    fn serve(&self, first: LocalRuntime, mut serve: impl AsyncFnMut(Rc<CoreState>)) {
        let (mut spare, mut used) = (Some(first), None);
        // A runtime is abandoned, not dropped: its blocking threads may resolve a name or read a disk for long.
        let leave = |used: &mut Option<LocalRuntime>| used.take().map(LocalRuntime::shutdown_background);
        despite_panics(&self.state.log, "a worker thread failed and is started again", || {
            leave(&mut used);
            let runtime = match spare.take().map_or_else(|| self.runtime(), Ok) {
                Ok(runtime) => runtime,
                Err(error) => {
                    let facts = json!({"why": error.to_string()});
                    self.state.log.line(Level::Error, "a worker thread cannot be started again yet", &facts);
                    return false;
                }
            };
            let upstream = Upstream::new(self.tls.clone(), Arc::clone(&self.proxies), Arc::clone(&self.sim));
            let core = CoreState::new(Arc::clone(&self.state), upstream, self.large.clone());
            used.insert(runtime).block_on(serve(core));
            true
        });
        leave(&mut used);
    }

    /// A runtime that lives on the thread that makes it. Its tasks wake each other without a system call, which those of a `LocalSet`
    /// cannot when a socket wakes them.
    fn runtime(&self) -> io::Result<LocalRuntime> {
        let mut builder = Builder::new_current_thread();
        if self.large.is_none() {
            // One large body after the other must not delay sockets and timers.
            builder.event_interval(1);
        }
        builder.enable_all().build_local(LocalOptions::default())
    }
}

/// Accepts connections until stopped, and synchronises with the store until the last request has ended.
pub(crate) fn listen_for(
    runtime: &Runtime,
    state: &Arc<SharedState>,
    socket: StdListener,
    cores: &Cores,
    stop: &watch::Receiver<bool>,
) {
    let mut socket = Some(socket);
    despite_panics(&state.log, "the thread that accepts connections failed and goes on", || {
        runtime.block_on(async {
            let serve = async {
                if let Some(open) = &socket {
                    let listener = match open.try_clone().and_then(TcpListener::from_std) {
                        Ok(listener) => listener,
                        Err(error) => {
                            AcceptErrors::default().about(state, &error);
                            return false;
                        }
                    };
                    accept(state, listener, cores, stop.clone()).await;
                }
                // Both sockets must be closed: else the kernel still accepts connections that are never served.
                socket = None;
                drain(state, cores).await;
                true
            };
            tokio::select! {
                is_done = serve => is_done,
                never = sync_with_store(state) => match never {},
            }
        })
    });
}

/// Accepts connections until stopped.
async fn accept(state: &SharedState, listener: TcpListener, cores: &Cores, mut stop: watch::Receiver<bool>) {
    let mut turn = 0_usize;
    let mut errors = AcceptErrors::default();
    loop {
        let max_open = max_connections(state);
        if cores.open.load(Ordering::Relaxed) >= max_open {
            errors.full(state, max_open);
        }
        let accepted = tokio::select! {
            accepted = next(&listener, &cores.open, max_open) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                errors.about(state, &error);
                // Out of descriptors: wait for one to be closed, do not spin.
                sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let Ok(stream) = stream.into_std() else { continue };
        cores.assign(turn, stream, peer);
        turn = turn.wrapping_add(1);
    }
    // The kernel has accepted these already, and a request that came with one is answered.
    let Ok(listener) = listener.into_std() else { return };
    for _ in 0..MAX_BACKLOG {
        let Ok((stream, peer)) = listener.accept() else { return };
        if stream.set_nonblocking(true).is_ok() {
            cores.assign(turn, stream, peer);
            turn = turn.wrapping_add(1);
        }
    }
}

/// Waits until the last connection is closed or the drain time is over.
async fn drain(state: &SharedState, cores: &Cores) {
    if is_drained(state, cores, state.plan().config.serve.drain).await {
        return;
    }
    let left = state.meters.open.get();
    let text = format!("the drain time is over: {left} requests end with an error");
    state.log.line(Level::Warn, &text, &json!({"requests": left}));
    cores.end();
    if !is_drained(state, cores, ERROR_TIME).await {
        let left = state.meters.open.get();
        let text = format!("{left} clients did not take their error in time");
        state.log.line(Level::Warn, &text, &json!({"requests": left}));
    }
}

/// Waits until no connection is open and no turn of a session runs, at most this long.
async fn is_drained(state: &SharedState, cores: &Cores, limit: Duration) -> bool {
    let drained = async {
        while cores.open.load(Ordering::Relaxed) > 0 || state.sessions.are_owned() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout_at(Instant::now() + limit, drained).await.is_ok()
}

/// How many connections may be open: each may need a second one to a provider, and some descriptors are needed besides.
fn max_connections(state: &SharedState) -> usize {
    let configured = state.plan().config.serve.connections as usize;
    open_files().map_or(configured, |limit| configured.min(connections_within(limit)))
}

/// How many connections fit into this many open files. Where they are few, half of them are for everything else.
fn connections_within(open_files: usize) -> usize {
    let besides = (open_files / 2).min(100);
    (open_files.saturating_sub(besides) / 2).max(1)
}

/// The limit of open files of this process; none where there is no limit.
pub(crate) fn open_files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map(|current| usize::try_from(current).unwrap_or(usize::MAX))
}

/// Logs that connections cannot be accepted, once a minute.
#[derive(Default)]
struct AcceptErrors {
    last: Option<Instant>,
    unreported: u64,
}

impl AcceptErrors {
    fn about(&mut self, state: &SharedState, error: &io::Error) {
        self.report(state, &error.to_string());
    }

    /// As many connections are open as there may be: the next client waits.
    fn full(&mut self, state: &SharedState, max_open: usize) {
        self.report(
            state,
            &format!("{max_open} are open, the maximum by serve.max_connections and the limit of open files"),
        );
    }

    fn report(&mut self, state: &SharedState, why: &str) {
        self.unreported += 1;
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < LOG_EVERY) {
            return;
        }
        let facts = json!({"why": why, "times": self.unreported, "open_files_limit": open_files()});
        state.log.line(Level::Error, "connections of clients cannot be accepted", &facts);
        (self.last, self.unreported) = (Some(now), 0);
    }
}

/// The next connection, when one more may be open.
async fn next(
    listener: &TcpListener,
    open: &AtomicUsize,
    max_open: usize,
) -> io::Result<(TcpStream, SocketAddr)> {
    while open.load(Ordering::Relaxed) >= max_open {
        sleep(Duration::from_millis(5)).await;
    }
    listener.accept().await
}

/// Synchronises with the store, until it is dropped.
async fn sync_with_store(state: &SharedState) -> Infallible {
    loop {
        sleep(SYNC_INTERVAL).await;
        state.sync_with_store();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use jiff::tz::{TimeZone, TimeZoneDatabase};
    use koboshi_config::Config;
    use koboshi_report::phrase::Phrases;
    use koboshi_store::{Ledger, LedgerOptions, MemoryStore, Store};

    use super::*;
    use crate::observe::log::Log;
    use crate::shared::state::OperatorTexts;

    #[test]
    fn few_open_files_still_leave_room_for_several_clients() {
        assert_eq!(connections_within(64), 16);
        assert_eq!(connections_within(1024), 462);
        assert_eq!(connections_within(2), 1);
    }

    /// The state of a gateway without a provider.
    fn state() -> Arc<SharedState> {
        let zones = TimeZoneDatabase::none();
        let plan = gateway::plan(Config::default(), &zones, &|_| None, false, None).unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let ledger = Ledger::open(Arc::clone(&store), LedgerOptions::new("test".parse().unwrap())).unwrap();
        Arc::new(SharedState::new(
            plan,
            Arc::new(ledger),
            store,
            Phrases::new().unwrap(),
            Log::silent(),
            zones,
            TimeZone::UTC,
            7,
            OperatorTexts { flags: String::new(), config: String::new() },
        ))
    }

    #[test]
    fn a_core_that_panics_serves_the_next_connection() {
        let worker = Worker {
            state: state(),
            tls: None,
            proxies: Arc::new(Matcher::builder().build()),
            sim: Arc::new(sim::SimProvider::new()),
            large: None,
        };
        let (sender, mut queue) = mpsc::unbounded_channel();
        let ((_stop, stopped), (_end, ended)) = (watch::channel(false), watch::channel(false));
        let (open, mut is_first) = (Arc::new(AtomicUsize::new(1)), true);
        let thread = worker
            .spawn("koboshi-0".to_owned(), async move |core| {
                assert!(!std::mem::take(&mut is_first), "the clock is far off");
                let clients = Clients { core, open: Arc::clone(&open), certificate: None };
                clients.serve(&mut queue, stopped.clone(), ended.clone()).await;
            })
            .unwrap();
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        sender.send((stream, peer)).unwrap();
        client.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        drop(sender);
        thread.join().unwrap();
    }
}
