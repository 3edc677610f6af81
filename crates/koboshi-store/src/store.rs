//! What every store can do.
//!
//! One trait for memory, SQLite and Redis. All calls block until the store answered or gave up, so they are for
//! background threads and the command line; whatever serves requests reads the [`Ledger`](crate::ledger::Ledger).
//! A store gets the time as an argument, merges with the core's functions and decides nothing.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;

use crate::error::StoreError;
use crate::journal::{Entry, Query, Retention};
use crate::record::{Record, Slot};
use crate::session::Sessions;
use crate::usage::UsageStore;

/// A record and its name.
pub type Named = (Slot, Record);

/// Something in a store that this program cannot read. It stays where it is, or in a place of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The slot, as it is written in the store.
    pub slot: String,
    /// What is wrong with it.
    pub why: String,
}

/// The most bodies that a store keeps of those it set aside; the oldest go first.
pub const MAX_SET_ASIDE: usize = 100;
/// The most bytes of them all.
pub const MAX_BYTES_SET_ASIDE: usize = 1024 * 1024;

/// Everything a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreContents {
    /// What could be read.
    pub records: Vec<Named>,
    /// What could not; from [`Store::load`] also what was set aside.
    pub unreadable: Vec<Unreadable>,
}

/// The result of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergeResult {
    /// Slots in which the store now holds something else than was written: it knew more. The writer must merge this,
    /// and may have to write again.
    pub beyond: Vec<Named>,
    /// Slots that cannot be read here and were left in place, because a newer program may have written them. What was
    /// to be merged into them was **not** written.
    pub unreadable: Vec<Unreadable>,
    /// Slots that no program can read: the old body was set aside, byte for byte, and the new record took its place.
    pub set_aside: Vec<Unreadable>,
}

/// What a watch found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreChanges {
    /// Nothing changed.
    Quiet,
    /// These changed.
    Changed(StoreContents),
    /// This is all that the store holds: what is known here and missing there must be written.
    All(StoreContents),
}

/// Finds what others change.
pub trait Watch: Send {
    /// What changed since the last call. The first call, and the first after one that failed, gives everything.
    /// `now` decides when everything is read once more for safety.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn changes(&mut self, now: Moment) -> Result<StoreChanges, StoreError>;
}

/// Called by a watch when there may be news, from a thread of its own; must return at once.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The right to do something alone, until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What for.
    pub name: String,
    /// Grows with every lease that is given out; the holder sends it along with what it does, so that a late one is refused.
    pub fence: u64,
    /// When it ends, on the clock of the caller.
    pub until: Timestamp,
}

/// Where state is kept and shared.
pub trait Store: Send + Sync {
    /// What to call it in messages; never holds a password.
    fn place(&self) -> &str;

    /// Merges records into what is there, all or nothing where the store can. Slots that are not shared are left out.
    ///
    /// # Errors
    /// The store cannot be written now; what was not merged must be merged again.
    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError>;

    /// Everything there is, and what could not be read, in its place or set aside.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn load(&self) -> Result<StoreContents, StoreError>;

    /// Begins to watch for changes by others. `wake` is called where the store announces changes; a store that must be polled
    /// never calls it.
    ///
    /// # Errors
    /// The store cannot be opened for it.
    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError>;

    /// Takes a lease; none while it is held. The holder's name is for people.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError>;

    /// Makes a lease last longer; none if it has ended or been given to another holder.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError>;

    /// Gives a lease back. Returns whether it was still held.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError>;

    /// Keeps an answer for a while. What ends soonest makes room; returns false if the answer is larger than the whole cache.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError>;

    /// The answer that was kept, if it still is.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps something small under a name, for a while.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn note_put(&self, name: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError>;

    /// What was kept under a name, if it still is.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn note_get(&self, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError>;

    /// Forgets what was kept under a name. Returns whether there was something: of several callers one gets true.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn note_delete(&self, name: &str) -> Result<bool, StoreError>;

    /// Replaces a note by another one if it is still this one, or none. Of several that change what they have read, one succeeds; the others
    /// are refused (false) and read it again.
    ///
    /// # Errors
    /// The store cannot be written now. A store behind a network may have written all the same.
    fn note_swap(
        &self,
        name: &str,
        before: Option<&[u8]>,
        after: &[u8],
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Sessions.
    fn sessions(&self) -> &dyn Sessions;

    /// Usage.
    fn usage(&self) -> &dyn UsageStore;

    /// Adds entries to the journal, each redacted and bounded.
    ///
    /// # Errors
    /// The store cannot be written now. A store behind a network may have written them all the same.
    fn append(&self, entries: &[Entry]) -> Result<(), StoreError>;

    /// The newest entries that match, newest last.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError>;

    /// Prunes what is older than its retention, and facts that are spent ([`Record::is_spent`]): a clear outlives what it cleared.
    /// One call does a bounded amount of work and returns how many things were removed: after many there may be more.
    ///
    /// # Errors
    /// The store cannot be written now.
    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError>;
}
