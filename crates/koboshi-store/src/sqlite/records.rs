//! Records in SQLite: merged inside the UPSERT, by the core's own function.
//!
//! `koboshi_merge` is registered on every connection that writes. A body that it cannot read makes it fail rather than
//! win or lose: the row then moves to `quarantine` with its bytes as they are, and the new record takes its place.

use jiff::Timestamp;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Row, Statement, Transaction, params};

use crate::error::StoreError;
use crate::record::{Record, RecordKind, Slot};
use crate::store::{Loaded, Merged, Named, Unreadable};

use super::trouble::Doing;

const UPSERT: &str = "
    INSERT INTO record (kind, key, node, body, seq) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (kind, key, node) DO UPDATE
      SET body = koboshi_merge(kind, body, excluded.body), seq = excluded.seq
      WHERE koboshi_merge(kind, body, excluded.body) IS NOT body
    RETURNING body";
const SELECT_ONE: &str = "SELECT body FROM record WHERE kind = ?1 AND key = ?2 AND node = ?3";
const SELECT: &str = "SELECT kind, key, node, body FROM record WHERE seq > ?1 ORDER BY seq";
const SET_ASIDE: &str = "
    INSERT INTO quarantine (kind, key, node, body, why)
    SELECT kind, key, node, body, ?4 FROM record WHERE kind = ?1 AND key = ?2 AND node = ?3";
const REMOVE: &str = "DELETE FROM record WHERE kind = ?1 AND key = ?2 AND node = ?3";

/// Teaches a connection the core's merge.
pub(super) fn teach(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("koboshi_merge", 3, flags, |context| {
        let (kind, one, two): (String, String, String) = (context.get(0)?, context.get(1)?, context.get(2)?);
        merge_bodies(&kind, &one, &two).map_err(|error| rusqlite::Error::UserFunctionError(error.into()))
    })
}

fn merge_bodies(kind: &str, one: &str, two: &str) -> Result<String, String> {
    let kind = RecordKind::from_name(kind).ok_or_else(|| format!("unknown kind {kind}"))?;
    let read = |body: &str| Record::read(kind, body).map_err(|error| error.to_string());
    let (known, told) = (read(one)?, read(two)?);
    let merged = known.merge(&told);
    // The same knowledge keeps its spelling, so that it does not count as a change.
    if merged == known { Ok(one.to_owned()) } else { merged.body().map_err(|error| error.to_string()) }
}

/// Merges all records. Says whether anything changed, besides what came of it.
pub(super) fn merge(
    transaction: &Transaction<'_>,
    place: &str,
    changes: &[Named],
) -> Result<(bool, Merged), StoreError> {
    let doing = "write state";
    let next: i64 = transaction
        .query_row("SELECT value + 1 FROM counter WHERE name = 'seq'", [], |row| row.get(0))
        .doing(place, doing)?;
    let mut upsert = transaction.prepare(UPSERT).doing(place, doing)?;
    let mut select = transaction.prepare(SELECT_ONE).doing(place, doing)?;
    let mut merged = Merged::default();
    let mut changed = false;
    for (slot, record) in changes.iter().filter(|(slot, _)| slot.is_shared()) {
        let body = record.body().doing(place, doing)?;
        let written = match put(&mut upsert, slot, &body, next) {
            Err(rusqlite::Error::SqliteFailure(_, _)) if unreadable(&mut select, slot).is_some() => {
                let why = unreadable(&mut select, slot).unwrap_or_default();
                set_aside(transaction, slot, &why).doing(place, doing)?;
                merged.unreadable.push(Unreadable { slot: slot.to_string(), why });
                put(&mut upsert, slot, &body, next)
            }
            written => written,
        };
        let written = written.doing(place, doing)?;
        changed |= written.is_some();
        let now = match written {
            Some(body) => body,
            None => find(&mut select, slot).doing(place, doing)?,
        };
        let now = Record::read(slot.kind(), &now).doing(place, doing)?;
        if now != *record {
            merged.beyond.push((slot.clone(), now));
        }
    }
    if changed {
        transaction
            .execute("UPDATE counter SET value = ?1 WHERE name = 'seq'", [next])
            .doing(place, doing)?;
    }
    Ok((changed, merged))
}

fn put(upsert: &mut Statement<'_>, slot: &Slot, body: &str, seq: i64) -> rusqlite::Result<Option<String>> {
    let (kind, key) = (slot.kind().name(), slot.key().to_string());
    let mut rows = upsert.query_map(params![kind, key, slot.node_name(), body, seq], |row| row.get(0))?;
    rows.next().transpose()
}

fn find(select: &mut Statement<'_>, slot: &Slot) -> rusqlite::Result<String> {
    select.query_row(params![slot.kind().name(), slot.key().to_string(), slot.node_name()], |row| row.get(0))
}

/// Why what is stored in this slot cannot be read, if it cannot.
fn unreadable(select: &mut Statement<'_>, slot: &Slot) -> Option<String> {
    match find(select, slot) {
        Ok(body) => Record::read(slot.kind(), &body).err().map(|error| error.to_string()),
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        Err(error) => Some(error.to_string()),
    }
}

fn set_aside(transaction: &Transaction<'_>, slot: &Slot, why: &str) -> rusqlite::Result<()> {
    let (kind, key) = (slot.kind().name(), slot.key().to_string());
    transaction.execute(SET_ASIDE, params![kind, key, slot.node_name(), why])?;
    transaction.execute(REMOVE, params![kind, key, slot.node_name()])?;
    Ok(())
}

/// Forgets breakers that were seen last before then. Snapshots speak RFC 3339; what cannot be read stays.
pub(super) fn forget_breakers(transaction: &Transaction<'_>, before: Timestamp) -> rusqlite::Result<usize> {
    transaction.execute(
        "DELETE FROM record WHERE kind = 'breaker' AND json_valid(body)
         AND julianday(body ->> '$.at') < julianday(?1)",
        [before.to_string()],
    )
}

/// What changed after this number of changes.
pub(super) fn load_after(connection: &Connection, place: &str, seq: i64) -> Result<Loaded, StoreError> {
    let doing = "read state";
    let mut select = connection.prepare(SELECT).doing(place, doing)?;
    let rows = select.query_map([seq], |row| Ok(read_row(row))).doing(place, doing)?;
    let mut loaded = Loaded::default();
    for row in rows {
        match row.doing(place, doing)? {
            Ok(named) if named.0.is_shared() => loaded.records.push(named),
            // Not ours to know; an older or another program put it there.
            Ok(_) => {}
            Err(unreadable) => loaded.unreadable.push(unreadable),
        }
    }
    Ok(loaded)
}

fn read_row(row: &Row<'_>) -> Result<Named, Unreadable> {
    let text = |column: usize| row.get::<_, String>(column);
    let name = || {
        let part = |column: usize| text(column).unwrap_or_else(|error| error.to_string());
        format!("{} {} {}", part(0), part(2), part(1))
    };
    let read = || -> Result<Named, String> {
        let said = |error: rusqlite::Error| error.to_string();
        let (kind, key, node) = (text(0).map_err(said)?, text(1).map_err(said)?, text(2).map_err(said)?);
        let slot = Slot::from_parts(&kind, &key, &node).ok_or("it is no slot that this Koboshi knows")?;
        let record = Record::read(slot.kind(), &text(3).map_err(said)?).map_err(|error| error.to_string())?;
        Ok((slot, record))
    };
    read().map_err(|why| Unreadable { slot: name(), why })
}
