//! What tokens cost: list prices per million tokens, kept as whole ten-thousandths so that sums are exact.

use serde::Serialize;

use super::Amount;

/// Tokens of one or many answers, in classes that do not overlap in price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Sent, cached and stored ones included.
    pub input: u64,
    /// Received, thinking included.
    pub output: u64,
    /// Of the sent ones, read from the provider's cache.
    pub cached: u64,
    /// Of the sent ones, written to the provider's cache.
    pub stored: u64,
}

/// A price, in ten-thousandths of the currency for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Price {
    input: i64,
    output: i64,
    cached: i64,
    stored: i64,
}

impl Price {
    /// A price for a million tokens sent and received. None if one of them is no amount.
    #[must_use]
    pub fn of(input: f64, output: f64) -> Option<Self> {
        let (input, output) = (rate(input)?, rate(output)?);
        Some(Self { input, output, cached: input, stored: input })
    }

    /// The same with other prices for what is read from the provider's cache and written to it.
    #[must_use]
    pub fn with_cache(self, cached: Option<f64>, stored: Option<f64>) -> Option<Self> {
        let or = |price: Option<f64>, otherwise| price.map_or(Some(otherwise), rate);
        Some(Self { cached: or(cached, self.cached)?, stored: or(stored, self.stored)?, ..self })
    }

    /// The same in another currency, of which one unit of this one is worth this number.
    #[must_use]
    pub fn times(self, factor: f64) -> Option<Self> {
        let one = |price: i64| {
            let price = price as f64;
            rate(price * factor / 1e4)
        };
        Some(Self {
            input: one(self.input)?,
            output: one(self.output)?,
            cached: one(self.cached)?,
            stored: one(self.stored)?,
        })
    }

    /// What these tokens cost.
    #[must_use]
    pub fn cost(&self, tokens: Tokens) -> Amount {
        let cached = tokens.cached.min(tokens.input);
        let stored = tokens.stored.min(tokens.input - cached);
        let plain = tokens.input - cached - stored;
        let parts =
            [(plain, self.input), (cached, self.cached), (stored, self.stored), (tokens.output, self.output)];
        let sum = parts.into_iter().fold(0_i64, |sum, (count, price)| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            sum.saturating_add(count.saturating_mul(price))
        });
        Amount::of_parts(sum)
    }

    /// Per million tokens: sent, received, read from the cache, written to it.
    #[must_use]
    pub fn per_million(&self) -> [Amount; 4] {
        [self.input, self.output, self.cached, self.stored]
            .map(|price| Amount::of_parts(price.saturating_mul(1_000_000)))
    }
}

/// A price per million as ten-thousandths.
fn rate(price: f64) -> Option<i64> {
    const MAX: f64 = 1_000_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is within the range")]
    (0.0..=MAX).contains(&price).then(|| (price * 1e4).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_tokens_has_its_price() {
        let price = Price::of(3.0, 15.0).and_then(|price| price.with_cache(Some(0.3), Some(3.75))).unwrap();
        let tokens = Tokens { input: 1_000_000, output: 1_000_000, cached: 500_000, stored: 200_000 };
        // 300,000 plain, 500,000 cached, 200,000 stored.
        assert_eq!(price.cost(tokens), Amount::of(0.9 + 0.15 + 0.75 + 15.0).unwrap());
    }

    #[test]
    fn a_provider_that_states_more_cached_tokens_than_sent_ones_costs_no_less_than_nothing() {
        let price = Price::of(1.0, 1.0).unwrap();
        let odd = Tokens { input: 10, cached: 1000, stored: 1000, output: 0 };
        assert_eq!(price.cost(odd), price.cost(Tokens { input: 10, ..Tokens::default() }));
        let vast = Tokens { input: u64::MAX, output: u64::MAX, ..Tokens::default() };
        assert_eq!(price.cost(vast).parts(), i64::MAX);
    }

    #[test]
    fn the_cost_of_a_sum_is_the_sum_of_the_costs() {
        let price = Price::of(0.15, 0.6).and_then(|price| price.with_cache(Some(0.075), None)).unwrap();
        let one = Tokens { input: 7, output: 3, cached: 5, stored: 0 };
        let all = Tokens { input: 7000, output: 3000, cached: 5000, stored: 0 };
        let sum = (0..1000).fold(Amount::ZERO, |sum, _| sum.plus(price.cost(one)));
        assert_eq!(sum, price.cost(all));
    }

    #[test]
    fn a_price_in_another_currency() {
        let yen = Price::of(2.5, 10.0).unwrap().times(150.0).unwrap();
        assert_eq!(yen, Price::of(375.0, 1500.0).unwrap());
        assert_eq!(Price::of(-1.0, 1.0), None);
        assert_eq!(Price::of(1.0, 1.0).unwrap().times(f64::NAN), None);
    }
}
