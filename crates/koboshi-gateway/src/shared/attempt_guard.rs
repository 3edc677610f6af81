//! What an attempt has at stake until it ends: its place at the gate, and what is told of it to a collector of traces.
//!
//! An attempt ends in many ways, and the client that goes away is one of them: then everything is dropped wherever it stands. So the end is
//! here and in [`Drop`], and nowhere is an attempt that was paid for and not counted, or made and not told.
//!
//! What it cost is what its answer said. A stream that breaks says nothing: then it is the request as it was estimated, and what was seen
//! of the answer. A refusal costs nothing; where no answer began nobody knows, and the estimate stays.

use std::sync::Arc;

use jiff::Timestamp;
use koboshi::fault::Fault;
use koboshi::gate::{Cost, Gate, Reservation};
use koboshi::time::Moment;
use koboshi_store::{Clock, SystemClock};
use koboshi_wire::step::Usage;

use crate::route::target::Target;
use crate::shared::trace::Trace;

/// Bytes of text for one token, as long as nobody says it better.
const BYTES_PER_TOKEN: usize = 4;

/// Why an attempt was given up without a word against its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithdrawReason {
    /// The client went away.
    Client,
    /// It is another answer than the one that the client has begun to read.
    Differs,
    /// The target does not go on with a text that it is given.
    Prefill,
    /// The target does not take the conversation as it came.
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

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was sent.
    Reserved,
    /// Sent then; no answer has begun.
    Sent(Timestamp),
    /// Refused.
    Refused(Timestamp),
    /// An answer comes.
    Answering(Timestamp),
    /// The answer is whole; only what it cost is not known yet.
    Whole(Timestamp),
    /// All is told.
    Over,
}

/// What is settled when an attempt ends.
pub(crate) struct AttemptGuard {
    target: Arc<Target>,
    trace: Trace,
    reservation: Option<Reservation<Arc<Gate>>>,
    stage: Stage,
    /// Tokens of the answer that were seen.
    tokens: u64,
    /// What the answer said it cost.
    told: Option<Usage>,
}

impl AttemptGuard {
    pub(crate) fn new(reservation: Reservation<Arc<Gate>>, target: &Arc<Target>, trace: &Trace) -> Self {
        Self {
            target: Arc::clone(target),
            trace: trace.clone(),
            reservation: Some(reservation),
            stage: Stage::Reserved,
            tokens: 0,
            told: None,
        }
    }

    /// The request goes out now.
    pub(crate) fn sent(&mut self, wall: Timestamp) {
        self.stage = Stage::Sent(wall);
        if let Some(reservation) = &mut self.reservation {
            reservation.sent();
        }
    }

    /// The head of an answer is there: the provider has counted the request.
    pub(crate) fn seen(&mut self, success: bool) {
        if let Stage::Sent(wall) = self.stage {
            self.stage = if success { Stage::Answering(wall) } else { Stage::Refused(wall) };
        }
        if let Some(reservation) = &mut self.reservation {
            reservation.seen();
        }
    }

    /// A piece of the answer with so many bytes of text: at least a token.
    pub(crate) fn saw(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_add(bytes.div_ceil(BYTES_PER_TOKEN).max(1) as u64);
    }

    /// So much of an answer that is no stream was there when it broke. It cannot be more than was asked for.
    pub(crate) fn saw_part(&mut self, bytes: usize) {
        let most = self.reservation.as_ref().map_or(0, |reservation| reservation.cost().output_tokens);
        self.tokens = most.min(bytes.div_ceil(BYTES_PER_TOKEN) as u64);
    }

    /// The answer says what it costs.
    pub(crate) fn told(&mut self, usage: Usage) {
        self.told = Some(usage);
    }

    /// It failed; the journey tells of it.
    pub(crate) fn failed(mut self, now: Moment) {
        self.settle(now);
        self.stage = Stage::Over;
    }

    /// The answer is whole, and what is told of the request as a whole is this.
    pub(crate) fn served(&mut self, usage: Option<Usage>, now: Moment) {
        self.told = self.told.or(usage);
        self.is_whole();
        self.serve(usage, now);
    }

    fn serve(&mut self, usage: Option<Usage>, now: Moment) {
        self.settle(now);
        if let Some(usage) = usage {
            self.target.meters.input.inc_by(usage.input);
            self.target.meters.output.inc_by(usage.output);
        }
        if let Some(wall) = self.began() {
            self.trace.succeeded(&self.target, wall, usage);
        }
        self.stage = Stage::Over;
    }

    /// The answer is whole; what it cost may still come.
    pub(crate) fn is_whole(&mut self) {
        if let Some(wall) = self.began() {
            self.stage = Stage::Whole(wall);
        }
    }

    /// The answer was whole, and this is all that comes.
    pub(crate) fn told_all(mut self, now: Moment) {
        self.serve(self.told, now);
    }

    /// It is given up.
    pub(crate) fn withdrawn(mut self, why: WithdrawReason, fault: Option<&Fault>, now: Moment) {
        self.withdraw(why, fault, now);
    }

    fn withdraw(&mut self, why: WithdrawReason, fault: Option<&Fault>, now: Moment) {
        self.settle(now);
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

    fn settle(&mut self, now: Moment) {
        let Some(reservation) = self.reservation.take() else { return };
        let cost = match (self.stage, self.told) {
            (_, Some(usage)) => Cost::of(usage.input, usage.output),
            (Stage::Refused(_), None) => Cost::of(0, 0),
            (Stage::Sent(_) | Stage::Reserved | Stage::Over, None) => return,
            // A whole answer of which nothing was seen is one that nobody looks into.
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
        // Nearly always all was said, and nobody needs to read a clock.
        match self.stage {
            Stage::Over => {}
            Stage::Whole(_) => self.serve(self.told, SystemClock.moment()),
            _ => self.withdraw(WithdrawReason::Client, None, SystemClock.moment()),
        }
    }
}
