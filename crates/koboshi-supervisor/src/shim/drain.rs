//! The pipes of an agent whose supervisor may die.
//!
//! They have names in the run's folder, and the shim keeps both ends open: the agent never gets a broken pipe, and the next supervisor finds
//! them again. While there is an owner the shim does not touch them. Without one it reads them itself, so that the agent is not blocked, and
//! keeps the end; more is counted and dropped. What it kept is written without secrets when an owner comes or the run ends.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use koboshi::redact::Redactor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::folder::{ERROR, Folder, MISSED, OUT, write_whole};

/// So much of the end is kept.
const KEPT: usize = 64 * 1024;
/// So long an owner that lives is waited for to read the rest.
const LONGEST_REST: Duration = Duration::from_secs(5);
/// How often it is looked whether the owner has read.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

pub(super) struct Drain {
    out: File,
    error: File,
    kept: Vec<u8>,
    dropped: u64,
}

impl Drain {
    /// Opens both ends of the pipes.
    pub(super) fn open(folder: &Folder) -> std::io::Result<Self> {
        let pipe = |name| -> std::io::Result<File> {
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(folder.file(name))
        };
        Ok(Self { out: pipe(OUT)?, error: pipe(ERROR)?, kept: Vec::new(), dropped: 0 })
    }

    pub(super) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.out.as_fd(), self.error.as_fd()].into_iter()
    }

    /// Takes what there is.
    pub(super) fn take(&mut self) {
        let mut buffer = [0; 16 * 1024];
        for pipe in [&mut self.out, &mut self.error] {
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                self.kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
                let beyond = self.kept.len().saturating_sub(KEPT);
                if beyond > KEPT {
                    self.kept.drain(..beyond);
                    self.dropped = self.dropped.saturating_add(beyond as u64);
                }
            }
        }
    }

    /// An owner is there again: it reads from now on, and finds what was kept.
    pub(super) fn hand_over(&mut self, folder: &Folder) {
        if self.kept.is_empty() {
            return;
        }
        let text = Redactor::new().redact(&String::from_utf8_lossy(&self.kept)).into_owned();
        if write_whole(&folder.file(MISSED), text.as_bytes()).is_ok() {
            self.kept = Vec::new();
        }
    }

    /// The run is over and has no owner. Says how much was dropped.
    pub(super) fn finish(&mut self, folder: &Folder) -> u64 {
        self.take();
        self.hand_over(folder);
        self.dropped
    }

    /// The run is over: the owner reads the rest, which is gone with the last descriptor. One that does not is not waited for.
    pub(super) fn leave_to_owner(&mut self, folder: &Folder, owner: Option<&OwnedFd>) -> u64 {
        let rounds = LONGEST_REST.as_millis() / 2;
        for _ in 0..rounds {
            let mut ready: Vec<PollFd<'_>> =
                self.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
            let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut ready, Some(&nothing)).is_ok_and(|count| count == 0) {
                return self.dropped;
            }
            let mut alive: Vec<PollFd<'_>> =
                owner.into_iter().map(|owner| PollFd::new(owner, PollFlags::IN)).collect();
            if poll(&mut alive, Some(&LOOK)).is_ok_and(|count| count > 0) {
                break;
            }
        }
        self.finish(folder)
    }
}
