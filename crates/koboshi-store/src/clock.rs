//! Where a ledger gets the time from.
//!
//! Stores get the time with every call. The ledger's own thread has no caller, so it gets a clock: the real one in
//! programs, one that a test moves by hand. Waiting is not part of it: the thread waits until it is woken.
//!
//! A process that only rehearses has a clock whose time passes when nothing is left to do: [`replace_system_clock`]. It is one for the whole
//! process, because two clocks that disagree would be worse than either.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use koboshi::time::Moment;

/// Reads the time.
pub trait Clock: Send + Sync {
    /// Wall time: for what is stored and shown.
    fn wall(&self) -> Timestamp;

    /// Monotonic time: for how long something holds within this process. The time that the machine sleeps counts, because others do not sleep.
    fn moment(&self) -> Moment;
}

/// The clock of a process that only rehearses: when it began, and how much time has passed since.
struct Replacement {
    began: Timestamp,
    elapsed: fn() -> Duration,
}

static REPLACEMENT: OnceLock<Replacement> = OnceLock::new();

/// From now on the time of this process passes as `elapsed` says, which must never go back. For a process that only rehearses: it serves no
/// one and writes no store that others read. A second call changes nothing.
pub fn replace_system_clock(elapsed: fn() -> Duration) {
    let began = SystemClock.wall();
    // Fails only at a second call.
    let _ = REPLACEMENT.set(Replacement { began, elapsed });
}

/// How far the clock of the store of a fleet is before this machine's, in microseconds.
static STORE_OFFSET: AtomicI64 = AtomicI64::new(0);
/// Clocks of one fleet that differ by less are taken for equal: an answer of the store takes time too.
const MIN_OFFSET: SignedDuration = SignedDuration::from_secs(1);
/// A clock that is further off is wrong, and which of the two it is cannot be known.
const MAX_OFFSET: SignedDuration = SignedDuration::from_secs(15 * 60);

/// The machine's clock without the correction by a store.
#[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
pub(crate) fn machine_wall() -> Timestamp {
    let now = SystemTime::now();
    // A clock that is set to before the year -9999 or after 9999 must not end a thread.
    let nearest = if now < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(now).unwrap_or(nearest)
}

/// From now on the wall time of this process is that of the fleet's store, which said `store` between two readings of the machine's clock.
/// So the nodes of a fleet agree on when a rest ends, whatever their own clocks say.
pub(crate) fn follow_store(before: Timestamp, store: Timestamp, after: Timestamp) {
    STORE_OFFSET.store(offset(before, store, after), Ordering::Relaxed);
}

fn offset(before: Timestamp, store: Timestamp, after: Timestamp) -> i64 {
    let took = after.duration_since(before);
    let ahead = store.duration_since(before).saturating_sub(took / 2);
    let is_noise = ahead.abs() < MIN_OFFSET.saturating_add(took.abs());
    if is_noise || ahead.abs() > MAX_OFFSET {
        0
    } else {
        i64::try_from(ahead.as_micros()).unwrap_or_default()
    }
}

/// The machine's clock as its store corrects it, or what replaces it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        if let Some(clock) = REPLACEMENT.get() {
            return clock.began.checked_add((clock.elapsed)()).unwrap_or(Timestamp::MAX);
        }
        let ahead = SignedDuration::from_micros(STORE_OFFSET.load(Ordering::Relaxed));
        let now = machine_wall();
        now.saturating_add(ahead).unwrap_or(now)
    }

    fn moment(&self) -> Moment {
        if let Some(clock) = REPLACEMENT.get() {
            return Moment::START.after((clock.elapsed)());
        }
        static START: OnceLock<Duration> = OnceLock::new();
        let now = since_boot();
        Moment::START.after(now.saturating_sub(*START.get_or_init(|| now)))
    }
}

/// The time since the machine was started, with the time that it slept. All processes of a machine see the same.
#[cfg(target_os = "linux")]
#[must_use]
pub fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}

/// Where there is no such clock: the time since the first question.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
#[must_use]
pub fn since_boot() -> Duration {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_corrects_a_clock_that_is_clearly_off_and_no_other() {
        let at = |millis: i64| Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap();
        let seconds = |offset: i64| offset / 1_000_000;
        assert_eq!(seconds(offset(at(0), at(90_010), at(20))), 90);
        assert_eq!(seconds(offset(at(0), at(-89_990), at(20))), -90);
        for noise in [0, 10, 900, -900] {
            assert_eq!(offset(at(0), at(noise), at(20)), 0);
        }
        assert_eq!(offset(at(0), at(4_000), at(6_000)), 0, "the answer took longer than the clocks differ");
        assert_eq!(offset(at(0), at(3_600_000), at(20)), 0, "an hour: one of the two is wrong");
    }
}
