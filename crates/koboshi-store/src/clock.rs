//! Where a ledger gets the time from.
//!
//! Stores are told the time with every call. Only the ledger's own thread has nobody to ask, so it is handed a clock:
//! the real one in programs, one that stands still in tests. Waiting is not part of it: the thread waits for its bell.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use jiff::Timestamp;
use koboshi::time::Moment;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Wall time: for what is stored and shown.
    fn wall(&self) -> Timestamp;

    /// Monotonic time: for how long something holds within this process.
    fn moment(&self) -> Moment;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
    fn wall(&self) -> Timestamp {
        let now = SystemTime::now();
        // A clock that is set to before the year -9999 or after 9999 must not end a thread.
        let nearest = if now < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::try_from(now).unwrap_or(nearest)
    }

    #[expect(clippy::disallowed_methods, reason = "this is where the real time comes in")]
    fn moment(&self) -> Moment {
        static START: OnceLock<Instant> = OnceLock::new();
        Moment::START.after(START.get_or_init(Instant::now).elapsed())
    }
}
