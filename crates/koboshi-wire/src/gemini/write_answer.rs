//! An answer that is no stream, for a client that speaks Gemini.

use bytes::Bytes;
use serde_json::Value;

use super::frames::{Answer, Candidate, finish_word};
use super::write_parts::{self, Part};
use crate::dialect::Dialect;
use crate::form::Signature;
use crate::json;
use crate::whole::{Choice, Whole};
use crate::writer::Head;

/// An answer that is no stream.
#[must_use]
pub fn write(head: &Head, whole: &Whole<'_>, koboshi: Option<&Value>) -> Bytes {
    let parts: Vec<Vec<Part<'_>>> = whole.choices.iter().map(parts_of).collect();
    let candidates =
        whole.choices.iter().zip(&parts).map(|(choice, parts)| {
            Candidate::of(choice.index, parts, choice.finish.as_deref().map(finish_word))
        });
    let candidates: Vec<Candidate<'_>> = candidates.collect();
    json::bytes(&Answer::of(head, &candidates, whole.usage.as_ref(), koboshi))
}

fn parts_of<'a>(choice: &'a Choice<'_>) -> Vec<Part<'a>> {
    let own = |signature: &'a Signature<'_>| signature.is_of(Dialect::Gemini).then_some(&*signature.data);
    let mut parts = Vec::new();
    // A signature without words belongs to the text, which comes after all thoughts.
    let mut of_text = None;
    for thought in &choice.thoughts {
        let signature = thought.signature.as_ref().and_then(own);
        if thought.text.is_empty() {
            of_text = signature.or(of_text);
        } else {
            parts.push(Part { thought: true, thought_signature: signature, ..Part::text(&*thought.text) });
        }
    }
    let texts = [choice.text.as_deref(), choice.refused.as_deref()];
    let before = parts.len();
    parts.extend(texts.into_iter().flatten().map(Part::text));
    if of_text.is_some() || (parts.len() == before && choice.calls.is_empty()) {
        if parts.len() == before {
            parts.push(Part::text(""));
        }
        if let Some(last) = parts.last_mut() {
            last.thought_signature = of_text;
        }
    }
    parts.extend(choice.calls.iter().map(|call| Part {
        thought_signature: call.signature.as_ref().and_then(own),
        function_call: Some(write_parts::Call {
            id: call.id.as_deref(),
            name: call.name.as_deref().unwrap_or_default().into(),
            args: write_parts::object(&call.arguments, call.free_text),
        }),
        ..Part::default()
    }));
    parts
}
