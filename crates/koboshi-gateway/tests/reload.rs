//! A changed config holds for the requests that come after it; a bad one changes nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::Write;

use crate::common::*;
use koboshi_config::gateway::ClientKey;
use koboshi_gateway::StartError;
use sha2::{Digest, Sha256};

#[test]
fn a_new_chain_holds_for_new_requests_and_an_open_stream_keeps_its_own() {
    let stage = Stage::of(&["one/ok?gap=20ms"]);
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    let head = client.head().unwrap();
    let mut begun = client.piece(&head).unwrap().unwrap();
    let mut config = stage.config.clone();
    config.routes.insert("m".to_owned(), route(&["two/ok"]));
    stage.gateway.reload(config).unwrap();
    let answer = stage.ask(&chat(true));
    assert_whole(&answer, &chat(true));
    assert_eq!(answer.header("x-koboshi-target"), Some("two/ok"));
    while let Some(piece) = client.piece(&head).unwrap() {
        begun.extend(piece);
    }
    assert_whole(&Answer { body: begun, ..head }, &chat(true));
    assert_eq!(stage.calls(), (1, 1));
}

#[test]
fn a_bad_config_keeps_the_old_one() {
    let stage = Stage::of(&["one/ok"]);
    let mut unknown = stage.config.clone();
    unknown.routes.insert("m".to_owned(), route(&["nobody/ok"]));
    let mut address = stage.config.clone();
    address.providers.get_mut("one").unwrap().base_url = Some("ftp://nowhere".to_owned());
    let mut rules = stage.config.clone();
    rules.rules = vec!["/nowhere/rules.yaml".into()];
    let mut answers = stage.config.clone();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"answers: [{txt: 1}]").unwrap();
    answers.degrade.answers_file = Some(file.path().to_owned());
    for bad in [unknown, address, rules, answers] {
        let error = stage.gateway.reload(bad).unwrap_err();
        assert!(!error.to_string().is_empty());
        assert_whole(&stage.ask(&chat(false)), &chat(false));
    }
    assert_eq!(stage.calls(), (4, 0));
}

#[test]
fn keys_and_prepared_answers_change_with_the_config() {
    let stage = Stage::of(&["one/fail-503"]);
    assert_error(&stage.ask(&chat(false)), 503, "unavailable");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"answers: [{text: {en: away}}]").unwrap();
    let mut config = stage.config.clone();
    config.degrade.answers_file = Some(file.path().to_owned());
    let sha256 = Sha256::digest(b"kbs-new").iter().map(|byte| format!("{byte:02x}")).collect();
    config.keys.insert("laptop".to_owned(), ClientKey { sha256, ..ClientKey::default() });
    stage.gateway.reload(config).unwrap();
    assert_error(&stage.ask(&chat(false)), 401, "unauthorized");
    assert_eq!(stage.post(&chat(false), &[("x-api-key", "kbs-new")]).content(), "away");
}

#[test]
fn what_was_learned_outlives_a_reload_of_something_else() {
    let stage = Stage::of(&["one/rate-429?retry_after=60", "two/ok"]);
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    let mut config = stage.config.clone();
    config.language = Some(koboshi_config::config::Language::Ja);
    stage.gateway.reload(config).unwrap();
    assert_whole(&stage.ask(&chat(false)), &chat(false));
    assert_eq!(stage.calls(), (1, 2), "the limit still holds");
}

#[test]
fn a_gateway_for_others_cannot_lose_its_keys_by_a_reload() {
    let mut open = config();
    open.serve.listen = "0.0.0.0:0".parse().unwrap();
    let sha256 = Sha256::digest(b"kbs-key").iter().map(|byte| format!("{byte:02x}")).collect();
    open.keys.insert("laptop".to_owned(), ClientKey { sha256, ..ClientKey::default() });
    let gateway = start(open.clone(), &koboshi_store::MemoryStore::default()).unwrap();
    open.keys.clear();
    assert!(matches!(gateway.reload(open), Err(StartError::Open(_))));
}

#[test]
fn streams_end_in_their_own_time_when_it_stops() {
    let stage = Stage::with(&["one/ok?gap=10ms"], |config| config.serve.drain = koboshi_testkit::DEADLINE);
    let mut client = stage.client();
    client.send("POST", "/v1/chat/completions", &[], chat(true).to_string().as_bytes());
    let head = client.head().unwrap();
    let mut body = client.piece(&head).unwrap().unwrap();
    let address = stage.gateway.address();
    let Stage { gateway, one: _one, .. } = stage;
    let stopping = std::thread::spawn(move || gateway.stop());
    koboshi_testkit::until("it listens no more", || {
        std::net::TcpStream::connect(address).is_err().then_some(())
    });
    while let Some(piece) = client.piece(&head).unwrap() {
        body.extend(piece);
    }
    assert_whole(&Answer { body, ..head }, &chat(true));
    stopping.join().unwrap();
}
