//! Notices through the running binary, to receivers that fail: each is told once, also after a crash, also of a fleet.
//!
//! `KOBOSHI_NOTICE_STORM` sets how many requests the storm has (`scripts/test --long`: 10,000).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod channels;
#[path = "../common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::served::Served;
use common::supervised::{Home, mark};
use common::{json as document, run, scratch};
use hmac::{Hmac, Mac};
use koboshi_testkit::questions::chat;
use koboshi_testkit::{
    Delivery, RawReply, RawUpstream, Receiver, Reception, RedisServer, ScriptedAgent, Upstream, signal, until,
};
use serde_json::{Value, json};
use sha2::Sha256;
use tempfile::TempDir;

const SECRET: &str = "a-secret-of-the-pager-channel";

/// The model whose quota is used up, as notices name it.
const DRY: &str = "model:one/quota?retry_after=2h";
const BEGAN: &str = "model:one/quota?retry_after=2h start";
const OVER: &str = "model:one/quota?retry_after=2h end";

/// A folder with a store, and a provider whose allowance is used up.
struct Place {
    folder: TempDir,
    provider: Upstream,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), provider: Upstream::start() }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn gateway(&self, channels: &Value) -> Served {
        self.gateway_before(&self.provider.url(), "one/quota?retry_after=2h", channels)
    }

    fn gateway_before(&self, provider: &str, target: &str, channels: &Value) -> Served {
        self.gateway_with(provider, target, channels, &self.store())
    }

    fn gateway_with(&self, provider: &str, target: &str, channels: &Value, store: &Path) -> Served {
        let text = json!({
            "providers": {"one": {"kind": "openai", "base_url": provider, "keys": ["sk-own-key-of-the-gateway-4711"]}},
            "routes": {"m": [target, "sim/ok"]},
            "notify": {"group_wait": "0s", "settle": "0s", "channels": channels},
        });
        self.start(&text, store)
    }

    /// A gateway with this config.
    fn start(&self, config: &Value, store: &Path) -> Served {
        let file = self.folder.path().join("koboshi.yaml");
        std::fs::write(&file, config.to_string()).unwrap();
        Served::start(&file, store)
    }

    fn resume(&self, key: &str) {
        let out = run(&["resume", key, "--store", &self.store().display().to_string()]);
        assert_eq!(out.status, 0, "{}{}", out.text, out.error);
    }
}

fn pager(receiver: &Receiver) -> Value {
    json!({"pager": {"kind": "webhook", "url": receiver.url(), "secret": SECRET, "timeout": "1s"}})
}

/// Whether the signature is the one that a receiver computes by itself.
fn is_signed(delivery: &Delivery) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(
        format!("{}.{}.", delivery.header("webhook-id"), delivery.header("webhook-timestamp")).as_bytes(),
    );
    mac.update(&delivery.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    delivery.header("webhook-signature") == expected && delivery.json()["id"] == delivery.header("webhook-id")
}

fn wait_for(receiver: &Receiver, notice: &str) {
    until(&format!("{notice:?} in {:?}", receiver.notices()), || {
        receiver.notices().iter().any(|one| one == notice).then_some(())
    });
}

/// How many failures in a row open a breaker here: the most that a config can ask for.
const UNTIL_OPEN: usize = 254;

#[test]
fn a_storm_of_faults_is_told_once_for_each_target_and_its_end_with_what_it_cost() {
    let storm: usize = std::env::var("KOBOSHI_NOTICE_STORM").map_or(500, |count| count.parse().unwrap());
    // Each target takes so many failures before its breaker opens: together as many as the storm is to have.
    let names: Vec<String> = (0..storm.div_ceil(UNTIL_OPEN)).map(|number| format!("p{number}")).collect();
    let (place, receiver) = (Place::new(), Receiver::good());
    let provider = json!({"kind": "openai", "base_url": place.provider.url(), "keys": ["sk-own"]});
    let mut channels = pager(&receiver);
    // What is counted here are notices, and not how many of them share a message.
    channels["pager"]["max_per_hour"] = json!(100_000);
    let config = place.folder.path().join("koboshi.yaml");
    let text = json!({
        "providers": names.iter().map(|name| (name.clone(), provider.clone())).collect::<serde_json::Map<_, _>>(),
        "routes": names.iter().map(|name| (name.clone(), json!([format!("{name}/fail-503"), "sim/ok"]))).collect::<serde_json::Map<_, _>>(),
        "retry": {"max_attempts": 1},
        "breaker": {"preset": "consecutive", "consecutive_failures": UNTIL_OPEN, "open": {"initial": "1h", "max": "1h"}},
        "notify": {"group_wait": "0s", "settle": "0s", "channels": channels},
    });
    std::fs::write(&config, text.to_string()).unwrap();
    let gateway = Served::start(&config, &place.store());
    for name in &names {
        let mut question = chat(false);
        question["model"] = json!(name);
        for _ in 0..UNTIL_OPEN + 20 {
            assert_eq!(gateway.post(&question, &[]).status, 200);
        }
    }
    let about = |stage: &'static str| {
        let all: Vec<String> = receiver.notices().into_iter().filter(|one| one.ends_with(stage)).collect();
        (all.len() >= names.len()).then_some(all)
    };
    for subject in until("every start", || about(" start")) {
        place.resume(subject.trim_end_matches(" start"));
    }
    until("every end", || about(" end"));
    let told = receiver.notices();
    let once: BTreeSet<&String> = told.iter().collect();
    assert_eq!((told.len(), once.len()), (2 * names.len(), 2 * names.len()), "each stage once: {told:?}");
    assert!(told.len() < 2 * storm, "there were far more faults than notices");
    let deliveries = receiver.deliveries();
    assert!(deliveries.iter().all(is_signed));
    let each: Vec<Value> =
        deliveries.iter().flat_map(|one| one.json()["notices"].as_array().unwrap().clone()).collect();
    let faults: u64 = each.iter().filter_map(|one| one["cost"]["failed_attempts"].as_u64()).sum();
    let really = usize::try_from(place.provider.calls("fail-503")).unwrap();
    assert!(really >= storm, "{really} attempts failed");
    assert!(faults >= 1, "{faults} were counted");
}

#[test]
fn one_fault_is_told_with_its_code_and_its_end_with_what_it_cost() {
    let (place, receiver) = (Place::new(), Receiver::good());
    let gateway = place.gateway(&pager(&receiver));
    gateway.post(&chat(false), &[]);
    wait_for(&receiver, BEGAN);
    place.resume(DRY);
    wait_for(&receiver, OVER);
    let deliveries = receiver.deliveries();
    let (start, end) = (&deliveries[0].json()["notices"][0], &deliveries[1].json()["notices"][0]);
    assert_eq!((&start["severity"], &start["code"]), (&json!("critical"), &json!("KBS-3002")));
    assert_eq!((&start["kind"], &start["episode"]), (&json!("quota_exceeded"), &end["episode"]));
    // The attempt that began it is noted a moment before the rest that it caused.
    assert_eq!(end["cost"]["failed_attempts"], 1, "{end}");
    assert!(end["ended"].as_str().is_some() && start["until"].as_str().is_some());
    assert!(deliveries[0].json()["node"].as_str().unwrap().starts_with("gateway/"));
}

#[test]
fn a_receiver_that_fails_hangs_and_redirects_gets_the_same_message_until_it_takes_it_and_delays_no_one() {
    let (place, elsewhere, other) = (Place::new(), Receiver::good(), Receiver::good());
    let stranger = elsewhere.url();
    let receiver = Receiver::start(move |before| match before {
        0 => Reception::Status(503),
        1 => Reception::Hang,
        2 => Reception::Redirect(stranger.clone()),
        _ => Reception::Status(200),
    });
    let file = place.folder.path().join("told");
    let mut channels = pager(&receiver);
    channels["other"] = json!({"kind": "slack", "url": other.url(), "channel": "#ops", "language": "ja"});
    channels["script"] = json!({
        "kind": "command",
        "command": ["sh", "-c", format!("cat > {0}.new; env >> {0}.new; mv {0}.new {0}", file.display())],
    });
    let gateway = place.gateway(&channels);
    gateway.post(&chat(false), &[]);
    until("four attempts", || (receiver.deliveries().len() == 4).then_some(()));
    let deliveries = receiver.deliveries();
    let ids: BTreeSet<&str> = deliveries.iter().map(|one| one.header("webhook-id")).collect();
    assert_eq!(ids.len(), 1, "each time the same message");
    assert!(deliveries.iter().all(|one| is_signed(one) && one.body == deliveries[0].body));
    assert!(elsewhere.deliveries().is_empty(), "a redirect is not followed");
    // The other channels had theirs meanwhile, each in its own form.
    let slack = until("Slack", || other.deliveries().first().cloned()).json();
    assert_eq!((&slack["channel"], &slack["icon_emoji"]), (&json!("#ops"), &json!(":warning:")));
    assert!(slack["text"].as_str().unwrap().contains(&format!("[重大] KBS-3002: {DRY}")), "{slack}");
    assert_eq!(slack["blocks"][0]["type"], "header");
    let told = until("the program", || std::fs::read_to_string(&file).ok());
    assert!(told.contains(&format!("\"{DRY}\"")) && told.contains("KOBOSHI_NOTICE_ID=msg_"), "{told}");
    place.resume(DRY);
    wait_for(&receiver, OVER);
    assert_eq!(
        receiver.notices().iter().filter(|one| *one == BEGAN).count(),
        4,
        "once it arrived it is not sent again"
    );
}

#[test]
fn a_kill_between_decided_and_sent_loses_nothing_and_the_repeat_has_the_same_id() {
    let place = Place::new();
    let receiver =
        Receiver::start(|before| if before == 0 { Reception::Hang } else { Reception::Status(200) });
    let mut channels = pager(&receiver);
    channels["pager"]["timeout"] = json!("1h");
    let mut gateway = place.gateway(&channels);
    gateway.post(&chat(false), &[]);
    until("it is on its way", || (receiver.deliveries().len() == 1).then_some(()));
    gateway.kill();
    gateway.start_again();
    until("it is sent again", || (receiver.deliveries().len() == 2).then_some(()));
    // A third would come before the end.
    place.resume(DRY);
    wait_for(&receiver, OVER);
    assert_eq!(receiver.notices(), [BEGAN, BEGAN, OVER]);
    let deliveries = receiver.deliveries();
    assert_eq!(deliveries[0].header("webhook-id"), deliveries[1].header("webhook-id"));
    assert_eq!(deliveries[0].body, deliveries[1].body);
    // A stop in good order repeats nothing either.
    signal(&gateway.child, "-TERM");
    let ended = until("it ends", || gateway.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
    gateway.start_again();
    gateway.post(&chat(false), &[]);
    until("a new episode", || (receiver.notices().len() == 4).then_some(()));
    let first = &deliveries[0].json()["notices"][0];
    assert_ne!(receiver.deliveries()[3].json()["notices"][0]["episode"], first["episode"]);
}

#[test]
fn two_gateways_on_one_store_tell_once() {
    let (place, receiver) = (Place::new(), Receiver::good());
    let channels = pager(&receiver);
    let (one, two) = (place.gateway(&channels), place.gateway(&channels));
    for gateway in [&one, &two, &one, &two] {
        gateway.post(&chat(false), &[]);
    }
    wait_for(&receiver, BEGAN);
    place.resume(DRY);
    wait_for(&receiver, OVER);
    assert_eq!(receiver.notices(), [BEGAN, OVER]);
}

#[test]
fn on_a_redis_the_other_gateway_sends_what_a_killed_one_had_begun_to_send() {
    let (redis, place) = (RedisServer::start(), Place::new());
    let receiver =
        Receiver::start(|before| if before == 0 { Reception::Hang } else { Reception::Status(200) });
    let mut channels = pager(&receiver);
    channels["pager"]["timeout"] = json!("1h");
    let store = PathBuf::from(redis.url());
    let mut gateways = [0, 1]
        .map(|_| place.gateway_with(&place.provider.url(), "one/quota?retry_after=2h", &channels, &store));
    gateways[0].post(&chat(false), &[]);
    let first = until("it is on its way", || receiver.deliveries().first().cloned());
    // The process that made it is the one that sends.
    let maker = first.json()["node"].as_str().unwrap().to_owned();
    let holder = gateways.iter().position(|one| maker == format!("gateway/{}", one.address)).unwrap();
    gateways[holder].kill();
    until("the other one sends it", || (receiver.deliveries().len() == 2).then_some(()));
    let deliveries = receiver.deliveries();
    assert_eq!(deliveries[1].header("webhook-id"), deliveries[0].header("webhook-id"));
    assert_eq!(deliveries[1].body, deliveries[0].body, "as it was made");
    let other = &gateways[1 - holder];
    // Of two gateways on one Redis a command asks one: so says the notice too.
    let out = run(&["resume", DRY, "--url", &format!("http://{}", other.address)]);
    assert_eq!(out.status, 0, "{}{}", out.text, out.error);
    wait_for(&receiver, OVER);
    assert_eq!(receiver.notices(), [BEGAN, BEGAN, OVER]);
}

#[test]
fn planted_secrets_and_prompts_are_in_no_notice() {
    const PLANTED: &str = "sk-proj-PLANTEDplantedPLANTEDplanted0123456789abcdefABCDEF";
    const PROMPT: &str = "my grandmother's diagnosis is hypertrophic cardiomyopathy";
    let (place, receiver, other) = (Place::new(), Receiver::good(), Receiver::good());
    let provider = RawUpstream::start(|_| {
        let body = json!({"error": {
            "message": format!("Incorrect API key provided: {PLANTED}. Your prompt was: {PROMPT}"),
            "type": "invalid_request_error", "code": "invalid_api_key",
        }});
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}",
            body.len()
        );
        RawReply::Keep(format!("{head}\r\n\r\n{body}"))
    });
    let mut channels = pager(&receiver);
    channels["chat"] = json!({"kind": "slack", "url": other.url()});
    let gateway = place.gateway_before(&provider.url(), "one/m", &channels);
    let mut question = chat(false);
    question["messages"] = json!([{"role": "user", "content": PROMPT}]);
    gateway.post(&question, &[]);
    let bodies = until("both channels", || {
        let both = [receiver.deliveries().first()?.clone(), other.deliveries().first()?.clone()];
        Some(both.map(|one| String::from_utf8(one.body).unwrap()))
    });
    for body in bodies {
        assert!(body.contains("KBS-2001"), "{body}");
        for secret in [PLANTED, "PLANTED", PROMPT, "cardiomyopathy", "sk-own-key", SECRET, "of-a-secret-name"]
        {
            assert!(!body.contains(secret), "{secret}: {body}");
        }
    }
}

#[test]
fn agents_that_a_supervisor_parks_are_told_of_without_a_gateway() {
    let receiver = Receiver::good();
    let notify = json!({"group_wait": "0s", "settle": "0s", "channels": pager(&receiver)});
    let more = format!(
        "notify: {notify}\ncooldown: {{max_starts: 100000, error: {{initial: 20ms, max: 20ms, park_after: 2}}}}\n"
    );
    let mut home = Home::new(&more);
    let agent = ScriptedAgent::new(&mark("parked")).complains("it does not work").exits(1);
    home.agent("broken", &agent, json!({}));
    let supervisor = home.supervise();
    // Whether it was seen before it was parked depends on the machine; that it is parked is told in either case.
    let parked = until("it is parked", || {
        let all: Vec<Value> = receiver
            .deliveries()
            .iter()
            .flat_map(|one| one.json()["notices"].as_array().unwrap().clone())
            .collect();
        all.into_iter().find(|one| one["trigger"] == "park")
    });
    assert_eq!(
        (&parked["subject"], &parked["severity"]),
        (&json!("agent:broken/default"), &json!("critical"))
    );
    assert!(parked["lines"].to_string().contains("koboshi resume agent:broken/default --store "), "{parked}");
    supervisor.end();
}

/// The hash of the key `test`.
const CLIENT: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn a_budget_that_is_spent_is_told_once_as_critical() {
    let (place, receiver) = (Place::new(), Receiver::good());
    let prices = place.folder.path().join("prices.yaml");
    std::fs::write(&prices, "prices: [{match: '*', input: 1, output: 2}]").unwrap();
    let config = place.folder.path().join("koboshi.yaml");
    let mut channels = pager(&receiver);
    (channels["pager"]["triggers"], channels["pager"]["severity"]) = (json!(["budget"]), json!("critical"));
    let text = json!({
        "providers": {"one": {"kind": "openai", "base_url": place.provider.url(), "keys": ["sk-own"]}},
        "routes": {"m": ["one/ok"], "quota": ["one/quota"]},
        "models_file": prices,
        "keys": {"laptop": {"sha256": CLIENT, "budget": {"day": 0.0001}}},
        "notify": {"group_wait": "0s", "channels": channels},
    });
    std::fs::write(&config, text.to_string()).unwrap();
    let gateway = Served::start(&config, &place.store());
    let ask = |model: &str| {
        let mut question = chat(false);
        question["model"] = json!(model);
        gateway.post(&question, &[("authorization", "Bearer test")]).status
    };
    // Not of what the channel wants to hear.
    ask("quota");
    until("the budget is spent", || (ask("m") == 429).then_some(()));
    wait_for(&receiver, "client:laptop/day start");
    let notices = receiver.deliveries()[0].json()["notices"].clone();
    assert_eq!((&notices[0]["trigger"], &notices[0]["severity"]), (&json!("budget"), &json!("critical")));
    assert!(notices[0]["title"].as_str().unwrap().contains("laptop"), "{notices}");
    assert_eq!(receiver.notices(), ["client:laptop/day start"]);
}

#[test]
fn a_test_notice_says_whether_it_was_taken() {
    let (good, bad) = (Receiver::good(), Receiver::start(|_| Reception::Status(403)));
    let channels = json!({
        "good": {"kind": "webhook", "url": good.url(), "secret": SECRET},
        "bad": {"kind": "slack", "url": bad.url()},
        "away": {"kind": "webhook", "url": "http://127.0.0.1:9/hook-of-a-secret-name"},
        "missing": {"kind": "command", "command": ["/there/is/no/such/program"]},
        "angry": {"kind": "command", "command": ["sh", "-c", "echo no such user >&2; exit 3"]},
    });
    let config = scratch("notify-test.yaml", &json!({"notify": {"channels": channels}}).to_string());
    let test = |channel: &str| run(&["notify", "test", channel, "--config", &config]);
    let out = test("good");
    assert_eq!(
        (out.status, out.text.as_str()),
        (0, "good: the test notice was taken (webhook)\n"),
        "{}",
        out.error
    );
    let delivery = &good.deliveries()[0];
    assert!(is_signed(delivery) && delivery.json()["type"] == "koboshi.test");
    for (channel, why) in [
        ("bad", "the server answered 403"),
        ("away", "refused"),
        ("missing", "/there/is/no/such/program cannot be started"),
        ("angry", "no such user"),
    ] {
        let out = test(channel);
        assert_eq!(out.status, 1, "{}", out.error);
        assert!(out.text.contains(why) && !out.text.contains("of-a-secret-name"), "{channel}: {}", out.text);
    }
    let out = run(&["notify", "test", "bad", "--config", &config, "--format", "json"]);
    let said = document(&out);
    assert_eq!((out.status, &said["delivered"], &said["kind"]), (1, &json!(false), &json!("slack")));
    let out = test("pagr");
    assert_eq!(out.status, 2);
    assert!(
        out.error.contains("pagr") && out.error.contains("angry, away, bad, good, missing"),
        "{}",
        out.error
    );
    let out = run(&["notify", "test", "good", "--config", &config, "--lang", "ja"]);
    assert!(out.text.contains("テスト通知を送信しました"), "{}", out.text);
}
