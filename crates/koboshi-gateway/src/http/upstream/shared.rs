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

use super::ask::Payload;
use super::connect::Wire;
use super::pool::OLDEST_IDLE;

/// Streams on one connection, if the other side allows more.
const MOST_STREAMS: u32 = 100;
/// Who waited so long for an answer that did not come leaves the connection in doubt: it may hang, and others would wait as long.
const IN_VAIN: Duration = Duration::from_secs(1);
/// Stands for what the other side allows before it has said so; nobody says this.
const UNTOLD: usize = usize::MAX - 1;

/// The right to open a connection for all who wait.
pub(super) type Turn = OwnedMutexGuard<()>;

/// A connection for many requests.
pub(super) struct Shared {
    line: http2::SendRequest<Payload>,
    streams: Rc<Streams>,
}

struct Streams {
    open: Cell<u32>,
    /// How many the other side allows.
    most: Cell<u32>,
    /// When the last one ended.
    rested: Cell<Instant>,
    /// Somebody waited in vain: no more streams are opened on it.
    is_doubtful: Cell<bool>,
}

impl Shared {
    /// Begins to speak HTTP/2. The turn is over when the other side has said how many streams it takes.
    pub(super) async fn begin(wire: Wire, turn: Option<Turn>) -> Result<Self, hyper::Error> {
        let bell = Rc::new(Bell::default());
        let (line, connection) = http2::Builder::new(OnThisCore(Rc::clone(&bell)))
            .timer(TokioTimer::new())
            .adaptive_window(true)
            .initial_max_send_streams(UNTOLD)
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .handshake(TokioIo::new(wire))
            .await?;
        let streams = Streams {
            open: Cell::new(0),
            // The one for which it was opened.
            most: Cell::new(1),
            rested: Cell::new(Instant::now()),
            is_doubtful: Cell::new(false),
        };
        let streams = Rc::new(streams);
        let (known, mut turn) = (Rc::clone(&streams), turn);
        spawn_local(async move {
            let mut connection = pin!(connection);
            let mut ended = pin!(poll_fn(|context| {
                let polled = connection.as_mut().poll(context);
                let told = connection.current_max_send_streams();
                if told != UNTOLD {
                    known.most.set(u32::try_from(told).unwrap_or(u32::MAX));
                    bell.heard.set(true);
                    turn = None;
                }
                polled
            }));
            loop {
                tokio::select! {
                    // Its requests learn of the end by themselves.
                    _ = &mut ended => return,
                    () = bell.notify.notified() => {}
                }
            }
        });
        Ok(Self { line, streams })
    }

    /// Whether it can be used: it lives, answers, and was not idle for so long that somebody on the way may have forgotten it.
    pub(super) fn is_trusted(&self) -> bool {
        let fresh = self.streams.open.get() > 0 || self.streams.rested.get().elapsed() < OLDEST_IDLE;
        fresh && !self.streams.is_doubtful.get() && !self.line.is_closed()
    }

    pub(super) fn has_room(&self) -> bool {
        self.streams.open.get() < self.streams.most.get().min(MOST_STREAMS)
    }

    /// One more stream.
    pub(super) fn stream(&self) -> (http2::SendRequest<Payload>, Stream) {
        self.streams.open.set(self.streams.open.get().saturating_add(1));
        let streams = Rc::clone(&self.streams);
        (self.line.clone(), Stream { streams, began: Instant::now(), is_answered: false })
    }
}

/// One stream of a shared connection.
pub(crate) struct Stream {
    streams: Rc<Streams>,
    began: Instant,
    is_answered: bool,
}

impl Stream {
    /// The head of an answer came on it.
    pub(super) fn answered(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let streams = &self.streams;
        streams.open.set(streams.open.get().saturating_sub(1));
        streams.rested.set(Instant::now());
        if !self.is_answered && self.began.elapsed() >= IN_VAIN {
            streams.is_doubtful.set(true);
        }
    }
}

/// Rings when a connection may have heard something, until what it was rung for was heard.
#[derive(Default)]
struct Bell {
    heard: Cell<bool>,
    notify: Notify,
}

/// Runs what belongs to this core only.
#[derive(Clone)]
struct OnThisCore(Rc<Bell>);

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for OnThisCore {
    fn execute(&self, future: F) {
        let bell = Rc::clone(&self.0);
        spawn_local(async move {
            let mut future = pin!(future);
            poll_fn(|context| {
                let polled = future.as_mut().poll(context);
                if !bell.heard.get() {
                    bell.notify.notify_one();
                }
                polled
            })
            .await;
        });
    }
}
