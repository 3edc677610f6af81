//! Counts what happens again and again, so that it is told once in a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use koboshi::time::Moment;

/// Something that happens again and again and is told once in a while.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    told: AtomicU64,
    since: AtomicU64,
}

impl Repeated {
    /// Whether it is told now, and then how often it happened untold.
    pub(crate) fn may_tell(&self, now: Moment, every: Duration) -> Option<u64> {
        let told = self.told.load(Ordering::Relaxed);
        let due = told == 0 || now.since(Moment::from_nanos(told)) >= every;
        let won = || {
            let (now, relaxed) = (now.nanos().max(1), Ordering::Relaxed);
            self.told.compare_exchange(told, now, relaxed, relaxed).is_ok()
        };
        if due && won() {
            return Some(self.since.swap(0, Ordering::Relaxed));
        }
        self.since.fetch_add(1, Ordering::Relaxed);
        None
    }
}
