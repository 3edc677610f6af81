//! Large bodies, and the memory that they leave behind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::time::Duration;

use common::served::Served;
use koboshi_testkit::{Client, until};
use serde_json::json;

const CLIENTS: usize = 6;
const BODY: usize = 20_000_000;
/// What may stay: caches, buffers, and what a heap keeps for the next request.
const STAYS: u64 = 48 << 20;
/// An unoptimised program takes ten seconds and more for six such bodies, on a busy machine several times that.
const PATIENCE: Duration = Duration::from_secs(300);

/// Memory is given back when the last of many large requests was answered.
#[test]
fn what_large_requests_took_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    std::fs::write(&config, "routes: {m: [sim/ok]}\nserve: {threads: 2, memory: 2GiB}\n").unwrap();
    let served = Served::start(&config, &folder.path().join("store.db"));
    let question =
        json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(BODY)}]}).to_string();
    served.post(&json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]}), &[]);
    let before = served.memory();
    for _ in 0..2 {
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    let mut client = Client::to(served.address);
                    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    client.stream.set_write_timeout(Some(PATIENCE)).unwrap();
                    client.send("POST", "/v1/chat/completions", &[], question.as_bytes());
                    assert_eq!(client.read().status, 200);
                });
            }
        });
    }
    until("the memory is given back", || (served.memory() < before + STAYS).then_some(()));
}
