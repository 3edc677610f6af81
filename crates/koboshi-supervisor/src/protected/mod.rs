//! One command under protection: it waits until its account allows a start, runs, and is started again where that may help.
//!
//! It waits for known cooldowns up to the caller's patience, and passes the command's streams on untouched. It classifies the command's end,
//! shares the result with every process that uses the same account, and returns the end to the caller unless another start may help.

mod relay;
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::classify::{AgentLog, Classifier};
use koboshi::cooldown::{StartRefusal, StartRefusalReason};
use koboshi::fault::Fault;
use koboshi::redact::Redactor;
use koboshi::supervise::{End, Ladder, Outcome, Permit, Status, Step, WatchPolicy, after, judge};

use crate::folder::{Ended, Folder, How, OnOwnerDeath, Refusal, Spec, State, TreeLimits};
use crate::identity::Identity;
use crate::kinds::{Kind, PointedAt};
use crate::knowledge::{About, Knowledge, is_parked};
use crate::session::Session;
use crate::spawn::{Launch, Streams, start};
use crate::terminal::{Terminal, is_interactive};

use crate::signals::Signals;
use relay::{Relay, RunOutput};
use watch::RunWatch;

/// How often a wait is checked again: an operator may have ended the cooldown.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a command that is asked to end may take.
const GRACE: Duration = Duration::from_secs(10);
/// The line that decided is cut to this length.
const MAX_LINE: usize = 300;

/// What to run, and how.
#[derive(Debug)]
pub struct Task {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// What is known of the program.
    pub kind: Kind,
    /// What rests with it.
    pub ladder: Ladder,
    /// What to call it.
    pub label: String,
    /// How often it may be started after failures that may pass.
    pub tries: u32,
    /// Cooldowns longer than this are not waited for.
    pub patience: Duration,
    /// How long a run may take.
    pub limits: WatchPolicy,
    /// Sessions are continued where the kind of agent allows it.
    pub resume: bool,
    /// The address of the gateway that it is pointed at.
    pub gateway: Option<String>,
    /// Where runs have their folders.
    pub runs: PathBuf,
    /// All of its environment, before what its kind adds.
    pub environment: Vec<(OsString, OsString)>,
    /// The binary whose shim is used.
    pub binary: PathBuf,
    /// The zone of times without one.
    pub zone: TimeZone,
}

/// How it ended for the caller.
#[derive(Debug)]
pub enum Verdict {
    /// The command's own end.
    Ended(Status),
    /// It is cooling down for longer than the caller waits.
    Rests {
        /// What is cooling down.
        held: StartRefusal,
        /// Until when.
        until: Timestamp,
        /// It ran before that.
        ran: bool,
    },
    /// An operator must act.
    Parked {
        /// What is parked.
        held: StartRefusal,
        /// It ran before that.
        ran: bool,
    },
    /// It cannot be started.
    NotStarted {
        /// Why.
        why: Refusal,
        /// What the system said.
        said: String,
        /// What holds the next start for it.
        held: Option<StartRefusal>,
    },
    /// A signal came while it waited.
    Interrupted(i32),
}

/// Is called for waits and new starts.
pub trait WaitObserver {
    /// The command waits until then. Called again every second.
    fn waits(&mut self, held: &StartRefusal, until: Timestamp, now: Timestamp);
    /// The wait is over.
    fn goes_on(&mut self);
    /// The command ended with this fault and is started again.
    fn again(&mut self, fault: &Fault);
    /// It ended like this and is not started again. With it, what holds the next start.
    fn failed(&mut self, fault: &Fault, held: Option<&StartRefusal>);
}

/// Runs a command under protection.
///
/// # Errors
/// The machine refuses what is needed to watch it: no process, no folder, no pipe.
pub fn run(
    task: &Task,
    knowledge: &Knowledge,
    classifier: &Classifier,
    observer: &mut dyn WaitObserver,
) -> io::Result<Verdict> {
    let signals = Signals::new()?;
    let mut tries = 0;
    let mut session = task.session();
    let mut last = None;
    let mut failed: Option<Fault> = None;
    loop {
        let mut permit = match wait(task, last.is_some(), knowledge, &signals, observer)? {
            Ok(permit) => permit,
            // A key of this process alone does not concern the caller, who gets the command's last end.
            Err(Verdict::Parked { held, ran }) if knowledge.is_private(&held.event.key) => {
                if let Some(fault) = &failed {
                    observer.failed(fault, None);
                }
                return Ok(last.map_or(Verdict::Parked { held, ran }, Verdict::Ended));
            }
            Err(verdict) => return Ok(verdict),
        };
        if let Some(fault) = failed.take() {
            observer.again(&fault);
        }
        let command = task.command_of(session.as_ref(), last.is_some());
        let watch = RunWatch::new(task, knowledge, classifier, session.as_mut(), &mut permit);
        let watched = once(task, &command, watch, &signals);
        // A start that failed is an end like any other: its permit goes to the next one that waits.
        let (end, seen) = watched
            .unwrap_or_else(|error| (Ended::not_launched(&error, knowledge.now()), RunOutput::default()));
        let (outcome, status) = task.conclude(&end, &seen, classifier, knowledge, &permit);
        if let How::NotStarted(why, said) = end.how {
            let held = knowledge.shared_refusal(&task.ladder);
            return Ok(Verdict::NotStarted { why, said, held });
        }
        last = Some(status);
        match after(&outcome, tries + 1, task.tries) {
            Step::Over => {
                if let Outcome::Failed(fault) = &outcome {
                    observer.failed(fault, knowledge.shared_refusal(&task.ladder).as_ref());
                }
                return Ok(Verdict::Ended(status));
            }
            Step::Again { counts } => {
                tries += u32::from(counts);
                if let Outcome::Failed(fault) = outcome {
                    failed = Some(fault);
                }
            }
        }
    }
}

/// Waits until it may start.
fn wait(
    task: &Task,
    ran: bool,
    knowledge: &Knowledge,
    signals: &Signals,
    observer: &mut dyn WaitObserver,
) -> io::Result<Result<Permit, Verdict>> {
    let begun = knowledge.now();
    let mut waited = false;
    let given_up = loop {
        let held = match knowledge.start(&task.ladder) {
            Ok(permit) => {
                if waited {
                    observer.goes_on();
                }
                return Ok(Ok(permit));
            }
            Err(held) => held,
        };
        let now = knowledge.now();
        let Some(until) = held.until.filter(|_| !is_parked(&held)) else {
            break Verdict::Parked { held, ran };
        };
        // The end of a cooldown is known; how long others probe is not.
        let from = if held.why == StartRefusalReason::Rest { now } else { begun };
        let latest = from.saturating_add(task.patience).unwrap_or(Timestamp::MAX);
        let too_long = if held.why == StartRefusalReason::Rest { until > latest } else { now > latest };
        if too_long {
            break Verdict::Rests { held, until, ran };
        }
        waited = true;
        observer.waits(&held, until, now);
        let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        if let Some(signal) = signals.wait_for_stop(left.min(POLL_INTERVAL))? {
            break Verdict::Interrupted(signal);
        }
    };
    if waited {
        observer.goes_on();
    }
    Ok(Err(given_up))
}

/// Runs it once.
fn once(
    task: &Task,
    command: &[OsString],
    mut watch: RunWatch<'_>,
    signals: &Signals,
) -> io::Result<(Ended, RunOutput)> {
    let knowledge = watch.knowledge;
    let owner = Identity::own().ok_or_else(|| io::Error::other("/proc is not there"))?;
    let terminal = if is_interactive() { Terminal::open().ok() } else { None };
    let spec = Spec {
        owner,
        on_owner_death: OnOwnerDeath::Stop,
        stop_signal: 15,
        grace_ms: u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX),
        piped: false,
        terminal: terminal.is_some(),
        label: task.label.clone(),
        limits: TreeLimits::default(),
        session: None,
        open_files: None,
        lease: None,
        account: None,
        keyed: false,
        masked: Vec::new(),
    };
    let (terminal, streams) = match terminal {
        None => (None, Streams::PassedOn),
        Some((terminal, side)) => {
            let errors_apart = !rustix::termios::isatty(rustix::stdio::stderr());
            (Some(terminal), Streams::Terminal { side, errors_apart })
        }
    };
    let started = knowledge.now();
    let name = format!("run-{}-{}", std::process::id(), started.as_nanosecond());
    let environment = task.environment_of();
    let files: Vec<_> = task.kind.files(&environment).collect();
    let (folder, mut shim) = start(Launch {
        folder: &task.runs.join(name),
        spec: &spec,
        command,
        environment: &environment,
        files: &files,
        dir: None,
        binary: &task.binary,
        streams,
    })?;
    knowledge.note_start(&task.ladder, &task.label);
    let mut relay = Relay::new(&mut shim, terminal)?;
    let watched = relay.until_end(&mut shim, signals, &mut watch);
    let seen = relay.finish(&mut watch);
    watched?;
    let end = ending(&folder, knowledge.now());
    folder.remove();
    Ok((end?, seen))
}

fn ending(folder: &Folder, now: Timestamp) -> io::Result<Ended> {
    match folder.settle(now)? {
        State::Over(end) => Ok(end),
        State::Alive(_) => Err(io::Error::other("the shim is gone and its lock is held")),
    }
}

impl Task {
    /// A session that we can continue: how, and its id if it is known.
    fn session(&self) -> Option<(Session, Option<String>)> {
        let session =
            self.kind.session.clone().filter(|session| self.resume && session.fits(&self.command))?;
        let id = if session.own_id.is_some() { None } else { Some(random_id()?) };
        Some((session, id))
    }

    fn command_of(&self, session: Option<&(Session, Option<String>)>, again: bool) -> Vec<OsString> {
        let command = match session {
            Some((session, Some(id))) if again => session.continued(&self.command, id),
            Some((session, Some(id))) => session.started(&self.command, id),
            _ => self.command.clone(),
        };
        self.kind.pointed(&command, self.pointed_at())
    }

    fn pointed_at(&self) -> Option<PointedAt<'_>> {
        self.gateway.as_deref().map(|address| PointedAt { address, agent: &self.label, key: None })
    }

    /// The caller's environment and what the kind adds; the caller's variables win.
    fn environment_of(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.environment.clone();
        for (name, value) in self.kind.variables(self.pointed_at()) {
            if !all.iter().any(|(known, _)| *known == *name) {
                all.push((name.into(), value.into()));
            }
        }
        all
    }

    /// Judges the end, and shares what was learned.
    fn conclude(
        &self,
        end: &Ended,
        seen: &RunOutput,
        classifier: &Classifier,
        knowledge: &Knowledge,
        permit: &Permit,
    ) -> (Outcome, Status) {
        let status = end.status().unwrap_or(Status::Signaled(9));
        let text = seen.tail.text();
        let now = knowledge.now().to_zoned(self.zone.clone());
        let log = AgentLog { text: &text, exit_code: Some(status.shell_code()), since: end.started };
        let read = self.kind.read_end(classifier, &log, &now);
        let ran = Duration::from_millis(end.ran_ms);
        let ended = End { status, stopped: seen.stopped.or(end.stopped()), ran, read: read.as_ref() };
        let outcome = end.explained(judge(&ended, knowledge.policy().min_run));
        let line = evidence(&outcome, &text);
        let about = About { agent: &self.label, line: line.as_deref(), code: status.shell_code() };
        knowledge.ended(&self.ladder, permit, &outcome, ran, &about);
        (outcome, status)
    }
}

/// The line that decided, redacted.
pub(crate) fn evidence(outcome: &Outcome, text: &str) -> Option<String> {
    let Outcome::Failed(fault) = outcome else { return None };
    let line = text.get(fault.evidence.span.clone())?.lines().find(|line| !line.trim().is_empty())?;
    Some(Redactor::new().excerpt(line.trim(), MAX_LINE))
}

/// An id that no other session has.
pub(crate) fn random_id() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?.trim().to_owned())
}
