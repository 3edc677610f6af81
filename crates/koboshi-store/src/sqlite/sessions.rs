//! Sessions in SQLite: every call is one transaction.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::SqliteStore;
use super::expiring::{IS_HELD, instant, millis, next_fence, until};
use crate::error::StoreError;
use crate::session::{
    Appended, INBOX_TTL, KnownPart, MAX_INBOX, NOBODY, Ownership, SessionWrite, Sessions, StoredSession,
    Taken,
};

/// The fence of a session that was forgotten: no owner has it.
const FORGOTTEN: i64 = 0;

/// A number as the file keeps it.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A session without its events and its state.
fn look_up(connection: &Connection, id: &str, now: Timestamp) -> rusqlite::Result<Option<StoredSession>> {
    let (instant, correction) = instant(now);
    let select = format!(
        "SELECT seq, epoch, owner, {IS_HELD}, fence = {FORGOTTEN} FROM session WHERE id = ?3 AND expires > ?1"
    );
    let found = connection.prepare(&select)?.query_row(params![instant, correction, id], |row| {
        let owner = row.get::<_, Option<String>>(2)?.filter(|owner| owner != NOBODY);
        let is_held = row.get::<_, bool>(3)? && owner.is_some();
        let (seq, epoch, is_forgotten) = (unsigned(row.get(0)?), row.get(1)?, row.get(4)?);
        Ok(StoredSession { seq, epoch, owner, is_held, is_forgotten, ..StoredSession::default() })
    });
    found.optional()
}

fn events_after(connection: &Connection, id: &str, after: i64) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let select = "SELECT seq, body FROM session_event WHERE session = ?1 AND seq > ?2 ORDER BY seq";
    let mut events = connection.prepare(select)?;
    let rows = events.query_map(params![id, after], |row| Ok((unsigned(row.get(0)?), row.get(1)?)))?;
    rows.collect()
}

fn read(
    connection: &Connection,
    id: &str,
    known: KnownPart<'_>,
    now: Timestamp,
) -> rusqlite::Result<Option<StoredSession>> {
    let Some(mut session) = look_up(connection, id, now)? else { return Ok(None) };
    if session.is_forgotten {
        return Ok(Some(session));
    }
    if known.is_of(&session.epoch) {
        if session.seq > known.seq {
            session.events = events_after(connection, id, number(known.seq))?;
        }
        let first = session.events.first().map(|(seq, _)| *seq);
        if session.seq <= known.seq || first == Some(known.seq.saturating_add(1)) {
            return Ok(Some(session));
        }
    }
    let select = "SELECT body FROM session_head WHERE session = ?1";
    let head = connection.prepare(select)?.query_row([id], |row| row.get(0)).optional()?;
    session.head = Some(head.unwrap_or_default());
    session.events = events_after(connection, id, -1)?;
    Ok(Some(session))
}

fn write(
    transaction: &Transaction<'_>,
    id: &str,
    write: &SessionWrite,
    now: Timestamp,
) -> rusqlite::Result<()> {
    count_change(transaction)?;
    let update = "UPDATE session SET changed = (SELECT value FROM counter WHERE name = 'session_changes'), seq = ?2, epoch = coalesce(?3, epoch), until = ?4, length = ?5, expires = ?6, \
                  owner = CASE ?7 WHEN 1 THEN NULL WHEN 2 THEN ?8 ELSE owner END WHERE id = ?1";
    let (then, lease) = match write.ownership {
        Ownership::Kept => (0, write.lease),
        Ownership::GivenBack => (1, write.lease),
        Ownership::HandedOver => (2, Duration::ZERO),
    };
    transaction.prepare(update)?.execute(params![
        id,
        number(write.seq),
        write.head.as_ref().map(|head| &head.epoch),
        until(now, lease),
        millis(lease),
        until(now, write.ttl),
        then,
        NOBODY,
    ])?;
    if let Some(head) = &write.head {
        transaction
            .prepare("INSERT OR REPLACE INTO session_head (session, body) VALUES (?1, ?2)")?
            .execute(params![id, head.body])?;
    }
    let mut insert = transaction
        .prepare("INSERT OR REPLACE INTO session_event (session, seq, body) VALUES (?1, ?2, ?3)")?;
    for (seq, body) in &write.events {
        insert.execute(params![id, number(*seq), body])?;
    }
    transaction
        .prepare("DELETE FROM session_event WHERE session = ?1 AND seq < ?2")?
        .execute(params![id, number(write.keep_from)])?;
    Ok(())
}

fn count_change(transaction: &Transaction<'_>) -> rusqlite::Result<usize> {
    transaction.execute("UPDATE counter SET value = value + 1 WHERE name = 'session_changes'", [])
}

fn forget(transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<bool> {
    transaction.execute("DELETE FROM session_event WHERE session = ?1", [id])?;
    transaction.execute("DELETE FROM session_head WHERE session = ?1", [id])?;
    Ok(transaction.execute("DELETE FROM session WHERE id = ?1", [id])? > 0)
}

/// Forgets sessions that were not used for too long.
pub(super) fn prune(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<usize> {
    for table in ["session_event", "session_head"] {
        let delete =
            format!("DELETE FROM {table} WHERE session IN (SELECT id FROM session WHERE expires <= ?1)");
        transaction.execute(&delete, [now])?;
    }
    transaction.execute("DELETE FROM session WHERE expires <= ?1", [now])
}

impl Sessions for SqliteStore {
    fn create(
        &self,
        id: &str,
        owner: &str,
        new: &SessionWrite,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        self.write_at("make a session", now, |transaction, now| {
            if look_up(transaction, id, now)?.is_some() {
                return Ok(None);
            }
            forget(transaction, id)?;
            let fence = next_fence(transaction, now)?;
            transaction.execute(
                "INSERT INTO session (id, fence, owner, until, length, seq, expires) VALUES (?1, ?2, ?3, 0, 0, 0, 0)",
                params![id, number(fence), owner],
            )?;
            write(transaction, id, new, now)?;
            Ok(Some(fence))
        })
    }

    fn take(
        &self,
        id: &str,
        owner: &str,
        known: KnownPart<'_>,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Taken, StoreError> {
        self.write_at("take a session", now, |transaction, now| {
            let Some(session) = read(transaction, id, known, now)? else { return Ok(Taken::Missing) };
            if session.is_forgotten {
                return Ok(Taken::Forgotten);
            }
            if let Some(owner) = session.owner.clone().filter(|_| session.is_held) {
                return Ok(Taken::Held(owner));
            }
            let fence = next_fence(transaction, now)?;
            transaction.execute(
                "UPDATE session SET fence = ?2, owner = ?3, until = ?4, length = ?5 WHERE id = ?1",
                params![id, number(fence), owner, until(now, lease), millis(lease)],
            )?;
            let was_lost = session.owner.is_some();
            Ok(Taken::Owned { fence, session, was_lost, was_restarted: false })
        })
    }

    fn append(
        &self,
        id: &str,
        fence: u64,
        new: &SessionWrite,
        now: Timestamp,
    ) -> Result<Appended, StoreError> {
        self.write_at("write a session", now, |transaction, now| {
            let select = "SELECT fence, seq, owner IS NOT NULL AND owner <> '' FROM session WHERE id = ?1 AND expires > ?2";
            let found = transaction
                .prepare(select)?
                .query_row(params![id, now.as_millisecond()], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
                })
                .optional()?;
            match found {
                None => Ok(Appended::Missing),
                Some((FORGOTTEN, ..)) => Ok(Appended::Forgotten),
                Some(found) if found == (number(fence), number(new.after), true) => {
                    write(transaction, id, new, now)?;
                    Ok(Appended::Written)
                }
                Some(_) => Ok(Appended::Fenced),
            }
        })
    }

    fn renew(
        &self,
        held: &[(String, u64)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        self.write_at("renew sessions", now, |transaction, now| {
            let update =
                "UPDATE session SET until = ?3, length = ?4 WHERE id = ?1 AND fence = ?2 AND owner <> ''";
            let mut update = transaction.prepare(update)?;
            let renewed = held.iter().map(|(id, fence)| {
                let changed =
                    update.execute(params![id, number(*fence), until(now, lease), millis(lease)])?;
                Ok(changed > 0)
            });
            renewed.collect()
        })
    }

    fn read(
        &self,
        id: &str,
        known: KnownPart<'_>,
        now: Timestamp,
    ) -> Result<Option<StoredSession>, StoreError> {
        self.read("look up a session", |reader| read(reader, id, known, now))
    }

    fn orphans(&self, max: usize, now: Timestamp) -> Result<Vec<String>, StoreError> {
        self.read("look for lost sessions", |reader| {
            let (instant, correction) = instant(now);
            let select = format!(
                "SELECT id FROM session WHERE owner IS NOT NULL AND (owner = '' OR NOT {IS_HELD}) AND expires > ?1 LIMIT ?3"
            );
            let mut lost = reader.prepare(&select)?;
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            let rows = lost.query_map(params![instant, correction, max], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn changed(&self, since: Option<u64>, _now: Timestamp) -> Result<(u64, Vec<String>), StoreError> {
        self.read("look for changed sessions", |reader| {
            let select = "SELECT value FROM counter WHERE name = 'session_changes'";
            let mark = unsigned(reader.query_row(select, [], |row| row.get(0))?);
            let Some(since) = since.filter(|since| *since != mark) else { return Ok((mark, Vec::new())) };
            // A file that was replaced counts from its own beginning.
            let since = if since > mark { 0 } else { since };
            let mut changed = reader.prepare("SELECT id FROM session WHERE changed > ?1")?;
            let rows = changed.query_map([number(since)], |row| row.get(0))?;
            Ok((mark, rows.collect::<rusqlite::Result<_>>()?))
        })
    }

    fn forget(&self, id: &str, ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        self.write_at("forget a session", now, |transaction, now| {
            let was_there = look_up(transaction, id, now)?.is_some_and(|known| !known.is_forgotten);
            forget(transaction, id)?;
            count_change(transaction)?;
            transaction.execute(
                "INSERT INTO session (id, fence, owner, until, length, seq, expires, changed) \
                 SELECT ?1, ?2, NULL, 0, 0, 0, ?3, value FROM counter WHERE name = 'session_changes'",
                params![id, FORGOTTEN, until(now, ttl)],
            )?;
            Ok(was_there)
        })
    }

    fn send(&self, to: &str, message: &[u8], now: Timestamp) -> Result<(), StoreError> {
        self.write("send to another process", |transaction| {
            transaction.execute(
                "INSERT INTO inbox (owner, body, until) VALUES (?1, ?2, ?3)",
                params![to, message, until(now, INBOX_TTL)],
            )?;
            let oldest = "DELETE FROM inbox WHERE owner = ?1 AND id <= \
                          (SELECT id FROM inbox WHERE owner = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
            transaction.execute(oldest, params![to, i64::try_from(MAX_INBOX).unwrap_or(i64::MAX)])?;
            Ok(())
        })
    }

    fn receive(&self, inbox: &str, now: Timestamp) -> Result<Vec<Vec<u8>>, StoreError> {
        let waits: bool = self.read("look into the inbox", |reader| {
            let select = "SELECT EXISTS (SELECT 1 FROM inbox WHERE owner = ?1)";
            reader.prepare(select)?.query_row([inbox], |row| row.get(0))
        })?;
        // A writer's lock is taken only where there is something to take out.
        if !waits {
            return Ok(Vec::new());
        }
        self.write("empty the inbox", |transaction| {
            let taken = "DELETE FROM inbox WHERE owner = ?1 RETURNING id, body, until > ?2";
            let mut taken = transaction.prepare(taken)?;
            let rows = taken.query_map(params![inbox, now.as_millisecond()], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, bool>(2)?))
            })?;
            let mut messages = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            messages.sort_by_key(|(id, ..)| *id);
            Ok(messages.into_iter().filter(|(.., fresh)| *fresh).map(|(_, body, _)| body).collect())
        })
    }
}
