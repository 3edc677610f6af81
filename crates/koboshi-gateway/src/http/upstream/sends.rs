//! Counts how often a client's request was really sent to providers: an attempt may send it twice, or find no connection to send it on.

use std::cell::Cell;

/// The sends of one client request, over all its attempts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sends {
    count: Cell<u32>,
    has_resent: Cell<bool>,
}

impl Sends {
    pub(crate) fn count(&self) -> u32 {
        self.count.get()
    }

    /// Counts a send.
    pub(super) fn begin(&self) {
        self.count.set(self.count.get().saturating_add(1));
    }

    /// Takes a count back: nothing was sent.
    pub(super) fn take_back(&self) {
        self.count.set(self.count.get().saturating_sub(1));
    }

    /// Whether it may be sent again without a further attempt.
    pub(super) fn may_resend(&self) -> bool {
        !self.has_resent.get()
    }

    /// Records such a resend: there is only one.
    pub(super) fn resend(&self) {
        self.has_resent.set(true);
    }
}
