//! One agent in one project: what it is doing, and what is wanted of it.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::classify::AgentLog;
use koboshi::cooldown::{Class, Failure};
use koboshi::supervise::{End, Outcome, Permit, Room, Status, StoppedFor, judge, overdue};
use koboshi_store::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::{Value, json};

use crate::folder::{Ended, Folder, How, OnOwnerDeath, Spec, State, write_whole};
use crate::knowledge::About;
use crate::spawn::{Launch, Streams, start};
use crate::watch::{Live, Sign};

use super::run::Run;
use super::{Agent, Common, is_due};

/// So many runs are kept on the disk, with their logs.
const KEPT_RUNS: usize = 20;
/// A question is asked so often.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// So long a shim may take from its start until it has written who runs.
const LONGEST_BEGIN: Duration = Duration::from_secs(10);
/// Says that an end was judged, so that no later supervisor judges it again.
const JUDGED: &str = "judged";

/// What a person wants of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Run,
    Stop,
    Restart,
}

/// What the end of a run means for the places of its account.
pub(super) struct RunOver {
    refused: bool,
    succeeded: bool,
}

impl RunOver {
    pub(super) fn tell(&self, room: &mut Room) {
        if self.refused {
            room.refused();
        } else if self.succeeded {
            room.succeeded();
        }
    }
}

pub(crate) struct Slot {
    pub(super) agent: Agent,
    /// Where its runs are.
    home: PathBuf,
    run: Option<Run>,
    /// The shim as our own child, so that it is buried.
    child: Option<Child>,
    live: Live,
    pub(super) last_start: Option<Timestamp>,
    pub(super) ended_well: bool,
    /// Somebody stopped it.
    stopped: bool,
    /// Somebody wants it now, whatever the config says.
    wanted: bool,
    asking: Option<Child>,
    asked: Option<Timestamp>,
    /// Why it waits, for those who ask; told once in the log.
    held: Option<String>,
    last: Value,
    session: Option<String>,
    again: bool,
}

impl Slot {
    pub(super) fn new(agent: Agent, folder: &Path) -> Self {
        let home = folder.join(&agent.name);
        let live = Live::of(&agent.kind);
        Self {
            agent,
            home,
            run: None,
            child: None,
            live,
            last_start: None,
            ended_well: false,
            stopped: false,
            wanted: false,
            asking: None,
            asked: None,
            held: None,
            last: Value::Null,
            session: None,
            again: false,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        self.run.is_some()
    }

    pub(super) fn must_end_with_us(&self) -> bool {
        self.is_running() && self.agent.on_owner_death == OnOwnerDeath::Stop
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.run.iter().flat_map(Run::descriptors)
    }

    // ===== what an earlier supervisor left =====

    pub(super) fn adopt(&mut self, common: &Common<'_>, log: &mut dyn FnMut(&str)) -> io::Result<()> {
        for path in self.runs() {
            let folder = Folder::at(&path);
            if !folder.file("spec.json").exists() {
                // The last supervisor was killed before it had written what to start: nothing was.
                folder.remove();
                continue;
            }
            match settled(&folder, common)? {
                State::Over(end) => self.judge_late(&folder, &end, common, log),
                State::Alive(running) => {
                    let shim = running.as_ref().and_then(|running| running.shim.open());
                    let (Some(running), Some(shim)) = (running, shim) else {
                        return Err(io::Error::other(format!(
                            "{}: its shim does not answer",
                            path.display()
                        )));
                    };
                    folder.adopt(&common.owner)?;
                    let moment = common.clock.moment();
                    let mut run = Run::open(folder, shim, Permit::default(), running.started, moment)?;
                    // The shim hands over what it kept, and reads no more.
                    let _ = rustix::process::pidfd_send_signal(&run.shim, Signal::HUP);
                    run.recall();
                    self.last_start = Some(running.started);
                    self.run = Some(run);
                    log(&format!("{}: taken over, runs since {}", self.agent.name, running.started));
                }
            }
        }
        Ok(())
    }

    /// An end that nobody has judged yet.
    fn judge_late(&mut self, folder: &Folder, end: &Ended, common: &Common<'_>, log: &mut dyn FnMut(&str)) {
        self.last_start = self.last_start.max(end.started);
        if end.how == How::Void || folder.file(JUDGED).exists() {
            return;
        }
        let read =
            |name| String::from_utf8_lossy(&fs::read(folder.file(name)).unwrap_or_default()).into_owned();
        let text = read("log") + &read(crate::folder::MISSED);
        self.conclude(folder, end, None, &text, &Permit::default(), common, log);
    }

    // ===== what runs =====

    /// Reads along, stops what takes too long, and judges an end.
    pub(super) fn look(
        &mut self,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> io::Result<Option<RunOver>> {
        let Some(run) = &mut self.run else { return Ok(None) };
        let now = common.clock.moment();
        let (live, agent, started) = (&self.live, &self.agent, run.started);
        let mut offline = run.signs.offline;
        let mut on_line = |line: &[u8]| {
            let zoned = common.knowledge.now().to_zoned(common.zone.clone());
            match live.sign(line, common.classifier, &zoned) {
                Sign::Life => offline = None,
                Sign::Offline => offline = offline.or(Some(now)),
                Sign::Limit(fault) => {
                    let learned = common.knowledge.refused(&agent.ladder, &fault, started, &agent.name);
                    learned.events.iter().for_each(|event| log(&event.log_line()));
                }
            }
        };
        run.read(&common.redactor, now, &mut on_line);
        if !is_gone(&run.shim) {
            run.signs.offline = offline;
            if run.stopping.is_none()
                && let Some(why) = overdue(&agent.limits, &run.signs, now)
            {
                run.stop(why);
            }
            return Ok(None);
        }
        run.finish(&common.redactor, now, &mut on_line);
        let Some(run) = self.run.take() else { return Ok(None) };
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        let end = match run.folder.settle(common.clock.wall())? {
            State::Over(end) => end,
            State::Alive(_) => return Err(io::Error::other("the shim is gone and its lock is held")),
        };
        let over = self.conclude(&run.folder, &end, run.stopping, &run.tail.text(), &run.permit, common, log);
        self.forget_old_runs();
        Ok(Some(over))
    }

    #[expect(clippy::too_many_arguments, reason = "an end has so many sides")]
    fn conclude(
        &mut self,
        folder: &Folder,
        end: &Ended,
        stopping: Option<StoppedFor>,
        text: &str,
        permit: &Permit,
        common: &Common<'_>,
        log: &mut dyn FnMut(&str),
    ) -> RunOver {
        let status = end.status().unwrap_or(Status::Signaled(9));
        let zoned = common.knowledge.now().to_zoned(common.zone.clone());
        let read = common.classifier.log(&AgentLog { text, exit_code: Some(status.shell_code()) }, &zoned);
        let ran = Duration::from_millis(end.ran_ms);
        let stopped = stopping.or(end.stopped());
        let outcome =
            judge(&End { status, stopped, ran, read: read.as_ref() }, common.knowledge.policy().least_run);
        let line = crate::protected::evidence(&outcome, text);
        let about = About { agent: &self.agent.name, line: line.as_deref(), code: status.shell_code() };
        let learned = common.knowledge.ended(&self.agent.ladder, permit, &outcome, ran, &about);
        learned.events.iter().for_each(|event| log(&event.log_line()));
        let (name, rule) = match &outcome {
            Outcome::Good => ("succeeded", None),
            Outcome::Idle => ("idle", None),
            Outcome::Stopped => ("stopped", None),
            Outcome::Failed(fault) => (fault.log_reason(), Some(fault.evidence.rule.to_string())),
        };
        self.ended_well = matches!(outcome, Outcome::Good | Outcome::Idle);
        self.again = matches!(outcome, Outcome::Failed(_)) && end.started.is_some();
        self.last = json!({
            "ended": end.ended, "started": end.started, "exit_code": status.shell_code(), "outcome": name,
            "rule": rule, "line": line, "left": end.left, "dropped": end.dropped,
        });
        log(&format!("{}: ended with exit code {} ({name})", self.agent.name, status.shell_code()));
        // Judged twice after a crash is better than never.
        let _ = write_whole(&folder.file(JUDGED), self.last.to_string().as_bytes());
        let class = if let Outcome::Failed(fault) = &outcome { Some(Failure::of(fault).class) } else { None };
        let refused = matches!(class, Some(Class::Quota | Class::RateLimit));
        RunOver { refused, succeeded: outcome == Outcome::Good }
    }

    // ===== what is wanted =====

    pub(super) fn wish(&mut self, wish: Wish) {
        match wish {
            Wish::Run => (self.stopped, self.wanted) = (false, true),
            Wish::Stop => {
                (self.stopped, self.wanted) = (true, false);
                self.stop_for_us();
            }
            Wish::Restart => {
                (self.stopped, self.wanted) = (false, true);
                self.stop_for_us();
            }
        }
    }

    pub(super) fn stop_for_us(&mut self) {
        if let Some(run) = &mut self.run {
            run.stop(StoppedFor::Request);
        }
    }

    /// A second request kills at once.
    pub(super) fn kill(&mut self) {
        self.stop_for_us();
    }

    pub(super) fn wants_to_start(&mut self, now: Timestamp) -> bool {
        if self.is_running() || self.stopped {
            return false;
        }
        self.wanted || is_due(self, now).unwrap_or_else(|| self.is_told_to_start(now))
    }

    /// Asks the program that knows whether the agent is wanted, and takes its answer.
    fn is_told_to_start(&mut self, now: Timestamp) -> bool {
        if let Some(asking) = &mut self.asking {
            let Ok(Some(status)) = asking.try_wait() else { return false };
            self.asking = None;
            if status.success() {
                // The answer holds until it could start.
                self.wanted = true;
                return true;
            }
        }
        let next = self.asked.and_then(|asked| asked.checked_add(ASK_EVERY).ok());
        if let (Some((program, arguments)), true) =
            (self.agent.ask.split_first(), next.is_none_or(|next| next <= now))
        {
            self.asked = Some(now);
            let mut command = Command::new(program);
            command.args(arguments).env_clear().envs(self.agent.environment.iter().cloned());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            self.asking = command.spawn().ok();
        }
        false
    }

    /// Starts it if it may. Says whether it runs.
    pub(super) fn start(&mut self, common: &Common<'_>, log: &mut dyn FnMut(&str)) -> bool {
        let permit = match common.knowledge.start(&self.agent.ladder) {
            Ok(permit) => permit,
            Err(held) => {
                let key = held.event.key.to_string();
                if self.held.as_ref() != Some(&key) {
                    log(&held.event.log_line());
                    self.held = Some(key);
                }
                return false;
            }
        };
        self.held = None;
        permit.events.iter().for_each(|event| log(&event.log_line()));
        match self.launch(permit, common) {
            Ok(()) => {
                self.wanted = false;
                log(&format!("{}: started", self.agent.name));
                true
            }
            Err(error) => {
                log(&format!("{}: cannot be started: {error}", self.agent.name));
                false
            }
        }
    }

    fn launch(&mut self, permit: Permit, common: &Common<'_>) -> io::Result<()> {
        // A session is continued after a failure; a run that ended well is followed by a new one.
        let again = self.again && self.session.is_some();
        if !again {
            self.session = if self.agent.has_session() { crate::protected::random_id() } else { None };
        }
        let (command, environment) = self.agent.prepared(self.session.as_deref(), again);
        let spec = Spec {
            owner: common.owner.clone(),
            on_owner_death: self.agent.on_owner_death,
            stop_signal: self.agent.stop_signal,
            grace_ms: u64::try_from(self.agent.grace.as_millis()).unwrap_or(u64::MAX),
            piped: true,
            terminal: false,
            label: self.agent.name.clone(),
        };
        let now = common.clock.wall();
        let (folder, child) = start(Launch {
            folder: &self.home.join(format!("{:020}", now.as_nanosecond())),
            spec: &spec,
            command: &command,
            environment: &environment,
            dir: self.agent.dir.as_deref(),
            binary: &common.binary,
            streams: Streams::Folder,
        })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let shim = pidfd_open(
            pid.ok_or_else(|| io::Error::other("a process without a number"))?,
            PidfdFlags::empty(),
        )?;
        self.run = Some(Run::open(folder, shim, permit, now, common.clock.moment())?);
        self.child = Some(child);
        self.last_start = Some(now);
        Ok(())
    }

    // ===== what is told =====

    pub(super) fn told(&self, now: Timestamp) -> Value {
        let state = match (&self.run, self.stopped, &self.held) {
            (Some(run), ..) if run.stopping.is_some() => "stopping",
            (Some(_), ..) => "running",
            (None, true, _) => "stopped",
            (None, false, Some(_)) => "held",
            (None, false, None) => "waiting",
        };
        let running = self.run.as_ref().and_then(|run| run.folder.running());
        json!({
            "agent": self.agent.name, "state": state, "held_by": self.held, "now": now,
            "started": self.run.as_ref().map(|run| run.started),
            "pid": running.map(|running| running.child.pid), "last": self.last,
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
        runs.truncate(runs.len().saturating_sub(KEPT_RUNS));
        runs.iter().for_each(|path| Folder::at(path).remove());
    }
}

/// What became of a run. A shim that has just begun is given the time to say so: nothing may be started beside it.
fn settled(folder: &Folder, common: &Common<'_>) -> io::Result<State> {
    let begun = common.clock.moment();
    loop {
        let state = folder.settle(common.clock.wall())?;
        let is_known = match &state {
            State::Alive(Some(running)) => running.shim.open().is_some(),
            State::Alive(None) => false,
            State::Over(_) => true,
        };
        if is_known || common.clock.moment().since(begun) > LONGEST_BEGIN {
            return Ok(state);
        }
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
    }
}

/// Whether a process is gone, by its descriptor.
fn is_gone(process: &std::os::fd::OwnedFd) -> bool {
    let mut one = [PollFd::new(process, PollFlags::IN)];
    poll(&mut one, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}
