//! Sessions in the store: written by their owner, read by everyone else.
//!
//! What is stored whole is the state as JSON, behind a first line with its epoch. It grows with the conversation, so it is written seldom ([`StoredWhole::is_due`]):
//! a change is stored as its entries, and the state is what was stored whole with the entries since then.

use std::sync::Arc;
use std::time::Duration;

use koboshi::session::{Entry, Limits, Log};
use koboshi_config::sessions::{SessionKeep, SessionsConfig};
use koboshi_store::{KnownPart, SessionHead, Store, StoreError, StoredSession};
use serde::{Deserialize, Serialize};

use crate::shared::sessions::{LiveSession, lock};
use crate::shared::state::SharedState;
use crate::shared::stored_part::{RestoredSession, StoredWhole};

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

/// The whole state of a session.
pub(crate) fn head(tenant: &str, log: &Log) -> SessionHead {
    let head = Head { tenant: tenant.to_owned(), log };
    let mut body = format!("{}\n", log.epoch()).into_bytes();
    // A log has no map whose keys are no texts: it can always be written.
    body.extend(serde_json::to_vec(&head).unwrap_or_default());
    SessionHead { epoch: log.epoch().to_owned(), body }
}

/// Entries as bytes.
pub(crate) fn events(entries: &[Entry]) -> Vec<(u64, Vec<u8>)> {
    entries.iter().map(|entry| (entry.event.seq, serde_json::to_vec(entry).unwrap_or_default())).collect()
}

pub(crate) fn entries(events: &[(u64, Vec<u8>)]) -> impl Iterator<Item = Entry> {
    events.iter().filter_map(|(_, body)| serde_json::from_slice(body).ok())
}

/// Bytes of events.
pub(crate) fn size(events: &[(u64, Vec<u8>)]) -> usize {
    events.iter().map(|(_, body)| body.len()).sum()
}

/// A session as it was stored whole. None where it was not read whole, or cannot be understood.
pub(crate) fn restore(stored: &StoredSession, limits: &Limits) -> Option<RestoredSession> {
    let head = stored.head.as_ref()?;
    let json = head.splitn(2, |byte| *byte == b'\n').nth(1)?;
    let Head::<Log> { tenant, log } = serde_json::from_slice(json).ok()?;
    let mut whole = StoredWhole::new(log.seq(), head.len());
    whole.add(stored.events.iter().filter(|(seq, _)| *seq > log.seq()).map(|(_, body)| body.len()).sum());
    Some(RestoredSession { tenant, log: log.restored(entries(&stored.events), limits), whole })
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
    if was_owner {
        live.stored.doubt();
    }
    let (id, (epoch, seq), wall) = (live.id.clone(), live.known(), state.wall());
    let read = move |store: &dyn Store| store.sessions().read(&id, KnownPart { epoch: &epoch, seq }, wall);
    match ask_of(state, live, read).await {
        Some(Some(stored)) => bring(live, &stored, &limits(&state.plan().config.sessions), was_owner),
        _ => false,
    }
}

/// Brings a session in step with what was read of the store.
pub(crate) fn bring(live: &LiveSession, stored: &StoredSession, limits: &Limits, was_owner: bool) -> bool {
    if stored.is_forgotten {
        live.be_forgotten();
        return false;
    }
    live.held_by(stored.owner.clone().filter(|_| stored.is_held));
    // The store has lost what is known here, or has not got it yet; the owner decides about that.
    let (is_same, seq) = {
        let log = live.log();
        (stored.epoch == log.epoch(), log.seq())
    };
    if is_same && stored.seq < seq {
        return true;
    }
    let restored = restore(stored, limits);
    // Another task of this process may have become its owner meanwhile.
    let owner = lock(&live.owner);
    if owner.is_some() && !was_owner {
        return false;
    }
    match restored {
        Some(restored) => live.replace(restored),
        None if stored.head.is_none() => {
            live.go_on(entries(&stored.events), size(&stored.events), limits);
        }
        None => {}
    }
    false
}

/// Takes what its owner, another process, says of a session before it is stored.
pub(crate) fn hear(live: &LiveSession, epoch: &str, entries: Vec<Entry>, bytes: usize, limits: &Limits) {
    let owner = lock(&live.owner);
    let is_same = live.log().epoch() == epoch;
    if owner.is_none() && is_same {
        live.go_on(entries, bytes, limits);
    }
}
