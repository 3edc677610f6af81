//! Forwarding: what the phase says is done with a frame; frames that must wait are buffered, the others go out.
//!
//! What is buffered is given to the writer when it goes out, not when it comes. What the client has not seen must not be in the writer's memory: a
//! keep-alive would go on with it, and so would the next answer if this one fails.

use std::ops::Range;

use bytes::Bytes;
use koboshi::fault::Fault;
use koboshi_wire::sse::Frame;
use koboshi_wire::step::Step;

use crate::stream::judge::{AttemptError, Judgement, too_long};
use crate::stream::machine::{IncomingAnswer, Stream};
use crate::stream::phase::FrameAction;
use crate::stream::writer::StreamWriter;

/// How much of an answer is buffered.
const MAX_BUFFERED: usize = 32 * 1024 * 1024;
/// The same before content. Responses repeat instructions and tools of their request there, twice, and those of an agent are long.
const MAX_BEFORE_CONTENT: usize = 8 * 1024 * 1024;
/// What text in a frame of ours takes beside itself.
const FRAME_BYTES: usize = 200;

/// A frame that waits.
#[derive(Debug)]
pub(crate) enum BufferedFrame {
    /// The bytes as they came, and what they say: the writer must know it, and calls may have to be written in other words.
    Bytes(Bytes, Box<Step<'static>>),
    /// What a frame of another dialect says.
    Translation(Box<Step<'static>>),
    /// Text that continues an earlier answer.
    Text(String),
}

impl BufferedFrame {
    /// The frame as the client gets it, now that it goes out.
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

/// Frames that wait, in order.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pub(super) frames: Vec<BufferedFrame>,
    /// Their text.
    pub(super) text: String,
    bytes: usize,
}

impl Buffer {
    fn push(&mut self, frame: BufferedFrame, has_content: bool) -> Result<(), Box<Fault>> {
        self.bytes += frame.size();
        self.text.push_str(frame.text());
        let max = if has_content { MAX_BUFFERED } else { MAX_BEFORE_CONTENT };
        if self.bytes > max {
            return Err(too_long());
        }
        self.frames.push(frame);
        Ok(())
    }

    fn take(&mut self) -> Vec<BufferedFrame> {
        self.bytes = 0;
        std::mem::take(&mut self.frames)
    }
}

/// Frames that go out next. Those of one block that go out as they are, side by side, go out as one slice of it.
#[derive(Default)]
pub(crate) struct Outbox {
    frames: Vec<Bytes>,
    /// The block that is being read.
    block: Bytes,
    /// The slice of it that comes after `frames`.
    slice: Option<Range<usize>>,
}

impl Outbox {
    /// The frames that follow are of this block.
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

    /// Adds a frame as it came.
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
    /// Does with a frame what the phase says.
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
                return Ok(answer.buffer.push(frame, answer.has_content)?);
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

    /// Text that continues an earlier answer goes out in a frame of ours.
    fn send_text(&mut self, text: &str) {
        self.delivered.push(text);
        self.outbox.push(self.run.writer.borrow_mut().text(text));
    }

    /// A frame goes out: as it came, or as the client's dialect says it.
    fn send_frame(&mut self, frame: &Frame, data: &str, step: &Step<'_>) {
        self.delivered.push(step.text.as_deref().unwrap_or_default());
        let mut writer = self.run.writer.borrow_mut();
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

    /// A frame as it came; in a list only its data.
    fn raw(&self, frame: &Frame, data: &str) -> Bytes {
        if self.run.writer.borrow_mut().writes_list() {
            Bytes::copy_from_slice(data.as_bytes())
        } else {
            frame.raw().clone()
        }
    }

    /// Buffered frames go out.
    pub(super) fn release(&mut self, frames: Vec<BufferedFrame>) {
        let mut writer = self.run.writer.borrow_mut();
        for frame in frames {
            self.outbox.push(frame.write(&mut writer));
        }
    }

    /// Sends what goes out next, at the pace of the client.
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

/// What it takes to keep what a frame says, beside the frame.
fn step_size(step: &Step<'_>) -> usize {
    let own = [&step.id, &step.model, &step.text, &step.thought, &step.signature, &step.refused];
    let calls = step.calls.iter().flat_map(|call| [&call.id, &call.name, &call.arguments, &call.signature]);
    let texts = own.into_iter().chain(calls).flatten().map(|text| text.len());
    size_of::<Step<'_>>() + texts.sum::<usize>()
}
