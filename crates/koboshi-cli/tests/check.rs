//! `koboshi check`: what people read when their config is wrong.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::process::Stdio;

use common::{Out, json, koboshi, repository, run, scratch};

/// Runs the command in a folder, without a config from the environment of the test.
fn run_in(folder: &str, args: &[&str], environment: &[(&str, &str)]) -> Out {
    let mut command = koboshi(args);
    command.current_dir(repository(folder)).stdin(Stdio::null());
    for name in ["KOBOSHI_CONFIG", "XDG_CONFIG_HOME", "HOME", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    let output = command.envs(environment.iter().copied()).output().unwrap();
    Out {
        status: output.status.code().unwrap(),
        text: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

const BROKEN: &str = "crates/koboshi-cli/tests/broken-configs";

/// What was said, in the form of the snapshots.
fn said(out: &Out) -> String {
    format!("{}{}exit status {}", out.text, out.error, out.status)
}

#[test]
fn every_broken_config_is_explained() {
    let mut names: Vec<String> = std::fs::read_dir(repository(BROKEN))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 10);
    for name in names {
        let out = run_in(BROKEN, &["check", &name], &[]);
        assert_eq!(out.status, 1, "{name}: {}{}", out.text, out.error);
        insta::assert_snapshot!(name.trim_end_matches(".yaml").to_owned(), said(&out));
    }
}

#[test]
fn a_huge_file_is_not_read() {
    let path = scratch("huge.yaml", &"# filler\n".repeat(300_000));
    let folder = std::path::Path::new(&path).parent().unwrap().display().to_string();
    insta::assert_snapshot!("huge", said(&run_in(&folder, &["check", "huge.yaml"], &[])));
}

#[test]
fn a_file_that_is_not_there_is_status_2() {
    insta::assert_snapshot!("not-there", said(&run_in(BROKEN, &["check", "not-there.yml"], &[])));
    let named = run_in(BROKEN, &["check"], &[("KOBOSHI_CONFIG", "not-there.yml")]);
    assert_eq!(named.status, 2, "a file that was named must be there: {}", named.text);
}

#[test]
fn a_good_file_says_what_it_changes() {
    let text = "retry: {preset: network, max_attempts: 4}\nbreaker: {consecutive_failures: off}\nstore: {redis: '${URL}'}\nerror_protection: {default_cooldown_seconds: 90}\n";
    let path = scratch("changes.yaml", text);
    let folder = std::path::Path::new(&path).parent().unwrap().display().to_string();
    let out = run_in(&folder, &["check", "changes.yaml"], &[("URL", "redis://:hunter2@cache:6379/0")]);
    assert!(!out.text.contains("hunter2"), "{}", out.text);
    insta::assert_snapshot!("changes", said(&out));
}

#[test]
fn a_gateway_is_shown_entry_by_entry() {
    let text = "serve: {allowed_hosts: [koboshi.example]}\nkeys: {alice: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}}\nproviders:\n  mira: {kind: openai, base_url: http://localhost:8080/v1, keys: ['${KEY}', '${KEY}2'], timeouts: {first_token: 1m}}\nroutes:\n  gpt-4.1: ['mira/{model}', sim/ok]\nguard: {tools: {dice: {unlimited: true}}}\n";
    let path = scratch("gateway.yaml", text);
    let folder = std::path::Path::new(&path).parent().unwrap().display().to_string();
    let out = run_in(&folder, &["check", "gateway.yaml"], &[("KEY", "hunter2")]);
    assert!(!out.text.contains("hunter2") && !out.text.contains("9f86"), "{}", out.text);
    insta::assert_snapshot!("gateway", said(&out));
}

#[test]
fn the_example_and_no_file_are_all_defaults() {
    insta::assert_snapshot!("example", said(&run_in("examples", &["check"], &[])));
    insta::assert_snapshot!("no-file", said(&run_in("docs", &["check"], &[("HOME", "/home/me")])));
}

#[test]
fn programs_get_the_places_as_numbers() {
    let out = run_in(BROKEN, &["check", "several.yaml", "--format", "json"], &[]);
    assert_eq!(out.status, 1);
    let answer = json(&out);
    assert_eq!(answer["good"], false);
    let first = &answer["problems"][0];
    assert_eq!((first["line"].as_u64(), first["column"].as_u64()), (Some(2), Some(3)));
    assert_eq!(
        (first["key"].as_str(), first["hint"].as_str()),
        (Some("retry.max_attemps"), Some("did you mean `max_attempts`?"))
    );
    assert!(!out.text.contains("hunter2"));
    let good = json(&run_in("examples", &["check", "koboshi.yaml", "--format", "json"], &[]));
    assert_eq!((good["good"].as_bool(), good["file"].as_str()), (Some(true), Some("koboshi.yaml")));
}

#[test]
fn the_schema_is_printed() {
    let out = run(&["check", "--schema"]);
    assert_eq!(out.status, 0);
    assert_eq!(json(&out)["title"], "koboshi.yaml");
    assert_eq!(out.text, std::fs::read_to_string(repository("docs/koboshi.schema.json")).unwrap());
}

#[test]
fn colour_is_for_terminals() {
    assert!(!run_in(BROKEN, &["check", "several.yaml"], &[]).text.contains('\u{1b}'));
    let forced = run_in(BROKEN, &["check", "several.yaml"], &[("CLICOLOR_FORCE", "1")]);
    assert!(forced.text.contains('\u{1b}'));
}

fn folder_of(path: &str) -> String {
    std::path::Path::new(path).parent().unwrap().display().to_string()
}

#[test]
fn an_address_without_its_usual_path_is_a_warning() {
    for (kind, url, right) in [
        ("openai", "https://api.openai.com", "https://api.openai.com/v1"),
        ("openai", "http://localhost:8000/", "http://localhost:8000/v1"),
        ("openai", "https://api.groq.com", "https://api.groq.com/openai/v1"),
        ("anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1"),
        (
            "gemini", "https://generativelanguage.googleapis.com",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        ("ollama", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
    ] {
        let path =
            scratch("no-path.yaml", &format!("providers: {{a: {{kind: {kind}, base_url: '{url}'}}}}\n"));
        let out = run_in(&folder_of(&path), &["check", "no-path.yaml"], &[]);
        assert_eq!(out.status, 0, "{}", out.text);
        assert!(out.text.contains("warning: no-path.yaml:1:"), "{}", out.text);
        assert!(out.text.contains(&format!("hint: write `{right}`")), "{}", out.text);
        let answer = json(&run_in(&folder_of(&path), &["check", "no-path.yaml", "--format", "json"], &[]));
        assert_eq!((answer["good"].as_bool(), answer["problems"].as_array().unwrap().len()), (Some(true), 0));
        assert_eq!(answer["warnings"][0]["key"], "providers.a.base_url");
    }
    let fine = "providers:\n  a: {kind: openai, base_url: https://api.openai.com/v1}\n  b: {kind: azure, base_url: 'https://x.openai.azure.com'}\n  c: {kind: openai, base_url: https://api.perplexity.ai}\n";
    let path = scratch("paths.yaml", fine);
    let out = run_in(&folder_of(&path), &["check", "paths.yaml"], &[]);
    assert!(out.status == 0 && !out.text.contains("warning"), "{}", out.text);
}

#[test]
fn old_names_are_warnings_that_name_the_new_ones() {
    let text = "serve: {hold: 5s}\nproviders: {a: {kind: sim, timeouts: {whole: 1m}}}\nbreaker: {window: {least_calls: 3}}\n";
    let path = scratch("old.yaml", text);
    let out = run_in(&folder_of(&path), &["check", "old.yaml"], &[]);
    assert_eq!(out.status, 0, "{}", out.text);
    for (old, new) in [
        ("serve.hold", "serve.first_byte_hold"),
        ("providers.a.timeouts.whole", "providers.a.timeouts.unary"),
        ("breaker.window.least_calls", "breaker.window.min_calls"),
    ] {
        assert!(
            out.text.contains(&format!("`{old}` is an old name: it is called `{new}` now")),
            "{}",
            out.text
        );
    }
    assert!(out.text.contains("old.yaml: valid, 3 warnings"), "{}", out.text);
}

#[test]
fn japanese_readers_get_japanese() {
    for name in [
        "several", "secrets-in-wrong-places", "entries", "kinds", "sim-names", "litellm", "braces",
        "written-as-text",
    ] {
        let file = format!("{name}.yaml");
        let flag = run_in(BROKEN, &["check", &file, "--lang", "ja"], &[]);
        let locale = run_in(BROKEN, &["check", &file], &[("LANG", "ja_JP.UTF-8")]);
        assert_eq!((&flag.text, flag.status), (&locale.text, 1), "{name}");
        insta::assert_snapshot!(format!("{name}-ja"), said(&flag));
    }
    // No problem is said in English: every message has letters of the language.
    let is_japanese =
        |text: &str| text.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}'));
    for entry in std::fs::read_dir(repository(BROKEN)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let answer = json(&run_in(BROKEN, &["check", &name, "--lang", "ja", "--format", "json"], &[]));
        for problem in answer["problems"].as_array().unwrap() {
            for part in ["message", "hint"] {
                let text = problem[part].as_str().unwrap_or("なし");
                assert!(is_japanese(text), "{name}: {text}");
            }
        }
    }
    let missing = run_in(BROKEN, &["check", "not-there.yml", "--lang", "ja"], &[]);
    assert!(missing.status == 2 && missing.error.contains("読み込めません"), "{}", missing.error);
    let good = run_in("examples", &["check", "koboshi.yaml", "--lang", "ja"], &[]);
    assert!(good.text.contains("問題ありません") && good.text.contains("すべて既定値です"), "{}", good.text);
}

#[test]
fn secrets_are_shown_neither_to_people_nor_to_programs() {
    for args in [
        &["check", "secrets-in-wrong-places.yaml"][..],
        &["check", "secrets-in-wrong-places.yaml", "--format", "json"],
        &["check", "written-as-text.yaml"],
        &["check", "written-as-text.yaml", "--format", "json"],
    ] {
        for lang in ["en", "ja"] {
            let mut all = args.to_vec();
            all.extend(["--lang", lang]);
            let out = run_in(BROKEN, &all, &[]);
            assert_eq!(out.status, 1);
            assert!(!out.text.contains("hunter2") && !out.text.contains("5f2c9a"), "{}", out.text);
        }
    }
}

/// Configs that a gateway refuses, each with the line and the key that is at fault.
const REFUSED: &[(&str, u64, &str)] = &[
    ("degrade:\n  answers_file: nosuch.yaml\n", 2, "degrade.answers_file"),
    ("degrade:\n  answers_file: wrong-answers.yaml\n", 2, "degrade.answers_file"),
    ("providers:\n  openai:\n    kind: openai\n    ca_file: no.pem\n", 4, "providers.openai.ca_file"),
    (
        "providers:\n  openai:\n    kind: openai\n    ca_file: wrong-answers.yaml\n",
        4,
        "providers.openai.ca_file",
    ),
    (
        "providers:\n  v: {kind: vertex, location: global, project: p,\n    credentials_file: nofile.json}\n",
        3,
        "providers.v.credentials_file",
    ),
    ("routes:\n  assistant: [sim/okk]\n", 2, "routes.assistant.chain"),
    ("routes:\n  assistant: [nobody/x]\n", 2, "routes.assistant.chain"),
];

#[test]
fn what_a_gateway_refuses_is_found_and_what_is_found_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (at, file) = (folder.path().display().to_string(), folder.path().join("koboshi.yaml"));
    std::fs::write(folder.path().join("wrong-answers.yaml"), "answers:\n  - txt: {}\n").unwrap();
    for (text, line, key) in REFUSED {
        std::fs::write(&file, text).unwrap();
        let checked = run_in(&at, &["check", "--format", "json"], &[]);
        assert_eq!(checked.status, 1, "{text}{}", checked.error);
        let problem = json(&checked)["problems"][0].clone();
        assert_eq!((problem["line"].as_u64(), problem["key"].as_str()), (Some(*line), Some(*key)), "{text}");
        for lang in ["en", "ja"] {
            let said = run_in(&at, &["check", "--lang", lang], &[]).text;
            let sentence = said.lines().next().unwrap();
            // On an unused port: a gateway that started would not end.
            let args = ["serve", "--store", "memory", "--listen", "192.0.2.1:1", "--lang", lang];
            let refused = run_in(&at, &args, &[]);
            assert_eq!(refused.status, 2, "{text}{}", refused.error);
            assert!(refused.error.contains(sentence), "{sentence}\n{}", refused.error);
        }
    }
}

/// One wrong part hides no other, and a misspelt section does not hide what is wrong elsewhere.
#[test]
fn every_problem_is_named_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let check = |config: &str| {
        let file = folder.path().join("koboshi.yaml");
        std::fs::write(&file, config).unwrap();
        let out = run_in(".", &["check", "--lang", "en", file.to_str().unwrap()], &[]);
        format!("{}{}", out.text, out.error)
    };
    let said = check("routes: {m: [openai/gpt-4o, cloude/claude-sonnet-4-5, gpt-4o, gpt-5]}\n");
    assert!(said.contains("`cloude`") && said.contains("`gpt-4o`") && said.contains("`gpt-5`"), "{said}");
    let said = check("provider: {mine: {kind: sim}}\nroutes: {m: [mine/ok, antropic/claude-sonnet-4-5]}\n");
    assert!(said.contains("did you mean `providers`") && said.contains("`antropic`"), "{said}");
    assert!(!said.contains("provider `mine`"), "{said}");
    let said = check("routes: {x: {model: sim/ok}}\n");
    assert!(said.contains("did you mean `chain`?"), "{said}");
}

#[test]
fn a_store_in_memory_is_listed_as_a_difference() {
    let path = scratch("memory.yaml", "store: memory\n");
    let out = run_in(&folder_of(&path), &["check", "memory.yaml", "--lang", "en"], &[]);
    assert!(out.text.contains("store  memory  (default the file of this user)"), "{}", out.text);
    assert!(!out.text.contains("All values"), "{}", out.text);
}

#[test]
fn an_address_without_a_port_is_hinted_at_with_one() {
    let path = scratch("localhost.yaml", "serve: {listen: localhost}\n");
    let out = run_in(&folder_of(&path), &["check", "localhost.yaml", "--lang", "en"], &[]);
    assert!(out.text.contains("hint: write the address and a port: `127.0.0.1:4141`"), "{}", out.text);
}

#[test]
fn a_command_in_one_text_is_hinted_at_word_by_word() {
    let path = scratch("command.yaml", "providers: {v: {kind: vertex, token_command: gcloud auth}}\n");
    let out = run_in(&folder_of(&path), &["check", "command.yaml", "--lang", "en"], &[]);
    assert!(out.text.contains("write `[\"gcloud\", \"auth\"]`"), "{}", out.text);
}

/// The file may be right where the gateway runs, so it is valid; who starts it here would be refused, and both name the same variable.
#[test]
fn a_provider_whose_key_is_not_set_here_is_a_warning_that_names_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    for (target, variables) in [
        ("openai/gpt-4o", &["OPENAI_API_KEY"][..]),
        ("azure/gpt-4o", &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"]),
        ("ollama/llama", &["OLLAMA_HOST"]),
    ] {
        // With a key of a client, so that the address below is no mistake.
        let hash = "0".repeat(64);
        let text = format!("routes:\n  assistant: [{target}]\nkeys: {{a: {{sha256: \"{hash}\"}}}}\n");
        std::fs::write(folder.path().join("koboshi.yaml"), text).unwrap();
        let checked = run_in(&at, &["check", "--format", "json"], &[]);
        assert_eq!(checked.status, 0, "{}{}", checked.text, checked.error);
        let warning = json(&checked)["warnings"][0].clone();
        assert_eq!((warning["line"].as_u64(), warning["column"].as_u64()), (Some(2), Some(15)), "{warning}");
        for lang in ["en", "ja"] {
            let said = run_in(&at, &["check", "--lang", lang], &[]).text;
            let args = ["serve", "--store", "memory", "--listen", "192.0.2.1:1", "--lang", lang];
            let refused = run_in(&at, &args, &[]);
            assert_eq!(refused.status, 2, "{}", refused.error);
            for name in variables {
                assert!(said.contains(name) && refused.error.contains(name), "{said}{}", refused.error);
            }
        }
        let set: Vec<(&str, &str)> = variables.iter().map(|name| (*name, "http://127.0.0.1:9")).collect();
        let checked = run_in(&at, &["check", "--format", "json"], &set);
        assert_eq!(json(&checked)["warnings"].as_array().map(Vec::len), Some(0), "{}", checked.text);
    }
}

#[test]
fn a_store_that_is_a_folder_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), "store: {path: ./dir}\n").unwrap();
    let at = folder.path().display().to_string();
    let checked = run_in(&at, &["check", "--format", "json"], &[]);
    assert_eq!(checked.status, 1, "{}", checked.text);
    let problem = json(&checked)["problems"][0].clone();
    assert_eq!((problem["line"].as_u64(), problem["key"].as_str()), (Some(1), Some("store.path")));
    assert!(run_in(&at, &["check", "--lang", "ja"], &[]).text.contains("フォルダーです"));
    let refused = run_in(&at, &["serve", "--lang", "ja"], &[]);
    assert_eq!(refused.status, 2);
    assert!(refused.error.contains("dir は使えません: フォルダーです"), "{}", refused.error);
    let english = run_in(&at, &["serve", "--lang", "en"], &[]).error;
    assert!(
        english.contains("dir` cannot be used: it is a folder") && !english.contains("store file"),
        "{english}"
    );
}

#[test]
fn the_error_of_a_broken_rule_file_has_closed_brackets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r1.yaml"), "nonsense: 1\n").unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), "rules: [r1.yaml]\n").unwrap();
    let said = run_in(&folder.path().display().to_string(), &["check", "--lang", "ja"], &[]).text;
    assert!(said.contains('（') && said.matches('（').count() == said.matches('）').count(), "{said}");
}

#[test]
fn names_in_full_width_characters_are_warnings() {
    for name in ["“*”", "「a」", "ａ"] {
        let path = scratch("wide.yaml", &format!("routes:\n  {name}: [sim/ok]\n"));
        let out = run_in(&folder_of(&path), &["check", "wide.yaml", "--format", "json"], &[]);
        assert_eq!(out.status, 0, "{name}: {}", out.text);
        let warning = json(&out)["warnings"][0].clone();
        assert_eq!(warning["line"], 2, "{name}: {}", out.text);
        assert!(warning["message"].as_str().unwrap().contains("full-width"), "{warning}");
    }
    let path = scratch("not-wide.yaml", "routes:\n  アシスタント: [sim/ok]\n");
    let out = run_in(&folder_of(&path), &["check", "not-wide.yaml", "--format", "json"], &[]);
    assert_eq!(json(&out)["warnings"].as_array().map(Vec::len), Some(0), "{}", out.text);
}

/// A name that cannot be used hides nothing that is wrong below it.
#[test]
fn a_wrong_name_hides_no_wrong_key() {
    let path = scratch(
        "misnamed.yaml",
        "providers: {Open AI: {kind: opanai, foo: 1, api_key: x}}\nagents: {A b: {comand: [x]}}\nroutes: {m: [sim/ok]}\n",
    );
    let out = run_in(&folder_of(&path), &["check", "misnamed.yaml", "--lang", "en"], &[]);
    let said = said(&out);
    assert_eq!(out.status, 1, "{said}");
    for words in [
        "the name of `providers.", "`opanai`", "unknown key `foo`", "unknown key `api_key`",
        "the name of `agents.", "unknown key `comand`",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// A key of a route that stands one level too high is told as that, and not turned into a route.
#[test]
fn a_key_that_stands_one_level_too_high_is_told_as_that() {
    let path = scratch("indented.yaml", "routes:\n  a:\n    chain:\n    - sim/ok\n  commit: complete\n");
    for (lang, hint) in [("en", "indent it further"), ("ja", "字下げ")] {
        let out = run_in(&folder_of(&path), &["check", "indented.yaml", "--lang", lang], &[]);
        let said = said(&out);
        assert!(said.contains(hint) && !said.contains("[\"complete\"]"), "{said}");
    }
}

/// A key in clear text is warned of, and shown by no word of the warning; one of a variable is not.
#[test]
fn a_key_in_the_file_is_a_warning() {
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    let check = |keys: &str, variables: &[(&str, &str)]| {
        let path =
            scratch("clear.yaml", &format!("providers: {{openai: {{kind: openai, keys: [\"{keys}\"]}}}}\n"));
        said(&run_in(&folder_of(&path), &["check", "clear.yaml", "--lang", "en"], variables))
    };
    for written in [key.to_owned(), format!("${{OWN_KEY:-{key}}}")] {
        let text = check(&written, &[]);
        assert!(text.contains("stands in this file") && !text.contains(key), "{text}");
    }
    let text = check("${OWN_KEY}", &[("OWN_KEY", key)]);
    assert!(!text.contains("stands in this file"), "{text}");
}

/// The parser names the value before the tab; a person needs the line that has it.
#[test]
fn a_tab_is_named_at_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, place) in [
        ("providers:\n  one:\n    kind: openai\n\t  base_url: \"http://x/v1\"\n", "4:1"),
        ("routes:\n  a: >\n\tsim/ok\n", "3:1"),
        ("routes:\n  a:\n    - sim/ok\n \t- sim/ok\n", "4:2"),
        ("routes:\n  b:\n    chain: [sim/ok]\n    \tstatic: x\n", "4:5"),
        ("routes:\n  a:\n\t- sim/ok\n", "3:1"),
    ] {
        let file = folder.path().join("koboshi.yaml");
        std::fs::write(&file, text).unwrap();
        let out =
            run_in(&folder.path().display().to_string(), &["check", "koboshi.yaml", "--lang", "en"], &[]);
        let wanted = format!("koboshi.yaml:{place}: a tab is used as indentation");
        assert!(said(&out).contains(&wanted), "{text:?}: {}", said(&out));
    }
}
