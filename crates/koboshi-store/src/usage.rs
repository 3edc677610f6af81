//! What every store can do for usage: tokens and cost, added up by day, key, model, route and agent.
//!
//! A process adds what it counted in batches that it numbers. A store takes each batch once: a process that did not learn whether its batch
//! arrived sends the same one again. So nothing is counted twice, and a killed process loses no more than what it had not sent.
//!
//! Days are those of the caller's zone. Calls of a minute are kept beside, for limits of calls that hold for a whole fleet.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// How long the number of a process's last batch is kept: longer than any process tries to send the same one.
pub(crate) const SOURCE_TTL: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// How long the calls of a minute are kept.
pub(crate) const CALLS_TTL: Duration = Duration::from_secs(180);

/// What usage is counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UsageKey {
    /// The day, in the zone of the fleet.
    pub day: Date,
    /// The name of the client's key.
    pub key: String,
    /// Provider and model.
    pub model: String,
    /// The route, as the config names it.
    pub route: String,
    /// The agent that asked; empty where none said so.
    pub agent: String,
}

/// The counts, written once: their names are columns and fields of stores.
macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What was counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct UsageCounts {
            $($(#[doc = $doc])+ pub $name: i64,)+
        }

        impl UsageCounts {
            /// The names of all counts.
            pub const NAMES: &[&str] = &[$(stringify!($name)),+];

            /// All counts, in the order of their names.
            #[must_use]
            pub fn values(&self) -> [i64; Self::NAMES.len()] {
                [$(self.$name),+]
            }

            /// Counts in the order of their names; missing ones are none.
            #[must_use]
            pub fn of_values(values: impl IntoIterator<Item = i64>) -> Self {
                let mut values = values.into_iter();
                Self { $($name: values.next().unwrap_or_default(),)+ }
            }

            /// Adds others.
            pub fn add(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)+
            }
        }
    };
}

counts! {
    /// Attempts that were sent to a provider.
    attempts,
    /// Tokens sent, cached and stored ones included.
    input,
    /// Tokens received, thinking included.
    output,
    /// Of the sent ones, read from the provider's cache.
    cached,
    /// Of the sent ones, written to the provider's cache.
    stored,
    /// Of the received ones, thinking.
    reasoning,
    /// What it cost, in parts of the currency ([`koboshi::spend::Amount`]).
    cost,
    /// Tokens whose price is unknown: they are in no cost.
    unpriced,
    /// Tokens that no provider stated: of answers that were cut.
    estimated,
    /// Attempts with such tokens.
    estimated_attempts,
    /// Attempts whose answer no client got: they failed, or were given up.
    lost_attempts,
    /// What these cost.
    lost_cost,
    /// What lesser answers cost.
    lesser_cost,
}

/// One sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// What it is of.
    #[serde(flatten)]
    pub of: UsageKey,
    /// The sums.
    #[serde(flatten)]
    pub counts: UsageCounts,
}

/// Calls of a key in a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCalls {
    /// The name of the key.
    pub key: String,
    /// The minute, counted from 1970.
    pub minute: i64,
    /// How many.
    pub calls: i64,
}

/// What a process counted since its last batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageBatch {
    /// The process; no other one, before or after it, has the same name.
    pub source: String,
    /// Larger than the number of its last batch.
    pub number: u64,
    /// Usage.
    pub rows: Vec<UsageRow>,
    /// Calls.
    pub calls: Vec<KeyCalls>,
}

/// What a key has spent, in parts of the currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpent {
    /// The name of the key.
    pub key: String,
    /// On the last day that was asked for.
    pub day: i64,
    /// On all days that were asked for.
    pub all: i64,
}

/// What a store does for usage.
pub trait UsageStore: Send + Sync {
    /// Adds a batch, whole or not at all. False if the store has it already.
    ///
    /// # Errors
    /// The store cannot be written now. It may have taken the batch all the same: the same one can be sent again.
    fn add(&self, batch: &UsageBatch, now: Timestamp) -> Result<bool, StoreError>;

    /// Every sum of these days, both included, in the order of their keys.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn totals(&self, from: Date, to: Date) -> Result<Vec<UsageRow>, StoreError>;

    /// What each key spent on these days, both included.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn spent(&self, from: Date, to: Date) -> Result<Vec<KeySpent>, StoreError>;

    /// The calls of every key in a minute.
    ///
    /// # Errors
    /// The store cannot be read now.
    fn calls(&self, minute: i64) -> Result<Vec<KeyCalls>, StoreError>;
}

/// The minute of an instant, counted from 1970.
#[must_use]
pub fn minute_of(at: Timestamp) -> i64 {
    at.as_second().div_euclid(60)
}
