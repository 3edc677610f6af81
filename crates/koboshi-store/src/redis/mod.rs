//! The store of a fleet: Redis 6 or newer, or Valkey.
//!
//! Records are merged by compare-and-set with the core's own merge, announced over pub/sub and read again in full after
//! every break. Leases and the cache go by the server's clock, so that nodes need not agree on the time. Whatever the
//! server does (disappear, come back empty, stop answering), a call here ends within a few time limits, and the ledger above
//! works on with what it knows.
//!
//! The server is one, the one that Sentinels name, or a node of a Cluster: all keys of a fleet are on one node, because scripts and
//! announcements need them together. It deliberately sends no pipelines and reads from no replica. TLS trusts the certificates of the
//! machine. A server that evicts keys under memory pressure can forget what is stored; ledgers write it again at their
//! next full read. Its journal may hold an entry twice where the answer to a write was lost.

mod handle;
mod journal;
mod listen;
mod names;
mod records;
mod servers;
mod sessions;
mod time;
mod usage;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use redis::Script;

use crate::error::StoreError;
use crate::journal::{Entry, Query, Retention};
use crate::session::Sessions;
use crate::store::{Lease, MergeResult, Named, Store, StoreContents, Wake, Watch};
use crate::times;
use crate::usage::UsageStore;

use handle::RedisHandle;
use journal::Journal;
use names::Names;
use records::Records;
use sessions::SessionScripts;
use watch::RedisWatch;

/// How the server is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisPolicy {
    /// What all keys begin with.
    pub prefix: String,
    /// No step waits longer for the server.
    pub limit: Duration,
    /// Everything is read once more this often, for announcements that were lost.
    pub resync_every: Duration,
    /// The most bytes of cached answers.
    pub cache_bytes: u64,
    /// Appending trims the journal to roughly this many entries; with none it trims nothing, and only
    /// [`Store::prune`] forgets. A program that does not know how much the fleet keeps must leave it at none.
    pub entries: Option<u64>,
}

impl Default for RedisPolicy {
    fn default() -> Self {
        Self {
            prefix: "koboshi:".to_owned(),
            limit: Duration::from_secs(1),
            resync_every: Duration::from_secs(60),
            cache_bytes: 64 * 1024 * 1024,
            entries: None,
        }
    }
}

/// What the store and its watches share.
struct RedisAccess {
    handle: RedisHandle,
    names: Names,
    policy: RedisPolicy,
}

/// The store of a fleet.
pub struct RedisStore {
    shared: Arc<RedisAccess>,
    records: Records,
    journal: Journal,
    lease: Script,
    renew: Script,
    cache_put: Script,
    cache_get: Script,
    note_swap: Script,
    sessions: SessionScripts,
    usage_add: Script,
}

impl RedisStore {
    /// A store at this address, such as `redis://:password@host:6379/0`, `redis+sentinel://host,host/name` or `redis+cluster://host,host`.
    /// Nothing is sent before it is used.
    ///
    /// # Errors
    /// The address cannot be used; the message does not show it.
    pub fn new(url: &str, policy: RedisPolicy) -> Result<Self, StoreError> {
        let handle = RedisHandle::new(url, &policy.prefix, policy.limit)?;
        let shared = RedisAccess { names: Names::new(handle.prefix()), handle, policy };
        Ok(Self {
            shared: Arc::new(shared),
            records: Records::new(),
            journal: Journal::new(),
            lease: Script::new(include_str!("lua/lease.lua")),
            renew: Script::new(include_str!("lua/renew.lua")),
            cache_put: Script::new(include_str!("lua/cache_put.lua")),
            cache_get: Script::new(include_str!("lua/cache_get.lua")),
            note_swap: Script::new(include_str!("lua/note_swap.lua")),
            sessions: SessionScripts::new(),
            usage_add: usage::script(),
        })
    }

    fn cache_call(&self, key: &str, body: &[u8], ttl: u64) -> Result<u64, StoreError> {
        let names = &self.shared.names;
        let mut call = self.cache_put.prepare_invoke();
        call.key(&names.cache).key(&names.cache_until).key(&names.cache_bytes);
        call.arg(key).arg(body).arg(ttl).arg(self.shared.policy.cache_bytes);
        self.shared.handle.run("keep an answer", |connection| call.invoke(connection))
    }
}

impl Store for RedisStore {
    fn place(&self) -> &str {
        self.shared.handle.place()
    }

    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError> {
        self.records.merge(&self.shared.handle, &self.shared.names, changes)
    }

    fn load(&self) -> Result<StoreContents, StoreError> {
        let (handle, names) = (&self.shared.handle, &self.shared.names);
        let mut loaded = records::load(handle, names)?;
        loaded.unreadable.extend(records::load_set_aside(handle, names)?);
        Ok(loaded)
    }

    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(RedisWatch::start(Arc::clone(&self.shared), wake)?))
    }

    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        let mut call = self.lease.prepare_invoke();
        call.key(self.shared.names.lease(name)).key(&self.shared.names.fence);
        call.arg(holder).arg(times::millis(ttl));
        let fence: u64 = self.shared.handle.run("take a lease", |connection| call.invoke(connection))?;
        let until = times::after(now, ttl);
        Ok((fence > 0).then(|| Lease { name: name.to_owned(), fence, until }))
    }

    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        let mut call = self.renew.prepare_invoke();
        call.key(self.shared.names.lease(&lease.name)).arg(lease.fence).arg(times::millis(ttl));
        let done: u64 = self.shared.handle.run("renew a lease", |connection| call.invoke(connection))?;
        Ok((done > 0).then(|| Lease { until: times::after(now, ttl), ..lease.clone() }))
    }

    fn release(&self, lease: &Lease, _now: Timestamp) -> Result<bool, StoreError> {
        let mut call = self.renew.prepare_invoke();
        call.key(self.shared.names.lease(&lease.name)).arg(lease.fence).arg(0);
        let done: u64 = self.shared.handle.run("give a lease back", |connection| call.invoke(connection))?;
        Ok(done > 0)
    }

    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, _now: Timestamp) -> Result<bool, StoreError> {
        // The script takes an empty name as a request to sweep.
        Ok(self.cache_call(&format!("={key}"), body, times::millis(ttl))? > 0)
    }

    fn cache_get(&self, key: &str, _now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        let names = &self.shared.names;
        let mut call = self.cache_get.prepare_invoke();
        call.key(&names.cache).key(&names.cache_until).arg(format!("={key}"));
        self.shared.handle.run("look up an answer", |connection| call.invoke(connection))
    }

    fn note_put(&self, name: &str, body: &[u8], ttl: Duration, _now: Timestamp) -> Result<(), StoreError> {
        let mut set = redis::cmd("SET");
        set.arg(self.shared.names.note(name)).arg(body).arg("PX").arg(times::millis(ttl));
        self.shared.handle.run("keep a note", |connection| set.exec(connection))
    }

    fn note_get(&self, name: &str, _now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        let mut get = redis::cmd("GET");
        get.arg(self.shared.names.note(name));
        self.shared.handle.run("look up a note", |connection| get.query(connection))
    }

    fn note_delete(&self, name: &str) -> Result<bool, StoreError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(self.shared.names.note(name));
        self.shared.handle.run("forget a note", |connection| delete.query(connection))
    }

    fn note_swap(
        &self,
        name: &str,
        before: Option<&[u8]>,
        after: &[u8],
        ttl: Duration,
        _now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut call = self.note_swap.prepare_invoke();
        call.key(self.shared.names.note(name));
        call.arg(if before.is_some() { "known" } else { "" }).arg(before.unwrap_or_default());
        call.arg(after).arg(times::millis(ttl));
        self.shared.handle.run("change a note", |connection| call.invoke(connection))
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn usage(&self) -> &dyn UsageStore {
        self
    }

    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        self.journal.append(&self.shared.handle, &self.shared.names, self.shared.policy.entries, entries)
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        journal::query(&self.shared.handle, &self.shared.names, query)
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        let (handle, names) = (&self.shared.handle, &self.shared.names);
        let records = self.records.forget_old(handle, names, times::before(now, keep.breakers), now)?;
        // Sessions, notes and leases end by themselves.
        let answers = self.cache_call("", b"", 1)?;
        let entries = journal::prune(handle, names, times::before(now, keep.journal), keep.entries)?;
        let usage = self.prune_usage(keep.first_day(now))?;
        Ok(records + answers + entries + usage)
    }
}
