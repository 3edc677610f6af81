//! A store that is slow, hangs, fails or is full: requests go on without it, and it is told of.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::sync::{Arc, Mutex};

use common::hooked::Hooked;
use common::*;
use koboshi_config::Config;
use koboshi_config::gateway::CacheMode;
use koboshi_gateway::Gateway;
use koboshi_store::Store;
use koboshi_testkit::{Upstream, until};

/// A gateway before one provider; the route `m` leads over this chain.
struct House {
    gateway: Gateway,
    _one: Upstream,
}

impl House {
    fn on(
        store: impl Store + 'static,
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
fn nobody_waits_for_a_cached_answer_of_a_store_that_hangs() {
    let (store, lock) = hanging(&["cache_get"]);
    let house =
        House::on(store, &["one/fail-503"], None, |config| config.degrade.cache = CacheMode::Fallback);
    let hang = lock.lock().unwrap();
    for _ in 0..3 {
        assert_error(&house.ask(), 503, "unavailable");
    }
    drop(hang);
}

#[test]
fn a_gateway_stops_though_every_call_to_its_store_hangs() {
    let (store, lock) =
        hanging(&["merge", "append", "session_put", "session_get", "cache_put", "news", "query"]);
    let house = House::on(store, &["one/ok"], None, |config| config.degrade.cache = CacheMode::Fallback);
    let hang = lock.lock().unwrap();
    assert_whole(&house.ask(), &chat(false));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        house.gateway.stop();
        tell.send(()).unwrap();
    });
    told.recv_timeout(koboshi_testkit::DEADLINE).expect("it must not wait for its store");
    drop(hang);
}

#[test]
fn operators_are_answered_though_the_store_hangs_and_it_holds_one_thread() {
    let (store, lock) = hanging(&["load"]);
    let house = House::on(store, &["one/ok"], None, |_| {});
    let hang = lock.lock().unwrap();
    let status = house.get("/koboshi/status");
    assert_eq!(status.status, 200);
    let trouble = status.json()["trouble"].clone();
    assert!(trouble.as_str().is_some_and(|why| why.contains("did not answer")), "{trouble}");
    drop(hang);
    until("it is read again", || house.get("/koboshi/status").json()["trouble"].is_null().then_some(()));
}
