//! A gateway says in its store that it is there: where it listens, when it last reported, and which targets it knows.
//!
//! The command line works on the store, perhaps without the gateway's config and environment. What it needs of the gateway is kept as sessions of
//! the store, which end by themselves: `gateways` lists the nodes, `gateway:NODE` is one of them, `gateway-known:NODE` its keys. A thread of
//! its own writes them, because a store may block; nothing depends on it but what people are told, and nobody waits long for its end. A start of two gateways at the same moment may
//! lose one name of the list until its next report.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use koboshi_store::{Node, Row, Store, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::admin::known::Known;
use crate::route::plan::Plan;
use crate::shared::state::SharedState;

/// How often a gateway looks whether it knows other targets.
const TICK: Duration = Duration::from_millis(250);
/// A gateway reports after so many looks at the latest.
const TICKS_PER_REPORT: u32 = 40;
/// One that has not reported for this long is not running, or cannot reach the store.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// A start waits no longer for its first report.
const FIRST_REPORT: Duration = Duration::from_millis(500);
/// A gateway that is gone is remembered for so long.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Gateways that are listed.
const MAX_GATEWAYS: usize = 200;

const LIST: &str = "gateways";

/// A gateway, as it reported to its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The name of its process.
    pub node: String,
    /// Where it listens.
    pub address: String,
    /// Which Koboshi it is.
    pub version: String,
    /// When it started.
    pub started: Timestamp,
    /// When it reported last.
    pub at: Timestamp,
    /// It has stopped.
    pub stopped: bool,
}

impl Presence {
    /// Whether it runs, as far as its reports say.
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

/// What the gateways of this store know, all together.
///
/// # Errors
/// The store cannot be read now.
pub fn known(store: &dyn Store, now: Timestamp) -> Result<Known, StoreError> {
    let mut all = Known::default();
    for node in nodes(store, now)? {
        if let Some(known) = read::<Known>(store, &known_by(&node), now)? {
            all.add(known);
        }
    }
    Ok(all)
}

/// The keys of the gateways that run; where none does, of the one that reported last.
///
/// # Errors
/// The store cannot be read now.
pub fn known_now(store: &dyn Store, gateways: &[Presence], now: Timestamp) -> Result<Known, StoreError> {
    let mut all = Known::default();
    let is_running = |gateway: &&Presence| gateway.is_running(now);
    let last = gateways.last().filter(|_| !gateways.iter().any(|gateway| gateway.is_running(now)));
    for gateway in gateways.iter().filter(is_running).chain(last) {
        if let Some(known) = read::<Known>(store, &known_by(&gateway.node), now)? {
            all.add(known);
        }
    }
    Ok(all)
}

/// Whether what a row says still holds for somebody: its gateway was not stopped, and its API key is one of those that are in use.
#[must_use]
pub fn is_in_force(row: &Row, gateways: &[Presence], known: &Known) -> bool {
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

/// What a session holds; none where there is none, or where a newer program wrote it.
fn read<T: DeserializeOwned>(store: &dyn Store, id: &str, now: Timestamp) -> Result<Option<T>, StoreError> {
    let body = store.session_get(id, now)?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

fn write(store: &dyn Store, id: &str, what: &impl Serialize, now: Timestamp) -> Result<(), StoreError> {
    let body = serde_json::to_vec(what).unwrap_or_default();
    store.session_put(id, &body, RETENTION, now)
}

/// Reports for as long as it is there.
pub(crate) struct Reports {
    stop: Option<SyncSender<()>>,
    /// Hears when the last report is made.
    ended: Mutex<Receiver<()>>,
}

impl Reports {
    /// Begins to report. Waits a moment for the first report, so that whoever was told that the gateway listens finds it in the store.
    pub(crate) fn start(state: &Arc<SharedState>, address: String) -> std::io::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(1);
        let (first, reported) = sync_channel::<()>(1);
        let (end, ended) = sync_channel::<()>(1);
        let mut reporter = Reporter::new(Arc::clone(state), address);
        std::thread::Builder::new().name("koboshi-presence".to_owned()).spawn(move || {
            reporter.tick();
            // Nobody waits any more if the start was given up.
            let _ = first.try_send(());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                reporter.tick();
            }
            reporter.end();
            // What it holds goes first: whoever waited may want the store for themselves.
            drop(reporter);
            let _ = end.try_send(());
        })?;
        let _ = reported.recv_timeout(FIRST_REPORT);
        Ok(Self { stop: Some(stop), ended: Mutex::new(ended) })
    }

    /// Begins to say in the store that the gateway has stopped.
    pub(crate) fn close(&mut self) {
        drop(self.stop.take());
    }

    /// Waits at most this long until that is said. A store that hangs is not waited for.
    pub(crate) fn finish(&mut self, longest: Duration) {
        self.close();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(longest);
    }
}

struct Reporter {
    state: Arc<SharedState>,
    presence: Presence,
    known: Known,
    /// What was looked at when `known` was made.
    checked: Option<(Arc<Plan>, u64, usize)>,
    ticks: u32,
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
        };
        Self { state, presence, known: Known::default(), checked: None, ticks: 0 }
    }

    fn tick(&mut self) {
        // A store that is away is told of elsewhere; the next look tries again.
        if self.is_other() && self.write_known().is_err() {
            self.checked = None;
        }
        if self.ticks == 0 && self.report().is_err() {
            return;
        }
        self.ticks = (self.ticks + 1) % TICKS_PER_REPORT;
    }

    /// Whether there may be other targets than at the last look.
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

    fn write_known(&mut self) -> Result<(), StoreError> {
        let known = Known::of_state(&self.state, &self.state.plan());
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
                if store.session_get(&of(&node), now)?.is_some() {
                    there.push(node);
                }
            }
            nodes = there;
            nodes.push(self.presence.node.clone());
            let oldest = nodes.len().saturating_sub(MAX_GATEWAYS);
            write(store, LIST, &nodes.get(oldest..).unwrap_or_default(), now)?;
        }
        // A store that was emptied or replaced has lost the keys too.
        let known_by = known_by(&self.presence.node);
        if store.session_get(&known_by, now)?.is_none() {
            write(store, &known_by, &self.known, now)?;
        }
        write(store, &of(&self.presence.node), &self.presence, now)
    }

    fn end(&mut self) {
        self.presence.stopped = true;
        // It is remembered as one that fell silent, where the store is away.
        let _ = self.report();
    }
}
