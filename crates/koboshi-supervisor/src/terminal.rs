//! A terminal between ours and the agent, so that the agent has a real one and we see what it writes.
//!
//! Ours is raw meanwhile: every key goes to the agent, and the agent's own terminal turns Ctrl-C into a signal. Ours is restored when the
//! run ends, in every case.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

/// The two ends of the agent's terminal, and how ours was before.
pub(crate) struct Terminal {
    pub(crate) ours: OwnedFd,
    before: Termios,
}

/// Whether our input and output are a terminal.
pub(crate) fn is_interactive() -> bool {
    isatty(stdin()) && isatty(rustix::stdio::stdout())
}

impl Terminal {
    /// Opens one; gives the agent's side too.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or(0);
        let path = std::path::Path::new(std::ffi::OsStr::new(name.to_str().unwrap_or_default()));
        let side = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        let before = tcgetattr(stdin())?;
        let terminal = Self { ours, before };
        terminal.fit();
        let mut raw = terminal.before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok((terminal, OwnedFd::from(side)))
    }

    /// Resizes the agent's terminal to the size of ours.
    pub(crate) fn fit(&self) {
        if let Ok(size) = tcgetwinsize(stdin()) {
            // A terminal without a size is used as it is.
            let _ = tcsetwinsize(self.ours.as_fd(), size);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails only when our terminal is gone.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.before);
    }
}
