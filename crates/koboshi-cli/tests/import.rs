//! LiteLLM's configs, translated by the real binary: the result passes `koboshi check`, and the gateway serves with it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::PathBuf;

use common::served::Served;
use common::{json, koboshi, on_terminal, repository, run, run_with};
use serde_json::Value;

const FILES: &[&str] = &["team", "local", "company"];

fn file(name: &str) -> String {
    repository(&format!("crates/koboshi-cli/tests/litellm/{name}.yaml")).display().to_string()
}

/// The translation of a file in a folder of its own, with a value for every variable that it asks for.
struct Translated {
    _folder: tempfile::TempDir,
    config: PathBuf,
    variables: Vec<(String, String)>,
    answer: Value,
}

fn translated(name: &str) -> Translated {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    let path = config.display().to_string();
    let out = run(&["import", "litellm", &file(name), "-o", &path, "--format", "json"]);
    let answer = json(&out);
    assert_eq!(answer["written"], path.as_str());
    assert_eq!(answer["config"], std::fs::read_to_string(&config).unwrap());
    assert_eq!(out.status, i32::from(answer["complete"] == false));
    let value = |name: &str| {
        if name.ends_with("_BASE") { "https://prod.openai.azure.com" } else { "key-1" }.to_owned()
    };
    let names = answer["variables"].as_array().unwrap();
    let variables =
        names.iter().map(|name| name.as_str().unwrap().to_owned()).map(|name| (name.clone(), value(&name)));
    Translated { variables: variables.collect(), _folder: folder, config, answer }
}

impl Translated {
    fn environment(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn chain(&self, route: &str) -> Vec<String> {
        let out = run_with(
            &["check", &self.config.display().to_string(), "--format", "json"],
            &self.environment(),
            "",
        );
        let answer = json(&out);
        let key = format!("routes.{route}.chain");
        let found = answer["differs"].as_array().unwrap().iter().find(|one| one["key"] == key.as_str());
        let text = found.map(|one| one["value"].as_str().unwrap().to_owned()).unwrap_or_default();
        text.trim_matches(['[', ']']).split(", ").map(str::to_owned).collect()
    }
}

#[test]
fn every_translation_is_valid_and_serves() {
    for name in FILES {
        let translated = translated(name);
        let path = translated.config.display().to_string();
        let check = run_with(&["check", &path], &translated.environment(), "");
        assert_eq!(check.status, 0, "{name}: {}", check.text);
        assert!(!check.text.contains("warning"), "{name}: {}", check.text);
        let store = translated.config.with_file_name("store.db");
        let served = Served::start_with(&translated.config, &store, &translated.environment());
        assert_eq!(served.get("/health").status, 200, "{name}");
        let config = served.get("/koboshi/config").json();
        assert!(!config["routes"].as_object().unwrap().is_empty(), "{name}: {config}");
    }
}

#[test]
fn keys_of_the_file_appear_nowhere() {
    for name in FILES {
        for lang in ["en", "ja"] {
            let text = run(&["import", "litellm", &file(name), "--lang", lang]);
            let answer = run(&["import", "litellm", &file(name), "--lang", lang, "--format", "json"]);
            for said in [&text.text, &text.error, &answer.text] {
                assert!(!said.contains("hunter2"), "{name}: {said}");
            }
        }
    }
    let local = translated("local");
    let names: Vec<&str> = local.variables.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["GROQ_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
        "a variable is named instead"
    );
}

#[test]
fn routes_fallbacks_and_aliases_mean_the_same() {
    let team = translated("team");
    let azure = ["azure/gpt-4o-eu", "azure-2/gpt-4o-ca", "anthropic/claude-sonnet-4-5"];
    assert_eq!(team.chain("gpt-4o"), azure);
    assert_eq!(team.chain("gpt-4"), azure, "an alias");
    assert_eq!(
        team.chain("gpt-4o-mini"),
        ["openai/gpt-4o-mini", "azure/gpt-4o-eu", "azure-2/gpt-4o-ca", "anthropic/claude-sonnet-4-5"]
    );
    let company = translated("company");
    assert_eq!(
        company.chain("chat"),
        ["azure/chat-prod", "gemini/gemini-2.5-flash", "deepseek/deepseek-reasoner"]
    );
    assert_eq!(
        company.chain("legacy"),
        ["azure/chat-prod", "gemini/gemini-2.5-flash"],
        "only its fallbacks are left"
    );
    let text = company.answer["config"].as_str().unwrap();
    assert!(text.contains("keys: [\"${GEMINI_API_KEY_1}\", \"${GEMINI_API_KEY_2}\"]"), "{text}");
}

#[test]
fn what_cannot_be_translated_is_named_with_its_line_and_why() {
    let out = run(&["import", "litellm", &file("company")]);
    assert_eq!(out.status, 1, "something is left");
    insta::assert_snapshot!("company", out.text.replace(&file("company"), "company.yaml"));
    insta::assert_snapshot!("company-notes", out.error.replace(&file("company"), "company.yaml"));
    let text = std::fs::read_to_string(file("company")).unwrap();
    let line = |part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    let answer = json(&run(&["import", "litellm", &file("company"), "--format", "json"]));
    let notes = answer["notes"].as_array().unwrap();
    for (key, part, level) in [
        ("chat (bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0)", "model: bedrock/", "not_translated"),
        ("image (openai/gpt-image-1)", "gpt-image-1", "not_translated"),
        ("input_cost_per_token", "input_cost_per_token", "not_translated"),
        ("model_info.access_groups", "access_groups", "not_translated"),
        ("general_settings.alerting", "alerting", "not_translated"),
        ("router_settings.retry_policy", "retry_policy", "not_translated"),
        ("guardrails", "- guardrail_name", "not_translated"),
        ("general_settings.master_key", "master_key", "to_do"),
        ("router_settings.routing_strategy", "routing_strategy:", "changed"),
    ] {
        let found = notes.iter().find(|note| note["key"] == key && note["level"] == level);
        let found = found.unwrap_or_else(|| panic!("{key} is not named: {notes:#?}"));
        assert_eq!(found["line"].as_u64(), u64::try_from(line(part)).ok(), "{key}");
        assert!(found["reason"].as_str().unwrap().len() > 20, "{found}");
    }
}

#[test]
fn japanese_readers_get_japanese() {
    let out = run(&["import", "litellm", &file("company"), "--lang", "ja"]);
    insta::assert_snapshot!("company-ja", out.text.replace(&file("company"), "company.yaml"));
    assert!(out.error.contains("変換できません: `router_settings.retry_policy`"), "{}", out.error);
}

#[test]
fn a_person_at_a_terminal_reads_every_note_once() {
    let company = file("company");
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("koboshi.yaml").display().to_string();
    for args in [&["import", "litellm", &company][..], &["import", "litellm", &company, "-o", &written]] {
        let said = on_terminal(koboshi(args));
        for note in ["`router_settings.retry_policy`", "`guardrails`", "`environment_variables`"] {
            assert_eq!(said.matches(note).count(), 1, "{note}: {said}");
        }
        assert_eq!(said.matches("Set these variables").count(), 1, "{said}");
    }
}

#[test]
fn a_file_that_is_there_is_left_alone_and_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("koboshi.yaml");
    std::fs::write(&mine, "language: ja\n").unwrap();
    let path = mine.display().to_string();
    let refused = run(&["import", "litellm", &file("team"), "-o", &path]);
    assert!(refused.status == 2 && refused.error.contains("--force"), "{}", refused.error);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "language: ja\n");
    let not_theirs = run(&["import", "litellm", &path]);
    assert!(
        not_theirs.status == 2 && not_theirs.error.contains("no config of LiteLLM"),
        "{}",
        not_theirs.error
    );
    assert_eq!(run(&["import", "litellm", &file("team"), "-o", &path, "--force"]).status, 1);
    let missing = run(&["import", "litellm", "/there/is/none.yaml"]);
    assert!(
        missing.status == 2 && missing.error.contains("cannot read /there/is/none.yaml"),
        "{}",
        missing.error
    );
    let binary = run(&["import", "litellm", env!("CARGO_BIN_EXE_koboshi")]);
    assert!(binary.status == 2 && binary.error.contains("is not text"), "{}", binary.error);
    // Everything of a small file is carried over.
    let small = "model_list: [{model_name: m, litellm_params: {model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY}}]";
    let out = run_with(&["import", "litellm", "-"], &[], small);
    assert_eq!(out.status, 0, "{}", out.error);
    assert!(out.text.contains("m: [openai/gpt-4o]"), "{}", out.text);
}

#[test]
fn check_recognises_litellms_file_and_names_the_command() {
    let out = koboshi(&["check", &file("team")]).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("koboshi import litellm") && said.contains("team.yaml"), "{said}");
    assert_eq!(said.matches("unknown key").count(), 0, "{said}");
}
