//! A store that is away or full.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use koboshi_store::{
    Entry, KeyCalls, KeySpent, Lease, MemoryStore, MergeResult, Named, Query, Retention, Sessions, Store,
    StoreContents, StoreError, UsageBatch, UsageRow, UsageStore, Wake, Watch,
};

/// A memory that refuses calls as a store in trouble does.
pub(super) struct FailingStore {
    memory: MemoryStore,
    can_read: bool,
}

impl FailingStore {
    /// Nothing can be read or written.
    pub(super) fn away() -> Self {
        Self { memory: MemoryStore::default(), can_read: false }
    }

    /// Nothing can be written.
    pub(super) fn full() -> Self {
        Self { memory: MemoryStore::default(), can_read: true }
    }

    fn read(&self, doing: &'static str) -> Result<&MemoryStore, StoreError> {
        if self.can_read { Ok(&self.memory) } else { Err(self.refused(doing)) }
    }

    fn refused(&self, doing: &'static str) -> StoreError {
        let place = self.place().to_owned();
        if self.can_read {
            StoreError::Failed { place, doing, why: "no space left (rehearsed)".to_owned() }
        } else {
            StoreError::Away { place, doing, why: "connection refused (rehearsed)".to_owned() }
        }
    }
}

impl Store for FailingStore {
    fn place(&self) -> &str {
        "the store"
    }

    fn merge(&self, _: &[Named]) -> Result<MergeResult, StoreError> {
        Err(self.refused("write"))
    }

    fn load(&self) -> Result<StoreContents, StoreError> {
        self.read("read")?.load()
    }

    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        self.read("watch")?.watch(wake)
    }

    fn lease(&self, _: &str, _: &str, _: Duration, _: Timestamp) -> Result<Option<Lease>, StoreError> {
        Err(self.refused("take a lease"))
    }

    fn renew(&self, _: &Lease, _: Duration, _: Timestamp) -> Result<Option<Lease>, StoreError> {
        Err(self.refused("renew a lease"))
    }

    fn release(&self, _: &Lease, _: Timestamp) -> Result<bool, StoreError> {
        Err(self.refused("release a lease"))
    }

    fn cache_put(&self, _: &str, _: &[u8], _: Duration, _: Timestamp) -> Result<bool, StoreError> {
        Err(self.refused("cache"))
    }

    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("read the cache")?.cache_get(key, now)
    }

    fn note_put(&self, _: &str, _: &[u8], _: Duration, _: Timestamp) -> Result<(), StoreError> {
        Err(self.refused("write"))
    }

    fn note_get(&self, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("read")?.note_get(name, now)
    }

    fn note_delete(&self, _: &str) -> Result<bool, StoreError> {
        Err(self.refused("write"))
    }

    fn note_swap(
        &self,
        _: &str,
        _: Option<&[u8]>,
        _: &[u8],
        _: Duration,
        _: Timestamp,
    ) -> Result<bool, StoreError> {
        Err(self.refused("write"))
    }

    fn sessions(&self) -> &dyn Sessions {
        self.memory.sessions()
    }

    fn usage(&self) -> &dyn UsageStore {
        self
    }

    fn append(&self, _: &[Entry]) -> Result<(), StoreError> {
        Err(self.refused("write the journal"))
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.read("read the journal")?.query(query)
    }

    fn prune(&self, _: &Retention, _: Timestamp) -> Result<u64, StoreError> {
        Err(self.refused("prune"))
    }
}

impl UsageStore for FailingStore {
    fn add(&self, _: &UsageBatch, _: Timestamp) -> Result<bool, StoreError> {
        Err(self.refused("write the usage"))
    }

    fn totals(&self, from: Date, to: Date) -> Result<Vec<UsageRow>, StoreError> {
        self.read("read the usage")?.usage().totals(from, to)
    }

    fn spent(&self, from: Date, to: Date) -> Result<Vec<KeySpent>, StoreError> {
        self.read("read the usage")?.usage().spent(from, to)
    }

    fn calls(&self, minute: i64) -> Result<Vec<KeyCalls>, StoreError> {
        self.read("read the usage")?.usage().calls(minute)
    }
}
