//! Usage in SQLite: one row for each sum; a batch is one transaction.

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, Transaction, params, params_from_iter};

use super::SqliteStore;
use crate::error::StoreError;
use crate::times;
use crate::usage::{
    CALLS_TTL, KeyCalls, KeySpent, SOURCE_TTL, UsageBatch, UsageCounts, UsageKey, UsageRow, UsageStore,
    minute_of,
};

/// Adds what is given to what is there. Sums that no number can hold are no error of the caller: they stay at the largest one.
fn upsert() -> String {
    let names = UsageCounts::NAMES.join(", ");
    let places: Vec<String> = (1..=5 + UsageCounts::NAMES.len()).map(|at| format!("?{at}")).collect();
    let add = |name: &&str| format!("{name} = CAST(min({name} + excluded.{name}, {}) AS INTEGER)", i64::MAX);
    let adds: Vec<String> = UsageCounts::NAMES.iter().map(add).collect();
    format!(
        "INSERT INTO usage (day, key, model, route, agent, {names}) VALUES ({}) \
         ON CONFLICT (day, key, model, route, agent) DO UPDATE SET {}",
        places.join(", "),
        adds.join(", ")
    )
}

fn add(transaction: &Transaction<'_>, batch: &UsageBatch, now: Timestamp) -> rusqlite::Result<bool> {
    let number = i64::try_from(batch.number).unwrap_or(i64::MAX);
    let last: Option<i64> = transaction
        .query_row("SELECT number FROM usage_source WHERE source = ?1", [&batch.source], |row| row.get(0))
        .optional()?;
    if last.is_some_and(|last| number <= last) {
        return Ok(false);
    }
    transaction.execute(
        "INSERT OR REPLACE INTO usage_source (source, number, until) VALUES (?1, ?2, ?3)",
        params![batch.source, number, times::after(now, SOURCE_TTL).as_millisecond()],
    )?;
    let mut insert = transaction.prepare(&upsert())?;
    for UsageRow { of: UsageKey { day, key, model, route, agent }, counts } in &batch.rows {
        let names = [day.to_string(), key.clone(), model.clone(), route.clone(), agent.clone()];
        let counts = counts.values().map(Sql::Integer);
        insert.execute(params_from_iter(names.map(Sql::Text).into_iter().chain(counts)))?;
    }
    let mut insert = transaction.prepare(
        "INSERT INTO usage_calls (minute, key, calls) VALUES (?1, ?2, ?3) \
         ON CONFLICT (minute, key) DO UPDATE SET calls = calls + excluded.calls",
    )?;
    for KeyCalls { key, minute, calls } in &batch.calls {
        insert.execute(params![minute, key, calls])?;
    }
    Ok(true)
}

/// Forgets days before this one, and what has ended.
pub(super) fn prune(transaction: &Transaction<'_>, before: Date, now: Timestamp) -> rusqlite::Result<usize> {
    let days = transaction.execute("DELETE FROM usage WHERE day < ?1", [before.to_string()])?;
    let sources =
        transaction.execute("DELETE FROM usage_source WHERE until <= ?1", [now.as_millisecond()])?;
    let first = minute_of(times::before(now, CALLS_TTL));
    Ok(days + sources + transaction.execute("DELETE FROM usage_calls WHERE minute < ?1", [first])?)
}

impl UsageStore for SqliteStore {
    fn add(&self, batch: &UsageBatch, now: Timestamp) -> Result<bool, StoreError> {
        self.write("write usage", |transaction| add(transaction, batch, now))
    }

    fn totals(&self, from: Date, to: Date) -> Result<Vec<UsageRow>, StoreError> {
        let names = UsageCounts::NAMES.join(", ");
        let select = format!(
            "SELECT day, key, model, route, agent, {names} FROM usage WHERE day BETWEEN ?1 AND ?2 \
             ORDER BY day, key, model, route, agent"
        );
        self.read("read usage", |reader| {
            let mut select = reader.prepare(&select)?;
            let rows = select.query_map([from.to_string(), to.to_string()], |row| {
                let day: String = row.get(0)?;
                let counts: rusqlite::Result<Vec<i64>> =
                    (5..5 + UsageCounts::NAMES.len()).map(|at| row.get(at)).collect();
                let of = UsageKey {
                    day: day.parse().unwrap_or(Date::MIN),
                    key: row.get(1)?,
                    model: row.get(2)?,
                    route: row.get(3)?,
                    agent: row.get(4)?,
                };
                Ok(UsageRow { of, counts: UsageCounts::of_values(counts?) })
            })?;
            rows.collect()
        })
    }

    fn spent(&self, from: Date, to: Date) -> Result<Vec<KeySpent>, StoreError> {
        let select = "SELECT key, sum(CASE WHEN day = ?2 THEN cost ELSE 0 END), sum(cost) FROM usage \
                      WHERE day BETWEEN ?1 AND ?2 GROUP BY key ORDER BY key";
        self.read("read usage", |reader| {
            let mut select = reader.prepare(select)?;
            let rows = select.query_map([from.to_string(), to.to_string()], |row| {
                Ok(KeySpent { key: row.get(0)?, day: row.get(1)?, all: row.get(2)? })
            })?;
            rows.collect()
        })
    }

    fn calls(&self, minute: i64) -> Result<Vec<KeyCalls>, StoreError> {
        self.read("read usage", |reader| {
            let mut select =
                reader.prepare("SELECT key, calls FROM usage_calls WHERE minute = ?1 ORDER BY key")?;
            let rows = select
                .query_map([minute], |row| Ok(KeyCalls { key: row.get(0)?, minute, calls: row.get(1)? }))?;
            rows.collect()
        })
    }
}
