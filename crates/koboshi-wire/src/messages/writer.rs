//! Our own frames and answers for a client of this dialect.
//!
//! A stream is one message: it begins once, its blocks are numbered and one is open at a time, and it ends with its stop reason and
//! `message_stop`, or with an error and nothing after it. The [`Writer`] keeps that order for both sources of frames, the upstream whose frames pass as they
//! are and Koboshi itself: the caller reports what passed. A clean end without either mark would be taken for success, so it is never left out.
//!
//! Everything is written by serde, so it is JSON whatever the texts hold, and each event is one `data:` line.

use bytes::Bytes;
use serde_json::Value;

use super::frames::{self, Block, Delta, End, Event, Message};
use super::{arguments, error, ids, output};
use crate::failure::Failure;
use crate::step::{Step, Usage};

pub use crate::writer::{Head, WholeCall};

/// Writes the frames of one stream.
///
/// ```
/// use koboshi_wire::messages::writer::{Head, Writer};
/// use koboshi_wire::step::Step;
///
/// let mut writer = Writer::new(Head { id: "msg_1".into(), model: "m".into(), ..Head::default() }, false);
/// let mut stream = writer.open(None).to_vec();
/// stream.extend(writer.write_step(&Step { text: Some("Hi".into()), ..Step::default() }));
/// stream.extend(writer.finish("stop", None));
/// assert!(String::from_utf8(stream)?.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    head: Head,
    forward_signatures: bool,
    state: State,
    open: Option<OpenBlock>,
    /// Number of the next block.
    next: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum State {
    Fresh,
    Begun,
    /// The stop reason has gone out.
    Ended,
    /// Nothing may follow.
    Over,
}

/// The block that is open.
#[derive(Debug, Clone, Copy)]
struct OpenBlock {
    index: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
    /// A thought that is signed, so that nothing can be added to it.
    Signed,
    /// A block that passed and that we cannot continue.
    Other,
}

impl Writer {
    /// A writer for one stream. Signatures are written only where the upstream is of this vendor.
    #[must_use]
    pub const fn new(head: Head, forward_signatures: bool) -> Self {
        Self { head, forward_signatures, state: State::Fresh, open: None, next: 0 }
    }

    /// Whether signatures go along from here on: another upstream may answer.
    pub const fn forward_signatures(&mut self, keep: bool) {
        self.forward_signatures = keep;
    }

    /// A frame of the upstream that says this went to the client as it was.
    pub fn passed(&mut self, step: &Step<'_>) {
        if self.state == State::Fresh && (step.choices > 0 || step.id.is_some() || step.has_content()) {
            self.state = State::Begun;
        }
        if let Some(block) = step.block {
            self.next = self.next.max(block.index.saturating_add(1));
            self.open = (!block.closes).then_some(OpenBlock { index: block.index, kind: Kind::Other });
        }
        if let Some(open) = &mut self.open {
            match () {
                () if !step.calls.is_empty() || step.hidden => open.kind = Kind::Other,
                () if step.signature.is_some() => open.kind = Kind::Signed,
                () if step.thought.is_some() => open.kind = Kind::Thought,
                () if step.text.is_some() => open.kind = Kind::Text,
                () => {}
            }
        }
        if !step.finish.is_empty() {
            self.state = State::Ended;
        }
        if step.done || step.error {
            self.state = State::Over;
        }
    }

    /// What stands before content, unless it is there already.
    pub fn open(&mut self, koboshi: Option<&Value>) -> Bytes {
        let mut stream = Vec::new();
        self.begin(&mut stream, koboshi);
        stream.into()
    }

    /// Text, thinking, signatures and refusals of a step, of whichever dialect. Never its calls, its end or its cost.
    pub fn write_step(&mut self, step: &Step<'_>) -> Bytes {
        let mut stream = Vec::new();
        // Pieces of one signature are joined, but not those of two thoughts.
        if step.block.is_some() && self.open.is_some_and(|open| open.kind == Kind::Signed) {
            self.close(&mut stream);
        }
        if let Some(thinking) = step.thought.as_deref() {
            self.delta(&mut stream, Kind::Thought, Delta::Thinking { thinking });
        }
        if let Some(signature) = step.signature.as_deref().filter(|_| self.forward_signatures) {
            if step.hidden {
                self.block(&mut stream, Block::RedactedThinking { data: signature });
                self.close(&mut stream);
            } else {
                self.delta(&mut stream, Kind::Thought, Delta::Signature { signature });
            }
        }
        for text in [&step.text, &step.refused].into_iter().flatten() {
            self.delta(&mut stream, Kind::Text, Delta::Text { text });
        }
        stream.into()
    }

    /// Whole tool calls.
    pub fn calls(&mut self, calls: &[WholeCall<'_>]) -> Bytes {
        let mut stream = Vec::new();
        for call in calls {
            let input = arguments::value("", false);
            self.block(&mut stream, Block::ToolUse { id: ids::fitted(call.id), name: call.name, input });
            let arguments = written(call);
            self.delta(&mut stream, Kind::Other, Delta::Input { partial_json: &arguments });
            self.close(&mut stream);
        }
        stream.into()
    }

    /// Closes what is open, says why it ended and what it cost, and ends the stream.
    pub fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        let mut stream = Vec::new();
        if self.state < State::Ended {
            self.close(&mut stream);
            self.begin(&mut stream, None);
            let delta = End { stop_reason: output::finish_word(reason), stop_sequence: () };
            let usage = super::output::UsageJson::of(usage.unwrap_or(&Usage::default()));
            frames::push(&mut stream, &Event::MessageDelta { delta, usage });
        }
        if self.state != State::Over {
            frames::push(&mut stream, &Event::MessageStop {});
        }
        self.state = State::Over;
        stream.into()
    }

    /// Ends the stream with an error. Nothing comes after it, no `message_stop` either.
    pub fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        if self.state == State::Over {
            return Bytes::new();
        }
        self.state = State::Over;
        let mut stream = b"event: error\ndata: ".to_vec();
        error::push(&mut stream, failure);
        stream.extend_from_slice(b"\n\n");
        stream.into()
    }

    /// Keeps a silent stream open. Clients pass over it wherever it stands, so nothing is opened for it.
    pub fn keep_alive(&mut self) -> Bytes {
        let mut stream = Vec::new();
        if self.state != State::Over {
            frames::push(&mut stream, &Event::Ping {});
        }
        stream.into()
    }

    fn begin(&mut self, stream: &mut Vec<u8>, koboshi: Option<&Value>) {
        if self.state == State::Fresh {
            // The sent tokens are not known yet; the end states them.
            let message = Message::of(&self.head.id, &self.head.model, &Usage::default(), koboshi);
            frames::push(stream, &Event::MessageStart { message });
            self.state = State::Begun;
        }
    }

    /// Opens a block, after closing what is open.
    fn block(&mut self, stream: &mut Vec<u8>, content_block: Block<'_>) {
        self.close(stream);
        if self.state > State::Begun {
            return;
        }
        self.begin(stream, None);
        let kind = match content_block {
            Block::Text { .. } => Kind::Text,
            Block::Thinking { .. } => Kind::Thought,
            Block::RedactedThinking { .. } | Block::ToolUse { .. } => Kind::Other,
        };
        frames::push(stream, &Event::ContentBlockStart { index: self.next, content_block });
        self.open = Some(OpenBlock { index: self.next, kind });
        self.next = self.next.saturating_add(1);
    }

    /// A piece of a block of this kind: of the one that is open, if it is such a one.
    fn delta(&mut self, stream: &mut Vec<u8>, kind: Kind, delta: Delta<'_>) {
        let signatures = matches!(delta, Delta::Signature { .. });
        if !self.open.is_some_and(|open| open.kind == kind || (signatures && open.kind == Kind::Signed)) {
            match kind {
                Kind::Text => self.block(stream, Block::Text { text: "" }),
                _ => self.block(stream, Block::Thinking { thinking: "", signature: "" }),
            }
        }
        let Some(open) = self.open.as_mut().filter(|_| self.state == State::Begun) else { return };
        if signatures {
            open.kind = Kind::Signed;
        }
        frames::push(stream, &Event::ContentBlockDelta { index: open.index, delta });
    }

    fn close(&mut self, stream: &mut Vec<u8>) {
        if let Some(open) = self.open.take().filter(|_| self.state == State::Begun) {
            frames::push(stream, &Event::ContentBlockStop { index: open.index });
        }
    }
}

/// The arguments of a call for a stream, where they need not be an object: what the model wrote, empty ones as an empty object.
fn written<'a>(call: &WholeCall<'a>) -> std::borrow::Cow<'a, str> {
    if call.free_text || call.arguments.trim_ascii().is_empty() {
        arguments::object(call.arguments, call.free_text)
    } else {
        call.arguments.into()
    }
}
