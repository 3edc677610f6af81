//! More stories: what products of this kind were reported to stop wrongly, and what they were reported to miss.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::*;
use crate::classify::Rules;

/// One call of a story: tool, arguments, output, error flag.
pub(super) type StoryCall = (&'static str, String, String, Option<bool>);

pub(super) fn ok(tool: &'static str, args: impl Into<String>, output: impl Into<String>) -> StoryCall {
    (tool, args.into(), output.into(), Some(false))
}

pub(super) fn bad(tool: &'static str, args: impl Into<String>, output: impl Into<String>) -> StoryCall {
    (tool, args.into(), output.into(), Some(true))
}

pub(super) fn sh(command: &str) -> String {
    format!(r#"{{"command":"{command}"}}"#)
}

pub(super) fn path(path: &str) -> String {
    format!(r#"{{"path":"{path}"}}"#)
}

/// The index of the first stop, with its rule.
fn first_stop(story: &[StoryCall]) -> Option<(usize, Rule)> {
    static CLASSIFIER: LazyLock<Classifier> =
        LazyLock::new(|| Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled()));
    // Long stories are judged too.
    static GUARD: LazyLock<Guard> = LazyLock::new(|| {
        Guard::new(GuardPolicy { depth: RulePolicy::OFF, ..GuardPolicy::source() }).unwrap()
    });
    let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let mut turn = Turn::new();
    for (at, (tool, args, output, is_error)) in story.iter().enumerate() {
        let call = Call { tool, args, output, is_error: *is_error, ..Call::default() };
        turn.push(GUARD.read(&call, &CLASSIFIER, &now));
        let judgement = GUARD.assess(&turn);
        if judgement.verdict == Verdict::Stop {
            return judgement.gravest().map(|finding| (at, finding.rule));
        }
    }
    None
}

#[track_caller]
pub(super) fn passes(story: &[StoryCall]) {
    assert_eq!(first_stop(story), None);
}

#[track_caller]
pub(super) fn stops(story: &[StoryCall], at: usize) {
    assert_eq!(first_stop(story).map(|(at, _)| at), Some(at), "{:?}", first_stop(story));
}

/// The same story for numbers from 0.
pub(super) fn each(count: usize, calls: impl Fn(usize) -> Vec<StoryCall>) -> Vec<StoryCall> {
    (0..count).flat_map(calls).collect()
}

#[test]
fn clicking_through_pages_is_work() {
    passes(&each(8, |at| {
        vec![
            ok("browser_click", r#"{"ref":"next"}"#, "ok"),
            ok("browser_snapshot", "{}", format!("page {at}")),
        ]
    }));
    let stuck = each(8, |_| {
        vec![ok("browser_click", r#"{"ref":"next"}"#, "ok"), ok("browser_snapshot", "{}", "page 1")]
    });
    stops(&stuck, 5);
}

#[test]
fn waiting_for_a_server_in_one_command_is_polling() {
    let up = "curl: (7) Failed to connect to localhost port 3000: Connection refused";
    let mut story = each(4, |_| vec![bad("bash", sh("sleep 2 && curl localhost:3000"), up)]);
    story.push(ok("bash", sh("sleep 2 && curl localhost:3000"), "hello"));
    passes(&story);
    stops(&each(4, |_| vec![bad("bash", sh("curl localhost:3000"), up)]), 2);
}

#[test]
fn listing_many_empty_folders_is_work() {
    passes(&each(9, |at| vec![ok("bash", sh(&format!("ls src/m{at}")), "")]));
    stops(&each(9, |at| vec![ok("bash", sh(&format!("grep -rn foo{at} .")), "")]), 6);
}

#[test]
fn fewer_failing_tests_are_progress_and_the_same_are_not() {
    let test = |failed: usize| {
        bad(
            "bash",
            sh("pytest -q"),
            format!("FAILED t.py::test_a - assert 1 == 2\n{failed} failed, 9 passed in 0.{failed}1s"),
        )
    };
    let edit = |at: usize| ok("edit_file", format!(r#"{{"path":"a.py","n":{at}}}"#), "updated");
    passes(&each(7, |at| vec![test(9 - at), edit(at)]));
    stops(&each(7, |at| vec![test(3), edit(at)]), 8);
    let lint =
        |all: usize| bad("bash", sh("npx eslint ."), format!("✖ {all} problems ({all} errors, 0 warnings)"));
    passes(&each(5, |at| vec![lint(40 - at * 7)]));
}

#[test]
fn edits_of_many_files_are_work_whatever_is_said_of_them() {
    let report = "The file has been updated. Here is the result of running `cat -n` on a snippet of the edited file, with a few lines of context around the place that was edited so that you can check that the indentation is right and nothing was lost.";
    passes(&each(15, |at| vec![ok("edit_file", path(&format!("f{at}.rs")), report)]));
    passes(&each(15, |at| vec![ok("bash", sh(&format!("mkdir d{at}")), "")]));
}

#[test]
fn stated_waits_are_kept_and_not_counted_as_a_loop() {
    let search = bad("web_search", r#"{"q":"a"}"#, "HTTP 429 Too Many Requests, retry after 4 s");
    let mut story = each(3, |_| vec![search.clone(), ok("bash", sh("sleep 5"), "")]);
    story.push(ok("web_search", r#"{"q":"a"}"#, "1. result"));
    passes(&story);
}

#[test]
fn builds_between_edits_may_say_the_same() {
    passes(&each(9, |at| {
        vec![
            ok("edit_file", format!(r#"{{"path":"a.rs","n":{at}}}"#), "updated"),
            ok("bash", sh("cargo build"), "Finished dev in 0.3s"),
        ]
    }));
}

#[test]
fn tools_that_are_not_there_are_one_cause() {
    let names = ["get_weather", "fetch_weather", "weather_now"];
    stops(&each(3, |at| vec![bad(names[at], "{}", format!("Unknown tool: {}", names[at]))]), 2);
}

#[test]
fn growing_timeouts_are_the_same_failure() {
    stops(
        &each(4, |at| {
            let args = format!(r#"{{"command":"make all","timeout":{}}}"#, 1000 << at);
            vec![bad("bash", args, format!("Command timed out after {}ms", 1000 << at))]
        }),
        2,
    );
}

#[test]
fn the_unread_file_that_is_read_again_and_again() {
    stops(
        &each(5, |at| {
            vec![
                bad(
                    "edit_file",
                    format!(r#"{{"path":"a.rs","old":"x{at}"}}"#),
                    "File has not been read yet. Read it first.",
                ),
                ok("read_file", path("a.rs"), "1 fn main() {}"),
            ]
        }),
        4,
    );
}

#[test]
fn three_ways_to_a_full_disk() {
    stops(
        &[
            bad("write_file", path("/a"), "ENOSPC: no space left on device, write"),
            bad("bash", sh("cp a b"), "cp: error writing 'b': No space left on device"),
            bad(
                "run_code", r#"{"code":"open('c','w').write(x)"}"#,
                "OSError: [Errno 28] No space left on device",
            ),
        ],
        2,
    );
}

#[test]
fn refusals_by_a_person_are_one_cause() {
    let commands = ["rm -r x", "git clean -fd", "find . -delete"];
    stops(
        &each(3, |at| {
            vec![bad(
                "bash",
                sh(commands[at]),
                "The user doesn't want to proceed: permission to use bash was denied.",
            )]
        }),
        2,
    );
}

#[test]
fn reworded_searches_with_the_same_hits_get_nothing_new() {
    let hits = format!(
        "1. {}\n2. {}",
        "A page about foxes and what they eat. ".repeat(5),
        "Another page. ".repeat(8)
    );
    stops(&each(9, |at| vec![ok("web_search", format!(r#"{{"q":"foxes {at}"}}"#), hits.clone())]), 6);
}

#[test]
fn japanese_messages_are_compared_too() {
    stops(
        &each(3, |at| {
            vec![bad(
                "read_file",
                path(&format!("資料{at}.txt")),
                format!("エラー: ファイル「資料{at}.txt」が見つかりません。"),
            )]
        }),
        2,
    );
    passes(&[
        bad("run", "{}", "エラー: 権限がありません"),
        bad("run", "{}", "エラー: 引数の数が違います"),
        bad("run", "{}", "エラー: 日付の形式が不正です"),
    ]);
}

#[test]
fn without_a_flag_the_text_tells() {
    let run = |output: String| ("bash", sh("make"), output, None);
    stops(
        &each(3, |at| vec![run(format!("cc: error: x{at}.c: No such file or directory\n[exit code: 1]"))]),
        2,
    );
    passes(&each(4, |at| {
        vec![(
            "bash",
            sh(&format!("git log -{at}")),
            format!("a1b2c3{at} fix: Permission denied on start\n9f8e7d6 error: handle it"),
            None,
        )]
    }));
}

#[test]
fn wrapped_compiler_errors_are_recognised_by_what_is_inside() {
    let inner = [
        "cannot find value `x` in this scope", "expected `;`, found `}`", "use of moved value: `y`",
        "unused variable `z`",
    ];
    passes(&each(4, |at| {
        let output = format!(
            "error: {}\n --> src/a.rs:{at}:1\nerror: could not compile `app` (bin \"app\") due to 1 previous error",
            inner[at]
        );
        vec![bad("bash", sh("cargo check"), output)]
    }));
}

#[test]
fn stack_traces_do_not_hide_the_same_exception() {
    let trace = |at: usize| {
        let frames: String = (0..at + 2)
            .map(|deep| {
                format!("  File \"/tmp/x{at}/m{deep}.py\", line {}, in f{deep}\n    call({deep})\n", at * 7)
            })
            .collect();
        format!("Traceback (most recent call last):\n{frames}KeyError: 'price'")
    };
    stops(&each(3, |at| vec![bad("run_code", format!(r#"{{"code":"v{at}"}}"#), trace(at))]), 2);
}

#[test]
fn a_job_that_moves_is_no_loop_and_one_that_stands_is_after_ten() {
    let job = |state: String| ok("get_job", r#"{"id":1}"#, state);
    passes(&each(15, |at| vec![job(format!("running {}%", at * 5))]));
    stops(&each(12, |_| vec![job("state: IN_PROGRESS".to_owned())]), 9);
}

#[test]
fn messages_that_only_share_their_class_are_other_failures() {
    passes(&[
        bad("run_code", r#"{"code":"a"}"#, "ValueError: could not convert string to float: 'x'"),
        bad("run_code", r#"{"code":"b"}"#, "ValueError: too many values to unpack (expected 2)"),
        bad("run_code", r#"{"code":"c"}"#, "ValueError: math domain error"),
        bad("run_code", r#"{"code":"d"}"#, "ValueError: unknown url type"),
    ]);
}

#[test]
fn searches_that_find_nothing_are_no_failures() {
    let search = |at: usize| sh(&format!("cd app && rg -n 'sym{at}|Sym{at}' src 2>/dev/null"));
    for output in ["Exit code 1", "Exit code: 1\nWall time: 0 seconds\nOutput:\n"] {
        let mut story = each(5, |at| vec![bad("bash", search(at), output)]);
        story.push(ok("bash", sh("rg -n Symbol src"), "src/a.rs:1: struct Symbol;"));
        passes(&story);
        stops(&each(9, |at| vec![bad("bash", search(at), output)]), 6);
    }
    let broken = "Exit code 2\nrg: regex parse error: unclosed group";
    stops(&each(4, |at| vec![bad("bash", search(at), broken)]), 2);
    stops(&each(4, |_| vec![bad("bash", sh("npm test"), "Exit code 1")]), 2);
}

#[test]
fn reading_through_a_pipe_or_for_two_words_is_reading() {
    for look in ["cat package.json 2>&1 | head -20", "grep -nE 'a|b' src/a.ts"] {
        let test = bad("bash", sh("npm test"), "1 failed\nExpected 3, received 4");
        stops(&each(4, |at| vec![test.clone(), ok("bash", sh(look), format!("{at}"))]), 4);
    }
    stops(&each(9, |at| vec![ok("bash", sh(&format!("grep -rnE 'foo{at}|bar{at}' .")), "")]), 6);
}

#[test]
fn waiting_longer_for_a_server_is_still_waiting() {
    let down = "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server";
    let poll = sh("sleep 10 && curl -s localhost:8080/health");
    let mut story = each(8, |_| vec![bad("bash", poll.clone(), down)]);
    story.push(ok("bash", poll.clone(), "ok"));
    passes(&story);
    stops(&each(12, |_| vec![bad("bash", poll.clone(), down)]), 9);
    let mut apart = each(8, |_| vec![bad("bash", sh("curl -s localhost:8080"), down), ok("sleep", "{}", "")]);
    apart.push(ok("bash", sh("curl -s localhost:8080"), "ok"));
    passes(&apart);
    // A pause does not install anything.
    let missing = bad("bash", sh("sleep 1 && foo"), "bash: foo: command not found");
    stops(&each(4, |_| vec![missing.clone()]), 2);
}

#[test]
fn two_reads_of_a_job_with_pauses_between_are_polling() {
    let log = |command: &str| ok("bash", sh(command), "epoch 1 step 100");
    let alive = || ok("bash", sh("ps -p 42 -o cmd"), "CMD\npython train.py");
    passes(&each(6, |_| vec![ok("bash", sh("sleep 60"), ""), log("tail -n 3 train.log"), alive()]));
    passes(&each(9, |_| vec![log("sleep 60; tail -n 3 train.log"), alive()]));
    stops(&each(9, |_| vec![log("tail -n 3 train.log"), alive()]), 5);
}

#[test]
fn other_figures_after_an_edit_are_another_failure() {
    let edit = |at: usize| ok("edit_file", format!(r#"{{"path":"m.py","n":{at}}}"#), "updated");
    let run = |output: String| bad("bash", sh("python check.py"), output);
    let tuned =
        |at: usize| vec![run(format!("AssertionError: accuracy 0.{} below 0.95", 70 + at * 3)), edit(at)];
    passes(&each(7, tuned));
    let further =
        |at: usize| vec![run(format!("E  KeyError: 'x'\n1 failed, {} passed in 0.1s", 5 + at)), edit(at)];
    passes(&each(7, further));
    let stuck = |at: usize| vec![run(format!("E  KeyError: 'x'\n1 failed, 5 passed in 0.{at}s")), edit(at)];
    stops(&each(7, stuck), 8);
    let rust = |at: usize, code: &str| {
        let output = format!(
            "thread 'a' ({at}77) panicked at src/a.rs:{at}:9:\nerror[E0308]: mismatched types\n --> src/a.rs:{at}:9\n  |\n{at} |     {code}\n  |     ^^^^^ expected `u32`, found `u64`"
        );
        vec![bad("bash", sh("cargo test"), output), edit(at)]
    };
    passes(&each(7, |at| rust(at, &format!("call_{at}(x)"))));
    stops(&each(7, |at| rust(at, "call(x)")), 8);
}

#[test]
fn a_command_that_fails_because_something_is_pending_is_polling() {
    let pending =
        "Exit code 8\nbuild\tpending\t0\thttps://ci.example/1\nlint\tpass\t12s\thttps://ci.example/2";
    let mut story = each(7, |_| vec![bad("bash", sh("sleep 30 && gh pr checks 7"), pending)]);
    story.push(ok("bash", sh("sleep 30 && gh pr checks 7"), "build\tpass\nlint\tpass"));
    passes(&story);
    stops(&each(4, |_| vec![bad("bash", sh("gh pr checks 7"), pending)]), 2);
}

#[test]
fn a_success_on_the_same_thing_ends_the_row_for_all_tools() {
    let down = "HTTP 503 Service Unavailable";
    let get = |page: &str| format!(r#"{{"url":"https://a.example/{page}"}}"#);
    passes(&[
        bad("web_fetch", get("a"), down),
        bad("web_fetch", get("b"), down),
        ok("http_get", get("c"), "hello"),
        bad("http_get", get("c"), down),
    ]);
}

/// A list of what is to be done, kept between the tries, makes no failing call new; and keeping one is no loop.
#[test]
fn plans_are_neither_changes_nor_loops() {
    let plan =
        |n: usize| ok("TodoWrite", format!(r#"{{"todos":[{{"content":"step {n}"}}]}}"#), "Todos updated");
    let failing = |_| bad("bash", sh("npm run deploy"), "deploy: no such service 'api'");
    stops(&each(6, |n| vec![failing(n), plan(n)]), 4);
    let thanks = "Todos have been modified. Keep using the list to track progress. ".repeat(6);
    let long =
        |n: usize| ok("TodoWrite", format!(r#"{{"todos":[{{"content":"step {n}"}}]}}"#), thanks.clone());
    let silent = |n: usize| ok("update_plan", format!(r#"{{"plan":[{{"step":"{n}"}}]}}"#), "");
    let read = |n: usize| ok("read_file", path(&format!("src/{n}.rs")), format!("fn f{n}() {{}}"));
    passes(&each(9, |n| vec![read(n), long(n)]));
    passes(&each(9, |n| vec![read(n), silent(n)]));
}
