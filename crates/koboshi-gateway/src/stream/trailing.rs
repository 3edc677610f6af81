//! Receives what follows an answer that the client has whole: its cost, which only the gateway asked for, and the end of the body.
//!
//! Mostly both come within milliseconds. Otherwise a task waits for them: the client has its end, the gate and the metrics get the cost, and
//! the connection can be reused. None of it reaches the client.

use std::time::Duration;

use koboshi_store::{Clock, SystemClock};
use koboshi_wire::chat::event;
use koboshi_wire::sse::Framer;
use tokio::time::{Instant, timeout_at};

use crate::http::upstream::Body;
use crate::shared::attempt_guard::AttemptGuard;
use crate::stream::decode::TRAILING_TIMEOUT;

/// How long the request itself waits, which is cheaper than a task.
const SHORT_WAIT: Duration = Duration::from_millis(5);

/// The part of an answer that follows its end.
pub(crate) struct TrailingUsage {
    framer: Framer,
    body: Body,
    /// Settled when this is dropped, also where nothing came.
    attempt_guard: AttemptGuard,
}

impl TrailingUsage {
    pub(crate) fn new(framer: Framer, (body, attempt_guard): (Body, AttemptGuard)) -> Self {
        Self { framer, body, attempt_guard }
    }

    /// Receives it: for a short time here, and then in a task.
    pub(crate) async fn receive(mut self) {
        let start = Instant::now();
        if timeout_at(start + SHORT_WAIT, self.read_to_end()).await.is_ok() {
            return self.settle();
        }
        tokio::task::spawn_local(async move {
            let _ = timeout_at(start + TRAILING_TIMEOUT, self.read_to_end()).await;
            self.settle();
        });
    }

    async fn read_to_end(&mut self) {
        loop {
            while let Some(Ok(frame)) = self.framer.next_frame() {
                let Ok(Some(data)) = frame.data() else { continue };
                let Ok(step) = event::read(&data) else { continue };
                if let Some(usage) = step.usage {
                    self.attempt_guard.set_usage(usage, true);
                }
                if step.done {
                    return drain(&mut self.body).await;
                }
            }
            let Some(Ok(block)) = self.body.next().await else { return };
            self.framer.push(block);
        }
    }

    fn settle(self) {
        let Self { attempt_guard, body, .. } = self;
        attempt_guard.finish(SystemClock.moment());
        drop(body);
    }
}

/// Reads the end of a body, which has often come already: only after that the connection can be reused.
pub(crate) async fn drain(body: &mut Body) {
    drain_until(body, Instant::now() + SHORT_WAIT).await;
}

/// While data is always available, no timer is ever polled, so the clock is read before each block: the client waits for this end.
async fn drain_until(body: &mut Body, limit: Instant) {
    while Instant::now() < limit
        && let Ok(Some(Ok(_))) = timeout_at(limit, body.next()).await
    {}
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use koboshi_sim::{Beat, Beats, End};

    use super::*;

    /// A provider that continues after the end of its answer must not delay the end of the client's.
    #[tokio::test(start_paused = true)]
    async fn an_end_that_never_comes_is_not_waited_for_while_data_is_at_hand() {
        let beat = Beat { after: Duration::ZERO, bytes: Bytes::from_static(b"and so on ") };
        let mut body = Body::played(Beats::from(vec![beat; 1000]), End::Clean, None);
        let now = Instant::now();
        drain_until(&mut body, now).await;
        assert!(matches!(body.next().await, Some(Ok(_))), "it was read on after its time");
        drain_until(&mut body, now + SHORT_WAIT).await;
        assert!(body.next().await.is_none(), "what comes in time is read");
    }
}
