//! Our own frames for a client of the chat dialect, from the steps of an upstream of any dialect.
//!
//! Frames of the upstream that pass as they are and frames of ours make one stream, so the writer must also note what has passed: calls continue in
//! their numbers, and nothing is opened or ended twice. Thinking is written as `reasoning_content`, the name that most compatible
//! servers and clients have for it; the dialect has no place for signatures.
//!
//! *Not here*: choices beyond the first. Only an upstream of the same dialect has them, and then frames pass.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::error;
use super::frames::{
    COMMENT, DONE, calls_chunk_from, content_chunk, empty_chunk, finish_chunk, finish_word, function_chunk,
    role_chunk, usage_chunk,
};
use crate::failure::Failure;
use crate::step::{Step, Usage};
use crate::writer::{Head, WholeCall};

/// Writes the frames of one stream.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    head: Head,
    /// The client wants the cost at the end.
    include_usage: bool,
    /// The client offered `functions`: a call goes out in the old form.
    legacy: bool,
    /// The client cannot read comments.
    frames_only: bool,
    is_open: bool,
    has_ended: bool,
    has_usage: bool,
    is_done: bool,
    /// Number of the next call.
    next_call: u32,
    called_in_old_form: bool,
}

impl Writer {
    /// A stream with these names. The dialect has no signatures to keep.
    #[must_use]
    pub fn new(head: Head, _forward_signatures: bool) -> Self {
        Self { head, ..Self::default() }
    }

    /// Sends the usage at the end, as the client asked.
    #[must_use]
    pub fn include_usage(mut self, wanted: bool) -> Self {
        self.include_usage = wanted;
        self
    }

    /// Writes calls in the old form, as the client offered tools.
    #[must_use]
    pub fn legacy(mut self, legacy: bool) -> Self {
        self.legacy = legacy;
        self
    }

    /// Keeps a silent stream open with empty chunks instead of comments.
    #[must_use]
    pub fn frames_only(mut self, frames_only: bool) -> Self {
        self.frames_only = frames_only;
        self
    }

    /// A frame of the upstream with this step went to the client as it was.
    pub fn passed(&mut self, step: &Step<'_>) {
        self.is_open |= step.choices > 0;
        self.has_ended |= step.finish.iter().any(|(choice, _)| *choice == 0);
        self.has_usage |= step.usage.is_some();
        self.is_done |= step.done;
        for call in step.calls.iter().filter(|call| call.choice == 0) {
            self.next_call = self.next_call.max(call.index.saturating_add(1));
            self.called_in_old_form = self.legacy;
        }
    }

    /// What stands before content, with Koboshi's own object where there is one. Nothing if the answer is open.
    pub fn open(&mut self, koboshi: Option<&Value>) -> Bytes {
        if std::mem::replace(&mut self.is_open, true) {
            Bytes::new()
        } else {
            role_chunk(&self.head, koboshi)
        }
    }

    /// Text, thinking and refusal of a step of any dialect; never its calls, its end or its cost.
    pub fn write_step(&mut self, step: &Step<'_>) -> Bytes {
        let (text, thought) = (step.text.as_deref(), step.thought.as_deref());
        let refused = step.refused.as_deref();
        if text.is_none() && thought.is_none() && refused.is_none() {
            return Bytes::new();
        }
        let chunk = content_chunk(&self.head, text, thought, refused);
        self.after_opening(&chunk)
    }

    /// Whole tool calls. The old form has room for one; several go out in the new form.
    pub fn calls(&mut self, calls: &[WholeCall<'_>]) -> Bytes {
        let frame = match calls {
            [] => return Bytes::new(),
            [only] if self.legacy && !only.free_text && self.next_call == 0 => {
                self.called_in_old_form = true;
                function_chunk(&self.head, 0, only)
            }
            _ => calls_chunk_from(&self.head, 0, self.next_call, calls),
        };
        let count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.next_call = self.next_call.saturating_add(count);
        self.after_opening(&frame)
    }

    /// The end of the answer, its cost where it is wanted, and the terminal mark.
    pub fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        let mut frames = BytesMut::from(&self.open(None)[..]);
        if !std::mem::replace(&mut self.has_ended, true) {
            let word = finish_word(reason, self.called_in_old_form);
            frames.extend_from_slice(&finish_chunk(&self.head, word));
        }
        if let Some(usage) = usage.filter(|_| self.include_usage && !self.has_usage) {
            self.has_usage = true;
            frames.extend_from_slice(&usage_chunk(&self.head, usage));
        }
        if !std::mem::replace(&mut self.is_done, true) {
            frames.extend_from_slice(DONE);
        }
        frames.freeze()
    }

    /// The error that ends a stream. Nothing comes after it: a terminal mark would make a whole answer of it.
    pub fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        (self.is_open, self.has_ended, self.has_usage, self.is_done) = (true, true, true, true);
        error::frame(failure)
    }

    /// A keep-alive: keeps a silent stream open.
    pub fn keep_alive(&mut self) -> Bytes {
        if self.frames_only { empty_chunk(&self.head) } else { Bytes::from_static(COMMENT) }
    }

    fn after_opening(&mut self, frame: &[u8]) -> Bytes {
        let mut frames = BytesMut::from(&self.open(None)[..]);
        frames.extend_from_slice(frame);
        frames.freeze()
    }
}
