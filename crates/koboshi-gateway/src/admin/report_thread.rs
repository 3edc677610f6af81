//! A thread that reports to the store again and again, because a store may block: no request waits for it, a start waits briefly for the first
//! report, and a stop waits briefly for the last one. A panic is logged, and the thread goes on.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::shared::panics::{caught, despite_panics};
use crate::shared::state::SharedState;

/// What the thread reports.
pub(crate) trait Report: Send + 'static {
    /// What is logged after a panic.
    const FAILED: &'static str;

    /// The state of the gateway, which has its log.
    fn state(&self) -> &Arc<SharedState>;

    /// At the start and after each tick.
    fn tick(&mut self);

    /// Once, at the end.
    fn end(&mut self);
}

/// Reports until it is dropped.
pub(crate) struct ReportThread {
    stop: Option<SyncSender<()>>,
    /// Receives when the last report is made.
    ended: Mutex<Receiver<()>>,
}

impl ReportThread {
    /// Begins to report, and waits at most this long for the first report.
    pub(crate) fn start<R: Report>(
        name: &str,
        tick: Duration,
        first_timeout: Duration,
        mut report: R,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(1);
        let (first, reported) = sync_channel::<()>(1);
        let (end, ended) = sync_channel::<()>(1);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let state = Arc::clone(report.state());
            despite_panics(&state.log, R::FAILED, || {
                report.tick();
                // The start may have stopped waiting.
                let _ = first.try_send(());
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(tick) {
                    report.tick();
                }
                true
            });
            let _ = caught(&state.log, R::FAILED, || report.end());
            // Release the state first: the waiting caller may want the store for itself.
            drop((state, report));
            let _ = end.try_send(());
        })?;
        let _ = reported.recv_timeout(first_timeout);
        Ok(Self { stop: Some(stop), ended: Mutex::new(ended) })
    }

    /// Begins the last report.
    pub(crate) fn close(&mut self) {
        drop(self.stop.take());
    }

    /// Waits at most this long for the last report, also if the store hangs.
    pub(crate) fn finish(&mut self, timeout: Duration) {
        self.close();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(timeout);
    }
}
