//! Counts repeated events, so that they are reported once per interval.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use koboshi::time::Moment;

/// A repeated event that is reported once per interval.
#[derive(Debug, Default)]
pub(crate) struct RepeatedEvent {
    last_report: AtomicU64,
    since: AtomicU64,
}

impl RepeatedEvent {
    /// Whether to report now, and then how many events were not reported.
    pub(crate) fn may_report(&self, now: Moment, every: Duration) -> Option<u64> {
        let last_report = self.last_report.load(Ordering::Relaxed);
        let due = last_report == 0 || now.since(Moment::from_nanos(last_report)) >= every;
        let won = || {
            let (now, relaxed) = (now.nanos().max(1), Ordering::Relaxed);
            self.last_report.compare_exchange(last_report, now, relaxed, relaxed).is_ok()
        };
        if due && won() {
            return Some(self.since.swap(0, Ordering::Relaxed));
        }
        self.since.fetch_add(1, Ordering::Relaxed);
        None
    }
}
