//! What the first page of the dashboard needs at once: routes with their chains, and what was counted since the start.
//!
//! The counters are those of the metrics. The gateway counts nothing for the dashboard alone.

use jiff::Timestamp;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::AdminRequest;
use crate::route::plan::Backing;

/// The gateway at a glance.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Overview {
    node: String,
    version: &'static str,
    address: String,
    now: Timestamp,
    started: Timestamp,
    /// `providers`, `demo`, `simulated` or `nothing`: what answers requests.
    backing: &'static str,
    /// Whether the program around it knows the config file.
    hosted: bool,
    /// Whether this process keeps agents, as `koboshi up` does.
    keeps_agents: bool,
    /// The prefix of fault codes.
    code_prefix: String,
    /// Requests in progress.
    open: i64,
    connections: i64,
    session_connections: i64,
    /// Whether the last exchange with the store went well.
    store_connected: bool,
    counts: Counts,
    routes: Vec<RouteView>,
}

/// Totals since the start.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct Counts {
    /// Failed attempts.
    faults: u64,
    /// Whole answers although something had failed or was out of use.
    survived: u64,
    /// Answers as they should be.
    whole: u64,
    /// Answers from the cache while fresh.
    cached: u64,
    /// Lesser answers, because every target failed.
    degraded: u64,
    /// Requests that were refused.
    refused: u64,
    /// Errors instead of an answer.
    failed: u64,
    /// Answers that broke after their first content.
    broken: u64,
}

/// A route.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct RouteView {
    /// The name that clients ask for; `*` stands for any text.
    name: String,
    /// Targets in the order in which they are asked; `{model}` is what the client asked for.
    chain: Vec<String>,
    /// The simpler model that answers when the chain cannot.
    simple_model: Option<String>,
}

/// The gateway at a glance.
#[cfg_attr(test, utoipa::path(get, path = super::paths::OVERVIEW, tag = "targets",
    responses((status = 200, description = "Routes, and totals since the start", body = Overview))))]
pub(super) fn overview(request: &AdminRequest<'_>) -> Overview {
    let (state, plan) = (&request.core.state, request.plan);
    let meters = &state.meters;
    let routes = plan.config.routes.iter().map(|(name, route)| RouteView {
        name: name.clone(),
        chain: route.chain.clone(),
        simple_model: route.simple_model.clone(),
    });
    Overview {
        node: state.ledger.node().to_string(),
        version: env!("CARGO_PKG_VERSION"),
        address: state.address.get().map(ToString::to_string).unwrap_or_default(),
        now: state.wall(),
        started: state.started,
        backing: match plan.backing() {
            Backing::Providers => "providers",
            Backing::Demo => "demo",
            Backing::Simulated => "simulated",
            Backing::Nothing => "nothing",
        },
        hosted: state.host.get().is_some(),
        keeps_agents: state.agents.get().is_some(),
        code_prefix: plan.config.code_prefix.to_string(),
        // The request for this overview is none of a client's.
        open: (meters.open.get() - 1).max(0),
        connections: meters.connections.get(),
        session_connections: meters.sessions.get(),
        store_connected: state.ledger.health().connected,
        counts: Counts {
            faults: meters.fallen.get(),
            survived: meters.survived.get(),
            whole: meters.whole.get(),
            cached: meters.answered("cached"),
            degraded: meters.all_degraded(),
            refused: meters.answered("refused"),
            failed: meters.answered("failed"),
            broken: meters.answered("broken"),
        },
        routes: routes.collect(),
    }
}

/// Sessions that this process has in memory.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct SessionList {
    sessions: Vec<SessionView>,
    /// More than are listed.
    left_out: usize,
}

/// A session.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct SessionView {
    /// The beginning of its id.
    id: String,
    /// The key whose session it is.
    tenant: String,
    /// Tabs and programs that are connected here.
    connections: usize,
    /// Whether this process runs its turns now.
    owned: bool,
}

/// How many sessions are listed.
const MAX_SESSIONS: usize = 500;
/// How much of an id is shown: enough to find it in a log, too little to use it.
const SHOWN_ID: usize = 8;

/// Conversations over WebSocket that are in memory here.
#[cfg_attr(test, utoipa::path(get, path = super::paths::SESSIONS, tag = "sessions",
    responses((status = 200, description = "Sessions of this process", body = SessionList))))]
pub(super) fn sessions(request: &AdminRequest<'_>) -> SessionList {
    let all = request.core.state.sessions.all();
    let left_out = all.len().saturating_sub(MAX_SESSIONS);
    let view = |session: &std::sync::Arc<crate::shared::sessions::LiveSession>| SessionView {
        id: session.id.chars().take(SHOWN_ID).collect(),
        tenant: session.tenant.clone(),
        connections: session.connections(),
        owned: session.is_owned(),
    };
    SessionList { sessions: all.iter().take(MAX_SESSIONS).map(view).collect(), left_out }
}
