//! The agents that the same process keeps, as operators reach them through the admin API.
//!
//! The gateway knows no supervisor: the program that has both hands over a [`KeptAgents`]. Its calls block, so a worker thread makes them.

use serde_json::Value;

/// The agents of this process.
pub trait KeptAgents: Send + Sync {
    /// Carries out an order; without one it tells what the agents do. The answer is that of the local socket.
    ///
    /// # Errors
    /// There is no such agent, or the supervisor does not answer.
    fn order(&self, action: AgentOrder, agent: Option<&str>) -> Result<Value, AgentsError>;

    /// Reads a piece of the log of a run.
    ///
    /// # Errors
    /// There is no such agent or run, or its files cannot be read.
    fn log(&self, asked: &LogQuestion) -> Result<LogPiece, AgentsError>;

    /// Metrics in Prometheus' text format.
    fn metrics(&self) -> String;
}

/// What a supervisor is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentOrder {
    /// Tell what the agents do.
    Status,
    /// Start it now; a stopped one is wanted again.
    Start,
    /// Stop it until it is started.
    Stop,
    /// Stop it and start it again.
    Restart,
    /// Read the config again.
    Reload,
}

/// Which piece of which log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuestion {
    /// `agent/project`, or `agent` where it has one project.
    pub agent: String,
    /// 1 is the newest run; or the id of a run.
    pub run: String,
    /// Where to go on: the `next` of the last piece.
    pub from: Option<String>,
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    /// `agent/project`.
    pub agent: String,
    /// The id of the run.
    pub run: String,
    /// Whole lines.
    pub text: String,
    /// Where the next piece begins.
    pub next: Option<String>,
    /// There is more to read at once.
    pub more: bool,
    /// The agent has ended.
    pub ended: bool,
    /// Nothing more is written.
    pub over: bool,
}

/// Why an agent's question or order is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentsError {
    /// There is no such agent; there are these.
    Unknown(Vec<String>),
    /// It has several projects, and one must be named.
    Project(Vec<String>),
    /// There is no such run; this is how many are kept.
    Run(usize),
    /// A parameter cannot be read.
    Parameter(&'static str),
    /// The supervisor does not answer.
    Away(String),
}
