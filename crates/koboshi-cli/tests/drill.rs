//! `koboshi drill`: the scenarios against configs with and without weaknesses, through the binary.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::collections::BTreeSet;
use std::net::TcpListener;

use common::{Out, json, koboshi, on_terminal, repository, run, run_with, scratch};
use serde_json::Value;

/// Two providers, limits that do not make a client wait for long, and a text for when both are down.
const GOOD: &str = "\
providers:
  one: {kind: openai, base_url: 'http://127.0.0.1:9/v1', keys: ['${ONE_KEY}'], timeouts: {first_token: 20s, idle: 20s, unary: 30s}}
  two: {kind: anthropic, base_url: 'http://127.0.0.1:9', keys: ['${TWO_KEY}'], timeouts: {first_token: 20s, idle: 20s, unary: 30s}}
routes:
  assistant: [one/a, two/b]
degrade: {answers_file: 'ANSWERS'}
";

const ALONE: &str = "\
providers:
  one: {kind: openai, base_url: 'http://127.0.0.1:9/v1', keys: [k]}
routes:
  assistant: [one/a]
";

fn drill(name: &str, config: &str, more: &[&str]) -> Out {
    let answers = repository("examples/answers.yaml").display().to_string();
    let file = scratch(name, &config.replace("ANSWERS", &answers));
    run(&[&["drill", "--config", &file, "--lang", "en"], more].concat())
}

fn report(name: &str, config: &str, more: &[&str]) -> Value {
    let out = drill(name, config, &[&["--format", "json"], more].concat());
    assert_eq!((out.status, out.error.as_str()), (0, ""), "{}", out.text);
    json(&out)
}

fn scenario<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["scenarios"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
}

fn advice(report: &Value) -> Vec<(String, usize)> {
    let advice = report["advice"].as_array().unwrap().iter();
    advice
        .map(|one| (one["key"].as_str().unwrap().to_owned(), one["scenarios"].as_array().unwrap().len()))
        .collect()
}

#[test]
fn a_good_config_gets_no_advice_and_the_whole_score() {
    let report = report("drill-good.yaml", GOOD, &[]);
    let bad: Vec<&Value> =
        report["scenarios"].as_array().unwrap().iter().filter(|one| one["good"] != true).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(advice(&report).is_empty(), "{:#}", report["advice"]);
    assert_eq!(report["score"], 100.0);
}

#[test]
fn a_config_without_a_fallback_is_told_so_with_the_number_of_scenarios() {
    let report = report("drill-alone.yaml", ALONE, &[]);
    let told =
        report["advice"].as_array().unwrap().iter().find(|one| one["key"] == "routes.assistant").unwrap();
    let failing = told["scenarios"].as_array().unwrap().len();
    assert!(failing >= 7, "{told}");
    let expected = format!("no fallback for `assistant`: {failing} scenarios end in an error; add one");
    assert_eq!(told["text"], expected);
    let bad = report["scenarios"].as_array().unwrap().iter().filter(|one| one["good"] == false).count();
    assert!(bad >= failing && report["score"].as_f64().unwrap() < 80.0, "{:#}", report["score"]);
    // What passes is survived alone.
    let once = scenario(&report, "server-error-once");
    assert_eq!((&once["ending"], &once["upstream_calls"]), (&"answer".into(), &2.into()), "{once}");
    assert_eq!(scenario(&report, "dead-key")["kind"], "unauthorized");
}

#[test]
fn two_models_of_one_provider_are_no_fallback_for_its_outage() {
    let config = ALONE.replace("[one/a]", "[one/a, one/b]");
    let report = report("drill-together.yaml", &config, &["--only", "unavailable,overloaded"]);
    assert_eq!(scenario(&report, "unavailable")["ending"], "error");
    assert_eq!(scenario(&report, "overloaded")["ending"], "answer", "only the model is overloaded");
    assert_eq!(advice(&report), [("routes.assistant".to_owned(), 1)]);
    let text = report["advice"][0]["text"].as_str().unwrap();
    assert!(text.contains("fail together") && text.contains("another provider"), "{text}");
}

#[test]
fn other_weaknesses_are_told_by_their_keys() {
    let once = format!("{ALONE}retry: {{max_attempts: 1}}\n");
    let report_once = report("drill-once.yaml", &once, &["--only", "server-error-once"]);
    assert_eq!(advice(&report_once), [("retry.max_attempts".to_owned(), 1)]);
    let loose = format!("{GOOD}guard: {{mode: 'off'}}\n");
    let report_loose = report("drill-loose.yaml", &loose, &["--only", "looped-tool-calls"]);
    assert_eq!(scenario(&report_loose, "looped-tool-calls")["ending"], "damaged");
    assert_eq!(advice(&report_loose), [("guard.mode".to_owned(), 1)]);
    let slow = GOOD.replace("unary: 30s", "unary: 5m");
    let report_slow = report("drill-slow.yaml", &slow, &["--only", "hang-before-head"]);
    let hang = scenario(&report_slow, "hang-before-head");
    assert!(hang["after_seconds"].as_f64().unwrap() >= 300.0 && hang["upstream_calls"] == 2, "{hang}");
    assert_eq!(advice(&report_slow), [("providers.*.timeouts".to_owned(), 1)]);
    let bare = GOOD.replace("degrade: {answers_file: 'ANSWERS'}", "");
    let report_bare = report("drill-bare.yaml", &bare, &["--only", "all-down"]);
    let down = scenario(&report_bare, "all-down");
    assert_eq!((&down["good"], &down["ending"]), (&true.into(), &"error".into()), "no answer was possible");
    assert_eq!(advice(&report_bare), [("degrade.answers_file".to_owned(), 1)]);
}

#[test]
fn the_report_is_one_object_with_every_scenario_of_every_route() {
    let config = format!("{ALONE}  'other-*': ['one/{{model}}']\n");
    let report = report("drill-shape.yaml", &config, &[]);
    let all = report["scenarios"].as_array().unwrap();
    let names: BTreeSet<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.len() >= 24 && all.len() == 2 * names.len());
    assert_eq!(report["total"], all.len());
    assert_eq!(report["good"], all.iter().filter(|one| one["good"] == true).count());
    for one in all {
        assert!(one["after_seconds"].is_f64() && one["upstream_calls"].is_u64(), "{one}");
        assert_eq!(one["asked"].as_array().unwrap().len() as u64, one["upstream_calls"].as_u64().unwrap());
        assert_eq!(one["ending"] == "error", one["kind"].is_string() && one["message"].is_string(), "{one}");
        assert_ne!(one["ending"], "nothing", "{one}");
    }
    let routes: Vec<&Value> = report["routes"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(routes, ["assistant", "other-*"]);
}

#[test]
fn the_exit_status_follows_from_min() {
    for (min, status) in [("100", 1), ("10%", 0), ("0", 0)] {
        let out = drill("drill-min.yaml", ALONE, &["--only", "unavailable,all-down", "--min", min]);
        assert_eq!(out.status, status, "{min} {}", out.error);
        assert!(out.text.contains("Score: 50.0 % (1 of 2)"), "{}", out.text);
    }
    for wrong in ["101", "many"] {
        assert_eq!(drill("drill-min.yaml", ALONE, &["--min", wrong]).status, 2);
    }
}

#[test]
fn what_cannot_be_drilled_is_refused_with_its_reason() {
    let out = drill("drill-broken.yaml", "routes: {a: [one/x]}\nproviders: {one: {knid: openai}}\n", &[]);
    assert_eq!(out.status, 2);
    assert!(out.error.contains("drill-broken.yaml:2") && out.error.contains("knid"), "{}", out.error);
    let out = drill("drill-empty.yaml", "{}\n", &[]);
    assert!(out.status == 2 && out.error.contains("no routes"), "{}", out.error);
    let out = drill("drill-only.yaml", ALONE, &["--only", "alldown"]);
    assert!(
        out.status == 2 && out.error.contains("alldown") && out.error.contains("all-down"),
        "{}",
        out.error
    );
    let out = run(&["drill", "--config", "/there/is/none.yaml"]);
    assert!(out.status == 2 && out.error.contains("/there/is/none.yaml"), "{}", out.error);
}

/// The providers are at an address where a listener counts, and behind a proxy that is one too.
#[test]
fn no_connection_leaves_and_no_key_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let config = GOOD.replace("degrade: {answers_file: 'ANSWERS'}", "").replace("127.0.0.1:9", &address)
        + &format!("trace: {{otlp: 'http://{address}'}}\nstore: {{redis: 'redis://{address}'}}\n");
    let file = scratch("drill-quiet.yaml", &config);
    let proxy = format!("http://{address}");
    let environment = [
        ("ONE_KEY", "sk-planted-secret-1"),
        ("TWO_KEY", "sk-planted-secret-2"),
        ("HTTPS_PROXY", &*proxy),
        ("HTTP_PROXY", &proxy),
    ];
    let out = run_with(&["drill", "--config", &file, "--format", "json"], &environment, "");
    assert_eq!(out.status, 0, "{}", out.error);
    assert!(!out.text.contains("planted") && !out.error.contains("planted"));
    let accepted = listener.accept().map(|(_, peer)| peer);
    assert_eq!(accepted.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "someone called");
}

#[test]
fn the_configs_of_the_readme_and_of_mira_are_drilled() {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let config = readme.split("<<'EOF'\n").nth(1).unwrap().split("EOF\n").next().unwrap();
    let readme = report("drill-readme.yaml", config, &[]);
    let mira = repository("examples/mira.yaml").display().to_string();
    let out = run(&["drill", "--config", &mira, "--format", "json"]);
    assert_eq!(out.status, 0, "{}", out.error);
    for report in [readme, json(&out)] {
        let bad: Vec<&Value> =
            report["scenarios"].as_array().unwrap().iter().filter(|one| one["good"] != true).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

#[test]
fn people_read_it_in_both_languages_in_columns_that_wrap() {
    let file = scratch("drill-text.yaml", ALONE);
    for (lang, says, brackets) in [
        ("en", "no fallback for `assistant`", "(status"),
        ("ja", "`assistant` にフォールバックがありません", "（ステータス"),
    ] {
        let mut command = koboshi(&["drill", "--config", &file, "--lang", lang]);
        command.env("COLUMNS", "60");
        let shown = on_terminal(command);
        let plain: String = shown.replace("\r\n", "\n");
        let joined = plain.replace(['\n', ' '], "");
        assert!(joined.contains(&says.replace(' ', "")) && joined.contains(brackets), "{plain}");
        assert!(!plain.contains("drill-"), "{plain}");
    }
    let page = drill("drill-page.yaml", &ALONE.replace("assistant:", "'<b>':"), &["--format", "html"]);
    assert!(page.text.starts_with("<!doctype html>") && page.text.ends_with("</html>\n"));
    assert!(page.text.contains("&lt;b&gt;") && !page.text.contains("<b>"), "{}", page.text);
    for outside in ["http://", "https://", "<script", "@import", "src="] {
        assert!(!page.text.contains(outside), "{outside}");
    }
}
