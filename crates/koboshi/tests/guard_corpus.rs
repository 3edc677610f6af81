//! The labelled sequences of the corpus: where the guard stops first, and that it does not stop where it must not.
//!
//! A sequence is fed call by call, as an agent would; the first stop counts. A *false stop* is one before its time or
//! where none is due.
//!
//! The half of the cases whose sha256 of the id begins with 8 to f was set aside before the rules were written. Its
//! first score was 26 of 27, no false stop; the one miss (a field that is only shown) was then mended as a rule.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "helpers of tests")]

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Classifier, Rules};
use koboshi::guard::{Call, DigestCache, Guard, GuardPolicy, Judgement, RulePolicy, Turn, Verdict};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    #[serde(default)]
    limits: Limits,
    calls: Vec<Entry>,
    expect: Expect,
}

/// What the labels are written for.
#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Limits {
    #[default]
    Source,
    Gateway,
}

#[derive(Deserialize)]
struct Entry {
    tool: String,
    args: serde_json::Value,
    output: String,
    is_error: Option<bool>,
    #[serde(default)]
    turn: u32,
    #[serde(default)]
    batch: Option<u32>,
}

#[derive(Deserialize)]
struct Expect {
    stop_after: Option<usize>,
    stop_ok: Option<(usize, usize)>,
    why: String,
}

fn cases() -> Vec<Case> {
    let texts = [
        include_str!("../../../corpus/tool-sequences.jsonl"),
        include_str!("../../../corpus/tool-sequences-long.jsonl"),
    ];
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.map(|line| serde_json::from_str(line).expect("a case")).collect()
}

fn now() -> Zoned {
    "2026-11-15T12:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC)
}

fn classifier() -> Classifier {
    Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled())
}

/// How the cases are presented.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    AsTheyAre,
    /// No wire format with an error flag.
    WithoutFlags,
    /// Failures in colour, each with an id, a time and a duration of its own.
    WithNoise,
}

fn output(call: &Entry, at: usize, form: Form) -> String {
    if form != Form::WithNoise || call.is_error != Some(true) {
        return call.output.clone();
    }
    let id = at * 7919;
    format!(
        "\u{1b}[31m{}\u{1b}[0m\n(request id: req_{id:08x}, took {at}.{at}s at 2026-11-15T12:00:{at:02}Z)",
        call.output
    )
}

/// The index of the first stop, and all judgements up to it.
fn play(
    case: &Case,
    form: Form,
    guard: &Guard,
    classifier: &Classifier,
    caches: &[DigestCache],
) -> (Option<usize>, Vec<Judgement>) {
    let args: Vec<String> = case
        .calls
        .iter()
        .map(|call| call.args.as_str().map_or_else(|| call.args.to_string(), str::to_owned))
        .collect();
    let outputs: Vec<String> =
        case.calls.iter().enumerate().map(|(at, call)| output(call, at, form)).collect();
    let calls: Vec<Call<'_>> = case
        .calls
        .iter()
        .zip(args.iter().zip(&outputs))
        .map(|(call, (args, output))| Call {
            tool: &call.tool,
            args,
            output,
            is_error: call.is_error.filter(|_| form != Form::WithoutFlags),
            turn: call.turn,
            batch: call.batch,
        })
        .collect();
    let mut turn = Turn::new();
    let mut judgements = Vec::new();
    for end in 1..=calls.len() {
        turn.push(guard.read(&calls[end - 1], classifier, &now()));
        let judgement = guard.assess(&turn);
        // Reading a long turn again after each of its calls takes minutes: now and then is enough.
        let is_read_again = !caches.is_empty() && (end < 50 || end % 50 == 0);
        if is_read_again {
            let read = guard.judge(&calls[..end], classifier, &now());
            assert_eq!(read, judgement, "{}: kept and read again are the same", case.id);
        }
        for cache in caches.iter().filter(|_| is_read_again) {
            let known = guard.judge_with(cache, &calls[..end], classifier, &now());
            assert_eq!(known, judgement, "{}: known and read again are the same", case.id);
        }
        let stops = judgement.verdict == Verdict::Stop;
        judgements.push(judgement);
        if stops {
            return (Some(end - 1), judgements);
        }
    }
    (None, judgements)
}

/// What the gateway does by default: calls are counted and never stopped for their number.
fn gateway() -> Guard {
    Guard::new(GuardPolicy::default().with(|policy| policy.depth = RulePolicy::OFF)).unwrap()
}

#[derive(Default)]
struct Score {
    right: usize,
    all: usize,
    false_stops: usize,
    late: usize,
    misses: Vec<String>,
}

fn score(form: Form) -> Score {
    let classifier = classifier();
    let source = Guard::new(GuardPolicy::source()).unwrap();
    let gateway = gateway();
    // One that remembers all cases, and one that forgets all the time.
    let caches = [DigestCache::default(), DigestCache::new(4)];
    let mut score = Score::default();
    for case in &cases() {
        let guard = if case.limits == Limits::Source { &source } else { &gateway };
        let (stopped, judgements) = play(case, form, guard, &classifier, &caches);
        let range = case.expect.stop_ok.or(case.expect.stop_after.map(|at| (at, at)));
        let right = match (stopped, range) {
            (None, None) => true,
            (Some(at), Some((from, to))) => (from..=to).contains(&at),
            _ => false,
        };
        score.all += 1;
        if right {
            score.right += 1;
            continue;
        }
        let early = stopped.is_some_and(|at| range.is_none_or(|(from, _)| at < from));
        score.false_stops += usize::from(early);
        score.late += usize::from(!early);
        let last = judgements.last().and_then(|judgement| judgement.gravest());
        score.misses.push(format!(
            "{} {}: stopped after {stopped:?}, due {range:?} ({}); {:?}",
            case.id,
            case.kind,
            case.expect.why,
            last.map(|finding| (finding.rule.name(), finding.count, &finding.fingerprint.text))
        ));
    }
    score
}

#[track_caller]
fn at_least_93_in_100_are_right_with_at_most_one_false_stop(form: Form) {
    let score = score(form);
    assert!(
        score.right * 100 >= score.all * 93 && score.false_stops <= 1,
        "{} of {} right, {} false stops, {} late or missed:\n{}",
        score.right,
        score.all,
        score.false_stops,
        score.late,
        score.misses.join("\n")
    );
}

#[test]
fn the_labelled_sequences_stop_where_they_should() {
    at_least_93_in_100_are_right_with_at_most_one_false_stop(Form::AsTheyAre);
}

#[test]
fn they_do_where_no_flag_says_what_failed() {
    at_least_93_in_100_are_right_with_at_most_one_false_stop(Form::WithoutFlags);
}

#[test]
fn ids_times_and_colours_change_nothing() {
    at_least_93_in_100_are_right_with_at_most_one_false_stop(Form::WithNoise);
}

/// The limits of the gateway are looser: what is work for the others is work for them.
#[test]
fn work_is_work_at_the_limits_of_the_gateway() {
    let (guard, classifier) = (gateway(), classifier());
    for case in cases().iter().filter(|case| case.expect.stop_after.is_none()) {
        for form in [Form::AsTheyAre, Form::WithoutFlags, Form::WithNoise] {
            let (stopped, _) = play(case, form, &guard, &classifier, &[]);
            assert_eq!(stopped, None, "{} {}", case.id, case.kind);
        }
    }
}
