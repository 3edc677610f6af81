//! The pipes of an agent whose supervisor may die.
//!
//! They have names in the run's folder, and the shim keeps both ends open: the agent never gets a broken pipe, and the next supervisor finds
//! them again. While the run has an owner that does its work, the shim does not read them. Without one it reads them itself, so that the agent
//! does not block, and stores the end; the rest is counted and dropped. What it stored is written without secrets when an owner comes or the
//! run ends.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use koboshi::redact::{GivenValues, Redactor};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::attention::Fill;
use crate::folder::{ERROR, Folder, MISSED, OUT, write_whole};
use crate::keep::given_values;

/// How much of the end is stored.
const KEPT_BYTES: usize = 64 * 1024;
/// How long to wait for a living owner to read what is left.
const MAX_DRAIN_WAIT: Duration = Duration::from_secs(5);
/// How often to check whether the owner has read.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

pub(super) struct Drain {
    out: File,
    error: File,
    kept: Vec<u8>,
    dropped: u64,
    /// The names of the variables whose values must not be stored.
    masked: Vec<String>,
}

impl Drain {
    /// Opens both ends of the pipes.
    pub(super) fn open(folder: &Folder, masked: Vec<String>) -> std::io::Result<Self> {
        let pipe = |name| -> std::io::Result<File> {
            let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(folder.file(name))
        };
        Ok(Self { out: pipe(OUT)?, error: pipe(ERROR)?, kept: Vec::new(), dropped: 0, masked })
    }

    pub(super) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.out.as_fd(), self.error.as_fd()].into_iter()
    }

    /// How much is in them. Both ends are ours, so the room for writers shows as well.
    pub(super) fn fill(&self) -> Fill {
        let wanted = PollFlags::IN | PollFlags::OUT;
        let mut both: Vec<PollFd<'_>> =
            self.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, wanted)).collect();
        if poll(&mut both, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
            return Fill::Empty;
        }
        let has = |one: &PollFd<'_>, flag| one.revents().contains(flag);
        let written = |one: &&PollFd<'_>| has(one, PollFlags::IN);
        match (both.iter().any(|one| written(&one)), both.iter().all(|one| has(one, PollFlags::OUT))) {
            (true, false) => Fill::Full,
            (true, true) => Fill::Some,
            (false, _) => Fill::Empty,
        }
    }

    /// Reads what there is.
    pub(super) fn take(&mut self) {
        let mut buffer = [0; 16 * 1024];
        for pipe in [&mut self.out, &mut self.error] {
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                self.kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
                let beyond = self.kept.len().saturating_sub(KEPT_BYTES);
                if beyond > KEPT_BYTES {
                    self.kept.drain(..beyond);
                    self.dropped = self.dropped.saturating_add(beyond as u64);
                }
            }
        }
    }

    /// An owner is there again: it reads from now on, and gets what was stored.
    pub(super) fn hand_over(&mut self, folder: &Folder) {
        if self.kept.is_empty() {
            return;
        }
        let secrets = secrets(&self.masked);
        let kept = secrets.mask(&self.kept);
        let text = Redactor::new().redact(&String::from_utf8_lossy(&kept)).into_owned();
        let text = self.stored_before(folder) + &text;
        if write_whole(&folder.file(MISSED), text.as_bytes()).is_ok() {
            self.kept = Vec::new();
        }
    }

    /// The end of what was stored for an owner that was away earlier.
    fn stored_before(&mut self, folder: &Folder) -> String {
        let mut stored = std::fs::read(folder.file(MISSED)).unwrap_or_default();
        let beyond = stored.len().saturating_sub(KEPT_BYTES);
        stored.drain(..beyond);
        self.dropped = self.dropped.saturating_add(beyond as u64);
        String::from_utf8_lossy(&stored).into_owned()
    }

    /// The run is over and has no owner; returns how many bytes were dropped.
    pub(super) fn finish(&mut self, folder: &Folder) -> u64 {
        self.take();
        self.hand_over(folder);
        self.dropped
    }

    /// The run is over: waits until the owner has read the pipes, which vanish with the last descriptor; returns how many bytes were dropped.
    pub(super) fn leave_to_owner(&mut self, folder: &Folder, owner: Option<&OwnedFd>) -> u64 {
        let rounds = MAX_DRAIN_WAIT.as_millis() / 2;
        for _ in 0..rounds {
            let mut ready: Vec<PollFd<'_>> =
                self.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
            let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut ready, Some(&nothing)).is_ok_and(|count| count == 0) {
                return self.dropped;
            }
            let mut alive: Vec<PollFd<'_>> =
                owner.into_iter().map(|owner| PollFd::new(owner, PollFlags::IN)).collect();
            if poll(&mut alive, Some(&POLL_INTERVAL)).is_ok_and(|count| count > 0) {
                break;
            }
        }
        self.finish(folder)
    }
}

/// The values that must not be stored: the shim has them in the environment that it passes on. Made only where they are needed, so that a shim
/// stays small.
fn secrets(masked: &[String]) -> GivenValues {
    let values: Vec<String> = masked.iter().filter_map(|name| std::env::var(name).ok()).collect();
    given_values(values.iter().map(String::as_str))
}
