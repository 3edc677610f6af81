//! What is a loop and what is work, in small stories.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::*;
use crate::classify::Rules;

static CLASSIFIER: LazyLock<Classifier> =
    LazyLock::new(|| Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled()));

fn now() -> Zoned {
    jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)
}

fn ok<'a>(tool: &'a str, args: &'a str, output: &'a str) -> Call<'a> {
    Call { tool, args, output, is_error: Some(false), ..Call::default() }
}

fn bad<'a>(tool: &'a str, args: &'a str, output: &'a str) -> Call<'a> {
    Call { is_error: Some(true), ..ok(tool, args, output) }
}

fn guard() -> &'static Guard {
    static GUARD: LazyLock<Guard> = LazyLock::new(|| Guard::new(GuardPolicy::source()).unwrap());
    &GUARD
}

fn judge(calls: &[Call<'_>]) -> Judgement {
    guard().judge(calls, &CLASSIFIER, &now())
}

fn judge_with(policy: GuardPolicy, calls: &[Call<'_>]) -> Judgement {
    Guard::new(policy).unwrap().judge(calls, &CLASSIFIER, &now())
}

/// The verdict after each call.
fn verdicts(calls: &[Call<'_>]) -> String {
    let letter = |end: usize| match judge(&calls[..end]).verdict {
        Verdict::Pass => '.',
        Verdict::Note => 'n',
        Verdict::Stop => 'S',
    };
    (1..=calls.len()).map(letter).collect()
}

fn rule(calls: &[Call<'_>]) -> Option<Rule> {
    judge(calls).gravest().map(|finding| finding.rule)
}

#[test]
fn the_second_similar_failure_is_noted_and_the_third_stops() {
    let calls = [
        bad("run_code", r#"{"code":"import pandas"}"#, "ModuleNotFoundError: No module named 'pandas'"),
        bad("run_code", r#"{"code":"import pandas as pd"}"#, "ModuleNotFoundError: No module named 'pandas'"),
        bad(
            "run_code", r#"{"code":"from pandas import x"}"#, "ModuleNotFoundError: No module named 'pandas'",
        ),
    ];
    assert_eq!(verdicts(&calls), ".nS");
    let judgement = judge(&calls);
    let finding = judgement.gravest().unwrap();
    assert_eq!((finding.rule, finding.count, finding.limit), (Rule::SimilarErrors, 3, 3));
    assert_eq!(finding.entries, [0, 1, 2]);
    assert_eq!(finding.category.as_deref(), Some("missing_module"));
    assert_eq!(finding.fingerprint.text, "modulenotfounderror: no module named <*>");
    assert!(finding.fingerprint.masks.contains(&Mask::Name));
    assert_eq!(finding.fault().kind, crate::fault::Kind::ToolLoop);
}

#[test]
fn several_tools_with_one_cause_count_together() {
    let calls = [
        bad("web_fetch", r#"{"url":"https://a.example/x"}"#, "getaddrinfo ENOTFOUND a.example"),
        bad(
            "bash", r#"{"command":"curl https://a.example/x"}"#,
            "curl: (6) Could not resolve host: a.example",
        ),
        bad(
            "run_code", r#"{"code":"requests.get('https://a.example/x')"}"#,
            "socket.gaierror: [Errno -2] Name or service not known",
        ),
    ];
    assert_eq!(verdicts(&calls), ".nS");
    assert_eq!(judge(&calls).findings[0].tools.len(), 3);
}

#[test]
fn other_causes_of_one_category_do_not() {
    let calls = [
        bad("http", r#"{"url":"https://a.example/x"}"#, "getaddrinfo ENOTFOUND a.example"),
        bad("http", r#"{"url":"https://b.example/x"}"#, "connect ECONNREFUSED 127.0.0.1:80"),
        bad("http", r#"{"url":"https://c.example/x"}"#, "HTTP 502 Bad Gateway"),
    ];
    assert_eq!(verdicts(&calls), "...");
}

#[test]
fn reading_makes_nothing_new_and_an_edit_gives_more_room() {
    let test = || bad("bash", r#"{"command":"npm test"}"#, "1 failed\nExpected 3, received 4");
    let with_a_read = [test(), test(), ok("read_file", r#"{"path":"a"}"#, "x"), test()];
    assert_eq!(verdicts(&with_a_read), ".n.S");
    let edit = |args: &'static str| ok("edit_file", args, "updated");
    let edited = [
        test(),
        edit(r#"{"path":"a","n":1}"#),
        test(),
        edit(r#"{"path":"a","n":2}"#),
        test(),
        edit(r#"{"path":"a","n":3}"#),
        test(),
        edit(r#"{"path":"a","n":4}"#),
        test(),
    ];
    assert_eq!(verdicts(&edited), "....n.n.S", "but not without end");
}

#[test]
fn another_name_after_a_change_is_progress() {
    let mut calls = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        calls.push((
            r#"{"command":"python x.py"}"#,
            format!("ModuleNotFoundError: No module named '{name}'"),
            true,
        ));
        calls.push((r#"{"command":"pip install x"}"#, format!("Successfully installed {name}"), false));
    }
    let calls: Vec<Call<'_>> = calls
        .iter()
        .map(|(args, output, error)| Call { is_error: Some(*error), ..ok("bash", args, output) })
        .collect();
    assert!(!verdicts(&calls).contains('S'), "{}", verdicts(&calls));
}

#[test]
fn the_same_words_from_another_file_after_an_edit_are_progress() {
    let outputs: Vec<String> = (0..7)
        .map(|at| {
            format!("error[E0308]: mismatched types\n --> src/m{at}.rs:3:9\nerror: could not compile `x`")
        })
        .collect();
    let edits: Vec<String> = (0..7).map(|at| format!(r#"{{"path":"src/m{at}.rs","new":"y"}}"#)).collect();
    let check = r#"{"command":"cargo check"}"#;
    let calls: Vec<Call<'_>> = outputs
        .iter()
        .zip(&edits)
        .flat_map(|(output, edit)| [bad("bash", check, output), ok("edit_file", edit, "updated")])
        .collect();
    assert!(!verdicts(&calls).contains('S'), "{}", verdicts(&calls));
}

#[test]
fn a_success_on_the_same_thing_ends_the_row_and_one_elsewhere_takes_others_out() {
    let fetch = |url: &'static str| bad("web_fetch", url, "HTTP 404 Not Found");
    let good = |url: &'static str| ok("web_fetch", url, "<html>page</html>");
    let (a, b, c, d, e) =
        (r#"{"url":"a"}"#, r#"{"url":"b"}"#, r#"{"url":"c"}"#, r#"{"url":"d"}"#, r#"{"url":"e"}"#);
    assert_eq!(verdicts(&[fetch(a), fetch(a), good(a), fetch(a), fetch(a)]), ".n..n");
    assert_eq!(verdicts(&[fetch(a), good(b), fetch(c), good(d), fetch(e)]), ".....", "a check of links");
    assert_eq!(verdicts(&[fetch(a), good(b), fetch(a), good(d), fetch(a)]), "..n.S", "the same page");
}

#[test]
fn falling_counts_are_progress_and_standing_ones_are_not() {
    let calls = |counts: &[u32]| {
        let outputs: Vec<String> = counts.iter().map(|count| format!("Found {count} errors.")).collect();
        let calls: Vec<Call<'_>> =
            outputs.iter().map(|output| bad("bash", r#"{"command":"tsc"}"#, output)).collect();
        verdicts(&calls)
    };
    assert_eq!(calls(&[12, 7, 3, 1]), "....");
    assert_eq!(calls(&[12, 12, 12]), ".nS");
    assert_eq!(calls(&[12, 13, 15]), ".nS", "growing is no progress");
}

#[test]
fn parallel_failures_are_one_attempt() {
    let call = |batch| Call { batch: Some(batch), ..bad("http", r#"{"url":"u"}"#, "connection refused") };
    assert_eq!(verdicts(&[call(0), call(0), call(0), call(0), call(1), call(1), call(2)]), "....nnS");
}

#[test]
fn of_parallel_failures_that_sound_alike_each_is_judged() {
    let test = |output| Call { batch: Some(2), ..bad("bash", r#"{"command":"npm test"}"#, output) };
    let before = [
        Call { batch: Some(0), ..bad("bash", r#"{"command":"npm test"}"#, "2 failed, 5 passed") },
        Call { batch: Some(1), ..ok("edit_file", r#"{"path":"x"}"#, "updated") },
        Call { batch: Some(1), ..bad("bash", r#"{"command":"npm test"}"#, "2 failed, 5 passed") },
    ];
    let then = |one, other| judge(&[&before[..], &[test(one), test(other)]].concat()).findings;
    let (two, three) = ("2 failed, 5 passed", "3 failed, 4 passed");
    let counts = |findings: Vec<Finding>| {
        let mut all: Vec<_> =
            findings.into_iter().map(|found| (found.rule, found.count, found.entries.len())).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(counts(then(two, three)), counts(then(three, two)), "their order means nothing");
}

#[test]
fn generic_failures_are_equal_only_for_one_tool() {
    let calls = [
        bad("bash", r#"{"command":"make a"}"#, "exit code 1"),
        bad("bash", r#"{"command":"tox b"}"#, "exit code 1"),
        bad("bash", r#"{"command":"lint c"}"#, "exit code 1"),
    ];
    assert_eq!(verdicts(&calls), "...");
    let same = bad("bash", r#"{"command":"make a"}"#, "exit code 1");
    assert_eq!(verdicts(&[same, same, same]), ".nS");
}

#[test]
fn eight_failures_of_any_kind_in_a_row_stop() {
    let outputs = [
        "SyntaxError: invalid syntax", "TypeError: int + str", "KeyError: 'a'", "HTTP 404 Not Found",
        "No such file or directory", "AttributeError: x", "ZeroDivisionError: division by zero",
        "IndexError: out of range",
    ];
    let calls: Vec<Call<'_>> = outputs.iter().map(|output| bad("run_code", "{}", output)).collect();
    assert_eq!(verdicts(&calls), ".....nnS");
    assert_eq!(rule(&calls), Some(Rule::AnyErrors));
}

#[test]
fn the_same_call_with_the_same_answer_stops_at_the_fifth() {
    let call = ok("read_file", r#"{"path":"a"}"#, "same text");
    assert_eq!(verdicts(&[call; 6]), "..nnSS");
    let moving: Vec<String> = (0..8).map(|at| format!("line {at}")).collect();
    let calls: Vec<Call<'_>> = moving.iter().map(|text| ok("gdb", r#"{"command":"next"}"#, text)).collect();
    assert_eq!(verdicts(&calls), "........");
}

#[test]
fn pauses_make_it_polling() {
    let look = ok("bash", r#"{"command":"ls out"}"#, "");
    let pause = ok("bash", r#"{"command":"sleep 5"}"#, "");
    let calls: Vec<Call<'_>> = std::iter::repeat_n([look, pause], 9).flatten().collect();
    assert!(!verdicts(&calls).contains('S'));
    let waiting = ok("get_job", r#"{"id":1}"#, r#"{"state":"running"}"#);
    assert_eq!(verdicts(&[waiting; 10]), "........nS");
}

#[test]
fn circles_of_two_and_three_stop_after_three_rounds() {
    let (a, b, c) = (
        ok("read_file", r#"{"path":"a"}"#, "A"),
        ok("read_file", r#"{"path":"b"}"#, "B"),
        ok("grep", r#"{"pattern":"c"}"#, "C"),
    );
    assert_eq!(verdicts(&[a, b, a, b, a, b]), "...nnS");
    assert_eq!(verdicts(&[a, b, c, a, b, c, a, b, c]), ".....nnnS");
    assert_eq!(rule(&[a, b, a, b, a, b]), Some(Rule::Cycle));
}

#[test]
fn reworded_searches_without_an_answer_stop_and_a_sweep_over_files_goes_on() {
    let args: Vec<String> = (0..8).map(|at| format!(r#"{{"q":"word {at}"}}"#)).collect();
    let outputs: Vec<String> = (0..8).map(|at| format!("No results found for 'word {at}'")).collect();
    let calls: Vec<Call<'_>> =
        args.iter().zip(&outputs).map(|(args, output)| ok("web_search", args, output)).collect();
    assert_eq!(verdicts(&calls), "....nnSS");
    let args: Vec<String> = (0..10).map(|at| format!(r#"{{"pattern":"x","path":"f{at}"}}"#)).collect();
    let sweep: Vec<Call<'_>> = args.iter().map(|args| ok("grep", args, "No matches found")).collect();
    assert_eq!(verdicts(&sweep), "..........");
    let made: Vec<Call<'_>> = args.iter().map(|args| ok("write_file", args, "")).collect();
    assert_eq!(verdicts(&made), "..........", "a change need not say anything");
}

#[test]
fn depth_counts_calls_and_reports_responses() {
    let args: Vec<String> = (0..24).map(|at| format!(r#"{{"path":"f{at}"}}"#)).collect();
    let calls: Vec<Call<'_>> = (0u32..)
        .zip(&args)
        .map(|(at, args)| Call { batch: Some(at / 4), ..ok("read_file", args, args) })
        .collect();
    assert_eq!(verdicts(&calls), format!("{}nSSSS", ".".repeat(19)));
    let judgement = judge(&calls);
    assert_eq!(judgement.reach, Reach { calls: 24, responses: 6, widest: 4 });
    assert_eq!(judgement.gravest().unwrap().fault().kind, crate::fault::Kind::CallDepthExceeded);
}

#[test]
fn width_is_bounded() {
    let args: Vec<String> = (0..17).map(|at| format!(r#"{{"path":"f{at}"}}"#)).collect();
    let calls: Vec<Call<'_>> =
        args.iter().map(|args| Call { batch: Some(0), ..ok("read_file", args, args) }).collect();
    assert_eq!(verdicts(&calls), format!("{}nS", ".".repeat(15)));
    assert_eq!(rule(&calls), Some(Rule::Width));
}

#[test]
fn a_new_user_turn_always_passes() {
    let call =
        |turn| Call { turn, ..bad("bash", r#"{"command":"git push"}"#, "Permission denied (publickey).") };
    assert_eq!(verdicts(&[call(0), call(0), call(0), call(1), call(1), call(1)]), ".nS.nS");
}

#[test]
fn what_the_user_wrote_last_counts_even_before_the_first_call() {
    let call = bad("bash", r#"{"command":"git push"}"#, "Permission denied (publickey).");
    let guard = Guard::new(GuardPolicy::source()).unwrap();
    let at = |turn| guard.judge_in(turn, &[call; 3], &CLASSIFIER, &now()).verdict;
    assert_eq!((at(0), at(1)), (Verdict::Stop, Verdict::Pass));
}

#[test]
fn a_replay_says_what_was_said_at_the_time() {
    let call = |turn, batch| Call {
        turn,
        batch,
        ..bad("bash", r#"{"command":"git push"}"#, "Permission denied (publickey).")
    };
    let calls = [call(0, None), call(1, Some(0)), call(1, Some(1)), call(1, Some(1)), call(1, Some(2))];
    let guard = Guard::new(GuardPolicy::source()).unwrap();
    let judgements = guard.replay(&calls, &CLASSIFIER, &now());
    let verdicts: Vec<(usize, Verdict)> =
        judgements.iter().map(|(index, judgement)| (*index, judgement.verdict)).collect();
    assert_eq!(verdicts, [(3, Verdict::Note), (4, Verdict::Stop)]);
    assert_eq!(judgements[0].1, guard.judge(&calls[..4], &CLASSIFIER, &now()));
    assert_eq!(judgements[1].1, guard.judge(&calls, &CLASSIFIER, &now()));
}

#[test]
fn observe_reports_and_never_acts() {
    let call = bad("bash", r#"{"command":"git push"}"#, "Permission denied (publickey).");
    let policy = GuardPolicy { observe: true, ..GuardPolicy::source() };
    let judgement = judge_with(policy, &[call; 3]);
    assert_eq!((judgement.verdict, judgement.would), (Verdict::Pass, Verdict::Stop));
    assert_eq!(judgement.findings[0].entries, [0, 1, 2]);
}

#[test]
fn rules_and_tools_can_be_switched() {
    let call = bad("bash", r#"{"command":"git push"}"#, "Permission denied (publickey).");
    let with = |edit: &dyn Fn(&mut GuardPolicy)| {
        let mut policy = GuardPolicy::source();
        edit(&mut policy);
        judge_with(policy, &[call; 5]).verdict
    };
    assert_eq!(with(&|_| {}), Verdict::Stop);
    assert_eq!(
        with(&|policy| policy.similar_errors = RulePolicy::note(3)),
        Verdict::Stop,
        "same_call is still on"
    );
    let free = BTreeMap::from([("bash".to_owned(), ToolPolicy::free())]);
    assert_eq!(with(&|policy| policy.tools.clone_from(&free)), Verdict::Pass);
    let patient =
        ToolPolicy { effect: None, rules: BTreeMap::from([(Rule::SimilarErrors, RulePolicy::stop(6))]) };
    let tools = BTreeMap::from([("bash".to_owned(), patient)]);
    assert_eq!(judge_with(GuardPolicy { tools, ..GuardPolicy::source() }, &[call; 3]).verdict, Verdict::Note);
}

#[test]
fn notes_that_come_back_are_not_judged() {
    let note = format!("x\n{NOTE_MARK} The same error came back twice.");
    let one = bad("bash", r#"{"command":"a"}"#, "x");
    let other = bad("bash", r#"{"command":"a"}"#, &note);
    let finding = |calls: &[Call<'_>]| judge(calls).findings[0].fingerprint.clone();
    assert_eq!(finding(&[one, one]), finding(&[one, other]));
}

#[test]
fn what_is_shown_is_redacted_and_bounded() {
    let output = format!("error: bad key sk-abcdefghijklmnopqrstuvwx1234567890 {}", "x ".repeat(5000));
    let call = bad("http", r#"{"url":"u","token":"sk-abcdefghijklmnopqrstuvwx1234567890"}"#, &output);
    let judgement = judge(&[call; 3]);
    let text = format!("{judgement:?}");
    assert!(!text.contains("sk-abc"), "{text}");
    assert!(text.len() < 6000);
}

#[test]
fn only_the_last_calls_are_read_and_all_are_counted() {
    let call = |batch| Call { batch: Some(batch), ..bad("bash", r#"{"command":"a"}"#, "x: not found") };
    let calls: Vec<Call<'_>> = (0..100_000).map(call).collect();
    let policy = GuardPolicy { depth: RulePolicy::OFF, ..GuardPolicy::source() };
    let guard = Guard::new(policy).unwrap();
    let turn = guard.turn(&calls, &CLASSIFIER, &now());
    assert_eq!(turn.digests().len(), LOOK_BACK);
    assert_eq!((turn.reach().calls, turn.reach().responses), (100_000, 100_000));
    let judgement = guard.assess(&turn);
    assert_eq!(judgement.gravest().unwrap().entries.last(), Some(&99_999));
    assert!(judgement.findings.iter().all(|finding| finding.entries.len() <= MAX_ENTRIES));
}

/// A mask inside a secret would hide it from the redactor.
/// Of a long text only the beginning is read: a secret at the cut is left out whole.
#[test]
fn a_long_text_shows_no_half_of_a_secret() {
    let secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    for fill in ["x ", "\"a\",", "z"] {
        for offset in 0..120 {
            let head = fill.repeat(2040 / fill.len());
            let pad = "y".repeat(offset);
            let text = format!("{head}{pad} {secret} {}", fill.repeat(4000));
            let url = format!("{head}{pad}\"postgres://user:{secret}@db/x\" {}", fill.repeat(4000));
            for text in [text, url] {
                let shown = guard().read(&ok("t", "{}", &text), &CLASSIFIER, &now()).example;
                assert!(!shown.contains("sk-ant-api03-a"), "{offset}: {shown}");
            }
        }
    }
    let minified = format!("{{{}}}", r#""key":"value","#.repeat(1000));
    let shown = guard().read(&ok("t", "{}", &minified), &CLASSIFIER, &now()).example;
    assert!(shown.starts_with(r#"{"key":"value""#), "JSON without spaces is shown: {shown}");
}

#[test]
fn patterns_show_no_part_of_a_secret() {
    let long = format!("error: {} sk-ant-api03-Zq8Rt5Yw2Kp9Lm4Nb6Vc", "pad ".repeat(70));
    for (output, parts) in [
        (
            "error: invalid key sk-ant-api03-Zq8Rt5Yw2Kp-771-Lm4Nb6Vc9Xs1Df3Gh5-123-GhJkLz",
            &["lm4nb6", "ghjklz"][..],
        ),
        ("error: Authorization: Bearer abcd.12.34-9-efGHijKLmnOPqr.stUV failed", &["efghij", "stuv"]),
        ("error: password=hunter2-12-secret failed", &["hunter2", "-secret"]),
        (
            "error: token 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFU' expired",
            &["eyj", "dozjg"],
        ),
        (long.as_str(), &["sk-ant"]),
    ] {
        let judgement = judge(&[bad("http", "{}", output); 3]);
        let finding = judgement.gravest().unwrap();
        for part in parts {
            assert!(!finding.fingerprint.text.contains(part), "{part}: {}", finding.fingerprint.text);
        }
    }
}
