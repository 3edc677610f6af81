//! A request that continues an answer which its provider holds goes to that provider, and to no other.

use koboshi_config::gateway::ProviderDialect;
use koboshi_config::secret::Secret;
use koboshi_gateway::Gateway;
use koboshi_store::MemoryStore;
use serde_json::{Value, json};

use crate::common::*;
use crate::scripted::{ReceivedRequest, Server};

fn post(gateway: &Gateway, body: &Value) -> Answer {
    let mut client = Client::to(gateway.address());
    client.send("POST", "/v1/responses", &[], body.to_string().as_bytes());
    client.read()
}

fn answer(id: &str, asked: &ReceivedRequest) -> (u16, Value) {
    let content = json!([{"type": "output_text", "text": "hello", "annotations": []}]);
    let item = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content});
    let response = |status: &str, output: Value| json!({"id": id, "object": "response", "created_at": 1, "status": status, "model": "m", "output": output});
    let whole = response("completed", json!([item]));
    if !asked.body.contains("\"stream\":true") {
        return (200, whole);
    }
    let created = json!({"type": "response.created", "sequence_number": 0, "response": response("in_progress", json!([]))});
    let done =
        json!({"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": item});
    let completed = json!({"type": "response.completed", "sequence_number": 2, "response": whole});
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    (200, [created, done, completed].iter().map(frame).collect::<String>().into())
}

#[test]
fn an_answer_is_continued_by_the_target_that_gave_it() {
    for stream in [true, false] {
        // The first one is down for the first question only.
        let one = Server::start(|asked, before| match before {
            0 => (
                400,
                json!({"error": {"message": "The model `m` does not exist", "type": "invalid_request_error", "code": "model_not_found"}}),
            ),
            _ => answer("resp_one", asked),
        });
        let two = Server::start(|asked, _| answer("resp_two", asked));
        let mut config = config();
        for (name, server) in [("one", &one), ("two", &two)] {
            let mut provider = provider(server.url("/v1"));
            provider.dialects = vec![ProviderDialect::Responses];
            config.providers.insert(name.to_owned(), provider);
        }
        // Another model of the first provider, so that it does not rest.
        config.routes.insert("first".to_owned(), route(&["one/m", "two/m"]));
        config.routes.insert("later".to_owned(), route(&["one/other", "two/m"]));
        let gateway = start(config, &MemoryStore::default()).unwrap();
        let first = post(&gateway, &json!({"model": "first", "input": "hello", "stream": stream}));
        assert!(first.status == 200 && first.text().contains("resp_two"), "{first:?}");
        let next = |id: &str| {
            let body =
                json!({"model": "later", "input": "and?", "previous_response_id": id, "stream": stream});
            let answer = post(&gateway, &body);
            (answer.status, answer.header("x-koboshi-target").map(str::to_owned))
        };
        assert_eq!(next("resp_two"), (200, Some("two/m".to_owned())), "who gave it holds it");
        assert_eq!(next("resp_unknown"), (200, Some("one/other".to_owned())), "else the first one is asked");
    }
}

#[test]
fn no_other_target_is_asked_to_continue_it() {
    let one = Server::start(|_, _| (500, json!({"error": {"message": "down", "type": "server_error"}})));
    let two = Server::start(|asked, _| answer("resp_two", asked));
    let mut config = config();
    for (name, server) in [("one", &one), ("two", &two)] {
        let mut provider = provider(server.url("/v1"));
        provider.dialects = vec![ProviderDialect::Responses];
        config.providers.insert(name.to_owned(), provider);
    }
    config.routes.insert("m".to_owned(), route(&["one/m", "two/m"]));
    let gateway = start(config, &MemoryStore::default()).unwrap();
    let answer = post(&gateway, &json!({"model": "m", "input": "and?", "previous_response_id": "resp_1"}));
    assert_eq!((answer.status, two.asked().len()), (500, 0), "{answer:?}");
}

#[test]
fn the_key_that_gave_an_answer_goes_on_with_it() {
    let server = Server::start(|asked, _| answer(&format!("resp_{}", asked.bearer()), asked));
    let mut config = config();
    let mut two_keys = provider(server.url("/v1"));
    two_keys.keys = ["sk-a", "sk-b"].map(Secret::new).to_vec();
    two_keys.dialects = vec![ProviderDialect::Responses];
    config.providers.insert("p".to_owned(), two_keys);
    let gateway = start(config, &MemoryStore::default()).unwrap();
    for round in 0..6 {
        let first = post(&gateway, &json!({"model": "p/m", "input": format!("hello {round}")}));
        let id = first.json()["id"].as_str().unwrap().to_owned();
        let next =
            post(&gateway, &json!({"model": "p/m", "input": "and?", "previous_response_id": id.clone()}));
        assert_eq!(next.json()["id"], id, "another account knows nothing of it: {:?}", server.bearers());
    }
}
