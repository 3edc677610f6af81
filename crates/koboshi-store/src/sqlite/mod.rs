//! The store in one file: SQLite, shared by all processes of a machine.
//!
//! WAL lets readers and one writer work at the same time; every write is one `BEGIN IMMEDIATE` transaction, so that
//! writers queue for the lock and never fail half-way. Two connections: one writes, one reads, so that a question
//! does not wait for a write of this process. Whoever opens a file that is damaged, foreign or newer is told so, and the
//! file stays as it is.
//!
//! It deliberately keeps no cache and no thread of its own: batching is the ledger's work, and a command that writes
//! through the store directly has written when the call returns.

mod journal;
mod open;
mod records;
mod shelf;
mod trouble;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::error::StoreError;
use crate::journal::{Entry, Query, Retention};
use crate::store::{Lease, Loaded, Merged, Named, Store, Wake, Watch};
use crate::times;

use trouble::Doing;
use watch::SqliteWatch;

/// How the file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlitePolicy {
    /// How long a write waits for those of others.
    pub patience: Duration,
    /// The most bytes of cached answers.
    pub cache_bytes: u64,
}

impl Default for SqlitePolicy {
    fn default() -> Self {
        Self { patience: Duration::from_secs(10), cache_bytes: 64 * 1024 * 1024 }
    }
}

/// The store in one file.
pub struct SqliteStore {
    path: PathBuf,
    place: String,
    policy: SqlitePolicy,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl SqliteStore {
    /// Opens the file, or makes it with its folder, readable by this user only.
    ///
    /// # Errors
    /// It cannot be opened, is damaged, belongs to another program or to a newer Koboshi. It is then as it was.
    pub fn open(path: &Path, policy: SqlitePolicy) -> Result<Self, StoreError> {
        let place = format!("the store file {}", path.display());
        let writer = open::open(path, &place, &policy)?;
        records::teach(&writer).doing(&place, "set up the file")?;
        let reader = open::open(path, &place, &policy)?;
        Ok(Self {
            path: path.to_owned(),
            place,
            policy,
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
        })
    }

    /// Looks through the whole file for damage. Takes time in proportion to its size.
    ///
    /// # Errors
    /// It is damaged, or cannot be read.
    pub fn check(&self) -> Result<(), StoreError> {
        let reader = self.reader();
        let said: String = reader
            .pragma_query_value(None, "integrity_check", |row| row.get(0))
            .doing(&self.place, "check the file")?;
        if said == "ok" { Ok(()) } else { Err(StoreError::Damaged { place: self.place.clone(), why: said }) }
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One transaction that has the lock from its beginning. It is undone if `work` fails.
    fn write<R>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let behavior = TransactionBehavior::Immediate;
        let transaction = writer.transaction_with_behavior(behavior).doing(&self.place, doing)?;
        let result = work(&transaction)?;
        transaction.commit().doing(&self.place, doing)?;
        Ok(result)
    }
}

impl Store for SqliteStore {
    fn place(&self) -> &str {
        &self.place
    }

    fn merge(&self, changes: &[Named]) -> Result<Merged, StoreError> {
        let doing = "write state";
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let behavior = TransactionBehavior::Immediate;
        let transaction = writer.transaction_with_behavior(behavior).doing(&self.place, doing)?;
        let (changed, merged) = records::merge(&transaction, &self.place, changes)?;
        // Nothing new: nobody needs to look.
        if changed { transaction.commit() } else { transaction.rollback() }.doing(&self.place, doing)?;
        Ok(merged)
    }

    fn load(&self) -> Result<Loaded, StoreError> {
        records::load_after(&self.reader(), &self.place, -1)
    }

    fn watch(&self, _wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        let connection = open::open(&self.path, &self.place, &self.policy)?;
        Ok(Box::new(SqliteWatch { connection, place: self.place.clone(), seen: None }))
    }

    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        let doing = "take a lease";
        self.write(doing, |transaction| {
            shelf::lease(transaction, name, holder, ttl, now).doing(&self.place, doing)
        })
    }

    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        let doing = "renew a lease";
        self.write(doing, |transaction| shelf::renew(transaction, lease, ttl, now).doing(&self.place, doing))
    }

    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        let doing = "give a lease back";
        self.write(doing, |transaction| shelf::release(transaction, lease, now).doing(&self.place, doing))
    }

    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        let doing = "keep an answer";
        self.write(doing, |transaction| {
            let most = self.policy.cache_bytes;
            shelf::cache_put(transaction, key, body, ttl, now, most).doing(&self.place, doing)
        })
    }

    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        shelf::cache_get(&self.reader(), key, now).doing(&self.place, "look up an answer")
    }

    fn session_put(&self, id: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        let doing = "keep a session";
        self.write(doing, |transaction| {
            shelf::session_put(transaction, id, body, ttl, now).doing(&self.place, doing)
        })
    }

    fn session_get(&self, id: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        shelf::session_get(&self.reader(), id, now).doing(&self.place, "look up a session")
    }

    fn session_delete(&self, id: &str) -> Result<bool, StoreError> {
        let doing = "forget a session";
        self.write(doing, |transaction| shelf::session_delete(transaction, id).doing(&self.place, doing))
    }

    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        let doing = "write the journal";
        self.write(doing, |transaction| journal::append(transaction, entries).doing(&self.place, doing))
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        journal::query(&self.reader(), query).doing(&self.place, "read the journal")
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        let doing = "forget what is old";
        let mut gone = self.write(doing, |transaction| {
            let old = times::before(now, keep.breakers).to_string();
            // Snapshots speak RFC 3339; those that cannot be read stay.
            let breakers = transaction
                .execute(
                    "DELETE FROM record WHERE kind = 'breaker' AND json_valid(body)
                     AND julianday(body ->> '$.at') < julianday(?1)",
                    params![old],
                )
                .doing(&self.place, doing)?;
            Ok(breakers + shelf::prune(transaction, now).doing(&self.place, doing)?)
        })?;
        loop {
            let before = times::before(now, keep.journal);
            let chunk = self.write(doing, |transaction| {
                journal::prune_chunk(transaction, before, keep.entries).doing(&self.place, doing)
            })?;
            if chunk == 0 {
                return Ok(u64::try_from(gone).unwrap_or(u64::MAX));
            }
            gone += chunk;
        }
    }
}
