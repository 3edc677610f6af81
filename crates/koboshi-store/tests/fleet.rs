//! Real processes and a real Redis: what is shared, and what happens when the server dies, forgets or falls silent.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "common/child.rs"]
mod child;
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use child::{Actor, part, tell};
use koboshi::breaker::Mode;
use koboshi::chance::Seed;
use koboshi::cooldown::ClearMark;
use koboshi::gate::{Holds, Limit};
use koboshi::time::Moment;
use koboshi_store::store::{MAX_BYTES_SET_ASIDE, MAX_SET_ASIDE};
use koboshi_store::{
    Entry, EntryKind, Ledger, LedgerOptions, Query, Record, RedisPolicy, RedisStore, Slot, Store,
    StoreChanges, StoreError,
};
use koboshi_testkit::RedisServer;

use common::{DEADLINE, at, entry, held, key, node, pause, rest, resting, slot, snapshot, until};

const TTL: Duration = Duration::from_secs(3);

fn store(url: &str) -> RedisStore {
    RedisStore::new(url, RedisPolicy::default()).unwrap()
}

fn ledger(url: &str, name: &str) -> Ledger {
    Ledger::open(Arc::new(store(url)), LedgerOptions::new(node(name))).unwrap()
}

fn loaded(url: &str, name: &str) -> Ledger {
    let ledger = ledger(url, name);
    assert!(ledger.wait_loaded(DEADLINE));
    ledger
}

/// The parts that child processes play.
#[test]
fn child() {
    let Some((name, words)) = part() else { return };
    match (name.as_str(), &words[..]) {
        ("share", [url]) => share(url),
        ("stale", [url]) => stale(url),
        ("load", [url, me, end]) => load(url, me.parse().unwrap(), Path::new(end)),
        other => panic!("{other:?}"),
    }
}

/// Tells what it learns from the other process, and then takes over its lease.
fn share(url: &str) {
    let ledger = loaded(url, "child");
    ledger.claim("probe", TTL);
    assert!(ledger.flush(DEADLINE));
    tell(format!("held {}", ledger.held("probe").is_some()));
    let cooldown = until("it rests", || ledger.cooldown(&key("account:main")));
    tell(format!("rests {}", cooldown.rest.as_ref().unwrap().until));
    let holds = until("a quota is stated", || ledger.holds(&key("model:openai/gpt-4o")));
    tell(format!("quota {}", holds.until[&Limit::Quota]));
    let fence = until("the lease is free", || ledger.held("probe"));
    tell(format!("fence {fence}"));
}

#[test]
fn two_processes_share_a_cooldown_a_stated_quota_and_a_lease() {
    let server = RedisServer::start();
    let here = loaded(&server.url(), "parent");
    here.claim("probe", TTL);
    let first = until("the lease", || here.held("probe"));
    let mut there = Actor::start("share", &[&server.url()]);
    assert_eq!(there.hear().as_deref(), Some("held false"));
    here.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    assert_eq!(there.hear().unwrap(), format!("rests {}", at(100)));
    here.update_holds(&key("model:openai/gpt-4o"), |holds| holds.hold(Limit::Quota, at(500)));
    assert_eq!(there.hear().unwrap(), format!("quota {}", at(500)));
    assert_eq!(here.held("probe"), Some(first), "it was renewed all the while, or is still young");
    here.give_up("probe");
    let second = there.hear().unwrap();
    let second: u64 = second.strip_prefix("fence ").unwrap().parse().unwrap();
    assert!(second > first);
}

/// Makes a rest longer and longer until it hears that it is over.
fn stale(url: &str) {
    let ledger = loaded(url, "stale");
    let account = key("account:main");
    until("it rests", || ledger.cooldown(&account));
    tell("rests");
    let mut seconds = 1000;
    until("it is over", || {
        seconds += 1;
        ledger.update_cooldown(&account, |cooldown| match &mut cooldown.rest {
            Some(rest) => {
                rest.until = at(seconds);
                None
            }
            None => Some(()),
        })
    });
    tell("free");
    assert!(ledger.flush(DEADLINE));
}

#[test]
fn a_cleared_cooldown_does_not_come_back_from_a_stale_node() {
    // Twice: the server remembers the clear; and it has forgotten everything when the stale node comes back.
    for forgets in [false, true] {
        let mut server = RedisServer::start();
        let here = loaded(&server.url(), "operator");
        let account = key("account:main");
        here.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 1000, 1)));
        let mut there = Actor::start("stale", &[&server.url()]);
        assert_eq!(there.hear().as_deref(), Some("rests"));
        there.signal("-STOP");
        here.update_cooldown(&account, |cooldown| cooldown.clear(ClearMark { at: at(50), by_person: true }));
        assert!(here.flush(DEADLINE));
        if forgets {
            server.kill();
            assert!(server.restart());
        }
        there.signal("-CONT");
        assert_eq!(there.hear().as_deref(), Some("free"));
        there.hear_out();
        assert!(here.flush(DEADLINE));
        assert_eq!(here.cooldown(&account).unwrap().rest, None);
        let records = store(&server.url()).load().unwrap().records;
        let [(_, Record::Cooldown(stored))] = &records[..] else { panic!("{records:?}") };
        assert!(stored.epoch > 0, "{stored:?}");
        assert_eq!(stored.rest, None);
    }
}

/// What process `me` holds in its `n`-th step.
fn step(me: u64, n: u64) -> [(Slot, i64); 2] {
    let seed = Seed::new(me * 1_000_003 + n);
    let length = seed.between(Duration::ZERO, Duration::from_secs(100_000));
    let until = i64::try_from(length.as_secs()).unwrap();
    [
        (slot(&format!("holds account:{}", n % 5)), until),
        (slot(&format!("holds agent:own/{me}-{}", n % 100)), until),
    ]
}

/// Changes and notes things without end, and tells how far it is and whether the store is in trouble. When the file is
/// there it waits until everything is written and tells what must be in the store.
fn load(url: &str, me: u64, end: &Path) {
    let ledger = ledger(url, &format!("n{me}"));
    let mut expected = BTreeMap::<Slot, Holds>::new();
    let mut n = 0;
    while !end.exists() {
        for _ in 0..200 {
            n += 1;
            for (slot, until) in step(me, n) {
                ledger.update_holds(slot.key(), |holds| holds.hold(Limit::Quota, at(until)));
                expected.entry(slot).or_default().hold(Limit::Quota, at(until));
            }
            ledger.journal(entry(1, EntryKind::Gate, "held"));
            assert!(ledger.holds(&key("account:0")).is_some() || n < 5);
        }
        let health = ledger.health();
        tell(format!("{n} {}", if health.trouble.is_some() { "trouble" } else { "well" }));
        pause();
    }
    assert!(ledger.flush(DEADLINE), "{:?}", ledger.health());
    for (slot, holds) in expected {
        tell(format!("expect {slot}\t{}", serde_json::to_string(&holds).unwrap()));
    }
}

/// Hears one in this state get on with its work: two reports in a row with more work done in between.
fn hear_at_work(actor: &mut Actor, state: &str) {
    let mut before: Option<u64> = None;
    until(&format!("work goes on, {state}"), || {
        let line = actor.hear().expect("it must not fail because of the store");
        let (n, said) = line.split_once(' ').unwrap();
        let n: u64 = n.parse().unwrap();
        let goes_on = said == state && before.is_some_and(|before| n > before);
        before = (said == state).then_some(n);
        goes_on.then_some(())
    });
}

fn trouble_under_load(trouble: impl Fn(&mut RedisServer), over: impl Fn(&mut RedisServer)) {
    let mut server = RedisServer::start();
    let url = server.url();
    let folder = tempfile::tempdir().unwrap();
    let end: PathBuf = folder.path().join("end");
    let start = |me: &str| Actor::start("load", &[&url, me, end.to_str().unwrap()]);
    let mut actors = ["0", "1", "2"].map(start);
    for _ in 0..2 {
        for actor in &mut actors {
            hear_at_work(actor, "well");
        }
        trouble(&mut server);
        for actor in &mut actors {
            hear_at_work(actor, "trouble");
        }
        over(&mut server);
    }
    for actor in &mut actors {
        hear_at_work(actor, "well");
    }
    std::fs::write(&end, "").unwrap();
    let mut expected = BTreeMap::<Slot, Record>::new();
    for line in actors.into_iter().flat_map(Actor::hear_out) {
        let Some(line) = line.strip_prefix("expect ") else { continue };
        let (slot, holds) = line.split_once('\t').unwrap();
        let (slot, told) =
            (slot.parse::<Slot>().unwrap(), Record::Holds(serde_json::from_str(holds).unwrap()));
        let known = expected.get(&slot).map_or_else(|| told.clone(), |known| known.merge(&told));
        expected.insert(slot, known);
    }
    assert_eq!(expected.len(), 5 + 3 * 100);
    let loaded = store(&url).load().unwrap();
    assert_eq!(loaded.unreadable, []);
    assert_eq!(
        loaded.records.into_iter().collect::<BTreeMap<_, _>>(),
        expected,
        "everyone agrees in the end"
    );
}

#[test]
fn a_server_killed_under_load_and_restarted_empty_stops_no_ledger_and_learns_everything_again() {
    let back = |server: &mut RedisServer| assert!(server.restart());
    trouble_under_load(RedisServer::kill, back);
}

#[test]
fn a_server_that_is_paused_under_load_stops_no_ledger() {
    trouble_under_load(|server| server.pause(), |server| server.resume());
}

#[test]
fn a_ledger_begins_without_its_server_and_finds_it_later() {
    let mut server = RedisServer::start();
    server.kill();
    let here = ledger(&server.url(), "n1");
    here.update_holds(&key("account:main"), |holds| holds.hold(Limit::Quota, at(500)));
    let health =
        until("trouble is reported", || Some(here.health()).filter(|health| health.trouble.is_some()));
    assert!(!health.loaded && matches!(health.trouble, Some(StoreError::Away { .. })), "{health:?}");
    assert!(server.restart());
    assert!(here.wait_loaded(DEADLINE) && here.flush(DEADLINE));
    let records = store(&server.url()).load().unwrap().records;
    assert_eq!(records, [(slot("holds account:main"), Record::Holds(held(Limit::Quota, 500)))]);
}

#[test]
fn a_ledger_can_be_closed_while_its_server_stands_still() {
    let server = RedisServer::start();
    let here = loaded(&server.url(), "n1");
    server.pause();
    here.update_holds(&key("account:main"), |holds| holds.hold(Limit::Quota, at(500)));
    let health = here.close();
    assert_eq!(health.pending, 1, "it says what was not written");
    server.resume();
}

#[test]
fn an_idle_ledger_notices_that_its_server_stands_still() {
    let server = RedisServer::start();
    let here = loaded(&server.url(), "n1");
    until("it is well", || here.health().connected.then_some(()));
    server.pause();
    until("trouble is reported", || here.health().trouble);
    server.resume();
    until("and that it is over", || here.health().connected.then_some(()));
}

#[test]
fn fences_grow_even_after_the_server_forgot_them() {
    let mut server = RedisServer::start();
    let mut last = 0;
    // The same store throughout: a connection that was closed meanwhile is no trouble.
    let store = store(&server.url());
    for _ in 0..3 {
        for name in ["a", "b", "c"] {
            let lease = store.lease(name, "n1", DEADLINE, at(0)).unwrap().unwrap();
            assert!(lease.fence > last, "{} after {last}", lease.fence);
            last = lease.fence;
        }
        server.kill();
        assert!(server.restart());
    }
}

/// The connections stay: nothing but the marker tells the ledgers that it happened. Full looks by the clock are off.
#[test]
fn every_node_writes_everything_again_to_a_server_that_was_emptied() {
    let server = RedisServer::start();
    let policy = RedisPolicy { resync_every: Duration::MAX, ..RedisPolicy::default() };
    let open = |name: &str| {
        let watched = RedisStore::new(&server.url(), policy.clone()).unwrap();
        let ledger = Ledger::open(Arc::new(watched), LedgerOptions::new(node(name))).unwrap();
        assert!(ledger.wait_loaded(DEADLINE));
        ledger
    };
    let (one, two) = (open("n1"), open("n2"));
    for round in 0..2 {
        let account = key(&format!("account:{round}"));
        one.update_cooldown(&account, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
        two.update_holds(&account, |holds| holds.hold(Limit::Quota, at(500)));
        for ledger in [&one, &two] {
            ledger.show_breaker(&key("target:a"), &snapshot(5 + round, Mode::Open));
            assert!(ledger.flush(DEADLINE));
        }
        server.empty();
        let slots = until("the server knows all of it again", || {
            let records = store(&server.url()).load().unwrap().records;
            let slots: Vec<String> = records.iter().map(|(slot, _)| slot.to_string()).collect();
            let breakers = ["breaker n1 target:a", "breaker n2 target:a"];
            let facts = [format!("cooldown {account}"), format!("holds {account}")];
            let told = breakers.iter().all(|name| slots.iter().any(|slot| slot == name))
                && facts.iter().all(|name| slots.contains(name));
            told.then_some(slots)
        });
        assert_eq!(slots.len(), 2 * usize::try_from(round + 1).unwrap() + 2, "{slots:?}");
        let new = open("n3");
        assert!(new.cooldown(&account).is_some() && new.holds(&account).is_some(), "a new node knows it");
    }
}

/// The first node that reads an empty server leaves a new mark; the others must not take it for the old one.
#[test]
fn an_emptied_server_is_noticed_by_a_node_that_looks_last() {
    let server = RedisServer::start();
    let watch = || store(&server.url()).watch(Arc::new(|| {})).unwrap();
    let (mut first, mut last) = (watch(), watch());
    for watch in [&mut first, &mut last] {
        assert!(matches!(watch.changes(Moment::START).unwrap(), StoreChanges::All(_)));
        assert_eq!(watch.changes(Moment::START).unwrap(), StoreChanges::Quiet);
    }
    server.empty();
    for watch in [&mut first, &mut last] {
        assert!(matches!(watch.changes(Moment::START).unwrap(), StoreChanges::All(_)), "it was emptied");
        assert_eq!(watch.changes(Moment::START).unwrap(), StoreChanges::Quiet, "that is known now");
    }
}

fn raw(server: &RedisServer, words: &[&str]) -> redis::Value {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd(words[0]).arg(&words[1..]).query(&mut connection).unwrap()
}

/// How often the server was asked for this since its statistics were reset.
fn calls(server: &RedisServer, command: &str) -> u32 {
    let stats = format!("{:?}", raw(server, &["INFO", "commandstats"]));
    let found = stats.split_once(&format!("cmdstat_{command}:calls="));
    found.map_or(0, |(_, rest)| rest.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn what_is_not_shared_never_reaches_the_server() {
    let server = RedisServer::start();
    let here = loaded(&server.url(), "n1");
    let network = key("network:local");
    here.update_cooldown(&network, |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    here.show_breaker(&network, &snapshot(5, Mode::Open));
    here.show_breaker(&key("target:a"), &snapshot(5, Mode::Open));
    assert!(here.flush(DEADLINE));
    store(&server.url()).merge(&[(Slot::cooldown(network), Record::Cooldown(resting(0, 100)))]).unwrap();
    let stored = format!("{:?}", raw(&server, &["HKEYS", "koboshi:records"]));
    assert!(stored.contains("breaker n1 target:a") && !stored.contains("network"), "{stored}");
}

#[test]
fn a_record_that_cannot_be_read_is_reported_left_and_never_lost() {
    let server = RedisServer::start();
    let strange = r#"{"epoch": "from the future"}"#;
    raw(&server, &["HSET", "koboshi:records", "cooldown account:main", strange, "mood account:main", "{}"]);
    let plain = store(&server.url());
    assert_eq!(plain.load().unwrap().unreadable.len(), 2);
    let here = loaded(&server.url(), "n1");
    assert_eq!(here.health().unreadable, 2);
    here.update_cooldown(&key("account:main"), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    assert!(here.flush(DEADLINE));
    let body = || raw(&server, &["HGET", "koboshi:records", "cooldown account:main"]);
    assert_eq!(body(), redis::Value::BulkString(strange.into()), "a newer node may have put it there");
    let named = (slot("cooldown account:main"), Record::Cooldown(resting(0, 100)));
    let merged = plain.merge(std::slice::from_ref(&named)).unwrap();
    assert_eq!((merged.unreadable.len(), merged.set_aside.len()), (1, 0), "and the writer learns of it");
    // No program can read what is not JSON: it is set aside, byte for byte, and reported from then on.
    raw(&server, &["HSET", "koboshi:records", "cooldown account:main", r#"{"epoch":"#]);
    let merged = plain.merge(std::slice::from_ref(&named)).unwrap();
    assert_eq!((merged.unreadable.len(), merged.set_aside.len()), (0, 1));
    let loaded = plain.load().unwrap();
    assert_eq!(loaded.records, [named]);
    assert!(loaded.unreadable.iter().any(|one| one.slot == "cooldown account:main"), "{loaded:?}");
    let aside = format!("{:?}", raw(&server, &["LRANGE", "koboshi:set-aside", "0", "-1"]));
    assert!(aside.contains(r#"{\"epoch\":"#), "{aside}");
    let told = until("the journal tells of it", || {
        let told = plain.query(&Query { what: Some(EntryKind::Store), ..Query::default() }).unwrap();
        (told.len() == 2).then_some(told)
    });
    assert!(told.iter().any(|entry| entry.text.contains("cooldown account:main")), "{told:?}");
}

#[test]
fn what_a_newer_node_wrote_is_not_written_over_and_over() {
    let server = RedisServer::start();
    let policy = RedisPolicy { resync_every: Duration::from_millis(50), ..RedisPolicy::default() };
    let watched = RedisStore::new(&server.url(), policy).unwrap();
    let here = Ledger::open(Arc::new(watched), LedgerOptions::new(node("older"))).unwrap();
    for account in ["account:main", "account:other"] {
        here.update_cooldown(&key(account), |cooldown| cooldown.rest = Some(rest(0, 100, 1)));
    }
    assert!(here.flush(DEADLINE));
    let newer = r#"{"epoch": {"of": "a newer kind"}}"#;
    raw(&server, &["HSET", "koboshi:records", "cooldown account:main", newer, "mood account:main", newer]);
    for _ in 0..3 {
        // A slot that is written again shows that everything was read.
        raw(&server, &["HDEL", "koboshi:records", "cooldown account:other"]);
        until("a full look", || {
            let there = raw(&server, &["HEXISTS", "koboshi:records", "cooldown account:other"]);
            (there == redis::Value::Int(1)).then_some(())
        });
        let body = raw(&server, &["HGET", "koboshi:records", "cooldown account:main"]);
        assert_eq!(body, redis::Value::BulkString(newer.into()));
    }
    until("both are counted", || (here.health().unreadable == 2).then_some(()));
    raw(&server, &["CONFIG", "RESETSTAT"]);
    until("many more full looks", || (calls(&server, "hscan") >= 12).then_some(()));
    // One or two for what it told itself, but not one for each look.
    assert!(calls(&server, "hmget") <= 4, "no node tries to write there");
    raw(&server, &["HDEL", "koboshi:records", "cooldown account:main", "mood account:main"]);
    let plain = store(&server.url());
    until("what is known is written again", || (plain.load().unwrap().records.len() == 2).then_some(()));
    until("and nothing is unreadable", || (here.health().unreadable == 0).then_some(()));
}

#[test]
fn what_is_set_aside_has_a_bound() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    let damage = |key: &str, body: &str| {
        raw(&server, &["HSET", "koboshi:records", &format!("cooldown {key}"), body]);
        let named = (slot(&format!("cooldown {key}")), Record::Cooldown(resting(0, 100)));
        assert_eq!(plain.merge(&[named]).unwrap().set_aside.len(), 1);
    };
    let kept = || plain.load().unwrap().unreadable;
    for n in 0..MAX_SET_ASIDE + 20 {
        damage(&format!("account:{n}"), "x");
    }
    let newest = |kept: &[koboshi_store::Unreadable]| kept.last().map(|one| one.slot.clone());
    assert_eq!(kept().len(), MAX_SET_ASIDE);
    assert_eq!(newest(&kept()), Some(format!("cooldown account:{}", MAX_SET_ASIDE + 19)));
    for n in 0..5 {
        damage(&format!("account:large{n}"), &"x".repeat(MAX_BYTES_SET_ASIDE / 3));
    }
    assert!((2..=3).contains(&kept().len()), "{}", kept().len());
    assert_eq!(newest(&kept()).as_deref(), Some("cooldown account:large4"));
    damage("account:huge", &"x".repeat(MAX_BYTES_SET_ASIDE + 1));
    assert_eq!(kept(), [], "larger than all the room");
}

#[test]
fn eight_at_once_on_one_record_lose_nothing() {
    let server = RedisServer::start();
    let url = server.url();
    std::thread::scope(|scope| {
        for me in 0..8_i64 {
            let store = store(&url);
            scope.spawn(move || {
                for n in 0..100 {
                    let limit = Limit::ALL[usize::try_from(me % 7).unwrap()];
                    let record = Record::Holds(held(limit, me * 1000 + n));
                    while let Err(error) = store.merge(&[(slot("holds account:main"), record.clone())]) {
                        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
                    }
                }
            });
        }
    });
    let records = store(&url).load().unwrap().records;
    let [(_, Record::Holds(holds))] = &records[..] else { panic!("{records:?}") };
    let ends: Vec<_> = Limit::ALL.iter().map(|limit| holds.until[limit]).collect();
    let latest = [7099, 1099, 2099, 3099, 4099, 5099, 6099];
    assert_eq!(ends, latest.map(at));
}

#[test]
fn a_password_is_used_and_never_shown() {
    let server = RedisServer::start_with(Some("correct-horse"));
    store(&server.url()).append(&[entry(1, EntryKind::Gate, "x")]).unwrap();
    for url in [server.url_with("battery-staple"), server.url_with("")] {
        let plain = store(&url);
        let error = plain.load().unwrap_err();
        let said = format!("{error} {error:?} {}", plain.place());
        assert!(matches!(error, StoreError::Refused { .. }), "{said}");
        assert!(said.contains("password is wrong or missing") && said.contains("store.redis"), "{said}");
        assert!(!said.contains("away") && !said.contains("again"), "it would be wrong tomorrow too: {said}");
        assert!(!said.contains("horse") && !said.contains("staple"), "{said}");
    }
}

#[test]
fn an_error_of_the_server_says_what_could_not_be_done() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    raw(&server, &["SET", "koboshi:journal", "no stream"]);
    let error = plain.append(&[entry(1, EntryKind::Gate, "x")]).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, StoreError::Failed { .. }), "{said}");
    assert!(said.contains("write the journal") && said.contains("WRONGTYPE"), "{said}");
    raw(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let error = plain.note_put("s", b"x", TTL, at(0)).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, StoreError::Failed { .. }), "{said}");
    assert!(said.contains("keep a note") && said.contains("memory is full"), "{said}");
}

#[test]
fn a_server_that_is_gone_is_away_and_the_message_promises_nothing() {
    let mut server = RedisServer::start();
    server.kill();
    let error = store(&server.url()).load().unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, StoreError::Away { .. }) && error.is_passing(), "{said}");
    assert!(said.contains("read state") && !said.contains("again"), "{said}");
}

#[test]
fn a_long_journal_is_read_page_by_page() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    let entries: Vec<Entry> = (0..2500).map(|n| entry(n, EntryKind::Gate, &n.to_string())).collect();
    plain.append(&entries).unwrap();
    let all = plain.query(&Query { limit: 10_000, ..Query::default() }).unwrap();
    assert_eq!(all, entries);
    let some = plain.query(&Query { from: Some(at(100)), to: Some(at(200)), ..Query::default() }).unwrap();
    assert_eq!(some, entries[100..200]);
}

/// Puts an entry into the stream as it would be if it had arrived then.
fn arrive(server: &RedisServer, second: i64, entries: &[Entry]) {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    for (n, entry) in entries.iter().enumerate() {
        let (id, body) =
            (format!("{}-{n}", at(second).as_millisecond()), serde_json::to_string(entry).unwrap());
        redis::cmd("XADD")
            .arg("koboshi:journal")
            .arg(id)
            .arg("body")
            .arg(body)
            .exec(&mut connection)
            .unwrap();
    }
}

#[test]
fn what_happened_before_a_long_outage_and_arrived_after_it_hides_nothing() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    let normal = entry(50_000, EntryKind::Gate, "normal");
    arrive(&server, 50_000, std::slice::from_ref(&normal));
    // A node was cut off for a day: more than a page of entries from long ago arrive last.
    let late: Vec<Entry> = (0..1500).map(|n| entry(n, EntryKind::Gate, &format!("late {n}"))).collect();
    arrive(&server, 90_000, &late);
    let found = plain.query(&Query { from: Some(at(40_000)), ..Query::default() }).unwrap();
    assert_eq!(found, std::slice::from_ref(&normal));
    let newest = plain.query(&Query { limit: 2, ..Query::default() }).unwrap();
    assert_eq!(newest, [late[1499].clone(), normal], "the newest by when they happened");
    let found = plain.query(&Query { from: Some(at(1490)), to: Some(at(1495)), ..Query::default() }).unwrap();
    assert_eq!(found, late[1490..1495]);
}

#[test]
fn a_search_for_what_is_new_does_not_read_the_whole_journal() {
    let server = RedisServer::start();
    for n in 0..5 {
        let entries: Vec<Entry> = (0..1000).map(|_| entry(n * 10_000, EntryKind::Gate, "x")).collect();
        arrive(&server, n * 10_000, &entries);
    }
    let reads = |query: &Query| {
        raw(&server, &["CONFIG", "RESETSTAT"]);
        store(&server.url()).query(query).unwrap();
        calls(&server, "xrevrange")
    };
    assert!(reads(&Query { from: Some(at(39_000)), ..Query::default() }) <= 2);
    assert!(reads(&Query { limit: 10, ..Query::default() }) <= 2);
}

#[test]
fn appending_trims_only_where_the_policy_says_so() {
    let server = RedisServer::start();
    let entries: Vec<Entry> = (0..1000).map(|n| entry(n, EntryKind::Gate, &n.to_string())).collect();
    let kept = || raw(&server, &["XLEN", "koboshi:journal"]);
    let plain = store(&server.url());
    for _ in 0..3 {
        plain.append(&entries).unwrap();
    }
    assert_eq!(kept(), redis::Value::Int(3000));
    let policy = RedisPolicy { entries: Some(100), ..RedisPolicy::default() };
    RedisStore::new(&server.url(), policy).unwrap().append(&entries[..1]).unwrap();
    let redis::Value::Int(left) = kept() else { panic!("a number") };
    assert!((100..=300).contains(&left), "roughly 100: {left}");
}

/// Puts a record into the server without an announcement, as if it had been missed.
fn put_silently(server: &RedisServer, account: &str) {
    let body = serde_json::to_string(&resting(0, 100)).unwrap();
    raw(server, &["HSET", "koboshi:records", &format!("cooldown account:{account}"), &body]);
}

#[test]
fn an_idle_node_reads_everything_when_it_has_subscribed_again() {
    let server = RedisServer::start();
    let policy = RedisPolicy { resync_every: Duration::MAX, ..RedisPolicy::default() };
    let watched = RedisStore::new(&server.url(), policy).unwrap();
    let here = Ledger::open(Arc::new(watched), LedgerOptions::new(node("n1"))).unwrap();
    assert!(here.wait_loaded(DEADLINE) && here.flush(DEADLINE));
    for round in 0..3 {
        // What it was not told of while it was cut off …
        put_silently(&server, &format!("missed{round}"));
        assert!(here.flush(DEADLINE) && here.flush(DEADLINE));
        let missed = key(&format!("account:missed{round}"));
        assert_eq!(here.cooldown(&missed), None, "it was not announced");
        let redis::Value::Int(cut) = raw(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]) else {
            panic!("a number")
        };
        assert_eq!(cut, 1);
        // … it finds once it is back.
        until("it knows", || here.cooldown(&missed));
        until("it is well", || here.health().connected.then_some(()));
    }
}

#[test]
fn after_a_look_that_failed_everything_is_read() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    let mut watch = plain.watch(Arc::new(|| {})).unwrap();
    assert!(matches!(watch.changes(Moment::START).unwrap(), StoreChanges::All(_)));
    let named = (slot("cooldown account:main"), Record::Cooldown(resting(0, 100)));
    plain.merge(std::slice::from_ref(&named)).unwrap();
    raw(&server, &["ACL", "SETUSER", "default", "-hmget"]);
    until("it is announced and cannot be read", || watch.changes(Moment::START).err());
    raw(&server, &["ACL", "SETUSER", "default", "+hmget"]);
    let StoreChanges::All(all) = watch.changes(Moment::START).unwrap() else { panic!("everything is news") };
    assert_eq!(all.records, [named]);
}

#[test]
fn more_announcements_than_are_worth_a_list_mean_everything() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    let heard = Arc::new(AtomicUsize::new(0));
    let ears = Arc::clone(&heard);
    let mut watch = plain
        .watch(Arc::new(move || {
            ears.fetch_add(1, Ordering::SeqCst);
        }))
        .unwrap();
    assert!(matches!(watch.changes(Moment::START).unwrap(), StoreChanges::All(_)));
    let named = (slot("cooldown account:main"), Record::Cooldown(resting(0, 100)));
    plain.merge(std::slice::from_ref(&named)).unwrap();
    let many = "for i = 1, 12000 do redis.call('PUBLISH', 'koboshi:changes', 'cooldown account:' .. i) end";
    raw(&server, &["EVAL", many, "0"]);
    until("all are heard", || (heard.load(Ordering::SeqCst) > 12_000).then_some(()));
    let StoreChanges::All(all) = watch.changes(Moment::START).unwrap() else { panic!("everything is news") };
    assert_eq!(all.records, [named]);
}

#[test]
fn everything_is_read_once_more_by_the_clock_of_the_ledger() {
    let server = RedisServer::start();
    let plain = store(&server.url());
    let mut watch = plain.watch(Arc::new(|| {})).unwrap();
    let later = |seconds| Moment::START.after(Duration::from_secs(seconds));
    assert!(matches!(watch.changes(later(0)).unwrap(), StoreChanges::All(_)));
    put_silently(&server, "main");
    assert_eq!(watch.changes(later(59)).unwrap(), StoreChanges::Quiet);
    let StoreChanges::All(all) = watch.changes(later(60)).unwrap() else { panic!("everything is news") };
    assert_eq!(all.records.len(), 1);
}
