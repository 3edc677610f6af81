//! Paces large bodies, so that ordinary requests go first.
//!
//! A client that sends as fast as this machine copies keeps its core busy: other requests of that core wait for one read at most, but
//! programs and threads that share its processor wait until the system takes it away from the core, which is milliseconds. So a core that
//! serves ordinary requests as well reads large bodies at a limited rate and sleeps in between. What refused clients keep sending is always
//! discarded at a limited rate: refusing a request must not cost more than serving it.

use std::cell::Cell;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

/// A body above this is large.
pub(crate) const LARGE: usize = 1024 * 1024;

/// Bytes of large bodies per second and core, while it serves ordinary requests.
const BODY_RATE: u64 = 64_000_000;
/// Bytes per second and core that refused clients keep sending.
const DISCARD_RATE: u64 = 40_000_000;
/// How long a core counts as serving ordinary requests after one began.
const BUSY_TIME: Duration = Duration::from_millis(20);
/// The clock of the runtime is no finer.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// The pace of one core.
pub(crate) struct Pace {
    bodies: Rate,
    discarded: Rate,
    /// How many ordinary requests have begun.
    begun: Cell<u64>,
    /// How many of them the last check knew.
    known: Cell<u64>,
    busy_until: Cell<Option<Instant>>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            bodies: Rate::of(BODY_RATE),
            discarded: Rate::of(DISCARD_RATE),
            begun: Cell::default(),
            known: Cell::default(),
            busy_until: Cell::default(),
        }
    }
}

impl Pace {
    /// Records that an ordinary request began.
    pub(super) fn ordinary_request_began(&self) {
        self.begun.set(self.begun.get().wrapping_add(1));
    }

    /// Waits after this many bytes of a large body were read.
    pub(crate) async fn after_reading(&self, bytes: usize) {
        let now = Instant::now();
        if self.is_busy(now) {
            self.bodies.after(bytes, now).await;
        } else {
            yield_now().await;
        }
    }

    /// Waits after this many bytes of a refused client were discarded.
    pub(super) async fn after_discarding(&self, bytes: usize) {
        self.discarded.after(bytes, Instant::now()).await;
    }

    /// Whether ordinary requests began lately. Most requests never get here, so they pay for a counter only, and not for a look at the clock.
    fn is_busy(&self, now: Instant) -> bool {
        if self.known.replace(self.begun.get()) != self.begun.get() {
            self.busy_until.set(Some(now + BUSY_TIME));
        }
        self.busy_until.get().is_some_and(|until| now < until)
    }
}

/// A number of bytes per second, shared by all who use it.
struct Rate {
    bytes_per_second: u64,
    /// When the bytes that have come were due to have come.
    due: Cell<Option<Instant>>,
}

impl Rate {
    fn of(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, due: Cell::default() }
    }

    async fn after(&self, bytes: usize, now: Instant) {
        let due = self.due_after(bytes, now);
        if due.duration_since(now) < MIN_PAUSE { yield_now().await } else { sleep_until(due).await }
    }

    /// When these bytes were due to have come, too. Users that come together get one time after the other.
    fn due_after(&self, bytes: usize, now: Instant) -> Instant {
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / self.bytes_per_second.max(1);
        let due = self.due.get().map_or(now, |due| due.max(now)) + Duration::from_nanos(nanos);
        self.due.set(Some(due));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_a_rate_together_are_no_faster_than_one_and_pauses_are_not_made_up_for() {
        let (rate, start) = (Rate::of(1000), Instant::now());
        assert_eq!(rate.due_after(500, start), start + Duration::from_millis(500));
        assert_eq!(rate.due_after(500, start), start + Duration::from_secs(1), "behind the first one");
        let later = start + Duration::from_secs(60);
        assert_eq!(rate.due_after(500, later), later + Duration::from_millis(500));
    }

    #[test]
    fn a_core_is_busy_for_a_while_after_an_ordinary_request() {
        let (pace, start) = (Pace::default(), Instant::now());
        assert!(!pace.is_busy(start));
        pace.ordinary_request_began();
        assert!(pace.is_busy(start) && pace.is_busy(start + BUSY_TIME / 2));
        assert!(!pace.is_busy(start + BUSY_TIME));
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_large_body_waits_only_beside_ordinary_requests_and_what_is_discarded_always() {
        let (pace, begin) = (Pace::default(), Instant::now());
        pace.after_reading(1 << 20).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        pace.ordinary_request_began();
        pace.after_reading(640_000).await;
        assert_eq!(begin.elapsed(), Duration::from_millis(10));
        pace.after_discarding(400_000).await;
        assert_eq!(begin.elapsed(), Duration::from_millis(20));
    }
}
