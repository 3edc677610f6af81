//! What waits to be written, and the bell that wakes the keeper.
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
pub(super) struct Woken {
    /// Everything that was asked to be written up to here …
    pub(super) asked: u64,
    /// … and then the keeper goes home.
    pub(super) closing: bool,
}

#[derive(Default)]
struct Desk {
    changed: HashSet<Slot>,
    /// Taken by the keeper and not yet written.
    taken: usize,
    rung: bool,
    closing: bool,
    asked: u64,
    done: u64,
    loaded: bool,
    gone: bool,
}

impl Desk {
    /// Whether the keeper must come now. In trouble a ring does not count: changes go on, and the store needs a pause.
    const fn calls(&self, in_trouble: bool, answered: u64) -> bool {
        let called = if in_trouble { self.asked > answered } else { self.rung || self.asked > self.done };
        self.closing || called
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
    desk: Mutex<Desk>,
    bell: Condvar,
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
            desk: Mutex::default(),
            bell: Condvar::new(),
            answer: Condvar::new(),
            queue: Mutex::default(),
            room: room.max(1),
        }
    }

    // ===== for callers =====

    /// Wakes the keeper.
    pub(super) fn ring(&self) {
        let mut desk = lock(&self.desk);
        if !mem::replace(&mut desk.rung, true) {
            self.bell.notify_one();
        }
    }

    /// Notes that a slot must be written, and wakes the keeper.
    pub(super) fn changed(&self, slot: Slot) {
        let mut desk = lock(&self.desk);
        desk.changed.insert(slot);
        if !mem::replace(&mut desk.rung, true) {
            self.bell.notify_one();
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
        // The keeper comes by on its own; only a queue that fills fast is worth a call.
        let filling = queue.entries.len() == self.room / 4;
        drop(queue);
        if filling {
            self.ring();
        }
    }

    /// Asks for everything so far to be written and waits for it. Says whether it was.
    pub(super) fn flush(&self, timeout: Duration) -> bool {
        let mut desk = lock(&self.desk);
        desk.asked += 1;
        let mine = desk.asked;
        desk.rung = true;
        self.bell.notify_one();
        self.wait_for(desk, timeout, |desk| desk.done >= mine)
    }

    /// Waits until the store was read for the first time. Says whether it was.
    pub(super) fn wait_loaded(&self, timeout: Duration) -> bool {
        self.wait_for(lock(&self.desk), timeout, |desk| desk.loaded)
    }

    /// Waits until the keeper is gone. Says whether it is.
    pub(super) fn wait_gone(&self, timeout: Duration) -> bool {
        self.wait_for(lock(&self.desk), timeout, |desk| desk.gone)
    }

    fn wait_for(&self, desk: MutexGuard<'_, Desk>, timeout: Duration, ready: impl Fn(&Desk) -> bool) -> bool {
        let waiting = |desk: &mut Desk| !ready(desk) && !desk.gone;
        let (desk, _) =
            self.answer.wait_timeout_while(desk, timeout, waiting).unwrap_or_else(PoisonError::into_inner);
        ready(&desk)
    }

    /// Tells the keeper to write what it can and go home.
    pub(super) fn close(&self) {
        lock(&self.desk).closing = true;
        self.bell.notify_one();
    }

    /// Slots that wait, and those that are being written.
    pub(super) fn pending(&self) -> usize {
        let desk = lock(&self.desk);
        desk.changed.len() + desk.taken
    }

    /// Entries that wait, and those that were dropped.
    pub(super) fn journal(&self) -> (usize, u64) {
        let queue = lock(&self.queue);
        (queue.entries.len() + queue.taken, queue.dropped)
    }

    pub(super) fn is_loaded(&self) -> bool {
        lock(&self.desk).loaded
    }

    // ===== for the keeper =====

    /// Waits for the bell, at most this long. In trouble only a flush or the end of the day counts as a ring.
    pub(super) fn wait(&self, longest: Duration, in_trouble: bool, answered: u64) -> Woken {
        let idle = |desk: &mut Desk| !desk.calls(in_trouble, answered);
        let (mut desk, _) = self
            .bell
            .wait_timeout_while(lock(&self.desk), longest, idle)
            .unwrap_or_else(PoisonError::into_inner);
        desk.rung = false;
        Woken { asked: desk.asked, closing: desk.closing }
    }

    /// Everything that was asked up to here has been written.
    pub(super) fn done(&self, asked: u64) {
        let mut desk = lock(&self.desk);
        desk.done = desk.done.max(asked);
        self.answer.notify_all();
    }

    /// The store has been read.
    pub(super) fn set_loaded(&self) {
        let mut desk = lock(&self.desk);
        if !mem::replace(&mut desk.loaded, true) {
            self.answer.notify_all();
        }
    }

    /// The keeper is gone: nobody need wait for it.
    pub(super) fn set_gone(&self) {
        lock(&self.desk).gone = true;
        self.answer.notify_all();
    }

    /// Takes up to so many slots to be written.
    pub(super) fn take_changed(&self, most: usize) -> Vec<Slot> {
        let mut desk = lock(&self.desk);
        desk.taken = desk.changed.len().min(most);
        if desk.changed.len() <= most {
            return mem::take(&mut desk.changed).into_iter().collect();
        }
        let some: Vec<Slot> = desk.changed.iter().take(most).cloned().collect();
        for slot in &some {
            desk.changed.remove(slot);
        }
        some
    }

    /// The slots that were taken have been written, or put back.
    pub(super) fn settle_changed(&self) {
        lock(&self.desk).taken = 0;
    }

    /// Puts slots back, without ringing: they are the keeper's own work.
    pub(super) fn put_back(&self, slots: impl IntoIterator<Item = Slot>) {
        lock(&self.desk).changed.extend(slots);
    }

    /// Swaps the queued entries into an empty batch.
    pub(super) fn take_entries(&self, batch: &mut Vec<Entry>) {
        let mut queue = lock(&self.queue);
        mem::swap(&mut queue.entries, batch);
        queue.taken = batch.len();
    }

    /// So many of the taken entries have been written.
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
        let rung = Desk { rung: true, ..Desk::default() };
        assert!(rung.calls(false, 0) && !rung.calls(true, 0));
        let asked = Desk { asked: 2, ..Desk::default() };
        assert!(asked.calls(true, 1), "a new wish is worth a try");
        assert!(!asked.calls(true, 2), "one that was tried in vain waits for the next turn");
        assert!(asked.calls(false, 2));
        assert!(Desk { closing: true, ..Desk::default() }.calls(true, 0));
        assert!(!Desk::default().calls(false, 0));
    }

    #[test]
    fn nobody_waits_for_a_keeper_that_is_gone() {
        let outbox = Outbox::new(1);
        outbox.set_gone();
        assert!(!outbox.flush(Duration::MAX));
        assert!(!outbox.wait_loaded(Duration::MAX));
    }
}
