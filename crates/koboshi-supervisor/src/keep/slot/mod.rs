//! One agent in one project: what it is doing, and what is wanted of it.
//!
//! `adopt` takes over what an earlier supervisor left, `aside` keeps what it cannot read from being started, `wanted` decides whether it is to run, `start` starts what may start, `end` reads output
//! and judges ends, `machine` keeps to one machine what may run on any.

mod adopt;
mod aside;
mod end;
mod machine;
mod start;
mod wanted;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::key::ScopeKey;
use koboshi::supervise::{AgentAction, StoppedFor};
use koboshi_store::Ledger;
use serde_json::{Value, json};

use crate::folder::{Folder, OnOwnerDeath, write_whole};
use crate::watch::Live;

use super::ask::ProgramAsker;
use super::lease::AgentLease;
use super::run::Run;
use super::{Agent, Common, JUDGED};

use aside::Aside;

/// How many runs stay on disk, with their logs.
const KEPT_RUNS: usize = 20;
/// What the runs of an agent may take on disk together, beside the newest one.
const MAX_KEPT_BYTES: u64 = 100 << 20;

/// The file in an agent's folder that says that an operator stopped it.
const STOPPED: &str = "stopped";

/// What a person wants of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Run,
    Stop,
    Restart,
}

/// An agent in one project.
pub(crate) struct Slot {
    pub(super) agent: Agent,
    /// Where its runs are.
    home: PathBuf,
    run: Option<Run>,
    /// The shim as our own child, so that we reap it.
    child: Option<Child>,
    live: Live,
    pub(super) last_start: Option<Timestamp>,
    pub(super) ended_well: bool,
    /// An operator stopped it.
    stopped: bool,
    /// An operator started it, whatever the config says.
    wanted: bool,
    /// The last run was cut short by something that passes.
    unfinished: bool,
    last_end: Option<Timestamp>,
    asker: ProgramAsker,
    /// The right to run it, where only one machine has that.
    lease: Option<AgentLease>,
    /// The action that the program or server asked for last.
    action: Option<AgentAction>,
    /// Why the program or server cannot be asked; logged once.
    trouble: Option<String>,
    /// Why it waits, for `status`; logged once.
    held: Option<String>,
    /// Whether what holds it ends only when a person resumes it.
    is_parked: bool,
    /// Its runs cannot be read: it is not started.
    aside: Option<Aside>,
    last: Value,
    session: Option<String>,
    again: bool,
    /// The account of the last run.
    last_account: Option<String>,
    /// The config no longer has it: it is stopped and forgotten.
    retired: bool,
}

impl Slot {
    pub(super) fn new(agent: Agent, folder: &Path) -> Self {
        let home = folder.join(&agent.name);
        let stopped = home.join(STOPPED).exists();
        let live = Live::of(&agent.kind);
        let lease = agent.takeover.map(|takeover| AgentLease::new(&agent.name, takeover));
        Self {
            agent,
            home,
            run: None,
            child: None,
            live,
            last_start: None,
            ended_well: false,
            stopped,
            wanted: false,
            unfinished: false,
            last_end: None,
            asker: ProgramAsker::default(),
            lease,
            action: None,
            trouble: None,
            held: None,
            is_parked: false,
            aside: None,
            last: Value::Null,
            session: None,
            again: false,
            last_account: None,
            retired: false,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        self.run.is_some()
    }

    pub(super) const fn is_retired(&self) -> bool {
        self.retired
    }

    /// The account whose place it takes while it runs.
    pub(super) fn account(&self) -> Option<&ScopeKey> {
        self.run.as_ref()?.ladder.account.as_ref()
    }

    /// Its output was not read for this long.
    pub(super) fn was_unwatched(&mut self, length: Duration) {
        if let Some(run) = &mut self.run {
            run.signs.was_unwatched(length);
        }
    }

    /// The config no longer has it.
    pub(super) fn retire(&mut self) {
        self.retired = true;
        self.stop_for_us();
    }

    /// Takes new settings; returns whether the run is restarted for them.
    pub(super) fn take_settings(&mut self, agent: Agent, ledger: &Ledger) -> bool {
        let is_stopping = self.run.as_ref().is_some_and(|run| run.stopping.is_some());
        let restarts = self.is_running() && !is_stopping && self.agent.needs_restart(&agent);
        if agent.takeover != self.agent.takeover {
            self.give_up(ledger);
            self.lease = agent.takeover.map(|takeover| AgentLease::new(&agent.name, takeover));
            if let Some(lease) = &mut self.lease {
                lease.claim(ledger, None);
            }
        }
        self.live = Live::of(&agent.kind);
        (self.agent, self.held) = (agent, None);
        if restarts {
            self.wish(Wish::Restart);
        } else if self.retired && is_stopping {
            self.wanted = true;
        }
        self.retired = false;
        restarts
    }

    pub(super) fn must_end_with_us(&self) -> bool {
        self.is_running() && self.agent.on_owner_death == OnOwnerDeath::Stop
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        match wish {
            Wish::Run => {
                self.set_stopped(false);
                self.retry_now();
            }
            Wish::Stop => {
                self.set_stopped(true);
                self.stop_for_us();
            }
            Wish::Restart => {
                self.set_stopped(false);
                self.retry_now();
                self.stop_for_us();
            }
        }
    }

    /// Whether an operator has stopped it, on disk as well: the next supervisor must not start it.
    fn set_stopped(&mut self, stopped: bool) {
        (self.stopped, self.wanted) = (stopped, !stopped);
        let file = self.home.join(STOPPED);
        // Without a disk the order holds for as long as this supervisor runs.
        let _ = if stopped {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.home);
            made.and_then(|()| write_whole(&file, b""))
        } else {
            fs::remove_file(file)
        };
    }

    pub(super) fn stop_for_us(&mut self) {
        if let Some(run) = &mut self.run {
            run.stop(StoppedFor::Request);
        }
    }

    /// Kills it at once, on a second request to stop.
    pub(super) fn kill(&mut self) {
        if let Some(run) = &mut self.run {
            run.kill();
        }
    }

    /// What it is doing, by its name in `status` and in metrics.
    pub(super) fn state(&self) -> &'static str {
        match (&self.run, self.stopped, &self.held) {
            (Some(run), ..) if run.stopping.is_some() => "stopping",
            (Some(_), ..) => "running",
            (None, true, _) => "stopped",
            (None, false, _) if self.aside.is_some() => "aside",
            (None, false, Some(_)) if self.is_parked => "parked",
            (None, false, Some(_)) => "held",
            (None, false, None) => "waiting",
        }
    }

    pub(super) fn status(&self, now: Timestamp) -> Value {
        let running = self.run.as_ref().and_then(|run| run.folder.running());
        let held_by = self.aside.as_ref().map(|aside| &aside.why).or(self.held.as_ref());
        json!({
            "agent": self.agent.name, "state": self.state(), "held_by": held_by, "now": now,
            "started": self.run.as_ref().map(|run| run.started), "account": self.account().map(ScopeKey::name),
            "pid": running.map(|running| running.child.pid), "last": self.last,
            "written": self.run.as_ref().map(|run| run.written),
            "dropped": self.run.as_ref().map(Run::dropped),
        })
    }

    /// The folders of its runs, oldest first.
    fn runs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.home).into_iter().flatten().flatten();
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        runs.sort();
        runs
    }

    fn forget_old_runs(&self) {
        let mut runs = self.runs();
        let sizes: Vec<u64> = runs.iter().map(|run| size_of(run)).collect();
        runs.truncate(too_many(&sizes));
        runs.iter().for_each(|path| Folder::at(path).remove());
    }
}

/// How many of the oldest runs go: more than are kept, or larger than what may be kept. The newest one stays.
fn too_many(sizes: &[u64]) -> usize {
    let mut left = MAX_KEPT_BYTES;
    let kept = sizes.iter().rev().take(KEPT_RUNS).enumerate().take_while(|(at, size)| {
        let fits = left.checked_sub(**size);
        left = fits.unwrap_or(0);
        *at == 0 || fits.is_some()
    });
    sizes.len() - kept.count()
}

/// How much a run takes on disk.
fn size_of(run: &Path) -> u64 {
    let entries = fs::read_dir(run).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|facts| facts.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_keeps_its_newest_runs_up_to_a_size() {
        const MIB: u64 = 1 << 20;
        assert_eq!(too_many(&[]), 0);
        assert_eq!(too_many(&[1; 20]), 0);
        assert_eq!(too_many(&[1; 23]), 3);
        assert_eq!(too_many(&[30 * MIB; 20]), 17, "three of the largest logs");
        assert_eq!(too_many(&[90 * MIB, 5 * MIB, 5 * MIB, 90 * MIB]), 1);
        assert_eq!(too_many(&[MIB, 300 * MIB]), 1, "the newest one stays");
        let folder = tempfile::tempdir().unwrap();
        for (name, size) in [("log", 7), ("log.1", 9)] {
            fs::write(folder.path().join(name), vec![0; size]).unwrap();
        }
        assert_eq!(size_of(folder.path()), 16);
    }
}
