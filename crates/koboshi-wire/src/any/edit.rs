//! A request as a target gets it: in its own dialect the client's bytes with only what must change changed, in another one written from
//! the form.
//!
//! The gateway states the same changes in both cases and need not know which one it is.

use std::borrow::Cow;

use bytes::Bytes;
use koboshi::models::Facts;

use super::fit::fit;
use super::kept::KeptFields;
use super::request::Request;
use crate::chat::{self, Correction};
use crate::dialect::Dialect;
use crate::form::sanitize::{Mend, Target, sanitize};
use crate::form::trim::trim;
use crate::form::{Call, Choice, Form, Omission, Outcome, Part, Role, Thinking, Turn};
use crate::messages::MessagesRequest;
use crate::raw::is_object;
use crate::{gemini, messages, responses};

/// What is to be changed.
#[derive(Debug, Clone, Copy)]
pub struct Edits<'e> {
    /// The model to ask for.
    pub model: &'e str,
    /// Chat: asks for the cost at the end of the stream.
    pub include_usage: bool,
    /// Added to the last result of a tool.
    pub note: Option<&'e str>,
    /// No tool may be called.
    pub close: bool,
    /// The conversation must come down to about this many tokens.
    pub trim: Option<u64>,
    /// Turns with one of these texts are not left out by it.
    pub pinned: &'e [String],
    /// The target has refused the client's own bytes: the conversation is mended for it.
    pub mend: Option<HistoryRepair>,
    /// What is different about this attempt.
    pub mode: AttemptMode<'e>,
}

impl<'e> Edits<'e> {
    /// Only another model.
    #[must_use]
    pub const fn plain(model: &'e str) -> Self {
        Self {
            model,
            include_usage: false,
            note: None,
            close: false,
            trim: None,
            pinned: &[],
            mend: None,
            mode: AttemptMode::Plain,
        }
    }
}

/// What a target has refused of a conversation in its own dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryRepair {
    /// A request in which something is known to be wrong.
    History,
    /// A thinking signature: it is another account's, or one is missing.
    Signatures,
}

/// What is different about an attempt.
#[derive(Debug, Clone, Copy)]
pub enum AttemptMode<'t> {
    /// Nothing.
    Plain,
    /// The answer is to continue this text.
    Prefill(&'t str),
    /// The model is to mend a call, in an answer that is no stream.
    Redo(RetriedCalls<'t>),
    /// The model's calls were refused: it is to do something else.
    Refuse(RefusedCalls<'t>),
}

/// Calls that the model is to make again.
#[derive(Debug, Clone, Copy)]
pub struct RetriedCalls<'t> {
    /// What was wrong with them.
    pub broken: &'t [Correction<'t>],
    /// The tool that it must call.
    pub tool: &'t str,
}

/// Calls that were not run, and that the model is not to make again.
#[derive(Debug, Clone, Copy)]
pub struct RefusedCalls<'t> {
    /// The text before them that the client has seen.
    pub text: &'t str,
    /// The calls, and why each was refused.
    pub calls: &'t [Correction<'t>],
}

/// The target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetTraits {
    /// Its dialect.
    pub dialect: Dialect,
    /// It is OpenAI itself, with its own rules, and no server that copies it.
    pub openai: bool,
    /// It is Mistral itself.
    pub mistral: bool,
    /// It is Google's Vertex.
    pub vertex: bool,
    /// It continues an answer that was begun.
    pub prefill: bool,
    /// What is known of its model.
    pub facts: Facts,
}

/// A body for a target.
#[derive(Debug, Clone)]
pub struct WrittenRequest {
    /// The body.
    pub body: Bytes,
    /// What did not come along. With one that is needed the body must not be sent.
    pub left: Vec<Omission>,
    /// What was mended on the way.
    pub mends: Vec<Mend>,
}

impl WrittenRequest {
    /// What cannot be left out, if anything.
    #[must_use]
    pub fn lacks(&self) -> Option<&Omission> {
        self.left.iter().find(|left| !left.droppable)
    }
}

impl Request<'_> {
    /// The request for this target. `body` is what it was read from.
    #[must_use]
    pub fn write(&self, body: &Bytes, to: TargetTraits, edits: &Edits<'_>) -> WrittenRequest {
        if edits.trim.is_none() && edits.mend.is_none() && self.dialect() == to.dialect {
            if !self.has_unsigned_thinking() {
                return self.spliced_with_notes(body, to, edits);
            }
            if let Some(written) = self.without_unsigned_thinking(body, to, edits) {
                return written;
            }
        }
        let mut form = self.form().into_owned();
        let kept = (self.dialect() == to.dialect).then(|| KeptFields::of(self, &mut form));
        if let Some(trimmed) =
            edits.trim.and_then(|tokens| trim(&form, tokens, self.needs().input_tokens, edits.pinned))
        {
            form = trimmed.form;
        }
        let mut store = Some(false);
        if let (Self::Responses(request), Some(_)) = (self, &kept) {
            without_groups(&mut form, request);
            // Noted only where it differs from the usual.
            store = request.store().filter(|store| !store);
        }
        if edits.mend == Some(HistoryRepair::Signatures) {
            drop_signatures(&mut form);
            form.left.push(Omission::dropped("drop_refused_seals", "turns"));
        }
        edit(&mut form, edits);
        fit(&mut form, self.dialect(), to);
        let mends = sanitize(&mut form, Target { dialect: to.dialect, prefill: to.prefill });
        if let Some(note) = edits.note {
            // Only now: to the sanitizer it would be an old one.
            append_note(&mut form, note, edits.mode);
        }
        let mut left = std::mem::take(&mut form.left);
        let flavor =
            chat::model::Flavor { mistral: to.mistral, ..chat::model::Flavor::of(to.openai, to.facts) };
        let written = match to.dialect {
            Dialect::Chat => chat::body::write(&form, flavor),
            Dialect::Messages => messages::body::write_within(&form, to.facts, self.room(to)),
            Dialect::Responses => responses::body::write_as(&form, flavor, store),
            Dialect::Gemini => gemini::body::write(&form, to.facts),
        };
        left.extend(written.left);
        let body = match kept {
            Some(kept) => kept.put_into(written.body, form.stream),
            None => written.body,
        };
        WrittenRequest { body, left, mends }
    }

    /// How long an answer can be beside this conversation, by estimate.
    fn room(&self, to: TargetTraits) -> Option<u64> {
        let window = to.facts.context_window?;
        Some((window / 10 * 9).saturating_sub(self.needs().input_tokens))
    }

    /// What can be mended for a target of the client's own dialect that has refused the request with this message; nothing where the message is
    /// about something else.
    #[must_use]
    pub fn mending(&self, to: TargetTraits, message: &str) -> Option<HistoryRepair> {
        let mut form = self.form().into_owned();
        let message = message.to_ascii_lowercase();
        let of_signatures = ["signature", "encrypted_content", "encrypted content", "`thinking`"];
        let is_sealed = |part: &Part<'_>| matches!(part, Part::Thought(_) | Part::Call(_));
        if of_signatures.iter().any(|word| message.contains(word))
            && form.turns.iter().flat_map(|turn| &turn.parts).any(is_sealed)
        {
            return Some(HistoryRepair::Signatures);
        }
        let mends = sanitize(&mut form, Target { dialect: to.dialect, prefill: to.prefill });
        let is_wrong = |mend: &Mend| !matches!(mend.rule, "prefill_refused" | "drop_own_note");
        mends.iter().any(is_wrong).then_some(HistoryRepair::History)
    }

    /// Whether there are thoughts that we wrote for another vendor's model: they come back without a signature, and their vendor would refuse
    /// them. Where they are only left out by a splice, this is not asked.
    fn has_unsigned_thinking(&self) -> bool {
        self.messages().is_some_and(|request| has_unsigned_thinking(request.form()))
    }

    /// The request, if it is one of messages.
    fn messages(&self) -> Option<&MessagesRequest<'_>> {
        match self {
            Self::Messages(request) => Some(request),
            Self::Chat(_) | Self::Responses(_) | Self::Gemini(_) => None,
        }
    }

    /// The client's own bytes without such thoughts, if that is a request.
    fn without_unsigned_thinking(
        &self,
        body: &Bytes,
        to: TargetTraits,
        edits: &Edits<'_>,
    ) -> Option<WrittenRequest> {
        let request = self.messages()?;
        let body = request.without_unsigned_thinking(body)?;
        let request = Request::parse(Dialect::Messages, &body, None).ok()?;
        let mut written = request.spliced_with_notes(&body, to, edits);
        written.left.push(Omission::dropped("drop_foreign_thought", "messages"));
        Some(written)
    }

    fn spliced_with_notes(&self, body: &Bytes, to: TargetTraits, edits: &Edits<'_>) -> WrittenRequest {
        let lacks_thought = self.messages().is_some_and(|request| lacks_thought(request.form()));
        let left = lacks_thought.then(|| Omission::dropped("drop_thinking_in_tool_loop", "thinking"));
        let left = left.into_iter().collect();
        WrittenRequest { body: self.spliced(body, to, edits), left, mends: Vec::new() }
    }

    fn spliced(&self, body: &Bytes, to: TargetTraits, edits: &Edits<'_>) -> Bytes {
        let tells_parallel =
            !to.dialect.refuses_idle_parallel_switch() || to.facts.parallel_tool_calls != Some(false);
        macro_rules! changed {
            ($rewrite:ident, $prefill:ident, $redo:expr) => {{
                $rewrite.model(edits.model);
                if let Some(note) = edits.note {
                    $rewrite.append_to_last_tool_result(note);
                }
                if edits.close {
                    $rewrite.tool_choice_none();
                }
                match edits.mode {
                    AttemptMode::Plain => {}
                    AttemptMode::Prefill(text) => {
                        $rewrite.$prefill(text);
                    }
                    AttemptMode::Redo(RetriedCalls { broken, tool }) => {
                        $redo(&mut $rewrite, "", broken);
                        $rewrite.force_tool(tool);
                        if tells_parallel {
                            $rewrite.parallel_off();
                        }
                        $rewrite.stream(false);
                    }
                    AttemptMode::Refuse(RefusedCalls { text, calls }) => $redo(&mut $rewrite, text, calls),
                }
                $rewrite.finish()
            }};
        }
        match self {
            Self::Chat(request) => {
                let mut rewrite = chat::Rewrite::of(request, body);
                if edits.include_usage {
                    rewrite.include_usage();
                }
                changed!(rewrite, prefill, |rewrite: &mut chat::Rewrite<'_>, text, calls| {
                    rewrite.append_exchange(text, calls);
                })
            }
            Self::Messages(request) => {
                let mut rewrite = messages::Rewrite::of(request, body);
                if lacks_thought(request.form()) {
                    rewrite.lacks_thought();
                }
                changed!(rewrite, continue_with, |rewrite: &mut messages::Rewrite<'_>, text, calls| {
                    rewrite.corrected(text, calls);
                })
            }
            Self::Responses(request) => {
                let mut rewrite = responses::Rewrite::of(request, body);
                if request.has_own_thoughts() {
                    rewrite.drop_own_thoughts();
                }
                changed!(rewrite, continue_with, |rewrite: &mut responses::Rewrite<'_>, text, calls| {
                    rewrite.corrected(text, calls);
                })
            }
            Self::Gemini(request) => {
                let mut rewrite = gemini::Rewrite::of(request, body);
                rewrite.whole_calls();
                if to.vertex {
                    rewrite.without_ids();
                }
                changed!(rewrite, continue_with, |rewrite: &mut gemini::Rewrite<'_>, text, calls| {
                    rewrite.corrected(text, calls);
                })
            }
        }
    }
}

fn has_unsigned_thinking(form: &Form<'_>) -> bool {
    let mut parts = form.turns.iter().flat_map(|turn| &turn.parts);
    parts.any(|part| matches!(part, Part::Thought(thought) if thought.signature.is_none()))
}

/// Removes every thinking signature, and the thoughts whose text only the signature holds.
fn drop_signatures(form: &mut Form<'_>) {
    for part in form.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match part {
            Part::Thought(thought) => thought.signature = None,
            Part::Call(call) => call.signature = None,
            _ => {}
        }
    }
}

/// Whether a thought is required before calls whose results follow, and none is there because another vendor's model
/// made the calls. With thinking by budget the vendor refuses that.
fn lacks_thought(form: &Form<'_>) -> bool {
    let [.., answer, last] = form.turns.as_slice() else { return false };
    matches!(form.thinking, Thinking::Budget(1..))
        && matches!(last.parts.first(), Some(Part::Outcome(_)))
        && answer.role == Role::Assistant
        && !matches!(answer.parts.first(), Some(Part::Thought(_)))
}

/// Where groups of tools are known, their tools cannot be offered one by one: the answer passes as it is, and the client would not know the
/// names in its calls.
fn without_groups(form: &mut Form<'_>, request: &responses::ResponsesRequest<'_>) {
    form.tools.retain(|tool| request.in_group(&tool.name).is_none());
    for left in form.left.iter_mut().filter(|left| left.rule == "flatten_namespace") {
        left.rule = "drop_namespace";
    }
}

/// The same changes on a form, except for the note.
fn edit(form: &mut Form<'_>, edits: &Edits<'_>) {
    form.model = Cow::Owned(edits.model.to_owned());
    if edits.close && !form.tools.is_empty() {
        form.choice = Choice::Never;
    }
    match edits.mode {
        AttemptMode::Plain => {}
        AttemptMode::Prefill(text) => prefill(form, text),
        AttemptMode::Redo(RetriedCalls { broken, tool }) => {
            form.turns.extend(exchange("", broken));
            form.choice = Choice::Tool(Cow::Owned(tool.to_owned()));
            form.parallel = Some(false);
            form.stream = false;
        }
        AttemptMode::Refuse(RefusedCalls { text, calls }) => form.turns.extend(exchange(text, calls)),
    }
}

/// To the last result that the client sent.
fn append_note(form: &mut Form<'_>, note: &str, mode: AttemptMode<'_>) {
    let ours = match mode {
        AttemptMode::Redo(RetriedCalls { broken, .. }) => broken.len(),
        AttemptMode::Refuse(RefusedCalls { calls, .. }) => calls.len(),
        AttemptMode::Plain | AttemptMode::Prefill(_) => 0,
    };
    let parts = form.turns.iter_mut().rev().flat_map(|turn| turn.parts.iter_mut().rev());
    let mut outcomes = parts.filter_map(|part| match part {
        Part::Outcome(outcome) => Some(outcome),
        _ => None,
    });
    if let Some(outcome) = outcomes.nth(ours) {
        outcome.parts.push(Part::Text(Cow::Owned(note.to_owned())));
    }
}

fn prefill(form: &mut Form<'_>, text: &str) {
    let text = Part::Text(Cow::Owned(text.to_owned()));
    match form.turns.last_mut() {
        Some(last) if last.role == Role::Assistant => last.parts.push(text),
        _ => form.turns.push(Turn { role: Role::Assistant, parts: vec![text] }),
    }
}

/// Broken calls as if a tool had complained.
fn exchange(text: &str, broken: &[Correction<'_>]) -> [Turn<'static>; 2] {
    let owned = |text: &str| Cow::Owned(text.to_owned());
    let text = (!text.trim().is_empty()).then(|| Part::Text(owned(text)));
    let calls = broken.iter().map(|Correction { call, .. }| {
        Part::Call(Call {
            id: owned(call.id),
            name: owned(call.name),
            arguments: owned(if is_object(call.arguments) || call.free_text { call.arguments } else { "{}" }),
            free_text: call.free_text,
            signature: None,
        })
    });
    let results = broken.iter().map(|Correction { call, correction }| {
        Part::Outcome(Outcome {
            id: owned(call.id),
            name: Some(owned(call.name)),
            parts: vec![Part::Text(owned(correction))],
            failed: Some(true),
            free_text: call.free_text,
        })
    });
    [
        Turn { role: Role::Assistant, parts: text.into_iter().chain(calls).collect() },
        Turn { role: Role::User, parts: results.collect() },
    ]
}
