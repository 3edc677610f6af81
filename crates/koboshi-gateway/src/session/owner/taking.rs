//! How a session gets its owner: taken in the store, after a process was lost, or from one that handed it over.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use koboshi::fault::{Kind, Sub};
use koboshi_store::{SessionWrite, Taken};
use tokio::time::Instant;

use super::{LEASE, Owner};
use crate::session::storage;
use crate::session::ticket::random;
use crate::shared::core_state::CoreState;
use crate::shared::sessions::LiveSession;

/// Why a session cannot be taken.
pub(super) enum Refused {
    Held(String),
    Away,
    Missing,
    Forgotten,
}

/// Takes the session in the store: its fence, its number there, and whether its last owner was lost.
pub(super) async fn take(core: &CoreState, live: &Arc<LiveSession>) -> Result<(u64, u64, bool), Refused> {
    let state = &core.state;
    let (id, process, wall) = (live.id.clone(), state.sessions.process.clone(), state.wall());
    let taken =
        storage::ask_of(state, live, move |store| store.sessions().take(&id, &process, LEASE, wall)).await;
    let limits = storage::limits(&state.plan().config.sessions);
    match taken {
        None => Err(Refused::Away),
        Some(Taken::Held(process)) => Err(Refused::Held(process)),
        Some(Taken::Forgotten) => Err(Refused::Forgotten),
        Some(Taken::Owned { fence, session, was_lost, was_restarted }) => {
            let stored = session.seq;
            let Some((_, log)) = storage::restore(&session, &limits) else { return Err(Refused::Missing) };
            let known = live.log().clone();
            // What is known here and not there was shown to readers: it counts, but continuity is not proven. Else the store knows more: also
            // where the numbers are the same, because some of it is in no event.
            if log.epoch() == known.epoch() && known.seq() > log.seq() {
                begin_epoch(live);
            } else {
                live.change(|known| *known = log.instead_of(known));
                if was_restarted && !was_lost {
                    begin_epoch(live);
                }
            }
            Ok((fence, stored, was_lost))
        }
        Some(Taken::Missing) if live.log().seq() == 0 && !live.is_ahead.load(Ordering::Relaxed) => {
            Err(Refused::Missing)
        }
        Some(Taken::Missing) => {
            // The store has lost it, and it is here.
            begin_epoch(live);
            let log = live.log().clone();
            let write = SessionWrite {
                seq: log.seq(),
                head: Some(storage::head(&live.tenant, &log)),
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
            Ok((fence, log.seq(), false))
        }
    }
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
        self.head_is_old = true;
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
