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
    let text = "retry: {preset: network, attempts: 4}\nbreaker: {consecutive: off}\nstore: {redis: '${URL}'}\nlanguage: ja\nerror_protection: {default_cooldown_seconds: 90}\n";
    let path = scratch("changes.yaml", text);
    let folder = std::path::Path::new(&path).parent().unwrap().display().to_string();
    let out = run_in(&folder, &["check", "changes.yaml"], &[("URL", "redis://:hunter2@cache:6379/0")]);
    assert!(!out.text.contains("hunter2"), "{}", out.text);
    insta::assert_snapshot!("changes", said(&out));
}

#[test]
fn a_gateway_is_shown_entry_by_entry() {
    let text = "serve: {hosts: [koboshi.example]}\nkeys: {alice: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}}\nproviders:\n  mira: {kind: openai, base_url: http://localhost:8080/v1, keys: ['${KEY}', '${KEY}2'], timeouts: {first: 1m}}\nroutes:\n  gpt-4.1: ['mira/{model}', sim/ok]\nguard: {tools: {dice: {free: true}}}\n";
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
        (Some("retry.attemps"), Some("did you mean `attempts`?"))
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
