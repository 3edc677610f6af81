//! Points on a monotonic clock. The caller has the clock and hands them in.
//!
//! Waiting, windows and open times are counted on a clock that never jumps; wall time is only for what
//! people see and for resets that were stated as an instant. The core has neither clock: every decision
//! takes a [`Moment`] as an argument, so tests run on a clock of their own and a decision can be replayed.

use std::time::Duration;

/// A point on a monotonic clock: nanoseconds from an arbitrary beginning.
///
/// Moments of different clocks must not be mixed; all arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The beginning of the clock.
    pub const START: Self = Self(0);

    /// This many nanoseconds from the beginning.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds from the beginning.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Now, on the clock of this process.
    #[cfg(feature = "clock")]
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "a clock for programs that have none to hand in; nothing in this crate decides by it"
    )]
    pub fn now() -> Self {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        Self::START.after(START.get_or_init(std::time::Instant::now).elapsed())
    }

    /// How long it is from `earlier` to this moment; nothing if it is not later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment this much later.
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// A length after this many steps of growth; saturates, and nonsense grows nothing.
pub(crate) fn grown(first: Duration, growth: f64, steps: u32) -> Duration {
    let steps = i32::try_from(steps).unwrap_or(i32::MAX);
    scaled(first, growth.powi(steps))
}

/// A length times a factor; saturates. Nothing stays nothing, whatever the factor.
pub(crate) fn scaled(length: Duration, factor: f64) -> Duration {
    if length.is_zero() || factor.is_nan() || factor <= 0.0 {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(length.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_saturates_and_nothing_stays_nothing() {
        let second = Duration::from_secs(1);
        assert_eq!(grown(second, 2.0, 3), Duration::from_secs(8));
        assert_eq!(grown(second, 1e300, u32::MAX), Duration::MAX);
        assert_eq!(grown(Duration::ZERO, 2.0, u32::MAX), Duration::ZERO);
        assert_eq!(scaled(Duration::MAX, 1.0), Duration::MAX);
        assert_eq!(scaled(second, f64::NAN), Duration::ZERO);
    }

    #[test]
    fn arithmetic_never_wraps() {
        assert_eq!(Moment::from_nanos(u64::MAX).after(Duration::MAX), Moment::from_nanos(u64::MAX));
        assert_eq!(Moment::START.since(Moment::from_nanos(5)), Duration::ZERO);
        assert_eq!(Moment::from_nanos(7).since(Moment::from_nanos(5)), Duration::from_nanos(2));
    }
}
