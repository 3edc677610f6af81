//! The agents of a running `koboshi up`, seen and ordered from elsewhere: over its admin API alone, without its store, its files or its config.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::io::Read;
use std::process::Stdio;

use common::supervised::{Home, QUICK, mark};
use common::{Out, Running, json as document, koboshi, run_with};
use koboshi_testkit::{Client, ScriptedAgent, until};
use serde_json::json;

/// A folder without a config, and a store of its own: of the other machine only the address is known.
struct Elsewhere {
    folder: tempfile::TempDir,
    url: String,
}

impl Elsewhere {
    fn of(home: &Home) -> Self {
        let url = until("the gateway says where it listens", || {
            let log = home.log();
            let rest = log.split("\"address\":\"").nth(1)?;
            Some(format!("http://{}", rest.split('"').next()?))
        });
        Self { folder: tempfile::tempdir().unwrap(), url }
    }

    fn variables(&self) -> [(&'static str, String); 2] {
        [("XDG_STATE_HOME", self.folder.path().display().to_string()), ("KOBOSHI_URL", self.url.clone())]
    }

    fn run(&self, args: &[&str]) -> Out {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        run_with(args, &variables, "")
    }

    fn state_of(&self, agent: &str) -> String {
        let status = document(&self.run(&["status", "--format", "json"]));
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        let one = agents.iter().find(|one| one["agent"] == agent);
        one.map(|one| one["state"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    fn metrics(&self) -> String {
        let mut client = Client::to(self.url.trim_start_matches("http://").parse().unwrap());
        client.send("GET", "/metrics", &[], b"");
        String::from_utf8(client.read().body.to_vec()).unwrap()
    }
}

#[test]
fn agents_are_seen_stopped_started_and_paused_from_elsewhere() {
    let mut home = Home::new(QUICK);
    let notes = home.path("notes");
    let agent = ScriptedAgent::new(&mark("remote")).notes(&notes).lives_on();
    home.agent("worker", &agent, json!({"projects": ["one", "two"], "account": "main", "survives": false}));
    let up = home.up();
    let there = Elsewhere::of(&home);
    until("both run", || {
        (there.state_of("worker/one") == "running" && there.state_of("worker/two") == "running").then_some(())
    });
    let text = there.run(&["status"]).text;
    assert!(text.contains("worker/one  running"), "{text}");

    let stopped = there.run(&["stop", "worker/one"]);
    assert_eq!(stopped.status, 0, "{}", stopped.error);
    until("it is stopped", || (there.state_of("worker/one") == "stopped").then_some(()));
    assert_eq!(there.state_of("worker/two"), "running");
    assert_eq!(there.run(&["start", "worker/one", "--format", "json"]).status, 0);
    until("it runs again", || (there.state_of("worker/one") == "running").then_some(()));
    let starts = || fs::read_to_string(&notes).unwrap().lines().count();
    let before = starts();
    assert_eq!(there.run(&["restart", "worker/one"]).status, 0);
    until("it was restarted", || (starts() > before).then_some(()));

    assert_eq!(there.run(&["pause", "worker", "--for", "2h"]).status, 0);
    assert_eq!(there.run(&["restart", "worker/one"]).status, 0);
    until("it is held", || (there.state_of("worker/one") == "held").then_some(()));
    assert_eq!(there.run(&["resume", "worker"]).status, 0);
    until("it goes on", || (there.state_of("worker/one") == "running").then_some(()));
    assert_eq!(there.run(&["cool", "account:main", "--for", "1h"]).status, 0, "an account of agents");

    let unknown = there.run(&["stop", "nobody", "--lang", "en"]);
    assert!(unknown.status == 2 && unknown.error.contains("worker/one, worker/two"), "{}", unknown.error);
    let unknown = there.run(&["pause", "nobody", "--for", "1h"]);
    assert_eq!(unknown.status, 1, "{}{}", unknown.text, unknown.error);
    let journal = there.run(&["journal", "--what", "operator", "--lang", "en"]).text;
    assert!(journal.contains("worker/one: agent_stop by an operator"), "{journal}");
    up.end();
}

#[test]
fn logs_are_read_and_followed_from_elsewhere() {
    let mut home = Home::new(QUICK);
    let (go, end) = (home.path("go"), home.path("end"));
    let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let agent = ScriptedAgent::new(&mark("remote-logs"))
        .says(&format!("first words with {key}"))
        .waits_for(&go)
        .floods(3 << 20)
        .says("last words")
        .waits_for(&end)
        .exits(0);
    home.agent("talker", &agent, json!({"projects": ["one", "two"], "when": "once", "survives": false}));
    let up = home.up();
    let there = Elsewhere::of(&home);
    until("it talks", || there.run(&["logs", "talker/one"]).text.contains("first words").then_some(()));
    let several = there.run(&["logs", "talker", "--lang", "en"]);
    assert!(several.status == 2 && several.error.contains("talker/one"), "{}", several.error);
    let beyond = there.run(&["logs", "talker/one", "--run", "9", "--lang", "en"]);
    assert!(beyond.status == 2 && beyond.error.contains("no such run"), "{}", beyond.error);

    let mut command = koboshi(&["logs", "talker/one", "-f"]);
    command.envs(there.variables()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut follower = Running::start(&mut command);
    fs::write(&go, "").unwrap();
    fs::write(&end, "").unwrap();
    let mut text = String::new();
    follower.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(follower.wait().unwrap().success(), "it ends with the run");
    assert!(!text.contains(key) && text.starts_with("first words with "));
    assert!(text.ends_with("last words\n"));
    assert_eq!(text, there.run(&["logs", "talker/one"]).text, "nothing twice, nothing left out");
    let flood = "a line of an agent that never stops talking\n";
    assert!(text.matches(flood).count() >= (3 << 20) / flood.len(), "{}", text.len());
    let whole = document(&there.run(&["logs", "talker/one", "--format", "json"]));
    assert_eq!(
        (&whole["agent"], &whole["over"], whole["lines"].as_array().unwrap().len()),
        (&json!("talker/one"), &json!(true), text.lines().count())
    );
    up.end();
}

#[test]
fn metrics_count_starts_ends_and_what_agents_do() {
    let mut home = Home::new("");
    let quota = "TerminalQuotaError: You have exhausted your capacity. Your quota will reset after 22m55s.";
    home.agent(
        "dry",
        &ScriptedAgent::new(&mark("dry-metrics")).complains(quota).exits(1),
        json!({"account": "main"}),
    );
    home.agent("quiet", &ScriptedAgent::new(&mark("quiet-metrics")).lives_on(), json!({"survives": false}));
    let up = home.up();
    let there = Elsewhere::of(&home);
    let wanted = [
        "koboshi_agent_starts_total{agent=\"dry\",project=\"default\"} 1",
        "koboshi_agent_starts_total{agent=\"quiet\",project=\"default\"} 1",
        "koboshi_agent_ends_total{agent=\"dry\",project=\"default\",outcome=\"quota\"} 1",
        "koboshi_agents{state=\"running\"} 1",
        "koboshi_agents{state=\"held\"} 1",
    ];
    let text = until("everything is counted", || {
        let text = there.metrics();
        wanted.iter().all(|line| text.contains(line)).then_some(text)
    });
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("koboshi_agent_output_bytes_total{agent=\"dry\"") > 80.0, "{text}");
    assert!(text.contains("koboshi_open_requests"), "the gateway's own are there too");
    assert_eq!(text.matches("# EOF").count(), 1, "one exposition");
    assert!(text.ends_with("# EOF\n"));
    until("held time grows", || {
        let text = there.metrics();
        let line =
            text.lines().find(|line| line.starts_with("koboshi_agent_held_seconds_total{agent=\"dry\""))?;
        (line.rsplit(' ').next()?.parse::<f64>().ok()? > 0.4).then_some(())
    });
    up.end();
}

#[test]
fn a_config_is_reloaded_from_elsewhere_and_a_bad_one_is_told() {
    let mut home = Home::new(QUICK);
    home.agent("same", &ScriptedAgent::new(&mark("remote-same")).lives_on(), json!({"survives": false}));
    let up = home.up();
    let there = Elsewhere::of(&home);
    until("it runs", || (there.state_of("same/default") == "running").then_some(()));
    let config = home.config();
    fs::write(&config, "agents: {same: {command: 7}}\n").unwrap();
    let refused = there.run(&["reload", "--lang", "en"]);
    assert!(refused.status == 1 && refused.error.contains("agents.same.command"), "{}", refused.error);
    home.agent("new", &ScriptedAgent::new(&mark("remote-new")).lives_on(), json!({"survives": false}));
    home.config();
    let reloaded = there.run(&["reload", "--lang", "en"]);
    assert_eq!(reloaded.status, 0, "{}", reloaded.error);
    until("the new one runs", || (there.state_of("new/default") == "running").then_some(()));
    up.end();
}

#[test]
fn orders_need_the_admin_key_and_a_gateway_without_agents_says_so() {
    // The digest of `hunter2`.
    let sha = "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7";
    let mut home = Home::new(&format!("{QUICK}admin: {{sha256: \"{sha}\"}}\n"));
    home.agent("kept", &ScriptedAgent::new(&mark("remote-kept")).lives_on(), json!({"survives": false}));
    let up = home.up();
    let there = Elsewhere::of(&home);
    until("it runs", || (home.state_of("kept/default") == "running").then_some(()));
    for args in [&["stop", "kept"][..], &["logs", "kept"], &["reload"]] {
        let refused = there.run(args);
        assert!(
            refused.status == 2 && refused.error.contains("KOBOSHI_ADMIN_KEY"),
            "{args:?}: {}",
            refused.error
        );
    }
    let key = there.folder.path().join("key");
    fs::write(&key, "hunter2\n").unwrap();
    let file = key.display().to_string();
    let stopped = there.run(&["stop", "kept", "--admin-key-file", &file]);
    assert_eq!(stopped.status, 0, "{}", stopped.error);
    until("it is stopped", || (home.state_of("kept/default") == "stopped").then_some(()));
    up.end();

    let alone = Home::new("");
    let serve = alone.serve();
    let there = Elsewhere::of(&alone);
    for (lang, words) in [("en", "keeps no agents"), ("ja", "エージェントを管理していません")]
    {
        for args in [&["stop", "x"][..], &["logs", "x"], &["reload"]] {
            let none = there.run(&[args, &["--lang", lang]].concat());
            assert!(none.status == 2 && none.error.contains(words), "{args:?}: {}", none.error);
        }
    }
    assert_eq!(there.run(&["status"]).status, 0, "its own state is there all the same");
    serve.end();
}
