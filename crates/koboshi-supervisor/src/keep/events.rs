//! What the supervisor waits for: output and ends of runs, orders, signals.
//!
//! One epoll instance: a thousand quiet agents cost nothing, because only runs with events are examined.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// How many events one call takes; the others come with the next call.
const MAX_EVENTS: usize = 256;
/// The number of descriptors that belong to no run.
const OWN: u64 = 0;

/// The descriptors that the supervisor waits for.
pub(crate) struct Events {
    epoll: OwnedFd,
    next: Cell<u64>,
}

/// What became ready.
#[derive(Default)]
pub(super) struct Ready {
    /// The numbers of runs with output or an end.
    runs: Vec<u64>,
    /// There is a signal or an order.
    pub(super) is_called: bool,
}

impl Ready {
    /// Whether a run has output or has ended.
    pub(super) fn has(&self, run: u64) -> bool {
        self.runs.contains(&run)
    }
}

impl Events {
    /// Waits for these descriptors, which belong to no run.
    pub(super) fn new<'f>(own: impl Iterator<Item = BorrowedFd<'f>>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for one in own {
            epoll::add(&epoll, one, EventData::new_u64(OWN), EventFlags::IN)?;
        }
        Ok(Self { epoll, next: Cell::new(OWN + 1) })
    }

    /// Waits for one more descriptor that belongs to no run, until it is closed.
    pub(super) fn listen(&self, own: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, own, EventData::new_u64(OWN), EventFlags::IN)?)
    }

    /// Adds a run, and returns its number. The run is removed when its descriptors are closed.
    pub(crate) fn watch(&self, descriptors: [BorrowedFd<'_>; 3]) -> io::Result<u64> {
        let number = self.next.get();
        self.next.set(number + 1);
        for one in descriptors {
            epoll::add(&self.epoll, one.as_fd(), EventData::new_u64(number), EventFlags::IN)?;
        }
        Ok(number)
    }

    /// Waits for an event, at most for `length`.
    pub(super) fn wait(&self, length: Duration) -> io::Result<Ready> {
        let length = Timespec::try_from(length).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut found: Vec<Event> = Vec::with_capacity(MAX_EVENTS);
        match epoll::wait(&self.epoll, spare_capacity(&mut found), Some(&length)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut runs: Vec<u64> = found.iter().map(|event| event.data.u64()).collect();
        let is_called = runs.contains(&OWN);
        runs.sort_unstable();
        runs.dedup();
        Ok(Ready { runs, is_called })
    }
}
