//! What answers cost, as the gateway counts it, against what the provider says that it gave; and budgets of keys, on a fleet.
//!
//! `KOBOSHI_CHAOS=10000` makes the first test long.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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

/// Tokens of a row that providers stated.
fn exact(row: &Value) -> u64 {
    let count = |name: &str| row[name].as_u64().unwrap();
    count("input_tokens") + count("output_tokens") - count("estimated_tokens")
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
    let upstream = Upstream::start();
    // What was stated to the clients of each dialect: their targets have models of their own, whoever answers in the end.
    let of_dialects = DIALECTS.map(|dialect| {
        let stated = Arc::new(Mutex::new(Stated::default()));
        let (one, two) = (Arc::clone(&stated), Arc::clone(&stated));
        upstream.set(&format!("chaos-{}", dialect.name()), move |ask| {
            let seed = Seed::new(22).nth(ask.tally.nth);
            let way = WAYS[usize::try_from(ask.tally.nth).unwrap() % WAYS.len()];
            counted(&one, ask, if seed.fraction() < 0.4 { way } else { "ok" })
        });
        upstream.set(&format!("ok-{}", dialect.name()), move |ask| counted(&two, ask, "ok"));
        (dialect.name(), stated)
    });
    let all = || {
        of_dialects.iter().fold(Stated::default(), |sum, (_, stated)| {
            let one = *stated.lock().unwrap();
            Stated {
                answers: sum.answers + one.answers,
                input: sum.input + one.input,
                output: sum.output + one.output,
                cut: sum.cut + one.cut,
            }
        })
    };
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    let routes: serde_json::Map<String, Value> = DIALECTS
        .iter()
        .map(|dialect| {
            let (provider, name) = (provider_of(*dialect), dialect.name());
            (name.to_owned(), json!([format!("{provider}/chaos-{name}"), format!("one/ok-{name}")]))
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
                    let answer =
                        ask(&mut client, dialect, dialect.name(), stream, &[("x-koboshi-agent", agent)]);
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
        let (stated, exact) = (all(), exact(&report["total"]));
        (exact == stated.input + stated.output).then_some(report.clone()).or_else(|| {
            eprintln!("{exact} of {stated:?}: {}", report["total"]);
            None
        })
    });
    let by_dialect = report("route", &["--url", &url]);
    // Probes of Koboshi's own are no requests of a route.
    let mut probes = 0;
    for (name, stated) in &of_dialects {
        let row = by_dialect["rows"].as_array().unwrap().iter().find(|row| row["name"] == *name).unwrap();
        let stated = *stated.lock().unwrap();
        let left = (stated.input + stated.output).checked_sub(exact(row));
        probes += left.unwrap_or_else(|| panic!("{name}: {stated:?} {row}"));
        assert!(stated.answers > requests / 8 && stated.cut > 0, "{name}: {stated:?}");
    }
    let is_own = |row: &&Value| of_dialects.iter().all(|(name, _)| row["name"].as_str() != Some(*name));
    let own: u64 = by_dialect["rows"].as_array().unwrap().iter().filter(is_own).map(exact).sum();
    assert_eq!(probes, own, "what no route has is what probes used");
    let stated = all();
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
    let rows = by_dialect["rows"].as_array().unwrap().len();
    assert_eq!(csv.text.lines().count(), 1 + rows, "{}", csv.text);
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

/// Clients of each gateway.
const CLIENTS: usize = 4;

/// What one answer of the route `one` costs, as a gateway without budgets counts it.
fn cost_of_one(folder: &Path, config: &Value) -> f64 {
    let config = write(folder, "free.yaml", &config.to_string());
    let store = folder.join("free.db");
    let served = Served::start(&config, &store);
    let answer = ask(&mut Client::to(served.address), Dialect::Chat, "one", false, &[KEY]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let place = store.display().to_string();
    until("it is counted", || {
        let report = json(&run(&["spend", "--format", "json", "--store", &place]));
        report["total"]["cost"].as_f64().filter(|cost| *cost > 0.0)
    })
}

#[test]
fn two_gateways_on_one_redis_keep_a_budget_and_say_when_it_is_renewed_in_every_dialect() {
    let (upstream, redis) = (Upstream::start(), RedisServer::start());
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    // Slow enough that a budget lasts for some seconds, in which the two must know of each other.
    let mut config = with_key(&upstream, &json!({}), &prices);
    config["routes"]["one"] = json!(["one/slow-first?after=50ms"]);
    let cost = cost_of_one(folder.path(), &config);
    let limit = 400.0 * cost;
    config["keys"]["laptop"]["budget"] = json!({"day": limit, "month": 1000});
    let config = write(folder.path(), "koboshi.yaml", &config.to_string());
    let store = PathBuf::from(redis.url());
    let fleet = [Served::start(&config, &store), Served::start(&config, &store)];
    let answered: Mutex<Vec<Instant>> = Mutex::default();
    let seen = &answered;
    std::thread::scope(|scope| {
        for address in fleet.iter().flat_map(|gateway| [gateway.address; CLIENTS]) {
            scope.spawn(move || {
                let mut client = Client::to(address);
                until("the budget is spent", || {
                    let answer = ask(&mut client, Dialect::Chat, "one", false, &[KEY]);
                    if answer.status == 200 {
                        #[expect(clippy::disallowed_methods, reason = "a second is part of the promise")]
                        seen.lock().unwrap().push(Instant::now());
                    }
                    (answer.status == 429).then_some(())
                });
            });
        }
    });
    let answered = answered.into_inner().unwrap();
    let report = || {
        let (store, config) = (redis.url(), config.display().to_string());
        json(&run(&["spend", "--format", "json", "--store", &store, "--config", &config]))
    };
    let is_all = |report: &Value| report["total"]["attempts"] == answered.len();
    let spent = until("everything is counted", || {
        let report = report();
        is_all(&report).then(|| report["budgets"][0].clone())
    });
    // Beyond the budget: no more than what was in flight at both, and what both answered in their fastest second.
    let fastest = answered.iter().map(|first| {
        let second = |at: &&Instant| **at >= *first && at.duration_since(*first) <= Duration::from_secs(1);
        answered.iter().filter(second).count()
    });
    let allowed = 2 * CLIENTS + fastest.max().unwrap();
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let most = limit + allowed as f64 * cost;
    let over = spent["spent"].as_f64().unwrap();
    eprintln!("{} answers, {over} of {limit}, at most {most}: {spent}", answered.len());
    assert!(over <= most + 1e-9, "{over} > {most}, with {allowed} answers beyond {limit}");
    assert!(answered.len() < 2 * 400, "each by itself would have answered as many");
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

#[test]
fn a_key_gets_no_more_requests_a_minute_than_its_rate_in_every_dialect() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    let config = with_key(&upstream, &json!({"rate": 2}), &prices);
    let config = write(folder.path(), "koboshi.yaml", &config.to_string());
    let served = Served::start(&config, &folder.path().join("store.db"));
    for (dialect, stream) in DIALECTS.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
        // A minute may begin meanwhile: then two more are answered.
        let refused = until("the rate is used up", || {
            let mut client = Client::to(served.address);
            let answer = ask(&mut client, dialect, provider_of(dialect), stream, &[KEY]);
            assert!([200, 429].contains(&answer.status), "{dialect:?}: {}", answer.text());
            (answer.status == 429).then_some(answer)
        });
        let calls = upstream.all_calls();
        let said = refused.json();
        let koboshi =
            said.pointer("/error/koboshi").or_else(|| said.get("koboshi")).cloned().unwrap_or_default();
        assert_eq!(
            (&koboshi["kind"], &koboshi["origin"]),
            (&json!("rate_limited"), &json!("koboshi")),
            "{dialect:?}: {}",
            refused.text()
        );
        assert!((1..=60).contains(&koboshi["retryAfterSeconds"].as_u64().unwrap()), "{koboshi}");
        assert!(calls <= 4, "{calls}: a refused request reaches no provider");
    }
    let status = run(&["status", "--store", &folder.path().join("store.db").display().to_string()]);
    assert_eq!(status.status, 0, "nothing rests: {}", status.text);
}

#[test]
fn little_is_left_is_said_once_before_nothing_is_left() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let prices = write(folder.path(), "prices.yaml", PRICES);
    let mut config = with_key(&upstream, &json!({}), &prices);
    let cost = cost_of_one(folder.path(), &config);
    // Four of five answers are more than 80 %, and less than all.
    config["keys"]["laptop"]["budget"] = json!({"day": 4.75 * cost});
    let config = write(folder.path(), "koboshi.yaml", &config.to_string());
    let store = folder.path().join("store.db");
    let served = Served::start(&config, &store);
    let place = store.display().to_string();
    let told = || {
        let journal = run(&["journal", "--what", "budget", "--format", "json", "--store", &place]);
        let kinds =
            journal.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone());
        kinds.collect::<Vec<Value>>()
    };
    let answered = |count: u64| {
        let answer = ask(&mut Client::to(served.address), Dialect::Chat, "one", false, &[KEY]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        until("it is counted", || {
            let report = json(&run(&["spend", "--format", "json", "--store", &place]));
            (report["total"]["attempts"] == count).then_some(())
        });
    };
    (1..=3).for_each(answered);
    assert!(told().is_empty(), "three of five are 63 %");
    answered(4);
    until("it is said that little is left", || (told() == ["budget_near"]).then_some(()));
    answered(5);
    until("it is said that nothing is left", || (told() == ["budget_near", "budget_spent"]).then_some(()));
}

#[test]
fn a_budget_holds_for_a_model_as_relays_write_its_name() {
    let upstream = Upstream::start();
    let names = ["claude-opus-4-5", "anthropic/claude-opus-4.5", "anthropic/claude-3.5-haiku"];
    for model in names {
        upstream.set(model, |ask| play(&Ask { model: "ok", ..*ask }));
        let folder = tempfile::tempdir().unwrap();
        let mut config = with_key(&upstream, &json!({"budget": {"day": 0.000_001}}), Path::new(""));
        config["routes"]["one"] = json!([format!("one/{model}")]);
        // The built-in prices count.
        config.as_object_mut().unwrap().remove("models_file");
        let config = write(folder.path(), "koboshi.yaml", &config.to_string());
        let served = Served::start(&config, &folder.path().join("store.db"));
        until(&format!("the budget is spent on {model}"), || {
            let answer = ask(&mut Client::to(served.address), Dialect::Chat, "one", false, &[KEY]);
            assert!([200, 429].contains(&answer.status), "{model}: {}", answer.text());
            (answer.status == 429).then_some(())
        });
    }
}

#[test]
fn tokens_without_a_known_price_are_unknown_and_spend_no_budget() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().unwrap();
    let none = write(folder.path(), "prices.yaml", "prices: [{match: 'anth/*', input: 1, output: 2}]");
    let config = with_key(&upstream, &json!({"budget": {"day": 0.000001}}), &none);
    let config = write(folder.path(), "koboshi.yaml", &config.to_string());
    let store = folder.path().join("store.db");
    let served = Served::start(&config, &store);
    for _ in 0..3 {
        let answer = ask(&mut Client::to(served.address), Dialect::Chat, "one", false, &[KEY]);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let place = store.display().to_string();
    let total = until("everything is counted", || {
        let report = json(&run(&["spend", "--format", "json", "--store", &place]));
        (report["total"]["attempts"] == 3).then(|| report["total"].clone())
    });
    let count = |name: &str| total[name].as_u64().unwrap();
    assert_eq!(count("unpriced_tokens"), count("input_tokens") + count("output_tokens"), "{total}");
    assert!(count("unpriced_tokens") > 0 && total["cost"] == 0.0, "{total}");
    for (lang, word) in [("en", "unknown"), ("ja", "不明")] {
        let text = run(&["spend", "--store", &place, "--lang", lang]).text;
        assert!(text.contains(word), "{text}");
    }
}
