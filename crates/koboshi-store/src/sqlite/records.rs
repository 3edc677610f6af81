//! Records in SQLite: merged inside the UPSERT, by the core's own function.
//!
//! `koboshi_merge` is registered on every connection that writes. A body that it cannot read makes it fail rather than
//! win or lose. A body that a newer program may have written then stays where it is; a damaged one moves to `quarantine`
//! with its bytes as they are, and the new record takes its place.

use jiff::Timestamp;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension, Row, Statement, Transaction, params};

use crate::error::StoreError;
use crate::record::{Record, RecordKind, Slot, may_be_replaced};
use crate::store::{MAX_BYTES_SET_ASIDE, MAX_SET_ASIDE, MergeResult, Named, StoreContents, Unreadable};

use super::errors::StoreResult;

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
const TRIM: &str = "
    DELETE FROM quarantine WHERE id IN (
      SELECT id FROM (
        SELECT id, row_number() OVER newest AS place, sum(length(CAST(body AS BLOB))) OVER newest AS bytes
        FROM quarantine WINDOW newest AS (ORDER BY id DESC))
      WHERE place > ?1 OR bytes > ?2)";
const SELECT_ASIDE: &str = "SELECT kind, key, node, why FROM quarantine ORDER BY id";
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
    let (known, new) = (read(one)?, read(two)?);
    let merged = known.merge(&new);
    // The same knowledge keeps its spelling, so that it does not count as a change.
    if merged == known { Ok(one.to_owned()) } else { merged.body().map_err(|error| error.to_string()) }
}

/// Merges all records. Where nothing is new nothing is written, so that other processes see no change.
pub(super) fn merge(
    transaction: &Transaction<'_>,
    place: &str,
    changes: &[Named],
) -> Result<MergeResult, StoreError> {
    let doing = "write state";
    let next: i64 = transaction
        .query_row("SELECT value + 1 FROM counter WHERE name = 'seq'", [], |row| row.get(0))
        .doing(place, doing)?;
    let mut upsert = transaction.prepare(UPSERT).doing(place, doing)?;
    let mut select = transaction.prepare(SELECT_ONE).doing(place, doing)?;
    let mut merged = MergeResult::default();
    let mut changed = false;
    for (slot, record) in changes.iter().filter(|(slot, _)| slot.is_shared()) {
        let body = record.body().doing(place, doing)?;
        let written = match put(&mut upsert, slot, &body, next) {
            Err(error @ rusqlite::Error::SqliteFailure(_, _)) => {
                let Some(obstacle) = obstacle(&mut select, slot).doing(place, doing)? else {
                    return Err(error).doing(place, doing);
                };
                let unreadable = Unreadable { slot: slot.to_string(), why: obstacle.why };
                if !obstacle.may_go {
                    merged.unreadable.push(unreadable);
                    continue;
                }
                set_aside(transaction, slot, &unreadable.why).doing(place, doing)?;
                merged.set_aside.push(unreadable);
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
    Ok(merged)
}

fn put(upsert: &mut Statement<'_>, slot: &Slot, body: &str, seq: i64) -> rusqlite::Result<Option<String>> {
    let (kind, key) = (slot.kind().name(), slot.key().to_string());
    let mut rows = upsert.query_map(params![kind, key, slot.node_name(), body, seq], |row| row.get(0))?;
    rows.next().transpose()
}

fn find(select: &mut Statement<'_>, slot: &Slot) -> rusqlite::Result<String> {
    select.query_row(params![slot.kind().name(), slot.key().to_string(), slot.node_name()], |row| row.get(0))
}

/// A body that cannot be read.
struct UnreadableBody {
    why: String,
    may_go: bool,
}

/// What is stored in this slot and cannot be read, if it cannot.
fn obstacle(select: &mut Statement<'_>, slot: &Slot) -> rusqlite::Result<Option<UnreadableBody>> {
    let unreadable = |row: &Row<'_>| {
        let body = row.get_ref(0)?.as_bytes().unwrap_or_default();
        let read = std::str::from_utf8(body)
            .map_err(|error| error.to_string())
            .and_then(|body| Record::read(slot.kind(), body).map(drop).map_err(|error| error.to_string()));
        Ok(read.err().map(|why| UnreadableBody { why, may_go: may_be_replaced(slot, body) }))
    };
    let found =
        select.query_row(params![slot.kind().name(), slot.key().to_string(), slot.node_name()], unreadable);
    found.optional().map(Option::flatten)
}

fn set_aside(transaction: &Transaction<'_>, slot: &Slot, why: &str) -> rusqlite::Result<()> {
    let (kind, key) = (slot.kind().name(), slot.key().to_string());
    transaction.execute(SET_ASIDE, params![kind, key, slot.node_name(), why])?;
    transaction.execute(REMOVE, params![kind, key, slot.node_name()])?;
    let bound = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    transaction.execute(TRIM, params![bound(MAX_SET_ASIDE), bound(MAX_BYTES_SET_ASIDE)])?;
    Ok(())
}

/// Forgets breakers that were seen last before then. Snapshots have times in RFC 3339; what cannot be read stays.
pub(super) fn forget_breakers(transaction: &Transaction<'_>, before: Timestamp) -> rusqlite::Result<usize> {
    transaction.execute(
        "DELETE FROM record WHERE kind = 'breaker' AND json_valid(body)
         AND julianday(body ->> '$.at') < julianday(?1)",
        [before.to_string()],
    )
}

/// The most facts that one call reads: other processes get the lock in between.
const SPENT_STEP: usize = 20_000;
const SELECT_FACTS: &str = "
    SELECT kind, key, node, body FROM record
    WHERE kind <> 'breaker' AND (kind, key) > (?1, ?2) ORDER BY kind, key LIMIT ?3";

/// Where a search through all facts goes on: after this kind and key.
pub(super) type FactPlace = (String, String);

/// Forgets facts that are spent, among those from this place on. Says how many, and where the next call goes on.
pub(super) fn forget_spent(
    transaction: &Transaction<'_>,
    (kind, key): &FactPlace,
    now: Timestamp,
) -> rusqlite::Result<(usize, FactPlace)> {
    let mut select = transaction.prepare(SELECT_FACTS)?;
    let step = i64::try_from(SPENT_STEP).unwrap_or(i64::MAX);
    let rows = select.query_map(params![kind, key, step], |row| {
        Ok(((row.get::<_, String>(0)?, row.get::<_, String>(1)?), read_row(row)))
    })?;
    let (mut spent, mut last, mut count) = (Vec::new(), FactPlace::default(), 0);
    for row in rows {
        let (place, fact) = row?;
        count += 1;
        spent.extend(fact.ok().filter(|(_, record)| record.is_spent(now)).map(|(slot, _)| slot));
        last = place;
    }
    let mut remove = transaction.prepare(REMOVE)?;
    for slot in &spent {
        remove.execute(params![slot.kind().name(), slot.key().to_string(), slot.node_name()])?;
    }
    Ok((spent.len(), if count < SPENT_STEP { FactPlace::default() } else { last }))
}

/// Everything, and what was set aside.
pub(super) fn load(connection: &Connection, place: &str) -> Result<StoreContents, StoreError> {
    let doing = "read state";
    let mut loaded = load_after(connection, place, -1)?;
    let mut select = connection.prepare(SELECT_ASIDE).doing(place, doing)?;
    let rows = select
        .query_map([], |row| {
            let why = format!("damaged, and kept aside: {}", row.get::<_, String>(3)?);
            Ok(Unreadable { slot: name(row), why })
        })
        .doing(place, doing)?;
    for row in rows {
        loaded.unreadable.push(row.doing(place, doing)?);
    }
    Ok(loaded)
}

/// What changed after this number of changes.
pub(super) fn load_after(
    connection: &Connection,
    place: &str,
    seq: i64,
) -> Result<StoreContents, StoreError> {
    let doing = "read state";
    let mut select = connection.prepare(SELECT).doing(place, doing)?;
    let rows = select.query_map([seq], |row| Ok(read_row(row))).doing(place, doing)?;
    let mut loaded = StoreContents::default();
    for row in rows {
        match row.doing(place, doing)? {
            Ok(named) if named.0.is_shared() => loaded.records.push(named),
            // Another program wrote it, and this one does not know the slot: skipped.
            Ok(_) => {}
            Err(unreadable) => loaded.unreadable.push(unreadable),
        }
    }
    Ok(loaded)
}

fn read_row(row: &Row<'_>) -> Result<Named, Unreadable> {
    let text = |column: usize| row.get::<_, String>(column);
    let read = || -> Result<Named, String> {
        let text_of = |error: rusqlite::Error| error.to_string();
        let (kind, key, node) =
            (text(0).map_err(text_of)?, text(1).map_err(text_of)?, text(2).map_err(text_of)?);
        let slot = Slot::from_parts(&kind, &key, &node).ok_or("it is no slot that this Koboshi knows")?;
        let record =
            Record::read(slot.kind(), &text(3).map_err(text_of)?).map_err(|error| error.to_string())?;
        Ok((slot, record))
    };
    read().map_err(|why| Unreadable { slot: name(row), why })
}

/// How a slot is written, even one that this program does not know.
fn name(row: &Row<'_>) -> String {
    let part = |column: usize| row.get::<_, String>(column).unwrap_or_else(|error| error.to_string());
    let (kind, key, node) = (part(0), part(1), part(2));
    match Slot::from_parts(&kind, &key, &node) {
        Some(slot) => slot.to_string(),
        None if node.is_empty() => format!("{kind} {key}"),
        None => format!("{kind} {node} {key}"),
    }
}
