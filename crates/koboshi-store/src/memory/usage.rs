//! Usage in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;

use super::MemoryStore;
use crate::error::StoreError;
use crate::times;
use crate::usage::{
    CALLS_TTL, KeyCalls, KeySpent, SOURCE_TTL, UsageBatch, UsageCounts, UsageKey, UsageRow, UsageStore,
    minute_of,
};

#[derive(Default)]
pub(super) struct UsageTable {
    sums: BTreeMap<UsageKey, UsageCounts>,
    /// The last batch of each process, and until when it is remembered.
    sources: BTreeMap<String, (u64, Timestamp)>,
    calls: BTreeMap<(i64, String), i64>,
}

impl UsageTable {
    /// Forgets days before this one, and what has ended. Returns how many things.
    pub(super) fn prune(&mut self, before: Date, now: Timestamp) -> usize {
        let count = |table: &Self| table.sums.len() + table.sources.len() + table.calls.len();
        let all = count(self);
        self.sums.retain(|of, _| of.day >= before);
        self.sources.retain(|_, (_, until)| *until > now);
        let first = minute_of(times::before(now, CALLS_TTL));
        self.calls.retain(|(minute, _), _| *minute >= first);
        all - count(self)
    }
}

impl UsageStore for MemoryStore {
    fn add(&self, batch: &UsageBatch, now: Timestamp) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let table = &mut inner.usage;
        if table.sources.get(&batch.source).is_some_and(|(last, _)| batch.number <= *last) {
            return Ok(false);
        }
        table.sources.insert(batch.source.clone(), (batch.number, times::after(now, SOURCE_TTL)));
        for row in &batch.rows {
            table.sums.entry(row.of.clone()).or_default().add(&row.counts);
        }
        for KeyCalls { key, minute, calls } in &batch.calls {
            let sum = table.calls.entry((*minute, key.clone())).or_default();
            *sum = sum.saturating_add(*calls);
        }
        Ok(true)
    }

    fn totals(&self, from: Date, to: Date) -> Result<Vec<UsageRow>, StoreError> {
        let inner = self.lock();
        let asked = inner.usage.sums.iter().filter(|(of, _)| (from..=to).contains(&of.day));
        Ok(asked.map(|(of, counts)| UsageRow { of: of.clone(), counts: *counts }).collect())
    }

    fn spent(&self, from: Date, to: Date) -> Result<Vec<KeySpent>, StoreError> {
        let inner = self.lock();
        let mut spent: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (of, counts) in inner.usage.sums.iter().filter(|(of, _)| (from..=to).contains(&of.day)) {
            let (day, all) = spent.entry(&of.key).or_default();
            *all = all.saturating_add(counts.cost);
            if of.day == to {
                *day = day.saturating_add(counts.cost);
            }
        }
        Ok(spent.into_iter().map(|(key, (day, all))| KeySpent { key: key.to_owned(), day, all }).collect())
    }

    fn calls(&self, minute: i64) -> Result<Vec<KeyCalls>, StoreError> {
        let inner = self.lock();
        let asked = inner.usage.calls.iter().filter(|((of, _), _)| *of == minute);
        Ok(asked.map(|((_, key), calls)| KeyCalls { key: key.clone(), minute, calls: *calls }).collect())
    }
}
