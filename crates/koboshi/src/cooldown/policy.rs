//! How long a cooldown of each class lasts, when the key is parked, and when its failures are forgotten.

use std::time::Duration;

use crate::time::{grown, scaled};
use crate::wait::{Form, Wait};

use super::Class;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How long a cooldown of one class lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ClassPolicy {
    /// The first rest.
    pub base: Duration,
    /// What it is multiplied by at each further failure in a row.
    pub growth: f64,
    /// No cooldown of our own choice is longer. A stated one may be.
    pub cap: Duration,
    /// After this many failures in a row a person must resume it; none never parks.
    pub park_after: Option<u32>,
}

impl ClassPolicy {
    const fn doubling(base: Duration, cap: Duration, park_after: Option<u32>) -> Self {
        Self { base, growth: 2.0, cap, park_after }
    }

    /// The cooldown after the `streak`-th failure (from 1), without jitter; saturates.
    #[must_use]
    pub fn rest(&self, streak: u32) -> Duration {
        grown(self.base, self.growth, streak.saturating_sub(1)).min(self.cap)
    }
}

/// What is added to a stated wait: clocks differ, and the first instant after a reset is the busiest.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MarginPolicy {
    /// At least this after a countdown.
    pub min: Duration,
    /// This share of a countdown.
    pub share: f64,
    /// At most this: a tenth of five days would be half a day lost.
    pub max: Duration,
    /// After a reset that was stated as an instant.
    pub instant: Duration,
}

impl MarginPolicy {
    /// The margin for this wait.
    #[must_use]
    pub fn margin(&self, wait: &Wait) -> Duration {
        match wait.form {
            Form::Countdown => scaled(wait.after, self.share).max(self.min).min(self.max),
            Form::Instant | Form::Day => self.instant,
        }
    }
}

/// How long things rest.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CooldownPolicy {
    /// Off: failures are not counted and put no key into cooldown. A cooldown that an operator set still holds.
    pub enabled: bool,
    /// Off: every failure is an `error`, whatever was read.
    pub detection: bool,
    /// Failures of its own.
    pub error: ClassPolicy,
    /// Not reachable.
    pub network: ClassPolicy,
    /// No capacity.
    pub overloaded: ClassPolicy,
    /// Too much in a short window.
    pub rate_limit: ClassPolicy,
    /// A used-up allowance.
    pub quota: ClassPolicy,
    /// What is added to a stated wait.
    pub margin: MarginPolicy,
    /// A stated wait is believed up to this.
    pub max_stated: Duration,
    /// Up to this share is added to every cooldown of our own choice but the first, so that keys do not wake together.
    pub jitter: f64,
    /// A run that lasted this long was healthy: the failures before it are forgotten.
    pub healthy_run: Duration,
    /// A run that ended well sooner than this was no success: "nothing to do" would be started again at once.
    pub min_run: Duration,
    /// At most this many starts …
    pub starts: u32,
    /// … in such a stretch, whatever their exit codes.
    pub starts_within: Duration,
    /// After a cooldown one probe goes first; if it has no result for this long, the next one may.
    pub max_probe_time: Duration,
    /// After the probe's success the others follow, one in each such stretch.
    pub stagger: Duration,
    /// How long the others follow one by one; then the key is free.
    pub release: Duration,
}

impl Default for CooldownPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            detection: true,
            error: ClassPolicy::doubling(MINUTE, HOUR, Some(5)),
            network: ClassPolicy::doubling(Duration::from_secs(10), Duration::from_secs(5 * 60), None),
            overloaded: ClassPolicy::doubling(Duration::from_secs(30), Duration::from_secs(10 * 60), None),
            rate_limit: ClassPolicy::doubling(Duration::from_secs(5 * 60), HOUR, None),
            quota: ClassPolicy::doubling(Duration::from_secs(30 * 60), HOUR, None),
            margin: MarginPolicy {
                min: Duration::from_secs(5),
                share: 0.1,
                max: Duration::from_secs(5 * 60),
                instant: MINUTE,
            },
            max_stated: Duration::from_secs(35 * 24 * 60 * 60),
            jitter: 0.1,
            healthy_run: Duration::from_secs(10 * 60),
            min_run: Duration::from_secs(10),
            starts: 5,
            starts_within: MINUTE,
            max_probe_time: Duration::from_secs(10 * 60),
            stagger: SECOND.saturating_mul(2),
            release: MINUTE,
        }
    }
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CooldownPolicyError {
    /// A cooldown that is nothing, or longer than its cap.
    #[error("{}: the first rest must be more than nothing and at most the cap", .0.name())]
    Base(Class),
    /// A factor that is no number, or shrinks.
    #[error("{}: growth must be a number of at least 1", .0.name())]
    Growth(Class),
    /// Parked before anything failed.
    #[error("{}: `park_after` must be at least 1; leave it out to never park", .0.name())]
    Park(Class),
    /// A share out of its range.
    #[error("{0} must be at least 0 and at most 1")]
    Share(&'static str),
    /// A least margin above the most.
    #[error("the least margin must not be longer than the most")]
    Margin,
    /// Nothing could ever start.
    #[error("`starts` must be at least 1")]
    Starts,
}

impl CooldownPolicy {
    /// The policy of a class; none where a person must act (context, auth, billing, operator).
    #[must_use]
    pub const fn class(&self, class: Class) -> Option<&ClassPolicy> {
        match class {
            Class::Error => Some(&self.error),
            Class::Network => Some(&self.network),
            Class::Overloaded => Some(&self.overloaded),
            Class::RateLimit => Some(&self.rate_limit),
            Class::Quota => Some(&self.quota),
            Class::Context | Class::Auth | Class::Billing | Class::Operator => None,
        }
    }

    /// How long a stated wait is kept: with its margin, and beyond every cap.
    #[must_use]
    pub fn stated(&self, wait: &Wait) -> Duration {
        wait.after.saturating_add(self.margin.margin(wait)).min(self.max_stated)
    }

    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn validate(&self) -> Result<(), CooldownPolicyError> {
        use CooldownPolicyError as Wrong;
        for class in Class::ALL {
            let Some(policy) = self.class(*class) else { continue };
            if policy.base.is_zero() || policy.base > policy.cap {
                return Err(Wrong::Base(*class));
            }
            if !policy.growth.is_finite() || policy.growth < 1.0 {
                return Err(Wrong::Growth(*class));
            }
            if policy.park_after == Some(0) {
                return Err(Wrong::Park(*class));
            }
        }
        for (name, share) in [("the margin's share", self.margin.share), ("jitter", self.jitter)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Wrong::Share(name));
            }
        }
        if self.margin.min > self.margin.max {
            return Err(Wrong::Margin);
        }
        if self.starts == 0 { Err(Wrong::Starts) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound_and_have_the_values_of_their_design() {
        let policy = CooldownPolicy::default();
        assert_eq!(policy.validate(), Ok(()));
        assert_eq!(policy.error.base, MINUTE);
        assert_eq!(policy.error.cap, HOUR);
        assert_eq!(policy.quota.base, Duration::from_secs(1800));
        assert_eq!(policy.rate_limit.base, Duration::from_secs(300));
    }

    #[test]
    fn rests_grow_to_their_cap_and_never_overflow() {
        let error = CooldownPolicy::default().error;
        assert_eq!([1, 2, 3].map(|streak| error.rest(streak).as_secs()), [60, 120, 240]);
        assert_eq!(error.rest(u32::MAX), HOUR);
    }

    #[test]
    fn wrong_policies_say_what_is_wrong() {
        use CooldownPolicyError as Wrong;
        let base = CooldownPolicy::default();
        let error = |error| CooldownPolicy { error, ..base };
        let cases = [
            (error(ClassPolicy { base: Duration::ZERO, ..base.error }), Wrong::Base(Class::Error)),
            (error(ClassPolicy { base: HOUR * 2, ..base.error }), Wrong::Base(Class::Error)),
            (error(ClassPolicy { growth: f64::NAN, ..base.error }), Wrong::Growth(Class::Error)),
            (error(ClassPolicy { park_after: Some(0), ..base.error }), Wrong::Park(Class::Error)),
            (CooldownPolicy { jitter: 1.5, ..base }, Wrong::Share("jitter")),
            (CooldownPolicy { starts: 0, ..base }, Wrong::Starts),
        ];
        for (policy, wrong) in cases {
            assert_eq!(policy.validate(), Err(wrong));
        }
    }
}
