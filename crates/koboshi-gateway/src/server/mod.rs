//! Threads and sockets: one listener, one single-threaded runtime per core, connections dealt out in turn.
//!
//! A connection stays on its core for life, so nothing on the way of a request is shared but what must be. Dealing in turn keeps the cores
//! evenly loaded also with a few connections.
//!
//! When told to stop, the listener closes first and streams end in their own time. What is left after the drain time is told so, in the
//! client's dialect ([`Cores::end`]), and has [`ERROR_TIME`] to take it. Then everything is dropped, and nothing is waited for: a thread
//! that looks up a name or waits for a disk may take minutes.
//!
//! A core that panics is started again ([`Worker`]): its connections are lost, but a process that accepts connections and serves none would
//! be worse, and nobody would restart it.

mod connection;
pub(crate) mod gateway;
mod large;
pub(crate) mod preflight;

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use crate::http::client::TICK;
use crate::http::upstream::{Upstream, sim};
use crate::observe::log::{Level, Log};
use crate::server::connection::connection;
use crate::shared::core_state::CoreState;
use crate::shared::large::Large;
use crate::shared::state::SharedState;

/// How often shared knowledge is brought in step.
const STEP: Duration = Duration::from_millis(250);

/// How long clients have to take the error that ends their requests.
const ERROR_TIME: Duration = Duration::from_secs(1);
/// A core that panics again and again is not started more often than this.
const RESTART: Duration = Duration::from_millis(500);
/// How often it is logged that connections cannot be accepted.
const LOG_EVERY: Duration = Duration::from_secs(60);

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
        stop: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let open = Arc::new(AtomicUsize::new(0));
        let proxies = Arc::new(Matcher::from_env());
        let sim = Arc::new(sim::SimProvider::new());
        let (end, ended) = watch::channel(false);
        let worker = |large: Option<&Arc<Large>>| Worker {
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
            let thread = worker(Some(&large)).spawn(format!("koboshi-{number}"), async move |core| {
                serve_connections(core, &mut queue, stop.clone(), end.clone(), &open).await;
            })?;
            cores.senders.push(sender);
            cores.threads.push(thread);
        }
        Ok(cores)
    }

    /// Every open request is told that the gateway stops.
    fn end(&self) {
        self.end.send_replace(true);
    }

    /// Waits for all of them to end.
    pub(crate) fn join(self) {
        drop(self.senders);
        for thread in self.threads {
            // A thread that panicked has told so itself.
            let _ = thread.join();
        }
    }
}

/// What a core's thread needs to serve, and to begin again after a panic.
pub(crate) struct Worker {
    state: Arc<SharedState>,
    tls: Option<Arc<ClientConfig>>,
    proxies: Arc<Matcher>,
    sim: Arc<sim::SimProvider>,
    /// Where large requests go; none for a core that serves these.
    large: Option<Arc<Large>>,
}

impl Worker {
    /// Starts a thread that serves so until it is done.
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
                // Nobody listens only if the start was given up.
                Err(error) => drop(started_sender.send(Err(error))),
            }
        })?;
        started.recv().unwrap_or_else(|_| Err(io::Error::other("a thread ended before it began")))?;
        Ok(thread)
    }

    fn serve(&self, first: LocalRuntime, mut serve: impl AsyncFnMut(Rc<CoreState>)) {
        let (mut spare, mut used) = (Some(first), None);
        // A runtime is left behind, not dropped: whoever looks up a name or reads a disk for it is not waited for.
        let leave = |used: &mut Option<LocalRuntime>| used.take().map(LocalRuntime::shutdown_background);
        despite_panics(&self.state.log, "a worker thread failed and is started again", || {
            leave(&mut used);
            let Some(runtime) = spare.take().or_else(|| self.runtime().ok()) else { return false };
            let upstream = Upstream::new(self.tls.clone(), Arc::clone(&self.proxies), Arc::clone(&self.sim));
            let core = CoreState::new(Arc::clone(&self.state), upstream, self.large.clone());
            used.insert(runtime).block_on(serve(core));
            true
        });
        leave(&mut used);
    }

    /// A runtime that lives on the thread that makes it. Its tasks wake each other without a word to the kernel, which those of a `LocalSet`
    /// cannot when a socket wakes them.
    fn runtime(&self) -> io::Result<LocalRuntime> {
        let mut builder = Builder::new_current_thread();
        if self.large.is_none() {
            // One large body after the other must not keep sockets and timers waiting.
            builder.event_interval(1);
        }
        builder.enable_all().build_local(LocalOptions::default())
    }
}

/// Accepts connections and keeps shared knowledge in step until told to stop.
pub(crate) fn listen_for(
    runtime: &Runtime,
    state: &Arc<SharedState>,
    socket: &StdListener,
    cores: &Cores,
    stop: &watch::Receiver<bool>,
) {
    despite_panics(&state.log, "the thread that accepts connections failed and goes on", || {
        runtime.block_on(async {
            let Ok(listener) = socket.try_clone().and_then(TcpListener::from_std) else { return false };
            let step = keep_in_step(Arc::clone(state), stop.clone());
            tokio::join!(accept(Arc::clone(state), listener, cores, stop.clone()), step);
            true
        })
    });
}

/// Does something until it says that it is done. A panic is logged, and it is done again after a pause.
fn despite_panics(log: &Log, text: &str, mut attempt: impl FnMut() -> bool) {
    loop {
        match catch_unwind(AssertUnwindSafe(&mut attempt)) {
            Ok(true) => return,
            Ok(false) => {}
            Err(panic) => {
                let message = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
                let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                log.line(Level::Error, text, &json!({"thread": name, "panic": message}));
            }
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own that would fail again at once")]
fn pause() {
    std::thread::sleep(RESTART);
}

/// Accepts connections until told to stop, then waits until the last one is done or the drain time is over.
async fn accept(
    state: Arc<SharedState>,
    listener: TcpListener,
    cores: &Cores,
    mut stop: watch::Receiver<bool>,
) {
    let mut turn = 0_usize;
    let mut errors = AcceptErrors::default();
    loop {
        let most = max_connections(&state);
        let accepted = tokio::select! {
            accepted = next(&listener, &cores.open, most) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                errors.about(&state, &error);
                // Out of files: wait for one to be closed, do not spin.
                sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let Ok(stream) = stream.into_std() else { continue };
        cores.open.fetch_add(1, Ordering::Relaxed);
        let sender = cores.senders.get(turn % cores.senders.len().max(1));
        turn = turn.wrapping_add(1);
        if sender.is_none_or(|sender| sender.send((stream, peer)).is_err()) {
            cores.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
    drop(listener);
    if is_drained(cores, state.plan().config.serve.drain).await {
        return;
    }
    let left = state.meters.open.get();
    let text = format!("the drain time is over: {left} requests end with an error");
    state.log.line(Level::Warn, &text, &json!({"requests": left}));
    cores.end();
    if !is_drained(cores, ERROR_TIME).await {
        let left = state.meters.open.get();
        let text = format!("{left} clients did not take their error in time");
        state.log.line(Level::Warn, &text, &json!({"requests": left}));
    }
}

/// Waits until no connection is open, but not longer than this.
async fn is_drained(cores: &Cores, limit: Duration) -> bool {
    let drained = async {
        while cores.open.load(Ordering::Relaxed) > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout_at(Instant::now() + limit, drained).await.is_ok()
}

/// Connections at the same time: each may need a second one to a provider, and some files are needed besides.
fn max_connections(state: &SharedState) -> usize {
    let configured = state.plan().config.serve.connections as usize;
    open_files().map_or(configured, |limit| configured.min((limit.saturating_sub(100) / 2).max(1)))
}

/// The limit of open files of this process; none where there is no limit.
pub(crate) fn open_files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map(|current| usize::try_from(current).unwrap_or(usize::MAX))
}

/// Says that connections cannot be accepted, once a minute.
#[derive(Default)]
struct AcceptErrors {
    last: Option<Instant>,
    unreported: u64,
}

impl AcceptErrors {
    fn about(&mut self, state: &SharedState, error: &io::Error) {
        self.unreported += 1;
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < LOG_EVERY) {
            return;
        }
        let facts =
            json!({"why": error.to_string(), "times": self.unreported, "open_files_limit": open_files()});
        state.log.line(Level::Error, "connections of clients cannot be accepted", &facts);
        (self.last, self.unreported) = (Some(now), 0);
    }
}

/// The next connection, when there is room for it.
async fn next(
    listener: &TcpListener,
    open: &AtomicUsize,
    most: usize,
) -> io::Result<(TcpStream, SocketAddr)> {
    while open.load(Ordering::Relaxed) >= most {
        sleep(Duration::from_millis(5)).await;
    }
    listener.accept().await
}

/// Keeps shared knowledge in step until told to stop.
async fn keep_in_step(state: Arc<SharedState>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = sleep(STEP) => state.keep_in_step(),
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// One core: serves the connections that it is dealt.
async fn serve_connections(
    core: Rc<CoreState>,
    queue: &mut ConnectionQueue,
    mut stop: watch::Receiver<bool>,
    mut end: watch::Receiver<bool>,
    open: &Arc<AtomicUsize>,
) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            next = queue.recv() => {
                let Some((stream, peer)) = next else { return };
                let count = ConnectionCount::new(&core.state, open);
                let Ok(stream) = TcpStream::from_std(stream) else { continue };
                let _ = stream.set_nodelay(true);
                // Before its task runs: whether anybody is looked at is asked right after this.
                let client = core.connections.add(stream);
                let core = Rc::clone(&core);
                tokio::task::spawn_local(async move {
                    let _counted = count;
                    connection(core, client, peer).await;
                });
            }
            _ = stop.wait_for(|stop| *stop), if !core.connections.are_stopping() => core.connections.stop(),
            _ = end.wait_for(|end| *end), if !core.connections.are_ending() => core.connections.end(),
            _ = ticks.tick(), if core.connections.are_open() => {
                let serve = &core.state.plan().config.serve;
                core.connections.tick(serve.head_time, serve.send_time);
                core.upstream.tidy();
            }
        }
    }
}

/// Counts a connection for as long as it lives.
struct ConnectionCount {
    state: Arc<SharedState>,
    open: Arc<AtomicUsize>,
}

impl ConnectionCount {
    fn new(state: &Arc<SharedState>, open: &Arc<AtomicUsize>) -> Self {
        state.meters.connections.inc();
        Self { state: Arc::clone(state), open: Arc::clone(open) }
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.state.meters.connections.dec();
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_is_done_again_until_it_is_done() {
        let mut times = 0;
        despite_panics(&Log::silent(), "it failed", || {
            times += 1;
            assert!(times > 2, "not yet");
            true
        });
        assert_eq!(times, 3);
    }
}
