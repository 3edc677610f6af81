//! The gateway as a process: it follows its files and stops when told.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use common::koboshi;
use koboshi_testkit::{DEADLINE, signal, until};
use serde_json::Value;

/// A running gateway, gone with the test.
struct Served {
    child: Child,
    place: String,
}

impl Served {
    fn start(config: &std::path::Path, store: &std::path::Path) -> Self {
        let (config, store) = (config.display().to_string(), store.display().to_string());
        let mut child =
            koboshi(&["serve", "--listen", "127.0.0.1:0", "--config", &config, "--store", &store])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let place = first.split("http://").nth(1).unwrap().trim_end_matches("/v1").to_owned();
        // Whoever writes must be read.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, place }
    }

    fn chat(&self) -> Value {
        let body = r#"{"model":"talk","messages":[{"role":"user","content":"hello"}]}"#;
        let mut stream = TcpStream::connect(&self.place).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    fn says(&self, text: &str) {
        until(text, || (self.chat()["choices"][0]["message"]["content"] == text).then_some(()));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_follows_the_config_and_the_files_that_it_names_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let (config, answers) = (folder.path().join("koboshi.yaml"), folder.path().join("answers.yaml"));
    std::fs::write(&config, "routes: {talk: [sim/quota]}\ndegrade: {answers: answers.yaml}\n").unwrap();
    std::fs::write(&answers, "answers: [{text: {en: first}}]\n").unwrap();
    let mut served = Served::start(&config, &folder.path().join("store.db"));
    served.says("first");
    std::fs::write(&answers, "answers: [{text: {en: second}}]\n").unwrap();
    served.says("second");
    std::fs::write(&answers, "answers: {\n").unwrap();
    signal(&served.child, "-HUP");
    served.says("second");
    std::fs::write(folder.path().join("other.yaml"), "answers: [{text: {en: third}}]\n").unwrap();
    std::fs::write(&config, "routes: {talk: [sim/quota]}\ndegrade: {answers: other.yaml}\n").unwrap();
    signal(&served.child, "-HUP");
    served.says("third");
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
