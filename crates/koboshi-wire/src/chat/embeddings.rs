//! Requests for embeddings: only the model is read, and only the model is changed.

use std::borrow::Cow;

use bytes::Bytes;

use crate::intake::{Body, IntakeError};
use crate::splice::{Splices, place, quoted};
use crate::step::Usage;

/// The model that is asked for.
///
/// # Errors
/// The body is no JSON object with a model.
pub fn model(body: &[u8]) -> Result<Cow<'_, str>, IntakeError> {
    Ok(Body::of(body)?.model()?.0)
}

/// What an answer cost, where it says so.
#[must_use]
pub fn usage(answer: &[u8]) -> Option<Usage> {
    #[derive(serde::Deserialize)]
    struct Answer {
        usage: StatedUsage,
    }
    #[derive(serde::Deserialize)]
    struct StatedUsage {
        prompt_tokens: u64,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    Some(Usage { input: answer.usage.prompt_tokens, ..Usage::default() })
}

/// The request for another model; every other byte stays. A body that cannot be read stays as it is.
#[must_use]
pub fn with_model(body: &Bytes, name: &str) -> Bytes {
    let mut splices = Splices::default();
    let known = Body::of(body).and_then(|body| body.model());
    let place = known.ok().filter(|(known, _)| known != name).and_then(|(_, raw)| place(body, raw.get()));
    if let Some(range) = place {
        splices.replace(range, quoted(name));
    }
    splices.apply(body)
}
