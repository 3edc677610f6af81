//! Frames and clients that mean no good, or are broken.

use koboshi_config::gateway::ClientKey;
use koboshi_testkit::{Client, SessionClient, SessionEnd, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;

use crate::common::*;

pub(crate) const PROTOCOL: (&str, &str) = ("sec-websocket-protocol", "koboshi.v1");

pub(crate) fn key_of(key: &str) -> ClientKey {
    let sha256 = Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    ClientKey { sha256, ..ClientKey::default() }
}

/// A gateway with two tenants.
fn with_keys() -> Stage {
    Stage::with(&["one/ok"], |config| {
        config.keys.insert("app".to_owned(), key_of("kbs-app"));
        config.keys.insert("other".to_owned(), key_of("kbs-other"));
    })
}

pub(crate) fn ticket(stage: &Stage, key: &str, order: &Value) -> String {
    let mut client = Client::to(stage.gateway.address());
    let authorization = format!("Bearer {key}");
    client.send(
        "POST",
        "/v1/session/ticket",
        &[("authorization", &authorization)],
        order.to_string().as_bytes(),
    );
    let answer = client.read();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["ticket"].as_str().unwrap().to_owned()
}

/// What a first frame is answered by.
fn first(stage: &Stage, headers: &[(&str, &str)], hello: &Value) -> (String, SessionEnd) {
    let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", headers).unwrap();
    client.send(hello);
    let frame = client.next().unwrap();
    let kind = frame["kind"].as_str().unwrap_or_default().to_owned();
    (kind, client.end())
}

#[test]
fn garbage_gets_a_typed_error_and_in_a_row_the_end() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    for text in ["{", "[]", "{\"type\":7}", r#"{"type":"chat"}"#, r#"{"type":"chat","content":7}"#] {
        client.send_text(text);
        let error = client.next_of("error");
        assert_eq!(
            (&error["code"], &error["scope"], &error["recoverable"]),
            (&json!(3001), &json!("connection"), &json!(true))
        );
        assert!(!error["detail"].as_str().unwrap().is_empty());
        client.send(&json!({"type": "ping", "t": text}));
        client.next_of("pong");
    }
    for _ in 0..5 {
        client.send(&json!({"type": "dance"}));
        assert_eq!(client.next_of("error")["code"], 3001, "a newer client may know it: not counted");
    }
    let deep = format!(r#"{{"type":"ping","t":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    client.send_text(&deep);
    client.send_text(r#"{"type":"chat","content":"\ud800"}"#);
    client.send_message(Message::binary(vec![0, 1, 2]));
    assert_eq!(client.end(), SessionEnd::Closed(4400));
    client.come_back();
    client.chat("c-1", "hello");
    assert!(!client.answer().is_empty(), "the session lives");
}

#[test]
fn a_frame_that_is_too_large_is_dropped_and_a_huge_one_ends_the_connection() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", &"x".repeat(1100 * 1024));
    assert_eq!(client.next_of("error")["code"], 3002);
    client.chat("c-2", "hello");
    assert!(!client.answer().is_empty());
    client.chat("c-3", &"x".repeat(5 * 1024 * 1024));
    assert!(matches!(client.end(), SessionEnd::Closed(1009) | SessionEnd::Cut));
}

#[test]
fn two_hundred_frames_at_once_are_taken_in_their_time() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    let begun = Instant::now();
    for number in 0..200 {
        client.send(&json!({"type": "ping", "t": number}));
    }
    for number in 0..200 {
        assert_eq!(client.next_of("pong")["t"], number);
    }
    // Sixty at once, then thirty a second.
    assert!(begun.elapsed() > Duration::from_secs(4), "they were taken in {:?}", begun.elapsed());
}

#[test]
fn what_is_no_handshake_and_what_is_no_hello_is_refused() {
    let stage = Stage::of(&["one/ok"]);
    let answer = stage.get("/v1/session");
    assert_eq!(answer.status, 426);
    assert_eq!(first(&stage, &[PROTOCOL], &json!({"type": "hello", "v": 2})).1, SessionEnd::Closed(4406));
    assert_eq!(
        first(&stage, &[PROTOCOL], &json!({"type": "chat", "content": "x"})).1,
        SessionEnd::Closed(4400)
    );
    let foreign = [PROTOCOL, ("origin", "https://evil.example")];
    let refused = SessionClient::dial(stage.gateway.address(), "/v1/session", &foreign);
    assert_eq!(refused.err(), Some(SessionEnd::Refused(403)));
}

#[test]
fn who_only_pings_has_ten_seconds_for_its_hello_all_the_same() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
    let begun = Instant::now();
    until("it has pinged for longer than that", || {
        client.send_message(Message::Ping(Vec::new().into()));
        (begun.elapsed() > Duration::from_secs(9)).then_some(())
    });
    assert_eq!(client.next_of("error")["kind"], "invalid_message");
    assert_eq!(client.end(), SessionEnd::Closed(4400));
    assert!(begun.elapsed() < Duration::from_secs(15), "the pings gave it no time");
}

#[test]
fn a_first_frame_that_is_too_large_is_not_read() {
    let stage = Stage::with(&["one/ok"], |config| config.sessions.max_frame_bytes = 2048);
    let large = "x".repeat(4000);
    for (headers, frame) in [
        (vec![PROTOCOL], json!({"type": "hello", "v": 1, "client": large})),
        (vec![], json!({"type": "chat", "content": large})),
    ] {
        assert_eq!(
            first(&stage, &headers, &frame),
            ("message_too_large".to_owned(), SessionEnd::Closed(4413))
        );
    }
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn a_ticket_lets_in_once() {
    let stage = with_keys();
    let hello = |ticket: Option<&str>| json!({"type": "hello", "v": 1, "client": "t", "ticket": ticket});
    assert_eq!(
        first(&stage, &[PROTOCOL], &hello(None)),
        ("unauthorized".to_owned(), SessionEnd::Closed(4401))
    );
    assert_eq!(
        first(&stage, &[PROTOCOL], &hello(Some("made-up"))),
        ("token_expired".to_owned(), SessionEnd::Closed(4401))
    );
    let secret = ticket(&stage, "kbs-app", &json!({}));
    let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
    client.send(&hello(Some(&secret)));
    client.greeted();
    client.chat("c-1", "hello");
    assert!(!client.answer().is_empty());
    assert_eq!(first(&stage, &[PROTOCOL], &hello(Some(&secret))).1, SessionEnd::Closed(4401), "it was used");
    let in_protocol = format!("koboshi.v1, koboshi.ticket.{}", ticket(&stage, "kbs-app", &json!({})));
    let mut page = SessionClient::dial(
        stage.gateway.address(),
        "/v1/session",
        &[("sec-websocket-protocol", &in_protocol)],
    )
    .unwrap();
    page.send(&hello(None));
    page.greeted();
    let with_key = [PROTOCOL, ("authorization", "Bearer kbs-app")];
    let mut server = SessionClient::dial(stage.gateway.address(), "/v1/session", &with_key).unwrap();
    server.send(&hello(None));
    server.greeted();
    let bound = ticket(&stage, "kbs-app", &json!({"origin": "https://app.example"}));
    assert_eq!(first(&stage, &[PROTOCOL], &hello(Some(&bound))).1, SessionEnd::Closed(4403));
    let mut plain = SessionClient::dial(stage.gateway.address(), "/ws", &[]).unwrap();
    plain.send(&json!({"type": "chat", "content": "x"}));
    assert_eq!(plain.end(), SessionEnd::Closed(4401), "plain clients need one too");
}

/// What is missing is the gateway's own key or ticket, and what is wrong is the session's token: no provider was asked for anything.
#[test]
fn the_words_of_a_refused_connection_are_about_the_gateway() {
    let stage = with_keys();
    let said = |hello: &Value| {
        let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
        client.send(hello);
        let error = client.next_of("error");
        format!("{} {}", error["message"].as_str().unwrap(), error["suggestion"].as_str().unwrap())
    };
    let bare = said(&json!({"type": "hello", "v": 1, "client": "t"}));
    assert!(bare.contains("a key of its own or a ticket") && bare.contains("/v1/session/ticket"), "{bare}");
    assert!(!bare.contains("for this provider"), "{bare}");
    let ja = said(&json!({"type": "hello", "v": 1, "client": "t", "lang": "ja"}));
    assert!(ja.contains("このゲートウェイのキーかチケット") && !ja.contains("プロバイダーの有効な"), "{ja}");
    let used = said(&json!({"type": "hello", "v": 1, "client": "t", "ticket": "made-up"}));
    assert!(used.contains("The ticket is not valid"), "{used}");
    let wrong =
        said(&json!({"type": "hello", "v": 1, "client": "t", "session": "s_none", "resume": "wrong"}));
    assert!(wrong.contains("the token with which it is resumed is wrong"), "{wrong}");
}

/// A frame that was read, and asks for what is not there, was read.
#[test]
fn a_claim_of_no_call_is_not_told_as_unreadable() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.send(&json!({"type": "tool_claim", "call": "zz"}));
    let error = client.next_of("error");
    assert_eq!((&error["kind"], &error["detail"]), (&json!("invalid_message"), &json!("no such call")));
    assert!(!error["message"].as_str().unwrap().contains("could not be read"), "{error}");
}

#[test]
fn a_session_is_given_to_nobody_else_and_nothing_tells_whether_it_exists() {
    let stage = with_keys();
    let mut client = SessionClient::dial(
        stage.gateway.address(),
        "/v1/session",
        &[PROTOCOL, ("authorization", "Bearer kbs-app")],
    )
    .unwrap();
    client.send(&json!({"type": "hello", "v": 1, "client": "tab-1"}));
    client.greeted();
    let refused = |session: &str, resume: &str, key: &str| {
        let authorization = format!("Bearer {key}");
        let hello = json!({"type": "hello", "v": 1, "client": "t", "session": session, "resume": resume});
        let mut client = SessionClient::dial(
            stage.gateway.address(),
            "/v1/session",
            &[PROTOCOL, ("authorization", &authorization)],
        )
        .unwrap();
        client.send(&hello);
        let mut frame = client.next().unwrap();
        frame.as_object_mut().unwrap().remove("id");
        (frame, client.end())
    };
    let unknown = refused("s_none", &client.resume, "kbs-other");
    assert_eq!(unknown.1, SessionEnd::Closed(4404));
    assert_eq!(refused(&client.session, &client.resume, "kbs-other"), unknown, "another tenant's");
    let without_key = |session: &str, resume: &str| {
        let hello = json!({"type": "hello", "v": 1, "client": "t", "session": session, "resume": resume});
        let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
        client.send(&hello);
        (client.next().unwrap(), client.end())
    };
    assert_eq!(without_key("s_none", &client.resume), unknown);
    assert_eq!(without_key(&client.session, "a-wrong-token"), unknown);
    assert_eq!(without_key(&client.session, ""), unknown);
}

#[test]
fn a_ticket_that_was_not_used_in_time_lets_nobody_in() {
    let stage = Stage::with(&["one/ok"], |config| {
        config.keys.insert("app".to_owned(), key_of("kbs-app"));
        config.sessions.ticket_ttl = ms(100);
    });
    let secret = ticket(&stage, "kbs-app", &json!({}));
    let begun = Instant::now();
    until("its time is over", || (begun.elapsed() > ms(300)).then_some(()));
    let hello = json!({"type": "hello", "v": 1, "client": "t", "ticket": secret});
    assert_eq!(first(&stage, &[PROTOCOL], &hello), ("token_expired".to_owned(), SessionEnd::Closed(4401)));
}

#[test]
fn a_stolen_old_token_is_worth_nothing() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    let stolen = client.resume.clone();
    client.come_back();
    client.come_back();
    let hello =
        json!({"type": "hello", "v": 1, "client": "thief", "session": client.session, "resume": stolen});
    assert_eq!(
        first(&stage, &[PROTOCOL], &hello),
        ("conversation_not_found".to_owned(), SessionEnd::Closed(4404))
    );
    let without = json!({"type": "hello", "v": 1, "client": "thief", "session": client.session});
    assert_eq!(first(&stage, &[PROTOCOL], &without).1, SessionEnd::Closed(4404));
}

#[test]
fn a_session_has_so_many_connections_and_routes_are_those_of_the_ticket() {
    let stage = Stage::with(&["one/ok"], |config| config.sessions.max_connections = 2);
    let one = SessionClient::begin(stage.gateway.address(), "tab-1");
    let _two = one.tab("tab-2");
    let hello = json!({"type": "hello", "v": 1, "client": "t", "session": one.session, "resume": one.resume});
    assert_eq!(first(&stage, &[PROTOCOL], &hello), ("overloaded".to_owned(), SessionEnd::Closed(4529)));
    let secret = ticket(&stage, "any", &json!({"routes": ["other"]}));
    let mut client = SessionClient::begin_with(stage.gateway.address(), "tab-9", json!({"ticket": secret}));
    client.send(&json!({"type": "chat", "id": "c-1", "content": "x", "route": "m"}));
    assert_eq!(client.next_of("error")["kind"], "permission_denied");
}

/// A connection with a ticket, from this page.
fn with_ticket(stage: &Stage, order: &Value, origin: Option<&str>) -> SessionClient {
    let origin = origin.map(|origin| ("origin", origin));
    let headers: Vec<_> = [PROTOCOL].into_iter().chain(origin).collect();
    let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", &headers).unwrap();
    let ticket = ticket(stage, "kbs-app", order);
    client
        .send(&json!({"type": "hello", "v": 1, "client": "t", "can": ["rewind", "tools"], "ticket": ticket}));
    client.greeted();
    client
}

/// A gateway with keys, two routes and a page.
fn with_pages() -> Stage {
    Stage::with(&["one/ok"], |config| {
        config.keys.insert("app".to_owned(), key_of("kbs-app"));
        config.keys.insert("other".to_owned(), key_of("kbs-other"));
        config.routes.insert("n".to_owned(), route(&["two/ok"]));
        config.sessions.model = Some("m".to_owned());
        config.serve.origins = vec![PAGE.to_owned(), OTHER_PAGE.to_owned()];
    })
}

const PAGE: &str = "https://app.example";
const OTHER_PAGE: &str = "https://other.example";

#[test]
fn a_ticket_allows_its_routes_and_no_other_one_also_after_coming_back() {
    let stage = with_pages();
    let mut client = with_ticket(&stage, &json!({"routes": ["n"]}), None);
    for come_back in [false, true, true] {
        if come_back {
            client.cut();
            let hello = json!({
                "type": "hello", "v": 1, "client": "t", "session": client.session, "resume": client.resume,
            });
            client = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
            client.send(&hello);
            client.greeted();
        }
        client.send(&json!({"type": "chat", "id": "c-1", "content": "x"}));
        assert_eq!(client.next_of("error")["kind"], "permission_denied", "the default one");
        client.send(&json!({"type": "chat", "id": "c-2", "content": "x", "route": "m"}));
        assert_eq!(client.next_of("error")["kind"], "permission_denied");
    }
    client.send(&json!({"type": "chat", "id": "c-3", "content": "x", "route": "n"}));
    client.next_of("done");
    assert_eq!(stage.calls(), (0, 1));
    let with_key = [PROTOCOL, ("authorization", "Bearer kbs-app")];
    let mut server = SessionClient::dial(stage.gateway.address(), "/v1/session", &with_key).unwrap();
    server.send(&json!({"type": "hello", "v": 1, "client": "u", "session": client.session}));
    server.greeted();
    server.chat("c-4", "from one who may");
    client.until("it is answered", |frame| frame["type"] == "done" && frame["turn"] == 2);
    client.send(&json!({"type": "retry", "id": "y-1", "turn": 2}));
    assert_eq!(client.next_of("error")["kind"], "permission_denied", "nor again what another one asked");
    assert_eq!(stage.calls(), (1, 1));
}

#[test]
fn a_ticket_is_for_its_page_also_after_coming_back() {
    let stage = with_pages();
    let client = with_ticket(&stage, &json!({"origin": PAGE}), Some(PAGE));
    let hello =
        json!({"type": "hello", "v": 1, "client": "t", "session": client.session, "resume": client.resume});
    for headers in [vec![PROTOCOL, ("origin", OTHER_PAGE)], vec![PROTOCOL]] {
        assert_eq!(first(&stage, &headers, &hello).1, SessionEnd::Closed(4403));
    }
    let mut back =
        SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL, ("origin", PAGE)]).unwrap();
    back.send(&hello);
    back.greeted();
}

#[test]
fn a_ticket_on_a_lasting_connection_must_be_for_it() {
    let stage = with_pages();
    let end = |key: &str, order: Value| {
        let mut client = with_ticket(&stage, &json!({}), Some(PAGE));
        let secret = ticket(&stage, key, &order);
        client.send(&json!({"type": "auth", "ticket": secret}));
        client.end()
    };
    assert_eq!(end("kbs-other", json!({})), SessionEnd::Closed(4401), "another tenant's");
    assert_eq!(end("kbs-app", json!({"session": "s_other"})), SessionEnd::Closed(4401), "another session's");
    assert_eq!(end("kbs-app", json!({"origin": OTHER_PAGE})), SessionEnd::Closed(4403), "another page's");
    let mut client = with_ticket(&stage, &json!({"routes": ["m"]}), Some(PAGE));
    let order = json!({"session": client.session, "origin": PAGE, "routes": ["n"]});
    let wider = ticket(&stage, "kbs-app", &order);
    client.send(&json!({"type": "auth", "ticket": wider}));
    client.send(&json!({"type": "chat", "id": "c-1", "content": "x", "route": "n"}));
    client.next_of("done");
    client.send(&json!({"type": "auth", "ticket": wider}));
    assert_eq!(client.end(), SessionEnd::Closed(4401), "it was used");
}

#[test]
fn a_ticket_for_one_session_opens_no_other() {
    let stage = with_pages();
    let mut one = with_ticket(&stage, &json!({}), None);
    let two = with_ticket(&stage, &json!({}), None);
    let for_one = || ticket(&stage, "kbs-app", &json!({"session": one.session}));
    let hello = json!({"type": "hello", "v": 1, "client": "u", "session": two.session, "ticket": for_one()});
    let refused = ("conversation_not_found".to_owned(), SessionEnd::Closed(4404));
    assert_eq!(first(&stage, &[PROTOCOL], &hello), refused);
    let mut tab = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
    tab.send(&json!({"type": "hello", "v": 1, "client": "u", "ticket": for_one()}));
    tab.greeted();
    assert_eq!(tab.session, one.session, "the ticket names it");
    tab.chat("c-1", "hello");
    one.next_of("done");
}

/// P10.
#[test]
fn nothing_secret_is_in_a_frame_or_in_the_log() {
    let log = Lines::default();
    let mut stage = with_keys();
    stage.config.log.level = "debug";
    let store = std::sync::Arc::new(stage.store.clone());
    stage.gateway = start_on(stage.config.clone(), store, Some(log.clone())).unwrap();
    let mut client = with_ticket(&stage, &json!({}), None);
    client.chat("c-1", "my password is hunter2-very-secret");
    client.answer();
    let before = client.resume.clone();
    let secret = ticket(&stage, "kbs-app", &json!({}));
    client.send(&json!({"type": "auth", "ticket": secret}));
    client.send(&json!({"type": "auth", "ticket": "a-forged-ticket"}));
    assert_eq!(client.end(), SessionEnd::Closed(4401));
    let said = format!("{:?}", log.all());
    for hidden in ["hunter2", &before, &secret, "a-forged-ticket", "kbs-app", "sk-own"] {
        assert!(!said.contains(hidden), "{hidden}: {said}");
    }
    assert!(!said.is_empty());
    let shown: String = client.frames.iter().map(ToString::to_string).collect();
    for hidden in ["sk-own", "kbs-app", &secret, "a-forged-ticket"] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
    }
}
