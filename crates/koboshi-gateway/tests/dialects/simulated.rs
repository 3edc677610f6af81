//! Answers of the simulated provider say that they are made up, in the header and in the body, whole and streamed, in every pairing.

use koboshi_config::gateway::{ProviderConfig, ProviderDialect, ProviderKind};
use koboshi_store::MemoryStore;
use koboshi_testkit::{Answer, Client};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

use crate::common::{config, route, start};
use crate::own::events;
use crate::speech::{heard, question, stage};

const MARK: &str = r#""koboshi":{"simulated":true}"#;

const fn spoken(dialect: Dialect) -> ProviderDialect {
    match dialect {
        Dialect::Chat => ProviderDialect::Chat,
        Dialect::Responses => ProviderDialect::Responses,
        Dialect::Messages => ProviderDialect::Messages,
        Dialect::Gemini => ProviderDialect::Gemini,
    }
}

/// Where the note on an answer stands in its first event.
fn note(client: Dialect, answer: &Answer) -> Value {
    let first = if answer.is_stream() { events(answer)[0].clone() } else { answer.json() };
    let wrapped = match client {
        Dialect::Messages if answer.is_stream() => first["message"].clone(),
        Dialect::Responses if answer.is_stream() => first["response"].clone(),
        _ => first,
    };
    wrapped["koboshi"].clone()
}

#[test]
fn an_answer_of_the_simulated_provider_is_marked_in_every_pairing() {
    for upstream in Dialect::ALL {
        let mut config = config();
        let sim =
            ProviderConfig { dialects: vec![spoken(upstream)], ..ProviderConfig::new(ProviderKind::Sim) };
        config.providers.insert("own".to_owned(), sim);
        config.routes.insert("m".to_owned(), route(&["own/ok"]));
        let gateway = start(config, &MemoryStore::default()).unwrap();
        for client in Dialect::ALL {
            for stream in [false, true] {
                let (path, body) = question(client, "hello", stream);
                let mut socket = Client::to(gateway.address());
                socket.send("POST", &path, &[], body.to_string().as_bytes());
                let answer = socket.read();
                let case = format!("{upstream:?} {client:?} {stream} {answer:?}");
                assert_eq!(
                    (answer.status, answer.header("x-koboshi-simulated")),
                    (200, Some("true")),
                    "{case}"
                );
                assert_eq!(note(client, &answer), json!({"simulated": true}), "{case}");
                // It is an answer like any other besides.
                let told = heard(client, &answer);
                assert_eq!((told.finish.as_deref(), told.error), (Some("stop"), false), "{case}");
                assert!(!told.text.is_empty(), "{case}");
                if client == Dialect::Responses && stream && upstream == client {
                    let last = events(&answer).pop().unwrap();
                    assert_eq!(last["response"]["koboshi"]["simulated"], true, "{case}");
                }
            }
        }
    }
}

#[test]
fn an_answer_of_another_provider_is_not_marked() {
    for dialect in Dialect::ALL {
        let stage = stage(dialect, &["one/ok"], |_| {});
        for stream in [false, true] {
            let answer = crate::speech::ask(&stage, &question(dialect, "hello", stream));
            assert_eq!(answer.header("x-koboshi-simulated"), None, "{answer:?}");
            assert!(!answer.text().contains(MARK), "{answer:?}");
        }
    }
}

#[test]
fn counts_and_embeddings_of_the_simulated_provider_are_marked() {
    let gateway = start(config(), &MemoryStore::default()).unwrap();
    for (path, body) in [
        ("/v1/embeddings", json!({"model": "sim/ok", "input": "hello"})),
        (
            "/v1/messages/count_tokens",
            json!({"model": "sim/ok", "messages": [{"role": "user", "content": "hi"}]}),
        ),
    ] {
        let mut socket = Client::to(gateway.address());
        socket.send("POST", path, &[], body.to_string().as_bytes());
        let answer = socket.read();
        assert_eq!((answer.status, answer.header("x-koboshi-simulated")), (200, Some("true")), "{answer:?}");
        assert_eq!(answer.json()["koboshi"]["simulated"], true, "{answer:?}");
    }
}
