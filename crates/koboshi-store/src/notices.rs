//! Where the notices of a fleet are kept, and how its channels fare: the same for all programs that show it.
//!
//! The document is the core's ([`koboshi::notice::Book`]). One process at a time writes it, the one that has the lease of the same name.

use jiff::Timestamp;
use koboshi::notice::{Book, ChannelState};

use crate::error::StoreError;
use crate::store::Store;

/// The name of the document, and of the lease for changing it.
pub const NAME: &str = "notices";

/// The document; none where nothing was decided yet. One that cannot be read counts as none: then a notice may be sent twice.
///
/// # Errors
/// The store cannot be read now.
pub fn book(store: &dyn Store, now: Timestamp) -> Result<Option<Book>, StoreError> {
    let body = store.note_get(NAME, now)?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

/// How each channel fares, by name.
///
/// # Errors
/// The store cannot be read now.
pub fn channels(store: &dyn Store, now: Timestamp) -> Result<Vec<ChannelState>, StoreError> {
    Ok(book(store, now)?.map(|book| book.channels()).unwrap_or_default())
}
