//! Records in Redis: a hash of bodies, changed by compare-and-set.
//!
//! The merge is the core's and happens here; the script only makes sure that what was merged with is still what is
//! there, and otherwise returns what is. So there is one merge for all stores, and none in Lua. A body that cannot be read
//! stays if a newer program may have written it; a damaged one is set aside.

use std::collections::BTreeMap;

use jiff::Timestamp;
use redis::{Connection, RedisResult, Script};

use crate::error::StoreError;
use crate::record::{Record, Slot, may_be_replaced};
use crate::store::{MAX_BYTES_SET_ASIDE, MAX_SET_ASIDE, MergeResult, Named, StoreContents, Unreadable};

use super::handle::RedisHandle;
use super::names::Names;

/// The most records in one script: the server serves no other client while it runs.
const BATCH: usize = 500;
/// How often a record is merged again because another node was faster.
const TRIES: usize = 64;

pub(super) struct Records {
    merge: Script,
    forget: Script,
}

/// Slots and bodies.
type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// A record on its way into the store.
struct PendingRecord<'a> {
    slot: &'a Slot,
    name: String,
    new: &'a Record,
    /// What the server has; empty where it has nothing.
    present: Vec<u8>,
}

/// What to do with a record after reading what the server has.
enum Step {
    Settled(Record),
    /// What is there cannot be read and stays.
    Leave(String),
    Propose {
        body: String,
        merged: Record,
        aside: Option<String>,
    },
}

impl PendingRecord<'_> {
    fn step(&self) -> Result<Step, serde_json::Error> {
        if self.present.is_empty() {
            return Ok(Step::Propose { body: self.new.body()?, merged: self.new.clone(), aside: None });
        }
        match read(self.slot, &self.present) {
            Ok(known) => {
                let merged = known.merge(self.new);
                if merged == known {
                    return Ok(Step::Settled(known));
                }
                Ok(Step::Propose { body: merged.body()?, merged, aside: None })
            }
            Err(why) if !may_be_replaced(self.slot, &self.present) => Ok(Step::Leave(why)),
            Err(why) => {
                Ok(Step::Propose { body: self.new.body()?, merged: self.new.clone(), aside: Some(why) })
            }
        }
    }
}

fn read(slot: &Slot, body: &[u8]) -> Result<Record, String> {
    let body = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    Record::read(slot.kind(), body).map_err(|error| error.to_string())
}

impl Records {
    pub(super) fn new() -> Self {
        Self {
            merge: Script::new(include_str!("lua/merge.lua")),
            forget: Script::new(include_str!("lua/forget.lua")),
        }
    }

    pub(super) fn merge(
        &self,
        handle: &RedisHandle,
        names: &Names,
        changes: &[Named],
    ) -> Result<MergeResult, StoreError> {
        let shared: Vec<&Named> = changes.iter().filter(|(slot, _)| slot.is_shared()).collect();
        let mut merged = MergeResult::default();
        for batch in shared.chunks(BATCH) {
            self.merge_batch(handle, names, batch, &mut merged)?;
        }
        Ok(merged)
    }

    fn merge_batch(
        &self,
        handle: &RedisHandle,
        names: &Names,
        batch: &[&Named],
        merged: &mut MergeResult,
    ) -> Result<(), StoreError> {
        let doing = "write state";
        let slots: Vec<String> = batch.iter().map(|(slot, _)| slot.to_string()).collect();
        let present = handle.run(doing, |connection| fetch(connection, names, &slots))?;
        let mut pending: Vec<PendingRecord<'_>> = batch
            .iter()
            .zip(slots)
            .zip(present)
            .map(|(((slot, new), name), present)| PendingRecord {
                slot,
                name,
                new,
                present: present.unwrap_or_default(),
            })
            .collect();
        for _ in 0..TRIES {
            pending = self.try_once(handle, names, pending, merged)?;
            if pending.is_empty() {
                return Ok(());
            }
        }
        Err(StoreError::Busy { place: handle.place().to_owned(), doing })
    }

    /// Proposes every record once. Returns those that changed meanwhile, with what is there now.
    fn try_once<'a>(
        &self,
        handle: &RedisHandle,
        names: &Names,
        pending: Vec<PendingRecord<'a>>,
        merged: &mut MergeResult,
    ) -> Result<Vec<PendingRecord<'a>>, StoreError> {
        let doing = "write state";
        let failed = |error: serde_json::Error| StoreError::Failed {
            place: handle.place().to_owned(),
            doing,
            why: error.to_string(),
        };
        let mut call = self.merge.prepare_invoke();
        call.key(&names.records).key(&names.set_aside).key(&names.channel);
        call.arg(MAX_SET_ASIDE).arg(MAX_BYTES_SET_ASIDE);
        let mut proposed = Vec::new();
        for pending in pending {
            match pending.step().map_err(failed)? {
                Step::Settled(known) => settle(merged, &pending, known),
                Step::Leave(why) => merged.unreadable.push(Unreadable { slot: pending.name, why }),
                Step::Propose { body, merged, aside } => {
                    let why = aside.as_deref().unwrap_or_default();
                    call.arg(&pending.name).arg(&pending.present).arg(&body).arg(why);
                    proposed.push((pending, merged, aside));
                }
            }
        }
        if proposed.is_empty() {
            return Ok(Vec::new());
        }
        let answer: Vec<Vec<u8>> = handle.run(doing, |connection| call.invoke(connection))?;
        let mut lost: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        for pair in answer.chunks_exact(2) {
            if let [slot, present] = pair {
                lost.insert(slot, present);
            }
        }
        let mut again = Vec::new();
        for (mut pending, now, aside) in proposed {
            match lost.get(pending.name.as_bytes()) {
                Some(present) => {
                    pending.present = present.to_vec();
                    again.push(pending);
                }
                None => {
                    let slot = pending.name.clone();
                    merged.set_aside.extend(aside.map(|why| Unreadable { slot, why }));
                    settle(merged, &pending, now);
                }
            }
        }
        Ok(again)
    }

    /// Forgets breakers that were seen last before then, and facts that are spent.
    pub(super) fn forget_old(
        &self,
        handle: &RedisHandle,
        names: &Names,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let doing = "forget what is old";
        let is_old = |slot: &Slot, body: &[u8]| match read(slot, body) {
            Ok(Record::Breaker(breaker)) => breaker.at < before,
            Ok(fact) => fact.is_spent(now),
            Err(_) => false,
        };
        let (mut gone, mut cursor) = (0, 0);
        loop {
            let (next, page) = handle.run(doing, |connection| page_from(connection, names, cursor))?;
            let mut call = self.forget.prepare_invoke();
            call.key(&names.records);
            let mut any = false;
            for (name, body) in page {
                let slot = std::str::from_utf8(&name).ok().and_then(|name| name.parse::<Slot>().ok());
                if slot.is_some_and(|slot| is_old(&slot, &body)) {
                    call.arg(name).arg(body);
                    any = true;
                }
            }
            if any {
                gone += handle.run(doing, |connection| call.invoke::<u64>(connection))?;
            }
            if next == 0 {
                return Ok(gone);
            }
            cursor = next;
        }
    }
}

fn settle(merged: &mut MergeResult, pending: &PendingRecord<'_>, now: Record) {
    if now != *pending.new {
        merged.beyond.push((pending.slot.clone(), now));
    }
}

/// The bodies in these slots.
fn fetch(connection: &mut Connection, names: &Names, slots: &[String]) -> RedisResult<Vec<Option<Vec<u8>>>> {
    redis::cmd("HMGET").arg(&names.records).arg(slots).query(connection)
}

/// Some records, and where the next ones begin; 0 at the end.
fn page_from(connection: &mut Connection, names: &Names, cursor: u64) -> RedisResult<(u64, Page)> {
    let mut scan = redis::cmd("HSCAN");
    scan.arg(&names.records).arg(cursor).arg("COUNT").arg(1000).query(connection)
}

/// Everything, in steps between which the server can serve other clients. What changes on the way may be seen before or after.
fn fetch_all(connection: &mut Connection, names: &Names) -> RedisResult<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut cursor = 0_u64;
    loop {
        let (next, page) = page_from(connection, names, cursor)?;
        all.extend(page.into_iter().map(|(slot, body)| (String::from_utf8_lossy(&slot).into_owned(), body)));
        if next == 0 {
            return Ok(all);
        }
        cursor = next;
    }
}

/// Everything that is there.
pub(super) fn load(handle: &RedisHandle, names: &Names) -> Result<StoreContents, StoreError> {
    let all = handle.run("read state", |connection| fetch_all(connection, names))?;
    Ok(read_all(all.into_iter()))
}

/// What was set aside, oldest first.
pub(super) fn load_set_aside(handle: &RedisHandle, names: &Names) -> Result<Vec<Unreadable>, StoreError> {
    let aside: Vec<Vec<u8>> = handle.run("read state", |connection| {
        redis::cmd("LRANGE").arg(&names.set_aside).arg(0).arg(-1).query(connection)
    })?;
    let read = |one: &Vec<u8>| {
        let text = String::from_utf8_lossy(one);
        let mut lines = text.splitn(3, '\n');
        let (slot, why) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        Unreadable { slot: slot.to_owned(), why: format!("damaged, and kept aside: {why}") }
    };
    Ok(aside.iter().rev().map(read).collect())
}

/// What is in these slots now.
pub(super) fn load_some(
    handle: &RedisHandle,
    names: &Names,
    slots: &[String],
) -> Result<StoreContents, StoreError> {
    let mut found = Vec::new();
    for batch in slots.chunks(BATCH) {
        let bodies = handle.run("read state", |connection| fetch(connection, names, batch))?;
        found.extend(batch.iter().cloned().zip(bodies).filter_map(|(slot, body)| Some((slot, body?))));
    }
    Ok(read_all(found.into_iter()))
}

fn read_all(bodies: impl Iterator<Item = (String, Vec<u8>)>) -> StoreContents {
    let mut loaded = StoreContents::default();
    for (name, body) in bodies {
        let record = name.parse::<Slot>().map_err(|error| error.to_string()).and_then(|slot| {
            let record = read(&slot, &body)?;
            Ok((slot, record))
        });
        match record {
            Ok((slot, record)) if slot.is_shared() => loaded.records.push((slot, record)),
            // Written by a newer or another program: skipped.
            Ok(_) => {}
            Err(why) => loaded.unreadable.push(Unreadable { slot: name, why }),
        }
    }
    loaded
}
