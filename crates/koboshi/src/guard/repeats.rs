//! Calls that come back although nothing failed: the same call with the same answer, two or three calls in a circle,
//! and one tool that gets nothing whatever it is asked.
//!
//! The answer is part of what is compared: a debugger that steps on, a page that follows another and a queue that moves
//! are no loops. Pauses between looks are polling, and an unchanged waiting state may be asked for more often.

use std::collections::{HashMap, HashSet};

use super::answer::NothingNew;
use super::digest::Digest;
use super::finding::{Finding, Fingerprint, Rule};
use super::mix::hash_set;
use super::policy::{Act, GuardPolicy, RulePolicy};
use super::turn::Round;
use super::{Effect, counted, doubted, found, graded};

/// The longest circle that is looked for.
const MAX_CYCLE: usize = 3;
/// More other answers than this for each equal one, and it is work.
const MAX_OTHER_ANSWERS: usize = 3;
/// A question that is put to one thing after the other may stay without an answer this many times as long.
const SWEEP: u32 = 2;

pub(super) fn findings(rounds: &[Round<'_>], policy: &GuardPolicy, out: &mut Vec<Finding>) {
    let Some(last) = rounds.first() else { return };
    let mut seen = HashSet::new();
    let mut calls: Vec<&Digest> =
        last.calls().map(|(_, digest)| digest).filter(|digest| !is_pause(digest)).collect();
    calls.sort_by_key(|digest| digest.pair());
    for digest in calls {
        if seen.insert(digest.pair()) {
            out.extend(same_call(rounds, digest, policy));
        }
        if seen.insert(digest.verb) {
            out.extend(stagnation(rounds, digest, policy));
        }
    }
    out.extend(cycle(rounds, policy));
}

/// A call that only lets time pass: it is between the others, not one of them.
fn is_pause(digest: &Digest) -> bool {
    digest.effect == Effect::Waits && !digest.failed()
}

fn changes(digest: &Digest) -> bool {
    digest.effect == Effect::Changes
}

fn same_call(rounds: &[Round<'_>], last: &Digest, policy: &GuardPolicy) -> Option<Finding> {
    if last.is_mute {
        return None;
    }
    // The same edit again is the same step, whatever it shows: the file may grow with each.
    let is_same = |digest: &Digest| {
        if last.edits { digest.call == last.call } else { digest.pair() == last.pair() }
    };
    let mut entries: Vec<(usize, &Digest)> = Vec::new();
    let mut count = 0;
    let mut paused = last.waits || last.pauses;
    // The row as far as it is one: where much else was seen between, it is work.
    let mut kept = EqualCalls::default();
    let mut pausing = false;
    let mut views = Views::default();
    let mut others = Vec::new();
    for round in rounds {
        // "ok" says little: what is seen between two such calls shows whether they changed something.
        if changes(last) && !last.edits && views.moved(round) {
            break;
        }
        let before = entries.len();
        entries.extend(round.calls().filter(|(_, digest)| is_same(digest)));
        if entries.len() == before {
            let moved = round.calls().any(|(_, digest)| digest.call == last.call);
            if moved || round.successes().any(changes) {
                break;
            }
            pausing |= round.lets_time_pass();
            others.extend(round.successes().filter(|digest| !is_pause(digest)).map(Digest::pair));
        } else {
            count += 1;
            paused |= std::mem::take(&mut pausing);
            if distinct_up_to(&mut others, MAX_OTHER_ANSWERS * entries.len()) {
                kept = EqualCalls { count, entries: entries.len(), paused };
            }
        }
    }
    let EqualCalls { count, paused, .. } = kept;
    entries.truncate(kept.entries);
    let own = policy.rule(Rule::SameCall, &last.tool);
    let limit = if paused { policy.waiting.max(own.limit) } else { own.limit };
    let verdict = if paused { counted(own.act, count, limit) } else { graded(own.act, count, limit) }?;
    entries.reverse();
    Some(described(found(Rule::SameCall, own.act, verdict, (count, limit), &entries), last, last.pair()))
}

/// How far a row of equal calls goes, walking back.
#[derive(Default, Clone, Copy)]
struct EqualCalls {
    count: u32,
    entries: usize,
    paused: bool,
}

/// Whether there are at most this many different ones. They are sorted out only if there are more of them.
fn distinct_up_to(all: &mut Vec<u64>, max: usize) -> bool {
    if all.len() > max {
        all.sort_unstable();
        all.dedup();
    }
    all.len() <= max
}

/// What reading calls have shown, walking back.
#[derive(Default)]
struct Views(HashMap<u64, u64>);

impl Views {
    /// Whether the same reading call shows something else than it did later.
    fn moved(&mut self, round: &Round<'_>) -> bool {
        let looks = round.successes().filter(|digest| digest.effect == Effect::Looks);
        let mut moved = false;
        for look in looks {
            moved |= self.0.insert(look.call, look.answer).is_some_and(|later| later != look.answer);
        }
        moved
    }
}

fn cycle(rounds_back: &[Round<'_>], policy: &GuardPolicy) -> Option<Finding> {
    let going: Vec<&Round<'_>> = rounds_back
        .iter()
        .filter(|round| !round.successes().all(is_pause) || round.failures().next().is_some())
        .collect();
    let keys: Vec<u64> = going
        .iter()
        .map(|round| hash_set(round.calls().map(|(_, digest)| digest.pair()).collect()))
        .collect();
    (2..=MAX_CYCLE).find_map(|period| {
        let again = keys.iter().zip(keys.iter().skip(period)).take_while(|(one, other)| one == other).count();
        let one_round = going.get(..period)?;
        let is_one = keys.get(..period)?.windows(2).all(|two| matches!(two, [one, other] if one == other));
        let rounds = u32::try_from(again / period + 1).unwrap_or(u32::MAX);
        if is_one || again < period {
            return None;
        }
        // Where the answer does not show what was seen, it cannot show that it was seen before.
        if one_round.iter().flat_map(|round| round.calls()).all(|(_, digest)| digest.is_mute) {
            return None;
        }
        let calls = || one_round.iter().flat_map(|round| round.calls()).map(|(_, digest)| digest);
        let own = calls().map(|digest| policy.rule(Rule::Cycle, &digest.tool)).reduce(looser)?;
        let kept = going.get(..(again + period).min(going.len())).unwrap_or_default();
        let first = kept.last().and_then(|round| round.calls().next()).map_or(0, |(index, _)| index);
        let in_it = |round: &&Round<'_>| round.calls().any(|(index, _)| index >= first);
        let paused = rounds_back.iter().take_while(in_it).any(Round::lets_time_pass);
        let waits = paused || calls().any(|digest| digest.waits);
        let limit = if waits { policy.waiting.max(own.limit) } else { own.limit };
        let verdict = counted(own.act, rounds, limit)?;
        // One note for a round, not one for each of its steps.
        if rounds < limit && again % period != 0 {
            return None;
        }
        let mut entries: Vec<(usize, &Digest)> = kept.iter().flat_map(|round| round.calls()).collect();
        entries.sort_by_key(|(index, _)| *index);
        let last = calls().next()?;
        let id = hash_set(keys.get(..period)?.to_vec());
        Some(described(found(Rule::Cycle, own.act, verdict, (rounds, limit), &entries), last, id))
    })
}

/// A circle is as free as the freest of its tools.
fn looser(one: RulePolicy, other: RulePolicy) -> RulePolicy {
    let act = match (one.act, other.act) {
        (Act::Off, _) | (_, Act::Off) => Act::Off,
        (Act::Note, _) | (_, Act::Note) => Act::Note,
        _ => Act::Stop,
    };
    RulePolicy { limit: one.limit.max(other.limit), act }
}

/// What a question got, if it got nothing: silence counts only from what is there to answer.
fn nothing(digest: &Digest) -> Option<NothingNew> {
    let looks = digest.effect == Effect::Looks;
    digest.nothing_new.filter(|nothing_new| match nothing_new {
        NothingNew::Silent | NothingNew::Long => looks,
        NothingNew::Empty | NothingNew::Blocked => true,
    })
}

fn stagnation(rounds: &[Round<'_>], last: &Digest, policy: &GuardPolicy) -> Option<Finding> {
    let nothing_new = nothing(last)?;
    let alike = |digest: &Digest| {
        digest.verb == last.verb
            && nothing(digest) == Some(nothing_new)
            && (nothing_new != NothingNew::Long || digest.answer == last.answer)
    };
    let mut entries: Vec<(usize, &Digest)> = Vec::new();
    let (mut count, mut paused, mut pausing) = (0, last.waits || last.pauses, false);
    for round in rounds {
        let same: Vec<(usize, &Digest)> = round.calls().filter(|(_, digest)| alike(digest)).collect();
        let moved = round.successes().any(|digest| digest.verb == last.verb && !alike(digest));
        let changed = round.successes().any(|digest| changes(digest) && digest.verb != last.verb);
        if moved || changed {
            break;
        }
        if same.is_empty() {
            pausing |= round.lets_time_pass();
        } else {
            count += 1;
            entries.extend(same);
            paused |= std::mem::take(&mut pausing);
        }
    }
    let questions: HashSet<u64> = entries.iter().map(|(_, digest)| digest.call).collect();
    if questions.len() < 2 {
        return None;
    }
    let own = policy.rule(Rule::Stagnation, &last.tool);
    let mut limit = own.limit;
    let sweeps = matches!(nothing_new, NothingNew::Empty | NothingNew::Silent) && is_sweep(&entries);
    if sweeps {
        limit = limit.saturating_mul(SWEEP);
    }
    if paused {
        limit = limit.max(policy.waiting);
    }
    let verdict = if sweeps { counted(own.act, count, limit) } else { doubted(own.act, count, limit) }?;
    entries.reverse();
    Some(described(found(Rule::Stagnation, own.act, verdict, (count, limit), &entries), last, last.answer))
}

/// One question, put to another thing each time.
fn is_sweep(entries: &[(usize, &Digest)]) -> bool {
    let things: HashSet<u64> = entries.iter().map(|(_, digest)| digest.target).collect();
    let questions: HashSet<Option<u64>> = entries.iter().map(|(_, digest)| digest.rest).collect();
    things.len() == entries.len() && questions.len() == 1 && !questions.contains(&None)
}

fn described(mut finding: Finding, last: &Digest, id: u64) -> Finding {
    finding.fingerprint = last.fingerprint().cloned().unwrap_or(Fingerprint { id, ..Fingerprint::default() });
    finding.category = last.failure.as_ref().map(|failure| failure.category.clone());
    finding.example.clone_from(&last.example);
    finding
}
