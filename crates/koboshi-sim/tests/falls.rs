//! What each fall looks like to a client, and that the core reads it as what is meant.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::sync::LazyLock;
use std::time::Duration;

use crate::common::{Got, ask, got, perform, streaming, user, weather, with};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Answer, Classifier, Rules};
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_sim::{End, Head, Tally, names};
use serde_json::{Value, json};

static CLASSIFIER: LazyLock<Classifier> =
    LazyLock::new(|| Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled()));

fn fault(read_answer: &Got, stream: bool) -> Option<Fault> {
    let now = jiff::Timestamp::from_second(1_790_000_000).unwrap().to_zoned(TimeZone::UTC);
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

/// What is meant by a name: the kind and reason of a stream and of a whole answer; nothing where it is fine.
type Meant = (Option<(Kind, Option<Sub>)>, Option<(Kind, Option<Sub>)>);

fn meant(name: &str) -> Option<Meant> {
    let both = |kind, sub| (Some((kind, sub)), Some((kind, sub)));
    let closed = Some((Kind::ConnectionClosed, None));
    let unusable = Some((Kind::ResponseInvalid, None));
    Some(match name {
        "ok" | "slow-first" | "loop" => (None, None),
        "fail-500" | "in-band-error" => both(Kind::Internal, None),
        "fail-503" | "fail-STATUS" | "flap" => both(Kind::Unavailable, None),
        "rate-429" => both(Kind::RateLimited, None),
        "quota" => both(Kind::QuotaExceeded, Some(Sub::Day)),
        "billing" => both(Kind::QuotaExceeded, Some(Sub::Billing)),
        "overloaded" => both(Kind::Overloaded, None),
        "auth-401" => both(Kind::Unauthorized, None),
        "context" => both(Kind::ContextTooLarge, None),
        "filter" | "filter-400" => both(Kind::ContentFiltered, None),
        // Cut answers: a stream lacks its end, a whole body is no JSON.
        "stall" | "cut" | "cut-tool" | "fin" | "half" => (closed, unusable),
        "bad-chunk" => (unusable, unusable),
        // Only the mark is missing: the answer is whole.
        "no-done" => (None, None),
        "broken-tool-args" => both(Kind::ResponseInvalid, Some(Sub::ToolCall)),
        "empty" => (Some((Kind::ResponseInvalid, Some(Sub::Empty))), unusable),
        "html" => both(Kind::ResponseInvalid, Some(Sub::NotApi)),
        // No answer to read, or any.
        "reset" | "silence" | "chaos" => return None,
        other => panic!("say what is meant by {other}"),
    })
}

#[test]
fn every_name_is_read_as_what_is_meant() {
    for name in names() {
        let Some((stream, whole)) = meant(name.name) else { continue };
        let model = name.example.split('?').next().unwrap();
        let mut body = user("How is the weather?");
        if name.name.contains("tool") {
            body = with(body, weather());
        }
        let seen =
            |read_answer: &Got, stream| fault(read_answer, stream).map(|fault| (fault.kind, fault.sub));
        let read_answer = got(model, &streaming(body.clone()));
        assert_eq!(seen(&read_answer, true), stream, "{model}, stream: {}", read_answer.body);
        let read_answer = got(model, &body);
        assert_eq!(seen(&read_answer, false), whole, "{model}, whole: {}", read_answer.body);
    }
}

#[test]
fn every_example_can_be_asked_for() {
    for name in names() {
        let play = ask(name.example, &user("hello"), Tally::default());
        if matches!(play.head, Head::Answer { .. }) {
            let read_answer = perform(play);
            assert!(
                !read_answer.body.contains("model_not_found") && !read_answer.body.contains("invalid_value"),
                "{}",
                read_answer.body
            );
        }
        if !name.name.contains("STATUS") {
            assert!(name.example.starts_with(name.name));
        }
    }
}

#[test]
fn statuses_are_read_as_what_they_are() {
    for (status, kind) in [
        (400, Kind::InvalidRequest),
        (401, Kind::Unauthorized),
        (403, Kind::PermissionDenied),
        (404, Kind::InvalidRequest),
        (408, Kind::Timeout),
        (409, Kind::Unavailable),
        (413, Kind::MessageTooLarge),
        (422, Kind::InvalidRequest),
        (429, Kind::RateLimited),
        (500, Kind::Internal),
        (501, Kind::Internal),
        (502, Kind::Unavailable),
        (503, Kind::Unavailable),
        (504, Kind::Timeout),
        (529, Kind::Overloaded),
    ] {
        let read_answer = got(&format!("fail-{status}"), &user("hello"));
        assert_eq!(
            (read_answer.status, fault(&read_answer, false).unwrap().kind),
            (status, kind),
            "{}",
            read_answer.body
        );
        assert!(read_answer.json()["error"]["message"].is_string());
    }
}

#[test]
fn waits_are_stated_or_not() {
    let read_answer = got("rate-429?retry_after=2", &user("hello"));
    assert_eq!(read_answer.header("retry-after"), Some("2"));
    assert_eq!(read_answer.header("x-ratelimit-remaining-requests"), Some("0"));
    assert_eq!(read_answer.json()["error"]["code"], "rate_limit_exceeded");
    assert_eq!(fault(&read_answer, false).unwrap().wait.unwrap().after, Duration::from_secs(2));
    let read_answer = got("rate-429?retry_after=none", &user("hello"));
    assert_eq!(read_answer.header("retry-after"), None);
    assert_eq!(fault(&read_answer, false).unwrap().wait, None);
    let read_answer = got("rate-429?retry_after=250ms", &user("hello"));
    assert_eq!(
        (read_answer.header("retry-after"), read_answer.header("retry-after-ms")),
        (Some("0.25"), Some("250"))
    );
    assert_eq!(
        fault(&got("fail-503?retry_after=7", &user("hello")), false).unwrap().wait.unwrap().after.as_secs(),
        7
    );
    assert_eq!(fault(&got("quota", &user("hello")), false).unwrap().wait.unwrap().after.as_secs(), 6 * 3600);
    let billing = fault(&got("billing", &user("hello")), false).unwrap();
    assert!(billing.wait.is_none() && !billing.advice.later);
}

#[test]
fn names_and_parameters_that_do_not_exist_are_refused_in_a_vendors_words() {
    let read_answer = got("gpt-9", &user("hello"));
    assert_eq!(
        (read_answer.status, read_answer.json()["error"]["code"].as_str()),
        (404, Some("model_not_found"))
    );
    assert_eq!(fault(&read_answer, false).unwrap().kind, Kind::ModelNotFound);
    let read_answer = got("cut?aftr=3", &user("hello"));
    assert_eq!((read_answer.status, read_answer.json()["error"]["param"].as_str()), (400, Some("model")));
    assert!(read_answer.json()["error"]["message"].as_str().unwrap().contains("'aftr'"));
    assert_eq!(fault(&read_answer, false).unwrap().kind, Kind::InvalidRequest);
}

#[test]
fn a_refused_prefill_is_a_request_that_another_target_may_take() {
    let body =
        json!({"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "The"}]});
    let refused = fault(&got("ok?prefill=refuse", &streaming(body)), true).unwrap();
    assert_eq!(
        (refused.kind, refused.sub, refused.advice.other),
        (Kind::InvalidRequest, Some(Sub::Capability), true)
    );
}

fn frames(read_answer: &Got) -> usize {
    read_answer.beats.len()
}

#[test]
fn frames_are_counted_exactly() {
    let stream = || streaming(user("hello"));
    for (model, count, end) in [
        ("cut?after=3", 3, End::Cut),
        ("stall?after=3", 3, End::Stall),
        ("fin?after=3", 3, End::Clean),
        ("cut?after=0", 0, End::Cut),
        ("in-band-error?after=0", 1, End::Clean),
        ("in-band-error?after=1", 2, End::Clean),
        ("in-band-error?after=3", 4, End::Clean),
    ] {
        let read_answer = got(model, &stream());
        assert_eq!((frames(&read_answer), read_answer.end), (count, end), "{model}");
        assert!(read_answer.finish().is_none() && !read_answer.is_done(), "{model}");
    }
    let whole = frames(&got("ok", &stream()));
    let late = got("cut?after=100000", &stream());
    assert_eq!(
        (frames(&late), late.end),
        (whole - 2, End::Cut),
        "a fall comes before the finish at the latest"
    );
    assert_eq!(late.text(), got("ok", &stream()).text());
    let inside = got("cut?after=2&bytes=40", &stream());
    assert_eq!((frames(&inside), inside.beats[2].1.len()), (3, 40));
    let half = got("half", &stream());
    assert!((whole / 3..whole * 2 / 3).contains(&frames(&half)) && half.end == End::Cut);
    let never = |model: &str| ask(model, &stream(), Tally::default());
    assert!(matches!(never("reset?latency=1s").head, Head::Reset { after } if after.as_secs() == 1));
    assert_eq!(never("silence").head, Head::Silence);
}

#[test]
fn a_broken_frame_takes_its_text_with_it_or_comes_besides() {
    let whole = got("ok", &streaming(user("hello")));
    let broken = got("bad-chunk?after=5", &streaming(user("hello")));
    assert_eq!(frames(&broken), frames(&whole));
    assert!(serde_json::from_str::<Value>(broken.data()[5]).is_err());
    assert_eq!(
        broken.text().len(),
        whole.text().len() - whole.chunks()[5]["choices"][0]["delta"]["content"].as_str().unwrap().len()
    );
    let extra = got("bad-chunk?after=5&extra=yes", &streaming(user("hello")));
    assert_eq!((frames(&extra), extra.text()), (frames(&whole) + 1, whole.text()));
    assert!(extra.is_done() && extra.finish().is_some());
}

#[test]
fn the_end_mark_is_missing_and_nothing_else() {
    let read_answer = got("no-done", &streaming(user("hello")));
    assert_eq!(
        (read_answer.text(), read_answer.finish().as_deref()),
        (got("ok", &user("hello")).text(), Some("stop"))
    );
    assert!(!read_answer.is_done() && read_answer.end == End::Clean);
    assert_eq!(got("no-done?open=yes", &streaming(user("hello"))).end, End::Stall);
}

#[test]
fn a_slow_start_is_late_in_the_head_or_after_it() {
    let at = |model: &str, body: &Value| {
        let play = ask(model, body, Tally::default());
        let Head::Answer { after, .. } = play.head else { panic!() };
        (after.as_secs(), perform(play).beats[0].0.as_secs())
    };
    assert_eq!(at("slow-first", &streaming(user("hello"))), (0, 20));
    assert_eq!(at("slow-first?after=9s&head=late&latency=1s", &streaming(user("hello"))), (10, 0));
    assert_eq!(at("slow-first?after=9s", &user("hello")), (9, 0), "a whole answer is late as a whole");
}

#[test]
fn a_tool_call_is_cut_inside_its_arguments() {
    let body = with(user("How is the weather?"), weather());
    let read_answer = got("cut-tool", &streaming(body.clone()));
    let (name, arguments) = read_answer.calls().pop().unwrap();
    assert_eq!((&*name, read_answer.end), ("get_weather", End::Cut));
    assert!(!arguments.is_empty() && serde_json::from_str::<Value>(&arguments).is_err(), "{arguments}");
    assert!(got("cut-tool?after=0", &streaming(body.clone())).calls()[0].1.is_empty());
    let read_answer = got("cut-tool", &body);
    let (_, begun) = read_answer.body.split_once("\"arguments\":\"").unwrap();
    assert!(!begun.contains("tool_calls\"") && read_answer.end == End::Cut);
    let plain = got("cut-tool", &streaming(user("hello")));
    assert!(plain.end == End::Cut && plain.finish().is_none() && !plain.text().is_empty());
}

#[test]
fn broken_arguments_are_good_when_asked_for_again() {
    let body = with(user("How is the weather?"), weather());
    let is_good = |read_answer: &Got| serde_json::from_str::<Value>(&read_answer.calls()[0].1).is_ok();
    for form in ["trailing-comma", "unquoted", "truncated", "python", "prose"] {
        let model = format!("broken-tool-args?form={form}");
        for read_answer in [got(&model, &body), got(&model, &streaming(body.clone()))] {
            assert!(!is_good(&read_answer), "{form}");
            assert_eq!(read_answer.finish().as_deref(), Some("tool_calls"));
        }
        let call =
            json!({"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{a"}});
        let messages = json!([
            {"role": "user", "content": "How is the weather?"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "These arguments cannot be read. Please call it again."},
        ]);
        let forced = json!({"tool_choice": {"type": "function", "function": {"name": "get_weather"}}});
        let again = with(with(json!({"messages": messages}), weather()), forced);
        assert!(is_good(&got(&model, &again)), "{form}");
        assert!(!is_good(&got(&format!("{model}&always=yes"), &again)), "{form}");
    }
}

#[test]
fn the_filter_ends_an_answer_in_the_middle() {
    for read_answer in
        [got("filter?after=6", &user("hello")), got("filter?after=6", &streaming(user("hello")))]
    {
        assert_eq!(read_answer.finish().as_deref(), Some("content_filter"));
        let whole = got("ok", &user("hello")).text();
        assert!(whole.starts_with(&read_answer.text()) && read_answer.text().len() < whole.len());
    }
    let stream = got("filter?after=6", &streaming(user("hello")));
    assert_eq!(stream.text(), got("filter?after=6", &user("hello")).text());
    assert!(stream.is_done());
}

#[test]
fn a_context_limit_holds_for_long_conversations_only() {
    assert_eq!(got("context?limit=100", &user("hello")).status, 200);
    let long = got("context?limit=100", &user(&"word ".repeat(200)));
    assert_eq!((long.status, long.json()["error"]["code"].as_str()), (400, Some("context_length_exceeded")));
}

#[test]
fn a_call_that_does_not_fall_is_ok() {
    let nth =
        |model: &str, nth| perform(ask(model, &user("hello"), Tally { nth, ..Tally::default() })).status;
    assert_eq!([0, 1, 2].map(|n| nth("fail-503?times=1", n)), [503, 200, 200]);
    let fallen = (0..200).filter(|n| nth("fail-500?p=0.3&seed=7", *n) == 500).count();
    assert!((35..90).contains(&fallen), "{fallen}");
}
