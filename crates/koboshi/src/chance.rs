//! Chance as an argument.
//!
//! Jitter must differ between callers and be the same in every replay, so it is drawn from a [`Seed`] that the
//! caller hands in. The generator is SplitMix64: two lines, good enough to spread retries, useless for secrets.

use std::time::Duration;

use crate::time::scaled;

/// Where chance comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// A seed; callers take it from the system's randomness, tests from a number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// A seed from the system's randomness.
    #[cfg(feature = "clock")]
    #[must_use]
    pub fn random() -> Self {
        use std::hash::{BuildHasher, RandomState};
        Self(RandomState::new().hash_one(0_u8))
    }

    /// The seed of the `n`-th draw, so that draws of one request are independent of each other.
    #[must_use]
    pub const fn nth(self, n: u64) -> Self {
        Self(mix(self.0.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// A fraction in `0.0..1.0`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub const fn fraction(self) -> f64 {
        (mix(self.0.wrapping_add(0x9e37_79b9_7f4a_7c15)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A length between the two, both included as far as rounding allows.
    #[must_use]
    pub fn between(self, min: Duration, max: Duration) -> Duration {
        min.saturating_add(scaled(max.saturating_sub(min), self.fraction()))
    }
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        assert_eq!(Seed::new(7).nth(3).fraction(), Seed::new(7).nth(3).fraction());
        assert_ne!(Seed::new(7).nth(3).fraction(), Seed::new(7).nth(4).fraction());
    }

    #[test]
    fn draws_spread_over_the_whole_range() {
        let draws: Vec<f64> = (0..10_000).map(|n| Seed::new(42).nth(n).fraction()).collect();
        assert!(draws.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        for tenth in 0..10 {
            let (from, to) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            let count = draws.iter().filter(|fraction| (from..to).contains(*fraction)).count();
            assert!((800..1200).contains(&count), "{count} draws from {from} to {to}");
        }
    }

    #[test]
    fn a_range_that_is_none_gives_its_least() {
        let second = Duration::from_secs(1);
        assert_eq!(Seed::new(1).between(second, Duration::ZERO), second);
    }
}
