//! A connection that many requests share (HTTP/2): how many streams it has, how many it may have, and whether it is still trusted.
//!
//! Before the server has stated how many streams it accepts, one is used, because it might refuse more. hyper does not report when
//! that is stated, so the tasks of a connection notify a waiter whenever they run.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::connect::Wire;
use super::pool::MAX_IDLE_AGE;
use super::server_request::Payload;

/// Maximum of streams on one connection, if the server allows more.
const MAX_STREAMS: u32 = 100;
/// A stream that got no answer for this long makes its connection suspect: it may hang, and others would wait as long.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);
/// Stands for the limit that the server has not stated yet; no server states this value.
const UNSTATED_STREAMS: usize = usize::MAX - 1;

/// The right to open a connection that all waiting requests can share.
pub(super) type OpenLock = OwnedMutexGuard<()>;

/// A connection for many requests.
pub(super) struct Http2Connection {
    sender: http2::SendRequest<Payload>,
    streams: Rc<Streams>,
}

struct Streams {
    open: Cell<u32>,
    /// How many the server allows.
    max: Cell<u32>,
    /// When the last one ended.
    idle_since: Cell<Instant>,
    /// A stream got no answer: no more streams are opened on it.
    is_suspect: Cell<bool>,
}

impl Http2Connection {
    /// Begins to speak HTTP/2. The lock is released when the server has stated how many streams it accepts.
    pub(super) async fn begin(wire: Wire, lock: Option<OpenLock>) -> Result<Self, hyper::Error> {
        let settings = Rc::new(SettingsNotify::default());
        let (sender, connection) = http2::Builder::new(LocalExecutor(Rc::clone(&settings)))
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .initial_max_send_streams(UNSTATED_STREAMS)
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .handshake(TokioIo::new(wire))
            .await?;
        let streams = Streams {
            open: Cell::new(0),
            // The request for which it was opened.
            max: Cell::new(1),
            idle_since: Cell::new(Instant::now()),
            is_suspect: Cell::new(false),
        };
        let streams = Rc::new(streams);
        let (known, mut lock) = (Rc::clone(&streams), lock);
        spawn_local(async move {
            let mut connection = pin!(connection);
            let mut ended = pin!(poll_fn(|context| {
                let polled = connection.as_mut().poll(context);
                let stated = connection.current_max_send_streams();
                if stated != UNSTATED_STREAMS {
                    known.max.set(u32::try_from(stated).unwrap_or(u32::MAX));
                    settings.is_known.set(true);
                    lock = None;
                }
                polled
            }));
            loop {
                tokio::select! {
                    // Its requests notice the end by themselves.
                    _ = &mut ended => return,
                    () = settings.notify.notified() => {}
                }
            }
        });
        Ok(Self { sender, streams })
    }

    /// Whether it can be used: it is open, answers, and was not idle until a middlebox may have dropped it.
    pub(super) fn is_trusted(&self) -> bool {
        let fresh = self.streams.open.get() > 0 || self.streams.idle_since.get().elapsed() < MAX_IDLE_AGE;
        fresh && !self.streams.is_suspect.get() && !self.sender.is_closed()
    }

    pub(super) fn has_room(&self) -> bool {
        self.streams.open.get() < self.streams.max.get().min(MAX_STREAMS)
    }

    /// Opens a stream.
    pub(super) fn stream(&self) -> (http2::SendRequest<Payload>, Http2Stream) {
        self.streams.open.set(self.streams.open.get().saturating_add(1));
        let streams = Rc::clone(&self.streams);
        (self.sender.clone(), Http2Stream { streams, began: Instant::now(), is_answered: false })
    }
}

/// One stream of a shared connection.
pub(crate) struct Http2Stream {
    streams: Rc<Streams>,
    began: Instant,
    is_answered: bool,
}

impl Http2Stream {
    /// Records that the head of an answer came on it.
    pub(super) fn answer_began(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        let streams = &self.streams;
        streams.open.set(streams.open.get().saturating_sub(1));
        streams.idle_since.set(Instant::now());
        if !self.is_answered && self.began.elapsed() >= SUSPECT_AFTER {
            streams.is_suspect.set(true);
        }
    }
}

/// Notifies when a connection may have received settings, until it has.
#[derive(Default)]
struct SettingsNotify {
    is_known: Cell<bool>,
    notify: Notify,
}

/// Runs tasks on this core only.
#[derive(Clone)]
struct LocalExecutor(Rc<SettingsNotify>);

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        let settings = Rc::clone(&self.0);
        spawn_local(async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                let polled = future.as_mut().poll(context);
                if !settings.is_known.get() {
                    settings.notify.notify_one();
                }
                polled
            })
            .await;
        });
    }
}
