//! Opens the file: makes it, checks that it is ours and not newer, and brings it to the newest schema.
//!
//! Nothing is written before the file is known to be ours: a damaged, foreign or newer one is read through a
//! connection that cannot write, and left as it is. A new schema is put in place inside one transaction, so
//! several processes may start at once and one of them does it.
//!
//! The file, its `-wal` and its `-shm` are never opened here except by SQLite: when a process closes any descriptor of
//! a file, the system drops all locks that the process has on it, and an open store would look unused to others. What
//! must be known about the file is asked of its name (`stat`), and the file is only made where there is none.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use koboshi::time::Moment;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;

use super::SqlitePolicy;
use super::errors::StoreResult;

/// "KBSI": says that a file is a Koboshi store.
const APPLICATION: i64 = 0x4b42_5349;

/// What makes each schema from the one before.
const STEPS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
];

/// The pause before a file that others hold is tried again while it is set up; SQLite itself does not wait there.
const PAUSE: Duration = Duration::from_millis(20);

/// How long an opening may take, all waits together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Moment);

impl Deadline {
    /// This much time from now on.
    pub(super) fn within(patience: Duration) -> Self {
        Self(SystemClock.moment().after(patience))
    }

    fn left(self) -> Duration {
        self.0.since(SystemClock.moment())
    }

    /// Whether the time is over.
    pub(super) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}

/// The newest schema.
pub(super) fn newest() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// A connection to a file that is ours and up to date.
pub(super) fn open(
    path: &Path,
    place: &str,
    policy: &SqlitePolicy,
    deadline: Deadline,
) -> Result<Connection, StoreError> {
    let io = |why: io::Error| StoreError::Failed {
        place: place.to_owned(),
        doing: "open the file",
        why: why.to_string(),
    };
    if path.is_dir() {
        let why = "it is a folder: name a file in it, such as koboshi.db".to_owned();
        return Err(StoreError::Setting { place: path.display().to_string(), why });
    }
    make(path).map_err(io)?;
    loop {
        match inspect(path, place, deadline).and_then(|()| set_up(path, place, policy, deadline)) {
            Err(StoreError::Busy { .. }) if !deadline.is_over() => pause(PAUSE.min(deadline.left())),
            done => return done,
        }
    }
}

/// Which file a path leads to now; none if to no file, or where the system does not state it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(Option<(u64, u64)>);

impl Identity {
    /// No file yet.
    pub(super) const NONE: Self = Self(None);

    /// The file that this path leads to.
    pub(super) fn of(path: &Path) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self(fs::metadata(path).ok().map(|file| (file.dev(), file.ino())))
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            Self(None)
        }
    }
}

/// Makes the file, and its folder, readable by this user only.
fn make(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    // Two threads: the one that finds the file made must not take locks before the other one has closed it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = fs::OpenOptions::new();
    // A file that is there is not opened.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Checks whether the file is ours, without being able to change it.
fn inspect(path: &Path, place: &str, deadline: Deadline) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).doing(place, "open the file")?;
    connection.busy_timeout(deadline.left()).doing(place, "open the file")?;
    check(&connection, place).map(|_| ())
}

/// The schema of the file; an error if it is not ours or newer.
fn check(connection: &Connection, place: &str) -> Result<i64, StoreError> {
    // One transaction: while another process makes the file ours, we see all of that or nothing.
    let doing = "read the file";
    let transaction = connection.unchecked_transaction().doing(place, doing)?;
    let schema = schema(&transaction, place)?;
    transaction.finish().doing(place, doing)?;
    Ok(schema)
}

/// The same inside a transaction.
fn schema(connection: &Connection, place: &str) -> Result<i64, StoreError> {
    let number = |name: &str| -> Result<i64, StoreError> {
        connection.pragma_query_value(None, name, |row| row.get(0)).doing(place, "read the file")
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .doing(place, "read the file")?;
    if application != APPLICATION && (application != 0 || version != 0 || tables != 0) {
        let why = "it is the file of another program".to_owned();
        return Err(StoreError::Damaged { place: place.to_owned(), why });
    }
    if version > newest() {
        return Err(StoreError::Newer { place: place.to_owned(), found: version, known: newest() });
    }
    Ok(version)
}

fn set_up(
    path: &Path,
    place: &str,
    policy: &SqlitePolicy,
    deadline: Deadline,
) -> Result<Connection, StoreError> {
    let doing = "set up the file";
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).doing(place, "open the file")?;
    connection.busy_timeout(deadline.left()).doing(place, doing)?;
    connection.pragma_update(None, "journal_mode", "wal").doing(place, doing)?;
    // In WAL mode a killed process loses nothing with this; a machine that loses power may lose its last commits.
    connection.pragma_update(None, "synchronous", "normal").doing(place, doing)?;
    connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024).doing(place, doing)?;
    if check(&connection, place)? < newest() {
        migrate(&mut connection, place)?;
    }
    connection.busy_timeout(policy.patience).doing(place, doing)?;
    Ok(connection)
}

/// Takes the steps that are missing, all or none.
fn migrate(connection: &mut Connection, place: &str) -> Result<(), StoreError> {
    let doing = "bring the file to the newest schema";
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).doing(place, doing)?;
    // Read again: another process may have done it while we waited for the lock.
    let version = schema(&transaction, place)?;
    let done = usize::try_from(version).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step).doing(place, doing)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).doing(place, doing)?;
    transaction.pragma_update(None, "user_version", newest()).doing(place, doing)?;
    transaction.commit().doing(place, doing)
}

/// Waits a little: this condition is never signalled.
fn pause(length: Duration) {
    let never = Mutex::new(());
    let guard = never.lock().unwrap_or_else(PoisonError::into_inner);
    drop(Condvar::new().wait_timeout(guard, length));
}
