//! What a request costs, and whose it is: amounts in three units and the name of a tenant.
//!
//! A cost is estimated before a request is sent and corrected when it has ended. The estimate is of the whole
//! request: all that is sent, tool definitions included, and the most that may come back. An estimate of the prompt
//! alone reserves a tenth of the truth. Amounts are clamped to [`MAX_AMOUNT`], so that sums of them cannot overflow.

use std::fmt;
use std::sync::Arc;

use super::Limit;

/// No single amount is larger: about 10^15, more than any provider grants in a window.
pub(super) const MAX_AMOUNT: u64 = 1 << 50;

/// Bytes of a request for one token, on the safe side: English has about four, Japanese three.
const BYTES_PER_TOKEN: u64 = 3;

/// What a request costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Requests; one, as a rule.
    pub requests: u64,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received. In an estimate: the most that may be.
    pub output_tokens: u64,
}

impl Cost {
    /// One request of this many tokens.
    #[must_use]
    pub const fn of(input_tokens: u64, output_tokens: u64) -> Self {
        Self { requests: 1, input_tokens, output_tokens }
    }

    /// The estimate for a request of this many bytes, whole body, that may get this many tokens back.
    #[must_use]
    pub const fn estimate(body_bytes: usize, max_output: u64) -> Self {
        // Lengths in memory are below 2^63; the cast cannot cut on any machine of 64 bits or less.
        Self::of((body_bytes as u64).div_ceil(BYTES_PER_TOKEN), max_output)
    }

    /// How much of it counts against a limit; `None` where nothing is counted.
    #[must_use]
    pub const fn against(self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Requests => Some(self.requests),
            Limit::Tokens => Some(self.input_tokens.saturating_add(self.output_tokens)),
            Limit::InputTokens => Some(self.input_tokens),
            Limit::OutputTokens => Some(self.output_tokens),
            Limit::Concurrency | Limit::Quota | Limit::Operator => None,
        }
    }

    pub(super) fn clamped(self) -> Self {
        Self {
            requests: self.requests.min(MAX_AMOUNT),
            input_tokens: self.input_tokens.min(MAX_AMOUNT),
            output_tokens: self.output_tokens.min(MAX_AMOUNT),
        }
    }
}

/// Whose request it is. Waiters of different tenants take turns.
///
/// A type of its own, so that it cannot be swapped with another text. Names must come from a bounded set (client
/// keys, not what a request says about itself): a caller that invents a tenant for every request takes every turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// The tenant of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl From<Arc<str>> for Tenant {
    fn from(name: Arc<str>) -> Self {
        Self(name)
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_of_the_whole_request_and_the_most_that_may_come_back() {
        let cost = Cost::estimate(3001, 4096);
        assert_eq!(cost, Cost { requests: 1, input_tokens: 1001, output_tokens: 4096 });
        assert_eq!(cost.against(Limit::Tokens), Some(5097), "both directions together");
        assert_eq!(cost.against(Limit::InputTokens), Some(1001));
        assert_eq!(cost.against(Limit::OutputTokens), Some(4096));
        assert_eq!(cost.against(Limit::Operator), None);
    }

    #[test]
    fn absurd_amounts_do_not_overflow() {
        let absurd = Cost { requests: u64::MAX, input_tokens: u64::MAX, output_tokens: u64::MAX };
        assert_eq!(absurd.against(Limit::Tokens), Some(u64::MAX));
        assert_eq!(absurd.clamped().against(Limit::Tokens), Some(2 * MAX_AMOUNT));
    }
}
