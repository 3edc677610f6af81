//! Whole answers of the responses dialect, and errors for its clients.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::common;
use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::failure::Failure;
use koboshi_wire::responses::{answer, error};
use koboshi_wire::step::Usage;
use serde_json::{Value, json};

fn recorded() -> String {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1741476777.0, "status": "completed", "error": null,
        "incomplete_details": null, "model": "gpt-5.1",
        "output": [
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA",
                "summary": [{"type": "summary_text", "text": "**One**"}, {"type": "summary_text", "text": "**Two**"}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "Hello ", "annotations": []}, {"type": "output_text", "text": "you"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":", "status": "completed"},
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "p", "input": "*** x"}
        ],
        "usage": {"input_tokens": 328, "input_tokens_details": {"cached_tokens": 7}, "output_tokens": 52,
            "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 380}
    })
    .to_string()
}

#[test]
fn a_recorded_answer_is_read() {
    let body = recorded();
    let whole = answer::read(body.as_bytes()).unwrap();
    assert_eq!(
        (whole.id.as_deref(), whole.model.as_deref(), whole.created),
        (Some("resp_1"), Some("gpt-5.1"), Some(1_741_476_777))
    );
    assert_eq!(whole.usage, Some(Usage { input: 328, output: 52, cached: 7, stored: 0, reasoning: 3 }));
    let [choice] = whole.choices.as_slice() else { panic!() };
    assert_eq!((choice.text.as_deref(), choice.finish.as_deref()), (Some("Hello you"), Some("tool_calls")));
    assert_eq!(choice.thoughts[0].text, "**One**\n\n**Two**");
    let signature = choice.thoughts[0].signature.as_ref().unwrap();
    assert_eq!((signature.id.as_deref(), &*signature.data), (Some("rs_1"), "gAAA"));
    let calls: Vec<_> = choice
        .calls
        .iter()
        .map(|call| (call.id.as_deref().unwrap(), &*call.arguments, call.free_text))
        .collect();
    assert_eq!(calls, [("call_1", "{\"a\":", false), ("call_2", "*** x", true)]);
    assert!(choice.reasoning && !choice.refusal && !whole.error);
}

#[test]
fn arguments_cost_and_note_change_nothing_else() {
    let body = Bytes::from(recorded());
    let span = answer::read(&body).unwrap().choices[0].calls[0].span.clone().unwrap();
    let mended = answer::with_arguments(&body, &[(span, "{\"a\":1}")]);
    assert_eq!(mended, recorded().replace(r#""{\"a\":""#, r#""{\"a\":1}""#));
    let usage = Usage { input: 1, output: 2, stored: 4, ..Usage::default() };
    let changed = answer::with_note(&answer::with_usage(&body, &usage), &json!({"source": "b"}));
    let value: Value = serde_json::from_slice(&changed).unwrap();
    assert_eq!((&value["usage"]["total_tokens"], &value["koboshi"]["source"]), (&json!(3), &json!("b")));
    assert_eq!(answer::read(&changed).unwrap().usage, Some(usage));
    let bare = answer::with_usage(&Bytes::from_static(br#"{"id":"x"}"#), &usage);
    assert!(bare.starts_with(br#"{"usage":{"#) && bare.ends_with(br#","id":"x"}"#));
    let page = Bytes::from_static(b"<html>");
    assert_eq!(answer::with_usage(&page, &usage), page);
}

#[test]
fn ends_and_failures_of_answers() {
    let read = |body: Value| answer::read(body.to_string().as_bytes()).unwrap().into_owned();
    let finish = |body: Value| read(body).choices[0].finish.clone().map(String::from);
    let cut = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []});
    assert_eq!(finish(cut("max_output_tokens")).as_deref(), Some("length"));
    assert_eq!(finish(cut("content_filter")).as_deref(), Some("content_filter"));
    assert_eq!(finish(json!({"status": "completed", "output": []})).as_deref(), Some("stop"));
    assert_eq!(finish(json!({"status": "queued", "output": []})), None, "it has not ended");
    for failed in [
        json!({"status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []}),
        json!({"error": {"message": "m", "type": "invalid_request_error"}}),
        json!({"status": "cancelled", "output": []}),
    ] {
        assert!(read(failed).error);
    }
    let refused = read(
        json!({"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}),
    );
    assert_eq!((refused.choices[0].refused.as_deref(), refused.choices[0].refusal), (Some("no"), true));
    assert!(answer::read(b"[]").is_err() && answer::read(b"\xff").is_err());
    let half = answer::read(
        br#"{"output":[{"type":"message","content":[{"type":"output_text","text":"a\ud83d"}]}]}"#,
    )
    .unwrap();
    assert_eq!(half.choices[0].text.as_deref(), Some("a\u{fffd}"));
}

fn failure(kind: Kind) -> Failure<'static> {
    let status = kind.row().http_status.unwrap_or(500);
    Failure { code: Some("KBS-1"), ..common::failure(kind, status, "It broke.") }
}

fn told(failure: &Failure<'_>) -> Value {
    serde_json::from_slice::<Value>(&error::body(failure)).unwrap()["error"].clone()
}

#[test]
fn errors_are_in_the_vendors_words() {
    for (kind, word, code) in [
        (Kind::RateLimited, "rate_limit_error", "rate_limit_exceeded"),
        (Kind::QuotaExceeded, "insufficient_quota", "insufficient_quota"),
        (Kind::ContextTooLarge, "invalid_request_error", "context_length_exceeded"),
        (Kind::ModelNotFound, "invalid_request_error", "model_not_found"),
        (Kind::Unauthorized, "authentication_error", "invalid_api_key"),
        (Kind::Overloaded, "service_unavailable_error", "server_is_overloaded"),
        (Kind::InvalidRequest, "invalid_request_error", "KBS-1"),
        (Kind::Internal, "server_error", "KBS-1"),
    ] {
        let error = told(&failure(kind));
        assert_eq!((error["type"].as_str(), error["code"].as_str()), (Some(word), Some(code)), "{kind:?}");
        assert!(error.as_object().unwrap().contains_key("param"), "null, but there");
        assert_eq!(error.get("resets_at"), None);
    }
    let dead = told(&Failure { status: 502, ..failure(Kind::Unauthorized) });
    assert_eq!(dead["type"], "server_error", "the client must not throw its own key away");
    let koboshi = json!({"kind": "x"});
    let with =
        told(&Failure { param: Some("input"), koboshi: Some(&koboshi), ..failure(Kind::InvalidRequest) });
    assert_eq!((&with["param"], &with["koboshi"]["kind"]), (&json!("input"), &json!("x")));
}

#[test]
fn codex_gets_the_time_of_the_retry() {
    for kind in [Kind::RateLimited, Kind::QuotaExceeded, Kind::CoolingDown] {
        let known = Failure {
            resets_at: Some(1_800_000_000),
            retry_after: Some(7200),
            is_final: true,
            status: 429,
            ..failure(kind)
        };
        let error = told(&known);
        assert_eq!(
            (&error["type"], &error["resets_at"], &error["resets_in_seconds"]),
            (&json!("usage_limit_reached"), &json!(1_800_000_000), &json!(7200)),
        );
        let soon = told(&Failure { is_final: false, ..known });
        assert_ne!(soon["type"], "usage_limit_reached", "it may wait and come back by itself");
        let unknown = told(&Failure { resets_at: None, ..known });
        assert_ne!(unknown["type"], "usage_limit_reached", "there is no time to show");
    }
}
