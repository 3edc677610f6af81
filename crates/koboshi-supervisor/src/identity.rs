//! Identifies a process by its number, its start time, and the boot of the machine.
//!
//! The system reuses numbers, and unrelated processes share names. Signals go through a descriptor of the process itself, so that no other
//! process can take its number between the check and the signal.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use koboshi_store::since_boot;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// One process of one boot of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it started, in ticks since the boot.
    pub start: u64,
    /// Which boot.
    pub boot: String,
}

impl Identity {
    /// This process.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::of(i32::try_from(std::process::id()).ok()?)
    }

    /// The process that has this number now.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        Some(Self { pid, start: Stat::read(pid)?.start, boot: boot()? })
    }

    /// How long ago it was started. The machine's clock does not matter: both times count from the boot.
    #[must_use]
    pub fn age(&self) -> Duration {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        since_boot().saturating_sub(Duration::from_millis(self.start.saturating_mul(1000) / ticks))
    }

    /// A descriptor of the process, if it is still there.
    #[must_use]
    pub fn open(&self) -> Option<OwnedFd> {
        let descriptor = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Compared after opening: either the open process has this start time, or another process had taken the number before.
        (Self::of(self.pid)? == *self).then_some(descriptor)
    }

    /// Whether it exists and is no zombie.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let stat = Stat::read(self.pid).filter(|stat| stat.start == self.start);
        stat.is_some_and(|stat| !stat.is_dead()) && boot().as_ref() == Some(&self.boot)
    }

    /// Sends a signal to this process; returns whether it existed.
    pub fn signal(&self, signal: Signal) -> bool {
        self.open().is_some_and(|process| pidfd_send_signal(process, signal).is_ok())
    }
}

fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its state, a letter.
    pub state: char,
    /// Its parent.
    pub parent: i32,
    /// When it started, in ticks since the boot.
    pub start: u64,
}

impl Stat {
    /// Of the process with this number.
    #[must_use]
    pub fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in brackets may contain spaces and brackets: fields are counted from the last bracket.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // The 22nd field of the line; the two before and these two are gone.
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { state, parent, start })
    }

    /// Whether it is a zombie.
    #[must_use]
    pub const fn is_dead(self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_itself_and_no_other() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive() && own.open().is_some());
        let earlier = Identity { start: own.start - 1, ..own.clone() };
        assert!(!earlier.is_alive() && earlier.open().is_none(), "the same number, another process");
        let boot = Identity { boot: "another".to_owned(), ..own };
        assert!(!boot.is_alive() && boot.open().is_none());
    }

    #[test]
    fn a_name_with_brackets_moves_no_field() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 2 3";
        assert_eq!(Stat::parse(line), Some(Stat { state: 'S', parent: 7, start: 987_654 }));
        assert_eq!(Stat::parse("nothing"), None);
    }
}
