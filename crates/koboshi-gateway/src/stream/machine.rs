//! One stream from the first attempt to the last frame: makes attempts until the client has a whole answer, or an error.

use std::sync::Arc;

use koboshi::fault::{Fault, Kind};
use koboshi::remedy::Remedy;
use koboshi_config::gateway::Commit;
use koboshi_wire::Dialect;
use koboshi_wire::any::AttemptMode;
use koboshi_wire::sse::Frame;
use koboshi_wire::step::Usage;
use serde_json::{Value, json};

use crate::attempt::journey::{Journey, JourneyEnd, OpenAttempt};
use crate::http::response_future::ResponseSender;
use crate::http::upstream::mark::SIMULATED;
use crate::reply::stream_head;
use crate::route::target::Target;
use crate::shared::attempt_guard::WithdrawReason;
use crate::shared::notice::Notice;
use crate::stream::firewall::{CallsError, broken_call, end_uncorrectable};
use crate::stream::forbidden::mode_after;
use crate::stream::forward::Outbox;
use crate::stream::judge::{Answer, AttemptError, too_long};
use crate::stream::keep_alive::KeepAliveTimer;
use crate::stream::phase::{AttemptFailure, DeliveredContent, FailureAction, Phase, RewindAction};
use crate::stream::resume::{Resume, ResumeFrom};
use crate::stream::routed_request::RoutedRequest;
use crate::stream::writer::separate_error;

/// One stream to a client.
pub(crate) struct Stream<'s, 'r> {
    pub(super) routed: &'s RoutedRequest<'r>,
    pub(super) sender: &'s ResponseSender,
    pub(super) keep_alive: KeepAliveTimer<'s>,
    pub(super) phase: Phase,
    pub(super) delivered: DeliveredContent,
    /// Frames to send next.
    pub(super) outbox: Outbox,
    /// The dialect of the target that answers.
    pub(super) dialect: Dialect,
    /// Its frames are sent unchanged.
    pub(super) forwards_bytes: bool,
    pub(super) cost: TotalCost,
    /// What the first frame states about the whole answer.
    pub(super) annotation: Option<Value>,
    /// The answer was only text, to its own end.
    pub(super) is_plain_text: bool,
    /// Why the last attempt broke.
    broken: Option<Kind>,
}

/// The cost of all answers of a stream together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TotalCost {
    sum: Usage,
    /// Whether an answer has stated its cost.
    is_stated: bool,
}

impl TotalCost {
    /// Adds the cost of an answer, and what it stated of it.
    pub(super) fn add(&mut self, cost: Usage, stated: Option<Usage>) {
        self.sum = self.sum.plus(cost);
        self.is_stated |= stated.is_some();
    }

    /// The sum, if any answer stated its cost.
    pub(super) fn known(&self) -> Option<Usage> {
        self.is_stated.then_some(self.sum)
    }
}

/// The end of a stream whose content the client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With a whole answer.
    Whole,
    /// With an error.
    Broken,
}

/// One attempt while its answer is received.
pub(crate) struct IncomingAnswer<'i, 'j> {
    pub(super) open: &'i mut OpenAttempt,
    pub(super) journey: &'i Journey<'j>,
    pub(super) answer: &'i mut Answer,
}

/// Why an attempt yielded no whole answer.
enum Failure {
    /// It failed with this; another attempt may be made.
    Attempt(Box<Fault>),
    /// No more attempts.
    Request(JourneyEnd),
    /// It is another answer than the one that the client has begun to read. No more attempts.
    Differs(JourneyEnd),
}

impl<'s, 'r> Stream<'s, 'r> {
    pub(crate) fn new(routed: &'s RoutedRequest<'r>, sender: &'s ResponseSender) -> Self {
        let serve = &routed.plan.config.serve;
        Self {
            routed,
            sender,
            keep_alive: KeepAliveTimer::new(sender, serve.first_byte_hold, serve.keep_alive_every),
            phase: Phase::default(),
            delivered: DeliveredContent::default(),
            outbox: Outbox::default(),
            dialect: routed.request.dialect(),
            forwards_bytes: true,
            cost: TotalCost::default(),
            annotation: None,
            is_plain_text: false,
            broken: None,
        }
    }

    /// Adds an annotation about the whole answer to the first frame.
    pub(crate) fn annotated(mut self, annotation: Value) -> Self {
        self.annotation = Some(annotation);
        self.routed.writer.borrow_mut().write_all_frames();
        self
    }

    /// The text of the answer, if it was only text and all of it is known.
    pub(crate) fn plain_text(&self) -> Option<&str> {
        (self.is_plain_text && !self.delivered.is_partial).then_some(self.delivered.text.as_str())
    }

    /// Makes attempts until the client has a whole answer. Returns an error only while the client has seen no content; after that the error is
    /// sent in the stream.
    pub(crate) async fn serve(&mut self, journey: &mut Journey<'_>) -> Result<Outcome, JourneyEnd> {
        loop {
            let Err(failure) = self.attempt(journey).await else { return Ok(Outcome::Whole) };
            let can_retry = matches!(failure, Failure::Attempt(_));
            let can_resume = self.delivered.can_resume() || self.routed.context.can_rewind();
            let failed = AttemptFailure { can_retry, can_resume };
            let (phase, action) = std::mem::take(&mut self.phase).on_failure(failed);
            self.phase = phase;
            let (ended, recovery) = match failure {
                Failure::Attempt(fault) if action == FailureAction::Retry => {
                    self.broken = Some(fault.kind);
                    if self.routed.context.notices.is_some() {
                        // Notices keep their place among the pieces.
                        self.sender.drained().await;
                    }
                    continue;
                }
                Failure::Attempt(fault) => (journey.give_up(fault), "error"),
                Failure::Request(ended) => (ended, "error"),
                Failure::Differs(ended) => (ended, "differs"),
            };
            if action != FailureAction::ErrorFrame {
                return Err(ended);
            }
            self.send_error(&ended, recovery).await;
            return Ok(Outcome::Broken);
        }
    }

    /// One attempt: a target begins to answer, its frames are received, the whole answer is finished.
    async fn attempt(&mut self, journey: &mut Journey<'_>) -> Result<(), Failure> {
        let mut open = self.open(journey).await.map_err(Failure::Request)?;
        if self.must_rewind(&open.target) {
            self.rewind();
        }
        self.begin(&open);
        match self.receive(&mut open, journey).await {
            Ok(answer) => match Box::pin(self.finish(journey, open, answer)).await {
                Ok(()) => Ok(()),
                Err(error) => Err(self.calls_failed(error)),
            },
            Err(AttemptError::BrokenCall) => Err(self.calls_failed(end_uncorrectable(journey, open))),
            Err(AttemptError::Differs(fault)) if self.routed.context.can_rewind() => {
                journey.withdraw(open, WithdrawReason::Differs, None);
                self.delivered.beyond_text = true;
                Err(Failure::Attempt(fault))
            }
            Err(AttemptError::Differs(fault)) => {
                let place = open.place;
                journey.withdraw(open, WithdrawReason::Differs, None);
                Err(Failure::Differs(journey.give_up_after_other_answer(fault, place)))
            }
            Err(AttemptError::Fault(fault)) => Err(self.failed(journey, open, fault)),
        }
    }

    /// Whether the client must begin the answer again: it can, and this target cannot continue what the client has.
    fn must_rewind(&self, target: &Target) -> bool {
        let continues =
            self.delivered.refused_at.is_some() || self.delivered.can_resume() && target.prefills();
        self.routed.context.can_rewind() && !continues
    }

    /// The client begins the answer again: it has nothing now.
    fn rewind(&mut self) {
        let (phase, action) = std::mem::take(&mut self.phase).on_rewind();
        self.phase = phase;
        if action == RewindAction::Nothing {
            return;
        }
        let kind = self.broken.unwrap_or(Kind::ConnectionClosed);
        self.routed.context.notify(|| Notice::Rewind { kind });
        self.routed.core.state.meters.recovery("rewound");
        self.delivered = DeliveredContent::default();
    }

    /// Asks targets until one begins to answer. A target that supports it gets the text that the client has.
    async fn open(&mut self, journey: &mut Journey<'_>) -> Result<Box<OpenAttempt>, JourneyEnd> {
        let routed = self.routed;
        let text = &self.delivered.text;
        let refused = routed.progress.guard_refused.take();
        let calls = refused.corrected();
        let resuming = self.phase.is_resuming() && calls.is_empty() && self.delivered.can_resume();
        let mut make = |target: &Target| {
            if resuming && target.prefills() {
                routed.write(target, &AttemptMode::Prefill(text))
            } else {
                routed.write(target, &mode_after(&calls, text))
            }
        };
        let opened = {
            let mut opening = Box::pin(journey.begin_answer(&routed.shape, &mut make, resuming));
            self.keep_alive.during(routed, opening.as_mut()).await
        };
        drop(calls);
        routed.progress.guard_refused.replace(refused);
        if let Ok(open) = &opened {
            routed.served_by(open);
            routed.disclose(|facts| facts.note_last_fault(journey));
            self.annotate_simulated(&open.target);
        }
        opened
    }

    /// Marks the frames that the gateway writes as made up; frames that are sent unchanged are marked already.
    fn annotate_simulated(&mut self, target: &Target) {
        if !self.phase.is_held() || (self.annotation.is_none() && !target.is_simulated()) {
            return;
        }
        let is_written = self.annotation.is_some() || !self.routed.is_native(target);
        let mut annotation = self.annotation.take().unwrap_or_else(|| json!({}));
        if let Some(fields) = annotation.as_object_mut() {
            fields.remove(SIMULATED);
            if target.is_simulated() && is_written {
                fields.insert(SIMULATED.to_owned(), true.into());
                self.routed.writer.borrow_mut().write_all_frames();
            }
        }
        self.annotation = Some(annotation).filter(|all| all.as_object().is_some_and(|all| !all.is_empty()));
    }

    /// Begins an answer. Nothing of an attempt that the client has not seen counts for it.
    fn begin(&mut self, open: &OpenAttempt) {
        self.dialect = self.routed.target_dialect(&open.target);
        let mut writer = self.routed.writer.borrow_mut();
        let is_native = self.dialect == writer.dialect();
        match &mut self.phase {
            Phase::Held => {
                writer.begin();
                self.delivered.beyond_text = false;
            }
            Phase::Resuming(resume) => {
                *resume = match self.delivered.refused_at {
                    Some(_) => Resume::following(),
                    None if open.target.prefills() => Resume::new(ResumeFrom::Prefill),
                    None => Resume::new(ResumeFrom::Start),
                };
            }
            Phase::Committed | Phase::Ended => {}
        }
        writer.forward_signatures(is_native);
        self.forwards_bytes = is_native && writer.lets_bytes_pass();
    }

    /// Receives an answer to its end, and sends what the client may see.
    async fn receive(
        &mut self,
        open: &mut OpenAttempt,
        journey: &Journey<'_>,
    ) -> Result<Answer, AttemptError> {
        let mut answer = Answer::new(self.dialect);
        let mut incoming = IncomingAnswer { open, journey, answer: &mut answer };
        let received = self.receive_frames(&mut incoming).await;
        // What was forwarded before a failure counts as delivered, so it must be sent.
        self.flush().await;
        received.map(|()| answer)
    }

    async fn receive_frames(&mut self, incoming: &mut IncomingAnswer<'_, '_>) -> Result<(), AttemptError> {
        while let Some(block) = self.next_block(incoming).await? {
            self.outbox.begin_block(&block);
            incoming.answer.framer.push(block);
            while let Some(frame) = incoming.answer.framer.next_frame() {
                self.take_frame(&frame.map_err(|_| too_long())?, incoming)?;
                if incoming.answer.saw_end_mark {
                    return incoming.answer.check(&self.phase);
                }
            }
            self.flush().await;
        }
        if !incoming.answer.usage_may_follow
            && let Some(frame) = incoming.answer.framer.finish().map(Frame::closed)
        {
            self.take_frame(&frame, incoming)?;
        }
        incoming.answer.check(&self.phase)
    }

    /// The three steps of every frame.
    fn take_frame(
        &mut self,
        frame: &Frame,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<(), AttemptError> {
        let Some(data) = incoming.answer.data(frame)? else { return Ok(()) };
        let step = self.decode(frame, &data, incoming)?;
        let judgement = self.judge(&step, &data, incoming)?;
        self.forward(judgement, frame, &data, &step, incoming)
    }

    /// Handles a failed attempt: whether another may be made.
    fn failed(&mut self, journey: &mut Journey<'_>, open: Box<OpenAttempt>, fault: Box<Fault>) -> Failure {
        let target = Arc::clone(&open.target);
        let remedy = journey.after(open, fault.clone());
        let can_retry = self.phase.is_held() && journey.trim(&target, remedy)
            || matches!(remedy, Remedy::Again { .. } | Remedy::Wait { .. } | Remedy::Elsewhere);
        if can_retry { Failure::Attempt(fault) } else { Failure::Request(journey.give_up(fault)) }
    }

    /// Handles tool calls that cannot be sent: whether another attempt may be made.
    fn calls_failed(&mut self, error: CallsError) -> Failure {
        match error {
            CallsError::Ended(ended) => Failure::Request(ended),
            CallsError::Elsewhere => Failure::Attempt(broken_call()),
            CallsError::Refused => {
                self.delivered.refused_at = Some(self.delivered.text.len());
                Failure::Attempt(broken_call())
            }
        }
    }

    /// Ends the stream with an error, in the client's dialect. `recovery` is its name in the metrics.
    async fn send_error(&mut self, ended: &JourneyEnd, recovery: &'static str) {
        let routed = self.routed;
        let meters = &routed.core.state.meters;
        meters.recovery(recovery);
        let error_reply = crate::reply::failure_reply(
            &routed.core.state,
            routed.plan,
            routed.context,
            routed.targets,
            ended,
            &routed.facts(),
        );
        meters.answer("broken");
        let frame = routed.writer.borrow_mut().error(&error_reply.failure());
        separate_error(routed.context).await;
        self.sender.send(frame).await;
    }

    /// Commits the stream: sends the head, then the annotation. From here on the client sees content.
    pub(super) fn commit(&mut self, journey: &Journey<'_>) {
        let routed = self.routed;
        routed.disclose(|facts| facts.note_last_fault(journey));
        self.sender.head(stream_head(routed.context, &routed.facts.borrow()));
        if let Some(annotation) = self.annotation.take() {
            self.outbox.push(routed.writer.borrow_mut().open(&annotation));
        }
    }

    /// Whether content is sent as it comes.
    pub(super) fn forwards_at_once(&self) -> bool {
        self.routed.commit == Commit::First
    }
}
