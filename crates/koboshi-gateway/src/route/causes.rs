//! Why a target is not asked now: its last fault of each sort.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use koboshi::fault::{Fault, Kind};

/// The last fault of each sort that keeps a target from being asked. Written when an attempt fails, read when a request ends without an answer.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    last: Mutex<LastFaults>,
}

#[derive(Debug, Default, Clone)]
struct LastFaults {
    absent: Option<Arc<Fault>>,
    limited: Option<Arc<Fault>>,
    failing: Option<Arc<Fault>>,
}

impl Causes {
    /// Keeps a fault for later requests. A fault that the request itself caused does not concern others.
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

    /// A copy for the target of the same name that a reload makes.
    pub(crate) fn taken_over(&self) -> Self {
        Self { last: Mutex::new(self.last()) }
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

    /// When the last stated limit ends.
    pub(crate) fn limit_ends(&self) -> Option<Timestamp> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).limited.as_ref()?.until()
    }

    pub(crate) fn failing(&self) -> Option<Box<Fault>> {
        self.last().failing.map(again)
    }

    /// The fault that stated that it is down until then, or for longer.
    pub(crate) fn down(&self, until: Timestamp) -> Option<Box<Fault>> {
        let states = |fault: &Arc<Fault>| fault.until().is_some_and(|stated| stated >= until);
        self.last().failing.filter(states).map(again)
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
