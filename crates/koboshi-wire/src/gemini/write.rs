//! Our own chunks and answers for a client that speaks Gemini.
//!
//! A stream goes out in one of two forms: as events (`alt=sse`), or as one JSON list. There is nothing to open and nothing to close but the list,
//! so a chunk can be written between those of an upstream at any place.
//!
//! Three things real clients taught. An error inside a stream of events is bare JSON in a write of its own: as an event it is taken for an answer
//! without a finish reason, and asked for again. A comment kills the parser of Google's JavaScript library, so a sign of life is an empty line, or
//! for older libraries an empty chunk. And a chunk without a part makes loops over `chunk.text` print `None`, so that the last one has an empty text.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::out::{self, Part, Spent};
use crate::dialect::{Dialect, finish};
use crate::failure::Failure;
use crate::json;
use crate::step::{Step, Usage};
use crate::voice::{Head, WholeCall};
use crate::whole::{Choice, Whole};

/// How a stream goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Events: `alt=sse`.
    #[default]
    Events,
    /// One JSON list.
    List,
}

/// What keeps a silent stream of events open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alive {
    /// An empty line. Google's libraries of today pass over it, and no chunk reaches the program.
    #[default]
    Line,
    /// A chunk without candidates. For libraries that know nothing but `data: ` at the beginning of what they read; the program sees it.
    Chunk,
}

/// Writes the chunks of one answer.
///
/// ```
/// use koboshi_wire::gemini::write::Writer;
/// use koboshi_wire::voice::Head;
///
/// let head = Head { id: "r1".into(), model: "gemini-2.5-pro".into(), ..Head::default() };
/// let mut writer = Writer::new(head, false);
/// let last = writer.finish("length", None);
/// assert!(last.starts_with(b"data: {\"candidates\":[{") && last.ends_with(b"}\n\n"));
/// ```
#[derive(Debug)]
pub struct Writer {
    head: Head,
    keep_seals: bool,
    shape: Shape,
    alive: Alive,
    is_open: bool,
    /// To be said with the next chunk.
    note: Option<Value>,
    /// The list has an element.
    begun: bool,
    /// The last chunk that passed says that it is the end. Some models say it in every chunk, so more may follow.
    ended: bool,
    /// Our own end was written.
    over: bool,
}

impl Writer {
    /// A writer of events. With `keep_seals` the upstream is Gemini too, and its seals go along.
    #[must_use]
    pub fn new(head: Head, keep_seals: bool) -> Self {
        Self {
            head,
            keep_seals,
            shape: Shape::Events,
            alive: Alive::Line,
            is_open: false,
            note: None,
            begun: false,
            ended: false,
            over: false,
        }
    }

    /// The same in this form.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// The same with this sign of life.
    #[must_use]
    pub fn alive(self, alive: Alive) -> Self {
        Self { alive, ..self }
    }

    /// Whether seals go along from here on: another upstream may answer.
    pub const fn keep_seals(&mut self, keep: bool) {
        self.keep_seals = keep;
    }

    /// A chunk of the upstream with this step went to the client as it was.
    pub fn passed(&mut self, step: &Step<'_>) {
        self.is_open = true;
        self.begun = true;
        self.ended = step.done || (self.ended && !step.has_content());
    }

    /// A chunk of the upstream in the form of this client, its JSON as it was: for upstreams that stream in the other form. It counts as passed.
    pub fn pass(&mut self, step: &Step<'_>, data: &str) -> Bytes {
        let text = data.trim_ascii();
        // JSON has line ends between its values only; an event has none.
        let framed = if text.contains(['\n', '\r']) {
            self.framed(text.replace(['\n', '\r'], " ").as_bytes())
        } else {
            self.framed(text.as_bytes())
        };
        self.passed(step);
        framed
    }

    /// Nothing stands before content in this dialect; what Koboshi has to say goes with the first chunk of our own.
    pub fn open(&mut self, koboshi: Option<&Value>) -> Bytes {
        if !self.is_open {
            self.is_open = true;
            self.note = koboshi.cloned();
        }
        Bytes::new()
    }

    /// Text, thinking, refusal and seal of a step; nothing if it has none. Words of a refusal are text here.
    pub fn say(&mut self, step: &Step<'_>) -> Bytes {
        let mut parts = Vec::new();
        if let Some(thought) = step.thought.as_deref() {
            parts.push(Part { thought: true, ..Part::text(thought) });
        }
        for text in [step.text.as_deref(), step.refused.as_deref()].into_iter().flatten() {
            parts.push(Part::text(text));
        }
        if let Some(seal) = step.seal.as_deref().filter(|_| self.keep_seals) {
            if parts.is_empty() {
                parts.push(Part::text(""));
            }
            if let Some(last) = parts.last_mut() {
                last.thought_signature = Some(seal);
            }
        }
        if parts.is_empty() { Bytes::new() } else { self.chunk(&parts, None, None) }
    }

    /// Whole tool calls.
    pub fn calls(&mut self, calls: &[WholeCall<'_>]) -> Bytes {
        if calls.is_empty() {
            return Bytes::new();
        }
        let keep_seals = self.keep_seals;
        let parts = calls.iter().map(|call| Part {
            thought_signature: call.seal.filter(|_| keep_seals),
            function_call: Some(out::Call {
                id: Some(call.id).filter(|id| !id.is_empty()),
                name: call.name.into(),
                args: out::object(call.arguments, call.free_text),
            }),
            ..Part::default()
        });
        let parts: Vec<Part<'_>> = parts.collect();
        self.chunk(&parts, None, None)
    }

    /// The chunk that says why it ended, and closes the list.
    pub fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        if self.over {
            return Bytes::new();
        }
        let last = match self.ended {
            true => Bytes::new(),
            false => self.chunk(&[Part::text("")], Some(word_of(reason)), usage),
        };
        self.closed(&last)
    }

    /// The end of a stream for an error; nothing comes after it. Write it by itself: libraries find it only so.
    pub fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        if self.over {
            return Bytes::new();
        }
        let body = super::error::body(failure);
        if self.shape == Shape::Events {
            self.over = true;
            return body;
        }
        let element = self.framed(&body);
        self.closed(&element)
    }

    fn closed(&mut self, last: &Bytes) -> Bytes {
        self.over = true;
        match self.shape {
            Shape::Events => last.clone(),
            Shape::List => [&last[..], b"]"].concat().into(),
        }
    }

    /// A sign of life.
    pub fn keep_alive(&mut self) -> Bytes {
        Bytes::from_static(match (self.shape, self.alive) {
            (Shape::List, _) | (Shape::Events, Alive::Line) => b"\r\n",
            (Shape::Events, Alive::Chunk) => b"data: {\"candidates\":[]}\n\n",
        })
    }

    fn chunk(&mut self, parts: &[Part<'_>], reason: Option<&str>, usage: Option<&Usage>) -> Bytes {
        self.ended = false;
        let note = self.note.take();
        let candidate = Candidate::of(0, parts, reason);
        let json = json::bytes(&Answer::of(&self.head, &[candidate], usage, note.as_ref()));
        self.framed(&json)
    }

    /// One line of JSON in the form of the stream.
    fn framed(&mut self, json: &[u8]) -> Bytes {
        let (before, after): (&[u8], &[u8]) = match (self.shape, self.begun) {
            (Shape::Events, _) => (b"data: ", b"\n\n"),
            (Shape::List, false) => (b"[", b""),
            (Shape::List, true) => (b",\r\n", b""),
        };
        self.begun = true;
        [before, json, after].concat().into()
    }
}

/// An answer that is no stream.
#[must_use]
pub fn whole(head: &Head, whole: &Whole<'_>, koboshi: Option<&Value>) -> Bytes {
    let parts: Vec<Vec<Part<'_>>> = whole.choices.iter().map(parts_of).collect();
    let candidates = whole
        .choices
        .iter()
        .zip(&parts)
        .map(|(choice, parts)| Candidate::of(choice.index, parts, choice.finish.as_deref().map(word_of)));
    let candidates: Vec<Candidate<'_>> = candidates.collect();
    json::bytes(&Answer::of(head, &candidates, whole.usage.as_ref(), koboshi))
}

fn parts_of<'a>(choice: &'a Choice<'_>) -> Vec<Part<'a>> {
    let own = |seal: &'a crate::form::Seal<'_>| (seal.of == Dialect::Gemini).then_some(&*seal.data);
    let mut parts = Vec::new();
    // A seal without words belongs to the text, which comes after all thoughts.
    let mut of_text = None;
    for thought in &choice.thoughts {
        let seal = thought.seal.as_ref().and_then(own);
        if thought.text.is_empty() {
            of_text = seal.or(of_text);
        } else {
            parts.push(Part { thought: true, thought_signature: seal, ..Part::text(&*thought.text) });
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
        thought_signature: call.seal.as_ref().and_then(own),
        function_call: Some(out::Call {
            id: call.id.as_deref(),
            name: call.name.as_deref().unwrap_or_default().into(),
            args: out::object(&call.arguments, call.free_text),
        }),
        ..Part::default()
    }));
    parts
}

/// A finish in the words of this dialect. What none of them fits is `OTHER`, never `STOP`.
fn word_of(reason: &str) -> &str {
    match reason {
        finish::STOP | finish::TOOL_CALLS => "STOP",
        finish::LENGTH | "model_context_window_exceeded" => "MAX_TOKENS",
        finish::CONTENT_FILTER | "refusal" => "SAFETY",
        "MAX_TOKENS"
        | "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "CONTINUATION"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => reason,
        _ => "OTHER",
    }
}

/// A cost as it stands in an answer.
pub(super) fn usage_json(usage: &Usage) -> Bytes {
    json::bytes(&Spent::of(usage))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    candidates: &'a [Candidate<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<Spent>,
    model_version: &'a str,
    response_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

impl<'a> Answer<'a> {
    fn of(
        head: &'a Head,
        candidates: &'a [Candidate<'a>],
        usage: Option<&Usage>,
        koboshi: Option<&'a Value>,
    ) -> Self {
        Self {
            candidates,
            usage_metadata: usage.map(Spent::of),
            model_version: &head.model,
            response_id: &head.id,
            koboshi,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    index: u32,
}

impl<'a> Candidate<'a> {
    fn of(index: u32, parts: &'a [Part<'a>], finish_reason: Option<&'a str>) -> Self {
        Self { content: Content { parts, role: "model" }, finish_reason, index }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    parts: &'a [Part<'a>],
    role: &'static str,
}
