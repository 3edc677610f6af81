//! Threads and sockets: one listener, one single-threaded runtime per core, connections dealt out in turn.
//!
//! A connection stays on its core for life, so nothing on the way of a request is shared but what must be. Dealing in turn keeps the cores
//! evenly loaded also with a few connections. When told to stop, the listener closes first, streams end in their own time, and what is left
//! after the drain time is dropped.

use std::io;
use std::net::{SocketAddr, TcpStream as StdStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use crate::core::Core;
use crate::h1::serve::connection;
use crate::line::LOOK;
use crate::log::Level;
use crate::upstream::{Upstream, sim};
use crate::world::World;

/// How often shared knowledge is brought in step.
const STEP: Duration = Duration::from_millis(250);

/// The threads that serve.
pub(crate) struct Cores {
    deals: Vec<mpsc::UnboundedSender<(StdStream, SocketAddr)>>,
    threads: Vec<JoinHandle<()>>,
    open: Arc<AtomicUsize>,
}

impl Cores {
    /// Starts a thread per core.
    pub(crate) fn start(
        world: &Arc<World>,
        count: usize,
        tls: Option<&Arc<ClientConfig>>,
        stop: &watch::Receiver<bool>,
    ) -> io::Result<Self> {
        let open = Arc::new(AtomicUsize::new(0));
        let proxies = Arc::new(Matcher::from_env());
        let stage = Arc::new(sim::Stage::new());
        let mut cores = Self { deals: Vec::new(), threads: Vec::new(), open };
        for number in 0..count.max(1) {
            let (deal, dealt) = mpsc::unbounded_channel();
            let (world, stop, open) = (Arc::clone(world), stop.clone(), Arc::clone(&cores.open));
            let upstream = (tls.cloned(), Arc::clone(&proxies), Arc::clone(&stage));
            let (tell, told) = std::sync::mpsc::sync_channel(1);
            let thread = std::thread::Builder::new().name(format!("koboshi-{number}")).spawn(move || {
                let runtime = match runtime() {
                    Ok(runtime) => runtime,
                    // Nobody listens only if the start was given up.
                    Err(error) => return drop(tell.send(Err(error))),
                };
                let _ = tell.send(Ok(()));
                let (tls, proxies, stage) = upstream;
                let core = Core::new(world, Upstream::new(tls, proxies, stage));
                runtime.block_on(take_turns(core, dealt, stop, open));
            })?;
            told.recv().unwrap_or_else(|_| Err(io::Error::other("a thread ended before it began")))?;
            cores.deals.push(deal);
            cores.threads.push(thread);
        }
        Ok(cores)
    }

    /// Waits for all of them to end.
    pub(crate) fn join(self) {
        drop(self.deals);
        for thread in self.threads {
            // A thread that panicked has told so itself.
            let _ = thread.join();
        }
    }
}

/// A runtime that lives on the thread that makes it. Its tasks wake each other without a word to the kernel, which those of a `LocalSet`
/// cannot when a socket wakes them.
fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Accepts connections until told to stop, then waits until the last one is done or the drain time is over.
pub(crate) async fn accept(
    world: Arc<World>,
    listener: TcpListener,
    cores: &Cores,
    mut stop: watch::Receiver<bool>,
) {
    let mut turn = 0_usize;
    loop {
        let most = world.plan().config.serve.connections as usize;
        let accepted = tokio::select! {
            accepted = next(&listener, &cores.open, most) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of files: wait for one to be closed, do not spin.
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Ok(stream) = stream.into_std() else { continue };
        cores.open.fetch_add(1, Ordering::Relaxed);
        let deal = cores.deals.get(turn % cores.deals.len().max(1));
        turn = turn.wrapping_add(1);
        if deal.is_none_or(|deal| deal.send((stream, peer)).is_err()) {
            cores.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
    drop(listener);
    let limit = Instant::now() + world.plan().config.serve.drain;
    let drained = async {
        while cores.open.load(Ordering::Relaxed) > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    if timeout_at(limit, drained).await.is_err() {
        let left = world.meters.open.get();
        let facts = json!({"requests": left});
        world.log.line(Level::Warn, &format!("the drain time is over: {left} requests are cut off"), &facts);
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
pub(crate) async fn keep_in_step(world: Arc<World>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = sleep(STEP) => world.keep_in_step(),
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// One core: serves the connections that it is dealt.
async fn take_turns(
    core: Rc<Core>,
    mut dealt: mpsc::UnboundedReceiver<(StdStream, SocketAddr)>,
    mut stop: watch::Receiver<bool>,
    open: Arc<AtomicUsize>,
) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            next = dealt.recv() => {
                let Some((stream, peer)) = next else { return };
                let counted = Counted::new(&core.world, &open);
                let Ok(stream) = TcpStream::from_std(stream) else { continue };
                let _ = stream.set_nodelay(true);
                // Before its task runs: whether anybody is looked at is asked right after this.
                let line = core.lines.add(stream);
                let core = Rc::clone(&core);
                tokio::task::spawn_local(async move {
                    let _counted = counted;
                    connection(core, line, peer).await;
                });
            }
            _ = stop.wait_for(|stop| *stop), if !core.lines.are_stopping() => core.lines.stop(),
            _ = looks.tick(), if core.lines.are_open() => {
                let serve = &core.world.plan().config.serve;
                core.lines.look(serve.head_time, serve.send_time);
                core.upstream.tidy();
            }
        }
    }
}

/// Counts a connection for as long as it lives.
struct Counted {
    world: Arc<World>,
    open: Arc<AtomicUsize>,
}

impl Counted {
    fn new(world: &Arc<World>, open: &Arc<AtomicUsize>) -> Self {
        world.meters.connections.inc();
        Self { world: Arc::clone(world), open: Arc::clone(open) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.world.meters.connections.dec();
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
