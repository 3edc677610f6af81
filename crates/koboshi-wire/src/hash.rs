//! FNV-1a, to mark ids and names that had to be changed: short, and the same in every run and on every machine.
//!
//! *Not here*: protection against chosen texts. A collision only makes two ids of one conversation alike.

use std::borrow::Cow;

/// The hash in 32 bits.
pub(crate) fn short(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The hash in 64 bits.
pub(crate) fn long(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An id of at most this many bytes. A longer one is cut and made distinct by its hash, the same each time, so that a call and its result
/// still have the same id.
pub(crate) fn shortened(id: &str, max: usize) -> Cow<'_, str> {
    if id.len() <= max {
        return Cow::Borrowed(id);
    }
    let start = id.get(..id.floor_char_boundary(max.saturating_sub(17))).unwrap_or_default();
    Cow::Owned(format!("{start}_{:016x}", long(id)))
}
