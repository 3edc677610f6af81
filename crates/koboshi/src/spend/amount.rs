//! An amount of money as a whole number of ten-billionths: what one token costs where a price has four decimals per million tokens.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of money, in whatever currency the caller counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(i64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// How many parts one unit of the currency has.
    pub const PARTS: i64 = 10_000_000_000;

    /// This many parts.
    #[must_use]
    pub const fn of_parts(parts: i64) -> Self {
        Self(parts)
    }

    /// An amount of whole units; none if it is negative, no number or too large to be counted.
    #[must_use]
    pub fn of(units: f64) -> Option<Self> {
        const MAX: f64 = 900_000_000.0;
        if !(0.0..=MAX).contains(&units) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is within the range")]
        let parts = (units * 1e10).round() as i64;
        Some(Self(parts))
    }

    /// In parts.
    #[must_use]
    pub const fn parts(self) -> i64 {
        self.0
    }

    /// In units of the currency, for people and charts.
    #[must_use]
    pub fn units(self) -> f64 {
        let parts = self.0 as f64;
        parts / 1e10
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Which share of `whole` it is; 1 of nothing.
    #[must_use]
    pub fn share_of(self, whole: Self) -> f64 {
        if whole.0 <= 0 { 1.0 } else { self.units() / whole.units() }
    }
}

/// All digits that there are, and at least two behind the point: `0.0045`, `12.50`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let parts = self.0.unsigned_abs();
        let whole = parts / Self::PARTS.unsigned_abs();
        let digits = format!("{:010}", parts % Self::PARTS.unsigned_abs());
        let used = digits.trim_end_matches('0').len().max(2);
        write!(f, "{sign}{whole}.{}", digits.get(..used).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_with_every_digit() {
        for (units, text) in
            [(0.0, "0.00"), (12.5, "12.50"), (0.000_000_000_1, "0.0000000001"), (3.0, "3.00")]
        {
            assert_eq!(Amount::of(units).unwrap().to_string(), text);
        }
        assert_eq!(Amount::of_parts(-25_000_000_000).to_string(), "-2.50");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for units in [-0.1, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(Amount::of(units), None);
        }
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(Amount::of_parts(i64::MAX).plus(Amount::of_parts(1)).parts(), i64::MAX);
    }
}
