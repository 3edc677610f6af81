//! `koboshi supervise` with real agents: kept running, rested together, taken over after a crash.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::run;
use common::supervised::{Home, QUICK, Supervisor, mark};
use koboshi_testkit::{ScriptedAgent, until, zombies_of};
use serde_json::json;

#[test]
fn a_quota_of_one_agent_holds_its_sibling_and_no_other() {
    let mut home = Home::new("");
    let (dry, sibling, other) = (home.path("dry"), home.path("sibling"), home.path("other"));
    let quota = ScriptedAgent::new(&mark("dry"))
        .notes(&dry)
        .complains(
            "TerminalQuotaError: You have exhausted your capacity. Your quota will reset after 22m55s.",
        )
        .exits(1);
    home.agent("dry", &quota, json!({"account": "main"}));
    let asked = home.path("asked");
    let waits = ScriptedAgent::new(&mark("sibling")).notes(&sibling).exits(0);
    let ask = json!(["test", "-e", asked.display().to_string()]);
    home.agent("sibling", &waits, json!({"account": "main", "when": {"command": ask}}));
    home.agent(
        "other",
        &ScriptedAgent::new(&mark("other")).notes(&other).exits(0),
        json!({"account": "spare", "when": "once"}),
    );
    let supervisor = home.supervise();
    home.says("Cooldown set for account:main: 1513s (reason: quota, consecutive: 1)");
    fs::write(&asked, "").unwrap();
    until("the sibling is held", || (home.state_of("sibling/default") == "held").then_some(()));
    until("the other ran", || other.exists().then_some(()));
    assert!(!sibling.exists(), "{}", home.log());
    assert_eq!(
        fs::read_to_string(&dry).unwrap().lines().count(),
        1,
        "it is started once, not every two seconds"
    );
    let status = home.status();
    assert_eq!(status["rows"][0]["key"], "account:main", "{status}");
    supervisor.end();
}

#[test]
fn agents_are_stopped_started_and_their_output_is_kept_without_secrets() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let agent = ScriptedAgent::new(&mark("talks"))
        .says(&format!("using {key}"))
        .says("the secret is $SECRET")
        .leaves_a_stubborn_child_behind()
        .notes(&notes)
        .lives_on();
    home.agent("talks", &agent, json!({"projects": ["one", "two"], "env": ["GREETING=hello"]}));
    let supervisor = home.supervise();
    until("both run", || {
        fs::read_to_string(&notes).is_ok_and(|text| text.lines().count() == 2).then_some(())
    });
    until("the log is there", || {
        run(&["logs", "talks/one", "--store", &home.store()]).text.contains("the secret is").then_some(())
    });
    let logs = run(&["logs", "talks/one", "--store", &home.store()]).text;
    assert!(logs.contains("using ") && !logs.contains(key), "{logs}");
    assert_eq!(home.order("stop", "talks/one").status, 0);
    until("it is stopped", || (home.state_of("talks/one") == "stopped").then_some(()));
    assert_eq!(home.state_of("talks/two"), "running");
    assert_eq!(home.order("start", "talks/one").status, 0);
    until("it runs again", || (home.state_of("talks/one") == "running").then_some(()));
    assert!(
        home.log().contains("(2): talks/one, talks/two"),
        "the supervisor names its agents: {}",
        home.log()
    );
    let unknown = home.order("stop", "unknown");
    assert!(unknown.status == 2 && unknown.error.contains("talks/one"), "{}", unknown.error);
    assert_eq!(home.order("stop", "talks").status, 0);
    until("nothing of them is left", || agent.left().is_empty().then_some(()));
    until("the dead are buried", || zombies_of(supervisor.0.id()).is_empty().then_some(()));
    assert_eq!(home.status()["rows"], json!([]), "a stop that was asked for is no failure");
    supervisor.end();
}

#[test]
fn an_agent_gets_the_usual_variables_and_its_own_and_no_other() {
    let mut home = Home::new(QUICK);
    let seen = home.path("seen");
    let script = format!("(env; ulimit -n) > {0}.new; mv {0}.new {0}; sleep 3600", seen.display());
    home.agents["env"] = json!({"command": ["sh", "-c", script], "env": ["OWN=value"], "pass_env": ["WANTED"], "survives": false, "gateway": false});
    let (config, store) = (home.config(), home.store());
    let limited = "ulimit -Sn 1000; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_koboshi"), "supervise", "--config", &config]);
    command.args(["--store", &store]);
    command.env("WANTED", "1").env("UNWANTED_TOKEN", "2").stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = Supervisor(command.spawn().unwrap());
    let text = until("it runs", || fs::read_to_string(&seen).ok());
    assert!(text.contains("OWN=value") && text.contains("WANTED=1") && text.contains("PATH="), "{text}");
    assert!(!text.contains("UNWANTED"), "{text}");
    assert!(text.ends_with("\n1000\n"), "as many open files as the supervisor was given: {text}");
    supervisor.end();
}

#[test]
fn logs_of_a_store_without_runs_say_that_there_are_none() {
    let home = Home::new(QUICK);
    for (lang, words) in [
        ("en", "no agent has been started with this store"),
        ("ja", "起動されたエージェントはまだありません"),
    ] {
        let none = run(&["logs", "nobody", "--lang", lang, "--store", &home.store()]);
        assert!(none.status == 2 && none.error.contains(words), "{}", none.error);
    }
}

#[test]
fn a_second_supervisor_is_refused_and_one_that_is_silent_is_stopped() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let silent = ScriptedAgent::new(&mark("silent")).notes(&notes).ignores_requests_to_end().lives_on();
    home.agent(
        "silent",
        &silent,
        json!({"limits": {"silent": "300ms"}, "stop": {"grace": "100ms"}, "survives": false}),
    );
    let supervisor = home.supervise();
    until("it was started again", || {
        fs::read_to_string(&notes).is_ok_and(|text| text.lines().count() >= 2).then_some(())
    });
    let second = run(&["supervise", "--config", &home.config(), "--store", &home.store()]);
    assert!(
        second.status == 2 && second.error.contains("another supervisor keeps these agents already"),
        "{}",
        second.error
    );
    assert!(!second.error.contains("Agents that are kept running"), "it keeps none: {}", second.error);
    assert!(second.error.contains(&home.path("runs").display().to_string()), "{}", second.error);
    supervisor.end();
    assert_eq!(silent.left(), [0_i32; 0], "what does not survive ends with the supervisor");
}

#[test]
fn an_agent_that_cannot_be_launched_gives_its_turn_to_its_sibling() {
    let mut home = Home::new("cooldown: {rate_limit: {initial: 1s, max: 1s}}\n");
    let (notes, nowhere) = (home.path("notes"), home.path("nowhere"));
    let limited = ScriptedAgent::new(&mark("limited")).complains("API Error: 429 rate_limit_error").exits(1);
    home.agent("limited", &limited, json!({"account": "main"}));
    let first = home.supervise();
    home.says("Cooldown set for account:main");
    first.end();
    home.agents = json!({});
    let dir = nowhere.display().to_string();
    home.agent("lost", &ScriptedAgent::new(&mark("lost")).lives_on(), json!({"account": "main", "dir": dir}));
    let sibling = ScriptedAgent::new(&mark("next")).notes(&notes).lives_on();
    home.agent("sibling", &sibling, json!({"account": "main", "survives": false}));
    let supervisor = home.supervise();
    until("the sibling runs", || notes.exists().then_some(()));
    let why = format!("lost/default: cannot be started: its folder {dir} does not exist");
    assert!(home.log().contains(&why), "{}", home.log());
    until("it is parked", || (home.state_of("lost/default") == "parked").then_some(()));
    let journal = run(&["journal", "--agent", "lost/default", "--store", &home.store()]).text;
    assert!(journal.contains(&dir), "{journal}");
    supervisor.end();
}

/// Every file below a folder that has these words in it.
fn files_with(folder: &Path, words: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, words));
        } else if kind.is_file()
            && fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(words.len()).any(|part| part == words.as_bytes()))
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn values_that_the_config_hands_to_an_agent_are_in_no_file_and_no_journal() {
    // Of no shape that a rule knows.
    let (own, shared) = ("plain-word-of-mine", "another quiet word");
    let mut home = Home::new(&format!("{QUICK}accounts: {{main: {{env: [\"SHARED={shared}\"]}}}}\n"));
    let (go, notes) = (home.path("go"), home.path("notes"));
    let says = "$OWN and $SHARED";
    let agent = ScriptedAgent::new(&mark("leaks"))
        .says(says)
        .notes(&notes)
        .waits_for(&go)
        .says(says)
        .complains(&format!("Error: no access with {says}"))
        .exits(1);
    let mut command = agent.command();
    let script = command.last_mut().unwrap();
    *script = script.replace("'", "\"");
    home.agents["leaks"] = json!({"command": command, "gateway": false, "account": "main", "when": "once",
        "env": [format!("OWN={own}")]});
    let mut supervisor = home.supervise();
    until("it runs", || notes.exists().then_some(()));
    until("its log is there", || {
        run(&["logs", "leaks", "--store", &home.store()]).text.contains("[redacted:value] and").then_some(())
    });
    // While there is no supervisor, the shim stores what the agent writes.
    supervisor.kill();
    fs::write(&go, "").unwrap();
    until("it ended", || {
        let runs = fs::read_dir(home.path("runs/agents/leaks/default")).ok()?;
        runs.flatten().any(|run| run.path().join("end.json").exists()).then_some(())
    });
    let next = home.supervise();
    home.says("leaks/default: ended with exit code 1");
    next.end();
    for value in [own, shared] {
        let config = home.path("koboshi.yaml");
        let files: Vec<_> =
            files_with(&home.path(""), value).into_iter().filter(|path| *path != config).collect();
        assert!(files.is_empty(), "{value}: {files:?}");
    }
    let journal = run(&["journal", "--store", &home.store()]).text;
    assert!(journal.contains("no access with [redacted:value]"), "{journal}");
}

/// Too many starts are a cooldown like any other: in the journal with its reason, and no error.
#[test]
fn too_many_starts_are_in_the_journal_and_no_error() {
    let mut home = Home::new("cooldown: {max_starts: 2, starts_window: 1m}\n");
    let quick = ScriptedAgent::new(&mark("quick"));
    home.agent("quick", &quick, json!({"when": "every 1s", "survives": false}));
    let supervisor = home.supervise();
    home.says("Cooldown set for quick/default");
    let journal = until("it is in the journal", || {
        let said =
            run(&["journal", "--agent", "quick/default", "--what", "cooldown", "--store", &home.store()]);
        said.text.contains("Cooldown set for quick/default").then_some(said.text)
    });
    assert_eq!(journal.matches("Cooldown set").count(), 1, "once: {journal}");
    let status = run(&["status", "agent:quick/default", "--lang", "en", "--store", &home.store()]).text;
    assert!(status.contains("started too often") && !status.contains("another error"), "{status}");
    supervisor.end();
}

/// An agent that waits for its account is resumed by resuming the account, and is told so.
#[test]
fn an_agent_that_waits_for_its_account_is_told_what_to_resume() {
    let mut home = Home::new(QUICK);
    let limited = ScriptedAgent::new(&mark("dry"))
        .complains("TerminalQuotaError: Your quota will reset after 22m55s.")
        .exits(1);
    home.agent("dry", &limited, json!({"account": "acme", "survives": false}));
    let supervisor = home.supervise();
    home.says("Cooldown set for account:acme");
    let (command, config) = ("koboshi resume account:acme", home.config());
    until("it is held by the account", || {
        let said = run(&[
            "resume",
            "agent:dry/default",
            "--lang",
            "en",
            "--config",
            &config,
            "--store",
            &home.store(),
        ]);
        (said.status == 1 && said.text.contains(command)).then_some(())
    });
    supervisor.end();
}

/// Where the store stands in a config that cannot be read, the mistake is told, and not that no supervisor runs.
#[test]
fn a_reload_of_a_config_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("koboshi.yaml");
    fs::write(&file, "store: {path: own.db}\nagents: {long: {command: [\"true\"], when: every 5}}\n")
        .unwrap();
    let out = run(&["reload", "--lang", "en", "--config", file.to_str().unwrap()]);
    assert_eq!(out.status, 1, "{}", out.error);
    assert!(out.error.contains("koboshi.yaml:2:") && out.error.contains("every 5"), "{}", out.error);
    assert!(!out.error.contains("no supervisor is running"), "{}", out.error);
}

/// A program that is not there is said to be that, and not to have started.
#[test]
fn an_agent_without_its_program_is_not_said_to_have_started() {
    let mut home = Home::new("");
    home.agents = json!({
        "path": {"command": ["./nope.sh"], "gateway": "off"}, "name": {"command": ["no-such-program-1"], "gateway": "off"},
    });
    let supervisor = home.supervise();
    home.says("path/default: cannot be started: its program ./nope.sh does not exist");
    home.says("name/default: cannot be started: its program no-such-program-1 was not found in PATH");
    assert!(!home.log().contains(": started"), "{}", home.log());
    supervisor.end();
}
