//! Keys whose rest is about to end or has ended: one request of all gateways goes first, the others follow one by one.
//!
//! The library decides ([`Reopening`]); this table has its inputs. The right to go first is a lease in the store. It is claimed in the
//! background before the rest ends, and renewed there; a request reads a flag. A gateway that has the lease and no request for a second gives
//! it back. Where the store does not say who has it, each gateway lets one of its own go first.
//!
//! A refusal comes at once, an answer may take minutes. So a first request that was not refused within two seconds counts as a success:
//! the others need not wait for its end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use koboshi::cooldown::{FleetPlace, Reopening, ReopeningPolicy, RestPhase, Standing, Turn};
use koboshi::key::ScopeKey;
use koboshi::time::Moment;
use koboshi_config::config::Config;
use koboshi_store::{ClaimState, Clock, Ledger, RecordKind, Slot, SystemClock};

use crate::route::target::Scopes;

/// How long the lease holds without being renewed; a gateway that died keeps the others waiting no longer.
const LEASE_TTL: Duration = Duration::from_secs(2);
/// How long before the end of a rest the lease is claimed, and how long it is kept without a request.
const NEAR: Duration = Duration::from_secs(1);
/// How long a first request waits for the store to say who has the lease, where it was not claimed before.
const MAX_LEASE_WAIT: Duration = Duration::from_millis(250);
/// A first request that was not refused for this long counts as a success.
const UNREFUSED: Duration = Duration::from_secs(2);
/// How far the clocks of a gate and of a store's records may differ.
const GATE_SLACK: Duration = Duration::from_millis(50);
/// The longest time after which another request goes first.
const MAX_FIRST: Duration = Duration::from_secs(10);

/// What a request may do.
pub(crate) enum Admission {
    /// It may go at once.
    Free,
    /// It goes first; the others wait for what it finds out.
    First(FirstRequest),
    /// It may go at this time.
    At(Moment),
    /// Another request goes first.
    Wait,
    /// Its turn would come too late for it.
    TooLate,
}

struct Entry {
    reopening: Reopening,
    /// Whether the right to go first is claimed.
    is_claimed: bool,
    /// When a request asked last.
    asked: Moment,
    /// When the first request went out.
    began: Timestamp,
}

/// The keys by kind: a limit and a cooldown may have the same name.
#[derive(Default)]
struct KeysByKind {
    cooldowns: HashMap<ScopeKey, Entry>,
    limits: HashMap<ScopeKey, Entry>,
}

impl KeysByKind {
    fn of(&mut self, kind: RecordKind) -> &mut HashMap<ScopeKey, Entry> {
        if kind == RecordKind::Holds { &mut self.limits } else { &mut self.cooldowns }
    }
}

/// The names of the keys, which requests read without a lock.
#[derive(Default)]
struct Names {
    cooldowns: HashSet<ScopeKey>,
    limits: HashSet<ScopeKey>,
}

/// The keys that rest or are about to be used again.
pub(crate) struct Reopenings {
    ledger: Arc<Ledger>,
    known: Mutex<KeysByKind>,
    /// A request whose keys are not among these takes no lock.
    names: ArcSwap<Names>,
    /// Whether there are any: nearly always there are none, and to read a flag costs less than to read an empty list.
    any: AtomicBool,
    /// The place of this gateway among those that share the store: its rank and their number.
    place: AtomicU64,
    clock: SystemClock,
}

/// The policy of the current config.
pub(crate) fn policy(config: &Config) -> ReopeningPolicy {
    ReopeningPolicy::default().with(|policy| {
        policy.stagger = config.gate.stagger;
        policy.release = config.cooldown.release;
        policy.max_probe_time = config.cooldown.max_probe_time.min(MAX_FIRST);
    })
}

fn lease(kind: RecordKind, key: &ScopeKey) -> String {
    format!("first {} {key}", kind.name())
}

impl Reopenings {
    /// Knows the keys that rest according to this ledger.
    pub(crate) fn new(ledger: Arc<Ledger>) -> Arc<Self> {
        let made = Self {
            ledger,
            known: Mutex::default(),
            names: ArcSwap::default(),
            any: AtomicBool::new(false),
            place: AtomicU64::new(1),
            clock: SystemClock,
        };
        let wall = made.clock.wall();
        for key in made.ledger.keys() {
            for kind in [RecordKind::Cooldown, RecordKind::Holds] {
                if made.phase(kind, &key, wall).0 != RestPhase::Over {
                    made.watch(kind, &key);
                }
            }
        }
        Arc::new(made)
    }

    fn lock(&self) -> MutexGuard<'_, KeysByKind> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any key rests or is about to be used again.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether one of this target's keys rests or is about to be used again.
    pub(crate) fn concern(&self, scopes: &Scopes) -> bool {
        if !self.any() {
            return false;
        }
        let names = self.names.load();
        let rests = |key: &ScopeKey| names.cooldowns.contains(key);
        !names.cooldowns.is_empty() && scopes.cooldown_keys().any(rests)
            || !names.limits.is_empty()
                && scopes.limits.as_ref().is_some_and(|key| names.limits.contains(key))
    }

    fn show_names(&self, known: &KeysByKind) {
        let of = |entries: &HashMap<ScopeKey, Entry>| entries.keys().cloned().collect();
        self.names.store(Arc::new(Names { cooldowns: of(&known.cooldowns), limits: of(&known.limits) }));
        self.any.store(!(known.cooldowns.is_empty() && known.limits.is_empty()), Ordering::Release);
    }

    /// The place of this gateway among those that share the store.
    pub(crate) fn set_place(&self, rank: u32, nodes: u32) {
        self.place.store(u64::from(rank) << 32 | u64::from(nodes), Ordering::Relaxed);
    }

    pub(crate) fn place(&self) -> FleetPlace {
        let place = self.place.load(Ordering::Relaxed);
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(1);
        FleetPlace { rank: half(place >> 32), nodes: half(place) }
    }

    /// A slot has changed, here or at another gateway.
    pub(crate) fn watch_slot(&self, slot: &Slot) {
        if matches!(slot.kind(), RecordKind::Cooldown | RecordKind::Holds) {
            self.watch(slot.kind(), slot.key());
        }
    }

    /// A key may have begun to rest.
    pub(crate) fn watch(&self, kind: RecordKind, key: &ScopeKey) {
        if self.phase(kind, key, self.clock.wall()).0 == RestPhase::Over {
            return;
        }
        let mut known = self.lock();
        let entries = known.of(kind);
        if !entries.contains_key(key) {
            let began = Timestamp::MIN;
            let (reopening, asked) = (Reopening::resting(), Moment::START);
            entries.insert(key.clone(), Entry { reopening, is_claimed: false, asked, began });
            self.show_names(&known);
        }
    }

    /// What is known of a rest, and when it ends.
    fn phase(&self, kind: RecordKind, key: &ScopeKey, wall: Timestamp) -> (RestPhase, Option<Timestamp>) {
        if kind == RecordKind::Holds {
            let Some(holds) = self.ledger.holds(key) else { return (RestPhase::Over, None) };
            return match holds.longest(wall) {
                Some((_, until)) => (RestPhase::Resting, Some(until)),
                None if holds.is_due(wall) => (RestPhase::Due, None),
                None => (RestPhase::Over, None),
            };
        }
        let Some(cooldown) = self.ledger.cooldown(key) else { return (RestPhase::Over, None) };
        match cooldown.standing(wall) {
            Standing::Cooling { until, .. } => (RestPhase::Resting, Some(until)),
            Standing::Due(_) => (RestPhase::Due, None),
            Standing::Free => (RestPhase::Over, None),
            _ => (RestPhase::Resting, None),
        }
    }

    /// Brings an entry up to date.
    fn observe(
        &self,
        kind: RecordKind,
        key: &ScopeKey,
        entry: &mut Entry,
        policy: &ReopeningPolicy,
        (now, wall): (Moment, Timestamp),
    ) -> Option<Timestamp> {
        let is_unrefused =
            |entry: &Entry| entry.reopening.first_since().is_some_and(|out| now.since(out) >= UNREFUSED);
        let (mut phase, until) = self.phase(kind, key, wall);
        if phase == RestPhase::Due && is_unrefused(entry) {
            self.pass(kind, key, entry.began, wall);
            phase = self.phase(kind, key, wall).0;
        }
        entry.reopening.observe(phase, policy, self.place(), now);
        until
    }

    fn pass(&self, kind: RecordKind, key: &ScopeKey, began: Timestamp, wall: Timestamp) {
        if kind == RecordKind::Holds {
            self.ledger.update_holds(key, |holds| holds.pass(began));
        } else {
            self.ledger.update_cooldown(key, |cooldown| cooldown.succeed(Some(began), wall));
        }
    }

    /// Whether a request may go first: this gateway has the lease, or the store does not say who has it.
    fn may_be_first(&self, kind: RecordKind, key: &ScopeKey, entry: &mut Entry) -> bool {
        let name = lease(kind, key);
        let state = self.ledger.claim_state(&name);
        if state.is_none() || !entry.is_claimed {
            self.ledger.claim(&name, LEASE_TTL);
            entry.is_claimed = true;
        }
        match state {
            Some(ClaimState::Held) => true,
            Some(ClaimState::Elsewhere) => false,
            Some(ClaimState::Unanswered(silent)) => silent >= MAX_LEASE_WAIT || !self.ledger.is_connected(),
            None => !self.ledger.is_connected(),
        }
    }

    /// Whether a request to this target would go within this time. If not, it may try elsewhere first.
    pub(crate) fn would_go(&self, scopes: &Scopes, policy: &ReopeningPolicy, within: Duration) -> bool {
        if !self.concern(scopes) {
            return true;
        }
        let (now, wall) = (self.clock.moment(), self.clock.wall());
        let mut known = self.lock();
        match self.turn(&mut known, scopes, policy, now.after(within), (now, wall)) {
            Ok(_) => true,
            Err(Turn::At(time)) => time <= now.after(within),
            Err(_) => false,
        }
    }

    /// The keys whose first request this one would be, or what it must wait for. The lease of a narrower key is only claimed once that of the
    /// wider one is there, so that two gateways never wait for each other.
    fn turn<'s>(
        &self,
        known: &mut KeysByKind,
        scopes: &'s Scopes,
        policy: &ReopeningPolicy,
        latest: Moment,
        (now, wall): (Moment, Timestamp),
    ) -> Result<Vec<(RecordKind, &'s ScopeKey)>, Turn> {
        let (mut firsts, mut soonest) = (Vec::new(), None);
        for (kind, key) in keys(scopes) {
            let Some(entry) = known.of(kind).get_mut(key) else { continue };
            let until = self.observe(kind, key, entry, policy, (now, wall));
            // A gate opens by another clock, perhaps a little earlier: nothing may slip through before the end that all gateways know.
            let is_soon = |until: Timestamp| {
                let left = Duration::try_from(until.duration_since(wall)).unwrap_or_default();
                now.after(left) <= latest.max(now.after(GATE_SLACK))
            };
            if kind == RecordKind::Holds && until.is_some_and(is_soon) {
                return Err(Turn::Wait);
            }
            let is_due = entry.reopening.is_due();
            entry.asked = if is_due { now } else { entry.asked };
            let may_be_first = is_due && self.may_be_first(kind, key, entry);
            match entry.reopening.ask(may_be_first, latest, now) {
                Turn::Free => {}
                Turn::First => firsts.push((kind, key)),
                Turn::At(time) => soonest = soonest.max(Some(time)),
                wait => return Err(wait),
            }
        }
        match soonest {
            Some(time) if firsts.is_empty() => Err(Turn::At(time)),
            _ => Ok(firsts),
        }
    }

    /// Takes what a request to this target may do, if it waits until `latest` at most.
    pub(crate) fn take(
        self: &Arc<Self>,
        scopes: &Scopes,
        policy: &ReopeningPolicy,
        latest: Moment,
    ) -> Admission {
        if !self.concern(scopes) {
            return Admission::Free;
        }
        let (now, wall) = (self.clock.moment(), self.clock.wall());
        let mut known = self.lock();
        let turn = self.turn(&mut known, scopes, policy, latest, (now, wall));
        if matches!(turn, Err(Turn::Wait)) {
            return Admission::Wait;
        }
        if matches!(turn, Err(Turn::TooLate)) {
            return Admission::TooLate;
        }
        let place = self.place();
        for (kind, key) in keys(scopes) {
            let Some(entry) = known.of(kind).get_mut(key) else { continue };
            if entry.reopening.take(true, latest, policy, place, now) == Turn::First {
                entry.began = wall;
            }
        }
        match turn {
            Err(Turn::At(time)) => Admission::At(time),
            Ok(firsts) if !firsts.is_empty() => {
                let keys = firsts.into_iter().map(|(kind, key)| (kind, key.clone())).collect();
                Admission::First(FirstRequest { reopenings: Arc::clone(self), keys })
            }
            _ => Admission::Free,
        }
    }

    /// Claims leases before rests end, gives those back that are not used, and forgets keys that are in use again. Called a few times a
    /// second.
    pub(crate) fn tick(&self, policy: &ReopeningPolicy) {
        if !self.any() {
            return;
        }
        let (now, wall) = (self.clock.moment(), self.clock.wall());
        let mut known = self.lock();
        let mut are_over = false;
        for kind in [RecordKind::Cooldown, RecordKind::Holds] {
            known.of(kind).retain(|key, entry| {
                let until = self.observe(kind, key, entry, policy, (now, wall));
                self.keep_lease(kind, key, entry, until, (now, wall));
                are_over |= entry.reopening.is_over();
                !entry.reopening.is_over()
            });
        }
        if are_over {
            self.show_names(&known);
        }
    }

    fn keep_lease(
        &self,
        kind: RecordKind,
        key: &ScopeKey,
        entry: &mut Entry,
        until: Option<Timestamp>,
        (now, wall): (Moment, Timestamp),
    ) {
        let is_near = until
            .and_then(|until| Duration::try_from(until.duration_since(wall)).ok())
            .is_some_and(|left| left <= NEAR);
        let is_used = entry.reopening.is_due()
            && (entry.reopening.first_since().is_some() || now.since(entry.asked) < NEAR);
        if is_near && !entry.is_claimed {
            self.ledger.claim(&lease(kind, key), LEASE_TTL);
            entry.is_claimed = true;
        }
        if is_near {
            entry.asked = now;
        } else if entry.is_claimed && !is_used {
            self.ledger.give_up(&lease(kind, key));
            entry.is_claimed = false;
        }
    }

    fn first_ended(&self, keys: &[(RecordKind, ScopeKey)]) {
        let mut known = self.lock();
        for (kind, key) in keys {
            if let Some(entry) = known.of(*kind).get_mut(key) {
                entry.reopening.give_up_first();
            }
        }
    }
}

/// The keys of a target, the widest first.
fn keys(scopes: &Scopes) -> impl Iterator<Item = (RecordKind, &ScopeKey)> {
    let cooldowns = scopes.cooldown_keys().map(|key| (RecordKind::Cooldown, key));
    cooldowns.chain(scopes.limits.iter().map(|key| (RecordKind::Holds, key)))
}

/// The right of one request to go first. Dropping it gives it to the next one.
pub(crate) struct FirstRequest {
    reopenings: Arc<Reopenings>,
    keys: Vec<(RecordKind, ScopeKey)>,
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        self.reopenings.first_ended(&self.keys);
    }
}
