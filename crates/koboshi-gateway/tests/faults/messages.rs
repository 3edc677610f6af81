//! Errors state what is true: which limit, whose limit, which field, and how many attempts there really were.

use koboshi_config::gateway::{ProviderConfig, ProviderKind};
use koboshi_config::secret::Secret;
use koboshi_sim::{Beat, Beats, End, Head, Play};
use serde_json::{Value, json};

use crate::common::*;

fn koboshi(answer: &Answer) -> Value {
    answer.json()["error"]["koboshi"].clone()
}

#[test]
fn a_timeout_without_a_stream_names_its_own_key() {
    let stage = Stage::with(&["one/silence"], |config| {
        timeouts(config, "one", |timeouts| timeouts.unary = Some(ms(100)));
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
fn a_providers_limit_of_requests_at_the_same_time_is_not_the_gateways() {
    for message in [
        "Too many concurrent requests for this model",
        "Max concurrency reached: your account request reached max organization concurrency: 1, please try again after 1 seconds",
    ] {
        let stage = Stage::of(&["one/own"]);
        stage.one.set("own", move |_| {
            let body = json!({"error": {"message": message, "type": "rate_limit_error", "code": "concurrency_limit"}});
            Play {
                head: Head::Answer {
                    after: ms(0),
                    status: 429,
                    headers: vec![("content-type", "application/json".to_owned())],
                },
                beats: Beats::from(vec![Beat { after: ms(0), bytes: body.to_string().into() }]),
                end: End::Clean,
            }
        });
        for stream in [false, true] {
            let answer = stage.ask(&chat(stream));
            let error = assert_error(&answer, 429, "rate_limited");
            let said = error["message"].as_str().unwrap();
            assert_eq!(error["koboshi"]["sub"], "concurrency", "{error}");
            assert!(said.contains("for this account") && !said.contains("gate.max_concurrency"), "{said}");
        }
    }
}

#[test]
fn a_provider_that_fails_inside_is_not_us() {
    let stage = Stage::of(&["one/fail-500"]);
    let answer = stage.ask(&chat(false));
    let message = koboshi(&answer)["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "An internal error occurred at the AI provider. Provider: one.");
}

#[test]
fn the_models_that_are_listed_can_be_asked_for() {
    let stage = Stage::of(&["one/ok"]);
    let listed = stage.get("/v1/models").json();
    let names: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["m", "one/ok"], "simulated models are not listed beside real providers");
    let stage = Stage::with(&[], |config| {
        config.routes.insert("*".to_owned(), route(&["one/{model}", "two/ok"]));
        config.routes.insert("one/a*".to_owned(), route(&["two/ok?seed=3"]));
        config.routes.insert("m".to_owned(), route(&["one/ab"]));
    });
    let served = |model: &str| {
        let mut body = chat(false);
        body["model"] = model.into();
        stage.ask(&body).header("x-koboshi-target").unwrap_or_default().to_owned()
    };
    assert_eq!(
        served("two/ok"),
        "two/ok",
        "a listed target is that target, not a name for the catch-all route"
    );
    assert_eq!(served("one/ab"), "two/ok?seed=3", "a pattern of targets is meant for them");
    assert_eq!(served("ok"), "one/ok", "a name of a model is the route's");
}

/// An answer with this body and nothing else.
fn plain_answer(status: u16, body: &Value) -> Play {
    let headers = vec![("content-type", "application/json".to_owned())];
    Play {
        head: Head::Answer { after: ms(0), status, headers },
        beats: Beats::from(vec![Beat { after: ms(0), bytes: body.to_string().into() }]),
        end: End::Clean,
    }
}

fn of_the_day() -> Value {
    let said = "Rate limit reached for gpt-4o in organization org-x on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.";
    json!({"error": {"message": said, "type": "requests", "param": null, "code": "rate_limit_exceeded"}})
}

#[test]
fn a_stated_wait_beside_a_quota_of_the_day_is_told_with_its_caveat() {
    let stage = Stage::of(&["one/own"]);
    stage.one.set("own", |_| plain_answer(429, &of_the_day()));
    for time in ["first", "second"] {
        let answer = stage.ask(&chat(false));
        let error = assert_error(&answer, 429, "quota_exceeded");
        let said = error["message"].as_str().unwrap();
        assert_eq!(
            (&error["koboshi"]["sub"], &error["koboshi"]["scope"]),
            (&json!("day"), &json!("model")),
            "{time}"
        );
        assert!(!said.contains("end is not known") && said.contains("Please try again "), "{time}: {said}");
        assert!(said.contains("may stay used up until the provider's day ends"), "{time}: {said}");
        assert!(said.contains("this model") && said.contains("another model"), "{time}: {said}");
    }
    assert_eq!(stage.calls().0, 1);
}

#[test]
fn a_quota_of_one_model_rests_that_model_alone() {
    let stage = Stage::with(&["one/own"], |config| {
        config.routes.insert("other".to_owned(), route(&["one/ok"]));
    });
    stage.one.set("own", |_| plain_answer(429, &of_the_day()));
    stage.ask(&chat(false));
    let other = stage.ask(&json!({"model": "other", "messages": [{"role": "user", "content": "hello"}]}));
    assert_eq!(other.status, 200, "{other:?}");
}

#[test]
fn every_target_is_listed_with_its_own_fault() {
    let stage = Stage::of(&["one/model-404", "one/quota?retry_after=2h"]);
    for time in ["first", "second"] {
        let answer = stage.ask(&chat(false));
        let said = koboshi(&answer)["message"].as_str().unwrap().to_owned();
        assert!(said.contains("one/model-404 (model_not_found)"), "{time}: {said}");
        assert!(said.contains("one/quota?retry_after=2h (quota_exceeded)"), "{time}: {said}");
    }
}

#[test]
fn a_bare_status_claims_nothing_and_does_not_contradict_itself() {
    for (status, own) in
        [(401, "401 (unauthorized)"), (403, "403 (forbidden)"), (402, "402 (payment required)")]
    {
        let stage = Stage::of(&["one/own"]);
        stage.one.set("own", move |_| plain_answer(status, &json!({})));
        for time in ["first", "second"] {
            let error = stage.ask(&chat(false)).json()["error"].clone();
            let said = error["message"].as_str().unwrap();
            assert!(said.contains(own) && said.contains("did not say why"), "{time}: {said}");
            assert_eq!(error["koboshi"]["retryable"], true, "{time}: {error}");
            for claim in ["aiting will not help", "accepted the API key", "wrong or revoked"] {
                assert!(!said.contains(claim), "{time}: {said}");
            }
        }
    }
}

#[test]
fn everything_down_is_told_the_same_way_every_time() {
    let stage = Stage::with(&["one/fail-503", "two/fail-503", "one/fail-500"], |config| {
        // Short, so that breakers come and go between the requests.
        config.breaker.consecutive = Some(2);
        (config.breaker.open.first, config.breaker.open.cap) = (ms(3), ms(3));
    });
    for number in 1..=24 {
        let answer = stage.ask(&chat(false));
        let said = koboshi(&answer)["message"].as_str().unwrap().to_owned();
        assert!(
            said.contains("All 3 targets"),
            "request {number}: {said} {:?}",
            answer.header("x-koboshi-attempts")
        );
        for target in ["one/fail-503 (unavailable)", "two/fail-503 (unavailable)", "one/fail-500 (internal)"]
        {
            assert!(said.contains(target), "request {number}: {said}");
        }
    }
}

#[test]
fn an_agent_program_is_told_to_wait_by_the_first_error_as_by_the_second() {
    let question = |stage: &Stage, agent: &str| {
        let (path, body) = if agent.starts_with("codex") {
            ("/v1/responses", json!({"model": "m", "input": "hello"}))
        } else {
            let messages = json!([{"role": "user", "content": "hello"}]);
            ("/v1/messages", json!({"model": "m", "max_tokens": 100, "messages": messages}))
        };
        let mut client = stage.client();
        client.send("POST", path, &[("user-agent", agent)], body.to_string().as_bytes());
        client.read()
    };
    for agent in ["codex_cli_rs/0.50.0", "claude-cli/2.0.1 (external, cli)"] {
        let stage = Stage::of(&["one/rate-429?retry_after=20"]);
        for time in ["first", "second"] {
            let answer = question(&stage, agent);
            assert_eq!(answer.status, 429, "{agent} {time}: {answer:?}");
            assert_eq!(answer.header("x-should-retry"), Some("true"), "{agent} {time}: {answer:?}");
            assert!(answer.header("retry-after").is_some(), "{agent} {time}: {answer:?}");
            let error = answer.json()["error"].clone();
            assert!(!error.to_string().contains("usage_limit_reached"), "{agent} {time}: {error}");
        }
        assert_eq!(stage.calls().0, 1, "{agent}");
        let long = Stage::of(&["one/rate-429?retry_after=90"]);
        for time in ["first", "second"] {
            let answer = question(&long, agent);
            assert_eq!(answer.header("x-should-retry"), Some("false"), "{agent} {time}: {answer:?}");
        }
    }
    // Codex gives up for good at the word for a quota.
    let renewed = Stage::of(&["one/quota?retry_after=20"]);
    for time in ["first", "second"] {
        let error = question(&renewed, "codex_cli_rs/0.50.0").json()["error"].clone();
        assert_eq!(error["koboshi"]["kind"], "quota_exceeded", "{time}: {error}");
        assert_eq!(error["code"], "rate_limit_exceeded", "{time}: {error}");
    }
    let library = Stage::of(&["one/rate-429?retry_after=4"]);
    assert_eq!(library.ask(&chat(false)).header("x-should-retry"), Some("false"), "its retries are counted");
    assert_eq!(library.ask(&chat(false)).header("x-should-retry"), Some("true"));
}
#[test]
fn the_providers_own_code_and_field_are_kept_in_the_same_dialect() {
    let stage = Stage::of(&["one/own"]);
    let error = json!({"message": "Unsupported value: 'temperature' does not support 0.2 with this model.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"});
    let body = json!({"error": error});
    stage.one.set("own", move |_| plain_answer(400, &body));
    // This provider speaks chat only: what it says of a translation names nothing that the client sent.
    let (own, none) =
        ((json!("temperature"), json!("unsupported_value")), (Value::Null, json!("invalid_request")));
    for (path, expected) in [("/v1/chat/completions", own), ("/v1/responses", none)] {
        let mut request = chat(false);
        request["input"] = json!("hello");
        let mut client = stage.client();
        client.send("POST", path, &[], request.to_string().as_bytes());
        let answer = client.read();
        let error = assert_error(&answer, 400, "invalid_request");
        assert_eq!((error["param"].clone(), error["code"].clone()), expected, "{path}");
    }
}

/// On the reader's own machine the reader can set the key; both times the provider is named.
#[test]
fn errors_name_the_provider_whose_key_or_connection_it_is() {
    let stage = Stage::of(&["one/auth-401"]);
    for time in ["first", "second"] {
        let message = stage.ask(&chat(false)).json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("The provider one did not accept its API key"), "{time}: {message}");
        assert!(
            message.contains("`providers.one.keys`") && !message.contains("operator"),
            "{time}: {message}"
        );
    }
    for fall in ["fail-503", "overloaded", "rate-429?retry_after=30", "quota?retry_after=2h", "fail-500"] {
        let stage = Stage::of(&[&format!("one/{fall}")]);
        for time in ["first", "second"] {
            let answer = stage.ask(&chat(false));
            let message = koboshi(&answer)["message"].as_str().unwrap().to_owned();
            assert!(message.ends_with("Provider: one."), "{fall} {time}: {message}");
        }
    }
}
