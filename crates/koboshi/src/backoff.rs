//! How long to pause before the next attempt on the same target.
//!
//! The pause grows with each failure, is spread by chance so that callers do not come back together, and never
//! undercuts what the server asked for. It is a function of its arguments: the policy, how many attempts
//! failed, the pause before, the server's hint and a seed.
//!
//! # Defaults
//!
//! | Preset | Attempts | First pause | Growth | Cap | Jitter |
//! |---|---|---|---|---|---|
//! | [`BackoffPolicy::SERVICE`] (default) | 3 | 500 ms | × 2 | 10 s | full |
//! | [`BackoffPolicy::NETWORK`] | 6 (5 retries) | 1 s | × 2 | 30 s | full |
//! | [`BackoffPolicy::STREAM`] | 3 | 1 s | × 2 | 60 s | full |
//!
//! The cap holds after the jitter too; only a server's hint may exceed it. *Not here*: whether another
//! attempt is made at all ([`crate::remedy`]), and sleeping.
//!
//! # Events
//!
//! None: it is a function. The caller that pauses says so before the pause, with its length and why.
//!
//! # Anti-patterns
//!
//! - A policy without jitter in front of a shared provider: all callers return at the same moments.
//! - A first pause of zero.
//! - The hint of an earlier attempt.

use std::time::Duration;

use crate::chance::Seed;
use crate::time::grown;

/// How a pause is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Jitter {
    /// Not at all: the exact exponential value.
    None,
    /// Anywhere between nothing and the exponential value.
    #[default]
    Full,
    /// Half of the exponential value, and anywhere in the other half.
    Equal,
    /// Anywhere between the first pause and three times the pause before.
    Decorrelated,
}

/// How pauses grow.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BackoffPolicy {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The pause after the first failure.
    pub first: Duration,
    /// What each further pause is multiplied by.
    pub growth: f64,
    /// No pause of our own is longer.
    pub cap: Duration,
    /// How pauses are spread.
    pub jitter: Jitter,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self::SERVICE
    }
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackoffError {
    /// No attempt at all.
    #[error("attempts must be at least 1")]
    NoAttempt,
    /// A factor that is no number, or shrinks.
    #[error("growth must be a number of at least 1")]
    Shrinking,
    /// A first pause above the cap.
    #[error("the first pause must not be longer than the cap")]
    AboveCap,
}

impl BackoffPolicy {
    /// For requests to a model service.
    pub const SERVICE: Self = Self::doubling(3, Duration::from_millis(500), Duration::from_secs(10));
    /// For connections that may be down for a while.
    pub const NETWORK: Self = Self::doubling(6, Duration::from_secs(1), Duration::from_secs(30));
    /// For streams and sessions.
    pub const STREAM: Self = Self::doubling(3, Duration::from_secs(1), Duration::from_secs(60));

    const fn doubling(attempts: u32, first: Duration, cap: Duration) -> Self {
        Self { attempts, first, growth: 2.0, cap, jitter: Jitter::Full }
    }

    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn validate(&self) -> Result<(), BackoffError> {
        if self.attempts == 0 {
            return Err(BackoffError::NoAttempt);
        }
        if !self.growth.is_finite() || self.growth < 1.0 {
            return Err(BackoffError::Shrinking);
        }
        if self.first > self.cap { Err(BackoffError::AboveCap) } else { Ok(()) }
    }

    /// The pause after the `failures`-th failure (from 1). `before` is the pause before that one, `hint` what
    /// the server asked for *this* time: a floor that may exceed the cap.
    #[must_use]
    pub fn pause(
        &self,
        failures: u32,
        before: Option<Duration>,
        hint: Option<Duration>,
        seed: Seed,
    ) -> Duration {
        let grown = self.grown(failures);
        let spread = match self.jitter {
            Jitter::None => grown,
            Jitter::Full => seed.between(Duration::ZERO, grown),
            Jitter::Equal => seed.between(grown / 2, grown),
            Jitter::Decorrelated => seed.between(self.first, before.unwrap_or(self.first).saturating_mul(3)),
        };
        spread.min(self.cap).max(hint.unwrap_or(Duration::ZERO))
    }

    /// The exponential value, capped; saturates instead of overflowing.
    fn grown(&self, failures: u32) -> Duration {
        grown(self.first, self.growth, failures.saturating_sub(1)).min(self.cap)
    }

    /// The pauses of one series of attempts, as an iterator that ends when no attempt follows.
    #[must_use]
    pub const fn pauses(self, seed: Seed) -> Pauses {
        Pauses { policy: self, seed, failures: 0, before: None }
    }
}

/// The pauses between the attempts of one series.
///
/// ```
/// use koboshi::backoff::BackoffPolicy;
/// use koboshi::chance::Seed;
///
/// // Three attempts have two pauses between them: never a sleep after the last failure.
/// assert_eq!(BackoffPolicy::SERVICE.pauses(Seed::new(1)).count(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Pauses {
    policy: BackoffPolicy,
    seed: Seed,
    failures: u32,
    before: Option<Duration>,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.failures.saturating_add(1) >= self.policy.attempts {
            return None;
        }
        self.failures += 1;
        let pause =
            self.policy.pause(self.failures, self.before, None, self.seed.nth(u64::from(self.failures)));
        self.before = Some(pause);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXACT: BackoffPolicy = BackoffPolicy { jitter: Jitter::None, ..BackoffPolicy::SERVICE };

    #[test]
    fn presets_are_sound_and_have_the_values_of_their_designs() {
        for policy in [BackoffPolicy::SERVICE, BackoffPolicy::NETWORK, BackoffPolicy::STREAM] {
            assert_eq!(policy.validate(), Ok(()));
        }
        let exact: Vec<u128> = (1..8).map(|n| EXACT.pause(n, None, None, Seed::new(0)).as_millis()).collect();
        assert_eq!(exact, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(BackoffPolicy::NETWORK.pauses(Seed::new(0)).count(), 5, "five retries");
    }

    #[test]
    fn the_servers_hint_is_a_floor_even_above_the_cap() {
        let hint = Some(Duration::from_secs(45));
        assert_eq!(EXACT.pause(1, None, hint, Seed::new(0)), Duration::from_secs(45));
        let small = Some(Duration::from_millis(1));
        assert_eq!(
            EXACT.pause(1, None, small, Seed::new(0)),
            Duration::from_millis(500),
            "and never a ceiling"
        );
    }

    #[test]
    fn wrong_policies_say_what_is_wrong() {
        let wrong = |policy: BackoffPolicy| policy.validate().unwrap_err();
        assert_eq!(wrong(BackoffPolicy { attempts: 0, ..EXACT }), BackoffError::NoAttempt);
        assert_eq!(wrong(BackoffPolicy { growth: f64::NAN, ..EXACT }), BackoffError::Shrinking);
        assert_eq!(wrong(BackoffPolicy { growth: 0.5, ..EXACT }), BackoffError::Shrinking);
        assert_eq!(wrong(BackoffPolicy { cap: Duration::ZERO, ..EXACT }), BackoffError::AboveCap);
    }

    proptest! {
        #[test]
        fn no_pause_of_our_own_exceeds_the_cap(
            first in 0_u64..100_000, growth in 1.0_f64..1e9, cap in 0_u64..1_000_000, failures in any::<u32>(),
            before in proptest::option::of(any::<u64>()), seed in any::<u64>(), jitter in 0..4_usize,
        ) {
            let jitter = [Jitter::None, Jitter::Full, Jitter::Equal, Jitter::Decorrelated][jitter];
            let policy = BackoffPolicy {
                attempts: 3, first: Duration::from_millis(first), growth, cap: Duration::from_millis(cap), jitter,
            };
            let before = before.map(Duration::from_millis);
            prop_assert!(policy.pause(failures, before, None, Seed::new(seed)) <= policy.cap);
            let hint = Duration::from_millis(cap.saturating_add(5));
            prop_assert_eq!(policy.pause(failures, before, Some(hint), Seed::new(seed)), hint);
        }

        #[test]
        fn equal_jitter_keeps_half(seed in any::<u64>(), failures in 1_u32..20) {
            let policy = BackoffPolicy { jitter: Jitter::Equal, ..BackoffPolicy::SERVICE };
            let exact = EXACT.pause(failures, None, None, Seed::new(0));
            let pause = policy.pause(failures, None, None, Seed::new(seed));
            prop_assert!(pause >= exact / 2 && pause <= exact);
        }
    }
}
