//! How close to a limit traffic may go, and how long callers may wait for it.

use std::time::Duration;

/// How a gate behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct GatePolicy {
    /// Calls at the same time; none leaves it to the provider.
    pub concurrency: Option<u32>,
    /// Callers that may wait; one more is refused at once. Zero: no caller waits.
    pub queue: u32,
    /// No caller waits longer, whatever its own deadline.
    pub max_wait: Duration,
    /// After a hold, waiters are let through one in each such stretch.
    pub stagger: Duration,
    /// This share of a learned limit is left unused, in `0..1`: other programs may share the account.
    pub headroom: f64,
    /// What was learned from headers is forgotten after this long without news.
    pub forget_after: Duration,
}

impl Default for GatePolicy {
    fn default() -> Self {
        Self {
            concurrency: None,
            queue: 256,
            max_wait: Duration::from_secs(30),
            stagger: Duration::from_millis(50),
            headroom: 0.0,
            forget_after: Duration::from_secs(10 * 60),
        }
    }
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatePolicyError {
    /// Nothing could ever pass.
    #[error("`concurrency` must be at least 1; leave it out for no limit")]
    Concurrency,
    /// A queue that could fill the memory.
    #[error("`queue` must be at most {MAX_QUEUE}")]
    Queue,
    /// A share out of its range.
    #[error("`headroom` must be at least 0 and below 1")]
    Headroom,
}

/// The most callers that may wait at one gate.
pub const MAX_QUEUE: u32 = 100_000;

impl GatePolicy {
    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn validate(&self) -> Result<(), GatePolicyError> {
        if self.concurrency == Some(0) {
            return Err(GatePolicyError::Concurrency);
        }
        if self.queue > MAX_QUEUE {
            return Err(GatePolicyError::Queue);
        }
        if (0.0..1.0).contains(&self.headroom) { Ok(()) } else { Err(GatePolicyError::Headroom) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_policies_say_what_is_wrong() {
        let base = GatePolicy::default();
        assert_eq!(base.validate(), Ok(()));
        let wrong = |policy: GatePolicy| policy.validate().unwrap_err();
        assert_eq!(wrong(GatePolicy { concurrency: Some(0), ..base }), GatePolicyError::Concurrency);
        assert_eq!(wrong(GatePolicy { queue: MAX_QUEUE + 1, ..base }), GatePolicyError::Queue);
        assert_eq!(wrong(GatePolicy { headroom: 1.0, ..base }), GatePolicyError::Headroom);
        assert_eq!(wrong(GatePolicy { headroom: f64::NAN, ..base }), GatePolicyError::Headroom);
    }
}
