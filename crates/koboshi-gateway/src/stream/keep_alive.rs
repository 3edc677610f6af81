//! Keeps a silent stream open: while there is nothing to send, the client gets the head and keep-alive frames.
//!
//! For a first while (`serve.first_byte_hold`) nothing is sent at all, so that every fault stays invisible. Then the head is sent, and keep-alive
//! frames follow. They do not affect the upstream's timeouts: a frame of ours is no sign that the provider is alive.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::response_future::ResponseSender;
use crate::reply::stream_head;
use crate::stream::routed_request::RoutedRequest;

/// Sends keep-alive frames in one stream.
pub(crate) struct KeepAliveTimer<'t> {
    sender: &'t ResponseSender,
    every: Duration,
    next: Instant,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<'t> KeepAliveTimer<'t> {
    /// Sends the first frame after `first`, the others at intervals of `every`.
    pub(crate) fn new(sender: &'t ResponseSender, first: Duration, every: Duration) -> Self {
        Self { sender, every, next: Instant::now() + first, alarm: None }
    }

    /// Restarts the interval, because something was sent.
    pub(crate) fn restart(&mut self) {
        self.next = Instant::now() + self.every;
    }

    /// Runs work that may take long, and keeps the stream of this request open meanwhile. The caller pins the work: a future passed by value
    /// is stored twice.
    pub(crate) async fn during<T>(
        &mut self,
        routed: &RoutedRequest<'_>,
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
                self.sender.head(stream_head(routed.context, &routed.facts()));
                self.sender.offer_with(|| routed.writer.borrow_mut().keep_alive_frame());
                self.restart();
            }
        })
        .await
    }
}
