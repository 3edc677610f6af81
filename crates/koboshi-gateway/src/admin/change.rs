//! Orders of operators: force breakers open or closed or release them, begin and end cooldowns. They override everything that was learned.

use std::sync::Arc;

use jiff::Timestamp;
use koboshi::breaker::Mode;
use koboshi::cooldown::OrderedMode;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;
use koboshi_store::EntryKind;
use serde::{Deserialize, Serialize};
use serde_json::json;
#[cfg(test)]
use utoipa::ToSchema;

use super::targets::{RestView, TargetList, known, rest_view, view};
use super::{AdminRequest, REDACTOR};
use crate::admin::known::Meaning;
use crate::attempt::learn::shown_utc;
use crate::reply::refusal::Refusal;
use crate::route::target::Target;
use crate::shared::state::SharedState;

/// Longer reasons are cut.
const MAX_REASON: usize = 200;

/// An order about a breaker.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct BreakerOrder {
    /// `provider/model`, or the `key` of one target.
    target: String,
    action: BreakerAction,
}

/// What an operator may do with a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum BreakerAction {
    /// Refuse everything, also for the last target.
    Open,
    /// Let everything through, and keep counting.
    Close,
    /// Let everything through and count nothing.
    Disable,
    /// End the operator's order; failures counted meanwhile still count.
    Release,
    /// Close the breaker and forget everything.
    Reset,
}

impl BreakerAction {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "breaker_open",
            Self::Close => "breaker_close",
            Self::Disable => "breaker_disable",
            Self::Release => "breaker_release",
            Self::Reset => "breaker_reset",
        }
    }

    const fn mode(self) -> OrderedMode {
        match self {
            Self::Open => OrderedMode::Open,
            Self::Close => OrderedMode::Close,
            Self::Disable => OrderedMode::Disable,
            Self::Release => OrderedMode::Release,
            Self::Reset => OrderedMode::Reset,
        }
    }
}

/// Forces breakers, or releases them, on every node that shares the store.
#[cfg_attr(test, utoipa::path(post, path = super::paths::BREAKERS, tag = "targets", request_body = BreakerOrder,
    responses((status = 200, description = "The targets as they are now", body = TargetList),
              (status = 404, description = "No such target"))))]
pub(super) fn breakers(request: &AdminRequest<'_>, order: &BreakerOrder) -> Result<TargetList, Refusal> {
    let state = &request.core.state;
    let meant: Vec<Arc<Target>> =
        known(request).into_iter().filter(|target| is(target, &order.target)).collect();
    if meant.is_empty() {
        return Err(Refusal::target(&order.target));
    }
    for target in &meant {
        state.order_breaker(target, order.action.mode());
        let text = format!("{}: {} by an operator", target.name, order.action.name());
        let data =
            json!({"target": &*target.name, "from": request.client.address, "request": &*request.context.id});
        state.note(EntryKind::Operator, order.action.name(), target.scopes.target.as_ref(), text, data);
    }
    Ok(TargetList { targets: meant.iter().map(|target| view(state, target)).collect() })
}

/// Whether this target is the one that the order names.
fn is(target: &Target, asked: &str) -> bool {
    *target.name == *asked || target.scopes.target.as_ref().is_some_and(|key| key.to_string() == asked)
}

/// An order about the cooldown of a key.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct CooldownOrder {
    /// What it is about: `provider:openai`, `account:openai`, `model:gpt-4o` (at every provider), `target:openai/gpt-4o` (with every API key),
    /// or a key that `GET /koboshi/keys` lists.
    key: String,
    action: CooldownAction,
    /// For `cool`: until when.
    until: Option<Timestamp>,
    /// For `cool`: why, for clients and for other operators.
    reason: Option<String>,
    /// Carry the order out although no target has this key.
    #[serde(default)]
    force: bool,
}

/// What an operator may do with a cooldown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum CooldownAction {
    /// End it, whatever was learned; also end limits that close gates under the key, and close breakers that are open or forced open.
    Clear,
    /// Keep it in cooldown until then.
    Cool,
}

/// The result of an order.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct ChangeResult {
    /// The key as it was asked for.
    key: String,
    /// There was something to end, or a cooldown began.
    changed: bool,
    /// The current cooldown of the first key.
    rest: Option<RestView>,
    /// Every key that the order applied to.
    keys: Vec<ChangedKey>,
}

/// A key after an operator's order.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct ChangedKey {
    key: String,
    /// There was something to end, or a cooldown began.
    changed: bool,
    /// The current cooldown.
    rest: Option<RestView>,
}

/// Ends the cooldown of a key, or begins one.
#[cfg_attr(test, utoipa::path(post, path = super::paths::COOLDOWNS, tag = "targets", request_body = CooldownOrder,
    responses((status = 200, description = "The keys as they are now", body = ChangeResult),
              (status = 400, description = "Not a valid key, or no time in the future"),
              (status = 404, description = "No target has this key"))))]
pub(super) fn cooldowns(request: &AdminRequest<'_>, order: &CooldownOrder) -> Result<ChangeResult, Refusal> {
    let asked: ScopeKey = order.key.parse().map_err(|_| Refusal::scope_key(&order.key))?;
    let state = &request.core.state;
    let wall = state.wall();
    let until = match order.action {
        CooldownAction::Clear => None,
        CooldownAction::Cool => Some(order.until.filter(|until| *until > wall).ok_or_else(Refusal::until)?),
    };
    let keys = meant(request, &asked, order)?;
    let mut changes = Vec::new();
    for key in keys {
        let changed = match until {
            None => clear(request, &key, wall),
            Some(until) => {
                cool(request, &key, until, order.reason.as_deref().unwrap_or_default(), wall);
                true
            }
        };
        let rest = state.ledger.cooldown(&key).and_then(|cooldown| rest_view(&key, &cooldown, wall));
        changes.push(ChangedKey { key: key.to_string(), changed, rest });
    }
    Ok(ChangeResult {
        key: asked.to_string(),
        changed: changes.iter().any(|one| one.changed),
        rest: changes.first().and_then(|one| one.rest.clone()),
        keys: changes,
    })
}

/// The keys that an order applies to.
fn meant(
    request: &AdminRequest<'_>,
    asked: &ScopeKey,
    order: &CooldownOrder,
) -> Result<Vec<ScopeKey>, Refusal> {
    let state = &request.core.state;
    // An existing record can always be ended.
    let is_there = || state.ledger.cooldown(asked).is_some() || state.ledger.holds(asked).is_some();
    if order.action == CooldownAction::Clear && is_there() {
        return Ok(vec![asked.clone()]);
    }
    match super::status::known(request).meaning(asked) {
        Meaning::Keys(keys) => Ok(keys),
        _ if order.force => Ok(vec![asked.clone()]),
        Meaning::Unknown(near) => Err(Refusal::scope_unknown(&order.key, &near)),
        Meaning::Unknowable => Err(Refusal::scope_unknown(&order.key, &[])),
    }
}

fn cool(request: &AdminRequest<'_>, key: &ScopeKey, until: Timestamp, reason: &str, wall: Timestamp) {
    let reason = REDACTOR.excerpt(reason, MAX_REASON);
    request.core.state.ledger.update_cooldown(key, |cooldown| cooldown.cool(until, &reason, wall));
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    note(
        request,
        key,
        "cool",
        format!("{key} was put into cooldown until {} by an operator{why}", shown_utc(until)),
    );
}

/// Ends everything that is recorded against a key, here and on every node that shares the store.
fn clear(request: &AdminRequest<'_>, key: &ScopeKey, wall: Timestamp) -> bool {
    let state = &request.core.state;
    let now = state.now();
    let mut changed = state.ledger.cooldown(key).is_some()
        && state.ledger.update_cooldown(key, |cooldown| cooldown.resume(wall));
    if state.ledger.holds(key).is_some_and(|holds| holds.longest(wall).is_some()) {
        state.ledger.update_holds(key, Holds::clear);
        changed = true;
    }
    for target in known(request).iter().filter(|target| target.scopes.has(key)) {
        changed |= target.gate.snapshot(now).held_by.is_some() || target.is_absent(now);
        target.mark_present();
        target.gate.clear();
        changed |= resume_target(state, target, wall);
        if let Some(limits) = &target.scopes.limits
            && state.ledger.holds(limits).is_some()
        {
            state.ledger.update_holds(limits, Holds::clear);
        }
    }
    if changed {
        note(request, key, "resume", format!("{key} was resumed by an operator"));
    }
    changed
}

/// Ends what is recorded against one target alone: what its provider stated, and breakers that are open, probing or forced open, on every
/// node.
fn resume_target(state: &SharedState, target: &Target, wall: Timestamp) -> bool {
    let Some(key) = &target.scopes.target else { return false };
    let is_shut = |mode: Mode| matches!(mode, Mode::Open | Mode::Probing | Mode::ForcedOpen);
    let shut = is_shut(target.breaker.snapshot(state.now(), wall).mode_at(wall))
        || state.ledger.breakers(key).iter().any(|(_, seen)| is_shut(seen.mode_at(wall)));
    let rests = state.ledger.cooldown(key).is_some_and(|cooldown| cooldown.rest.is_some());
    if !shut && !rests {
        return false;
    }
    state.ledger.update_cooldown(key, |cooldown| cooldown.resume_learned(wall));
    state.obey_resume(target, key);
    true
}

fn note(request: &AdminRequest<'_>, key: &ScopeKey, kind: &str, text: String) {
    let data = json!({"from": request.client.address, "request": &*request.context.id});
    request.core.state.note(EntryKind::Operator, kind, Some(key), text, data);
}
