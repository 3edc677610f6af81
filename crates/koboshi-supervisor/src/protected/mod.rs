//! One command under protection: it waits until its account allows a start, runs, and is started again where that may help.
//!
//! What is known is waited out, as long as the caller's patience reaches. What the command does is passed on untouched. Its end is read, shared
//! with everybody who uses the same account, and handed to the caller as it was unless another start may help.

mod relay;

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
use koboshi::supervise::{End, Ladder, Outcome, Permit, Status, Step, after, judge};

use crate::folder::{Ended, Folder, How, OnOwnerDeath, Refusal, Spec, State};
use crate::identity::Identity;
use crate::kinds::{Kind, Session};
use crate::knowledge::{About, Knowledge, is_parked};
use crate::spawn::{Launch, Streams, start};
use crate::terminal::{Terminal, is_interactive};
use crate::watch::Live;

use crate::signals::Signals;
use relay::{Relay, Seen};

/// How often a wait is looked at again: somebody may have ended it.
const LOOK: Duration = Duration::from_secs(1);
/// How long a command that is asked to end may take.
const GRACE: Duration = Duration::from_secs(10);
/// The line that decided is kept up to here.
const LONGEST_LINE: usize = 300;

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
    /// How often it may be started for failures that may pass.
    pub tries: u32,
    /// No rest longer than this is waited out.
    pub patience: Duration,
    /// A session is continued where that is known how.
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
    /// It rests for longer than is waited.
    Rests(StartRefusal, Timestamp),
    /// A person must act.
    Parked(StartRefusal),
    /// It cannot be started.
    NotStarted(Refusal, String),
    /// A signal came while it waited.
    Interrupted(i32),
}

/// Whom to tell of waits and new starts.
pub trait Teller {
    /// It waits until then. Called again every second.
    fn waits(&mut self, held: &StartRefusal, until: Timestamp, now: Timestamp);
    /// It waits no longer.
    fn goes_on(&mut self);
    /// It ended like this and is started again.
    fn again(&mut self, fault: &Fault);
}

/// Runs a command under protection.
///
/// # Errors
/// The machine refuses what is needed to watch it: no process, no folder, no pipe.
pub fn run(
    task: &Task,
    knowledge: &Knowledge,
    classifier: &Classifier,
    teller: &mut dyn Teller,
) -> io::Result<Verdict> {
    let signals = Signals::new()?;
    let mut tries = 0;
    let session = task.session();
    let mut last = None;
    let mut failed: Option<Fault> = None;
    loop {
        let permit = match wait(task, knowledge, &signals, teller)? {
            Ok(permit) => permit,
            // What only this process holds against the command is no reason for its caller.
            Err(Verdict::Parked(held)) if knowledge.is_private(&held.event.key) => {
                return Ok(last.map_or(Verdict::Parked(held), Verdict::Ended));
            }
            Err(verdict) => return Ok(verdict),
        };
        if let Some(fault) = failed.take() {
            teller.again(&fault);
        }
        let command = task.command_of(session.as_ref(), last.is_some());
        let (end, seen) = once(task, &command, knowledge, classifier, &signals)?;
        let (outcome, status) = task.conclude(&end, &seen, classifier, knowledge, &permit);
        if let How::NotStarted(why, said) = end.how {
            return Ok(Verdict::NotStarted(why, said));
        }
        last = Some(status);
        match after(&outcome, tries + 1, task.tries) {
            Step::Over => return Ok(Verdict::Ended(status)),
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
    knowledge: &Knowledge,
    signals: &Signals,
    teller: &mut dyn Teller,
) -> io::Result<Result<Permit, Verdict>> {
    let begun = knowledge.now();
    let mut waited = false;
    let given_up = loop {
        let held = match knowledge.start(&task.ladder) {
            Ok(permit) => {
                if waited {
                    teller.goes_on();
                }
                return Ok(Ok(permit));
            }
            Err(held) => held,
        };
        let now = knowledge.now();
        let Some(until) = held.until.filter(|_| !is_parked(&held)) else { break Verdict::Parked(held) };
        // A rest has an end that is known; how long others take is not.
        let from = if held.why == StartRefusalReason::Rest { now } else { begun };
        let latest = from.saturating_add(task.patience).unwrap_or(Timestamp::MAX);
        let too_long = if held.why == StartRefusalReason::Rest { until > latest } else { now > latest };
        if too_long {
            break Verdict::Rests(held, until);
        }
        waited = true;
        teller.waits(&held, until, now);
        let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
        if let Some(signal) = signals.wait_for_stop(left.min(LOOK))? {
            break Verdict::Interrupted(signal);
        }
    };
    if waited {
        teller.goes_on();
    }
    Ok(Err(given_up))
}

/// Runs it once.
fn once(
    task: &Task,
    command: &[OsString],
    knowledge: &Knowledge,
    classifier: &Classifier,
    signals: &Signals,
) -> io::Result<(Ended, Seen)> {
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
    let (folder, mut shim) = start(Launch {
        folder: &task.runs.join(name),
        spec: &spec,
        command,
        environment: &task.environment_of(),
        dir: None,
        binary: &task.binary,
        streams,
    })?;
    let mut relay = Relay::new(&mut shim, terminal)?;
    let live = Live::of(&task.kind);
    let mut on_line = |line: &[u8]| {
        let now = knowledge.now().to_zoned(task.zone.clone());
        if let crate::watch::Sign::Limit(fault) = live.sign(line, classifier, &now) {
            knowledge.refused(&task.ladder, &fault, started, &task.label);
        }
    };
    let watched = relay.until_end(&mut shim, signals, &mut on_line);
    let seen = relay.finish(&mut on_line);
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
    /// A session that we may continue: how, and its id.
    fn session(&self) -> Option<(Session, String)> {
        let session =
            self.kind.session.clone().filter(|session| self.resume && session.fits(&self.command))?;
        Some((session, random_id()?))
    }

    fn command_of(&self, session: Option<&(Session, String)>, again: bool) -> Vec<OsString> {
        let command = match session {
            Some((session, id)) if again => session.continued(&self.command, id),
            Some((session, id)) => session.started(&self.command, id),
            None => self.command.clone(),
        };
        self.kind.pointed(&command, self.gateway.as_deref())
    }

    /// The caller's environment and what the kind adds; what the caller set stays.
    fn environment_of(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.environment.clone();
        for (name, value) in self.kind.variables(self.gateway.as_deref()) {
            if !all.iter().any(|(known, _)| *known == *name) {
                all.push((name.into(), value.into()));
            }
        }
        all
    }

    /// What the end means; everybody learns of it.
    fn conclude(
        &self,
        end: &Ended,
        seen: &Seen,
        classifier: &Classifier,
        knowledge: &Knowledge,
        permit: &Permit,
    ) -> (Outcome, Status) {
        let status = end.status().unwrap_or(Status::Signaled(9));
        let text = seen.tail.text();
        let now = knowledge.now().to_zoned(self.zone.clone());
        let read = classifier.log(&AgentLog { text: &text, exit_code: Some(status.shell_code()) }, &now);
        let ran = Duration::from_millis(end.ran_ms);
        let ended = End { status, stopped: end.stopped(), ran, read: read.as_ref() };
        let outcome = judge(&ended, knowledge.policy().least_run);
        let line = evidence(&outcome, &text);
        let about = About { agent: &self.label, line: line.as_deref(), code: status.shell_code() };
        knowledge.ended(&self.ladder, permit, &outcome, ran, &about);
        (outcome, status)
    }
}

/// The line that decided, without secrets.
pub(crate) fn evidence(outcome: &Outcome, text: &str) -> Option<String> {
    let Outcome::Failed(fault) = outcome else { return None };
    let line = text.get(fault.evidence.span.clone())?.lines().find(|line| !line.trim().is_empty())?;
    Some(Redactor::new().excerpt(line.trim(), LONGEST_LINE))
}

/// An id that no other session has.
pub(crate) fn random_id() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?.trim().to_owned())
}
