//! One run of an agent, as its supervisor sees it: its shim, its pipes, its log, its tail.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::redact::{GivenValues, Redactor};
use koboshi::supervise::{Ladder, Permit, Signs, StoppedFor, WatchPolicy, overdue};
use koboshi::time::Moment;
use rustix::fs::OFlags;
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Signal, pidfd_send_signal};

use crate::folder::{ERROR, Folder, MISSED, OUT};
use crate::watch::{Lines, Log, LogPolicy, Repeats, Tail};

use super::events::Events;

/// How much of one run is read before the other runs are read.
const BYTES_PER_TURN: usize = 1024 * 1024;
/// A pipe that was found full is enlarged to this size, where the system allows it, so that its agent blocks less often.
const LARGE_PIPE: usize = 1024 * 1024;
/// Size of a pipe at first.
const DEFAULT_PIPE: usize = 64 * 1024;

/// The shared parts that reading a run needs.
pub(super) struct Reader<'r> {
    /// One for all runs.
    pub(super) buffer: &'r mut [u8],
    pub(super) redactor: &'r Redactor,
    pub(super) now: Moment,
    pub(super) clock: &'r dyn Fn() -> Moment,
    /// Called with complete lines, several at a time.
    pub(super) on_lines: &'r mut dyn FnMut(&[u8]),
}

/// A run that goes on.
pub(super) struct Run {
    pub(super) folder: Folder,
    pub(super) shim: OwnedFd,
    pub(super) started: Timestamp,
    pub(super) permit: Permit,
    /// The keys that it was started with: the settings may change meanwhile.
    pub(super) ladder: Ladder,
    pub(super) signs: Signs,
    /// What its output must not show.
    secrets: GivenValues,
    /// Why it is being stopped, if it is.
    pub(super) stopping: Option<StoppedFor>,
    pipes: [(File, Lines); 2],
    log: Log,
    repeats: Repeats,
    pub(super) tail: Tail,
    /// Bytes that it has written.
    pub(super) written: u64,
    /// Its number in the epoll instance.
    pub(super) number: u64,
}

impl Run {
    pub(super) fn open(
        folder: Folder,
        shim: OwnedFd,
        (permit, ladder): (Permit, Ladder),
        secrets: GivenValues,
        started: Timestamp,
        now: Moment,
        events: &Events,
    ) -> io::Result<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let pipe = |name| OpenOptions::new().read(true).custom_flags(flags).open(folder.file(name));
        let pipes = [(pipe(OUT)?, Lines::default()), (pipe(ERROR)?, Lines::default())];
        let log = Log::new(&folder.file("log"), LogPolicy::default(), now);
        let signs = Signs { started: now, ran_before: Duration::ZERO, output: now, offline: None };
        let (repeats, tail) = (Repeats::default(), Tail::default());
        let (stopping, written, number) = (None, 0, 0);
        let mut run = Self {
            folder,
            shim,
            started,
            permit,
            ladder,
            signs,
            secrets,
            stopping,
            pipes,
            log,
            repeats,
            tail,
            written,
            number,
        };
        run.number = events.watch(run.descriptors())?;
        Ok(run)
    }

    /// The descriptors to wait for: output, and the end of its shim.
    fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        let [(out, _), (error, _)] = &self.pipes;
        [self.shim.as_fd(), out.as_fd(), error.as_fd()]
    }

    /// Loads the tail that the previous supervisor saw.
    pub(super) fn recall(&mut self) {
        self.tail.add(&std::fs::read(self.folder.file("log")).unwrap_or_default());
    }

    /// Reads the available output; returns whether there may be more.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> bool {
        let mut more = false;
        for (pipe, lines) in &mut self.pipes {
            let mut count = 0;
            while let Ok(size @ 1..) = pipe.read(reader.buffer) {
                self.written = self.written.saturating_add(size as u64);
                let (log, tail, secrets) = (&mut self.log, &mut self.tail, &self.secrets);
                let bytes = reader.buffer.get(..size).unwrap_or_default();
                // A line that is being written is a sign of life; a whole one where it says something new.
                let mut says_more = memchr::memchr(b'\n', bytes).is_none();
                let repeats = &mut self.repeats;
                lines.feed(bytes, |block| {
                    says_more |= repeats.is_new(block);
                    let block = &secrets.mask(block);
                    keep(block, log, tail, reader.redactor, reader.clock, reader.on_lines);
                });
                if says_more {
                    self.signs.output = reader.now;
                }
                if count < DEFAULT_PIPE && count + size >= DEFAULT_PIPE {
                    // A refusal is harmless.
                    let _ = fcntl_setpipe_size(&*pipe, LARGE_PIPE);
                }
                count += size;
                if count >= BYTES_PER_TURN {
                    more = true;
                    break;
                }
            }
        }
        more
    }

    /// Reads what is left of a run that is over.
    pub(super) fn finish(&mut self, reader: &mut Reader<'_>) {
        while self.read(reader) {}
        let (log, tail, secrets) = (&mut self.log, &mut self.tail, &self.secrets);
        for (_, lines) in &mut self.pipes {
            lines.finish(|block| {
                let block = &secrets.mask(block);
                keep(block, log, tail, reader.redactor, reader.clock, reader.on_lines);
            });
        }
        // Output that the shim stored while the run had no owner.
        let missed = std::fs::read(self.folder.file(MISSED)).unwrap_or_default();
        let missed = secrets.mask(&missed);
        tail.add(&missed);
        let _ = log.add(&missed, reader.redactor, reader.clock);
        let _ = log.finish(reader.redactor);
    }

    /// Bytes that it wrote and that are not in its log.
    pub(super) fn dropped(&self) -> u64 {
        let cut: u64 = self.pipes.iter().map(|(_, lines)| lines.passed_over()).sum();
        self.log.left_out().saturating_add(cut)
    }

    /// Stops it if it takes too long.
    pub(super) fn stop_if_overdue(&mut self, policy: &WatchPolicy, now: Moment) {
        if self.stopping.is_none()
            && let Some(why) = overdue(policy, &self.signs, now)
        {
            self.stop(why);
        }
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        self.stopping.get_or_insert(StoppedFor::Request);
        let _ = pidfd_send_signal(&self.shim, Signal::QUIT);
    }

    /// Asks it to end.
    pub(super) fn stop(&mut self, why: StoppedFor) {
        self.stopping.get_or_insert(why);
        // It may be gone already.
        let _ = pidfd_send_signal(&self.shim, Signal::TERM);
    }
}

fn keep(
    lines: &[u8],
    log: &mut Log,
    tail: &mut Tail,
    redactor: &Redactor,
    clock: &dyn Fn() -> Moment,
    on_lines: &mut dyn FnMut(&[u8]),
) {
    tail.add(lines);
    // A full disk stops no agent: decisions use the tail, not the log.
    let _ = log.add(lines, redactor, clock);
    on_lines(lines);
}
