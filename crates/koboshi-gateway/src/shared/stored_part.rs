//! What a process knows of what the store has of a session, and what it holds besides: entries that came before those they follow, and those that
//! its owner here has to tell to others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use koboshi::session::{Entry, Limits, Log};

use crate::shared::sessions::{LiveSession, lock};

/// Entries of a session that wait for those before them, or for their way to other processes.
const MAX_WAITING: usize = 1000;
/// Entries of fewer bytes are no reason to store a whole state.
const MIN_SINCE: usize = 64 * 1024;

/// How much the store has of a session in its whole state, and in entries since then.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StoredWhole {
    /// The number of the state.
    pub(crate) seq: u64,
    /// Its bytes.
    size: usize,
    /// Those of the entries since then.
    since: usize,
}

impl StoredWhole {
    /// Such a state was just stored.
    pub(crate) const fn new(seq: u64, size: usize) -> Self {
        Self { seq, size, since: 0 }
    }

    pub(crate) const fn add(&mut self, bytes: usize) {
        self.since = self.since.saturating_add(bytes);
    }

    /// So much has come since that the state is stored again: when it has doubled, so that all states together are no more than twice what
    /// is stored once.
    pub(crate) fn is_due(&self) -> bool {
        self.since > self.size.max(MIN_SINCE)
    }
}

/// A session as it was stored.
pub(crate) struct RestoredSession {
    pub(crate) tenant: String,
    pub(crate) log: Log,
    pub(crate) whole: StoredWhole,
}

/// The part of a session that the store has, as far as it is known here.
#[derive(Default)]
pub(crate) struct StoredPart {
    whole: Mutex<StoredWhole>,
    /// What its owner elsewhere has said that does not go on with the log yet.
    early: Mutex<BTreeMap<u64, Entry>>,
    /// What its owner here has to say to other processes.
    untold: Mutex<Vec<Entry>>,
    /// The log may differ from what the store has under the same numbers.
    is_doubtful: AtomicBool,
}

impl StoredPart {
    pub(crate) fn new(whole: StoredWhole) -> Self {
        Self { whole: Mutex::new(whole), ..Self::default() }
    }

    pub(crate) fn whole(&self) -> MutexGuard<'_, StoredWhole> {
        lock(&self.whole)
    }

    /// What is known here may differ from what the store has: it is read whole next.
    pub(crate) fn doubt(&self) {
        self.is_doubtful.store(true, Ordering::Relaxed);
    }

    /// Forgets what came before what it follows: the log is not its owner's any more, or of another epoch.
    pub(crate) fn forget_early(&self) {
        lock(&self.early).clear();
    }

    /// Keeps entries for other processes. Says whether they must be sent for: else that is on its way. Where too much waits it is left out, because the
    /// store has it soon.
    pub(crate) fn keep_untold(&self, entries: &[Entry]) -> bool {
        let mut untold = lock(&self.untold);
        let is_first = untold.is_empty();
        if untold.len() < MAX_WAITING {
            untold.extend_from_slice(entries);
        }
        is_first
    }

    pub(crate) fn take_untold(&self) -> Vec<Entry> {
        std::mem::take(&mut *lock(&self.untold))
    }
}

impl LiveSession {
    /// What is known here: the epoch and the last number. Nothing where that is doubtful.
    pub(crate) fn known(&self) -> (String, u64) {
        if self.stored.is_doubtful.load(Ordering::Relaxed) {
            return (String::new(), 0);
        }
        let log = self.log();
        (log.epoch().to_owned(), log.seq())
    }

    /// The session is what the store has.
    pub(crate) fn replace(&self, restored: RestoredSession) {
        let RestoredSession { log, whole, .. } = restored;
        lock(&self.stored.early).clear();
        *self.stored.whole() = whole;
        self.stored.is_doubtful.store(false, Ordering::Relaxed);
        self.change(|known| *known = log.instead_of(known));
    }

    /// The log goes on with these entries, of so many bytes. Those that are too early wait for the ones before them.
    pub(crate) fn go_on(&self, entries: impl IntoIterator<Item = Entry>, bytes: usize, limits: &Limits) {
        let mut early = lock(&self.stored.early);
        early.extend(entries.into_iter().map(|entry| (entry.event.seq, entry)));
        self.stored.whole().add(bytes);
        let next = self.log().seq() + 1;
        *early = early.split_off(&next);
        if early.contains_key(&next) {
            self.change(|log| {
                while let Some(entry) = early.remove(&(log.seq() + 1)) {
                    log.enter(entry, limits);
                }
            });
        }
        if early.len() > MAX_WAITING {
            early.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sessions::Sessions;
    use koboshi::session::{Body, Busy, Chat, Source};
    use serde_json::json;

    /// What an owner tells of a turn, piece by piece.
    fn told(count: usize) -> (Log, Vec<Entry>) {
        let (mut log, limits) = (Log::new("e"), Limits::default());
        let chat = Chat {
            id: None,
            content: json!("hello"),
            route: Some("m".to_owned()),
            tools: Vec::new(),
            on_busy: Busy::Reject,
            if_seq: None,
        };
        let change = log.chat("c-1", &chat, "en", &limits).unwrap().unwrap();
        let mut entries = change.entries();
        log.commit(change, &limits);
        for _ in 0..count {
            let at = log.transcript().open.as_ref().unwrap().length();
            let body = Body::Content { attempt: 1, at, data: "piece ".to_owned(), source: Source::Model };
            let change = log.tell(body).unwrap();
            entries.extend(change.entries());
            log.commit(change, &limits);
        }
        (log, entries)
    }

    #[test]
    fn what_is_told_in_any_order_gives_the_log_of_its_owner() {
        let (owner, entries) = told(4);
        let sessions = Sessions::new("p".to_owned());
        let new =
            RestoredSession { tenant: "t".to_owned(), log: Log::new("e"), whole: StoredWhole::default() };
        let (live, limits) = (sessions.put("s", new), Limits::default());
        let go_on = |of: std::ops::Range<usize>| live.go_on(entries[of].to_vec(), 10, &limits);
        go_on(3..5);
        assert_eq!(live.log().seq(), 0, "what comes before is missing");
        go_on(0..2);
        assert_eq!(live.log().seq(), 2);
        go_on(1..3);
        assert_eq!(live.log().seq(), 5, "those that were early go on with it");
        go_on(0..5);
        assert_eq!(*live.log(), owner, "also what stands in no event: how the turn is answered");
        go_on(4..5);
        live.stored.forget_early();
        assert_eq!(live.log().seq(), 5);
    }

    #[test]
    fn a_whole_state_is_stored_again_when_as_much_has_come_since() {
        let mut whole = StoredWhole::new(5, 1 << 20);
        whole.add(1 << 20);
        assert!(!whole.is_due());
        whole.add(1);
        assert!(whole.is_due());
        let mut small = StoredWhole::new(5, 10);
        small.add(MIN_SINCE);
        assert!(!small.is_due(), "a short one is not stored again and again");
    }
}
