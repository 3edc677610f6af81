//! A thread for blocking calls, with a bounded queue: requests use the store through one.
//!
//! A store that hangs (a locked file, a server that does not answer) then blocks this one thread and what fits into the queue; callers
//! continue. Tokio's blocking pool has neither bound: it grows to hundreds of threads with an unbounded queue, and a runtime that ends
//! waits for all of them. The thread is started with the first call, and its end is waited for only up to a timeout.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// The bounds of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Calls without a waiting caller.
    pub(crate) max_calls: usize,
    /// Bytes that these calls carry.
    pub(crate) max_bytes: usize,
    /// Calls with a waiting caller.
    pub(crate) max_asks: usize,
}

/// A thread for blocking calls.
pub(crate) struct Worker {
    name: &'static str,
    bounds: Bounds,
    state: Arc<WorkerState>,
}

#[derive(Default)]
struct WorkerState {
    queue: Mutex<Queue>,
    /// Signals work, or the end.
    work: Condvar,
    /// Signals that the last call is done.
    idle: Condvar,
}

type Run = Box<dyn FnOnce() + Send>;

struct Call {
    bytes: usize,
    run: Run,
}

#[derive(Default)]
struct Queue {
    /// They go first, because their callers wait.
    asks: VecDeque<Run>,
    calls: VecDeque<Call>,
    /// Bytes of the waiting calls and the running one.
    bytes: usize,
    is_running: bool,
    is_started: bool,
    is_closed: bool,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.asks.is_empty() && self.calls.is_empty() && !self.is_running
    }

    fn next(&mut self) -> Option<Call> {
        let next = self.asks.pop_front().map(|run| Call { bytes: 0, run }).or_else(|| self.calls.pop_front());
        self.is_running = next.is_some();
        next
    }
}

impl Worker {
    pub(crate) fn new(name: &'static str, bounds: Bounds) -> Self {
        Self { name, bounds, state: Arc::default() }
    }

    /// Queues a call that carries this many bytes. False, and dropped, if the queue is full.
    pub(crate) fn push(&self, bytes: usize, run: impl FnOnce() + Send + 'static) -> bool {
        let Bounds { max_calls, max_bytes, .. } = self.bounds;
        let has_room =
            |queue: &Queue| queue.calls.len() < max_calls && queue.bytes.saturating_add(bytes) <= max_bytes;
        self.add(has_room, |queue| {
            queue.bytes += bytes;
            queue.calls.push_back(Call { bytes, run: Box::new(run) });
        })
    }

    /// Makes a call and waits at most this long for its result. None if it takes longer, or the queue is full.
    pub(crate) async fn ask<R: Send + 'static>(
        &self,
        limit: Duration,
        call: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        let run = move || {
            // The caller may have given up meanwhile.
            if !answer.is_closed() {
                let _ = answer.send(call());
            }
        };
        let has_room = |queue: &Queue| queue.asks.len() < self.bounds.max_asks;
        if !self.add(has_room, |queue| queue.asks.push_back(Box::new(run))) {
            return None;
        }
        timeout(limit, answered).await.ok()?.ok()
    }

    fn add(&self, has_room: impl Fn(&Queue) -> bool, put: impl FnOnce(&mut Queue)) -> bool {
        let mut queue = self.state.lock();
        if queue.is_closed || !has_room(&queue) {
            return false;
        }
        if !queue.is_started {
            queue.is_started = self.start();
        }
        if !queue.is_started {
            return false;
        }
        put(&mut queue);
        self.state.work.notify_one();
        true
    }

    /// Starts the thread; false where the machine cannot.
    fn start(&self) -> bool {
        let state = Arc::clone(&self.state);
        std::thread::Builder::new().name(self.name.to_owned()).spawn(move || state.work()).is_ok()
    }

    /// Accepts no more calls.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.state.work.notify_one();
    }

    /// Accepts no more calls and waits at most this long for those that wait. The rest is dropped, and the thread ends by
    /// itself when its call returns. Returns how many calls were dropped.
    pub(crate) fn finish(&self, limit: Duration) -> usize {
        self.close();
        let busy = |queue: &mut Queue| !queue.is_idle();
        let waited = self.state.idle.wait_timeout_while(self.state.lock(), limit, busy);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let left = queue.calls.len();
        queue.asks.clear();
        queue.calls.clear();
        left
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.close();
    }
}

impl WorkerState {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the calls, one after the other, until the queue is closed and empty.
    fn work(&self) {
        while let Some(Call { bytes, run }) = self.next() {
            // A bug of the store must not end the thread; a waiting caller sees that no result comes.
            let _ = catch_unwind(AssertUnwindSafe(run));
            let mut queue = self.lock();
            queue.bytes = queue.bytes.saturating_sub(bytes);
            queue.is_running = false;
            if queue.is_idle() {
                self.idle.notify_all();
            }
        }
    }

    fn next(&self) -> Option<Call> {
        let nothing = |queue: &mut Queue| queue.asks.is_empty() && queue.calls.is_empty() && !queue.is_closed;
        let waited = self.work.wait_while(self.lock(), nothing);
        waited.unwrap_or_else(PoisonError::into_inner).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    const BOUNDS: Bounds = Bounds { max_calls: 2, max_bytes: 100, max_asks: 1 };
    const LONG: Duration = Duration::from_secs(30);

    /// A worker whose thread hangs until the sender is dropped.
    fn stuck() -> (Worker, Sender<()>) {
        let worker = Worker::new("test", BOUNDS);
        let (release, released) = channel::<()>();
        let (begin, begun) = channel();
        assert!(worker.push(10, move || {
            begin.send(()).unwrap();
            let _ = released.recv();
        }));
        begun.recv().unwrap();
        (worker, release)
    }

    #[test]
    fn what_waits_has_a_bound_and_the_rest_is_dropped() {
        let (worker, release) = stuck();
        assert!(!worker.push(91, || {}), "the running call carries its bytes until it is done");
        assert!(worker.push(80, || {}));
        assert!(!worker.push(11, || {}));
        assert!(worker.push(10, || {}));
        assert!(!worker.push(0, || {}), "two may wait");
        drop(release);
        assert_eq!(worker.finish(LONG), 0);
        assert_eq!(worker.state.lock().bytes, 0);
    }

    #[test]
    fn a_call_that_hangs_does_not_prevent_the_end() {
        let (worker, release) = stuck();
        assert!(worker.push(1, || panic!("it was dropped")));
        assert_eq!(worker.finish(Duration::ZERO), 1);
        assert!(!worker.push(1, || {}), "the end is the end");
        drop(release);
        assert_eq!(worker.finish(LONG), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_wait_for_a_bounded_time_and_in_bounded_number() {
        let (worker, release) = stuck();
        assert_eq!(worker.ask(Duration::from_millis(250), || 1).await, None, "it hangs");
        assert_eq!(worker.ask(Duration::MAX, || 2).await, None, "one caller may wait, and not without end");
        drop(release);
        assert_eq!(worker.finish(LONG), 0);
    }

    #[tokio::test]
    async fn waiting_callers_go_first_and_a_panic_ends_nothing() {
        let (worker, release) = stuck();
        let (note, noted) = channel();
        let first = note.clone();
        assert!(worker.push(1, move || note.send("written").unwrap()));
        let mut asked = std::pin::pin!(worker.ask(LONG, move || first.send("asked").unwrap()));
        tokio::select! {
            biased;
            _ = &mut asked => panic!("the thread hangs"),
            () = std::future::ready(()) => drop(release),
        }
        assert_eq!(asked.await, Some(()));
        assert_eq!((noted.recv().unwrap(), noted.recv().unwrap()), ("asked", "written"));
        assert_eq!(worker.ask(LONG, || -> u32 { panic!("a bug of the store") }).await, None);
        assert_eq!(worker.ask(LONG, || 3).await, Some(3));
    }
}
