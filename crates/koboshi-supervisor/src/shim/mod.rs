//! The small process between us and an agent.
//!
//! It is the same binary; its first argument makes it a shim before anything else is read, so that it stays small: no runtime, no threads, no
//! rules. It holds the lock of the run's folder, leads a session of its own, and adopts every process that the agent leaves behind, also
//! those in sessions of their own. It waits for four things: the agent's end, a signal to stop, the death of its owner, and output, which it
//! reads where it has no owner or one that hangs.
//!
//! Signals: TERM stops the tree (asked, then killed after the grace time), a second one or QUIT kills at once; INT is passed to the agent; HUP
//! says that the owner changed.

mod alarm;
mod attention;
mod cgroup;
mod drain;
mod exec;
mod meter;
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
use koboshi_store::{Clock, SystemClock, since_boot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group, set_child_subreaper, setsid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::folder::{ERROR, Ended, Excess, Folder, How, OUT, OnOwnerDeath, Refusal, Running, Spec, Term};
use crate::identity::Identity;

use alarm::Alarm;
use attention::{Attention, Duty};
use cgroup::Cgroup;
pub(crate) use cgroup::{kill_group, step_aside};
use drain::Drain;

/// The first argument of a shim.
pub const SHIM: &str = "__shim";
/// The first argument of the step between the shim and the agent.
pub const EXEC: &str = "__exec";

/// How long processes that the agent left behind may take to end by themselves.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);
/// How long to keep trying to kill a process that does not die.
const MAX_KILL_TIME: Duration = Duration::from_secs(10);
/// How long before the end of its lease an agent must be gone.
const TERM_MARGIN: Duration = Duration::from_millis(500);
/// How often a tree that is being stopped is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The program that is run as a shim: this very file, also after it was replaced on disk.
const OWN_FILE: &str = "/proc/self/exe";

/// Runs as a shim, or as the step after it, if the arguments say so; returns the exit code.
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
    // Its output is discarded: the shim answers by the end that it writes.
    Some(u8::from(run(&folder, &command).is_err()))
}

fn run(path: &Path, command: &[OsString]) -> io::Result<()> {
    let folder = Folder::at(path);
    // Another process has made this start void, or runs it already.
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
    // The right to run it may have ended since it was given, if the machine slept between.
    if shim.term.is_some_and(|term| Duration::from_millis(term.until_ms) <= since_boot()) {
        shim.lease_ended = true;
        return shim.finish(How::Void, None);
    }
    match shim.start(command) {
        Ok(child) => shim.watch(child),
        Err(error) => shim.finish(How::NotStarted(Refusal::of(&error), error.to_string()), None),
    }
}

/// Signals as bytes in a pipe each.
struct Signals {
    child: UnixStream,
    stop: UnixStream,
    /// Two TERMs in a row may arrive as one: this one says that the second was meant.
    kill: UnixStream,
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
            kill: listen(SIGQUIT)?,
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
    /// Whether the owner reads what the agent writes.
    attention: Attention,
    clock: SystemClock,
    begun: Moment,
    started: Timestamp,
    /// A stop was asked for: when it becomes a kill.
    stopping: Option<Moment>,
    asked: bool,
    /// The limit that the agent went beyond.
    excess: Option<Excess>,
    /// Until when it may run.
    term: Option<Term>,
    /// Where it has such an end: what the shim waits by.
    alarm: Option<Alarm>,
    /// That is over.
    lease_ended: bool,
    /// The group of its processes, where the machine lets us make one.
    cgroup: Option<Cgroup>,
}

impl Shim {
    fn new(folder: Folder, spec: Spec, signals: Signals) -> io::Result<Self> {
        let clock = SystemClock;
        let drain = if spec.piped { Some(Drain::open(&folder, spec.masked.clone())?) } else { None };
        let owner = spec.owner.open();
        let (begun, started) = (clock.moment(), clock.wall());
        let (stopping, asked, excess) = (None, false, None);
        let (term, lease_ended, cgroup) = (spec.lease, false, None);
        let alarm = term.map(|_| Alarm::new()).transpose()?;
        Ok(Self {
            folder,
            spec,
            signals,
            owner,
            drain,
            attention: Attention::default(),
            clock,
            begun,
            started,
            stopping,
            asked,
            excess,
            term,
            alarm,
            lease_ended,
            cgroup,
        })
    }

    fn start(&mut self, command: &[OsString]) -> io::Result<Child> {
        if meter::is_needed(&self.spec.limits) {
            self.cgroup = Cgroup::make(&self.spec.limits, &self.folder);
        }
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
            self.keep_to_term(pid);
            self.measure();
        };
        let left = self.stop_the_rest()?;
        if self.cgroup.as_ref().is_some_and(Cgroup::ran_out_of_memory) {
            self.excess.get_or_insert(Excess::Memory);
        }
        if let Some((why, said)) = exec::failure(&self.folder) {
            return self.finish(How::NotStarted(why, said), None);
        }
        let signaled = || How::Signaled(status.signal().unwrap_or(0));
        self.finish(status.code().map_or_else(signaled, How::Exited), Some(left))
    }

    /// How long to sleep: for ever, until a stop becomes a kill, or until the tree is measured again.
    fn timeout(&self) -> Option<Duration> {
        let kill = self.stopping.map(|until| until.since(self.clock.moment()).max(POLL_INTERVAL));
        let look = meter::is_needed(&self.spec.limits).then_some(meter::EVERY);
        let term = self.term.filter(|_| !self.lease_ended).map(|term| self.left_of(term).max(POLL_INTERVAL));
        let check = self.attention.next().filter(|_| self.owner.is_some());
        let check = check.map(|at| at.since(self.clock.moment()).max(POLL_INTERVAL));
        kill.into_iter().chain(look).chain(term).chain(check).min()
    }

    /// How long the agent may go on before it must be asked to end, so that it is gone when the right to run it ends.
    fn left_of(&self, term: Term) -> Duration {
        let until = Duration::from_millis(term.until_ms).saturating_sub(since_boot());
        until.saturating_sub(Duration::from_millis(self.spec.grace_ms).saturating_add(TERM_MARGIN))
    }

    /// Stops the agent when the right to run it here is about to end and was not renewed.
    fn keep_to_term(&mut self, child: i32) {
        let Some(term) = self.term.filter(|term| !self.lease_ended && self.left_of(*term).is_zero()) else {
            return;
        };
        self.term = self.folder.term().or(Some(term));
        if self.term.is_some_and(|term| !self.left_of(term).is_zero()) {
            return;
        }
        self.lease_ended = true;
        let until =
            Duration::from_millis(term.until_ms).saturating_sub(since_boot().saturating_add(TERM_MARGIN));
        self.stop(child, until.min(Duration::from_millis(self.spec.grace_ms)));
        // Where the machine slept, another one may run it by now: it must do nothing more.
        self.kill_overdue(child);
    }

    /// Kills a tree that exceeds a limit.
    fn measure(&mut self) {
        if let Some(excess) = meter::excess(&self.spec.limits) {
            self.excess.get_or_insert(excess);
            if let Some(group) = &self.cgroup {
                group.kill();
            }
            tree::kill_all();
        }
    }

    /// Waits for an event.
    fn wait(&mut self, timeout: Option<Duration>, child: i32) -> io::Result<()> {
        let signals = &self.signals;
        let mut waiting: Vec<PollFd<'_>> =
            [&signals.child, &signals.stop, &signals.kill, &signals.interrupt, &signals.owner]
                .into_iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN))
                .collect();
        // The descriptor of an ended process is readable.
        waiting.extend(self.owner.as_ref().map(|owner| PollFd::new(owner, PollFlags::IN)));
        let reads = self.owner.is_none() || self.attention.waits_for_output();
        if let Some(drain) = self.drain.as_ref().filter(|_| reads) {
            waiting.extend(drain.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        }
        let timeout = match &self.alarm {
            None => timeout.and_then(|timeout| Timespec::try_from(timeout).ok()),
            Some(alarm) => {
                alarm.set(timeout)?;
                waiting.push(PollFd::new(alarm, PollFlags::IN));
                None
            }
        };
        match poll(&mut waiting, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let owner_gone =
            self.owner.is_some() && waiting.get(5).is_some_and(|owner| !owner.revents().is_empty());
        drop(waiting);
        if owner_gone {
            self.owner_is_gone(child);
        }
        self.drain_pipes();
        taken(&self.signals.child);
        Ok(())
    }

    /// Reads the agent's output where its owner does not.
    fn drain_pipes(&mut self) {
        let Some(drain) = &mut self.drain else { return };
        let duty = match self.owner {
            None => Duty::Read,
            Some(_) => self.attention.check(drain, &self.spec.owner, self.clock.moment()),
        };
        match duty {
            Duty::Leave => {}
            Duty::Read => drain.take(),
            Duty::HandOver => drain.hand_over(&self.folder),
        }
    }

    fn owner_is_gone(&mut self, child: i32) {
        self.owner = None;
        if self.spec.on_owner_death == OnOwnerDeath::Stop {
            // Stopped by us, as if its owner had asked for it: no failure of its own.
            self.asked = true;
            self.stop(child, Duration::from_millis(self.spec.grace_ms));
        }
    }

    /// Acts on signals.
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
        if taken(&self.signals.kill) > 0 {
            self.asked = true;
            self.stop(child, Duration::ZERO);
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
            self.attention = Attention::default();
            if self.owner.is_some()
                && let Some(drain) = &mut self.drain
            {
                drain.hand_over(&self.folder);
            }
        }
        self.kill_overdue(child);
    }

    /// Kills what had its time to end.
    fn kill_overdue(&self, child: i32) {
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
            // A stopped process handles no signal before it continues.
            send_to_group(child, Signal::CONT);
        }
    }

    /// Stops what the agent left behind: asks it to end, then kills it; returns how many processes there were.
    fn stop_the_rest(&mut self) -> io::Result<u32> {
        tree::reap_strangers(0);
        let left = tree::send_to_all(Signal::TERM);
        let begun = self.clock.moment();
        let grace = self.stopping.map_or(ORPHAN_GRACE, |until| until.since(begun)).min(ORPHAN_GRACE);
        while tree::any_left() {
            let taken = self.clock.moment().since(begun);
            if taken > MAX_KILL_TIME {
                break;
            }
            if taken >= grace {
                tree::send_to_all(Signal::KILL);
            }
            self.wait(Some(POLL_INTERVAL), 0)?;
            tree::reap_strangers(0);
        }
        // What died since would stay a zombie where the first process of the machine reaps none, as in many containers.
        tree::reap_strangers(0);
        Ok(left)
    }

    fn finish(&mut self, how: How, left: Option<u32>) -> io::Result<()> {
        let dropped = match (&mut self.drain, &self.owner) {
            (Some(drain), None) => drain.finish(&self.folder),
            (Some(drain), Some(_)) if self.attention.is_away() => drain.finish(&self.folder),
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
            excess: self.excess,
            lease_ended: self.lease_ended,
        })
    }
}

/// Closes the shim's copies of the streams: a reader of the agent's output waits for their end.
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

/// The signal with this number; TERM for one that does not end a process.
fn signal_of(number: i32) -> Signal {
    const ASKING: &[Signal] =
        &[Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::KILL];
    ASKING.iter().copied().find(|signal| signal.as_raw() == number).unwrap_or(Signal::TERM)
}
