//! Checks tool calls on their way to the client: complete, valid and of the request's own tools, or not sent at all.
//!
//! A call whose arguments have exactly one reading is repaired here; one that has none goes back to the model, hidden from the client:
//! the refused tool is forced, parallel calls are off, the text of that answer is dropped and its cost is added. Parallel calls are
//! independent: the good ones wait for the corrected one. What cannot be corrected becomes a clean error.

use std::borrow::Cow;

use koboshi::args::{Finish, ToolSchema, Verdict, check};
use koboshi::fault::{Fault, Kind, Sub};
use koboshi::reask::{Ask, Lineage, ModelCall, Step};
use koboshi::remedy::Remedy;
use koboshi_report::reask::{debug_lines, for_model, for_user};
use koboshi_store::EntryKind;
use koboshi_wire::any::{AttemptMode, RetriedCalls, answer};
use koboshi_wire::chat::Correction;
use koboshi_wire::form::{Tool, ToolInput, free_text};
use koboshi_wire::responses::flat_name;
use koboshi_wire::step::{CallPiece, Usage};
use koboshi_wire::whole;
use koboshi_wire::writer::WholeCall;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::attempt::Shape;
use crate::attempt::journey::{Journey, JourneyEnd, OpenAttempt};
use crate::observe::log::Level;
use crate::shared::notice::Notice;
use crate::stream::routed_request::RoutedRequest;
use crate::stream::unary::read_whole;

/// The schema of a tool without one: it often takes nothing at all.
const EMPTY_SCHEMA: &str = r#"{"type":"object","properties":{}}"#;
/// How many calls one answer may have.
const MAX_CALLS: usize = 256;

/// A tool call, as received until now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) choice: u32,
    pub(crate) index: u32,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The group of the tool.
    pub(crate) namespace: Option<String>,
    pub(crate) arguments: String,
    pub(crate) free_text: bool,
    /// The provider's signature of it.
    pub(crate) signature: Option<String>,
    /// The arguments are not the upstream's own, or the call is not separate there.
    pub(crate) changed: bool,
    /// The output limit cut its answer in this call, which was the last.
    pub(crate) cut: bool,
    pub(crate) lineage: Lineage,
}

impl ToolCall {
    pub(crate) fn whole(&self) -> WholeCall<'_> {
        WholeCall {
            id: &self.id,
            name: &self.name,
            namespace: self.namespace.as_deref(),
            arguments: &self.arguments,
            free_text: self.free_text,
            signature: self.signature.as_deref(),
        }
    }

    /// The name by which the request's tools know it.
    pub(crate) fn known_name(&self) -> Cow<'_, str> {
        match &self.namespace {
            Some(namespace) => Cow::Owned(flat_name(namespace, &self.name)),
            None => Cow::Borrowed(&self.name),
        }
    }

    /// Whether a piece with the same number begins another call: some servers number every call of an answer 0. Another id proves
    /// nothing, since other servers give one to each piece, with the name: the begun call must be complete.
    fn is_other_than(&self, piece: &CallPiece<'_>) -> bool {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let name = piece.name.as_deref().filter(|name| !name.is_empty());
        name.is_some()
            && !self.id.is_empty()
            && id.is_some_and(|id| id != self.id)
            // Checked first, so that a long call in many pieces is not parsed again with each of them.
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    fn called(&self) -> ModelCall<'_> {
        ModelCall { id: &self.id, tool: &self.name, text: &self.arguments }
    }
}

/// Adds a piece to the calls of an answer. None if there is too much of it.
pub(crate) fn collect(calls: &mut Vec<ToolCall>, piece: &CallPiece<'_>, max_bytes: usize) -> Option<()> {
    let at = calls.iter().rposition(|call| (call.choice, call.index) == (piece.choice, piece.index));
    let begun = at.and_then(|at| calls.get(at));
    let at = match at {
        Some(at) if !begun.is_some_and(|call| call.is_other_than(piece)) => at,
        _ if calls.len() >= MAX_CALLS => return None,
        _ => {
            calls.push(ToolCall {
                choice: piece.choice,
                index: piece.index,
                // Clients would join the two.
                changed: begun.is_some(),
                ..ToolCall::default()
            });
            calls.len() - 1
        }
    };
    let held: usize = calls.iter().map(|call| call.arguments.len()).sum();
    let call = calls.get_mut(at)?;
    if let Some(id) = piece.id.as_deref().filter(|_| call.id.is_empty()) {
        id.clone_into(&mut call.id);
    }
    if let Some(name) = piece.name.as_deref().filter(|_| call.name.is_empty()) {
        name.clone_into(&mut call.name);
    }
    if let Some(namespace) = piece.namespace.as_deref().filter(|_| call.namespace.is_none()) {
        call.namespace = Some(namespace.to_owned());
    }
    if let Some(arguments) = piece.arguments.as_deref() {
        // One call may be as long as the policy allows, all of them twice that.
        if held.saturating_add(arguments.len()) > max_bytes.saturating_mul(2) {
            return None;
        }
        call.arguments.push_str(arguments);
    }
    call.free_text |= piece.free_text;
    if let Some(signature) = piece.signature.as_deref() {
        call.signature = Some(signature.to_owned());
    }
    Some(())
}

/// Whether the answer was cut in its last call, and that call was completed: then it ended for its calls, and not for the limit.
pub(crate) fn is_made_whole(calls: &[ToolCall], finish: Finish) -> bool {
    finish == Finish::Cut && calls.last().is_some_and(|last| last.changed && !last.cut)
}

/// Why the calls of an answer cannot be sent.
pub(crate) enum CallsError {
    /// Another target may do better.
    Elsewhere,
    /// The guard forbids a call of it: the model is asked again.
    Refused,
    /// The request is over.
    Ended(JourneyEnd),
}

/// The result of checking all calls of an answer.
enum CallsVerdict {
    /// All are valid.
    Valid,
    /// The model must correct this one.
    Reask(usize, String),
    /// One cannot be corrected.
    Hopeless,
}

impl RoutedRequest<'_> {
    /// Checks and corrects the calls of an answer. The attempt may be replaced by the one that answered last. With `may_refuse` the guard may
    /// refuse the answer as a whole.
    pub(crate) async fn settle_calls(
        &self,
        journey: &mut Journey<'_>,
        mut open: Box<OpenAttempt>,
        calls: &mut [ToolCall],
        finish: Finish,
        usage: &mut Usage,
        may_refuse: bool,
    ) -> Result<Box<OpenAttempt>, CallsError> {
        if let Some(last) = calls.last_mut() {
            last.cut = finish == Finish::Cut;
        }
        loop {
            let (at, correction) = match self.check_calls(calls) {
                CallsVerdict::Valid if may_refuse && self.refuses(calls) => {
                    journey.succeeded(open, Some(*usage));
                    return Err(CallsError::Refused);
                }
                CallsVerdict::Valid => return Ok(open),
                CallsVerdict::Reask(at, correction) => (at, correction),
                CallsVerdict::Hopeless => return Err(end_uncorrectable(journey, open)),
            };
            let remedy = journey.after(open, broken_call());
            match remedy {
                Remedy::Reask => {}
                Remedy::Elsewhere => return Err(CallsError::Elsewhere),
                _ => return Err(CallsError::Ended(journey.give_up(broken_call()))),
            }
            journey.go_on(remedy);
            self.disclose(|facts| facts.reasks += 1);
            self.core.state.meters.tool_call("reasked");
            let Some(call) = calls.get(at) else { return Err(CallsError::Elsewhere) };
            let corrected = [Correction { call: call.whole(), correction: &correction }];
            let shape = Shape { streams: false, ..self.shape };
            let mode = AttemptMode::Redo(RetriedCalls { broken: &corrected, tool: &call.name });
            let mut next = match journey.open(&shape, &mut |target| self.write(target, &mode)).await {
                Ok(next) => next,
                Err(ended) => return Err(CallsError::Ended(ended)),
            };
            let replaced = read_whole(self.core, self.plan, &mut next)
                .await
                .and_then(|body| self.replacement(journey, &next, &body, &call.name));
            match replaced {
                Ok((arguments, ended, cost)) => {
                    *usage = usage.plus(cost);
                    if cost != Usage::default() {
                        next.attempt_guard.set_usage(cost, true);
                    }
                    open = next;
                    if let Some(call) = calls.get_mut(at) {
                        call.arguments = arguments;
                        call.changed = true;
                        call.cut = ended == Finish::Cut;
                    }
                }
                Err(fault) => {
                    return Err(match journey.after(next, fault.clone()) {
                        Remedy::Elsewhere | Remedy::Again { .. } | Remedy::Wait { .. } => {
                            CallsError::Elsewhere
                        }
                        _ => CallsError::Ended(journey.give_up(fault)),
                    });
                }
            }
        }
    }

    /// Judges every call; repairs those with one reading.
    fn check_calls(&self, calls: &mut [ToolCall]) -> CallsVerdict {
        let state = &self.core.state;
        for (at, call) in calls.iter_mut().enumerate() {
            if call.free_text {
                continue;
            }
            let finish = if call.cut { Finish::Cut } else { Finish::Done };
            let schema = self.schema(&call.known_name());
            let verdict = check(&call.arguments, schema.as_ref(), finish, &self.plan.config.args);
            match &verdict {
                Verdict::Valid => state.meters.tool_call("valid"),
                Verdict::Repaired { changes, .. } => {
                    state.meters.tool_call("repaired");
                    self.disclose(|facts| facts.repaired += 1);
                    let named: Vec<&str> = changes.iter().take(20).map(|change| change.what.name()).collect();
                    let text = format!("{}: the arguments of {} were mended", self.context.id, call.name);
                    state.note(
                        EntryKind::Remedy,
                        "repaired",
                        None,
                        text,
                        json!({"changes": named, "request": &*self.context.id}),
                    );
                }
                Verdict::Refused(_) => state.meters.tool_call("refused"),
            }
            let called = call.clone();
            let step =
                call.lineage.next_with(schema.as_ref(), &called.called(), &verdict, &self.plan.config.reask);
            self.log_verdict(&called, &verdict, &step);
            match &step {
                Step::Run(json) => {
                    if *json != call.arguments {
                        call.arguments.clone_from(json);
                        call.changed = true;
                    }
                }
                Step::Reask(_) => {
                    let correction = for_model(&state.phrases, self.context.lang, &step).unwrap_or_default();
                    return CallsVerdict::Reask(at, correction);
                }
                _ => return CallsVerdict::Hopeless,
            }
        }
        CallsVerdict::Valid
    }

    /// Logs a verdict for operators.
    fn log_verdict(&self, call: &ToolCall, verdict: &Verdict, step: &Step) {
        let state = &self.core.state;
        if state.log.is_enabled(Level::Debug) {
            for line in debug_lines(&call.called(), verdict, step) {
                state.log.line(Level::Debug, &line, &json!({"request": &*self.context.id}));
            }
        }
        let Some(sentence) = for_user(&state.phrases, self.context.lang, step) else { return };
        // The error that follows reports a call that is given up.
        if let Step::Reask(Ask { attempt, max_attempts, .. }) = *step {
            self.context.notify(|| Notice::Reask { line: sentence.clone(), attempt, max_attempts });
        }
        state.log.line(Level::Warn, &sentence, &json!({"tool": call.name, "request": &*self.context.id}));
        let data = json!({"tool": call.name, "request": &*self.context.id});
        state.note(EntryKind::Remedy, "reask", None, sentence, data);
    }

    fn schema(&self, tool: &str) -> Option<ToolSchema> {
        let (_, schema) = self.request.tools().into_iter().find(|(name, _)| name == tool)?;
        let schema = match schema {
            Some(schema) => schema.get(),
            None if self.takes_text(tool) => free_text::SCHEMA,
            None => EMPTY_SCHEMA,
        };
        // A schema that cannot be compiled is the client's; its calls are only checked for valid JSON.
        self.core.state.schemas.compile(schema).ok().map(|schema| schema.named(tool))
    }

    /// Whether the client's tool takes free text.
    pub(crate) fn takes_text(&self, tool: &str) -> bool {
        let takes = |known: &Tool<'_>| known.name == tool && matches!(known.input, ToolInput::FreeText);
        self.request.form().tools.iter().any(takes)
    }

    /// The arguments of the call that the model sent to replace a broken one.
    fn replacement(
        &self,
        journey: &Journey<'_>,
        open: &OpenAttempt,
        body: &[u8],
        tool: &str,
    ) -> Result<(String, Finish, Usage), Box<Fault>> {
        let invalid = || {
            let text = String::from_utf8_lossy(body);
            journey.classify(&open.head, 200, &text, false).unwrap_or_else(broken_call)
        };
        let whole = answer::read(self.target_dialect(&open.target), body).map_err(|_| invalid())?;
        let choice = whole.choices.first().filter(|_| !whole.error).ok_or_else(invalid)?;
        let named = |call: &&whole::Call<'_>| call.name.as_deref() == Some(tool);
        let call =
            choice.calls.iter().find(named).or_else(|| choice.calls.first()).ok_or_else(broken_call)?;
        let finish = choice.finish.as_deref().map_or(Finish::Unknown, Finish::of);
        Ok((call.arguments.clone().into_owned(), finish, whole.usage.unwrap_or_default()))
    }
}

/// Whether a finish reason says that the provider could not parse a call of the model: Gemini's values.
pub(crate) fn is_broken_call(reason: &str) -> bool {
    matches!(reason, "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL")
}

/// Ends an attempt whose call the model cannot correct; another model may make a good one.
pub(crate) fn end_uncorrectable(journey: &mut Journey<'_>, open: Box<OpenAttempt>) -> CallsError {
    let place = open.place;
    match journey.after(open, broken_call()) {
        Remedy::Elsewhere => CallsError::Elsewhere,
        remedy @ Remedy::Reask => {
            journey.leave(place, remedy);
            CallsError::Elsewhere
        }
        _ => CallsError::Ended(journey.give_up(broken_call())),
    }
}

/// The fault of a call that cannot be run.
pub(crate) fn broken_call() -> Box<Fault> {
    let mut fault = Box::new(Fault::of(Kind::ToolArgumentsInvalid, "firewall"));
    fault.sub = Some(Sub::ToolCall);
    fault
}
