//! The state that Koboshi keeps and shares.
//!
//! Memory is the working copy: all callers read the [`Ledger`], and nothing on a request path waits for a
//! store. A [`Store`] makes it durable and shared: [`memory`] for tests and drills, [`sqlite`] for the
//! processes of one machine, [`redis`] for a fleet. The merge of two copies is the core's; a store decides nothing.
//! What happened is noted in the [`journal`].

pub mod clock;
pub mod error;
pub mod journal;
pub mod ledger;
pub mod memory;
pub mod notices;
pub mod record;
pub mod redis;
pub mod session;
pub mod sqlite;
pub mod standing;
pub mod store;
pub mod supervisors;
mod times;
pub mod usage;

pub use clock::{Clock, SystemClock, replace_system_clock, since_boot};
pub use error::StoreError;
pub use journal::{Entry, EntryKind, Query, Retention};
pub use ledger::{ClaimState, Health, Ledger, LedgerOptions};
pub use memory::{MemoryPolicy, MemoryStore};
pub use record::{Node, Record, RecordKind, Slot};
pub use redis::{RedisPolicy, RedisStore};
pub use session::{
    Appended, KnownPart, Listening, News, NewsHandler, Ownership, SessionHead, SessionWrite, Sessions,
    StoredSession, Taken,
};
pub use sqlite::{SqlitePolicy, SqliteStore};
pub use standing::{Row, RowState};
pub use store::{Lease, MergeResult, Named, Store, StoreChanges, StoreContents, Unreadable, Wake, Watch};
pub use usage::{KeyCalls, KeySpent, UsageBatch, UsageCounts, UsageKey, UsageRow, UsageStore, minute_of};

/// The snippets of the page on stores, compiled.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/store.md")]
    struct OfStores;
}
