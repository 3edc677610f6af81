//! Conversations that a provider of the client's own dialect refuses: they are mended and sent once more, and what is sound stays the bytes it was.

use koboshi_config::gateway::{ProviderConfig, ProviderDialect, ProviderKind};
use koboshi_gateway::Gateway;
use koboshi_store::{MemoryStore, Query, Store};
use koboshi_testkit::until;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::Server;

/// A gateway with one provider, `p`, that speaks what it is asked in.
fn gateway(kind: ProviderKind, dialect: ProviderDialect, server: &Server, store: &MemoryStore) -> Gateway {
    let mut config = config();
    let mut provider = ProviderConfig::new(kind);
    provider.base_url = Some(server.url("/v1"));
    provider.dialects = vec![dialect];
    config.providers.insert("p".to_owned(), provider);
    start(config, store).unwrap()
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let mut client = Client::to(gateway.address());
    client.send("POST", path, &[], body.to_string().as_bytes());
    client.read()
}

struct Case {
    kind: ProviderKind,
    dialect: ProviderDialect,
    path: &'static str,
    body: Value,
    /// How the vendor refuses it.
    refusal: Value,
    answer: Value,
    /// What must be in the second request, and what must not.
    has: &'static str,
    hasnt: &'static str,
}

fn cases() -> Vec<Case> {
    let openai = |message: &str, code: Option<&str>| json!({"error": {"message": message, "type": "invalid_request_error", "param": "input", "code": code}});
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let said = json!([{"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "ok", "annotations": []}]}]);
    let call_of_another = json!({"functionCall": {"name": "f", "args": {}}});
    vec![
        Case {
            kind: ProviderKind::Openai,
            dialect: ProviderDialect::Chat,
            path: "/v1/chat/completions",
            body: json!({"model": "p/m", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "user", "content": "b"}]}),
            refusal: openai(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
                None,
            ),
            answer: json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}),
            has: "no result was recorded",
            hasnt: "\u{0}",
        },
        Case {
            kind: ProviderKind::Anthropic,
            dialect: ProviderDialect::Messages,
            path: "/v1/messages",
            body: json!({"model": "p/m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "c"}]}, {"role": "user", "content": "b"}]}),
            refusal: json!({"type": "error", "error": {"type": "invalid_request_error", "message": "messages: text content blocks must be non-empty"}}),
            answer: json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}),
            has: "\"c\"",
            hasnt: "\"text\":\"\"",
        },
        Case {
            kind: ProviderKind::Openai,
            dialect: ProviderDialect::Responses,
            path: "/v1/responses",
            body: json!({"model": "p/m", "input": [{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}, {"role": "assistant", "content": "c"}, {"role": "user", "content": "b"}]}),
            refusal: openai(
                "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
                Some("invalid_encrypted_content"),
            ),
            answer: json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": said, "usage": usage}),
            has: "\"c\"",
            hasnt: "gAAAA",
        },
        Case {
            kind: ProviderKind::Gemini,
            dialect: ProviderDialect::Gemini,
            path: "/v1beta/models/p%2Fgemini-3-pro:generateContent",
            body: json!({"contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [call_of_another]}, {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "b"}}}]}]}),
            refusal: json!({"error": {"code": 400, "message": "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.", "status": "INVALID_ARGUMENT"}}),
            answer: json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}),
            has: "skip_thought_signature_validator",
            hasnt: "\u{0}",
        },
    ]
}

#[test]
fn what_a_provider_refuses_of_a_poisoned_conversation_is_mended_and_sent_once_more() {
    for case in cases() {
        let Case { refusal, answer, .. } = &case;
        let (refusal, answer) = (refusal.clone(), answer.clone());
        let server = Server::start(
            move |_, before| {
                if before == 0 { (400, refusal.clone()) } else { (200, answer.clone()) }
            },
        );
        let store = MemoryStore::default();
        let gateway = gateway(case.kind, case.dialect, &server, &store);
        let got = post(&gateway, case.path, &case.body);
        let asked = server.asked();
        assert_eq!((got.status, asked.len()), (200, 2), "{:?} {got:?} {asked:?}", case.dialect);
        let second = &asked[1].body;
        assert!(second.contains(case.has) && !second.contains(case.hasnt), "{:?} {second}", case.dialect);
        until("the journal names what was changed", || {
            let query = Query { limit: 100, ..Query::default() };
            let known = store.query(&query).unwrap();
            known.into_iter().find(|entry| entry.kind.as_deref() == Some("translated"))
        });
        // The next one is refused for good: once is enough.
        let stubborn = Server::start({
            let refusal = case.refusal.clone();
            move |_, _| (400, refusal.clone())
        });
        let gateway = self::gateway(case.kind, case.dialect, &stubborn, &store);
        let got = post(&gateway, case.path, &case.body);
        assert_eq!((got.status, stubborn.asked().len()), (400, 2), "{:?} {got:?}", case.dialect);
    }
}

#[test]
fn what_is_refused_for_another_reason_is_not_sent_again() {
    let server = Server::refusing();
    let store = MemoryStore::default();
    let gateway = gateway(ProviderKind::Openai, ProviderDialect::Chat, &server, &store);
    let body = json!({"model": "p/m", "messages": [{"role": "user", "content": "a"}], "temperature": 9});
    assert_eq!(post(&gateway, "/v1/chat/completions", &body).status, 400);
    assert_eq!(server.asked().len(), 1);
    // What only its own dialect can say would be lost: it keeps its error.
    let pinned = json!({"model": "p/m", "previous_response_id": "resp_1", "input": [{"type": "function_call_output", "call_id": "c", "output": "r"}]});
    let own = Server::refusing();
    let gateway = self::gateway(ProviderKind::Openai, ProviderDialect::Responses, &own, &store);
    assert_eq!(post(&gateway, "/v1/responses", &pinned).status, 400);
    assert_eq!(own.asked().len(), 1);
}
