//! Why a target is not asked now: the last fault of each sort.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use koboshi::fault::{Fault, Kind};
use koboshi::time::Moment;

/// The last fault of each sort that keeps a target from being asked. Written when an attempt fails, read when a request ends without an answer.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    last: Mutex<LastFaults>,
    /// The provider said that it is down or overloaded; not asked again before this. Looked at for every request.
    down_until: AtomicU64,
}

#[derive(Debug, Default, Clone)]
struct LastFaults {
    absent: Option<Arc<Fault>>,
    limited: Option<Arc<Fault>>,
    failing: Option<Arc<Fault>>,
    down: Option<Arc<Fault>>,
}

impl Causes {
    /// Keeps a fault for those who come later. What the request itself caused says nothing to others.
    pub(crate) fn keep(&self, fault: &Fault) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match fault.kind {
            Kind::ModelNotFound => &mut last.absent,
            Kind::RateLimited => &mut last.limited,
            _ if fault.advice.health => &mut last.failing,
            _ => return,
        };
        *place = Some(Arc::new(fault.clone()));
    }

    /// What another target of the same name knows, after a reload made a new one.
    pub(crate) fn taken_over(&self) -> Self {
        let down_until = AtomicU64::new(self.down_until.load(Ordering::Relaxed));
        Self { last: Mutex::new(self.last()), down_until }
    }

    fn last(&self) -> LastFaults {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn absent(&self) -> Option<Box<Fault>> {
        self.last().absent.map(again)
    }

    pub(crate) fn limited(&self) -> Option<Box<Fault>> {
        self.last().limited.map(again)
    }

    /// When the limit ends that was stated last.
    pub(crate) fn limit_ends(&self) -> Option<Timestamp> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).limited.as_ref()?.until()
    }

    pub(crate) fn failing(&self) -> Option<Box<Fault>> {
        self.last().failing.map(again)
    }

    /// The provider said that it is down or overloaded for a while: not asked again before this.
    pub(crate) fn is_down_until(&self, until: Moment, fault: &Fault) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).down = Some(Arc::new(fault.clone()));
        self.down_until.store(until.nanos(), Ordering::Relaxed);
    }

    /// It may be asked again at once.
    pub(crate) fn is_up(&self) {
        self.down_until.store(0, Ordering::Relaxed);
    }

    /// When it may be asked again, if it was ever down for a stated time.
    pub(crate) fn down_until(&self) -> Option<Moment> {
        let nanos = self.down_until.load(Ordering::Relaxed);
        (nanos > 0).then(|| Moment::from_nanos(nanos))
    }

    pub(crate) fn down(&self) -> Option<Box<Fault>> {
        self.last().down.map(again)
    }
}

fn again(fault: Arc<Fault>) -> Box<Fault> {
    Box::new(Arc::unwrap_or_clone(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_caused_itself_is_not_kept_for_others() {
        let causes = Causes::default();
        causes.keep(&Fault::of(Kind::InvalidRequest, "test"));
        assert!(causes.failing().is_none() && causes.absent().is_none());
        causes.keep(&Fault::of(Kind::Unavailable, "test"));
        causes.keep(&Fault::of(Kind::ModelNotFound, "test"));
        causes.keep(&Fault::of(Kind::RateLimited, "test"));
        assert_eq!(causes.failing().map(|fault| fault.kind), Some(Kind::Unavailable));
        assert_eq!(causes.absent().map(|fault| fault.kind), Some(Kind::ModelNotFound));
        assert_eq!(causes.taken_over().limited().map(|fault| fault.kind), Some(Kind::RateLimited));
    }
}
