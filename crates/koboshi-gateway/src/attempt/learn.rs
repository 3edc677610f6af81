//! What is learned from the end of an attempt: for the target, for everyone who shares the store, for the journal.
//!
//! Only what a provider *stated* is shared as fact: a rate limit with its end, a quota, a dead key. How healthy a target seems is the
//! breaker's, which is told by the attempt's permit. A fault of the network or of the request itself is nobody's fault and is only noted.

use std::time::Duration;

use jiff::Timestamp;
use koboshi::cooldown::{Failure, Standing};
use koboshi::fault::{Fault, Kind, Scope, Sub};
use koboshi::gate::{Limit, allowances};
use koboshi::remedy::Remedy;
use koboshi::wait::Clock;
use koboshi_report::phrase::Lang;
use koboshi_store::EntryKind;
use memchr::memmem;
use serde_json::json;

use crate::attempt::unavailable::Unavailable;
use crate::observe::log::Level;
use crate::observe::names::remedy_name;
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::context::RequestContext;
use crate::shared::state::SharedState;
use koboshi_wire::http1::Fields;

/// A rate limit that does not say how long it lasts keeps others away for so long.
const UNSTATED_LIMIT: Duration = Duration::from_secs(1);
/// A model that is not there is asked for again after this.
const ABSENT: Duration = Duration::from_secs(60);
/// One that said how long it will be down or overloaded is asked again after this at the latest: such times are often guesses.
const MAX_DOWN: Duration = Duration::from_secs(300);

/// Whether a rest says all about this fault: the target rests already, or begins to. Its breaker is not told then, or it would stay
/// open after the rest.
pub(crate) fn is_covered_by_cooldown(
    state: &SharedState,
    plan: &Plan,
    target: &Target,
    fault: &Fault,
) -> bool {
    let begins = plan.config.cooldown.enabled
        && states_cooldown(fault)
        && target.scopes.of_scope(fault.scope).is_some();
    begins || Unavailable::cooling(state, target).is_some()
}

/// The headers of an answer say how much is left.
pub(crate) fn from_headers(state: &SharedState, target: &Target, headers: &Fields) {
    // Most answers say nothing of limits, and reading a clock face costs more than this look.
    if headers.pairs_of(is_limit_header).next().is_none() || !target.may_learn(state.now()) {
        return;
    }
    let zoned = state.zoned();
    let now = state.now();
    for (limit, allowance) in allowances(headers.pairs(), Clock { now: &zoned, zones: &state.zones }) {
        target.gate.learn(limit, allowance, now);
    }
}

/// Whether a header says how much is left: `x-ratelimit-…`, `anthropic-ratelimit-…`, `ratelimit`.
fn is_limit_header(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'x' | b'a' | b'r')) && memmem::find(name, b"ratelimit").is_some()
}

/// An attempt failed like this, and this is done about it.
pub(crate) fn from_fault(
    state: &SharedState,
    plan: &Plan,
    target: &Target,
    fault: &Fault,
    remedy: Remedy,
    context: &RequestContext,
    started: Timestamp,
) {
    report_fault(state, plan, target, fault, remedy, context);
    apply_cooldown(state, plan, target, fault, started);
}

/// The same for whoever looks on, and nothing is held against the target.
pub(crate) fn report_fault(
    state: &SharedState,
    plan: &Plan,
    target: &Target,
    fault: &Fault,
    remedy: Remedy,
    context: &RequestContext,
) {
    state.meters.fault(&target.meters, fault.kind.name());
    state.meters.remedy(remedy_name(remedy));
    let code = fault.kind.code(&plan.config.code_prefix);
    let data = json!({
        "target": &*target.name,
        "code": code,
        "sub": fault.sub.map(|sub| sub.name()),
        "status": fault.status,
        "origin": fault.origin.name(),
        "scope": fault.scope.name(),
        "wait": fault.wait.map(|wait| wait.after.as_secs_f64()),
        "rule": &*fault.evidence.rule,
        "remedy": remedy_name(remedy),
        "request": &*context.id,
    });
    // A timeout has no words of the other side: ours say what happened.
    let own = fault.detail.is_empty().then(|| state.phrases.message(Lang::En, fault.kind, fault.sub));
    let said = own.as_deref().unwrap_or(&fault.detail);
    let text = format!("{}: {said}", target.name);
    state.note(EntryKind::Fault, fault.kind.name(), target.scopes.target.as_ref(), text, data);
    state.log.fault(&target.name, fault, said, remedy_name(remedy), (context.method, &context.id), &code);
}

/// A fault of the gateway's own that operators must know of; the client is told another one.
pub(crate) fn own_fault(state: &SharedState, plan: &Plan, kind: Kind, text: &str, request_id: &str) {
    let code = kind.code(&plan.config.code_prefix);
    let data = json!({"code": code, "origin": kind.row().origin.name(), "request": request_id});
    state.note(EntryKind::Fault, kind.name(), None, text.to_owned(), data);
    let facts = json!({"errorType": kind.name(), "errorCode": code, "request": request_id});
    state.log.line(Level::Warn, text, &facts);
}

/// This machine lacked what an attempt needs. It is told without a target: none is to blame.
pub(crate) fn local_shortage(
    state: &SharedState,
    plan: &Plan,
    fault: &Fault,
    remedy: Remedy,
    request_id: &str,
) {
    state.meters.remedy(remedy_name(remedy));
    let code = fault.kind.code(&plan.config.code_prefix);
    let data = json!({
        "code": code,
        "sub": fault.sub.map(|sub| sub.name()),
        "origin": fault.origin.name(),
        "scope": fault.scope.name(),
        "rule": &*fault.evidence.rule,
        "remedy": remedy_name(remedy),
        "request": request_id,
    });
    let text = format!("no connection could be opened: {}", fault.detail);
    let facts = json!({"errorType": fault.kind.name(), "errorCode": code, "request": request_id});
    state.log.line(Level::Warn, &text, &facts);
    state.note(EntryKind::Fault, fault.kind.name(), None, text, data);
}

fn apply_cooldown(state: &SharedState, plan: &Plan, target: &Target, fault: &Fault, started: Timestamp) {
    let (now, wall) = (state.now(), state.wall());
    // What a client's own key may not do says nothing about ours.
    if target.is_borrowed {
        return;
    }
    target.causes.keep(fault);
    match fault.kind {
        Kind::RateLimited => {
            let until = fault.until().or_else(|| wall.checked_add(UNSTATED_LIMIT).ok()).unwrap_or(wall);
            let limit = limit_of(fault);
            if !target.gate.hold(limit, until, now, wall) {
                return;
            }
            // A guess of ours is for this process alone.
            if let (Some(key), Some(_)) = (&target.scopes.limits, fault.wait) {
                state.ledger.update_holds(key, |holds| holds.hold(limit, until));
            }
        }
        // Names that clients make up are not written down: a store must not grow with them.
        Kind::ModelNotFound if !target.is_fixed() || !plan.config.cooldown.enabled => {
            target.is_absent_until(now.after(ABSENT));
        }
        Kind::ModelNotFound => {
            out_of_use(state, target, fault, wall.checked_add(ABSENT).unwrap_or(wall), wall);
        }
        _ if states_cooldown(fault) => {
            let Some(key) = target.scopes.of_scope(fault.scope) else { return };
            let failure = Failure { started: Some(started), ..Failure::of(fault) };
            let policy = &plan.config.cooldown;
            if !policy.enabled {
                return;
            }
            state.ledger.update_cooldown(key, |cooldown| cooldown.fail(&failure, policy, wall, state.seed()));
            let until = state.ledger.cooldown(key).and_then(|cooldown| match cooldown.standing(wall) {
                Standing::Cooling { until, .. } => Some(until),
                _ => None,
            });
            let end = until.map_or_else(|| "an operator resumes it".to_owned(), in_seconds);
            let text = format!("{key}: in cooldown until {end}");
            state.note(EntryKind::Cooldown, fault.kind.name(), Some(key), text, json!({"until": until}));
        }
        _ if fault.advice.health => {
            if let Some(wait) = fault.wait.filter(|_| plan.config.cooldown.enabled) {
                let latest = wall.checked_add(MAX_DOWN).unwrap_or(wall);
                out_of_use(state, target, fault, wait.until.min(latest), wall);
            }
        }
        _ => {}
    }
}

/// The provider said that this target cannot be used: not asked before then, also after a restart.
fn out_of_use(state: &SharedState, target: &Target, fault: &Fault, until: Timestamp, wall: Timestamp) {
    let Some(key) = target.scopes.target.as_ref().filter(|_| until > wall) else { return };
    state.ledger.update_cooldown(key, |cooldown| cooldown.rest_until(fault, until, wall));
    let text = format!("{key}: in cooldown until {}", in_seconds(until));
    state.note(EntryKind::Cooldown, fault.kind.name(), Some(key), text, json!({"until": until}));
}

/// Which limit a rate limit is about, as its sentence says.
fn limit_of(fault: &Fault) -> Limit {
    if fault.sub == Some(Sub::Concurrency) {
        return Limit::Concurrency;
    }
    Limit::named_in(&fault.detail).unwrap_or(Limit::Requests)
}

/// A time for the journal, which is read by people.
pub(crate) fn in_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Asking the same again cannot help, asking another may, and it is about more than this request: quota, credit, keys.
fn states_cooldown(fault: &Fault) -> bool {
    let wide = !matches!(fault.scope, Scope::Request | Scope::Network);
    wide && !fault.advice.same && fault.advice.other
}

/// An attempt that began then succeeded: what was known against the target is over.
pub(crate) fn from_success(state: &SharedState, target: &Target, started: Timestamp) {
    if !state.ledger.has_cooldowns() {
        return;
    }
    for key in target.scopes.cooldown_keys() {
        if state.ledger.cooldown(key).is_none_or(|cooldown| cooldown.standing(started) == Standing::Free) {
            continue;
        }
        let wall = state.wall();
        if state.ledger.update_cooldown(key, |cooldown| cooldown.succeed(Some(started), wall)) {
            state.note(
                EntryKind::Cooldown,
                "recovered",
                Some(key),
                format!("{key}: in use again"),
                json!({}),
            );
        }
    }
}
