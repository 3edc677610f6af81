//! Sessions in memory.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::MemoryStore;
use crate::error::StoreError;
use crate::session::{
    Appended, INBOX_TTL, KnownPart, MAX_INBOX, NOBODY, Ownership, SessionWrite, Sessions, StoredSession,
    Taken,
};
use crate::times;

/// Sessions and inboxes.
#[derive(Default)]
pub(super) struct SessionTable {
    sessions: BTreeMap<String, SessionRecord>,
    changes: u64,
    inboxes: BTreeMap<String, VecDeque<(Vec<u8>, Timestamp)>>,
}

struct SessionRecord {
    fence: u64,
    owner: Option<String>,
    until: Timestamp,
    length: Duration,
    seq: u64,
    epoch: String,
    head: Vec<u8>,
    events: BTreeMap<u64, Vec<u8>>,
    expires: Timestamp,
    changed: u64,
    is_forgotten: bool,
}

impl SessionRecord {
    fn new(fence: u64, owner: Option<&str>, changed: u64, now: Timestamp) -> Self {
        Self {
            fence,
            owner: owner.map(str::to_owned),
            until: now,
            length: Duration::ZERO,
            seq: 0,
            epoch: String::new(),
            head: Vec::new(),
            events: BTreeMap::new(),
            expires: now,
            changed,
            is_forgotten: false,
        }
    }

    fn is_held(&self, now: Timestamp) -> bool {
        self.has_owner() && times::is_held(self.until, self.length, now)
    }

    fn has_owner(&self) -> bool {
        self.owner.as_deref().is_some_and(|owner| owner != NOBODY)
    }

    fn shown(&self, known: KnownPart<'_>, now: Timestamp) -> StoredSession {
        let next = known.seq.saturating_add(1);
        let goes_on = known.is_of(&self.epoch) && (self.seq <= known.seq || self.events.contains_key(&next));
        let events = self.events.range(if goes_on { next } else { 0 }..);
        StoredSession {
            seq: self.seq,
            epoch: self.epoch.clone(),
            head: (!goes_on && !self.is_forgotten).then(|| self.head.clone()),
            events: events.map(|(seq, body)| (*seq, body.clone())).collect(),
            owner: self.owner.clone().filter(|_| self.has_owner()),
            is_held: self.is_held(now),
            is_forgotten: self.is_forgotten,
        }
    }

    fn hold(&mut self, lease: Duration, now: Timestamp) {
        self.until = times::after(now, lease);
        self.length = lease;
    }

    fn write(&mut self, write: &SessionWrite, now: Timestamp) {
        self.seq = write.seq;
        if let Some(head) = &write.head {
            self.epoch.clone_from(&head.epoch);
            self.head.clone_from(&head.body);
        }
        self.events.extend(write.events.iter().cloned());
        self.events = self.events.split_off(&write.keep_from);
        self.expires = times::after(now, write.ttl);
        self.hold(write.lease, now);
        match write.ownership {
            Ownership::Kept => {}
            Ownership::GivenBack => self.owner = None,
            Ownership::HandedOver => {
                self.owner = Some(NOBODY.to_owned());
                self.hold(Duration::ZERO, now);
            }
        }
    }
}

impl SessionTable {
    /// Forgets what has ended; says how many.
    pub(super) fn prune(&mut self, now: Timestamp) -> usize {
        let before = self.sessions.len();
        self.sessions.retain(|_, kept| kept.expires > now);
        self.inboxes.retain(|_, inbox| {
            inbox.retain(|(_, until)| *until > now);
            !inbox.is_empty()
        });
        before - self.sessions.len()
    }

    fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    fn find(&mut self, id: &str, now: Timestamp) -> Option<&mut SessionRecord> {
        self.sessions.get_mut(id).filter(|kept| kept.expires > now)
    }
}

impl Sessions for MemoryStore {
    fn create(
        &self,
        id: &str,
        owner: &str,
        write: &SessionWrite,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let mut inner = self.lock();
        if inner.sessions.find(id, now).is_some() {
            return Ok(None);
        }
        let fence = inner.next_fence(now);
        let mut kept = SessionRecord::new(fence, Some(owner), inner.sessions.next_change(), now);
        kept.write(write, now);
        inner.sessions.sessions.insert(id.to_owned(), kept);
        Ok(Some(fence))
    }

    fn take(
        &self,
        id: &str,
        owner: &str,
        known: KnownPart<'_>,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Taken, StoreError> {
        let mut inner = self.lock();
        let fence = inner.next_fence(now);
        let Some(kept) = inner.sessions.find(id, now) else { return Ok(Taken::Missing) };
        if kept.is_forgotten {
            return Ok(Taken::Forgotten);
        }
        if let Some(owner) = kept.owner.clone().filter(|_| kept.is_held(now)) {
            return Ok(Taken::Held(owner));
        }
        let (session, was_lost) = (kept.shown(known, now), kept.has_owner());
        kept.fence = fence;
        kept.owner = Some(owner.to_owned());
        kept.hold(lease, now);
        Ok(Taken::Owned { fence, session, was_lost, was_restarted: false })
    }

    fn append(
        &self,
        id: &str,
        fence: u64,
        write: &SessionWrite,
        now: Timestamp,
    ) -> Result<Appended, StoreError> {
        let mut inner = self.lock();
        let change = inner.sessions.next_change();
        let Some(kept) = inner.sessions.find(id, now) else { return Ok(Appended::Missing) };
        if kept.is_forgotten {
            return Ok(Appended::Forgotten);
        }
        if kept.fence != fence || !kept.has_owner() || kept.seq != write.after {
            return Ok(Appended::Fenced);
        }
        kept.write(write, now);
        kept.changed = change;
        Ok(Appended::Written)
    }

    fn renew(
        &self,
        held: &[(String, u64)],
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        let mut inner = self.lock();
        let renewed = held.iter().map(|(id, fence)| {
            let kept = inner.sessions.find(id, now).filter(|kept| kept.fence == *fence && kept.has_owner());
            kept.map(|kept| kept.hold(lease, now)).is_some()
        });
        Ok(renewed.collect())
    }

    fn read(
        &self,
        id: &str,
        known: KnownPart<'_>,
        now: Timestamp,
    ) -> Result<Option<StoredSession>, StoreError> {
        Ok(self.lock().sessions.find(id, now).map(|kept| kept.shown(known, now)))
    }

    fn orphans(&self, max: usize, now: Timestamp) -> Result<Vec<String>, StoreError> {
        let inner = self.lock();
        let lost = |kept: &SessionRecord| kept.expires > now && kept.owner.is_some() && !kept.is_held(now);
        let lost = inner.sessions.sessions.iter().filter(|(_, kept)| lost(kept));
        Ok(lost.map(|(id, _)| id.clone()).take(max).collect())
    }

    fn changed(&self, since: Option<u64>, _now: Timestamp) -> Result<(u64, Vec<String>), StoreError> {
        let inner = self.lock();
        let since = since.unwrap_or(inner.sessions.changes);
        let changed = inner.sessions.sessions.iter().filter(|(_, kept)| kept.changed > since);
        Ok((inner.sessions.changes, changed.map(|(id, _)| id.clone()).collect()))
    }

    fn forget(&self, id: &str, ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let was_there = inner.sessions.find(id, now).is_some_and(|kept| !kept.is_forgotten);
        let mark = SessionRecord {
            is_forgotten: true,
            expires: times::after(now, ttl),
            ..SessionRecord::new(0, None, inner.sessions.next_change(), now)
        };
        inner.sessions.sessions.insert(id.to_owned(), mark);
        Ok(was_there)
    }

    fn send(&self, to: &str, message: &[u8], now: Timestamp) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let inbox = inner.sessions.inboxes.entry(to.to_owned()).or_default();
        inbox.push_back((message.to_vec(), times::after(now, INBOX_TTL)));
        while inbox.len() > MAX_INBOX {
            inbox.pop_front();
        }
        Ok(())
    }

    fn receive(&self, inbox: &str, now: Timestamp) -> Result<Vec<Vec<u8>>, StoreError> {
        let waiting = self.lock().sessions.inboxes.remove(inbox).unwrap_or_default();
        Ok(waiting.into_iter().filter(|(_, until)| *until > now).map(|(message, _)| message).collect())
    }
}
