//! Each kind is asked under its path, with its header.

use koboshi_config::gateway::{ProviderConfig, ProviderDialect, ProviderKind};
use koboshi_config::secret::Secret;
use koboshi_gateway::Gateway;
use koboshi_store::MemoryStore;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::{ReceivedRequest, Server};

/// A gateway with one provider, `p`, and what it was asked first.
fn first_asked(
    server: &Server,
    kind: ProviderKind,
    base: &str,
    change: impl FnOnce(&mut ProviderConfig),
    ask: impl FnOnce(&Gateway),
) -> ReceivedRequest {
    let mut config = config();
    let mut provider = ProviderConfig::new(kind);
    provider.base_url = Some(server.url(base));
    provider.keys = vec![Secret::new("sk-own")];
    change(&mut provider);
    config.providers.insert("p".to_owned(), provider);
    config.serve.passthrough = true;
    let gateway = start(config, &MemoryStore::default()).unwrap();
    ask(&gateway);
    server.asked().remove(0)
}

fn post(gateway: &Gateway, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
    let mut client = Client::to(gateway.address());
    client.send("POST", path, headers, body.to_string().as_bytes());
    client.read()
}

fn talk(stream: bool, headers: &'static [(&str, &str)]) -> impl FnOnce(&Gateway) {
    move |gateway| {
        let mut body = chat(stream);
        body["model"] = "p/gpt 4/o".into();
        post(gateway, "/v1/chat/completions", &body, headers);
    }
}

const SECRETS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// Which headers tell who asks, and what they say.
fn told(asked: &ReceivedRequest) -> Vec<(&str, &str)> {
    SECRETS.iter().filter_map(|name| Some((*name, asked.header(name)?))).collect()
}

type Change = fn(&mut ProviderConfig);
/// Kind, base, change, whether it streams; path, and the header with the key.
type Way = (ProviderKind, &'static str, Change, bool, &'static str, (&'static str, &'static str));

#[test]
fn every_kind_is_asked_under_its_path_with_its_key() {
    let dated = |provider: &mut ProviderConfig| provider.api_version = Some("2024-10-21".to_owned());
    let nothing = |_: &mut ProviderConfig| {};
    let bearer = ("authorization", "Bearer sk-own");
    let cases: [Way; 11] = [
        (ProviderKind::Openai, "/v1", nothing, false, "/v1/chat/completions", bearer),
        (ProviderKind::Openai, "", nothing, true, "/chat/completions", bearer),
        (ProviderKind::Deepseek, "/v1", nothing, true, "/v1/chat/completions", bearer),
        (ProviderKind::Ollama, "/v1", nothing, false, "/v1/chat/completions", bearer),
        (ProviderKind::Azure, "", nothing, true, "/openai/v1/chat/completions", ("api-key", "sk-own")),
        (
            ProviderKind::Azure,
            "/x",
            dated,
            false,
            "/x/openai/deployments/gpt%204%2Fo/chat/completions?api-version=2024-10-21",
            ("api-key", "sk-own"),
        ),
        (ProviderKind::Anthropic, "/v1", nothing, false, "/v1/messages", ("x-api-key", "sk-own")),
        (ProviderKind::Anthropic, "/v1", nothing, true, "/v1/messages", ("x-api-key", "sk-own")),
        (
            ProviderKind::Gemini,
            "/v1beta",
            nothing,
            false,
            "/v1beta/models/gpt%204%2Fo:generateContent",
            ("x-goog-api-key", "sk-own"),
        ),
        (
            ProviderKind::Gemini,
            "/v1beta",
            nothing,
            true,
            "/v1beta/models/gpt%204%2Fo:streamGenerateContent?alt=sse",
            ("x-goog-api-key", "sk-own"),
        ),
        (
            ProviderKind::Openai,
            "/v1",
            |provider| provider.dialects = vec![ProviderDialect::Responses],
            true,
            "/v1/responses",
            bearer,
        ),
    ];
    for (kind, base, change, stream, path, key) in cases {
        let asked = first_asked(&Server::refusing(), kind, base, change, talk(stream, &[]));
        assert_eq!(asked.path, path, "{kind:?}");
        assert_eq!(told(&asked), [key], "{kind:?}: one header says who asks");
        let version = (kind == ProviderKind::Anthropic).then_some("2023-06-01");
        assert_eq!(asked.header("anthropic-version"), version, "{kind:?}");
        assert_eq!(asked.header("anthropic-beta"), None);
        assert_eq!(asked.header("content-type"), Some("application/json"));
    }
}

#[test]
fn without_a_key_no_credential_is_sent() {
    let keyless = |provider: &mut ProviderConfig| provider.keys.clear();
    for kind in [ProviderKind::Openai, ProviderKind::Ollama, ProviderKind::Anthropic] {
        let asked = first_asked(&Server::refusing(), kind, "/v1", keyless, talk(false, &[]));
        assert!(told(&asked).is_empty(), "{asked:?}");
    }
}

#[test]
fn a_clients_own_key_goes_out_as_its_vendor_reads_it() {
    type Case = (ProviderKind, &'static [(&'static str, &'static str)], (&'static str, &'static str));
    let cases: [Case; 4] = [
        (ProviderKind::Anthropic, &[("x-api-key", "sk-ant-api-1")], ("x-api-key", "sk-ant-api-1")),
        (
            ProviderKind::Anthropic,
            &[("authorization", "Bearer sk-ant-oat-1")],
            ("authorization", "Bearer sk-ant-oat-1"),
        ),
        (ProviderKind::Gemini, &[("x-goog-api-key", "AIza1")], ("x-goog-api-key", "AIza1")),
        (ProviderKind::Openai, &[("x-api-key", "sk-1")], ("authorization", "Bearer sk-1")),
    ];
    for (kind, sent, wanted) in cases {
        let asked = first_asked(&Server::refusing(), kind, "/v1", |_| {}, talk(false, sent));
        assert_eq!(told(&asked), [wanted], "{kind:?}");
        let login = wanted.1.contains("oat").then_some("oauth-2025-04-20");
        assert_eq!(asked.header("anthropic-beta"), login, "a login needs the word for it");
    }
}

#[test]
fn embeddings_go_where_there_are_some() {
    let embed = |gateway: &Gateway| {
        post(gateway, "/v1/embeddings", &json!({"model": "p/e", "input": "x"}), &[]);
    };
    for (kind, base, path, key) in [
        (ProviderKind::Openai, "/v1", "/v1/embeddings", ("authorization", "Bearer sk-own")),
        (ProviderKind::Azure, "", "/openai/v1/embeddings", ("api-key", "sk-own")),
        (ProviderKind::Gemini, "/v1beta", "/v1beta/openai/embeddings", ("authorization", "Bearer sk-own")),
    ] {
        let asked = first_asked(&Server::refusing(), kind, base, |_| {}, embed);
        assert_eq!((asked.path.as_str(), told(&asked)), (path, vec![key]), "{kind:?}");
    }
}

#[test]
fn a_provider_without_embeddings_is_not_asked_for_them() {
    let server = Server::refusing();
    let stage = Stage::with(&["claude/x", "two/ok"], |config| {
        let mut claude = ProviderConfig::new(ProviderKind::Anthropic);
        claude.base_url = Some(server.url("/v1"));
        config.providers.insert("claude".to_owned(), claude);
    });
    let body = json!({"model": "m", "input": "x"});
    let answer = post(&stage.gateway, "/v1/embeddings", &body, &[]);
    assert_eq!((answer.status, answer.header("x-koboshi-target")), (200, Some("two/ok")));
    let alone = post(&stage.gateway, "/v1/embeddings", &json!({"model": "claude/x", "input": "x"}), &[]);
    assert_error(&alone, 400, "invalid_request");
    assert!(server.asked().is_empty());
}
