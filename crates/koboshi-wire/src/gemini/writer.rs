//! Our own chunks and answers for a client that speaks Gemini.
//!
//! A stream goes out in one of two forms: as events (`alt=sse`), or as one JSON list. There is nothing to open and nothing to close but the list,
//! so a chunk can be written between those of an upstream at any place.
//!
//! Three findings from real clients. An error inside a stream of events is bare JSON in a write of its own: as an event it is taken for an answer
//! without a finish reason, and asked for again. A comment kills the parser of Google's JavaScript library, so a keep-alive is an empty line, or
//! for older libraries an empty chunk. And a chunk without a part makes loops over `chunk.text` print `None`, so that the last one has an empty text.

use bytes::Bytes;
use serde_json::Value;

use super::frames::{Answer, Candidate, finish_word};
use super::write_parts::{self, Part};
use crate::failure::Failure;
use crate::json;
use crate::step::{Step, Usage};
use crate::writer::{Head, WholeCall};

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
/// use koboshi_wire::gemini::writer::Writer;
/// use koboshi_wire::writer::Head;
///
/// let head = Head { id: "r1".into(), model: "gemini-2.5-pro".into(), ..Head::default() };
/// let mut writer = Writer::new(head, false);
/// let last = writer.finish("length", None);
/// assert!(last.starts_with(b"data: {\"candidates\":[{") && last.ends_with(b"}\n\n"));
/// ```
#[derive(Debug)]
pub struct Writer {
    head: Head,
    forward_signatures: bool,
    shape: Shape,
    alive: Alive,
    is_open: bool,
    /// Koboshi's own object, for the next chunk.
    note: Option<Value>,
    /// The list has an element.
    begun: bool,
    /// The last chunk that passed says that it is the end. Some models say it in every chunk, so more may follow.
    ended: bool,
    /// Our own end was written.
    over: bool,
}

impl Writer {
    /// A writer of events. With `forward_signatures` the upstream is Gemini too, and its signatures go along.
    #[must_use]
    pub fn new(head: Head, forward_signatures: bool) -> Self {
        Self {
            head,
            forward_signatures,
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

    /// The same with this keep-alive.
    #[must_use]
    pub fn alive(self, alive: Alive) -> Self {
        Self { alive, ..self }
    }

    /// Whether signatures go along from here on: another upstream may answer.
    pub const fn forward_signatures(&mut self, keep: bool) {
        self.forward_signatures = keep;
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

    /// This dialect has no opening frame; Koboshi's own object goes with the first chunk that we write.
    pub fn open(&mut self, koboshi: Option<&Value>) -> Bytes {
        if !self.is_open {
            self.is_open = true;
            self.note = koboshi.cloned();
        }
        Bytes::new()
    }

    /// Text, thinking, refusal and signature of a step; nothing if it has none. Words of a refusal are text here.
    pub fn write_step(&mut self, step: &Step<'_>) -> Bytes {
        let mut parts = Vec::new();
        if let Some(thought) = step.thought.as_deref() {
            parts.push(Part { thought: true, ..Part::text(thought) });
        }
        for text in [step.text.as_deref(), step.refused.as_deref()].into_iter().flatten() {
            parts.push(Part::text(text));
        }
        if let Some(signature) = step.signature.as_deref().filter(|_| self.forward_signatures) {
            if parts.is_empty() {
                parts.push(Part::text(""));
            }
            if let Some(last) = parts.last_mut() {
                last.thought_signature = Some(signature);
            }
        }
        if parts.is_empty() { Bytes::new() } else { self.chunk(&parts, None, None) }
    }

    /// Whole tool calls.
    pub fn calls(&mut self, calls: &[WholeCall<'_>]) -> Bytes {
        if calls.is_empty() {
            return Bytes::new();
        }
        let forward_signatures = self.forward_signatures;
        let parts = calls.iter().map(|call| Part {
            thought_signature: call.signature.filter(|_| forward_signatures),
            function_call: Some(write_parts::Call {
                id: Some(call.id).filter(|id| !id.is_empty()),
                name: call.name.into(),
                args: write_parts::object(call.arguments, call.free_text),
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
            false => self.chunk(&[Part::text("")], Some(finish_word(reason)), usage),
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

    /// A keep-alive.
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
