//! Errors in the words of every dialect.

use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::common::Stage;
use crate::speech::{ask, question, stage};

/// The part of an error that has the same place in all dialects.
fn error(dialect: Dialect, body: &Value) -> Value {
    if dialect == Dialect::Messages {
        assert_eq!(body["type"], "error");
        assert!(body["request_id"].as_str().is_some_and(|id| !id.is_empty()), "{body}");
    }
    body["error"].clone()
}

#[test]
fn an_error_has_the_envelope_and_the_word_of_its_dialect() {
    for (fall, status, kind, words) in [
        ("fail-503", 503, "unavailable", ["server_error", "api_error", "server_error", "UNAVAILABLE"]),
        ("rate-429", 429, "rate_limited", ["rate_limit_error", "rate_limit_error", "", "RESOURCE_EXHAUSTED"]),
        (
            "context",
            400,
            "context_too_large",
            ["invalid_request_error", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"],
        ),
        (
            "model-404",
            404,
            "model_not_found",
            ["invalid_request_error", "not_found_error", "invalid_request_error", "NOT_FOUND"],
        ),
    ] {
        for (dialect, word) in
            [Dialect::Chat, Dialect::Messages, Dialect::Responses, Dialect::Gemini].into_iter().zip(words)
        {
            for stream in [true, false] {
                let stage = Stage::of(&[&format!("one/{fall}")]);
                let answer = ask(&stage, &question(dialect, "hello", stream));
                assert_eq!(answer.status, status, "{dialect:?} {fall} {answer:?}");
                let error = error(dialect, &answer.json());
                assert_eq!(error["koboshi"]["kind"], kind, "{dialect:?} {error}");
                let said = if dialect == Dialect::Gemini { &error["status"] } else { &error["type"] };
                assert!(word.is_empty() || said == word, "{dialect:?} {fall}: {said} in {error}");
                assert!(error["message"].as_str().unwrap().len() > 20, "{error}");
                assert_eq!(answer.header("x-should-retry"), Some("false"), "{dialect:?}");
                if dialect == Dialect::Gemini {
                    assert_eq!(error["code"], status);
                }
            }
        }
    }
}

#[test]
fn an_overload_has_anthropics_own_status_for_its_libraries() {
    for stream in [true, false] {
        for (name, status, word) in [
            ("Anthropic/Python 2.8.0", 529, "overloaded_error"),
            // It would retry that word whatever the headers say.
            ("claude-cli/2.1.325 (external, cli)", 503, "api_error"),
        ] {
            let stage = Stage::with(&["one/overloaded"], |config| config.remedy.backoff.attempts = 1);
            let (path, body) = question(Dialect::Messages, "hello", stream);
            // Also when the breaker is open, and the wait until it lets a request through is known.
            for round in 0..8 {
                let mut client = stage.client();
                client.send("POST", &path, &[("user-agent", name)], body.to_string().as_bytes());
                let answer = client.read();
                assert_eq!(answer.status, status, "{name} {answer:?}");
                assert_eq!(error(Dialect::Messages, &answer.json())["type"], word, "{name} {round}");
                assert!(round > 0 || answer.header("x-should-retry") == Some("false"), "{name}");
            }
        }
    }
}

#[test]
fn programs_stop_where_nothing_helps_and_libraries_get_the_status_that_is_meant() {
    let names = [
        ("codex_exec/0.166.0 (Debian)", Dialect::Responses),
        ("GeminiCLI/0.61.0/gemini-2.5-pro", Dialect::Gemini),
        ("claude-cli/2.1.325 (external, cli)", Dialect::Messages),
        ("OpenAI/Python 3.49.0", Dialect::Responses),
    ];
    // A dead key of ours, just found and known; and what passes.
    for (fall, statuses, waits) in [
        ("auth-401", [[400, 400], [400, 400], [502, 502], [502, 502]], [false; 4]),
        ("fail-503", [[503, 503]; 4], [true, false, false, false]),
    ] {
        for (((name, dialect), statuses), waits) in names.into_iter().zip(statuses).zip(waits) {
            let stage = Stage::with(&[&format!("one/{fall}")], |config| config.remedy.backoff.attempts = 1);
            for status in statuses {
                let (path, body) = question(dialect, "hello", true);
                let mut client = stage.client();
                client.send("POST", &path, &[("user-agent", name)], body.to_string().as_bytes());
                let answer = client.read();
                assert_eq!(answer.status, status, "{name} {fall} {answer:?}");
                assert_eq!(answer.header("retry-after").is_some(), waits, "{name} {fall}");
                assert_eq!(answer.header("x-should-retry"), Some("false"), "{name}");
            }
        }
    }
}

#[test]
fn the_parts_that_no_target_can_get_are_named() {
    let stage = stage(Dialect::Responses, &["one/ok", "two/ok"], |_| {});
    let (path, mut body) = question(Dialect::Chat, "hello", false);
    body["stop"] = json!(["END"]);
    let answer = ask(&stage, &(path, body));
    assert_eq!((answer.status, stage.calls()), (400, (0, 0)), "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["param"], "stop", "{error}");
    let lacks = json!([
        {"target": "one/ok", "rule": "needs_stop", "at": "stop"},
        {"target": "two/ok", "rule": "needs_stop", "at": "stop"},
    ]);
    assert_eq!(error["koboshi"]["lacks"], lacks);
}

#[test]
fn a_limit_that_cannot_be_read_is_the_clients_to_correct_unless_its_own_dialect_is_spoken() {
    let odd = |field: &str| if field == "temperature" { json!("warm") } else { json!(-1) };
    for (dialect, upstream, field) in [
        (Dialect::Chat, Dialect::Messages, "max_tokens"),
        (Dialect::Chat, Dialect::Gemini, "max_completion_tokens"),
        (Dialect::Messages, Dialect::Chat, "max_tokens"),
        (Dialect::Responses, Dialect::Messages, "max_output_tokens"),
        (Dialect::Responses, Dialect::Chat, "temperature"),
        (Dialect::Gemini, Dialect::Chat, "generationConfig.maxOutputTokens"),
    ] {
        let (path, mut body) = question(dialect, "hello", false);
        match field.split_once('.') {
            Some((config, field)) => body[config] = json!({ field: odd(field) }),
            None => body[field] = odd(field),
        }
        let translating = stage(upstream, &["one/ok"], |_| {});
        let answer = ask(&translating, &(path.clone(), body.clone()));
        assert_eq!((answer.status, translating.calls()), (400, (0, 0)), "{dialect:?} {answer:?}");
        let error = error(dialect, &answer.json());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(field) && message.contains("number"), "{message}");
        // Its own provider may know what is meant by it.
        let own = stage(dialect, &["one/ok"], |_| {});
        ask(&own, &(path, body));
        assert_eq!(own.calls(), (1, 0), "{dialect:?}");
    }
}

#[test]
fn the_error_of_a_wrong_request_has_the_form_of_its_dialect() {
    let stage = Stage::of(&["one/ok"]);
    for (dialect, path, body) in [
        (Dialect::Messages, "/v1/messages", json!({"model": "m", "max_tokens": 5})),
        (Dialect::Responses, "/v1/responses", json!({"model": "m", "stream": "yes", "input": "x"})),
        (Dialect::Gemini, "/v1beta/models/m:generateContent", json!({"contents": 5})),
        (Dialect::Messages, "/v1/messages", json!({"messages": []})),
    ] {
        let answer = ask(&stage, &(path.to_owned(), body));
        assert_eq!(answer.status, 400, "{dialect:?} {answer:?}");
        assert_eq!(error(dialect, &answer.json())["koboshi"]["kind"], "invalid_request", "{dialect:?}");
    }
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn a_long_limit_makes_each_program_stop_and_show_the_time() {
    for (dialect, program) in [
        (Dialect::Messages, "claude-cli/2.1.325 (external, cli)"),
        (Dialect::Responses, "codex_exec/0.166.0 (Debian)"),
        (Dialect::Gemini, "GeminiCLI/0.61.0/gemini-2.5-pro"),
        (Dialect::Messages, "Anthropic/Python 2.8.0"),
        (Dialect::Responses, "OpenAI/Python 3.49.0"),
        (Dialect::Gemini, "google-genai-sdk/3.1.0"),
    ] {
        let is_library = program.contains("Python") || program.contains("sdk");
        let stage = Stage::of(&["one/rate-429?retry_after=3600"]);
        ask(&stage, &question(dialect, "hello", true));
        // Now it is held by the limit.
        let (path, body) = question(dialect, "hello", true);
        let mut client = stage.client();
        client.send("POST", &path, &[("user-agent", program)], body.to_string().as_bytes());
        let answer = client.read();
        let body = answer.json();
        let error = error(dialect, &body);
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{program}");
        let wait = error["koboshi"]["retryAfterSeconds"].as_u64().unwrap();
        assert!((3000..=3600).contains(&wait), "{wait}");
        let header = answer.header("retry-after").map(|wait| wait.parse::<u64>().unwrap());
        assert_eq!(header, (!is_library).then_some(wait), "no library is made to wait: {program}");
        assert!(error["message"].as_str().unwrap().contains("try again after 20"), "{error}");
        match dialect {
            Dialect::Responses => {
                assert_eq!(answer.status, 429);
                if is_library {
                    // A word of Codex' own, which no library knows.
                    let words = (&error["type"], &error["code"]);
                    assert!(!error.to_string().contains("usage_limit_reached"), "{error}");
                    assert_eq!(error["resets_in_seconds"], Value::Null, "{words:?}");
                    continue;
                }
                assert_eq!(error["type"], "usage_limit_reached", "{error}");
                assert!(
                    error["resets_at"].as_i64().unwrap() > 0
                        && error["resets_in_seconds"].as_i64().unwrap() > 3000
                );
            }
            Dialect::Gemini => {
                assert_eq!(answer.status, 429);
                let delay = error["details"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find_map(|detail| detail["retryDelay"].as_str());
                assert_eq!(delay, Some(format!("{wait}s").as_str()), "the same wait everywhere: {error}");
            }
            _ => assert_eq!(answer.status, 429, "{answer:?}"),
        }
    }
}

#[test]
fn tokens_are_counted_and_models_listed_as_each_dialect_does() {
    let stage = Stage::of(&["one/ok"]);
    let count = |path: &str, body: Value| ask(&stage, &(path.to_owned(), body)).json();
    let (_, body) = question(Dialect::Messages, &"word ".repeat(100), false);
    assert!(count("/v1/messages/count_tokens", body)["input_tokens"].as_u64().unwrap() > 50);
    assert_eq!(stage.calls(), (0, 0), "a provider that has no such question is not asked");
    let (_, body) = question(Dialect::Gemini, &"word ".repeat(100), false);
    assert!(count("/v1beta/models/m:countTokens", body)["totalTokens"].as_u64().unwrap() > 50);
    let models = stage.get("/v1beta/models").json();
    assert!(models["models"].as_array().unwrap().iter().any(|model| model["name"] == "models/m"), "{models}");
    assert_eq!(stage.get("/v1beta/models/m").json()["name"], "models/m");
    assert_eq!(stage.get("/v1/models/m").json()["id"], "m");
    let mut client = stage.client();
    client.send("GET", "/v1/models", &[("anthropic-version", "2023-06-01")], b"");
    assert!(
        client.read().json()["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|model| model["id"] == "m" && model["type"] == "model")
    );
    let mut client = stage.client();
    client.send("GET", "/v1/models", &[("x-goog-api-key", "any")], b"");
    let models = client.read().json();
    assert!(models["models"].as_array().unwrap().iter().any(|model| model["name"] == "models/m"), "{models}");
    assert_eq!(stage.get("/v1beta/models/nobody-knows").status, 404);
}

#[test]
fn a_provider_that_can_count_is_asked_and_one_that_falls_does_not_matter() {
    for (dialect, path, field) in [
        (Dialect::Messages, "/v1/messages/count_tokens", "input_tokens"),
        (Dialect::Gemini, "/v1beta/models/m:countTokens", "totalTokens"),
    ] {
        for (model, served) in [("ok", true), ("fail-503", false)] {
            let stage = stage(dialect, &[&format!("one/{model}")], |_| {});
            let (_, body) = question(dialect, "How many tokens has this?", false);
            let answer = ask(&stage, &(path.to_owned(), body));
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.json()[field].as_u64().is_some_and(|count| count > 0), "{answer:?}");
            assert_eq!(stage.calls().0, 1, "once, and no more");
            assert_eq!(answer.header("x-koboshi-target").is_some(), served, "{dialect:?} {model}");
        }
    }
}

#[test]
fn rate_limit_headers_are_forwarded_to_clients_of_the_dialect() {
    for (dialect, header) in [
        (Dialect::Chat, "x-ratelimit-remaining-tokens"),
        (Dialect::Responses, "x-ratelimit-remaining-tokens"),
        (Dialect::Messages, "anthropic-ratelimit-tokens-remaining"),
    ] {
        let stage = stage(dialect, &["one/ok"], |_| {});
        for client in Dialect::ALL {
            for stream in [true, false] {
                let answer = ask(&stage, &question(client, "hello", stream));
                assert_eq!(answer.status, 200);
                let told = answer.header(header).is_some();
                assert_eq!(told, client == dialect, "{client:?} {dialect:?} {stream} {answer:?}");
            }
        }
    }
}
