//! What an operator asks of agents and their runs: pause and resume, status, logs, journal.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::io::Read;
use std::process::Stdio;

use common::supervised::{Home, QUICK, mark};
use common::{Out, Running, json as document, koboshi, run};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::json;

/// A command with the store and the config of this home.
fn on(home: &Home, args: &[&str]) -> Out {
    let (store, config) = (home.store(), home.config());
    run(&[args, &["--store", &store, "--config", &config]].concat())
}

#[test]
fn an_agent_is_paused_and_resumed_by_its_name() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("paused")).notes(&notes).lives_on();
    home.agent("worker", &agent, json!({"projects": ["one", "two"], "account": "main", "survives": false}));
    assert_eq!(on(&home, &["pause", "worker/one", "--for", "2h", "--reason", "release day"]).status, 0);
    let supervisor = home.supervise();
    until("the other one runs", || (home.state_of("worker/two") == "running").then_some(()));
    until("it is held", || (home.state_of("worker/one") == "held").then_some(()));
    let status = on(&home, &["status", "agent:worker"]);
    assert!(status.status == 1 && status.text.contains("release day"), "{}", status.text);
    assert_eq!(on(&home, &["resume", "worker"]).status, 0);
    until("it runs, too", || (home.state_of("worker/one") == "running").then_some(()));
    assert_eq!(on(&home, &["status", "agent:worker"]).status, 0);
    for unknown in [&["pause", "nobody", "--for", "1h"][..], &["resume", "nobody"]] {
        assert_eq!(on(&home, unknown).status, 1, "{unknown:?}");
    }
    let unknown = on(&home, &["status", "agent:nobody"]);
    assert!(unknown.status == 2 && unknown.error.contains("nobody"), "{}{}", unknown.text, unknown.error);
    assert_eq!(on(&home, &["cool", "account:main", "--for", "1h"]).status, 0, "an account of agents");
    supervisor.end();
}

#[test]
fn logs_are_shown_of_each_run_and_followed_to_the_end() {
    let mut home = Home::new(QUICK);
    let (go, end) = (home.path("go"), home.path("end"));
    let agent = ScriptedAgent::new(&mark("logs"))
        .says("first words")
        .waits_for(&go)
        .says("last words")
        .waits_for(&end)
        .exits(0);
    home.agent("talker", &agent, json!({"projects": ["one", "two"], "when": "once", "survives": false}));
    let supervisor = home.supervise();
    let shown = |args: &[&str]| on(&home, &[&["logs"], args].concat());
    until("it talks", || shown(&["talker/one"]).text.contains("first words").then_some(()));
    for (lang, words) in [("en", "several projects"), ("ja", "複数のプロジェクト")] {
        let several = shown(&["talker", "--lang", lang]);
        assert!(several.status == 2 && several.error.contains(words), "{}", several.error);
        assert!(several.error.contains("talker/one, talker/two"), "{}", several.error);
    }
    let store = home.store();
    let mut command = koboshi(&["logs", "talker/one", "-f", "--store", &store]);
    let mut follower = Running::start(command.stdout(Stdio::piped()).stdin(Stdio::null()));
    fs::write(&go, "").unwrap();
    until("it says more", || shown(&["talker/one"]).text.contains("last words").then_some(()));
    fs::write(&end, "").unwrap();
    let mut text = String::new();
    follower.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(follower.wait().unwrap().success(), "it ends with the run");
    assert_eq!(text, "first words\nlast words\n");
    fs::remove_file(&end).unwrap();
    fs::remove_file(&go).unwrap();
    assert_eq!(home.order("start", "talker/one").status, 0);
    until("the next run is the newest", || (shown(&["talker/one"]).text == "first words\n").then_some(()));
    assert_eq!(shown(&["talker/one", "--run", "2"]).text, text);
    let whole = document(&shown(&["talker/one", "--run", "2", "--format", "json"]));
    assert_eq!(whole["lines"], json!(["first words", "last words"]));
    let beyond = shown(&["talker/one", "--run", "9"]);
    assert!(beyond.status == 2 && beyond.error.contains("has no run 9"), "{}", beyond.error);
    supervisor.end();
}

#[test]
fn the_journal_of_an_agent_has_all_of_its_projects_and_a_mistyped_kind_is_refused() {
    let mut home = Home::new("cooldown: {min_run: 0s}\n");
    let agent = ScriptedAgent::new(&mark("journal")).exits(0);
    for name in ["writer", "writer2"] {
        home.agent(name, &agent, json!({"projects": ["one", "two"], "when": "once"}));
    }
    let supervisor = home.supervise();
    for name in ["writer", "writer2"] {
        until("both projects ended", || {
            let lines =
                on(&home, &["journal", "--agent", name, "--kind", "succeeded", "--format", "json"]).text;
            (lines.lines().count() == 2).then_some(())
        });
    }
    assert_eq!(on(&home, &["journal", "--agent", "writer/one", "--format", "json"]).text.lines().count(), 1);
    let wrong = on(&home, &["journal", "--kind", "rate_limit_"]);
    assert!(wrong.status == 2 && wrong.error.contains("rate_limited"), "{}{}", wrong.text, wrong.error);
    assert_eq!(on(&home, &["journal", "--kind", "rate_limited"]).status, 0, "an error that never came");
    supervisor.end();
}

#[test]
fn a_program_that_does_not_exist_is_named_by_status_and_journal() {
    let mut home = Home::new("");
    home.agents["typo"] = json!({"command": ["no-such-program", "-p"], "gateway": false});
    let supervisor = home.supervise();
    until("it is parked", || (home.state_of("typo/default") == "parked").then_some(()));
    for command in [&["status"][..], &["journal", "--agent", "typo"]] {
        // Entries of the journal reach the store a little later.
        until("the program is named", || {
            on(&home, command).text.contains("no-such-program was not found").then_some(())
        });
    }
    supervisor.end();
}

/// `koboshi status` tells of each agent how its last run ended, and why that was believed.
#[test]
fn status_shows_the_last_end_with_the_rule_and_the_line_that_decided() {
    let mut home = Home::new("");
    let line = "TerminalQuotaError: You have exhausted your capacity. Your quota will reset after 22m55s.";
    let dry = ScriptedAgent::new(&mark("told")).says("before").complains(line).exits(3);
    home.agent("dry", &dry, json!({"account": "main", "when": "once"}));
    let supervisor = home.supervise();
    home.says("dry/default: ended with exit code 3 (quota)");
    let said = on(&home, &["status", "--lang", "en"]).text;
    let at = said.lines().position(|line| line.starts_with("dry/default")).unwrap();
    let told: Vec<&str> = said.lines().skip(at + 1).take(2).collect();
    assert!(told[0].starts_with("    last run: ended ") && told[0].contains("exit code 3: quota"), "{said}");
    let whole = home.status();
    let rule = whole["agents"][0]["last"]["rule"].as_str().unwrap();
    assert!(told[0].ends_with(&format!(" · rule {rule}")), "{said}");
    assert_eq!(told[1], format!("    │ {line}"), "{said}");
    let japanese = on(&home, &["status", "--lang", "ja"]).text;
    assert!(japanese.contains("前回の実行: ") && japanese.contains("終了コード 3"), "{japanese}");
    supervisor.end();
}
