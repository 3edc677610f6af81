//! Judges a frame: what it adds to the answer, whether it ends or breaks it, and whether the client may see it now.

use koboshi::fault::{Fault, Kind};
use koboshi_wire::Dialect;
use koboshi_wire::any::Events;
use koboshi_wire::dialect::finish;
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use tokio::time::Instant;

use crate::attempt::journey::OpenAttempt;
use crate::attempt::not_an_answer;
use crate::http::upstream::connection_fault::cut;
use crate::stream::decode::{MAX_FRAME, malformed};
use crate::stream::firewall::{ToolCall, collect, is_broken_call};
use crate::stream::forward::Buffer;
use crate::stream::machine::{IncomingAnswer, Stream};
use crate::stream::phase::{FrameEvent, Phase};
use crate::stream::resume::Continuation;
use crate::stream::unary::filtered;

/// The state of an answer while it is received.
pub(crate) struct Answer {
    /// Cuts its blocks into frames.
    pub(super) framer: Framer,
    /// Reads its frames.
    pub(super) events: Events,
    /// What the client must not see yet.
    pub(super) buffer: Buffer,
    pub(super) calls: Vec<ToolCall>,
    /// Choices that have ended, and why.
    pub(super) finishes: Vec<(u32, String)>,
    pub(super) usage: Option<Usage>,
    /// A content filter ended it.
    pub(super) filtered: Option<Box<Fault>>,
    /// Choices that have begun, as bits.
    started_choices: u128,
    /// When it last progressed; keep-alive frames of the provider do not count.
    pub(super) last_progress: Instant,
    /// Whether it has progressed since then.
    pub(super) has_progressed: bool,
    /// The first block has come.
    pub(super) got_first_block: bool,
    pub(super) has_content: bool,
    /// The provider's own tools were at work: an answer even where no text follows, but nothing that the client must see at once.
    has_hosted: bool,
    /// It continued after its end, so only the end of its body is the end.
    pub(super) ends_with_body: bool,
    /// Its last end came alone, as a final one does: an end together with content may not be the last.
    ended_alone: bool,
    /// The terminal mark has come.
    pub(super) saw_end_mark: bool,
    /// Only the cost can follow, and the client does not wait for it.
    pub(super) usage_may_follow: bool,
}

/// Why an answer was not received to its end.
pub(crate) enum AttemptError {
    Fault(Box<Fault>),
    /// It is another answer than the one that the client has begun to read.
    Differs(Box<Fault>),
    /// The provider itself says that it cannot parse a call of the model.
    BrokenCall,
}

impl From<Box<Fault>> for AttemptError {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// What a frame contains for the client.
pub(crate) struct Judgement {
    pub(super) event: FrameEvent,
    /// While resuming: the text by which the frame continues what the client has.
    pub(super) continuation: Option<String>,
}

impl From<FrameEvent> for Judgement {
    fn from(event: FrameEvent) -> Self {
        Self { event, continuation: None }
    }
}

impl Stream<'_, '_> {
    /// Judges the step of a frame.
    pub(super) fn judge(
        &mut self,
        step: &Step<'_>,
        data: &str,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<Judgement, AttemptError> {
        if step.done && self.dialect.has_done_mark() {
            incoming.answer.saw_end_mark = true;
            return Ok(FrameEvent::Nothing.into());
        }
        self.check_error(step, data, incoming)?;
        incoming.answer.saw_end_mark = step.done && !self.dialect.repeats_finish();
        self.learn_names(step, incoming.open);
        self.record(step, incoming)?;
        if self.dialect.has_optional_usage() && step.usage.is_some() && step.choices == 0 {
            // The last frame contains only the usage; ours is sent instead, with the cost of all answers.
            self.routed.writer.borrow_mut().upstream_sends_usage();
            incoming.answer.saw_end_mark = incoming.answer.is_whole();
            return Ok(FrameEvent::Nothing.into());
        }
        self.check_finish(step, data, incoming)?;
        let must_wait = self.must_wait(step, incoming.answer);
        let event = if must_wait { FrameEvent::Wait } else { FrameEvent::Content };
        match &mut self.phase {
            Phase::Resuming(resume) => {
                let continued = resume.continued(&self.delivered.text, step);
                let continuation = match continued {
                    Continuation::Text(text) => Some(text).filter(|text| !text.is_empty()),
                    // An empty answer is no other answer, but none.
                    Continuation::Differs if !incoming.answer.has_content => {
                        return Err(not_an_answer().into());
                    }
                    Continuation::Differs => {
                        return Err(AttemptError::Differs(cut("the second answer is not the first one")));
                    }
                };
                let event = if continuation.is_some() { event } else { FrameEvent::Nothing };
                Ok(Judgement { event, continuation })
            }
            _ if must_wait && !self.forwards_bytes && !says_something(step) => Ok(FrameEvent::Nothing.into()),
            _ => Ok(event.into()),
        }
    }

    /// Whether the frame states an error, or that the answer ended with one.
    fn check_error(
        &self,
        step: &Step<'_>,
        data: &str,
        incoming: &IncomingAnswer<'_, '_>,
    ) -> Result<(), AttemptError> {
        let IncomingAnswer { open, journey, answer } = incoming;
        if step.error {
            return Err(journey.classify(&open.head, 200, data, false).unwrap_or_else(malformed).into());
        }
        if let Some((_, reason)) = step.finish.iter().find(|(_, reason)| finish::is_error(reason)) {
            let text = format!("{}{}", self.delivered.text, answer.buffer.text);
            return Err(journey.ended_for_error(&open.head, &text, reason).into());
        }
        Ok(())
    }

    /// Takes the id and the model of the answer, for the frames that the gateway writes.
    fn learn_names(&mut self, step: &Step<'_>, open: &OpenAttempt) {
        let mut writer = self.routed.writer.borrow_mut();
        // An id of another vendor means nothing to the client.
        if self.forwards_bytes
            && writer.names.id.is_empty()
            && let Some(id) = step.id.as_deref()
        {
            id.clone_into(&mut writer.names.id);
        }
        match step.model.as_deref() {
            Some(model) if model != writer.names.model => model.clone_into(&mut writer.names.model),
            None if writer.names.model.is_empty() => writer.names.model = open.target.model.to_string(),
            _ => {}
        }
    }

    /// Adds a step to the answer.
    fn record(&mut self, step: &Step<'_>, incoming: &mut IncomingAnswer<'_, '_>) -> Result<(), AttemptError> {
        let IncomingAnswer { open, answer, .. } = incoming;
        if step.has_content() {
            if !answer.has_content {
                answer.has_content = true;
                open.observe_first_content(&self.routed.core.state);
            }
            let calls = step.calls.iter().filter_map(|piece| piece.arguments.as_deref());
            open.attempt_guard
                .count_text(step.text.as_deref().map_or(0, str::len) + calls.map(str::len).sum::<usize>());
        }
        if let Some(usage) = step.usage {
            // Some dialects state it with every frame, or at the beginning.
            let is_final = !step.finish.is_empty() || answer.is_whole();
            open.attempt_guard.set_usage(usage, is_final);
            answer.usage = Some(usage);
        }
        answer.has_hosted |= step.hosted;
        answer.has_progressed |= step.has_content() || !step.finish.is_empty();
        self.delivered.beyond_text |= step.refusal || step.audio || step.other_text;
        for piece in &step.calls {
            collect(&mut answer.calls, piece, self.routed.plan.config.args.max_bytes).ok_or_else(too_long)?;
        }
        answer.started_choices |= step.speaking;
        if !step.finish.is_empty() {
            answer.ended_alone = !step.has_content();
        }
        for (choice, reason) in &step.finish {
            answer.end_choice(*choice, reason, self.dialect);
        }
        Ok(())
    }

    /// Whether a content filter ended the answer, or a call that the provider could not parse.
    fn check_finish(
        &self,
        step: &Step<'_>,
        data: &str,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<(), AttemptError> {
        let IncomingAnswer { open, journey, answer } = incoming;
        if step.finish.iter().any(|(_, reason)| reason == finish::CONTENT_FILTER) {
            let fault = journey.classify(&open.head, 200, data, false).unwrap_or_else(filtered);
            // The client gets it as a finish reason. A call that the filter cut must not be sent, and another target may be asked where the
            // policy allows it.
            if self.phase.is_held() && (!answer.calls.is_empty() || journey.goes_around_filters()) {
                return Err(fault.into());
            }
            answer.filtered = Some(fault);
        }
        if step.finish.iter().any(|(_, reason)| is_broken_call(reason)) {
            return Err(AttemptError::BrokenCall);
        }
        Ok(())
    }

    /// Whether a frame must wait: before any content, in an answer with tool calls, where the whole answer is needed first, and where
    /// the client's dialect cannot express anything of it that could commit the stream.
    fn must_wait(&self, step: &Step<'_>, answer: &Answer) -> bool {
        let is_invisible = || !self.forwards_bytes && self.phase.is_held() && !is_visible_everywhere(step);
        !answer.calls.is_empty() || !self.forwards_at_once() || !answer.has_content || is_invisible()
    }
}

/// Whether clients of every dialect see something of this step.
fn is_visible_everywhere(step: &Step<'_>) -> bool {
    step.text.is_some() || step.thought.is_some() || step.refused.is_some()
}

/// Whether a step, without its calls, contains something that another dialect can express.
fn says_something(step: &Step<'_>) -> bool {
    is_visible_everywhere(step) || step.signature.is_some() || step.block.is_some() || step.item.is_some()
}

impl Answer {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            framer: Framer::new(MAX_FRAME),
            events: Events::of(dialect),
            buffer: Buffer::default(),
            calls: Vec::new(),
            finishes: Vec::new(),
            usage: None,
            filtered: None,
            started_choices: 0,
            last_progress: Instant::now(),
            has_progressed: false,
            got_first_block: false,
            has_content: false,
            has_hosted: false,
            ends_with_body: false,
            ended_alone: false,
            saw_end_mark: false,
            usage_may_follow: false,
        }
    }

    /// Records that a choice has ended.
    fn end_choice(&mut self, choice: u32, reason: &str, dialect: Dialect) {
        let known = self.finishes.iter_mut().find(|(other, _)| *other == choice);
        match known.filter(|_| dialect.repeats_finish()) {
            Some((_, known)) => {
                self.ends_with_body = true;
                reason.clone_into(known);
            }
            None => self.finishes.push((choice, reason.to_owned())),
        }
    }

    /// Whether every choice that began has ended.
    pub(super) fn is_whole(&self) -> bool {
        !self.finishes.is_empty() && self.started_choices & !self.ended_choices() == 0
    }

    fn ended_choices(&self) -> u128 {
        self.finishes.iter().fold(0, |bits, (choice, _)| bits | bit(*choice))
    }

    /// Whether this many choices have ended, and only the cost can follow. Another call may follow a call, whatever the end said,
    /// and a choice that has not begun may still begin.
    pub(super) fn has_all_choices(&self, choices: u32) -> bool {
        let ended = self.ended_choices().count_ones();
        self.has_content && self.ended_alone && self.calls.is_empty() && self.is_whole() && ended >= choices
    }

    /// Checks an answer that has ended: whether it is complete and contains something. One that continues another may be empty.
    pub(super) fn check(&self, phase: &Phase) -> Result<(), AttemptError> {
        if !self.is_whole() {
            return Err(cut("the stream ended before the answer was whole").into());
        }
        let says_nothing = !self.has_content && !self.has_hosted;
        if says_nothing && !phase.is_resuming() && !self.may_be_empty() {
            return Err(not_an_answer().into());
        }
        Ok(())
    }

    /// An answer that its limit ended before any content is what the client asked for, and one that a filter ended says so.
    fn may_be_empty(&self) -> bool {
        let says_why = |reason: &str| matches!(reason, finish::LENGTH | finish::CONTENT_FILTER);
        self.finishes.iter().all(|(_, reason)| says_why(reason))
    }
}

/// The fault of an answer that is longer than the gateway buffers.
pub(super) fn too_long() -> Box<Fault> {
    Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long"))
}

fn bit(choice: u32) -> u128 {
    1_u128.checked_shl(choice).unwrap_or(1 << 127)
}
