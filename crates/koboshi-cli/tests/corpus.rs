//! The classifiers against the project's corpus, through the command that everyone uses.

mod common;

use common::{json, repository, run, run_with, scratch};
use serde_json::Value;

fn check(files: &[&str]) -> Value {
    let paths: Vec<String> = files.iter().map(|file| repository(file).display().to_string()).collect();
    let mut args = vec!["corpus", "check", "--format", "json", "--failures"];
    args.extend(paths.iter().map(String::as_str));
    json(&run(&args))
}

#[track_caller]
fn at_least(measure: &Value, percent: f64) {
    let count = |field: &str| measure[field].as_f64().unwrap_or(f64::NAN);
    let (right, cases) = (count("right"), count("cases"));
    assert!(right * 100.0 >= percent * cases, "{right} of {cases}: {:#}", measure["failures"]);
}

#[test]
fn provider_errors_have_their_kind_wait_and_flags() {
    at_least(&check(&["corpus/provider-errors.jsonl"])["files"][0], 98.0);
}

#[test]
fn agent_logs_have_their_reason_and_wait() {
    at_least(&check(&["corpus/agent-logs.jsonl"])["files"][0], 97.0);
}

#[test]
fn tool_errors_have_their_category_with_and_without_the_flag() {
    let file = check(&["corpus/tool-errors.jsonl"])["files"][0].clone();
    at_least(&file, 95.0);
    at_least(&file["without_flag"], 90.0);
    assert_eq!(
        (&file["harmful"], &file["without_flag"]["harmful"]),
        (&0.into(), &0.into()),
        "no negative is given a class"
    );
}

/// Cases written without sight of the rules: they guard against rules that only know the corpus.
#[test]
fn cases_written_blind_hold_too() {
    let files = check(&[
        "corpus/blind/provider-errors.jsonl", "corpus/blind/agent-logs.jsonl",
        "corpus/blind/tool-errors.jsonl",
    ]);
    for file in files["files"].as_array().unwrap() {
        at_least(file, 95.0);
    }
    at_least(&files["files"][2]["without_flag"], 90.0);
    assert!(files["files"][2]["without_flag"]["harmful"].as_u64().unwrap() <= 3);
}

/// The page promises that its figures can be had again: what is lost or won changes the page.
#[test]
fn the_page_of_measures_has_the_scores_of_today() {
    let page = std::fs::read_to_string(repository("docs/measures.md")).unwrap();
    let row = |name: &str| page.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
    let files = |folder: &str| {
        let names = ["provider-errors", "agent-logs", "tool-errors"];
        let paths = names.map(|name| format!("{folder}/{name}.jsonl"));
        check(&paths.each_ref().map(String::as_str))["files"].clone()
    };
    let (corpus, blind) = (files("corpus"), files("corpus/blind"));
    let score = |of: &Value| format!("{} / {}", of["right"], of["cases"]);
    for (at, name) in
        ["provider answers", "agent logs", "tool outputs, with the error flag"].into_iter().enumerate()
    {
        let expected = format!("| {name} | {} | {} |", score(&corpus[at]), score(&blind[at]));
        assert_eq!(row(name), expected);
    }
    let (corpus, blind) = (&corpus[2]["without_flag"], &blind[2]["without_flag"]);
    let expected = format!(
        "| tool outputs, without it | {}, no harmless text given a class | {}, {} harmless texts given a class |",
        score(corpus),
        score(blind),
        blind["harmful"]
    );
    assert_eq!(row("tool outputs, without it"), expected);
    let tools =
        check(&["corpus/tool-args.jsonl", "corpus/tool-sequences.jsonl", "corpus/tool-sequences-long.jsonl"]);
    // The command sorts the files by their names.
    let tools = tools["files"].as_array().unwrap();
    let file = |name: &str| tools.iter().find(|file| file["file"].as_str().unwrap().ends_with(name)).unwrap();
    let sequences = file("tool-sequences.jsonl");
    for (name, of) in [
        ("arguments", file("tool-args.jsonl")),
        ("sequences, with the error flag", sequences),
        ("sequences, without it", &sequences["without_flag"]),
        ("long sequences, with the error flag and without it", file("tool-sequences-long.jsonl")),
    ] {
        assert_eq!(row(name), format!("| {name} | {} | {} |", score(of), of["harmful"]));
    }
}

#[test]
fn the_object_counts_per_file_and_family() {
    let value = check(&["corpus/agent-logs.jsonl", "corpus/tool-errors.jsonl"]);
    let cases = |value: &Value| value["cases"].as_u64().unwrap();
    let files = value["files"].as_array().unwrap();
    let passes = |file: &Value| {
        let second = &file["without_flag"];
        cases(file) + if second.is_null() { 0 } else { cases(second) }
    };
    assert_eq!(cases(&value), files.iter().map(passes).sum::<u64>());
    for file in files {
        let families = file["families"].as_object().unwrap();
        assert_eq!(cases(file), families.values().map(cases).sum::<u64>());
        assert!(file["harmful"].is_u64() && file["form"].is_string());
    }
}

/// The last line must not look better than the lines above it.
#[test]
fn the_total_counts_every_pass_and_every_harmful_answer() {
    let files = ["corpus/tool-args.jsonl", "corpus/tool-sequences.jsonl", "corpus/tool-errors.jsonl"]
        .map(|file| repository(file).display().to_string());
    let args: Vec<&str> = ["corpus", "check"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let out = run(&args);
    let counts = |line: &str| -> Vec<u64> {
        let words = line.split(['/', ' ']).filter_map(|word| word.parse().ok());
        words.take(3).collect()
    };
    let lines: Vec<&str> = out.text.lines().filter(|line| line.contains(" right, ")).collect();
    let (total, passes) = lines.split_last().unwrap();
    assert_eq!(passes.len(), 5, "{}", out.text);
    assert!(total.ends_with("total of all passes above"), "{total}");
    let sum = |at: usize| passes.iter().map(|line| counts(line)[at]).sum::<u64>();
    assert_eq!(counts(total), [sum(0), sum(1), sum(2)], "{}", out.text);
    assert!(sum(2) > 0, "a harmful answer is among them, or this test says nothing");
}

const WRONG: &str = r#"{"id":"x-1","log":"Error: boom\n","exit_code":1,"now":"2026-11-15T12:00:00Z","expect":{"reason":"quota","wait_seconds":5,"wait_tolerance":0}}"#;

#[test]
fn a_low_score_is_exit_1_and_shows_the_confusion() {
    let file = scratch("wrong.jsonl", WRONG);
    let out = run(&["corpus", "check", &file, "--min", "90", "--failures"]);
    assert_eq!(out.status, 1);
    for part in ["0/1 right", "1 × quota taken for error", "x-1: expected quota 5s, got error by log.unknown"]
    {
        assert!(out.text.contains(part), "{part} in\n{}", out.text);
    }
    assert_eq!(run(&["corpus", "check", &file]).status, 0, "without --min it only tells");
}

#[test]
fn a_broken_case_is_reported_with_its_line() {
    let calls = r#"{"id":"s","calls":[],"expect":{}}"#;
    for (name, text, part) in [
        ("broken.jsonl", format!("{WRONG}\n{{\"id\":"), ":2: "),
        ("fields.jsonl", "{\"id\":\"a\"}".to_owned(), ":1: no case of a known form"),
        ("calls.jsonl", calls.to_owned(), ":1: missing field `kind`"),
        ("empty.jsonl", "\n".to_owned(), "no case in this file"),
        ("now.jsonl", WRONG.replace("2026-11-15T12:00:00Z", "noon"), ":1: `noon` is no instant"),
    ] {
        let out = run(&["corpus", "check", &scratch(name, &text)]);
        assert_eq!(out.status, 2, "{name}");
        assert!(out.error.contains(part), "{name}: {}", out.error);
    }
}

#[test]
fn the_guide_counts_the_cases_right() {
    let guide = std::fs::read_to_string(repository("corpus/README.md")).unwrap();
    let rows = guide.lines().filter(|line| line.starts_with("| `"));
    let mut files = 0;
    for row in rows {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let file = cells.next().unwrap().trim_matches('`');
        let text = std::fs::read_to_string(repository("corpus").join(file)).unwrap();
        assert_eq!(cells.next().unwrap(), text.lines().count().to_string(), "{file}");
        files += 1;
    }
    assert_eq!(files, 9);
}

/// A wording that was misread becomes a case with its keys masked, and the case is filed with those of its form.
#[test]
fn a_misread_wording_is_written_down_and_filed() {
    let folder = std::path::PathBuf::from(scratch("learning-marker", "")).with_file_name("learning");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let (cases, to) = (folder.join("cases.jsonl"), folder.join("corpus"));
    std::fs::create_dir(&to).unwrap();
    let (cases, to) = (cases.display().to_string(), to.display().to_string());
    let log = "the flux is drained for today, key sk-ant-REDACTED\n";
    let explain = |should: &str, lang: &str| {
        let told = ["--exit-code", "1", "--now", "2026-11-15T12:00:00Z", "--kind", "log", "--lang", lang];
        let args = [&["explain", "-", "--cases", &cases, "--should-be", should][..], &told].concat();
        run_with(&args, &[], log)
    };

    let written = explain("quota", "en");
    assert_eq!(written.status, 1, "the explanation is as ever: {}", written.error);
    assert!(
        written.error.contains("own-quota-1") && written.error.contains("look at it"),
        "{}",
        written.error
    );
    let text = std::fs::read_to_string(&cases).unwrap();
    let case: Value = serde_json::from_str(text.trim()).unwrap();
    assert!(!text.contains("abcdefghijklmnop"), "{text}");
    assert!(case["log"].as_str().unwrap().contains("the flux is drained"), "{text}");
    assert_eq!((&case["expect"]["reason"], &case["exit_code"]), (&"quota".into(), &1.into()));

    let known = explain("error", "ja");
    assert!(known.error.contains("すでに error と判定"), "{}", known.error);
    let unknown = explain("quotta", "en");
    assert_eq!(unknown.status, 2);
    assert!(unknown.error.contains("quotta") && unknown.error.contains("rate_limit"), "{}", unknown.error);
    assert_eq!(std::fs::read_to_string(&cases).unwrap(), text, "neither of them wrote anything");

    let added = run(&["corpus", "add", &cases, "--to", &to, "--lang", "en"]);
    assert!(
        added.status == 0 && added.text.contains("Filed: 1, there already: 0"),
        "{}{}",
        added.text,
        added.error
    );
    let again = run(&["corpus", "add", &cases, "--to", &to, "--lang", "ja"]);
    assert!(again.text.contains("追加: 0 件、登録済み: 1 件"), "{}{}", again.text, again.error);
    let filed = format!("{to}/agent-logs.jsonl");
    let checked = json(&run(&["corpus", "check", "--format", "json", &filed]));
    assert_eq!(checked["files"][0]["cases"], 1);

    // One case that cannot be taken keeps all others out.
    for (bad, why) in [
        (
            text.replace("own-quota-1", "x-1").replace("\"quota\"", "\"quotta\"").replace("flux", "flax"),
            "quotta",
        ),
        (text.replace("flux", "flix"), "own-quota-1"),
        (text.replace("own-quota-1", "x-2").replace("the flux", "Bearer sk-ant-REDACTED"), "key"),
    ] {
        let good = text.replace("own-quota-1", "x-9").replace("flux", "flock");
        let both = scratch("learning-both.jsonl", &format!("{good}{bad}"));
        let refused = run(&["corpus", "add", &both, "--to", &to, "--lang", "en"]);
        assert!(
            refused.status == 2 && refused.error.contains(why),
            "{why}: {}{}",
            refused.text,
            refused.error
        );
        assert_eq!(std::fs::read_to_string(&filed).unwrap().lines().count(), 1, "{why}");
    }
}

/// An answer keeps its status and the headers about limits, and nothing about who asked.
#[test]
fn a_misread_answer_keeps_what_speaks_of_limits() {
    let cases = scratch("learning-answers.jsonl", "");
    let body = "HTTP/1.1 418 Odd\r\nRetry-After: 20\r\nX-Organization: secret-org\r\n\r\n{\"error\": {\"message\": \"the kettle is full\"}}";
    let out = run_with(
        &[
            "explain", "-", "--cases", &cases, "--should-be", "overloaded", "--now", "2026-11-15T12:00:00Z",
            "--lang", "en",
        ],
        &[],
        body,
    );
    let text = std::fs::read_to_string(&cases).unwrap();
    let case: Value =
        serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text} {}", out.error));
    assert_eq!((&case["status"], &case["headers"]["Retry-After"]), (&418.into(), &"20".into()));
    assert!(!text.contains("secret-org") && case["expect"]["failover"] == true, "{text}");
    assert!(json(&run(&["corpus", "check", "--format", "json", &cases]))["files"][0]["cases"] == 1);
}
