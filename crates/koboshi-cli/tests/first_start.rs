//! One goes first after a shared rest, of all processes that share a store: real supervisors and `koboshi run` on one real Redis.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]
#![allow(clippy::disallowed_methods, reason = "real processes ask for a claim again after real time")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::supervised::Home;
use common::{Running, koboshi};
use jiff::Timestamp;
use koboshi_testkit::{RedisServer, until};
use serde_json::{Value, json};

/// A rest of a second; an end after no time is work all the same.
const SHORT: &str =
    "cooldown: {min_run: 0s, stagger: 100ms, jitter: 0, rate_limit: {initial: 1s, max: 1s}}\n";
/// A lease that one process waits for is asked for again every 10 s: after this time it has been.
const ASKED_AGAIN: i64 = 11;

/// Steps of a script, one for each start: the last one is repeated.
struct Steps(PathBuf);

impl Steps {
    fn new(work: &Path, name: &str) -> Self {
        Self(work.join(name))
    }

    /// How often it was started.
    fn starts(&self) -> usize {
        fs::read_to_string(&self.0).unwrap_or_default().lines().count()
    }

    /// What it waits for in its nth step.
    fn gate(&self, step: usize) -> PathBuf {
        self.0.with_extension(format!("go-{step}"))
    }

    fn open(&self, step: usize) {
        fs::write(self.gate(step), "").unwrap();
    }

    /// Each step waits for its gate, and then succeeds (`+`) or meets a limit (`-`).
    fn command(&self, ends: &str) -> Value {
        let step = |(at, end): (usize, char)| {
            let limit =
                if end == '-' { "echo 'API Error: 429 rate_limit_error' >&2; exit 1" } else { "exit 0" };
            format!(
                "{}) while [ ! -e {} ]; do sleep 0.02; done; {limit};;",
                at + 1,
                self.gate(at + 1).display()
            )
        };
        let steps: String = ends.chars().enumerate().map(step).collect();
        let file = self.0.display();
        json!([
            "sh",
            "-c",
            format!("echo x >> {file}; case $(wc -l < {file}) in {steps} esac; exec sleep 3600")
        ])
    }
}

fn agent(command: &Value) -> Value {
    json!({"command": command, "account": "main", "gateway": false, "survives": false})
}

fn is_held(home: &Home, agent: &str) -> Option<Timestamp> {
    let status = home.status();
    let one = status["agents"].as_array()?.iter().find(|one| one["agent"] == agent)?;
    (one["state"] == "held").then(|| one["now"].as_str().unwrap().parse().unwrap())
}

#[test]
fn a_supervisor_that_waited_for_the_first_start_does_not_keep_the_next_one_from_others() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let (mut first, mut second) = (Home::sharing(&server.url(), SHORT), Home::sharing(&server.url(), SHORT));
    let (a, b, c) =
        (Steps::new(work.path(), "a"), Steps::new(work.path(), "b"), Steps::new(work.path(), "c"));
    first.agents = json!({"a": agent(&a.command("-+-"))});
    second.agents = json!({"b": agent(&b.command("")), "c": agent(&c.command(""))});
    a.open(1);
    let one = first.supervise();
    until("it goes first after the rest", || (a.starts() == 2).then_some(()));
    let two = second.supervise();
    let since = until("the other ones wait", || {
        is_held(&second, "c/default").and_then(|_| is_held(&second, "b/default"))
    });
    // It no longer waits for a start either.
    second.order_here("stop", "c");
    until("they have asked again", || {
        is_held(&second, "b/default").filter(|now| now.duration_since(since).as_secs() >= ASKED_AGAIN)
    });
    assert_eq!((a.starts(), b.starts(), c.starts()), (2, 0, 0), "{}", second.log());
    a.open(2);
    until("the other one follows", || (b.starts() == 1).then_some(()));
    until("it goes on itself", || (a.starts() == 3).then_some(()));
    let ran = Timestamp::now();
    until("a claim that was left would have been granted", || {
        (Timestamp::now().duration_since(ran).as_secs() >= ASKED_AGAIN).then_some(())
    });
    a.open(3);
    until("after the next rest it goes first again", || (a.starts() == 4).then_some(()));
    assert_eq!(b.starts(), 1, "{}", second.log());
    one.end();
    two.end();
}

#[test]
fn a_first_run_that_goes_on_lets_the_agents_of_other_machines_follow() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let patient = SHORT.replace("stagger", "max_probe_time: 3s, stagger");
    let (mut first, mut second) =
        (Home::sharing(&server.url(), &patient), Home::sharing(&server.url(), &patient));
    let (a, b) = (Steps::new(work.path(), "a"), Steps::new(work.path(), "b"));
    first.agents = json!({"a": agent(&a.command("-"))});
    second.agents = json!({"b": agent(&b.command(""))});
    a.open(1);
    let one = first.supervise();
    until("it goes first after the rest", || (a.starts() == 2).then_some(()));
    let two = second.supervise();
    until("the other one follows", || (b.starts() == 1).then_some(()));
    assert_eq!(first.state_of("a/default"), "running", "{}", first.log());
    assert_eq!(first.status()["rows"], json!([]), "the account is in use again");
    one.end();
    two.end();
}

#[test]
fn of_two_commands_on_one_account_one_goes_first_and_the_other_keeps_nothing_from_a_third() {
    let (server, work) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let config = work.path().join("koboshi.yaml");
    fs::write(&config, SHORT).unwrap();
    let start = |steps: &Steps, ends: &str| {
        let mut command: Command = koboshi(&["run", "--account", "main", "--gateway", "off", "--tries", "9"]);
        command.args(["--store", &server.url(), "--config", &config.display().to_string(), "--"]);
        command.env("XDG_STATE_HOME", work.path().join("state"));
        let words = steps.command(ends);
        command.args(words.as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
        let errors = fs::File::create(steps.0.with_extension("said")).unwrap();
        Running::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors))
    };
    let said = |steps: &Steps| fs::read_to_string(steps.0.with_extension("said")).unwrap_or_default();
    let (a, b, c) =
        (Steps::new(work.path(), "a"), Steps::new(work.path(), "b"), Steps::new(work.path(), "c"));
    a.open(1);
    let _one = start(&a, "-+");
    until("it goes first after the rest", || (a.starts() == 2).then_some(()));
    let _two = start(&b, "");
    let waits = Timestamp::now();
    until("the other one waits for it", || said(&b).contains("account:main").then_some(()));
    until("it has asked again", || {
        (Timestamp::now().duration_since(waits).as_secs() >= ASKED_AGAIN).then_some(())
    });
    assert_eq!((a.starts(), b.starts()), (2, 0), "{}", said(&b));
    a.open(2);
    until("the other one follows", || (b.starts() == 1).then_some(()));
    let ran = Timestamp::now();
    until("a claim that was left would have been granted", || {
        (Timestamp::now().duration_since(ran).as_secs() >= ASKED_AGAIN).then_some(())
    });
    c.open(1);
    let _three = start(&c, "-");
    until("after the next rest the third one goes first", || (c.starts() == 2).then_some(()));
    assert_eq!(b.starts(), 1, "{}", said(&b));
}
