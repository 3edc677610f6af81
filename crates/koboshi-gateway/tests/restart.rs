//! A gateway that starts with a store that others have filled: what they learned holds from the first request on.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::hooked::Hooked;
use crate::common::*;
use koboshi_gateway::Gateway;
use koboshi_store::{Record, Store};
use koboshi_testkit::{Upstream, pause, until};

#[test]
fn a_breaker_that_was_open_is_open_for_the_first_request_after_a_restart() {
    let upstream = Upstream::start();
    let mut config = config();
    config.providers.insert("one".to_owned(), provider(upstream.url()));
    config.routes.insert("m".to_owned(), route(&["one/fail-503", "one/ok"]));
    config.breaker.open.first = Duration::from_secs(600);
    config.breaker.open.cap = Duration::from_secs(600);
    // It takes its time before it tells what it holds, as one behind a network does.
    let store = Hooked::new(|call| {
        if call == "watch" {
            (0..30).for_each(|_| pause());
        }
        Ok(())
    });
    let start = || start_on(config.clone(), Arc::new(store.clone()), None).unwrap();
    let ask = |gateway: &Gateway| {
        let mut client = Client::to(gateway.address());
        client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
        assert_whole(&client.read(), &chat(false));
    };
    let first = start();
    until("the breaker opens and is shown", || {
        ask(&first);
        shows_an_open_breaker(&store).then_some(())
    });
    first.stop();
    let before = upstream.calls("fail-503");
    let second = start();
    ask(&second);
    assert_eq!(upstream.calls("fail-503"), before, "it was known to be down");
}

/// Whether a store has the record of an open breaker.
fn shows_an_open_breaker(store: &dyn Store) -> bool {
    let open = |record: &Record| matches!(record, Record::Breaker(shown) if shown.mode.name() == "open");
    store.load().unwrap().records.iter().any(|(_, record)| open(record))
}

#[test]
fn what_requests_learn_during_the_drain_reaches_the_store() {
    let upstream = Upstream::start();
    let mut config = config();
    config.providers.insert("one".to_owned(), provider(upstream.url()));
    config.routes.insert("m".to_owned(), route(&["one/fail-503?latency=400ms"]));
    config.breaker.consecutive = Some(1);
    config.breaker.open.first = Duration::from_secs(600);
    config.breaker.open.cap = Duration::from_secs(600);
    config.remedy.backoff.attempts = 1;
    config.serve.drain = Duration::from_secs(30);
    let store = Hooked::new(|_| Ok(()));
    let gateway = start_on(config, Arc::new(store.clone()), None).unwrap();
    let mut client = Client::to(gateway.address());
    client.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
    until("the request is at its provider", || (upstream.all_calls() > 0).then_some(()));
    assert!(!shows_an_open_breaker(&store));
    gateway.stop();
    assert_error(&client.read(), 503, "unavailable");
    assert!(shows_an_open_breaker(&store));
}
