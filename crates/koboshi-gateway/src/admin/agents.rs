//! The agents that this process keeps: what they do, orders for them, their logs.
//!
//! Only `koboshi up` keeps agents. The same orders reach a supervisor of this machine over its local socket.

use std::sync::Arc;
use std::time::Duration;

use koboshi::key::ScopeKey;
use koboshi_store::EntryKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
#[cfg(test)]
use utoipa::ToSchema;

use super::AdminRequest;
use crate::reply::refusal::Refusal;
use crate::shared::agents::{AgentOrder, AgentsError, KeptAgents, LogPiece, LogQuestion};

/// How long a supervisor may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(11);
/// Longer names of agents and runs are refused.
const MAX_NAME: usize = 300;

/// An order about agents.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AgentsOrder {
    action: AgentAction,
    /// `agent/project`, or `agent` for all of its projects; not for `reload`.
    agent: Option<String>,
}

/// What an operator may do with agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentAction {
    /// Start it now; a stopped one is wanted again.
    Start,
    /// Stop it until it is started.
    Stop,
    /// Stop it and start it again.
    Restart,
    /// Read the config again: a bad one changes nothing.
    Reload,
}

impl AgentAction {
    const fn order(self) -> AgentOrder {
        match self {
            Self::Start => AgentOrder::Start,
            Self::Stop => AgentOrder::Stop,
            Self::Restart => AgentOrder::Restart,
            Self::Reload => AgentOrder::Reload,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Start => "agent_start",
            Self::Stop => "agent_stop",
            Self::Restart => "agent_restart",
            Self::Reload => "agents_reload",
        }
    }
}

/// A piece of the log of a run.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct LogView {
    agent: String,
    /// The id of the run: the nanosecond of its start.
    run: String,
    /// Whole lines, without secrets.
    text: String,
    /// The `from` of the next piece; none before the first line.
    next: Option<String>,
    /// There is more to read at once.
    more: bool,
    /// The agent has ended.
    ended: bool,
    /// Nothing more will be written.
    over: bool,
}

impl From<LogPiece> for LogView {
    fn from(piece: LogPiece) -> Self {
        let LogPiece { agent, run, text, next, more, ended, over } = piece;
        Self { agent, run, text, next, more, ended, over }
    }
}

/// What the agents of this process do.
#[cfg_attr(test, utoipa::path(get, path = super::paths::AGENTS, tag = "agents",
    responses((status = 200, description = "Every agent in every project, with its last end", body = Value),
              (status = 404, description = "This process keeps no agents"))))]
pub(super) async fn list(request: &AdminRequest<'_>) -> Result<Value, Refusal> {
    ask(request, "", |agents| agents.order(AgentOrder::Status, None)).await
}

/// Starts, stops or restarts an agent, or reads the config again.
#[cfg_attr(test, utoipa::path(post, path = super::paths::AGENTS, tag = "agents", request_body = AgentsOrder,
    responses((status = 200, description = "The agents as they are now; for `reload` what changed, or `why` the config cannot be used", body = Value),
              (status = 404, description = "No such agent, or this process keeps no agents"))))]
pub(super) async fn order(request: &AdminRequest<'_>, order: AgentsOrder) -> Result<Value, Refusal> {
    let AgentsOrder { action, agent } = order;
    let is_whole = agent.is_none() == (action == AgentAction::Reload);
    if !is_whole || agent.as_ref().is_some_and(|agent| agent.len() > MAX_NAME) {
        return Err(Refusal::agent_name());
    }
    let name = agent.clone().unwrap_or_default();
    let answer = ask(request, &name, {
        let agent = agent.clone();
        move |agents| agents.order(action.order(), agent.as_deref())
    });
    let answer = answer.await?;
    let text = match &agent {
        Some(agent) => format!("{agent}: {} by an operator", action.name()),
        None => format!("{} by an operator", action.name()),
    };
    let key = agent.and_then(|agent| {
        let (agent, project) = agent.split_once('/')?;
        ScopeKey::agent(agent, project).ok()
    });
    let data = json!({"from": request.client.address, "request": &*request.context.id});
    request.core.state.note(EntryKind::Operator, action.name(), key.as_ref(), text, data);
    Ok(answer)
}

/// A piece of the log of a run.
#[cfg_attr(test, utoipa::path(get, path = super::paths::LOGS, tag = "agents",
    params(("agent" = String, Query, description = "agent/project; the project may be left out where there is one only"),
           ("run" = Option<String>, Query, description = "1 is the newest (the default), 2 the one before it; or the id of a run"),
           ("from" = Option<String>, Query, description = "The `next` of the last piece; without it the oldest line that is kept")),
    responses((status = 200, description = "About 1 MiB of lines at most", body = LogView),
              (status = 404, description = "No such agent or run, or this process keeps no agents"))))]
pub(super) async fn log(request: &AdminRequest<'_>, query: &str) -> Result<LogView, Refusal> {
    let asked = parse(query)?;
    let name = asked.agent.clone();
    ask(request, &name, move |agents| agents.log(&asked)).await.map(LogView::from)
}

/// Makes a call that blocks.
async fn ask<R: Send + 'static>(
    request: &AdminRequest<'_>,
    name: &str,
    call: impl FnOnce(&dyn KeptAgents) -> Result<R, AgentsError> + Send + 'static,
) -> Result<R, Refusal> {
    let state = &request.core.state;
    let agents = state.agents.get().map(Arc::clone).ok_or_else(Refusal::agents_none)?;
    match state.admin_calls.ask(ANSWER_TIMEOUT, move || call(&*agents)).await {
        Some(answered) => answered.map_err(|error| Refusal::agents(name, &error)),
        None => Err(Refusal::agents(name, &AgentsError::Away("no answer in time".to_owned()))),
    }
}

fn parse(query: &str) -> Result<LogQuestion, Refusal> {
    let (mut agent, mut run, mut from) = (String::new(), "1".to_owned(), None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if value.len() > MAX_NAME {
            return Err(Refusal::agent_name());
        }
        match &*name {
            "agent" => agent = value.into_owned(),
            "run" => run = value.into_owned(),
            "from" => from = Some(value.into_owned()),
            _ => return Err(Refusal::query(&name, "agent, run, from")),
        }
    }
    if agent.is_empty() { Err(Refusal::agent_name()) } else { Ok(LogQuestion { agent, run, from }) }
}
