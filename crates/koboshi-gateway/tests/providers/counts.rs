//! How many tokens a request has, asked of providers that may not know the question.

use koboshi_config::gateway::{ProviderConfig, ProviderDialect, ProviderKind};
use koboshi_gateway::Gateway;
use koboshi_store::MemoryStore;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::Server;

/// A gateway with one provider, `p`.
fn gateway(kind: ProviderKind, server: &Server) -> Gateway {
    let mut config = config();
    let mut provider = ProviderConfig::new(kind);
    provider.base_url = Some(server.url("/v1"));
    if kind == ProviderKind::Openai {
        provider.dialects = vec![ProviderDialect::Responses];
    }
    config.providers.insert("p".to_owned(), provider);
    start(config, &MemoryStore::default()).unwrap()
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let mut client = Client::to(gateway.address());
    client.send("POST", path, &[], body.to_string().as_bytes());
    client.read()
}

#[test]
fn a_provider_that_cannot_count_is_not_worse_for_it() {
    for (status, word) in [(404, "not_found_error"), (500, "api_error"), (429, "rate_limit_error")] {
        let server = Server::start(move |asked, _| {
            if asked.path.ends_with("/count_tokens") {
                return (status, json!({"type": "error", "error": {"type": word, "message": "model: x"}}));
            }
            let content = json!([{"type": "text", "text": "hello"}]);
            let usage = json!({"input_tokens": 1, "output_tokens": 1});
            (
                200,
                json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "x", "content": content, "stop_reason": "end_turn", "usage": usage}),
            )
        });
        let gateway = gateway(ProviderKind::Anthropic, &server);
        let mut body = json!({"model": "p/x", "messages": [{"role": "user", "content": "hello, hello"}]});
        for _ in 0..10 {
            let answer = post(&gateway, "/v1/messages/count_tokens", &body);
            assert!(answer.json()["input_tokens"].as_u64().unwrap() > 0, "an estimate: {answer:?}");
        }
        body["max_tokens"] = 10.into();
        let answer = post(&gateway, "/v1/messages", &body);
        assert_eq!(answer.status, 200, "{status} of a count: {answer:?}");
    }
}

#[test]
fn tokens_of_responses_are_counted_by_the_provider_or_estimated() {
    for (status, wanted) in [(200, Some(77)), (404, None)] {
        let server = Server::start(move |_, _| {
            (status, json!({"object": "response.input_tokens", "input_tokens": 77}))
        });
        let gateway = gateway(ProviderKind::Openai, &server);
        let body = json!({"model": "p/x", "input": "How long is this?"});
        let answer = post(&gateway, "/v1/responses/input_tokens", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["object"], "response.input_tokens");
        let tokens = answer.json()["input_tokens"].as_u64().unwrap();
        assert!(wanted.map_or(tokens > 0 && tokens < 77, |wanted| tokens == wanted), "{answer:?}");
        assert_eq!(answer.header("x-koboshi-target").is_some(), wanted.is_some());
        assert_eq!(server.asked().remove(0).path, "/v1/responses/input_tokens");
    }
}
