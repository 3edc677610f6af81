//! Who is who: what a client, a stranger, a proxy's client and an operator may see and do.

use std::io::{Read, Write};

use crate::common::*;
use koboshi_config::Config;
use koboshi_config::gateway::{CacheMode, ClientKey, RouteConfig};
use koboshi_store::{Entry, Query, Store};
use koboshi_testkit::{Client, RawReply, RawUpstream, until};
use serde_json::json;
use sha2::{Digest, Sha256};

fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(config: &mut Config, name: &str, secret: &str) {
    config.keys.insert(name.to_owned(), ClientKey { sha256: hash(secret), ..ClientKey::default() });
}

/// One request with these headers.
fn send(stage: &Stage, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut client = stage.client();
    client.send(method, path, headers, body);
    client.read()
}

/// What comes back for these bytes.
fn raw(stage: &Stage, text: &str) -> String {
    let mut socket = std::net::TcpStream::connect(stage.gateway.address()).unwrap();
    socket.set_read_timeout(Some(koboshi_testkit::DEADLINE)).unwrap();
    socket.write_all(text.as_bytes()).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_client_never_gets_the_cached_answer_of_another_one() {
    for keys in [false, true] {
        let stage = Stage::with(&[], |config| {
            config.serve.passthrough = true;
            if keys {
                key(config, "laptop", "kbs-secret");
            }
            let kept = RouteConfig { cache: Some(CacheMode::Serve), ..route(&["one/ok"]) };
            config.routes.insert("m".to_owned(), kept);
        });
        let ask = |key: &str| stage.post(&chat(false), &[("authorization", &format!("Bearer {key}"))]);
        assert_eq!(ask("sk-first").header("x-koboshi-cache"), None);
        assert_eq!(ask("sk-first").header("x-koboshi-cache"), Some("hit"), "its own answer is kept for it");
        assert_eq!(ask("sk-second").header("x-koboshi-cache"), None, "keys set: {keys}");
        assert_eq!(stage.calls(), (2, 0), "the vendor says whether the second key is good");
    }
}

#[test]
fn a_key_that_cannot_be_handed_on_opens_nothing() {
    let stage = Stage::with(&["one/ok"], |config| {
        config.serve.passthrough = true;
        key(config, "laptop", "kbs-secret");
    });
    let path = "/v1/chat/completions?key=%0Abad";
    let json = [("content-type", "application/json")];
    let answer = send(&stage, "POST", path, &json, chat(false).to_string().as_bytes());
    assert_error(&answer, 401, "unauthorized");
    assert_eq!(stage.calls(), (0, 0), "the gateway's own key is not lent to strangers");
}

#[test]
fn where_clients_need_keys_an_operator_needs_one_too() {
    let stage = Stage::with(&["one/ok"], |config| key(config, "laptop", "kbs-secret"));
    for headers in [vec![], vec![("authorization", "Bearer kbs-secret")]] {
        for path in ["/koboshi/config", "/koboshi/journal", "/koboshi/targets"] {
            let answer = send(&stage, "GET", path, &headers, b"");
            assert_error(&answer, 401, "unauthorized");
            assert!(answer.text().contains("admin.sha256"), "it says what to set: {}", answer.text());
        }
        let order = json!({"target": "one/ok", "action": "open"}).to_string();
        let headers: Vec<_> = headers.iter().copied().chain([("content-type", "application/json")]).collect();
        assert_error(
            &send(&stage, "POST", "/koboshi/breakers", &headers, order.as_bytes()),
            401,
            "unauthorized",
        );
    }
    let stage = Stage::with(&["one/ok"], |config| {
        key(config, "laptop", "kbs-secret");
        config.admin.sha256 = Some(hash("op-secret"));
    });
    let operator = [("authorization", "Bearer op-secret")];
    assert_eq!(send(&stage, "GET", "/koboshi/config", &operator, b"").status, 200);
}

#[test]
fn a_request_through_a_proxy_is_not_local() {
    let stage = Stage::of(&["one/ok"]);
    assert_eq!(stage.get("/koboshi/config").status, 200, "on this machine");
    for header in [
        ("x-forwarded-for", "203.0.113.9"),
        ("X-Forwarded-Host", "ai.example"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
        ("via", "1.1 proxy"),
    ] {
        for path in ["/koboshi/config", "/metrics"] {
            assert_error(&send(&stage, "GET", path, &[header], b""), 401, "unauthorized");
        }
        let ready = send(&stage, "GET", "/ready", &[header], b"");
        assert_eq!((ready.status, ready.text().as_str()), (200, r#"{"ready":true}"#), "{header:?}");
    }
}

#[test]
fn metrics_are_for_this_machine_and_the_admin_key_unless_they_are_made_public() {
    let proxied = ("x-forwarded-for", "203.0.113.9");
    let stage = Stage::with(&["one/ok"], |config| config.admin.sha256 = Some(hash("op-secret")));
    assert_eq!(stage.get("/metrics").status, 200, "on this machine");
    assert_error(&send(&stage, "GET", "/metrics", &[proxied], b""), 401, "unauthorized");
    let operator = ("authorization", "Bearer op-secret");
    assert_eq!(send(&stage, "GET", "/metrics", &[proxied, operator], b"").status, 200);
    assert!(send(&stage, "GET", "/ready", &[proxied, operator], b"").text().contains("store"));
    let stage = Stage::with(&["one/ok"], |config| config.serve.public_metrics = true);
    assert_eq!(send(&stage, "GET", "/metrics", &[proxied], b"").status, 200);
}

/// nginx speaks HTTP/1.0 to the gateway behind it, unless it is configured otherwise, and adds no header.
#[test]
fn a_request_of_http_1_0_is_not_local() {
    let stage = Stage::of(&["one/ok"]);
    for path in ["/koboshi/config", "/metrics"] {
        let local =
            raw(&stage, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
        assert!(local.starts_with("HTTP/1.1 200"), "{local}");
        let proxied = raw(&stage, &format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"));
        assert!(proxied.split(' ').nth(1) == Some("401"), "{proxied}");
    }
    let ready = raw(&stage, "GET /ready HTTP/1.0\r\nhost: localhost\r\n\r\n");
    assert!(ready.contains(" 200 ") && ready.ends_with(r#"{"ready":true}"#), "{ready}");
}

/// A gateway with keys has clients elsewhere, and a proxy may make all of them look local.
#[test]
fn where_clients_need_keys_metrics_need_the_admin_key_on_every_address() {
    for listen in ["127.0.0.1:0", "0.0.0.0:0"] {
        let stage = Stage::with(&["one/ok"], |config| {
            config.serve.listen = listen.parse().unwrap();
            key(config, "laptop", "kbs-secret");
            config.admin.sha256 = Some(hash("op-secret"));
        });
        for headers in [vec![], vec![("authorization", "Bearer kbs-secret")]] {
            assert_error(&send(&stage, "GET", "/metrics", &headers, b""), 401, "unauthorized");
            let ready = send(&stage, "GET", "/ready", &headers, b"");
            assert_eq!((ready.status, ready.text().as_str()), (200, r#"{"ready":true}"#), "{listen}");
        }
        let operator = [("authorization", "Bearer op-secret")];
        assert_eq!(send(&stage, "GET", "/metrics", &operator, b"").status, 200, "{listen}");
        assert!(send(&stage, "GET", "/ready", &operator, b"").text().contains("store"), "{listen}");
    }
}

#[test]
fn only_a_trusted_proxy_says_who_the_client_is() {
    let here = ("x-forwarded-for", "127.0.0.1");
    let far = ("x-forwarded-for", "127.0.0.1, 203.0.113.9");
    let status = |stage: &Stage, header| send(stage, "GET", "/koboshi/status", &[header], b"").status;
    let stage = Stage::of(&["one/ok"]);
    assert_eq!(stage.get("/koboshi/status").status, 200);
    for header in [here, far, ("forwarded", "for=127.0.0.1"), ("via", "1.1 p")] {
        assert_eq!(status(&stage, header), 401, "{header:?}: no proxy is trusted");
    }
    let stage = Stage::with(&["one/ok"], |config| {
        config.serve.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    });
    for (header, expected) in [
        (here, 200),
        (("forwarded", "for=\"127.0.0.1:5050\";proto=https"), 200),
        (far, 401),
        (("forwarded", "for=127.0.0.1, for=203.0.113.9"), 401),
        (("forwarded", "for=unknown"), 401),
        (("x-real-ip", "127.0.0.1"), 401),
    ] {
        assert_eq!(status(&stage, header), expected, "{header:?}");
    }
    let both = [here, ("forwarded", "for=203.0.113.9")];
    assert_eq!(send(&stage, "GET", "/koboshi/status", &both, b"").status, 401, "they differ");
}

#[test]
fn what_an_operator_orders_is_recorded_with_the_address_of_the_client() {
    let stage = Stage::with(&["one/ok"], |config| {
        config.admin.sha256 = Some(hash("op-secret"));
        config.serve.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    });
    let headers = [("authorization", "Bearer op-secret"), ("x-forwarded-for", "203.0.113.9")];
    let order = br#"{"target": "one/ok", "action": "close"}"#;
    let answer = send(&stage, "POST", "/koboshi/breakers", &headers, order);
    assert_eq!(answer.status, 200, "{}", answer.text());
    stage.journal("the order", |entry| entry.data.as_ref().is_some_and(|data| data["from"] == "203.0.113.9"));
}

#[test]
fn a_reload_does_not_open_a_gateway_that_had_keys() {
    let stage = Stage::with(&["one/ok"], |config| key(config, "laptop", "kbs-secret"));
    let mut without = stage.config.clone();
    without.keys.clear();
    let refused = stage.gateway.reload(without).unwrap_err().to_string();
    assert!(refused.contains("keys") && refused.contains("restart"), "{refused}");
    assert_error(&stage.ask(&chat(false)), 401, "unauthorized");
    let mut other = stage.config.clone();
    other.keys.clear();
    key(&mut other, "desktop", "kbs-other");
    stage.gateway.reload(other).unwrap();
    assert_eq!(stage.post(&chat(false), &[("authorization", "Bearer kbs-other")]).status, 200);
}

#[test]
fn a_request_has_one_host_and_it_is_ours() {
    let stage = Stage::of(&["one/ok"]);
    let status = |text: &str| raw(&stage, text).split(' ').nth(1).unwrap_or_default().to_owned();
    for (head, expected) in [
        ("GET /health HTTP/1.1\r\nhost: localhost\r\n", "200"),
        ("GET /health HTTP/1.1\r\nhost: localhost:4141\r\n", "200"),
        ("GET /health HTTP/1.1\r\nhost: [::1]:4141\r\n", "200"),
        ("GET http://localhost/health HTTP/1.1\r\nhost: localhost\r\n", "200"),
        ("GET /health HTTP/1.0\r\n", "200"),
        ("GET /health HTTP/1.1\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n", "400"),
        ("GET /health HTTP/1.0\r\nhost: localhost\r\nhost: evil.example\r\n", "400"),
        ("GET http://evil.example/health HTTP/1.1\r\nhost: localhost\r\n", "400"),
        ("GET /health HTTP/1.1\r\nhost: [::1].evil.example\r\n", "403"),
        ("GET /health HTTP/1.1\r\nhost: localhost:evil.example\r\n", "403"),
        ("GET /health HTTP/1.1\r\nhost: localhost:\r\n", "200"),
        ("GET /health HTTP/1.1\r\nhost: \r\n", "403"),
    ] {
        assert_eq!(status(&format!("{head}connection: close\r\n\r\n")), expected, "{head}");
    }
}

/// A provider that writes the prompt into its error, without quotes, streamed and whole, in every dialect. What it says itself stays. The prompt is about a
/// wrong key, and that is no reason to give up the key of the provider.
#[test]
fn what_a_provider_repeats_of_a_prompt_is_in_no_log_and_no_journal() {
    const PROMPT: &str =
        "My sister's diary lies behind the third brick,\nand the API key in the old well is invalid";
    let words = "cannot parse the input My sister's diary lies behind the third brick,\\nand the API key in the old well is invalid at line 1";
    let error = format!(r#"{{"error":{{"message":"{words}","type":"invalid_request_error"}}}}"#);
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{error}",
        error.len()
    );
    let upstream = RawUpstream::start(move |_| RawReply::Keep(answer.clone()));
    let lines = Lines::default();
    let stage = Stage::logging(&["raw/m"], Some(&lines), |config| {
        config.providers.insert("raw".to_owned(), provider(upstream.url()));
    });
    let message = json!([{"role": "user", "content": PROMPT}]);
    for (number, (path, body)) in [
        ("/v1/chat/completions", json!({"messages": message})),
        ("/v1/chat/completions", json!({"messages": message, "stream": true})),
        ("/v1/messages", json!({"messages": message, "max_tokens": 9})),
        ("/v1/responses", json!({"input": message})),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = body;
        body["model"] = json!("m");
        let answer =
            send(&stage, "POST", path, &[("content-type", "application/json")], body.to_string().as_bytes());
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert_eq!(answer.header("x-koboshi-fault"), Some("invalid_request"), "{path}");
        until("the journal has it", || {
            let query = Query { limit: 1000, ..Query::default() };
            let kept = stage.store.query(&query).unwrap();
            let of_provider = |entry: &&Entry| format!("{entry:?}").contains("cannot parse");
            assert!(!format!("{kept:?}").contains("diary"), "{path}: {kept:?}");
            (kept.iter().filter(of_provider).count() > number).then_some(())
        });
    }
    let log = until("the log has it", || {
        let log = format!("{:?}", lines.all());
        log.contains("cannot parse").then_some(log)
    });
    assert!(!log.contains("diary") && !log.contains("old well"), "{log}");
}

#[test]
fn a_compressed_body_is_refused_with_the_reason() {
    let stage = Stage::of(&["one/ok"]);
    let body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00";
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let answer = send(&stage, "POST", "/v1/chat/completions", &headers, body);
    assert_error(&answer, 415, "invalid_request");
    assert!(answer.text().contains("gzip"), "{}", answer.text());
    let plain = [("content-type", "application/json"), ("content-encoding", "identity")];
    let answer = send(&stage, "POST", "/v1/chat/completions", &plain, chat(false).to_string().as_bytes());
    assert_eq!(answer.status, 200);
    let mut client: Client = stage.client();
    client.send("GET", "/health", &[], b"");
    assert_eq!(client.read().status, 200);
}
