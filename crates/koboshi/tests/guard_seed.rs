//! The design that the guard grew from (`ErrorPatternDetector`, `FunctionCallErrorHandler`, `MAX_FUNC_CALLS`), and what
//! is known to be wrong with such designs: each pitfall has its test.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::sync::LazyLock;

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{CATEGORIES, Classifier, Rules};
use koboshi::fault::Kind;
use koboshi::guard::{
    Call, CallAdvice, Guard, GuardPolicy, HISTORY, Outcome, Rule, Suggestion, Tracker, Verdict,
};

static CLASSIFIER: LazyLock<Classifier> =
    LazyLock::new(|| Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled()));
static GUARD: LazyLock<Guard> = LazyLock::new(|| Guard::new(GuardPolicy::source()).unwrap());

const FONT: &str = "findfont: Font family 'IPAexGothic' not found. Falling back to DejaVu Sans.";

fn now() -> Zoned {
    jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)
}

fn tracker() -> Tracker {
    Tracker::new(GUARD.clone())
}

fn outcome<'a>(tool: &'a str, args: &'a str, output: &'a str) -> Outcome<'a> {
    Outcome { tool, args, output, batch: None }
}

fn fail(tracker: &mut Tracker, tool: &str, args: &str, output: &str) -> CallAdvice {
    tracker.handle_function_error(&outcome(tool, args, output), &CLASSIFIER, &now())
}

fn succeed(tracker: &mut Tracker, tool: &str, args: &str, output: &str) -> CallAdvice {
    tracker.handle_function_success(&outcome(tool, args, output), &CLASSIFIER, &now())
}

fn bad<'a>(tool: &'a str, args: &'a str, output: &'a str) -> Call<'a> {
    Call { tool, args, output, is_error: Some(true), ..Call::default() }
}

fn verdict(calls: &[Call<'_>]) -> Verdict {
    GUARD.judge(calls, &CLASSIFIER, &now()).verdict
}

#[test]
fn three_similar_errors_stop_with_a_suggestion_block() {
    let mut tracker = tracker();
    assert!(!fail(&mut tracker, "run_code", "{}", FONT).stop_retrying);
    let second = fail(&mut tracker, "run_code", "{}", FONT);
    assert!(!second.stop_retrying && second.suggestion.is_none());
    assert_eq!(second.judgement.verdict, Verdict::Note, "the model gets a note before it is stopped");
    let third = fail(&mut tracker, "run_code", "{}", FONT);
    assert!(third.stop_retrying && tracker.stop_retrying());
    let suggestion = third.suggestion.unwrap();
    assert_eq!((suggestion.category.as_deref(), suggestion.count), (Some("font"), 3));
    assert!(suggestion.steps.len() >= 3 && suggestion.example.contains("findfont"));
    assert_eq!(fail(&mut tracker, "run_code", "{}", FONT).suggestion, None, "said once");
}

#[test]
fn every_category_of_the_seed_is_seen() {
    for (category, text) in [
        ("font", FONT),
        ("missing_module", "ModuleNotFoundError: No module named 'pandas'"),
        ("permission", "PermissionError: [Errno 13] Permission denied: '/etc/x'"),
        ("resource", "MemoryError: out of memory"),
        ("plotting", "_tkinter.TclError: no display name and no $DISPLAY environment variable"),
        ("file_io", "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'"),
        (
            "network",
            "requests.exceptions.ConnectionError: Failed to establish a new connection: Connection refused",
        ),
    ] {
        let mut tracker = tracker();
        for _ in 0..2 {
            assert!(!fail(&mut tracker, "run_code", "{}", text).stop_retrying, "{category}");
        }
        let handled = fail(&mut tracker, "run_code", "{}", text);
        assert_eq!(handled.suggestion.unwrap().category.as_deref(), Some(category));
    }
}

#[test]
fn the_history_keeps_the_last_ten_and_the_dump_shows_what_matched() {
    let mut tracker = tracker();
    for number in 0..25 {
        let args = format!(r#"{{"n":{number},"api_key":"sk-abcdefghijklmnopqrstuvwx{number:04}"}}"#);
        fail(&mut tracker, "run_code", &args, &format!("ValueError: wrong word {number}"));
    }
    assert_eq!(tracker.history().len(), HISTORY);
    assert_eq!(tracker.history().next().unwrap().index, 15);
    let dump = serde_json::to_string(&tracker.dump()).unwrap();
    assert!(
        dump.contains("\"stop_retrying\":true") && dump.contains("\"stopped_by\":\"similar_errors\""),
        "{dump}"
    );
    assert!(dump.contains("valueerror: wrong word <n>"), "{dump}");
    assert!(!dump.contains("sk-abc"), "{dump}");
}

#[test]
fn a_reset_forgets_everything() {
    let mut tracker = tracker();
    for _ in 0..3 {
        fail(&mut tracker, "run_code", "{}", FONT);
    }
    assert!(tracker.stop_retrying());
    tracker.reset_error_tracking();
    assert!(!tracker.stop_retrying() && tracker.history().len() == 0 && tracker.reach().calls == 0);
    assert!(!fail(&mut tracker, "run_code", "{}", FONT).stop_retrying);
}

#[test]
fn the_twenty_first_call_of_a_user_turn_stops_and_the_next_turn_begins_at_nought() {
    let mut tracker = tracker();
    for turn in 0..3 {
        for number in 0..20 {
            let args = format!(r#"{{"prompt":"cat {turn} {number}"}}"#);
            assert!(
                !succeed(&mut tracker, "generate_image", &args, &format!("image_{turn}_{number}.png"))
                    .stop_retrying
            );
        }
        assert_eq!(tracker.reach().calls, 20);
        if turn < 2 {
            tracker.user_turn();
        }
    }
    let handled = succeed(&mut tracker, "generate_image", r#"{"prompt":"one more"}"#, "image.png");
    assert!(handled.stop_retrying);
    assert_eq!(handled.suggestion.unwrap().kind, Kind::CallDepthExceeded);
}

/// 50: a category by a loose substring (`agg` in aggregate, `font` anywhere).
#[test]
fn words_inside_other_words_make_no_category() {
    for text in ["aggregate window display", "fontana.rs written", "12 fonts listed, all present"] {
        let read = Call { tool: "read_file", args: "{}", output: text, is_error: None, ..Call::default() };
        assert!(!GUARD.read(&read, &CLASSIFIER, &now()).failed(), "{text}");
    }
    // And two failures of one category that say something else are not similar.
    let calls = [
        bad("sql", r#"{"query":"a"}"#, "ERROR: column \"x\" does not exist"),
        bad("sql", r#"{"query":"b"}"#, "ERROR: aggregate functions are not allowed in WHERE"),
        bad("sql", r#"{"query":"c"}"#, "ERROR: operator does not exist: integer = text"),
    ];
    assert_eq!(verdict(&calls), Verdict::Pass);
}

/// 51: each way a network fails its own category, without a suggestion.
#[test]
fn the_network_is_one_category_and_every_category_has_steps() {
    for text in [
        "connect ECONNREFUSED 127.0.0.1:80", "getaddrinfo ENOTFOUND a.example",
        "read ECONNRESET: socket hang up",
    ] {
        let call = bad("http", r#"{"url":"u"}"#, text);
        let finding = GUARD.judge(&[call; 3], &CLASSIFIER, &now()).findings[0].clone();
        assert_eq!(finding.category.as_deref(), Some("network"), "{text}");
    }
    let mut finding =
        GUARD.judge(&[bad("x", "{}", "boom happened here"); 3], &CLASSIFIER, &now()).findings[0].clone();
    for category in CATEGORIES {
        finding.category = Some((*category).into());
        assert!(Suggestion::of(&finding, koboshi::guard::Reach::default()).steps.len() >= 3, "{category}");
    }
}

/// 52: a generic error equates unrelated errors.
#[test]
fn unknown_errors_are_similar_only_if_they_say_the_same() {
    let calls = [
        bad("frobnicate", "{}", "the blue widget objected"),
        bad("frobnicate", "{}", "a gear came loose"),
        bad("frobnicate", "{}", "we ran out of tea"),
    ];
    assert_eq!(verdict(&calls), Verdict::Pass);
    assert_eq!(verdict(&[calls[0]; 3]), Verdict::Stop);
    let many: Vec<String> = (0..8)
        .map(|at| format!("{} went wrong", ["a", "bb", "cc", "dd", "ee", "ff", "gg", "hh"][at]))
        .collect();
    let many: Vec<Call<'_>> = many.iter().map(|text| bad("frobnicate", "{}", text)).collect();
    assert_eq!(verdict(&many), Verdict::Stop, "but any errors have a limit of their own");
}

/// 53: a success does not reset; the flag is never cleared; parallel failures count three at once; a stop is for ever.
#[test]
fn successes_reset_rounds_count_and_a_stop_ends_with_the_turn() {
    let mut tracker = tracker();
    for page in 0..8 {
        let args = format!(r#"{{"url":"u{page}"}}"#);
        assert!(!fail(&mut tracker, "http", &args, "HTTP 502 Bad Gateway").stop_retrying);
        assert!(!succeed(&mut tracker, "http", &args, "HTTP 200 OK").stop_retrying);
    }
    tracker.user_turn();
    for batch in [0, 0, 0, 0] {
        let failed =
            Outcome { batch: Some(batch), ..outcome("http", r#"{"url":"v"}"#, "HTTP 502 Bad Gateway") };
        assert!(!tracker.handle_function_error(&failed, &CLASSIFIER, &now()).stop_retrying);
    }
    for batch in [1, 2] {
        let failed =
            Outcome { batch: Some(batch), ..outcome("http", r#"{"url":"v"}"#, "HTTP 502 Bad Gateway") };
        tracker.handle_function_error(&failed, &CLASSIFIER, &now());
    }
    assert!(tracker.stop_retrying());
    tracker.user_turn();
    assert!(!tracker.stop_retrying());
}

/// 53, too: several tools that fail for one cause.
#[test]
fn one_cause_counts_across_tools() {
    let calls = [
        bad("write_file", r#"{"path":"/opt/a"}"#, "EACCES: permission denied, open '/opt/a'"),
        bad("bash", r#"{"command":"touch /opt/a"}"#, "touch: cannot touch '/opt/a': Permission denied"),
        bad(
            "run_code", r#"{"code":"open('/opt/a','w')"}"#,
            "PermissionError: [Errno 13] Permission denied: '/opt/a'",
        ),
    ];
    assert_eq!(verdict(&calls), Verdict::Stop);
}

/// 54: alternating errors never trip the row.
#[test]
fn alternating_errors_stop_by_the_window() {
    let (a, b) = (
        bad("read_file", r#"{"path":"cfg"}"#, "Error: File does not exist."),
        bad("bash", r#"{"command":"app --init"}"#, "error: invalid option --init"),
    );
    assert_eq!(verdict(&[a, b, a, b]), Verdict::Note);
    let judgement = GUARD.judge(&[a, b, a, b, a], &CLASSIFIER, &now());
    assert_eq!(judgement.verdict, Verdict::Stop);
    assert_eq!(judgement.gravest().unwrap().rule, Rule::AlternatingErrors);
    assert_eq!(judgement.gravest().unwrap().entries, [0, 2, 4]);
}

/// 55: a cycle by name stops eight legal reads, and an exact hash of the arguments is beaten by trivial variation.
#[test]
fn reads_of_other_files_pass_and_trivial_variation_does_not_help() {
    let args: Vec<String> = (0..12).map(|at| format!(r#"{{"path":"src/f{at}.rs"}}"#)).collect();
    let reads: Vec<Call<'_>> = args
        .iter()
        .map(|args| Call { tool: "read_file", args, output: args, is_error: Some(false), ..Call::default() })
        .collect();
    assert_eq!(verdict(&reads), Verdict::Pass);
    let args: Vec<String> = (0..5)
        .map(|at| format!(r#"{{"command":"git{}status","timeout":{at}}}"#, " ".repeat(at + 1)))
        .collect();
    let same: Vec<Call<'_>> = args
        .iter()
        .map(|args| Call { tool: "bash", args, output: "clean", is_error: Some(false), ..Call::default() })
        .collect();
    assert_eq!(verdict(&same), Verdict::Stop);
}

/// 56: a failure by prefix or by any `success: false` in the text.
#[test]
fn the_flag_comes_first_then_the_field_then_the_words() {
    let failed = |output: &str, is_error| {
        let call = Call { tool: "x", args: "{}", output, is_error, ..Call::default() };
        GUARD.read(&call, &CLASSIFIER, &now()).failed()
    };
    assert!(!failed("Error: this is the manual of errors", Some(false)));
    assert!(failed("all fine", Some(true)));
    assert!(failed(r#"{"success": false, "error": "no"}"#, None));
    assert!(
        !failed(r#"{"ok": true, "log": "{\"success\": false}"}"#, None),
        "only the field at the top counts"
    );
}

/// 57: the depth counts responses, not calls.
#[test]
fn calls_and_responses_are_both_reported_and_width_is_capped() {
    let args: Vec<String> = (0..17).map(|at| format!(r#"{{"path":"f{at}"}}"#)).collect();
    let calls: Vec<Call<'_>> = args
        .iter()
        .map(|args| Call {
            tool: "read_file",
            args,
            output: args,
            is_error: Some(false),
            batch: Some(7),
            ..Call::default()
        })
        .collect();
    let judgement = GUARD.judge(&calls, &CLASSIFIER, &now());
    assert_eq!((judgement.reach.calls, judgement.reach.responses, judgement.reach.widest), (17, 1, 17));
    assert_eq!((judgement.verdict, judgement.gravest().unwrap().rule), (Verdict::Stop, Rule::Width));
}
