//! What the store and the journal say of breakers: over a restart, beside a start that failed, and after an operator's order.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::PathBuf;

use common::served::Served;
use common::{json, koboshi, run_with};
use koboshi_testkit::{signal, until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The first target fails, the second one answers; an open breaker stays open for the test.
const CONFIG: &str = "routes: {talk: [sim/fail-503, sim/ok]}\nserve: {threads: 1}\n\
                      breaker: {open: {initial: 10m, max: 10m}}\n";

struct Scene {
    _folder: TempDir,
    config: PathBuf,
    store: PathBuf,
    gateway: Served,
}

impl Scene {
    /// A gateway whose breaker of `sim/fail-503` is open, in the store too.
    fn with_open_breaker() -> Self {
        Self::with(CONFIG)
    }

    /// The same with this config.
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (config, store) = (folder.path().join("koboshi.yaml"), folder.path().join("store.db"));
        std::fs::write(&config, text).unwrap();
        let gateway = Served::start(&config, &store);
        let scene = Self { _folder: folder, config, store, gateway };
        until("the breaker opens", || {
            let body = json!({"model": "talk", "messages": [{"role": "user", "content": "hello"}]});
            let answer = scene.gateway.post(&body, &[]);
            (answer.header("x-koboshi-attempts") == Some("1")).then_some(())
        });
        until("the store has it", || (!scene.rows().is_empty()).then_some(()));
        scene
    }

    fn on_store(&self, args: &[&str]) -> common::Out {
        let args: Vec<&str> = [args, &["--store", self.store.to_str().unwrap(), "--lang", "en"]].concat();
        run_with(&args, &[], "")
    }

    /// The rows of `koboshi status`.
    fn rows(&self) -> Vec<Value> {
        json(&self.on_store(&["status", "--format", "json"]))["rows"].as_array().unwrap().clone()
    }

    /// Since when the breaker is open and why, as `koboshi status` says it of the store.
    fn since_and_why(&self) -> (Value, Value) {
        let row = until("the store has an open breaker", || {
            self.rows().into_iter().find(|row| row["state"] == "open")
        });
        (row["since"].clone(), row["why"].clone())
    }

    /// What the journal says of breakers.
    fn journal(&self) -> Vec<String> {
        let out = self.on_store(&["journal", "--what", "breaker", "--format", "json"]);
        let entries = out.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_restart_changes_neither_since_when_a_breaker_is_open_nor_why() {
    let mut scene = Scene::with_open_breaker();
    let before = scene.since_and_why();
    for _ in 0..2 {
        signal(&scene.gateway.child, "-TERM");
        until("the gateway ends", || scene.gateway.child.try_wait().unwrap());
        let told = scene.journal().len();
        scene.gateway.start_again();
        until("the journal has the restart", || (scene.journal().len() > told).then_some(()));
        assert_eq!(scene.since_and_why(), before);
        let shown = &scene.gateway.target("sim/fail-503")["breaker"];
        assert_eq!(shown["since"], before.0, "the gateway itself says the same: {shown}");
    }
    assert!(scene.journal().last().unwrap().ends_with("breaker closed → open (restored)"));
}

#[test]
fn a_start_that_fails_leaves_the_records_of_the_running_gateway_alone() {
    let scene = Scene::with_open_breaker();
    let (before, told) = (scene.since_and_why(), scene.journal());
    let address = scene.gateway.address.to_string();
    let files = [scene.config.to_str().unwrap(), scene.store.to_str().unwrap()];
    let args = ["serve", "--lang", "en", "--listen", &address, "--config", files[0], "--store", files[1]];
    let second = koboshi(&args).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(second.status.code() == Some(2) && said.contains("cannot listen"), "{said}");
    assert_eq!((scene.since_and_why(), scene.journal()), (before, told));
}

#[test]
fn a_breaker_that_an_operator_resumes_is_closed_and_nothing_else_in_between() {
    let scene = Scene::with_open_breaker();
    let resumed = scene.on_store(&["resume", "target:sim/fail-503"]);
    assert_eq!(resumed.status, 0, "{}", resumed.error);
    let last = until("the journal has it", || {
        scene
            .journal()
            .last()
            .filter(|last| last.ends_with(")"))
            .filter(|last| !last.contains("→ open"))
            .cloned()
    });
    assert_eq!(last, "sim/fail-503: breaker open → closed (released)");
    assert_eq!(scene.journal().len(), 2, "it opened and was closed: {:?}", scene.journal());
}

/// A breaker that tests its target is no longer open, and its row goes when an operator says so.
#[test]
fn a_probing_breaker_is_resumed_by_its_target_and_with_everything() {
    for order in [&["resume", "target:sim/fail-503"][..], &["resume", "--all"]] {
        let scene = Scene::with(&CONFIG.replace("10m", "10ms"));
        until("it may be tested", || scene.rows().iter().any(|row| row["state"] == "probing").then_some(()));
        let resumed = scene.on_store(order);
        assert!(
            resumed.status == 0 && resumed.text.contains("is available again"),
            "{order:?}: {}",
            resumed.text
        );
        assert_eq!(scene.rows(), Vec::<Value>::new(), "{order:?}");
    }
}
