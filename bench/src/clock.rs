//! The machine's monotonic clock in nanoseconds, and an alarm that is exact to some ten microseconds.
//!
//! The timers of tokio tick in milliseconds, which is more than what a gateway adds; a timer of the kernel does not.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

const SECOND: u64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_MONOTONIC`; Python's `time.monotonic_ns` reads the same clock.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * SECOND + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Milliseconds in nanoseconds.
pub fn millis(count: u64) -> u64 {
    count * 1_000_000
}

/// Wakes one task at an instant.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// Needs a tokio runtime around it.
    pub fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "what took its place is unsafe; an owned descriptor stays what it is")]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer })
    }

    /// Returns at the instant, or at once if it has passed.
    pub async fn until(&self, due: u64) -> io::Result<()> {
        if now() >= due {
            return Ok(());
        }
        let once = Itimerspec { it_interval: Timespec::default(), it_value: spec(due) };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut rings = [0_u8; 8];
            match ready.try_io(|timer| Ok(rustix::io::read(timer, &mut rings)?)) {
                Ok(rung) => return rung.map(|_| ()),
                Err(_not_yet) => {}
            }
        }
    }
}

fn spec(at: u64) -> Timespec {
    Timespec { tv_sec: (at / SECOND).cast_signed(), tv_nsec: (at % SECOND).cast_signed() }
}
