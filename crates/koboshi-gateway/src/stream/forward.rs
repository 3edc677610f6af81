//! Forwards frames by the phase: frames that must wait are buffered, the others are sent.
//!
//! A buffered frame is given to the writer when it is sent, not when it comes. The writer must not remember what the client has not seen: a
//! keep-alive frame would continue it, and so would the next answer if this one fails.

use std::ops::Range;

use bytes::Bytes;
use koboshi::fault::Fault;
use koboshi_wire::sse::Frame;
use koboshi_wire::step::Step;

use crate::http::memory::MemoryShare;
use crate::http::upstream::connection_fault::no_memory;
use crate::route::plan::Plan;
use crate::shared::state::SharedState;
use crate::stream::judge::{AttemptError, Judgement, too_long};
use crate::stream::machine::{IncomingAnswer, Stream};
use crate::stream::phase::FrameAction;
use crate::stream::writer::StreamWriter;

/// How much of an answer is buffered.
const MAX_BUFFERED: usize = 32 * 1024 * 1024;
/// The same before content. Responses repeat instructions and tools of their request there, twice, and those of an agent are long.
const MAX_BEFORE_CONTENT: usize = 8 * 1024 * 1024;
/// The overhead of a frame of ours with text.
const FRAME_BYTES: usize = 200;

/// A buffered frame.
#[derive(Debug)]
pub(crate) enum BufferedFrame {
    /// The original bytes, and their step: the writer needs it, and calls may have to be rewritten.
    Bytes(Bytes, Box<Step<'static>>),
    /// The step of a frame in another dialect.
    Translation(Box<Step<'static>>),
    /// Text that continues an earlier answer.
    Text(String),
}

impl BufferedFrame {
    /// The frame as the client gets it.
    pub(super) fn write(self, writer: &mut StreamWriter) -> Bytes {
        match self {
            Self::Bytes(raw, step) => writer.pass_on(raw, &step),
            Self::Translation(step) => writer.write(&step),
            Self::Text(text) => writer.text(&text),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Bytes(_, step) | Self::Translation(step) => step.text.as_deref().unwrap_or_default(),
            Self::Text(text) => text,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Bytes(raw, step) => raw.len() + step_size(step),
            Self::Translation(step) => step_size(step),
            Self::Text(text) => text.len() + FRAME_BYTES,
        }
    }
}

/// Buffered frames, in order.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(super) frames: Vec<BufferedFrame>,
    /// Their text.
    pub(super) text: String,
    bytes: usize,
    /// What many frames take of `serve.memory`.
    memory: Option<MemoryShare>,
}

impl Buffer {
    fn push(
        &mut self,
        frame: BufferedFrame,
        has_content: bool,
        state: &SharedState,
        plan: &Plan,
    ) -> Result<(), Box<Fault>> {
        self.bytes += frame.size();
        self.text.push_str(frame.text());
        let max = if has_content { MAX_BUFFERED } else { MAX_BEFORE_CONTENT };
        if self.bytes > max {
            return Err(too_long());
        }
        if !state.memory.fit_frames(&mut self.memory, self.bytes, state.memory_limit(plan)) {
            return Err(no_memory());
        }
        self.frames.push(frame);
        Ok(())
    }

    fn take(&mut self) -> Vec<BufferedFrame> {
        self.bytes = 0;
        std::mem::take(&mut self.frames)
    }
}

/// Frames to send next. Adjacent frames of one block that are sent unchanged are sent as one slice of it.
#[derive(Default)]
pub(crate) struct Outbox {
    frames: Vec<Bytes>,
    /// The current block.
    block: Bytes,
    /// The slice of it that follows `frames`.
    slice: Option<Range<usize>>,
}

impl Outbox {
    /// Begins a block: the next frames belong to it.
    pub(super) fn begin_block(&mut self, block: &Bytes) {
        self.close_slice();
        self.block = block.clone();
    }

    /// Adds a frame that the gateway has written.
    pub(super) fn push(&mut self, frame: Bytes) {
        if !frame.is_empty() {
            self.close_slice();
            self.frames.push(frame);
        }
    }

    /// Adds an unchanged frame.
    fn push_raw(&mut self, frame: &Frame) {
        match (frame.at(), &mut self.slice) {
            (Some(at), Some(slice)) if slice.end == at.start => slice.end = at.end,
            (Some(at), _) => {
                self.close_slice();
                self.slice = Some(at);
            }
            (None, _) => self.push(frame.raw().clone()),
        }
    }

    fn close_slice(&mut self) {
        if let Some(slice) = self.slice.take() {
            self.frames.push(self.block.slice(slice));
        }
    }
}

impl Stream<'_, '_> {
    /// Applies the phase's decision to a frame.
    pub(super) fn forward(
        &mut self,
        judgement: Judgement,
        frame: &Frame,
        data: &str,
        step: &Step<'_>,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<(), AttemptError> {
        let (phase, action) = std::mem::take(&mut self.phase).on_frame(judgement.event);
        self.phase = phase;
        let answer = &mut *incoming.answer;
        match action {
            FrameAction::Skip => return Ok(()),
            FrameAction::Buffer => {
                let frame = match judgement.continuation {
                    Some(text) => BufferedFrame::Text(text),
                    None if self.forwards_bytes => {
                        BufferedFrame::Bytes(self.raw(frame, data), Box::new(step.clone().into_owned()))
                    }
                    // Its calls are kept elsewhere, and their pieces are many.
                    None => BufferedFrame::Translation(Box::new(
                        Step { calls: Vec::new(), ..step.clone() }.into_owned(),
                    )),
                };
                return Ok(answer
                    .buffer
                    .push(frame, answer.has_content, &self.routed.core.state, self.routed.plan)?);
            }
            FrameAction::Commit => {
                self.commit(incoming.journey);
                self.release(answer.buffer.take());
            }
            FrameAction::Forward => {}
        }
        match judgement.continuation {
            Some(text) => self.send_text(&text),
            None => self.send_frame(frame, data, step),
        }
        Ok(())
    }

    /// Sends text that continues an earlier answer, in a frame of ours.
    fn send_text(&mut self, text: &str) {
        self.delivered.push(text);
        self.outbox.push(self.routed.writer.borrow_mut().text(text));
    }

    /// Sends a frame: unchanged, or in the client's dialect.
    fn send_frame(&mut self, frame: &Frame, data: &str, step: &Step<'_>) {
        self.delivered.push(step.text.as_deref().unwrap_or_default());
        let mut writer = self.routed.writer.borrow_mut();
        if !self.forwards_bytes {
            self.outbox.push(writer.write(step));
        } else if writer.writes_list() {
            let raw = Bytes::copy_from_slice(data.as_bytes());
            self.outbox.push(writer.pass_on(raw, step));
        } else {
            writer.passed(step);
            self.outbox.push_raw(frame);
        }
    }

    /// An unchanged frame; in a list only its data.
    fn raw(&self, frame: &Frame, data: &str) -> Bytes {
        if self.routed.writer.borrow_mut().writes_list() {
            Bytes::copy_from_slice(data.as_bytes())
        } else {
            frame.raw().clone()
        }
    }

    /// Sends buffered frames.
    pub(super) fn release(&mut self, frames: Vec<BufferedFrame>) {
        let mut writer = self.routed.writer.borrow_mut();
        for frame in frames {
            self.outbox.push(frame.write(&mut writer));
        }
    }

    /// Sends the outbox, at the pace of the client.
    pub(super) async fn flush(&mut self) {
        let Self { sender, outbox, keep_alive, .. } = self;
        for frame in outbox.frames.drain(..) {
            sender.send(frame).await;
            keep_alive.restart();
        }
        if let Some(slice) = outbox.slice.take() {
            sender.send(outbox.block.slice(slice)).await;
            keep_alive.restart();
        }
    }
}

/// The memory of a step, beside its frame.
fn step_size(step: &Step<'_>) -> usize {
    let own = [&step.id, &step.model, &step.text, &step.thought, &step.signature, &step.refused];
    let calls = step.calls.iter().flat_map(|call| [&call.id, &call.name, &call.arguments, &call.signature]);
    let texts = own.into_iter().chain(calls).flatten().map(|text| text.len());
    size_of::<Step<'_>>() + texts.sum::<usize>()
}
