//! The journal in SQLite: one row per entry, with columns that people can ask for.

use std::borrow::Cow;

use jiff::Timestamp;
use koboshi::key::ScopeLevel;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};

use crate::journal::{Entry, EntryKind, Query, tidy, tidy_query};
use crate::times;

const INSERT: &str = "
    INSERT INTO journal (at_us, node, what, kind, key, agent, text, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const COLUMNS: &str = "SELECT at_us, node, what, kind, key, agent, text, data FROM journal";

/// The most rows that are deleted at once: more than arrive between two rounds of a busy ledger, few enough that other writers do not wait long.
const CHUNK: i64 = 20_000;

pub(super) fn append(transaction: &Transaction<'_>, entries: &[Entry]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(INSERT)?;
    for entry in entries.iter().map(tidy) {
        insert.execute(params![
            entry.at.as_microsecond(),
            entry.node.name(),
            entry.what.name(),
            entry.kind,
            entry.key.map(|key| key.to_string()),
            entry.agent,
            entry.text,
            entry.data.map(|data| data.to_string()),
        ])?;
    }
    Ok(())
}

pub(super) fn query(connection: &Connection, query: &Query) -> rusqlite::Result<Vec<Entry>> {
    let query = tidy_query(query);
    let mut wanted: Vec<&str> = Vec::new();
    let mut values: Vec<Sql> = Vec::new();
    let mut want = |clause: &'static str, value: Option<Sql>| {
        if let Some(value) = value {
            wanted.push(clause);
            values.push(value);
        }
    };
    want("at_us >= ?", query.from.map(|from| ceil_micros(from).into()));
    want("at_us < ?", query.to.map(|to| ceil_micros(to).into()));
    want("what = ?", query.what.map(|what| what.name().to_owned().into()));
    want("kind = ?", query.kind.map(Into::into));
    if let Some(agent) = query.agent {
        // A name without a project stands for all of its projects: the names that begin with it and a `/`.
        wanted.push("(agent = ? OR (agent >= ? AND agent < ?))");
        values.extend([agent.clone().into(), format!("{agent}/").into(), format!("{agent}0").into()]);
    }
    if let Some(key) = &query.key {
        // As `ScopeKey::covers`: the names that begin with this target's and a `#`.
        let (exact, from, to) = (key.to_string(), format!("{key}#"), format!("{key}$"));
        if key.level() == ScopeLevel::Target {
            wanted.push("(key = ? OR (key >= ? AND key < ?))");
            values.extend([exact.into(), from.into(), to.into()]);
        } else {
            wanted.push("key = ?");
            values.push(exact.into());
        }
    }
    values.push(i64::try_from(query.limit).unwrap_or(i64::MAX).into());
    let filter = if wanted.is_empty() { String::new() } else { format!(" WHERE {}", wanted.join(" AND ")) };
    let mut select =
        connection.prepare(&format!("{COLUMNS}{filter} ORDER BY at_us DESC, id DESC LIMIT ?"))?;
    let rows = select.query_map(params_from_iter(values), |row| Ok(read(row)))?;
    let mut found = Vec::new();
    for row in rows {
        // A row of a newer program about something unknown here stays in the file and is passed over.
        if let Ok(entry) = row? {
            found.push(entry);
        }
    }
    found.reverse();
    Ok(found)
}

/// The first whole microsecond at or after an instant.
fn ceil_micros(at: Timestamp) -> i64 {
    let micros = at.as_microsecond();
    if times::from_micros(micros) < at { micros.saturating_add(1) } else { micros }
}

fn read(row: &Row<'_>) -> Result<Entry, Box<dyn std::error::Error>> {
    let what: String = row.get(2)?;
    let key: Option<String> = row.get(4)?;
    let data: Option<String> = row.get(7)?;
    Ok(Entry {
        at: times::from_micros(row.get(0)?),
        node: row.get::<_, String>(1)?.parse()?,
        what: EntryKind::from_name(&what).ok_or("unknown")?,
        kind: row.get::<_, Option<String>>(3)?.map(Cow::Owned),
        key: key.map(|key| key.parse()).transpose()?,
        agent: row.get(5)?,
        text: row.get(6)?,
        data: data.map(|data| serde_json::from_str(&data)).transpose()?,
    })
}

/// Deletes entries that are too old or too many, up to a chunk of each. Returns how many were deleted.
pub(super) fn prune(transaction: &Transaction<'_>, before: Timestamp, max: u64) -> rusqlite::Result<usize> {
    let old = transaction.execute(
        "DELETE FROM journal WHERE id IN (SELECT id FROM journal WHERE at_us < ?1 ORDER BY at_us LIMIT ?2)",
        params![ceil_micros(before), CHUNK],
    )?;
    // By number, not by count: to count a long journal takes long.
    let last: i64 = transaction.query_row("SELECT ifnull(max(id), 0) FROM journal", [], |row| row.get(0))?;
    let first_kept = last.saturating_sub(i64::try_from(max).unwrap_or(i64::MAX));
    let many = transaction.execute(
        "DELETE FROM journal WHERE id IN (SELECT id FROM journal WHERE id <= ?1 ORDER BY id LIMIT ?2)",
        params![first_kept, CHUNK],
    )?;
    Ok(old + many)
}
