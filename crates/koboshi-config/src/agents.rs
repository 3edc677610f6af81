//! The agents that a supervisor keeps, as plain data.

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::Secret;

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// Which kind of program it is; none takes it from the program's name.
    pub kind: Option<String>,
    /// The account whose limits it uses; none takes it from its kind.
    pub account: Option<String>,
    /// The model that it asks.
    pub model: Option<String>,
    /// One run at a time in each of these.
    pub projects: Vec<String>,
    /// Where it runs; `{project}` stands for the project.
    pub dir: Option<PathBuf>,
    /// Variables, `NAME=value`.
    pub env: Vec<Secret>,
    /// Variables that it gets from the supervisor's own environment, besides the usual ones.
    pub pass_env: Vec<String>,
    /// When it is wanted.
    pub when: String,
    /// The program that is asked whether it is wanted.
    pub ask: Vec<String>,
    /// How long a run may take.
    pub limits: AgentLimits,
    /// How it is stopped.
    pub stop: AgentStop,
    /// It goes on when the supervisor is gone.
    pub survives: bool,
    /// A session is continued after a failure.
    pub resume: bool,
    /// It is pointed at the gateway of this config.
    pub gateway: bool,
}

/// How long a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// In all.
    pub run: Option<Duration>,
    /// Without output.
    pub silent: Option<Duration>,
    /// In waiting for the network.
    pub offline: Option<Duration>,
}

/// How an agent is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentStop {
    /// The name of the signal.
    pub signal: &'static str,
    /// How long it may take.
    pub grace: Duration,
}

/// The signals that ask a program to end.
pub const STOP_SIGNALS: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL"];

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            kind: None,
            account: None,
            model: None,
            projects: vec!["default".to_owned()],
            dir: None,
            env: Vec::new(),
            pass_env: Vec::new(),
            when: "always".to_owned(),
            ask: Vec::new(),
            limits: AgentLimits { run: None, silent: None, offline: Some(Duration::from_secs(10 * 60)) },
            stop: AgentStop { signal: "TERM", grace: Duration::from_secs(10) },
            survives: true,
            resume: true,
            gateway: true,
        }
    }
}

impl AgentConfig {
    /// The length of `every 10m`.
    #[must_use]
    pub fn every(&self) -> Option<Duration> {
        every(&self.when)
    }
}

/// The length of `every 10m`.
pub(crate) fn every(when: &str) -> Option<Duration> {
    let length = koboshi::wait::parse_duration(when.strip_prefix("every ")?)?;
    (!length.is_zero()).then_some(length)
}

/// One account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountConfig {
    /// No more runs than this at once.
    pub concurrency: Option<u32>,
}
