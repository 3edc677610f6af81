//! Wall time as the whole numbers that stores keep.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// This much later; the last timestamp if that is too far.
pub(crate) fn after(now: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    now.checked_add(length).unwrap_or(Timestamp::MAX)
}

/// This much earlier; the first timestamp if that is too far.
pub(crate) fn before(now: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    now.checked_sub(length).unwrap_or(Timestamp::MIN)
}

/// Milliseconds of a length; at least one, since a ttl of nothing would mean "for ever" to some stores.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 52)
}

/// The instant of a stored number of microseconds; the last timestamp if it is out of range.
pub(crate) fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// A clock that is this much earlier than another one was not set back: clocks are corrected, and a caller may have
/// read its clock a while before its question reached the store.
pub(crate) const CORRECTION: Duration = Duration::from_secs(10);

/// Whether a lease is held: it has not ended, and has no longer to go than it was given for. It can only have if the
/// clock was set back since, and then it is not known how much of it is over.
pub(crate) fn is_held(until: Timestamp, length: Duration, now: Timestamp) -> bool {
    until > now && until <= after(now, length.saturating_add(CORRECTION))
}

/// The next fencing number: larger than the last one, and larger than any that was given out before the store lost
/// its memory, because a fleet takes fewer than a thousand leases a second on average.
pub(crate) fn next_fence(last: u64, now: Timestamp) -> u64 {
    last.saturating_add(1).max(u64::try_from(now.as_millisecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_lease_is_held_until_it_ends_or_the_clock_is_set_back() {
        let held = |now: i64| is_held(at(60), MINUTE, at(now));
        assert!(held(0) && held(59) && !held(60));
        assert!(held(-10), "a clock that is corrected a little, or was read a while ago");
        assert!(!held(-11), "one that was set back");
        assert!(is_held(Timestamp::MAX, Duration::MAX, at(0)));
    }

    #[test]
    fn a_fence_grows_with_the_last_one_and_with_the_clock() {
        assert_eq!(next_fence(0, at(5)), 5000, "whatever a store has forgotten");
        assert_eq!(next_fence(7000, at(5)), 7001);
        assert_eq!(next_fence(3, at(-5)), 4);
    }
}
