//! How much a key may spend, and whether there is room.

use super::{Amount, Period};

/// From this share on, people get a notice.
pub const WARNING_SHARE: f64 = 0.8;

/// What a key may spend; none has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// In a day.
    pub day: Option<Amount>,
    /// In a month.
    pub month: Option<Amount>,
}

/// What a key has spent in the current day and month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpentAmounts {
    /// Today.
    pub day: Amount,
    /// This month, today included.
    pub month: Amount,
}

impl SpentAmounts {
    /// In one of them.
    #[must_use]
    pub const fn of(self, period: Period) -> Amount {
        match period {
            Period::Day => self.day,
            Period::Month => self.month,
        }
    }

    /// Both together, where both are of the same day.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { day: self.day.plus(other.day), month: self.month.plus(other.month) }
    }
}

/// How much of a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUse {
    /// The period that it is for.
    pub period: Period,
    /// What may be spent.
    pub limit: Amount,
    /// What was spent.
    pub spent: Amount,
}

impl BudgetUse {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.spent >= self.limit
    }

    /// Whether people should know that little is left.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.share() >= WARNING_SHARE
    }

    /// Which share is used.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.spent.share_of(self.limit)
    }
}

impl Budget {
    /// Whether there is any limit.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.day.is_some() || self.month.is_some()
    }

    /// How much of each limit is used.
    pub fn uses(self, spent: SpentAmounts) -> impl Iterator<Item = BudgetUse> {
        let limit = move |period| match period {
            Period::Day => self.day,
            Period::Month => self.month,
        };
        Period::ALL.into_iter().filter_map(move |period| {
            Some(BudgetUse { period, limit: limit(period)?, spent: spent.of(period) })
        })
    }

    /// The limit without room; of both, the month's, which is renewed later.
    #[must_use]
    pub fn exhausted(self, spent: SpentAmounts) -> Option<BudgetUse> {
        self.uses(spent).filter(BudgetUse::is_exhausted).last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: f64) -> Amount {
        Amount::of(units).unwrap()
    }

    #[test]
    fn a_budget_ends_when_it_is_spent_and_the_later_renewal_counts() {
        let budget = Budget { day: Some(units(1.0)), month: Some(units(10.0)) };
        let spent = |day, month| SpentAmounts { day: units(day), month: units(month) };
        assert_eq!(budget.exhausted(spent(0.99, 9.99)), None);
        assert_eq!(budget.exhausted(spent(1.0, 9.99)).map(|over| over.period), Some(Period::Day));
        assert_eq!(budget.exhausted(spent(1.0, 10.0)).map(|over| over.period), Some(Period::Month));
        assert_eq!(Budget::default().exhausted(spent(1e6, 1e6)), None);
    }

    #[test]
    fn people_are_told_from_four_fifths_on() {
        let budget = Budget { day: Some(units(10.0)), month: None };
        let near =
            |day| budget.uses(SpentAmounts { day: units(day), month: units(day) }).any(|one| one.is_near());
        assert!(!near(7.99) && near(8.0) && near(11.0));
    }

    #[test]
    fn a_budget_of_nothing_lets_nothing_through() {
        let budget = Budget { day: Some(Amount::ZERO), month: None };
        let over = budget.exhausted(SpentAmounts::default()).unwrap();
        assert!(over.is_near() && (over.share() - 1.0).abs() < f64::EPSILON);
    }
}
