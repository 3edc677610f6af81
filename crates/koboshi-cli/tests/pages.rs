//! What the documentation shows is true: its configs load, its commands exist, every primitive has its page.
//!
//! That the commands also parse is checked in `src/pages.rs`, where the command line is at hand. The programs of docs/agents are run by
//! tests/agents/snippets.py.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use common::pages::{Block, Page, pages};
use common::{koboshi, repository, run};

#[test]
fn every_primitive_has_defaults_events_and_anti_patterns() {
    let pages = [
        "backoff.rs", "budget.rs", "remedy.rs", "call/mod.rs", "docs/breaker.md", "docs/gate.md",
        "docs/cooldown.md",
    ];
    for page in pages {
        let text = std::fs::read_to_string(repository(&format!("crates/koboshi/src/{page}"))).unwrap();
        for heading in ["# Defaults", "# Events", "# Anti-patterns"] {
            let found = text.lines().any(|line| line.trim_start_matches("//! ").trim() == heading);
            assert!(found, "{page} has no `{heading}`");
        }
    }
}

/// The commands that the prose names are commands.
#[test]
fn every_command_in_the_documentation_exists() {
    let help = run(&["--help"]).text;
    let mut count = 0;
    for page in pages() {
        for span in page.spans().filter_map(|span| span.strip_prefix("koboshi ")) {
            let word = span.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
            let is_command = help.lines().any(|line| line.trim_start().starts_with(&format!("{word} ")));
            assert!(is_command || word.is_empty(), "{} names `koboshi {span}`", page.name);
            count += 1;
        }
    }
    assert!(count > 20, "only {count} commands were found");
}

/// Every `yaml` block, and every koboshi.yaml that a shell block writes, is accepted by the program. A block of another kind says so after
/// the language: `yaml rules` is a rule file, `yaml models` a models file, `yaml other` is no file of ours.
#[test]
fn every_config_in_the_documentation_is_accepted() {
    let mut count = 0;
    for page in pages() {
        for block in page.blocks() {
            match block.language() {
                ("yaml", "") => check(&block, &block.text),
                ("yaml", "rules") => check_rules(&block),
                ("yaml", "models") => check_models(&block),
                ("yaml", "other") => continue,
                ("yaml" | "yml", more) => panic!("{}: what is a yaml of the kind `{more}`?", block.place),
                _ if block.is_shell() => {
                    let files = block.files();
                    let ours = files.iter().filter(|(name, _)| name.ends_with("koboshi.yaml"));
                    ours.for_each(|(_, text)| check(&block, text));
                }
                _ => continue,
            }
            count += 1;
        }
    }
    assert!(count > 6, "only {count} blocks were checked");
}

/// Rust blocks are compiled as tests of the crate that includes their page, none of them left out.
#[test]
fn every_rust_block_of_the_documentation_is_compiled() {
    let compiled = ["crates/koboshi/src/lib.rs", "crates/koboshi-store/src/lib.rs"]
        .map(|file| std::fs::read_to_string(repository(file)).unwrap())
        .concat();
    let mut count = 0;
    for page in pages() {
        for block in page.blocks() {
            let language = block.language().0;
            if !language.starts_with("rust") && language != "rs" {
                continue;
            }
            assert_eq!(
                block.info, "rust",
                "{}: a block that is not compiled and run is no example",
                block.place
            );
            let included = format!("#[doc = include_str!(\"../../../{}\")]", page.name);
            assert!(compiled.contains(&included), "{}: no crate has `{included}`", block.place);
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} blocks were found");
}

/// `tests/agents/snippets.py` runs what is marked: a block without a mark would be one that no test sees.
#[test]
fn every_program_of_docs_agents_is_marked_to_be_run() {
    let blocks = pages().into_iter().filter(|page| page.name.starts_with("docs/agents/"));
    let blocks: Vec<Block> = blocks.flat_map(|page| page.blocks()).collect();
    for block in blocks.iter().filter(|block| block.language().0 != "yaml") {
        let is_marked = block.mark.starts_with("<!-- run: ") || block.mark.starts_with("<!-- file: ");
        assert!(is_marked, "{}: this block is run by no test", block.place);
    }
    assert!(blocks.len() > 15, "only {} blocks were found", blocks.len());
}

fn check(block: &Block, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), text).unwrap();
    // The files that the pages name.
    for name in ["answers.yaml", "my-rules.yaml", "my-models.yaml"] {
        std::fs::copy(repository(&format!("examples/{name}")), folder.path().join(name)).unwrap();
    }
    let variables = text.split("${").skip(1).filter_map(|rest| rest.split(['}', ':']).next());
    let output = koboshi(&["check", "koboshi.yaml"])
        .envs(variables.map(|name| (name, "a-value")))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: the program refuses this config:\n{text}\n{said}", block.place);
}

fn check_models(block: &Block) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("koboshi.yaml"), "models_file: models.yaml").unwrap();
    std::fs::write(folder.path().join("models.yaml"), &block.text).unwrap();
    let output = koboshi(&["check", "koboshi.yaml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: the program refuses this file: {said}", block.place);
}

fn check_rules(block: &Block) {
    let folder = tempfile::tempdir().unwrap();
    let (rules, log) = (folder.path().join("rules.yaml"), repository("examples/gemini-quota.log"));
    std::fs::write(&rules, &block.text).unwrap();
    let out = run(&["explain", &log.display().to_string(), "--rules", &rules.display().to_string()]);
    assert_eq!(out.status, 1, "{}: the program refuses these rules: {}", block.place, out.error);
}

/// The first output that a reader sees is the true one, on a terminal of 100 columns.
#[test]
fn the_sample_of_the_readme_is_what_the_program_prints() {
    for (page, lang) in [("README.md", "en"), ("README.ja.md", "ja")] {
        let text = std::fs::read_to_string(repository(page)).unwrap();
        let (_, behind) =
            text.split_once("explain examples/gemini-quota.log --now 2026-11-15T21:22:08Z\n```\n").unwrap();
        let (_, sample) = behind.split_once("```text\n").unwrap();
        let (sample, _) = sample.split_once("```").unwrap();
        let log = repository("examples/gemini-quota.log").display().to_string();
        let args = ["--lang", lang, "explain", &log, "--now", "2026-11-15T21:22:08Z"];
        assert_eq!(common::run_with(&args, &[("COLUMNS", "100"), ("TZ", "UTC")], "").text, sample, "{page}");
    }
}

/// Levels of headings and code of a page, in their order: what a translation must have too.
fn outline(page: &Page) -> (Vec<usize>, Vec<String>, Vec<String>) {
    let mut in_block = false;
    let mut levels = Vec::new();
    for line in page.text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let level = line.chars().take_while(|c| *c == '#').count();
        if !in_block && level > 0 && line.get(level..).is_some_and(|rest| rest.starts_with(' ')) {
            levels.push(level);
        }
    }
    // Comments are translated, code is not.
    let code = |line: &str| line.split_once('#').map_or(line, |(code, _)| code).trim_end().to_owned();
    let blocks = page.blocks().into_iter();
    let blocks =
        blocks.map(|block| block.info + "\n" + &block.text.lines().map(code).collect::<Vec<_>>().join("\n"));
    let mut commands: Vec<String> =
        page.spans().filter(|span| span.starts_with("koboshi ")).map(str::to_owned).collect();
    commands.sort();
    (levels, blocks.collect(), commands)
}

/// A page that was changed in one language alone would mislead those who read the other one.
#[test]
fn a_japanese_page_has_the_headings_and_commands_of_the_english_one() {
    let pages = pages();
    let mut count = 0;
    for japanese in pages.iter().filter(|page| page.name.starts_with("docs/ja/")) {
        let name = japanese.name.replacen("docs/ja/", "docs/", 1);
        let english = pages.iter().find(|page| page.name == name);
        let english = english.unwrap_or_else(|| panic!("{} translates no page", japanese.name));
        assert_eq!(outline(japanese), outline(english), "{}", japanese.name);
        let rows = |page: &Page| page.text.lines().filter(|line| line.starts_with('|')).count();
        assert_eq!(rows(japanese), rows(english), "{}: rows of tables", japanese.name);
        count += 1;
    }
    assert!(count > 0);
}

/// Readers copy a config as it is: none of the pages has the hash of a key that anyone could guess.
#[test]
fn no_page_has_the_hash_of_a_key_that_can_be_guessed() {
    // SHA-256 of `test`, `test2`, `ops`, `secret`, `password`, `admin`, `changeme` and of nothing, by their beginnings.
    const KNOWN: [&str; 9] = [
        "9f86d081884c", "60303ae22b99", "a92c36e66a25", "fcf730b6d952", "2bb80d537b1d", "5e884898da28",
        "8c6976e5b541", "057ba03d6c44", "e3b0c44298fc",
    ];
    for page in pages() {
        for hash in KNOWN {
            assert!(!page.text.contains(hash), "{} has the hash {hash}…", page.name);
        }
    }
    for file in ["examples/koboshi.yaml", "packaging/koboshi.yaml", "packaging/container.yaml"] {
        let text = std::fs::read_to_string(repository(file)).unwrap();
        assert!(KNOWN.iter().all(|hash| !text.contains(hash)), "{file}");
    }
}
