//! How an owner writes: to memory at once where nothing may be lost by it, to the store first where it must not be.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use koboshi::session::{Body, Change, Entry, Log};
use koboshi_store::{Appended, Ownership, SessionHead, SessionWrite};
use tokio::time::Instant;

use super::{GIVE_UP, LEASE, Owner, Stop, begin_epoch};
use crate::session::{replicas, storage};
use crate::shared::stored_part::StoredWhole;

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
        let entries = change.entries();
        self.tell_elsewhere(&entries);
        self.unstored.extend(entries);
        self.unstored_since.get_or_insert_with(Instant::now);
        self.live.change(|log| log.commit(change, &limits));
    }

    /// Readers at other processes need not wait for the store.
    fn tell_elsewhere(&self, entries: &[Entry]) {
        let mut processes: Vec<String> =
            self.elsewhere.values().map(|(process, _)| process.clone()).collect();
        processes.sort_unstable();
        processes.dedup();
        if !processes.is_empty() && !entries.is_empty() {
            replicas::tell(&self.core.state, self.live, processes, entries);
        }
    }

    /// Stores a change and shows it then. Where the store is away it is shown after its patience, and stored when it is back.
    pub(super) async fn record(&mut self, change: Change) -> Result<(), Stop> {
        if self.record_or_refuse(change.clone()).await? == Stored::Away {
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
        let entries = change.entries();
        let write = {
            let log = self.live.log();
            let all: Vec<Entry> = self.unstored.iter().chain(&entries).cloned().collect();
            let head = self.is_head_old.then(|| {
                let mut next = log.clone();
                next.commit(change.clone(), &limits);
                storage::head(&self.live.tenant, &next)
            });
            SessionWrite {
                seq: entries.last().map_or(log.seq(), |entry| entry.event.seq),
                is_confirmed: log.claims_once(&change),
                ..self.write(&log, head, &all)
            }
        };
        let stored = self.append(write).await?;
        if stored == Stored::Done {
            self.unstored.clear();
            self.unstored_since = None;
            self.is_head_old = false;
            self.tell_elsewhere(&entries);
            self.live.change(|log| log.commit(change, &limits));
        }
        Ok(stored)
    }

    /// A write that brings the store to where the log is.
    fn write(&self, log: &Log, head: Option<SessionHead>, entries: &[Entry]) -> SessionWrite {
        // What was stored whole needs all that came after it.
        let whole = if head.is_some() { u64::MAX } else { self.live.stored.whole().seq.saturating_add(1) };
        SessionWrite {
            after: self.stored,
            seq: log.seq(),
            head,
            events: storage::events(entries),
            keep_from: log.first_kept().min(whole),
            lease: LEASE,
            ttl: self.plan.config.sessions.ttl,
            ..SessionWrite::default()
        }
    }

    /// The whole state, where it must be stored or much has come since it was.
    fn head(&self, log: &Log) -> Option<SessionHead> {
        let is_due = self.is_head_old || self.live.stored.whole().is_due();
        is_due.then(|| storage::head(&self.live.tenant, log))
    }

    /// Begins to store what is shown and not stored. The text goes on meanwhile; one write is on its way at a time.
    pub(super) fn flush(&mut self) {
        if self.flight.is_some() {
            return;
        }
        let write = {
            let log = self.live.log();
            self.write(&log, self.head(&log), &self.unstored)
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
            self.is_head_old |= answer == Some(Appended::Fenced);
            return Ok(Stored::Done);
        }
        let has_head = write.head.is_some();
        let stored = self.appended(answer, write).await?;
        if stored == Stored::Done {
            // More may have been shown meanwhile.
            self.unstored.drain(..events.min(self.unstored.len()));
            self.unstored_since = (!self.unstored.is_empty()).then(Instant::now);
            self.is_head_old &= !has_head;
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
        let write = {
            let log = self.live.log();
            SessionWrite { ownership, ..self.write(&log, self.head(&log), &self.unstored) }
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
                let mut whole = self.live.stored.whole();
                match &write.head {
                    Some(head) => *whole = StoredWhole::new(write.seq, head.body.len()),
                    None => whole.add(storage::size(&write.events)),
                }
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
        let (seq, head) = {
            let log = self.live.log();
            (log.seq(), storage::head(&self.live.tenant, &log))
        };
        let whole = StoredWhole::new(seq, head.body.len());
        let write = SessionWrite {
            after: 0,
            seq,
            head: Some(head),
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
                *self.live.stored.whole() = whole;
                // What was to be written with the lost one is written by the next call.
                Ok(Stored::Away)
            }
            Some(None) => Err(Stop::Replaced),
            None => Ok(Stored::Away),
        }
    }
}
