//! Agents that behave badly, as real processes under `koboshi run`: nothing is left of them, and their end is reported correctly.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::io::Read;
use std::process::{Command, Output, Stdio};

use common::{FATAL_SIGNALS, Running, koboshi};
use koboshi_testkit::ScriptedAgent;
use tempfile::TempDir;

fn protected(home: &TempDir, agent: &ScriptedAgent) -> Command {
    let store = home.path().join("koboshi.db").display().to_string();
    let mut command = koboshi(&["run", "--store", &store, "--gateway", "off", "--tries", "1", "--"]);
    command.args(agent.command()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(home: &TempDir, agent: &ScriptedAgent) -> Output {
    let output = protected(home, agent).output().unwrap();
    assert_eq!(agent.left(), [0_i32; 0], "nothing of it is left when its end is reported");
    output
}

fn agent(mark: &str) -> ScriptedAgent {
    ScriptedAgent::new(&format!("processes-{mark}-{}", std::process::id()))
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_exit_code_names_the_signal_that_a_command_died_of() {
    let home = home();
    for (name, number) in FATAL_SIGNALS {
        let output = run(&home, &agent(name).dies_of(name));
        assert_eq!(output.status.code(), Some(128 + number), "{name}");
    }
}

#[test]
fn what_it_leaves_behind_in_sessions_of_its_own_is_stopped() {
    let home = home();
    let leaver = agent("leaver")
        .leaves_a_stubborn_child_behind()
        .leaves_a_child_with_its_streams()
        .says("gone")
        .exits(4);
    let output = run(&home, &leaver);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), b"gone\n".as_slice()));
}

#[test]
fn streams_that_it_closes_do_not_end_it() {
    let home = home();
    let witness = home.path().join("witness");
    let go_on = home.path().join("go-on");
    let closer =
        agent("closer").says("before").closes_its_streams().notes(&witness).waits_for(&go_on).exits(5);
    let mut running = Running::start(&mut protected(&home, &closer));
    let mut text = String::new();
    // Its end comes while the agent still lives: only the agent holds them.
    running.stdout.take().unwrap().take(7).read_to_string(&mut text).unwrap();
    assert_eq!(text, "before\n");
    koboshi_testkit::until("it lives on", || witness.exists().then_some(()));
    assert!(running.try_wait().unwrap().is_none());
    std::fs::write(go_on, "").unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(5));
}

#[test]
fn a_gigabyte_passes_and_little_of_it_is_kept() {
    const GIGABYTE: u64 = 1 << 30;
    let home = home();
    let mut running = Running::start(&mut protected(&home, &agent("flood").floods(GIGABYTE)));
    let mut out = running.stdout.take().unwrap();
    let (mut buffer, mut count, mut most) = (vec![0; 1 << 20], 0, 0);
    while let Ok(size @ 1..) = out.read(&mut buffer) {
        count += size as u64;
        if count % 64 == 0 {
            most = most.max(resident(running.id()));
        }
    }
    assert!(running.wait().unwrap().success());
    assert_eq!(count, GIGABYTE);
    assert!(most < 100 * 1024, "{most} KiB");
}

/// KiB of a process in memory.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_failure_that_exits_with_zero_is_a_failure() {
    let home = home();
    let event = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit · resets in 2h"}"#;
    let store = home.path().join("koboshi.db").display().to_string();
    let mut command = koboshi(&[
        "run", "--store", &store, "--gateway", "off", "--account", "main", "--patience", "1s", "--",
    ]);
    let output = command.args(agent("zero").says(event).exits(0).command()).output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn it_gets_no_descriptor_but_its_streams() {
    let home = home();
    let store = home.path().join("koboshi.db").display().to_string();
    let binary = env!("CARGO_BIN_EXE_koboshi");
    let script = format!(
        "exec 7</dev/null 8</dev/null 9>/dev/null; exec {binary} run --store {store} --gateway off -- sh -c 'ls /proc/$$/fd; true'"
    );
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n1\n2\n");
}
