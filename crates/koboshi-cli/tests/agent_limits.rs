//! What an agent may take: memory, processes, time, silence, waiting for the network. Each limit ends the agent and everything that it
//! started, and the end says which one it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::supervised::{Home, QUICK, Supervisor, mark};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
/// After its first end an agent rests for longer than a test takes.
const ONCE: &str = "cooldown: {error: {initial: 1h, max: 1h}, network: {initial: 1h, max: 1h}}\n";

/// What the status says of the last run of an agent.
fn last(home: &Home, agent: &str) -> Value {
    let status = home.status();
    let agents = status["agents"].as_array().cloned().unwrap_or_default();
    agents.into_iter().find(|one| one["agent"] == agent).map(|mut one| one["last"].take()).unwrap_or_default()
}

#[test]
fn memory_of_the_whole_tree_is_limited() {
    let mut home = Home::new(ONCE);
    let greedy = ScriptedAgent::new(&mark("greedy")).eats(400 * MIB);
    let modest = ScriptedAgent::new(&mark("modest")).eats(20 * MIB);
    home.agent("greedy", &greedy, json!({"limits": {"memory": "96MiB"}}));
    home.agent("modest", &modest, json!({"limits": {"memory": "96MiB"}, "survives": false}));
    let supervisor = home.supervise();
    home.says("greedy/default: ended with exit code 137 (error, stopped for memory)");
    assert_eq!(greedy.left(), [0_i32; 0], "everything that it started is gone");
    let last = last(&home, "greedy/default");
    assert_eq!(
        (&last["stopped_for"], &last["rule"]),
        (&json!("memory"), &json!("supervise.memory")),
        "{last}"
    );
    assert_eq!(home.state_of("modest/default"), "running", "one that stays below goes on");
    supervisor.end();
}

#[test]
fn processes_are_limited_also_in_sessions_of_their_own() {
    let mut home = Home::new(ONCE);
    let breeder = ScriptedAgent::new(&mark("breeder")).breeds();
    let parent = ScriptedAgent::new(&mark("parent")).has_children(5);
    home.agent("breeder", &breeder, json!({"limits": {"pids": 30}}));
    home.agent("parent", &parent, json!({"limits": {"pids": 30}, "survives": false}));
    let supervisor = home.supervise();
    home.says("breeder/default: ended with exit code 137 (error, stopped for processes)");
    assert_eq!(breeder.left(), [0_i32; 0]);
    assert_eq!(last(&home, "breeder/default")["stopped_for"], "processes");
    assert_eq!(home.state_of("parent/default"), "running");
    supervisor.end();
}

#[test]
fn a_limit_holds_without_a_supervisor_and_the_next_one_says_so() {
    let mut home = Home::new(ONCE);
    let (ready, go_on) = (home.path("ready"), home.path("go-on"));
    let agent = ScriptedAgent::new(&mark("alone")).notes(&ready).waits_for(&go_on).eats(400 * MIB);
    home.agent("alone", &agent, json!({"limits": {"memory": "96MiB"}}));
    let mut first = home.supervise();
    until("it runs", || ready.exists().then_some(()));
    first.kill();
    fs::write(&go_on, "").unwrap();
    until("its shim ends it", || agent.left().is_empty().then_some(()));
    let second = home.supervise();
    home.says("alone/default: ended with exit code 137 (error, stopped for memory)");
    second.end();
}

#[test]
fn time_silence_and_waiting_for_the_network_are_limited() {
    let mut home = Home::new(ONCE);
    let talks = ScriptedAgent::new(&mark("talks")).says_for_ever("working");
    let silent = ScriptedAgent::new(&mark("silent")).says("hello").lives_on();
    // Codex waits for a network without an end of its own, and says so now and then.
    let waits = ScriptedAgent::new(&mark("waits"))
        .says(r#"{"type":"thread.started","thread_id":"t"}"#)
        .says_for_ever(r#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}"#);
    // Its own words, and the results of its tools, are no evidence of that.
    let tells = ScriptedAgent::new(&mark("tells"))
        .says(r#"{"type":"item.completed","item":{"type":"agent_message","text":"Reconnecting... waiting for network"}}"#)
        .says(r#"{"type":"item.completed","item":{"type":"command_execution","aggregated_output":"Reconnecting... waiting for network"}}"#)
        .says("Reconnecting... waiting for network (Connection failed: error sending request)")
        .lives_on();
    home.agent("talks", &talks, json!({"limits": {"run": "1s"}}));
    home.agent("silent", &silent, json!({"limits": {"silent": "1s"}}));
    // One that writes and makes no progress: the numbers of its lines are all that changes.
    let retries = "n=0; while :; do n=$((n+1)); echo \"attempt $n failed, trying again\"; sleep 0.05; done";
    let works = "n=a; while :; do n=a$n; echo \"did $n\"; sleep 0.05; done";
    for (name, script) in [("stuck", retries), ("works", works)] {
        home.agents[name] = json!({"command": ["sh", "-c", script], "gateway": false, "survives": false,
            "limits": {"silent": "1s"}});
    }
    home.agent("waits", &waits, json!({"kind": "codex", "limits": {"offline": "1s", "silent": "1h"}}));
    let offline = json!({"kind": "codex", "survives": false, "limits": {"offline": "1s", "silent": "1h"}});
    home.agent("tells", &tells, offline);
    let supervisor = home.supervise();
    for (agent, why, reason) in [
        ("talks", "run time", "error"),
        ("silent", "silence", "error"),
        ("waits", "offline", "network"),
        ("stuck", "silence", "error"),
    ] {
        home.says(&format!("{agent}/default: ended with exit code 143 ({reason}, stopped for {why})"));
        assert_eq!(last(&home, &format!("{agent}/default"))["stopped_for"], why.replace(' ', "_"), "{agent}");
    }
    assert_eq!(home.state_of("works/default"), "running", "one that says something new goes on");
    assert_eq!(
        home.state_of("tells/default"),
        "running",
        "one that only talks of a network goes on: {}",
        home.log()
    );
    supervisor.end();
}

#[test]
fn a_limit_in_mid_run_holds_queued_siblings_at_once() {
    let mut home = Home::new(QUICK);
    let (begun, sibling) = (home.path("begun"), home.path("sibling"));
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800,"rateLimitType":"five_hour"}}"#;
    let dry = ScriptedAgent::new(&mark("dry")).notes(&begun).says(event).lives_on();
    home.agent("dry", &dry, json!({"kind": "claude", "account": "main", "survives": false}));
    let next = ScriptedAgent::new(&mark("next")).notes(&sibling).exits(0);
    let asked = home.path("asked");
    let ask = json!(["test", "-e", asked.display().to_string()]);
    home.agent("next", &next, json!({"account": "main", "when": {"command": ask}}));
    let supervisor = home.supervise();
    home.says("Cooldown set for account:main");
    assert_eq!(home.state_of("dry/default"), "running", "it still runs");
    fs::write(&asked, "").unwrap();
    until("the sibling is held", || (home.state_of("next/default") == "held").then_some(()));
    assert!(!sibling.exists() && home.state_of("dry/default") == "running", "{}", home.log());
    assert_eq!(home.status()["rows"][0]["key"], "account:main");
    supervisor.end();
}

/// Where this machine lets us make groups of version 2, if it does; the same place as the shim of a test finds.
fn groups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let place = mounts.lines().find(|line| line.contains(" cgroup2 "))?.split(' ').nth(1)?.to_owned();
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let base = PathBuf::from(place).join(own.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let probe = base.join(format!("koboshi-test-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    fs::remove_dir(&probe).ok()?;
    Some(base)
}

#[test]
fn an_agent_with_limits_has_a_group_of_its_own_where_the_machine_allows_it() {
    let Some(base) = groups() else {
        println!("left out: this machine has no cgroup of version 2, or does not let us make one");
        return;
    };
    let mut home = Home::new(ONCE);
    let agent = ScriptedAgent::new(&mark("grouped")).leaves_a_stubborn_child_behind().lives_on();
    home.agent("grouped", &agent, json!({"limits": {"memory": "1GiB", "pids": 100}, "survives": false}));
    home.agent("free", &ScriptedAgent::new(&mark("free")).lives_on(), json!({"survives": false}));
    let supervisor = home.supervise();
    let group = until("it is in its group", || {
        let run = fs::read_dir(home.path("runs/agents/grouped/default")).ok()?.next()?.ok()?.path();
        let group = PathBuf::from(fs::read_to_string(run.join("cgroup")).ok()?);
        // The agent itself, and what it started in a session of its own.
        let inside = fs::read_to_string(group.join("cgroup.procs")).ok()?;
        let all = agent.left();
        (all.len() >= 3 && all.iter().all(|pid| inside.lines().any(|line| line == pid.to_string())))
            .then_some(group)
    });
    assert_eq!(group.parent(), Some(base.as_path()));
    let free = fs::read_dir(home.path("runs/agents/free/default")).unwrap().next().unwrap().unwrap().path();
    assert!(!free.join("cgroup").exists(), "one without limits costs no group");
    supervisor.end();
    assert!(!group.exists(), "it goes with its run");
    assert_eq!(agent.left(), [0_i32; 0]);
}

#[test]
fn a_supervisor_alone_in_its_group_makes_room_for_those_of_its_agents() {
    let Some(base) = groups() else {
        println!("left out: this machine has no cgroup of version 2, or does not let us make one");
        return;
    };
    let service = base.join(format!("koboshi-test-service-{}", std::process::id()));
    fs::create_dir(&service).unwrap();
    let mut home = Home::new(ONCE);
    let agent = ScriptedAgent::new(&mark("served")).lives_on();
    home.agent("served", &agent, json!({"limits": {"memory": "1GiB"}, "survives": false}));
    // As systemd starts a service: the process is in the group before it begins.
    let script = "echo 0 > $1/cgroup.procs; shift; exec \"$@\"";
    let (config, store) = (home.config(), home.store());
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", &service.display().to_string(), env!("CARGO_BIN_EXE_koboshi")]);
    command.args(["supervise", "--config", &config, "--store", &store]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = Supervisor(command.spawn().unwrap());
    until("the agent has a group beside its supervisor", || {
        let group = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let of_agent = agent.left().first().map(|pid| group(pid.unsigned_abs())).unwrap_or_default();
        let name = service.file_name()?.to_str()?;
        let aside = group(supervisor.0.id()).contains(&format!("/{name}/supervisor\n"));
        (aside && of_agent.contains(&format!("/{name}/koboshi-run-"))).then_some(())
    });
    supervisor.end();
    for group in [service.join("supervisor"), service] {
        until("the group is empty", || fs::remove_dir(&group).ok());
    }
}
