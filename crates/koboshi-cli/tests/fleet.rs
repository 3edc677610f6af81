//! What one gateway learns, the others know: several processes on one store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::served::Served;
use koboshi_sim::{Ask, play};
use koboshi_testkit::questions::chat;
use koboshi_testkit::{Answer, Authority, Client, RedisServer, Upstream, pause, until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Two gateways on one SQLite file, before one provider.
struct Fleet {
    one: Served,
    two: Served,
    provider: Upstream,
    _folder: TempDir,
}

impl Fleet {
    /// The first route asks this model of the provider; their breakers open after this many failures in a row.
    fn start(model: &str, failures: [u32; 2]) -> Self {
        let (folder, provider) = (tempfile::tempdir().unwrap(), Upstream::start());
        let gateway = |name: &str, failures: u32| {
            let config = folder.path().join(format!("{name}.yaml"));
            let text = json!({
                "providers": {"one": {"kind": "openai", "base_url": provider.url(), "keys": ["sk-own"]}},
                "routes": {"m": [format!("one/{model}"), "sim/ok"]},
                "breaker": {
                    "preset": "consecutive", "consecutive_failures": failures,
                    "open": {"initial": "10m", "max": "10m"},
                },
            });
            std::fs::write(&config, text.to_string()).unwrap();
            Served::start(&config, &folder.path().join("store.db"))
        };
        Self { one: gateway("one", failures[0]), two: gateway("two", failures[1]), provider, _folder: folder }
    }
}

fn breaker(gateway: &Served) -> String {
    let targets = gateway.get("/koboshi/targets").json();
    let all = targets["targets"].as_array().unwrap();
    let one = all.iter().find(|target| target["target"].as_str().unwrap().starts_with("one/"));
    one.map_or_else(String::new, |one| one["breaker"]["mode"].as_str().unwrap_or_default().to_owned())
}

/// The other node's opening refuses nothing here by itself; it makes the first failure count.
#[test]
fn an_open_breaker_of_one_gateway_makes_one_failure_enough_at_the_other() {
    let fleet = Fleet::start("fail-503", [2, 254]);
    until("the first gateway's breaker opens", || {
        fleet.one.post(&chat(false), &[]);
        (breaker(&fleet.one) == "open").then_some(())
    });
    assert_ne!(breaker(&fleet.two), "open", "the second gateway has seen no failure");
    let before = fleet.provider.all_calls();
    let mut asked = 0;
    until("the second gateway knows of it", || {
        fleet.two.get("/koboshi/status").text().contains("consecutive").then_some(())
    });
    until("the second gateway's breaker opens", || {
        fleet.two.post(&chat(false), &[]);
        asked += 1;
        pause();
        (breaker(&fleet.two) == "open").then_some(())
    });
    let failures = fleet.provider.all_calls() - before;
    // What is known is passed to the breaker a few times a second.
    assert!(failures < 100, "it opened by its own count: {failures} failures in {asked} requests");
}

#[test]
fn a_quota_that_one_gateway_meets_keeps_the_other_from_asking() {
    let fleet = Fleet::start("quota?retry_after=2h", [5, 5]);
    assert_eq!(fleet.one.post(&chat(false), &[]).header("x-koboshi-attempts"), Some("2"));
    until("the second gateway knows it", || {
        let rows = fleet.two.get("/koboshi/status").text();
        rows.contains("quota").then_some(())
    });
    let before = fleet.provider.all_calls();
    assert_eq!(fleet.two.post(&chat(false), &[]).header("x-koboshi-attempts"), Some("1"));
    assert_eq!(fleet.provider.all_calls(), before, "the provider was not asked");
}

/// How long the provider takes to answer, and the time between two requests that follow the first one.
const ANSWER_TIME: Duration = Duration::from_millis(250);
const STAGGER: Duration = Duration::from_millis(20);

/// How long the account rests after the first request.
const REST: Duration = Duration::from_secs(3);

/// What eight gateways share.
enum Sharing {
    File,
    Redis,
    Nothing,
}

/// Lets 64 clients of eight gateways want the one account whose rest, as stated by `fall`, is about to end. Returns when the provider was asked
/// after the rest.
fn burst_of(fall: &'static str, sharing: &Sharing) -> Vec<Duration> {
    let (folder, provider) = (tempfile::tempdir().unwrap(), Upstream::start());
    let first = OnceLock::new();
    provider.set("burst", move |ask| {
        let end = *first.get_or_init(|| ask.tally.elapsed) + REST;
        let model = match end.saturating_sub(ask.tally.elapsed) {
            Duration::ZERO => "ok?latency=250ms".to_owned(),
            left => format!("{fall}?retry_after={}ms", left.as_millis()),
        };
        play(&Ask { model: &model, ..*ask })
    });
    let config = folder.path().join("koboshi.yaml");
    let text = json!({
        "serve": {"threads": 1},
        "providers": {"one": {"kind": "openai", "base_url": provider.url(), "keys": ["sk-own"]}},
        "routes": {"m": ["one/burst"]},
        "gate": {"stagger": "20ms"},
        "cooldown": {"margin": {"min": "0s", "share": 0, "instant": "0s"}},
    });
    std::fs::write(&config, text.to_string()).unwrap();
    let redis = matches!(sharing, Sharing::Redis).then(RedisServer::start);
    let store = |nth: usize| match (&redis, sharing) {
        (Some(redis), _) => PathBuf::from(redis.url()),
        (None, Sharing::Nothing) => folder.path().join(format!("store-{nth}.db")),
        (None, _) => folder.path().join("store.db"),
    };
    let gateways: Vec<Served> = (0..8).map(|nth| Served::start(&config, &store(nth))).collect();
    let others = if matches!(sharing, Sharing::Nothing) { 1 } else { 8 };
    until("every gateway knows of the others", || {
        let line = format!("koboshi_gateways {others}");
        let knows = |gateway: &Served| gateway.get("/metrics").text().lines().any(|known| known == line);
        gateways.iter().all(knows).then_some(())
    });
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..64 {
            let (gateway, served) = (&gateways[client % 8], &served);
            scope.spawn(move || {
                until("the account is used again", || {
                    let status = gateway.post(&chat(false), &[]).status;
                    assert!([200, 429, 503].contains(&status), "{status}");
                    (status == 200).then_some(()).or_else(|| {
                        pause();
                        None
                    })
                });
                served.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(served.load(Ordering::Relaxed), 64);
    let all = provider.requests();
    let refused = all[0].at;
    // Requests that were on their way when the refusal came could not know of it.
    let mut after: Vec<Duration> =
        all.iter().map(|request| request.at).filter(|at| *at >= refused + REST / 2).collect();
    after.sort_unstable();
    let first = after[0];
    assert!(first >= refused + REST - Duration::from_millis(100), "{:?} after the refusal", first - refused);
    after
}

fn burst(fall: &'static str, sharing: &Sharing) {
    let after = burst_of(fall, sharing);
    let first = after[0];
    let of_first = |within: Duration| after.iter().filter(|at| **at < first + within).count();
    assert_eq!(of_first(Duration::from_millis(200)), 1, "one request goes first: {after:?}");
    for (nth, at) in after.iter().enumerate().skip(1) {
        let soonest = first + ANSWER_TIME + STAGGER * u32::try_from(nth).unwrap();
        assert!(
            *at + Duration::from_millis(5) >= soonest,
            "request {nth} came at {at:?}, before {soonest:?}: {after:?}"
        );
    }
}

#[test]
fn after_a_rate_limit_one_request_of_the_fleet_goes_first_and_the_others_follow_one_by_one() {
    burst("rate-429", &Sharing::File);
}

#[test]
fn after_a_quota_one_request_of_the_fleet_goes_first_and_the_others_follow_one_by_one() {
    burst("quota", &Sharing::File);
}

#[test]
fn after_a_rest_one_request_of_the_fleet_goes_first_on_a_redis_too() {
    burst("quota", &Sharing::Redis);
}

/// What the tests above would see if no gateway held the right to go first.
#[test]
fn without_a_common_store_each_gateway_sends_a_first_request_of_its_own() {
    let after = burst_of("quota", &Sharing::Nothing);
    let at_once = after.iter().filter(|at| **at < after[0] + Duration::from_millis(200)).count();
    assert!(at_once > 1, "{after:?}");
}

/// Two gateways with one config on one store, before one provider.
struct Pair {
    gateways: [Served; 2],
    provider: Upstream,
    _folder: TempDir,
    _redis: Option<RedisServer>,
}

impl Pair {
    fn start(redis: Option<RedisServer>, chain: &Value, more: &Value) -> Self {
        let (folder, provider) = (tempfile::tempdir().unwrap(), Upstream::start());
        let config = folder.path().join("koboshi.yaml");
        let mut text = json!({
            "serve": {"threads": 1},
            "providers": {"one": {"kind": "openai", "base_url": provider.url(), "keys": ["sk-own"]}},
            "routes": {"m": chain},
            "cooldown": {"margin": {"min": "0s", "share": 0, "instant": "0s"}},
        });
        for (key, value) in more.as_object().unwrap() {
            text[key] = value.clone();
        }
        std::fs::write(&config, text.to_string()).unwrap();
        let store = match &redis {
            Some(redis) => redis.url(),
            None => folder.path().join("store.db").display().to_string(),
        };
        let gateways = [0, 1].map(|_| Served::start(&config, Path::new(&store)));
        Self { gateways, provider, _folder: folder, _redis: redis }
    }

    /// On a file and on a Redis.
    fn on_both(chain: &Value, more: &Value, test: impl Fn(&Self)) {
        for redis in [None, Some(RedisServer::start())] {
            test(&Self::start(redis, chain, more));
        }
    }
}

fn order(gateway: &Served, path: &str, order: &Value) -> Answer {
    let mut client = Client::to(gateway.address);
    client.send("POST", path, &[], order.to_string().as_bytes());
    let answer = client.read();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

fn target_of(gateway: &Served) -> Option<String> {
    gateway.post(&chat(false), &[]).header("x-koboshi-target").map(str::to_owned)
}

#[test]
fn what_an_operator_orders_at_one_gateway_holds_at_the_other() {
    Pair::on_both(&json!(["one/ok", "sim/ok"]), &json!({}), |pair| {
        let [one, two] = &pair.gateways;
        let both = |what: &str, target: &str| {
            until(what, || (target_of(one)? == target && target_of(two)? == target).then_some(()));
        };
        both("the provider answers", "one/ok");
        let breaker = |action: &str| json!({"target": "one/ok", "action": action});
        order(one, "/koboshi/breakers", &breaker("open"));
        both("a breaker that is forced open holds everywhere", "sim/ok");
        assert_eq!(two.target("one/ok")["breaker"]["mode"], "forced_open");
        order(two, "/koboshi/breakers", &breaker("release"));
        both("any gateway can release it", "one/ok");
        order(one, "/koboshi/breakers", &breaker("open"));
        both("it is forced open again", "sim/ok");
        order(two, "/koboshi/cooldowns", &json!({"key": "target:one/ok", "action": "clear"}));
        both("resuming ends it", "one/ok");
        let cool = json!({"key": "provider:one", "action": "cool", "until": "2099-01-01T00:00:00Z"});
        order(two, "/koboshi/cooldowns", &cool);
        both("a cooldown holds everywhere", "sim/ok");
        order(one, "/koboshi/cooldowns", &json!({"key": "provider:one", "action": "clear"}));
        both("any gateway can end it", "one/ok");
    });
}

#[test]
fn a_gateway_without_requests_gives_the_right_to_go_first_to_the_other() {
    Pair::on_both(&json!(["one/first"]), &json!({}), |pair| {
        for asking in &pair.gateways {
            let first = OnceLock::new();
            pair.provider.set("first", move |ask| {
                let end = *first.get_or_init(|| ask.tally.elapsed) + Duration::from_millis(300);
                let is_over = ask.tally.elapsed >= end;
                play(&Ask { model: if is_over { "ok" } else { "quota?retry_after=300ms" }, ..*ask })
            });
            assert_eq!(pair.gateways[0].post(&chat(false), &[]).status, 429);
            until("the one that asks is served", || {
                (asking.post(&chat(false), &[]).status == 200).then_some(())
            });
        }
    });
}

#[test]
fn failures_in_a_row_count_over_all_gateways_and_park_a_key_for_all() {
    let quota =
        json!({"cooldown": {"quota": {"initial": "1ms", "max": "1ms", "park_after": 4}, "jitter": 0.0}});
    Pair::on_both(&json!(["one/quota?retry_after=none", "sim/ok"]), &quota, |pair| {
        for failure in 1..=4 {
            until("the provider is asked", || {
                pair.gateways[failure % 2].post(&chat(false), &[]);
                (pair.provider.all_calls() == failure as u64).then_some(())
            });
            until("both know of the failure", || {
                let knows = |gateway: &Served| {
                    let targets = gateway.targets();
                    let rests = targets.iter().flat_map(|target| target["rests"].as_array().unwrap());
                    rests.into_iter().any(|rest| rest["consecutive"] == failure)
                };
                pair.gateways.iter().all(knows).then_some(())
            });
        }
        for gateway in &pair.gateways {
            assert!(gateway.get("/koboshi/status").text().contains("parked"));
            gateway.post(&chat(false), &[]);
        }
        assert_eq!(pair.provider.all_calls(), 4, "a parked account is not asked");
    });
}

#[test]
fn a_fault_of_the_network_stays_at_its_gateway() {
    Pair::on_both(&json!(["one/ok", "sim/ok"]), &json!({}), |pair| {
        let [one, two] = &pair.gateways;
        pair.provider.stop_listening();
        until("the breaker of the first opens", || {
            assert_eq!(target_of(one).as_deref(), Some("sim/ok"));
            (breaker(one) == "open").then_some(())
        });
        // Something that is shared comes later, so everything before it has arrived.
        order(
            one,
            "/koboshi/cooldowns",
            &json!({"key": "model:gpt-x", "action": "cool", "until": "2099-01-01T00:00:00Z", "force": true}),
        );
        until("the other gateway has read the store", || {
            two.get("/koboshi/status").text().contains("gpt-x").then_some(())
        });
        pair.provider.listen_again();
        let answer = two.post(&chat(false), &[]);
        assert_eq!(answer.header("x-koboshi-target"), Some("one/ok"));
        assert_eq!(answer.header("x-koboshi-attempts"), Some("1"));
    });
}

#[test]
fn a_response_that_one_gateway_cached_answers_at_the_other() {
    let cache = json!({"degrade": {"cache": {"mode": "fallback"}}});
    Pair::on_both(&json!(["one/shared"]), &cache, |pair| {
        let [one, two] = &pair.gateways;
        pair.provider.set("shared", |ask| play(&Ask { model: "ok", ..*ask }));
        let answered = one.post(&chat(false), &[]);
        assert_eq!(answered.status, 200);
        pair.provider.set("shared", |ask| play(&Ask { model: "fail-503", ..*ask }));
        let cached = until("the other gateway has it", || {
            let answer = two.post(&chat(false), &[]);
            (answer.status == 200).then_some(answer)
        });
        assert_eq!(cached.header("x-koboshi-degraded"), Some("cache"));
        assert_eq!(cached.content(), answered.content());
    });
}

/// What the cookbook says that a user of the store must be allowed.
fn documented_user() -> String {
    let page = std::fs::read_to_string(common::repository("docs/cookbook.md")).unwrap();
    page.lines().find(|line| line.starts_with("ACL SETUSER")).unwrap().replace(">PASSWORD", ">hunter2")
}

#[test]
fn gateways_share_a_redis_over_tls_as_a_user_of_their_own() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let redis = RedisServer::start_secure(&authority);
    redis.order(&documented_user());
    let (trusted, provider) = (authority.write_to(folder.path()), Upstream::start());
    let config = folder.path().join("koboshi.yaml");
    let text = json!({
        "serve": {"threads": 1},
        "providers": {"one": {"kind": "openai", "base_url": provider.url(), "keys": ["sk-own"]}},
        "routes": {"m": ["one/quota?retry_after=2h", "sim/ok"]},
        "degrade": {"cache": {"mode": "fallback"}},
    });
    std::fs::write(&config, text.to_string()).unwrap();
    let address = redis.secure_url("koboshi", "hunter2");
    let store = Path::new(&address);
    let trusted = [("SSL_CERT_FILE", trusted.to_str().unwrap())];
    let [one, two] = [0, 1].map(|_| Served::start_with(&config, store, &trusted));
    assert_eq!(one.post(&chat(false), &[]).header("x-koboshi-attempts"), Some("2"));
    until("the second gateway knows it", || {
        two.get("/koboshi/status").text().contains("quota").then_some(())
    });
    assert_eq!(two.post(&chat(false), &[]).header("x-koboshi-attempts"), Some("1"));
    until("journal and cache are written", || {
        let entries = two.get("/koboshi/journal").text();
        entries.contains("quota").then_some(())
    });
    let ready = |gateway: &Served| gateway.get("/ready").json()["store"]["error"].clone();
    assert_eq!((ready(&one), ready(&two)), (Value::Null, Value::Null));
    let stranger = common::run(&["status", "--store", &address]);
    assert_eq!(stranger.status, 2, "{}", stranger.text);
    assert!(
        stranger.error.contains("certificate") && !stranger.error.contains("hunter2"),
        "{}",
        stranger.error
    );
}
