//! Distinguishes a loop from work: has this agent's tool use stopped making progress?
//!
//! The guard is handed the calls of a conversation and their results, in no dialect, and says [`Verdict::Pass`],
//! [`Verdict::Note`] (tell the model what repeats) or [`Verdict::Stop`] (no more tools in this turn). It keeps nothing: a
//! gateway that sees the whole conversation in each request needs no session. [`Tracker`] is the same for an agent in
//! the same process, one call at a time.
//!
//! ```text
//!   Call ──► asked    (verb, target, echoes) ─┐
//!        ──► classify (failed? category)      ├─► Digest ──► Turn ──► rows, repeats, reach ──► Judgement
//!        ──► failure_text ─► mask (fingerprint) ┘  small     bounded
//! ```
//!
//! *Not here*: finding calls in a request of some dialect, adding a note to a message, answering in place of a model:
//! that is the gateway's. Words for people are `koboshi-report`'s. Whether arguments are sound is decided by `args`.
#![doc = include_str!("../docs/guard.md")]

mod answer;
mod asked;
mod cache;
mod cause;
mod digest;
mod effect;
mod ends;
mod exit;
mod failure_text;
mod finding;
mod image;
mod mask;
mod mix;
mod policy;
mod program;
mod repeats;
mod rows;
mod shell;
mod suggestion;
mod tracker;
mod turn;
mod words;

#[cfg(test)]
mod stories_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod work_tests;

use jiff::Zoned;

use crate::classify::Classifier;
use digest::Reader;

pub use cache::DigestCache;
pub use digest::{Call, Digest};
pub use effect::Effect;
pub use ends::ends;
pub use finding::{Finding, Fingerprint, Forbids, Judgement, Reach, Rule, Verdict};
pub use image::image_mark;
pub use mask::Mask;
pub use policy::{Act, GuardPolicy, GuardPolicyError, RulePolicy, ToolPolicy};
pub use suggestion::{Question, Step, Suggestion, steps_for};
pub use tracker::{CallAdvice, Dump, HISTORY, Outcome, PastError, Tracker};
pub use turn::Turn;

/// The number of recent calls that the rules read. Depth and width are counted beyond it.
pub const LOOK_BACK: usize = 256;

/// What every note of the guard to a model begins with, at the beginning of a line. Where it comes back in an output,
/// the output ends there: the guard does not judge its own notes.
pub const NOTE_MARK: &str = "[koboshi guard]";

/// Entries that a finding names; of a longer row the last ones.
const MAX_ENTRIES: usize = 64;

/// Judges histories of tool calls. It holds settings and no state; what is compiled is shared by all guards, so making one
/// costs no more than its policy.
#[derive(Debug, Clone)]
pub struct Guard {
    policy: GuardPolicy,
    reader: Reader,
}

impl Guard {
    /// A guard with these limits.
    ///
    /// # Errors
    /// The policy makes no sense.
    pub fn new(policy: GuardPolicy) -> Result<Self, GuardPolicyError> {
        policy.validate()?;
        Ok(Self { policy, reader: Reader::new() })
    }

    /// The limits.
    #[must_use]
    pub fn policy(&self) -> &GuardPolicy {
        &self.policy
    }

    /// What to do after the last of these calls. They are a conversation's, oldest first; only those of the last user
    /// turn count. Time is linear in the number of calls and in the texts of the last [`LOOK_BACK`] of the turn.
    #[must_use]
    pub fn judge(&self, calls: &[Call<'_>], classifier: &Classifier, now: &Zoned) -> Judgement {
        self.assess(&self.turn(calls, classifier, now))
    }

    /// The same, and calls that the cache knows are not read again.
    #[must_use]
    pub fn judge_with(
        &self,
        cache: &DigestCache,
        calls: &[Call<'_>],
        classifier: &Classifier,
        now: &Zoned,
    ) -> Judgement {
        self.assess(&turn_of(calls, |call| self.read_with(cache, call, classifier, now)))
    }

    /// As [`Guard::judge`], where it is known which user turn it is now: if the user has written since the last call,
    /// nothing of what was called before counts, and the verdict is that the agent may continue.
    #[must_use]
    pub fn judge_in(&self, turn: u32, calls: &[Call<'_>], classifier: &Classifier, now: &Zoned) -> Judgement {
        if is_current(turn, calls) { self.judge(calls, classifier, now) } else { self.assess(&Turn::new()) }
    }

    /// The same, and calls that the cache knows are not read again.
    #[must_use]
    pub fn judge_in_with(
        &self,
        cache: &DigestCache,
        turn: u32,
        calls: &[Call<'_>],
        classifier: &Classifier,
        now: &Zoned,
    ) -> Judgement {
        let current = is_current(turn, calls);
        if current { self.judge_with(cache, calls, classifier, now) } else { self.assess(&Turn::new()) }
    }

    /// The judgement after each response of the last user turn, where it was not just that the agent may continue: the index of the last
    /// call of the response, and the judgement. The same history gives the same answers, so notes that a client does
    /// not keep can be put back where they were. Reads every call of the turn once.
    #[must_use]
    pub fn replay(
        &self,
        calls: &[Call<'_>],
        classifier: &Classifier,
        now: &Zoned,
    ) -> Vec<(usize, Judgement)> {
        self.replay_by(calls, |call| self.read(call, classifier, now))
    }

    /// The same, and calls that the cache knows are not read again.
    #[must_use]
    pub fn replay_with(
        &self,
        cache: &DigestCache,
        calls: &[Call<'_>],
        classifier: &Classifier,
        now: &Zoned,
    ) -> Vec<(usize, Judgement)> {
        self.replay_by(calls, |call| self.read_with(cache, call, classifier, now))
    }

    fn replay_by(&self, calls: &[Call<'_>], read: impl Fn(&Call<'_>) -> Digest) -> Vec<(usize, Judgement)> {
        let start = start_of_turn(calls);
        let mut turn = Turn::new();
        turn.skip(start);
        let mut judgements = Vec::new();
        let mut rest = calls.iter().enumerate().skip(start).peekable();
        while let Some((index, call)) = rest.next() {
            turn.push(read(call));
            let goes_on =
                rest.peek().is_some_and(|(_, next)| next.batch.is_some() && next.batch == call.batch);
            if !goes_on {
                judgements.push((index, self.assess(&turn)));
            }
        }
        judgements.retain(|(_, judgement)| judgement.would != Verdict::Pass);
        judgements
    }

    /// The last user turn of a history, read.
    #[must_use]
    pub fn turn(&self, calls: &[Call<'_>], classifier: &Classifier, now: &Zoned) -> Turn {
        turn_of(calls, |call| self.read(call, classifier, now))
    }

    /// One call, read: for callers that keep a [`Turn`] of their own, so that no text is read twice.
    #[must_use]
    pub fn read(&self, call: &Call<'_>, classifier: &Classifier, now: &Zoned) -> Digest {
        self.by_policy(call, self.reader.read(call, classifier, now))
    }

    /// The same, and a call that the cache knows is not read again.
    #[must_use]
    pub fn read_with(
        &self,
        cache: &DigestCache,
        call: &Call<'_>,
        classifier: &Classifier,
        now: &Zoned,
    ) -> Digest {
        self.by_policy(call, cache.get(call, || self.reader.read(call, classifier, now)))
    }

    /// With what the policy knows about the tool.
    fn by_policy(&self, call: &Call<'_>, digest: Digest) -> Digest {
        let own = self.policy.tools.get(call.tool).and_then(|tool| tool.effect);
        Digest { effect: own.unwrap_or(digest.effect), ..digest }
    }

    /// What to do after the last call of this turn.
    #[must_use]
    pub fn assess(&self, turn: &Turn) -> Judgement {
        let mut rounds = turn.rounds();
        let last: Vec<(usize, &Digest)> = rounds.first().into_iter().flat_map(|round| round.all()).collect();
        let mut findings = Vec::new();
        // An agent that takes a way out gets no further note about what was wrong before.
        if rounds.first().is_some_and(|round| round.calls().next().is_some()) {
            rounds.retain(|round| round.calls().next().is_some());
            rows::findings(&rounds, &self.policy, &mut findings);
            repeats::findings(&rounds, &self.policy, &mut findings);
        }
        let reach = turn.reach();
        for (rule, count) in [(Rule::Depth, reach.calls), (Rule::Width, turn.width())] {
            let own = self.policy.rule(rule, "");
            // This many are allowed; the next one stops.
            let stop = own.limit.saturating_add(1);
            if let Some(verdict) = counted(own.act, count, stop) {
                findings.push(found(rule, own.act, verdict, (count, own.limit), &last));
            }
        }
        Judgement::of(findings, reach, self.policy.observe)
    }
}

/// The last user turn of a history; only the last calls of it are read.
fn turn_of(calls: &[Call<'_>], read: impl Fn(&Call<'_>) -> Digest) -> Turn {
    let mut turn = Turn::new();
    let start = start_of_turn(calls);
    turn.skip(start);
    let of_turn = calls.len() - start;
    let (earlier, kept) = (of_turn.saturating_sub(LOOK_BACK), of_turn.min(LOOK_BACK));
    for call in calls.iter().skip(start).take(earlier) {
        turn.count(call.turn, call.batch);
    }
    for call in calls.iter().skip(calls.len() - kept) {
        turn.push(read(call));
    }
    turn
}

fn is_current(turn: u32, calls: &[Call<'_>]) -> bool {
    calls.last().is_some_and(|call| call.turn == turn)
}

/// Index of the first call of the last user turn.
fn start_of_turn(calls: &[Call<'_>]) -> usize {
    let number = calls.last().map(|call| call.turn);
    calls.len() - calls.iter().rev().take_while(|call| Some(call.turn) == number).count()
}

/// What repeats beyond doubt is noted half-way to the limit, and once more before it.
fn graded(act: Act, count: u32, limit: u32) -> Option<Verdict> {
    noted(act, count, limit, limit.div_ceil(2))
}

/// What may still be work is noted when two thirds are reached, and once more before the limit.
fn doubted(act: Act, count: u32, limit: u32) -> Option<Verdict> {
    noted(act, count, limit, limit.saturating_mul(2).div_ceil(3))
}

/// A note at `first`, one before the limit too, and a stop at the limit. A first time is nothing.
fn noted(act: Act, count: u32, limit: u32, first: u32) -> Option<Verdict> {
    if act != Act::Off && count >= 2 && count < limit && count == first {
        return Some(Verdict::Note);
    }
    counted(act, count, limit)
}

/// One before the limit is a note, at the limit a stop.
fn counted(act: Act, count: u32, limit: u32) -> Option<Verdict> {
    match act {
        Act::Off => None,
        Act::Stop if count >= limit => Some(Verdict::Stop),
        Act::Note if count >= limit => Some(Verdict::Note),
        _ if count >= 2 && count.saturating_add(1) == limit => Some(Verdict::Note),
        _ => None,
    }
}

/// A finding about these entries, oldest first: how often it was seen, and how often it may be.
fn found(
    rule: Rule,
    act: Act,
    verdict: Verdict,
    (count, limit): (u32, u32),
    entries: &[(usize, &Digest)],
) -> Finding {
    let mut tools = Vec::new();
    for (_, digest) in entries {
        if !tools.contains(&digest.tool) {
            tools.push(digest.tool.clone());
        }
    }
    // The order inside one response means nothing.
    tools.sort();
    let mut indexes: Vec<usize> = entries.iter().map(|(index, _)| *index).collect();
    indexes.sort_unstable();
    let indexes = indexes.split_off(indexes.len().saturating_sub(MAX_ENTRIES));
    Finding {
        rule,
        verdict,
        stops: act == Act::Stop,
        count,
        limit,
        entries: indexes,
        tools,
        category: None,
        fingerprint: Fingerprint::default(),
        example: String::new(),
    }
}
