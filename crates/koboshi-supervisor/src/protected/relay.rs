//! Passes the streams of a command on as they come, and keeps the end of its output.
//!
//! One thread and one poll: the command's output goes to our own streams at once, and its tail is kept as evidence. When our own reader is
//! gone, the command's stream is closed too, so that it meets the same broken pipe as without us.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Duration;

use koboshi::supervise::StoppedFor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::SIGINT;

use crate::terminal::Terminal;
use crate::watch::{Lines, Tail};

use crate::signals::Signals;

use super::watch::RunWatch;

const BUFFER: usize = 64 * 1024;
/// How much typed input is buffered for a command that does not read.
const MAX_TYPED: usize = 64 * 1024;

/// What a run printed.
#[derive(Debug, Default)]
pub(super) struct RunOutput {
    pub(super) tail: Tail,
    /// Why it was stopped, if it took too long.
    pub(super) stopped: Option<StoppedFor>,
}

/// A stream of the command and where it goes.
struct Stream {
    from: File,
    /// To standard error, and not to standard output.
    is_error: bool,
    lines: Lines,
}

pub(super) struct Relay {
    streams: Vec<Stream>,
    shim: OwnedFd,
    terminal: Option<Terminal>,
    /// Typed and not yet read by the command.
    typed: Vec<u8>,
    typing: bool,
    tail: Tail,
    stops: u32,
}

impl Relay {
    pub(super) fn new(child: &mut Child, terminal: Option<Terminal>) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
        let shim = pidfd_open(pid, PidfdFlags::empty())?;
        let mut streams = Vec::new();
        let mut add = |from: OwnedFd, is_error| {
            streams.push(Stream { from: File::from(from), is_error, lines: Lines::default() });
        };
        if let Some(terminal) = &terminal {
            add(terminal.ours.try_clone()?, false);
        }
        if let Some(out) = child.stdout.take() {
            add(out.into(), false);
        }
        if let Some(error) = child.stderr.take() {
            add(error.into(), true);
        }
        let typing = terminal.is_some();
        Ok(Self { streams, shim, terminal, typed: Vec::new(), typing, tail: Tail::default(), stops: 0 })
    }

    /// Passes on until the shim is gone.
    pub(super) fn until_end(
        &mut self,
        child: &mut Child,
        signals: &Signals,
        watch: &mut RunWatch<'_>,
    ) -> io::Result<()> {
        while child.try_wait()?.is_none() {
            let ready = self.wait(signals, watch.next_check())?;
            for at in ready.streams.iter().rev() {
                self.pass_on(*at, watch);
            }
            if watch.must_stop() {
                self.ask_to_end(Signal::TERM);
            }
            if ready.typed {
                self.read_typed();
            }
            self.hand_typed();
            if let Some(signal) = signals.stop() {
                self.stop(signal);
            }
            if signals.resized()
                && let Some(terminal) = &self.terminal
            {
                terminal.fit();
            }
        }
        Ok(())
    }

    fn wait(&self, signals: &Signals, at_most: Option<Duration>) -> io::Result<Ready> {
        let mut waiting: Vec<PollFd<'_>> =
            self.streams.iter().map(|stream| PollFd::new(&stream.from, PollFlags::IN)).collect();
        let count = waiting.len();
        let stdin = rustix::stdio::stdin();
        let typing = self.typing && self.typed.len() < MAX_TYPED;
        waiting.extend(typing.then(|| PollFd::from_borrowed_fd(stdin, PollFlags::IN)));
        if let Some(terminal) = self.terminal.as_ref().filter(|_| !self.typed.is_empty()) {
            waiting.push(PollFd::new(&terminal.ours, PollFlags::OUT));
        }
        waiting.push(PollFd::new(&self.shim, PollFlags::IN));
        waiting.extend(signals.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        let at_most = at_most.and_then(|time| Timespec::try_from(time).ok());
        match poll(&mut waiting, at_most.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: &usize| waiting.get(*at).is_some_and(|one| !one.revents().is_empty());
        Ok(Ready { streams: (0..count).filter(is_ready).collect(), typed: typing && is_ready(&count) })
    }

    /// Passes on what a stream has. A stream at its end, or whose reader is gone, is closed.
    fn pass_on(&mut self, at: usize, watch: &mut RunWatch<'_>) {
        let Some(stream) = self.streams.get_mut(at) else { return };
        let mut buffer = [0; BUFFER];
        let count = match stream.from.read(&mut buffer) {
            Ok(0) => None,
            Ok(count) => Some(count),
            Err(error) if is_for_later(&error) => return,
            // On Linux, reading the terminal of an ended command fails instead of reaching an end.
            Err(_) => None,
        };
        let bytes = buffer.get(..count.unwrap_or(0)).unwrap_or_default();
        let tail = &mut self.tail;
        let mut each = |lines: &[u8]| {
            tail.add(lines);
            watch.read(lines);
        };
        stream.lines.feed(bytes, &mut each);
        let passed = if stream.is_error {
            write(io::stderr().lock(), bytes)
        } else {
            write(io::stdout().lock(), bytes)
        };
        if count.is_none() || passed.is_err() {
            stream.lines.finish(&mut each);
            self.streams.remove(at);
        }
    }

    fn read_typed(&mut self) {
        let mut buffer = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(0) => self.typing = false,
            Ok(count) => self.typed.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => self.typing = false,
        }
    }

    fn hand_typed(&mut self) {
        let Some(terminal) = self.terminal.as_ref().filter(|_| !self.typed.is_empty()) else { return };
        let mut out = [PollFd::new(&terminal.ours, PollFlags::OUT)];
        let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut out, Some(&nothing)).is_ok_and(|count| count > 0) {
            // Few bytes at a time: a terminal that has space takes them without blocking.
            let piece = self.typed.get(..self.typed.len().min(256)).unwrap_or_default();
            let written = rustix::io::write(terminal.ours.as_fd(), piece).unwrap_or(0);
            self.typed.drain(..written);
        }
    }

    /// The command itself handles the first Ctrl-C; the next one, or any other signal, stops it.
    fn stop(&mut self, signal: i32) {
        self.stops += 1;
        self.ask_to_end(if signal == SIGINT && self.stops == 1 { Signal::INT } else { Signal::TERM });
    }

    fn ask_to_end(&self, signal: Signal) {
        // It may be gone already.
        let _ = pidfd_send_signal(&self.shim, signal);
    }

    /// Passes on what is left after the end.
    pub(super) fn finish(mut self, watch: &mut RunWatch<'_>) -> RunOutput {
        for stream in &self.streams {
            // A process that could not be killed may hold its stream open for ever: do not block.
            let _ = ioctl_fionbio(&stream.from, true);
        }
        for at in (0..self.streams.len()).rev() {
            self.drain(at, watch);
        }
        RunOutput { tail: std::mem::take(&mut self.tail), stopped: watch.stopped() }
    }

    fn drain(&mut self, at: usize, watch: &mut RunWatch<'_>) {
        loop {
            let before = self.streams.len();
            let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
            let Some(stream) = self.streams.get_mut(at) else { return };
            let mut waiting = [PollFd::new(&stream.from, PollFlags::IN)];
            if !poll(&mut waiting, Some(&nothing)).is_ok_and(|count| count > 0) {
                let tail = &mut self.tail;
                stream.lines.finish(|lines| {
                    tail.add(lines);
                    watch.read(lines);
                });
                return;
            }
            self.pass_on(at, watch);
            if self.streams.len() < before {
                return;
            }
        }
    }
}

struct Ready {
    streams: Vec<usize>,
    typed: bool,
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn write(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}
