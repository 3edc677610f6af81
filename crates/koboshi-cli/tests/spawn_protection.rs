//! The integration tests of the spawn-protection design (its section 1.3 and its phase 2), with its own config section, against the running
//! supervisor, real processes and an MCP server that says what the design's coordinator asks for.
//!
//! Names and values are the design's. Where it was wrong the right behaviour stands here: a quota rests the account, not the one agent that met
//! it, and agents without an account rest alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::supervised::{Home, Supervisor, mark};
use koboshi_testkit::{ScriptedAgent, until};
use serde_json::{Value, json};

/// The tool that is asked: it counts how often, and always wants the agent to run.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        answer = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif message.get("method") == "tools/call":
        open(sys.argv[1], "a").write("asked\n")
        answer = {"content": [], "structuredContent": {"action": "start"}}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"#;

struct Coordinator {
    home: Home,
    supervisor: Supervisor,
    asked: PathBuf,
    starts: PathBuf,
}

impl Coordinator {
    /// One agent, which says this and fails.
    fn new(name: &str, error_protection: &str, said: &str) -> Self {
        let mut home = Home::new(&format!("error_protection: {error_protection}\n"));
        let (asked, starts, server) = (home.path("asked"), home.path("starts"), home.path("server.py"));
        fs::write(&server, SERVER).unwrap();
        let command = json!(["python3", server.display().to_string(), asked.display().to_string()]);
        let agent = ScriptedAgent::new(&mark(name)).notes(&starts).complains(said).exits(1);
        let when = json!({"mcp": {"command": command}, "interval": "50ms"});
        home.agent("agt_001", &agent, json!({"projects": ["prj_001"], "when": when}));
        let supervisor = home.supervise();
        Self { home, supervisor, asked, starts }
    }

    fn spawn_count(&self) -> usize {
        fs::read_to_string(&self.starts).unwrap_or_default().lines().count()
    }

    /// Waits until the server was asked several times more.
    fn polls(&self) {
        let count = || fs::read_to_string(&self.asked).unwrap_or_default().lines().count();
        let before = count();
        until("it is asked further", || (count() > before + 5).then_some(()));
    }

    fn entry(&self) -> Value {
        until("something rests", || Some(self.home.status()["rows"].get(0)?.clone()))
    }
}

const DEFAULTS: &str = "{enabled: true, default_cooldown_seconds: 60, max_cooldown_seconds: 3600, quota_detection_enabled: true}";

// ===== 1.3 =====

#[test]
fn spawn_skipped_during_cooldown() {
    let coordinator = Coordinator::new("skipped", DEFAULTS, "Error: Something went wrong");
    coordinator.home.says("[DEBUG] coordinator: Skipping agt_001/prj_001: in cooldown (error, ");
    coordinator.polls();
    assert_eq!(coordinator.spawn_count(), 1);
    coordinator.supervisor.end();
}

#[test]
fn spawn_allowed_after_cooldown() {
    let short = "{enabled: true, default_cooldown_seconds: 1}";
    let coordinator = Coordinator::new("allowed", short, "Error: Something went wrong");
    coordinator.home.says("[INFO] coordinator: Cooldown ended for agt_001/prj_001, spawn allowed");
    until("it is started again", || (coordinator.spawn_count() >= 2).then_some(()));
    coordinator.supervisor.end();
}

#[test]
fn cooldown_set_on_process_error() {
    let coordinator = Coordinator::new("error", DEFAULTS, "Error: Something went wrong");
    let line = "[WARNING] coordinator: Cooldown set for agt_001/prj_001: 60s (reason: error, consecutive: 1)";
    coordinator.home.says(line);
    let entry = coordinator.entry();
    assert_eq!(
        (&entry["key"], &entry["reason"]),
        (&json!("agent:agt_001/prj_001"), &json!("error")),
        "{entry}"
    );
    // Not the one that too many starts would set.
    assert_eq!(coordinator.spawn_count(), 1, "{entry}");
    coordinator.supervisor.end();
}

#[test]
fn quota_cooldown_from_log() {
    let said = "TerminalQuotaError: quota will reset after 10m0s";
    let coordinator = Coordinator::new("quota", DEFAULTS, said);
    // 10 min and 10 %.
    coordinator.home.says("Cooldown set for agt_001/prj_001: 660s (reason: quota, consecutive: 1)");
    assert_eq!(coordinator.entry()["reason"], "quota");
    coordinator.supervisor.end();
}

// ===== Phase 2 =====

#[test]
fn no_rapid_respawn_on_error() {
    let coordinator = Coordinator::new("rapid", DEFAULTS, "Error: Something went wrong");
    until("the first spawn", || (coordinator.spawn_count() == 1).then_some(()));
    coordinator.polls();
    coordinator.polls();
    assert_eq!(coordinator.spawn_count(), 1, "unchanged: {}", coordinator.home.log());
    coordinator.supervisor.end();
}

#[test]
fn quota_error_respected() {
    let coordinator = Coordinator::new("respected", DEFAULTS, "Error: Your quota will reset after 5m0s.");
    coordinator.home.says("Cooldown set for agt_001/prj_001: 330s (reason: quota, consecutive: 1)");
    coordinator.polls();
    assert_eq!(coordinator.spawn_count(), 1);
    coordinator.supervisor.end();
}

// ===== The switches of its config =====

#[test]
fn without_quota_detection_a_quota_is_an_error_like_others() {
    let off = "{enabled: true, default_cooldown_seconds: 60, quota_detection_enabled: false}";
    let said = "TerminalQuotaError: quota will reset after 10m0s";
    let coordinator = Coordinator::new("undetected", off, said);
    coordinator.home.says("Cooldown set for agt_001/prj_001: 60s (reason: error, consecutive: 1)");
    coordinator.supervisor.end();
}

#[test]
fn without_protection_nothing_rests() {
    let coordinator = Coordinator::new("off", "{enabled: false}", "Error: Something went wrong");
    until("it is started again and again", || (coordinator.spawn_count() >= 3).then_some(()));
    assert!(!coordinator.home.log().contains("Cooldown set"), "{}", coordinator.home.log());
    coordinator.supervisor.end();
}
