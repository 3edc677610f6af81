//! What waits to be written, and the condition variable that wakes the keeper.
//!
//! State is kept as the set of slots that changed: what is written is their newest record, so a busy key costs one write
//! and nothing is ever dropped. The journal is a queue with a bound: when it is full, entries are dropped and counted.
//! Each lock here is held for a push or a swap, never across a wait for a store.

use std::collections::HashSet;
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::journal::Entry;
use crate::record::Slot;

/// Why the keeper woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WakeReason {
    /// Everything that was asked to be written up to here …
    pub(super) asked: u64,
    /// … and whether the keeper ends after that.
    pub(super) closing: bool,
}

#[derive(Default)]
struct Signals {
    changed: HashSet<Slot>,
    /// Taken by the keeper and not yet written.
    taken: usize,
    notified: bool,
    closing: bool,
    asked: u64,
    done: u64,
    loaded: bool,
    gone: bool,
}

impl Signals {
    /// Whether the keeper must run now. While the store fails, a change alone does not wake it: changes keep coming, and the store needs a pause.
    const fn wakes(&self, in_trouble: bool, answered: u64) -> bool {
        let asked = if in_trouble { self.asked > answered } else { self.notified || self.asked > self.done };
        self.closing || asked
    }
}

#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    /// Taken by the keeper and not yet written.
    taken: usize,
    dropped: u64,
}

pub(super) struct Outbox {
    signals: Mutex<Signals>,
    wake: Condvar,
    answer: Condvar,
    queue: Mutex<Queue>,
    room: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outbox {
    pub(super) fn new(room: usize) -> Self {
        Self {
            signals: Mutex::default(),
            wake: Condvar::new(),
            answer: Condvar::new(),
            queue: Mutex::default(),
            room: room.max(1),
        }
    }

    // ===== for callers =====

    /// Wakes the keeper.
    pub(super) fn wake_keeper(&self) {
        let mut signals = lock(&self.signals);
        if !mem::replace(&mut signals.notified, true) {
            self.wake.notify_one();
        }
    }

    /// Notes that a slot must be written, and wakes the keeper.
    pub(super) fn changed(&self, slot: Slot) {
        let mut signals = lock(&self.signals);
        signals.changed.insert(slot);
        if !mem::replace(&mut signals.notified, true) {
            self.wake.notify_one();
        }
    }

    /// Queues an entry of the journal, or counts it as dropped.
    pub(super) fn note(&self, entry: Entry) {
        let mut queue = lock(&self.queue);
        if queue.entries.len() + queue.taken >= self.room {
            queue.dropped += 1;
            return;
        }
        queue.entries.push(entry);
        // The keeper runs regularly by itself; only a queue that fills fast wakes it.
        let filling = queue.entries.len() == self.room / 4;
        drop(queue);
        if filling {
            self.wake_keeper();
        }
    }

    /// Asks for every earlier change to be written and waits for it. Returns whether it was.
    pub(super) fn flush(&self, timeout: Duration) -> bool {
        let mut signals = lock(&self.signals);
        signals.asked += 1;
        let mine = signals.asked;
        signals.notified = true;
        self.wake.notify_one();
        self.wait_for(signals, timeout, |signals| signals.done >= mine)
    }

    /// Waits until the store was read for the first time. Returns whether it was.
    pub(super) fn wait_loaded(&self, timeout: Duration) -> bool {
        self.wait_for(lock(&self.signals), timeout, |signals| signals.loaded)
    }

    /// Waits until the keeper has ended. Returns whether it has.
    pub(super) fn wait_gone(&self, timeout: Duration) -> bool {
        self.wait_for(lock(&self.signals), timeout, |signals| signals.gone)
    }

    fn wait_for(
        &self,
        signals: MutexGuard<'_, Signals>,
        timeout: Duration,
        ready: impl Fn(&Signals) -> bool,
    ) -> bool {
        let waiting = |signals: &mut Signals| !ready(signals) && !signals.gone;
        let (signals, _) =
            self.answer.wait_timeout_while(signals, timeout, waiting).unwrap_or_else(PoisonError::into_inner);
        ready(&signals)
    }

    /// Asks the keeper to write what it can and to end.
    pub(super) fn close(&self) {
        lock(&self.signals).closing = true;
        self.wake.notify_one();
    }

    /// Slots that wait, and those that are being written.
    pub(super) fn pending(&self) -> usize {
        let signals = lock(&self.signals);
        signals.changed.len() + signals.taken
    }

    /// Entries that wait, and those that were dropped.
    pub(super) fn journal(&self) -> (usize, u64) {
        let queue = lock(&self.queue);
        (queue.entries.len() + queue.taken, queue.dropped)
    }

    pub(super) fn is_loaded(&self) -> bool {
        lock(&self.signals).loaded
    }

    // ===== for the keeper =====

    /// Waits to be woken, at most this long. While the store fails, only a flush or the closing of the ledger wakes the keeper.
    pub(super) fn wait(&self, timeout: Duration, in_trouble: bool, answered: u64) -> WakeReason {
        let idle = |signals: &mut Signals| !signals.wakes(in_trouble, answered);
        let (mut signals, _) = self
            .wake
            .wait_timeout_while(lock(&self.signals), timeout, idle)
            .unwrap_or_else(PoisonError::into_inner);
        signals.notified = false;
        WakeReason { asked: signals.asked, closing: signals.closing }
    }

    /// Everything that was asked up to here has been written.
    pub(super) fn done(&self, asked: u64) {
        let mut signals = lock(&self.signals);
        signals.done = signals.done.max(asked);
        self.answer.notify_all();
    }

    /// The store has been read.
    pub(super) fn set_loaded(&self) {
        let mut signals = lock(&self.signals);
        if !mem::replace(&mut signals.loaded, true) {
            self.answer.notify_all();
        }
    }

    /// The keeper has ended: no caller need wait for it.
    pub(super) fn set_gone(&self) {
        lock(&self.signals).gone = true;
        self.answer.notify_all();
    }

    /// Takes up to this many slots to be written.
    pub(super) fn take_changed(&self, max: usize) -> Vec<Slot> {
        let mut signals = lock(&self.signals);
        signals.taken = signals.changed.len().min(max);
        if signals.changed.len() <= max {
            return mem::take(&mut signals.changed).into_iter().collect();
        }
        let some: Vec<Slot> = signals.changed.iter().take(max).cloned().collect();
        for slot in &some {
            signals.changed.remove(slot);
        }
        some
    }

    /// The slots that were taken have been written, or put back.
    pub(super) fn settle_changed(&self) {
        lock(&self.signals).taken = 0;
    }

    /// Puts slots back without waking the keeper, which is the caller.
    pub(super) fn put_back(&self, slots: impl IntoIterator<Item = Slot>) {
        lock(&self.signals).changed.extend(slots);
    }

    /// Swaps the queued entries into an empty batch.
    pub(super) fn take_entries(&self, batch: &mut Vec<Entry>) {
        let mut queue = lock(&self.queue);
        mem::swap(&mut queue.entries, batch);
        queue.taken = batch.len();
    }

    /// This many of the taken entries have been written.
    pub(super) fn written(&self, count: usize) {
        let mut queue = lock(&self.queue);
        queue.taken = queue.taken.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::EntryKind;
    use jiff::Timestamp;

    fn entry() -> Entry {
        Entry::new(Timestamp::UNIX_EPOCH, &"n1".parse().unwrap(), EntryKind::Fault, "x")
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let outbox = Outbox::new(3);
        for _ in 0..5 {
            outbox.note(entry());
        }
        assert_eq!(outbox.journal(), (3, 2));
        let mut batch = Vec::new();
        outbox.take_entries(&mut batch);
        outbox.note(entry());
        assert_eq!(outbox.journal(), (3, 3), "what is being written still takes up room");
        outbox.written(batch.len());
        outbox.note(entry());
        assert_eq!(outbox.journal(), (1, 3));
    }

    #[test]
    fn a_slot_that_changes_often_waits_once() {
        let outbox = Outbox::new(1);
        let slot: Slot = "cooldown account:main".parse().unwrap();
        for _ in 0..100 {
            outbox.changed(slot.clone());
        }
        assert_eq!(outbox.take_changed(10), std::slice::from_ref(&slot));
        assert_eq!(outbox.pending(), 1, "it is not written yet");
        outbox.put_back([slot]);
        outbox.settle_changed();
        assert_eq!(outbox.pending(), 1);
    }

    #[test]
    fn what_is_taken_is_taken_once() {
        let outbox = Outbox::new(1);
        let all: HashSet<Slot> = (0..10).map(|n| format!("holds account:{n}").parse().unwrap()).collect();
        outbox.put_back(all.iter().cloned());
        let mut taken = Vec::new();
        while outbox.pending() > 0 {
            taken.extend(outbox.take_changed(3));
            outbox.settle_changed();
            assert!(taken.len() <= 10, "some were taken twice");
        }
        assert_eq!(taken.into_iter().collect::<HashSet<_>>(), all);
    }

    #[test]
    fn in_trouble_only_a_flush_or_the_end_wakes_the_keeper() {
        let notified = Signals { notified: true, ..Signals::default() };
        assert!(notified.wakes(false, 0) && !notified.wakes(true, 0));
        let asked = Signals { asked: 2, ..Signals::default() };
        assert!(asked.wakes(true, 1), "a new wish is worth a try");
        assert!(!asked.wakes(true, 2), "a flush that failed waits for the next round");
        assert!(asked.wakes(false, 2));
        assert!(Signals { closing: true, ..Signals::default() }.wakes(true, 0));
        assert!(!Signals::default().wakes(false, 0));
    }

    #[test]
    fn nobody_waits_for_a_keeper_that_is_gone() {
        let outbox = Outbox::new(1);
        outbox.set_gone();
        assert!(!outbox.flush(Duration::MAX));
        assert!(!outbox.wait_loaded(Duration::MAX));
    }
}
