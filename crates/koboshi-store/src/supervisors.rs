//! The supervisors that use a store, as they report to it: who shares what is known of agents, and whether their configs differ.
//!
//! `supervisors` lists them, `supervisor:PLACE` is one of them. A place is a machine with a folder of runs, which one supervisor at a time keeps:
//! one that is started again takes the entry of the one before. When two places report for the first time at the same moment, one may be missing
//! from the list until its next report.

use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::store::Store;

/// A supervisor that has not reported for this long is not running, or cannot reach the store.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// How long a supervisor that is gone stays listed.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many are listed; those that reported longest ago make room.
const MAX_LISTED: usize = 1_200;
const LIST: &str = "supervisors";

/// A supervisor, as it reported to its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervisor {
    /// The name of its process, as the journal has it.
    pub node: String,
    /// Its version of Koboshi.
    pub version: String,
    /// When it started.
    pub started: Timestamp,
    /// When it reported last.
    pub at: Timestamp,
    /// It has stopped.
    pub stopped: bool,
    /// How many agents it keeps, each project counted.
    pub agents: u64,
    /// How many of them run.
    pub running: u64,
    /// A few digits that differ where its config differs.
    pub config: String,
}

impl Supervisor {
    /// Whether it runs, according to its reports.
    #[must_use]
    pub fn is_running(&self, now: Timestamp) -> bool {
        !self.stopped && now.duration_since(self.at).unsigned_abs() < MAX_SILENCE
    }
}

/// Reports the supervisor of a place.
///
/// # Errors
/// The store cannot be read or written now.
pub fn report(
    store: &dyn Store,
    place: &str,
    supervisor: &Supervisor,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut places = places(store, now)?;
    if !places.iter().any(|known| known == place) {
        let mut there = Vec::new();
        for place in places {
            if let Some(known) = read::<Supervisor>(store, &of(&place), now)? {
                there.push((known.at, place));
            }
        }
        there.sort_unstable();
        there.drain(..there.len().saturating_sub(MAX_LISTED - 1));
        places = there.into_iter().map(|(_, place)| place).collect();
        places.push(place.to_owned());
        write(store, LIST, &places, now)?;
    }
    write(store, &of(place), supervisor, now)
}

/// The supervisors that used this store within the last days, the newest report last.
///
/// # Errors
/// The store cannot be read now.
pub fn supervisors(store: &dyn Store, now: Timestamp) -> Result<Vec<Supervisor>, StoreError> {
    let mut found = Vec::new();
    for place in places(store, now)? {
        found.extend(read::<Supervisor>(store, &of(&place), now)?);
    }
    found.sort_by_key(|supervisor| supervisor.at);
    Ok(found)
}

fn places(store: &dyn Store, now: Timestamp) -> Result<Vec<String>, StoreError> {
    Ok(read(store, LIST, now)?.unwrap_or_default())
}

fn of(place: &str) -> String {
    format!("supervisor:{place}")
}

/// What is kept under a name; none where there is nothing, or where a newer program wrote it.
fn read<T: DeserializeOwned>(store: &dyn Store, name: &str, now: Timestamp) -> Result<Option<T>, StoreError> {
    let body = store.note_get(name, now)?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

fn write(store: &dyn Store, name: &str, what: &impl Serialize, now: Timestamp) -> Result<(), StoreError> {
    store.note_put(name, &serde_json::to_vec(what).unwrap_or_default(), RETENTION, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[test]
    fn a_supervisor_that_is_started_again_takes_the_entry_of_the_one_before() {
        let store = MemoryStore::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let named = |node: &str, second| Supervisor {
            node: node.to_owned(),
            version: "1".to_owned(),
            started: at(second),
            at: at(second),
            stopped: false,
            agents: 2,
            running: 1,
            config: "c0ffee00".to_owned(),
        };
        report(&store, "alpha/runs", &named("supervisor/alpha:7", 10), at(10)).unwrap();
        report(&store, "beta/runs", &named("supervisor/beta:8", 20), at(20)).unwrap();
        report(&store, "alpha/runs", &named("supervisor/alpha:9", 30), at(30)).unwrap();
        let nodes = |now| -> Vec<(String, bool)> {
            let found = supervisors(&store, now).unwrap().into_iter();
            found.map(|one| (one.node.clone(), one.is_running(now))).collect()
        };
        let named = |name: &str, runs| (name.to_owned(), runs);
        assert_eq!(nodes(at(31)), [named("supervisor/beta:8", true), named("supervisor/alpha:9", true)]);
        assert_eq!(nodes(at(55)), [named("supervisor/beta:8", false), named("supervisor/alpha:9", true)]);
        assert!(nodes(at(30 + 8 * 86_400)).is_empty());
    }
}
