//! Which process is meant: its number, when it started, and the boot of the machine.
//!
//! A number alone comes back for a stranger, and a name is shared by strangers. Signals go through a descriptor of the very process, so that
//! nothing can change between the look and the signal.

use std::fs;
use std::os::fd::OwnedFd;

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

    /// A descriptor of the process, if it is still there.
    #[must_use]
    pub fn open(&self) -> Option<OwnedFd> {
        let descriptor = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Looked at after the opening: what is open now has this start, or the number was given to another one before.
        (Self::of(self.pid)? == *self).then_some(descriptor)
    }

    /// Whether it is there and no corpse.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let stat = Stat::read(self.pid).filter(|stat| stat.start == self.start);
        stat.is_some_and(|stat| !stat.is_dead()) && boot().as_ref() == Some(&self.boot)
    }

    /// Sends a signal to this very process; says whether it was there.
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

    /// The name in brackets may hold spaces and brackets: everything counts from the last one.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // The 22nd field of the line; the two before and these two are gone.
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self { state, parent, start })
    }

    /// Whether nothing is left but its number.
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
