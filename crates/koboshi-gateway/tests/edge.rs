//! Where requests come in: who may call, from where, and how little harm anybody can do.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::Shutdown;

use crate::common::*;
use koboshi_config::Config;
use koboshi_config::gateway::{ClientKey, ProviderConfig, ProviderKind};
use koboshi_gateway::StartError;
use koboshi_store::{MemoryStore, Query, Store};
use koboshi_testkit::{Client, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn key(config: &mut Config, name: &str, secret: &str) {
    let sha256 = Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    config.keys.insert(name.to_owned(), ClientKey { sha256, ..ClientKey::default() });
}

/// One request with these headers.
fn send(stage: &Stage, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut client = stage.client();
    client.send(method, path, headers, body);
    client.read()
}

/// Another client is served as if nothing had happened.
fn others_are_served(stage: &Stage) {
    for stream in [false, true] {
        assert_whole(&stage.ask(&chat(stream)), &chat(stream));
    }
}

#[test]
fn a_key_may_come_in_three_headers_and_unknown_keys_are_refused() {
    let stage = Stage::with(&["one/ok"], |config| key(config, "laptop", "kbs-secret"));
    for header in [
        ("authorization", "Bearer kbs-secret"),
        ("x-api-key", "kbs-secret"),
        ("x-goog-api-key", "kbs-secret"),
    ] {
        assert_whole(&stage.post(&chat(false), &[header]), &chat(false));
    }
    assert_eq!(stage.calls(), (3, 0));
    for headers in [
        vec![],
        vec![("authorization", "Bearer kbs-other")],
        vec![("authorization", "Basic kbs-secret")],
        vec![("x-api-key", "")],
        vec![("x-goog-api-key", "kbs-secret ,")],
    ] {
        let answer = stage.post(&chat(false), &headers);
        let error = assert_error(&answer, 401, "unauthorized");
        assert_eq!(error["code"], "invalid_api_key", "{headers:?}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    assert_eq!(send(&stage, "GET", "/v1/models", &[], b"").status, 401, "names are for those who may call");
    assert_eq!(stage.calls(), (3, 0));
    for open in ["/health", "/ready"] {
        assert_eq!(stage.get(open).status, 200, "{open}");
    }
    for seen in stage.one.requests() {
        assert!(!format!("{seen:?}").contains("kbs-secret"), "a key of ours goes no further");
    }
}

#[test]
fn without_keys_it_listens_on_this_machine_only() {
    let mut open = config();
    open.serve.listen = "0.0.0.0:0".parse().unwrap();
    let refused = start(open.clone(), &MemoryStore::default()).err().unwrap();
    assert!(matches!(refused, StartError::Open(_)), "{refused}");
    key(&mut open, "laptop", "kbs-secret");
    start(open, &MemoryStore::default()).unwrap();
}

#[test]
fn names_that_are_not_ours_are_not_served() {
    let stage = Stage::with(&["one/ok"], |config| config.serve.hosts = vec!["koboshi.internal".to_owned()]);
    let body = chat(false).to_string();
    let ask =
        |host: &str| send(&stage, "POST", "/v1/chat/completions", &[("host", host)], body.as_bytes()).status;
    for host in
        ["localhost", "localhost:4141", "127.0.0.1:4141", "[::1]:4141", "koboshi.internal", "LOCALHOST"]
    {
        assert_eq!(ask(host), 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example:80"] {
        assert_eq!(ask(host), 403, "{host}: a page that rebinds its name");
    }
    assert_eq!(send(&stage, "GET", "/metrics", &[("host", "evil.example")], b"").status, 403);
}

#[test]
fn pages_of_elsewhere_may_not_call() {
    let stage =
        Stage::with(&["one/ok"], |config| config.serve.origins = vec!["https://app.example".to_owned()]);
    for origin in ["https://evil.example", "null", "http://localhost:3000", "https://app.example.evil"] {
        let answer = stage.post(&chat(false), &[("origin", origin)]);
        assert_error(&answer, 403, "permission_denied");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{origin}");
    }
    assert_eq!(stage.calls(), (0, 0));
    let answer = stage.post(&chat(false), &[("origin", "https://app.example")]);
    assert_whole(&answer, &chat(false));
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    let asks = |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type"),
        ];
        send(&stage, "OPTIONS", "/v1/chat/completions", &headers, b"")
    };
    let allowed = asks("https://app.example");
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(allowed.header("access-control-allow-headers").unwrap().contains("content-type"));
    let refused = asks("https://evil.example");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
}

#[test]
fn only_json_is_taken() {
    let stage = Stage::of(&["one/ok"]);
    let body = chat(false).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
        let answer = send(&stage, "POST", "/v1/chat/completions", &[("content-type", kind)], body.as_bytes());
        assert_error(&answer, 415, "invalid_request");
    }
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        let answer = send(&stage, "POST", "/v1/chat/completions", &[("content-type", kind)], body.as_bytes());
        assert_whole(&answer, &chat(false));
    }
}

#[test]
fn paths_with_and_without_the_version() {
    let stage = Stage::of(&["one/ok"]);
    let body = chat(true).to_string();
    for path in
        ["/v1/chat/completions", "/chat/completions", "/v1/chat/completions/", "/v1/chat/completions?x=1"]
    {
        assert_whole(&send(&stage, "POST", path, &[], body.as_bytes()), &chat(true));
    }
    assert_eq!(stage.one.requests()[0].path, "/v1/chat/completions");
    for path in ["/v1", "/v1/", "/v2/chat/completions", "/v1/v1/models", "/etc/passwd"] {
        assert_error(&send(&stage, "GET", path, &[], b""), 404, "invalid_request");
    }
    assert_error(&send(&stage, "GET", "/v1/chat/completions", &[], b""), 405, "invalid_request");
    assert_error(&send(&stage, "POST", "/v1/models", &[], b"{}"), 405, "invalid_request");
}

#[test]
fn embeddings_go_over_the_same_chain() {
    let stage = Stage::of(&["one/fail-503", "two/ok"]);
    let body = json!({"model": "m", "input": "hello"}).to_string();
    for path in ["/v1/embeddings", "/embeddings"] {
        stage.reset();
        let answer = send(&stage, "POST", path, &[], body.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.json()["data"][0]["embedding"].as_array().unwrap().is_empty());
        assert_eq!(answer.header("x-koboshi-target"), Some("two/ok"));
        assert_eq!(answer.header("x-koboshi-fault"), Some("unavailable"));
        assert_eq!(answer.number("x-koboshi-attempts"), Some(3));
        assert_eq!(stage.calls(), (2, 1));
    }
    let stage = Stage::of(&["one/fail-503"]);
    let answer = send(&stage, "POST", "/v1/embeddings", &[], body.as_bytes());
    assert_error(&answer, 503, "unavailable");
    assert_eq!(stage.calls(), (3, 0));
    let answer = send(&stage, "POST", "/v1/embeddings", &[], b"{\"input\":\"x\"}");
    assert_eq!(assert_error(&answer, 400, "invalid_request")["param"], "model");
}

#[test]
fn what_operators_look_at() {
    let stage = Stage::of(&["one/ok"]);
    assert_eq!(stage.get("/health").json()["status"], "ok");
    let ready =
        until("the store is read", || Some(stage.get("/ready")).filter(|answer| answer.status == 200));
    assert_eq!(ready.json()["ready"], true);
    let models = stage.get("/v1/models").json();
    let names: Vec<_> = models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert!(names.contains(&&json!("m")) && names.contains(&&json!("one/ok")), "{names:?}");
    others_are_served(&stage);
    let metrics = stage.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = metrics.text();
    for line in [
        "koboshi_attempts_total{gen_ai_provider_name=\"one\",gen_ai_request_model=\"ok\"} 2",
        "koboshi_answers_total{kind=\"whole\"} 2",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

/// Some clients put a key where the model belongs.
#[test]
fn a_model_that_looks_like_a_secret_is_seen_nowhere() {
    let stage = Stage::of(&["one/ok"]);
    for secret in [format!("sk-proj-{}", "AbC0123456789".repeat(3)), "5f2b8c1d9e7a4b3f".repeat(2)] {
        let mut body = chat(false);
        body["model"] = json!(format!("one/{secret}"));
        stage.ask(&body);
        assert_eq!(
            stage.one.requests().last().unwrap().body["model"],
            secret.as_str(),
            "the provider gets it as it is"
        );
        stage.journal("the fault", |entry| entry.text.contains("[redacted:"));
        let kept = stage.store.query(&Query { limit: 1000, ..Query::default() }).unwrap();
        assert!(!format!("{kept:?}").contains(&secret), "{kept:?}");
        for path in ["/metrics", "/koboshi/targets", "/koboshi/breakers"] {
            assert!(!stage.get(path).text().contains(&secret), "{path}");
        }
    }
}

#[test]
fn the_clients_request_id_comes_back_and_goes_along() {
    let stage = Stage::of(&["one/ok"]);
    let answer = stage.post(&chat(true), &[("x-request-id", "req-of-mine.1")]);
    assert_eq!(answer.header("x-request-id"), Some("req-of-mine.1"));
    assert_eq!(stage.one.requests()[0].header("x-request-id"), Some("req-of-mine.1"));
    let own = stage.ask(&chat(true));
    assert!(own.header("x-request-id").unwrap().starts_with("kbs-"));
    let odd = stage.post(&chat(true), &[("x-request-id", "with blanks in it")]);
    assert!(odd.header("x-request-id").unwrap().starts_with("kbs-"), "what cannot be echoed is replaced");
    let error = stage.post(&json!({"model": "m"}), &[("x-request-id", "req-2")]);
    assert_eq!(error.json()["error"]["koboshi"]["requestId"], "req-2");
}

#[test]
fn errors_are_in_the_clients_language() {
    let stage = Stage::with(&["one/fail-503"], |config| {
        config.language = Some(koboshi_config::config::Language::Ja);
    });
    let japanese = stage.ask(&chat(false)).error().unwrap();
    assert!(japanese["message"].as_str().unwrap().contains("サービス"), "{japanese}");
    assert_eq!(japanese["koboshi"]["lang"], "ja");
    let english = stage.post(&chat(false), &[("accept-language", "en-GB,en;q=0.9,ja;q=0.1")]);
    assert!(english.error().unwrap()["message"].as_str().unwrap().contains("unavailable"), "{english:?}");
}

#[test]
fn a_request_that_cannot_be_read_says_where() {
    let stage = Stage::of(&["one/ok"]);
    for (body, param) in [
        (r#"{"messages":[]}"#, Some("model")),
        (r#"{"model":"m"}"#, Some("messages")),
        (r#"{"model":7,"messages":[]}"#, Some("model")),
        (r#"{"model":"m","messages":"hi"}"#, Some("messages")),
        (r#"{"model":"m","messages":[],"stream":"yes"}"#, Some("stream")),
        (r#"{"model":"m","messages":["#, None),
        ("", None),
        ("[]", None),
        ("nonsense", None),
    ] {
        let answer = send(
            &stage,
            "POST",
            "/v1/chat/completions",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );
        let error = assert_error(&answer, 400, "invalid_request");
        assert_eq!(error["param"].as_str(), param, "{body}: {error}");
    }
    assert_eq!(stage.calls(), (0, 0));
}

// Clients that mean harm. Whatever one of them does, the others are served.

fn guarded() -> Stage {
    Stage::with(&["one/ok"], |config| {
        config.serve.head_time = ms(400);
        config.serve.body_time = ms(400);
    })
}

#[test]
fn a_head_that_does_not_come_is_not_waited_for() {
    let stage = guarded();
    let mut slow: Vec<_> = (0..50).map(|_| stage.client()).collect();
    for client in &mut slow {
        client.stream.write_all(HALF_A_HEAD).unwrap();
    }
    others_are_served(&stage);
    for client in &mut slow {
        assert_closed(client);
    }
    others_are_served(&stage);
}

#[test]
fn a_lone_client_whose_head_does_not_come_is_closed_without_another_client() {
    let stage = guarded();
    // Also not after a time without clients.
    for _ in 0..2 {
        let mut client = stage.client();
        client.stream.write_all(HALF_A_HEAD).unwrap();
        assert_closed(&mut client);
    }
}

const HALF_A_HEAD: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-slow: ";

/// The connection ends, with or without a word why, before the client's own patience does.
fn assert_closed(client: &mut Client) {
    let mut rest = Vec::new();
    let ended = client.stream.read_to_end(&mut rest);
    assert!(ended.is_ok(), "{ended:?}");
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn a_body_that_does_not_come_is_a_408() {
    let stage = guarded();
    let mut client = stage.client();
    client
        .stream
        .write_all(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"model\":",
        )
        .unwrap();
    others_are_served(&stage);
    let answer = client.read();
    assert_error(&answer, 408, "timeout");
    assert_eq!(stage.calls().0, 2, "only the others");
}

#[test]
fn a_body_of_a_gigabyte_is_refused_when_it_is_announced() {
    let stage = guarded();
    let mut client = stage.client();
    client
        .stream
        .write_all(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n",
        )
        .unwrap();
    let answer = client.read();
    assert_error(&answer, 413, "message_too_large");
    others_are_served(&stage);
}

#[test]
fn a_body_of_a_gigabyte_is_refused_when_it_is_streamed() {
    let stage = Stage::with(&["one/ok"], |config| config.serve.body_bytes = 4 * 1024 * 1024);
    let mut client = stage.client();
    client
        .stream
        .write_all(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .unwrap();
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend(vec![b' '; 0x10000]);
    chunk.extend(b"\r\n");
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let mut sent = 0_u64;
        while sent < 1 << 30 && writer.write_all(&chunk).is_ok() {
            sent += 0x10000;
        }
        sent
    });
    let answer = client.read();
    assert_error(&answer, 413, "message_too_large");
    let _ = client.stream.shutdown(Shutdown::Both);
    let sent = sender.join().unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    others_are_served(&stage);
}

#[test]
fn deep_json_and_wrong_letters_are_refused_in_words() {
    let stage = Stage::of(&["one/ok"]);
    let deep = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":{}1{}}}]}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    let deep_field = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"x":{}{}}}"#,
        "{\"a\":".repeat(200_000),
        "}".repeat(200_000)
    );
    let letters = b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}".to_vec();
    for body in [deep.into_bytes(), deep_field.into_bytes(), letters] {
        let answer = send(&stage, "POST", "/v1/chat/completions", &[], &body);
        assert_error(&answer, 400, "invalid_request");
    }
    assert_eq!(stage.calls(), (0, 0));
    others_are_served(&stage);
}

#[test]
fn ten_thousand_headers_and_one_huge_one_are_refused() {
    let stage = Stage::of(&["one/ok"]);
    let many: String = (0..10_000).map(|number| format!("x-{number}: y\r\n")).collect();
    let huge = format!("x-huge: {}\r\n", "y".repeat(10 << 20));
    for headers in [many, huge] {
        let mut client = stage.client();
        let head = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        // It may be refused before it was sent.
        let mut writer = client.stream.try_clone().unwrap();
        let sender = std::thread::spawn(move || writer.write_all(head.as_bytes()).is_ok());
        let answer = client.read();
        assert_eq!(answer.status, 431, "{answer:?}");
        let _ = client.stream.shutdown(Shutdown::Both);
        let _ = sender.join();
    }
    others_are_served(&stage);
}

#[test]
fn garbage_is_a_400_or_nothing() {
    let stage = guarded();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        &[0; 4096],
    ] {
        let mut client = stage.client();
        client.stream.write_all(garbage).unwrap();
        let answer = client.read();
        assert!([0, 400, 408].contains(&answer.status), "{answer:?}");
    }
    others_are_served(&stage);
    assert_eq!(stage.calls().0, 2, "nothing of it went on");
}

#[test]
fn half_closed_sockets_are_answered_or_let_go_and_never_kept() {
    let stage = guarded();
    // The request is whole, and the client says that nothing follows.
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    client.close_writing();
    let answer = client.read();
    assert_whole(&answer, &chat(true));
    // Nothing was said at all, or half a request.
    for begun in [
        "",
        "POST /v1/chat",
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let mut client = stage.client();
        client.stream.write_all(begun.as_bytes()).unwrap();
        client.close_writing();
        let answer = client.read();
        assert!([0, 400].contains(&answer.status), "{answer:?}");
    }
    until("no client is left", || {
        let text = stage.get("/metrics").text();
        // The look itself has one.
        gauge(&text, "koboshi_connections").is_some_and(|open| open <= 1.0).then_some(())
    });
    others_are_served(&stage);
}

#[test]
fn one_connection_serves_many_requests() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = stage.client();
    for number in 0..20 {
        let body = chat(number % 2 == 0);
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        assert_whole(&client.read(), &body);
    }
    assert_eq!(stage.calls(), (20, 0));
    let connections: std::collections::BTreeSet<_> =
        stage.one.requests().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections.len(), 1, "and so does one to the provider");
}

/// What a gateway without any provider answers to a client with tools.
fn asked_without_a_provider(
    gateway: &koboshi_gateway::Gateway,
    model: &str,
    change: impl Fn(&mut Value),
) -> Vec<Answer> {
    let ask = |stream: bool| {
        let mut body = with_tools(stream, "look it up");
        body["model"] = model.into();
        change(&mut body);
        let mut client = Client::to(gateway.address());
        client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        client.read()
    };
    vec![ask(false), ask(true)]
}

#[test]
fn without_a_provider_no_tool_call_is_made_up_unless_it_is_asked_for() {
    let gateway = start_demo(config(), &MemoryStore::default()).unwrap();
    // A real agent would run what is made up here.
    for model in [
        "gpt-4o", "openai/gpt-4o", "claude-sonnet-4-5", "sim/ok", "sim/ok?chunks=60",
        "sim/slow-first?after=1ms",
    ] {
        for answer in asked_without_a_provider(&gateway, model, |_| {}) {
            assert_eq!((answer.status, answer.calls().len()), (200, 0), "{model}: {answer:?}");
            assert_eq!(answer.finish().as_deref(), Some("stop"), "{model}");
            assert!(answer.content().starts_with("This is a simulated answer"), "{model}: {answer:?}");
        }
    }
    let made = |model: &str, change: &dyn Fn(&mut Value)| {
        for answer in asked_without_a_provider(&gateway, model, change) {
            assert_eq!((answer.status, answer.calls().len()), (200, 1), "{model}: {answer:?}");
        }
    };
    made("sim/ok?tools=yes", &|_| {});
    made("sim/broken-tool-args", &|_| {});
    made("gpt-4o", &|body| body["tool_choice"] = "required".into());
    made("gpt-4o", &|body| {
        let script = "koboshi-sim: call look_up {\"city\": \"Aizu\", \"count\": 1}";
        body["messages"][0]["content"] = script.into();
    });
    // Who sets it up as a provider wants a provider.
    let mut told = config();
    let sim = ProviderConfig {
        kind: ProviderKind::Sim,
        base_url: None,
        keys: Vec::new(),
        ..provider(String::new())
    };
    told.providers.insert("sim".to_owned(), sim);
    let gateway = start(told, &MemoryStore::default()).unwrap();
    for answer in asked_without_a_provider(&gateway, "sim/ok", |_| {}) {
        assert_eq!(answer.calls().len(), 1, "{answer:?}");
    }
}
