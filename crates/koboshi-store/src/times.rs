//! Wall time as the whole numbers that stores keep.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// So much later; the end of time if that is too far.
pub(crate) fn after(now: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    now.checked_add(length).unwrap_or(Timestamp::MAX)
}

/// So much earlier; the beginning of time if that is too far.
pub(crate) fn before(now: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    now.checked_sub(length).unwrap_or(Timestamp::MIN)
}

/// Milliseconds of a length; at least one, since a ttl of nothing would mean "for ever" to some stores.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 52)
}

/// The instant of a stored number of microseconds; the end of time if it is out of range.
pub(crate) fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// The next fencing number: larger than the last one, and larger than any that was given out before the store lost
/// its memory, because nobody takes more than a thousand leases a second on average.
pub(crate) fn next_fence(last: u64, now: Timestamp) -> u64 {
    last.saturating_add(1).max(u64::try_from(now.as_millisecond()).unwrap_or(0))
}
