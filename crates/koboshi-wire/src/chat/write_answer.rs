//! An answer that is no stream, for a client of the chat dialect.

use bytes::Bytes;
use serde_json::Value;

use super::frames::{Call, Choice, Function, Message, finish_word, whole_of};
use crate::dialect::finish;
use crate::whole::{self, Whole};
use crate::writer::{Head, WholeCall};

/// An answer that is no stream.
#[must_use]
pub fn write(head: &Head, answer: &Whole<'_>, koboshi: Option<&Value>) -> Bytes {
    written(head, answer, koboshi, false)
}

/// The same for a client that offered `functions`: a call in the old form, which has room for one.
#[must_use]
pub fn write_legacy(head: &Head, answer: &Whole<'_>, koboshi: Option<&Value>) -> Bytes {
    written(head, answer, koboshi, true)
}

fn written(head: &Head, answer: &Whole<'_>, koboshi: Option<&Value>, legacy: bool) -> Bytes {
    let choices = answer.choices.iter().map(|choice| {
        let (message, in_old_form) = message(choice, legacy);
        let usual = if choice.calls.is_empty() { finish::STOP } else { finish::TOOL_CALLS };
        let reason = choice.finish.as_deref().unwrap_or(usual);
        Choice::of(choice.index, message, finish_word(reason, in_old_form))
    });
    whole_of(head, &choices.collect::<Vec<_>>(), answer.usage.as_ref(), koboshi)
}

fn message<'a>(choice: &'a whole::Choice<'_>, legacy: bool) -> (Message<'a>, bool) {
    let mut thoughts =
        choice.thoughts.iter().map(|thought| thought.text.as_ref()).filter(|text| !text.is_empty());
    let mut message = Message {
        content: choice.text.as_deref(),
        reasoning_content: thoughts
            .next()
            .map(|first| thoughts.fold(first.into(), |all, text| all + "\n\n" + text)),
        refusal: choice.refused.as_deref(),
        ..Message::default()
    };
    let calls = choice.calls.iter().map(|call| WholeCall {
        id: call.id.as_deref().unwrap_or_default(),
        name: call.name.as_deref().unwrap_or_default(),
        arguments: if call.arguments.is_empty() && !call.free_text { "{}" } else { &call.arguments },
        free_text: call.free_text,
        ..WholeCall::default()
    });
    let calls: Vec<WholeCall<'a>> = calls.collect();
    match calls.as_slice() {
        [] => (message, false),
        [only] if legacy && !only.free_text => {
            message.function_call = Some(Function { name: only.name, arguments: only.arguments });
            (message, true)
        }
        _ => {
            message.tool_calls = Some(calls.iter().map(|call| Call::of(None, call)).collect());
            (message, false)
        }
    }
}
