//! Windows that do not fit the word: many calls, or a stretch of time.
//!
//! A ring of the last calls, or ten buckets of a time window. Both keep their totals, so a call costs the same
//! however long the window is. They are only touched under the breaker's lock.

use std::time::Duration;

use crate::time::Moment;

use super::word::{CallResult, Tally};

/// A time window is counted in this many parts: what is older leaves part by part.
const PARTS: usize = 10;

#[derive(Debug)]
pub(super) enum Window {
    Calls(Ring),
    Time(Buckets),
}

impl Window {
    pub(super) fn of_calls(calls: u32) -> Self {
        let capacity = usize::try_from(calls).unwrap_or(usize::MAX);
        Self::Calls(Ring { slots: Vec::new(), capacity: capacity.max(1), next: 0, tally: Tally::default() })
    }

    pub(super) fn of_time(length: Duration) -> Self {
        let width = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX) / PARTS as u64;
        Self::Time(Buckets { width: width.max(1), newest: 0, parts: [Tally::default(); PARTS] })
    }

    pub(super) fn push(&mut self, seen: CallResult, now: Moment) -> Tally {
        match self {
            Self::Calls(ring) => ring.push(seen),
            Self::Time(buckets) => {
                buckets.newest(now).add(seen);
                buckets.tally()
            }
        }
    }

    /// What it holds now.
    pub(super) fn tally(&mut self, now: Moment) -> Tally {
        match self {
            Self::Calls(ring) => ring.tally,
            Self::Time(buckets) => {
                buckets.newest(now);
                buckets.tally()
            }
        }
    }

    /// Whether one more good call would change nothing. A window of time always moves on.
    pub(super) fn is_spotless(&self) -> bool {
        match self {
            Self::Calls(ring) => {
                ring.slots.len() == ring.capacity && ring.tally.failed == 0 && ring.tally.slow == 0
            }
            Self::Time(_) => false,
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Calls(ring) => {
                ring.slots.clear();
                ring.next = 0;
                ring.tally = Tally::default();
            }
            Self::Time(buckets) => buckets.parts = [Tally::default(); PARTS],
        }
    }
}

impl Tally {
    fn add(&mut self, seen: CallResult) {
        self.calls = self.calls.saturating_add(1);
        self.failed = self.failed.saturating_add(u32::from(seen.failed));
        self.slow = self.slow.saturating_add(u32::from(seen.slow));
    }

    fn remove(&mut self, seen: CallResult) {
        self.calls = self.calls.saturating_sub(1);
        self.failed = self.failed.saturating_sub(u32::from(seen.failed));
        self.slow = self.slow.saturating_sub(u32::from(seen.slow));
    }
}

/// The last calls, this many of them.
#[derive(Debug)]
pub(super) struct Ring {
    /// Grows to the capacity, then the oldest is overwritten.
    slots: Vec<CallResult>,
    capacity: usize,
    next: usize,
    tally: Tally,
}

impl Ring {
    fn push(&mut self, seen: CallResult) -> Tally {
        match self.slots.get_mut(self.next) {
            Some(oldest) => {
                self.tally.remove(*oldest);
                *oldest = seen;
            }
            None => self.slots.push(seen),
        }
        self.next = (self.next + 1) % self.capacity;
        self.tally.add(seen);
        self.tally
    }
}

/// The calls of a stretch of time.
#[derive(Debug)]
pub(super) struct Buckets {
    /// Length of a part in nanoseconds.
    width: u64,
    /// Number of the newest part, counted from the beginning of the clock.
    newest: u64,
    parts: [Tally; PARTS],
}

impl Buckets {
    /// The part that now belongs to; what has become too old is emptied.
    fn newest(&mut self, now: Moment) -> &mut Tally {
        let part = now.nanos() / self.width;
        // A caller whose clock lags by a little counts into the newest part.
        let passed = part.saturating_sub(self.newest);
        self.newest = self.newest.max(part);
        for step in 0..passed.min(PARTS as u64) {
            *self.part(self.newest - step) = Tally::default();
        }
        self.part(self.newest)
    }

    fn tally(&self) -> Tally {
        self.parts.iter().fold(Tally::default(), |sum, part| Tally {
            calls: sum.calls.saturating_add(part.calls),
            failed: sum.failed.saturating_add(part.failed),
            slow: sum.slow.saturating_add(part.slow),
        })
    }

    fn part(&mut self, number: u64) -> &mut Tally {
        let [first, rest @ ..] = &mut self.parts;
        match usize::try_from(number % PARTS as u64).unwrap_or(0) {
            0 => first,
            index => rest.get_mut(index - 1).unwrap_or(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: CallResult = CallResult { failed: false, slow: false };
    const BAD: CallResult = CallResult { failed: true, slow: true };

    #[test]
    fn a_ring_forgets_the_oldest_call() {
        let mut window = Window::of_calls(3);
        window.push(BAD, Moment::START);
        window.push(GOOD, Moment::START);
        assert_eq!(window.push(GOOD, Moment::START), Tally { calls: 3, failed: 1, slow: 1 });
        assert_eq!(window.push(GOOD, Moment::START), Tally { calls: 3, failed: 0, slow: 0 });
        window.clear();
        assert_eq!(window.push(BAD, Moment::START), Tally { calls: 1, failed: 1, slow: 1 });
    }

    #[test]
    fn a_time_window_forgets_what_is_older() {
        let at = |seconds| Moment::START.after(Duration::from_secs(seconds));
        let mut window = Window::of_time(Duration::from_secs(10));
        window.push(BAD, at(1000));
        assert_eq!(window.push(GOOD, at(1005)), Tally { calls: 2, failed: 1, slow: 1 });
        assert_eq!(window.push(GOOD, at(1009)), Tally { calls: 3, failed: 1, slow: 1 });
        assert_eq!(window.push(GOOD, at(1010)), Tally { calls: 3, failed: 0, slow: 0 }, "the first has left");
        assert_eq!(window.push(BAD, at(9999)), Tally { calls: 1, failed: 1, slow: 1 }, "all have left");
        assert_eq!(window.push(GOOD, at(5)).calls, 2, "a lagging clock counts as now");
    }
}
