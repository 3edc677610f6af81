//! Records: merged by the core, loaded by all, watched by others.

use std::cell::RefCell;
use std::collections::BTreeMap;

use koboshi::breaker::Mode;
use koboshi::cooldown::{ClearMark, Cooldown, Rest};
use koboshi::gate::Limit;
use koboshi::time::Moment;
use koboshi_store::{Named, Record, Retention, Slot, StoreChanges, StoreContents};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::common::{at, held, node, rest, resting, slot, snapshot, until};
use crate::subject::Subject;

fn sorted(mut records: Vec<Named>) -> Vec<Named> {
    records.sort_by(|one, two| one.0.cmp(&two.0));
    records
}

fn load(subject: &Subject) -> Vec<Named> {
    let loaded = subject.store.load().unwrap();
    assert_eq!(loaded.unreadable, []);
    sorted(loaded.records)
}

pub(crate) fn what_is_merged_is_loaded(subject: &Subject) {
    let all = sorted(vec![
        (slot("holds account:main"), Record::Holds(held(Limit::Quota, 100))),
        (slot("cooldown agent:a/b c"), Record::Cooldown(resting(0, 100))),
        (slot("breaker n1 target:x/y/z"), Record::Breaker(snapshot(5, Mode::Open))),
    ]);
    let merged = subject.store.merge(&all).unwrap();
    assert_eq!((merged.beyond, merged.unreadable), (vec![], vec![]));
    assert_eq!(load(subject), all);
    subject.store.merge(&[]).unwrap();
    assert_eq!(load(subject), all);
}

pub(crate) fn a_merge_is_the_cores_merge(subject: &Subject) {
    let slot = slot("holds account:main");
    let (one, two) = (held(Limit::Quota, 100), held(Limit::Requests, 50));
    subject.store.merge(&[(slot.clone(), Record::Holds(one.clone()))]).unwrap();
    subject.store.merge(&[(slot.clone(), Record::Holds(two.clone()))]).unwrap();
    assert_eq!(load(subject), [(slot, Record::Holds(one.merge(&two)))]);
}

pub(crate) fn the_teller_learns_what_the_store_knew_beyond(subject: &Subject) {
    let slot = slot("cooldown account:main");
    let mut cleared = Cooldown::default();
    cleared.clear(ClearMark { at: at(50), by_person: false });
    let cleared = Record::Cooldown(cleared);
    subject.store.merge(&[(slot.clone(), cleared.clone())]).unwrap();
    // A node that failed after that success tells of it in the epoch before, which loses: it must hear of the new one.
    let late = Record::Cooldown(resting(60, 100));
    let merged = subject.store.merge(&[(slot.clone(), late)]).unwrap();
    assert_eq!(merged.beyond, [(slot.clone(), cleared.clone())]);
    let merged = subject.store.merge(&[(slot, cleared)]).unwrap();
    assert_eq!(merged.beyond, [], "the same once more is no news");
}

pub(crate) fn a_cleared_cooldown_does_not_come_back_from_a_stale_copy(subject: &Subject) {
    let slot = slot("cooldown account:main");
    let stale = resting(0, 1000);
    let mut here = stale.clone();
    subject.store.merge(&[(slot.clone(), Record::Cooldown(stale.clone()))]).unwrap();
    here.clear(ClearMark { at: at(10), by_person: true });
    subject.store.merge(&[(slot.clone(), Record::Cooldown(here.clone()))]).unwrap();
    subject.store.merge(&[(slot.clone(), Record::Cooldown(stale))]).unwrap();
    assert_eq!(load(subject), [(slot, Record::Cooldown(here))]);
}

pub(crate) fn breakers_have_a_slot_per_node(subject: &Subject) {
    let (one, two) = (slot("breaker n1 target:a/b/c"), slot("breaker n2 target:a/b/c"));
    let (open, closed) =
        (Record::Breaker(snapshot(5, Mode::Open)), Record::Breaker(snapshot(6, Mode::Closed)));
    subject.store.merge(&[(one.clone(), open.clone()), (two.clone(), closed.clone())]).unwrap();
    assert_eq!(load(subject), [(one, open), (two, closed)]);
}

pub(crate) fn what_is_not_shared_is_not_stored(subject: &Subject) {
    let own = slot("cooldown network:local");
    let shared = slot("cooldown provider:local");
    let record = Record::Cooldown(resting(0, 100));
    subject.store.merge(&[(own, record.clone()), (shared.clone(), record.clone())]).unwrap();
    assert_eq!(load(subject), [(shared, record)]);
}

pub(crate) fn a_watch_gives_all_then_changes_then_nothing(subject: &Subject) {
    let (one, two) = (slot("cooldown account:one"), slot("cooldown account:two"));
    let record = Record::Cooldown(resting(0, 100));
    subject.store.merge(&[(one.clone(), record.clone())]).unwrap();
    let mut watch = subject.store.watch(Subject::no_wake()).unwrap();
    let all = until("everything", || match watch.changes(Moment::START).unwrap() {
        StoreChanges::All(loaded) => Some(loaded),
        StoreChanges::Quiet => None,
        other => panic!("first everything: {other:?}"),
    });
    assert_eq!(all, StoreContents { records: vec![(one, record.clone())], unreadable: vec![] });
    until("quiet", || (watch.changes(Moment::START).unwrap() == StoreChanges::Quiet).then_some(()));
    subject.store.merge(&[(two.clone(), record.clone())]).unwrap();
    let changed = until("the change", || match watch.changes(Moment::START).unwrap() {
        StoreChanges::Changed(loaded) => Some(loaded.records),
        _ => None,
    });
    assert_eq!(changed, [(two.clone(), record.clone())]);
    subject.store.merge(&[(two, record)]).unwrap();
    assert_eq!(watch.changes(Moment::START).unwrap(), StoreChanges::Quiet, "the same once more is no change");
}

pub(crate) fn silent_breakers_are_forgotten_and_facts_in_use_are_not(subject: &Subject) {
    let (old, new, fact) =
        (slot("breaker n1 target:a"), slot("breaker n2 target:a"), slot("cooldown account:a"));
    let fact = (fact, Record::Cooldown(resting(0, 90_000)));
    let new = (new, Record::Breaker(snapshot(90_000, Mode::Open)));
    let old = (old, Record::Breaker(snapshot(0, Mode::Open)));
    subject.store.merge(&[old, new.clone(), fact.clone()]).unwrap();
    assert_eq!(subject.store.prune(&Retention::default(), at(100_000)).unwrap(), 1);
    assert_eq!(load(subject), sorted(vec![new, fact]));
}

pub(crate) fn spent_facts_are_forgotten_and_what_a_clear_ended_does_not_come_back(subject: &Subject) {
    const DAY: i64 = 24 * 60 * 60;
    let account = |number: i64| slot(&format!("cooldown account:{number}"));
    let mut cleared = resting(0, 40 * DAY);
    let stale = cleared.clone();
    cleared.clear(ClearMark { at: at(10), by_person: false });
    let parked = Cooldown { rest: Some(Rest { parked: true, ..rest(0, 1, 1) }), ..Cooldown::default() };
    let kept = [
        (account(-1), Record::Cooldown(cleared)),
        (account(-2), Record::Cooldown(parked)),
        (slot("holds account:a"), Record::Holds(held(Limit::Quota, 3 * DAY))),
    ];
    subject.store.merge(&kept).unwrap();
    for first in (0..25_000).step_by(5000) {
        let ended = |number| (account(number), Record::Cooldown(resting(0, 100)));
        let ended: Vec<Named> = (first..first + 5000).map(ended).collect();
        subject.store.merge(&ended).unwrap();
    }
    subject.store.merge(&[(slot("holds account:b"), Record::Holds(held(Limit::Tokens, 100)))]).unwrap();
    // One call does a bounded amount of work.
    let prune =
        |now: i64| (0..3).map(|_| subject.store.prune(&Retention::default(), at(now)).unwrap()).sum::<u64>();
    assert_eq!(prune(DAY), 0, "they may still be of use");
    assert_eq!(prune(DAY + 100), 25_001);
    assert_eq!(load(subject), sorted(kept.to_vec()));
    let merged = subject.store.merge(&[(account(-1), Record::Cooldown(stale))]).unwrap();
    assert_eq!(merged.beyond, kept[..1], "the clear is still known");
    assert_eq!(prune(31 * DAY), 2);
    assert_eq!(load(subject), sorted(kept[1..2].to_vec()));
}

fn any_change() -> impl Strategy<Value = Named> {
    let facts = (0..3_u8, 0..2_u64, 0..4_i64, 0..4_i64).prop_map(|(key, epoch, set, length)| {
        let record = Cooldown { epoch, ..resting(set, set + length) };
        (Slot::cooldown(format!("account:{key}").parse().unwrap()), Record::Cooldown(record))
    });
    let holds = (0..3_u8, 0..2_u64, 0..Limit::ALL.len(), 0..5_i64).prop_map(|(key, epoch, limit, until)| {
        let record = koboshi::gate::Holds { epoch, ..held(Limit::ALL[limit], until) };
        (Slot::holds(format!("account:{key}").parse().unwrap()), Record::Holds(record))
    });
    let breakers = (0..2_u8, 0..2_u8, 0..4_i64, any::<bool>()).prop_map(|(key, owner, second, open)| {
        let slot = Slot::breaker(format!("target:{key}").parse().unwrap(), node(&format!("n{owner}")));
        (slot, Record::Breaker(snapshot(second, if open { Mode::Open } else { Mode::Closed })))
    });
    prop_oneof![facts, holds, breakers]
}

/// Any interleaving of merges, in batches of any size, equals the core's merge of all.
pub(crate) fn any_order_of_merges_ends_the_same(subject: &Subject) {
    let changes = proptest::collection::vec(any_change(), 0..24);
    let orders =
        changes.prop_flat_map(|changes| (Just(changes.clone()), Just(changes).prop_shuffle(), 1_usize..8));
    let expected = RefCell::new(BTreeMap::<Slot, Record>::new());
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    runner
        .run(&orders, |(told, shuffled, batch)| {
            // Each case goes on where the last one ended: what a store knows only grows.
            let mut expected = expected.borrow_mut();
            for (slot, record) in told {
                let known = expected.get(&slot).map_or(record.clone(), |known| known.merge(&record));
                expected.insert(slot, known);
            }
            for batch in shuffled.chunks(batch) {
                subject.store.merge(batch).unwrap();
            }
            prop_assert_eq!(load(subject), expected.clone().into_iter().collect::<Vec<_>>());
            Ok(())
        })
        .unwrap();
}
