//! All client connections of one core: checked together several times a second, and ended together. A request that is answered sooner pays
//! nothing for the checks.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use koboshi_store::{Clock, SystemClock};
use koboshi_wire::http1::head::RequestBody;

use super::liveness::{ClientState, TickLimits};
use super::{ClientStream, Connection, Inner};
use crate::http::pace::Pace;

/// How often connections are checked.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The connections of one core.
#[derive(Default)]
pub(crate) struct Connections {
    open: RefCell<Vec<Weak<Inner>>>,
    common: Rc<Common>,
}

/// What all connections of a core share.
pub(super) struct Common {
    pub(super) stopping: Cell<bool>,
    /// The drain time is over.
    ending: Cell<bool>,
    /// The buffer for reading, and for assembling answers. Taken while it is used.
    pub(super) read_buffer: Cell<Vec<u8>>,
    pub(super) write_buffer: Cell<Vec<u8>>,
    /// How fast large bodies are read.
    pub(super) pace: Pace,
    /// The `Date` header, as of the last tick.
    pub(super) date: RefCell<Rc<[u8]>>,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            stopping: Cell::new(false),
            ending: Cell::new(false),
            read_buffer: Cell::default(),
            write_buffer: Cell::default(),
            pace: Pace::default(),
            date: RefCell::new(date()),
        }
    }
}

/// The `Date` header.
fn date() -> Rc<[u8]> {
    date_of(SystemClock.wall().into())
}

/// The `Date` header at this time. A clock that is set before 1970 or after 9999 has no such form, and must not end the thread.
fn date_of(time: SystemTime) -> Rc<[u8]> {
    let last = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    httpdate::fmt_http_date(time.clamp(UNIX_EPOCH, last)).into_bytes().into()
}

impl Connections {
    /// Adds a connection.
    pub(crate) fn add(&self, stream: ClientStream) -> Connection {
        let connection = Connection(Rc::new(Inner {
            stream: RefCell::new(stream),
            received: RefCell::default(),
            scanned: Cell::new(0),
            remaining_body: Cell::new(RequestBody::Nothing),
            expects_continue: Cell::new(false),
            state: Cell::new(ClientState::Head(0)),
            task: RefCell::new(None),
            is_gone: Cell::new(false),
            common: Rc::clone(&self.common),
        }));
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            // There was no tick for a while.
            *self.common.date.borrow_mut() = date();
        }
        open.push(Rc::downgrade(&connection.0));
        connection
    }

    /// How fast large bodies are read.
    pub(crate) fn pace(&self) -> &Pace {
        &self.common.pace
    }

    pub(crate) fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    pub(crate) fn are_stopping(&self) -> bool {
        self.common.stopping.get()
    }

    /// Ends every connection when its current request is answered.
    pub(crate) fn stop(&self) {
        self.common.stopping.set(true);
        for connection in self.open.borrow().iter().filter_map(Weak::upgrade) {
            connection.wake();
        }
    }

    /// Whether requests are to end now, answered or not.
    pub(crate) fn are_ending(&self) -> bool {
        self.common.ending.get()
    }

    /// Ends every request now: their handlers check [`Connections::are_ending`] when they are woken.
    pub(crate) fn end(&self) {
        self.common.ending.set(true);
        self.stop();
    }

    /// Closes clients that disconnected, exceeded the head timeout or stopped reading. Runs every [`TICK`].
    pub(crate) fn tick(&self, head_time: Duration, send_time: Duration) {
        let ticks =
            |time: Duration| u32::try_from(time.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u32::MAX);
        let limits = TickLimits { head: ticks(head_time), send: ticks(send_time) };
        *self.common.date.borrow_mut() = date();
        self.open.borrow_mut().retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            if connection.tick(&limits) {
                connection.is_gone.set(true);
                connection.wake();
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_far_off_still_has_a_date() {
        let day = Duration::from_secs(24 * 60 * 60);
        for (time, expected) in [
            (UNIX_EPOCH - day * 36_500, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (UNIX_EPOCH, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (UNIX_EPOCH + day * 20_000, "Fri, 04 Oct 2024 00:00:00 GMT"),
            (UNIX_EPOCH + day * 3_000_000, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(&*date_of(time), expected.as_bytes());
        }
    }
}
