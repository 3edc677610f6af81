//! What operators ask of the program around the gateway: the config file, the end.
//!
//! Each call blocks (a file, a socket), so the worker of operators makes it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;
#[cfg(test)]
use utoipa::ToSchema;

use super::{AdminRequest, STORE_TIMEOUT};
use crate::reply::refusal::Refusal;
use crate::shared::host::Host;
use koboshi_store::EntryKind;

/// How long an answer waits for a reload.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it looks.
const RELOAD_POLL: Duration = Duration::from_millis(20);

/// What `koboshi check` says now about the config that the gateway was started with.
#[cfg_attr(test, utoipa::path(get, path = super::paths::CHECK, tag = "config",
    responses((status = 200, description = "`file`, `good`, `problems`, `warnings` and `differs`, as `koboshi check --format json`", body = Value))))]
pub(super) async fn check(request: &AdminRequest<'_>) -> Result<Value, Refusal> {
    let lang = request.context.lang;
    ask(request, move |host| Ok(host.check(lang))).await
}

/// How a reload ended.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct ReloadResult {
    /// `in_use`, `unchanged`, `refused`, or `pending` where it takes longer.
    outcome: &'static str,
    /// Why it was refused.
    why: Option<String>,
    at: Option<Timestamp>,
}

/// Reads the config again.
#[cfg_attr(test, utoipa::path(post, path = super::paths::RELOAD, tag = "config",
    responses((status = 200, description = "Whether the new config is in use", body = ReloadResult))))]
pub(super) async fn reload(request: &AdminRequest<'_>) -> Result<ReloadResult, Refusal> {
    let state = &request.core.state;
    let before = state.reloadings();
    note(request, "reload", "a reload of the config was ordered by an operator".to_owned());
    ask(request, |host| host.reload()).await?;
    let until = state.now().after(RELOAD_TIMEOUT);
    while state.reloadings() == before && state.now() < until {
        sleep(RELOAD_POLL).await;
    }
    let last = state.last_reloading().filter(|_| state.reloadings() != before);
    Ok(match last {
        None => ReloadResult { outcome: "pending", why: None, at: None },
        Some((at, how)) => {
            let why = if let crate::shared::host::Reloading::Refused(why) = &how {
                Some(why.clone())
            } else {
                None
            };
            ReloadResult { outcome: how.name(), why, at: Some(at) }
        }
    })
}

/// An order about the process.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessOrder {
    #[expect(dead_code, reason = "there is one, and it must be named")]
    action: ProcessAction,
}

/// What an operator may do with the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum ProcessAction {
    /// Take no new requests, let running streams end, and stop.
    Drain,
}

/// Drains the gateway and ends its process, as SIGTERM does.
#[cfg_attr(test, utoipa::path(post, path = super::paths::PROCESS, tag = "config", request_body = ProcessOrder,
    responses((status = 200, description = "It drains", body = Value))))]
pub(super) async fn process(request: &AdminRequest<'_>, _order: &ProcessOrder) -> Result<Value, Refusal> {
    note(request, "drain", "the gateway is drained and stopped by an operator".to_owned());
    ask(request, |host| host.drain()).await?;
    Ok(json!({"draining": true, "open": request.core.state.meters.open.get()}))
}

async fn ask<R: Send + 'static>(
    request: &AdminRequest<'_>,
    wanted: impl FnOnce(&dyn Host) -> Result<R, String> + Send + 'static,
) -> Result<R, Refusal> {
    let host = request.core.state.host.get().ok_or_else(Refusal::no_host)?;
    call(request, host, wanted).await
}

async fn call<R: Send + 'static>(
    request: &AdminRequest<'_>,
    host: &Arc<dyn Host>,
    wanted: impl FnOnce(&dyn Host) -> Result<R, String> + Send + 'static,
) -> Result<R, Refusal> {
    let host = Arc::clone(host);
    let answered = request.core.state.admin_calls.ask(STORE_TIMEOUT, move || wanted(&*host)).await;
    let no_answer = || format!("no answer within {} s", STORE_TIMEOUT.as_secs());
    answered.unwrap_or_else(|| Err(no_answer())).map_err(|why| Refusal::host_failed(&why))
}

fn note(request: &AdminRequest<'_>, kind: &str, text: String) {
    let data = json!({"from": request.client.address, "request": &*request.context.id});
    request.core.state.note(EntryKind::Operator, kind, None, text, data);
}
