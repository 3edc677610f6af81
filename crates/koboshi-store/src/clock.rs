//! Where a ledger gets the time from.
//!
//! Stores get the time with every call. The ledger's own thread has no caller, so it gets a clock: the real one in
//! programs, one that a test moves by hand. Waiting is not part of it: the thread waits until it is woken.
//!
//! A process that only rehearses has a clock whose time passes when nothing is left to do: [`replace_system_clock`]. It is one for the whole
//! process, because two clocks that disagree would be worse than either.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
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

/// The machine's clock, or what replaces it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
    fn wall(&self) -> Timestamp {
        if let Some(clock) = REPLACEMENT.get() {
            return clock.began.checked_add((clock.elapsed)()).unwrap_or(Timestamp::MAX);
        }
        let now = SystemTime::now();
        // A clock that is set to before the year -9999 or after 9999 must not end a thread.
        let nearest = if now < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::try_from(now).unwrap_or(nearest)
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
