//! Reads the chunks of a Gemini stream.
//!
//! Each chunk is a whole answer object that holds what is new, with the usage up to then. There is no end mark: the chunk with the finish reason is
//! the last. Calls come whole, but a chunk does not say how many came before, nor that an answer waits for them, so [`Events`] counts.
//!
//! An error can come in the middle of an SSE stream as bare JSON, without `data:` before it and perhaps in a list of one; [`data`] finds it, and
//! [`Events::read`] reads it.
//!
//! *Not here*: arguments that come in pieces (`partialArgs`). Only a client of Vertex that asks for them gets them; see
//! [`Rewrite::whole_calls`](super::Rewrite::whole_calls).

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::output::{Candidate, Feedback, UsageFields, finish_of};
use crate::Malformed;
use crate::dialect::finish;
use crate::lenient::{Fields, Fill, List, Object, Text, Truthiness, filled, otherwise, skip, without_halves};
use crate::sse::Frame;
use crate::step::{CallPiece, Step, join};

/// Reads the chunks of one stream.
///
/// ```
/// let mut events = koboshi_wire::gemini::event::Events::default();
/// let step = events.read(None, r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"}}]}"#)?;
/// assert_eq!(step.text.as_deref(), Some("Hi"));
/// let last = events.read(None, r#"{"candidates":[{"finishReason":"STOP"}]}"#)?;
/// assert!(last.done && last.finish[0].1 == "stop");
/// # Ok::<(), koboshi_wire::Malformed>(())
/// ```
#[derive(Debug, Default)]
pub struct Events {
    /// Candidates that have called, and how often.
    calls: Vec<(u32, u32)>,
    /// Candidates that were there, as bits; those from 127 on share the last.
    seen: u128,
    /// Those of them that have ended.
    ended: u128,
}

impl Events {
    /// What this chunk says. The name of the event says nothing in this dialect.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn read<'a>(&mut self, _event: Option<&str>, data: &'a str) -> Result<Step<'a>, Malformed> {
        let text = only(data.trim_ascii());
        // An empty event is a keep-alive, and servers that copy the dialect send a mark which it does not have.
        if text.is_empty() || text == "[DONE]" {
            return Ok(Step::default());
        }
        let chunk = match filled::<Chunk<'_>>(text) {
            Ok(chunk) => chunk,
            Err(error) => match without_halves(text) {
                Some(whole) => filled::<Chunk<'_>>(&whole)
                    .map(|Chunk { step, blocked }| Chunk { step: step.into_owned(), blocked })?,
                None => return Err(error),
            },
        };
        Ok(self.settled(chunk))
    }

    /// Adds what only the earlier chunks show.
    fn settled<'a>(&mut self, chunk: Chunk<'a>) -> Step<'a> {
        let Chunk { mut step, blocked } = chunk;
        for piece in &mut step.calls {
            piece.index = self.next(piece.choice);
        }
        if blocked && step.choices == 0 {
            step.finish.push((0, Cow::Borrowed(finish::CONTENT_FILTER)));
        }
        for (choice, reason) in &mut step.finish {
            let has_calls = self.calls.iter().any(|(caller, _)| caller == choice);
            let given = std::mem::take(reason);
            *reason = finish_of(given, has_calls);
            self.ended |= bit(*choice);
        }
        self.seen |= self.ended | step.speaking;
        step.done = !step.finish.is_empty() && self.ended == self.seen;
        step
    }

    /// The number of the next call of a candidate.
    fn next(&mut self, choice: u32) -> u32 {
        if let Some((_, count)) = self.calls.iter_mut().find(|(caller, _)| *caller == choice) {
            let number = *count;
            *count = number.saturating_add(1);
            return number;
        }
        self.calls.push((choice, 1));
        0
    }
}

fn bit(choice: u32) -> u128 {
    1_u128.checked_shl(choice).unwrap_or(1 << 127)
}

/// The data of a frame, or the bare JSON that stands where an event should: an error in the middle of a stream.
///
/// # Errors
/// It is not UTF-8.
pub fn data(frame: &Frame) -> Result<Option<Cow<'_, str>>, Malformed> {
    if let Some(data) = frame.data()? {
        return Ok(Some(data));
    }
    let bare = frame.raw().trim_ascii();
    if matches!(bare.first(), Some(b'{' | b'[')) {
        return Ok(Some(Cow::Borrowed(std::str::from_utf8(bare)?)));
    }
    Ok(None)
}

/// The only element of a list of one: errors come so. Anything else is as it was.
pub(super) fn only(text: &str) -> &str {
    if !text.starts_with('[') {
        return text;
    }
    match serde_json::from_str::<List<&RawValue>>(text) {
        Ok(List(all)) => match all.as_slice() {
            [one] => one.get(),
            _ => text,
        },
        Err(_) => text,
    }
}

#[derive(Default)]
struct Chunk<'a> {
    step: Step<'a>,
    blocked: bool,
}

impl<'a> Fields<'a> for Chunk<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let step = &mut self.step;
        match name {
            "responseId" | "response_id" => step.id = map.next_value::<Text<'a>>()?.full(),
            "modelVersion" | "model_version" => step.model = map.next_value::<Text<'a>>()?.full(),
            "candidates" => map.next_value_seed(Candidates(step))?,
            "usageMetadata" | "usage_metadata" => {
                step.usage = map.next_value::<Object<UsageFields>>()?.0.usage();
            }
            "promptFeedback" | "prompt_feedback" => {
                self.blocked = map.next_value::<Object<Feedback>>()?.0.blocked;
            }
            "error" => step.error |= map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Reads the candidates into a step, one after the other, without a list of them.
struct Candidates<'s, 'a>(&'s mut Step<'a>);

impl<'a> DeserializeSeed<'a> for Candidates<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Candidates<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of candidates")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let mut place = 0;
        loop {
            let mut candidate = Candidate::default();
            if list.next_element_seed(Fill(&mut candidate))?.is_none() {
                break;
            }
            take(self.0, candidate, place);
            place += 1;
        }
        self.0.choices = place;
        Ok(())
    }

    otherwise!(texts, numbers, flags, null, objects);
}

/// Adds what a candidate says to its step.
fn take<'a>(step: &mut Step<'a>, candidate: Candidate<'a>, place: u32) {
    let index = candidate.index.unwrap_or(place);
    let content = candidate.content;
    let has_thought = content.has_thought();
    if content.text.is_some() || has_thought || content.other || !content.calls.is_empty() {
        step.speaking |= bit(index);
    }
    match (content.text, index) {
        (None, _) => {}
        (Some(text), 0) => join(&mut step.text, text, ""),
        (Some(_), _) => step.other_text = true,
    }
    step.reasoning |= has_thought;
    // What is neither text nor call counts as audio: content that only this dialect carries.
    step.audio |= content.other;
    for thought in content.thoughts.into_iter().filter(|_| index == 0) {
        if !thought.text.is_empty() {
            join(&mut step.thought, thought.text, "");
        }
        // Signatures are whole, so that of two the later one stands: it closes the thinking.
        step.signature = thought.signature.map(|signature| signature.data).or(step.signature.take());
    }
    for (place, call) in (0..).zip(content.calls) {
        step.calls.push(CallPiece {
            choice: index,
            index: place,
            arguments: call.arguments(),
            name: call.name,
            id: call.id,
            signature: call.signature.map(|signature| signature.data),
            ..CallPiece::default()
        });
    }
    if let Some(reason) = candidate.finish {
        step.finish.push((index, reason));
    }
}
