//! The gateway as a process: it follows its files and stops when told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use common::served::Served;
use common::{Running, koboshi};
use koboshi_testkit::{Authority, Client, signal, until};
use serde_json::{Value, json};

/// Waits until the gateway answers with this text.
fn says(served: &Served, text: &str) {
    let body = json!({"model": "talk", "messages": [{"role": "user", "content": "hello"}]});
    until(text, || (served.post(&body, &[]).content() == text).then_some(()));
}

#[test]
fn it_follows_the_config_and_the_files_that_it_names_and_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (config, answers) = (folder.path().join("koboshi.yaml"), folder.path().join("answers.yaml"));
    std::fs::write(&config, "routes: {talk: [sim/quota]}\ndegrade: {answers_file: answers.yaml}\n").unwrap();
    std::fs::write(&answers, "answers: [{text: {en: first}}]\n").unwrap();
    let mut served = Served::start(&config, &folder.path().join("store.db"));
    says(&served, "first");
    std::fs::write(&answers, "answers: [{text: {en: second}}]\n").unwrap();
    says(&served, "second");
    std::fs::write(&answers, "answers: {\n").unwrap();
    signal(&served.child, "-HUP");
    says(&served, "second");
    std::fs::write(folder.path().join("other.yaml"), "answers: [{text: {en: third}}]\n").unwrap();
    std::fs::write(&config, "routes: {talk: [sim/quota]}\ndegrade: {answers_file: other.yaml}\n").unwrap();
    signal(&served.child, "-HUP");
    says(&served, "third");
    signal(&served.child, "-TERM");
    let ended = until("the gateway ends", || served.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn it_follows_the_models_file() {
    let folder = tempfile::tempdir().unwrap();
    let (config, models) = (folder.path().join("koboshi.yaml"), folder.path().join("my-models.yaml"));
    std::fs::write(&config, "routes: {talk: [sim/ok]}\nmodels_file: my-models.yaml\n").unwrap();
    std::fs::write(&models, "models: [{match: ok, tools: false}]\n").unwrap();
    let served = Served::start(&config, &folder.path().join("store.db"));
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    let body = json!({"model": "talk", "tools": [tool], "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(served.post(&body, &[]).status, 400, "the model calls no tools");
    std::fs::write(&models, "models: [{match: ok, tools: true}]\n").unwrap();
    until("the new facts hold", || (served.post(&body, &[]).status == 200).then_some(()));
    std::fs::write(&models, "models: [{match: ok, tols: false}]\n").unwrap();
    signal(&served.child, "-HUP");
    assert_eq!(served.post(&body, &[]).status, 200, "a wrong file changes nothing");
}

/// A gateway with these arguments in an environment of its own: what it says when it starts, and where it is.
fn started(folder: &Path, args: &[&str], environment: &[(&str, &str)]) -> (String, SocketAddr, Running) {
    let store = folder.join("store.db").display().to_string();
    let mut all = vec!["serve"];
    if !args.contains(&"--listen") {
        all.extend(["--listen", "127.0.0.1:0"]);
    }
    if !args.contains(&"--store") {
        all.extend(["--store", &store]);
    }
    all.extend(args);
    let mut command = koboshi(&all);
    command.env_clear().env("HOME", folder).current_dir(folder);
    command.envs(environment.iter().copied()).stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut said = Vec::new();
    // The request to try is said last.
    for line in lines.by_ref() {
        said.push(line);
        if said.iter().any(|line| line.contains("curl"))
            && said.last().is_some_and(|line| line.contains("-d '"))
        {
            break;
        }
    }
    std::thread::spawn(move || lines.for_each(drop));
    let said = said.join("\n");
    let at = said.split("http://").nth(1).and_then(|rest| rest.split("/v1").next()).unwrap().parse().unwrap();
    (said, at, child)
}

/// Asks for this model; the status and the body.
fn asked(at: SocketAddr, model: &str) -> (u16, Value) {
    let mut client = Client::to(at);
    let body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}]});
    client.send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
    let answer = client.read();
    (answer.status, answer.json())
}

fn ready(at: SocketAddr) -> u16 {
    let mut client = Client::to(at);
    client.send("GET", "/ready", &[], b"");
    client.read().status
}

#[test]
fn it_says_what_answers_and_does_as_it_says() {
    let sim = "routes: {talk: [sim/ok]}\n";
    // What is given, what is said in both languages, and how `gpt-4o`, `sim/ok`, `talk` and readiness are answered.
    for (args, config, said, statuses) in [
        (
            &[][..],
            None,
            [
                ["No API key found.", "add a provider to koboshi.yaml (koboshi init writes one)"],
                ["API キーが見つかりません。", "koboshi.yaml にプロバイダーを追加してください"],
            ],
            [404, 200, 404, 503],
        ),
        (
            &[],
            Some(sim),
            [
                ["only the simulated one (sim)", "tool calls"],
                ["模擬プロバイダー（sim）だけ", "ツール呼び出し"],
            ],
            [404, 200, 200, 200],
        ),
        (
            &["--demo"],
            None,
            [
                ["Running in demo mode: all answers are fake.", "sim/ok?tools=yes"],
                ["デモモードで動作しています。", "sim/ok?tools=yes"],
            ],
            [200; 4],
        ),
        (
            &["--demo"],
            Some(sim),
            [["Running in demo mode", "tool calls"], ["デモモード", "ツール呼び出し"]],
            [200; 4],
        ),
    ] {
        for (lang, words) in ["en", "ja"].into_iter().zip(said) {
            let folder = tempfile::tempdir().unwrap();
            if let Some(config) = config {
                std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
            }
            let mut args = args.to_vec();
            args.extend(["--lang", lang]);
            let (said, at, child) = started(folder.path(), &args, &[]);
            for word in words {
                assert!(said.contains(word), "{word}: {said}");
            }
            assert!(!said.contains("none in a config"), "{said}");
            let given = [asked(at, "gpt-4o").0, asked(at, "sim/ok").0, asked(at, "talk").0, ready(at)];
            assert_eq!(given, statuses, "{args:?} {config:?}");
            assert_eq!(asked(at, "sim/ok").1["koboshi"]["simulated"], true);
            drop(child);
        }
    }
}

#[test]
fn a_client_that_names_no_language_gets_that_of_the_gateway() {
    for (args, environment, is_japanese) in [
        (&[][..], &[][..], false),
        (&["--lang", "ja"], &[], true),
        (&[], &[("LANG", "ja_JP.UTF-8")], true),
        (&["--lang", "en"], &[("LANG", "ja_JP.UTF-8")], false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_, at, mut child) = started(folder.path(), args, environment);
        let (status, body) = asked(at, "gpt-4o");
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!(
            (status, message.contains('。')),
            (404, is_japanese),
            "{args:?} {environment:?}: {message}"
        );
        signal(&child, "-TERM");
        until("the gateway ends", || child.try_wait().unwrap());
    }
}

#[test]
fn with_a_key_in_the_environment_nothing_is_said_of_a_simulated_provider() {
    let folder = tempfile::tempdir().unwrap();
    let (said, at, child) = started(folder.path(), &[], &[("OPENAI_API_KEY", "sk-not-a-real-one")]);
    assert!(said.contains("openai") && !said.contains("fake") && !said.contains("No API key"), "{said}");
    assert_eq!(ready(at), 200);
    drop(child);
}

#[test]
fn the_request_to_try_has_a_key_where_one_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        format!("keys: {{laptop: {{sha256: \"{}\"}}}}\nroutes: {{talk: [sim/ok]}}\n", "0".repeat(64));
    std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
    let (said, at, child) = started(folder.path(), &[], &[]);
    assert!(said.contains("authorization: Bearer YOUR_KEY"), "{said}");
    let (status, body) = asked(at, "sim/ok");
    assert!(
        status == 401 && body["error"]["message"].as_str().unwrap().contains("section keys of its config"),
        "{body}"
    );
    drop(child);
}

#[test]
fn it_says_in_the_readers_language_where_the_store_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db").display().to_string();
    for (store, en, ja) in [
        ("memory", "store         memory (a restart forgets it)", "メモリ（再起動すると消えます）"),
        (&file, &*format!("store         {file}"), &*format!("ストア        {file}")),
        ("redis://127.0.0.1:1", "store         Redis at 127.0.0.1:1", "Redis サーバー（127.0.0.1:1）"),
    ] {
        for (lang, words) in [("en", en), ("ja", ja)] {
            let (said, _, child) = started(folder.path(), &["--store", store, "--lang", lang], &[]);
            assert!(said.contains(words), "{words}: {said}");
            drop(child);
        }
    }
}

#[test]
fn the_request_to_try_asks_for_a_route_of_the_file_and_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        "routes:\n  '*': [openai/gpt-4o]\n  \"it's \\\"mine\\\"\": [sim/ok]\n  another: [sim/fail-503]\n";
    std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
    let (said, _, child) = started(folder.path(), &[], &[("OPENAI_API_KEY", "sk-not-a-real-one")]);
    let command = &said[said.find("curl").unwrap()..];
    assert!(command.contains(r#""model":"it'\''s \"mine\"""#), "{command}");
    // The shell reads it as it stands; a real request is sent by hand, since curl is not on every machine.
    let body = format!("curl() {{ for last; do :; done; printf %s \"$last\"; }}; {command}");
    let body = std::process::Command::new("sh").args(["-c", &body]).output().unwrap().stdout;
    let at = said.split("http://").nth(1).and_then(|rest| rest.split("/v1").next()).unwrap().parse().unwrap();
    let mut client = Client::to(at);
    client.send("POST", "/v1/chat/completions", &[], &body);
    assert_eq!(client.read().status, 200, "{}", String::from_utf8_lossy(&body));
    drop(child);
}

#[test]
fn an_address_that_is_open_to_others_is_refused_in_the_words_of_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("koboshi.yaml");
    for lang in ["en", "ja"] {
        let run = |args: &[&str]| {
            let output = koboshi(args).args(["--lang", lang]).current_dir(folder.path()).output().unwrap();
            (output.status.code().unwrap(), output)
        };
        std::fs::write(&file, "serve: {listen: '0.0.0.0:0'}\n").unwrap();
        let (status, checked) = run(&["check"]);
        assert_eq!(status, 1);
        let checked = String::from_utf8(checked.stdout).unwrap();
        std::fs::write(&file, "routes: {m: [sim/ok]}\n").unwrap();
        let (status, refused) = run(&["serve", "--store", "memory", "--listen", "0.0.0.0:0"]);
        assert_eq!(status, 2);
        let refused = String::from_utf8(refused.stderr).unwrap();
        let mut lines = refused.lines();
        let sentence = lines.next().unwrap().strip_prefix("koboshi: ").unwrap();
        assert!(sentence.starts_with("0.0.0.0:0 ") && checked.contains(sentence), "{checked}\n{refused}");
        let hint = lines.next().unwrap();
        assert!(hint.contains("127.0.0.1") && checked.contains(hint), "{checked}\n{refused}");
    }
}

#[test]
fn an_old_name_in_the_config_is_logged_with_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("koboshi.yaml"),
        "serve: {hold: 5s, listen: '127.0.0.1:0'}\nroutes: {m: [sim/ok]}\n",
    )
    .unwrap();
    let mut command = koboshi(&["serve", "--store", "store.db"]);
    let mut child = Running::start(command.current_dir(folder.path()).stderr(Stdio::piped()));
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let found = lines.map_while(Result::ok).find(|line| line.contains("serve.first_byte_hold"));
    drop(child);
    assert!(found.unwrap().contains("koboshi.yaml:1: `serve.hold` is an old name"));
}

/// A gateway with this config in a folder, whose log goes to a file there.
fn logged(folder: &Path, config: &str) -> Running {
    std::fs::write(folder.join("koboshi.yaml"), config).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let mut command = koboshi(&["serve", "--listen", "127.0.0.1:0"]);
    command.env_clear().env("HOME", folder).current_dir(folder).stderr(log);
    let child = Running::start(&mut command);
    in_log(folder, "\"started\"");
    child
}

/// Waits for a line of the log.
fn in_log(folder: &Path, part: &str) -> String {
    until(part, || {
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        log.lines().find(|line| line.contains(part)).map(str::to_owned)
    })
}

#[test]
fn a_reload_refuses_what_check_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let child = logged(folder.path(), "store: memory\nroutes: {m: [sim/ok]}\n");
    std::fs::write(folder.path().join("koboshi.yaml"), "store: memory\nroutes:\n  m: [sim/okk]\n").unwrap();
    signal(&child, "-HUP");
    let line = in_log(folder.path(), "the old one goes on");
    drop(child);
    assert!(line.contains("koboshi.yaml:3") && line.contains("sim/okk"), "{line}");
}

#[test]
fn the_dashboard_is_where_the_start_says_and_reloads_and_checks_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("koboshi.yaml");
    std::fs::write(&file, "routes: {m: [sim/ok]}\n").unwrap();
    let (said, at, child) = started(folder.path(), &[], &[]);
    assert!(said.contains(&format!("http://{at}/koboshi/")), "{said}");
    let call = |method: &str, path: &str, body: &str| {
        let mut client = Client::to(at);
        client.send(method, path, &[("content-type", "application/json")], body.as_bytes());
        client.read()
    };
    assert_eq!(call("GET", "/koboshi/", "").status, 200);
    assert_eq!(call("GET", "/koboshi/check", "").json()["good"], true);

    std::fs::write(&file, "routes:\n  m: [sim/okk]\n").unwrap();
    let refused = call("POST", "/koboshi/reload", "{}").json();
    assert_eq!(refused["outcome"], "refused", "{refused}");
    assert!(refused["why"].as_str().unwrap().contains("sim/okk"), "{refused}");
    let checked = call("GET", "/koboshi/check", "").json();
    assert_eq!((&checked["good"], &checked["problems"][0]["line"]), (&json!(false), &json!(2)), "{checked}");

    std::fs::write(&file, "routes: {m: [sim/ok], n: [sim/ok]}\n").unwrap();
    // It follows its file by itself too, and may be first: an order then finds nothing new.
    let outcome = || call("POST", "/koboshi/reload", "{}").json()["outcome"].clone();
    until("the new config", || (outcome() == "unchanged").then_some(()));
    let overview = call("GET", "/koboshi/overview", "").json();
    assert_eq!(overview["routes"].as_array().unwrap().len(), 2, "{overview}");
    assert_eq!(call("POST", "/koboshi/process", "{\"action\": \"drain\"}").json()["draining"], true);
    let mut child = child;
    assert!(until("it stopped", || child.try_wait().unwrap()).success());
}

#[test]
fn a_config_that_is_restored_is_said_to_be_fine() {
    let folder = tempfile::tempdir().unwrap();
    let config = "store: memory\nroutes: {m: [sim/ok]}\n";
    let child = logged(folder.path(), config);
    std::fs::write(folder.path().join("koboshi.yaml"), "store: memory\nroutes: {m: [sim/okk]}\n").unwrap();
    signal(&child, "-HUP");
    in_log(folder.path(), "the old one goes on");
    std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
    signal(&child, "-HUP");
    in_log(folder.path(), "the config file can be used again");
}

#[test]
fn a_start_that_fails_names_the_command_that_checks_this_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("u1.yaml");
    std::fs::write(&file, "routes: {m: [sim/okk]}\n").unwrap();
    let out = common::run_with(&["serve", "--lang", "en", "--config", file.to_str().unwrap()], &[], "");
    let command = format!("`koboshi check {}`", file.display());
    assert!(out.error.contains(&command), "{}", out.error);
}

#[test]
fn a_typo_in_the_name_of_a_route_is_not_taken_for_a_missing_key() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), "store: memory\nroutes: {assistant: [sim/ok]}\n")
        .unwrap();
    let (_, address, _child) = started(folder.path(), &[], &[]);
    let (status, answer) = asked(address, "assistnt");
    assert_eq!(status, 404);
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("/v1/models") && !said.contains("OPENAI_API_KEY"), "{said}");
}

#[test]
fn a_reload_names_the_keys_that_need_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let child = logged(folder.path(), "store: memory\nroutes: {m: [sim/ok]}\n");
    let new = "store: {path: other.db}\nlog: {level: debug}\nroutes: {m: [sim/ok]}\n";
    std::fs::write(folder.path().join("koboshi.yaml"), new).unwrap();
    signal(&child, "-HUP");
    let line = in_log(folder.path(), "restart the gateway");
    drop(child);
    assert!(line.contains("for the new value of: store, log"), "{line}");
}

#[test]
fn the_error_of_a_port_in_use_is_in_the_readers_language() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (lang, words) in [("en", "Another program uses this port"), ("ja", "別のプログラム")] {
        let out =
            koboshi(&["serve", "--listen", &address, "--store", "memory", "--lang", lang]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(words) && said.contains(&address), "{said}");
    }
}

#[test]
fn a_gateway_that_listens_everywhere_names_an_address_that_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    // The SHA-256 of `test`.
    let key = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let config = format!("keys: {{laptop: {{sha256: {key}}}}}\nroutes: {{m: [sim/ok]}}\n");
    std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
    let (said, at, _child) = started(folder.path(), &["--listen", "0.0.0.0:0"], &[]);
    assert!(at.ip().is_loopback() && said.contains("every other address of this machine"), "{said}");
    assert!(said.contains(&format!("http://{at}/koboshi/")) && !said.contains("0.0.0.0"), "{said}");
}

#[test]
fn a_gateway_with_tls_is_asked_with_https_and_a_bad_certificate_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.write_server_to(folder.path());
    let trusted = authority.write_to(folder.path()).display().to_string();
    let config = folder.path().join("koboshi.yaml");
    let tls = |certificate: &Path| {
        let tls = json!({"certificate": certificate, "key": key});
        let text = json!({"serve": {"tls": tls}, "store": "memory", "routes": {"m": ["sim/ok"]}});
        std::fs::write(&config, text.to_string()).unwrap();
    };
    tls(&certificate);
    let served = Served::start(&config, Path::new("memory"));
    let url = format!("https://{}", served.address);
    let status = |environment: &[(&str, &str)]| common::run_with(&["status", "--url", &url], environment, "");
    let out = status(&[("SSL_CERT_FILE", &trusted)]);
    assert_eq!(out.status, 0, "{}", out.error);
    let out = status(&[]);
    assert!(out.status != 0 && out.error.to_lowercase().contains("certificate"), "{}", out.error);
    drop(served);
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    tls(&empty);
    let (file, address) = (config.display().to_string(), "127.0.0.1:0");
    let out = common::run_with(&["serve", "--config", &file, "--listen", address], &[], "");
    assert!(out.status == 2 && out.error.contains("empty.pem"), "{}", out.error);
    let out = common::run_with(&["check", "--lang", "en", &file], &[], "");
    let said = format!("{}{}", out.text, out.error);
    assert!(out.status != 0 && said.contains("empty.pem: there is no certificate in it"), "{said}");
}
