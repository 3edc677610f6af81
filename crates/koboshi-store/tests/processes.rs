//! Real processes on one SQLite file: nothing is lost, killed ones leave it whole, and changes are seen.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "common/child.rs"]
mod child;
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use child::{Actor, part, tell};
use koboshi::chance::Seed;
use koboshi::cooldown::{ClearMark, Cooldown};
use koboshi::gate::{Holds, Limit};
use koboshi_store::{
    Clock, EntryKind, Ledger, LedgerOptions, Named, Query, Record, Slot, SqlitePolicy, SqliteStore, Store,
    SystemClock,
};
use tempfile::TempDir;

use common::{DEADLINE, at, entry, held, key, node, rest, resting, slot, until};

const PROCESSES: usize = 8;
const ROUNDS: u64 = 150;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("koboshi.db");
    (folder, file)
}

fn open(file: &str) -> SqliteStore {
    let policy = SqlitePolicy { patience: DEADLINE, ..SqlitePolicy::default() };
    SqliteStore::open(Path::new(file), policy).unwrap()
}

fn ledger(file: &str, name: &str) -> Ledger {
    let ledger = Ledger::open(Arc::new(open(file)), LedgerOptions::new(node(name))).unwrap();
    assert!(ledger.wait_loaded(DEADLINE));
    ledger
}

/// The parts that child processes play.
#[test]
fn child() {
    let Some((name, words)) = part() else { return };
    match (name.as_str(), &words[..]) {
        ("hammer", [file, me]) => hammer(file, me.parse().unwrap()),
        ("serve", [file, me]) => serve(file, me.parse().unwrap()),
        ("commit", [file, me]) => commit(file, me),
        ("listen", [file]) => listen(file),
        other => panic!("{other:?}"),
    }
}

fn body(record: &Record) -> String {
    match record {
        Record::Holds(holds) => serde_json::to_string(holds),
        Record::Cooldown(cooldown) => serde_json::to_string(cooldown),
        other => panic!("{other:?}"),
    }
    .unwrap()
}

fn draw(seed: Seed, n: u64, max: i64) -> i64 {
    let length = seed.nth(n).between(Duration::ZERO, Duration::from_secs(max.try_into().unwrap()));
    length.as_secs().try_into().unwrap()
}

/// What process `me` writes in one round: facts that all share, some of them cleared, and one of its own.
fn changes(me: u64, round: u64) -> Vec<Named> {
    let seed = Seed::new(me * 1_000_003 + round);
    let (which, until) = (draw(seed, 1, 4), draw(seed, 2, 10_000));
    let mut holds = held(Limit::ALL[usize::try_from(draw(seed, 3, 6)).unwrap()], until);
    let mut cooldown = resting(draw(seed, 4, 100), until);
    holds.epoch = round / 50;
    cooldown.epoch = round / 40;
    if draw(seed, 5, 10) == 0 {
        cooldown.clear(ClearMark { at: at(draw(seed, 6, 100)), by_person: false });
    }
    vec![
        (Slot::holds(key(&format!("account:{which}"))), Record::Holds(holds)),
        (Slot::cooldown(key(&format!("account:{which}"))), Record::Cooldown(cooldown)),
        (
            Slot::holds(key(&format!("agent:own/{me}-{}", round % 20))),
            Record::Holds(held(Limit::Quota, until)),
        ),
    ]
}

fn hammer(file: &str, me: u64) {
    let store = open(file);
    let mut expected = BTreeMap::<Slot, Record>::new();
    for round in 0..ROUNDS {
        let changes = changes(me, round);
        for (slot, record) in &changes {
            let known = expected.get(slot).map_or_else(|| record.clone(), |known| known.merge(record));
            expected.insert(slot.clone(), known);
        }
        store.merge(&changes).unwrap();
        store
            .append(&[
                entry(1, EntryKind::Gate, &me.to_string()),
                entry(2, EntryKind::Fault, &me.to_string()),
            ])
            .unwrap();
        let now = SystemClock.wall();
        if let Some(lease) = store.lease("probe", &me.to_string(), DEADLINE, now).unwrap() {
            tell(format!("fence {}", lease.fence));
            assert!(store.release(&lease, now).unwrap());
        }
    }
    for (slot, record) in expected {
        tell(format!("expect {slot}\t{}", body(&record)));
    }
}

#[test]
fn eight_processes_hammer_one_file_and_nothing_is_lost() {
    let (_folder, file) = place();
    let path = file.to_str().unwrap();
    // No one opens it beforehand: they also race to make it.
    let actors: Vec<Actor> =
        (0..PROCESSES).map(|me| Actor::start("hammer", &[path, &me.to_string()])).collect();
    let mut expected = BTreeMap::<Slot, Record>::new();
    let (mut fences, mut leases) = (BTreeSet::new(), 0);
    for line in actors.into_iter().flat_map(Actor::hear_out) {
        if let Some(fence) = line.strip_prefix("fence ") {
            fences.insert(fence.parse::<u64>().unwrap());
            leases += 1;
            continue;
        }
        let (slot, body) = line.strip_prefix("expect ").unwrap().split_once('\t').unwrap();
        let slot: Slot = slot.parse().unwrap();
        let record = match slot.kind() {
            koboshi_store::RecordKind::Holds => Record::Holds(serde_json::from_str::<Holds>(body).unwrap()),
            _ => Record::Cooldown(serde_json::from_str::<Cooldown>(body).unwrap()),
        };
        let known = expected.get(&slot).map_or_else(|| record.clone(), |known| known.merge(&record));
        expected.insert(slot, known);
    }
    let store = open(path);
    store.check().unwrap();
    let loaded = store.load().unwrap();
    assert_eq!(loaded.unreadable, []);
    assert_eq!(loaded.records.into_iter().collect::<BTreeMap<_, _>>(), expected);
    assert!(expected.len() > PROCESSES * 20);
    let count =
        |what| store.query(&Query { what: Some(what), limit: 1_000_000, ..Query::default() }).unwrap().len();
    let each = PROCESSES * usize::try_from(ROUNDS).unwrap();
    assert_eq!((count(EntryKind::Gate), count(EntryKind::Fault)), (each, each));
    assert!(leases > 0);
    assert_eq!(fences.len(), leases, "no fence was given out twice");
}

/// A service: through a ledger, with callers that never wait.
fn serve(file: &str, me: u64) {
    let ledger = ledger(file, &format!("n{me}"));
    for n in 0..2000_u64 {
        let shared = key(&format!("account:{}", n % 7));
        let until = i64::try_from((n * 7919 + me * 104_729) % 10_000).unwrap();
        ledger.update_holds(&shared, |holds| holds.hold(Limit::Quota, at(until)));
        ledger.update_holds(&key(&format!("agent:own/{me}-{}", n % 50)), |holds| {
            holds.hold(Limit::Quota, at(until))
        });
        ledger.journal(entry(1, EntryKind::Gate, "held"));
    }
    let health = ledger.close();
    assert_eq!(
        (health.trouble, health.pending, health.journal_waiting, health.journal_dropped),
        (None, 0, 0, 0)
    );
}

#[test]
fn eight_ledgers_on_one_file_agree() {
    let (_folder, file) = place();
    let path = file.to_str().unwrap();
    let watcher = ledger(path, "watcher");
    let actors: Vec<Actor> =
        (0..PROCESSES).map(|me| Actor::start("serve", &[path, &me.to_string()])).collect();
    for actor in actors {
        actor.hear_out();
    }
    let mut expected = BTreeMap::<i64, i64>::new();
    for me in 0..PROCESSES as u64 {
        for n in 0..2000_u64 {
            let until = i64::try_from((n * 7919 + me * 104_729) % 10_000).unwrap();
            let latest = expected.entry(i64::try_from(n % 7).unwrap()).or_insert(0);
            *latest = until.max(*latest);
        }
    }
    for (account, latest) in expected {
        let account = key(&format!("account:{account}"));
        until("the watcher knows the latest", || {
            let known = watcher.holds(&account)?.until.get(&Limit::Quota).copied();
            (known == Some(at(latest))).then_some(())
        });
    }
    let store = open(path);
    assert_eq!(store.load().unwrap().records.len(), 7 + PROCESSES * 50);
    let query = Query { what: Some(EntryKind::Gate), limit: 1_000_000, ..Query::default() };
    assert_eq!(store.query(&query).unwrap().len(), PROCESSES * 2000);
}

/// Tells of every batch once it is committed.
fn commit(file: &str, me: &str) {
    let store = open(file);
    for n in 0..i64::MAX {
        let slots = (0..5).map(|i| slot(&format!("cooldown agent:{me}/{n}-{i}")));
        let records: Vec<Named> = slots.map(|slot| (slot, Record::Cooldown(resting(n, n + 100)))).collect();
        store.merge(&records).unwrap();
        let text = format!("{me}/{n}");
        store.append(&[entry(n, EntryKind::Gate, &text), entry(n, EntryKind::Fault, &text)]).unwrap();
        tell(n);
    }
}

#[test]
fn a_process_killed_at_any_point_leaves_a_file_with_all_it_committed() {
    let (_folder, file) = place();
    let path = file.to_str().unwrap();
    for life in 0..12_u64 {
        let me = format!("life{life}");
        let mut actor = Actor::start("commit", &[path, &me]);
        // While another one is at work on the same file, and lives on.
        let other_me = format!("other{life}");
        let mut other = Actor::start("commit", &[path, &other_me]);
        let lines = draw(Seed::new(life), 1, 60);
        let mut last: Option<i64> = None;
        for _ in 0..=lines {
            last = Some(actor.hear().unwrap().parse().unwrap());
        }
        let rest = actor.kill();
        last = rest.last().map(|line| line.parse().unwrap()).or(last);
        // The survivor writes on, past what it had in hand when the other one was killed and with a visitor beside it.
        let store = open(path);
        let others: Vec<i64> =
            (0..20).map(|_| other.hear().expect("the other one goes on").parse().unwrap()).collect();
        let rest = other.kill();
        let others_last = rest.last().map_or(others[19], |line| line.parse().unwrap());
        store.check().unwrap();
        all_committed(&store, &me, last.unwrap());
        all_committed(&store, &other_me, others_last);
    }
}

/// Everything that a process told of is there, and what it did not tell of is there as a whole or not at all.
fn all_committed(store: &SqliteStore, me: &str, last: i64) {
    let kept: BTreeSet<Slot> = store.load().unwrap().records.into_iter().map(|(slot, _)| slot).collect();
    let there =
        |n: i64| (0..5).filter(|i| kept.contains(&slot(&format!("cooldown agent:{me}/{n}-{i}")))).count();
    let mut told = BTreeMap::<String, usize>::new();
    for entry in store.query(&Query { limit: 1_000_000, ..Query::default() }).unwrap() {
        *told.entry(entry.text).or_default() += 1;
    }
    for n in 0..=last {
        assert_eq!(there(n), 5, "{me}/{n}");
        assert_eq!(told.get(&format!("{me}/{n}")), Some(&2), "{me}/{n}");
    }
    for n in last + 1..last + 3 {
        assert!(there(n) == 0 || there(n) == 5, "{me}/{n}: {} of 5", there(n));
    }
}

/// Tells of every end that it learns of, and of the end of it all.
fn listen(file: &str) {
    let ledger = ledger(file, "listener");
    let account = key("account:main");
    let rest = || ledger.cooldown(&account).map(|cooldown| cooldown.rest.clone());
    tell("ready");
    for n in 0..CHANGES {
        until("it rests", || rest()?.filter(|rest| rest.until == at(1000 + n)));
        tell(n);
    }
    until("it is free", || rest().filter(Option::is_none));
    tell("free");
}

/// The number of changes that are seen one after the other.
const CHANGES: i64 = 7;

#[test]
fn every_change_by_one_process_is_seen_by_another() {
    let (_folder, file) = place();
    let path = file.to_str().unwrap();
    let here = ledger(path, "here");
    let mut listener = Actor::start("listen", &[path]);
    assert_eq!(listener.hear().as_deref(), Some("ready"));
    let account = key("account:main");
    for n in 0..CHANGES {
        here.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 1000 + n, 1)));
        assert_eq!(listener.hear(), Some(n.to_string()));
    }
    // A command of an operator writes through the store and has written when it returns.
    let store = open(path);
    let mut cleared = resting(0, 1000 + CHANGES);
    cleared.clear(ClearMark { at: at(10), by_person: true });
    store.merge(&[(Slot::cooldown(account.clone()), Record::Cooldown(cleared))]).unwrap();
    assert_eq!(listener.hear().as_deref(), Some("free"));
    until("and by the first", || here.cooldown(&account).filter(|cooldown| cooldown.rest.is_none()));
}
