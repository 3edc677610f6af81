//! What Koboshi remembers and shares.
//!
//! Memory is the working copy: everyone reads the [`Ledger`], and nothing on a request path waits for a
//! store. A [`Store`] makes it durable and shared: [`memory`] for tests and drills, [`sqlite`] for the
//! processes of one machine, [`redis`] for a fleet. The merge of two copies is the core's; a store decides nothing.
//! What happened is noted in the [`journal`].

pub mod clock;
pub mod error;
pub mod journal;
pub mod ledger;
pub mod memory;
pub mod record;
pub mod redis;
pub mod sqlite;
pub mod standing;
pub mod store;
mod times;

pub use clock::{Clock, SystemClock};
pub use error::StoreError;
pub use journal::{Entry, EntryKind, Query, Retention};
pub use ledger::{Health, Ledger, LedgerOptions};
pub use memory::{MemoryPolicy, MemoryStore};
pub use record::{Node, Record, RecordKind, Slot};
pub use redis::{RedisPolicy, RedisStore};
pub use sqlite::{SqlitePolicy, SqliteStore};
pub use standing::{Row, RowState};
pub use store::{Lease, Loaded, Merged, Named, Store, StoreChanges, Unreadable, Wake, Watch};

/// The snippets of the page on stores, compiled.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/store.md")]
    struct OfStores;
}
