//! Sessions in the store: written by their owner, read by everyone else.
//!
//! A head is the epoch in its first line, then the whole state as JSON. The line is there so that a reader sees a new epoch without
//! reading the rest.

use std::sync::Arc;
use std::time::Duration;

use koboshi::session::{Event, Limits, Log};
use koboshi_config::sessions::{SessionKeep, SessionsConfig};
use koboshi_store::{Store, StoreError, StoredSession};
use serde::{Deserialize, Serialize};

use crate::shared::sessions::{LiveSession, lock};
use crate::shared::state::SharedState;

/// How long an owner may be silent before another process takes its sessions.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// No frame waits longer for the store.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What is kept of a session.
#[derive(Serialize, Deserialize)]
struct Head<L> {
    tenant: String,
    log: L,
}

/// A head as bytes.
pub(crate) fn head(tenant: &str, log: &Log) -> Vec<u8> {
    let head = Head { tenant: tenant.to_owned(), log };
    let mut bytes = format!("{}\n", log.epoch()).into_bytes();
    // A log has no map whose keys are no texts: it can always be written.
    bytes.extend(serde_json::to_vec(&head).unwrap_or_default());
    bytes
}

/// The epoch of a head.
fn epoch(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// Events as bytes.
pub(crate) fn events(events: &[Event]) -> Vec<(u64, Vec<u8>)> {
    events.iter().map(|event| (event.seq, serde_json::to_vec(event).unwrap_or_default())).collect()
}

fn read_events(events: &[(u64, Vec<u8>)]) -> impl Iterator<Item = Event> {
    events.iter().filter_map(|(_, body)| serde_json::from_slice(body).ok())
}

/// A session as it was stored: its tenant and its log. None where it cannot be read.
pub(crate) fn restore(stored: &StoredSession, limits: &Limits) -> Option<(String, Log)> {
    let json = stored.head.get(epoch(&stored.head).len() + 1..)?;
    let head: Head<Log> = serde_json::from_slice(json).ok()?;
    Some((head.tenant, head.log.restored(read_events(&stored.events), limits)))
}

/// Where sessions of this gateway are kept.
pub(crate) fn store(state: &SharedState) -> Arc<dyn Store> {
    state.sessions.store(state.plan().config.sessions.keep, &state.store)
}

/// Where this session is kept.
fn store_of(state: &SharedState, live: &LiveSession) -> Arc<dyn Store> {
    live.own_store().unwrap_or_else(|| store(state))
}

/// Whether what is kept there is there after the process has ended.
pub(crate) fn outlives_process(state: &SharedState) -> bool {
    state.plan().config.sessions.keep == SessionKeep::Store
}

/// Asks the store, for no longer than a frame may wait.
pub(crate) async fn ask<R: Send + 'static>(
    state: &SharedState,
    call: impl FnOnce(&dyn Store) -> Result<R, StoreError> + Send + 'static,
) -> Option<R> {
    ask_at(state, store(state), call).await
}

/// Asks the store of a session, for no longer than a frame may wait.
pub(crate) async fn ask_of<R: Send + 'static>(
    state: &SharedState,
    live: &LiveSession,
    call: impl FnOnce(&dyn Store) -> Result<R, StoreError> + Send + 'static,
) -> Option<R> {
    ask_at(state, store_of(state, live), call).await
}

async fn ask_at<R: Send + 'static>(
    state: &SharedState,
    store: Arc<dyn Store>,
    call: impl FnOnce(&dyn Store) -> Result<R, StoreError> + Send + 'static,
) -> Option<R> {
    state.sessions.calls.ask(PATIENCE, move || call(&*store)).await?.ok()
}

/// What a log may hold.
pub(crate) fn limits(config: &SessionsConfig) -> Limits {
    Limits { max_queued: config.max_queued as usize, ..Limits::default() }
}

/// Brings a session that no task of this process owns in step with the store.
pub(crate) async fn refresh(state: &SharedState, live: &Arc<LiveSession>) {
    let _ = refresh_from(state, live, false).await;
}

/// The same, asked by the task that owned the session until now. Says whether the store has lost what is known here: no other process has taken the
/// session then, because one that does begins a new epoch.
pub(crate) async fn refresh_from(state: &SharedState, live: &Arc<LiveSession>, was_owner: bool) -> bool {
    let (id, after) = (live.id.clone(), live.log().seq());
    let wall = state.wall();
    let stored = ask_of(state, live, move |store| store.sessions().read(&id, after, wall)).await;
    let Some(Some(stored)) = stored else { return false };
    if stored.is_forgotten {
        live.be_forgotten();
        return false;
    }
    live.held_by(stored.owner.clone().filter(|_| stored.is_held));
    let is_same = epoch(&stored.head) == live.log().epoch().as_bytes();
    let limits = limits(&state.plan().config.sessions);
    if is_same && (stored.seq < after || stored.events.first().is_some_and(|(seq, _)| *seq > after + 1)) {
        // The tail of the store does not reach back to here, or the store has lost what is known here; the owner decides about that.
        if stored.seq < after {
            return true;
        }
    } else if is_same && !was_owner {
        follow(live, read_events(&stored.events).collect(), &limits);
        return false;
    }
    let id = live.id.clone();
    let all = ask_of(state, live, move |store| store.sessions().read(&id, 0, wall)).await;
    let Some((_, log)) = all.flatten().and_then(|stored| restore(&stored, &limits)) else { return false };
    // Another task of this process may have become its owner meanwhile.
    let owner = lock(&live.owner);
    if owner.is_none() || was_owner {
        live.change(|known| *known = log.instead_of(known));
    }
    false
}

fn follow(live: &LiveSession, events: Vec<Event>, limits: &Limits) {
    let owner = lock(&live.owner);
    if owner.is_some() || events.is_empty() {
        return;
    }
    live.change(|log| {
        for event in events {
            if event.seq == log.seq() + 1 {
                log.follow(event, limits);
            }
        }
    });
}
