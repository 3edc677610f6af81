//! Leases, cached answers and notes in SQLite.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::store::Lease;
use crate::times;

/// Whether a lease is held at `?1`: see `times::is_held`. `?2` is the correction that is no jump.
pub(super) const IS_HELD: &str = "(until > ?1 AND (length IS NULL OR until - ?1 <= length + ?2))";

/// An instant and the correction that is no jump, as [`IS_HELD`] wants them.
pub(super) fn instant(now: Timestamp) -> (i64, i64) {
    (now.as_millisecond(), millis(times::CORRECTION))
}

/// A length in the file's unit.
pub(super) fn millis(length: Duration) -> i64 {
    i64::try_from(times::millis(length)).unwrap_or(i64::MAX)
}

/// When a length ends, in the file's unit.
pub(super) fn until(now: Timestamp, ttl: Duration) -> i64 {
    times::after(now, ttl).as_millisecond()
}

pub(super) fn lease(
    transaction: &Transaction<'_>,
    name: &str,
    holder: &str,
    ttl: Duration,
    now: Timestamp,
) -> rusqlite::Result<Option<Lease>> {
    let (instant, correction) = instant(now);
    let held: Option<bool> = transaction
        .query_row(
            &format!("SELECT {IS_HELD} FROM lease WHERE name = ?3"),
            params![instant, correction, name],
            |row| row.get(0),
        )
        .optional()?;
    if held == Some(true) {
        return Ok(None);
    }
    let fence = next_fence(transaction, now)?;
    let kept = i64::try_from(fence).unwrap_or(i64::MAX);
    transaction.execute(
        "INSERT OR REPLACE INTO lease (name, holder, fence, until, length) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![name, holder, kept, until(now, ttl), millis(ttl)],
    )?;
    Ok(Some(Lease { name: name.to_owned(), fence, until: times::after(now, ttl) }))
}

/// A fence that was never given out.
pub(super) fn next_fence(transaction: &Transaction<'_>, now: Timestamp) -> rusqlite::Result<u64> {
    let last: i64 =
        transaction.query_row("SELECT value FROM counter WHERE name = 'fence'", [], |row| row.get(0))?;
    let fence = times::next_fence(u64::try_from(last).unwrap_or(0), now);
    let kept = i64::try_from(fence).unwrap_or(i64::MAX);
    transaction.execute("UPDATE counter SET value = ?1 WHERE name = 'fence'", [kept])?;
    Ok(fence)
}

pub(super) fn renew(
    connection: &Connection,
    lease: &Lease,
    ttl: Duration,
    now: Timestamp,
) -> rusqlite::Result<Option<Lease>> {
    let fence = i64::try_from(lease.fence).unwrap_or(i64::MAX);
    let (instant, correction) = instant(now);
    let renewed = connection.execute(
        &format!("UPDATE lease SET until = ?3, length = ?4 WHERE name = ?5 AND fence = ?6 AND {IS_HELD}"),
        params![instant, correction, until(now, ttl), millis(ttl), lease.name, fence],
    )?;
    Ok((renewed > 0).then(|| Lease { until: times::after(now, ttl), ..lease.clone() }))
}

pub(super) fn release(connection: &Connection, lease: &Lease, now: Timestamp) -> rusqlite::Result<bool> {
    let fence = i64::try_from(lease.fence).unwrap_or(i64::MAX);
    let (instant, correction) = instant(now);
    let was_held: Option<bool> = connection
        .query_row(
            &format!("DELETE FROM lease WHERE name = ?3 AND fence = ?4 RETURNING {IS_HELD}"),
            params![instant, correction, lease.name, fence],
            |row| row.get(0),
        )
        .optional()?;
    Ok(was_held == Some(true))
}

pub(super) fn cache_put(
    transaction: &Transaction<'_>,
    key: &str,
    body: &[u8],
    ttl: Duration,
    now: Timestamp,
    max: u64,
) -> rusqlite::Result<bool> {
    transaction.execute("DELETE FROM cache WHERE key = ?1", [key])?;
    let (size, max) = (i64::try_from(body.len()).unwrap_or(i64::MAX), i64::try_from(max).unwrap_or(i64::MAX));
    if size > max {
        return Ok(false);
    }
    transaction.execute("DELETE FROM cache WHERE until <= ?1", [now.as_millisecond()])?;
    let mut soonest = transaction
        .prepare("DELETE FROM cache WHERE key = (SELECT key FROM cache ORDER BY until, key LIMIT 1)")?;
    while bytes(transaction)?.saturating_add(size) > max {
        if soonest.execute([])? == 0 {
            break;
        }
    }
    transaction.execute(
        "INSERT INTO cache (key, body, until) VALUES (?1, ?2, ?3)",
        params![key, body, until(now, ttl)],
    )?;
    Ok(true)
}

fn bytes(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction.query_row("SELECT value FROM counter WHERE name = 'cache_bytes'", [], |row| row.get(0))
}

pub(super) fn cache_get(
    connection: &Connection,
    key: &str,
    now: Timestamp,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let select = "SELECT body FROM cache WHERE key = ?1 AND until > ?2";
    connection.query_row(select, params![key, now.as_millisecond()], |row| row.get(0)).optional()
}

pub(super) fn note_put(
    connection: &Connection,
    name: &str,
    body: &[u8],
    ttl: Duration,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO note (name, body, until) VALUES (?1, ?2, ?3)";
    connection.execute(insert, params![name, body, until(now, ttl)]).map(|_| ())
}

pub(super) fn note_get(
    connection: &Connection,
    name: &str,
    now: Timestamp,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let select = "SELECT body FROM note WHERE name = ?1 AND until > ?2";
    connection.query_row(select, params![name, now.as_millisecond()], |row| row.get(0)).optional()
}

pub(super) fn note_delete(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(connection.execute("DELETE FROM note WHERE name = ?1", [name])? > 0)
}

/// Forgets what has ended.
pub(super) fn prune(transaction: &Transaction<'_>, now: Timestamp) -> rusqlite::Result<usize> {
    let (now, correction) = instant(now);
    let leases = format!("DELETE FROM lease WHERE NOT {IS_HELD}");
    let mut gone = transaction.execute(&leases, params![now, correction])?;
    for table in ["cache", "note", "inbox"] {
        gone += transaction.execute(&format!("DELETE FROM {table} WHERE until <= ?1"), [now])?;
    }
    Ok(gone + super::sessions::prune(transaction, now)?)
}
