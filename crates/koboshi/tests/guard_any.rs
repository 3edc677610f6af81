//! What holds of the guard for any history: the fuzz checks for a moment, and properties of loops and work.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/guard_checks.rs"]
#[allow(clippy::expect_used, reason = "checks of a test")]
mod guard_checks;

use std::sync::LazyLock;

use guard_checks::GuardBench;
use koboshi::guard::{Call, Guard, GuardPolicy, Judgement, Rule, RulePolicy, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;

static BENCH: LazyLock<GuardBench> = LazyLock::new(GuardBench::new);

const PIECES: &[&str] = &[
    "\u{1e}", "\u{1e}bash\u{1f}", "\u{1e}read_file\u{1f}{\"path\":\"a\"}\u{1f}",
    "\u{1e}kash\u{1f}{\"command\":\"git push\"}\u{1f}", "\u{1e}jq\u{1f}{}\u{1f}", "\u{1f}", "error",
    "Error: ", "HTTP 404", "No module named 'x'", "Permission denied", "\n", "\"", "'", "`", "{", "}", "[",
    "]", ":", "12", "Found 3 errors", "/usr/lib/x.py", "line 3", "queued", "No matches found", "[]",
    "sleep 5", "Traceback (most recent call last):\n", "  File \"x.py\", line 1\n", "\u{1b}[31m",
    "sk-abcdefghijklmnopqrstuvwx", "[koboshi guard] ", "0x12ab", "https://a.example/b?c",
    "2026-11-15T12:00:00Z", "「", "」", "エラー", "can't", "\0", "\u{feff}",
];

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

/// Without a limit on depth and width, which any call counts for.
static SHALLOW: LazyLock<Guard> = LazyLock::new(|| {
    let off = RulePolicy::OFF;
    Guard::new(GuardPolicy::default().with(|policy| {
        policy.depth = off;
        policy.width = off;
    }))
    .unwrap()
});

fn judge(calls: &[Call<'_>]) -> Judgement {
    SHALLOW.judge(calls, &BENCH.classifier, &BENCH.now)
}

/// The index of the first stop.
fn first_stop(calls: &[Call<'_>]) -> Option<usize> {
    (0..calls.len()).find(|end| judge(&calls[..=*end]).verdict == Verdict::Stop)
}

/// Calls of a small world, so that they repeat.
const WORLD: &[(&str, &str, &str, Option<bool>)] = &[
    ("bash", r#"{"command":"git push"}"#, "Permission denied (publickey).", Some(true)),
    ("bash", r#"{"command":"npm test"}"#, "3 failed, 4 passed", Some(true)),
    ("bash", r#"{"command":"npm test"}"#, "2 failed, 5 passed", Some(true)),
    ("bash", r#"{"command":"npm test"}"#, "7 passed", Some(false)),
    ("run_code", r#"{"code":"import a"}"#, "ModuleNotFoundError: No module named 'a'", Some(true)),
    ("run_code", r#"{"code":"import b"}"#, "ModuleNotFoundError: No module named 'b'", None),
    ("read_file", r#"{"path":"x"}"#, "text", Some(false)),
    ("read_file", r#"{"path":"y"}"#, "No such file or directory", Some(true)),
    ("edit_file", r#"{"path":"x","old":"a"}"#, "updated", Some(false)),
    ("edit_file", r#"{"path":"x","old":"b"}"#, "old_string not found in x", Some(true)),
    ("grep", r#"{"pattern":"p"}"#, "No matches found", Some(false)),
    ("grep", r#"{"pattern":"q"}"#, "No matches found", Some(false)),
    ("get_job", r#"{"id":1}"#, r#"{"state":"running"}"#, Some(false)),
    ("bash", r#"{"command":"sleep 5"}"#, "", Some(false)),
];

fn of_world(at: usize, batch: Option<u32>) -> Call<'static> {
    let (tool, args, output, is_error) = WORLD[at];
    Call { tool, args, output, is_error, turn: 0, batch }
}

/// Attempts of one to three parallel calls.
fn attempts() -> impl Strategy<Value = Vec<Vec<usize>>> {
    vec(vec(0..WORLD.len(), 1..4), 1..14)
}

fn calls_of(attempts: &[Vec<usize>]) -> Vec<Call<'static>> {
    let batches = (0u32..).zip(attempts);
    batches.flat_map(|(batch, ats)| ats.iter().map(move |at| of_world(*at, Some(batch)))).collect()
}

/// What a judgement says, without the indexes.
fn told(judgement: &Judgement) -> Vec<(Rule, Verdict, u32, u32, usize)> {
    let told = |finding: &koboshi::guard::Finding| {
        (finding.rule, finding.verdict, finding.count, finding.limit, finding.entries.len())
    };
    let mut all: Vec<_> = judgement.findings.iter().map(told).collect();
    all.sort_unstable();
    all
}

#[test]
fn any_history_is_judged() {
    let wordy = vec(prop::sample::select(PIECES), 0..80).prop_map(|pieces| pieces.concat().into_bytes());
    let bytes = prop_oneof![vec(any::<u8>(), 0..300), wordy];
    proptest!(cases(400), |(data in bytes)| BENCH.history(&data));
}

#[test]
fn monsters_are_survived() {
    let again = |piece: &str, count| piece.repeat(count);
    for monster in [
        again("\u{1e}bash\u{1f}{}\u{1f}error: x", 400),
        again("'", 30_000),
        again("\"a\" ", 20_000),
        again("a\u{1f}", 20_000),
        again("/a", 30_000),
        again("{\"a\":", 20_000),
        again("error\n", 20_000),
        again("1 ", 30_000),
        again("1.", 30_000),
        again("a-", 30_000),
        again("::1:", 20_000),
        again("\u{1b}[", 30_000),
        format!(
            "bash\u{1f}{{\"command\":\"{}\"}}\u{1f}{}",
            again("a_b ", 20_000),
            again("a_b error ", 20_000)
        ),
    ] {
        BENCH.history(monster.as_bytes());
        BENCH.history(format!("!x\u{1f}{monster}\u{1f}{monster}").as_bytes());
        BENCH.history(
            format!("!x\u{1f}\u{1f}error: {monster}\u{1e}!x\u{1f}\u{1f}error: {monster}").as_bytes(),
        );
    }
}

#[test]
fn the_order_inside_a_batch_changes_nothing() {
    let mixed = attempts().prop_flat_map(|all| {
        let shuffled: Vec<_> = all.iter().map(|batch| Just(batch.clone()).prop_shuffle()).collect();
        (Just(all), shuffled)
    });
    proptest!(cases(300), |((all, shuffled) in mixed)| {
        prop_assert_eq!(told(&judge(&calls_of(&all))), told(&judge(&calls_of(&shuffled))));
    });
}

#[test]
fn unrelated_calls_never_bring_a_stop_forward() {
    proptest!(cases(80), |(all in vec(0..WORLD.len(), 1..12), places in vec(any::<bool>(), 12))| {
        let calls: Vec<Call<'_>> = all.iter().map(|at| of_world(*at, None)).collect();
        let args: Vec<String> = (0..calls.len()).map(|at| format!("{{\"title\":\"n{at}\"}}")).collect();
        let outputs: Vec<String> = (0..calls.len()).map(|at| format!("ticket {at} created")).collect();
        let mut more = Vec::new();
        // Where the calls stand in the longer history.
        let mut stands = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            if places[at] {
                let (args, output) = (&args[at], &outputs[at]);
                more.push(Call { tool: "create_ticket", args, output, is_error: Some(false), ..Call::default() });
            }
            stands.push(more.len());
            more.push(*call);
        }
        let before = first_stop(&calls).map(|at| stands[at]);
        let after = first_stop(&more);
        prop_assert!(after.is_none_or(|after| before.is_some_and(|before| after >= before)), "{:?} {:?}", before, after);
    });
}

#[test]
fn a_success_on_the_same_thing_ends_every_row_of_it() {
    proptest!(cases(200), |(count in 1usize..8, tool in prop::sample::select(&["http", "sql", "frob"][..]))| {
        let fail = Call { tool, args: r#"{"url":"u"}"#, output: "strange things happened", is_error: Some(true), ..Call::default() };
        let good = Call { output: "fine", is_error: Some(false), ..fail };
        let mut calls = vec![fail; count];
        calls.push(good);
        prop_assert_eq!(judge(&calls).verdict, Verdict::Pass);
        calls.push(fail);
        prop_assert_eq!(judge(&calls).verdict, Verdict::Pass, "one failure is no row");
    });
}

#[test]
fn a_new_user_turn_forgets_everything() {
    proptest!(cases(100), |(all in attempts(), next in attempts())| {
        let next: Vec<Call<'_>> = calls_of(&next).into_iter().map(|call| Call { turn: 1, ..call }).collect();
        let mut both = calls_of(&all);
        both.extend(&next);
        prop_assert_eq!(told(&judge(&both)), told(&judge(&next)));
    });
}

#[test]
fn a_stop_was_noted_before() {
    proptest!(cases(100), |(all in vec(0..WORLD.len(), 1..20))| {
        let calls: Vec<Call<'_>> = all.iter().map(|at| of_world(*at, None)).collect();
        if let Some(stop) = first_stop(&calls) {
            let noted = (0..stop).any(|end| judge(&calls[..=end]).verdict == Verdict::Note);
            prop_assert!(noted, "{:?}", all);
        }
    });
}
