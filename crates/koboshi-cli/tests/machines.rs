//! Agents that may run on any machine: real supervisors with state folders of their own, and a real Redis that they share.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::Path;

use common::supervised::{Home, QUICK, Supervisor};
use koboshi_testkit::{RedisServer, signal, until};
use serde_json::{Value, json};

/// An agent that makes a folder while it runs: who finds it there runs beside another one. It notes its start with the fence.
fn agent(work: &Path, name: &str, life: &str) -> Value {
    let script = format!(
        "cd {}; mkdir {name}.lock 2>/dev/null || echo {name} >> twice; echo $KOBOSHI_FENCE >> {name}.starts; \
         trap 'rmdir {name}.lock; exit 9' TERM; {life}; rmdir {name}.lock",
        work.display()
    );
    json!({
        "command": ["bash", "-c", script], "gateway": false, "run_on": "any", "takeover": "3s", "stop": {"grace": "500ms"},
    })
}

fn machine(server: &RedisServer, agents: &Value) -> Home {
    let mut home = Home::sharing(&server.url(), QUICK);
    home.agents = agents.clone();
    home
}

fn starts(work: &Path, name: &str) -> Vec<u64> {
    let text = fs::read_to_string(work.join(format!("{name}.starts"))).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn nothing_ran_twice(work: &Path) {
    assert_eq!(fs::read_to_string(work.join("twice")).unwrap_or_default(), "", "two of one agent at once");
}

/// Which of two machines runs an agent, once one of them does.
fn running<'h>(homes: [&'h Home; 2], agent: &str) -> (&'h Home, &'h Home) {
    let [one, two] = homes;
    until("one of them runs it", || {
        if one.state_of(agent) == "running" {
            Some((one, two))
        } else {
            (two.state_of(agent) == "running").then_some((two, one))
        }
    })
}

#[test]
fn an_agent_for_any_machine_runs_on_one_and_goes_to_another_when_that_ends() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let agents = json!({"a": agent(work.path(), "a", "sleep 3600 & wait $!")});
    let (first, second) = (machine(&server, &agents), machine(&server, &agents));
    let (mut one, mut two) = (Some(first.supervise()), Some(second.supervise()));
    let (here, there) = running([&first, &second], "a/default");
    until("the other one waits", || (there.state_of("a/default") == "held").then_some(()));
    until("it has begun", || (starts(work.path(), "a").len() == 1).then_some(()));
    // The supervisor ends for good, and takes its agent with it.
    let of_here = if std::ptr::eq(here, &first) { &mut one } else { &mut two };
    here.order_here("stop", "a");
    until("it is stopped", || (here.state_of("a/default") == "stopped").then_some(()));
    of_here.take().unwrap().end();
    until("the other one runs it", || (there.state_of("a/default") == "running").then_some(()));
    let fences = until("it has begun", || Some(starts(work.path(), "a")).filter(|fences| fences.len() == 2));
    assert!(fences[0] < fences[1], "{fences:?}");
    nothing_ran_twice(work.path());
    there.order_here("stop", "a");
    [one, two].into_iter().flatten().for_each(Supervisor::end);
}

#[test]
fn a_supervisor_that_slept_and_woke_does_not_run_an_agent_twice() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let agents = json!({"a": agent(work.path(), "a", "sleep 3600 & wait $!")});
    let (first, second) = (machine(&server, &agents), machine(&server, &agents));
    let sleeper = first.supervise();
    until("it runs", || (first.state_of("a/default") == "running").then_some(()));
    let other = second.supervise();
    until("the other one waits", || (second.state_of("a/default") == "held").then_some(()));
    for (asleep, asleep_home, awake) in [(&sleeper, &first, &second), (&other, &second, &first)] {
        let before =
            until("it has begun", || Some(starts(work.path(), "a").len()).filter(|count| *count > 0));
        signal(&asleep.0, "-STOP");
        until("another one runs it", || (awake.state_of("a/default") == "running").then_some(()));
        until("it has begun there", || (starts(work.path(), "a").len() > before).then_some(()));
        nothing_ran_twice(work.path());
        signal(&asleep.0, "-CONT");
        until("the one that woke waits", || (asleep_home.state_of("a/default") == "held").then_some(()));
        assert_eq!(starts(work.path(), "a").len(), before + 1, "{}", asleep_home.log());
        assert_eq!(awake.state_of("a/default"), "running");
        asleep_home.says("a/default: ended with exit code 9 (stopped, stopped for lease)");
    }
    let fences = starts(work.path(), "a");
    assert!(fences.is_sorted() && fences.len() == 3, "{fences:?}");
    nothing_ran_twice(work.path());
    first.order_here("stop", "a");
    second.order_here("stop", "a");
    sleeper.end();
    other.end();
}

#[test]
fn a_supervisor_that_is_killed_takes_its_agent_over_when_it_is_back_in_time() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let agents = json!({"a": agent(work.path(), "a", "sleep 3600 & wait $!")});
    let home = machine(&server, &agents);
    let mut first = home.supervise();
    until("it runs", || (home.state_of("a/default") == "running").then_some(()));
    first.kill();
    let second = home.supervise();
    home.says("a/default: taken over");
    // Longer than the lease that the first one took.
    let folder = home.path("state/koboshi/runs/agents/a/default");
    let run = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let until_ms = || -> u64 {
        let text = fs::read_to_string(run.join("lease")).unwrap_or_default();
        serde_json::from_str::<Value>(&text).ok().and_then(|term| term["until_ms"].as_u64()).unwrap_or(0)
    };
    let begun = until_ms();
    until("it is renewed", || (until_ms() > begun + 3000).then_some(()));
    assert_eq!((home.state_of("a/default").as_str(), starts(work.path(), "a").len()), ("running", 1));
    home.order_here("stop", "a");
    second.end();
}

/// No test can put a machine to sleep, but the kernel tells which clock a process waits by.
#[test]
fn the_end_of_a_lease_is_waited_for_by_a_clock_that_goes_on_while_the_machine_sleeps() {
    /// `CLOCK_BOOTTIME`.
    const GOES_ON: &str = "7";
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let home = machine(&server, &json!({"a": agent(work.path(), "a", "sleep 3600 & wait $!")}));
    let supervisor = home.supervise();
    until("it runs", || (home.state_of("a/default") == "running").then_some(()));
    let folder = home.path("state/koboshi/runs/agents/a/default");
    let run = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let shim = until("its shim is known", || {
        let running: Value = serde_json::from_slice(&fs::read(run.join("shim.json")).ok()?).ok()?;
        running["shim"]["pid"].as_i64()
    });
    let timer = until("its shim has a timer that runs", || {
        let entries = fs::read_dir(format!("/proc/{shim}/fdinfo")).unwrap().flatten();
        let mut texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        texts.find(|text| text.contains("it_value:") && !text.contains("it_value: (0, 0)"))
    });
    let field =
        |name: &str| timer.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(field("clockid:"), GOES_ON, "{timer}");
    let left = field("it_value:");
    let seconds: u64 = left.trim_matches(['(', ')']).split(',').next().unwrap().parse().unwrap();
    assert!(seconds < 3, "it is due before the lease ends: {timer}");
    home.order_here("stop", "a");
    supervisor.end();
}

#[test]
fn what_one_machine_finished_is_not_done_again_by_the_next() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let mut once = agent(work.path(), "once", "true");
    once["when"] = json!("once");
    let agents = json!({"once": once});
    let first = machine(&server, &agents);
    let one = first.supervise();
    first.says("once/default: ended with exit code 0");
    one.end();
    let second = machine(&server, &agents);
    let two = second.supervise();
    until("it knows", || (second.state_of("once/default") == "waiting").then_some(()));
    assert_eq!(starts(work.path(), "once").len(), 1, "{}", second.log());
    two.end();
}

#[test]
fn agents_with_host_names_run_on_these_alone() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let mut home = Home::new(QUICK);
    let sleeps = |run_on: Value| json!({"command": ["sleep", "3600"], "gateway": false, "survives": false, "run_on": run_on});
    home.agents = json!({
        "here": sleeps(json!([host, "elsewhere"])), "whole": sleeps(json!(format!("{host}.example.com"))),
        "elsewhere": sleeps(json!("elsewhere")),
    });
    let supervisor = home.supervise();
    until("both run", || {
        let all = ["here", "whole"].map(|name| home.state_of(&format!("{name}/default")) == "running");
        (all == [true; 2]).then_some(())
    });
    assert_eq!(home.status()["agents"].as_array().unwrap().len(), 2, "{}", home.status());
    supervisor.end();
}

#[test]
fn what_is_wrong_with_the_network_of_one_machine_holds_no_agent_of_another() {
    let server = RedisServer::start();
    let rests = "cooldown: {network: {initial: 1h, max: 1h}, error: {initial: 1h, max: 1h}}\n";
    let (mut first, mut second) = (Home::sharing(&server.url(), rests), Home::sharing(&server.url(), rests));
    let lost = "echo 'API Error: Unable to connect to API (ECONNREFUSED)' >&2; exit 1";
    let broken = "echo 'Error: the parser is broken' >&2; exit 1";
    let agent = |script: &str| json!({"command": ["sh", "-c", script], "gateway": false, "survives": false});
    first.agents = json!({"cut-off": agent(lost), "broken": agent(broken)});
    second.agents = json!({"cut-off": agent("sleep 3600"), "broken": agent("sleep 3600")});
    let one = first.supervise();
    first.says("cut-off/default: ended with exit code 1 (network)");
    for name in ["cut-off/default", "broken/default"] {
        until("it is held where it failed", || (first.state_of(name) == "held").then_some(()));
    }
    let two = second.supervise();
    until("it runs elsewhere", || (second.state_of("cut-off/default") == "running").then_some(()));
    until("a failure of its own is known", || (second.state_of("broken/default") == "held").then_some(()));
    let rows = second.status()["rows"].clone();
    let keys: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["key"]).collect();
    assert_eq!(keys, [&json!("agent:broken/default")]);
    one.end();
    two.end();
}
