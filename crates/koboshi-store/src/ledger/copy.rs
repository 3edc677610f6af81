//! The working copy: everything that is known, by key, in memory.
//!
//! One lookup finds all that is known about a key. The map is cut into shards, each under its own lock that is held only
//! to read or to change a record, never across a wait; records are shared, not copied, so a reader holds it only briefly.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use koboshi::breaker::BreakerSnapshot;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;

use crate::record::{Node, Record, RecordKind, Slot};

/// Enough that a few cores rarely use the same one. One more is kept apart, so that every key has a shard.
const SHARDS: usize = 63;

/// All that is known about one key.
#[derive(Debug, Default)]
pub(super) struct KeyState {
    pub(super) holds: Option<Arc<Holds>>,
    pub(super) cooldown: Option<Arc<Cooldown>>,
    pub(super) breakers: Vec<(Node, Arc<BreakerSnapshot>)>,
}

/// The result of merging what another node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MergeEffect {
    /// This node learned something.
    pub(super) learned: bool,
    /// This node knows something that the other does not.
    pub(super) knows_more: bool,
}

type Shard = RwLock<HashMap<ScopeKey, KeyState>>;

/// Everything that is known.
pub(super) struct WorkingCopy {
    shards: Box<[Shard]>,
    last: Shard,
    hasher: RandomState,
    /// Keys that have a cooldown. Most of the time there is none, and then callers need not read any shard.
    cooldowns: AtomicUsize,
}

impl WorkingCopy {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, last: Shard::default(), hasher: RandomState::new(), cooldowns: AtomicUsize::new(0) }
    }

    fn shard(&self, key: &ScopeKey) -> &Shard {
        let hash = usize::try_from(self.hasher.hash_one(key) >> 32).unwrap_or(0);
        self.shards.get(hash % (SHARDS + 1)).unwrap_or(&self.last)
    }

    fn all(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().chain([&self.last])
    }

    /// Reads what is known about a key.
    pub(super) fn read<R>(&self, key: &ScopeKey, read_state: impl FnOnce(&KeyState) -> R) -> Option<R> {
        let shard = self.shard(key).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(key).map(read_state)
    }

    /// Changes what is known about a key.
    pub(super) fn write<R>(&self, key: &ScopeKey, change: impl FnOnce(&mut KeyState) -> R) -> R {
        let mut shard = self.shard(key).write().unwrap_or_else(PoisonError::into_inner);
        let known = match shard.get_mut(key) {
            Some(known) => known,
            None => shard.entry(key.clone()).or_default(),
        };
        let had_none = known.cooldown.is_none();
        let result = change(known);
        if had_none && known.cooldown.is_some() {
            self.cooldowns.fetch_add(1, Ordering::Release);
        }
        result
    }

    pub(super) fn has_cooldowns(&self) -> bool {
        self.cooldowns.load(Ordering::Acquire) > 0
    }

    /// The cooldown of a key.
    pub(super) fn cooldown(&self, key: &ScopeKey) -> Option<Arc<Cooldown>> {
        self.read(key, |known| known.cooldown.clone()).flatten()
    }

    /// The record in a slot.
    pub(super) fn record(&self, slot: &Slot) -> Option<Record> {
        self.read(slot.key(), |known| known.record(slot.kind(), slot.node())).flatten()
    }

    /// Merges what a store knows about a slot.
    pub(super) fn take_in(&self, slot: &Slot, theirs: &Record) -> MergeEffect {
        self.write(slot.key(), |known| known.take_in(slot, theirs))
    }

    /// Every slot that this node would write to a store that lost its data: all facts that are of use, and its own breakers. What is spent
    /// would go back and forth between those who have forgotten it and those who have not.
    pub(super) fn to_report(&self, own: &Node, now: Timestamp) -> Vec<Slot> {
        let mut slots = Vec::new();
        for shard in self.all() {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for (key, known) in shard.iter().filter(|(key, _)| key.is_shared()) {
                let holds = known.holds.iter().filter(|holds| !holds.is_spent(now));
                slots.extend(holds.map(|_| Slot::holds(key.clone())));
                let cooldown = known.cooldown.iter().filter(|cooldown| !cooldown.is_spent(now));
                slots.extend(cooldown.map(|_| Slot::cooldown(key.clone())));
                let mine = known.breakers.iter().filter(|(node, _)| node == own);
                slots.extend(mine.map(|(node, _)| Slot::breaker(key.clone(), node.clone())));
            }
        }
        slots
    }

    /// Every key of which something is known.
    pub(super) fn keys(&self) -> Vec<ScopeKey> {
        let mut keys = Vec::new();
        for shard in self.all() {
            keys.extend(shard.read().unwrap_or_else(PoisonError::into_inner).keys().cloned());
        }
        keys.sort();
        keys
    }

    /// Gives the breakers of this node that were shown last before `shown` the instant `at`. Says which.
    pub(super) fn show_again(&self, own: &Node, shown: Timestamp, at: Timestamp) -> Vec<Slot> {
        let mut slots = Vec::new();
        for shard in self.all() {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            for (key, known) in shard.iter_mut() {
                let mine =
                    |(node, breaker): &&mut (Node, Arc<BreakerSnapshot>)| node == own && breaker.at < shown;
                if let Some((node, breaker)) = known.breakers.iter_mut().find(mine) {
                    Arc::make_mut(breaker).at = at;
                    slots.push(Slot::breaker(key.clone(), node.clone()));
                }
            }
        }
        slots
    }

    /// Forgets facts that are spent.
    pub(super) fn forget_spent(&self, now: Timestamp) {
        for shard in self.all() {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|_, known| {
                known.holds.take_if(|holds| holds.is_spent(now));
                if known.cooldown.take_if(|cooldown| cooldown.is_spent(now)).is_some() {
                    self.cooldowns.fetch_sub(1, Ordering::Release);
                }
                known.holds.is_some() || known.cooldown.is_some() || !known.breakers.is_empty()
            });
        }
    }

    /// Forgets the breakers of nodes that report no more.
    pub(super) fn forget_breakers(&self, own: &Node, before: Timestamp) {
        for shard in self.all() {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            for known in shard.values_mut() {
                known.breakers.retain(|(node, breaker)| node == own || breaker.at >= before);
            }
        }
    }
}

impl KeyState {
    fn record(&self, kind: RecordKind, node: Option<&Node>) -> Option<Record> {
        match kind {
            RecordKind::Holds => self.holds.as_deref().cloned().map(Record::Holds),
            RecordKind::Cooldown => self.cooldown.as_deref().cloned().map(Record::Cooldown),
            RecordKind::Breaker => {
                let found = self.breakers.iter().find(|(owner, _)| Some(owner) == node);
                found.map(|(_, breaker)| Record::Breaker(breaker.as_ref().clone()))
            }
        }
    }

    fn take_in(&mut self, slot: &Slot, theirs: &Record) -> MergeEffect {
        match (theirs, slot.node()) {
            (Record::Holds(theirs), None) => {
                let merged = self.holds.as_deref().map_or_else(|| theirs.clone(), |mine| mine.merge(theirs));
                let knows_more = merged != *theirs;
                MergeEffect { learned: set(&mut self.holds, merged), knows_more }
            }
            (Record::Cooldown(theirs), None) => {
                let mut mine = self.cooldown.as_deref().cloned();
                let knows_more = mine.as_mut().is_some_and(|mine| mine.reconcile(theirs));
                MergeEffect {
                    learned: set(&mut self.cooldown, mine.unwrap_or_else(|| theirs.clone())),
                    knows_more,
                }
            }
            (Record::Breaker(theirs), Some(node)) => self.take_in_breaker(node, theirs),
            _ => MergeEffect::default(),
        }
    }

    pub(super) fn take_in_breaker(&mut self, node: &Node, theirs: &BreakerSnapshot) -> MergeEffect {
        let Some((_, mine)) = self.breakers.iter_mut().find(|(owner, _)| owner == node) else {
            self.breakers.push((node.clone(), Arc::new(theirs.clone())));
            return MergeEffect { learned: true, knows_more: false };
        };
        let merged = mine.merge(theirs);
        let taken = MergeEffect { learned: merged != **mine, knows_more: merged != *theirs };
        if taken.learned {
            *mine = Arc::new(merged);
        }
        taken
    }
}

/// Replaces a value; returns whether it changed.
fn set<T: PartialEq>(place: &mut Option<Arc<T>>, value: T) -> bool {
    if place.as_deref() == Some(&value) {
        return false;
    }
    *place = Some(Arc::new(value));
    true
}
