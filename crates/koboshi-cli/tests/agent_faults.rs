//! What goes wrong around one agent and must not harm it, or the others: a supervisor that is killed or hangs, a folder that cannot be read, output
//! of any kind, ends of any kind.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::supervised::{Home, QUICK, Supervisor, mark};
use common::{koboshi, run};
use koboshi_testkit::{ScriptedAgent, signal, until};
use serde_json::{Value, json};

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

/// The folders of the runs of an agent in its only project, oldest first.
fn runs(home: &Home, agent: &str) -> Vec<PathBuf> {
    let folder = home.path("runs/agents").join(agent).join("default");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn status_of(home: &Home, agent: &str) -> Value {
    let agents = home.status()["agents"].as_array().cloned().unwrap_or_default();
    agents.into_iter().find(|one| one["agent"] == agent).unwrap_or_default()
}

/// An agent that its shim stops because its supervisor was killed has not failed, however often that happens.
#[test]
fn a_stop_because_the_supervisor_was_killed_is_no_failure() {
    let mut home = Home::new("");
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("owned")).notes(&notes).lives_on();
    home.agent("owned", &agent, json!({"survives": false}));
    for kill in 1..=6 {
        let mut supervisor = home.supervise();
        until("it runs", || (lines(&notes) == kill).then_some(()));
        supervisor.kill();
        until("it is stopped with its supervisor", || agent.left().is_empty().then_some(()));
    }
    let last = home.supervise();
    until("it runs once more", || (lines(&notes) == 7).then_some(()));
    let journal = run(&["journal", "--store", &home.store()]).text;
    assert_eq!(journal.matches("ended with exit code 143").count(), 6, "every end is judged: {journal}");
    let journal = run(&["journal", "--what", "cooldown", "--store", &home.store()]).text;
    assert!(!journal.contains("Cooldown set"), "{journal}");
    assert_eq!(home.status()["rows"], json!([]), "{}", home.log());
    last.end();
}

/// A damaged run folder, and one that cannot be written any more, concern their agents alone.
#[test]
fn an_agent_whose_runs_cannot_be_read_or_written_is_set_aside_and_the_others_go_on() {
    let mut home = Home::new(QUICK);
    let (damaged, unwritable, other) = (home.path("damaged"), home.path("unwritable"), home.path("other"));
    let (go, ends) = (home.path("go"), json!({"survives": false}));
    home.agent("damaged", &ScriptedAgent::new(&mark("damaged")).notes(&damaged).lives_on(), ends.clone());
    let agent = ScriptedAgent::new(&mark("unwritable")).notes(&unwritable).waits_for(&go).exits(0);
    home.agent("unwritable", &agent, ends.clone());
    home.agent("other", &ScriptedAgent::new(&mark("other")).notes(&other).exits(1), ends);
    let first = home.supervise();
    until("they run", || (lines(&damaged) > 0 && lines(&unwritable) > 0).then_some(()));
    until("they are known", || (home.state_of("damaged/default") == "running").then_some(()));
    first.end();
    // The lock of a run is no file any more.
    let lock = runs(&home, "damaged").pop().unwrap().join("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let before = (lines(&damaged), lines(&unwritable));
    let supervisor = home.supervise();
    home.says("[WARNING] damaged/default: is set aside, the other agents go on: ");
    until("the next one runs", || (lines(&unwritable) > before.1).then_some(()));
    // The end of a run cannot be written: something else has its name.
    let run_of = runs(&home, "unwritable").pop().unwrap();
    until("it is known", || run_of.join("shim.json").exists().then_some(()));
    fs::create_dir(run_of.join("end.json")).unwrap();
    fs::write(&go, "").unwrap();
    home.says("[WARNING] unwritable/default: is set aside, the other agents go on: ");
    let of_other = lines(&other);
    until("the other one goes on", || (lines(&other) > of_other + 2).then_some(()));
    assert_eq!((lines(&damaged), lines(&unwritable)), (before.0, before.1 + 1), "nothing runs beside them");
    for (name, folder) in [("damaged/default", lock.parent().unwrap()), ("unwritable/default", &*run_of)] {
        let status = status_of(&home, name);
        let why = status["held_by"].as_str().unwrap_or_default();
        assert!(status["state"] == "aside" && why.contains(folder.to_str().unwrap()), "{status}");
        let journal = run(&["journal", "--agent", name, "--kind", "aside", "--store", &home.store()]).text;
        assert!(journal.contains("is set aside"), "{journal}");
    }
    // Mended, and started by hand: it runs again.
    fs::remove_dir(run_of.join("end.json")).unwrap();
    fs::remove_dir_all(lock.parent().unwrap()).unwrap();
    for (name, notes, before) in [("unwritable", &unwritable, before.1 + 1), ("damaged", &damaged, before.0)]
    {
        assert_eq!(home.order("start", name).status, 0);
        until("it runs again", || (lines(notes) > before).then_some(()));
    }
    supervisor.end();
}

/// A supervisor that lives and hangs does not block its agents: after some seconds their shims read what they write, and count what is lost.
#[test]
fn a_supervisor_that_hangs_blocks_no_agent_for_long() {
    let mut home = Home::new(QUICK);
    let (go, flooded, told) = (home.path("go"), home.path("flooded"), home.path("told"));
    let agent = ScriptedAgent::new(&mark("hung"))
        .says("before")
        .waits_for(&go)
        .floods(4 << 20)
        .notes(&flooded)
        .waits_for(&told)
        .says("after")
        .exits(0);
    home.agent("hung", &agent, json!({"when": "once", "survives": false}));
    let supervisor = home.supervise();
    until("it runs", || (home.state_of("hung/default") == "running").then_some(()));
    // What the supervisor has not read yet may be dropped.
    let read = || run(&["logs", "hung", "--store", &home.store()]).text;
    until("its first line is read", || read().contains("before").then_some(()));
    signal(&supervisor.0, "-STOP");
    fs::write(&go, "").unwrap();
    until("it has written everything", || flooded.exists().then_some(()));
    signal(&supervisor.0, "-CONT");
    fs::write(&told, "").unwrap();
    home.says("hung/default: ended with exit code 0");
    let last = until("it is judged", || {
        Some(status_of(&home, "hung/default")["last"].take()).filter(Value::is_object)
    });
    assert!(last["dropped"].as_u64().unwrap() > 1 << 20, "what was lost is counted: {last}");
    let log = run(&["logs", "hung", "--store", &home.store()]).text;
    assert!(
        log.contains("before") && log.contains("\nafter") && log.contains("never stops talking"),
        "the ends are there"
    );
    supervisor.end();
}

/// The time in which a supervisor hangs, or its machine sleeps, is no silence of its agents.
#[test]
fn an_agent_is_not_silent_because_its_supervisor_did_not_look() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    // Every line is a new one, and stands in a file as well: there it is seen while nobody reads the pipe.
    let script = format!(
        "echo start >> {0}; n=a; while :; do n=a$n; echo did $n; echo $n >> {0}; sleep 0.1; done",
        notes.display()
    );
    home.agents["talks"] = json!({"command": ["sh", "-c", script], "gateway": false, "survives": false,
        "limits": {"silent": "3s"}});
    let supervisor = home.supervise();
    until("it talks", || (lines(&notes) > 5).then_some(()));
    for _ in 0..2 {
        signal(&supervisor.0, "-STOP");
        let before = lines(&notes);
        // Each takes a tenth of a second at least.
        until("it goes on for more than its limit", || (lines(&notes) > before + 35).then_some(()));
        signal(&supervisor.0, "-CONT");
        let last = fs::read_to_string(&notes).unwrap().lines().last().unwrap().to_owned();
        until("its later lines are read", || {
            run(&["logs", "talks", "--store", &home.store()]).text.contains(&last).then_some(())
        });
        assert_eq!(home.state_of("talks/default"), "running", "{}", home.log());
    }
    let text = fs::read_to_string(&notes).unwrap();
    assert_eq!(text.matches("start").count(), 1, "{}", home.log());
    supervisor.end();
}

/// Output and ends of every kind, under a supervisor: each end is judged by what it was, and nothing is left behind.
#[test]
fn agents_that_misbehave_are_read_and_judged_and_leave_nothing() {
    let mut home = Home::new("cooldown: {error: {park_after: 1}}\n");
    let signals = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ILL", 4),
        ("ABRT", 6),
        ("FPE", 8),
        ("KILL", 9),
        ("SEGV", 11),
        ("PIPE", 13),
        ("TERM", 15),
    ];
    let mut agents: Vec<(String, ScriptedAgent, i32)> = signals
        .iter()
        .map(|(name, number)| {
            let agent = ScriptedAgent::new(&mark(&format!("dies-{name}"))).dies_of(name);
            (format!("dies-{}", name.to_lowercase()), agent, 128 + number)
        })
        .collect();
    let of = |name: &str| ScriptedAgent::new(&mark(name));
    agents.push(("floods".into(), of("floods").floods(3 << 20).says("the end").exits(3), 3));
    agents.push(("endless".into(), of("endless").says_without_end(3 << 20).exits(4), 4));
    agents.push((
        "half".into(),
        of("half").says_half_a_character().says("").says("whole").says_half_a_character().exits(5),
        5,
    ));
    agents.push((
        "closes".into(),
        of("closes").closes_its_streams().leaves_a_stubborn_child_behind().exits(6),
        6,
    ));
    agents.push(("quiet".into(), of("quiet").exits(7), 7));
    for (name, agent, _) in &agents {
        home.agent(name, agent, json!({"when": "once", "survives": false}));
    }
    let supervisor = home.supervise();
    for (name, agent, code) in &agents {
        home.says(&format!("{name}/default: ended with exit code {code} "));
        until("nothing of it is left", || agent.left().is_empty().then_some(()));
    }
    let log = |name: &str| run(&["logs", name, "--store", &home.store()]).text;
    assert!(log("floods").contains("the end"));
    assert_eq!(log("half").matches("whole").count(), 1);
    assert!(log("half").contains('\u{fffd}'), "half a character is shown as one that is broken");
    assert_eq!(log("closes"), "");
    supervisor.end();
}

/// A store that is named from the current folder is the same place for an agent in another folder.
#[test]
fn an_agent_with_a_folder_of_its_own_runs_where_the_store_has_a_relative_path() {
    let mut home = Home::new(QUICK);
    let (work, seen) = (home.path("work"), home.path("work/seen"));
    fs::create_dir(&work).unwrap();
    home.agents["elsewhere"] = json!({"command": ["sh", "-c", "pwd > seen.new; mv seen.new seen; sleep 3600"],
        "gateway": false, "dir": work.display().to_string(), "survives": false});
    let mut command = koboshi(&["supervise", "--config", &home.config(), "--store", "koboshi.db"]);
    command.current_dir(home.path("")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = Supervisor(command.spawn().unwrap());
    let text = until("it runs", || fs::read_to_string(&seen).ok());
    assert_eq!(text.trim(), work.canonicalize().unwrap().to_str().unwrap());
    supervisor.end();
}

/// The log of a run is rotated, and holds no more than its files may.
#[test]
fn the_log_of_a_run_is_rotated() {
    let mut home = Home::new(QUICK);
    let block = "n=0; while :; do n=$((n+1)); yes \"a line of block $n\" | head -c 400000; sleep 0.02; done";
    home.agents["talks"] = json!({"command": ["sh", "-c", block], "gateway": false, "survives": false});
    let supervisor = home.supervise();
    let run_of = until("it runs", || runs(&home, "talks").pop());
    until("its log was rotated", || run_of.join("log.1").exists().then_some(()));
    let sizes: Vec<u64> = fs::read_dir(&run_of)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log"))
        .map(|path| fs::metadata(path).unwrap().len())
        .collect();
    assert!(sizes.len() == 2 && sizes.iter().all(|size| *size < 12 << 20), "{sizes:?}");
    let last = run(&["logs", "talks", "--store", &home.store()]).text;
    assert!(last.contains("a line of block "), "{}", &last[..last.len().min(200)]);
    let left = Command::new("kill").args(["-0", &supervisor.0.id().to_string()]).status().unwrap();
    assert!(left.success());
    supervisor.end();
}

/// What an operator searches for is there for runs as for requests, in one file, also where a gateway of the same config writes it too.
#[test]
fn faults_of_agents_are_in_the_file_of_errors_with_their_fields() {
    let secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    for start in [Home::supervise, Home::up] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("errors.log");
        let log = json!({"errors": {"file": file}});
        let mut home = Home::new(&format!("log: {log}\ncode_prefix: MIRA\nroutes: {{m: [sim/fail-503]}}\n"));
        let dry = ScriptedAgent::new(&mark("in-errors"))
            .says(&format!("the key is {secret}"))
            .complains(&format!("TerminalQuotaError for {secret}: Your quota will reset after 22m55s."))
            .exits(3);
        home.agent("dry", &dry, json!({"account": "main", "projects": ["site"]}));
        home.agents["absent"] = json!({"command": ["/no/such/program"], "gateway": false});
        let running = start(&home);
        let text = || fs::read_to_string(&file).unwrap_or_default();
        let of = |agent: &str| -> Option<Value> {
            let all = text();
            let lines = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.into_iter().find(|line| line["agent"] == agent)
        };
        let quota = until("the quota is in the file", || of("dry/site"));
        let named = ["level", "method", "errorType", "errorCode", "account"].map(|name| quota[name].clone());
        assert_eq!(json!(named), json!(["warn", "run", "quota_exceeded", "MIRA-3002", "main"]), "{quota}");
        assert_eq!((&quota["retryable"], &quota["exitCode"]), (&json!(true), &json!(3)), "{quota}");
        assert!(quota["timestamp"].is_string() && quota["rule"].is_string(), "{quota}");
        assert!(quota["message"].as_str().unwrap().contains("quota will reset"), "{quota}");
        let absent = until("the program that is not there is in the file", || of("absent/default"));
        assert_eq!(absent["errorType"], "spawn_failed", "{absent}");
        let cooldown = "Cooldown set for account:main";
        until("a warning of the supervisor is there too", || text().contains(cooldown).then_some(()));
        running.end();
        assert!(!text().contains(secret), "{}", text());
    }
}

/// Which processes share a store is known of supervisors too: how many there are, how many agents they keep, whether their configs differ.
#[test]
fn supervisors_report_to_their_store_how_many_agents_they_keep() {
    let mut home = Home::new(QUICK);
    let agent = ScriptedAgent::new(&mark("counted")).lives_on();
    home.agent("counted", &agent, json!({"projects": ["one", "two"], "survives": false}));
    let listed = || home.status()["supervisors"].as_array().cloned().unwrap_or_default();
    let reported = |agents: u64, running: u64| {
        until("it reports", || {
            let found = listed();
            let [one] = found.as_slice() else { return None };
            (one["agents"] == agents && one["running"] == running).then(|| one.clone())
        })
    };
    let supervisor = home.supervise();
    let first = reported(2, 2);
    assert_eq!(first["stopped"], false, "{first}");
    assert_eq!(first["config"].as_str().unwrap().len(), 8, "{first}");
    assert!(first["node"].as_str().unwrap().starts_with("supervisor/"), "{first}");
    assert_eq!(home.order("stop", "counted/one").status, 0);
    reported(2, 1);
    // Another config has other digits, without a restart.
    let more = home.path("koboshi.yaml");
    let before = fs::read_to_string(&more).unwrap();
    fs::write(&more, format!("{before}serve: {{deadline: 7s}}\n")).unwrap();
    signal(&supervisor.0, "-HUP");
    until("its digits change", || (listed()[0]["config"] != first["config"]).then_some(()));
    supervisor.end();
    assert_eq!(listed()[0]["stopped"], true);
    // One that is started again takes its place; that of `up` counts too.
    let up = home.up();
    let is_next = |one: &Value| one["node"] != first["node"] && one["running"] == 1;
    let again = until("its successor reports", || listed().into_iter().find(is_next));
    assert!(again["stopped"] == false && listed().len() == 1, "{again}");
    up.end();
}
