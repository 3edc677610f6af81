//! Reads an answer: the next block within its timeout, and the step that each frame contains.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_wire::chat::unstreamed;
use koboshi_wire::sse::Frame;
use koboshi_wire::step::Step;
use tokio::time::{Instant, timeout_at};

use crate::attempt::Limits;
use crate::attempt::not_an_answer;
use crate::http::upstream::connection_fault::timed_out;
use crate::stream::blocks::Blocks;
use crate::stream::judge::{Answer, AttemptError, too_long};
use crate::stream::machine::{IncomingAnswer, Stream};

/// Longer frames are refused.
pub(super) const MAX_FRAME: usize = 16 * 1024 * 1024;
/// How long usage and the terminal mark may take after the last choice has ended.
pub(super) const TRAILING_TIMEOUT: Duration = Duration::from_secs(1);

impl Stream<'_, '_> {
    /// The next block of the answer. None where it has ended, or the client has everything that it asked for.
    pub(super) async fn next_block(
        &mut self,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<Option<Bytes>, AttemptError> {
        if self.needs_no_more(incoming.answer) {
            let block = incoming.open.body.next_if_ready().await.flatten().and_then(Result::ok);
            incoming.answer.usage_may_follow = block.is_none();
            return Ok(block);
        }
        let Some(block) = self.read_block(incoming).await? else { return Ok(None) };
        if incoming.answer.got_first_block {
            return Ok(Some(block));
        }
        incoming.answer.got_first_block = true;
        match block.trim_ascii_start().first() {
            Some(b'{') => Box::pin(self.read_unstreamed(incoming, block)).await.map(Some),
            // Events begin with the name of a field or a colon; this is a page or a list, whatever its head says.
            Some(b'[' | b'<') => {
                Err(AttemptError::Fault(incoming.journey.no_stream(incoming.open, block).await))
            }
            _ => Ok(Some(block)),
        }
    }

    /// Whether the client has everything that it asked for. Only the cost may follow then, which the client did not ask for, so it does not wait
    /// for that: [`trailing`](crate::stream::trailing) does.
    fn needs_no_more(&self, answer: &Answer) -> bool {
        let request = self.routed.request;
        // Only in such dialects the cost follows the end in a frame of its own.
        self.dialect.has_optional_usage()
            && answer.has_all_choices(request.n().max(1))
            && (!request.include_usage() || answer.usage.is_some())
    }

    /// The next block within its timeout. None when the answer has ended, or is whole and stays silent.
    async fn read_block(
        &mut self,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<Option<Bytes>, AttemptError> {
        let IncomingAnswer { open, answer, .. } = incoming;
        let is_whole = answer.is_whole();
        // While data is always available, no timer is ever polled.
        if !is_whole && Instant::now() >= open.limits.total {
            return Err(timed_out(Sub::Total).into());
        }
        let (limit, sub) = answer.timeout(&open.limits);
        let read = {
            let next = pin!(timeout_at(limit, open.body.next_joined()));
            self.keep_alive.during(self.routed, next).await
        };
        match read {
            Ok(Some(Ok(block))) => Ok(Some(block)),
            Ok(None) => Ok(None),
            // The answer is complete: how the connection ended does not matter.
            Ok(Some(Err(_))) | Err(_) if is_whole && !answer.ends_with_body => Ok(None),
            Ok(Some(Err(fault))) => {
                open.failed_after(answer.last_progress.elapsed());
                Err(fault.into())
            }
            Err(_) => Err(timed_out(sub).into()),
        }
    }

    /// Handles an object in place of a stream: returns a whole answer as the stream that it should have been, or the fault that it states.
    async fn read_unstreamed(
        &mut self,
        incoming: &mut IncomingAnswer<'_, '_>,
        first: Bytes,
    ) -> Result<Bytes, AttemptError> {
        let mut blocks = Blocks::up_to(MAX_FRAME);
        let (mut next, mut broken) = (Some(first), None);
        while let Some(block) = next {
            blocks.push(block).ok_or_else(too_long)?;
            next = match self.read_block(incoming).await {
                Ok(next) => next,
                Err(AttemptError::Fault(fault)) => {
                    broken = Some(fault);
                    None
                }
                Err(other) => return Err(other),
            };
        }
        let body = blocks.whole();
        if self.dialect.may_ignore_stream()
            && let (None, Some(frames)) = (&broken, unstreamed::frames(&body))
        {
            return Ok(frames);
        }
        let stated = incoming.journey.fault_in(incoming.open, &body);
        Err(stated.or(broken).unwrap_or_else(not_an_answer).into())
    }

    /// Decodes the data of a frame, as far as the client's dialect can express it.
    pub(super) fn decode<'d>(
        &self,
        frame: &Frame,
        data: &'d str,
        incoming: &mut IncomingAnswer<'_, '_>,
    ) -> Result<Step<'d>, AttemptError> {
        let mut step = incoming.answer.events.read(frame.event(), data).map_err(|_| malformed())?;
        let is_native = self.dialect == self.routed.request.dialect();
        // No other dialect can express a model's sound and pictures: an answer of those alone would be empty.
        if step.audio && !is_native {
            self.routed.note_lost_media(&incoming.open.target);
            step.audio = false;
        }
        step.hosted &= is_native;
        Ok(step)
    }
}

impl Answer {
    /// The data of a frame; none for comments.
    pub(super) fn data<'f>(&self, frame: &'f Frame) -> Result<Option<Cow<'f, str>>, AttemptError> {
        self.events.data(frame).map_err(|_| malformed().into())
    }

    /// The deadline of the next block, and the name of that timeout.
    fn timeout(&mut self, limits: &Limits) -> (Instant, Sub) {
        if std::mem::take(&mut self.has_progressed) {
            self.last_progress = Instant::now();
        }
        let (limit, sub) = match (self.is_whole(), self.has_content) {
            (true, _) => (self.last_progress + TRAILING_TIMEOUT, Sub::Idle),
            (false, true) => (self.last_progress + limits.idle, Sub::Idle),
            (false, false) => (limits.first, Sub::FirstContent),
        };
        if limit >= limits.total { (limits.total, Sub::Total) } else { (limit, sub) }
    }
}

/// A frame that is not of the dialect.
pub(super) fn malformed() -> Box<Fault> {
    Box::new(Fault::of(Kind::ResponseInvalid, "gateway.malformed_chunk"))
}
