//! Agents under a real `koboshi supervise`, for the tests that need one.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use koboshi_testkit::{ScriptedAgent, signal, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Out, json as document, koboshi, run, run_with};

/// Starts are not limited, so that a test need not wait.
pub(crate) const QUICK: &str =
    "cooldown: {max_starts: 100000, error: {initial: 20ms, max: 20ms, park_after: off}}\n";

pub(crate) struct Home {
    folder: TempDir,
    pub(crate) agents: Value,
    more: String,
    /// A store that several machines share; otherwise a file of this one.
    shared: Option<String>,
}

impl Home {
    pub(crate) fn new(more: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), agents: json!({}), more: more.to_owned(), shared: None }
    }

    /// A machine of its own, with a store that it shares with others.
    pub(crate) fn sharing(url: &str, more: &str) -> Self {
        Self { shared: Some(url.to_owned()), ..Self::new(more) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> String {
        self.shared.clone().unwrap_or_else(|| self.path("koboshi.db").display().to_string())
    }

    /// Adds an agent with these settings besides its command.
    pub(crate) fn agent(&mut self, name: &str, agent: &ScriptedAgent, settings: Value) {
        let mut all = settings;
        all["command"] = json!(agent.command());
        all["gateway"] = json!(false);
        self.agents[name] = all;
    }

    pub(crate) fn config(&self) -> String {
        let path = self.path("koboshi.yaml");
        fs::write(&path, format!("{}agents: {}\n", self.more, self.agents)).unwrap();
        path.display().to_string()
    }

    pub(crate) fn supervise(&self) -> Supervisor {
        self.start(&["supervise"])
    }

    /// Gateway and supervisor in one process.
    pub(crate) fn up(&self) -> Supervisor {
        self.start(&["up", "--listen", "127.0.0.1:0"])
    }

    /// A gateway alone.
    pub(crate) fn serve(&self) -> Supervisor {
        self.start(&["serve", "--listen", "127.0.0.1:0"])
    }

    pub(crate) fn start(&self, args: &[&str]) -> Supervisor {
        let (config, store) = (self.config(), self.store());
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        let mut command = koboshi(args);
        command.args(["--config", &config, "--store", &store]);
        command.env("XDG_STATE_HOME", self.path("state"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Supervisor(child)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(crate) fn says(&self, words: &str) {
        until(&format!("{words:?}"), || self.log().contains(words).then_some(()));
    }

    pub(crate) fn status(&self) -> Value {
        let state = self.path("state").display().to_string();
        let args = ["status", "--format", "json", "--store", &self.store()];
        document(&run_with(&args, &[("XDG_STATE_HOME", &state)], ""))
    }

    pub(crate) fn state_of(&self, agent: &str) -> String {
        let status = self.status();
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        let one = agents.iter().find(|one| one["agent"] == agent);
        one.map(|one| one["state"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    /// An order for the supervisor of this machine, where the store is shared.
    pub(crate) fn order_here(&self, order: &str, agent: &str) {
        let state = self.path("state").display().to_string();
        let out = run_with(&[order, agent, "--store", &self.store()], &[("XDG_STATE_HOME", &state)], "");
        assert_eq!(out.status, 0, "{}", out.error);
    }

    pub(crate) fn order(&self, order: &str, agent: &str) -> Out {
        run(&[order, agent, "--store", &self.store()])
    }
}

/// A supervisor that ends with the test.
pub(crate) struct Supervisor(pub(crate) Child);

impl Supervisor {
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn end(mut self) {
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

/// A mark that no other test has.
pub(crate) fn mark(name: &str) -> String {
    format!("supervised-{name}-{}", std::process::id())
}
