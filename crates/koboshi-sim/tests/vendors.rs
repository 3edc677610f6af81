//! The falls in every vendor's own form, and that the core reads each as what is meant.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::sync::LazyLock;

use crate::common::{Got, perform, user, weather, with};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Answer, Classifier, Rules};
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_sim::{Ask, End, Tally, names, play};
use koboshi_testkit::dialect::{ReadAnswer, body, read_body};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

static CLASSIFIER: LazyLock<Classifier> =
    LazyLock::new(|| Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled()));

const WALL: i64 = 1_790_000_000;

fn got(model: &str, dialect: Dialect, stream: bool, chat: &Value) -> Got {
    let text = body(dialect, &with(chat.clone(), json!({"model": "m"})));
    let tally = Tally { wall: WALL, ..Tally::default() };
    perform(play(&Ask { model, dialect, stream: Some(stream), list: false, body: text.as_bytes(), tally }))
}

fn read(dialect: Dialect, stream: bool, read_answer: &Got) -> ReadAnswer {
    read_body(dialect, stream, read_answer.body.as_bytes())
}

fn fault(read_answer: &Got, stream: bool) -> Option<Fault> {
    let now = jiff::Timestamp::from_second(WALL).unwrap().to_zoned(TimeZone::UTC);
    let headers: Vec<(&str, &str)> =
        read_answer.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = Answer {
        status: Some(read_answer.status),
        headers: &headers,
        body: &read_answer.body,
        stream,
        transport: None,
    };
    CLASSIFIER.answer(&answer, &now)
}

/// Kind and reason; nothing where it is fine.
type Meant = Option<(Kind, Option<Sub>)>;

/// What is meant by a name in this dialect: by a stream, and by a whole answer.
fn meant(name: &str, dialect: Dialect) -> Option<(Meant, Meant)> {
    let both = |kind, sub| (Some((kind, sub)), Some((kind, sub)));
    let closed = Some((Kind::ConnectionClosed, None));
    let unusable = Some((Kind::ResponseInvalid, None));
    Some(match (name, dialect) {
        ("ok" | "slow-first" | "loop", _) => (None, None),
        ("fail-500" | "in-band-error", _) => both(Kind::Internal, None),
        ("fail-503" | "fail-STATUS" | "flap", _) => both(Kind::Unavailable, None),
        ("rate-429", _) => both(Kind::RateLimited, None),
        ("quota", _) => both(Kind::QuotaExceeded, Some(Sub::Day)),
        ("billing", _) => both(Kind::QuotaExceeded, Some(Sub::Billing)),
        ("overloaded", _) => both(Kind::Overloaded, None),
        ("auth-401", _) => both(Kind::Unauthorized, None),
        ("context", _) => both(Kind::ContextTooLarge, None),
        ("filter" | "filter-400", _) => both(Kind::ContentFiltered, None),
        ("stall" | "cut" | "cut-tool" | "fin" | "half", _) => (closed, unusable),
        ("bad-chunk", _) => (unusable, unusable),
        // Many chat servers leave the mark out; servers of other dialects never do, so without it an answer is cut.
        ("no-done", Dialect::Chat) => (None, None),
        ("no-done", _) => (closed, None),
        // Where arguments are an object they come as a text, which is for the gateway to see.
        ("broken-tool-args", Dialect::Gemini) => (None, None),
        ("broken-tool-args", Dialect::Messages) => (Some((Kind::ResponseInvalid, Some(Sub::ToolCall))), None),
        ("broken-tool-args", _) => both(Kind::ResponseInvalid, Some(Sub::ToolCall)),
        ("empty", Dialect::Messages | Dialect::Responses) => both(Kind::ResponseInvalid, Some(Sub::Empty)),
        ("empty", _) => (Some((Kind::ResponseInvalid, Some(Sub::Empty))), unusable),
        ("html", _) => both(Kind::ResponseInvalid, Some(Sub::NotApi)),
        ("reset" | "silence" | "chaos", _) => return None,
        (other, _) => panic!("say what is meant by {other}"),
    })
}

#[test]
fn every_name_is_read_as_what_is_meant_in_every_dialect() {
    let mut wrong = Vec::new();
    for dialect in Dialect::ALL {
        for name in names() {
            let Some((stream, whole)) = meant(name.name, dialect) else { continue };
            let model = name.example.split('?').next().unwrap();
            let mut chat = user("How is the weather?");
            if name.name.contains("tool") {
                chat = with(chat, weather());
            }
            for (streams, meant) in [(true, stream), (false, whole)] {
                let read_answer = got(model, dialect, streams, &chat);
                let seen = fault(&read_answer, streams).map(|fault| (fault.kind, fault.sub));
                if seen != meant {
                    let place = format!("{model}, {dialect:?}, stream: {streams}");
                    wrong.push(format!(
                        "{place}: {seen:?}, not {meant:?}: {} {}",
                        read_answer.status, read_answer.body
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn statuses_are_read_as_what_they_are_in_every_dialect() {
    for dialect in [Dialect::Responses, Dialect::Messages, Dialect::Gemini] {
        for (status, kind) in [
            (400, Kind::InvalidRequest),
            (401, Kind::Unauthorized),
            (403, Kind::PermissionDenied),
            (408, Kind::Timeout),
            (413, Kind::MessageTooLarge),
            (429, Kind::RateLimited),
            (500, Kind::Internal),
            (502, Kind::Unavailable),
            (503, Kind::Unavailable),
            (504, Kind::Timeout),
            (529, Kind::Overloaded),
        ] {
            let read_answer = got(&format!("fail-{status}"), dialect, true, &user("hello"));
            let seen = fault(&read_answer, true).unwrap().kind;
            assert_eq!((read_answer.status, seen), (status, kind), "{dialect:?}: {}", read_answer.body);
            assert!(read_answer.json()["error"]["message"].is_string());
        }
    }
}

#[test]
fn waits_are_stated_where_the_vendor_states_them() {
    for dialect in Dialect::ALL {
        let wait = |model: &str| fault(&got(model, dialect, true, &user("hello")), true).unwrap().wait;
        assert_eq!(wait("rate-429?retry_after=36").unwrap().after.as_secs(), 36, "{dialect:?}");
        assert_eq!(wait("rate-429?retry_after=none"), None, "{dialect:?}");
        assert_eq!(wait("quota").unwrap().after.as_secs(), 6 * 3600, "{dialect:?}");
    }
    let anthropic = got("rate-429?retry_after=36", Dialect::Messages, true, &user("hello"));
    assert_eq!(anthropic.header("retry-after"), Some("36"));
    assert_eq!(anthropic.header("anthropic-ratelimit-requests-reset"), Some("2026-09-21T14:13:56Z"));
    assert_eq!(anthropic.json()["error"]["type"], "rate_limit_error");
    assert_eq!(anthropic.header("request-id"), anthropic.json()["request_id"].as_str());
    let overloaded = got("overloaded", Dialect::Messages, true, &user("hello"));
    assert_eq!(
        (overloaded.status, overloaded.json()["error"]["type"].as_str()),
        (529, Some("overloaded_error"))
    );
    let google = got("rate-429?retry_after=36", Dialect::Gemini, true, &user("hello"));
    assert_eq!(google.header("retry-after"), None);
    let error = &google.json()["error"];
    assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
    assert_eq!(error["details"][1]["retryDelay"], "36s");
    assert!(error["details"][0]["violations"][0]["quotaId"].as_str().unwrap().contains("PerMinute"));
}

#[test]
fn names_that_do_not_exist_are_refused_in_every_vendors_words() {
    for dialect in Dialect::ALL {
        let read_answer = got("gpt-9", dialect, true, &user("hello"));
        assert_eq!(
            (read_answer.status, fault(&read_answer, true).unwrap().kind),
            (404, Kind::ModelNotFound),
            "{}",
            read_answer.body
        );
        let read_answer = got("cut?aftr=3", dialect, true, &user("hello"));
        assert_eq!(
            (read_answer.status, fault(&read_answer, true).unwrap().kind),
            (400, Kind::InvalidRequest)
        );
        assert!(read_answer.body.contains("'aftr'"), "{}", read_answer.body);
        let begun = json!({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "The"}]});
        let refused = fault(&got("ok?prefill=refuse", dialect, true, &begun), true).unwrap();
        assert_eq!((refused.kind, refused.sub), (Kind::InvalidRequest, Some(Sub::Capability)), "{dialect:?}");
    }
}

/// The number of frames decides the number of words, whatever frames the dialect needs.
#[test]
fn a_fall_comes_at_the_same_word_in_every_dialect() {
    let chat = user("hello");
    let whole = read(Dialect::Chat, true, &got("ok", Dialect::Chat, true, &chat)).text;
    for (model, end) in [
        ("cut?after=0", End::Cut),
        ("cut?after=1", End::Cut),
        ("cut?after=2", End::Cut),
        ("cut?after=20", End::Cut),
        ("cut?after=9999", End::Cut),
        ("stall?after=7", End::Stall),
        ("fin?after=7", End::Clean),
        ("half", End::Cut),
        ("in-band-error?after=0", End::Clean),
        ("in-band-error?after=1", End::Clean),
        ("in-band-error?after=9", End::Clean),
        ("filter?after=6", End::Clean),
        ("bad-chunk?after=0", End::Clean),
        ("bad-chunk?after=1", End::Clean),
        ("bad-chunk?after=5", End::Clean),
        ("bad-chunk?after=5&extra=yes", End::Clean),
        ("no-done", End::Clean),
        ("no-done?open=yes", End::Stall),
        ("cut?after=4&bytes=30", End::Cut),
    ] {
        let meant = read(Dialect::Chat, true, &got(model, Dialect::Chat, true, &chat));
        for dialect in Dialect::ALL {
            let read_answer = got(model, dialect, true, &chat);
            let said = read(dialect, true, &read_answer);
            let place = format!("{model}, {dialect:?}: {}", read_answer.body);
            assert_eq!((&said.text, read_answer.end), (&meant.text, end), "{place}");
            assert_eq!((said.error, said.malformed), (meant.error, meant.malformed), "{place}");
            assert!(whole.starts_with(&said.text) || model.starts_with("bad-chunk"), "{place}");
            if dialect == Dialect::Chat || !model.starts_with("no-done") {
                assert_eq!(said.finish, meant.finish, "{place}");
            }
            assert_eq!(said.done, meant.done, "{place}");
        }
    }
}

#[test]
fn calls_are_cut_inside_their_arguments_in_every_dialect() {
    let chat = with(user("How is the weather?"), weather());
    for dialect in Dialect::ALL {
        let read_answer = got("cut-tool", dialect, true, &chat);
        let said = read(dialect, true, &read_answer);
        assert!(
            read_answer.end == End::Cut && said.finish.is_none() && !said.done,
            "{dialect:?}: {}",
            read_answer.body
        );
        if dialect == Dialect::Gemini {
            assert!(
                read_answer.body.contains("\"functionCall\":{\"name\":\"get_weather\",\"args\":{\"city"),
                "{}",
                read_answer.body
            );
        } else {
            assert!(serde_json::from_str::<Value>(&said.calls[0].1).is_err(), "{dialect:?}: {said:?}");
        }
        let whole = got("cut-tool", dialect, false, &chat);
        assert!(
            whole.end == End::Cut && whole.body.contains("get_weather") | whole.body.contains("city"),
            "{}",
            whole.body
        );
    }
}

#[test]
fn broken_arguments_are_broken_in_each_vendors_way() {
    let chat = with(user("How is the weather?"), weather());
    for form in ["trailing-comma", "unquoted", "truncated", "python", "prose"] {
        let model = format!("broken-tool-args?form={form}");
        for dialect in Dialect::ALL {
            for stream in [true, false] {
                let read_answer = got(&model, dialect, stream, &chat);
                let said = read(dialect, stream, &read_answer);
                if dialect == Dialect::Gemini && form == "truncated" {
                    assert!(said.calls.is_empty(), "{}", read_answer.body);
                    assert_eq!(said.finish.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
                    let kind = fault(&read_answer, stream).map(|fault| (fault.kind, fault.sub));
                    assert_eq!(
                        kind,
                        Some((Kind::ResponseInvalid, Some(Sub::ToolCall))),
                        "{}",
                        read_answer.body
                    );
                    continue;
                }
                assert_eq!(said.calls[0].0, "get_weather");
                assert!(
                    serde_json::from_str::<Value>(&said.calls[0].1).is_err(),
                    "{dialect:?} {form}: {said:?}"
                );
                assert_eq!(said.finish.as_deref(), Some("tool_calls"));
            }
        }
    }
}

#[test]
fn a_blocked_prompt_is_googles_own_answer() {
    let read_answer = got("filter-400", Dialect::Gemini, false, &user("hello"));
    assert_eq!(
        (read_answer.status, &read_answer.json()["promptFeedback"]["blockReason"]),
        (200, &json!("PROHIBITED_CONTENT"))
    );
    let said = read(Dialect::Gemini, true, &got("filter-400", Dialect::Gemini, true, &user("hello")));
    assert_eq!(said.finish.as_deref(), Some("content_filter"));
}

#[test]
fn wrong_bodies_are_refused_in_every_vendors_envelope() {
    for dialect in Dialect::ALL {
        for text in ["{", "[]", "{}", "\u{1}", "{\"model\":\"m\"}", "{\"model\":null}"] {
            let ask = Ask { model: "ok", dialect, body: text.as_bytes(), ..Ask::default() };
            let read_answer = perform(play(&ask));
            assert_eq!(
                (read_answer.status, read_answer.json()["error"]["message"].is_string()),
                (400, true),
                "{dialect:?} {text}"
            );
        }
    }
}
