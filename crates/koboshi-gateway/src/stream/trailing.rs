//! What comes after an answer that the client has whole: its cost, which only the gateway asked for, and the end of the connection's body.
//!
//! Mostly both come within milliseconds. Where they do not, a task waits for them: the client has its end, the gate and the meters get the cost, and
//! the connection may be used again. None of it reaches the client.

use std::time::Duration;

use koboshi_store::{Clock, SystemClock};
use koboshi_wire::chat::event;
use koboshi_wire::sse::Framer;
use tokio::time::{Instant, timeout_at};

use crate::http::upstream::Body;
use crate::shared::attempt_guard::AttemptGuard;
use crate::stream::decode::AFTER_THE_END;

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
            let _ = timeout_at(start + AFTER_THE_END, self.read_to_end()).await;
            self.settle();
        });
    }

    async fn read_to_end(&mut self) {
        loop {
            while let Some(Ok(frame)) = self.framer.next_frame() {
                let Ok(Some(data)) = frame.data() else { continue };
                let Ok(step) = event::read(&data) else { continue };
                if let Some(usage) = step.usage {
                    self.attempt_guard.set_usage(usage);
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

/// Reads the end of a body, which is often there already: the connection can be used again only after that.
pub(crate) async fn drain(body: &mut Body) {
    let soon = Instant::now() + SHORT_WAIT;
    while let Ok(Some(Ok(_))) = timeout_at(soon, body.next()).await {}
}
