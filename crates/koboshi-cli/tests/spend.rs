//! What answers cost, as the gateway counts it, against what the provider says that it gave; and budgets of keys, on a fleet.
//!
//! `KOBOSHI_CHAOS=10000` makes the first test long.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::served::Served;
use common::{json, run};
use koboshi::chance::Seed;
use koboshi_sim::{Ask, Beat, Beats, End, Head, Play, play};
use koboshi_testkit::dialect::{body, path, read_answer, read_body};
use koboshi_testkit::questions::chat;
use koboshi_testkit::{Answer, Client, RedisServer, Upstream, signal, until};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

const DIALECTS: [Dialect; 4] = [Dialect::Chat, Dialect::Responses, Dialect::Messages, Dialect::Gemini];

/// Ways to fall of which another target or attempt makes an answer.
const WAYS: [&str; 12] = [
    "fail-500", "fail-503", "overloaded", "reset", "cut?after=0", "cut?after=2", "cut?after=17&bytes=11",
    "half", "fin?after=9", "in-band-error?after=1", "broken-tool-args?form=truncated", "html",
];

/// What a provider said that it gave.
#[derive(Debug, Clone, Copy, Default)]
struct Stated {
    answers: u64,
    input: u64,
    output: u64,
    /// Answers that it began and did not end.
    cut: u64,
}

/// Plays, and adds up what is stated in answers that are sent to their end.
fn counted(stated: &Arc<Mutex<Stated>>, ask: &Ask<'_>, model: &str) -> Play {
    let Play { head, beats, end } = play(&Ask { model, ..*ask });
    let beats: Vec<Beat> = beats.collect();
    if let Head::Answer { status: 200, headers, .. } = &head {
        let is_stream = headers.iter().any(|(_, value)| value.contains("event-stream"));
        let bytes: Vec<u8> = beats.iter().flat_map(|beat| beat.bytes.to_vec()).collect();
        let mut stated = stated.lock().unwrap();
        let is_whole = end == End::Clean && !model.starts_with("html") && !model.starts_with("in-band");
        let usage = is_whole
            .then(|| read_body(ask.dialect, is_stream, &bytes))
            .and_then(|read| read.usage.filter(|_| read.finish.is_some()));
        match usage {
            Some(usage) => {
                stated.answers += 1;
                stated.input += usage.input;
                stated.output += usage.output;
            }
            None => stated.cut += 1,
        }
    }
    Play { head, beats: Beats::from(beats), end }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A dollar for a million tokens sent, two for those received.
const PRICES: &str = "prices: [{match: '*', input: 1, output: 2}]";

fn providers(upstream: &Upstream) -> Value {
    let of = |kind: &str| json!({"kind": kind, "base_url": upstream.url(), "keys": ["sk-own"]});
    json!({"one": of("openai"), "anth": of("anthropic"), "gem": of("gemini")})
}

fn provider_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Responses => "one",
        Dialect::Messages => "anth",
        Dialect::Gemini => "gem",
    }
}

fn ask(client: &mut Client, dialect: Dialect, route: &str, stream: bool, headers: &[(&str, &str)]) -> Answer {
    let mut question = chat(stream);
    question["model"] = route.into();
    let headers = [&[("content-type", "application/json")], headers].concat();
    let body = body(dialect, &question);
    client.send("POST", &path(dialect, route, stream), &headers, body.as_bytes());
    client.read()
}

#[test]
fn spend_agrees_to_the_token_with_what_the_provider_stated_in_every_dialect() {
    let requests: u64 = std::env::var("KOBOSHI_CHAOS").map_or(400, |count| count.parse().unwrap());
    let (upstream, stated) = (Upstream::start(), Arc::new(Mutex::new(Stated::default())));
    let (one, two) = (Arc::clone(&stated), Arc::clone(&stated));
    upstream.set("chaos", move |ask| {
        let seed = Seed::new(22).nth(ask.tally.nth);
        let way = WAYS[usize::try_from(ask.tally.nth).unwrap() % WAYS.len()];
        counted(&one, ask, if seed.fraction() < 0.4 { way } else { "ok" })
    });
    upstream.set("ok", move |ask| counted(&two, ask, "ok"));
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    let routes: serde_json::Map<String, Value> = DIALECTS
        .iter()
        .map(|dialect| {
            let provider = provider_of(*dialect);
            (provider.to_owned(), json!([format!("{provider}/chaos"), "one/ok"]))
        })
        .collect();
    let config = json!({
        "providers": providers(&upstream),
        "routes": routes,
        "models_file": prices,
        "retry": {"initial_delay": "1ms", "max_delay": "5ms"},
        "request": {"quick_retry_delay": "2ms"},
        "retry_budget": {"min_per_second": 1000},
        "breaker": {"open": {"initial": "50ms", "max": "100ms"}},
    });
    let config = write(folder.path(), "koboshi.yaml", &config.to_string());
    let store = folder.path().join("store.db");
    let mut served = Served::start(&config, &store);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = Client::to(served.address);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return;
                    }
                    let dialect = DIALECTS[usize::try_from(number % 4).unwrap()];
                    let agent = if number.is_multiple_of(3) { "reviewer/app" } else { "writer/app" };
                    let stream = (number / 4).is_multiple_of(2);
                    let answer = ask(
                        &mut client,
                        dialect,
                        provider_of(dialect),
                        stream,
                        &[("x-koboshi-agent", agent)],
                    );
                    // A stream that cannot be continued ends with an error; its connection may be closed.
                    let read = read_answer(dialect, &answer);
                    if answer.status != 200 || read.error || answer.broken.is_some() {
                        client = Client::to(served.address);
                    }
                }
            });
        }
    });
    let url = format!("http://{}", served.address);
    let report =
        |by: &str, place: &[&str]| json(&run(&[&["spend", "--by", by, "--format", "json"], place].concat()));
    let of_gateway = until("everything is counted", || {
        let report = report("model", &["--url", &url]);
        let stated = *stated.lock().unwrap();
        let total = &report["total"];
        let count = |name: &str| total[name].as_u64().unwrap();
        let exact = count("input_tokens") + count("output_tokens") - count("estimated_tokens");
        (exact == stated.input + stated.output).then_some(report.clone()).or_else(|| {
            eprintln!("{exact} of {stated:?}: {total}");
            None
        })
    });
    let stated = *stated.lock().unwrap();
    let total = of_gateway["total"].clone();
    let count = |name: &str| total[name].as_u64().unwrap();
    eprintln!("{requests} requests, {stated:?}, {total}");
    assert!(stated.answers > requests / 2 && stated.cut > 0, "{stated:?}");
    assert!(count("input_tokens") >= stated.input && count("output_tokens") >= stated.output, "{total}");
    assert!((1..=stated.cut).contains(&count("estimated_attempts")), "{stated:?} {total}");
    assert!(count("attempts") <= upstream.all_calls() && count("lost_attempts") > 0, "{total}");
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let cost = (count("input_tokens") + 2 * count("output_tokens")) as f64 / 1e6;
    assert!((total["cost"].as_f64().unwrap() - cost).abs() < 1e-9, "{total}");
    assert_eq!(count("unpriced_tokens"), 0);
    signal(&served.child, "-TERM");
    until("the gateway ends", || served.child.try_wait().unwrap());
    let place = store.display().to_string();
    for by in ["key", "model", "route", "agent", "day"] {
        let of_store = report(by, &["--store", &place, "--config", &config.display().to_string()]);
        assert_eq!(of_store["total"], total, "by {by}, and from the store alone");
    }
    let agents = report("agent", &["--store", &place]);
    let names: Vec<_> = agents["rows"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
    assert!(names.contains(&json!("reviewer/app")) && names.contains(&json!("writer/app")), "{names:?}");
    let csv = run(&["spend", "--by", "route", "--format", "csv", "--store", &place]);
    assert_eq!(csv.text.lines().count(), 4, "{}", csv.text);
    assert!(csv.text.starts_with("route,attempts,input_tokens,"), "{}", csv.text);
    let text = run(&["spend", "--store", &place, "--lang", "ja"]);
    assert!(text.text.contains("local") && text.text.contains("推定値"), "{}{}", text.text, text.error);
}

/// The SHA-256 of `test` and of `admin`.
const CLIENT: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const ADMIN: &str = "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918";
const KEY: (&str, &str) = ("authorization", "Bearer test");

fn with_key(upstream: &Upstream, key: &Value, prices: &Path) -> Value {
    let mut laptop = key.clone();
    laptop["sha256"] = CLIENT.into();
    json!({
        "providers": providers(upstream),
        "routes": {"one": ["one/ok"], "anth": ["anth/ok"], "gem": ["gem/ok"]},
        "keys": {"laptop": laptop},
        "admin": {"sha256": ADMIN},
        "spend": {"zone": "Asia/Tokyo"},
        "models_file": prices,
    })
}

#[test]
fn two_gateways_on_one_redis_keep_a_budget_and_say_when_it_is_renewed_in_every_dialect() {
    let (upstream, redis) = (Upstream::start(), RedisServer::start());
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    let config = with_key(&upstream, &json!({"budget": {"day": 0.01, "month": 1000}}), &prices);
    let config = write(folder.path(), "koboshi.yaml", &config.to_string());
    let store = PathBuf::from(redis.url());
    let fleet = [Served::start(&config, &store), Served::start(&config, &store)];
    let answered = AtomicU64::new(0);
    let asked = |client: &mut Client| {
        let answer = ask(client, Dialect::Chat, "one", false, &[KEY]);
        answered.fetch_add(u64::from(answer.status == 200), Ordering::Relaxed);
        (answer.status == 429).then_some(())
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::to(fleet[0].address);
                until("the budget is spent", || asked(&mut client));
            });
        }
    });
    let report = || {
        let (store, config) = (redis.url(), config.display().to_string());
        json(&run(&["spend", "--format", "json", "--store", &store, "--config", &config]))
    };
    let is_all = |report: &Value| report["total"]["attempts"] == answered.load(Ordering::Relaxed);
    until("everything is counted", || is_all(&report()).then_some(()));
    // The other gateway was not asked yet. By itself it would answer as many again: one that is asked now and then, with a look at the store
    // between, knows long before that it must not.
    let of_first = answered.load(Ordering::Relaxed);
    let mut client = Client::to(fleet[1].address);
    until("the other gateway knows", || {
        assert!(report()["budgets"][0]["share"].as_f64().unwrap() >= 1.0);
        asked(&mut client)
    });
    let of_other = answered.load(Ordering::Relaxed) - of_first;
    assert!(of_other < of_first / 2, "{of_other} after {of_first}");
    let spent = until("everything is counted", || {
        let report = report();
        is_all(&report).then(|| report["budgets"][0].clone())
    });
    eprintln!("{} answers, {spent}", answered.load(Ordering::Relaxed));
    assert_eq!((&spent["key"], &spent["period"]), (&json!("laptop"), &json!("day")));
    assert!(spent["share"].as_f64().unwrap() >= 1.0, "{spent}");
    // It stays spent, at both, in every dialect; nothing is sent to the provider, and nothing rests.
    let calls = upstream.all_calls();
    for gateway in &fleet {
        let mut client = Client::to(gateway.address);
        for (dialect, stream) in DIALECTS.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)])
        {
            let answer = ask(&mut client, dialect, provider_of(dialect), stream, &[KEY]);
            let text = answer.text();
            assert_eq!(answer.status, 429, "{dialect:?}: {text}");
            assert!(text.contains("is spent") && text.contains("00:00 JST"), "{dialect:?}: {text}");
            let koboshi = answer.json();
            let koboshi = koboshi
                .pointer("/error/koboshi")
                .or_else(|| koboshi.get("koboshi"))
                .cloned()
                .unwrap_or_default();
            assert_eq!(
                (&koboshi["kind"], &koboshi["origin"]),
                (&json!("quota_exceeded"), &json!("koboshi")),
                "{text}"
            );
            assert!(koboshi["retryAfterSeconds"].as_u64().unwrap() > 0, "{text}");
            client = Client::to(gateway.address);
        }
        let japanese = ask(&mut client, Dialect::Chat, "one", false, &[KEY, ("accept-language", "ja")]);
        assert!(japanese.text().contains("予算"), "{}", japanese.text());
    }
    assert_eq!(upstream.all_calls(), calls, "no provider was asked");
    let status = run(&["status", "--store", &redis.url()]);
    assert_eq!(status.status, 0, "nothing rests: {}", status.text);
    // Told once for both: that nothing is left, and before that it is little, unless one step led from enough to nothing.
    let journal = until("it is told", || {
        let journal = run(&["journal", "--what", "budget", "--format", "json", "--store", &redis.url()]);
        journal.text.contains("budget_spent").then_some(journal.text)
    });
    let kinds: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "budget_spent").count(), 1, "{journal}");
    assert!(kinds.iter().filter(|kind| **kind == "budget_near").count() <= 1, "{journal}");
}

#[test]
fn a_spent_budget_holds_after_a_kill_and_a_key_asks_only_for_its_routes() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    let limits = json!({"budget": {"month": 0.0001}, "rate": 50, "routes": ["one", "gem*"]});
    let config = write(folder.path(), "koboshi.yaml", &with_key(&upstream, &limits, &prices).to_string());
    let store = folder.path().join("store.db");
    let mut served = Served::start(&config, &store);
    let mut client = Client::to(served.address);
    let refused = ask(&mut client, Dialect::Messages, "anth", false, &[KEY]);
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("may not ask for the model anth"), "{}", refused.text());
    let mut client = Client::to(served.address);
    let question = json!({"model": "anth", "messages": [{"role": "user", "content": "x"}]}).to_string();
    client.send("POST", "/v1/messages/count_tokens", &[KEY], question.as_bytes());
    assert_eq!(client.read().status, 403, "nor have its tokens counted there");
    let mut client = Client::to(served.address);
    client.send("GET", "/v1/models", &[KEY], b"");
    let models = client.read().text();
    assert!(models.contains("\"one\"") && !models.contains("anth"), "{models}");
    until("the budget is spent", || {
        let answer = ask(&mut Client::to(served.address), Dialect::Gemini, "gem", true, &[KEY]);
        (answer.status == 429).then_some(answer)
    });
    let place = store.display().to_string();
    let settings = config.display().to_string();
    until("the store has it", || {
        let report = json(&run(&["spend", "--format", "json", "--store", &place, "--config", &settings]));
        (report["budgets"][0]["share"].as_f64()? >= 1.0).then_some(())
    });
    served.kill();
    served.start_again();
    let first = ask(&mut Client::to(served.address), Dialect::Chat, "one", false, &[KEY]);
    assert_eq!(first.status, 429, "the first request after a restart: {}", first.text());
}
