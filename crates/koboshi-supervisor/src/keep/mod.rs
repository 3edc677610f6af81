//! Keeps the agents of a config running, each in its projects.
//!
//! One thread, one poll: the shims and pipes of all runs, the socket, the signals. Before anything is started, what an earlier supervisor left
//! is settled: a run that lives is taken over, an end that was written meanwhile is judged, a start that never happened is made void. One
//! supervisor owns the folder of runs; a second one is refused.

mod agent;
mod control;
mod run;
mod slot;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::classify::Classifier;
use koboshi::key::ScopeKey;
use koboshi::redact::Redactor;
use koboshi::supervise::{Due, Room, RoomPolicy, Waiting, due, first};
use koboshi_store::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::identity::Identity;
use crate::knowledge::Knowledge;
use crate::signals::Signals;

pub use agent::{Agent, is_passed};
pub use control::{Action, Order, SOCKET, ask};

use control::Control;
use slot::{Slot, Wish};

/// How often cooldowns, clocks and limits are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Where the runs of agents are, in the folder of runs.
const AGENTS: &str = "agents";

/// What a supervisor needs.
pub struct Keeping<'k> {
    /// The agents.
    pub agents: Vec<Agent>,
    /// How many runs an account bears.
    pub rooms: BTreeMap<ScopeKey, RoomPolicy>,
    /// Where runs have their folders.
    pub runs: PathBuf,
    /// What rests.
    pub knowledge: &'k Knowledge,
    /// What reads their ends.
    pub classifier: &'k Classifier,
    /// The zone of times without one.
    pub zone: TimeZone,
    /// The binary whose shim is used.
    pub binary: PathBuf,
    /// Where its log lines go.
    pub log: &'k mut dyn FnMut(&str),
}

/// Why a supervisor does not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// Another one owns the folder.
    #[error("another supervisor keeps the agents of {0}")]
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
    pub(crate) redactor: Redactor,
    pub(crate) owner: Identity,
    pub(crate) clock: SystemClock,
}

/// Keeps agents running until a signal to stop.
///
/// # Errors
/// Another supervisor keeps them, or the machine refuses what is needed.
pub fn keep(keeping: Keeping<'_>) -> Result<(), KeepError> {
    let _lock = own(&keeping.runs)?;
    let signals = Signals::new()?;
    let control = Control::listen(&keeping.runs)?;
    let owner = Identity::own().ok_or_else(|| io::Error::other("/proc is not there"))?;
    let common = Common {
        knowledge: keeping.knowledge,
        classifier: keeping.classifier,
        zone: keeping.zone,
        binary: keeping.binary,
        redactor: Redactor::new(),
        owner,
        clock: SystemClock,
    };
    let agents = keeping.runs.join(AGENTS);
    let slots = keeping.agents.into_iter().map(|agent| Slot::new(agent, &agents)).collect();
    let mut keeper =
        Keeper { slots, rooms: BTreeMap::new(), policies: keeping.rooms, common, log: keeping.log };
    keeper.adopt()?;
    keeper.work(&signals, &control)
}

/// The right to keep the agents of this folder.
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
    common: Common<'k>,
    log: &'k mut dyn FnMut(&str),
}

impl Keeper<'_> {
    /// Takes over what an earlier supervisor left.
    fn adopt(&mut self) -> io::Result<()> {
        for slot in &mut self.slots {
            slot.adopt(&self.common, self.log)?;
            if slot.is_running()
                && let Some(account) = &slot.agent.ladder.account
            {
                self.rooms.entry(account.clone()).or_default().enter();
            }
        }
        Ok(())
    }

    fn work(&mut self, signals: &Signals, control: &Control) -> Result<(), KeepError> {
        let mut stopping = false;
        loop {
            for slot in &mut self.slots {
                let account = slot.agent.ladder.account.clone();
                if let Some(end) = slot.look(&self.common, self.log)?
                    && let Some(room) = account.and_then(|account| self.rooms.get_mut(&account))
                {
                    room.leave();
                    end.tell(room);
                }
            }
            if stopping && !self.slots.iter().any(Slot::must_end_with_us) {
                return Ok(());
            }
            if !stopping {
                self.start_those_whose_turn_it_is();
            }
            self.wait(signals, control)?;
            let slots = &mut self.slots;
            control.serve(|order| answer(slots, order, self.common.clock.wall()));
            if signals.stop().is_some() {
                if stopping {
                    self.slots.iter_mut().for_each(Slot::kill);
                }
                stopping = true;
                self.slots.iter_mut().filter(|slot| slot.must_end_with_us()).for_each(Slot::stop_for_us);
            }
        }
    }

    fn start_those_whose_turn_it_is(&mut self) {
        let now = self.common.clock.wall();
        let mut waiting = Vec::new();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.wants_to_start(now) {
                waiting.push(Waiting { who: at, last_start: slot.last_start, since: now });
            }
        }
        for Waiting { who, .. } in first(waiting) {
            let Some(slot) = self.slots.get_mut(who) else { continue };
            let account = slot.agent.ladder.account.clone();
            let policy =
                account.as_ref().and_then(|account| self.policies.get(account)).copied().unwrap_or_default();
            let room = account.map(|account| self.rooms.entry(account).or_default());
            if room.as_ref().is_some_and(|room| !room.has_place(policy)) {
                continue;
            }
            if slot.start(&self.common, self.log)
                && let Some(room) = room
            {
                room.enter();
            }
        }
    }

    /// Waits for output, an end, an order, a signal, or the next look.
    fn wait(&self, signals: &Signals, control: &Control) -> io::Result<()> {
        let mut waiting: Vec<PollFd<'_>> =
            signals.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
        waiting.push(PollFd::from_borrowed_fd(control.listener.as_fd(), PollFlags::IN));
        let of_runs = self.slots.iter().flat_map(Slot::descriptors);
        waiting.extend(of_runs.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)));
        let look = Timespec::try_from(LOOK).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut waiting, Some(&look)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Does what is ordered, and says how things are then.
fn answer(slots: &mut [Slot], order: &Order, now: Timestamp) -> Value {
    let meant = |slot: &Slot| {
        order.agent.as_ref().is_none_or(|name| {
            slot.agent.name == *name
                || slot.agent.name.split_once('/').is_some_and(|(agent, _)| agent == name)
        })
    };
    if !slots.iter().any(&meant) {
        let names: Vec<&str> = slots.iter().map(|slot| slot.agent.name.as_str()).collect();
        return json!({"error": "unknown_agent", "agents": names});
    }
    for slot in slots.iter_mut().filter(|slot| meant(slot)) {
        match order.action {
            Action::Status => {}
            Action::Start => slot.wish(Wish::Run),
            Action::Stop => slot.wish(Wish::Stop),
            Action::Restart => slot.wish(Wish::Restart),
        }
    }
    json!({"agents": slots.iter().filter(|slot| meant(slot)).map(|slot| slot.told(now)).collect::<Vec<_>>()})
}

/// Whether an agent is wanted now; a question is asked by its slot.
pub(crate) fn is_due(slot: &Slot, now: Timestamp) -> Option<bool> {
    match due(slot.agent.when, slot.last_start, slot.ended_well, now) {
        Due::Now => Some(true),
        Due::At(_) | Due::Never => Some(false),
        Due::Ask => None,
    }
}
