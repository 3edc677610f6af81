//! A session goes by the key that asks: what that key may ask for, also where keys share a tenant, and nothing more once it is revoked.

use koboshi_config::gateway::ClientKey;
use koboshi_testkit::{SessionClient, SessionEnd};
use serde_json::{Value, json};

use crate::common::*;
use crate::hostile::{PROTOCOL, key_of, ticket};

/// Two keys of one tenant, of which the second may ask for one route.
fn with_a_team() -> Stage {
    Stage::with(&["one/ok"], |config| {
        let member = |key: &str, routes: Option<Vec<String>>| ClientKey {
            tenant: Some("team".to_owned()),
            routes,
            ..key_of(key)
        };
        config.keys.insert("alice".to_owned(), member("kbs-alice", None));
        config.keys.insert("bob".to_owned(), member("kbs-bob", Some(vec!["n".to_owned()])));
        config.routes.insert("n".to_owned(), route(&["two/ok"]));
        config.sessions.model = Some("m".to_owned());
    })
}

fn hello(stage: &Stage, key: &str) -> SessionClient {
    let bearer = format!("Bearer {key}");
    let headers = [PROTOCOL, ("authorization", bearer.as_str())];
    let mut client = SessionClient::dial(stage.gateway.address(), "/v1/session", &headers).unwrap();
    client.send(&json!({"type": "hello", "v": 1, "client": "t", "can": ["rewind"]}));
    client.greeted();
    client
}

/// How a question to this route ends: `stop`, or the kind of its error.
fn ends(client: &mut SessionClient, id: &str, route: &str) -> Value {
    client.send(&json!({"type": "chat", "id": id, "content": "x", "route": route}));
    let end = client.until("the turn ends", |frame| {
        frame["type"] == "error" || (frame["type"] == "done" && frame["reason"] != "error")
    });
    if end["type"] == "error" { end["kind"].clone() } else { end["reason"].clone() }
}

#[test]
fn keys_of_one_tenant_have_their_own_limits_in_sessions() {
    let stage = with_a_team();
    assert_eq!(ends(&mut hello(&stage, "kbs-alice"), "c-1", "m"), "stop");
    let mut bob = hello(&stage, "kbs-bob");
    assert_eq!(ends(&mut bob, "c-1", "n"), "stop");
    assert_eq!(ends(&mut bob, "c-2", "m"), "permission_denied");
    let with_ticket = json!({"ticket": ticket(&stage, "kbs-bob", &json!({"routes": ["m", "n"]}))});
    let mut guest = SessionClient::begin_with(stage.gateway.address(), "guest", with_ticket);
    assert_eq!(ends(&mut guest, "c-1", "m"), "permission_denied", "a ticket allows no more than its key");
    assert_eq!(stage.calls(), (1, 1));
}

#[test]
fn a_session_whose_key_was_revoked_asks_for_nothing_more() {
    let stage = with_a_team();
    let mut bob = hello(&stage, "kbs-bob");
    assert_eq!(ends(&mut bob, "c-1", "n"), "stop");
    let mut config = stage.config.clone();
    config.keys.retain(|name, _| name != "bob");
    stage.gateway.reload(config).unwrap();
    assert_eq!(ends(&mut bob, "c-2", "n"), "unauthorized");
    assert_eq!(stage.calls(), (0, 1));
    bob.cut();
    let mut back = SessionClient::dial(stage.gateway.address(), "/v1/session", &[PROTOCOL]).unwrap();
    let hello = json!({"type": "hello", "v": 1, "client": "t", "session": bob.session, "resume": bob.resume});
    back.send(&hello);
    assert_eq!(back.end(), SessionEnd::Closed(4401));
}
