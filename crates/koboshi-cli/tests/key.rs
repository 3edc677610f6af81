//! `koboshi key`: clients' keys made and revoked in a config, before a real gateway; and the file of errors that it writes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::os::unix::fs::PermissionsExt;

use common::run;
use common::served::Served;
use koboshi_testkit::dialect::{body, path};
use koboshi_testkit::questions::chat;
use koboshi_testkit::{Client, signal, until};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

#[test]
fn a_key_is_made_used_and_revoked_while_the_gateway_runs() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    std::fs::write(&config, "# ours\nroutes:\n  m: [sim/ok]   # the model\n").unwrap();
    let place = config.display().to_string();
    let new = |args: &[&str]| run(&[&["key", "new"], args, &["--config", &place]].concat());
    let made = new(&["laptop", "--budget-day", "2.5", "--rate", "100", "--route", "m"]);
    assert_eq!(made.status, 0, "{}", made.error);
    let key = made.text.trim().to_owned();
    assert!(key.starts_with("kbs-") && made.text.lines().count() == 1, "only the key, for scripts: {key}");
    let written = std::fs::read_to_string(&config).unwrap();
    assert!(written.starts_with("# ours\nroutes:\n  m: [sim/ok]   # the model\n"), "{written}");
    assert!(written.contains("laptop:") && !written.contains(&key), "{written}");
    assert_eq!(run(&["check", &place]).status, 0);
    assert_eq!(new(&["laptop"]).status, 2, "the name is taken");
    let closes =
        |error: &str| error.contains("the dashboard, the commands with --url and /metrics are closed");
    assert!(closes(&made.error) && made.error.contains("as `sha256` under `admin`"), "{}", made.error);
    let phone = new(&["phone"]);
    assert!(!closes(&phone.error), "only the first one does: {}", phone.error);
    let phone = phone.text.trim().to_owned();
    let served = Served::start(&config, &folder.path().join("store.db"));
    let status = |key: &str| {
        let mut question = chat(false);
        question["model"] = "m".into();
        served.post(&question, &[("authorization", &format!("Bearer {key}"))]).status
    };
    assert_eq!((status(&key), status(&phone), status("kbs-other")), (200, 200, 401));
    let mut operator = Client::to(served.address);
    operator.send("GET", "/koboshi/status", &[], b"");
    assert_eq!(operator.read().status, 401, "it is closed, as was said");
    let revoked = run(&["key", "revoke", "laptop", "--config", &place]);
    assert_eq!(revoked.status, 0, "{}", revoked.error);
    signal(&served.child, "-HUP");
    until("the key is refused", || (status(&key) == 401).then_some(()));
    assert_eq!(status(&phone), 200, "the other one is not");
    let last = run(&["key", "revoke", "phone", "--config", &place, "--lang", "ja"]);
    assert_eq!(last.status, 2);
    assert!(last.error.contains("ただ 1 つのキー"), "{}", last.error);
    assert_eq!(run(&["key", "revoke", "laptop", "--config", &place]).status, 2, "it is gone");
    std::fs::write(
        &config,
        "keys: {a: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}}\n",
    )
    .unwrap();
    let by_hand = new(&["b"]);
    assert!(by_hand.status == 2 && by_hand.error.contains("sha256: "), "{}", by_hand.error);
}

#[test]
fn errors_are_in_a_file_as_json_lines_with_the_method_that_was_called() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("errors.log");
    let secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    let config = json!({
        "routes": {"m": ["sim/fail-503"]},
        "log": {"errors": {"file": log, "max_bytes": 4096, "keep_files": 1}},
        "retry": {"initial_delay": "1ms", "max_delay": "5ms"},
        "request": {"quick_retry_delay": "1ms"},
    });
    let file = folder.path().join("koboshi.yaml");
    std::fs::write(&file, config.to_string()).unwrap();
    let served = Served::start(&file, &folder.path().join("store.db"));
    let lines = || -> Vec<Value> {
        let all =
            ["errors.log.1", "errors.log"].map(|name| std::fs::read_to_string(folder.path().join(name)));
        let all: String = all.into_iter().flatten().collect();
        assert!(!all.contains(secret), "{all}");
        all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for dialect in [Dialect::Chat, Dialect::Messages] {
        let mut question = chat(false);
        question["model"] = "m".into();
        question["messages"][0]["content"] = format!("my key is {secret}").into();
        let mut client = Client::to(served.address);
        let text = body(dialect, &question);
        client.send(
            "POST",
            &path(dialect, "m", false),
            &[("content-type", "application/json")],
            text.as_bytes(),
        );
        assert_ne!(client.read().status, 200);
    }
    let seen = until("both are logged", || {
        let seen = lines();
        let methods: std::collections::BTreeSet<String> =
            seen.iter().filter_map(|line| line["method"].as_str().map(str::to_owned)).collect();
        (methods.len() == 2).then_some(seen)
    });
    let one = seen.iter().find(|line| line["method"].is_string()).unwrap();
    for field in ["timestamp", "level", "message", "errorType", "errorCode", "retryable", "target", "request"]
    {
        assert!(!one[field].is_null(), "{field}: {one}");
    }
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    until("the file was renamed, and both are small", || {
        let mut question = chat(false);
        question["model"] = "m".into();
        served.post(&question, &[]);
        folder.path().join("errors.log.1").exists().then_some(())
    });
    for name in ["errors.log", "errors.log.1"] {
        // It may just be renamed.
        let size = std::fs::metadata(folder.path().join(name)).map_or(0, |file| file.len());
        assert!(size <= 4096, "{name}");
    }
    assert!(!folder.path().join("errors.log.2").exists());
}
