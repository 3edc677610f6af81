//! Sessions in Redis: a hash for the head, a sorted set for the events, one sorted set for all leases. Each change is one script.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use redis::Script;

use super::RedisStore;
use super::names::Names;
use crate::error::StoreError;
use crate::session::{
    Appended, INBOX_TTL, KnownPart, Listening, MAX_INBOX, NOBODY, NewsHandler, Ownership, SessionWrite,
    Sessions, StoredSession, Taken,
};
use crate::times;

/// The scripts.
pub(super) struct SessionScripts {
    take: Script,
    append: Script,
    read: Script,
    renew: Script,
    lost: Script,
    inbox: Script,
    inbox_send: Script,
    forget: Script,
}

impl SessionScripts {
    pub(super) fn new() -> Self {
        Self {
            take: Script::new(include_str!("lua/session_take.lua")),
            append: Script::new(include_str!("lua/session_append.lua")),
            read: Script::new(include_str!("lua/session_read.lua")),
            renew: Script::new(include_str!("lua/session_renew.lua")),
            lost: Script::new(include_str!("lua/session_lost.lua")),
            inbox: Script::new(include_str!("lua/inbox.lua")),
            inbox_send: Script::new(include_str!("lua/inbox_send.lua")),
            forget: Script::new(include_str!("lua/session_forget.lua")),
        }
    }
}

/// How long a write waits for a replica.
const CONFIRM_TIME: Duration = Duration::from_millis(500);

/// Whether a replica is connected to the server: Redis answers before its disk and its replicas have a write.
fn has_replica(connection: &mut redis::Connection) -> redis::RedisResult<bool> {
    let info: String = redis::cmd("INFO").arg("replication").query(connection)?;
    let online = info.lines().filter(|line| line.starts_with("slave") && line.contains("state=online"));
    Ok(online.count() > 0)
}

/// Waits until a replica has what was written on this connection.
fn confirmed(connection: &mut redis::Connection) -> redis::RedisResult<bool> {
    let replicas: u64 = redis::cmd("WAIT").arg(1).arg(times::millis(CONFIRM_TIME)).query(connection)?;
    Ok(replicas > 0)
}

/// What a script says of a session that was to be taken.
enum TakeReply {
    None,
    Held(String),
    Taken { fence: u64, was_lost: bool, was_restarted: bool },
    Forgotten,
}

impl RedisStore {
    fn names(&self) -> &Names {
        &self.shared.names
    }

    fn take_or_make(
        &self,
        id: &str,
        owner: &str,
        lease: Duration,
        is_new: bool,
    ) -> Result<TakeReply, StoreError> {
        let names = self.names();
        let mut call = self.sessions.take.prepare_invoke();
        call.key(names.session(id)).key(&names.fence).key(&names.owned);
        call.arg(owner).arg(times::millis(lease)).arg(id).arg(if is_new { "new" } else { "" });
        let reply: Vec<String> =
            self.shared.handle.run("take a session", |connection| call.invoke(connection))?;
        let is = |at: usize| reply.get(at).is_some_and(|word| word == "1");
        Ok(match (reply.first().map(String::as_str), reply.get(1)) {
            (Some("1"), Some(owner)) => TakeReply::Held(owner.clone()),
            (Some("2"), Some(fence)) => {
                TakeReply::Taken { fence: fence.parse().unwrap_or(0), was_lost: is(2), was_restarted: is(3) }
            }
            (Some("3"), _) => TakeReply::Forgotten,
            _ => TakeReply::None,
        })
    }
}

/// What the script says of a session: whether it was forgotten, its number, its epoch, its state, its owner, whether that one holds it, its events.
type ReadReply = (u8, u64, String, Option<Vec<u8>>, String, u8, Vec<Vec<u8>>);

/// An event as it is kept: its number, a space, its body.
fn event(row: &[u8]) -> Option<(u64, Vec<u8>)> {
    let space = row.iter().position(|byte| *byte == b' ')?;
    let seq = std::str::from_utf8(row.get(..space)?).ok()?.parse().ok()?;
    Some((seq, row.get(space + 1..)?.to_vec()))
}

impl Sessions for RedisStore {
    fn create(
        &self,
        id: &str,
        owner: &str,
        write: &SessionWrite,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let TakeReply::Taken { fence, .. } = self.take_or_make(id, owner, write.lease, true)? else {
            return Ok(None);
        };
        let first = SessionWrite { after: 0, ..write.clone() };
        let appended = self.append(id, fence, &first, now)?;
        Ok((appended == Appended::Written).then_some(fence))
    }

    fn take(
        &self,
        id: &str,
        owner: &str,
        known: KnownPart<'_>,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Taken, StoreError> {
        match self.take_or_make(id, owner, lease, false)? {
            TakeReply::None => Ok(Taken::Missing),
            TakeReply::Forgotten => Ok(Taken::Forgotten),
            TakeReply::Held(owner) => Ok(Taken::Held(owner)),
            // The fence is the caller's: no other process changes what is read here.
            TakeReply::Taken { fence, was_lost, was_restarted } => Ok(match self.read(id, known, now)? {
                Some(session) if session.is_forgotten => Taken::Forgotten,
                Some(session) => Taken::Owned { fence, session, was_lost, was_restarted },
                None => Taken::Missing,
            }),
        }
    }

    fn append(
        &self,
        id: &str,
        fence: u64,
        write: &SessionWrite,
        _now: Timestamp,
    ) -> Result<Appended, StoreError> {
        let names = self.names();
        let ownership = match write.ownership {
            Ownership::Kept => "kept",
            Ownership::GivenBack => "given back",
            Ownership::HandedOver => "handed over",
        };
        let mut call = self.sessions.append.prepare_invoke();
        call.key(names.session(id)).key(names.session_events(id)).key(&names.owned);
        call.key(&names.changed).key(&names.changes).key(&names.announced);
        call.arg(id).arg(fence).arg(write.after).arg(write.seq);
        call.arg(times::millis(write.lease)).arg(times::millis(write.ttl)).arg(write.keep_from);
        let head = write.head.as_ref().map(|head| (head.body.as_slice(), head.epoch.as_str()));
        let (head, epoch) = head.unwrap_or_default();
        call.arg(ownership).arg(head).arg(epoch);
        for (seq, body) in &write.events {
            call.arg(*seq).arg(body.as_slice());
        }
        let reply: u64 = self.shared.handle.run("write a session", |connection| {
            let reply = call.invoke(connection)?;
            if write.is_confirmed && has_replica(connection)? {
                // A replica that is slow is not waited for longer: the write stands either way.
                confirmed(connection)?;
            }
            Ok(reply)
        })?;
        Ok(match reply {
            0 => Appended::Missing,
            1 => Appended::Fenced,
            3 => Appended::Forgotten,
            _ => Appended::Written,
        })
    }

    fn can_confirm(&self) -> Result<bool, StoreError> {
        let name = self.names().note("replica");
        self.shared.handle.run("look for a replica", |connection| {
            if !has_replica(connection)? {
                return Ok(false);
            }
            // One that is connected may still be loading: only a write that it confirms says that it follows.
            redis::cmd("SET").arg(&name).arg("").arg("PX").arg(times::millis(INBOX_TTL)).exec(connection)?;
            confirmed(connection)
        })
    }

    fn renew(
        &self,
        held: &[(String, u64)],
        lease: Duration,
        _now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        let renew = |(id, fence): &(String, u64)| {
            let mut call = self.sessions.renew.prepare_invoke();
            call.key(self.names().session(id)).key(&self.names().owned);
            call.arg(id).arg(*fence).arg(times::millis(lease));
            let renewed: u64 =
                self.shared.handle.run("renew a session", |connection| call.invoke(connection))?;
            Ok(renewed > 0)
        };
        held.iter().map(renew).collect()
    }

    fn read(
        &self,
        id: &str,
        known: KnownPart<'_>,
        _now: Timestamp,
    ) -> Result<Option<StoredSession>, StoreError> {
        let names = self.names();
        let mut call = self.sessions.read.prepare_invoke();
        call.key(names.session(id)).key(names.session_events(id)).key(&names.owned);
        call.arg(id).arg(known.epoch).arg(known.seq);
        let reply: Option<ReadReply> =
            self.shared.handle.run("look up a session", |connection| call.invoke(connection))?;
        let Some((is_forgotten, seq, epoch, head, owner, is_held, rows)) = reply else { return Ok(None) };
        if is_forgotten > 0 {
            return Ok(Some(StoredSession { is_forgotten: true, ..StoredSession::default() }));
        }
        let events = rows.iter().filter_map(|row| event(row)).collect();
        let owner = Some(owner).filter(|owner| owner != NOBODY);
        let is_held = owner.is_some() && is_held > 0;
        Ok(Some(StoredSession { seq, epoch, head, events, owner, is_held, is_forgotten: false }))
    }

    fn orphans(&self, max: usize, _now: Timestamp) -> Result<Vec<String>, StoreError> {
        let mut call = self.sessions.lost.prepare_invoke();
        call.key(&self.names().owned).arg(max).arg(self.names().session(""));
        self.shared.handle.run("look for lost sessions", |connection| call.invoke(connection))
    }

    fn changed(&self, since: Option<u64>, _now: Timestamp) -> Result<(u64, Vec<String>), StoreError> {
        let names = self.names();
        let doing = "look for changed sessions";
        let mut get = redis::cmd("GET");
        get.arg(&names.changes);
        let mark: Option<u64> = self.shared.handle.run(doing, |connection| get.query(connection))?;
        let mark = mark.unwrap_or(0);
        let Some(since) = since.filter(|since| *since != mark) else { return Ok((mark, Vec::new())) };
        // A server that came back empty counts from its own beginning.
        let since = if since > mark { 0 } else { since };
        let mut range = redis::cmd("ZRANGEBYSCORE");
        range.arg(&names.changed).arg(format!("({since}")).arg("+inf");
        let changed = self.shared.handle.run(doing, |connection| range.query(connection))?;
        Ok((mark, changed))
    }

    fn forget(&self, id: &str, ttl: Duration, _now: Timestamp) -> Result<bool, StoreError> {
        let names = self.names();
        let mut call = self.sessions.forget.prepare_invoke();
        call.key(names.session(id)).key(names.session_events(id)).key(&names.owned);
        call.key(&names.changed).key(&names.changes).key(&names.announced);
        call.arg(id).arg(times::millis(ttl));
        let was_there: u64 =
            self.shared.handle.run("forget a session", |connection| call.invoke(connection))?;
        Ok(was_there > 0)
    }

    fn send(&self, to: &str, message: &[u8], _now: Timestamp) -> Result<(), StoreError> {
        let names = self.names();
        let mut call = self.sessions.inbox_send.prepare_invoke();
        call.key(names.inbox(to)).key(&names.announced);
        call.arg(message).arg(MAX_INBOX).arg(times::millis(INBOX_TTL)).arg(to);
        self.shared.handle.run("send to another process", |connection| call.invoke(connection))
    }

    fn receive(&self, inbox: &str, _now: Timestamp) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut call = self.sessions.inbox.prepare_invoke();
        call.key(self.names().inbox(inbox));
        self.shared.handle.run("empty the inbox", |connection| call.invoke(connection))
    }

    fn tell(&self, to: &str, message: &[u8]) -> Result<(), StoreError> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.names().told(to)).arg(message);
        self.shared.handle.run("tell another process", |connection| publish.exec(connection))
    }

    fn listen(&self, process: &str, heard: NewsHandler) -> Result<Option<Box<dyn Listening>>, StoreError> {
        super::listen::listen(Arc::clone(&self.shared), process, heard).map(Some)
    }
}
