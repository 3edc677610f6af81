//! A process that is out of file descriptors: that is no fault of a provider, and it is over when they are back.
//!
//! Alone in its binary: descriptors are the whole process's.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs::File;

use common::*;
use koboshi_store::{Entry, EntryKind, Query, Store};
use koboshi_testkit::until;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

/// Takes all descriptors that the process may have; they are back when this is dropped.
fn take_all_descriptors() -> Vec<File> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum }).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    taken
}

fn ask(client: &mut Client, model: &str, lang: &str) -> Answer {
    let mut body = chat(false);
    body["model"] = model.into();
    let headers = [("accept-language", lang)];
    client.send("POST", "/v1/chat/completions", &headers, body.to_string().as_bytes());
    client.read()
}

fn faults(stage: &Stage) -> Vec<Entry> {
    let query = Query { limit: 1000, ..Query::default() };
    let all = stage.store.query(&query).unwrap();
    all.into_iter().filter(|entry| entry.what == EntryKind::Fault).collect()
}

/// Waits until this client is the only one: what others held is free then, and cannot become so later.
fn until_alone(client: &mut Client) {
    until("no other client is connected", || {
        client.send("GET", "/metrics", &[], b"");
        let text = client.read().text();
        (gauge(&text, "koboshi_connections") == Some(1.0)).then_some(())
    });
}

/// A client whose connection is accepted.
fn accepted(stage: &Stage) -> Client {
    let mut client = stage.client();
    client.send("GET", "/health", &[], b"");
    assert_eq!(client.read().status, 200);
    client
}

#[test]
fn without_descriptors_no_provider_is_blamed_and_idle_connections_are_closed() {
    let stage = Stage::with(&["one/ok", "two/ok"], |config| {
        // A name, for which the resolver needs descriptors too.
        let named = config.providers["one"].base_url.clone().unwrap().replace("127.0.0.1", "localhost");
        config.providers.insert("named".to_owned(), provider(named));
        config.routes.insert("named".to_owned(), route(&["named/ok"]));
        config.routes.insert("first".to_owned(), route(&["one/ok"]));
        config.routes.insert("second".to_owned(), route(&["two/ok"]));
    });
    let mut client = accepted(&stage);
    let taken = take_all_descriptors();
    for model in ["m", "m", "m", "m", "m", "m", "named"] {
        let answer = ask(&mut client, model, "en");
        assert_error(&answer, 503, "unavailable");
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        let told = &error["error"]["koboshi"];
        assert_eq!(told["sub"], "resources", "{error}");
        assert!(told["suggestion"].as_str().unwrap().contains("ulimit -n"), "{error}");
        assert_eq!(answer.number("x-koboshi-sends"), Some(0), "{answer:?}");
    }
    let answer = ask(&mut client, "m", "ja");
    assert!(answer.text().contains("ファイル"), "{}", answer.text());
    drop(taken);

    let answer = ask(&mut client, "m", "en");
    assert_eq!((answer.status, answer.header("x-koboshi-target")), (200, Some("one/ok")), "{answer:?}");
    assert_eq!(stage.breaker("one/ok"), "closed");
    let known = until("the faults are in the journal", || Some(faults(&stage)).filter(|all| all.len() > 6));
    for entry in known {
        assert_eq!((entry.kind.as_deref(), entry.key.as_ref()), (Some("unavailable"), None), "{entry:?}");
        assert_eq!(entry.data.as_ref().unwrap()["origin"], "koboshi", "{entry:?}");
        assert!(entry.text.contains("Too many open files"), "{entry:?}");
    }
    let metrics = stage.get("/metrics").text();
    assert!(!metrics.contains("koboshi_faults_total{"), "no target has a fault: {metrics}");

    // There is one idle connection now, to the first provider. The second needs its descriptor.
    until_alone(&mut client);
    let taken = take_all_descriptors();
    let answer = ask(&mut client, "second", "en");
    assert_eq!((answer.status, answer.header("x-koboshi-target")), (200, Some("two/ok")), "{answer:?}");
    drop(taken);
}
