//! A gateway that starts with a store that others have filled: what they learned holds from the first request on.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::hooked::Hooked;
use common::*;
use koboshi_gateway::Gateway;
use koboshi_store::Store;
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
        let open = |record: &koboshi_store::Record| matches!(record, koboshi_store::Record::Breaker(shown) if shown.mode.name() == "open");
        store.load().unwrap().records.iter().any(|(_, record)| open(record)).then_some(())
    });
    first.stop();
    let before = upstream.calls("fail-503");
    let second = start();
    ask(&second);
    assert_eq!(upstream.calls("fail-503"), before, "it was known to be down");
}
