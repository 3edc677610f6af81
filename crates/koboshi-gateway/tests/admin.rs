//! What operators ask and change, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

use std::io::BufRead;
use std::net::SocketAddr;

use crate::operator::{JSON, address, ask, chat, config, get, post, read_head, send, start};
use koboshi_testkit::until;
use serde_json::{Value, json};

/// Two providers: what one of them states is nothing against the other.
const CHAIN: &str =
    "providers: {shaky: {kind: sim}}\nroutes: {talk: [shaky/quota, sim/ok], steady: [sim/ok]}\n";
/// SHA-256 of `test`.
const HASH_OF_TEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn target(at: SocketAddr, name: &str) -> Value {
    let targets = get(at, "/koboshi/targets").json();
    let found = targets["targets"].as_array().unwrap().iter().find(|one| one["target"] == name);
    found.cloned().unwrap_or_else(|| panic!("{name} is not among {targets}"))
}

fn entries(at: SocketAddr, query: &str) -> Vec<Value> {
    let answer = get(at, &format!("/koboshi/journal?{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["entries"].as_array().unwrap().clone()
}

#[test]
fn targets_show_their_health_and_why() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let fresh = target(at, "sim/ok");
    assert_eq!((&fresh["health"], &fresh["attempts"]), (&json!("well"), &json!(0)), "named by a route");

    assert_eq!(chat(at, "talk").status, 200);
    let served = target(at, "sim/ok");
    assert_eq!((&served["health"], &served["attempts"]), (&json!("well"), &json!(1)));
    assert_eq!(served["breaker"]["mode"], "closed");

    let resting = target(at, "shaky/quota");
    assert_eq!((&resting["health"], &resting["attempts"]), (&json!("cooling"), &json!(1)), "{resting}");
    let rest = &resting["rests"][0];
    assert_eq!((&rest["state"], &rest["reason"]), (&json!("cooling"), &json!("quota")));
    assert!(rest["until"].as_str().is_some_and(|until| until.ends_with('Z')), "{rest}");
    assert!(rest["said"].as_str().is_some_and(|said| !said.is_empty()), "what the provider said: {rest}");
    assert!(resting["why"].as_str().unwrap().contains("is in cooldown until"), "{resting}");
}

#[test]
fn an_open_breaker_whose_time_is_over_is_shown_as_probing_without_a_request() {
    let text = "routes: {down: [sim/fail-503, sim/ok]}\nbreaker: {consecutive_failures: 1, open: {initial: 300ms, max: 300ms}}\n";
    let gateway = start(config(text));
    let at = address(&gateway);
    assert_eq!(chat(at, "down").status, 200);
    let metric = || {
        let text = get(at, "/metrics").body;
        let line = text
            .lines()
            .find(|line| line.starts_with("koboshi_breaker_state") && line.contains("\"fail-503\""));
        line.and_then(|line| line.rsplit(' ').next()).map(ToOwned::to_owned)
    };
    until("the breaker's time is over", || {
        let shown = target(at, "sim/fail-503");
        (shown["health"] == "probing").then_some(())
    });
    let shown = target(at, "sim/fail-503");
    assert_eq!((&shown["breaker"]["mode"], &shown["breaker"]["until"]), (&json!("probing"), &Value::Null));
    assert_eq!(metric().as_deref(), Some("1"), "0 closed, 1 probing, 2 open");
}

#[test]
fn an_operators_order_changes_a_breaker_and_is_in_the_journal() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let order = |action: &str| post(at, "/koboshi/breakers", &json!({"target": "sim/ok", "action": action}));
    for (action, mode, health) in [
        ("open", "forced_open", "forced_open"),
        ("close", "forced_closed", "forced_closed"),
        ("disable", "disabled", "disabled"),
        ("release", "closed", "well"),
        ("open", "forced_open", "forced_open"),
        ("reset", "closed", "well"),
    ] {
        let changed = order(action).json()["targets"][0].clone();
        assert_eq!(
            (&changed["breaker"]["mode"], &changed["health"]),
            (&json!(mode), &json!(health)),
            "{action}"
        );
    }
    order("open");
    let refused = chat(at, "steady");
    assert_eq!((refused.status, refused.header("x-koboshi-attempts")), (503, Some("0")), "{refused:?}");
    let key = target(at, "sim/ok")["key"].as_str().unwrap().to_owned();
    assert_eq!(post(at, "/koboshi/breakers", &json!({"target": key, "action": "reset"})).status, 200);
    assert_eq!(chat(at, "steady").status, 200);

    let noted = entries(at, "what=operator");
    let kinds: Vec<_> = noted.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "breaker_open", "breaker_close", "breaker_disable", "breaker_release", "breaker_open",
            "breaker_reset", "breaker_open", "breaker_reset",
        ]
    );
    assert_eq!(noted[0]["data"]["from"], "127.0.0.1");
}

#[test]
fn a_cooldown_begins_and_ends_by_an_operators_order() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let cool = json!({"key": "provider:sim", "action": "cool", "until": "2100-01-01T00:00:00Z", "reason": "password=hunter2hunter2"});
    let told = post(at, "/koboshi/cooldowns", &cool).json();
    assert_eq!((&told["changed"], &told["rest"]["until"]), (&json!(true), &json!("2100-01-01T00:00:00Z")));
    assert!(!told.to_string().contains("hunter2"), "{told}");
    let refused = chat(at, "steady");
    assert_eq!((refused.status, &refused.json()["error"]["koboshi"]["kind"]), (503, &json!("cooling_down")));

    let clear = json!({"key": "provider:sim", "action": "clear"});
    assert_eq!(post(at, "/koboshi/cooldowns", &clear).json()["changed"], true);
    assert_eq!(post(at, "/koboshi/cooldowns", &clear).json()["changed"], false, "nothing is left to clear");
    assert_eq!(chat(at, "steady").status, 200);
    let kinds: Vec<_> =
        entries(at, "what=operator&key=provider:sim").iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["cool", "resume"]);
}

#[test]
fn an_order_means_what_an_operator_expects_or_is_refused_with_similar_names() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let cool = |key: &str, force: bool| {
        let order = json!({"key": key, "action": "cool", "until": "2100-01-01T00:00:00Z", "reason": "incident 4711", "force": force});
        post(at, "/koboshi/cooldowns", &order)
    };
    for (key, meant) in [
        ("model:ok", "model:sim/ok"),
        ("account:sim", "account:sim/ok"),
        ("target:sim/ok", "target:sim/ok#none"),
    ] {
        let told = cool(key, false).json();
        assert_eq!((&told["key"], &told["keys"][0]["key"]), (&json!(key), &json!(meant)), "{told}");
        assert_eq!(
            (&told["rest"]["reason"], &told["rest"]["said"]),
            (&json!("operator"), &json!("incident 4711"))
        );
        assert_ne!(chat(at, "steady").status, 200, "{key}");
        let row = get(at, "/koboshi/status").json()["rows"][0].clone();
        assert_eq!(
            (&row["key"], &row["state"], &row["detail"]),
            (&json!(meant), &json!("cooling"), &json!("incident 4711"))
        );
        assert_eq!(
            post(at, "/koboshi/cooldowns", &json!({"key": key, "action": "clear"})).json()["changed"],
            true
        );
        assert_eq!(chat(at, "steady").status, 200, "{key}");
    }
    let refused = cool("model:okk", false);
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (404, &json!("key")));
    let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("No target has the key model:okk.") && said.contains("model:sim/ok"), "{said}");
    assert_eq!(cool("model:okk", true).json()["changed"], true, "forced");
    let keys = get(at, "/koboshi/keys").json();
    assert!(
        keys["targets"].as_array().unwrap().iter().any(|one| one["target"] == "target:shaky/quota#none"),
        "{keys}"
    );
}

#[test]
fn what_a_provider_stated_can_be_cleared() {
    let gateway = start(config("routes: {talk: ['sim/rate-429?retry_after=3600', sim/ok]}\n"));
    let at = address(&gateway);
    assert_eq!(chat(at, "talk").header("x-koboshi-attempts"), Some("2"));
    let held = target(at, "sim/rate-429?retry_after=3600");
    assert_eq!((&held["health"], &held["gate"]["held_by"]), (&json!("held"), &json!("requests")), "{held}");
    let clear = json!({"key": "provider:sim", "action": "clear"});
    assert_eq!(post(at, "/koboshi/cooldowns", &clear).json()["changed"], true);
    assert_eq!(target(at, "sim/rate-429?retry_after=3600")["health"], "well");
}

#[test]
fn a_dead_key_of_one_simulated_model_is_none_of_the_others() {
    let gateway = start(config("routes: {dead: [sim/auth-401], fine: [sim/ok]}\n"));
    let at = address(&gateway);
    assert_eq!(chat(at, "dead").status, 502);
    assert_eq!(chat(at, "fine").status, 200);
}

#[test]
fn orders_that_make_no_sense_are_refused_with_their_place() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let breaker = |body: Value| post(at, "/koboshi/breakers", &body);
    let rest = |body: Value| post(at, "/koboshi/cooldowns", &body);
    for (answer, status, param) in [
        (breaker(json!({"target": "sim/none", "action": "open"})), 404, json!("target")),
        (breaker(json!({"target": "sim/ok", "action": "explode"})), 400, json!("body")),
        (breaker(json!({"target": "sim/ok", "action": "open", "why": "x"})), 400, json!("why")),
        (breaker(json!({"action": "open"})), 400, json!("target")),
        (rest(json!({"key": "nonsense", "action": "clear"})), 400, json!("key")),
        (rest(json!({"key": "provider:sim", "action": "cool"})), 400, json!("until")),
        (
            rest(json!({"key": "provider:sim", "action": "cool", "until": "2001-01-01T00:00:00Z"})),
            400,
            json!("until"),
        ),
        (get(at, "/koboshi/journal?limit=many"), 400, json!("limit")),
        (get(at, "/koboshi/breakers"), 405, Value::Null),
        (get(at, "/koboshi/nothing"), 404, Value::Null),
    ] {
        assert_eq!((answer.status, &answer.json()["error"]["param"]), (status, &param), "{answer:?}");
    }
    let long = format!("{{\"target\": \"{}\"}}", "x".repeat(100_000));
    assert_eq!(ask(at, "POST", "/koboshi/breakers", &[JSON], Some(&long)).status, 413);
    assert!(entries(at, "what=operator").is_empty(), "nothing was changed");
}

#[test]
fn the_journal_is_asked_by_what_kind_and_time() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    assert_eq!(chat(at, "talk").status, 200);
    let faults = entries(at, "what=fault");
    assert_eq!(faults.len(), 1);
    assert_eq!(
        (&faults[0]["kind"], &faults[0]["data"]["target"]),
        (&json!("quota_exceeded"), &json!("shaky/quota"))
    );
    assert_eq!(entries(at, "what=fault&kind=quota_exceeded&since=1h").len(), 1);
    assert!(entries(at, "what=fault&kind=timeout").is_empty());
    assert!(entries(at, "until=1h").is_empty());
    assert_eq!(entries(at, "limit=1").len(), 1);
}

#[test]
fn the_feed_shows_what_happens_and_ends_with_the_gateway() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let mut feed = send(at, "GET", "/koboshi/feed?what=operator", &[], None);
    let (status, head) = read_head(&mut feed);
    assert!(status == 200 && head.contains("content-type: text/event-stream"), "{head}");
    let mut line = String::new();
    // The comment at the beginning: from here on nothing is missed.
    while !line.starts_with(':') {
        line.clear();
        feed.read_line(&mut line).unwrap();
    }
    // A fault, which was not asked for, and then a word of a person.
    assert_eq!(chat(at, "talk").status, 200);
    post(at, "/koboshi/breakers", &json!({"target": "sim/ok", "action": "reset"}));
    let mut lines = feed.lines().map_while(Result::ok);
    let event = lines.find(|line| line.starts_with("event:")).unwrap();
    let data = lines.next().unwrap();
    assert_eq!(event, "event: entry");
    let entry: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&entry["what"], &entry["kind"]), (&json!("operator"), &json!("breaker_reset")), "{entry}");
    gateway.stop();
    assert!(lines.all(|line| !line.starts_with("event:")), "the stream ends, and says nothing more");
}

#[test]
fn the_config_in_effect_has_every_section_and_no_secret() {
    let yaml = format!(
        "providers: {{one: {{kind: openai, keys: ['${{KEY}}']}}}}\nadmin: {{sha256: {HASH_OF_TEST}}}\nkeys: {{me: {{sha256: {}}}}}\n",
        "9f".repeat(32)
    );
    let gateway = start(config(&yaml));
    let answer = ask(address(&gateway), "GET", "/koboshi/config", &[("authorization", "Bearer test")], None);
    let shown = answer.json();
    assert_eq!(
        (&shown["providers"]["one"]["keys"], &shown["admin"]["sha256"]),
        (&json!(["***"]), &json!("***"))
    );
    assert_eq!((&shown["retry"]["max_attempts"].is_number(), &shown["serve"]["threads"]), (&true, &json!(1)));
    assert!(
        !answer.body.contains("sk-secret")
            && !answer.body.contains("9f86d081")
            && !answer.body.contains("9f9f"),
        "{}",
        answer.body
    );
}

#[test]
fn the_description_names_what_is_served() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let document = get(at, "/koboshi/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    let mut names: Vec<_> = paths.keys().map(String::as_str).collect();
    names.sort_unstable();
    let wanted = [
        "agents", "breakers", "check", "config", "cooldowns", "feed", "journal", "keys", "logs",
        "openapi.json", "overview", "process", "reload", "session", "sessions", "spend", "status", "targets",
    ];
    assert_eq!(names, wanted.map(|name| format!("/koboshi/{name}")));
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            if path == "/koboshi/feed" {
                continue;
            }
            let answer = ask(at, &method.to_uppercase(), path, &[JSON], Some("{}"));
            // A gateway without agents has these paths too, and says so.
            if answer.status == 404 && answer.json()["error"]["param"] == "agents" {
                continue;
            }
            assert!(![404, 405].contains(&answer.status), "{method} {path}: {answer:?}");
        }
    }
    for (from, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema.is_object(), "{from}");
    }
    assert_eq!(document["components"]["schemas"]["BreakerAction"]["enum"].as_array().map(Vec::len), Some(5));
}

#[test]
fn with_an_admin_key_nothing_else_opens() {
    let yaml =
        format!("{CHAIN}admin: {{sha256: {HASH_OF_TEST}}}\nkeys: {{me: {{sha256: {}}}}}\n", "ab".repeat(32));
    let gateway = start(config(&yaml));
    let at = address(&gateway);
    let with = |headers: &[(&str, &str)]| ask(at, "GET", "/koboshi/targets", headers, None).status;
    assert_eq!(with(&[]), 401, "the loopback address is no key");
    assert_eq!(with(&[("authorization", "Bearer tesT")]), 401);
    for header in [("authorization", "Bearer test"), ("x-api-key", "test"), ("x-goog-api-key", "test")] {
        assert_eq!(with(&[header]), 200, "{header:?}");
    }
    for path in ["/koboshi/feed", "/koboshi/openapi.json", "/koboshi/nothing"] {
        assert_eq!(get(at, path).status, 401, "{path}");
    }
}

#[test]
fn without_an_admin_key_only_this_machine_and_no_web_page() {
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    let with = |headers: &[(&str, &str)]| ask(at, "GET", "/koboshi/targets", headers, None).status;
    assert_eq!(with(&[]), 200);
    assert_eq!(with(&[("origin", "https://evil.example")]), 403, "a page of elsewhere");
    assert_eq!(with(&[("host", "evil.example")]), 403, "a name that was made to point here");
    let order = json!({"target": "sim/ok", "action": "open"}).to_string();
    let plain = [("content-type", "text/plain")];
    assert_eq!(
        ask(at, "POST", "/koboshi/breakers", &plain, Some(&order)).status,
        415,
        "a form needs no leave"
    );

    let mut open = config(&format!("{CHAIN}keys: {{me: {{sha256: {HASH_OF_TEST}}}}}\n"));
    open.serve.listen = ([0, 0, 0, 0], 0).into();
    let gateway = start(open);
    let at = address(&gateway);
    assert_eq!(
        ask(at, "GET", "/koboshi/targets", &[("x-api-key", "test")], None).status,
        401,
        "off where others can reach it"
    );
    until("the gateway serves its clients", || (get(at, "/health").status == 200).then_some(()));
}

/// The page for people names every metric, path and header that there is.
#[test]
fn the_page_is_complete() {
    let page = include_str!("../../../docs/gateway.md");
    let gateway = start(config(CHAIN));
    let at = address(&gateway);
    // Families without a sample are not shown by the gateway, so its source is asked.
    let meters = include_str!("../src/observe/meters.rs").split("#[cfg(test)]").next().unwrap();
    let is_name = |text: &&str| {
        (text.starts_with("koboshi_") || text.starts_with("gen_ai_"))
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let names: Vec<_> = meters.split('"').filter(is_name).collect();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}")), "{name} is not in the page");
    }
    for path in get(at, "/koboshi/openapi.json").json()["paths"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("{path}`")), "{path} is not in the page");
    }
    let source = include_str!("../src/observe/names.rs");
    let headers: Vec<_> = source
        .split('"')
        .filter(|text| text.starts_with("x-koboshi-") || *text == "x-should-retry")
        .collect();
    assert!(headers.len() >= 17, "{headers:?}");
    for header in headers {
        let is_named = [format!("`{header}`"), format!("`{header}: ")].iter().any(|name| page.contains(name));
        assert!(is_named, "{header} is not in the page");
    }
}
