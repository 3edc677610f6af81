//! A config as it is met in daily use: keys that only the gateway has, a provider that is the gateway itself, the reader's language.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{koboshi, repository};

const WITH_A_KEY: &str = "providers:\n  openai:\n    kind: openai\n    keys: [\"${OPENAI_API_KEY}\"]\nroutes:\n  assistant: [openai/gpt-4o]\nstore: {path: store.db}\n";

/// Exit status and what is printed, in a folder with this koboshi.yaml and without the variable.
fn run(config: &str, args: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
    let output = koboshi(args).env_remove("OPENAI_API_KEY").current_dir(folder.path()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn commands_that_ask_no_provider_do_not_miss_its_key() {
    let log = repository("examples/gemini-quota.log").display().to_string();
    for (args, status) in [
        (vec!["status"], 0),
        (vec!["journal"], 0),
        (vec!["codes"], 0),
        (vec!["explain", log.as_str()], 1),
        (vec!["cool", "provider:openai", "--for", "1m"], 0),
    ] {
        let (code, said) = run(WITH_A_KEY, &args);
        assert_eq!(code, status, "{args:?}: {said}");
        assert!(!said.contains("OPENAI_API_KEY") && !said.contains("not-set-here"), "{args:?}: {said}");
    }
    let (code, said) = run(WITH_A_KEY, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 2 && said.contains("OPENAI_API_KEY"), "the gateway does need it: {said}");
}

#[test]
fn the_error_of_an_unusable_config_is_in_the_readers_language() {
    let (code, said) = run("routs: {}\n", &["--lang", "ja", "serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 2 && said.contains("設定ファイルを使用できません"), "{said}");
    assert!(said.contains("`routs`") && said.contains("設定項目"), "{said}");
}

#[test]
fn a_provider_that_is_this_gateway_is_refused() {
    let config = "serve: {listen: \"127.0.0.1:5165\"}\nproviders:\n  me: {kind: openai, base_url: \"http://localhost:5165/v1\", keys: [\"k1\"]}\n";
    let (code, said) = run(config, &["check"]);
    assert!(code != 0 && said.contains("the address of this gateway itself"), "{code} {said}");
    let (code, said) = run(config, &["serve"]);
    assert!(code == 2 && said.contains("the address of this gateway itself"), "{code} {said}");
}

#[test]
fn a_key_that_reads_like_a_variable_is_warned_of_and_not_shown() {
    let config = "providers:\n  openai: {kind: openai, keys: [\"os.environ/MY_SECRET_NAME\"]}\n";
    let (code, said) = run(config, &["check"]);
    assert!(code == 0 && said.contains("reads like the name of a variable"), "{code} {said}");
    assert!(!said.contains("MY_SECRET_NAME"), "{said}");
}

/// The language of a config counts for what is wrong with it, and for commands that write a new one.
#[test]
fn the_error_of_a_broken_config_is_in_its_own_language() {
    for (config, args) in [
        ("language: ja\nrouts: {}\n", &["check"][..]),
        ("language: ja\nroutes: [\n", &["check"]),
        ("language: ja\nrouts: {}\n", &["serve", "--listen", "127.0.0.1:0"]),
        ("language: ja\n", &["init", "--print", "--providers", "openai"]),
    ] {
        let (_, said) = run(config, args);
        assert!(
            said.contains("です") || said.contains("ません") || said.contains("ます"),
            "{args:?}: {said}"
        );
    }
}

/// A config that the user did not name does not keep a command from what it can do without one.
#[test]
fn commands_that_need_no_config_go_on_without_a_broken_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), "retry: {attemps: 3}\n").unwrap();
    let log = folder.path().join("agent.log");
    std::fs::write(&log, "Error: 429 Too Many Requests\n").unwrap();
    let run = |args: &[&str]| {
        let output = koboshi(args).current_dir(folder.path()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    for (args, status, shown) in [
        (&["explain", "agent.log"][..], 1, "rate_limited"),
        (&["codes"], 0, "KBS-3001"),
        (&["models", "gpt-4o"], 0, "gpt-4o"),
    ] {
        let (code, text, error) = run(args);
        assert!(code == status && text.contains(shown), "{args:?}: {code} {text}");
        assert!(error.contains("koboshi.yaml:1:9") && error.contains("left out"), "{args:?}: {error}");
        let asked: Vec<&str> = args.iter().copied().chain(["--config", "koboshi.yaml"]).collect();
        assert_eq!(run(&asked).0, 2, "{args:?}: one that is asked for is refused");
    }
    let (code, _, error) = run(&["status"]);
    assert!(code == 2 && error.contains("koboshi.yaml:1:9"), "status follows the config: {error}");
}

/// A person who names the config without its flag is told the flag.
#[test]
fn a_config_without_its_flag_gets_a_hint() {
    for command in ["serve", "status", "supervise", "codes"] {
        let output = koboshi(&[command, "koboshi.yaml"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}: {error}");
        if command != "status" {
            assert!(error.contains("--config koboshi.yaml"), "{command}: {error}");
        }
    }
}

/// Where the state is in the gateway's memory, its own address is named.
#[test]
fn a_store_in_memory_is_asked_for_where_the_config_listens() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    for (listen, url) in
        [("127.0.0.1:4999", "http://127.0.0.1:4999"), ("0.0.0.0:4998", "http://127.0.0.1:4998")]
    {
        let keys = format!("keys: {{a: {{sha256: \"{}\"}}}}", "0".repeat(64));
        std::fs::write(&config, format!("store: memory\nserve: {{listen: \"{listen}\"}}\n{keys}\n")).unwrap();
        for (lang, words) in
            [("en", "only the gateway itself"), ("ja", "ゲートウェイのメモリにしかありません")]
        {
            let output =
                koboshi(&["status", "--lang", lang, "--config", config.to_str().unwrap()]).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(
                error.contains(&format!("--url {url} ")) || error.contains(&format!("--url {url}")),
                "{error}"
            );
            assert!(error.contains(words), "{error}");
        }
    }
}

#[test]
fn resume_without_a_key_names_the_flag_for_everything() {
    let output = koboshi(&["resume"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("--all"), "{error}");
}
