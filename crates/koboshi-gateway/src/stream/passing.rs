//! Frames on their way to the client: what was held before the commit, and runs of frames that go on as one piece.
//!
//! What is held is told to the voice when it goes out, not when it comes. What nobody has seen must not be in the voice's memory: a keep-alive
//! would go on with it, and so would the next answer if this one falls.

use std::ops::Range;

use bytes::Bytes;
use koboshi_wire::sse::Frame;
use koboshi_wire::step::Step;

use crate::stream::answer::{Followed, Pass};
use crate::stream::relay::Stream;

/// The block that is being read, and the frames of it that go on as they are, as one piece.
#[derive(Default)]
pub(crate) struct Passing {
    pub(crate) block: Bytes,
    run: Option<Range<usize>>,
}

impl Stream<'_, '_> {
    /// Passes a frame on; raw ones that stand side by side go out together.
    pub(crate) async fn pass_frame(&mut self, pass: Pass, at: Option<Range<usize>>, passing: &mut Passing) {
        match (pass, at, &mut passing.run) {
            (Pass::Raw(_), Some(at), Some(run)) if run.end == at.start => run.end = at.end,
            (Pass::Raw(_), Some(at), _) => {
                self.flush(passing).await;
                passing.run = Some(at);
            }
            (pass, ..) => {
                self.flush(passing).await;
                self.pass(pass).await;
            }
        }
    }

    /// A frame that goes out as it came; in a list only its data does.
    pub(crate) fn raw(&self, frame: &Frame, data: &str) -> Bytes {
        if self.run.voice.borrow_mut().lists() {
            Bytes::copy_from_slice(data.as_bytes())
        } else {
            frame.raw().clone()
        }
    }

    /// The same, now.
    pub(crate) fn at_once(&self, frame: &Frame, data: &str, step: &Step<'_>) -> Pass {
        let raw = self.raw(frame, data);
        let mut voice = self.run.voice.borrow_mut();
        if voice.lists() {
            return Pass::Own(voice.pass_on(raw, step));
        }
        voice.passed(step);
        Pass::Raw(raw)
    }

    /// What a frame of another dialect says, in frames of ours.
    pub(crate) fn translated(&self, step: &Step<'_>) -> Option<Pass> {
        let said = self.run.voice.borrow_mut().say(step);
        (!said.is_empty()).then_some(Pass::Own(said))
    }

    /// The voice hears of what was held before the frame that commits, in its order.
    pub(crate) fn tell_held(&mut self, answer: &mut Followed) {
        let opening = self.opening();
        let held = answer.take_held();
        let mut voice = self.run.voice.borrow_mut();
        answer.held.extend(opening.map(Pass::Own));
        answer.held.extend(held.into_iter().map(|held| match held {
            Pass::Frame(raw, step) => Pass::Own(voice.pass_on(raw, &step)),
            Pass::Said(step) => Pass::Own(voice.say(&step)),
            held => held,
        }));
    }

    /// What was held before the commit goes out.
    pub(crate) async fn release(&mut self, answer: &mut Followed) {
        self.mark().await;
        for pass in answer.take_held() {
            self.pass(pass).await;
        }
    }

    pub(crate) async fn flush(&mut self, passing: &mut Passing) {
        if let Some(range) = passing.run.take() {
            self.pass(Pass::Raw(passing.block.slice(range))).await;
        }
    }
}

/// Whether clients of every dialect hear something of this step.
pub(crate) fn is_heard(step: &Step<'_>) -> bool {
    step.text.is_some() || step.thought.is_some() || step.refused.is_some()
}

/// What is needed to say a step later; none if there is nothing to say. Its calls are kept elsewhere, and their pieces are many.
pub(crate) fn for_later(step: &Step<'_>) -> Option<Pass> {
    let says = is_heard(step) || step.signature.is_some() || step.block.is_some() || step.item.is_some();
    says.then(|| Pass::Said(Box::new(Step { calls: Vec::new(), ..step.clone() }.into_owned())))
}
