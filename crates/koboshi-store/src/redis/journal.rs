//! The journal in Redis: a stream of JSON bodies, filtered here.
//!
//! The server numbers entries as they arrive; each entry states when it happened, which may be much earlier if
//! the server was away, but not later, as far as clocks agree. So times are compared here, by the times in the entries, and a
//! search through time ends by when entries arrived.

use jiff::{SignedDuration, Timestamp};
use redis::{Connection, RedisResult, Script};

use crate::error::StoreError;
use crate::journal::{Entry, Query, tidy, tidy_query};

use super::handle::RedisHandle;
use super::names::Names;

/// Entries in one exchange.
const PAGE: usize = 1000;

/// The most pages that are deleted at once.
const PAGES: usize = 20;

/// How far the clock of a node may be ahead of the server's before a search could miss its entries.
const AHEAD: SignedDuration = SignedDuration::from_mins(5);

type Page = Vec<(String, Vec<String>)>;

pub(super) struct Journal {
    append: Script,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self { append: Script::new(include_str!("lua/append.lua")) }
    }

    pub(super) fn append(
        &self,
        handle: &RedisHandle,
        names: &Names,
        max: Option<u64>,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        let doing = "write the journal";
        for page in entries.chunks(PAGE) {
            let mut call = self.append.prepare_invoke();
            call.key(&names.journal).arg(max.map_or_else(String::new, |max| max.to_string()));
            for entry in page.iter().map(tidy) {
                let body = serde_json::to_string(&entry).map_err(|error| StoreError::Failed {
                    place: handle.place().to_owned(),
                    doing,
                    why: error.to_string(),
                })?;
                call.arg(body);
            }
            handle.run(doing, |connection| call.invoke::<u64>(connection))?;
        }
        Ok(())
    }
}

pub(super) fn query(handle: &RedisHandle, names: &Names, query: &Query) -> Result<Vec<Entry>, StoreError> {
    let query = &tidy_query(query);
    let mut found: Vec<Entry> = Vec::new();
    let mut end = Some("+".to_owned()).filter(|_| query.limit > 0);
    while let Some(from) = end.take() {
        let page = handle.run("read the journal", |connection| back_from(connection, names, &from))?;
        let Some((oldest, _)) = page.last() else { break };
        let entries: Vec<Entry> = page.iter().filter_map(|(_, fields)| read(fields)).collect();
        let ahead = entries.iter().map(|entry| entry.at).max();
        found.extend(entries.into_iter().filter(|entry| query.matches(entry)));
        // The newest are kept; of those that happened at once, what arrived last comes first.
        found.sort_by_key(|entry| std::cmp::Reverse(entry.at));
        found.truncate(query.limit);
        let earliest = found.last().filter(|_| found.len() == query.limit).map(|entry| entry.at);
        let wanted = earliest.max(query.from);
        // What arrived before this page happened before that, or is no later than what this page holds.
        let latest_left = arrived(oldest).max(ahead);
        if wanted.zip(latest_left).is_some_and(|(wanted, latest)| latest < wanted) {
            break;
        }
        end = before(oldest);
    }
    found.reverse();
    Ok(found)
}

/// The latest instant that an entry with this number can have.
fn arrived(id: &str) -> Option<Timestamp> {
    let millis = id.split_once('-')?.0.parse().ok()?;
    Timestamp::from_millisecond(millis).ok()?.checked_add(AHEAD).ok()
}

/// A page of entries, newest first.
fn back_from(connection: &mut Connection, names: &Names, from: &str) -> RedisResult<Page> {
    redis::cmd("XREVRANGE").arg(&names.journal).arg(from).arg("-").arg("COUNT").arg(PAGE).query(connection)
}

/// The number before this one; servers older than 6.2 cannot be asked for "before".
fn before(id: &str) -> Option<String> {
    let (millis, seq) = id.split_once('-')?;
    let (millis, seq): (u64, u64) = (millis.parse().ok()?, seq.parse().ok()?);
    match (millis, seq) {
        (0, 0) => None,
        (_, 0) => Some(format!("{}-{}", millis - 1, u64::MAX)),
        _ => Some(format!("{millis}-{}", seq - 1)),
    }
}

/// An entry; none if a newer program wrote something that is unknown here. It stays in the stream.
fn read(fields: &[String]) -> Option<Entry> {
    let [_, body] = fields else { return None };
    serde_json::from_str(body).ok()
}

/// Deletes some entries that are too old, and all that are too many. Returns how many were deleted.
pub(super) fn prune(
    handle: &RedisHandle,
    names: &Names,
    old: Timestamp,
    max: u64,
) -> Result<u64, StoreError> {
    let doing = "forget what is old";
    let mut gone = 0;
    for _ in 0..PAGES {
        let page: Page = handle.run(doing, |connection| {
            redis::cmd("XRANGE")
                .arg(&names.journal)
                .arg("-")
                .arg("+")
                .arg("COUNT")
                .arg(PAGE)
                .query(connection)
        })?;
        let is_old = |fields: &[String]| read(fields).is_some_and(|entry| entry.at < old);
        let ids: Vec<&str> =
            page.iter().filter(|(_, fields)| is_old(fields)).map(|(id, _)| id.as_str()).collect();
        if ids.is_empty() {
            break;
        }
        let deleted: u64 = handle
            .run(doing, |connection| redis::cmd("XDEL").arg(&names.journal).arg(&ids).query(connection))?;
        gone += deleted;
        if deleted == 0 {
            break;
        }
    }
    let trimmed: u64 = handle.run(doing, |connection| {
        redis::cmd("XTRIM")
            .arg(&names.journal)
            .arg("MAXLEN")
            .arg(max.min(i64::MAX.cast_unsigned()))
            .query(connection)
    })?;
    Ok(gone + trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_entries_are_counted_down() {
        assert_eq!(before("5-3").as_deref(), Some("5-2"));
        assert_eq!(before("5-0").as_deref(), Some("4-18446744073709551615"));
        assert_eq!(before("0-0"), None);
        assert_eq!(before("nonsense"), None);
    }
}
