//! The signals that a person or a service manager may send, as bytes in pipes.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

/// Those that end a wait or a command.
const STOPPING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

pub(crate) struct Signals {
    stopping: [(i32, UnixStream); 4],
    window: UnixStream,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let [interrupt, terminate, hang_up, quit] = STOPPING;
        Ok(Self {
            stopping: [listen(interrupt)?, listen(terminate)?, listen(hang_up)?, listen(quit)?],
            window: listen(SIGWINCH)?.1,
        })
    }

    /// Descriptors that are readable when a signal came.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.stopping.iter().map(|(_, pipe)| pipe.as_fd()).chain([self.window.as_fd()])
    }

    /// A signal to stop that came, if one did.
    pub(crate) fn stop(&self) -> Option<i32> {
        self.stopping.iter().find(|(_, pipe)| came(pipe)).map(|(signal, _)| *signal)
    }

    /// Whether the window was resized.
    pub(crate) fn resized(&self) -> bool {
        came(&self.window)
    }

    /// Sleeps for `length`, or until a signal to stop.
    pub(crate) fn wait_for_stop(&self, length: Duration) -> io::Result<Option<i32>> {
        let mut waiting: Vec<_> =
            self.pipes().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
        let length = Timespec::try_from(length).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut waiting, Some(&length)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(self.stop()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The next signal to stop ends the process at once, with this status.
///
/// # Errors
/// The system refuses to handle signals.
pub fn exit_at_next_signal(status: i32) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGQUIT] {
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::new(AtomicBool::new(true)))?;
    }
    Ok(())
}

fn listen(signal: i32) -> io::Result<(i32, UnixStream)> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    writer.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, writer)?;
    Ok((signal, reader))
}

fn came(mut pipe: &UnixStream) -> bool {
    pipe.read(&mut [0; 64]).is_ok_and(|count| count > 0)
}
