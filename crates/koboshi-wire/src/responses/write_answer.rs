//! An answer that is no stream, from one in any dialect.

use bytes::Bytes;
use serde_json::Value;

use super::frames::{End, Response};
use super::memory::{ItemContent, Memory, Parts};
use super::writer::{OWN_THOUGHT, item_id};
use crate::dialect::{Dialect, finish};
use crate::json;
use crate::whole::Whole;
use crate::writer::Head;

/// An answer that is no stream: the first choice of one in any dialect. Signatures are written if they are this vendor's.
#[must_use]
pub fn write(head: &Head, answer: &Whole<'_>, koboshi: Option<&Value>) -> Bytes {
    let choice = answer.choices.first().cloned().unwrap_or_default();
    let mut output = Memory::default();
    for thought in &choice.thoughts {
        let signature = thought.signature.as_ref().filter(|signature| signature.is_of(Dialect::Responses));
        if thought.text.is_empty() && signature.is_none() {
            continue;
        }
        let mut parts = Parts::default();
        if !thought.text.is_empty() {
            parts.open(false);
            parts.push(&thought.text);
        }
        let id = signature.and_then(|signature| signature.id.as_deref()).map(str::to_owned);
        let id = id.unwrap_or_else(|| item_id(&head.id, OWN_THOUGHT, output.next()));
        let signature = signature.map(|signature| signature.data.clone().into_owned()).unwrap_or_default();
        output.add(output.next(), id, ItemContent::Thought { parts, signature });
    }
    let spoken = [(&choice.text, false), (&choice.refused, true)];
    let mut parts = Parts::default();
    for (text, is_refusal) in spoken.into_iter().filter_map(|(text, refusal)| Some((text.as_ref()?, refusal)))
    {
        parts.open(is_refusal);
        parts.push(text);
    }
    if !parts.all.is_empty() {
        output.add(output.next(), item_id(&head.id, "msg_", output.next()), ItemContent::Message(parts));
    }
    for call in &choice.calls {
        let kind = if call.free_text { "ctc_" } else { "fc_" };
        let id = item_id(&head.id, kind, output.next());
        let what = ItemContent::Call {
            number: u32::MAX,
            id: call.id.as_deref().unwrap_or(&id).to_owned(),
            name: call.name.as_deref().unwrap_or_default().to_owned(),
            namespace: call.namespace.as_deref().map(str::to_owned),
            arguments: call.arguments.clone().into_owned(),
            free_text: call.free_text,
        };
        output.add(output.next(), id, what);
    }
    let end = End::of(choice.finish.as_deref().unwrap_or(finish::STOP));
    for item in &mut output.items {
        let is_message = matches!(item.what, ItemContent::Message(_));
        (item.is_open, item.is_cut) = (false, is_message && end != End::Completed);
    }
    let response = Response::of(head, koboshi).ended(output.output(), end, answer.usage.as_ref());
    json::bytes(&response)
}
