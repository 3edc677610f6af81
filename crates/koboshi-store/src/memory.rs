//! The store that is not durable: everything is in this process, for tests, drills and `store: memory`.
//!
//! Clones share one memory, so several ledgers in one process can meet in it as processes meet in a file. It is also
//! the simplest implementation of a store; the contract tests compare the two others with it.

mod sessions;
mod usage;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;

use crate::error::StoreError;
use crate::journal::{Entry, Query, Retention, tidy, tidy_query};
use crate::record::{Record, Slot};
use crate::session::Sessions;
use crate::store::{Lease, MergeResult, Named, Store, StoreChanges, StoreContents, Wake, Watch};
use crate::times;
use crate::usage::UsageStore;

/// How much a memory keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPolicy {
    /// The most bytes of cached answers.
    pub cache_bytes: usize,
    /// The most entries of the journal.
    pub entries: usize,
}

impl Default for MemoryPolicy {
    fn default() -> Self {
        Self { cache_bytes: 16 * 1024 * 1024, entries: 100_000 }
    }
}

/// Bytes that are kept until then.
struct CachedBytes {
    body: Vec<u8>,
    until: Timestamp,
}

struct HeldLease {
    fence: u64,
    until: Timestamp,
    length: Duration,
}

impl HeldLease {
    fn is_held(&self, now: Timestamp) -> bool {
        times::is_held(self.until, self.length, now)
    }
}

#[derive(Default)]
struct Inner {
    records: BTreeMap<Slot, (Record, u64)>,
    /// Counts the changes, so that a watch can ask for those after its last read.
    seq: u64,
    leases: BTreeMap<String, HeldLease>,
    fence: u64,
    cache: BTreeMap<String, CachedBytes>,
    notes: BTreeMap<String, CachedBytes>,
    sessions: sessions::SessionTable,
    usage: usage::UsageTable,
    journal: VecDeque<Entry>,
    /// The callbacks to wake, by the number of their watch.
    wakes: BTreeMap<u64, Wake>,
    watches: u64,
}

/// The store that is not durable.
#[derive(Clone, Default)]
pub struct MemoryStore {
    policy: MemoryPolicy,
    inner: Arc<Mutex<Inner>>,
}

impl MemoryStore {
    /// A memory of this size.
    #[must_use]
    pub fn new(policy: MemoryPolicy) -> Self {
        Self { policy, inner: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn next_fence(&mut self, now: Timestamp) -> u64 {
        self.fence = times::next_fence(self.fence, now);
        self.fence
    }

    fn merge(&mut self, slot: &Slot, record: &Record) -> Option<Record> {
        let merged = match self.records.get(slot) {
            Some((known, _)) => known.merge(record),
            None => record.clone(),
        };
        if self.records.get(slot).is_none_or(|(known, _)| *known != merged) {
            self.seq += 1;
            self.records.insert(slot.clone(), (merged.clone(), self.seq));
        }
        (merged != *record).then_some(merged)
    }

    fn make_room(&mut self, needed: usize, max: usize, now: Timestamp) {
        self.cache.retain(|_, kept| kept.until > now);
        let mut bytes: usize = self.cache.values().map(|kept| kept.body.len()).sum();
        while bytes.saturating_add(needed) > max {
            let first = self.cache.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| key.clone());
            let Some(gone) = first.and_then(|key| self.cache.remove(&key)) else { return };
            bytes = bytes.saturating_sub(gone.body.len());
        }
    }
}

struct MemoryWatch {
    store: MemoryStore,
    number: u64,
    seen: Option<u64>,
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.store.lock().wakes.remove(&self.number);
    }
}

impl Watch for MemoryWatch {
    fn changes(&mut self, _now: Moment) -> Result<StoreChanges, StoreError> {
        let inner = self.store.lock();
        let after = self.seen.replace(inner.seq);
        if after == Some(inner.seq) {
            return Ok(StoreChanges::Quiet);
        }
        let changed = inner.records.iter().filter(|(_, (_, seq))| after.is_none_or(|after| *seq > after));
        let records = changed.map(|(slot, (record, _))| (slot.clone(), record.clone())).collect();
        let loaded = StoreContents { records, unreadable: Vec::new() };
        Ok(if after.is_none() { StoreChanges::All(loaded) } else { StoreChanges::Changed(loaded) })
    }
}

impl Store for MemoryStore {
    fn place(&self) -> &str {
        "memory"
    }

    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError> {
        let mut inner = self.lock();
        let before = inner.seq;
        let mut beyond = Vec::new();
        for (slot, record) in changes.iter().filter(|(slot, _)| slot.is_shared()) {
            if let Some(merged) = inner.merge(slot, record) {
                beyond.push((slot.clone(), merged));
            }
        }
        let wakes: Vec<Wake> =
            if inner.seq > before { inner.wakes.values().cloned().collect() } else { Vec::new() };
        drop(inner);
        for wake in wakes {
            wake();
        }
        Ok(MergeResult { beyond, ..MergeResult::default() })
    }

    fn load(&self) -> Result<StoreContents, StoreError> {
        let inner = self.lock();
        let records = inner.records.iter().map(|(slot, (record, _))| (slot.clone(), record.clone()));
        Ok(StoreContents { records: records.collect(), unreadable: Vec::new() })
    }

    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        let mut inner = self.lock();
        inner.watches += 1;
        let number = inner.watches;
        inner.wakes.insert(number, wake);
        Ok(Box::new(MemoryWatch { store: self.clone(), number, seen: None }))
    }

    fn lease(
        &self,
        name: &str,
        _holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        let mut inner = self.lock();
        if inner.leases.get(name).is_some_and(|held| held.is_held(now)) {
            return Ok(None);
        }
        let fence = inner.next_fence(now);
        let until = times::after(now, ttl);
        inner.leases.insert(name.to_owned(), HeldLease { fence, until, length: ttl });
        Ok(Some(Lease { name: name.to_owned(), fence, until }))
    }

    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        let mut inner = self.lock();
        let held =
            inner.leases.get_mut(&lease.name).filter(|held| held.fence == lease.fence && held.is_held(now));
        Ok(held.map(|held| {
            held.until = times::after(now, ttl);
            held.length = ttl;
            Lease { until: held.until, ..lease.clone() }
        }))
    }

    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let Some(held) = inner.leases.get(&lease.name).filter(|held| held.fence == lease.fence) else {
            return Ok(false);
        };
        let was_held = held.is_held(now);
        inner.leases.remove(&lease.name);
        Ok(was_held)
    }

    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        inner.cache.remove(key);
        if body.len() > self.policy.cache_bytes {
            return Ok(false);
        }
        inner.make_room(body.len(), self.policy.cache_bytes, now);
        inner
            .cache
            .insert(key.to_owned(), CachedBytes { body: body.to_vec(), until: times::after(now, ttl) });
        Ok(true)
    }

    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().cache.get(key).filter(|kept| kept.until > now).map(|kept| kept.body.clone()))
    }

    fn note_put(&self, name: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        let kept = CachedBytes { body: body.to_vec(), until: times::after(now, ttl) };
        self.lock().notes.insert(name.to_owned(), kept);
        Ok(())
    }

    fn note_get(&self, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().notes.get(name).filter(|kept| kept.until > now).map(|kept| kept.body.clone()))
    }

    fn note_delete(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.lock().notes.remove(name).is_some())
    }

    fn note_swap(
        &self,
        name: &str,
        before: Option<&[u8]>,
        after: &[u8],
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let known = inner.notes.get(name).filter(|kept| kept.until > now).map(|kept| kept.body.as_slice());
        if known != before {
            return Ok(false);
        }
        let kept = CachedBytes { body: after.to_vec(), until: times::after(now, ttl) };
        inner.notes.insert(name.to_owned(), kept);
        Ok(true)
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn usage(&self) -> &dyn UsageStore {
        self
    }

    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.journal.extend(entries.iter().map(tidy));
        while inner.journal.len() > self.policy.entries {
            inner.journal.pop_front();
        }
        Ok(())
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        let (query, inner) = (&tidy_query(query), self.lock());
        let mut found: Vec<Entry> =
            inner.journal.iter().filter(|entry| query.matches(entry)).cloned().collect();
        drop(inner);
        found.sort_by_key(|entry| entry.at);
        Ok(found.split_off(found.len().saturating_sub(query.limit)))
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        let mut inner = self.lock();
        let before =
            |inner: &Inner| inner.records.len() + inner.journal.len() + inner.cache.len() + inner.notes.len();
        let had = before(&inner);
        let (old_entry, old_breaker) = (times::before(now, keep.journal), times::before(now, keep.breakers));
        inner.journal.retain(|entry| entry.at >= old_entry);
        let max = usize::try_from(keep.entries).unwrap_or(usize::MAX);
        let too_many = inner.journal.len().saturating_sub(max);
        inner.journal.drain(..too_many);
        inner.records.retain(|_, (record, _)| match record {
            Record::Breaker(breaker) => breaker.at >= old_breaker,
            fact => !fact.is_spent(now),
        });
        inner.cache.retain(|_, kept| kept.until > now);
        inner.notes.retain(|_, kept| kept.until > now);
        inner.leases.retain(|_, held| held.is_held(now));
        let sessions = inner.sessions.prune(now);
        let usage = inner.usage.prune(keep.first_day(now), now);
        Ok(u64::try_from(had.saturating_sub(before(&inner)) + sessions + usage).unwrap_or(u64::MAX))
    }
}
