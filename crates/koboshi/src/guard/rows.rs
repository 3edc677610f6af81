//! Rows of failures: similar ones in a row, similar ones among others, and any at all.
//!
//! Walking back from the last attempt, a failure belongs to the row if it is *similar*: the same masked message, or the
//! same cause in the environment. What stands between them decides how many are too many:
//!
//! - reading and waiting calls change nothing; they are passed over;
//! - a success of the same tool on the same thing ends the row; one on another file or page takes the failures on other
//!   things out of it, because the tool works;
//! - after a change only the very same failure still counts, names and figures and the whole answer, and it may come more
//!   often; a command that edits and runs is a change by itself, also where it fails;
//! - where something is missing, another missing thing is another failure;
//! - many successes between two failures end the row: that is work;
//! - a failure that may pass by itself, with pauses between the tries, is waiting;
//! - a count of failures that fell is progress and ends the row;
//! - another failure ends the row, but not the window in which similar ones alternate.

use std::collections::HashSet;

use super::digest::{Digest, Failure};
use super::failure_text::Tally;
use super::finding::{Finding, Rule, Verdict};
use super::policy::GuardPolicy;
use super::turn::Round;
use super::{Effect, doubted, found, graded};

/// At most this many failures of one attempt are followed back.
const MAX_ROWS: usize = 16;

/// More successful attempts than this for each failure end a row.
const MAX_SUCCESSES: u32 = 3;

pub(super) fn findings(rounds: &[Round<'_>], policy: &GuardPolicy, out: &mut Vec<Finding>) {
    let Some(last) = rounds.first() else { return };
    let mut causes: Vec<(&Digest, &Failure)> =
        last.failures().filter_map(|(_, digest)| Some((digest, digest.failure.as_ref()?))).collect();
    // The order inside one response means nothing.
    let key = |(digest, failure): &(&Digest, &Failure)| {
        (failure.fingerprint.id, digest.verb, digest.target, failure.named)
    };
    causes.sort_by_key(key);
    causes.dedup_by_key(|cause| key(cause));
    causes.truncate(MAX_ROWS);
    let first = out.len();
    for (digest, failure) in causes {
        let similar = similar_errors(rounds, digest, failure, policy);
        let is_stop = similar.as_ref().is_some_and(|finding| finding.verdict == Verdict::Stop);
        let alternating = if is_stop { None } else { alternating_errors(rounds, digest, failure, policy) };
        for finding in similar.into_iter().chain(alternating) {
            let seen = out.iter().skip(first);
            if !seen.clone().any(|other| (other.rule, &other.entries) == (finding.rule, &finding.entries)) {
                out.push(finding);
            }
        }
    }
    out.extend(any_errors(rounds, policy));
}

/// What was found walking back.
#[derive(Default)]
struct FailureRow<'t> {
    entries: Vec<(usize, &'t Digest)>,
    /// Attempts since the last change.
    fresh: u32,
    /// Attempts in all.
    total: u32,
    /// Other failures stood between them.
    alternates: bool,
    /// It may pass by itself, and time was given to it.
    paused: bool,
}

fn similar_errors(
    rounds: &[Round<'_>],
    last: &Digest,
    failure: &Failure,
    policy: &GuardPolicy,
) -> Option<Finding> {
    let row = walk(rounds, last, failure, None);
    finding_of(Rule::SimilarErrors, &row, last, failure, policy)
}

fn alternating_errors(
    rounds: &[Round<'_>],
    last: &Digest,
    failure: &Failure,
    policy: &GuardPolicy,
) -> Option<Finding> {
    let row = walk(rounds, last, failure, Some(policy.window));
    if !row.alternates {
        return None;
    }
    finding_of(Rule::AlternatingErrors, &row, last, failure, policy)
}

fn finding_of(
    rule: Rule,
    row: &FailureRow<'_>,
    last: &Digest,
    failure: &Failure,
    policy: &GuardPolicy,
) -> Option<Finding> {
    let own = policy.rule(rule, &last.tool);
    let room = if row.paused { policy.waiting.max(policy.after_changes) } else { policy.after_changes };
    let patient = room.max(own.limit);
    let fresh = graded(own.act, row.fresh, own.limit);
    let total = graded(own.act, row.total, patient);
    let (verdict, count, limit) = match (fresh, total) {
        (Some(fresh), total) if Some(fresh) >= total => (fresh, row.fresh, own.limit),
        (_, Some(total)) => (total, row.total, patient),
        _ => return None,
    };
    let mut finding = found(rule, own.act, verdict, (count, limit), &row.entries);
    finding.category = Some(failure.category.clone());
    finding.fingerprint = failure.fingerprint.clone();
    finding.example.clone_from(&last.example);
    Some(finding)
}

/// Walks back from the last attempt. With a window other failures are passed over, and this many attempts are read.
fn walk<'t>(
    rounds: &[Round<'t>],
    last: &'t Digest,
    failure: &'t Failure,
    window: Option<u32>,
) -> FailureRow<'t> {
    let mut row = FailureRow::default();
    let mut later = LaterCalls::default();
    let mut tally: Option<Tally> = None;
    let mut others = false;
    let mut successes = 0;
    let looked = window.and_then(|window| usize::try_from(window).ok()).unwrap_or(usize::MAX);
    for round in rounds.iter().take(looked) {
        let belongs = |(_, digest): &(usize, &Digest)| {
            let earlier = digest.failure.as_ref();
            !later.resolved(digest, last)
                && earlier.is_some_and(|earlier| similar(digest, earlier, last, failure, later.changed))
        };
        let matched: Vec<(usize, &Digest)> = round.failures().filter(belongs).collect();
        // Of parallel failures the one that has come furthest.
        let min = matched
            .iter()
            .filter_map(|(_, digest)| digest.failure.as_ref())
            .map(|earlier| earlier.tally)
            .min();
        let failed = round.failures().next().is_some();
        if let Some(min) = min {
            if tally.is_some_and(|after| after.fell(min)) {
                break;
            }
            tally = Some(min);
            row.total += 1;
            row.fresh += u32::from(!later.changed);
            row.alternates |= others;
            row.paused |= later.paused;
            row.entries.extend(matched);
        } else if failed {
            if window.is_none() {
                break;
            }
            others = true;
        } else if !round.lets_time_pass() {
            successes += 1;
            if successes > MAX_SUCCESSES * row.total {
                break;
            }
        }
        if later.learn(round, last, failure) {
            break;
        }
    }
    row.entries.reverse();
    row
}

/// What is known, at some attempt, of those after it.
#[derive(Default)]
struct LaterCalls {
    changed: bool,
    paused: bool,
    /// Verb and target of successes.
    solved: HashSet<(u64, u64)>,
    /// Verbs that succeeded on other files or pages.
    works: HashSet<u64>,
}

impl LaterCalls {
    /// The failure was overcome afterwards.
    fn resolved(&self, digest: &Digest, last: &Digest) -> bool {
        self.solved.contains(&(digest.verb, digest.target))
            || (self.works.contains(&digest.verb) && digest.target != last.target)
    }

    /// Takes in the successes of an attempt; true if one of them ends the row.
    fn learn(&mut self, round: &Round<'_>, last: &Digest, failure: &Failure) -> bool {
        let mut ends = false;
        // What passes by itself may have passed.
        self.paused |= failure.passes && round.lets_time_pass();
        self.changed |= self.paused;
        // It edited before it failed: the failure before it was another one's.
        self.changed |= round.failures().any(|(_, digest)| digest.leaves);
        for success in round.successes() {
            let same_verb = success.verb == last.verb;
            ends |= same_verb && success.target == last.target;
            self.solved.insert((success.verb, success.target));
            let elsewhere = !success.is_code && !is_sticky(&failure.category);
            if elsewhere {
                self.works.insert(success.verb);
            }
            self.changed |= match success.effect {
                Effect::Changes => !(same_verb && elsewhere),
                Effect::Waits | Effect::Ends => false,
                Effect::Looks => same_verb && !elsewhere,
            };
        }
        ends
    }
}

/// Something is missing or forbidden here, and stays so whatever else succeeds.
fn is_sticky(category: &str) -> bool {
    const STICKY: &[&str] =
        &["font", "missing_module", "missing_command", "version_conflict", "permission", "resource", "auth"];
    STICKY.contains(&category)
}

fn similar(digest: &Digest, earlier: &Failure, last: &Digest, failure: &Failure, changed: bool) -> bool {
    // Where only some line of the text complains, that line may stand in every good run too.
    if changed || failure.is_weak || earlier.is_weak {
        return earlier.named == failure.named
            && earlier.whole == failure.whole
            && (!failure.is_generic || digest.verb == last.verb);
    }
    let told_alike = earlier.fingerprint.id == failure.fingerprint.id;
    if failure.is_generic || earlier.is_generic {
        return told_alike && digest.verb == last.verb;
    }
    let same_cause = failure.cause.is_some() && earlier.cause == failure.cause;
    if failure.cause.is_some_and(|cause| cause.is_missing) {
        return same_cause;
    }
    told_alike || (same_cause && earlier.category == failure.category)
}

/// Attempts that failed, whatever with, with no success between them but reading calls.
fn any_errors(rounds: &[Round<'_>], policy: &GuardPolicy) -> Option<Finding> {
    // The order inside one response means nothing.
    let sure =
        |(_, digest): &(usize, &Digest)| digest.failure.as_ref().is_some_and(|failure| !failure.is_weak);
    let (_, last) =
        rounds.first()?.failures().filter(sure).min_by_key(|(_, digest)| (digest.verb, digest.target))?;
    let own = policy.rule(Rule::AnyErrors, &last.tool);
    let mut entries: Vec<(usize, &Digest)> = Vec::new();
    let mut verbs = HashSet::new();
    let (mut count, mut successes, mut paused) = (0, 0, false);
    for round in rounds {
        let works = |success: &Digest| success.effect == Effect::Changes || verbs.contains(&success.verb);
        if round.successes().any(works) || round.failures().any(|failed| !sure(&failed)) {
            break;
        }
        let before = entries.len();
        entries.extend(round.failures());
        verbs.extend(entries.iter().skip(before).map(|(_, digest)| digest.verb));
        let failed = entries.len() > before;
        count += u32::from(failed);
        successes += u32::from(!failed && !round.lets_time_pass());
        // Where more is seen than fails, it is work.
        if successes > count {
            break;
        }
        paused |= round.lets_time_pass();
    }
    let passes =
        |(_, digest): &(usize, &Digest)| digest.failure.as_ref().is_some_and(|failure| failure.passes);
    let waits = paused && entries.iter().all(passes);
    let limit = if waits { policy.waiting.max(own.limit) } else { own.limit };
    let verdict = doubted(own.act, count, limit)?;
    entries.reverse();
    let categories: HashSet<_> = entries.iter().filter_map(|(_, digest)| digest.category()).collect();
    let mut finding = found(Rule::AnyErrors, own.act, verdict, (count, limit), &entries);
    finding.category = (categories.len() == 1)
        .then(|| last.failure.as_ref().map(|failure| failure.category.clone()))
        .flatten();
    finding.example.clone_from(&last.example);
    Some(finding)
}
