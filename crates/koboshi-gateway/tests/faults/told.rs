//! Errors say what is true: which limit, whose limit, which field, and how many attempts there really were.

use koboshi_config::gateway::{ProviderConfig, ProviderKind};
use koboshi_config::secret::Secret;
use serde_json::{Value, json};

use crate::common::*;

fn koboshi(answer: &Answer) -> Value {
    answer.json()["error"]["koboshi"].clone()
}

#[test]
fn a_timeout_without_a_stream_names_its_own_key() {
    let stage = Stage::with(&["one/silence"], |config| {
        timeouts(config, "one", |timeouts| timeouts.whole = Some(ms(100)));
        config.remedy.backoff.attempts = 1;
    });
    let answer = stage.ask(&chat(false));
    let error = assert_error(&answer, 504, "timeout");
    assert_eq!(koboshi(&answer)["sub"], "unary");
    assert!(error["message"].as_str().unwrap().contains("timeouts.unary"), "{error}");
    let entry = stage.journal("the timeout", |entry| entry.kind.as_deref() == Some("timeout"));
    assert!(entry.text.contains("timeouts.unary"), "the journal says what happened: {}", entry.text);
}

#[test]
fn a_request_that_no_target_can_take_was_never_sent() {
    let stage = Stage::with(&[], |config| {
        let anthropic = ProviderConfig {
            base_url: config.providers["one"].base_url.clone(),
            keys: vec![Secret::new("sk-own")],
            ..ProviderConfig::new(ProviderKind::Anthropic)
        };
        config.providers.insert("claude".to_owned(), anthropic);
        config.routes.insert("m".to_owned(), route(&["claude/ok"]));
    });
    let mut client = stage.client();
    client.send("POST", "/v1/embeddings", &[], json!({"model": "m", "input": "x"}).to_string().as_bytes());
    let answer = client.read();
    assert_error(&answer, 400, "invalid_request");
    assert_eq!(answer.header("x-koboshi-attempts"), Some("0"));
    assert_eq!((&koboshi(&answer)["attempts"], &koboshi(&answer)["detail"]), (&json!([]), &Value::Null));
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn a_conversation_that_a_provider_holds_is_named() {
    let stage = Stage::of(&["one/ok"]);
    for field in ["previous_response_id", "conversation"] {
        let mut client = stage.client();
        let body = json!({"model": "m", "input": "x", field: "resp_1"});
        client.send("POST", "/v1/responses", &[], body.to_string().as_bytes());
        let answer = client.read();
        let error = assert_error(&answer, 400, "invalid_request");
        assert_eq!(error["param"], field);
        assert_eq!(koboshi(&answer)["lacks"][0]["at"], field);
    }
}

#[test]
fn a_token_that_could_not_be_fetched_has_not_expired() {
    let stage = Stage::with(&["one/ok"], |config| {
        let one = config.providers.get_mut("one").unwrap();
        one.keys.clear();
        one.token_command = vec!["false".to_owned()];
    });
    let answer = stage.ask(&chat(false));
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("could not get an access token") && !message.contains("expired"), "{message}");
    assert_eq!(answer.header("x-koboshi-attempts"), Some("0"), "{answer:?}");
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn the_gateways_own_limit_is_not_the_accounts() {
    let stage = Stage::with(&["one/silence"], |config| {
        config.gate.concurrency = Some(1);
        config.gate.queue = 0;
    });
    let mut first = stage.client();
    first.send("POST", "/v1/chat/completions", &[], chat(false).to_string().as_bytes());
    koboshi_testkit::until("the first is on its way", || (stage.calls() == (1, 0)).then_some(()));
    let answer = stage.ask(&chat(false));
    let error = assert_error(&answer, 429, "rate_limited");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("gate.max_concurrency") && !message.contains("account"), "{message}");
}

#[test]
fn a_provider_that_fails_inside_is_not_us() {
    let stage = Stage::of(&["one/fail-500"]);
    let answer = stage.ask(&chat(false));
    let message = koboshi(&answer)["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "An internal error occurred at the AI provider.");
}

#[test]
fn the_models_that_are_listed_can_be_asked_for() {
    let stage = Stage::of(&["one/ok"]);
    let listed = stage.get("/v1/models").json();
    let names: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["m", "one/ok"], "simulated models are not listed beside real providers");
}
