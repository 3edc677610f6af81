//! The cores for requests with large bodies, as the core that hands a request over sees them.
//!
//! A request is handed over as a job: a closure that makes its future on the other core. The bytes that wait to be read are bounded.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot, watch};

use crate::shared::core_state::CoreState;

/// How many bytes of bodies may wait.
const MAX_WAITING: usize = 512 * 1024 * 1024;

/// Serves a request on the core that it is handed to. The receiver reports the end of the drain time.
pub(crate) type Job =
    Box<dyn FnOnce(Rc<CoreState>, watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The cores for large requests.
pub(crate) struct LargeCores {
    jobs: Vec<mpsc::UnboundedSender<Job>>,
    turn: AtomicUsize,
    waiting: Arc<AtomicUsize>,
}

/// A place among the requests that wait to be read; released when it is dropped.
pub(crate) struct QueuePlace {
    waiting: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl LargeCores {
    /// Cores that take jobs from these channels.
    pub(crate) fn of(jobs: Vec<mpsc::UnboundedSender<Job>>) -> Self {
        Self { jobs, turn: AtomicUsize::new(0), waiting: Arc::default() }
    }

    /// A place for this many bytes, if there is one. A request that comes when no other waits always gets one.
    pub(crate) fn place(&self, bytes: usize) -> Option<QueuePlace> {
        let taken = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            let sum = waiting.checked_add(bytes)?;
            (waiting == 0 || sum <= MAX_WAITING).then_some(sum)
        });
        taken.is_ok().then(|| QueuePlace { waiting: Arc::clone(&self.waiting), bytes })
    }

    /// Does a piece of work there. None where its core is gone, or failed over it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (result, received) = oneshot::channel();
        self.give(Box::new(move |_, _| {
            Box::pin(async move {
                // The one who asked may be gone.
                let _ = result.send(work());
            })
        }));
        received.await.ok()
    }

    /// Hands a job over. It is dropped where its core is gone.
    pub(crate) fn give(&self, job: Job) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if let Some(jobs) = self.jobs.get(turn % self.jobs.len().max(1)) {
            let _ = jobs.send(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_bytes_are_bounded_and_a_single_request_is_always_accepted() {
        let large = LargeCores::of(Vec::new());
        let alone = large.place(2 * MAX_WAITING);
        assert!(alone.is_some() && large.place(1).is_none());
        drop(alone);
        let half = large.place(MAX_WAITING / 2);
        assert!(half.is_some() && large.place(MAX_WAITING / 2 + 1).is_none());
        assert!(large.place(MAX_WAITING / 2).is_some());
        drop(half);
        assert_eq!(large.waiting.load(Ordering::Relaxed), 0);
    }
}
