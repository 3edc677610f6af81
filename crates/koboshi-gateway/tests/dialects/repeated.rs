//! The second error is the first one: a target that is out of use answers with the fault that put it there.

use std::time::Duration;

use koboshi_config::gateway::ErrorDetail;
use koboshi_sim::{Beat, Beats, End, Head, Play};
use koboshi_store::{Clock, SystemClock};
use koboshi_testkit::{Answer, until};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::common::{Stage, route, start};
use crate::speech::{ask, question, stage};

/// What a client sees of an error: all but ids, times and the trail of attempts.
fn seen(dialect: Dialect, answer: &Answer) -> Value {
    let error = answer.json()["error"].clone();
    let word = if dialect == Dialect::Gemini { &error["status"] } else { &error["type"] };
    let without_digits = |text: &Value| {
        text.as_str().unwrap().split(|c: char| c.is_ascii_digit()).collect::<Vec<_>>().concat()
    };
    json!({
        "status": answer.status,
        "word": word,
        "code": error["code"],
        "message": without_digits(&error["message"]),
        "kind": error["koboshi"]["kind"],
        "sub": error["koboshi"]["sub"],
        "detail": error["koboshi"]["detail"],
        "suggestion": without_digits(&error["koboshi"]["suggestion"]),
        "retryable": error["koboshi"]["retryable"],
        "waits": !error["koboshi"]["retryAfterSeconds"].is_null(),
    })
}

/// An answer of the provider's own making.
fn answer(status: u16, body: &Value) -> Play {
    let headers = vec![("content-type", "application/json".to_owned())];
    Play {
        head: Head::Answer { after: Duration::ZERO, status, headers },
        beats: Beats::from(vec![Beat { after: Duration::ZERO, bytes: body.to_string().into() }]),
        end: End::Clean,
    }
}

#[test]
fn every_fault_is_the_same_the_second_time() {
    for dialect in Dialect::ALL {
        for (fall, status) in [
            ("model-404", 404),
            ("quota?retry_after=2h", 429),
            ("billing", 429),
            ("auth-401", 502),
            ("rate-429?retry_after=30", 429),
        ] {
            let stage = stage(dialect, &[&format!("one/{fall}")], |_| {});
            let first = ask(&stage, &question(dialect, "hello", false));
            assert_eq!(first.status, status, "{dialect:?} {fall} {first:?}");
            for stream in [false, true] {
                let again = ask(&stage, &question(dialect, "hello", stream));
                assert_eq!(seen(dialect, &again), seen(dialect, &first), "{dialect:?} {fall}");
                assert_eq!(again.header("x-should-retry"), Some("false"), "{dialect:?} {fall}");
                assert_eq!(again.header("retry-after"), None, "{dialect:?} {fall}: no SDK waits for it");
            }
            assert_eq!(stage.calls().0, 1, "{dialect:?} {fall}: it was asked once");
            // The time does not move either: the first error states when Koboshi will ask again, margin included.
            let wait = |answer: &Answer| answer.json()["error"]["koboshi"]["retryAfterSeconds"].as_u64();
            let again = ask(&stage, &question(dialect, "hello", false));
            let moved = wait(&first).zip(wait(&again)).map(|(first, again)| first.saturating_sub(again));
            assert!(moved.is_none_or(|seconds| seconds <= 20), "{dialect:?} {fall}: {moved:?}");
            assert!(wait(&again) <= wait(&first), "{dialect:?} {fall}");
        }
    }
}

#[test]
fn an_open_breaker_tells_the_fault_that_opened_it() {
    let falls = [("fail-503", 503), ("overloaded", 503), ("fail-500", 500)];
    for (dialect, (fall, status)) in
        Dialect::ALL.into_iter().flat_map(|dialect| falls.map(|fall| (dialect, fall)))
    {
        let stage = stage(dialect, &[&format!("one/{fall}")], |config| {
            config.remedy.backoff.attempts = 1;
            config.breaker.consecutive = Some(1);
            config.breaker.probe.last_target_every = None;
        });
        let first = ask(&stage, &question(dialect, "hello", false));
        let overloaded = if dialect.has_overloaded_status() { 529 } else { status };
        assert_eq!(first.status, if fall == "overloaded" { overloaded } else { status }, "{first:?}");
        let again = ask(&stage, &question(dialect, "hello", false));
        let (first, again) = (seen(dialect, &first), seen(dialect, &again));
        assert_eq!(
            first["waits"], true,
            "{dialect:?} {fall}: the failure opened the breaker, so the next request is not sent"
        );
        assert_eq!(again, first, "{dialect:?} {fall}");
        assert!(
            !first["message"].as_str().unwrap().contains("minutes"),
            "{dialect:?} {fall}: the header says seconds, so the sentence must not say minutes: {first}"
        );
        assert_eq!(stage.calls().0, 1, "{dialect:?} {fall}: it was not asked again");
    }
}

/// A failure that does not open the breaker at once: the error is the same before and after it opens.
#[test]
fn the_breaker_opens_without_a_change_of_the_error() {
    for dialect in Dialect::ALL {
        let stage = stage(dialect, &["one/fail-503"], |config| {
            config.remedy.backoff.attempts = 1;
            config.breaker.consecutive = Some(3);
            config.breaker.probe.last_target_every = None;
        });
        let mut errors = (0..6).map(|_| {
            let mut error = seen(dialect, &ask(&stage, &question(dialect, "hello", false)));
            // Programs learn when the breaker lets the next one through.
            error["waits"].take();
            error
        });
        let first = errors.next().unwrap();
        assert!(errors.all(|error| error == first), "{dialect:?}: {first}");
        assert_eq!(stage.calls().0, 3, "{dialect:?}: the breaker is open by now");
    }
}

#[test]
fn a_restart_does_not_change_the_error() {
    for fall in ["quota?retry_after=2h", "model-404", "own"] {
        let stage = stage(Dialect::Chat, &[&format!("one/{fall}")], |_| {});
        // As long a sentence as is ever kept, in a script of three bytes a character.
        let body = json!({"error": {"message": format!("The model `own` does not exist. {}", "別のモデルをお使いください。".repeat(25)),
            "type": "invalid_request_error", "code": "model_not_found"}});
        stage.one.set("own", move |_| answer(404, &body));
        let first = ask(&stage, &question(Dialect::Chat, "hello", false));
        let (store, config) = (stage.store.clone(), stage.config.clone());
        stage.gateway.stop();
        let gateway = start(config, &store).unwrap();
        let stage = Stage { gateway, ..stage };
        let again = ask(&stage, &question(Dialect::Chat, "hello", false));
        assert_eq!(seen(Dialect::Chat, &again), seen(Dialect::Chat, &first), "{fall}");
        assert_eq!(stage.calls().0, 1, "{fall}: what was stated is remembered");
    }
}

#[test]
fn of_several_causes_the_client_gets_the_one_that_ends_soonest_both_times() {
    for (chain, status, kind) in [
        (["one/model-404", "two/quota?retry_after=2h"], 429, "quota_exceeded"),
        (["one/quota?retry_after=2h", "two/rate-429?retry_after=30"], 429, "rate_limited"),
        (["one/rate-429?retry_after=30", "two/quota?retry_after=2h"], 429, "rate_limited"),
        (["one/auth-401", "two/model-404"], 502, "unauthorized"),
        (["one/model-404", "two/auth-401"], 404, "model_not_found"),
        (["one/fail-503?retry_after=30", "two/rate-429?retry_after=40"], 503, "unavailable"),
        (["one/rate-429?retry_after=30", "two/overloaded?retry_after=40"], 429, "rate_limited"),
    ] {
        let stage = Stage::of(&chain);
        for time in ["first", "second"] {
            let answer = ask(&stage, &question(Dialect::Chat, "hello", false));
            let told = seen(Dialect::Chat, &answer);
            assert_eq!((&told["status"], &told["kind"]), (&json!(status), &json!(kind)), "{chain:?} {time}");
        }
        assert_eq!(stage.calls(), (1, 1), "{chain:?}");
    }
}

/// The limit of one model ends sooner, but its account is out of use for longer: nothing answers before that.
#[test]
fn a_short_limit_below_an_account_in_cooldown_names_the_end_of_the_cooldown() {
    let daily = json!({"error": {"message": "You have reached your daily limit of 100 requests."}});
    for (own, sub) in [("daily", "day"), ("billing", "billing")] {
        let stage = Stage::of(&["one/rate-429?retry_after=30", &format!("one/{own}")]);
        let body = daily.clone();
        stage.one.set("daily", move |_| answer(429, &body));
        let first = seen(Dialect::Chat, &ask(&stage, &question(Dialect::Chat, "hello", false)));
        assert_eq!((&first["kind"], &first["sub"]), (&json!("quota_exceeded"), &json!(sub)), "{first}");
        let again = seen(Dialect::Chat, &ask(&stage, &question(Dialect::Chat, "hello", false)));
        assert_eq!(again, first, "{own}");
        assert_eq!(stage.calls().0, 2, "{own}");
    }
}

/// Whatever breakers do meanwhile: the same faults, the same error, and it names every target.
#[test]
fn an_outage_of_everything_has_one_answer_however_often_it_is_asked() {
    for (chain, status, kind) in [
        (["one/rate-429?retry_after=30", "two/fail-500"], 500, "internal"),
        (["one/fail-500", "two/fail-503"], 500, "internal"),
        (["one/fail-503", "two/auth-401"], 503, "unavailable"),
        (["one/auth-401", "two/fail-503"], 503, "unavailable"),
        (["one/half", "two/fail-503"], 502, "connection_closed"),
        (["one/fail-503", "two/half"], 503, "unavailable"),
    ] {
        let stage = Stage::with(&chain, |config| {
            config.remedy.backoff.attempts = 1;
            config.breaker.consecutive = Some(3);
            config.breaker.probe.last_target_every = None;
        });
        let first = seen(Dialect::Chat, &ask(&stage, &question(Dialect::Chat, "hello", false)));
        assert_eq!((&first["status"], &first["kind"]), (&json!(status), &json!(kind)), "{chain:?} {first}");
        let message = first["message"].as_str().unwrap();
        assert!(message.contains("targets for this model failed or are out of use: one/"), "{message}");
        assert!(message.contains("two/"), "{message}");
        let mut waits = first["waits"].clone();
        for nth in 2..9 {
            let before = stage.calls();
            let mut again = seen(Dialect::Chat, &ask(&stage, &question(Dialect::Chat, "hello", false)));
            // Programs learn when the breaker lets the next one through; people need not. The error before said it truly.
            assert_eq!(
                waits,
                before == stage.calls(),
                "{chain:?} {nth}: whether no target was asked this time"
            );
            waits = again["waits"].clone();
            again["waits"] = first["waits"].clone();
            assert_eq!(again, first, "{chain:?} {nth}");
        }
        assert_eq!(waits, true, "{chain:?}: the breakers are open by now");
    }
}

#[test]
fn a_stated_end_of_an_outage_is_kept_and_counts_down() {
    for fall in ["fail-503?retry_after=30", "overloaded?retry_after=30"] {
        let stage = Stage::with(&[&format!("one/{fall}")], |config| config.breaker.consecutive = Some(1));
        let first = ask(&stage, &question(Dialect::Chat, "hello", false));
        assert_eq!(first.status, 503, "{first:?}");
        let wait = |answer: &Answer| answer.json()["error"]["koboshi"]["retryAfterSeconds"].as_u64().unwrap();
        for _ in 0..3 {
            let again = ask(&stage, &question(Dialect::Chat, "hello", false));
            assert_eq!(seen(Dialect::Chat, &again), seen(Dialect::Chat, &first), "{fall}");
            assert!((1..=wait(&first)).contains(&wait(&again)), "{fall} {again:?}");
        }
        assert_eq!(stage.calls().0, 1, "{fall}: it said when to come back");
    }
}

/// A page is no answer of a model, and no waiting turns it into one.
#[test]
fn a_web_page_is_not_blamed_on_the_model_and_not_retryable() {
    for (lang, words, blamed) in
        [("en", "A web page came back", "AI model"), ("ja", "Web ページが返されました", "AI モデル")]
    {
        let stage = Stage::of(&["one/html"]);
        let (path, body) = question(Dialect::Chat, "hello", false);
        let mut client = stage.client();
        client.send("POST", &path, &[("accept-language", lang)], body.to_string().as_bytes());
        let error = client.read().json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words) && message.contains("base_url"), "{message}");
        assert!(!message.contains(blamed), "{message}");
        assert_eq!(
            (&error["koboshi"]["sub"], &error["koboshi"]["retryable"]),
            (&json!("not_api"), &json!(false))
        );
    }
}

/// A quota without a stated end is asked for again after a while: the wait is that, and the sentence says so.
#[test]
fn the_wait_for_a_quota_without_an_end_is_explained() {
    let stage = Stage::of(&["one/quota?retry_after=none"]);
    for _ in 0..2 {
        let error = ask(&stage, &question(Dialect::Chat, "hello", false)).json()["error"].clone();
        assert!(error["koboshi"]["retryAfterSeconds"].as_u64().is_some_and(|wait| wait > 0), "{error}");
        for text in [&error["message"], &error["koboshi"]["suggestion"]] {
            let text = text.as_str().unwrap();
            let words = "The end is not known. The gateway asks the provider again after ";
            assert!(text.contains(words), "{text}");
        }
    }
}

#[test]
fn what_an_operator_cooled_says_so_with_the_reason() {
    let stage = Stage::of(&["one/ok"]);
    let mut client = stage.client();
    let ends = SystemClock.wall() + Duration::from_secs(7200);
    let change = json!({"key": "provider:one", "action": "cool", "until": ends, "reason": "incident 4711"});
    client.send("POST", "/koboshi/cooldowns", &[], change.to_string().as_bytes());
    let done = client.read();
    assert!(done.status < 300, "{done:?}");
    let answer = until("the cooldown", || {
        let answer = ask(&stage, &question(Dialect::Chat, "hello", false));
        (answer.status != 200).then_some(answer)
    });
    assert_eq!(answer.status, 503, "{answer:?}");
    let told = seen(Dialect::Chat, &answer);
    assert_eq!((&told["kind"], &told["sub"]), (&json!("cooling_down"), &json!("operator")));
    assert_eq!((&told["word"], &told["code"]), (&json!("server_error"), &json!("cooling_down")));
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("An operator has taken this target out of use. Reason: incident 4711."),
        "{message}"
    );
    assert!(message.contains("Please try again after "), "{message}");
    assert_eq!(answer.json()["error"]["koboshi"]["scope"], "provider", "it is the provider that was cooled");
    let own = answer.json()["error"]["koboshi"]["message"].as_str().unwrap().to_owned();
    assert!(own.contains("Reason: incident 4711."), "{own}");
    let (path, body) = question(Dialect::Chat, "hello", false);
    let mut client = stage.client();
    client.send("POST", &path, &[("accept-language", "ja")], body.to_string().as_bytes());
    let answer = client.read();
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("管理者がこのターゲットの使用を一時停止しています。理由: incident 4711。"),
        "{message}"
    );
    assert!(message.ends_with("（UTC）以降にもう一度お試しください。"), "{message}");
    assert!(!message.contains(". ") && !message.contains("。."), "{message}");
}

#[test]
fn the_providers_reason_is_handed_on_where_the_client_can_mend_the_request() {
    for dialect in Dialect::ALL {
        for (fall, status, kind) in [
            ("model-404", 404, "model_not_found"),
            ("context", 400, "context_too_large"),
            ("filter-400", 400, "content_filtered"),
        ] {
            // Google has no error for a prompt that it blocks: a good answer says it.
            if (dialect, fall) == (Dialect::Gemini, "filter-400") {
                continue;
            }
            let stage = stage(dialect, &[&format!("one/{fall}")], |_| {});
            let answer = ask(&stage, &question(dialect, "hello", false));
            assert_eq!(answer.status, status, "{dialect:?} {fall} {answer:?}");
            let error = answer.json()["error"].clone();
            assert_eq!(error["koboshi"]["kind"], kind, "{error}");
            let detail = error["koboshi"]["detail"].as_str().unwrap_or_else(|| panic!("{dialect:?} {error}"));
            assert!(error["message"].as_str().unwrap().ends_with(detail), "{error}");
            assert!(!detail.is_empty() && detail.chars().count() <= 400, "{error}");
        }
        // What the client cannot mend keeps our sentence.
        let stage = stage(dialect, &["one/auth-401"], |_| {});
        let error = ask(&stage, &question(dialect, "hello", false)).json()["error"].clone();
        assert_eq!(error["koboshi"]["detail"], Value::Null, "{error}");
    }
}

#[test]
fn the_reason_can_be_kept_back() {
    let afar = [("x-forwarded-for", "203.0.113.7")];
    for (detail, headers, told) in [
        (ErrorDetail::Always, &[][..], true),
        (ErrorDetail::Always, &afar, true),
        (ErrorDetail::Loopback, &[], true),
        (ErrorDetail::Loopback, &afar, false),
        (ErrorDetail::Never, &[], false),
    ] {
        let stage = Stage::with(&["one/ok"], |config| config.errors.detail = detail);
        let error = stage.post(&json!({"model": "m", "messages": []}), headers).json()["error"].clone();
        assert_eq!(error["koboshi"]["kind"], "invalid_request", "{error}");
        assert_eq!(error["koboshi"]["detail"].is_string(), told, "{detail:?} {error}");
        assert_eq!(error["message"].as_str().unwrap().contains("empty array"), told, "{error}");
        let own = error["message"].as_str().unwrap().starts_with("The AI provider rejected the request");
        assert_eq!(own, !told, "{error}");
    }
}

#[test]
fn a_short_wait_is_left_to_the_sdk_and_a_long_one_is_final() {
    for (wait, again) in [(4, true), (20, false)] {
        let stage = Stage::with(&[&format!("one/rate-429?retry_after={wait}")], |config| {
            config.routes.insert("other".to_owned(), route(&["one/ok"]));
        });
        ask(&stage, &question(Dialect::Chat, "hello", false));
        let answer = ask(&stage, &question(Dialect::Chat, "hello", false));
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.header("x-should-retry"), Some(if again { "true" } else { "false" }));
        let told = answer.number("retry-after");
        assert_eq!(told.is_some(), again, "{answer:?}");
        assert!(told.is_none_or(|seconds| (1..=wait).contains(&seconds)), "{told:?}");
    }
}

/// What is parked does not come back when its cause is fixed: the error says who must do what.
#[test]
fn a_parked_target_names_the_command_that_resumes_it() {
    for (lang, words) in
        [("en", "until an operator of the gateway resumes it"), ("ja", "ゲートウェイの管理者が")]
    {
        let stage = Stage::of(&["one/fail-403"]);
        let messages: Vec<String> = (0..2)
            .map(|_| {
                let mut client = stage.client();
                let (path, body) = question(Dialect::Chat, "hello", false);
                client.send("POST", &path, &[("accept-language", lang)], body.to_string().as_bytes());
                client.read().json()["error"]["message"].as_str().unwrap().to_owned()
            })
            .collect();
        let first = &messages[0];
        assert!(first.contains(words) && first.contains("koboshi resume account:one"), "{first}");
        assert_eq!(first, &messages[1], "it is the same the second time");
        let (key, known) =
            (first.rsplit("koboshi resume ").next().unwrap(), stage.get("/koboshi/status").text());
        assert!(known.contains(key), "{key} can be resumed: {known}");
    }
}
