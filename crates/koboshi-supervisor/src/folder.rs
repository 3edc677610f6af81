//! One run on disk: the request to start it, its processes, and its end.
//!
//! ```text
//!   spec.json   written by the supervisor before anything starts
//!   lock        held by the shim for as long as it lives
//!   out, error  pipes with names, where the output must outlive the supervisor
//!   shim.json   who runs, written by the shim as soon as the agent runs
//!   lease       until when it may run, where it may run on any machine: renewed by the supervisor, kept by the shim
//!   end.json    how it ended, written by the shim before it goes; or "void", written by a supervisor that found a start without a shim
//! ```
//!
//! Files appear whole: written under a temporary name, synced, renamed. A supervisor that is killed between the spec and the shim leaves a
//! start that may or may not happen. The next supervisor takes the lock and writes "void"; a late shim finds that under the same lock
//! and starts nothing. So no agent runs twice and none is forgotten.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use koboshi::redact::Redactor;
use koboshi::supervise::{NotStarted, Outcome, Status, StoppedFor};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::marked::kill_left;

/// The pipe of standard output.
pub(crate) const OUT: &str = "out";
/// The pipe of standard error.
pub(crate) const ERROR: &str = "error";
/// Output that the shim read while the run had no owner.
pub(crate) const MISSED: &str = "missed";

/// Until when the run may go on; the supervisor renews it.
const LEASE: &str = "lease";

/// Why a program could not be started, at most this long.
const MAX_DETAIL: usize = 300;

/// Larger files of a run are refused: ours are far smaller.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What happens to an agent when its supervisor dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOwnerDeath {
    /// It is stopped.
    Stop,
    /// It goes on; the next supervisor takes it over.
    Survive,
}

/// What a run was started with. Holds no secret: the environment is passed from process to process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Who owns it.
    pub owner: Identity,
    /// What happens when the owner is gone.
    pub on_owner_death: OnOwnerDeath,
    /// The signal that asks it to end, by its number.
    pub stop_signal: i32,
    /// How long it may take to end, in milliseconds.
    pub grace_ms: u64,
    /// Its output goes to the pipes of the folder; otherwise to what the shim got.
    pub piped: bool,
    /// Its standard streams are a terminal that becomes its own.
    pub terminal: bool,
    /// For whom it runs, to be shown and to be taken over.
    pub label: String,
    /// What it and everything that it starts may take.
    #[serde(default)]
    pub limits: TreeLimits,
    /// The id of its session, where we chose one.
    #[serde(default)]
    pub session: Option<String>,
    /// How many files it may have open, where the owner has raised its own limit.
    #[serde(default)]
    pub open_files: Option<u64>,
    /// The right to run it, where it is one that ends; what was renewed stands in the file `lease`.
    #[serde(default)]
    pub lease: Option<Term>,
    /// The account that it uses.
    #[serde(default)]
    pub account: Option<String>,
    /// It has the key of a gateway, which ends with the process that made it.
    #[serde(default)]
    pub keyed: bool,
    /// The names of variables whose values its output must not show.
    #[serde(default)]
    pub masked: Vec<String>,
}

/// The right to run an agent on this machine, which ends unless it is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// A number that only grows: what acts under an earlier one is late.
    pub fence: u64,
    /// When it ends, in milliseconds since the machine was started.
    pub until_ms: u64,
}

/// What an agent and everything that it starts may take together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLimits {
    /// Bytes of memory.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Processes.
    #[serde(default)]
    pub pids: Option<u32>,
}

/// Which of its limits an agent went beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// Too much memory.
    Memory,
    /// Too many processes.
    Processes,
}

/// Who runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The shim.
    pub shim: Identity,
    /// The agent.
    pub child: Identity,
    /// When it started.
    pub started: Timestamp,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What the process ended with.
    pub how: How,
    /// When it started; none where it did not.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
    /// How long it ran, in milliseconds of a clock that never jumps.
    pub ran_ms: u64,
    /// It was asked to end.
    pub asked: bool,
    /// Processes that it left behind and that were stopped.
    #[serde(default)]
    pub left: u32,
    /// Bytes of output that were lost because no process read them.
    #[serde(default)]
    pub dropped: u64,
    /// The limit that it went beyond, for which the shim killed it.
    #[serde(default)]
    pub excess: Option<Excess>,
    /// The right to run it ended.
    #[serde(default)]
    pub lease_ended: bool,
}

/// What a process ended with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// An exit code.
    Exited(i32),
    /// A signal.
    Signaled(i32),
    /// It could not be started: why, and the system's words.
    NotStarted(Refusal, String),
    /// Unknown: the shim was killed.
    Lost,
    /// It was never started.
    Void,
}

/// Why a program could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It is not there.
    Missing,
    /// It is there and may not or cannot be run.
    Refused,
    /// The machine lacks processes or memory.
    Busy,
}

impl Refusal {
    /// Why a start failed.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => Self::Busy,
            _ => Self::Refused,
        }
    }
}

impl Ended {
    /// The end of a start that failed before there was a process. What the system misses then is never the agent's program, which
    /// the shim looks for; our own check says it without a code of the system.
    pub(crate) fn not_launched(error: &io::Error, now: Timestamp) -> Self {
        // "Not found" by the system may be about something else than the program.
        let is_ours = error.raw_os_error().is_none();
        let why = match Refusal::of(error) {
            Refusal::Busy => Refusal::Busy,
            _ if is_ours && error.kind() == io::ErrorKind::NotFound => Refusal::Missing,
            _ => Refusal::Refused,
        };
        Self {
            how: How::NotStarted(why, error.to_string()),
            started: None,
            ended: now,
            ran_ms: 0,
            asked: false,
            left: 0,
            dropped: 0,
            excess: None,
            lease_ended: false,
        }
    }

    /// The outcome with the system's words, where nothing was started: it has no output that could tell.
    pub(crate) fn explained(&self, mut outcome: Outcome) -> Outcome {
        if let (Outcome::Failed(fault), How::NotStarted(_, said)) = (&mut outcome, &self.how) {
            fault.detail = Redactor::new().excerpt(said, MAX_DETAIL);
        }
        outcome
    }

    /// The end as the core judges it; none where nothing ran.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        Some(match &self.how {
            How::Exited(code) => Status::Exited(*code),
            How::Signaled(signal) => Status::Signaled(*signal),
            How::NotStarted(Refusal::Missing, _) => Status::NotStarted(NotStarted::Missing),
            How::NotStarted(Refusal::Refused, _) => Status::NotStarted(NotStarted::Refused),
            How::NotStarted(Refusal::Busy, _) => Status::NotStarted(NotStarted::Busy),
            // Only a kill ends a shim this way: treat the agent as killed, too.
            How::Lost => Status::Signaled(9),
            How::Void => return None,
        })
    }

    /// Why we stopped it, where nothing closer is known.
    #[must_use]
    pub fn stopped(&self) -> Option<StoppedFor> {
        if self.lease_ended {
            return Some(StoppedFor::Lease);
        }
        match self.excess {
            Some(Excess::Memory) => Some(StoppedFor::Memory),
            Some(Excess::Processes) => Some(StoppedFor::Processes),
            None => self.asked.then_some(StoppedFor::Request),
        }
    }
}

/// What is known of a run.
#[derive(Debug)]
pub enum State {
    /// Its shim lives; without processes before the agent was started.
    Alive(Option<Running>),
    /// It is over.
    Over(Ended),
}

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder of a new run.
    ///
    /// # Errors
    /// It cannot be made, or is there already.
    pub fn create(path: &Path, spec: &Spec) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        if let Some(above) = path.parent() {
            builder.recursive(true).mode(0o700).create(above)?;
        }
        builder.recursive(false).mode(0o700).create(path)?;
        let folder = Self(path.to_owned());
        if spec.piped {
            for name in [OUT, ERROR] {
                mknodat(CWD, folder.file(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
            }
        }
        folder.write("spec.json", spec)?;
        Ok(folder)
    }

    /// The folder at this place.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file of it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What was asked.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn spec(&self) -> io::Result<Spec> {
        self.read("spec.json")?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Who runs, if that was written.
    #[must_use]
    pub fn running(&self) -> Option<Running> {
        self.read("shim.json").ok().flatten()
    }

    /// How it ended, if that was written.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.read("end.json").ok().flatten()
    }

    /// Another supervisor owns the run from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn adopt(&self, owner: &Identity) -> io::Result<()> {
        let spec = Spec { owner: owner.clone(), ..self.spec()? };
        self.write("spec.json", &spec)
    }

    /// The right to run it was renewed until then. It need not outlive the machine.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_term(&self, term: &Term) -> io::Result<()> {
        let (path, beside) = (self.file(LEASE), self.file("lease.new"));
        fs::write(&beside, serde_json::to_vec(term)?)?;
        fs::rename(beside, path)
    }

    /// Until when it may run, if that ends.
    #[must_use]
    pub(crate) fn term(&self) -> Option<Term> {
        let first = || self.spec().ok().and_then(|spec| spec.lease);
        self.read(LEASE).ok().flatten().or_else(first)
    }

    pub(crate) fn write_running(&self, running: &Running) -> io::Result<()> {
        self.write("shim.json", running)
    }

    pub(crate) fn write_end(&self, end: &Ended) -> io::Result<()> {
        self.write("end.json", end)
    }

    /// The lock of the run, unless another process holds it. It is held while the file stays open.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.file("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The state of a run that another process started. A start without a shim is made void, so that it cannot happen later.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn settle(&self, now: Timestamp) -> io::Result<State> {
        let Some(_lock) = self.lock()? else { return Ok(State::Alive(self.running())) };
        if let Some(end) = self.ended() {
            return Ok(State::Over(end));
        }
        let running = self.running();
        let how = if running.is_some() { How::Lost } else { How::Void };
        // The shim can no longer stop what the agent started.
        let left = kill_left(self);
        let started = running.map(|running| running.started);
        let ran = started.map(|started| now.duration_since(started)).unwrap_or_default();
        let end = Ended {
            how,
            started,
            ended: now,
            ran_ms: u64::try_from(ran.as_millis()).unwrap_or(0),
            asked: false,
            left,
            dropped: 0,
            excess: None,
            lease_ended: false,
        };
        self.write_end(&end)?;
        Ok(State::Over(end))
    }

    /// Removes it.
    pub fn remove(&self) {
        // Whatever could not be removed goes with the old runs.
        let _ = fs::remove_dir_all(&self.0);
    }

    fn write(&self, name: &str, content: &impl Serialize) -> io::Result<()> {
        write_whole(&self.file(name), &serde_json::to_vec(content)?)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.file(name);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(found) if found.len() > MAX_FILE_BYTES => return Err(io::ErrorKind::InvalidData.into()),
            Ok(_) => {}
        }
        Ok(Some(serde_json::from_slice(&fs::read(path)?)?))
    }
}

/// Writes a file that appears whole or not at all, also when the machine stops.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    file.sync_data()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_data(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            owner: Identity::own().unwrap(),
            on_owner_death: OnOwnerDeath::Stop,
            stop_signal: 15,
            grace_ms: 1000,
            piped: false,
            terminal: false,
            label: "a/b".to_owned(),
            limits: TreeLimits::default(),
            session: None,
            open_files: None,
            lease: None,
            account: None,
            keyed: false,
            masked: Vec::new(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_start_without_a_shim_is_made_void_and_stays_so() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::create(&home.path().join("a/run"), &spec()).unwrap();
        assert_eq!(folder.spec().unwrap(), spec());
        let State::Over(end) = folder.settle(at(5)).unwrap() else { panic!("the lock is free") };
        assert_eq!((&end.how, end.status()), (&How::Void, None));
        let State::Over(again) = folder.settle(at(9)).unwrap() else { panic!("it is over") };
        assert_eq!(again, end, "what was decided stays");
    }

    #[test]
    fn a_run_whose_lock_is_held_is_alive_and_one_whose_shim_was_killed_is_lost() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::create(&home.path().join("run"), &spec()).unwrap();
        let lock = folder.lock().unwrap().unwrap();
        assert!(matches!(folder.settle(at(5)).unwrap(), State::Alive(None)));
        let own = Identity::own().unwrap();
        folder.write_running(&Running { shim: own.clone(), child: own, started: at(2) }).unwrap();
        assert!(matches!(folder.settle(at(5)).unwrap(), State::Alive(Some(_))));
        drop(lock);
        let State::Over(end) = folder.settle(at(5)).unwrap() else { panic!("its shim is gone") };
        assert_eq!((end.how, end.ran_ms), (How::Lost, 3000));
    }

    #[test]
    fn a_run_has_one_folder() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run");
        Folder::create(&path, &spec()).unwrap();
        assert!(Folder::create(&path, &spec()).is_err());
    }
}
