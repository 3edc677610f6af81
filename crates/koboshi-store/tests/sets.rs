//! Redis as it is run for a fleet: Sentinels that replace a server, a Cluster whose slots move, replicas, forgotten scripts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use koboshi::cooldown::ClearMark;
use koboshi_store::{
    Appended, EntryKind, KnownPart, Ledger, LedgerOptions, Ownership, Query, Record, RedisPolicy, RedisStore,
    SessionHead, SessionWrite, Store, StoreError,
};
use koboshi_testkit::{RedisCluster, RedisServer, SentinelSet};

use common::{DEADLINE, at, entry, key, node, pause, rest, resting, slot, until};

const TTL: Duration = Duration::from_secs(30);

fn store(url: &str) -> RedisStore {
    RedisStore::new(url, RedisPolicy::default()).unwrap()
}

fn loaded(url: &str, name: &str) -> Ledger {
    let ledger = Ledger::open(Arc::new(store(url)), LedgerOptions::new(node(name))).unwrap();
    assert!(ledger.wait_loaded(DEADLINE));
    ledger
}

fn rests(store: &RedisStore, account: &str) -> bool {
    store.load().is_ok_and(|loaded| loaded.records.iter().any(|(slot, _)| slot.key().to_string() == account))
}

/// Uses everything that a store can do.
fn use_everything(store: &RedisStore) {
    let now = at(0);
    store.merge(&[(slot("cooldown account:a"), Record::Cooldown(resting(0, 90_000)))]).unwrap();
    assert!(rests(store, "account:a"));
    let lease = store.lease("probe", "n1", TTL, now).unwrap().expect("it is free");
    assert!(store.lease("probe", "n2", TTL, now).unwrap().is_none());
    assert!(store.renew(&lease, TTL, now).unwrap().is_some() && store.release(&lease, now).unwrap());
    assert!(store.cache_put("k", b"answer", TTL, now).unwrap());
    assert_eq!(store.cache_get("k", now).unwrap().as_deref(), Some(&b"answer"[..]));
    store.note_put("n", b"note", TTL, now).unwrap();
    assert!(store.note_get("n", now).unwrap().is_some() && store.note_delete("n").unwrap());
    store.append(&[entry(1, EntryKind::Fault, "it failed")]).unwrap();
    assert_eq!(store.query(&Query { limit: 10, ..Query::default() }).unwrap().len(), 1);
    let sessions = store.sessions();
    let write = SessionWrite {
        seq: 1,
        head: Some(SessionHead { epoch: "e".to_owned(), body: b"head".to_vec() }),
        events: vec![(1, b"event".to_vec())],
        lease: TTL,
        ttl: TTL,
        ownership: Ownership::Kept,
        ..SessionWrite::default()
    };
    let fence = sessions.create("s", "owner", &write, now).unwrap().expect("it is new");
    let next = SessionWrite { after: 1, seq: 2, events: vec![(2, b"more".to_vec())], ..write };
    assert_eq!(sessions.append("s", fence, &next, now).unwrap(), Appended::Written);
    assert_eq!(sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap().events.len(), 2);
    assert_eq!(sessions.renew(&[("s".to_owned(), fence)], TTL, now).unwrap(), [true]);
    assert!(sessions.orphans(10, now).unwrap().is_empty());
    sessions.send("owner", b"hello", now).unwrap();
    assert_eq!(sessions.receive("owner", now).unwrap().len(), 1);
    assert!(sessions.forget("s", TTL, now).unwrap());
    assert_eq!(store.prune(&koboshi_store::Retention::default(), at(1)).unwrap(), 0);
}

/// Learns something new all the time, as long as this runs. The ledger must never wait.
fn learning<R>(ledger: &Ledger, meanwhile: impl FnOnce(&AtomicI64) -> R) -> (R, i64) {
    let (goes_on, learned) = (AtomicBool::new(true), AtomicI64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while goes_on.load(Ordering::SeqCst) {
                let number = learned.fetch_add(1, Ordering::SeqCst);
                let account = key(&format!("account:{}", number % 500));
                ledger.update_cooldown(&account, |known| known.rest = Some(rest(0, 90_000 + number, 1)));
                if number % 8 == 0 {
                    pause();
                }
            }
        });
        // Also where the test fails: else it would wait for the thread.
        let _ends = Ends(&goes_on);
        let result = meanwhile(&learned);
        (result, learned.load(Ordering::SeqCst))
    })
}

/// Ends the work of a thread when it is dropped.
struct Ends<'e>(&'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Every record that `here` has is in the store and at the other ledger.
fn all_know(here: &Ledger, there: &Ledger, store: &RedisStore) {
    assert!(here.flush(DEADLINE));
    until("the store and the other ledger know everything", || {
        let records = store.load().ok()?.records;
        let known = |key| here.cooldown(key).map(|known| Record::Cooldown(known.as_ref().clone()));
        let keys = here.keys();
        let in_store = keys.iter().all(|key| {
            records.iter().any(|(slot, record)| slot.key() == key && Some(record) == known(key).as_ref())
        });
        let at_other = keys.iter().all(|key| there.cooldown(key) == here.cooldown(key));
        (in_store && at_other).then_some(())
    });
}

#[test]
fn sentinels_lead_to_a_lagging_replica_and_nothing_that_a_node_knows_is_lost() {
    let mut set = SentinelSet::start();
    let store = store(&set.url());
    use_everything(&store);
    let (here, there) = (loaded(&set.url(), "n1"), loaded(&set.url(), "n2"));
    let cleared = key("account:cleared");
    here.update_cooldown(&cleared, |known| known.rest = Some(rest(0, 90_000, 1)));
    assert!(here.flush(DEADLINE));
    until("the other knows", || there.cooldown(&cleared));
    until("the replica has it", || {
        (set.second.ask("HLEN koboshi:records") == set.first.ask("HLEN koboshi:records")).then_some(())
    });
    let before = store.lease("probe", "n1", Duration::from_millis(1), at(0)).unwrap().unwrap();
    // From here on the replica learns nothing: what is acknowledged now is lost with the server.
    set.line.cut();
    here.update_cooldown(&cleared, |known| known.clear(ClearMark { at: at(50), by_person: true }));
    assert!(here.flush(DEADLINE));
    let ((), learned) = learning(&here, |learned| {
        until("much was learned", || (learned.load(Ordering::SeqCst) > 200).then_some(()));
        set.first.kill();
        set.wait_for_failover();
        let count = learned.load(Ordering::SeqCst);
        until("it goes on", || (learned.load(Ordering::SeqCst) > count + 50).then_some(()));
    });
    assert!(learned > 250);
    all_know(&here, &there, &store);
    assert_eq!(
        there.cooldown(&cleared).unwrap().rest,
        None,
        "the clear was lost with the server, and came back"
    );
    let after = store.lease("other", "n1", TTL, at(0)).unwrap().unwrap();
    assert!(after.fence > before.fence);
    // The old server comes back as what it was, and is made a replica: nothing is written to it meanwhile.
    assert!(set.first.restart());
    until("the old server follows", || set.first.ask("ROLE").contains("slave").then_some(()));
    here.update_cooldown(&key("account:later"), |known| known.rest = Some(rest(0, 90_000, 1)));
    all_know(&here, &there, &store);
}

#[test]
fn a_server_that_becomes_a_replica_is_left_for_the_one_that_leads() {
    let set = SentinelSet::start();
    let (here, there) = (loaded(&set.url(), "n1"), loaded(&set.url(), "n2"));
    let store = store(&set.url());
    let ((), _) = learning(&here, |learned| {
        until("something was learned", || (learned.load(Ordering::SeqCst) > 50).then_some(()));
        // Asked of the Sentinels by an operator: both servers live.
        until("a Sentinel begins", || set.order_failover().then_some(()));
        set.wait_for_failover();
        until("the old server follows", || set.first.ask("ROLE").contains("slave").then_some(()));
    });
    all_know(&here, &there, &store);
}

#[test]
fn a_plain_server_that_was_made_a_replica_is_away_until_it_leads_again() {
    let (server, other) = (RedisServer::start(), RedisServer::start());
    let store = store(&server.url());
    store.merge(&[(slot("cooldown account:a"), Record::Cooldown(resting(0, 90_000)))]).unwrap();
    server.order(&format!("REPLICAOF 127.0.0.1 {}", other.port()));
    let error =
        store.merge(&[(slot("cooldown account:b"), Record::Cooldown(resting(0, 90_000)))]).unwrap_err();
    assert!(matches!(&error, StoreError::Away { why, .. } if why.contains("replica")), "{error:?}");
    server.order("REPLICAOF NO ONE");
    store.merge(&[(slot("cooldown account:b"), Record::Cooldown(resting(0, 90_000)))]).unwrap();
}

#[test]
fn forgotten_scripts_are_sent_again_under_load() {
    let server = RedisServer::start();
    let (here, there) = (loaded(&server.url(), "n1"), loaded(&server.url(), "n2"));
    let store = store(&server.url());
    learning(&here, |learned| {
        for _ in 0..20 {
            let count = learned.load(Ordering::SeqCst);
            server.order("SCRIPT FLUSH");
            until("more is learned", || (learned.load(Ordering::SeqCst) > count + 10).then_some(()));
        }
    });
    all_know(&here, &there, &store);
    assert_eq!(here.health().trouble, None);
}

#[test]
fn a_server_comes_back_as_it_was_some_time_ago() {
    let mut server = RedisServer::start();
    let (here, there) = (loaded(&server.url(), "n1"), loaded(&server.url(), "n2"));
    let store = store(&server.url());
    learning(&here, |learned| {
        until("something was learned", || (learned.load(Ordering::SeqCst) > 100).then_some(()));
        server.save();
        until("more was learned", || (learned.load(Ordering::SeqCst) > 300).then_some(()));
        server.kill();
        assert!(server.restart());
    });
    all_know(&here, &there, &store);
}

#[test]
fn a_cluster_is_used_while_the_slot_of_the_keys_moves_from_node_to_node() {
    let cluster = RedisCluster::start();
    let store = store(&cluster.url());
    use_everything(&store);
    let (here, there) = (loaded(&cluster.url(), "n1"), loaded(&cluster.url(), "n2"));
    let slot_number = cluster.slot_of("{koboshi}:");
    let from = cluster.first_owner(slot_number);
    for (node, server) in cluster.nodes.iter().enumerate() {
        assert_eq!(server.ask("DBSIZE") != ":0\r\n", node == from, "all keys are on one node");
    }
    let to = (from + 1) % 3;
    learning(&here, |learned| {
        let more = || {
            let count = learned.load(Ordering::SeqCst);
            until("more was learned", || (learned.load(Ordering::SeqCst) > count + 50).then_some(()));
        };
        more();
        cluster.begin_move(slot_number, from, to);
        more();
        cluster.move_keys(slot_number, from, to);
        // All keys are at the new node, and the old one still has the slot: it answers ASK.
        assert!(rests(&store, "account:1"), "it is read where it is");
        store.note_put("asked", b"note", TTL, at(0)).unwrap();
        // A script that the new node does not know yet.
        store.append(&[entry(2, EntryKind::Fault, "while it moves")]).unwrap();
        // A script with a key that does not exist cannot run before the slot has moved.
        let change = (slot("cooldown account:asked"), Record::Cooldown(resting(0, 90_000)));
        let error = store.merge(std::slice::from_ref(&change)).unwrap_err();
        assert!(matches!(error, StoreError::Away { .. }), "{error:?}");
        cluster.end_move(slot_number, to);
        more();
    });
    all_know(&here, &there, &store);
    assert_eq!(store.note_get("asked", at(0)).unwrap().as_deref(), Some(&b"note"[..]));
    assert_eq!(store.query(&Query { limit: 10, ..Query::default() }).unwrap().len(), 2);
    assert_eq!(cluster.nodes[from].ask("DBSIZE"), ":0\r\n");
}

#[test]
fn a_node_of_a_cluster_behind_a_plain_address_says_what_to_write() {
    let cluster = RedisCluster::start();
    let errors = cluster.nodes.iter().filter_map(|node| {
        let record = Record::Cooldown(resting(0, 90_000));
        store(&node.url()).merge(&[(slot("cooldown account:a"), record)]).err()
    });
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert!(
        !errors.is_empty() && errors.iter().all(|error| error.contains("redis+cluster://")),
        "{errors:?}"
    );
}

#[test]
fn a_name_that_no_sentinel_knows_is_an_error_that_says_so() {
    let set = SentinelSet::start();
    let error = store(&set.url().replace("/main", "/other")).load().unwrap_err();
    assert!(error.to_string().contains("no server of this name"), "{error}");
}
