//! A gateway that starts with a store that others have filled: what they learned holds from the first request on.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi_config::gateway::LogFormat;
use koboshi_gateway::{Gateway, Setup};
use koboshi_store::{
    Entry, Lease, Loaded, MemoryStore, Merged, Named, Query, Retention, Store, StoreError, Wake, Watch,
};
use koboshi_testkit::{Upstream, breathe, until};

/// A store that takes its time before it tells what it holds, as one behind a network does.
#[derive(Clone)]
struct Slow(MemoryStore);

impl Store for Slow {
    fn place(&self) -> &str {
        "slow"
    }
    fn merge(&self, changes: &[Named]) -> Result<Merged, StoreError> {
        self.0.merge(changes)
    }
    fn load(&self) -> Result<Loaded, StoreError> {
        self.0.load()
    }
    fn watch(&self, wake: Wake) -> Result<Box<dyn Watch>, StoreError> {
        (0..30).for_each(|_| breathe());
        self.0.watch(wake)
    }
    fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<Lease>, StoreError> {
        self.0.lease(name, holder, ttl, now)
    }
    fn renew(&self, lease: &Lease, ttl: Duration, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        self.0.renew(lease, ttl, now)
    }
    fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError> {
        self.0.release(lease, now)
    }
    fn cache_put(&self, key: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<bool, StoreError> {
        self.0.cache_put(key, body, ttl, now)
    }
    fn cache_get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.cache_get(key, now)
    }
    fn session_put(&self, id: &str, body: &[u8], ttl: Duration, now: Timestamp) -> Result<(), StoreError> {
        self.0.session_put(id, body, ttl, now)
    }
    fn session_get(&self, id: &str, now: Timestamp) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.session_get(id, now)
    }
    fn session_delete(&self, id: &str) -> Result<bool, StoreError> {
        self.0.session_delete(id)
    }
    fn append(&self, entries: &[Entry]) -> Result<(), StoreError> {
        self.0.append(entries)
    }
    fn query(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        self.0.query(query)
    }
    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<u64, StoreError> {
        self.0.prune(keep, now)
    }
}

#[test]
fn a_breaker_that_was_open_is_open_for_the_first_request_after_a_restart() {
    let upstream = Upstream::start();
    let mut config = config();
    config.providers.insert("one".to_owned(), provider(upstream.url()));
    config.routes.insert("m".to_owned(), route(&["one/fail-503", "one/ok"]));
    config.breaker.open.first = Duration::from_secs(600);
    config.breaker.open.cap = Duration::from_secs(600);
    let store = Slow(MemoryStore::default());
    let start = || {
        Gateway::start(Setup {
            config: config.clone(),
            store: Arc::new(store.clone()),
            node: "test".parse().unwrap(),
            lookup: Arc::new(|_: &str| None),
            zones: TimeZoneDatabase::none(),
            zone: TimeZone::UTC,
            log: None,
            log_format: LogFormat::Json,
            seed: 7,
            demo: false,
        })
        .unwrap()
    };
    let ask = |gateway: &Gateway| {
        let mut client = Client::to(gateway.address());
        client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
        assert_whole(&client.read(), &chat(false));
    };
    let first = start();
    until("the breaker opens and is shown", || {
        ask(&first);
        let open = |record: &koboshi_store::Record| matches!(record, koboshi_store::Record::Breaker(shown) if shown.mode.name() == "open");
        store.load().unwrap().records.iter().any(|(_, record)| open(record)).then_some(())
    });
    first.stop();
    let before = upstream.calls("fail-503");
    let second = start();
    ask(&second);
    assert_eq!(upstream.calls("fail-503"), before, "it was known to be down");
}
