//! A store that hangs under a gateway that caches: it costs cached answers, and nothing else.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::Path;

use common::served::Served;
use koboshi_testkit::chaos::total;
use koboshi_testkit::{Client, RedisServer, signal, until};
use serde_json::{Value, json};

const CLIENTS: u64 = 4;
/// Each is an answer of its own, which would be cached.
const QUESTIONS: u64 = 2000;
/// Threads beyond those of the start: the one that writes the cache, and room for those that come and go.
const MORE_THREADS: u64 = 4;
/// What waits for the store has a bound of 16 MB; the rest is the cache in memory and the allocator.
const MORE_MEMORY: u64 = 40 << 20;

/// A gateway that keeps every answer.
fn start(folder: &Path, store: &Path) -> Served {
    let config = json!({
        "serve": {"threads": 2, "drain_timeout": "1s"},
        "routes": {"m": ["sim/ok?chunks=2000"]},
        "degrade": {"cache": {"mode": "fallback"}},
        "store": {"cache": {"max_bytes": 1_000_000}},
        "log": {"level": "error"},
    });
    let path = folder.join("koboshi.yaml");
    // JSON is YAML.
    std::fs::write(&path, config.to_string()).unwrap();
    Served::start(&path, store)
}

fn question(number: u64) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": format!("question {number}")}]})
}

/// Sends this many requests, each of which must be answered.
fn ask(served: &Served, questions: u64) {
    std::thread::scope(|scope| {
        for first in 0..CLIENTS {
            scope.spawn(move || {
                let mut client = Client::to(served.address);
                for number in (first..questions).step_by(usize::try_from(CLIENTS).unwrap()) {
                    let body = question(number).to_string();
                    client.send("POST", "/v1/chat/completions", &[], body.as_bytes());
                    let answer = client.read();
                    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
                }
            });
        }
    });
}

/// A gateway whose store hangs serves every client with the threads that it has, buffers nothing without bound, and stops on a signal.
fn bears_a_stalled_store(store: &Path, stall: impl FnOnce()) {
    let folder = tempfile::tempdir().unwrap();
    let mut served = start(folder.path(), store);
    ask(&served, CLIENTS);
    let (threads, memory) = (served.threads(), served.memory());
    stall();
    ask(&served, QUESTIONS);
    let more = (served.threads().saturating_sub(threads), served.memory().saturating_sub(memory));
    assert!(more.0 <= MORE_THREADS, "{} threads more", more.0);
    assert!(more.1 <= MORE_MEMORY, "{} bytes more", more.1);
    let metrics = served.get("/metrics").text();
    assert!(total(&metrics, "koboshi_cache_dropped_total") > 0.0, "what was not kept is counted: {metrics}");
    signal(&served.child, "-TERM");
    let ended = until("the gateway ends without its store", || served.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn a_locked_file_costs_cached_answers_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    // The gateway makes the file before it is locked.
    let lock = std::cell::OnceCell::new();
    bears_a_stalled_store(&file, || {
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.busy_timeout(koboshi_testkit::DEADLINE).unwrap();
        connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
        lock.set(connection).unwrap();
    });
}

#[test]
fn a_redis_that_stands_still_costs_cached_answers_and_nothing_else() {
    let server = RedisServer::start();
    bears_a_stalled_store(Path::new(&server.url()), || server.pause());
    server.resume();
}
