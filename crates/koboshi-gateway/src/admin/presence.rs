//! Reports a gateway to its store: where it listens, when it last reported, and which targets it knows.
//!
//! The command line works on the store, perhaps without the gateway's config and environment. It reads the reports from sessions of the store,
//! which expire: `gateways` lists the nodes, `gateway:NODE` is one of them, `gateway-known:NODE` its keys. A separate thread writes
//! them, because a store may block; only what operators see depends on it, and a stop waits for it only briefly. When two gateways start at
//! the same moment, one name may be missing from the list until its next report.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi_config::Config;
use koboshi_config::schema::in_effect;
use koboshi_store::{Node, Row, Store, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::admin::known::KnownKeys;
use crate::admin::report_thread::{Report, ReportThread};
use crate::route::plan::Plan;
use crate::shared::state::SharedState;

/// How often a gateway checks whether its targets changed.
const TICK: Duration = Duration::from_millis(250);
/// A gateway reports at least once in this many ticks.
const TICKS_PER_REPORT: u32 = 40;
/// A gateway checks once in this many ticks whether others came, and more seldom the more there are: what the store carries for it grows
/// with their number, and not with its square.
const TICKS_PER_COUNT: u32 = 4;
/// Each so many gateways add as much to that pause.
const GATEWAYS_PER_PAUSE: usize = 50;
/// Of more gateways than this, a sample is asked whether it runs.
const MAX_ASKED: usize = 50;
/// A gateway that has not reported for this long is not running, or cannot reach the store.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// How long a start waits for its first report.
const FIRST_REPORT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a gateway that is gone stays listed.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How many gateways are listed; those that are gone make room first.
const MAX_GATEWAYS: usize = 1_200;

const LIST: &str = "gateways";
/// A gateway, as it reported to its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The name of its process.
    pub node: String,
    /// Where it listens.
    pub address: String,
    /// Its version of Koboshi.
    pub version: String,
    /// When it started.
    pub started: Timestamp,
    /// When it reported last.
    pub at: Timestamp,
    /// It has stopped.
    pub stopped: bool,
    /// A few digits that differ where the config in force differs: two gateways of one fleet should have the same ones. Secrets and the
    /// address are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

impl Presence {
    /// Whether it runs, according to its reports.
    #[must_use]
    pub fn is_running(&self, now: Timestamp) -> bool {
        !self.stopped && now.duration_since(self.at).unsigned_abs() < MAX_SILENCE
    }
}

/// The gateways that used this store within the last weeks, the newest report last.
///
/// # Errors
/// The store cannot be read now.
pub fn gateways(store: &dyn Store, now: Timestamp) -> Result<Vec<Presence>, StoreError> {
    let mut found = Vec::new();
    for node in nodes(store, now)? {
        found.extend(read::<Presence>(store, &of(&node), now)?);
    }
    found.sort_by_key(|presence| presence.at);
    Ok(found)
}

/// The keys that all gateways of this store know.
///
/// # Errors
/// The store cannot be read now.
pub fn known(store: &dyn Store, now: Timestamp) -> Result<KnownKeys, StoreError> {
    let mut all = KnownKeys::default();
    for node in nodes(store, now)? {
        if let Some(known) = read::<KnownKeys>(store, &known_by(&node), now)? {
            all.add(known);
        }
    }
    Ok(all)
}

/// The keys of the gateways that run; if none runs, of the one that reported last.
///
/// # Errors
/// The store cannot be read now.
pub fn known_now(store: &dyn Store, gateways: &[Presence], now: Timestamp) -> Result<KnownKeys, StoreError> {
    let mut all = KnownKeys::default();
    let is_running = |gateway: &&Presence| gateway.is_running(now);
    let last = gateways.last().filter(|_| !gateways.iter().any(|gateway| gateway.is_running(now)));
    for gateway in gateways.iter().filter(is_running).chain(last) {
        if let Some(known) = read::<KnownKeys>(store, &known_by(&gateway.node), now)? {
            all.add(known);
        }
    }
    Ok(all)
}

/// Whether a row still applies: its gateway was not stopped, and its API key is still in use.
#[must_use]
pub fn is_in_force(row: &Row, gateways: &[Presence], known: &KnownKeys) -> bool {
    let is_stopped =
        |node: &Node| gateways.iter().any(|gateway| gateway.stopped && gateway.node == *node.to_string());
    !row.node.as_ref().is_some_and(is_stopped) && !known.has_replaced(&row.key)
}

fn nodes(store: &dyn Store, now: Timestamp) -> Result<Vec<String>, StoreError> {
    Ok(read(store, LIST, now)?.unwrap_or_default())
}

fn of(node: &str) -> String {
    format!("gateway:{node}")
}

fn known_by(node: &str) -> String {
    format!("gateway-known:{node}")
}

/// The content of a session; none where there is none, or where a newer program wrote it.
fn read<T: DeserializeOwned>(store: &dyn Store, id: &str, now: Timestamp) -> Result<Option<T>, StoreError> {
    let body = store.note_get(id, now)?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

fn write(store: &dyn Store, id: &str, what: &impl Serialize, now: Timestamp) -> Result<(), StoreError> {
    let body = serde_json::to_vec(what).unwrap_or_default();
    store.note_put(id, &body, RETENTION, now)
}

/// Begins to report. Waits a moment for the first report, so that a caller that learns that the gateway listens finds it in the store.
pub(crate) fn report(state: &Arc<SharedState>, address: String) -> std::io::Result<ReportThread> {
    let reporter = Reporter::new(Arc::clone(state), address);
    ReportThread::start("koboshi-presence", TICK, FIRST_REPORT_TIMEOUT, reporter)
}

/// A few digits of the config in force, without what differs between machines. A key with its default adds nothing, so that another release,
/// which has other keys, gets the same digits for the same file.
#[must_use]
pub fn config_digits(config: &Config) -> String {
    let mut shown = in_effect(config);
    if let Some(serve) = shown.get_mut("serve").and_then(Value::as_object_mut) {
        serve.remove("listen");
    }
    let differs = beyond(&shown, Some(&in_effect(&Config::default())));
    let hash = Sha256::digest(differs.unwrap_or_default().to_string().as_bytes());
    hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// What of a config is not as in the defaults.
fn beyond(shown: &Value, default: Option<&Value>) -> Option<Value> {
    match (shown, default) {
        (shown, Some(default)) if shown == default => None,
        (Value::Object(shown), default) => {
            let fields = shown.iter().filter_map(|(name, value)| {
                Some((name.clone(), beyond(value, default.and_then(|default| default.get(name)))?))
            });
            let fields: serde_json::Map<_, _> = fields.collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        (Value::Null, None) => None,
        (shown, _) => Some(shown.clone()),
    }
}

/// As many as there is room for, in their order: those that run before all others, then those that reported last.
fn newest(mut there: Vec<(bool, Timestamp, String)>, room: usize) -> Vec<String> {
    let excess = there.len().saturating_sub(room);
    let mut order: Vec<_> = there.iter().map(|(runs, at, _)| (*runs, *at)).collect();
    order.sort_unstable();
    let mut drop = order.into_iter().take(excess).collect::<Vec<_>>();
    there.retain(|(runs, at, _)| match drop.iter().position(|one| *one == (*runs, *at)) {
        Some(place) => {
            drop.swap_remove(place);
            false
        }
        None => true,
    });
    there.into_iter().map(|(_, _, node)| node).collect()
}

/// Some of a list, at even distances: their share that runs is that of all, about.
fn sample(listed: &[String], own: &str) -> Vec<String> {
    let others: Vec<_> = listed.iter().filter(|node| *node != own).cloned().collect();
    let step = others.len().div_ceil(MAX_ASKED).max(1);
    others.into_iter().step_by(step).collect()
}

/// The place of one of several nodes by the share of a sample that runs.
fn place(listed: &[String], own: &str, asked: usize, running: usize) -> (u32, u32) {
    let others = listed.iter().filter(|node| *node != own);
    let (all, before) =
        others.fold((0, 0), |(all, before), node| (all + 1, before + usize::from(node.as_str() < own)));
    let of = |count: usize| (count * running).checked_div(asked).unwrap_or_default();
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let nodes = narrow(of(all)).saturating_add(1);
    (narrow(of(before)).min(nodes - 1), nodes)
}

struct Reporter {
    state: Arc<SharedState>,
    presence: Presence,
    known: KnownKeys,
    /// The state from which `known` was made.
    checked: Option<(Arc<Plan>, u64, usize)>,
    /// The gateways that were listed when they were counted last.
    counted: Vec<String>,
    /// How many checks for others are still left out.
    skipped: usize,
    ticks: u32,
}

impl Report for Reporter {
    const FAILED: &'static str = "the thread that reports this gateway to its store failed and goes on";

    fn state(&self) -> &Arc<SharedState> {
        &self.state
    }

    fn tick(&mut self) {
        // An unreachable store is reported elsewhere; the next tick tries again.
        if self.is_other() && self.write_known().is_err() {
            self.checked = None;
        }
        if self.ticks == 0 && self.report().is_err() {
            return;
        }
        if self.ticks.is_multiple_of(TICKS_PER_COUNT) && self.count(self.ticks == 0).is_err() {
            // Gateways that are gone are counted at the next report at the latest.
            self.counted.clear();
        }
        self.ticks = (self.ticks + 1) % TICKS_PER_REPORT;
    }

    fn end(&mut self) {
        self.presence.stopped = true;
        // If the store is unreachable, the gateway stays listed as one that stopped reporting.
        let _ = self.report();
    }
}

impl Reporter {
    fn new(state: Arc<SharedState>, address: String) -> Self {
        let now = state.wall();
        let presence = Presence {
            node: state.ledger.node().to_string(),
            address,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: now,
            at: now,
            stopped: false,
            config: None,
        };
        Self {
            state,
            presence,
            known: KnownKeys::default(),
            checked: None,
            counted: Vec::new(),
            skipped: 0,
            ticks: 0,
        }
    }

    /// Whether there may be other targets than at the last check.
    fn is_other(&mut self) -> bool {
        let targets = &self.state.targets;
        let now = (self.state.plan(), targets.generation(), targets.count());
        let same = |checked: &(Arc<Plan>, u64, usize)| {
            Arc::ptr_eq(&checked.0, &now.0) && (checked.1, checked.2) == (now.1, now.2)
        };
        let other = !self.checked.as_ref().is_some_and(same);
        self.checked = Some(now);
        other
    }

    /// Finds the place of this gateway among those that run: after a rest each lets its requests follow at a pace that their number decides.
    fn count(&mut self, always: bool) -> Result<(), StoreError> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(());
        }
        let (store, now) = (&*self.state.store, self.state.wall());
        let listed = nodes(store, now)?;
        self.skipped = listed.len() / GATEWAYS_PER_PAUSE;
        if !always && self.skipped == 0 && listed == self.counted {
            return Ok(());
        }
        let own = &self.presence.node;
        let mut asked = sample(&listed, own);
        let sampled = asked.len();
        let mut there = Vec::with_capacity(sampled);
        for node in asked.drain(..) {
            if read::<Presence>(store, &of(&node), now)?.is_some_and(|other| other.is_running(now)) {
                there.push(node);
            }
        }
        // Of a few, all were asked, and their place is exact.
        let is_exact = sampled + 1 >= listed.len();
        let (rank, nodes) = match is_exact {
            true => place(&there, own, there.len(), there.len()),
            false => place(&listed, own, sampled, there.len()),
        };
        self.state.reopenings.set_place(rank, nodes);
        self.counted = listed;
        Ok(())
    }

    fn write_known(&mut self) -> Result<(), StoreError> {
        let config = Some(config_digits(&self.state.plan().config));
        if self.presence.config != config {
            self.presence.config = config;
            // Reported at once.
            self.ticks = 0;
        }
        let known = KnownKeys::of_state(&self.state, &self.state.plan());
        if known != self.known {
            write(&*self.state.store, &known_by(&self.presence.node), &known, self.state.wall())?;
            self.known = known;
        }
        Ok(())
    }

    fn report(&mut self) -> Result<(), StoreError> {
        let (store, now) = (&*self.state.store, self.state.wall());
        self.presence.at = now;
        let mut nodes = nodes(store, now)?;
        if !nodes.contains(&self.presence.node) {
            let mut there = Vec::new();
            for node in nodes {
                if let Some(presence) = read::<Presence>(store, &of(&node), now)? {
                    there.push((presence.is_running(now), presence.at, node));
                }
            }
            nodes = newest(there, MAX_GATEWAYS - 1);
            nodes.push(self.presence.node.clone());
            write(store, LIST, &nodes, now)?;
        }
        // A store that was emptied or replaced has lost the keys too.
        let known_by = known_by(&self.presence.node);
        if store.note_get(&known_by, now)?.is_none() {
            write(store, &known_by, &self.known, now)?;
        }
        write(store, &of(&self.presence.node), &self.presence, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn gateways_that_are_gone_make_room_for_those_that_run() {
        let there = vec![
            (true, at(1), "a".to_owned()),
            (false, at(9), "b".to_owned()),
            (false, at(5), "c".to_owned()),
            (true, at(2), "d".to_owned()),
        ];
        assert_eq!(newest(there.clone(), 4), ["a", "b", "c", "d"]);
        assert_eq!(newest(there.clone(), 3), ["a", "b", "d"]);
        assert_eq!(newest(there, 2), ["a", "d"]);
    }

    #[test]
    fn a_thousand_gateways_know_their_number_by_a_sample() {
        let listed: Vec<String> = (0..1_000).map(|nth| format!("node-{nth:04}")).collect();
        let asked = sample(&listed, "node-0500");
        assert!(asked.len() <= MAX_ASKED && asked.len() > MAX_ASKED / 2);
        let running = asked.iter().filter(|node| node.as_str() < "node-0800").count();
        let (rank, nodes) = place(&listed, "node-0500", asked.len(), running);
        assert!((760..=840).contains(&nodes) && (380..=420).contains(&rank), "{rank} of {nodes}");
        assert_eq!(place(&[], "alone", 0, 0), (0, 1));
        let few = ["a".to_owned(), "c".to_owned()];
        assert_eq!(place(&few, "b", 2, 2), (1, 3));
    }

    #[test]
    fn a_key_with_its_default_does_not_tell_two_configs_apart() {
        let older = serde_json::json!({"gate": {"stagger": "50ms"}});
        let newer = serde_json::json!({"gate": {"stagger": "50ms", "novel": true}, "more": {"x": null}});
        assert_eq!(beyond(&older, Some(&older)), None);
        assert_eq!(beyond(&newer, Some(&newer)), None);
        let changed = serde_json::json!({"gate": {"stagger": "1s", "novel": true}, "more": {"x": null}});
        assert_eq!(beyond(&changed, Some(&newer)), Some(serde_json::json!({"gate": {"stagger": "1s"}})));
    }
}
