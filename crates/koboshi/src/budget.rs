//! What retrying may cost: one budget for a request, and a share of all traffic.
//!
//! A request has a deadline and a number of attempts, over all its targets together: layers that each retry three
//! times multiply to twenty-seven. And all requests together may spend only a share of the traffic on
//! *same-target* retries: when a provider is down, retries must not double the load that keeps it down. Moving to
//! another target or key is free.
//!
//! # Defaults
//!
//! | | Default |
//! |---|---|
//! | attempts in all | 6, and at least one more than there are targets |
//! | share of traffic for retries | 20 % |
//! | retries that are always allowed | 3 a second |
//!
//! The share is a deposit account: every first attempt pays in a fraction, every retry takes one out. The account
//! holds what ten seconds of quiet may earn, so an idle service does not save up a storm.
//!
//! # Events
//!
//! None: [`RetryShare::withdraw`] answers, and the caller reports what it did.
//!
//! # Anti-patterns
//!
//! - A budget per target: targets multiply it.
//! - A new [`RetryShare`] per request: every request then has the floor of a quiet caller.
//! - Counting a hand-over to another target as a retry.

use std::time::Duration;

use crate::sync::{AtomicI64, AtomicU64, Ordering};
use crate::time::Moment;

/// How much one request may try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestPolicy {
    /// Attempts over all targets; none: 6, and at least one more than there are targets, so that the last one is reached.
    pub in_all: Option<u32>,
    /// A stated wait up to this long is waited out on the same target.
    pub patience: Duration,
}

impl Default for RequestPolicy {
    fn default() -> Self {
        Self { in_all: None, patience: Duration::from_secs(3) }
    }
}

/// What a request has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptCount {
    /// Attempts on the target that just failed, that one included.
    pub on_target: u32,
    /// Attempts over all targets.
    pub in_all: u32,
}

/// How much of the traffic may be retries.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SharePolicy {
    /// Retries earned by one first attempt.
    pub share: f64,
    /// Retries that are always allowed, for quiet callers.
    pub per_second: f64,
}

impl Default for SharePolicy {
    fn default() -> Self {
        Self { share: 0.2, per_second: 3.0 }
    }
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// Nothing could be sent at all.
    #[error("the attempts in all must be at least 1")]
    NoAttempt,
    /// More retries than first attempts.
    #[error("the share of retries must be a number from 0 to 1")]
    Share,
    /// No number of retries.
    #[error("the retries a second must be a number of at least 0")]
    PerSecond,
}

impl RequestPolicy {
    /// Attempts over all targets where nothing is set and there are few targets.
    pub const DEFAULT_ATTEMPTS: u32 = 6;

    /// Attempts that a request over this many targets may make.
    #[must_use]
    pub fn attempts_over(&self, targets: usize) -> u32 {
        let reaches_all = u32::try_from(targets).unwrap_or(u32::MAX).saturating_add(1);
        self.in_all.unwrap_or_else(|| Self::DEFAULT_ATTEMPTS.max(reaches_all))
    }

    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub const fn validate(&self) -> Result<(), BudgetError> {
        if matches!(self.in_all, Some(0)) { Err(BudgetError::NoAttempt) } else { Ok(()) }
    }
}

impl SharePolicy {
    /// Whether the values make sense. An account takes any: nonsense pays nothing.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn validate(&self) -> Result<(), BudgetError> {
        if !(0.0..=1.0).contains(&self.share) {
            return Err(BudgetError::Share);
        }
        if self.per_second.is_finite() && self.per_second >= 0.0 {
            Ok(())
        } else {
            Err(BudgetError::PerSecond)
        }
    }
}

/// One retry, in the units of the account.
const ONE: i64 = 1000;
/// What the account may hold, in seconds of its floor.
const SAVED_SECONDS: f64 = 10.0;

/// The account that pays for same-target retries. Share it between all requests to one provider.
#[derive(Debug)]
pub struct RetryShare {
    deposit: i64,
    per_second: f64,
    max: i64,
    balance: AtomicI64,
    /// When the floor was last paid in, in nanoseconds.
    paid: AtomicU64,
}

impl RetryShare {
    /// An account with its floor already paid in.
    #[must_use]
    pub fn new(policy: SharePolicy, now: Moment) -> Self {
        let max = units(policy.per_second * SAVED_SECONDS).max(ONE);
        Self {
            deposit: units(policy.share),
            per_second: policy.per_second.max(0.0),
            max,
            balance: AtomicI64::new(max),
            paid: AtomicU64::new(now.nanos()),
        }
    }

    /// A first attempt was made: it earns its fraction of a retry.
    pub fn deposit(&self) {
        self.add(self.deposit);
    }

    /// Whether one more same-target retry may be made; takes it out of the account if so.
    pub fn withdraw(&self, now: Moment) -> bool {
        self.pay_floor(now);
        let taken = self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |balance| {
            (balance >= ONE).then_some(balance - ONE)
        });
        taken.is_ok()
    }

    /// Puts a retry back that was taken out and not made.
    pub fn refund(&self) {
        self.add(ONE);
    }

    /// Whole retries that could be taken out now.
    #[must_use]
    pub fn left(&self, now: Moment) -> u64 {
        self.pay_floor(now);
        u64::try_from(self.balance.load(Ordering::Relaxed) / ONE).unwrap_or(0)
    }

    fn pay_floor(&self, now: Moment) {
        let before = self.paid.load(Ordering::Relaxed);
        let earned = units(now.since(Moment::from_nanos(before)).as_secs_f64() * self.per_second);
        if earned == 0 {
            return;
        }
        // Paid up to the last whole unit: what is left over counts towards the next.
        let length = Duration::try_from_secs_f64(earned as f64 / ONE as f64 / self.per_second);
        let until = length.map_or(now, |length| Moment::from_nanos(before).after(length).min(now));
        if self.paid.compare_exchange(before, until.nanos(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.add(earned);
        }
    }

    fn add(&self, units: i64) {
        let max = self.max;
        // The closure never refuses, so the result says nothing.
        let _ = self.balance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |balance| {
            Some(balance.saturating_add(units).min(max))
        });
    }
}

/// Retries in the units of the account; nonsense is none.
#[expect(clippy::cast_possible_truncation, reason = "clamped before the cast")]
fn units(retries: f64) -> i64 {
    let units = retries * ONE as f64;
    if units.is_finite() { units.clamp(0.0, 1e15) as i64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::START.after(Duration::from_secs_f64(seconds))
    }

    fn drained(policy: SharePolicy) -> RetryShare {
        let share = RetryShare::new(policy, at(0.0));
        while share.withdraw(at(0.0)) {}
        share
    }

    #[test]
    fn traffic_earns_its_share_of_retries() {
        let share = drained(SharePolicy { share: 0.2, per_second: 0.0 });
        for _ in 0..4 {
            share.deposit();
            assert!(!share.withdraw(at(0.0)), "four attempts earn no whole retry");
        }
        share.deposit();
        assert!(share.withdraw(at(0.0)) && !share.withdraw(at(0.0)), "five earn one");
    }

    #[test]
    fn quiet_callers_keep_a_floor() {
        let share = drained(SharePolicy { share: 0.0, per_second: 2.0 });
        assert!(!share.withdraw(at(0.4)));
        assert!(share.withdraw(at(0.6)), "half a second earns one at two a second");
        assert!(!share.withdraw(at(0.7)));
    }

    #[test]
    fn the_floor_is_paid_in_full_however_often_it_is_asked() {
        let share = drained(SharePolicy { share: 0.0, per_second: 3.0 });
        // Every 0.65 ms for ten seconds: each withdrawal attempt earns 1.95 units.
        let taken = (0..15_385).filter(|n| share.withdraw(at(f64::from(*n) * 0.000_65))).count();
        assert!((29..=30).contains(&taken), "{taken}");
    }

    #[test]
    fn an_idle_service_saves_up_no_storm() {
        let share = RetryShare::new(SharePolicy { share: 1.0, per_second: 3.0 }, at(0.0));
        for _ in 0..1_000_000 {
            share.deposit();
        }
        assert_eq!(share.left(at(3600.0)), 30);
    }

    #[test]
    fn a_clock_that_stands_still_or_nonsense_pays_nothing() {
        let share = drained(SharePolicy { share: f64::NAN, per_second: f64::INFINITY });
        share.deposit();
        assert!(!share.withdraw(at(0.0)));
    }

    #[test]
    fn wrong_policies_say_what_is_wrong() {
        assert_eq!(RequestPolicy::default().validate(), Ok(()));
        assert_eq!(
            RequestPolicy { in_all: Some(0), ..RequestPolicy::default() }.validate(),
            Err(BudgetError::NoAttempt)
        );
        let base = SharePolicy::default();
        assert_eq!(base.validate(), Ok(()));
        assert_eq!(SharePolicy { share: f64::NAN, ..base }.validate(), Err(BudgetError::Share));
        assert_eq!(SharePolicy { per_second: -1.0, ..base }.validate(), Err(BudgetError::PerSecond));
    }

    #[test]
    fn threads_never_take_more_than_there_is() {
        let share = RetryShare::new(SharePolicy { share: 0.0, per_second: 10.0 }, at(0.0));
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..1000).filter(|_| share.withdraw(at(0.0))).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 100);
    }
}
