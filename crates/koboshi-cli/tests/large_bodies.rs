//! Large bodies, and the memory that they leave behind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::time::Duration;

use common::served::Served;
use koboshi_testkit::{Client, Upstream, until};
use serde_json::json;

const CLIENTS: usize = 6;
const BODY: usize = 20_000_000;
/// What may stay: caches, buffers, and what a heap keeps for the next request.
const STAYS: u64 = 48 << 20;
/// An unoptimised program takes ten seconds and more for six such bodies, on a busy machine several times that.
const PATIENCE: Duration = Duration::from_secs(300);

/// How much a request with a tool schema of this size may take at its worst: its body, what is sent, and a bounded part of the schema.
const SCHEMA: usize = 20_000_000;
const PEAK: u64 = 3 * SCHEMA as u64 + (48 << 20);

/// A tool schema that is one long union is not read as a whole: it would take eighty times its length.
#[test]
fn a_schema_of_megabytes_takes_little_more_than_its_own_length() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    let upstream = Upstream::start();
    let providers = json!({"other": {"kind": "anthropic", "base_url": upstream.url(), "keys": ["k"]}});
    let content = json!({"providers": providers, "routes": {"m": ["other/ok"]}, "serve": {"threads": 1, "memory": "2GiB"}});
    std::fs::write(&config, content.to_string()).unwrap();
    let served = Served::start(&config, &folder.path().join("store.db"));
    let hello = [json!({"role": "user", "content": "hello"})];
    assert_eq!(served.post(&json!({"model": "m", "messages": hello}), &[]).status, 200);
    let before = served.peak_memory();
    let branch = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
    let schema = format!("{{\"oneOf\":[{}{branch}]}}", format!("{branch},").repeat(SCHEMA / branch.len()));
    let question = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"hello"}}],"tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]}}"#
    );
    let mut client = Client::to(served.address);
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    client.stream.set_write_timeout(Some(PATIENCE)).unwrap();
    client.send("POST", "/v1/chat/completions", &[], question.as_bytes());
    let answer = client.read();
    assert_eq!((answer.status, answer.header("x-koboshi-translated")), (200, Some("messages")), "{answer:?}");
    let more = served.peak_memory() - before;
    assert!(more < PEAK, "{more} bytes more than before");
}

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
