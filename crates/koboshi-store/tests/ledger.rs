//! The ledger over a memory, and over a store that fails on command. No real time passes that anything depends on.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::breaker::Mode;
use koboshi::cooldown::ClearMark;
use koboshi::gate::Limit;
use koboshi::time::Moment;
use koboshi_store::{
    Clock, Entry, EntryKind, Lease, Ledger, LedgerOptions, MemoryStore, MergeResult, Named, Query, Record,
    Retention, Slot, Store, StoreContents, StoreError, Wake, Watch,
};

use common::{DEADLINE, at, entry, held, key, node, rest, resting, slot, snapshot, until};

/// A clock that moves only when a test moves it.
#[derive(Default)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        at(self.0.load(Ordering::SeqCst))
    }

    fn moment(&self) -> Moment {
        Moment::START.after(Duration::from_secs(self.0.load(Ordering::SeqCst).try_into().unwrap()))
    }
}

fn ledger(store: &(impl Store + Clone + 'static), name: &str) -> Ledger {
    with_clock(store, name, &Arc::default())
}

fn with_clock(store: &(impl Store + Clone + 'static), name: &str, clock: &Arc<TestClock>) -> Ledger {
    let options =
        LedgerOptions { poll_interval: Duration::from_millis(10), ..LedgerOptions::new(node(name)) };
    let clock: Arc<TestClock> = Arc::clone(clock);
    Ledger::open_with(Arc::new(store.clone()), options, clock).unwrap()
}

#[test]
fn what_one_learns_the_other_knows() {
    let store = MemoryStore::default();
    let (one, two) = (ledger(&store, "n1"), ledger(&store, "n2"));
    let heard = Arc::new(Mutex::new(Vec::<Slot>::new()));
    let ears = Arc::clone(&heard);
    two.on_change(|_| panic!("a listener's bug is its own"));
    two.on_change(move |slot| ears.lock().unwrap().push(slot.clone()));
    let account = key("account:main");
    one.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    one.update_holds(&account, |holds| holds.hold(Limit::Quota, at(500)));
    one.show_breaker(&key("target:a/b/c"), &snapshot(5, Mode::Open));
    assert_eq!(one.cooldown(&account).as_deref(), Some(&resting(0, 100)), "at once for its own callers");
    until("the other knows", || {
        let knows = two.cooldown(&account).as_deref() == Some(&resting(0, 100))
            && two.holds(&account).as_deref() == Some(&held(Limit::Quota, 500))
            && two.breakers(&key("target:a/b/c")).first().is_some_and(|(owner, _)| *owner == node("n1"));
        knows.then_some(())
    });
    until("its listener heard", || (heard.lock().unwrap().len() == 3).then_some(()));
    assert_eq!(two.keys(), [key("target:a/b/c"), account]);
}

#[test]
fn what_is_spent_leaves_every_process_and_does_not_come_back_to_the_store() {
    let (store, clock) = (MemoryStore::default(), Arc::<TestClock>::default());
    let (one, two) = (with_clock(&store, "n1", &clock), with_clock(&store, "n2", &clock));
    let account = key("account:main");
    one.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    one.update_holds(&account, |holds| holds.hold(Limit::Quota, at(100)));
    until("both know", || two.cooldown(&account));
    assert!(two.has_cooldowns());
    clock.0.store(100 + 24 * 60 * 60, Ordering::SeqCst);
    until("all have forgotten it", || {
        let is_empty = |ledger: &Ledger| ledger.keys().is_empty() && !ledger.has_cooldowns();
        (is_empty(&one) && is_empty(&two) && store.load().unwrap().records.is_empty()).then_some(())
    });
    assert!(one.flush(DEADLINE) && two.flush(DEADLINE));
    assert_eq!(store.load().unwrap().records, []);
}

#[test]
fn a_cleared_cooldown_does_not_come_back_from_a_stale_node() {
    let store = MemoryStore::default();
    let account = key("account:main");
    let (one, two) = (ledger(&store, "n1"), ledger(&store, "n2"));
    one.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 1000, 1)));
    until("both know", || two.cooldown(&account));
    two.update_cooldown(&account, |cooldown| cooldown.clear(ClearMark { at: at(10), by_person: true }));
    until("the stale one hears", || one.cooldown(&account).filter(|cooldown| cooldown.rest.is_none()));
    assert!(one.flush(DEADLINE) && two.flush(DEADLINE));
    assert_eq!(two.cooldown(&account).unwrap().rest, None);
}

#[test]
fn a_failure_after_a_success_elsewhere_survives_it_everywhere() {
    let store = MemoryStore::default();
    let account = key("account:main");
    let mut cleared = koboshi::cooldown::Cooldown::default();
    cleared.clear(ClearMark { at: at(50), by_person: false });
    store.merge(&[(slot("cooldown account:main"), Record::Cooldown(cleared))]).unwrap();
    // This node fails before it has heard of the success: its record belongs to the epoch before.
    let store = Flaky { inner: store, ..Flaky::default() };
    store.fail.store(true, Ordering::SeqCst);
    let one = ledger(&store, "n1");
    one.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(60, 500, 1)));
    store.fail.store(false, Ordering::SeqCst);
    assert!(one.flush(DEADLINE));
    let stored = store.load().unwrap().records;
    let [(_, Record::Cooldown(stored))] = &stored[..] else { panic!("{stored:?}") };
    assert_eq!((stored.epoch, stored.rest.as_ref().map(|rest| rest.until)), (1, Some(at(500))));
}

#[test]
fn a_failure_that_was_written_survives_a_success_before_it_that_is_heard_of_later() {
    let store = MemoryStore::default();
    let account = key("account:main");
    let one = ledger(&store, "n1");
    one.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(60, 500, 1)));
    assert!(one.flush(DEADLINE));
    // A node that had not heard of it clears because of its own success, which came before.
    let mut cleared = koboshi::cooldown::Cooldown::default();
    cleared.clear(ClearMark { at: at(50), by_person: false });
    store.merge(&[(slot("cooldown account:main"), Record::Cooldown(cleared))]).unwrap();
    until("the failure is written again, in the new epoch", || {
        let stored = store.load().unwrap().records;
        let [(_, Record::Cooldown(stored))] = &stored[..] else { panic!("{stored:?}") };
        (stored.epoch == 1 && stored.rest.as_ref().is_some_and(|rest| rest.until == at(500))).then_some(())
    });
}

#[test]
fn a_store_that_can_be_read_but_not_written_gets_everything_later() {
    let store = Flaky::default();
    let one = ledger(&store, "n1");
    assert!(one.wait_loaded(DEADLINE));
    store.read_only.store(true, Ordering::SeqCst);
    for n in 0..100 {
        one.update_holds(&key(&format!("account:{n}")), |holds| holds.hold(Limit::Quota, at(n)));
    }
    until("it was tried", || one.health().trouble);
    assert!(store.merges.load(Ordering::SeqCst) > 0);
    assert_eq!(one.health().pending, 100);
    store.read_only.store(false, Ordering::SeqCst);
    assert!(one.flush(DEADLINE));
    assert_eq!(store.load().unwrap().records.len(), 100);
}

#[test]
fn what_is_not_shared_stays_in_the_working_copy() {
    let store = Flaky::default();
    let ledger = ledger(&store, "n1");
    let network = key("network:local");
    ledger.update_cooldown(&network, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    ledger.update_holds(&network, |holds| holds.hold(Limit::Quota, at(500)));
    ledger.show_breaker(&network, &snapshot(5, Mode::Open));
    assert!(ledger.flush(DEADLINE));
    assert_eq!(ledger.health().pending, 0);
    assert_eq!((store.merges.load(Ordering::SeqCst), store.load().unwrap()), (0, StoreContents::default()));
    assert_eq!(ledger.cooldown(&network).as_deref(), Some(&resting(0, 100)));
}

#[test]
fn a_change_that_changes_nothing_is_not_written() {
    let store = Flaky::default();
    let ledger = ledger(&store, "n1");
    let account = key("account:main");
    let kept: u32 = ledger.update_cooldown(&account, |_| 7);
    assert_eq!(kept, 7, "the caller's answer comes back");
    ledger.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    assert!(ledger.flush(DEADLINE));
    let merges = store.merges.load(Ordering::SeqCst);
    ledger.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    assert!(ledger.flush(DEADLINE));
    assert_eq!((merges, store.merges.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn while_the_store_is_away_callers_go_on_and_nothing_is_lost() {
    let store = Flaky::default();
    store.fail.store(true, Ordering::SeqCst);
    let ledger = ledger(&store, "n1");
    assert!(!ledger.wait_loaded(Duration::from_millis(1)));
    for n in 0..1000 {
        let key = key(&format!("account:{n}"));
        ledger.update_holds(&key, |holds| holds.hold(Limit::Quota, at(n)));
        ledger.journal(entry(n, EntryKind::Gate, "closed"));
    }
    assert!(!ledger.flush(Duration::from_millis(1)));
    let health =
        until("trouble is reported", || Some(ledger.health()).filter(|health| health.trouble.is_some()));
    assert_eq!((health.connected, health.loaded, health.pending), (false, false, 1000));
    assert_eq!((health.journal_waiting, health.journal_dropped), (1000, 0));
    store.fail.store(false, Ordering::SeqCst);
    assert!(ledger.flush(DEADLINE));
    let health = until("it is well", || Some(ledger.health()).filter(|health| health.connected));
    assert_eq!((health.trouble, health.pending, health.journal_waiting), (None, 0, 0));
    assert_eq!(store.load().unwrap().records.len(), 1000);
    assert_eq!(store.query(&Query { limit: 5000, ..Query::default() }).unwrap().len(), 1000);
}

#[test]
fn a_ledger_writes_everything_again_to_a_store_that_lost_its_data() {
    let store = Flaky::default();
    let one = ledger(&store, "n1");
    one.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    one.show_breaker(&key("target:a"), &snapshot(5, Mode::Open));
    let hint = (slot("breaker n2 target:a"), Record::Breaker(snapshot(6, Mode::Open)));
    store.merge(&[hint]).unwrap();
    until("the hint is known", || (one.breakers(&key("target:a")).len() == 2).then_some(()));
    assert!(one.flush(DEADLINE));
    store.forget_everything();
    until("it knows again", || (store.load().unwrap().records.len() == 2).then_some(()));
    let slots: Vec<String> = store.load().unwrap().records.iter().map(|(slot, _)| slot.to_string()).collect();
    assert_eq!(
        slots,
        ["cooldown account:main", "breaker n1 target:a"],
        "but not of what is another node's to tell"
    );
}

#[test]
fn a_store_that_was_put_back_hears_of_facts_and_not_of_what_is_anothers_to_tell() {
    let store = Flaky::default();
    let one = ledger(&store, "n1");
    let (fact, hint) = (slot("holds account:main"), slot("breaker n2 target:a"));
    let named = |end: i64| {
        [
            (fact.clone(), Record::Holds(held(Limit::Quota, end))),
            (hint.clone(), Record::Breaker(snapshot(end, Mode::Open))),
        ]
    };
    store.merge(&named(500)).unwrap();
    until("both are known", || (one.keys().len() == 2).then_some(()));
    let copy = MemoryStore::default();
    copy.merge(&named(100)).unwrap();
    store.put_back(copy.clone());
    let kept =
        |slot: &Slot| copy.load().unwrap().records.into_iter().find(|(found, _)| found == slot).unwrap().1;
    let [(_, newer), _] = named(500);
    until("the fact is written", || (kept(&fact) == newer).then_some(()));
    assert!(one.flush(DEADLINE));
    let [_, (_, older)] = named(100);
    assert_eq!(kept(&hint), older, "the other node may have its reasons");
}

#[test]
fn more_than_one_batch_of_everything_is_written_once() {
    let store = Flaky::default();
    store.fail.store(true, Ordering::SeqCst);
    let one = ledger(&store, "n1");
    for n in 0..20_000 {
        one.update_holds(&key(&format!("account:{n}")), |holds| holds.hold(Limit::Quota, at(n)));
        one.journal(entry(n, EntryKind::Gate, "closed"));
    }
    store.fail.store(false, Ordering::SeqCst);
    assert!(one.flush(DEADLINE));
    assert_eq!(store.load().unwrap().records.len(), 20_000);
    assert_eq!(store.query(&Query { limit: 50_000, ..Query::default() }).unwrap().len(), 20_000);
    let merges = store.merged.load(Ordering::SeqCst);
    assert_eq!(merges, 20_000, "each record was written once");
}

#[test]
fn a_memory_forgets_who_no_longer_watches() {
    let store = MemoryStore::default();
    let wake: Wake = Arc::new(|| {});
    let watches: Vec<_> = (0..10).map(|_| store.watch(Arc::clone(&wake)).unwrap()).collect();
    assert_eq!(Arc::strong_count(&wake), 11);
    drop(watches);
    assert_eq!(Arc::strong_count(&wake), 1);
}

#[test]
fn what_the_journal_drops_is_counted_and_reported() {
    let store = Flaky::default();
    store.fail.store(true, Ordering::SeqCst);
    let options = LedgerOptions { journal_room: 10, ..LedgerOptions::new(node("n1")) };
    let ledger = Ledger::open_with(Arc::new(store.clone()), options, Arc::new(TestClock::default())).unwrap();
    for n in 0..25 {
        ledger.journal(entry(n, EntryKind::Gate, "closed"));
    }
    assert_eq!(ledger.health().journal_dropped, 15);
    store.fail.store(false, Ordering::SeqCst);
    assert!(ledger.flush(DEADLINE));
    let told = store.query(&Query { what: Some(EntryKind::Store), ..Query::default() }).unwrap();
    assert_eq!(told.len(), 1);
    assert!(told[0].text.contains("15"), "{}", told[0].text);
    assert_eq!(store.query(&Query { what: Some(EntryKind::Gate), ..Query::default() }).unwrap().len(), 10);
}

#[test]
fn a_claimed_lease_is_held_by_one_and_handed_on() {
    let (store, clock) = (MemoryStore::default(), Arc::default());
    let (one, two) = (with_clock(&store, "n1", &clock), with_clock(&store, "n2", &clock));
    let ttl = Duration::from_secs(30);
    one.claim("probe", ttl);
    let first = until("one has it", || one.held("probe"));
    two.claim("probe", ttl);
    assert!(two.flush(DEADLINE));
    assert_eq!(two.held("probe"), None);
    one.give_up("probe");
    assert_eq!(one.held("probe"), None, "at once");
    assert!(one.flush(DEADLINE));
    clock.0.store(11, Ordering::SeqCst);
    let second = until("two has it", || two.held("probe"));
    assert!(second > first);
    let clock = Arc::clone(&clock);
    clock.0.store(22, Ordering::SeqCst);
    assert!(two.flush(DEADLINE));
    clock.0.store(45, Ordering::SeqCst);
    assert_eq!(two.held("probe"), Some(second), "it was renewed on the way");
    drop(two);
    assert!(store.lease("probe", "n3", ttl, at(45)).unwrap().is_some(), "given back at the end");
}

#[test]
fn a_lease_that_cannot_be_renewed_goes_off_in_time() {
    let (store, clock) = (Flaky::default(), Arc::<TestClock>::default());
    let one = with_clock(&store, "n1", &clock);
    one.claim("probe", Duration::from_secs(30));
    until("one has it", || one.held("probe"));
    store.fail.store(true, Ordering::SeqCst);
    clock.0.store(29, Ordering::SeqCst);
    assert!(one.held("probe").is_some());
    clock.0.store(30, Ordering::SeqCst);
    assert_eq!(one.held("probe"), None, "from here on another node may have it");
}

#[test]
fn what_waits_is_written_when_the_ledger_goes() {
    let store = MemoryStore::default();
    let one = ledger(&store, "n1");
    one.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    one.journal(entry(1, EntryKind::Cooldown, "rests"));
    let health = one.close();
    assert_eq!((health.pending, health.journal_waiting), (0, 0));
    assert_eq!(store.load().unwrap().records.len(), 1);
    assert_eq!(store.query(&Query::default()).unwrap().len(), 1);
}

#[test]
fn dropping_the_ledger_does_not_wait_for_a_store_that_hangs() {
    let store = Flaky::default();
    let one = ledger(&store, "n1");
    assert!(one.wait_loaded(DEADLINE) && one.flush(DEADLINE));
    let hang = store.hang.lock().unwrap();
    one.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(one.finish(Duration::from_millis(50)).pending).unwrap());
    let pending = told.recv_timeout(DEADLINE).expect("it must not wait for the store");
    assert_eq!(pending, 1, "it says what was not written");
    drop(hang);
    until("it is written when the store answers", || {
        (store.load().unwrap().records.len() == 1).then_some(())
    });
}

#[test]
fn a_store_that_hangs_is_reported_as_away() {
    let (store, clock) = (Flaky::default(), Arc::new(TestClock::default()));
    let one = with_clock(&store, "n1", &clock);
    assert!(one.wait_loaded(DEADLINE) && one.flush(DEADLINE));
    let hang = store.hang.lock().unwrap();
    one.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    until("the keeper has begun to write", || (store.merges.load(Ordering::SeqCst) > 0).then_some(()));
    assert!(one.health().connected, "it may take its time");
    clock.0.store(16, Ordering::SeqCst);
    let health = one.health();
    assert!(!health.connected && matches!(health.trouble, Some(StoreError::Away { .. })), "{health:?}");
    drop(hang);
    until("it is over", || one.health().connected.then_some(()));
}

#[test]
fn old_things_are_forgotten_now_and_then() {
    let (store, clock) = (MemoryStore::default(), Arc::<TestClock>::default());
    let one = with_clock(&store, "n1", &clock);
    store.merge(&[(slot("breaker n2 target:a"), Record::Breaker(snapshot(0, Mode::Open)))]).unwrap();
    until("the hint is known", || (one.breakers(&key("target:a")).len() == 1).then_some(()));
    one.show_breaker(&key("target:a"), &snapshot(0, Mode::Open));
    one.journal(entry(0, EntryKind::Gate, "long ago"));
    assert!(one.flush(DEADLINE));
    clock.0.store(40 * 24 * 3600, Ordering::SeqCst);
    until("both are forgotten", || {
        let stored = store.load().unwrap().records;
        let own = stored.iter().all(|(slot, _)| *slot == "breaker n1 target:a".parse().unwrap());
        (store.query(&Query::default()).unwrap().is_empty() && own).then_some(())
    });
    let owners: Vec<String> =
        one.breakers(&key("target:a")).iter().map(|(node, _)| node.to_string()).collect();
    assert_eq!(owners, ["n1"], "its own stays: only the gateway knows whether it is in use");
    assert_eq!(store.load().unwrap().records.len(), 1, "and is still shown to the others");
}

#[test]
fn nothing_is_forgotten_before_its_time() {
    let (store, clock) = (Flaky::default(), Arc::<TestClock>::default());
    let one = with_clock(&store, "n1", &clock);
    assert!(one.flush(DEADLINE));
    clock.0.store(59, Ordering::SeqCst);
    assert!(one.flush(DEADLINE) && one.flush(DEADLINE));
    assert_eq!(store.prunes.load(Ordering::SeqCst), 0);
    clock.0.store(60, Ordering::SeqCst);
    assert!(one.flush(DEADLINE) && one.flush(DEADLINE));
    assert_eq!(store.prunes.load(Ordering::SeqCst), 1, "once, and then not for another minute");
}

#[test]
fn a_breaker_that_is_idle_stays_as_long_as_its_node_lives() {
    let (store, clock) = (MemoryStore::default(), Arc::<TestClock>::default());
    let (one, two) = (with_clock(&store, "n1", &clock), with_clock(&store, "n2", &clock));
    let (target, own) = (key("target:a"), slot("breaker n1 target:a"));
    let shown = snapshot(0, Mode::Open);
    one.show_breaker(&target, &shown);
    one.show_breaker(&key("network:local"), &shown);
    let heard = Arc::new(AtomicUsize::new(0));
    let ears = Arc::clone(&heard);
    two.on_change(move |_| {
        ears.fetch_add(1, Ordering::SeqCst);
    });
    until("the other knows", || (two.breakers(&target).len() == 1).then_some(()));
    // Ten days, in steps of three hours.
    for step in 1..=80 {
        clock.0.store(step * 3 * 3600, Ordering::SeqCst);
        for _ in 0..3 {
            assert!(one.flush(DEADLINE) && two.flush(DEADLINE));
            let stored = store.load().unwrap().records;
            assert_eq!(stored.iter().map(|(slot, _)| slot).collect::<Vec<_>>(), [&own], "step {step}");
            let [(_, known)] = &two.breakers(&target)[..] else { panic!("step {step}") };
            assert_eq!((known.mode, known.since), (shown.mode, shown.since), "it is the same as ever");
        }
    }
    let told = heard.load(Ordering::SeqCst);
    assert!(told < 60, "some four times a day and not at every turn: {told}");
    // What its caller shows wins at once.
    one.show_breaker(&target, &snapshot(80 * 3 * 3600, Mode::Closed));
    until("the change is known", || {
        two.breakers(&target).first().filter(|(_, known)| known.mode == Mode::Closed).cloned()
    });
    drop(one);
    clock.0.store(12 * 24 * 3600, Ordering::SeqCst);
    until("a silent node is forgotten", || {
        (two.breakers(&target).is_empty() && store.load().unwrap() == StoreContents::default()).then_some(())
    });
}

#[test]
fn a_store_that_panics_is_a_store_that_failed() {
    let store = Flaky::default();
    store.panic.store(true, Ordering::SeqCst);
    let one = ledger(&store, "n1");
    one.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    until("it is reported", || one.health().trouble);
    store.panic.store(false, Ordering::SeqCst);
    until("and got over", || (store.load().unwrap().records.len() == 1).then_some(()));
}

/// A memory store that fails on command.
#[derive(Clone, Default)]
struct Flaky {
    inner: MemoryStore,
    fail: Arc<AtomicBool>,
    read_only: Arc<AtomicBool>,
    panic: Arc<AtomicBool>,
    /// While a test holds this lock, every write waits.
    hang: Arc<Mutex<()>>,
    forgotten: Arc<AtomicUsize>,
    merges: Arc<AtomicUsize>,
    merged: Arc<AtomicUsize>,
    prunes: Arc<AtomicUsize>,
    afresh: Arc<Mutex<Option<MemoryStore>>>,
}

impl Flaky {
    fn forget_everything(&self) {
        self.put_back(MemoryStore::default());
    }

    /// From now on it holds what this one holds.
    fn put_back(&self, copy: MemoryStore) {
        *self.afresh.lock().unwrap() = Some(copy);
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }

    fn try_now(&self) -> Result<MemoryStore, StoreError> {
        assert!(!self.panic.load(Ordering::SeqCst), "as the test asked");
        if self.fail.load(Ordering::SeqCst) {
            let (place, why) = ("flaky".to_owned(), "as the test asked".to_owned());
            return Err(StoreError::Away { place, doing: "anything", why });
        }
        Ok(self.afresh.lock().unwrap().clone().unwrap_or_else(|| self.inner.clone()))
    }
}

struct FlakyWatch {
    store: Flaky,
    watch: Box<dyn Watch>,
    forgotten: usize,
}

impl Watch for FlakyWatch {
    fn changes(&mut self, now: Moment) -> Result<koboshi_store::StoreChanges, StoreError> {
        let store = self.store.try_now()?;
        let forgotten = self.store.forgotten.load(Ordering::SeqCst);
        if forgotten != self.forgotten {
            self.forgotten = forgotten;
            self.watch = store.watch(Arc::new(|| {}))?;
        }
        self.watch.changes(now)
    }
}

impl Store for Flaky {
    fn place(&self) -> &str {
        "flaky"
    }

    fn merge(&self, changes: &[Named]) -> Result<MergeResult, StoreError> {
        self.merges.fetch_add(1, Ordering::SeqCst);
        drop(self.hang.lock());
        // What fails in the middle of a merge may have happened all the same.
        let merged = self.try_now()?.merge(if self.read_only.load(Ordering::SeqCst) { &[] } else { changes });
        self.try_now()?;
        self.merged.fetch_add(changes.len(), Ordering::SeqCst);
        if self.read_only.load(Ordering::SeqCst) {
            let (place, why) = ("flaky".to_owned(), "as the test asked".to_owned());
            return Err(StoreError::Failed { place, doing: "write state", why });
        }
        merged
    }

    fn load(&self) -> Result<StoreContents, StoreError> {
        self.try_now()?.load()
    }

    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.try_now()?.watch(wake)?;
        let forgotten = self.forgotten.load(Ordering::SeqCst);
        Ok(Box::new(FlakyWatch { store: self.clone(), watch, forgotten }))
    }

    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        self.try_now()?.lease(name, holder, ttl, now)
    }

    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        self.try_now()?.renew(lease, ttl, now)
    }

    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        self.try_now()?.release(lease, now)
    }

    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        self.try_now()?.cache_put(key, body, ttl, now)
    }

    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.try_now()?.cache_get(key, now)
    }

    fn note_put(&self, id: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        self.try_now()?.note_put(id, body, ttl, now)
    }

    fn note_get(&self, id: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.try_now()?.note_get(id, now)
    }

    fn note_delete(&self, id: &str) -> Result<bool, StoreError> {
        self.try_now()?.note_delete(id)
    }

    fn note_swap(
        &self,
        id: &str,
        before: Option<&[u8]>,
        after: &[u8],
        ttl: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.try_now()?.note_swap(id, before, after, ttl, now)
    }

    fn sessions(&self) -> &dyn koboshi_store::Sessions {
        self.inner.sessions()
    }

    fn usage(&self) -> &dyn koboshi_store::UsageStore {
        self.inner.usage()
    }

    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        self.try_now()?.append(entries)
    }

    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.try_now()?.query(query)
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        self.prunes.fetch_add(1, Ordering::SeqCst);
        self.try_now()?.prune(keep, now)
    }
}
