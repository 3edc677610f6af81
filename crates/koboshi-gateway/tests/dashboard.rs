//! The dashboard over real sockets: its files and their headers, signing in, and what a browser needs for a change.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod operator;

use std::net::SocketAddr;

use operator::{Answer, JSON, address, ask, config, get, start};
use serde_json::{Value, json};

const ROUTES: &str = "routes: {talk: [sim/fail-503, sim/ok]}\n";
/// SHA-256 of `test`.
const WITH_KEY: &str = "routes: {talk: [sim/ok]}\nadmin: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}\n";
const COOLDOWNS: &str = "/koboshi/cooldowns";

/// The headers of a page of this gateway.
fn page(at: SocketAddr) -> [(&'static str, String); 2] {
    [("host", format!("localhost:{}", at.port())), ("origin", format!("http://localhost:{}", at.port()))]
}

/// A request as a browser sends it from this gateway's page, with more headers.
fn browse(at: SocketAddr, method: &str, path: &str, more: &[(&str, &str)], body: Option<&Value>) -> Answer {
    let own = page(at);
    let mut headers: Vec<(&str, &str)> = more.to_vec();
    for (name, value) in &own {
        if !more.iter().any(|(known, _)| known == name) {
            headers.push((name, value));
        }
    }
    let text = body.map(Value::to_string);
    if text.is_some() {
        headers.push(JSON);
    }
    ask(at, method, path, &headers, text.as_deref())
}

fn order() -> Value {
    json!({"key": "target:sim/ok", "action": "clear"})
}

/// The cookie of an answer, as a browser sends it back. The head of an answer is in lower case, so the cookie is read from the raw one.
fn sign_in(at: SocketAddr) -> (String, String, Answer) {
    use std::io::{BufRead, Read};
    let [host, origin] = page(at);
    let body = json!({"key": "test"}).to_string();
    let headers = [(host.0, host.1.as_str()), (origin.0, origin.1.as_str()), JSON];
    let mut reader = operator::send(at, "POST", "/koboshi/session", &headers, Some(&body));
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        head.push_str(&line.replace('\r', ""));
        line.clear();
    }
    let mut body = String::new();
    reader.read_to_string(&mut body).unwrap();
    let set = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().to_owned();
    let cookie = set.split(';').next().unwrap().to_owned();
    let csrf = serde_json::from_str::<Value>(&body).unwrap()["csrf"].as_str().unwrap().to_owned();
    (cookie, csrf, Answer { status: 200, head: set, body })
}

#[test]
fn every_file_of_the_page_has_a_strict_policy() {
    let gateway = start(config(ROUTES));
    let at = address(&gateway);
    let moved = get(at, "/koboshi");
    assert_eq!((moved.status, moved.header("location")), (308, Some("/koboshi/")));
    for (path, kind) in [
        ("/koboshi/", "text/html; charset=utf-8"),
        ("/koboshi/dashboard.js", "text/javascript; charset=utf-8"),
        ("/koboshi/dashboard.css", "text/css; charset=utf-8"),
        ("/koboshi/icon.svg", "image/svg+xml"),
    ] {
        let file = get(at, path);
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        assert!(!file.body.is_empty(), "{path}");
        let policy = file.header("content-security-policy").unwrap();
        for wanted in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"]
        {
            assert!(policy.contains(wanted), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    assert_eq!(get(at, "/koboshi/other.js").status, 404);
    assert_eq!(ask(at, "POST", "/koboshi/", &[JSON], Some("{}")).status, 404);
}

#[test]
fn the_page_names_no_other_host() {
    let gateway = start(config(ROUTES));
    let at = address(&gateway);
    // Names of the languages of a document, which no browser opens.
    const NAMES: &str = "http://www.w3.org/";
    for path in ["/koboshi/", "/koboshi/dashboard.css", "/koboshi/dashboard.js"] {
        let text = get(at, path).body;
        assert!(!text.is_empty(), "{path}");
        let rest = text.replace(NAMES, "");
        let other = rest.split("//").nth(1).map(|other| other.chars().take(40).collect::<String>());
        assert_eq!(other, None, "{path}");
    }
}

#[test]
fn without_a_key_a_page_of_this_machine_needs_its_token_for_a_change() {
    let gateway = start(config(ROUTES));
    let at = address(&gateway);
    assert_eq!(get(at, "/koboshi/overview").status, 200, "reading needs none");
    let visitor = browse(at, "GET", "/koboshi/session", &[], None).json();
    assert_eq!((&visitor["signed_in"], &visitor["can_sign_in"]), (&json!(true), &json!(false)));
    let csrf = visitor["csrf"].as_str().unwrap();

    let refused = browse(at, "POST", COOLDOWNS, &[], Some(&order()));
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.body.contains("dashboard"), "{refused:?}");
    assert_eq!(browse(at, "POST", COOLDOWNS, &[("x-koboshi-csrf", "made-up")], Some(&order())).status, 403);
    assert_eq!(browse(at, "POST", COOLDOWNS, &[("x-koboshi-csrf", csrf)], Some(&order())).status, 200);
    // A program sends no origin and needs no token.
    assert_eq!(operator::post(at, COOLDOWNS, &order()).status, 200);
    // Browsers that leave the origin out still say what they are.
    let bare =
        ask(at, "POST", COOLDOWNS, &[JSON, ("sec-fetch-site", "same-origin")], Some(&order().to_string()));
    assert_eq!(bare.status, 403, "{bare:?}");
}

#[test]
fn a_page_of_elsewhere_changes_nothing_even_with_the_token() {
    let gateway = start(config(&format!("{ROUTES}serve: {{allowed_origins: ['http://app.example']}}\n")));
    let at = address(&gateway);
    let csrf = browse(at, "GET", "/koboshi/session", &[], None).json()["csrf"].as_str().unwrap().to_owned();
    for origin in ["http://evil.example", "http://localhost:1", "null", "http://app.example"] {
        let headers = [("origin", origin), ("x-koboshi-csrf", csrf.as_str())];
        let answer = browse(at, "POST", COOLDOWNS, &headers, Some(&order()));
        assert_eq!(answer.status, 403, "{origin}: {answer:?}");
    }
    // A name that leads here, but is not this machine's: a page would be of the same origin with it.
    let rebound =
        [("host", "evil.example"), ("origin", "http://evil.example"), ("x-koboshi-csrf", csrf.as_str())];
    assert_eq!(browse(at, "POST", COOLDOWNS, &rebound, Some(&order())).status, 403);
    assert_eq!(browse(at, "GET", "/koboshi/session", &[("host", "evil.example")], None).status, 403);
}

#[test]
fn with_a_key_a_person_signs_in_and_gets_a_session_that_is_not_the_key() {
    let gateway = start(config(WITH_KEY));
    let at = address(&gateway);
    let visitor = browse(at, "GET", "/koboshi/session", &[], None).json();
    assert_eq!(
        (&visitor["signed_in"], &visitor["can_sign_in"], &visitor["csrf"]),
        (&json!(false), &json!(true), &Value::Null)
    );
    assert_eq!(browse(at, "GET", "/koboshi/overview", &[], None).status, 401);
    let wrong = browse(at, "POST", "/koboshi/session", &[], Some(&json!({"key": "wrong"})));
    assert_eq!(wrong.status, 401, "{wrong:?}");
    assert!(wrong.header("set-cookie").is_none());

    let (cookie, csrf, set) = sign_in(at);
    assert!(set.head.contains("HttpOnly") && set.head.contains("SameSite=Strict"), "{}", set.head);
    assert!(set.head.contains("Path=/koboshi") && set.head.contains("Max-Age="), "{}", set.head);
    assert!(!cookie.contains("test") && !set.body.contains("test"), "{cookie}");
    assert!(!cookie.contains(&csrf) && cookie.len() > 40, "{cookie}");
    let (other, _, _) = sign_in(at);
    assert_ne!(cookie, other);

    assert_eq!(browse(at, "GET", "/koboshi/overview", &[("cookie", &cookie)], None).status, 200);
    assert_eq!(browse(at, "POST", COOLDOWNS, &[("cookie", &cookie)], Some(&order())).status, 403, "no token");
    let whole = [("cookie", cookie.as_str()), ("x-koboshi-csrf", csrf.as_str())];
    assert_eq!(browse(at, "POST", COOLDOWNS, &whole, Some(&order())).status, 200);
    let by_other = [("cookie", other.as_str()), ("x-koboshi-csrf", csrf.as_str())];
    assert_eq!(
        browse(at, "POST", COOLDOWNS, &by_other, Some(&order())).status,
        403,
        "a token of another session"
    );
    // Without an origin too: a session is always a browser's.
    let bare = ask(at, "POST", COOLDOWNS, &[JSON, ("cookie", &cookie)], Some(&order().to_string()));
    assert_eq!(bare.status, 403, "{bare:?}");
    // The token alone is nothing.
    assert_eq!(browse(at, "POST", COOLDOWNS, &[("x-koboshi-csrf", &csrf)], Some(&order())).status, 401);

    assert_eq!(
        browse(at, "POST", "/koboshi/session", &[("cookie", &cookie)], Some(&json!({}))).status,
        403,
        "signing out is a change"
    );
    assert_eq!(browse(at, "POST", "/koboshi/session", &whole, Some(&json!({}))).status, 200);
    assert_eq!(browse(at, "GET", "/koboshi/overview", &[("cookie", &cookie)], None).status, 401);
    assert_eq!(browse(at, "GET", "/koboshi/overview", &[("cookie", &other)], None).status, 200);
}

#[test]
fn the_feed_of_a_session_ends_with_it() {
    use std::io::Read;
    let gateway = start(config(WITH_KEY));
    let at = address(&gateway);
    let (cookie, csrf, _) = sign_in(at);
    let mut feed = operator::send(at, "GET", "/koboshi/feed", &[("cookie", &cookie)], None);
    assert_eq!(operator::read_head(&mut feed).0, 200);
    let whole = [("cookie", cookie.as_str()), ("x-koboshi-csrf", csrf.as_str())];
    assert_eq!(browse(at, "POST", "/koboshi/session", &whole, Some(&json!({}))).status, 200);
    let cool = json!({"key": "target:sim/ok", "action": "cool", "until": "2100-01-01T00:00:00Z"}).to_string();
    let by_key = [JSON, ("authorization", "Bearer test")];
    assert_eq!(ask(at, "POST", COOLDOWNS, &by_key, Some(&cool)).status, 200);
    let mut rest = String::new();
    feed.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("cooldown"), "{rest}");
}

#[test]
fn a_page_of_elsewhere_signs_nobody_in() {
    let text = format!("{WITH_KEY}serve: {{allowed_origins: ['http://app.example']}}\n");
    let gateway = start(config(&text));
    let at = address(&gateway);
    for origin in ["http://evil.example", "http://app.example"] {
        let answer =
            browse(at, "POST", "/koboshi/session", &[("origin", origin)], Some(&json!({"key": "test"})));
        assert_eq!(answer.status, 403, "{origin}: {answer:?}");
        assert!(answer.header("set-cookie").is_none());
    }
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let gateway = start(config(WITH_KEY));
    let at = address(&gateway);
    let (first, _, _) = sign_in(at);
    for _ in 0..32 {
        sign_in(at);
    }
    assert_eq!(browse(at, "GET", "/koboshi/overview", &[("cookie", &first)], None).status, 401);
}

#[test]
fn another_admin_key_ends_the_sessions_of_the_old_one() {
    let gateway = start(config(WITH_KEY));
    let at = address(&gateway);
    let (cookie, _, _) = sign_in(at);
    let other = WITH_KEY.replace("9f86d081", "0f86d081");
    gateway.reload(config(&other)).unwrap();
    assert_eq!(browse(at, "GET", "/koboshi/overview", &[("cookie", &cookie)], None).status, 401);
    gateway.reload(config(WITH_KEY)).unwrap();
    assert_eq!(
        browse(at, "GET", "/koboshi/overview", &[("cookie", &cookie)], None).status,
        200,
        "the session is still there"
    );
}

#[test]
fn a_key_that_was_replaced_makes_no_target_any_more() {
    let of = |key: &str| {
        config(&format!(
            "providers: {{one: {{kind: openai, base_url: 'http://127.0.0.1:9/v1', keys: [{key}]}}}}\nroutes: {{talk: [one/m]}}\n"
        ))
    };
    let gateway = start(of("sk-old"));
    let at = address(&gateway);
    let keys = || {
        let targets = get(at, "/koboshi/targets").json()["targets"].as_array().unwrap().clone();
        targets
            .iter()
            .filter(|target| target["target"] == "one/m")
            .map(|one| one["key"].to_string())
            .collect::<Vec<_>>()
    };
    let before = keys();
    gateway.reload(of("sk-new")).unwrap();
    let after = keys();
    assert_eq!((before.len(), after.len()), (1, 1), "{before:?} {after:?}");
}

#[test]
fn the_overview_counts_what_was_survived_and_what_clients_saw() {
    let gateway = start(config("routes: {talk: [sim/fail-503, sim/ok], lost: [sim/fail-503]}\n"));
    let at = address(&gateway);
    assert_eq!(operator::chat(at, "talk").status, 200);
    let overview = get(at, "/koboshi/overview").json();
    let counts = &overview["counts"];
    assert_eq!(
        (&counts["whole"], &counts["survived"], &counts["failed"]),
        (&json!(1), &json!(1), &json!(0)),
        "{overview}"
    );
    assert_eq!(overview["open"], json!(0), "the overview itself is no request of a client: {overview}");
    assert!(counts["faults"].as_u64().unwrap() >= 1, "{overview}");
    assert_eq!(overview["routes"][1]["name"], "talk");
    assert_eq!(overview["routes"][1]["chain"], json!(["sim/fail-503", "sim/ok"]));
    assert_ne!(operator::chat(at, "lost").status, 200);
    assert_eq!(get(at, "/koboshi/overview").json()["counts"]["failed"], json!(1));
    let faults = get(at, "/koboshi/journal?what=fault&limit=10").json();
    let first = &faults["entries"][0]["data"];
    assert_eq!((&first["route"], &first["attempt"]), (&json!("talk"), &json!(1)), "{faults}");
    assert!(first["after_ms"].is_u64(), "{faults}");
}

#[test]
fn a_gateway_without_a_program_around_it_says_so() {
    let gateway = start(config(ROUTES));
    let at = address(&gateway);
    assert_eq!(get(at, "/koboshi/agents").status, 404);
    assert_eq!(get(at, "/koboshi/check").status, 501);
    assert_eq!(operator::post(at, "/koboshi/reload", &json!({})).status, 501);
    assert_eq!(operator::post(at, "/koboshi/process", &json!({"action": "drain"})).status, 501);
    assert_eq!(get(at, "/koboshi/sessions").json(), json!({"sessions": [], "left_out": 0}));
}
