//! A person's word: breakers are forced and let go, rests begin and end. It beats everything that was learned.

use std::sync::Arc;

use jiff::Timestamp;
use koboshi::breaker::{Breaker, Forced};
use koboshi::fault::Kind;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;
use koboshi_store::What;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::targets::{RestView, TargetList, known, rest_view, view};
use super::{Desk, REDACTOR, Refusal};
use crate::target::Target;

/// The longest reason that is kept.
const LONGEST_REASON: usize = 200;

/// What is to happen to a breaker.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BreakerOrder {
    /// `provider/model`, or the `key` of one target.
    target: String,
    action: BreakerAction,
}

/// What an operator may do with a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BreakerAction {
    /// Refuse everything, also for the last target.
    Open,
    /// Let everything through and go on counting.
    Close,
    /// Let everything through and count nothing.
    Disable,
    /// The operator lets go; what was counted while it was closed still counts.
    Release,
    /// Closed and let go, with everything forgotten.
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

    fn apply(self, breaker: &Breaker, now: koboshi::time::Moment) {
        match self {
            Self::Open => breaker.force(Forced::Open, now),
            Self::Close => breaker.force(Forced::Closed, now),
            Self::Disable => breaker.force(Forced::Disabled, now),
            Self::Release => breaker.release(now),
            Self::Reset => {
                // Out of a breaker that counts nothing, everything begins anew.
                breaker.force(Forced::Disabled, now);
                breaker.release(now);
            }
        }
    }
}

/// Forces breakers, or lets them go.
#[utoipa::path(post, path = "/koboshi/breakers", tag = "targets", request_body = BreakerOrder,
    responses((status = 200, description = "The targets as they are now", body = TargetList),
              (status = 404, description = "No such target")))]
pub(super) fn breakers(desk: &Desk<'_>, order: &BreakerOrder) -> Result<TargetList, Refusal> {
    let world = &desk.core.world;
    let meant: Vec<Arc<Target>> =
        known(desk).into_iter().filter(|target| is(target, &order.target)).collect();
    if meant.is_empty() {
        let message = "no such target; GET /koboshi/targets lists them".to_owned();
        return Err(Refusal { kind: Kind::InvalidRequest, status: 404, message, param: Some("target") });
    }
    for target in &meant {
        order.action.apply(&target.breaker, world.now());
        let text = format!("{}: {} by a person", target.name, order.action.name());
        let data = json!({"target": &*target.name, "from": desk.peer.ip(), "request": &*desk.story.id});
        world.note(What::Operator, order.action.name(), target.scopes.target.as_ref(), text, data);
    }
    Ok(TargetList { targets: meant.iter().map(|target| view(world, target)).collect() })
}

/// Whether a target is the one that is spoken of.
fn is(target: &Target, asked: &str) -> bool {
    *target.name == *asked || target.scopes.target.as_ref().is_some_and(|key| key.to_string() == asked)
}

/// What is to happen to a rest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestOrder {
    /// What it is about, such as `account:openai`, `provider:gemini` or the `key` of a target.
    key: String,
    action: RestAction,
    /// For `cool`: until when.
    until: Option<Timestamp>,
    /// For `cool`: why, for those who look later.
    reason: Option<String>,
}

/// What an operator may do with a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RestAction {
    /// End it, whatever was learned; limits that close gates under the key too.
    Clear,
    /// Let it rest until then.
    Cool,
}

/// A key after an operator's word.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rested {
    key: String,
    /// There was something to end, or the rest began.
    changed: bool,
    /// What it rests for now.
    rest: Option<RestView>,
}

/// Ends the rest of a key, or lets it rest.
#[utoipa::path(post, path = "/koboshi/cooldowns", tag = "targets", request_body = RestOrder,
    responses((status = 200, description = "The key as it is now", body = Rested),
              (status = 400, description = "No key, or no time in the future")))]
pub(super) fn cooldowns(desk: &Desk<'_>, order: &RestOrder) -> Result<Rested, Refusal> {
    let key: ScopeKey =
        order.key.parse().map_err(|error: koboshi::key::KeyError| Refusal::bad("key", error.to_string()))?;
    let world = &desk.core.world;
    let wall = world.wall();
    let changed = match order.action {
        RestAction::Clear => clear(desk, &key, wall),
        RestAction::Cool => {
            let until = order.until.filter(|until| *until > wall).ok_or_else(|| {
                Refusal::bad("until", "say until when, in the future, such as 2030-01-31T12:00:00Z")
            })?;
            let reason = REDACTOR.excerpt(order.reason.as_deref().unwrap_or_default(), LONGEST_REASON);
            world.ledger.update_cooldown(&key, |cooldown| cooldown.cool(until, &reason, wall));
            note(desk, &key, "cool", format!("{key} was told to rest until {until} by a person"));
            true
        }
    };
    let rest = world.ledger.cooldown(&key).and_then(|cooldown| rest_view(&key, &cooldown, wall));
    Ok(Rested { key: key.to_string(), changed, rest })
}

/// Ends everything that is known against a key, here and wherever the store is shared.
fn clear(desk: &Desk<'_>, key: &ScopeKey, wall: Timestamp) -> bool {
    let world = &desk.core.world;
    let now = world.now();
    let mut changed = world.ledger.cooldown(key).is_some()
        && world.ledger.update_cooldown(key, |cooldown| cooldown.resume(wall));
    for target in known(desk).iter().filter(|target| target.scopes.has(key)) {
        changed |= target.gate.snapshot(now).held_by.is_some() || target.is_absent(now);
        target.is_there_again();
        target.gate.clear();
        if let Some(limits) = &target.scopes.limits
            && world.ledger.holds(limits).is_some()
        {
            world.ledger.update_holds(limits, Holds::clear);
        }
    }
    if changed {
        note(desk, key, "resume", format!("{key} was resumed by a person"));
    }
    changed
}

fn note(desk: &Desk<'_>, key: &ScopeKey, kind: &str, text: String) {
    let data = json!({"from": desk.peer.ip(), "request": &*desk.story.id});
    desk.core.world.note(What::Operator, kind, Some(key), text, data);
}
