//! What agents write under `koboshi supervise`: as fast as they can, broken, or nothing at all. The agent is not held up, its log stays small,
//! and what is not in it is counted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::supervised::{Home, QUICK, mark};
use common::{FATAL_SIGNALS, run};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::{Value, json};

/// An agent that failed is not started again while the test runs.
const ONCE: &str = "cooldown: {error: {initial: 1h, max: 1h}}\n";

fn of<'s>(status: &'s Value, agent: &str) -> &'s Value {
    status["agents"].as_array().unwrap().iter().find(|one| one["agent"] == agent).unwrap()
}

/// The folder of its only run.
fn folder(home: &Home, agent: &str) -> PathBuf {
    let mut runs = fs::read_dir(home.path("runs/agents").join(agent)).unwrap();
    runs.next().unwrap().unwrap().path()
}

#[test]
fn a_gigabyte_is_read_its_log_stays_small_and_what_is_missing_is_counted() {
    const GIGABYTE: u64 = 1 << 30;
    let mut home = Home::new(ONCE);
    let last = "these are its last words";
    let flood =
        ScriptedAgent::new(&mark("flood")).says("first").floods(GIGABYTE).says("").says(last).exits(0);
    home.agent("flood", &flood, json!({"when": "once"}));
    let supervisor = home.supervise();
    home.says("flood/default: ended with exit code 0");
    let status = home.status();
    let end = &of(&status, "flood/default")["last"];
    let written = GIGABYTE + "first\n\n".len() as u64 + last.len() as u64 + 1;
    assert_eq!(end["written"], written, "all of it was read: {end}");
    let dropped = end["dropped"].as_u64().unwrap();
    assert!(dropped > GIGABYTE / 2, "{dropped}");
    assert!(home.log().contains(&format!("{dropped} bytes of output left out")), "{}", home.log());
    let files: Vec<PathBuf> = fs::read_dir(folder(&home, "flood/default"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("log"))
        .collect();
    let size: u64 = files.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!((1..=3).contains(&files.len()) && size < 40 << 20, "{files:?}: {size}");
    let shown = run(&["logs", "flood/default", "--store", &home.store()]).text;
    assert!(shown.ends_with(&format!("{last}\n")), "the end of a run is always in its log");
    assert!(shown.contains("bytes left out"), "the log says where something is missing");
    supervisor.end();
}

#[test]
fn half_a_character_an_endless_line_and_closed_streams_do_no_harm() {
    let mut home = Home::new(ONCE);
    let (closed, go_on) = (home.path("closed"), home.path("go-on"));
    let half = ScriptedAgent::new(&mark("half")).says("before").says_half_a_character().exits(3);
    let endless = ScriptedAgent::new(&mark("endless")).says_without_end(1 << 20).exits(4);
    let closer = ScriptedAgent::new(&mark("closer"))
        .says("before")
        .closes_its_streams()
        .notes(&closed)
        .waits_for(&go_on)
        .exits(5);
    home.agent("half", &half, json!({}));
    home.agent("endless", &endless, json!({}));
    home.agent("closer", &closer, json!({}));
    let supervisor = home.supervise();
    home.says("half/default: ended with exit code 3");
    home.says("endless/default: ended with exit code 4");
    until("it has closed its streams", || closed.exists().then_some(()));
    assert_eq!(home.state_of("closer/default"), "running", "an agent without streams is alive");
    fs::write(&go_on, "").unwrap();
    home.says("closer/default: ended with exit code 5");
    let logs = |agent: &str| run(&["logs", agent, "--store", &home.store()]).text;
    assert_eq!(logs("half/default"), "before\n\u{fffd}\n");
    assert_eq!(logs("closer/default"), "before\n");
    let status = home.status();
    let end = &of(&status, "endless/default")["last"];
    let in_log = logs("endless/default").trim_end().len() as u64;
    assert_eq!(end["dropped"].as_u64().unwrap() + in_log, 1 << 20, "{end}");
    supervisor.end();
}

#[test]
fn the_exit_code_names_the_signal_that_an_agent_died_of() {
    let mut home = Home::new(ONCE);
    for (name, _) in FATAL_SIGNALS {
        let agent = ScriptedAgent::new(&mark(name)).dies_of(name);
        home.agent(&name.to_lowercase(), &agent, json!({"when": "once"}));
    }
    let supervisor = home.supervise();
    for (name, number) in FATAL_SIGNALS {
        home.says(&format!("{}/default: ended with exit code {}", name.to_lowercase(), 128 + number));
    }
    supervisor.end();
}

#[test]
fn a_failure_that_exits_with_zero_puts_the_account_into_cooldown() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let event = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit · resets in 2h"}"#;
    let agent = ScriptedAgent::new(&mark("zero")).notes(&notes).says(event).exits(0);
    home.agent("zero", &agent, json!({"account": "main"}));
    let supervisor = home.supervise();
    home.says("Cooldown set for account:main");
    until("it is held", || (home.state_of("zero/default") == "held").then_some(()));
    assert_eq!(fs::read_to_string(&notes).unwrap().lines().count(), 1, "{}", home.log());
    supervisor.end();
}
