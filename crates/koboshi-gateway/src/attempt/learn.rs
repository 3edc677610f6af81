//! Records what the end of an attempt shows: for the target, for all processes that share the store, and in the journal.
//!
//! Only what a provider *stated* is shared as fact: a rate limit with its end, a quota, a dead key. A target's health belongs to the
//! breaker, which the attempt's permit informs. A fault of the network or of the request itself is only recorded.

use std::time::Duration;

use jiff::Timestamp;
use koboshi::cooldown::{Failure, Standing};
use koboshi::fault::{Fault, Kind, Scope, Sub};
use koboshi::gate::{Limit, allowances};
use koboshi::key::ScopeKey;
use koboshi::remedy::Remedy;
use koboshi::wait::Clock;
use koboshi_report::phrase::Lang;
use koboshi_store::{EntryKind, RecordKind};
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

/// How long a rate limit without a stated end keeps requests away.
const UNSTATED_LIMIT: Duration = Duration::from_secs(1);
/// After this long an absent model is asked for again.
const ABSENT_RETRY_AFTER: Duration = Duration::from_secs(60);
/// After this long a token is asked for again where none could be had.
const TOKEN_RETRY_AFTER: Duration = Duration::from_secs(10);
/// The longest that a stated downtime or overload is obeyed: such times are often guesses.
const MAX_DOWN: Duration = Duration::from_secs(300);

/// Whether a cooldown covers this fault: the target is in cooldown already, or begins one. Its breaker does not count the fault then, or it
/// would stay open after the cooldown.
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

/// Records the rate-limit headers of an answer.
pub(crate) fn from_headers(state: &SharedState, target: &Target, headers: &Fields) {
    // Most answers have no such headers, and reading the clock costs more than this check.
    if headers.pairs_of(is_limit_header).next().is_none() || !target.may_learn(state.now()) {
        return;
    }
    let zoned = state.zoned();
    let (now, place) = (state.now(), state.reopenings.place());
    for (limit, allowance) in allowances(headers.pairs(), Clock { now: &zoned, zones: &state.zones }) {
        target.gate.learn_share(limit, allowance, place, now);
    }
}

/// Whether a header states what is left of a limit: `x-ratelimit-…`, `anthropic-ratelimit-…`, `ratelimit`.
fn is_limit_header(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'x' | b'a' | b'r')) && memmem::find(name, b"ratelimit").is_some()
}

/// Records a failed attempt and its remedy.
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
    apply_cooldown(state, plan, target, fault, remedy, started);
}

/// Reports a failed attempt to metrics, journal and log, without consequences for the target.
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
        "attempt": context.attempts.get(),
        "after_ms": u64::try_from(state.now().since(context.began).as_millis()).unwrap_or(u64::MAX),
        "method": context.method,
        "route": context.route.get().map(|route| &**route),
        "request": &*context.id,
    });
    // A timeout has no message of the provider: use our own.
    let own = fault.detail.is_empty().then(|| state.phrases.fault_message(Lang::En, fault));
    let said = own.as_deref().unwrap_or(&fault.detail);
    let text = format!("{}: {said}", target.name);
    state.note_for(context, EntryKind::Fault, fault.kind.name(), target.scopes.target.as_ref(), text, data);
    state.log.fault(&target.name, fault, said, remedy_name(remedy), (context.method, &context.id), &code);
}

/// Reports a fault of the gateway itself to operators; the client gets another one.
pub(crate) fn own_fault(state: &SharedState, plan: &Plan, kind: Kind, text: &str, context: &RequestContext) {
    let code = kind.code(&plan.config.code_prefix);
    let data = json!({"code": code, "origin": kind.row().origin.name(), "request": &*context.id});
    state.note(EntryKind::Fault, kind.name(), None, text.to_owned(), data);
    let facts = json!({
        "method": context.method, "errorType": kind.name(), "errorCode": code, "retryable": Fault::of(kind, "gateway.own").advice.later,
        "request": &*context.id,
    });
    state.log.line(Level::Warn, text, &facts);
}

/// Reports that this machine lacked what an attempt needs; no target is to blame, so none is named.
pub(crate) fn local_shortage(
    state: &SharedState,
    plan: &Plan,
    fault: &Fault,
    remedy: Remedy,
    context: &RequestContext,
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
        "request": &*context.id,
    });
    let text = format!("no connection could be opened: {}", fault.detail);
    let facts = json!({
        "method": context.method, "errorType": fault.kind.name(), "errorCode": code, "retryable": fault.advice.later,
        "request": &*context.id,
    });
    state.log.line(Level::Warn, &text, &facts);
    state.note(EntryKind::Fault, fault.kind.name(), None, text, data);
}

fn apply_cooldown(
    state: &SharedState,
    plan: &Plan,
    target: &Target,
    fault: &Fault,
    remedy: Remedy,
    started: Timestamp,
) {
    let (now, wall) = (state.now(), state.wall());
    // The limits of a client's own key say nothing about ours.
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
                state.reopenings.watch(RecordKind::Holds, key);
            }
        }
        // Names that clients make up are not stored: a store must not grow with them.
        Kind::ModelNotFound if !target.is_fixed() || !plan.config.cooldown.enabled => {
            target.mark_absent_until(now.after(ABSENT_RETRY_AFTER));
        }
        Kind::ModelNotFound => {
            let key = target.scopes.target.as_ref();
            out_of_use(state, key, fault, wall.checked_add(ABSENT_RETRY_AFTER).unwrap_or(wall), wall);
        }
        // No token can be had, or the fresh one was refused too: the others hear of it, and the next request finds out.
        Kind::TokenExpired if plan.config.cooldown.enabled && !asks_again(remedy) => {
            let key = target.scopes.of_scope(fault.scope);
            out_of_use(state, key, fault, wall.checked_add(TOKEN_RETRY_AFTER).unwrap_or(wall), wall);
        }
        _ if states_cooldown(fault) => {
            let Some(key) = target.scopes.of_scope(fault.scope) else { return };
            let failure = Failure { started: Some(started), ..Failure::of(fault) };
            let policy = &plan.config.cooldown;
            if !policy.enabled {
                return;
            }
            state.ledger.update_cooldown(key, |cooldown| cooldown.fail(&failure, policy, wall, state.seed()));
            state.reopenings.watch(RecordKind::Cooldown, key);
            let until = state.ledger.cooldown(key).and_then(|cooldown| match cooldown.standing(wall) {
                Standing::Cooling { until, .. } => Some(until),
                _ => None,
            });
            let text = match until {
                Some(until) => format!("{key}: in cooldown until {}", shown_utc(until)),
                None => {
                    let flags = &state.operator.flags;
                    format!("{key}: parked, resume it with: koboshi resume {key}{flags}")
                }
            };
            state.note(EntryKind::Cooldown, fault.kind.name(), Some(key), text, json!({"until": until}));
        }
        _ if fault.advice.health => {
            if let Some(wait) = fault.wait.filter(|_| plan.config.cooldown.enabled) {
                let latest = wall.checked_add(MAX_DOWN).unwrap_or(wall);
                out_of_use(state, target.scopes.target.as_ref(), fault, wait.until.min(latest), wall);
            }
        }
        _ => {}
    }
}

/// Whether the same target is asked again.
const fn asks_again(remedy: Remedy) -> bool {
    matches!(remedy, Remedy::Again { .. } | Remedy::Wait { .. })
}

/// Takes a key out of use because of what its provider said, also after a restart.
fn out_of_use(state: &SharedState, key: Option<&ScopeKey>, fault: &Fault, until: Timestamp, wall: Timestamp) {
    let Some(key) = key.filter(|_| until > wall) else { return };
    state.ledger.update_cooldown(key, |cooldown| cooldown.rest_until(fault, until, wall));
    state.reopenings.watch(RecordKind::Cooldown, key);
    let text = format!("{key}: in cooldown until {}", shown_utc(until));
    state.note(EntryKind::Cooldown, fault.kind.name(), Some(key), text, json!({"until": until}));
}

/// Which limit the message of a rate limit names.
fn limit_of(fault: &Fault) -> Limit {
    if fault.sub == Some(Sub::Concurrency) {
        return Limit::Concurrency;
    }
    Limit::named_in(&fault.detail).unwrap_or(Limit::Requests)
}

/// A time for people, in whole seconds.
pub(crate) fn shown_utc(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Asking the same target again cannot help, another one may, and it concerns more than this request: quota, credit, keys.
fn states_cooldown(fault: &Fault) -> bool {
    let wide = !matches!(fault.scope, Scope::Request | Scope::Network);
    wide && !fault.advice.same && fault.advice.other
}

/// Ends what was recorded against the target before this successful attempt began.
pub(crate) fn from_success(state: &SharedState, target: &Target, started: Timestamp) {
    if let Some(limits) = target.scopes.limits.as_ref().filter(|_| state.reopenings.any())
        && state.ledger.holds(limits).is_some_and(|holds| holds.is_due(started))
    {
        state.ledger.update_holds(limits, |holds| holds.pass(started));
    }
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
