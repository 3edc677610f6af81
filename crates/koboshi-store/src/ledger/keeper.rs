//! The keeper: the one thread that talks to the store for a ledger.
//!
//! In each round it merges what others changed, writes what changed here, renews leases, writes the journal and now
//! and then forgets what is old. What fails is tried again after a growing pause; until then the ledger works on
//! with what it knows, and nothing that waits to be written is given up.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;

use crate::error::StoreError;
use crate::journal::{Entry, EntryKind};
use crate::record::Slot;
use crate::store::{StoreChanges, StoreContents, Unreadable, Wake, Watch};
use crate::times;

use super::LedgerState;
use super::claim::LeaseWork;
use super::outbox::WakeReason;

/// The most records or entries that are written at once: other processes need the lock too.
const BATCH: usize = 8192;

/// The first pause after a failure, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Breakers of this node that did not change are written again after this share of the time that stores keep them.
const SHOWN_FOR: u32 = 4;
/// The timestamp of a breaker that is written again is set back by this much, so that a newer snapshot wins.
const BEHIND: Duration = Duration::from_secs(60);

/// A store that pruned this many at once may have more to prune.
const LARGE_STEP: u64 = 1000;

pub(super) struct Keeper {
    shared: Arc<LedgerState>,
    watch: Option<Box<dyn Watch>>,
    /// Entries that were taken from the queue, and how many of them have been written.
    batch: Vec<Entry>,
    written: usize,
    /// Dropped entries that the journal already reports.
    told_dropped: u64,
    /// Slots in the store that cannot be read here, and those that the journal already reports.
    unreadable: HashSet<String>,
    told_unreadable: HashSet<String>,
    next_prune: Option<Moment>,
}

impl Keeper {
    pub(super) fn new(shared: Arc<LedgerState>) -> Self {
        Self {
            shared,
            watch: None,
            batch: Vec::new(),
            written: 0,
            told_dropped: 0,
            unreadable: HashSet::new(),
            told_unreadable: HashSet::new(),
            next_prune: None,
        }
    }

    /// Works until the ledger is closed.
    pub(super) fn work(mut self) {
        let outbox = &Arc::clone(&self.shared).outbox;
        let mut pause: Option<Duration> = None;
        let mut answered = 0;
        let mut woken = WakeReason { asked: 0, closing: false };
        loop {
            self.shared.state().begin_round(self.shared.clock.moment());
            let done = self.guarded_round(woken.closing);
            match &done {
                Ok(()) => {
                    pause = None;
                    outbox.done(woken.asked);
                }
                Err(_) => pause = Some(pause.map_or(PAUSE.0, |pause| (pause * 2).min(PAUSE.1))),
            }
            answered = woken.asked.max(answered);
            self.shared.state().end_round(done.err());
            if woken.closing {
                break;
            }
            let timeout = pause.unwrap_or(self.shared.options.poll_interval);
            woken = outbox.wait(timeout, pause.is_some(), answered);
        }
        outbox.set_gone();
    }

    /// A round that cannot end the thread: a store that panics is a store that failed.
    fn guarded_round(&mut self, closing: bool) -> Result<(), StoreError> {
        catch_unwind(AssertUnwindSafe(|| self.round(closing))).unwrap_or_else(|_| {
            self.watch = None;
            let place = self.shared.store.place().to_owned();
            Err(StoreError::Failed { place, doing: "keep the ledger", why: "it panicked".to_owned() })
        })
    }

    fn round(&mut self, closing: bool) -> Result<(), StoreError> {
        // The clock is read once: what is written again must not be old when the store prunes.
        let due = self.prune_is_due().then(|| self.shared.clock.wall());
        self.take_in_changes()?;
        if let Some(now) = due {
            self.show_breakers_again(now);
        }
        self.write_changes()?;
        self.run_requests(closing)?;
        self.write_journal()?;
        match due {
            Some(now) => self.forget_what_is_old(now),
            None => Ok(()),
        }
    }

    fn take_in_changes(&mut self) -> Result<(), StoreError> {
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => self.shared.store.watch(self.wake())?,
        };
        let now = self.shared.clock.wall();
        let changes = watch.changes(self.shared.clock.moment());
        self.watch = Some(watch);
        match changes? {
            StoreChanges::Quiet => {}
            StoreChanges::Changed(loaded) => self.take_in(loaded, &mut HashSet::new()),
            StoreChanges::All(loaded) => {
                let mut missing: HashSet<Slot> =
                    self.shared.copy.to_report(&self.shared.options.node, now).into_iter().collect();
                self.unreadable.clear();
                self.take_in(loaded, &mut missing);
                self.shared.outbox.put_back(missing);
                self.shared.outbox.set_loaded();
            }
        }
        Ok(())
    }

    /// The callback of the store for changes. It must not keep the ledger alive.
    fn wake(&self) -> Wake {
        let shared = Arc::downgrade(&self.shared);
        Arc::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.outbox.wake_keeper();
            }
        })
    }

    /// Merges what a store holds. A slot is removed from `missing` if the store holds anything in it, readable or not:
    /// a newer node may have written it, and otherwise both would write it again and again.
    fn take_in(&mut self, loaded: StoreContents, missing: &mut HashSet<Slot>) {
        for (slot, record) in loaded.records.iter().filter(|(slot, _)| slot.is_shared()) {
            missing.remove(slot);
            if !self.unreadable.is_empty() {
                self.unreadable.remove(&slot.to_string());
            }
            let taken = self.shared.copy.take_in(slot, record);
            if taken.knows_more && self.shared.may_report(slot) {
                self.shared.outbox.put_back([slot.clone()]);
            }
            if taken.learned {
                self.shared.notify_listeners(slot);
            }
        }
        for Unreadable { slot, why } in loaded.unreadable {
            if let Ok(slot) = slot.parse() {
                missing.remove(&slot);
            }
            self.report(&slot, &format!("cannot be read here and was left as it is: {why}"));
            self.unreadable.insert(slot);
        }
        self.shared.state().unreadable = self.unreadable.len();
    }

    fn write_changes(&mut self) -> Result<(), StoreError> {
        // Bounded: what others write in answer may lead to another write, but not without end.
        for _ in 0..1000 {
            let slots = self.shared.outbox.take_changed(BATCH);
            if slots.is_empty() {
                return Ok(());
            }
            let known = |slot: &Slot| self.shared.copy.record(slot).map(|record| (slot.clone(), record));
            let changes: Vec<_> = slots.iter().filter_map(known).collect();
            let merged = self.shared.store.merge(&changes);
            if merged.is_err() {
                self.shared.outbox.put_back(slots);
            }
            self.shared.outbox.settle_changed();
            let merged = merged?;
            for Unreadable { slot, why } in merged.set_aside {
                self.unreadable.remove(&slot);
                self.report(&slot, &format!("is damaged and was set aside: {why}"));
            }
            let loaded = StoreContents { records: merged.beyond, unreadable: merged.unreadable };
            self.take_in(loaded, &mut HashSet::new());
        }
        Ok(())
    }

    fn run_requests(&mut self, closing: bool) -> Result<(), StoreError> {
        let shared = &self.shared;
        for errand in shared.claims.due_work(shared.clock.moment(), closing) {
            let (asked, now) = (shared.clock.moment(), shared.clock.wall());
            match errand {
                LeaseWork::Take { name, ttl } => {
                    let lease = shared.store.lease(&name, shared.options.node.name(), ttl, now)?;
                    shared.claims.settle(&name, lease, ttl, asked);
                }
                LeaseWork::Renew { lease, ttl } => {
                    let renewed = shared.store.renew(&lease, ttl, now)?;
                    shared.claims.settle(&lease.name, renewed, ttl, asked);
                }
                LeaseWork::Release { lease } => {
                    shared.store.release(&lease, now)?;
                }
            }
        }
        Ok(())
    }

    fn write_journal(&mut self) -> Result<(), StoreError> {
        // First what an earlier round could not write.
        self.write_batch()?;
        self.shared.outbox.take_entries(&mut self.batch);
        self.write_batch()?;
        let (_, dropped) = self.shared.outbox.journal();
        if dropped > self.told_dropped {
            let lost = dropped - self.told_dropped;
            self.note(format!(
                "{lost} entries of the journal were dropped: they came faster than they could be kept"
            ))?;
            self.told_dropped = dropped;
        }
        Ok(())
    }

    fn write_batch(&mut self) -> Result<(), StoreError> {
        while let Some(rest) = self.batch.get(self.written..).filter(|rest| !rest.is_empty()) {
            let chunk = rest.get(..BATCH).unwrap_or(rest);
            self.shared.store.append(chunk)?;
            self.shared.outbox.written(chunk.len());
            self.written += chunk.len();
        }
        self.batch.clear();
        self.written = 0;
        Ok(())
    }

    /// Writes an entry about the store into its journal, past the queue.
    fn note(&self, text: String) -> Result<(), StoreError> {
        let entry = Entry::new(self.shared.clock.wall(), &self.shared.options.node, EntryKind::Store, text);
        self.shared.store.append(&[entry])
    }

    /// Notes in the journal what is wrong with a slot, once.
    fn report(&mut self, slot: &str, what: &str) {
        if self.told_unreadable.insert(slot.to_owned()) {
            let (now, node) = (self.shared.clock.wall(), &self.shared.options.node);
            self.shared.outbox.note(Entry::new(now, node, EntryKind::Store, format!("`{slot}` {what}")));
        }
    }

    /// Whether it is time to prune.
    fn prune_is_due(&mut self) -> bool {
        let now = self.shared.clock.moment();
        // Not at once: a command that runs for a second need not prune.
        now >= *self.next_prune.get_or_insert_with(|| now.after(self.shared.options.prune_every))
    }

    /// Keeps the breakers of this node from being forgotten: they may be idle for long while the node runs.
    fn show_breakers_again(&self, now: Timestamp) {
        let share = self.shared.options.keep.breakers / SHOWN_FOR;
        let (shown, at) = (times::before(now, share), times::before(now, BEHIND.min(share)));
        let again = self.shared.copy.show_again(&self.shared.options.node, shown, at);
        self.shared.outbox.put_back(again.into_iter().filter(Slot::is_shared));
    }

    fn forget_what_is_old(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let options = &self.shared.options;
        self.shared.copy.forget_breakers(&options.node, times::before(now, options.keep.breakers));
        self.shared.copy.forget_spent(now);
        // A store prunes in steps: after a large one there may be more, and the next round takes the next one.
        if self.shared.store.prune(&options.keep, now)? < LARGE_STEP {
            self.next_prune = Some(self.shared.clock.moment().after(options.prune_every));
        }
        Ok(())
    }
}
