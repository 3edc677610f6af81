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
fn a_config_that_cannot_be_used_is_told_in_the_readers_language() {
    let (code, said) = run("routs: {}\n", &["--lang", "ja", "serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 2 && said.contains("設定ファイルを使用できません"), "{said}");
    assert!(said.contains("`routs`") && said.contains("キー"), "{said}");
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
fn a_broken_config_is_told_in_its_own_language() {
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
