//! Usage in Redis: a hash of counts and a hash of costs for each day; a batch is one script.
//!
//! A field of the counts is the names as a JSON list, a line break, and the name of the count. Counts of nothing are not written.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use redis::Script;

use super::RedisStore;
use crate::error::StoreError;
use crate::times;
use crate::usage::{
    CALLS_TTL, KeyCalls, KeySpent, SOURCE_TTL, UsageBatch, UsageCounts, UsageKey, UsageRow, UsageStore,
};

pub(super) fn script() -> Script {
    Script::new(include_str!("lua/usage_add.lua"))
}

/// The keys and the arguments of the script.
#[derive(Default)]
struct Counting {
    keys: Vec<String>,
    counts: Vec<(isize, String, i64)>,
}

impl Counting {
    /// The place of a hash among the keys, from 1.
    fn place(&mut self, hash: String) -> isize {
        let at = self.keys.iter().position(|key| *key == hash).unwrap_or_else(|| {
            self.keys.push(hash);
            self.keys.len() - 1
        });
        isize::try_from(at + 1).unwrap_or(isize::MAX)
    }

    fn add(&mut self, place: isize, field: String, value: i64) {
        if value != 0 {
            self.counts.push((place, field, value));
        }
    }
}

impl RedisStore {
    /// The days of the list from one to another.
    fn days(&self, from: Date, to: Date) -> Result<Vec<String>, StoreError> {
        let mut range = redis::cmd("ZRANGEBYLEX");
        range.arg(&self.shared.names.usage_days).arg(format!("[{from}")).arg(format!("[{to}"));
        self.shared.handle.run("read usage", |connection| range.query(connection))
    }

    fn hash(&self, name: &str) -> Result<Vec<(String, i64)>, StoreError> {
        let mut get = redis::cmd("HGETALL");
        get.arg(name);
        self.shared.handle.run("read usage", |connection| get.query(connection))
    }

    /// Forgets days before this one; what else ends does so by itself.
    pub(super) fn prune_usage(&self, before: Date) -> Result<u64, StoreError> {
        let mut gone = 0;
        for day in self.days(Date::MIN, before)?.iter().filter(|day| **day < before.to_string()) {
            let names = &self.shared.names;
            let mut delete = redis::cmd("DEL");
            delete.arg(names.usage(day)).arg(names.usage_cost(day));
            let mut forget = redis::cmd("ZREM");
            forget.arg(&names.usage_days).arg(day);
            gone += self.shared.handle.run("forget what is old", |connection| {
                let hashes: u64 = delete.query(connection)?;
                forget.exec(connection)?;
                Ok(hashes)
            })?;
        }
        Ok(gone)
    }
}

impl UsageStore for RedisStore {
    fn add(&self, batch: &UsageBatch, _now: Timestamp) -> Result<bool, StoreError> {
        let names = &self.shared.names;
        let mut counting = Counting::default();
        let mut days: Vec<String> = Vec::new();
        counting.keys.extend([names.usage_source(&batch.source), names.usage_days.clone()]);
        for UsageRow { of, counts } in &batch.rows {
            let day = of.day.to_string();
            let (sums, costs) = (counting.place(names.usage(&day)), counting.place(names.usage_cost(&day)));
            if !days.contains(&day) {
                days.push(day);
            }
            let name = serde_json::to_string(&(&of.key, &of.model, &of.route, &of.agent)).unwrap_or_default();
            for (count, value) in UsageCounts::NAMES.iter().zip(counts.values()) {
                counting.add(sums, format!("{name}\n{count}"), value);
            }
            counting.add(costs, of.key.clone(), counts.cost);
        }
        for KeyCalls { key, minute, calls } in &batch.calls {
            let place = counting.place(names.usage_calls(*minute));
            counting.add(-place, key.clone(), *calls);
        }
        let mut call = self.usage_add.prepare_invoke();
        for key in &counting.keys {
            call.key(key);
        }
        call.arg(batch.number).arg(times::millis(SOURCE_TTL)).arg(times::millis(CALLS_TTL)).arg(days.len());
        for day in &days {
            call.arg(day);
        }
        for (place, field, value) in &counting.counts {
            call.arg(*place).arg(field).arg(*value);
        }
        let taken: u64 = self.shared.handle.run("write usage", |connection| call.invoke(connection))?;
        Ok(taken > 0)
    }

    fn totals(&self, from: Date, to: Date) -> Result<Vec<UsageRow>, StoreError> {
        let mut sums: BTreeMap<UsageKey, UsageCounts> = BTreeMap::new();
        for day in self.days(from, to)? {
            let Ok(date) = day.parse::<Date>() else { continue };
            for (field, value) in self.hash(&self.shared.names.usage(&day))? {
                let Some((names, count)) = field.split_once('\n') else { continue };
                let Ok((key, model, route, agent)) = serde_json::from_str(names) else { continue };
                let at = UsageCounts::NAMES.iter().position(|name| *name == count);
                let values =
                    (0..UsageCounts::NAMES.len()).map(|place| if Some(place) == at { value } else { 0 });
                let of = UsageKey { day: date, key, model, route, agent };
                sums.entry(of).or_default().add(&UsageCounts::of_values(values));
            }
        }
        Ok(sums.into_iter().map(|(of, counts)| UsageRow { of, counts }).collect())
    }

    fn spent(&self, from: Date, to: Date) -> Result<Vec<KeySpent>, StoreError> {
        let mut spent: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for day in self.days(from, to)? {
            for (key, cost) in self.hash(&self.shared.names.usage_cost(&day))? {
                let (of_day, all) = spent.entry(key).or_default();
                *all = all.saturating_add(cost);
                if day == to.to_string() {
                    *of_day = of_day.saturating_add(cost);
                }
            }
        }
        Ok(spent.into_iter().map(|(key, (day, all))| KeySpent { key, day, all }).collect())
    }

    fn calls(&self, minute: i64) -> Result<Vec<KeyCalls>, StoreError> {
        let mut found = self.hash(&self.shared.names.usage_calls(minute))?;
        found.sort();
        Ok(found.into_iter().map(|(key, calls)| KeyCalls { key, minute, calls }).collect())
    }
}
