//! What is not to be retried: requests that are too large, refused by a policy, or for a model that does not exist.

use koboshi_config::Config;
use serde_json::json;

use crate::common::*;

#[test]
fn a_context_that_is_too_large_goes_to_a_larger_target() {
    for stream in [false, true] {
        let stage = Stage::of(&["one/context", "two/ok"]);
        let body = chat(stream);
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (1, 1));
        let alone = Stage::of(&["one/context"]);
        let error = assert_error(&alone.ask(&body), 400, "context_too_large");
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("invalid_request_error"), &json!("context_length_exceeded"))
        );
        assert_eq!(alone.calls(), (1, 0));
        assert_eq!(alone.breaker("one/context"), "closed");
    }
}

#[test]
fn what_surely_does_not_fit_is_not_asked() {
    let small = |config: &mut Config| model(config, "one/ok", |facts| facts.context_window = Some(100));
    let stage = Stage::with(&["one/ok", "two/ok"], small);
    let mut body = chat(false);
    body["messages"][0]["content"] = "many words ".repeat(500).into();
    assert_whole(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (0, 1));
    let stage = Stage::with(&["one/ok"], small);
    assert_error(&stage.ask(&body), 400, "context_too_large");
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn a_target_without_tools_is_not_asked_for_a_call() {
    let stage = Stage::with(&["one/ok", "two/ok"], |config| {
        model(config, "one/ok", |facts| facts.tools = Some(false));
    });
    let body = with_tools(true, "look it up");
    assert_calls(&stage.ask(&body), &body);
    assert_eq!(stage.calls(), (0, 1));
}

#[test]
fn a_content_filter_is_not_routed_around() {
    // A request that the provider refused for its content is an error.
    for stream in [false, true] {
        let stage = Stage::of(&["one/filter-400", "two/ok"]);
        let answer = stage.ask(&chat(stream));
        let error = assert_error(&answer, 400, "content_filtered");
        assert_eq!(error["code"], "content_filter");
        assert_eq!(stage.calls(), (1, 0), "{stream}");
    }
    // An answer that a filter ended keeps its text, and its end says why.
    for (fall, stream) in [
        ("filter?after=5", false),
        ("filter?after=5", true),
        ("filter?after=1", false),
        ("filter?after=1", true),
    ] {
        let stage = Stage::of(&[&format!("one/{fall}"), "two/ok"]);
        for _ in 0..8 {
            let answer = stage.ask(&chat(stream));
            assert_eq!(
                (answer.status, answer.finish().as_deref()),
                (200, Some("content_filter")),
                "{answer:?}"
            );
            assert_eq!(answer.content().is_empty(), fall == "filter?after=1", "{answer:?}");
            assert!(!stream || answer.is_done(), "{answer:?}");
        }
        // It counts as what it is, and not against the target.
        assert_eq!(stage.calls(), (8, 0), "{fall}");
        assert_eq!(stage.breaker(&format!("one/{fall}")), "closed");
        let counted = stage.get("/metrics").text();
        let faults = counted.lines().find(|line| line.contains("fault") && line.contains("content_filtered"));
        assert!(faults.is_some_and(|line| line.ends_with(" 8")), "{counted}");
        stage.journal("the filter", |entry| entry.kind.as_deref() == Some("content_filtered"));
    }
}

#[test]
fn a_content_filter_is_routed_around_where_the_policy_says_so() {
    for (fall, stream) in
        [("filter-400", true), ("filter?after=1", true), ("filter?after=5", false), ("filter-400", false)]
    {
        let chain = [&format!("one/{fall}"), "two/ok"];
        let stage = Stage::with(&chain, |config| config.remedy.route_around_filters = true);
        let body = chat(stream);
        assert_whole(&stage.ask(&body), &body);
        assert_eq!(stage.calls(), (1, 1), "{fall}");
    }
    // Where no other target is left, the client gets the filtered answer.
    let stage = Stage::with(&["one/filter?after=5"], |config| config.remedy.route_around_filters = true);
    assert_eq!(stage.ask(&chat(false)).finish().as_deref(), Some("content_filter"));
}

#[test]
fn a_model_that_is_not_there_is_passed_over_for_a_while() {
    let stage = Stage::of(&["one/nobody", "two/ok"]);
    let body = chat(false);
    for _ in 0..3 {
        assert_whole(&stage.ask(&body), &body);
    }
    assert_eq!(stage.calls(), (1, 3), "asked once");
    let alone = Stage::of(&["one/nobody"]);
    let answer = alone.ask(&body);
    let error = assert_error(&answer, 404, "model_not_found");
    assert_eq!(error["code"], "model_not_found");
    assert_eq!(alone.calls(), (1, 0));
}

#[test]
fn an_unknown_model_is_reported_without_asking() {
    let stage = Stage::of(&["one/ok"]);
    let mut body = chat(false);
    body["model"] = "unheard-of".into();
    let error = assert_error(&stage.ask(&body), 404, "model_not_found");
    assert_eq!(error["param"], "model");
    assert_eq!(stage.calls(), (0, 0));
}

#[test]
fn a_wrong_request_is_sent_once_and_opens_no_breaker() {
    let stage = Stage::of(&["one/fail-400", "two/ok"]);
    for _ in 0..8 {
        assert_error(&stage.ask(&chat(false)), 400, "invalid_request");
    }
    assert_eq!(stage.calls(), (8, 0));
    assert_eq!(stage.breaker("one/fail-400"), "closed");
}
