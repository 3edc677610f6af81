//! The health of a ledger and its store.
//!
//! A store that fails returns an error. One that hangs returns nothing, so the keeper notes when its call began.

use std::time::Duration;

use koboshi::time::Moment;

use crate::error::StoreError;

/// A store that has not answered for this long hangs: longer than the timeouts that stores have themselves.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The health of a ledger and its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Which store.
    pub place: String,
    /// The last exchange with the store went well.
    pub connected: bool,
    /// The store has been read at least once.
    pub loaded: bool,
    /// What went wrong last, while it lasts.
    pub trouble: Option<StoreError>,
    /// Records that wait to be written.
    pub pending: usize,
    /// Entries of the journal that wait to be written.
    pub journal_waiting: usize,
    /// Entries of the journal that were dropped since the start.
    pub journal_dropped: u64,
    /// Things in the store that this program cannot read, at the last read.
    pub unreadable: usize,
}

/// The keeper's state of the store.
#[derive(Default)]
pub(super) struct State {
    pub(super) connected: bool,
    /// When the keeper began the round that it is in.
    began: Option<Moment>,
    trouble: Option<StoreError>,
    pub(super) unreadable: usize,
}

impl State {
    /// The keeper begins a round.
    pub(super) fn begin_round(&mut self, now: Moment) {
        self.began = Some(now);
    }

    /// The result of the round.
    pub(super) fn end_round(&mut self, trouble: Option<StoreError>) {
        self.began = None;
        self.connected = trouble.is_none();
        self.trouble = trouble;
    }

    /// What is wrong with the store now: its last error, or that it does not answer.
    pub(super) fn trouble_at(&self, now: Moment, place: &str) -> Option<StoreError> {
        let hangs = self.began.is_some_and(|began| now.since(began) > CALL_TIMEOUT);
        let away = || StoreError::Away {
            place: place.to_owned(),
            doing: "exchange what is known",
            why: format!("no answer for {} s", CALL_TIMEOUT.as_secs()),
        };
        self.trouble.clone().or_else(|| hangs.then(away))
    }
}
