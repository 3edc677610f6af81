//! What users read when no target can answer, in their language.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::operator::{JSON, address, ask, chat, chat_with, config, start};
use serde_json::{Value, json};

#[test]
fn the_error_of_a_spent_chain_has_a_text_for_users() {
    let gateway = start(config("routes: {talk: [sim/quota]}\n"));
    let at = address(&gateway);
    for (lang, text) in [
        ("ja", "申し訳ございません。AI アシスタントが現在利用できません。"),
        ("en", "Sorry, the AI assistant is currently unavailable."),
    ] {
        // The first time the quota itself, then that every target is in cooldown.
        let answer = chat_with(at, "talk", &[("accept-language", lang)]);
        let said = answer.json()["error"]["koboshi"]["userMessage"].clone();
        assert!(said.as_str().is_some_and(|said| said.starts_with(text)), "{lang}: {answer:?}");
    }
}

#[test]
fn a_mistake_of_the_client_has_none() {
    let gateway = start(config("routes: {talk: [sim/context]}\n"));
    let at = address(&gateway);
    let own = chat(at, "talk");
    assert_eq!((own.status, &own.json()["error"]["koboshi"]["userMessage"]), (400, &Value::Null), "{own:?}");
    let broken = ask(at, "POST", "/v1/chat/completions", &[JSON], Some("{}"));
    assert_eq!((broken.status, &broken.json()["error"]["koboshi"]["userMessage"]), (400, &Value::Null));
}

#[test]
fn prepared_answers_come_with_their_notice_and_follow_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.yaml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let mut told = config("routes: {talk: [sim/quota]}\n");
    told.degrade.answers_file = Some(file.clone());
    write("answers: [{text: {en: first}}]\n");
    let gateway = start(told.clone());
    let at = address(&gateway);
    let content = || {
        let answer = chat(at, "talk").json();
        (answer["choices"][0]["message"]["content"].clone(), answer["koboshi"]["notice"].clone())
    };
    let usual = json!("The AI service is temporarily unavailable, so a prepared answer is shown.");
    assert_eq!(content(), (json!("first"), usual));
    write("notice: {en: hm}\nanswers: [{text: {en: second}}]\n");
    gateway.reload(told.clone()).unwrap();
    assert_eq!(content(), (json!("second"), json!("hm")));
    write("answers: [{txt: {en: third}}]\n");
    assert!(gateway.reload(told).unwrap_err().to_string().contains("txt"));
    assert_eq!(content().0, "second", "a bad file keeps the old answers");
}
