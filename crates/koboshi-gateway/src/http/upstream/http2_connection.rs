//! A connection that many requests share (HTTP/2): how many streams it has, how many it may have, and whether it is still trusted.
//!
//! Before the other side has said how many streams it takes, there is one: what it would refuse is not sent. hyper tells nobody when that is
//! said, so the tasks of a connection ring a bell until it is.

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

/// Streams on one connection, if the other side allows more.
const MAX_STREAMS: u32 = 100;
/// Who waited so long for an answer that did not come leaves the connection in doubt: it may hang, and others would wait as long.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);
/// Stands for what the other side allows before it has said so; nobody says this.
const UNSTATED_STREAMS: usize = usize::MAX - 1;

/// The right to open a connection for all who wait.
pub(super) type OpenLock = OwnedMutexGuard<()>;

/// A connection for many requests.
pub(super) struct Http2Connection {
    sender: http2::SendRequest<Payload>,
    streams: Rc<Streams>,
}

struct Streams {
    open: Cell<u32>,
    /// How many the other side allows.
    max: Cell<u32>,
    /// When the last one ended.
    idle_since: Cell<Instant>,
    /// Somebody waited in vain: no more streams are opened on it.
    is_suspect: Cell<bool>,
}

impl Http2Connection {
    /// Begins to speak HTTP/2. The turn is over when the other side has said how many streams it takes.
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
            // The one for which it was opened.
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
                    // Its requests learn of the end by themselves.
                    _ = &mut ended => return,
                    () = settings.notify.notified() => {}
                }
            }
        });
        Ok(Self { sender, streams })
    }

    /// Whether it can be used: it lives, answers, and was not idle for so long that somebody on the way may have forgotten it.
    pub(super) fn is_trusted(&self) -> bool {
        let fresh = self.streams.open.get() > 0 || self.streams.idle_since.get().elapsed() < MAX_IDLE_AGE;
        fresh && !self.streams.is_suspect.get() && !self.sender.is_closed()
    }

    pub(super) fn has_room(&self) -> bool {
        self.streams.open.get() < self.streams.max.get().min(MAX_STREAMS)
    }

    /// One more stream.
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
    /// The head of an answer came on it.
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

/// Rings when a connection may have heard something, until what it was rung for was heard.
#[derive(Default)]
struct SettingsNotify {
    is_known: Cell<bool>,
    notify: Notify,
}

/// Runs what belongs to this core only.
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
