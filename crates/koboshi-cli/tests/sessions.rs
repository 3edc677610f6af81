//! Sessions of agent programs that are started again, and the gateway that they are pointed at: stand-ins with the programs' names note how they
//! were called, and keep a session as the programs do.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::koboshi;
use common::served::Served;
use common::supervised::{Home, QUICK};
use koboshi_testkit::until;
use serde_json::json;

const ID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";
/// A failure that passes is tried again at once.
const AGAIN: &str = "cooldown: {overloaded: {initial: 20ms, max: 20ms}}\n";
const FAILURE: &str = "API Error: 529 Overloaded. This is a server-side issue";

/// Writes a program with this name that notes its arguments and its variables, does its one tool call if its session has not done it, and fails
/// the first time.
fn stand_in(folder: &Path, name: &str) -> PathBuf {
    let (program, notes) = (folder.join(name), folder.display());
    let script = format!(
        r#"#!/bin/sh
printf '%s\037' "$@" >> {notes}/calls; echo >> {notes}/calls
env > {notes}/env
case "$*" in
  *"{ID}"*) id={ID} ;;
  *--session-id*|*--resume*) id=$(echo "$*" | sed 's/.*--\(session-id\|resume\) \([^ ]*\).*/\2/') ;;
  *) id={ID}; [ {name} = codex ] && echo '{{"type":"thread.started","thread_id":"{ID}"}}'
     [ {name} = opencode ] && echo '{{"type":"step_start","timestamp":1,"sessionID":"{ID}","part":{{}}}}' ;;
esac
[ -e {notes}/session-$id ] || {{ echo "tool call" >> {notes}/written; touch {notes}/session-$id; echo '{FAILURE}' >&2; exit 1; }}
echo done
"#
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// How the program was called each time.
fn calls(folder: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.join("calls")).unwrap_or_default();
    let words =
        |line: &str| line.split('\u{1f}').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    text.lines().map(words).collect()
}

fn protected(home: &Path, flags: &[&str], program: &Path, args: &[&str]) -> std::process::Output {
    let (store, config) = (home.join("koboshi.db"), home.join("koboshi.yaml"));
    if !config.exists() {
        fs::write(&config, AGAIN).unwrap();
    }
    let mut command: Command = koboshi(&["run", "--tries", "3"]);
    command
        .arg("--store")
        .arg(store)
        .arg("--config")
        .arg(config)
        .args(flags)
        .arg("--")
        .arg(program)
        .args(args);
    // They are pointed at a gateway only with a key of their user to hand on.
    command
        .env("OPENAI_API_KEY", "sk-own")
        .env("ANTHROPIC_API_KEY", "sk-own")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Each program, its arguments, and how its session is continued.
fn programs() -> [(&'static str, &'static [&'static str], Vec<&'static str>); 5] {
    [
        ("claude", &["-p", "write a file"], vec!["-p", "Continue where you stopped.", "--resume"]),
        (
            "gemini",
            &["-p", "write a file", "-m", "m"],
            vec!["-p", "Continue where you stopped.", "-m", "m", "--resume"],
        ),
        ("qwen", &["-p", "write a file"], vec!["-p", "Continue where you stopped.", "--resume"]),
        (
            "codex",
            &["exec", "-m", "m", "--json", "write a file"],
            vec!["exec", "-m", "m", "--json", "resume", ID],
        ),
        (
            "opencode",
            &["run", "-m", "openai/m", "--format", "json", "write a file"],
            vec!["run", "-m", "openai/m", "--format", "json", "--session", ID],
        ),
    ]
}

#[test]
fn a_command_that_is_started_again_continues_its_session_and_repeats_no_tool_call() {
    for (name, args, continued) in programs() {
        let home = tempfile::tempdir().unwrap();
        let program = stand_in(home.path(), name);
        let output = protected(home.path(), &["--gateway", "off"], &program, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {said}");
        let calls = calls(home.path());
        assert_eq!(calls.len(), 2, "{name}: {calls:?}");
        assert_eq!(calls[0][..args.len()], *args, "{name}: the first time with its own task");
        assert_eq!(calls[1][..continued.len()], continued, "{name}");
        assert!(!calls[1].contains(&"write a file".to_owned()), "{name}: the task is not given twice");
        if !["codex", "opencode"].contains(&name) {
            assert_eq!(calls[0].last(), calls[1].last(), "{name}: the same id");
        }
        assert_eq!(fs::read_to_string(home.path().join("written")).unwrap(), "tool call\n", "{name}");
    }
}

/// Its own retries are taken away by a file, as it reads them from nothing else.
#[test]
fn a_program_that_reads_a_file_alone_is_given_one_unless_it_has_one() {
    let home = tempfile::tempdir().unwrap();
    let program = home.path().join("gemini");
    let script = "#!/bin/sh\ncat \"$GEMINI_CLI_SYSTEM_DEFAULTS_PATH\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let printed = |given: Option<&str>| {
        let store = home.path().join("koboshi.db").display().to_string();
        let mut command: Command = koboshi(&["run", "--gateway", "off", "--store", &store, "--"]);
        command
            .arg(&program)
            .args(["-p", "x"])
            .envs(given.map(|path| ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", path)));
        String::from_utf8(command.stdin(Stdio::null()).output().unwrap().stdout).unwrap()
    };
    assert_eq!(printed(None), r#"{"general":{"maxAttempts":2}}"#);
    let own = home.path().join("own.json");
    fs::write(&own, "mine").unwrap();
    assert_eq!(printed(own.to_str()), "mine");
}

#[test]
fn without_resume_the_same_command_is_started_again() {
    let home = tempfile::tempdir().unwrap();
    let program = stand_in(home.path(), "codex");
    let args = ["exec", "--json", "write a file"];
    let output = protected(home.path(), &["--gateway", "off", "--resume", "never"], &program, &args);
    assert!(output.status.success());
    assert_eq!(calls(home.path()), [args, args]);
}

#[test]
fn a_kept_agent_continues_its_session_also_after_its_supervisor_was_killed() {
    for (name, args, continued) in programs() {
        // The supervisor is killed while the agent rests after its failure.
        let mut home = Home::new("cooldown: {overloaded: {initial: 1s, max: 1s}}\n");
        let folder = home.path("here");
        fs::create_dir(&folder).unwrap();
        let program = stand_in(&folder, name);
        let mut command = vec![program.display().to_string()];
        command.extend(args.iter().map(|word| (*word).to_owned()));
        home.agents["kept"] = json!({"command": command, "gateway": false, "when": "once"});
        let mut first = home.supervise();
        home.says("kept/default: ended with exit code 1 (overloaded)");
        until("its end is noted", || {
            let runs = fs::read_dir(home.path("runs/agents/kept/default")).ok()?;
            runs.flatten().any(|run| run.path().join("judged").exists()).then_some(())
        });
        first.kill();
        let second = home.supervise();
        home.says("kept/default: ended with exit code 0");
        second.end();
        let calls = calls(&folder);
        assert_eq!(calls.len(), 2, "{name}: {calls:?}");
        assert!(calls[0].contains(&"write a file".to_owned()), "{name}: {calls:?}");
        let is_continued = continued.iter().all(|word| calls[1].contains(&(*word).to_owned()));
        assert!(is_continued && !calls[1].contains(&"write a file".to_owned()), "{name}: {calls:?}");
        assert_eq!(fs::read_to_string(folder.join("written")).unwrap(), "tool call\n", "{name}");
    }
}

#[test]
fn a_gateway_that_answers_is_what_the_command_is_pointed_at_and_none_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("koboshi.yaml");
    let routes = "routes: {\"*\": [sim/ok]}\n";
    fs::write(&config, format!("{AGAIN}{routes}serve: {{threads: 1}}\n")).unwrap();
    let gateway = Served::start(&config, &home.path().join("koboshi.db"));
    let address = format!("http://{}", gateway.address);
    fs::write(&config, format!("{AGAIN}{routes}serve: {{listen: \"{}\"}}\n", gateway.address)).unwrap();
    let variable = |name: &str| {
        let text = fs::read_to_string(home.path().join("env")).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.map(str::to_owned)
    };
    let claude = stand_in(home.path(), "claude");
    assert!(protected(home.path(), &[], &claude, &["-p", "x"]).status.success());
    assert_eq!(variable("ANTHROPIC_BASE_URL"), Some(address.clone()));
    assert_eq!(variable("CLAUDE_CODE_MAX_RETRIES").as_deref(), Some("2"), "its own retries are few");
    let codex = stand_in(home.path(), "codex");
    assert!(protected(home.path(), &[], &codex, &["exec", "hello"]).status.success());
    let call = calls(home.path()).pop().unwrap();
    assert!(call[..2].join(" ").contains(&format!("base_url=\"{address}/v1\"")), "{call:?}");
    let opencode = stand_in(home.path(), "opencode");
    assert!(protected(home.path(), &[], &opencode, &["run", "hello"]).status.success());
    let own: serde_json::Value = serde_json::from_str(&variable("OPENCODE_CONFIG_CONTENT").unwrap()).unwrap();
    for (provider, path) in [("openai", "/v1"), ("anthropic", "/v1"), ("google", "/v1beta")] {
        assert_eq!(own["provider"][provider]["options"]["baseURL"], format!("{address}{path}"), "{own}");
    }
    assert!(protected(home.path(), &["--gateway", "off"], &claude, &["-p", "x"]).status.success());
    assert_eq!(variable("ANTHROPIC_BASE_URL"), None);
    drop(gateway);
    assert!(protected(home.path(), &[], &claude, &["-p", "x"]).status.success());
    assert_eq!(variable("ANTHROPIC_BASE_URL"), None, "nothing answers there any more");
}

#[test]
fn an_agent_that_did_its_one_run_is_not_run_again_by_the_next_supervisor() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let script = format!("echo x >> {}", notes.display());
    home.agents["one"] = json!({"command": ["sh", "-c", script], "gateway": false, "when": "once"});
    for round in 0..2 {
        let supervisor = home.supervise();
        if round == 0 {
            home.says("one/default: ended with exit code 0");
        }
        until("it waits", || (home.state_of("one/default") == "waiting").then_some(()));
        supervisor.end();
    }
    assert_eq!(fs::read_to_string(&notes).unwrap(), "x\n");
}
