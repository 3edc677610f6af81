//! The agents that a supervisor keeps, as plain data.

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::Secret;

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// Which kind of program it is; by default the program's name decides.
    pub kind: Option<String>,
    /// The accounts whose limits it uses, tried in this order when the first is dry; by default its kind decides.
    pub account: Vec<String>,
    /// The model that it asks.
    pub model: Option<String>,
    /// The projects; each has at most one run at a time.
    pub projects: Vec<String>,
    /// Where it runs; `{project}` stands for the project.
    pub dir: Option<PathBuf>,
    /// Variables, `NAME=value`.
    pub env: Vec<Secret>,
    /// Variables that it gets from the supervisor's own environment, besides the default ones.
    pub pass_env: Vec<String>,
    /// When it is wanted.
    pub when: WhenConfig,
    /// On which machines it runs; none on every one whose supervisor has it.
    pub run_on: Vec<String>,
    /// With `run_on: any`: how long another machine waits for one that no longer renews its lease.
    pub takeover: Duration,
    /// In how many of its projects it may run at once.
    pub concurrency: Option<u32>,
    /// What a run may take.
    pub limits: AgentLimits,
    /// How it is stopped.
    pub stop: AgentStop,
    /// Whether it continues when the supervisor is gone.
    pub survives: bool,
    /// Whether a session is continued after a failure.
    pub resume: bool,
    /// The gateway that it is pointed at: `auto` for the one of this config, an address, or `off`.
    pub gateway: String,
}

/// When an agent is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhenConfig {
    /// `always`, `once`, `every 10m`, or a schedule in the form of cron.
    pub schedule: String,
    /// What becomes of the times of a schedule that passed while there was no supervisor.
    pub missed: &'static str,
    /// What becomes of a time that comes while the agent still runs.
    pub overlap: &'static str,
    /// The program that is asked whether it is wanted.
    pub command: Vec<String>,
    /// The MCP server that is asked.
    pub mcp: McpConfig,
    /// How often the `when` of an agent is asked.
    pub interval: Duration,
}

/// An MCP server that knows what is wanted of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpConfig {
    /// The program that speaks MCP on its standard streams.
    pub command: Vec<String>,
    /// The address of one that is there already.
    pub url: Option<String>,
    /// Sent to that address as `Authorization: Bearer`.
    pub token: Option<Secret>,
    /// The tool that is called.
    pub tool: String,
}

/// What a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// The whole run.
    pub run: Option<Duration>,
    /// Without output.
    pub silent: Option<Duration>,
    /// While it waits for the network.
    pub offline: Option<Duration>,
    /// Bytes of memory, of it and everything that it started.
    pub memory: Option<u64>,
    /// Processes, itself among them.
    pub pids: Option<u32>,
}

/// How an agent is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentStop {
    /// The name of the signal.
    pub signal: &'static str,
    /// How long it may take.
    pub grace: Duration,
}

/// What becomes of times that passed while there was no supervisor.
pub const MISSED: &[&str] = &["skip", "run"];
/// What becomes of a time that comes while the agent still runs.
pub const OVERLAP: &[&str] = &["skip", "wait", "replace"];
/// The gateway of the same config.
pub const AUTO: &str = "auto";
/// No gateway.
pub const OFF: &str = "off";
/// The word for a machine that is not named.
pub const ANY_MACHINE: &str = "any";
/// The signals that ask a program to end.
pub const STOP_SIGNALS: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL"];

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            kind: None,
            account: Vec::new(),
            model: None,
            projects: vec!["default".to_owned()],
            dir: None,
            env: Vec::new(),
            pass_env: Vec::new(),
            when: WhenConfig::default(),
            run_on: Vec::new(),
            takeover: Duration::from_secs(30),
            concurrency: None,
            limits: AgentLimits {
                run: None,
                silent: None,
                offline: Some(Duration::from_secs(10 * 60)),
                memory: None,
                pids: None,
            },
            stop: AgentStop { signal: "TERM", grace: Duration::from_secs(10) },
            survives: true,
            resume: true,
            gateway: AUTO.to_owned(),
        }
    }
}

impl Default for WhenConfig {
    fn default() -> Self {
        let tool = "get_agent_action".to_owned();
        Self {
            schedule: "always".to_owned(),
            missed: "skip",
            overlap: "skip",
            command: Vec::new(),
            mcp: McpConfig { command: Vec::new(), url: None, token: None, tool },
            interval: Duration::from_secs(2),
        }
    }
}

impl WhenConfig {
    /// The length of `every 10m`.
    #[must_use]
    pub fn every(&self) -> Option<Duration> {
        let length = koboshi::wait::parse_duration(self.schedule.strip_prefix("every ")?)?;
        (!length.is_zero()).then_some(length)
    }

    /// The schedule in the form of cron, if it is one.
    #[must_use]
    pub fn cron(&self) -> Option<&str> {
        let others = ["always", "once"].contains(&self.schedule.as_str()) || self.every().is_some();
        (!others).then_some(self.schedule.as_str())
    }

    /// Whether an MCP server is asked.
    #[must_use]
    pub fn asks_server(&self) -> bool {
        !self.mcp.command.is_empty() || self.mcp.url.is_some()
    }
}

/// One account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountConfig {
    /// How many runs may be active at once.
    pub concurrency: Option<u32>,
    /// Variables that sign an agent in with it, `NAME=value`.
    pub env: Vec<Secret>,
}
