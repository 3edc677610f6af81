//! A first config, by the real binary: whatever keys are there, `koboshi init && koboshi serve` works.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;

use common::served::Served;
use common::{koboshi, run};
use koboshi_config::init::OFFERS;
use koboshi_sim::{Ask, play};
use koboshi_testkit::Upstream;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

/// The command in a folder, with these variables and no other key of a provider.
fn in_folder(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = koboshi(args);
    for offer in OFFERS {
        offer.keys.iter().chain(offer.also).chain(&offer.address).for_each(|name| {
            command.env_remove(name);
        });
    }
    command.current_dir(folder).envs(variables.iter().copied());
    command
}

/// Writes a file, and serves with it.
fn init_and_serve(variables: &[(&str, &str)], more: &[&str]) -> (String, Served, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<&str> = ["init"].iter().chain(more).copied().collect();
    let output = in_folder(folder.path(), &args, variables).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let check = in_folder(folder.path(), &["check"], variables).output().unwrap();
    assert!(check.status.success(), "{check:?}");
    let config = folder.path().join("koboshi.yaml");
    let served = Served::start_with(&config, &folder.path().join("store.db"), variables);
    assert_eq!(served.get("/health").status, 200);
    (said, served, folder)
}

fn providers(served: &Served) -> Vec<String> {
    let config = served.get("/koboshi/config").json();
    config["providers"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn without_a_key_the_demo_route_answers() {
    let (said, served, _folder) = init_and_serve(&[], &[]);
    assert!(
        said.contains("koboshi.yaml is written") && said.contains("No provider can be used yet"),
        "{said}"
    );
    let answer = served.post(&json!({"model": "demo", "messages": [{"role": "user", "content": "hi"}]}), &[]);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn with_one_key_that_provider_is_there_and_no_other() {
    let (said, served, folder) = init_and_serve(&[("ANTHROPIC_API_KEY", "sk-ant-1")], &[]);
    assert!(said.contains("Keys found in the environment: ANTHROPIC_API_KEY"), "{said}");
    assert_eq!(providers(&served), ["anthropic"]);
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert!(!text.contains("sk-ant-1"), "a file holds no key: {text}");
}

#[test]
fn with_two_keys_each_falls_back_to_the_other_vendor() {
    // The first address refuses connections, so the second answers.
    let other = Upstream::start();
    other.set("claude-sonnet-4-5", |ask| play(&Ask { model: "ok", ..*ask }));
    let address = other.origin();
    let variables = [
        ("OPENAI_API_KEY", "sk-1"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"),
        ("ANTHROPIC_API_KEY", "sk-ant-1"),
        ("ANTHROPIC_BASE_URL", address.as_str()),
    ];
    let (_, served, folder) = init_and_serve(&variables, &[]);
    assert_eq!(providers(&served), ["anthropic", "openai"]);
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert!(text.contains("gpt-*: [\"openai/{model}\", anthropic/claude-sonnet-4-5]"), "{text}");
    assert!(text.contains("claude-*: [\"anthropic/{model}\", openai/gpt-4o]"), "{text}");
    let answer =
        served.post(&json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}), &[]);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(other.calls("claude-sonnet-4-5"), 1, "the other vendor answered");
}

#[test]
fn comments_are_in_the_readers_language() {
    let (said, _served, folder) = init_and_serve(&[("OPENAI_API_KEY", "sk-1")], &["--lang", "ja"]);
    assert!(said.contains("を書き出しました") && said.contains("OPENAI_API_KEY"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    let comments: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("# ")).collect();
    assert!(comments.iter().any(|line| line.contains("プロバイダー")), "{text}");
    assert!(!text.contains("Which targets serve"), "{text}");
}

#[test]
fn providers_can_be_named_and_those_without_a_key_wait_in_comments() {
    let (said, served, folder) =
        init_and_serve(&[("OPENAI_API_KEY", "sk-1")], &["--providers", "openai,gemini"]);
    assert!(said.contains("not set or cannot be used: GEMINI_API_KEY."), "{said}");
    assert_eq!(providers(&served), ["openai"]);
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert!(text.contains("  # gemini:\n"), "{text}");
    let wrong = run(&["init", "--print", "--providers", "bedrock"]);
    assert!(
        wrong.status == 2 && wrong.error.contains("`bedrock`") && wrong.error.contains("openai"),
        "{}",
        wrong.error
    );
}

/// What is named as missing is what is missing, and no variable that is set.
#[test]
fn the_variable_that_is_named_is_the_one_that_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let said = |variables: &[(&str, &str)]| {
        let args = ["init", "--force", "--lang", "en", "--providers", "azure,vertex"];
        let out = in_folder(folder.path(), &args, variables).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
    };
    let lacks = |names: &str| format!("not set or cannot be used: {names}. Set them");
    let nothing = said(&[]);
    let all =
        "AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT, GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_CLOUD_PROJECT";
    assert!(nothing.contains(&lacks(all)), "{nothing}");
    let key = said(&[("AZURE_OPENAI_API_KEY", "k"), ("GOOGLE_CLOUD_PROJECT", "p-1")]);
    assert!(key.contains(&lacks("AZURE_OPENAI_ENDPOINT, GOOGLE_APPLICATION_CREDENTIALS")), "{key}");
    assert!(!key.contains("No API key"), "{key}");
    let no_file = [("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json"), ("GOOGLE_CLOUD_PROJECT", "p-1")];
    let no_file = said(&no_file);
    assert!(no_file.contains("AZURE_OPENAI_ENDPOINT, GOOGLE_APPLICATION_CREDENTIALS. Set them"), "{no_file}");
}

#[test]
fn ollama_needs_no_key_and_its_variable_is_an_address() {
    let (said, served, folder) = init_and_serve(&[], &["--providers", "ollama"]);
    assert!(said.contains("Used without a key: ollama"), "{said}");
    assert!(!said.contains("OLLAMA_HOST") && !said.contains("No API key"), "{said}");
    assert_eq!(providers(&served), ["ollama"], "it waits for nothing");
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert!(text.contains("\n  ollama:\n    kind: ollama\n") && !text.contains("OLLAMA_HOST"), "{text}");
    let (said, _served, folder) = init_and_serve(&[("OLLAMA_HOST", "http://gpu-box:11434")], &[]);
    assert!(said.contains("Used without a key: ollama") && !said.contains("Keys found"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert!(text.contains("base_url: http://gpu-box:11434/v1"), "{text}");
}

#[test]
fn on_a_terminal_it_asks() {
    let folder = tempfile::tempdir().unwrap();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let mut child =
        in_folder(folder.path(), &["init"], &[("OPENAI_API_KEY", "sk-1"), ("ANTHROPIC_API_KEY", "sk-2")])
            .stdin(side())
            .stderr(side())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
    let mut person = std::fs::File::from(terminal);
    person.write_all(b"ja\n2\n").unwrap();
    let output = child.stdout.take().unwrap();
    let said: Vec<String> = BufReader::new(output).lines().map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success());
    assert!(
        said.iter().any(|line| line.contains("ANTHROPIC_API_KEY") && !line.contains("OPENAI")),
        "{said:?}"
    );
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert!(text.contains("\n  anthropic:\n") && text.contains("\n  # openai:\n"), "{text}");
    assert!(text.contains("LLM プロバイダー"), "{text}");
}

#[test]
fn what_is_printed_is_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("GEMINI_API_KEY", "k")];
    assert!(in_folder(folder.path(), &["init"], &variables).output().unwrap().status.success());
    let written = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    let printed = in_folder(folder.path(), &["init", "--print"], &variables).output().unwrap();
    assert_eq!(written, String::from_utf8(printed.stdout).unwrap());
}

#[test]
fn an_existing_file_is_left_alone_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    std::fs::write(&file, "language: ja\n").unwrap();
    let path = file.display().to_string();
    let refused = run(&["init", &path]);
    assert_eq!(refused.status, 2);
    assert!(
        refused.error.contains("is there already") && refused.error.contains("--force"),
        "{}",
        refused.error
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "language: ja\n");
    assert_eq!(run(&["init", &path, "--force", "--lang", "ja"]).status, 0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("providers:"));
}

#[test]
fn a_folder_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["init", "."][..], &["init", ".", "--force"]] {
        let output = in_folder(folder.path(), args, &[]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            said.contains(". is a folder") && said.contains("./koboshi.yaml") && !said.contains("--force"),
            "{said}"
        );
    }
}

#[test]
fn a_place_that_cannot_be_written_is_said() {
    let refused = run(&["init", "/dev/null/none/koboshi.yaml"]);
    assert_eq!(refused.status, 2);
    assert!(refused.error.contains("cannot write /dev/null/none/koboshi.yaml"), "{}", refused.error);
}

#[test]
fn the_folder_of_a_new_file_is_made() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/koboshi/koboshi.yaml");
    let done = run(&["init", "--yes", file.to_str().unwrap()]);
    assert_eq!(done.status, 0, "{}", done.error);
    assert!(file.is_file());
}

#[test]
fn the_next_commands_name_another_file_and_a_provider_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let key = [("OPENAI_API_KEY", "k")];
    let args = ["init", "other file.yaml", "--providers", "openai,openai", "--lang", "en"];
    let output = in_folder(folder.path(), &args, &key).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    for command in ["koboshi check 'other file.yaml'", "koboshi serve --config 'other file.yaml'"] {
        assert!(said.contains(command), "{said}");
    }
    let check = in_folder(folder.path(), &["check", "other file.yaml"], &key).output().unwrap();
    assert!(check.status.success(), "{check:?}");
    std::fs::write(
        folder.path().join("litellm.yaml"),
        "model_list: [{model_name: m, litellm_params: {model: openai/gpt-4o}}]\n",
    )
    .unwrap();
    let args = ["import", "litellm", "litellm.yaml", "-o", "out.yaml", "--lang", "en"];
    let output = in_folder(folder.path(), &args, &key).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("koboshi check out.yaml") && said.contains("serve --config out.yaml"), "{said}");
}
