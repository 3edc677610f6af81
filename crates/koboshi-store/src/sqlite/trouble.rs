//! SQLite's errors in our words: which file, what was being done, what to do next.

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// Says what was being done when it went wrong.
pub(super) trait Doing<T> {
    /// With the place and the step.
    fn doing(self, place: &str, doing: &'static str) -> Result<T, StoreError>;
}

impl<T> Doing<T> for Result<T, rusqlite::Error> {
    fn doing(self, place: &str, doing: &'static str) -> Result<T, StoreError> {
        self.map_err(|error| trouble(&error, place, doing))
    }
}

impl<T> Doing<T> for Result<T, serde_json::Error> {
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
        Some(ErrorCode::DiskFull) => {
            StoreError::Failed { place, doing, why: format!("{why}: make room on the disk") }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            let why = format!("{why}: this user must be able to write the file and its folder");
            StoreError::Failed { place, doing, why }
        }
        _ => StoreError::Failed { place, doing, why },
    }
}
