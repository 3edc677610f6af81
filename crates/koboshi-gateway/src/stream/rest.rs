//! What comes after an answer that the client has whole: its cost, which only we asked for, and the end of the connection's body.
//!
//! Mostly it is there in a moment. Where it is not, it is waited for behind the client's back: the client has its end, the gate and the
//! meters get the cost, and the connection may be used again. It never touches the client, and whatever else comes is not looked at.

use std::time::Duration;

use koboshi_store::{Clock, SystemClock};
use koboshi_wire::chat::event as chunk;
use koboshi_wire::sse::Framer;
use tokio::time::{Instant, timeout_at};

use crate::http::upstream::Body;
use crate::shared::stake::Stake;
use crate::stream::answer::AFTER_THE_END;
use crate::stream::follow::finish_reading;

/// So long it is waited for on the spot, which is cheaper than a task.
const MOMENT: Duration = Duration::from_millis(5);

/// The rest of an answer.
pub(crate) struct Rest {
    framer: Framer,
    body: Body,
    /// Settled when this is dropped, also where nothing came.
    stake: Stake,
}

impl Rest {
    pub(crate) fn of(framer: Framer, (body, stake): (Body, Stake)) -> Self {
        Self { framer, body, stake }
    }

    /// Waits for it: a moment here, and then where nobody waits.
    pub(crate) async fn come(mut self) {
        let start = Instant::now();
        if timeout_at(start + MOMENT, self.end()).await.is_ok() {
            return self.settle();
        }
        tokio::task::spawn_local(async move {
            let _ = timeout_at(start + AFTER_THE_END, self.end()).await;
            self.settle();
        });
    }

    /// Reads to the end.
    async fn end(&mut self) {
        loop {
            while let Some(Ok(frame)) = self.framer.next_frame() {
                let Ok(Some(data)) = frame.data() else { continue };
                let Ok(step) = chunk::read(&data) else { continue };
                if let Some(usage) = step.usage {
                    self.stake.told(usage);
                }
                if step.done {
                    return finish_reading(&mut self.body).await;
                }
            }
            let Some(Ok(block)) = self.body.next().await else { return };
            self.framer.push(block);
        }
    }

    fn settle(self) {
        let Self { stake, body, .. } = self;
        stake.told_all(SystemClock.moment());
        drop(body);
    }
}
