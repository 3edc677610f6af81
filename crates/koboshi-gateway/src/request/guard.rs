//! Runs the loop guard on the conversation that a request carries: it needs no state, because the whole turn is there.
//!
//! A note goes into the last tool result, which the model reads next; the client's transcript does not change, so the same note is added
//! each time. A stop forbids no more than needed to end the loop ([`forbidden`](crate::stream::forbidden)), and never the tools by which an
//! agent asks for help or ends its work. Depth is only observed unless the config says otherwise: coding agents make far more calls in a turn
//! than a chat does.

use koboshi::guard::{Effect, Finding, Forbids, Judgement, Rule, Verdict, ends};
use koboshi_config::gateway::GuardMode;
use koboshi_report::guard::note;
use koboshi_store::EntryKind;
use koboshi_wire::any::Request;
use koboshi_wire::form::{GuardCall, Tool};
use serde_json::json;

use crate::route::plan::Plan;
use crate::shared::context::RequestContext;
use crate::shared::state::SharedState;
use crate::stream::forbidden::ForbiddenCalls;
use crate::stream::routed_request::GuardChanges;

/// What the guard decided for a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GuardDecision {
    pub(crate) guard_changes: GuardChanges,
    /// The value of the header: what the guard did, or would have done.
    pub(crate) header: Option<String>,
}

/// Judges the current turn of a request.
pub(crate) fn judge(
    state: &SharedState,
    plan: &Plan,
    context: &RequestContext,
    mode: GuardMode,
    request: &Request<'_>,
) -> GuardDecision {
    if mode == GuardMode::Off {
        return GuardDecision::default();
    }
    let calls = request.calls();
    // One call is no repetition.
    if calls.len() < 2 {
        return GuardDecision::default();
    }
    let Some(guard) = &plan.guard else { return GuardDecision::default() };
    let borrowed: Vec<_> = calls.iter().map(GuardCall::call).collect();
    let now = state.zoned();
    let judgement = guard.judge_in_with(&plan.digests, request.turn(), &borrowed, &plan.classifier, &now);
    let Some((finding, is_binding)) = gravest(&judgement, plan.config.guard.enforce_depth) else {
        return GuardDecision::default();
    };
    let mode = if is_binding { mode } else { GuardMode::Observe };
    let mut finding = finding.clone();
    // A model that is warned of a stop that never comes learns to ignore notes.
    finding.stops &= mode == GuardMode::Stop;
    let closes = finding.stops && finding.forbids() == Some(Forbids::Turn);
    let ways_out = if closes { ways_out(plan, request) } else { Vec::new() };
    act(state, context, mode, &finding, &judgement, &calls, &ways_out)
}

/// The request's tools by which an agent asks for help or ends its work.
fn ways_out(plan: &Plan, request: &Request<'_>) -> Vec<String> {
    let own = |name: &str| plan.config.guard.policy.tools.get(name).and_then(|tool| tool.effect);
    let form = request.form();
    let is_way_out = |tool: &&Tool<'_>| match own(&tool.name) {
        Some(effect) => effect == Effect::Ends,
        None => ends(&tool.name, tool.description.as_deref().unwrap_or_default()),
    };
    form.tools.iter().filter(is_way_out).map(|tool| tool.name.to_string()).collect()
}

/// The finding that decides, and whether it is enforced. Observed depth is reported only where there is no other finding.
fn gravest(judgement: &Judgement, enforce_depth: bool) -> Option<(&Finding, bool)> {
    let binds = |finding: &&Finding| enforce_depth || finding.rule != Rule::Depth;
    let grave = || judgement.findings.iter().filter(|finding| finding.verdict != Verdict::Pass);
    match grave().find(binds) {
        Some(finding) => Some((finding, true)),
        None => grave().next().map(|finding| (finding, false)),
    }
}

fn act(
    state: &SharedState,
    context: &RequestContext,
    mode: GuardMode,
    finding: &Finding,
    judgement: &Judgement,
    calls: &[GuardCall<'_>],
    ways_out: &[String],
) -> GuardDecision {
    let observed = mode == GuardMode::Observe;
    let stops = finding.verdict == Verdict::Stop && mode != GuardMode::Note;
    let what = if stops { "stop" } else { "note" };
    state.meters.guard(match (observed, stops) {
        (true, true) => "would_stop",
        (true, false) => "would_note",
        (false, true) => "stop",
        (false, false) => "note",
    });
    // A long turn is no event: coding agents have them all day.
    if finding.rule != Rule::Depth || !observed {
        report(state, context, finding, what, observed);
    }
    let forbids = finding.forbids().filter(|_| stops);
    let header = format!(
        "{what}; rule={}; count={}{}{}",
        finding.rule.name(),
        finding.count,
        forbids.map_or_else(String::new, |forbids| format!("; forbids={}", forbids.name())),
        if observed { "; observed" } else { "" }
    );
    if observed {
        return GuardDecision { header: Some(header), ..GuardDecision::default() };
    }
    let ways_out: Vec<&str> = ways_out.iter().map(String::as_str).collect();
    let note = note(&state.phrases, context.lang, finding, judgement.reach, &ways_out);
    let forbidden = if stops { ForbiddenCalls::of(finding, calls, &ways_out).map(Box::new) } else { None };
    let close = stops && forbidden.is_none();
    GuardDecision { guard_changes: GuardChanges { note: Some(note), close, forbidden }, header: Some(header) }
}

fn report(state: &SharedState, context: &RequestContext, finding: &Finding, what: &str, observed: bool) {
    let tools: Vec<&str> = finding.tools.iter().take(5).map(AsRef::as_ref).collect();
    let text = format!("{}: {} came {} times", context.id, finding.rule.name(), finding.count);
    let data = json!({
        "rule": finding.rule.name(),
        "tools": tools,
        "count": finding.count,
        "category": finding.category.as_deref(),
        "observed": observed,
        "request": &*context.id,
    });
    state.note_for(
        context,
        EntryKind::Remedy,
        if what == "stop" { "guard_stop" } else { "guard_note" },
        None,
        text,
        data,
    );
}
