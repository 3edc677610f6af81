//! A third of the primary's attempts fail, each in another way, under many clients: no client gets a failed, cut or mixed answer.
//!
//! Also where the store beside it is slow, hangs or is full; the file that is full is in the tests of the command.
//!
//! The short form of the long run. `KOBOSHI_CHAOS=20000` makes it as long as one likes. The same crowd before a real process,
//! which is killed meanwhile and whose memory is watched, is in the tests of the command.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::hooked::Hooked;
use common::*;
use koboshi::budget::RequestPolicy;
use koboshi_config::Config;
use koboshi_config::gateway::{CacheMode, Commit, RouteConfig};
use koboshi_sim::{Ask, play};
use koboshi_store::{EntryKind, Query, Record, RedisPolicy, RedisStore, Store};
use koboshi_testkit::chaos::{Crowd, primary, total};
use koboshi_testkit::{RedisServer, Upstream, pause, until};

const CLIENTS: usize = 64;

/// The settings of a gateway whose primary falls all the time.
fn under_chaos(config: &mut Config) {
    config.serve.threads = Some(2);
    config.serve.first_byte_hold = ms(200);
    config.serve.keep_alive_every = ms(100);
    config.routes.insert("prefilled".to_owned(), route(&["one/chaos", "two/ok?seed=1"]));
    model(config, "two/ok?seed=1", |facts| facts.prefill = Some(true));
    let complete = RouteConfig { commit: Commit::Complete, ..route(&["one/chaos", "two/ok"]) };
    config.routes.insert("complete".to_owned(), complete);
    config.breaker.open.first = ms(100);
    config.breaker.open.cap = ms(300);
    timeouts(config, "one", |limits| {
        limits.first_token = Some(ms(500));
        limits.unary = Some(ms(500));
        limits.idle = Some(ms(500));
    });
}

#[test]
fn clients_notice_no_failure_of_a_primary_of_any_kind() {
    let requests: u64 = std::env::var("KOBOSHI_CHAOS").map_or(400, |count| count.parse().unwrap());
    let stage = Stage::with(&["one/chaos", "two/ok"], under_chaos);
    stage.one.set("chaos", primary);
    Crowd::before(stage.gateway.address()).ask(CLIENTS, requests, |_| {});
    stage.wait_until_quiet();
    let text = stage.get("/metrics").text();
    let whole = format!("koboshi_answers_total{{kind=\"whole\"}} {requests}\n");
    assert!(text.contains(&whole), "{text}");
    let (one, two) = stage.calls();
    // The primary is out of use by the clock, so its share of the traffic depends on the machine.
    assert!(one > 0 && two > 0, "both were needed: {one}, {two}");
    let most = requests * u64::from(RequestPolicy::DEFAULT_ATTEMPTS);
    assert!(one + two <= most, "{one} and {two} attempts for {requests} requests");
    // A probe that was never given back would keep the breaker from closing.
    stage.one.set("chaos", |ask| play(&Ask { model: "ok", ..*ask }));
    until("the primary is back in use", || {
        assert_whole(&stage.ask(&chat(false)), &chat(false));
        (stage.breaker("one/chaos") == "closed").then_some(())
    });
    for target in stage.get("/koboshi/targets").json()["targets"].as_array().unwrap() {
        let gate = &target["gate"];
        assert!(gate["in_flight"] == 0 && gate["waiting"] == 0, "a permit leaked: {target}");
    }
    for kind in ["broken", "failed", "refused"] {
        assert!(!text.contains(&format!("koboshi_answers_total{{kind=\"{kind}\"}}")), "{kind}: {text}");
    }
}

/// Many clients before a primary that fails, while the store works, fails and works again. No client notices, and in the end the store has
/// everything that was learned. `fails`: the trouble is one that the gateway itself must notice.
fn clients_notice_no_store_trouble(
    store: &Arc<dyn Store>,
    fails: bool,
    trouble: impl FnOnce(),
    over: impl FnOnce(),
) {
    let requests = std::env::var("KOBOSHI_CHAOS").map_or(100, |count| count.parse::<u64>().unwrap() / 10);
    let (one, two) = (Upstream::start(), Upstream::start());
    let mut config = config();
    config.providers.insert("one".to_owned(), provider(one.url()));
    config.providers.insert("two".to_owned(), provider(two.url()));
    config.routes.insert("m".to_owned(), route(&["one/chaos", "two/ok"]));
    config.degrade.cache = CacheMode::Fallback;
    under_chaos(&mut config);
    one.set("chaos", primary);
    let gateway = start_on(config, Arc::clone(store), None).unwrap();
    let crowd = || Crowd::before(gateway.address()).ask(CLIENTS, requests, |_| {});
    let get = |path: &str| {
        let mut client = Client::to(gateway.address());
        client.send("GET", path, &[], b"");
        client.read()
    };
    crowd();
    trouble();
    crowd();
    let is_connected = || get("/ready").json()["store"]["connected"] == true;
    if fails {
        until("the gateway notices it", || (!is_connected()).then_some(()));
        crowd();
    }
    over();
    crowd();
    let text = until("the gateway is quiet", || {
        let text = get("/metrics").text();
        (total(&text, "koboshi_open_requests") <= 1.0).then_some(text)
    });
    let whole = format!("koboshi_answers_total{{kind=\"whole\"}} {}\n", (3 + u64::from(fails)) * requests);
    assert!(text.contains(&whole), "{text}");
    let faults = total(&text, "koboshi_faults_total");
    assert!(faults > 0.0, "the primary falls");
    until("the store has every fault and works", || {
        let query = Query { what: Some(EntryKind::Fault), limit: 1_000_000, ..Query::default() };
        // A server may have written what it did not answer to any more: then it is there twice.
        let kept = f64::from(u32::try_from(store.query(&query).ok()?.len()).unwrap());
        (kept >= faults && is_connected()).then_some(())
    });
    let breakers = store.load().unwrap().records;
    assert!(breakers.iter().any(|(_, record)| matches!(record, Record::Breaker(_))), "{breakers:?}");
}

#[test]
fn clients_notice_no_slow_store() {
    let slow = Arc::new(AtomicBool::new(false));
    let is_slow = Arc::clone(&slow);
    let store: Arc<dyn Store> = Arc::new(Hooked::new(move |_| {
        if is_slow.load(Ordering::Relaxed) {
            (0..10).for_each(|_| pause());
        }
        Ok(())
    }));
    clients_notice_no_store_trouble(
        &store,
        false,
        || slow.store(true, Ordering::Relaxed),
        || slow.store(false, Ordering::Relaxed),
    );
}

fn redis(server: &RedisServer) -> Arc<dyn Store> {
    Arc::new(RedisStore::new(&server.url(), RedisPolicy::default()).unwrap())
}

#[test]
fn clients_notice_no_store_that_hangs() {
    let server = RedisServer::start();
    clients_notice_no_store_trouble(&redis(&server), true, || server.pause(), || server.resume());
}

#[test]
fn clients_notice_no_full_store() {
    let server = RedisServer::start();
    clients_notice_no_store_trouble(&redis(&server), true, || server.fill(true), || server.fill(false));
}
