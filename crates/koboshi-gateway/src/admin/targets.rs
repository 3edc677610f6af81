//! The health of every target, and its reasons.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::breaker::Mode;
use koboshi::cooldown::{Cooldown, Rest, Standing};
use koboshi::gate::GateSnapshot;
use koboshi::key::ScopeKey;
use koboshi::time::Moment;
use serde::Serialize;
#[cfg(test)]
use utoipa::ToSchema;

use super::{AdminRequest, REDACTOR};
use crate::route::target::Target;
use crate::shared::state::SharedState;

/// How much of a provider's message is shown.
const MAX_DETAIL: usize = 300;

/// Every target that is known.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct TargetList {
    /// Targets that were used, and those that the routes name.
    pub(super) targets: Vec<TargetView>,
}

/// A target with its health.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct TargetView {
    /// `provider/model`; several keys of a provider are several targets of one name.
    target: String,
    /// The key of this one target, to be used where the name fits several.
    key: Option<String>,
    provider: String,
    model: String,
    /// What happens to a request for it.
    health: Health,
    /// Why, in one sentence; none where it is healthy.
    why: Option<String>,
    /// Since the gateway started.
    attempts: u64,
    breaker: BreakerView,
    /// Cooldowns of the target, its key, its account, its model and its provider.
    rests: Vec<RestView>,
    gate: GateView,
    /// The breakers of other processes for this target.
    elsewhere: Vec<OtherBreaker>,
}

/// What happens to a request for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum Health {
    /// It gets requests.
    Well,
    /// A few requests probe whether it is back.
    Probing,
    /// Its breaker is open.
    Open,
    /// It is in cooldown until a time.
    Cooling,
    /// It is in cooldown until an operator resumes it.
    Parked,
    /// Its gate is closed by a limit of the provider.
    Held,
    /// The provider has no such model.
    Absent,
    /// An operator took it out of use.
    ForcedOpen,
    /// An operator keeps it in use.
    ForcedClosed,
    /// An operator switched its breaker off.
    Disabled,
}

/// A breaker.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct BreakerView {
    /// `closed`, `open`, `probing`, `forced_closed`, `forced_open` or `disabled`.
    mode: &'static str,
    since: Timestamp,
    /// When an open one begins to probe.
    until: Option<Timestamp>,
    /// How often it opened in a row.
    openings: u32,
}

/// A cooldown.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct RestView {
    key: String,
    /// `cooling`, `parked`, `absent` (the provider has no such model), or `due`: it is over and no request has tried since.
    state: &'static str,
    /// Why: `rate_limit`, `quota`, `auth`, `person`, …
    reason: &'static str,
    since: Timestamp,
    /// None where an operator must decide.
    until: Option<Timestamp>,
    /// Failures in a row.
    consecutive: u32,
    /// The stated reason, without secrets.
    said: String,
}

/// A gate.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct GateView {
    /// The limit that closes it now.
    held_by: Option<&'static str>,
    /// For how many seconds, if that is known.
    opens_in: Option<f64>,
    /// Requests in progress.
    in_flight: u32,
    /// Requests that wait in the queue.
    waiting: usize,
    /// What is left of the provider's limits, according to its answers.
    levels: Vec<LevelView>,
}

/// What is left of a limit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct LevelView {
    limit: &'static str,
    left: i64,
    most: Option<u64>,
}

/// Another process's breaker for the same target.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
struct OtherBreaker {
    node: String,
    mode: &'static str,
    until: Option<Timestamp>,
}

/// Targets with their health, and why.
#[cfg_attr(test, utoipa::path(get, path = super::paths::TARGETS, tag = "targets",
    responses((status = 200, description = "How every target fares", body = TargetList))))]
pub(super) fn list(request: &AdminRequest<'_>) -> TargetList {
    TargetList { targets: known(request).iter().map(|target| view(&request.core.state, target)).collect() }
}

/// Every target that was used or that a route names.
pub(super) fn known(request: &AdminRequest<'_>) -> Vec<Arc<Target>> {
    request.core.state.targets.all()
}

/// A target as operators see it.
pub(super) fn view(state: &SharedState, target: &Target) -> TargetView {
    let (now, wall) = (state.now(), state.wall());
    let breaker = target.breaker.snapshot(now, wall);
    let mode = breaker.mode_at(wall);
    let probes_at = breaker.until.filter(|_| mode == Mode::Open);
    let gate = target.gate.snapshot(now);
    let rests: Vec<RestView> = target
        .scopes
        .cooldown_keys()
        .filter_map(|key| rest_view(key, state.ledger.cooldown(key)?.as_ref(), wall))
        .collect();
    let (health, why) = judge(target, mode, probes_at, &rests, &gate, now);
    let own = state.ledger.node();
    let others = target.scopes.target.iter().flat_map(|key| state.ledger.breakers(key));
    TargetView {
        target: target.name.to_string(),
        key: target.scopes.target.as_ref().map(ToString::to_string),
        provider: target.provider.name.to_string(),
        model: target.shown_model.to_string(),
        health,
        why,
        attempts: target.meters.own_attempts.get(),
        breaker: BreakerView {
            mode: mode.name(),
            since: breaker.since,
            until: probes_at,
            openings: breaker.openings,
        },
        rests,
        gate: gate_view(&gate),
        elsewhere: others
            .filter(|(node, _)| node != own)
            .map(|(node, seen)| OtherBreaker {
                node: node.to_string(),
                mode: seen.mode_at(wall).name(),
                until: seen.until.filter(|until| *until > wall),
            })
            .collect(),
    }
}

/// The cooldown of a key, if it has one.
pub(super) fn rest_view(key: &ScopeKey, cooldown: &Cooldown, wall: Timestamp) -> Option<RestView> {
    let (state, rest, until): (_, &Rest, _) = match cooldown.standing(wall) {
        Standing::Cooling { rest, until } if rest.is_absence() => ("absent", rest, Some(until)),
        Standing::Cooling { rest, until } => ("cooling", rest, Some(until)),
        Standing::Parked(rest) => ("parked", rest, None),
        Standing::Due(rest) => ("due", rest, Some(rest.ends(wall))),
        _ => return None,
    };
    Some(RestView {
        key: key.to_string(),
        state,
        reason: rest.class.name(),
        since: rest.since,
        until,
        consecutive: rest.streak(),
        said: REDACTOR.excerpt(&rest.detail, MAX_DETAIL),
    })
}

/// The worst condition of a target.
fn judge(
    target: &Target,
    mode: Mode,
    until: Option<Timestamp>,
    rests: &[RestView],
    gate: &GateSnapshot,
    now: Moment,
) -> (Health, Option<String>) {
    let text_of = |rest: &RestView| {
        let until = rest.until.map_or_else(|| "an operator resumes it".to_owned(), |until| until.to_string());
        let said = if rest.said.is_empty() { String::new() } else { format!(": {}", rest.said) };
        Some(format!("{} is in cooldown until {until} ({}){said}", rest.key, rest.reason))
    };
    let of_state = |state: &str| rests.iter().find(|rest| rest.state == state);
    if mode == Mode::ForcedOpen {
        return (Health::ForcedOpen, Some("an operator keeps its breaker open".to_owned()));
    }
    if let Some(parked) = of_state("parked") {
        return (Health::Parked, text_of(parked));
    }
    if target.is_absent(now) || of_state("absent").is_some() {
        return (Health::Absent, Some("the provider says that it has no such model".to_owned()));
    }
    if let Some(cooling) = of_state("cooling") {
        return (Health::Cooling, text_of(cooling));
    }
    if mode == Mode::Open {
        let until = until.map_or_else(String::new, |until| format!(" until {until}"));
        return (Health::Open, Some(format!("too many failures: its breaker is open{until}")));
    }
    if let Some(limit) = gate.held_by {
        let long = gate.opens_in.map(|left| format!(" for {:.1} s", left.as_secs_f64()));
        let said = format!("its gate is closed by the limit of {}{}", limit.name(), long.unwrap_or_default());
        return (Health::Held, Some(said));
    }
    match mode {
        Mode::Probing => (Health::Probing, Some("a few requests find out whether it is back".to_owned())),
        Mode::ForcedClosed => (Health::ForcedClosed, Some("an operator keeps its breaker closed".to_owned())),
        Mode::Disabled => (Health::Disabled, Some("an operator switched its breaker off".to_owned())),
        _ => (Health::Well, None),
    }
}

fn gate_view(gate: &GateSnapshot) -> GateView {
    GateView {
        held_by: gate.held_by.map(|limit| limit.name()),
        opens_in: gate.opens_in.as_ref().map(Duration::as_secs_f64),
        in_flight: gate.in_flight,
        waiting: gate.waiting,
        levels: gate
            .levels
            .iter()
            .map(|level| LevelView { limit: level.limit.name(), left: level.left, most: level.max })
            .collect(),
    }
}
