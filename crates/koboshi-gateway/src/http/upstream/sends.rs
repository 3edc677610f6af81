//! How often a client's request was really sent to providers: an attempt may send it twice, or find no connection to send it on.

use std::cell::Cell;

/// The sends of one request of a client, over all its attempts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sends {
    count: Cell<u32>,
    has_resent: Cell<bool>,
}

impl Sends {
    pub(crate) fn count(&self) -> u32 {
        self.count.get()
    }

    /// It is being sent.
    pub(super) fn begin(&self) {
        self.count.set(self.count.get().saturating_add(1));
    }

    /// Nothing of it was sent after all.
    pub(super) fn take_back(&self) {
        self.count.set(self.count.get().saturating_sub(1));
    }

    /// Whether it may be sent again without an attempt of its own.
    pub(super) fn may_resend(&self) -> bool {
        !self.has_resent.get()
    }

    /// It is sent again so: once is all there is.
    pub(super) fn resend(&self) {
        self.has_resent.set(true);
    }
}
