//! The right to go first after a cooldown, as leases of the store, so that of all processes only one does.
//!
//! A claim is kept in the background for as long as someone here asks for it, because the lease may become free at any moment. One that
//! no agent here asks for any more is given up: it would keep every other process from going first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use koboshi::key::ScopeKey;
use koboshi::time::Moment;
use koboshi_store::{ClaimState, Clock, Ledger, SystemClock};

/// How long a lease holds without being renewed.
const TTL: Duration = Duration::from_secs(30);
/// How long to wait for the store's first answer; after that the next check asks again.
const MAX_WAIT: Duration = Duration::from_millis(200);
/// A waiting agent asks every second at the latest. A claim that was not asked for in this time has no one who waits for it.
const ASKED_WITHIN: Duration = Duration::from_secs(5);

/// The claims for which no run was started yet, and when each was last asked for.
#[derive(Debug, Default)]
pub(crate) struct FirstStarts {
    asked: Mutex<HashMap<ScopeKey, Moment>>,
}

impl FirstStarts {
    fn asked(&self) -> MutexGuard<'_, HashMap<ScopeKey, Moment>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the right to go first for each of these keys. Only what was not asked for before is waited for, and only until the store
    /// has answered: a supervisor has others to look after.
    pub(crate) fn ask(&self, ledger: &Ledger, keys: &[ScopeKey]) {
        let begun = SystemClock.moment();
        let new: Vec<&ScopeKey> = {
            let mut asked = self.asked();
            keys.iter().filter(|key| asked.insert((*key).clone(), begun).is_none()).collect()
        };
        keys.iter().for_each(|key| ledger.claim(&lease(key), TTL));
        let is_unanswered =
            |key: &&ScopeKey| matches!(ledger.claim_state(&lease(key)), Some(ClaimState::Unanswered(_)));
        while new.iter().any(is_unanswered) && SystemClock.moment().since(begun) < MAX_WAIT {
            // The ledger's own thread asks the store; a flush returns when it has asked.
            let _ = ledger.flush(Duration::from_millis(50));
        }
    }

    /// Whether this process has the right.
    pub(crate) fn has(ledger: &Ledger, key: &ScopeKey) -> bool {
        ledger.held(&lease(key)).is_some()
    }

    /// A run begins with the right to go first for these keys, and has no use for the claims of its other ones.
    pub(crate) fn started<'k>(
        &self,
        ledger: &Ledger,
        keys: impl Iterator<Item = &'k ScopeKey>,
        probes: &[ScopeKey],
    ) {
        let mut asked = self.asked();
        for key in keys.filter(|key| asked.remove(*key).is_some()) {
            if !probes.contains(key) {
                ledger.give_up(&lease(key));
            }
        }
    }

    /// Gives up what was claimed for these keys.
    pub(crate) fn give_up(&self, ledger: &Ledger, keys: &[ScopeKey]) {
        for key in keys {
            self.asked().remove(key);
            ledger.give_up(&lease(key));
        }
    }

    /// Gives up the claims that no one asks for any more.
    pub(crate) fn forget_unasked(&self, ledger: &Ledger) {
        let now = SystemClock.moment();
        self.asked().retain(|key, at| {
            let is_asked = now.since(*at) < ASKED_WITHIN;
            if !is_asked {
                ledger.give_up(&lease(key));
            }
            is_asked
        });
    }
}

/// The name of the lease.
fn lease(key: &ScopeKey) -> String {
    format!("probe {key}")
}
