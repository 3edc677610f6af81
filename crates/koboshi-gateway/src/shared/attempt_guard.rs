//! Releases the gate reservation of an attempt and closes its span on every exit path.
//!
//! An attempt ends in many ways. A client that disconnects is one of them: it drops the whole request at whatever point it has reached. So the
//! guard ends the attempt in [`Drop`], and every attempt that was sent is counted and traced.
//!
//! The cost of an attempt is what its answer states. A stream that breaks states nothing: its cost is the estimate of the request and the
//! tokens that were received. A refusal costs nothing. If no answer began, the cost is unknown and the estimate stays.

use std::sync::Arc;

use jiff::Timestamp;
use koboshi::fault::Fault;
use koboshi::gate::{Cost, Gate, Reservation};
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};
use koboshi_wire::step::Usage;

use crate::route::target::Target;
use crate::shared::reopenings::FirstRequest;
use crate::shared::spend::{AttemptUsage, Payer, Spending};
use crate::shared::trace::Trace;

/// Bytes of text for one token, where the provider does not state the count.
const BYTES_PER_TOKEN: usize = 4;

/// Why the gateway gave up an attempt without counting it against its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithdrawReason {
    /// The client went away.
    Client,
    /// The answer differs from the one that the client has begun to read.
    Differs,
    /// The target refuses to continue a given text.
    Prefill,
    /// The target refuses the conversation as the client sent it.
    History,
}

impl WithdrawReason {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Differs => "differs",
            Self::Prefill => "prefill",
            Self::History => "history",
        }
    }
}

/// How far the attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was sent.
    Reserved,
    /// The request was sent at this time; no answer has begun.
    Sent(Timestamp),
    /// The provider refused the request.
    Refused(Timestamp),
    /// An answer has begun.
    Answering(Timestamp),
    /// The answer is complete; only its cost may still follow.
    Whole(Timestamp),
    /// The span is closed.
    Over,
}

/// The reservation and the span of an attempt.
pub(crate) struct AttemptGuard {
    target: Arc<Target>,
    trace: Trace,
    spending: Option<(Arc<Spending>, Payer)>,
    reservation: Option<Reservation<Arc<Gate>>>,
    stage: Stage,
    /// The right to go first after a rest: it ends with the attempt, or when the answer has content.
    first: Option<FirstRequest>,
    /// Tokens of the answer that were received.
    tokens: u64,
    /// The cost that the answer states.
    usage: Option<Usage>,
    /// It states the cost of the whole answer, and not only of its beginning.
    is_final: bool,
}

impl AttemptGuard {
    pub(crate) fn new(
        reservation: Reservation<Arc<Gate>>,
        target: &Arc<Target>,
        trace: &Trace,
        spending: Option<(Arc<Spending>, Payer)>,
    ) -> Self {
        Self {
            target: Arc::clone(target),
            trace: trace.clone(),
            spending,
            reservation: Some(reservation),
            stage: Stage::Reserved,
            first: None,
            tokens: 0,
            usage: None,
            is_final: false,
        }
    }

    /// The request goes first after a rest.
    pub(crate) fn set_first(&mut self, first: Option<FirstRequest>) {
        self.first = first;
    }

    /// The right to go first, if the attempt still has it.
    pub(crate) fn take_first(&mut self) -> Option<FirstRequest> {
        self.first.take()
    }

    /// The request goes out now.
    pub(crate) fn mark_sent(&mut self, wall: Timestamp) {
        self.stage = Stage::Sent(wall);
        if let Some(reservation) = &mut self.reservation {
            reservation.sent();
        }
    }

    /// The head of an answer has arrived: the provider has counted the request.
    pub(crate) fn answer_began(&mut self, success: bool) {
        if let Stage::Sent(wall) = self.stage {
            self.stage = if success { Stage::Answering(wall) } else { Stage::Refused(wall) };
        }
        if let Some(reservation) = &mut self.reservation {
            reservation.seen();
        }
    }

    /// Counts a piece of the answer by its bytes of text, as one token at least.
    pub(crate) fn count_text(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_add(bytes.div_ceil(BYTES_PER_TOKEN).max(1) as u64);
    }

    /// Counts what had arrived of a unary answer when it broke, up to the output limit of the request.
    pub(crate) fn count_partial(&mut self, bytes: usize) {
        let max_tokens = self.reservation.as_ref().map_or(0, |reservation| reservation.cost().output_tokens);
        self.tokens = max_tokens.min(bytes.div_ceil(BYTES_PER_TOKEN) as u64);
    }

    /// The answer states its cost: of all of it, or of what came up to now.
    pub(crate) fn set_usage(&mut self, usage: Usage, is_final: bool) {
        self.usage = Some(usage);
        self.is_final = is_final;
    }

    /// The attempt failed; the journey reports the failure.
    pub(crate) fn fail(mut self, now: Moment) {
        self.settle(now, true);
        self.stage = Stage::Over;
    }

    /// The answer is complete. `usage` is the cost that the metrics and the span show.
    pub(crate) fn finish_whole(&mut self, usage: Option<Usage>, now: Moment) {
        self.mark_whole();
        self.usage = self.usage.or(usage);
        self.count_spending(false);
        self.serve(usage, now);
    }

    fn serve(&mut self, usage: Option<Usage>, now: Moment) {
        self.settle(now, false);
        if let Some(usage) = usage {
            self.target.meters.input.inc_by(usage.input);
            self.target.meters.output.inc_by(usage.output);
        }
        if let Some(wall) = self.began() {
            self.trace.succeeded(&self.target, wall, usage);
        }
        self.stage = Stage::Over;
    }

    /// The answer is complete; its cost may still follow.
    pub(crate) fn mark_whole(&mut self) {
        if let Some(wall) = self.began() {
            self.stage = Stage::Whole(wall);
        }
    }

    /// The answer was complete, and nothing else follows.
    pub(crate) fn finish(mut self, now: Moment) {
        self.serve(self.usage, now);
    }

    /// The gateway gives the attempt up.
    pub(crate) fn withdraw(mut self, why: WithdrawReason, fault: Option<&Fault>, now: Moment) {
        self.close_withdrawn(why, fault, now);
    }

    fn close_withdrawn(&mut self, why: WithdrawReason, fault: Option<&Fault>, now: Moment) {
        self.settle(now, true);
        if let Some(wall) = self.began() {
            self.trace.withdrawn(&self.target, wall, why, fault);
        }
        self.stage = Stage::Over;
    }

    const fn began(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Sent(wall) | Stage::Refused(wall) | Stage::Answering(wall) | Stage::Whole(wall) => {
                Some(wall)
            }
            Stage::Reserved | Stage::Over => None,
        }
    }

    /// Counts what the attempt used, once. `is_lost`: no client gets its answer.
    fn count_spending(&mut self, is_lost: bool) {
        let Some(sent) = self.began() else { return };
        let Some((spending, payer)) = self.spending.take() else { return };
        let is_whole = matches!(self.stage, Stage::Whole(_));
        let asked = self.reservation.as_ref().map_or(0, |reservation| reservation.cost().input_tokens);
        let used = match (self.stage, self.usage) {
            (_, Some(usage)) if self.is_final || is_whole => {
                AttemptUsage { usage, is_estimated: false, is_lost }
            }
            // A beginning: the provider goes on counting until it notices that the reader is gone.
            (_, Some(usage)) => {
                let usage = Usage { output: usage.output.max(self.tokens), ..usage };
                AttemptUsage { usage, is_estimated: true, is_lost }
            }
            (Stage::Answering(_) | Stage::Whole(_), None) if self.tokens > 0 || !is_whole => {
                let usage = Usage { input: asked, output: self.tokens, ..Usage::default() };
                AttemptUsage { usage, is_estimated: true, is_lost }
            }
            _ => AttemptUsage { is_lost, ..AttemptUsage::default() },
        };
        spending.add(payer, &self.target.name, self.target.price, used, sent);
    }

    fn settle(&mut self, now: Moment, is_lost: bool) {
        self.count_spending(is_lost);
        let Some(reservation) = self.reservation.take() else { return };
        let cost = match (self.stage, self.usage) {
            (_, Some(usage)) => Cost::of(usage.input, usage.output),
            (Stage::Refused(_), None) => Cost::of(0, 0),
            (Stage::Sent(_) | Stage::Reserved | Stage::Over, None) => return,
            // A complete answer without counted text is one that the gateway does not parse.
            (Stage::Whole(_), None) if self.tokens == 0 => return,
            (Stage::Answering(_) | Stage::Whole(_), None) => {
                Cost::of(reservation.cost().input_tokens, self.tokens)
            }
        };
        reservation.settle(cost, now);
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        // The clock is read only where the attempt was not closed before, which is rare.
        match self.stage {
            Stage::Over => {}
            Stage::Whole(_) => self.serve(self.usage, SystemClock.moment()),
            _ => self.close_withdrawn(WithdrawReason::Client, None, SystemClock.moment()),
        }
    }
}
