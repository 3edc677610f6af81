//! Ends a whole answer: its tool calls pass the firewall, the buffer is sent, then the end, with the cost of all attempts.

use std::sync::Arc;

use koboshi::args::Finish;
use koboshi_wire::dialect::finish;
use koboshi_wire::step::Usage;

use crate::attempt::journey::{Journey, OpenAttempt};
use crate::stream::firewall::{CallsError, ToolCall, is_made_whole};
use crate::stream::forward::BufferedFrame;
use crate::stream::judge::Answer;
use crate::stream::machine::Stream;
use crate::stream::phase::WholeAction;
use crate::stream::trailing::{TrailingUsage, drain};

impl Stream<'_, '_> {
    /// Sends what is left of a whole answer.
    pub(super) async fn finish(
        &mut self,
        journey: &mut Journey<'_>,
        open: Box<OpenAttempt>,
        mut answer: Answer,
    ) -> Result<(), CallsError> {
        if let Some(fault) = &answer.filtered {
            journey.note_filtered(&open.target, fault);
        }
        // The target that wrote the answer; another one may have to correct a call.
        let author = Arc::clone(&open.target);
        let reason = answer.how_it_ended();
        let mut cost = answer.usage.unwrap_or_default();
        let mut open = if answer.calls.is_empty() {
            open
        } else {
            let checked = self.check_calls(journey, open, &mut answer, reason, &mut cost).await;
            if matches!(checked, Err(CallsError::Refused)) {
                self.cost.add(cost, answer.usage);
            }
            checked?
        };
        self.cost.add(cost, answer.usage);
        let is_resumed = self.phase.is_resuming();
        let is_rewritten = is_resumed || !self.forwards_bytes || answer.calls.iter().any(|call| call.changed);
        let (phase, action) = std::mem::take(&mut self.phase).on_whole();
        self.phase = phase;
        match action {
            WholeAction::CommitAndFinish => self.commit(journey),
            WholeAction::Finish => {}
            WholeAction::Nothing => return Ok(()),
        }
        let frames = std::mem::take(&mut answer.buffer.frames);
        if is_rewritten && !answer.calls.is_empty() {
            let calls = self.routed.for_client(&author, answer.calls.clone());
            self.release_with_calls(frames, &calls, is_made_whole(&calls, reason));
        } else {
            self.release(frames);
        }
        self.delivered.push(&answer.buffer.text);
        self.is_plain_text = !self.delivered.beyond_text && answer.is_plain_text();
        let total = self.cost.known();
        let end = self.routed.writer.borrow_mut().finish(answer.end_reason(reason), total.as_ref());
        self.outbox.push(end);
        self.flush().await;
        if is_resumed {
            self.routed.core.state.meters.recovery("resumed");
        }
        if answer.usage_may_follow {
            Box::pin(TrailingUsage::new(answer.framer, journey.whole(open)).receive()).await;
        } else {
            drain(&mut open.body).await;
            journey.succeeded(open, total.map(|_| cost));
        }
        Ok(())
    }

    /// Checks the tool calls of the answer; the attempt may be replaced by the one that corrected a call.
    async fn check_calls(
        &mut self,
        journey: &mut Journey<'_>,
        open: Box<OpenAttempt>,
        answer: &mut Answer,
        reason: Finish,
        cost: &mut Usage,
    ) -> Result<Box<OpenAttempt>, CallsError> {
        let may_refuse = self.phase.is_held() || self.delivered.can_resume();
        let checking = self.routed.settle_calls(journey, open, &mut answer.calls, reason, cost, may_refuse);
        self.keep_alive.during(self.routed, Box::pin(checking).as_mut()).await
    }

    /// Sends buffered frames, but the calls in them whole and rewritten, and the end where it has changed.
    fn release_with_calls(&mut self, frames: Vec<BufferedFrame>, calls: &[ToolCall], changes_end: bool) {
        let has_calls =
            |frame: &BufferedFrame| matches!(frame, BufferedFrame::Bytes(_, step) if !step.calls.is_empty());
        let (first, last) = (frames.iter().position(has_calls), frames.iter().rposition(has_calls));
        // In other dialects a call is spread over several frames, and the end counts the blocks.
        let keeps_others = self.dialect.has_standalone_frames();
        for (at, frame) in frames.into_iter().enumerate() {
            let is_written = match &frame {
                BufferedFrame::Bytes(_, step) => {
                    !step.calls.is_empty()
                        || !keeps_others && first.is_some_and(|first| at > first)
                        || changes_end && matches!(step.finish.as_slice(), [(0, _)])
                }
                _ => false,
            };
            let mut writer = self.routed.writer.borrow_mut();
            self.outbox.push(match frame {
                BufferedFrame::Bytes(_, step) if is_written => writer.write(&step),
                frame => frame.write(&mut writer),
            });
            drop(writer);
            if Some(at) == last {
                self.write_calls(calls);
            }
        }
        // After a change of target no frame is buffered unchanged.
        if last.is_none() {
            self.write_calls(calls);
        }
    }

    fn write_calls(&mut self, mut calls: &[ToolCall]) {
        while let Some(first) = calls.first() {
            let same = calls.iter().take_while(|call| call.choice == first.choice).count();
            let (these, others) = calls.split_at(same);
            let wholes: Vec<_> = these.iter().map(ToolCall::whole).collect();
            self.outbox.push(self.routed.writer.borrow_mut().calls(first.choice, &wholes));
            calls = others;
        }
    }
}

impl Answer {
    /// Why the answer ended: cut, if any of its choices was.
    fn how_it_ended(&self) -> Finish {
        let reasons = self.finishes.iter().map(|(_, reason)| Finish::of(reason));
        reasons.fold(Finish::Unknown, |known, next| if known == Finish::Cut { known } else { next })
    }

    /// The reason in the end that the gateway writes.
    fn end_reason(&self, reason: Finish) -> &str {
        match self.finishes.first() {
            _ if is_made_whole(&self.calls, reason) => finish::TOOL_CALLS,
            Some((_, reason)) => finish::fitting(reason, !self.calls.is_empty()),
            None => finish::STOP,
        }
    }

    /// Whether it was one choice of text that ended by itself.
    fn is_plain_text(&self) -> bool {
        self.calls.is_empty() && matches!(self.finishes.as_slice(), [(0, reason)] if reason == finish::STOP)
    }
}
