//! One run of an agent, as its supervisor sees it: its shim, its pipes, its log, its tail.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use jiff::Timestamp;
use koboshi::redact::Redactor;
use koboshi::supervise::{Permit, Signs, StoppedFor};
use koboshi::time::Moment;
use rustix::fs::OFlags;
use rustix::process::{Signal, pidfd_send_signal};

use crate::folder::{ERROR, Folder, MISSED, OUT};
use crate::watch::{Lines, Log, LogPolicy, Tail};

/// So much is read of one run before the others have their turn.
const TURN: usize = 256 * 1024;

/// A run that goes on.
pub(super) struct Run {
    pub(super) folder: Folder,
    pub(super) shim: OwnedFd,
    pub(super) started: Timestamp,
    pub(super) permit: Permit,
    pub(super) signs: Signs,
    /// Why it is being stopped, if it is.
    pub(super) stopping: Option<StoppedFor>,
    pipes: [(File, Lines); 2],
    log: Log,
    pub(super) tail: Tail,
}

impl Run {
    pub(super) fn open(
        folder: Folder,
        shim: OwnedFd,
        permit: Permit,
        started: Timestamp,
        now: Moment,
    ) -> io::Result<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let pipe = |name| OpenOptions::new().read(true).custom_flags(flags).open(folder.file(name));
        let pipes = [(pipe(OUT)?, Lines::default()), (pipe(ERROR)?, Lines::default())];
        let log = Log::open(&folder.file("log"), LogPolicy::default())?;
        let signs = Signs { started: now, output: now, offline: None };
        let tail = Tail::default();
        Ok(Self { folder, shim, started, permit, signs, stopping: None, pipes, log, tail })
    }

    /// What it waits for: output, and the end of its shim.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        let [(out, _), (error, _)] = &self.pipes;
        [self.shim.as_fd(), out.as_fd(), error.as_fd()]
    }

    /// Takes over what the last supervisor saw.
    pub(super) fn recall(&mut self) {
        let text = std::fs::read(self.folder.file("log")).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.tail.add(line);
        }
    }

    /// Reads what there is. Says whether there may be more.
    pub(super) fn read(&mut self, redactor: &Redactor, now: Moment, on_line: &mut dyn FnMut(&[u8])) -> bool {
        let mut buffer = vec![0; 64 * 1024];
        let mut more = false;
        for (pipe, lines) in &mut self.pipes {
            let mut count = 0;
            while let Ok(size @ 1..) = pipe.read(&mut buffer) {
                self.signs.output = now;
                let (log, tail) = (&mut self.log, &mut self.tail);
                lines.feed(buffer.get(..size).unwrap_or_default(), |line| {
                    keep(line, log, tail, redactor, on_line);
                });
                count += size;
                if count >= TURN {
                    more = true;
                    break;
                }
            }
        }
        let _ = self.log.flush();
        more
    }

    /// Reads the rest of a run that is over.
    pub(super) fn finish(&mut self, redactor: &Redactor, now: Moment, on_line: &mut dyn FnMut(&[u8])) {
        while self.read(redactor, now, on_line) {}
        for (_, lines) in &mut self.pipes {
            let (log, tail) = (&mut self.log, &mut self.tail);
            lines.finish(|line| keep(line, log, tail, redactor, on_line));
        }
        self.recall_missed(redactor);
        let _ = self.log.flush();
    }

    /// What the shim kept because nobody read it.
    fn recall_missed(&mut self, redactor: &Redactor) {
        let text = std::fs::read(self.folder.file(MISSED)).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.tail.add(line);
            let _ = self.log.line(line, redactor);
        }
    }

    /// Asks it to end.
    pub(super) fn stop(&mut self, why: StoppedFor) {
        self.stopping.get_or_insert(why);
        // It may be gone already.
        let _ = pidfd_send_signal(&self.shim, Signal::TERM);
    }
}

fn keep(line: &[u8], log: &mut Log, tail: &mut Tail, redactor: &Redactor, on_line: &mut dyn FnMut(&[u8])) {
    tail.add(line);
    // A disk that is full keeps nobody from working: what is decided is decided by the tail.
    let _ = log.line(line, redactor);
    on_line(line);
}
