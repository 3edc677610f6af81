//! What a whole answer says, and how it is written for its client.
//!
//! Both are functions of its bytes and of nothing that belongs to a core: a large answer, which takes up to a second to read, is read and
//! written by the threads for large bodies ([`on_a_large_core`]), so that no other client waits for it.

use std::borrow::Cow;

use bytes::Bytes;
use koboshi::args::Finish;
use koboshi_wire::Dialect;
use koboshi_wire::any::answer;
use koboshi_wire::dialect::finish;
use koboshi_wire::step::Usage;
use koboshi_wire::whole::{Choice, Whole};
use koboshi_wire::writer::Head;

use crate::http::pace::LARGE;
use crate::shared::core_state::CoreState;
use crate::stream::firewall::{ToolCall, is_broken_call};

/// Does work on the bytes of an answer: on a core for large bodies where there are many. None if that core failed over it.
pub(super) async fn on_a_large_core<T: Send + 'static>(
    core: &CoreState,
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match &core.large {
        Some(large) if length > LARGE => large.run(work).await,
        _ => Some(work()),
    }
}

/// Who wrote an answer, and who reads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialects {
    pub(super) target: Dialect,
    pub(super) client: Dialect,
}

impl Dialects {
    fn are_same(self) -> bool {
        self.target == self.client
    }
}

/// What a whole answer is.
#[derive(Debug)]
pub(super) enum WholeAnswer {
    /// It cannot be read, states an error, or has no choice.
    None,
    /// All that it has is sound or pictures, which the client's dialect cannot express.
    OnlyMedia,
    /// It ended for an error, with this text and this reason.
    Failed(String, String),
    /// The provider says itself that a call is broken.
    BrokenCall,
    /// An answer.
    Read(ReadAnswer),
}

/// The relevant facts of an answer.
#[derive(Debug)]
pub(super) struct ReadAnswer {
    pub(super) calls: Vec<ToolCall>,
    pub(super) finish: Finish,
    pub(super) usage: Option<Usage>,
    /// Where a later request may refer to it.
    pub(super) id: Option<String>,
    /// Sound or pictures were left out.
    pub(super) lost_media: bool,
    /// A content filter ended it.
    pub(super) is_filtered: bool,
    /// Every choice has content, or says why it has none.
    pub(super) is_complete: bool,
    /// Some choice has an end.
    pub(super) has_end: bool,
}

/// Reads an answer.
pub(super) fn read(dialects: Dialects, body: &[u8]) -> WholeAnswer {
    let Ok(mut whole) = answer::read(dialects.target, body) else { return WholeAnswer::None };
    let mut lost_media = false;
    if !dialects.are_same() {
        // No other dialect can express a model's sound and pictures: an answer of those alone would be empty.
        for choice in whole.choices.iter_mut().filter(|choice| choice.audio) {
            choice.audio = false;
            if !choice.has_content() {
                return WholeAnswer::OnlyMedia;
            }
            lost_media = true;
        }
    }
    if whole.error || whole.choices.is_empty() {
        return WholeAnswer::None;
    }
    let mut reasons = whole.choices.iter().filter_map(|choice| Some((choice, choice.finish.as_deref()?)));
    if let Some((choice, reason)) = reasons.find(|(_, reason)| finish::is_error(reason)) {
        let text = choice.text.as_deref().unwrap_or_default();
        return WholeAnswer::Failed(text.to_owned(), reason.to_owned());
    }
    let broken = |choice: &Choice<'_>| choice.finish.as_deref().is_some_and(is_broken_call);
    if whole.choices.iter().any(broken) {
        return WholeAnswer::BrokenCall;
    }
    let is_filtered = |choice: &Choice<'_>| choice.finish.as_deref() == Some(finish::CONTENT_FILTER);
    let goes_on = dialects.client.has_stored_answers() && dialects.are_same();
    WholeAnswer::Read(ReadAnswer {
        calls: tool_calls(&whole),
        finish: finish_of(&whole),
        usage: whole.usage,
        id: whole.id.as_deref().filter(|_| goes_on).map(str::to_owned),
        lost_media,
        is_filtered: whole.choices.iter().any(is_filtered),
        is_complete: whole.choices.iter().all(|choice| choice.has_content() || is_filtered(choice)),
        has_end: whole.choices.iter().any(|choice| choice.finish.is_some()),
    })
}

fn tool_calls(whole: &Whole<'_>) -> Vec<ToolCall> {
    let of_choice = |choice: &Choice<'_>| {
        let calls = (0..).zip(&choice.calls).map(|(index, call)| ToolCall {
            choice: choice.index,
            index,
            id: call.id.as_deref().unwrap_or_default().to_owned(),
            name: call.name.as_deref().unwrap_or_default().to_owned(),
            namespace: call.namespace.as_deref().map(str::to_owned),
            arguments: call.arguments.clone().into_owned(),
            free_text: call.free_text,
            signature: call.signature.as_ref().map(|signature| signature.data.clone().into_owned()),
            ..ToolCall::default()
        });
        calls.collect::<Vec<_>>()
    };
    whole.choices.iter().flat_map(of_choice).collect()
}

fn finish_of(whole: &Whole<'_>) -> Finish {
    let reasons = whole.choices.iter().filter_map(|choice| choice.finish.as_deref()).map(Finish::of);
    reasons.fold(Finish::Unknown, |known, reason| {
        if reason == Finish::Cut {
            reason
        } else if known == Finish::Cut {
            known
        } else {
            reason
        }
    })
}

/// How an answer is written for its client.
#[derive(Debug)]
pub(super) struct WrittenFor {
    pub(super) dialects: Dialects,
    /// Its calls, as the client is to get them.
    pub(super) calls: Vec<ToolCall>,
    /// The cost of all attempts, where it is another one than the answer says.
    pub(super) usage: Option<Usage>,
    /// For an answer in another dialect; its model is what the answer says, or this one.
    pub(super) head: Head,
    pub(super) is_legacy: bool,
    /// The calls were ended although the provider says otherwise.
    pub(super) made_whole: bool,
}

/// An answer as the client gets it: repaired calls in place of the broken ones, the cost of all attempts, and in its own dialect.
pub(super) fn write(written: &WrittenFor, body: Bytes) -> Bytes {
    let WrittenFor { dialects, calls, usage, .. } = written;
    let body = if written.made_whole { answer::ended_for_calls(dialects.target, &body) } else { body };
    if dialects.are_same() {
        let body = with_changes(dialects.target, body, calls);
        return match usage {
            Some(usage) => answer::with_usage(dialects.target, &body, usage),
            None => body,
        };
    }
    let Ok(mut whole) = answer::read(dialects.target, &body) else { return body };
    let mut own_calls = calls.iter();
    for call in whole.choices.iter_mut().flat_map(|choice| &mut choice.calls) {
        let Some(own) = own_calls.next() else { break };
        call.id = Some(own.id.as_str().into());
        call.name = Some(own.name.as_str().into());
        call.namespace = own.namespace.as_deref().map(Into::into);
        call.arguments = own.arguments.as_str().into();
        call.free_text = own.free_text;
        call.signature = None;
    }
    for choice in &mut whole.choices {
        let has_calls = !choice.calls.is_empty();
        let fitting = |reason: Cow<'_, str>| finish::fitting(&reason, has_calls).to_owned().into();
        choice.finish = choice.finish.take().map(fitting);
    }
    whole.usage = usage.or(whole.usage);
    let model = whole.model.as_deref().unwrap_or(&written.head.model).to_owned();
    let head = Head { model, ..written.head.clone() };
    answer::write(dialects.client, &head, &whole, None, written.is_legacy)
}

/// The answer with repaired arguments in place of the broken ones.
fn with_changes(dialect: Dialect, body: Bytes, calls: &[ToolCall]) -> Bytes {
    if calls.iter().all(|call| !call.changed) {
        return body;
    }
    let Ok(whole) = answer::read(dialect, &body) else { return body };
    let spans = whole.choices.iter().flat_map(|choice| choice.calls.iter().map(|call| call.span.clone()));
    let changes: Vec<_> = spans
        .zip(calls)
        .filter_map(|(span, call)| Some((span.filter(|_| call.changed)?, call.arguments.as_str())))
        .collect();
    answer::with_arguments(dialect, &body, &changes)
}
