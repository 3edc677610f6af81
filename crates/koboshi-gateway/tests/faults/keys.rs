//! Whose key goes where: the gateway's own, and those that clients bring along.

use koboshi_config::secret::Secret;

use crate::common::*;

const OWN: (&str, &str) = ("authorization", "Bearer sk-of-the-client");

#[test]
fn a_clients_own_key_goes_to_its_vendor_only() {
    let stage = Stage::with(&["one/fail-503", "two/ok"], |config| {
        config.serve.passthrough = true;
        config.routes.insert("fine".to_owned(), route(&["one/ok", "two/ok"]));
    });
    let mut body = chat(true);
    body["model"] = "fine".into();
    assert_whole(&stage.post(&body, &[OWN]), &body);
    let answer = stage.post(&chat(true), &[OWN]);
    assert_error(&answer, 503, "unavailable");
    assert_eq!(stage.calls(), (1 + 3, 0), "no fallback for a key that is not ours");
    for seen in stage.one.requests() {
        assert_eq!(seen.authorization.as_deref(), Some("Bearer sk-of-the-client"));
    }
    let without = stage.ask(&chat(true));
    assert_eq!(without.status, 200);
    assert_eq!(stage.two.requests()[0].authorization.as_deref(), Some("Bearer sk-own"));
}

#[test]
fn a_clients_bad_key_is_its_own_trouble() {
    let stage = Stage::with(&["one/picky"], |config| {
        config.serve.passthrough = true;
        config.breaker.consecutive = Some(1);
        let one = config.providers.get_mut("one").unwrap();
        one.keys = vec![Secret::new("sk-own"), Secret::new("sk-own-too")];
    });
    stage.one.set("picky", |ask| {
        let model = if ask.tally.nth < 3 { "auth-401" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    for _ in 0..3 {
        assert_error(&stage.post(&chat(false), &[OWN]), 401, "unauthorized");
    }
    assert_eq!(stage.calls(), (3, 0), "once each: it is one key, however many we have");
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    let asked = stage.one.requests();
    assert!(asked[3].authorization.as_deref().unwrap().contains("sk-own"), "ours is not to blame");
}

#[test]
fn without_passthrough_a_clients_key_goes_nowhere() {
    let stage = Stage::of(&["one/ok"]);
    assert_whole(&stage.post(&chat(false), &[OWN]), &chat(false));
    let seen = &stage.one.requests()[0];
    assert_eq!(seen.authorization.as_deref(), Some("Bearer sk-own"));
    assert!(seen.headers.iter().all(|(_, value)| !value.contains("sk-of-the-client")), "{seen:?}");
}
