//! Whether a target is being probed beside requests, and whether any request still wants it.
//!
//! One task at a time probes a target, on whichever core a request passed it over first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use koboshi::time::Moment;

use crate::route::target::Target;

/// A target that no request has passed over for this long is not probed.
const MAX_UNWANTED: Duration = Duration::from_secs(60);

/// The state of probing one target.
#[derive(Debug, Default)]
pub(crate) struct Prober {
    /// A task is at work.
    is_at_work: AtomicBool,
    /// When a request last passed the target over, as nanoseconds of the monotonic clock.
    wanted: AtomicU64,
    /// It refuses our own small request, which says nothing about others.
    is_refused: AtomicBool,
}

impl Prober {
    /// A request passes the target over now.
    pub(crate) fn want(&self, now: Moment) {
        self.wanted.store(now.nanos(), Ordering::Relaxed);
    }

    pub(crate) fn is_wanted(&self, now: Moment) -> bool {
        now.since(Moment::from_nanos(self.wanted.load(Ordering::Relaxed))) < MAX_UNWANTED
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Records that the target refuses our own request: requests of clients probe it from now on.
    pub(crate) fn mark_refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }
}

/// The right to probe a target beside requests, until it is dropped.
pub(crate) struct ProbeShift(Arc<Target>);

impl ProbeShift {
    /// None where a task is at work already.
    pub(crate) fn begin(target: &Arc<Target>) -> Option<Self> {
        let was_at_work = target.prober.is_at_work.swap(true, Ordering::AcqRel);
        (!was_at_work).then(|| Self(Arc::clone(target)))
    }

    pub(crate) fn target(&self) -> &Arc<Target> {
        &self.0
    }
}

impl Drop for ProbeShift {
    fn drop(&mut self) {
        self.0.prober.is_at_work.store(false, Ordering::Release);
    }
}
