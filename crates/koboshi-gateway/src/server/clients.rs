//! The clients of one core: their connections, with TLS where the config has it.
//!
//! A handshake has the time of a head, so that a client that never ends it costs no more than one that never sends a request.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;

use super::tls::{Certificate, HTTP2};
use super::{ConnectionQueue, http2};
use crate::http::client::{ClientStream, TICK};
use crate::server::connection::connection;
use crate::shared::core_state::CoreState;
use crate::shared::state::SharedState;

/// What serves the clients of a core.
pub(super) struct Clients {
    pub(super) core: Rc<CoreState>,
    /// How many connections are open, of all cores.
    pub(super) open: Arc<AtomicUsize>,
    /// For TLS; none where clients use plain HTTP.
    pub(super) certificate: Option<Arc<Certificate>>,
}

impl Clients {
    /// Serves the connections that come through the queue, until it ends.
    pub(super) async fn serve(
        &self,
        queue: &mut ConnectionQueue,
        mut stop: watch::Receiver<bool>,
        mut end: watch::Receiver<bool>,
    ) {
        let (core, stopping) = (&self.core, stop.clone());
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                next = queue.recv() => {
                    let Some((stream, peer)) = next else { return };
                    let count = ConnectionCount::of_accepted(&core.state, &self.open);
                    let Ok(stream) = TcpStream::from_std(stream) else { continue };
                    let _ = stream.set_nodelay(true);
                    match &self.certificate {
                        None => serve_plain(core, stream, peer, count),
                        Some(certificate) => {
                            let client = SecureClient { peer: peer.ip(), count, stop: stopping.clone() };
                            tokio::task::spawn_local(client.serve(Rc::clone(core), stream, certificate.acceptor()));
                        }
                    }
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
}

fn serve_plain(core: &Rc<CoreState>, stream: TcpStream, peer: SocketAddr, count: ConnectionCount) {
    // Before its task runs: the tick right after this must include it.
    let client = core.connections.add(ClientStream::Plain(stream));
    let core = Rc::clone(core);
    tokio::task::spawn_local(async move {
        let _counted = count;
        connection(core, client, peer.ip()).await;
    });
}

/// A client whose connection begins with a handshake.
struct SecureClient {
    peer: IpAddr,
    count: ConnectionCount,
    stop: watch::Receiver<bool>,
}

impl SecureClient {
    async fn serve(self, core: Rc<CoreState>, stream: TcpStream, acceptor: TlsAcceptor) {
        let Self { peer, count, mut stop } = self;
        let limit = core.state.plan().config.serve.head_time;
        let accepted = {
            let handshake = timeout(limit, acceptor.accept(stream));
            tokio::select! {
                accepted = handshake => accepted,
                _ = stop.wait_for(|stop| *stop) => return,
            }
        };
        // Scanners and clients that do not trust the certificate: no error of ours.
        let Ok(Ok(stream)) = accepted else { return };
        if stream.get_ref().1.alpn_protocol() == Some(HTTP2) {
            let serving = pin!(http2::serve(&core, stream, peer, &count, stop));
            return serving.await;
        }
        let client = core.connections.add(ClientStream::Tls(Box::new(stream)));
        connection(core, client, peer).await;
        drop(count);
    }
}

/// Counts a connection, or a stream of HTTP/2, while it is open.
pub(super) struct ConnectionCount {
    state: Arc<SharedState>,
    open: Arc<AtomicUsize>,
}

impl ConnectionCount {
    /// Of a connection that was counted when it was accepted.
    fn of_accepted(state: &Arc<SharedState>, open: &Arc<AtomicUsize>) -> Self {
        state.meters.connections.inc();
        Self { state: Arc::clone(state), open: Arc::clone(open) }
    }

    /// One more, where there may be one.
    pub(super) fn one_more(&self) -> Option<Self> {
        if self.open.load(Ordering::Relaxed) >= super::max_connections(&self.state) {
            return None;
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        Some(Self::of_accepted(&self.state, &self.open))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.state.meters.connections.dec();
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
