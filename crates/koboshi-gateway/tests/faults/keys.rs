//! Whose key goes where: the gateway's own, and those that clients bring along.

use koboshi_config::secret::Secret;
use serde_json::{Value, json};

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

/// A conversation of this many turns; with a tool's result at its end, or a question.
fn conversation(opening: &str, turns: usize, in_a_loop: bool) -> Value {
    let mut body = chat(false);
    let mut messages = vec![json!({"role": "user", "content": opening})];
    for turn in 0..turns {
        if in_a_loop {
            let id = format!("call_{turn}");
            let call =
                json!({"id": id, "type": "function", "function": {"name": "look_up", "arguments": "{}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": format!("result {turn}")}));
        } else {
            messages.push(json!({"role": "assistant", "content": "Yes."}));
            messages.push(json!({"role": "user", "content": format!("and {turn}?")}));
        }
    }
    body["messages"] = messages.into();
    body
}

#[test]
fn a_conversation_stays_with_the_key_whose_prompt_cache_is_warm() {
    let stage = Stage::with(&["one/ok", "two/ok"], |config| {
        let one = config.providers.get_mut("one").unwrap();
        one.keys = ["sk-a", "sk-b", "sk-c"].map(Secret::new).to_vec();
    });
    let key = |body: &Value| {
        stage.one.reset_counts();
        assert_eq!(stage.ask(body).status, 200);
        stage.one.requests()[0].authorization.clone().unwrap()
    };
    for in_a_loop in [true, false] {
        for opening in ["first", "second", "third", "fourth"] {
            let opening = format!("{opening}, in a loop: {in_a_loop}");
            let served = key(&conversation(&opening, 0, in_a_loop));
            for turns in 1..6 {
                // Another client comes between, so that the rotation of the keys does not help.
                key(&conversation(&format!("another one: {opening}, {turns}"), 0, false));
                assert_eq!(key(&conversation(&opening, turns, in_a_loop)), served, "{opening}, {turns}");
            }
        }
    }
    let mut used: Vec<String> =
        (0..3).map(|nth| key(&conversation(&format!("new {nth}"), 0, false))).collect();
    used.sort();
    assert_eq!(used, ["Bearer sk-a", "Bearer sk-b", "Bearer sk-c"], "new ones take turns");
}

#[test]
fn a_conversation_goes_back_to_the_first_model_with_the_users_next_message() {
    let stage = Stage::with(&["one/flap?down=3&up=1000", "two/ok"], |config| {
        let two = config.providers.get_mut("two").unwrap();
        two.keys = ["sk-a", "sk-b"].map(Secret::new).to_vec();
    });
    stage.one.set("flap?down=3&up=1000", |ask| {
        let model = if ask.tally.nth < 2 { "fail-503" } else { "ok" };
        koboshi_sim::play(&koboshi_sim::Ask { model, ..*ask })
    });
    assert_eq!(stage.ask(&conversation("hello", 0, true)).header("x-koboshi-target"), Some("two/ok"));
    let served = stage.two.requests()[0].authorization.clone();
    for turns in 1..4 {
        let answer = stage.ask(&conversation("hello", turns, true));
        assert_eq!(answer.header("x-koboshi-target"), Some("two/ok"), "the loop stays where it is");
        assert_eq!(stage.two.requests().last().unwrap().authorization, served);
    }
    let answer = stage.ask(&conversation("hello", 4, false));
    assert_eq!(answer.header("x-koboshi-target"), Some("one/flap?down=3&up=1000"));
}
