//! SQLite's errors in our words: which file, what was being done, what to do next.

use rusqlite::{ErrorCode, ffi};

use crate::error::StoreError;

/// Says what was being done when it went wrong.
pub(super) trait StoreResult<T> {
    /// With the place and the step.
    fn doing(self, place: &str, doing: &'static str) -> Result<T, StoreError>;
}

impl<T> StoreResult<T> for Result<T, rusqlite::Error> {
    fn doing(self, place: &str, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| trouble(&error, place, doing))
    }
}

impl<T> StoreResult<T> for Result<T, serde_json::Error> {
    fn doing(self, place: &str, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::Failed { place: place.to_owned(), doing, why: error.to_string() })
    }
}

fn trouble(error: &rusqlite::Error, place: &str, doing: &'static str) -> StoreError {
    let (place, why) = (place.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            StoreError::Busy { place, doing }
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged { place, why },
        _ if is_full(error) => {
            StoreError::Failed { place, doing, why: format!("the disk is full, make room on it ({why})") }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            let why = format!("{why}: this user must be able to write the file and its folder");
            StoreError::Failed { place, doing, why }
        }
        _ => StoreError::Failed { place, doing, why },
    }
}

/// Whether the disk is full. The memory that processes share is a file too, and SQLite has an error of its own for it.
fn is_full(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull) || extended == Some(ffi::SQLITE_IOERR_SHMSIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_that() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let message = trouble(&error, "the store file k.db", "write state").to_string();
            let words = ["k.db", "write state", "disk is full", "make room"];
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
        }
    }
}
