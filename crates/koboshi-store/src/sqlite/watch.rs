//! Sees what other connections commit, by asking for `data_version`.
//!
//! The number changes whenever another connection commits, be it of this process or of another one, and asking costs
//! no more than a read of shared memory. What changed is then read by its place in the order of changes. A file that was
//! moved away or replaced under us is noticed too, and what is in its place is opened.

use std::sync::Arc;

use koboshi::time::Moment;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::store::{StoreChanges, StoreContents, Watch};

use super::File;
use super::errors::StoreResult;
use super::open::Identity;
use super::records::load_after;

pub(super) struct SqliteWatch {
    file: Arc<File>,
    identity: Identity,
    connection: Connection,
    position: Option<Position>,
}

/// The state of the file at the last read.
struct Position {
    version: i64,
    seq: i64,
}

impl Watch for SqliteWatch {
    fn changes(&mut self, _now: Moment) -> Result<StoreChanges, StoreError> {
        self.poll().inspect_err(|_| self.position = None)
    }
}

impl SqliteWatch {
    pub(super) fn start(file: Arc<File>) -> Result<Self, StoreError> {
        let (identity, connection) = file.connect()?;
        Ok(Self { file, identity, connection, position: None })
    }

    fn poll(&mut self) -> Result<StoreChanges, StoreError> {
        if Identity::of(&self.file.path) != self.identity {
            self.file.reopen()?;
            (self.identity, self.connection) = self.file.connect()?;
            self.position = None;
        }
        let (place, doing) = (self.file.place.as_str(), "look for changes");
        let version: i64 =
            self.connection.pragma_query_value(None, "data_version", |row| row.get(0)).doing(place, doing)?;
        if self.position.as_ref().is_some_and(|position| position.version == version) {
            return Ok(StoreChanges::Quiet);
        }
        // One transaction: the number of changes and the changes belong together.
        let transaction = self.connection.unchecked_transaction().doing(place, doing)?;
        let seq: i64 = transaction
            .query_row("SELECT value FROM counter WHERE name = 'seq'", [], |row| row.get(0))
            .doing(place, doing)?;
        // A file that was put back from a copy has fewer changes than we saw: then everything is news.
        let after = self.position.as_ref().map(|position| position.seq).filter(|after| *after <= seq);
        let loaded = match after {
            Some(after) if after == seq => StoreContents::default(),
            after => load_after(&transaction, place, after.unwrap_or(-1))?,
        };
        transaction.finish().doing(place, doing)?;
        self.position = Some(Position { version, seq });
        Ok(match after {
            None => StoreChanges::All(loaded),
            Some(_) if loaded == StoreContents::default() => StoreChanges::Quiet,
            Some(_) => StoreChanges::Changed(loaded),
        })
    }
}
