//! How an owner writes: to memory at once where nothing may be lost by it, to the store first where it must not be.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use koboshi::session::{Body, Change};
use koboshi_store::{Appended, Ownership, SessionWrite};
use tokio::time::Instant;

use super::{GIVE_UP, LEASE, Owner, Stop, begin_epoch};
use crate::session::storage;

/// What came of storing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Done,
    /// The store did not take it in time.
    Away,
}

/// A write that is on its way.
pub(super) struct Flight<'o> {
    answer: Pin<Box<dyn Future<Output = Option<Appended>> + 'o>>,
    write: SessionWrite,
    /// How many of the events that were not stored are in it.
    events: usize,
    /// It is about the lease alone.
    is_renewal: bool,
}

/// The answer to the write that is on its way; waits for ever where none is.
pub(super) async fn landing(flight: &mut Option<Flight<'_>>) -> Option<Appended> {
    match flight {
        Some(flight) => flight.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

impl Owner<'_> {
    /// Shows something about the running turn at once; it is stored soon.
    pub(super) fn show(&mut self, body: Body) {
        let change = self.live.log().tell(body);
        if let Some(change) = change {
            self.apply(change);
        }
    }

    /// Puts a change into the log that readers see.
    fn apply(&mut self, change: Change) {
        let limits = storage::limits(&self.plan.config.sessions);
        self.unstored.extend(change.events.iter().cloned());
        self.unstored_since.get_or_insert_with(Instant::now);
        self.live.change(|log| log.commit(change, &limits));
    }

    /// Stores a change and shows it then. Where the store is away it is shown after its patience, and stored when it is back.
    pub(super) async fn record(&mut self, change: Change) -> Result<(), Stop> {
        if self.record_or_refuse(change.clone()).await? == Stored::Away {
            self.head_is_old = true;
            self.apply(change);
        }
        Ok(())
    }

    /// Stores a change and shows it then; where the store is away nothing happens.
    pub(super) async fn record_or_refuse(&mut self, change: Change) -> Result<Stored, Stop> {
        if self.settle().await? == Stored::Away {
            return Ok(Stored::Away);
        }
        let limits = storage::limits(&self.plan.config.sessions);
        let mut next = self.live.log().clone();
        let is_confirmed = next.claims_once(&change);
        let mut events = self.unstored.clone();
        events.extend(change.events.iter().cloned());
        next.commit(change, &limits);
        let write = SessionWrite {
            after: self.stored,
            seq: next.seq(),
            head: Some(storage::head(&self.live.tenant, &next)),
            events: storage::events(&events),
            keep_from: next.first_kept(),
            ownership: Ownership::Kept,
            is_confirmed,
            lease: LEASE,
            ttl: self.plan.config.sessions.ttl,
        };
        let stored = self.append(write).await?;
        if stored == Stored::Done {
            self.unstored.clear();
            self.unstored_since = None;
            self.head_is_old = false;
            self.live.change(|log| {
                let epoch = log.epoch().to_owned();
                *log = next;
                // A new epoch may have begun while it was written.
                if log.epoch() != epoch {
                    log.begin_epoch(&epoch);
                }
            });
        }
        Ok(stored)
    }

    /// Begins to store what is shown and not stored. The text goes on meanwhile; one write is on its way at a time.
    pub(super) fn flush(&mut self) {
        if self.flight.is_some() {
            return;
        }
        let (seq, keep_from, head) = {
            let log = self.live.log();
            let head = self.head_is_old.then(|| storage::head(&self.live.tenant, &log));
            (log.seq(), log.first_kept(), head)
        };
        let write = SessionWrite {
            after: self.stored,
            seq,
            head,
            events: storage::events(&self.unstored),
            keep_from,
            ownership: Ownership::Kept,
            is_confirmed: false,
            lease: LEASE,
            ttl: self.plan.config.sessions.ttl,
        };
        let state = &self.core.state;
        let (id, fence, wall, sent) = (self.live.id.clone(), self.fence, state.wall(), write.clone());
        let answer =
            storage::ask_of(state, self.live, move |store| store.sessions().append(&id, fence, &sent, wall));
        let events = self.unstored.len();
        self.flight = Some(Flight { answer: Box::pin(answer), write, events, is_renewal: false });
    }

    /// Begins to renew the lease.
    pub(super) fn renew(&mut self) {
        if self.flight.is_some() {
            return;
        }
        let state = &self.core.state;
        let (held, wall) = (vec![(self.live.id.clone(), self.fence)], state.wall());
        let asked =
            storage::ask_of(state, self.live, move |store| store.sessions().renew(&held, LEASE, wall));
        let answer = async move {
            let is_held = |held: Vec<bool>| held.first() == Some(&true);
            asked.await.map(|held| if is_held(held) { Appended::Written } else { Appended::Fenced })
        };
        let write = SessionWrite::default();
        self.flight = Some(Flight { answer: Box::pin(answer), write, events: 0, is_renewal: true });
    }

    /// The write that was on its way has its answer.
    pub(super) async fn land(&mut self, answer: Option<Appended>) -> Result<Stored, Stop> {
        let Some(Flight { write, events, is_renewal, .. }) = self.flight.take() else {
            return Ok(Stored::Done);
        };
        if is_renewal {
            if answer.is_some() {
                self.renewed = Instant::now();
            }
            // The next write says whether it is another one's, forgotten or lost.
            self.head_is_old |= answer == Some(Appended::Fenced);
            return Ok(Stored::Done);
        }
        let has_head = write.head.is_some();
        let stored = self.appended(answer, write).await?;
        if stored == Stored::Done {
            // More may have been shown meanwhile.
            self.unstored.drain(..events.min(self.unstored.len()));
            self.unstored_since = (!self.unstored.is_empty()).then(Instant::now);
            self.head_is_old &= !has_head;
        }
        Ok(stored)
    }

    /// Waits for the write that is on its way: the next one says what the store has then.
    async fn settle(&mut self) -> Result<Stored, Stop> {
        if self.flight.is_none() {
            return Ok(Stored::Done);
        }
        let answer = landing(&mut self.flight).await;
        self.land(answer).await
    }

    /// Gives the session back. False where the store is away and it is tried again.
    pub(super) async fn release(&mut self) -> Result<bool, Stop> {
        let is_stored = self.leave(Ownership::GivenBack).await? == Stored::Done;
        let since = *self.unstored_since.get_or_insert_with(Instant::now);
        let gives_up = !is_stored && since.elapsed() >= GIVE_UP;
        self.live.is_ahead.store(!is_stored, Ordering::Relaxed);
        Ok(is_stored || gives_up)
    }

    /// Stores everything and leaves the session to others.
    pub(super) async fn leave(&mut self, ownership: Ownership) -> Result<Stored, Stop> {
        if self.settle().await? == Stored::Away {
            return Ok(Stored::Away);
        }
        let (seq, keep_from, head) = {
            let log = self.live.log();
            let is_old = self.head_is_old || !self.unstored.is_empty();
            (log.seq(), log.first_kept(), is_old.then(|| storage::head(&self.live.tenant, &log)))
        };
        let write = SessionWrite {
            after: self.stored,
            seq,
            head,
            events: storage::events(&self.unstored),
            keep_from,
            ownership,
            is_confirmed: false,
            lease: LEASE,
            ttl: self.plan.config.sessions.ttl,
        };
        self.append(write).await
    }

    async fn append(&mut self, write: SessionWrite) -> Result<Stored, Stop> {
        let state = &self.core.state;
        let (id, fence, wall) = (self.live.id.clone(), self.fence, state.wall());
        let sent = write.clone();
        let answer =
            storage::ask_of(state, self.live, move |store| store.sessions().append(&id, fence, &sent, wall))
                .await;
        self.appended(answer, write).await
    }

    /// What follows from the store's answer to a write.
    async fn appended(&mut self, answer: Option<Appended>, write: SessionWrite) -> Result<Stored, Stop> {
        match answer {
            Some(Appended::Written) => {
                (self.stored, self.renewed) = (write.seq, Instant::now());
                Ok(Stored::Done)
            }
            Some(Appended::Fenced) => Err(Stop::Replaced),
            Some(Appended::Forgotten) => Err(Stop::Forgotten),
            Some(Appended::Missing) => self.make_again(write).await,
            None => Ok(Stored::Away),
        }
    }

    /// The store has lost the session: it is made again from memory, in a new epoch.
    async fn make_again(&mut self, write: SessionWrite) -> Result<Stored, Stop> {
        begin_epoch(self.live);
        let state = &self.core.state;
        let log = self.live.log().clone();
        let seq = log.seq();
        let write = SessionWrite {
            after: 0,
            seq,
            head: Some(storage::head(&self.live.tenant, &log)),
            events: Vec::new(),
            keep_from: seq + 1,
            // Also where the lost one was to be given back: the caller goes on as its owner and tries that again.
            ownership: Ownership::Kept,
            ..write
        };
        let (id, process, wall) = (self.live.id.clone(), state.sessions.process.clone(), state.wall());
        let made = storage::ask_of(state, self.live, move |store| {
            store.sessions().create(&id, &process, &write, wall)
        })
        .await;
        match made {
            Some(Some(fence)) => {
                (self.fence, self.stored, self.renewed) = (fence, seq, Instant::now());
                self.unstored.clear();
                // What was to be written with the lost one is written by the next call.
                Ok(Stored::Away)
            }
            Some(None) => Err(Stop::Replaced),
            None => Ok(Stored::Away),
        }
    }
}
