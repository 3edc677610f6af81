//! Reads an answer that is no stream.
//!
//! A response has one answer, so it is one choice: its messages are the text, its reasoning items the thoughts. Mended arguments are put where
//! they stand by [`with_arguments`], and the rest of the answer stays the bytes it was.

use bytes::Bytes;

use super::frames::usage_json;
use super::output::{Output, Response, add};
use crate::Malformed;
use crate::amend;
use crate::lenient::{List, Object, filled};
use crate::splice::place;
use crate::step::{ItemKind, Usage};

pub use crate::amend::with_note;
pub use crate::chat::answer::with_arguments;
pub use crate::whole::{Call, Choice, Whole};

/// Reads an answer.
///
/// # Errors
/// It is not a JSON object.
pub fn read(body: &[u8]) -> Result<Whole<'_>, Malformed> {
    crate::whole::read(body, whole)
}

fn whole(text: &str) -> Result<Whole<'_>, Malformed> {
    let mut response = filled::<Response<'_, Items<'_>>>(text)?;
    let choice = response.output.take().map(|List(items)| choice(items, &response, text.as_bytes()));
    Ok(Whole {
        error: response.is_failed(),
        usage: response.spent.usage(),
        id: response.id,
        model: response.model,
        created: response.created,
        choices: choice.into_iter().collect(),
    })
}

type Items<'a> = List<Object<Output<'a>>>;

fn choice<'a>(items: Vec<Object<Output<'a>>>, response: &Response<'a, Items<'a>>, body: &[u8]) -> Choice<'a> {
    let mut choice = Choice::default();
    for Object(mut item) in items {
        match item.kind() {
            ItemKind::Message => {
                add(&mut choice.text, item.text());
                add(&mut choice.refused, item.refusal());
            }
            ItemKind::Thought => choice.thoughts.extend(item.whole_thought()),
            ItemKind::Call => choice.calls.push(Call {
                arguments: item.arguments_text().unwrap_or_default(),
                span: item.arguments.and_then(|raw| place(body, raw.get())),
                free_text: item.is_free_text(),
                id: item.call_id.or(item.id),
                name: item.name,
                namespace: item.namespace,
                signature: None,
            }),
            ItemKind::Other => choice.audio |= item.is_own(),
        }
    }
    choice.reasoning = choice.thoughts.iter().any(|thought| !thought.text.is_empty());
    choice.refusal = choice.refused.is_some();
    choice.finish = response.finish(!choice.calls.is_empty());
    choice
}

/// The answer with another cost: what all attempts together cost.
#[must_use]
pub fn with_usage(body: &Bytes, usage: &Usage) -> Bytes {
    amend::with_cost(body, "usage", &[], usage_json(usage))
}
