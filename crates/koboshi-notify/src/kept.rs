//! The book in the store, and the right to change it: one lease, one document.
//!
//! A process that had the lease and was stopped for longer than it lasts may write once more before it sees that it is gone. What follows is
//! at worst a message that is sent twice, with the same id.

use std::sync::Arc;
use std::time::Duration;

use koboshi::notice::Book;
use koboshi::time::Moment;
use koboshi_store::notices::{self, NAME};
use koboshi_store::{Clock, Lease, Store, StoreError, SystemClock};

/// How long the lease lasts; after a kill another process sends after that time.
const LEASE_TTL: Duration = Duration::from_secs(6);
/// How often it is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// How long the book is kept, where nothing changes.
const BOOK_TTL: Duration = Duration::from_secs(60 * 24 * 60 * 60);
/// How often it is written again even so.
const REFRESH_EVERY: Duration = Duration::from_secs(60 * 60);

/// The lease and the book.
pub(crate) struct Kept {
    store: Arc<dyn Store>,
    holder: String,
    clock: SystemClock,
    lease: Option<Held>,
    /// None while another process sends.
    pub(crate) book: Option<Book>,
    /// It differs from what is in the store.
    pub(crate) is_changed: bool,
    written: Moment,
}

struct Held {
    lease: Lease,
    renewed: Moment,
}

impl Kept {
    pub(crate) fn new(store: Arc<dyn Store>, holder: String) -> Self {
        let clock = SystemClock;
        let written = clock.moment();
        Self { store, holder, clock, lease: None, book: None, is_changed: false, written }
    }

    /// Whether this process is the one that sends. Takes the lease where it is free, and reads the book then.
    pub(crate) fn is_ours(&mut self) -> bool {
        if !self.has_lease() {
            self.lease = None;
            self.book = None;
            return false;
        }
        if self.book.is_none() {
            // An unreachable store is reported elsewhere; the next turn tries again.
            self.book = self.read().ok();
            self.is_changed = false;
        }
        self.book.is_some()
    }

    fn has_lease(&mut self) -> bool {
        let (now, wall) = (self.clock.moment(), self.clock.wall());
        if let Some(held) = &self.lease {
            if now.since(held.renewed) < RENEW_EVERY {
                return true;
            }
            match self.store.renew(&held.lease, LEASE_TTL, wall) {
                Ok(Some(lease)) => {
                    self.lease = Some(Held { lease, renewed: now });
                    return true;
                }
                // As long as no other process can have it.
                Err(_) => return now.since(held.renewed) < LEASE_TTL,
                Ok(None) => self.lease = None,
            }
        }
        let taken = self.store.lease(NAME, &self.holder, LEASE_TTL, wall);
        let Ok(Some(lease)) = taken else { return false };
        // What another process wrote meanwhile is read again.
        self.book = None;
        self.lease = Some(Held { lease, renewed: now });
        true
    }

    fn read(&self) -> Result<Book, StoreError> {
        Ok(notices::book(&*self.store, self.clock.wall())?.unwrap_or_default())
    }

    /// Writes the book where it has changed. Returns whether the store has it as it is here.
    pub(crate) fn write(&mut self) -> bool {
        let now = self.clock.moment();
        let Some(book) = &self.book else { return false };
        if !self.is_changed && now.since(self.written) < REFRESH_EVERY {
            return true;
        }
        let Ok(body) = serde_json::to_vec(book) else { return false };
        if self.store.note_put(NAME, &body, BOOK_TTL, self.clock.wall()).is_err() {
            self.is_changed = true;
            return false;
        }
        self.is_changed = false;
        self.written = now;
        true
    }

    /// Gives the lease back, so that another process goes on at once.
    pub(crate) fn close(&mut self) {
        let _ = self.write();
        if let Some(held) = self.lease.take() {
            // It ends by itself where the store is away.
            let _ = self.store.release(&held.lease, self.clock.wall());
        }
    }
}
