//! An answer in one piece, and where such a body breaks.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fall::Place;
use crate::frames::{Stamp, usage};

/// The body of an answer without choices.
pub(crate) fn empty(stamp: &Stamp) -> String {
    completion(stamp, &json!([]), 0)
}

/// The body of a whole answer. With `filtered` it ends after so many pieces, by the filter.
pub(crate) fn body(stamp: &Stamp, answer: Answer, filtered: Option<u64>) -> String {
    let most = filtered.map_or(usize::MAX, |after| usize::try_from(after).unwrap_or(usize::MAX));
    let calls_cut = answer.calls_cut();
    let mut speech = answer.speech;
    let mut given = 0_u64;
    let mut text = String::new();
    for piece in speech.by_ref().take(most) {
        given = given.saturating_add(1);
        text.push_str(&piece);
    }
    let calls = if filtered.is_some() { Vec::new() } else { answer.calls };
    let reason = Answer::finish(!calls.is_empty(), calls_cut, &speech);
    let reason = if filtered.is_some() { "content_filter" } else { reason };
    let mut message = json!({"role": "assistant", "content": text, "refusal": null, "annotations": []});
    if let (Value::Object(fields), false) = (&mut message, calls.is_empty()) {
        if text.is_empty() {
            fields.insert("content".to_owned(), Value::Null);
        }
        let calls = calls.into_iter().map(|call| {
            given = given.saturating_add(call.arguments.len() as u64);
            let function = json!({"name": call.name, "arguments": call.arguments.concat()});
            json!({"id": call.id, "type": "function", "function": function})
        });
        fields.insert("tool_calls".to_owned(), calls.collect());
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
    completion(stamp, &json!([choice]), given)
}

fn completion(stamp: &Stamp, choices: &Value, given: u64) -> String {
    json!({
        "id": stamp.id, "object": "chat.completion", "created": stamp.created, "model": stamp.model,
        "choices": choices, "usage": usage(stamp.prompt, given), "service_tier": "default",
        "system_fingerprint": "fp_sim",
    })
    .to_string()
}

/// So many bytes of a body come before it breaks at this place. Never all of it.
pub(crate) fn broken_at(body: &str, place: Place) -> usize {
    let half = body.len() / 2;
    let at = match place {
        Place::Frame { bytes, .. } if bytes > 0 => usize::try_from(bytes).unwrap_or(usize::MAX),
        Place::Call { .. } => in_arguments(body).unwrap_or(half),
        Place::Frame { .. } | Place::Half => half,
    };
    at.min(body.len().saturating_sub(1))
}

/// The middle of the first call's arguments.
fn in_arguments(body: &str) -> Option<usize> {
    const MARK: &str = "\"arguments\":\"";
    let from = body.find(MARK)? + MARK.len();
    let rest = body.get(from..)?;
    Some(from + rest.find("\",\"name\"").or_else(|| rest.find("\"}"))? / 2)
}
