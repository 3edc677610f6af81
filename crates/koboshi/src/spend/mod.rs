//! What answers cost, and how much of it a key may spend.
//!
//! A price is data beside the facts of a model ([`models`](crate::models)); this module makes an amount of tokens and a price, knows when a
//! day and a month begin in a zone, and decides whether a budget still has room. What was spent is counted by the caller, in [`Amount`]s,
//! which are whole numbers: sums of many processes agree to the last digit, in any order.
//!
//! ```
//! use koboshi::spend::{Amount, Budget, Period, Price, SpentAmounts, Tokens};
//!
//! let price = Price::of(2.5, 10.0).expect("prices are not negative");
//! let cost = price.cost(Tokens { input: 1000, output: 200, ..Tokens::default() });
//! assert_eq!(cost.to_string(), "0.0045");
//!
//! let budget = Budget { day: Amount::of(0.01), month: None };
//! let spent = SpentAmounts { day: Amount::of(0.01).unwrap_or_default(), month: cost };
//! assert_eq!(budget.exhausted(spent).map(|over| over.period), Some(Period::Day));
//! ```

mod amount;
mod budget;
mod period;
mod price;

pub use amount::Amount;
pub use budget::{Budget, BudgetUse, SpentAmounts, WARNING_SHARE};
pub use period::Period;
pub use price::{Price, Tokens};
