//! What the loop guard forbids in a request, and which answers it refuses.
//!
//! A stop forbids no more than needed to end the loop (the library's [`Forbids`]): first the calls that repeat, then their tools, all tools last. A
//! note in the last tool result informs the model. If it makes a forbidden call all the same, the client never sees that answer: the model reads
//! why the call was refused and answers again, freely, with text or with other calls. After the second refusal of a request it gets no tools.

use koboshi::guard::{Finding, Forbids};
use koboshi_report::guard::refusal;
use koboshi_store::EntryKind;
use koboshi_wire::any::{AttemptMode, RefusedCalls};
use koboshi_wire::chat::Correction;
use koboshi_wire::form::GuardCall;
use serde_json::{Value, json};

use crate::stream::firewall::ToolCall;
use crate::stream::routed_request::RoutedRequest;

/// How often the answers to one request are refused. After the last refusal the model gets no tools.
const MAX_REFUSALS: u32 = 2;

/// What is forbidden.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ForbiddenCalls {
    what: Forbids,
    /// The calls that repeat: tool and arguments.
    calls: Vec<(String, Value)>,
    /// The tools of these calls.
    tools: Vec<String>,
    /// The tools that stay allowed when all others are forbidden.
    ways_out: Vec<String>,
}

impl ForbiddenCalls {
    /// What this finding forbids; `calls` is the history that was judged. None if it does not stop, or leaves no tool at all.
    pub(crate) fn of(finding: &Finding, calls: &[GuardCall<'_>], ways_out: &[&str]) -> Option<Self> {
        let what = finding.forbids().filter(|what| *what != Forbids::Turn || !ways_out.is_empty())?;
        let repeated = finding.entries.iter().filter_map(|at| calls.get(*at));
        let mut calls: Vec<(String, Value)> = Vec::new();
        for call in repeated {
            let call = (call.tool.to_string(), arguments(&call.args));
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        let tools = finding.tools.iter().map(ToString::to_string).collect();
        let ways_out = ways_out.iter().map(ToString::to_string).collect();
        Some(Self { what, calls, tools, ways_out })
    }

    fn refuses(&self, tool: &str, text: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == tool);
        match self.what {
            Forbids::Calls => {
                let mut same_tool = self.calls.iter().filter(|(name, _)| name == tool).peekable();
                same_tool.peek().is_some() && {
                    let given = arguments(text);
                    same_tool.any(|(_, known)| *known == given)
                }
            }
            Forbids::Tools => is_named(&self.tools),
            Forbids::Turn => !is_named(&self.ways_out),
        }
    }
}

/// Arguments for comparison: spaces and the order of fields do not count.
fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// An answer that the client does not see.
#[derive(Debug, Default)]
pub(crate) struct RefusedAnswer {
    /// Its calls, and what the model reads about each.
    calls: Vec<(ToolCall, String)>,
}

impl RefusedAnswer {
    pub(crate) fn corrected(&self) -> Vec<Correction<'_>> {
        self.calls.iter().map(|(call, correction)| Correction { call: call.whole(), correction }).collect()
    }
}

/// The mode of the next attempt after a refusal.
pub(crate) fn mode_after<'t>(calls: &'t [Correction<'t>], text: &'t str) -> AttemptMode<'t> {
    if calls.is_empty() { AttemptMode::Plain } else { AttemptMode::Refuse(RefusedCalls { text, calls }) }
}

impl RoutedRequest<'_> {
    /// Whether an answer with these calls is refused; then the model reads why in the next attempt.
    pub(crate) fn refuses(&self, calls: &[ToolCall]) -> bool {
        let Some(forbidden) = &self.guard_changes.forbidden else { return false };
        if self.progress.guard_refusals.get() >= MAX_REFUSALS || calls.iter().any(|call| call.choice != 0) {
            return false;
        }
        let is_refused = |call: &ToolCall| forbidden.refuses(&call.known_name(), &call.arguments);
        if !calls.iter().any(is_refused) {
            return false;
        }
        let state = &self.core.state;
        let ways_out: Vec<&str> = forbidden.ways_out.iter().map(String::as_str).collect();
        let refused = calls.iter().map(|call| {
            let why = Some(forbidden.what).filter(|_| is_refused(call));
            (call.clone(), refusal(&state.phrases, self.context.lang, &call.name, why, &ways_out))
        });
        *self.progress.guard_refused.borrow_mut() = RefusedAnswer { calls: refused.collect() };
        self.progress.guard_refusals.set(self.progress.guard_refusals.get() + 1);
        self.disclose(|facts| facts.reasks += 1);
        state.meters.guard("refused");
        let tools: Vec<&str> =
            calls.iter().filter(|call| is_refused(call)).take(5).map(|call| call.name.as_str()).collect();
        let text = format!("{}: a repeated call of {} was refused", self.context.id, tools.join(", "));
        let data = json!({"forbids": forbidden.what.name(), "tools": tools, "request": &*self.context.id});
        state.note(EntryKind::Remedy, "guard_refused", None, text, data);
        true
    }

    /// Whether the model gets no tools: the guard closes the turn, or its answers were refused often enough.
    pub(crate) fn is_closed(&self) -> bool {
        self.guard_changes.close || self.progress.guard_refusals.get() >= MAX_REFUSALS
    }
}
