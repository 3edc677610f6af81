//! The gateway as a process: it follows its files and stops when told.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::koboshi;
use common::served::Served;
use koboshi_testkit::{signal, until};
use serde_json::json;

/// Waits until the gateway answers with this text.
fn says(served: &Served, text: &str) {
    let body = json!({"model": "talk", "messages": [{"role": "user", "content": "hello"}]});
    until(text, || (served.post(&body, &[]).content() == text).then_some(()));
}

#[test]
fn it_follows_the_config_and_the_files_that_it_names_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let (config, answers) = (folder.path().join("koboshi.yaml"), folder.path().join("answers.yaml"));
    std::fs::write(&config, "routes: {talk: [sim/quota]}\ndegrade: {answers: answers.yaml}\n").unwrap();
    std::fs::write(&answers, "answers: [{text: {en: first}}]\n").unwrap();
    let mut served = Served::start(&config, &folder.path().join("store.db"));
    says(&served, "first");
    std::fs::write(&answers, "answers: [{text: {en: second}}]\n").unwrap();
    says(&served, "second");
    std::fs::write(&answers, "answers: {\n").unwrap();
    signal(&served.child, "-HUP");
    says(&served, "second");
    std::fs::write(folder.path().join("other.yaml"), "answers: [{text: {en: third}}]\n").unwrap();
    std::fs::write(&config, "routes: {talk: [sim/quota]}\ndegrade: {answers: other.yaml}\n").unwrap();
    signal(&served.child, "-HUP");
    says(&served, "third");
    signal(&served.child, "-TERM");
    let ended = until("the gateway ends", || served.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn without_a_provider_it_says_so_and_what_that_means_for_an_agent() {
    for (lang, words) in [("en", ["simulated", "tool calls"]), ("ja", ["模擬", "ツール呼び出し"])] {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("koboshi.yaml");
        std::fs::write(&config, "routes: {talk: [sim/ok]}\n").unwrap();
        let (config, store) =
            (config.display().to_string(), folder.path().join("store.db").display().to_string());
        let args =
            ["serve", "--listen", "127.0.0.1:0", "--lang", lang, "--config", &config, "--store", &store];
        let mut child = koboshi(&args).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        // What follows it is said last.
        let said: Vec<String> = lines.take_while(|line| !line.contains("curl")).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let said = said.join("\n");
        for word in [words[0], words[1], "sim/ok?tools=yes"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}
