//! How a session gets its owner: taken in the store, after a process was lost, or from one that handed it over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use koboshi::fault::{Kind, Sub};
use koboshi::session::Limits;
use koboshi_store::{KnownPart, SessionWrite, StoredSession, Taken};
use tokio::time::Instant;

use super::{LEASE, Owner};
use crate::session::storage;
use crate::session::ticket::random;
use crate::shared::core_state::CoreState;
use crate::shared::sessions::LiveSession;
use crate::shared::stored_part::StoredWhole;

/// Why a session cannot be taken.
pub(super) enum Refused {
    Held(String),
    Away,
    Missing,
    Forgotten,
}

/// A session that was taken.
pub(super) struct TakenSession {
    pub(super) fence: u64,
    /// Its number in the store.
    pub(super) stored: u64,
    /// The state in the store is of another epoch than the log.
    pub(super) is_head_old: bool,
    /// Its last owner was lost.
    pub(super) was_lost: bool,
}

/// Takes the session in the store.
pub(super) async fn take(core: &CoreState, live: &Arc<LiveSession>) -> Result<TakenSession, Refused> {
    let state = &core.state;
    let (id, process, wall) = (live.id.clone(), state.sessions.process.clone(), state.wall());
    let (epoch, seq) = live.known();
    let taken = storage::ask_of(state, live, move |store| {
        store.sessions().take(&id, &process, KnownPart { epoch: &epoch, seq }, LEASE, wall)
    })
    .await;
    match taken {
        None => Err(Refused::Away),
        Some(Taken::Held(process)) => Err(Refused::Held(process)),
        Some(Taken::Forgotten) => Err(Refused::Forgotten),
        Some(Taken::Owned { fence, session, was_lost, was_restarted }) => {
            let limits = storage::limits(&state.plan().config.sessions);
            let is_behind = bring(live, &session, &limits)?;
            live.stored.forget_early();
            let is_head_old = is_behind || was_restarted && !was_lost;
            if is_head_old {
                begin_epoch(live);
            }
            Ok(TakenSession { fence, stored: session.seq, is_head_old, was_lost })
        }
        Some(Taken::Missing) if live.log().seq() == 0 && !live.is_ahead.load(Ordering::Relaxed) => {
            Err(Refused::Missing)
        }
        Some(Taken::Missing) => {
            // The store has lost it, and it is here.
            begin_epoch(live);
            let (seq, head) = {
                let log = live.log();
                (log.seq(), storage::head(&live.tenant, &log))
            };
            let whole = StoredWhole::new(seq, head.body.len());
            let write = SessionWrite {
                seq,
                head: Some(head),
                lease: LEASE,
                ttl: state.plan().config.sessions.ttl,
                ..SessionWrite::default()
            };
            let (id, process) = (live.id.clone(), state.sessions.process.clone());
            let made = storage::ask_of(state, live, move |store| {
                store.sessions().create(&id, &process, &write, wall)
            })
            .await;
            let fence = made.flatten().ok_or(Refused::Away)?;
            live.is_ahead.store(false, Ordering::Relaxed);
            *live.stored.whole() = whole;
            Ok(TakenSession { fence, stored: seq, is_head_old: false, was_lost: false })
        }
    }
}

/// Brings the log in step with what its new owner was given. Says whether the store has less than what is known here: that was shown to readers, so it
/// counts, but continuity is not proven.
fn bring(live: &LiveSession, stored: &StoredSession, limits: &Limits) -> Result<bool, Refused> {
    let restored = storage::restore(stored, limits);
    if stored.head.is_some() && restored.is_none() {
        return Err(Refused::Missing);
    }
    let (epoch, seq) = match &restored {
        Some(restored) => (restored.log.epoch(), restored.log.seq()),
        None => (stored.epoch.as_str(), stored.seq),
    };
    let is_behind = {
        let known = live.log();
        known.epoch() == epoch && known.seq() > seq
    };
    match restored {
        _ if is_behind => {}
        Some(restored) => live.replace(restored),
        None => live.go_on(storage::entries(&stored.events), storage::size(&stored.events), limits),
    }
    Ok(is_behind)
}

/// Readers of the old epoch get a snapshot.
pub(super) fn begin_epoch(live: &LiveSession) {
    // Without randomness the old one stays: nothing else could be distinguished from it.
    if let Some(epoch) = random::<9>() {
        live.change(|log| log.begin_epoch(&epoch));
    }
}

impl Owner<'_> {
    /// The last owner was lost: the running segment begins again.
    pub(super) async fn recover(&mut self) {
        begin_epoch(self.live);
        self.is_head_old = true;
        let error = self.error(Kind::Unavailable, Some(Sub::Stopping));
        let limits = storage::limits(&self.plan.config.sessions);
        self.wait_for_calls();
        let change = self.live.log().recover(error, &limits);
        // Where it cannot be stored now it is tried again with the next write.
        let _ = self.record(change.unwrap_or_default()).await;
    }

    /// The last owner has given the session back, or handed a running turn over.
    pub(super) async fn go_on_with_it(&mut self) {
        self.wait_for_calls();
        let error = self.error(Kind::Unavailable, Some(Sub::Stopping));
        let change = self.live.log().go_on(error);
        if let Some(change) = change {
            let _ = self.record(change).await;
        }
    }

    /// Calls that are open get their whole time again: how much of it was left is not known here.
    fn wait_for_calls(&mut self) {
        let waiting: Vec<String> = {
            let log = self.live.log();
            let open = log.transcript().open.iter().flat_map(|open| &open.calls);
            open.filter(|call| !call.state.is_final()).map(|call| call.call.clone()).collect()
        };
        let deadline = Instant::now() + self.plan.config.sessions.tool_timeout;
        self.deadlines.extend(waiting.into_iter().map(|call| (call, deadline)));
    }
}
