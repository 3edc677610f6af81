//! Applies the guard to a run, response by response.

use koboshi::classify::Classifier;
use koboshi::guard::{Call, Guard, Judgement, Suggestion, Turn, Verdict};
use koboshi_report::guard::what;
use serde::Serialize;

use super::record::RecordedCall;
use crate::say::Say;

/// The guard and what it needs.
pub(super) struct Judge<'s> {
    pub(super) guard: Guard,
    pub(super) classifier: Classifier,
    /// Whether error flags count.
    pub(super) flags: bool,
    pub(super) say: &'s Say,
}

/// The guard's messages about a run.
#[derive(Debug, Serialize)]
pub(super) struct RunReport {
    pub(super) id: String,
    pub(super) calls: usize,
    pub(super) notes: Vec<GuardMessage>,
    pub(super) stops: Vec<GuardMessage>,
}

/// One note or stop.
#[derive(Debug, Serialize)]
pub(super) struct GuardMessage {
    pub(super) turn: u32,
    /// Index of the call after which it was given.
    pub(super) at: usize,
    pub(super) rule: &'static str,
    pub(super) why: String,
}

impl Judge<'_> {
    pub(super) fn judge(&self, id: &str, calls: &[RecordedCall]) -> RunReport {
        let now = jiff::Zoned::default();
        let mut judged =
            RunReport { id: id.to_owned(), calls: calls.len(), notes: Vec::new(), stops: Vec::new() };
        let mut turn = Turn::new();
        let mut stopped = None;
        for (at, recorded) in calls.iter().enumerate() {
            let call = Call {
                tool: &recorded.tool,
                args: &recorded.args,
                output: &recorded.output,
                is_error: recorded.is_error.filter(|_| self.flags),
                turn: recorded.turn,
                batch: recorded.batch,
            };
            turn.push(self.guard.read(&call, &self.classifier, &now));
            let goes_on = calls.get(at + 1).is_some_and(|next| {
                next.turn == recorded.turn && next.batch.is_some() && next.batch == recorded.batch
            });
            // What follows a stop in the same turn would not have happened.
            if goes_on || stopped == Some(recorded.turn) {
                continue;
            }
            let judgement = self.guard.assess(&turn);
            match judgement.verdict {
                Verdict::Pass => {}
                Verdict::Note => judged.notes.extend(self.message(recorded.turn, at, &judgement)),
                Verdict::Stop => {
                    stopped = Some(recorded.turn);
                    judged.stops.extend(self.message(recorded.turn, at, &judgement));
                }
            }
        }
        judged
    }

    fn message(&self, turn: u32, at: usize, judgement: &Judgement) -> Option<GuardMessage> {
        let finding = judgement.gravest()?;
        let why = what(self.say.phrases(), self.say.lang, &Suggestion::of(finding, judgement.reach));
        Some(GuardMessage { turn, at, rule: finding.rule.name(), why })
    }
}
