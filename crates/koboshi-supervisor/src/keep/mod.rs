//! Keeps the agents of a config running, each in its projects.
//!
//! One thread waits for all at once: the shims and pipes of all runs, the socket, the signals. Before it starts anything, it settles what an
//! earlier supervisor left: it takes over runs that live, judges ends that were written meanwhile, and makes starts void that never
//! happened. One supervisor owns the folder of runs; a second one is refused.

mod agent;
mod ask;
mod control;
mod events;
mod judged;
mod lease;
mod meters;
mod removed;
mod run;
mod settings;
mod slot;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::classify::Classifier;
use koboshi::key::ScopeKey;
use koboshi::redact::Redactor;
use koboshi::supervise::{Room, RoomPolicy, Waiting, first};
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use signal_hook::consts::SIGHUP;

use crate::identity::Identity;
use crate::knowledge::Knowledge;
use crate::signals::Signals;

pub use crate::signals::exit_at_next_signal;
pub(crate) use agent::given_values;
pub use agent::{Agent, AgentAccount, GatewayChoice, is_passed};
pub use ask::{Question, ServerPlace, Token, Whom};
pub use control::{Action, Order, SOCKET, ask};
pub use meters::AgentMeters;
pub use settings::{Reloaded, Settings};

use ask::Servers;
use control::Control;
use events::{Events, Ready};
use judged::JudgedEnds;
use slot::{Slot, Wish};

/// How often cooldowns, schedules and limits are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the config is checked for changes.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// A longer time between two looks at the agents means that they were not watched: the machine slept, or this process was stopped.
const UNWATCHED_GAP: Duration = Duration::from_secs(2);
/// A longer time between two checks means that the machine slept.
const SLEEP_GAP: Duration = Duration::from_secs(60);
/// Size of the read buffer that all runs share.
const BUFFER: usize = 256 * 1024;
/// Where the runs of agents are, in the folder of runs.
pub(crate) const AGENTS: &str = "agents";
/// The file that marks an end as judged, so that no later supervisor judges it again.
pub(crate) const JUDGED: &str = "judged";

/// What a supervisor needs.
pub struct SupervisorInputs<'k> {
    /// Told once, when the agents are really this one's to keep.
    pub begun: &'k mut dyn FnMut(&[Agent]),
    /// The agents, and what their accounts allow.
    pub settings: Settings,
    /// Checks whether the config has changed; `true` where a person says that it is complete.
    pub reload: &'k mut dyn FnMut(bool) -> Reloaded,
    /// Where runs have their folders.
    pub runs: PathBuf,
    /// What is cooling down.
    pub knowledge: &'k Knowledge,
    /// The classifier that reads the ends of runs.
    pub classifier: &'k Classifier,
    /// The zone of times without one.
    pub zone: TimeZone,
    /// The binary whose shim is used.
    pub binary: PathBuf,
    /// The address of the gateway, if one answers; asked at each start of an agent that has not chosen one.
    pub gateway: &'k dyn Fn() -> Option<String>,
    /// Where it counts.
    pub meters: Arc<AgentMeters>,
    /// Where its log lines go.
    pub log: &'k mut dyn FnMut(&str),
}

/// Why a supervisor does not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// Another one owns the folder.
    #[error("another supervisor keeps these agents already: it has their runs in {0}")]
    Owned(PathBuf),
    /// The machine refuses something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What all agents share.
pub(crate) struct Common<'k> {
    pub(crate) knowledge: &'k Knowledge,
    pub(crate) classifier: &'k Classifier,
    pub(crate) zone: TimeZone,
    pub(crate) binary: PathBuf,
    pub(crate) gateway: &'k dyn Fn() -> Option<String>,
    pub(crate) redactor: Redactor,
    pub(crate) owner: Identity,
    pub(crate) clock: SystemClock,
    pub(crate) events: Events,
    pub(crate) meters: Arc<AgentMeters>,
    pub(crate) judged: RefCell<JudgedEnds>,
    /// How many files an agent may have open: our own limit before we raised it.
    pub(crate) open_files: Option<u64>,
}

/// Keeps agents running until a signal to stop.
///
/// # Errors
/// Another supervisor keeps them, or the machine refuses what is needed.
pub fn keep(mut inputs: SupervisorInputs<'_>) -> Result<(), KeepError> {
    // Shims run in the folders of their agents, where a relative path means another place.
    inputs.runs = std::path::absolute(&inputs.runs)?;
    let _lock = own(&inputs.runs)?;
    crate::shim::step_aside();
    let signals = Signals::new()?;
    let control = Control::listen(&inputs.runs)?;
    (inputs.begun)(&inputs.settings.agents);
    let owner = Identity::own().ok_or_else(|| io::Error::other("/proc is not there"))?;
    let servers = Servers::start(inputs.settings.agents.iter())?;
    let common = Common {
        knowledge: inputs.knowledge,
        classifier: inputs.classifier,
        zone: inputs.zone,
        binary: inputs.binary,
        gateway: inputs.gateway,
        redactor: Redactor::new(),
        owner,
        clock: SystemClock,
        events: Events::new(
            signals.pipes().chain([control.listener.as_fd()]).chain(servers.as_ref().map(Servers::bell)),
        )?,
        meters: inputs.meters,
        judged: RefCell::default(),
        open_files: raise_open_files(),
    };
    let agents = inputs.runs.join(AGENTS);
    let Settings { agents: wanted, rooms: policies, .. } = inputs.settings;
    let slots = wanted.into_iter().map(|agent| Slot::new(agent, &agents)).collect();
    let (watched_since, last_check) = (common.clock.wall(), common.clock.moment());
    let mut keeper = Keeper {
        slots,
        rooms: BTreeMap::new(),
        policies,
        servers,
        reload: inputs.reload,
        runs: inputs.runs,
        watched_since,
        last_check,
        common,
        log: inputs.log,
    };
    keeper.adopt();
    keeper.adopt_removed(&agents);
    keeper.work(&signals, &control)
}

/// Raises the limit of open files as far as allowed, because every run needs a few; returns the limit before.
fn raise_open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok()?;
    current
}

/// Takes the lock of this folder: its holder keeps the agents.
fn own(runs: &Path) -> Result<File, KeepError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(runs)?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(runs.join("supervisor.lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(KeepError::Owned(runs.to_owned())),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

struct Keeper<'k> {
    slots: Vec<Slot>,
    rooms: BTreeMap<ScopeKey, Room>,
    policies: BTreeMap<ScopeKey, RoomPolicy>,
    /// Those who are asked whether agents are wanted.
    servers: Option<Servers>,
    reload: &'k mut dyn FnMut(bool) -> Reloaded,
    runs: PathBuf,
    /// Since when the clock is watched without a break.
    watched_since: Timestamp,
    /// When it was last checked who may start.
    last_check: Moment,
    common: Common<'k>,
    log: &'k mut dyn FnMut(&str),
}

impl Keeper<'_> {
    /// Takes over what an earlier supervisor left.
    fn adopt(&mut self) {
        for slot in &mut self.slots {
            slot.take_over(&self.common, self.log);
            if let Some(account) = slot.account() {
                self.rooms.entry(account.clone()).or_default().enter();
            }
        }
    }

    fn work(&mut self, signals: &Signals, control: &Control) -> Result<(), KeepError> {
        let mut stopping = false;
        let mut buffer = vec![0; BUFFER];
        let mut ready = Ready::default();
        let mut checked = None;
        let mut followed = self.common.clock.moment();
        let mut looked = followed;
        loop {
            // Cooldowns and schedules are checked at intervals, and after every event that may change what may start.
            let now = self.common.clock.moment();
            let unwatched = now.since(std::mem::replace(&mut looked, now));
            if unwatched >= UNWATCHED_GAP {
                self.slots.iter_mut().for_each(|slot| slot.was_unwatched(unwatched));
            }
            let mut changed = ready.is_called || checked.is_none_or(|at| now.since(at) >= POLL_INTERVAL);
            for slot in &mut self.slots {
                let account = slot.account().cloned();
                let Some(end) = slot.poll(&ready, &mut buffer, &self.common, self.log) else { continue };
                changed = true;
                if let Some(room) = account.and_then(|account| self.rooms.get_mut(&account)) {
                    // A limit is met by all that run, this one included.
                    end.report_to(room);
                    room.leave();
                }
            }
            self.common.judged.borrow_mut().write(self.common.knowledge);
            self.remove_retired();
            if stopping && !self.slots.iter().any(Slot::must_end_with_us) {
                self.slots.iter().for_each(|slot| slot.leave(self.common.knowledge.ledger()));
                return Ok(());
            }
            if checked.is_some_and(|at| now.since(at) >= SLEEP_GAP) {
                self.watched_since = self.common.clock.wall();
            }
            if changed && !stopping {
                self.take_answers();
                self.start_due_agents();
            }
            if changed {
                checked = Some(now);
            }
            ready = self.common.events.wait(POLL_INTERVAL)?;
            control.serve(|order| self.answer(order, stopping));
            if !stopping && now.since(followed) >= FOLLOW_INTERVAL {
                followed = now;
                self.reload(false);
            }
            match signals.stop() {
                Some(SIGHUP) if !stopping => {
                    self.reload(true);
                }
                None | Some(SIGHUP) => {}
                Some(_) => {
                    // The second request kills at once. What survives us is not asked at all.
                    let request = if stopping { Slot::kill } else { Slot::stop_for_us };
                    if !stopping {
                        self.log_stop();
                    }
                    stopping = true;
                    self.slots.iter_mut().filter(|slot| slot.must_end_with_us()).for_each(request);
                }
            }
        }
    }

    fn log_stop(&mut self) {
        let running = self.slots.iter().filter(|slot| slot.is_running()).count();
        let ending = self.slots.iter().filter(|slot| slot.must_end_with_us()).count();
        let left = running.saturating_sub(ending);
        (self.log)(&format!("stopping: {ending} running agents are stopped, {left} go on"));
    }

    /// Carries out an order, and returns the state afterwards.
    fn answer(&mut self, order: &Order, stopping: bool) -> Value {
        let answer = match order.action {
            Action::Reload if stopping => json!({"error": "stopping"}),
            Action::Reload => self.reload(true),
            _ => answer(&mut self.slots, order, self.common.clock.wall()),
        };
        let is_change = order.action != Action::Status && !order.is_noted;
        // A name that no agent has could fill the journal.
        if is_change && answer.get("error").is_none_or(|error| error == "config") {
            self.common.knowledge.note_order(order.action.name(), order.agent.as_deref());
        }
        answer
    }

    /// What servers say about agents.
    fn take_answers(&mut self) {
        let Some(servers) = &self.servers else { return };
        let mut answers = servers.take();
        for slot in &mut self.slots {
            if let Some(answer) = answers.remove(&slot.agent.name) {
                slot.answered(answer, self.log);
            }
        }
    }

    /// Whether an agent runs in as many of its projects as it may.
    fn is_full(&self, agent: &Agent) -> bool {
        let running = self.slots.iter().filter(|slot| slot.is_running() && slot.agent.base() == agent.base());
        agent.concurrency.is_some_and(|most| running.count() >= usize::try_from(most).unwrap_or(usize::MAX))
    }

    fn start_due_agents(&mut self) {
        let (now, moment) = (self.common.clock.wall(), self.common.clock.moment());
        self.common.knowledge.forget_unasked();
        // While the machine sleeps no agent is held.
        let passed = moment.since(self.last_check).min(SLEEP_GAP);
        self.last_check = moment;
        let mut waiting = Vec::new();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.retry(&self.common, self.log)
                && let Some(account) = slot.account()
            {
                self.rooms.entry(account.clone()).or_default().enter();
            }
            slot.ask(moment, self.log);
            if slot.wants_to_start(self.watched_since, now) {
                waiting.push(Waiting { who: at, last_start: slot.last_start, since: now });
            }
        }
        for Waiting { who, .. } in first(waiting) {
            let is_full = self.slots.get(who).is_some_and(|slot| self.is_full(&slot.agent));
            let Some(slot) = self.slots.get_mut(who) else { continue };
            let (rooms, policies) = (&self.rooms, &self.policies);
            let agent = slot.agent.base().to_owned();
            let full = |account: Option<&ScopeKey>| {
                if is_full {
                    return Some(agent.clone());
                }
                let policy = policies.get(account?).copied().unwrap_or_default();
                let has_place = rooms.get(account?).is_none_or(|room| room.has_place(policy));
                account.filter(|_| !has_place).map(ToString::to_string)
            };
            if !slot.start(full, &self.common, self.log) {
                self.common.meters.held(&slot.agent.name, passed);
            } else if let Some(account) = slot.account() {
                self.rooms.entry(account.clone()).or_default().enter();
            }
        }
        self.common.meters.states(self.slots.iter().map(Slot::state));
    }
}

/// Carries out an order, and returns the state afterwards.
fn answer(slots: &mut [Slot], order: &Order, now: Timestamp) -> Value {
    let meant = |slot: &Slot| {
        order.agent.as_ref().is_none_or(|name| slot.agent.name == *name || slot.agent.base() == name)
    };
    if !slots.iter().any(&meant) {
        let names: Vec<&str> = slots.iter().map(|slot| slot.agent.name.as_str()).collect();
        return json!({"error": "unknown_agent", "agents": names});
    }
    for slot in slots.iter_mut().filter(|slot| meant(slot)) {
        match order.action {
            Action::Status | Action::Reload => {}
            Action::Start => slot.wish(Wish::Run),
            Action::Stop => slot.wish(Wish::Stop),
            Action::Restart => slot.wish(Wish::Restart),
        }
    }
    json!({"agents": slots.iter().filter(|slot| meant(slot)).map(|slot| slot.status(now)).collect::<Vec<_>>()})
}
