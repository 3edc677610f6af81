//! What a request tells its client besides the answer, while it is served: for clients that get notices for which HTTP has no place.
//!
//! A session's turn is a client of the same request path as every other one; what it needs in addition is put here, in order with the pieces
//! of the body: a notice is added only while no piece waits to be taken, so a reader of both takes notices first.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use koboshi::fault::Kind;

/// Something that happens on the way to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The same target is asked again after this pause.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        max_attempts: u32,
        delay: Duration,
        kind: Kind,
    },
    /// The answer begins again: what was sent of it does not count.
    Rewind { kind: Kind },
    /// The gateway made the conversation shorter: about how many tokens it left out, and how many messages.
    Trimmed { tokens: u64, messages: u64 },
    /// A broken tool call is asked for again; the line is for the user.
    Reask {
        line: String,
        /// Which answer was invalid, from 1.
        attempt: u32,
        max_attempts: u32,
    },
}

/// The notices of one request.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// The client can begin an answer again.
    pub(crate) can_rewind: bool,
    waiting: Mutex<Vec<Notice>>,
}

impl Notices {
    pub(crate) fn new(can_rewind: bool) -> Self {
        Self { can_rewind, waiting: Mutex::default() }
    }

    pub(crate) fn add(&self, notice: Notice) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// What was added since the last call.
    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
