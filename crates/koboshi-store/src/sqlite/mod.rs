//! The store in one file: SQLite, shared by all processes of a machine.
//!
//! WAL lets readers and one writer work at the same time; every write is one `BEGIN IMMEDIATE` transaction, so that
//! writers queue for the lock and never fail half-way. Two connections: one writes, one reads, so that a question
//! does not wait for a write of this process. Opening a file that is damaged, foreign or newer is an error that says so, and the
//! file stays as it is.
//!
//! The file must be on a disk of this machine: WAL does not work over a network. A file that is moved away or deleted
//! under a running ledger is created again, and the ledger writes everything that it knows.
//!
//! It deliberately keeps no cache and no thread of its own: batching is the ledger's work, and a command that writes
//! through the store directly has written when the call returns.

mod errors;
mod expiring;
mod journal;
mod open;
mod records;
mod sessions;
mod usage;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::journal::{Entry, Query, Retention};
use crate::session::Sessions;
use crate::store::{Lease, MergeResult, Named, Store, StoreContents, Wake, Watch};
use crate::times;
use crate::usage::UsageStore;

use errors::StoreResult;
use open::{Deadline, Identity};
use records::FactPlace;
use watch::SqliteWatch;

/// How the file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlitePolicy {
    /// How long a write waits for those of others, and an opening in all.
    pub patience: Duration,
    /// The most bytes of cached answers.
    pub cache_bytes: u64,
}

impl Default for SqlitePolicy {
    fn default() -> Self {
        Self { patience: Duration::from_secs(10), cache_bytes: 64 * 1024 * 1024 }
    }
}

/// The file and the connections of this store to it.
struct File {
    path: PathBuf,
    place: String,
    policy: SqlitePolicy,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    identity: Mutex<Identity>,
    /// Where the search for spent facts goes on.
    searched: Mutex<FactPlace>,
}

impl File {
    fn open(path: &Path, policy: SqlitePolicy) -> Result<Self, StoreError> {
        let place = format!("the store file {}", path.display());
        let deadline = Deadline::within(policy.patience);
        let (_, writer) = connect(path, &place, &policy, deadline)?;
        let (identity, reader) = connect(path, &place, &policy, deadline)?;
        let (writer, reader, identity) = (Mutex::new(writer), Mutex::new(reader), Mutex::new(identity));
        Ok(Self {
            path: path.to_owned(),
            place,
            policy,
            writer,
            reader,
            identity,
            searched: Mutex::default(),
        })
    }

    /// One more connection.
    fn connect(&self) -> Result<(Identity, Connection), StoreError> {
        connect(&self.path, &self.place, &self.policy, Deadline::within(self.policy.patience))
    }

    /// Goes over to the file that the path leads to now.
    fn reopen(&self) -> Result<(), StoreError> {
        let mut identity = lock(&self.identity);
        if Identity::of(&self.path) == *identity {
            return Ok(());
        }
        let new = Self::open(&self.path, self.policy)?;
        std::mem::swap(&mut *lock(&self.writer), &mut *lock(&new.writer));
        std::mem::swap(&mut *lock(&self.reader), &mut *lock(&new.reader));
        *identity = *lock(&new.identity);
        Ok(())
    }
}

/// A connection that knows the core's merge, and the file it leads to.
fn connect(
    path: &Path,
    place: &str,
    policy: &SqlitePolicy,
    deadline: Deadline,
) -> Result<(Identity, Connection), StoreError> {
    // Opened twice where it was just made: the identity must be no newer than the connection.
    let mut identity = Identity::of(path);
    loop {
        let connection = open::open(path, place, policy, deadline)?;
        records::teach(&connection).doing(place, "set up the file")?;
        let now = Identity::of(path);
        if now == identity {
            return Ok((identity, connection));
        }
        if deadline.is_over() && identity != Identity::NONE {
            return Err(StoreError::Busy { place: place.to_owned(), doing: "open the file" });
        }
        identity = now;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store in one file.
pub struct SqliteStore {
    file: Arc<File>,
}

impl SqliteStore {
    /// Opens the file, or makes it with its folder, readable by this user only.
    ///
    /// # Errors
    /// It cannot be opened, is damaged, belongs to another program or to a newer Koboshi. It is then as it was.
    pub fn open(path: &Path, policy: SqlitePolicy) -> Result<Self, StoreError> {
        Ok(Self { file: Arc::new(File::open(path, policy)?) })
    }

    /// Looks through the whole file for damage. Takes time in proportion to its size.
    ///
    /// # Errors
    /// It is damaged, or cannot be read.
    pub fn check(&self) -> Result<(), StoreError> {
        let report: String = self.read("check the file", |reader| {
            reader.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        })?;
        if report == "ok" {
            return Ok(());
        }
        // In the words that SQLite uses when it meets the damage, with the report on one line.
        let seen = report.split_whitespace().filter(|word| *word != "***").collect::<Vec<_>>().join(" ");
        let why = format!("database disk image is malformed: {seen}");
        Err(StoreError::Damaged { place: self.file.place.clone(), why })
    }

    fn read<R>(
        &self,
        doing: &'static str,
        query: impl FnOnce(&Connection) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        query(&lock(&self.file.reader)).doing(&self.file.place, doing)
    }

    /// One transaction that has the lock from its beginning. It is undone if `work` fails.
    fn write<R>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        let place = &self.file.place;
        let mut writer = lock(&self.file.writer);
        let transaction =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).doing(place, doing)?;
        let result = work(&transaction).doing(place, doing)?;
        transaction.commit().doing(place, doing)?;
        Ok(result)
    }
}

impl SqliteStore {
    /// The same for work that depends on the time: time passes while others have the lock, and what they wrote meanwhile
    /// must not look as if the clock had been set back.
    fn write_at<R>(
        &self,
        doing: &'static str,
        now: Timestamp,
        work: impl FnOnce(&Transaction<'_>, Timestamp) -> rusqlite::Result<R>,
    ) -> Result<R, StoreError> {
        let asked = SystemClock.moment();
        self.write(doing, |transaction| {
            let now = times::after(now, SystemClock.moment().since(asked));
            work(transaction, now)
        })
    }
}

impl Store for SqliteStore {
    fn place(&self) -> &str {
        &self.file.place
    }

    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError> {
        let (place, doing) = (&self.file.place, "write state");
        let mut writer = lock(&self.file.writer);
        let transaction =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).doing(place, doing)?;
        let merged = records::merge(&transaction, place, changes)?;
        transaction.commit().doing(place, doing)?;
        Ok(merged)
    }

    fn load(&self) -> Result<StoreContents, StoreError> {
        records::load(&lock(&self.file.reader), &self.file.place)
    }

    fn watch(&self, _wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(SqliteWatch::start(Arc::clone(&self.file))?))
    }

    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        self.write_at("take a lease", now, |transaction, now| {
            expiring::lease(transaction, name, holder, ttl, now)
        })
    }

    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        self.write_at("renew a lease", now, |transaction, now| expiring::renew(transaction, lease, ttl, now))
    }

    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        self.write_at("give a lease back", now, |transaction, now| expiring::release(transaction, lease, now))
    }

    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        let max = self.file.policy.cache_bytes;
        self.write("keep an answer", |transaction| expiring::cache_put(transaction, key, body, ttl, now, max))
    }

    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("look up an answer", |reader| expiring::cache_get(reader, key, now))
    }

    fn note_put(&self, name: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        self.write("keep a note", |transaction| expiring::note_put(transaction, name, body, ttl, now))
    }

    fn note_get(&self, name: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.read("look up a note", |reader| expiring::note_get(reader, name, now))
    }

    fn note_delete(&self, name: &str) -> Result<bool, StoreError> {
        self.write("forget a note", |transaction| expiring::note_delete(transaction, name))
    }

    fn note_swap(
        &self,
        name: &str,
        before: Option<&[u8]>,
        after: &[u8],
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write("change a note", |transaction| {
            let is_same = expiring::note_get(transaction, name, now)?.as_deref() == before;
            if is_same {
                expiring::note_put(transaction, name, after, ttl, now)?;
            }
            Ok(is_same)
        })
    }

    fn sessions(&self) -> &dyn Sessions {
        self
    }

    fn usage(&self) -> &dyn UsageStore {
        self
    }

    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        self.write("write the journal", |transaction| journal::append(transaction, entries))
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.read("read the journal", |reader| journal::query(reader, query))
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        let from = lock(&self.file.searched).clone();
        let gone = self.write_at("forget what is old", now, |transaction, by_now| {
            let breakers = records::forget_breakers(transaction, times::before(now, keep.breakers))?;
            let (spent, next) = records::forget_spent(transaction, &from, now)?;
            *lock(&self.file.searched) = next;
            let ended = expiring::prune(transaction, by_now)?;
            let entries = journal::prune(transaction, times::before(now, keep.journal), keep.entries)?;
            let usage = usage::prune(transaction, keep.first_day(now), by_now)?;
            Ok(breakers + spent + ended + entries + usage)
        })?;
        Ok(u64::try_from(gone).unwrap_or(u64::MAX))
    }
}
