//! A timer that goes on while the machine sleeps.
//!
//! A timeout of `poll` is counted by a clock that stands still during that time. On a machine that wakes, an agent would go on for as long as
//! was left before, although the right to run it has ended meanwhile and another machine runs it. This timer is due as soon as the machine wakes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

#[derive(Debug)]
pub(super) struct Alarm(OwnedFd);

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?))
    }

    /// Its descriptor is readable after this time, or never without one. An earlier setting no longer counts.
    pub(super) fn set(&self, after: Option<Duration>) -> io::Result<()> {
        // No time at all would mean never.
        let after = after.map(|after| after.max(Duration::from_nanos(1)));
        let it_value = after.and_then(|after| Timespec::try_from(after).ok()).unwrap_or(NEVER);
        let once = Itimerspec { it_interval: NEVER, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
