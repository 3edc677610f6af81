//! What the supervisor's policies do with real processes: backoff, parking, what is forgotten, which key is in cooldown, whose turn it is.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::Path;

use common::run;
use common::supervised::{Home, QUICK, mark};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::{Value, json};

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn failing(name: &str, notes: &Path, said: &str) -> ScriptedAgent {
    ScriptedAgent::new(&mark(name)).notes(notes).complains(said).exits(1)
}

/// The settings of these errors of an agent's own.
fn errors(settings: &str) -> String {
    format!("cooldown: {{max_starts: 100000, jitter: 0, error: {{{settings}}}}}\n")
}

#[test]
fn after_several_failures_in_a_row_it_is_parked_until_the_command_that_is_shown_resumes_it() {
    let mut home = Home::new(&errors("initial: 20ms, max: 20ms, park_after: 3"));
    let notes = home.path("notes");
    home.agent("fails", &failing("parks", &notes, "Error: the parser is broken"), json!({}));
    let supervisor = home.supervise();
    for round in 1..=2 {
        until("it is parked", || (home.state_of("fails/default") == "parked").then_some(()));
        assert_eq!(lines(&notes), 3 * round, "{}", home.log());
        let status = run(&["status", "--lang", "en", "--store", &home.store()]).text;
        let command = status.lines().find_map(|line| line.split_once("koboshi resume ")).unwrap().1;
        let key = command.split_whitespace().next().unwrap();
        assert_eq!(key, "agent:fails/default", "{status}");
        assert_eq!(run(&["resume", key, "--store", &home.store()]).status, 0);
        until("it is started again", || (lines(&notes) > 3 * round).then_some(()));
    }
    supervisor.end();
}

#[test]
fn the_cooldown_after_failures_grows_to_its_maximum() {
    let mut home = Home::new(&errors("initial: 500ms, multiplier: 2, max: 2s, park_after: off"));
    let times = home.path("times");
    let script = format!("date +%s%N >> {}; echo 'Error: the parser is broken' >&2; exit 1", times.display());
    home.agents["fails"] = json!({"command": ["sh", "-c", script], "gateway": false});
    let supervisor = home.supervise();
    until("it was started often", || (lines(&times) >= 5).then_some(()));
    supervisor.end();
    let text = fs::read_to_string(&times).unwrap();
    let starts: Vec<u64> = text.lines().map(|line| line.parse::<u64>().unwrap() / 1_000_000).collect();
    // Never earlier than that; how much later is the machine's.
    for (pair, least) in starts.windows(2).zip([500, 1000, 2000, 2000]) {
        assert!(pair[1] - pair[0] >= least, "{starts:?}");
    }
    home.says("Cooldown set for fails/default: 2s (reason: error, consecutive: 4)");
}

#[test]
fn a_healthy_run_makes_earlier_failures_forgotten() {
    let settings = "cooldown: {max_starts: 100000, min_healthy_run: 500ms, error: {initial: 20ms, max: 20ms, park_after: 3}}\n";
    let mut home = Home::new(settings);
    let notes = home.path("notes");
    // Every second run lasts: without it the third failure would park the agent.
    let script = format!(
        "echo >> {0}; [ $(($(wc -l < {0}) % 2)) = 1 ] || sleep 0.7; echo 'Error: the parser is broken' >&2; exit 1",
        notes.display()
    );
    home.agents["recovers"] = json!({"command": ["sh", "-c", script], "gateway": false});
    let supervisor = home.supervise();
    until("it goes on", || (lines(&notes) >= 6).then_some(()));
    assert!(!home.log().contains("consecutive: 3"), "{}", home.log());
    supervisor.end();
}

#[test]
fn limits_are_never_counted_as_failures_and_a_full_context_parks_at_once() {
    let settings = "cooldown: {max_starts: 100000, error: {park_after: 2}, quota: {initial: 20ms, max: 20ms}, rate_limit: {initial: 20ms, max: 20ms}}\n";
    let mut home = Home::new(settings);
    let (quota, rate, full) = (home.path("quota"), home.path("rate"), home.path("full"));
    let said = "TerminalQuotaError: You have exhausted your capacity on this model.";
    home.agent("quota", &failing("limits-quota", &quota, said), json!({"account": "one"}));
    let said = "API Error: 429 rate_limit_error";
    home.agent("rate", &failing("limits-rate", &rate, said), json!({"account": "two"}));
    let said = "API Error: 400 prompt is too long: 250000 tokens > 200000 maximum";
    home.agent("full", &failing("limits-full", &full, said), json!({"account": "three"}));
    let supervisor = home.supervise();
    until("limits go on", || (lines(&quota) >= 4 && lines(&rate) >= 4).then_some(()));
    until("it is parked", || (home.state_of("full/default") == "parked").then_some(()));
    assert_eq!(lines(&full), 1, "{}", home.log());
    for name in ["quota/default", "rate/default"] {
        assert_ne!(home.state_of(name), "parked");
    }
    let rows = home.status()["rows"].as_array().unwrap().clone();
    let of_agents: Vec<&Value> = rows
        .iter()
        .map(|row| &row["key"])
        .filter(|key| key.as_str().unwrap().starts_with("agent:"))
        .collect();
    assert_eq!(of_agents, [&json!("agent:full/default")], "limits are their accounts'");
    supervisor.end();
}

#[test]
fn a_limit_of_one_model_holds_the_agents_that_ask_it_and_no_other() {
    let mut home = Home::new("");
    let (first, same, other, asked) =
        (home.path("first"), home.path("same"), home.path("other"), home.path("asked"));
    let said = "You've hit your Opus limit · resets 9:27pm (UTC)";
    let with = |model: &str| json!({"account": "main", "model": model, "survives": false});
    home.agent("first", &failing("model-first", &first, said), with("opus"));
    for (name, notes, model) in [("same", &same, "opus"), ("other", &other, "haiku")] {
        let mut settings = with(model);
        settings["when"] =
            json!({"command": ["test", "-e", asked.display().to_string()], "interval": "50ms"});
        home.agent(name, &ScriptedAgent::new(&mark(name)).notes(notes).lives_on(), settings);
    }
    let supervisor = home.supervise();
    home.says("Cooldown set for model:main/opus");
    fs::write(&asked, "").unwrap();
    until("the other one runs", || (lines(&other) == 1).then_some(()));
    until("the one with this model is held", || (home.state_of("same/default") == "held").then_some(()));
    assert_eq!((lines(&first), lines(&same)), (1, 0), "{}", home.log());
    supervisor.end();
}

#[test]
fn agents_that_share_one_place_take_turns() {
    let settings = "cooldown: {max_starts: 100000, min_run: 0s}\naccounts: {main: {concurrency: 1}}\n";
    let mut home = Home::new(settings);
    let (names, turns) = (["one", "two", "three", "four"], home.path("turns"));
    for name in names {
        let script = format!("echo {name} >> {}", turns.display());
        home.agents[name] = json!({"command": ["sh", "-c", script], "gateway": false, "account": "main"});
    }
    let supervisor = home.supervise();
    until("there were many turns", || (lines(&turns) >= 24).then_some(()));
    supervisor.end();
    let text = fs::read_to_string(&turns).unwrap();
    let all: Vec<&str> = text.lines().collect();
    for round in all.chunks_exact(names.len()) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, ["four", "one", "three", "two"], "each has a turn in every round: {all:?}");
    }
}

/// The projects in which an agent runs, with their processes.
fn running(home: &Home, agent: &str) -> Vec<(String, i64)> {
    let agents = home.status()["agents"].as_array().cloned().unwrap_or_default();
    let name = |one: &Value| one["agent"].as_str().unwrap().to_owned();
    let its = agents.iter().filter(|one| one["state"] == "running" && name(one).starts_with(agent));
    its.map(|one| (name(one), one["pid"].as_i64().unwrap_or_default())).collect()
}

#[test]
fn an_agent_runs_in_as_many_of_its_projects_at_once_as_it_may() {
    let mut home = Home::new(QUICK);
    let projects = ["a", "b", "c", "d"];
    let go = home.path("go");
    let agent = ScriptedAgent::new(&mark("crew")).waits_for(&go).exits(0);
    home.agent(
        "crew",
        &agent,
        json!({"projects": projects, "concurrency": 2, "when": "once", "survives": false}),
    );
    home.agent(
        "free",
        &ScriptedAgent::new(&mark("free")).lives_on(),
        json!({"projects": projects, "survives": false}),
    );
    let supervisor = home.supervise();
    until("the others run in all", || (running(&home, "free/").len() == 4).then_some(()));
    home.says("crew/c: waits, held by the concurrency of crew");
    home.says("crew/d: waits, held by the concurrency of crew");
    let before = until("two run", || Some(running(&home, "crew/")).filter(|all| all.len() == 2));
    assert!(before.iter().map(|(name, _)| name).eq(["crew/a", "crew/b"]), "{before:?}");
    home.agents["crew"]["concurrency"] = json!(3);
    let config = home.config();
    let reloaded = run(&["reload", "--config", &config, "--store", &home.store()]);
    assert_eq!(reloaded.status, 0, "{}", reloaded.error);
    let after = until("three run", || Some(running(&home, "crew/")).filter(|all| all.len() >= 3));
    assert!(
        after.len() == 3 && before.iter().all(|one| after.contains(one)),
        "no run is restarted: {after:?}"
    );
    fs::write(&go, "").unwrap();
    home.says("crew/d: ended with exit code 0");
    supervisor.end();
}
