//! `koboshi models`: what is known of a model, and from where.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Out, json, koboshi, repository, run};
use koboshi::models::Facts;
use tempfile::TempDir;

/// A folder with a config and a models file.
fn folder(config: &str, models: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), config).unwrap();
    std::fs::write(folder.path().join("my-models.yaml"), models).unwrap();
    folder
}

fn within(folder: &TempDir, args: &[&str]) -> Out {
    let output = koboshi(args).current_dir(folder.path()).output().unwrap();
    Out {
        status: output.status.code().unwrap(),
        text: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The line of a fact.
fn line<'t>(text: &'t str, key: &str) -> &'t str {
    text.lines().find(|line| line.split_whitespace().next() == Some(key)).unwrap_or_default()
}

const CONFIG: &str = "\
models_file: my-models.yaml
models:
  openai/gpt-5.1*:
    images: false
routes:
  fast: [openai/gpt-5.1-mini, 'sim/{model}']
  '*': ['openai/{model}', anthropic/claude-haiku-4-5]
";
const MODELS: &str = "models:\n  - match: gpt-5.1*\n    images: true\n    max_output_tokens: 64000\n";

#[test]
fn each_fact_says_where_it_comes_from() {
    let folder = folder(CONFIG, MODELS);
    let out = within(&folder, &["models", "openai/gpt-5.1", "--lang", "en"]);
    assert_eq!((out.status, out.text.lines().next()), (0, Some("openai/gpt-5.1")), "{}", out.error);
    for (key, value, from) in [
        ("images", "false", "koboshi.yaml:3"),
        ("max_output_tokens", "64000", "my-models.yaml:2"),
        ("context_window", "400000", "built in (models.yaml:"),
        ("efforts", "none low medium high", "built in (models.yaml:"),
        ("tools", "true", "assumed"),
    ] {
        let found = line(&out.text, key);
        assert!(found.contains(value) && found.contains(from), "{key}: {found}\n{}", out.text);
    }
    assert_eq!(out.text.lines().count(), 1 + Facts::KEYS.len());
    let japanese = within(&folder, &["models", "openai/gpt-5.1", "--lang", "ja"]).text;
    assert!(line(&japanese, "context_window").contains("内蔵（models.yaml:"), "{japanese}");
    assert!(line(&japanese, "tools").contains("不明のため既定値"), "{japanese}");
}

#[test]
fn the_same_is_there_for_programs() {
    let folder = folder(CONFIG, MODELS);
    let all =
        json(&within(&folder, &["models", "gpt-5.1", "anthropic/claude-3-5-haiku", "--format", "json"]));
    let facts = &all["models"][0]["facts"];
    assert_eq!(all["models"][0]["provider"], "openai", "a name alone is its maker's");
    assert_eq!(
        facts["images"],
        serde_json::json!({"value": false, "from": "config", "file": "koboshi.yaml", "line": 3})
    );
    assert_eq!(facts["max_output_tokens"]["file"], "my-models.yaml");
    assert_eq!(facts["context_window"]["from"], "built_in");
    assert_eq!(facts["tools"], serde_json::json!({"value": true, "from": "assumed"}));
    assert_eq!(all["models"][1]["facts"]["prefill"]["value"], true);
    assert_eq!(all["vendors"]["xai"], serde_json::json!(["grok-*"]));
    let relay = json(&run(&["models", "openrouter/anthropic/claude-3-5-haiku", "--format", "json"]));
    let prefill = &relay["models"][0]["facts"]["prefill"];
    assert_eq!(
        (&prefill["value"], &prefill["from"]),
        (&false.into(), &"assumed".into()),
        "of a relay it is not known"
    );
    let at = |address: &str| {
        let text = format!(
            "providers: {{claude: {{kind: anthropic, base_url: \"{address}\", keys: [\"${{K}}\"]}}}}\n"
        );
        let folder = self::folder(&text, MODELS);
        let all = json(&within(&folder, &["models", "claude/claude-sonnet-4-5", "--format", "json"]));
        all["models"][0]["facts"]["prefill"]["value"].clone()
    };
    assert_eq!(at("https://api.anthropic.com/v1"), true);
    assert_eq!(at("http://127.0.0.1:21100/v1"), false, "an address that is not Anthropic's is a relay");
}

#[test]
fn without_a_name_the_models_of_the_routes_are_shown() {
    let config = folder(CONFIG, MODELS);
    let heads = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).map(str::to_owned).collect()
    };
    let out = within(&config, &["models"]);
    assert_eq!(heads(&out.text), ["anthropic/claude-haiku-4-5", "openai/gpt-5.1-mini"]);
    let out = within(&config, &["models", "fast"]);
    assert_eq!(heads(&out.text), ["openai/gpt-5.1-mini", "sim/fast"], "a route stands for its chain");
    let prefill = line(out.text.split_once("sim/fast").unwrap().1, "prefill");
    assert!(prefill.contains("false"), "it begins another answer than a real provider: {prefill}");
    for (lang, said) in [("en", "names no models"), ("ja", "設定にモデル名がありません")] {
        let out = run(&["models", "--lang", lang]);
        assert!(out.status == 0 && out.text.contains(said) && out.text.contains("claude-*"), "{}", out.text);
    }
    let unknown = run(&["models", "never-heard-of", "--lang", "en"]);
    assert!(unknown.text.contains("This model is not known"), "{}", unknown.text);
}

#[test]
fn a_wrong_models_file_is_reported_with_its_place() {
    let wrong = folder(CONFIG, "models:\n  - match: m\n    contxt_window: 5\n");
    for (lang, said) in [("en", "docs/models.md"), ("ja", "モデルファイルに誤りがあります")] {
        let out = within(&wrong, &["check", "--lang", lang]);
        assert!(out.status == 1 && out.text.contains("my-models.yaml:3:5"), "{}", out.text);
        assert!(out.text.contains("contxt_window") && out.text.contains(said), "{}", out.text);
    }
    let out = within(&wrong, &["models", "gpt-4o"]);
    assert!(
        out.status == 0 && out.error.contains("my-models.yaml:3:5"),
        "the built-in facts are shown: {}",
        out.error
    );
    let gone = folder("models_file: none.yaml", "");
    let out = within(&gone, &["check", "--lang", "en"]);
    assert!(out.text.contains("koboshi.yaml:1:14: the models file none.yaml cannot be used"), "{}", out.text);
    assert!(out.text.contains("there is no such file"), "{}", out.text);
}

/// The page names every fact and what is assumed of it, as the program does.
#[test]
fn the_page_has_every_fact() {
    let page = std::fs::read_to_string(repository("docs/models.md")).unwrap();
    let shown = run(&["models", "never-heard-of"]).text;
    for key in Facts::KEYS {
        let row = page.lines().find(|row| row.starts_with(&format!("| `{key}` |")));
        let assumed = row.and_then(|row| row.split('|').nth(2)).unwrap_or_default().trim();
        let value = line(&shown, key).strip_suffix("assumed").unwrap().trim();
        assert_eq!(value.strip_prefix(key).unwrap().trim(), assumed, "docs/models.md has `{key}` otherwise");
    }
}
