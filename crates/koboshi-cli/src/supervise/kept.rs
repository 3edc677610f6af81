//! The agents of this process, for the admin API of the gateway beside them: its orders go over the local socket, as those of the command line do.

use std::path::PathBuf;
use std::sync::Arc;

use koboshi_gateway::{AgentOrder, AgentsError, KeptAgents, LogPiece, LogQuestion};
use koboshi_supervisor::keep::{Action, AgentMeters, Order, ask};
use koboshi_supervisor::logs::{Logs, NoLog, Place};
use serde_json::{Value, json};

/// An answer has about this much of a log.
pub(super) const PIECE: usize = 1 << 20;

pub(crate) struct HostedAgents {
    pub(crate) runs: PathBuf,
    pub(crate) meters: Arc<AgentMeters>,
}

impl KeptAgents for HostedAgents {
    fn order(&self, action: AgentOrder, agent: Option<&str>) -> Result<Value, AgentsError> {
        let action = match action {
            AgentOrder::Status => Action::Status,
            AgentOrder::Start => Action::Start,
            AgentOrder::Stop => Action::Stop,
            AgentOrder::Restart => Action::Restart,
            AgentOrder::Reload => Action::Reload,
        };
        // The gateway notes who asked.
        let order = Order { is_noted: true, ..Order::new(action, agent.map(str::to_owned)) };
        let away = |why: String| AgentsError::Away(why);
        let answer = ask(&self.runs, &order).map_err(|error| away(error.to_string()))?;
        let answer = answer.ok_or_else(|| away("it is not running".to_owned()))?;
        match answer.get("error").and_then(Value::as_str) {
            None => Ok(answer),
            Some("unknown_agent") => Err(AgentsError::Unknown(names(&answer))),
            Some("config") => Ok(json!({"reloaded": false, "why": answer.get("why")})),
            Some(other) => Err(away(other.to_owned())),
        }
    }

    fn log(&self, asked: &LogQuestion) -> Result<LogPiece, AgentsError> {
        let which = asked.run.parse().map_err(|()| AgentsError::Parameter("run"))?;
        let from = asked.from.as_deref().map(str::parse::<Place>).transpose();
        let from = from.map_err(|()| AgentsError::Parameter("from"))?;
        let log = Logs::of(&self.runs).find(&asked.agent, which).map_err(|none| match none {
            NoLog::Agent(known) => AgentsError::Unknown(known),
            NoLog::Project(known) => AgentsError::Project(known),
            NoLog::Run(kept) => AgentsError::Run(kept),
        })?;
        // Asked before the lines are read: what was written before the end is in them.
        let (ended, over) = (log.has_ended(), log.is_over());
        let piece = log.read(from, PIECE).map_err(|error| AgentsError::Away(error.to_string()))?;
        Ok(LogPiece {
            run: log.id(),
            agent: log.agent,
            text: String::from_utf8_lossy(&piece.bytes).into_owned(),
            next: piece.next.map(|place| place.to_string()),
            more: piece.more,
            ended,
            over,
        })
    }

    fn metrics(&self) -> String {
        self.meters.text()
    }
}

/// The agents that there are, as an answer lists them.
pub(super) fn names(answer: &Value) -> Vec<String> {
    let listed = answer.get("agents").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned).collect()
}
