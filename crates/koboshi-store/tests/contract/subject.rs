//! A store under test, with the time it lives in.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi_store::{
    MemoryPolicy, MemoryStore, RedisPolicy, RedisStore, SqlitePolicy, SqliteStore, Store, Wake,
};

use crate::common::{at, until};
use koboshi_testkit::RedisServer;

/// Room for cached answers in every store under test.
pub(crate) const CACHE_BYTES: usize = 1000;

pub(crate) struct Subject {
    pub store: Arc<dyn Store>,
    /// A length that ends soon, in the time that the store lives in.
    pub soon: Duration,
    /// The time that the test hands to the store; none for a store with a clock of its own.
    time: Option<Cell<i64>>,
    _place: Box<dyn std::any::Any>,
}

impl Subject {
    pub(crate) fn memory() -> Self {
        let store = MemoryStore::new(MemoryPolicy { cache_bytes: CACHE_BYTES, entries: 1000 });
        Self::told(Arc::new(store), Box::new(()))
    }

    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policy = SqlitePolicy { cache_bytes: CACHE_BYTES as u64, ..SqlitePolicy::default() };
        let store = SqliteStore::open(&folder.path().join("koboshi.db"), policy).unwrap();
        Self::told(Arc::new(store), Box::new(folder))
    }

    pub(crate) fn redis() -> Self {
        let server = RedisServer::start();
        let policy = RedisPolicy { cache_bytes: CACHE_BYTES as u64, ..RedisPolicy::default() };
        let store = RedisStore::new(&server.url(), policy).unwrap();
        Self { store: Arc::new(store), soon: Duration::from_secs(2), time: None, _place: Box::new(server) }
    }

    fn told(store: Arc<dyn Store>, place: Box<dyn std::any::Any>) -> Self {
        Self { store, soon: Duration::from_secs(60), time: Some(Cell::new(0)), _place: place }
    }

    /// Whether it goes by the time that the test hands in.
    pub(crate) fn uses_our_clock(&self) -> bool {
        self.time.is_some()
    }

    pub(crate) fn now(&self) -> Timestamp {
        at(self.time.as_ref().map_or(0, Cell::get))
    }

    /// What must hold once `soon` is over.
    pub(crate) fn after_soon(&self, what: &str, holds: impl Fn(Timestamp) -> bool) {
        match &self.time {
            Some(second) => {
                second.set(second.get() + 60);
                assert!(holds(self.now()), "{what}");
            }
            None => until(what, || holds(self.now()).then_some(())),
        }
    }

    pub(crate) fn no_wake() -> Wake {
        Arc::new(|| {})
    }
}
