//! `koboshi supervise` with real agents: kept running, rested together, taken over after a crash.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use common::{json, koboshi, run};
use koboshi_testkit::{ScriptedAgent, signal, until, zombies_of};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Starts are not limited, so that a test need not wait.
const QUICK: &str = "cooldown: {max_starts: 100000, error: {initial: 20ms, max: 20ms, park_after: off}}\n";

struct Home {
    folder: TempDir,
    agents: Value,
    more: String,
}

impl Home {
    fn new(more: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), agents: json!({}), more: more.to_owned() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> String {
        self.path("koboshi.db").display().to_string()
    }

    /// Adds an agent with these settings besides its command.
    fn agent(&mut self, name: &str, agent: &ScriptedAgent, settings: Value) {
        let mut all = settings;
        all["command"] = json!(agent.command());
        all["gateway"] = json!(false);
        self.agents[name] = all;
    }

    fn config(&self) -> String {
        let path = self.path("koboshi.yaml");
        fs::write(&path, format!("{}agents: {}\n", self.more, self.agents)).unwrap();
        path.display().to_string()
    }

    fn supervise(&self) -> Supervisor {
        let (config, store) = (self.config(), self.store());
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = koboshi(&["supervise", "--config", &config, "--store", &store]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Supervisor(child)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn says(&self, words: &str) {
        until(&format!("{words:?}"), || self.log().contains(words).then_some(()));
    }

    fn status(&self) -> Value {
        json(&run(&["status", "--format", "json", "--store", &self.store()]))
    }

    fn state_of(&self, agent: &str) -> String {
        let status = self.status();
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        let one = agents.iter().find(|one| one["agent"] == agent);
        one.map(|one| one["state"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    fn order(&self, order: &str, agent: &str) -> common::Out {
        run(&[order, agent, "--store", &self.store()])
    }
}

/// A supervisor that ends with the test.
struct Supervisor(Child);

impl Supervisor {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn end(mut self) {
        signal(&self.0, "-TERM");
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn mark(name: &str) -> String {
    format!("supervise-{name}-{}", std::process::id())
}

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
    home.agent("sibling", &waits, json!({"account": "main", "when": "asked", "ask": ask}));
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
    let nobody = home.order("stop", "nobody");
    assert!(nobody.status == 2 && nobody.error.contains("talks/one"), "{}", nobody.error);
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
    let script = format!("env > {0}.new; mv {0}.new {0}; sleep 3600", seen.display());
    home.agents["env"] = json!({"command": ["sh", "-c", script], "env": ["OWN=value"], "pass_env": ["WANTED"], "survives": false, "gateway": false});
    let (config, store) = (home.config(), home.store());
    let mut command = koboshi(&["supervise", "--config", &config, "--store", &store]);
    command.env("WANTED", "1").env("UNWANTED_TOKEN", "2").stdout(Stdio::null()).stderr(Stdio::null());
    let supervisor = Supervisor(command.spawn().unwrap());
    let text = until("it runs", || fs::read_to_string(&seen).ok());
    assert!(text.contains("OWN=value") && text.contains("WANTED=1") && text.contains("PATH="), "{text}");
    assert!(!text.contains("UNWANTED"), "{text}");
    supervisor.end();
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
    assert!(second.status == 2 && second.error.contains("another supervisor"), "{}", second.error);
    supervisor.end();
    assert_eq!(silent.left(), [0_i32; 0], "what does not survive ends with the supervisor");
}

/// The supervisor is killed again and again while agents start and end: none runs twice, none is forgotten, no end is lost.
#[test]
fn a_supervisor_that_is_killed_loses_nothing_and_doubles_nothing() {
    let kills: usize = std::env::var("KOBOSHI_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(10);
    let mut home = Home::new(QUICK);
    let work = home.path("work");
    fs::create_dir(&work).unwrap();
    let names: Vec<String> = (0..6).map(|number| format!("a{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        // A folder is made by one only: whoever finds it there runs beside another one.
        let script = format!(
            "cd {}; mkdir {name}.lock 2>/dev/null || echo {name} >> twice; echo $$ >> {name}.starts; sleep 0.{number}3; rmdir {name}.lock; echo $$ >> {name}.ends; exit $((RANDOM % 2))",
            work.display()
        );
        home.agents[name] = json!({"command": ["bash", "-c", script], "gateway": false});
    }
    let count = |file: String| fs::read_to_string(work.join(file)).unwrap_or_default().lines().count();
    let all = || names.iter().map(|name| count(format!("{name}.starts"))).sum::<usize>();
    for round in 0..kills {
        let mut supervisor = home.supervise();
        let before = all();
        // At another point of their lives each time.
        until("agents go on", || (all() > before + round % 5).then_some(()));
        supervisor.kill();
    }
    let supervisor = home.supervise();
    let before: Vec<usize> = names.iter().map(|name| count(format!("{name}.starts"))).collect();
    until("every agent goes on", || {
        names
            .iter()
            .zip(&before)
            .all(|(name, before)| count(format!("{name}.starts")) > *before)
            .then_some(())
    });
    for name in &names {
        assert_eq!(home.order("stop", name).status, 0);
    }
    until("all are stopped", || {
        names.iter().all(|name| home.state_of(&format!("{name}/default")) == "stopped").then_some(())
    });
    supervisor.end();
    assert!(
        !work.join("twice").exists(),
        "two at once: {}",
        fs::read_to_string(work.join("twice")).unwrap_or_default()
    );
    // Every run that is still kept has an end, and that end was judged once.
    for name in &names {
        for entry in fs::read_dir(home.path("runs/agents").join(name).join("default")).unwrap() {
            let folder = entry.unwrap().path();
            let end = fs::read_to_string(folder.join("end.json")).unwrap_or_else(|_| {
                let files: Vec<_> =
                    fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                panic!("{} has no end: {files:?}", folder.display())
            });
            assert!(end.contains("void") || folder.join("judged").exists(), "{}: {end}", folder.display());
            assert!(!end.contains("lost"), "{}: {end}", folder.display());
        }
    }
}
