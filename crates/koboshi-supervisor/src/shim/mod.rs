//! The small process between us and an agent.
//!
//! It is the same binary, told so by its first argument before anything else is read, so that it stays small: no runtime, no threads, no
//! rules. It holds the lock of the run's folder, leads a session of its own, and adopts every process that the agent leaves behind, also
//! those in sessions of their own. It waits for four things: the agent's end, a signal to stop, the death of its owner, and, while there is
//! no owner, output that nobody reads.
//!
//! Signals: TERM stops the tree (asked, then killed after the grace), a second one kills at once; INT is handed on to the agent; HUP says that
//! the owner changed.

mod drain;
mod exec;
mod tree;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group, set_child_subreaper, setsid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::folder::{ERROR, Ended, Folder, How, OUT, OnOwnerDeath, Refusal, Running, Spec};
use crate::identity::Identity;

use drain::Drain;

/// The first argument of a shim.
pub const SHIM: &str = "__shim";
/// The first argument of the step between the shim and the agent.
pub const EXEC: &str = "__exec";

/// What the agent leaves behind gets so long to end by itself.
const GRACE_OF_THE_REST: Duration = Duration::from_secs(2);
/// So long it is tried to kill what cannot be killed.
const LONGEST_KILL: Duration = Duration::from_secs(10);
/// How often a tree that is being stopped is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The program that is run for a shim: this very file, also when another one has taken its place.
const OWN_FILE: &str = "/proc/self/exe";

/// Runs as a shim, or as the step after it, if these are the arguments of one. Gives back the exit code.
#[must_use]
pub fn of_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    let role = arguments.next()?;
    if role != SHIM && role != EXEC {
        return None;
    }
    let folder = PathBuf::from(arguments.next()?);
    let command: Vec<OsString> = arguments.collect();
    if role == EXEC {
        return Some(exec::become_agent(&folder, &command));
    }
    // Nobody reads what it says: the end that it writes is its answer.
    Some(u8::from(run(&folder, &command).is_err()))
}

fn run(path: &Path, command: &[OsString]) -> io::Result<()> {
    let folder = Folder::at(path);
    // Somebody decided that this start does not happen, or has it already.
    let Some(_lock) = folder.lock()? else { return Ok(()) };
    if folder.ended().is_some() {
        return Ok(());
    }
    let spec = folder.spec()?;
    // Fails only where it leads a group already.
    let _ = setsid();
    set_child_subreaper(Pid::from_raw(1))?;
    let signals = Signals::new()?;
    let mut shim = Shim::new(folder, spec, signals)?;
    match shim.start(command) {
        Ok(child) => shim.watch(child),
        Err(error) => shim.finish(How::NotStarted(Refusal::of(&error), error.to_string()), None),
    }
}

/// Signals as bytes in a pipe each.
struct Signals {
    child: UnixStream,
    stop: UnixStream,
    interrupt: UnixStream,
    owner: UnixStream,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let listen = |signal| -> io::Result<UnixStream> {
            let (reader, writer) = UnixStream::pair()?;
            reader.set_nonblocking(true)?;
            writer.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, writer)?;
            Ok(reader)
        };
        Ok(Self {
            child: listen(SIGCHLD)?,
            stop: listen(SIGTERM)?,
            interrupt: listen(SIGINT)?,
            owner: listen(SIGHUP)?,
        })
    }
}

/// How many signals came.
fn taken(mut pipe: &UnixStream) -> usize {
    let mut buffer = [0; 64];
    pipe.read(&mut buffer).unwrap_or(0)
}

struct Shim {
    folder: Folder,
    spec: Spec,
    signals: Signals,
    /// The owner, while it lives.
    owner: Option<OwnedFd>,
    drain: Option<Drain>,
    clock: SystemClock,
    begun: Moment,
    started: Timestamp,
    /// A stop was asked for: when it becomes a kill.
    stopping: Option<Moment>,
    asked: bool,
}

impl Shim {
    fn new(folder: Folder, spec: Spec, signals: Signals) -> io::Result<Self> {
        let clock = SystemClock;
        let drain = if spec.piped { Some(Drain::open(&folder)?) } else { None };
        let owner = spec.owner.open();
        let (begun, started) = (clock.moment(), clock.wall());
        Ok(Self { folder, spec, signals, owner, drain, clock, begun, started, stopping: None, asked: false })
    }

    fn start(&self, command: &[OsString]) -> io::Result<Child> {
        let mut step = Command::new(OWN_FILE);
        step.arg0("koboshi").arg(EXEC).arg(self.folder.path()).args(command);
        if self.spec.piped {
            let pipe = |name| OpenOptions::new().write(true).open(self.folder.file(name));
            step.stdin(Stdio::null()).stdout(pipe(OUT)?).stderr(pipe(ERROR)?);
        }
        let child = step.spawn()?;
        if !self.spec.piped {
            release_own_streams();
        }
        Ok(child)
    }

    fn watch(&mut self, mut child: Child) -> io::Result<()> {
        let pid = i32::try_from(child.id()).unwrap_or(0);
        if let (Some(shim), Some(of_child)) = (Identity::own(), Identity::of(pid)) {
            self.folder.write_running(&Running { shim, child: of_child, started: self.started })?;
        }
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            tree::reap_strangers(pid);
            self.wait(self.timeout(), pid)?;
            self.obey(pid);
        };
        let left = self.stop_the_rest()?;
        if let Some((why, said)) = exec::failure(&self.folder) {
            return self.finish(How::NotStarted(why, said), None);
        }
        let signaled = || How::Signaled(status.signal().unwrap_or(0));
        self.finish(status.code().map_or_else(signaled, How::Exited), Some(left))
    }

    /// Until when to sleep: for ever, or until a stop becomes a kill.
    fn timeout(&self) -> Option<Duration> {
        self.stopping.map(|until| until.since(self.clock.moment()).max(LOOK))
    }

    /// Waits for something to happen.
    fn wait(&mut self, timeout: Option<Duration>, child: i32) -> io::Result<()> {
        let signals = &self.signals;
        let mut waiting: Vec<PollFd<'_>> =
            [&signals.child, &signals.stop, &signals.interrupt, &signals.owner]
                .into_iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN))
                .collect();
        // A process that is gone is readable.
        waiting.extend(self.owner.as_ref().map(|owner| PollFd::new(owner, PollFlags::IN)));
        if let (None, Some(drain)) = (&self.owner, &self.drain) {
            waiting.extend(drain.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        }
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut waiting, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let owner_gone =
            self.owner.is_some() && waiting.get(4).is_some_and(|owner| !owner.revents().is_empty());
        drop(waiting);
        if owner_gone {
            self.owner_is_gone(child);
        }
        if let (None, Some(drain)) = (&self.owner, &mut self.drain) {
            drain.take();
        }
        taken(&self.signals.child);
        Ok(())
    }

    fn owner_is_gone(&mut self, child: i32) {
        self.owner = None;
        if self.spec.on_owner_death == OnOwnerDeath::Stop {
            self.stop(child, Duration::from_millis(self.spec.grace_ms));
        }
    }

    /// What signals ask for.
    fn obey(&mut self, child: i32) {
        let stops = taken(&self.signals.stop);
        if stops > 0 {
            let grace = if self.stopping.is_some() || stops > 1 {
                Duration::ZERO
            } else {
                Duration::from_millis(self.spec.grace_ms)
            };
            self.asked = true;
            self.stop(child, grace);
        }
        if taken(&self.signals.interrupt) > 0 {
            self.asked = true;
            send_to_group(child, Signal::INT);
        }
        if taken(&self.signals.owner) > 0
            && let Ok(spec) = self.folder.spec()
        {
            self.spec = spec;
            self.owner = self.spec.owner.open();
            if self.owner.is_some()
                && let Some(drain) = &mut self.drain
            {
                drain.hand_over(&self.folder);
            }
        }
        if self.stopping.is_some_and(|until| until <= self.clock.moment()) {
            send_to_group(child, Signal::KILL);
            tree::send_to_all(Signal::KILL);
        }
    }

    fn stop(&mut self, child: i32, grace: Duration) {
        let until = self.clock.moment().after(grace);
        self.stopping = Some(self.stopping.map_or(until, |earlier| earlier.min(until)));
        if !grace.is_zero() {
            send_to_group(child, signal_of(self.spec.stop_signal));
            // A process that is stopped hears nothing before it goes on.
            send_to_group(child, Signal::CONT);
        }
    }

    /// Nothing of the agent stays: what it left behind is asked to end, then killed. Says how many there were.
    fn stop_the_rest(&mut self) -> io::Result<u32> {
        tree::reap_strangers(0);
        let left = tree::send_to_all(Signal::TERM);
        let begun = self.clock.moment();
        let grace =
            self.stopping.map_or(GRACE_OF_THE_REST, |until| until.since(begun)).min(GRACE_OF_THE_REST);
        while tree::any_left() {
            let taken = self.clock.moment().since(begun);
            if taken > LONGEST_KILL {
                break;
            }
            if taken >= grace {
                tree::send_to_all(Signal::KILL);
            }
            self.wait(Some(LOOK), 0)?;
            tree::reap_strangers(0);
        }
        Ok(left)
    }

    fn finish(&mut self, how: How, left: Option<u32>) -> io::Result<()> {
        let dropped = match (&mut self.drain, &self.owner) {
            (Some(drain), None) => drain.finish(&self.folder),
            (Some(drain), Some(_)) => drain.leave_to_owner(&self.folder, self.owner.as_ref()),
            (None, _) => 0,
        };
        let ran = self.clock.moment().since(self.begun);
        let ran = if left.is_none() { Duration::ZERO } else { ran };
        self.folder.write_end(&Ended {
            started: left.map(|_| self.started),
            how,
            ended: self.clock.wall(),
            ran_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            asked: self.asked,
            left: left.unwrap_or(0),
            dropped,
        })
    }
}

/// The streams belong to the agent alone: a reader waits for their end.
fn release_own_streams() {
    use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let nothing = nothing.as_fd();
        let _ = (dup2_stdin(nothing), dup2_stdout(nothing), dup2_stderr(nothing));
    }
}

fn send_to_group(child: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(child).filter(|_| child > 0) {
        // It may be gone already.
        let _ = kill_process_group(group, signal);
    }
}

/// The signal with this number; TERM for one that asks nobody to end.
fn signal_of(number: i32) -> Signal {
    const ASKING: &[Signal] =
        &[Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::KILL];
    ASKING.iter().copied().find(|signal| signal.as_raw() == number).unwrap_or(Signal::TERM)
}
