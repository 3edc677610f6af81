//! The gateway as a process, under a crowd and a primary that falls in every way: killed in the middle, and watched.
//!
//! `KOBOSHI_CHAOS=20000` makes the run long; its memory is watched then. What a kill may cost is the requests on their way, and
//! what was learned since the keeper last wrote.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::run;
use common::served::Served;
use koboshi_store::{EntryKind, Query, Record, SqlitePolicy, SqliteStore, Store};
use koboshi_testkit::chaos::{Crowd, primary, total};
use koboshi_testkit::questions::{assert_whole, chat};
use koboshi_testkit::{Upstream, signal, until};
use serde_json::{Value, json};

const CLIENTS: usize = 64;
/// Fewer requests say nothing about memory.
const ENOUGH_TO_WEIGH: u64 = 8000;
/// How much more memory the second half of a long run may take: less than 420 bytes a request at 20,000.
const MAX_GROWTH: u64 = 4 << 20;

fn write(folder: &Path, config: &Value) -> std::path::PathBuf {
    let path = folder.join("koboshi.yaml");
    // JSON is YAML.
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

fn open(store: &Path) -> SqliteStore {
    SqliteStore::open(store, SqlitePolicy::default()).unwrap()
}

/// Faults in the journal.
fn faults(store: &SqliteStore) -> u64 {
    let query = Query { what: Some(EntryKind::Fault), limit: 1_000_000, ..Query::default() };
    store.query(&query).unwrap().len() as u64
}

fn whole(value: f64) -> u64 {
    // The sum of nothing is -0.
    format!("{:.0}", value.abs()).parse().unwrap()
}

/// The config of a gateway whose primary falls all the time.
fn under_chaos(one: &Upstream, two: &Upstream) -> Value {
    let short = json!({"first": "500ms", "whole": "500ms", "idle": "500ms"});
    json!({
        "serve": {"threads": 2, "hold": "200ms", "keep_alive": {"every": "100ms"}},
        "providers": {
            "one": {"kind": "openai", "base_url": one.url(), "keys": ["sk-own"], "timeouts": short},
            "two": {"kind": "openai", "base_url": two.url(), "keys": ["sk-own"]},
        },
        "routes": {
            "m": ["one/chaos", "two/ok"],
            "prefilled": ["one/chaos", "two/ok?seed=1"],
            "complete": {"chain": ["one/chaos", "two/ok"], "commit": "complete"},
        },
        "models": {"two/ok?seed=1": {"prefill": true}},
        "retry": {"initial_delay": "1ms", "max_delay": "5ms"},
        "request": {"quick_retry_delay": "2ms"},
        "retry_budget": {"min_per_second": 100},
        "breaker": {"open": {"initial": "100ms", "max": "300ms"}},
    })
}

#[test]
fn a_crowd_under_chaos_loses_nothing_but_what_was_on_its_way_when_the_gateway_is_killed() {
    let requests: u64 = std::env::var("KOBOSHI_CHAOS").map_or(600, |count| count.parse().unwrap());
    let (one, two) = (Upstream::start(), Upstream::start());
    one.set("chaos", primary);
    let folder = tempfile::tempdir().unwrap();
    let config = under_chaos(&one, &two);
    let path = folder.path().join("store.db");
    let served = Served::start(&write(folder.path(), &config), &path);
    let crowd = Crowd::before(served.address);
    let (served, store) = (Mutex::new(served), open(&path));
    let (known, at_half) = (AtomicU64::new(0), AtomicU64::new(0));
    crowd.ask(CLIENTS, requests, |answered| {
        if answered == requests / 4 {
            let mut served = served.lock().unwrap();
            let told = whole(total(&served.get("/metrics").text(), "koboshi_faults_total"));
            assert!(told > 0, "a primary that falls was noticed");
            until("the journal has every fault", || (faults(&store) >= told).then_some(()));
            crowd.while_killed(|| served.kill());
            known.store(faults(&store), Ordering::Relaxed);
            served.start_again();
        }
        if answered == requests / 2 {
            at_half.store(served.lock().unwrap().memory(), Ordering::Relaxed);
        }
    });
    let mut served = served.into_inner().unwrap();
    let most = u64::try_from(CLIENTS).unwrap();
    assert!(crowd.repeated() <= most, "{} requests were on their way", crowd.repeated());
    let memory = (at_half.load(Ordering::Relaxed), served.memory());
    eprintln!(
        "{requests} questions, {} asked again, memory {} KiB at half and {} KiB at the end",
        crowd.repeated(),
        memory.0 / 1024,
        memory.1 / 1024
    );
    if requests >= ENOUGH_TO_WEIGH {
        assert!(memory.1 < memory.0 + MAX_GROWTH, "memory grows: {memory:?}");
    }
    let metrics = until("the gateway is quiet", || {
        let text = served.get("/metrics").text();
        // The query itself is one request.
        (total(&text, "koboshi_open_requests") <= 1.0).then_some(text)
    });
    assert_eq!(whole(total(&metrics, "koboshi_answers_total")), crowd.answered_after_kill(), "{metrics}");
    let answers = format!("koboshi_answers_total{{kind=\"whole\"}} {}\n", crowd.answered_after_kill());
    assert!(metrics.contains(&answers), "{metrics}");
    for target in served.targets() {
        let gate = &target["gate"];
        assert!(gate["in_flight"] == 0 && gate["waiting"] == 0, "a permit leaked: {target}");
    }
    signal(&served.child, "-TERM");
    let ended = until("the gateway ends", || served.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
    let told = known.load(Ordering::Relaxed) + whole(total(&metrics, "koboshi_faults_total"));
    assert_eq!(faults(&store), told, "the journal has every fault of both lives");
    store.check().unwrap();
}

#[test]
fn clients_do_not_notice_a_full_disk_and_it_gets_everything_when_there_is_room() {
    let requests = std::env::var("KOBOSHI_CHAOS").map_or(100, |count| count.parse::<u64>().unwrap() / 10);
    let (one, two) = (Upstream::start(), Upstream::start());
    one.set("chaos", primary);
    let folder = tempfile::tempdir().unwrap();
    let mut config = under_chaos(&one, &two);
    config["degrade"] = json!({"cache": {"mode": "fallback"}});
    let path = folder.path().join("store.db");
    let mut served = Served::start_limited(&write(folder.path(), &config), &path);
    let ask = |served: &Served| Crowd::before(served.address).ask(CLIENTS, requests, |_| {});
    ask(&served);
    served.limit_files("4096");
    ask(&served);
    let error = until("the store fails", || {
        let store = served.get("/ready").json()["store"].clone();
        store["error"].as_str().map(str::to_owned)
    });
    assert!(error.contains("store.db") && error.contains("could not write"), "{error}");
    served.limit_files("unlimited");
    ask(&served);
    until("the store works again", || {
        (served.get("/ready").json()["store"]["connected"] == true).then_some(())
    });
    let metrics = until("the gateway is quiet", || {
        let text = served.get("/metrics").text();
        (total(&text, "koboshi_open_requests") <= 1.0).then_some(text)
    });
    assert_eq!(whole(total(&metrics, "koboshi_answers_total")), 3 * requests, "{metrics}");
    assert!(
        metrics.contains(&format!("koboshi_answers_total{{kind=\"whole\"}} {}\n", 3 * requests)),
        "{metrics}"
    );
    let told = whole(total(&metrics, "koboshi_faults_total"));
    assert!(told > 0, "the primary falls");
    signal(&served.child, "-TERM");
    let ended = until("the gateway ends", || served.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
    let store = open(&path);
    assert_eq!(faults(&store), told, "the journal has every fault");
    store.check().unwrap();
}

#[test]
fn what_was_learned_outlives_a_kill() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let provider = json!({"kind": "openai", "base_url": upstream.url(), "keys": ["sk-own"]});
    let config = json!({
        "providers": {"one": provider, "two": provider, "three": provider, "good": provider},
        "routes": {
            "limited": ["one/rate-429?retry_after=60", "good/ok"],
            "spent": ["two/quota", "good/ok"],
            "sick": ["three/fail-503", "good/ok"],
        },
        "retry": {"initial_delay": "1ms", "max_delay": "5ms"},
        "request": {"quick_retry_delay": "2ms"},
        "breaker": {"open": {"initial": "10m", "max": "10m"}},
    });
    let path = folder.path().join("store.db");
    let mut served = Served::start(&write(folder.path(), &config), &path);
    let ask = |served: &Served, route: &str| {
        let mut body = chat(true);
        body["model"] = route.into();
        assert_whole(&served.post(&body, &[("x-request-id", &format!("before-{route}"))]), &body);
    };
    ask(&served, "limited");
    ask(&served, "spent");
    until("the breaker opens", || {
        ask(&served, "sick");
        (served.target("three/fail-503")["health"] == "open").then_some(())
    });
    let store = open(&path);
    until("the keeper has written", || {
        let records = store.load().unwrap().records;
        let has = |like: &dyn Fn(&Record) -> bool| records.iter().any(|(_, record)| like(record));
        let breaker =
            |record: &Record| matches!(record, Record::Breaker(shown) if shown.mode.name() == "open");
        let all = has(&|record| matches!(record, Record::Holds(_)))
            && has(&|record| matches!(record, Record::Cooldown(_)))
            && has(&breaker);
        (all && faults(&store) >= 3).then_some(())
    });
    let models = ["rate-429?retry_after=60", "quota", "fail-503"];
    let before = models.map(|model| upstream.calls(model));
    served.kill();
    served.start_again();
    for route in ["sick", "spent", "limited"] {
        ask(&served, route);
    }
    assert_eq!(models.map(|model| upstream.calls(model)), before, "no target in cooldown was asked");
    for (target, health) in [("one/rate-429?retry_after=60", "held"), ("three/fail-503", "open")] {
        assert_eq!(served.target(target)["health"], health);
    }
    let rests = served.target("two/quota")["health"].clone();
    assert!(rests == "cooling" || rests == "parked", "{rests}");
    let journal =
        run(&["journal", "--format", "json", "--what", "fault", "--store", &path.display().to_string()]);
    assert_eq!(journal.status, 0, "{}", journal.error);
    for route in ["limited", "spent", "sick"] {
        let id = format!("before-{route}");
        let entry = journal.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert!(entry.into_iter().any(|entry| entry["data"]["request"] == *id), "{id}: {}", journal.text);
    }
}
