//! A memory that something happens to before each call: it takes its time, fails or hangs, as the test says.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;
use koboshi_store::{
    Entry, Lease, MemoryStore, MergeResult, Named, Query, Retention, Store, StoreChanges, StoreContents,
    StoreError, Wake, Watch,
};

/// What happens before a call, which has this name.
pub type Hook = Arc<dyn Fn(&str) -> Result<(), StoreError> + Send + Sync>;

/// A memory with a hook.
#[derive(Clone)]
pub struct Hooked {
    pub memory: MemoryStore,
    hook: Hook,
}

impl Hooked {
    pub fn new(hook: impl Fn(&str) -> Result<(), StoreError> + Send + Sync + 'static) -> Self {
        Self { memory: MemoryStore::default(), hook: Arc::new(hook) }
    }

    fn before(&self, call: &str) -> Result<&MemoryStore, StoreError> {
        (self.hook)(call).map(|()| &self.memory)
    }
}

struct HookedWatch {
    watch: Box<dyn Watch>,
    hook: Hook,
}

impl Watch for HookedWatch {
    fn changes(&mut self, now: Moment) -> Result<StoreChanges, StoreError> {
        (self.hook)("changes")?;
        self.watch.changes(now)
    }
}

impl Store for Hooked {
    fn place(&self) -> &str {
        "a hooked store"
    }
    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError> {
        self.before("merge")?.merge(changes)
    }
    fn load(&self) -> Result<StoreContents, StoreError> {
        self.before("load")?.load()
    }
    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.before("watch")?.watch(wake)?;
        Ok(Box::new(HookedWatch { watch, hook: Arc::clone(&self.hook) }))
    }
    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        self.before("lease")?.lease(name, holder, ttl, now)
    }
    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        self.before("renew")?.renew(lease, ttl, now)
    }
    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        self.before("release")?.release(lease, now)
    }
    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        self.before("cache_put")?.cache_put(key, body, ttl, now)
    }
    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.before("cache_get")?.cache_get(key, now)
    }
    fn note_put(&self, id: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        self.before("note_put")?.note_put(id, body, ttl, now)
    }
    fn note_get(&self, id: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.before("note_get")?.note_get(id, now)
    }
    fn note_delete(&self, id: &str) -> Result<bool, StoreError> {
        self.before("note_delete")?.note_delete(id)
    }
    fn note_swap(
        &self,
        id: &str,
        before: Option<&[u8]>,
        after: &[u8],
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.before("note_swap")?.note_swap(id, before, after, ttl, now)
    }

    fn sessions(&self) -> &dyn koboshi_store::Sessions {
        self.memory.sessions()
    }

    fn usage(&self) -> &dyn koboshi_store::UsageStore {
        self.memory.usage()
    }
    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        self.before("append")?.append(entries)
    }
    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.before("query")?.query(query)
    }
    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        self.before("prune")?.prune(keep, now)
    }
}
