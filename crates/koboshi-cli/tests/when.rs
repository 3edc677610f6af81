//! When agents are started: by a schedule, by a program that is asked, by an MCP server.
//!
//! Schedules have minutes, so in the ordinary tier only times that have passed are made up for; the long tier waits for the next one.
//! The MCP server of these tests is a few lines of Python without a library; the
//! official SDKs are asked in `tests/mcp/run.py`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::supervised::{Home, QUICK, mark};
use common::{run, scratch};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::{Value, json};

fn lines(file: &PathBuf) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn a_time_that_was_missed_is_made_up_for_once_and_others_wait_for_theirs() {
    let mut home = Home::new(QUICK);
    let (yearly, late) = (home.path("yearly"), home.path("late"));
    let notes = |name: &str, file: &PathBuf| ScriptedAgent::new(&mark(name)).notes(file).exits(0);
    home.agent("yearly", &notes("yearly", &yearly), json!({"when": "0 0 1 1 * Asia/Tokyo"}));
    home.agent("late", &notes("late", &late), json!({"when": {"schedule": "0 0 1 * *", "missed": "run"}}));
    // The last run of `late`, as an earlier supervisor left it.
    let folder = home.path("runs/agents/late/default/00000000000000000001");
    fs::create_dir_all(&folder).unwrap();
    let end = json!({"how": {"exited": 0}, "started": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:00:01Z", "ran_ms": 1000, "asked": false});
    fs::write(folder.join("spec.json"), "{}").unwrap();
    fs::write(folder.join("end.json"), end.to_string()).unwrap();
    fs::write(folder.join("judged"), json!({"ended_well": true}).to_string()).unwrap();
    let supervisor = home.supervise();
    home.says("late/default: ended with exit code 0");
    until("it waits for its next time", || (home.state_of("late/default") == "waiting").then_some(()));
    assert_eq!(lines(&late), 1);
    assert!(!yearly.exists(), "{}", home.log());
    assert_eq!(home.state_of("yearly/default"), "waiting");
    supervisor.end();
}

#[test]
fn a_time_that_comes_while_the_agent_runs_is_left_out_waited_for_or_replaces_the_run() {
    let mut home = Home::new(QUICK);
    let go = home.path("go");
    let names = ["skip", "wait", "replace"];
    for name in names {
        let agent = ScriptedAgent::new(&mark(&format!("overlap-{name}")))
            .notes(&home.path(name))
            .waits_for(&go)
            .exits(0);
        let when = json!({"schedule": "0 0 1 * *", "missed": "run", "overlap": name});
        home.agent(name, &agent, json!({"when": when}));
    }
    let first = home.supervise();
    for name in names {
        until("it is started", || (home.order("start", name).status == 0).then_some(()));
    }
    let runs = |name: &str| lines(&home.path(name));
    until("they run", || {
        let run = |name: &&str| runs(name) == 1 && home.state_of(&format!("{name}/default")) == "running";
        names.iter().all(run).then_some(())
    });
    first.end();
    // As if they had been started long ago: a time of their schedule has come since.
    for name in names {
        let folder = home.path("runs/agents").join(name).join("default");
        let run = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path().join("shim.json");
        let mut running: Value = serde_json::from_slice(&fs::read(&run).unwrap()).unwrap();
        running["started"] = json!("2026-01-01T12:00:00Z");
        fs::write(&run, running.to_string()).unwrap();
    }
    let next = home.supervise();
    home.says("replace/default: ended with exit code 143 (stopped");
    until("its next run has begun", || (runs("replace") == 2).then_some(()));
    assert_eq!((runs("skip"), runs("wait")), (1, 1), "the others go on: {}", home.log());
    fs::write(&go, "").unwrap();
    until("the next run follows the end", || (runs("wait") == 2).then_some(()));
    home.says("skip/default: ended with exit code 0");
    until("it waits for its next time", || (home.state_of("skip/default") == "waiting").then_some(()));
    until("so do the others", || {
        names.iter().all(|name| home.state_of(&format!("{name}/default")) == "waiting").then_some(())
    });
    assert_eq!(names.map(runs), [1, 2, 2], "{}", home.log());
    next.end();
}

/// Up to a minute passes: in the long tier alone.
#[test]
fn an_agent_is_started_at_the_next_time_of_its_schedule_and_not_before() {
    if std::env::var_os("KOBOSHI_AGENT_CHAOS").is_none() {
        return;
    }
    let mut home = Home::new(QUICK);
    let starts = home.path("starts");
    let script = format!("date +%s >> {}", starts.display());
    home.agents["minutely"] = json!({"command": ["sh", "-c", script], "gateway": false, "when": "* * * * *"});
    #[expect(clippy::disallowed_methods, reason = "a schedule goes by the real clock")]
    let begun = jiff::Timestamp::now().as_second();
    let supervisor = home.supervise();
    let text =
        until("it was started", || fs::read_to_string(&starts).ok().filter(|text| text.ends_with('\n')));
    let at: i64 = text.lines().next().unwrap().parse().unwrap();
    assert!(at >= (begun / 60 + 1) * 60, "{begun} {at}");
    supervisor.end();
}

#[test]
fn a_schedule_that_cannot_be_used_is_refused_with_its_place() {
    for (when, said) in [
        ("0 3 * * * Mars/Olympus", "there is no time zone `Mars/Olympus`"),
        ("99 3 * * *", "0..=59"),
        ("0 0 30 2 *", "no such time comes"),
    ] {
        let text = format!("agents:\n  a:\n    command: [a]\n    when: \"{when}\"\n");
        let out = run(&["check", &scratch("when.yaml", &text)]);
        assert_eq!(out.status, 1, "{}{}", out.text, out.error);
        let all = out.text + &out.error;
        assert!(all.contains(said) && all.contains(":4:"), "{when}: {all}");
    }
    let two = "agents:\n  a:\n    command: [a]\n    when: {schedule: once, command: [b]}\n";
    let out = run(&["check", &scratch("two.yaml", two)]);
    assert!((out.text + &out.error).contains("says when the agent is started, and so does"));
}

#[test]
fn a_program_that_hangs_or_is_missing_starts_nothing_and_is_told_once() {
    let mut home = Home::new(QUICK);
    let (ran, ready) = (home.path("ran"), home.path("ready"));
    let agent = ScriptedAgent::new(&mark("asked")).notes(&ran).exits(0);
    let ask = json!(["test", "-e", ready.display().to_string()]);
    home.agent("asked", &agent, json!({"when": {"command": ask, "interval": "50ms"}}));
    home.agent("missing", &agent, json!({"when": {"command": ["/there/is/none"], "interval": "50ms"}}));
    let supervisor = home.supervise();
    home.says("missing/default: cannot ask whether it is wanted");
    assert!(!ran.exists());
    fs::write(&ready, "").unwrap();
    until("it ran", || ran.exists().then_some(()));
    assert_eq!(home.log().matches("missing/default: cannot ask").count(), 1, "{}", home.log());
    supervisor.end();
}

/// A server that speaks MCP on its streams: what it says about agents stands in a file; with other words in it, it misbehaves.
const SERVER: &str = r#"
import json, os, sys
state, calls = sys.argv[1:]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message["method"], {}
    word = open(state).read().strip()
    if word == "mute":
        continue
    if word == "garbage":
        print("Traceback (most recent call last): }{\x00", flush=True)
        continue
    if method == "initialize":
        answer = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/call":
        if word == "die":
            os._exit(1)
        with open(calls, "a") as file:
            file.write(json.dumps(message["params"]) + "\n")
        answer = {"content": [{"type": "text", "text": json.dumps({"action": word})}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"#;

/// A home whose agent asks the server above.
fn asked(word: &str) -> (Home, PathBuf, PathBuf, PathBuf) {
    let mut home = Home::new(QUICK);
    let (state, calls, ran) = (home.path("word"), home.path("calls"), home.path("ran"));
    fs::write(&state, word).unwrap();
    let server = home.path("server.py");
    fs::write(&server, SERVER).unwrap();
    let command: Vec<String> = [
        "python3".into(),
        server.display().to_string(),
        state.display().to_string(),
        calls.display().to_string(),
    ]
    .to_vec();
    let agent = ScriptedAgent::new(&mark(&format!("mcp-{word}"))).notes(&ran).lives_on();
    home.agent("agt", &agent, json!({"when": {"mcp": {"command": command}, "interval": "100ms"}, "projects": ["prj"], "survives": false}));
    (home, state, calls, ran)
}

#[test]
fn an_mcp_server_starts_and_stops_an_agent() {
    let (home, state, calls, ran) = asked("none");
    let supervisor = home.supervise();
    until("it was asked", || (lines(&calls) >= 2).then_some(()));
    let call: Value =
        serde_json::from_str(fs::read_to_string(&calls).unwrap().lines().next().unwrap()).unwrap();
    assert_eq!(call["name"], "get_agent_action");
    assert_eq!(call["arguments"], json!({"agent_id": "agt", "project_id": "prj"}));
    assert!(!ran.exists(), "{}", home.log());
    fs::write(&state, "start").unwrap();
    until("it runs", || (home.state_of("agt/prj") == "running").then_some(()));
    let before = lines(&calls);
    until("it is asked further", || (lines(&calls) > before + 2).then_some(()));
    assert_eq!(lines(&ran), 1, "one that runs is not started again");
    fs::write(&state, "stop").unwrap();
    until("it was stopped", || (home.state_of("agt/prj") == "waiting").then_some(()));
    assert_eq!(home.status()["rows"], json!([]), "that was no failure");
    supervisor.end();
}

#[test]
fn a_server_that_dies_is_asked_again_and_one_that_speaks_nonsense_starts_nothing() {
    let (home, state, _, ran) = asked("die");
    let supervisor = home.supervise();
    home.says("agt/prj: cannot ask whether it is wanted");
    fs::write(&state, "please").unwrap();
    home.says("agt/prj: cannot ask whether it is wanted: the tool answers with an action that is unknown");
    assert!(!ran.exists());
    fs::write(&state, "start").unwrap();
    home.says("agt/prj: can ask again whether it is wanted");
    until("it runs", || (home.state_of("agt/prj") == "running").then_some(()));
    supervisor.end();
}

#[test]
fn a_server_that_says_nothing_or_garbage_is_given_up_in_time_and_holds_nobody_up() {
    let all = ["mute", "garbage"].map(|word| {
        let (mut home, _, _, ran) = asked(word);
        let other = home.path("other");
        let agent = ScriptedAgent::new(&mark("beside")).notes(&other).exits(0);
        home.agent("other", &agent, json!({"when": "once"}));
        let supervisor = home.supervise();
        until("the others run", || other.exists().then_some(()));
        (home, supervisor, ran)
    });
    for (home, supervisor, ran) in all {
        home.says("agt/prj: cannot ask whether it is wanted");
        assert!(!ran.exists(), "{}", home.log());
        supervisor.end();
    }
}
