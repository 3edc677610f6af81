//! Keeping a silent stream open: while nothing can be said yet, the client hears that somebody is there.
//!
//! For a while nothing goes out at all, so that every fault stays invisible. Then the head goes out, and keep-alives follow.
//! They never touch the upstream's timers: our own breath is no sign of its life.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use koboshi_wire::http1::Heading;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::flow::Tap;

/// Keeps one stream open.
pub(crate) struct Hold<'t> {
    tap: &'t Tap,
    every: Duration,
    next: Instant,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<'t> Hold<'t> {
    /// Holds a stream back for `quiet`, then keeps it open.
    pub(crate) fn stream(tap: &'t Tap, quiet: Duration, every: Duration) -> Self {
        Self { tap, every, next: Instant::now() + quiet, alarm: None }
    }

    /// Something was sent: silence begins anew.
    pub(crate) fn spoke(&mut self) {
        self.next = Instant::now() + self.every;
    }

    /// Runs something that may take long. `head` is what goes out first if it does, and `breath` what follows.
    ///
    /// It is pinned by the caller: a future that is handed over is kept twice, and streams are many.
    pub(crate) async fn during<T>(
        &mut self,
        head: impl Fn() -> Heading,
        breath: impl Fn() -> Bytes,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            loop {
                let next = self.next;
                let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(next)));
                if alarm.deadline() != next {
                    alarm.as_mut().reset(next);
                }
                if alarm.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.tap.head(head());
                self.tap.offer_made(&breath);
                self.next = Instant::now() + self.every;
            }
        })
        .await
    }
}
