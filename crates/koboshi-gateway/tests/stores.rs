//! A store that is slow, hangs, fails or is full: requests continue without it, and the failure is reported.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::hooked::Hooked;
use crate::common::*;
use koboshi_config::Config;
use koboshi_config::gateway::CacheMode;
use koboshi_gateway::{Gateway, known};
use koboshi_store::{RedisPolicy, RedisStore, SqlitePolicy, SqliteStore, Store, StoreError};
use koboshi_testkit::{RedisServer, Upstream, until};
use serde_json::{Value, json};

/// A gateway before one provider; the route `m` leads over this chain.
struct StoreStage {
    gateway: Gateway,
    _one: Upstream,
}

impl StoreStage {
    fn on(
        store: Arc<dyn Store>,
        chain: &[&str],
        log: Option<Lines>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let one = Upstream::start();
        let mut config = config();
        config.providers.insert("one".to_owned(), provider(one.url()));
        config.routes.insert("m".to_owned(), route(chain));
        change(&mut config);
        Self { gateway: start_on(config, store, log).unwrap(), _one: one }
    }

    fn get(&self, path: &str) -> Answer {
        let mut client = Client::to(self.gateway.address());
        client.send("GET", path, &[], b"");
        client.read()
    }

    /// An operator's word about a key, for an hour.
    fn order(&self, key: &str, action: &str) -> Answer {
        let mut order = json!({"key": key, "action": action, "force": true});
        if action == "cool" {
            let until = jiff::Timestamp::from_second(jiff::Timestamp::MAX.as_second() / 2).unwrap();
            order["until"] = until.to_string().into();
        }
        let mut client = Client::to(self.gateway.address());
        client.send("POST", "/koboshi/cooldowns", &[], order.to_string().as_bytes());
        client.read()
    }

    fn ask(&self) -> Answer {
        let mut client = Client::to(self.gateway.address());
        client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
        client.read()
    }
}

/// A store whose calls of these names hang while the lock is held.
fn hanging(calls: &'static [&'static str]) -> (Hooked, Arc<Mutex<()>>) {
    let lock = Arc::new(Mutex::new(()));
    let held = Arc::clone(&lock);
    let store = Hooked::new(move |call| {
        if calls.contains(&call) {
            drop(held.lock());
        }
        Ok(())
    });
    (store, lock)
}

#[test]
fn no_request_waits_for_the_cache_of_a_store_that_hangs() {
    let (store, lock) = hanging(&["cache_get"]);
    let stage = StoreStage::on(Arc::new(store), &["one/fail-503"], None, |config| {
        config.degrade.cache = CacheMode::Fallback;
    });
    let hang = lock.lock().unwrap();
    for _ in 0..3 {
        assert_error(&stage.ask(), 503, "unavailable");
    }
    drop(hang);
}

#[test]
fn a_gateway_stops_though_every_call_to_its_store_hangs() {
    let (store, lock) =
        hanging(&["merge", "append", "note_put", "note_get", "cache_put", "changes", "query"]);
    let stage = StoreStage::on(Arc::new(store), &["one/ok"], None, |config| {
        config.degrade.cache = CacheMode::Fallback;
    });
    let hang = lock.lock().unwrap();
    assert_whole(&stage.ask(), &chat(false));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        stage.gateway.stop();
        tell.send(()).unwrap();
    });
    told.recv_timeout(koboshi_testkit::DEADLINE).expect("it must not wait for its store");
    drop(hang);
}

#[test]
fn operators_are_answered_though_the_store_hangs_and_it_holds_one_thread() {
    let (store, lock) = hanging(&["load"]);
    let stage = StoreStage::on(Arc::new(store), &["one/ok"], None, |_| {});
    let hang = lock.lock().unwrap();
    let status = stage.get("/koboshi/status");
    assert_eq!(status.status, 200);
    let trouble = status.json()["trouble"].clone();
    assert!(trouble.as_str().is_some_and(|why| why.contains("did not answer")), "{trouble}");
    drop(hang);
    until("it is read again", || stage.get("/koboshi/status").json()["trouble"].is_null().then_some(()));
}

/// What `/ready` says of the store.
fn store_of(stage: &StoreStage) -> Value {
    stage.get("/ready").json()["store"].clone()
}

fn connected(stage: &StoreStage) -> Option<f64> {
    gauge(&stage.get("/metrics").text(), "koboshi_store_connected")
}

/// The store fails: that is reported once, with its reason, in the log, in `/ready` and as a metric.
fn assert_reported(stage: &StoreStage, log: &Lines, why: &str) {
    let lines =
        until("the log tells it", || Some(log.like("the store fails")).filter(|lines| !lines.is_empty()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "warn");
    assert!(lines[0]["why"].as_str().unwrap().contains(why), "{lines:?}");
    let store = store_of(stage);
    assert_eq!(store["connected"], false, "{store}");
    assert!(store["error"].as_str().is_some_and(|error| error.contains(why)), "{store}");
    assert_eq!(connected(stage), Some(0.0));
    assert_whole(&stage.ask(), &chat(false));
}

/// It works again: that is reported once too, and the error is shown no longer.
fn assert_recovered(stage: &StoreStage, log: &Lines) {
    let lines = until("the log tells it", || {
        Some(log.like("the store works again")).filter(|lines| !lines.is_empty())
    });
    assert_eq!((lines.len(), &lines[0]["level"]), (1, &json!("info")), "{lines:?}");
    assert_eq!(log.like("the store fails").len(), 1);
    let store = store_of(stage);
    assert_eq!((&store["connected"], store.get("error")), (&json!(true), None), "{store}");
    assert_eq!(connected(stage), Some(1.0));
}

#[test]
fn a_store_that_fails_is_reported_once_and_so_is_its_return() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let store = Hooked::new(move |_| match failing.load(Ordering::SeqCst) {
        true => Err(StoreError::Failed {
            place: "a hooked store".to_owned(),
            doing: "do anything",
            why: "the disk is full".to_owned(),
        }),
        false => Ok(()),
    });
    let log = Lines::default();
    let stage = StoreStage::on(Arc::new(store), &["one/ok"], Some(log.clone()), |_| {});
    assert_eq!((connected(&stage), store_of(&stage).get("error")), (Some(1.0), None));
    fails.store(true, Ordering::SeqCst);
    assert_reported(&stage, &log, "the disk is full");
    fails.store(false, Ordering::SeqCst);
    assert_recovered(&stage, &log);
}

#[test]
fn a_redis_that_is_gone_is_reported_without_its_password() {
    let mut server = RedisServer::start_with(Some("correct-horse"));
    let store = RedisStore::new(&server.url(), RedisPolicy::default()).unwrap();
    let log = Lines::default();
    let stage = StoreStage::on(Arc::new(store), &["one/ok"], Some(log.clone()), |_| {});
    server.kill();
    assert_reported(&stage, &log, "Redis at 127.0.0.1:");
    assert!(server.restart());
    assert_recovered(&stage, &log);
    let said = format!("{:?} {}", log.all(), store_of(&stage));
    assert!(!said.contains("horse"), "{said}");
}

#[test]
fn a_store_that_is_away_at_the_start_is_reported_with_its_reason() {
    let mut server = RedisServer::start();
    server.kill();
    let store = RedisStore::new(&server.url(), RedisPolicy::default()).unwrap();
    let log = Lines::default();
    let stage = StoreStage::on(Arc::new(store), &["one/ok"], Some(log.clone()), |_| {});
    let ready = stage.get("/ready");
    assert_eq!((ready.status, &ready.json()["reason"]), (503, &json!("store")));
    assert_reported(&stage, &log, "Redis at 127.0.0.1:");
    assert!(server.restart());
    assert_recovered(&stage, &log);
    assert_eq!(stage.get("/ready").status, 200);
}

#[test]
fn a_file_that_others_keep_locked_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let policy = SqlitePolicy { patience: ms(300), ..SqlitePolicy::default() };
    let log = Lines::default();
    let stage = StoreStage::on(
        Arc::new(SqliteStore::open(&file, policy).unwrap()),
        &["one/ok"],
        Some(log.clone()),
        |_| {},
    );
    let other = rusqlite::Connection::open(&file).unwrap();
    other.busy_timeout(koboshi_testkit::DEADLINE).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // Something to write.
    assert_eq!(stage.order("account:other", "cool").status, 200);
    assert_reported(&stage, &log, "in use by others");
    other.execute_batch("COMMIT").unwrap();
    assert_recovered(&stage, &log);
}

#[test]
fn a_damaged_file_ends_the_start() {
    let store = Hooked::new(|call| match call {
        "changes" => Err(StoreError::Damaged { place: "the file".to_owned(), why: "malformed".to_owned() }),
        _ => Ok(()),
    });
    let error = start_on(config(), Arc::new(store), None).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("the file") && error.contains("move it away"), "{error}");
}

/// A gateway that starts now knows what the others knew before the store lost it.
fn assert_written_again(open: impl Fn() -> Arc<dyn Store>, lose: impl FnOnce()) {
    let stage = StoreStage::on(open(), &["one/ok"], None, |_| {});
    assert_eq!(stage.order("account:one", "cool").status, 200);
    let kept = || !open().load().unwrap().records.is_empty();
    until("it is kept", || kept().then_some(()));
    lose();
    until("it is kept again", || kept().then_some(()));
    // What gateways report too: the command line knows their keys from it.
    let now = jiff::Timestamp::UNIX_EPOCH;
    until("the keys are known again", || (!known(&*open(), now).unwrap().is_empty()).then_some(()));
    let new = StoreStage::on(open(), &["one/ok"], None, |_| {});
    assert_error(&new.ask(), 503, "cooling_down");
}

#[test]
fn an_emptied_redis_gets_again_what_all_nodes_know() {
    let server = RedisServer::start();
    let open = || Arc::new(RedisStore::new(&server.url(), RedisPolicy::default()).unwrap());
    assert_written_again(|| open(), || server.empty());
}

#[test]
fn a_deleted_file_gets_again_what_all_nodes_know() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    assert_written_again(|| open_file(&file), || std::fs::remove_file(&file).unwrap());
}

#[test]
fn a_replaced_file_gets_again_what_all_nodes_know() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("store.db"), folder.path().join("other.db"));
    drop(open_file(&other));
    assert_written_again(
        || open_file(&file),
        || {
            // As one puts a copy back: what belongs to the old file goes first.
            for beside in ["store.db-wal", "store.db-shm"] {
                std::fs::remove_file(file.with_file_name(beside)).unwrap();
            }
            std::fs::rename(&other, &file).unwrap();
        },
    );
}

fn open_file(file: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(file, SqlitePolicy::default()).unwrap())
}
