//! Stories of real work that looks like a loop, and of loops that look like work. They hold at the lowest limits.

#![allow(clippy::indexing_slicing, reason = "helpers of tests")]

use super::stories_tests::{StoryCall, bad, each, ok, passes, path, sh, stops};

fn unflagged(tool: &'static str, args: String, output: impl Into<String>) -> StoryCall {
    (tool, args, output.into(), None)
}

/// A line of a shell with quotes and line ends in it.
fn line(command: &str) -> String {
    serde_json::json!({ "command": command }).to_string()
}

#[test]
fn pictures_that_are_not_seen_are_no_loop() {
    let scroll = || ok("computer", r#"{"action":"scroll","direction":"down"}"#, "");
    passes(&each(20, |_| vec![scroll()]));
    passes(&each(20, |_| vec![ok("browser_click", r#"{"x":1,"y":2}"#, "")]));
    passes(&each(20, |_| vec![scroll(), ok("computer", r#"{"action":"screenshot"}"#, "")]));
    passes(&each(20, |at| vec![ok("web_search", format!(r#"{{"q":"a{at}"}}"#), "")]));
}

#[test]
fn another_missing_thing_is_another_failure() {
    let names = ["killall", "pkill", "ps", "fuser", "lsof", "javac", "mvn"];
    let missing =
        |name: &str| bad("bash", sh(name), format!("Exit code 127\nbash: {name}: command not found"));
    passes(&each(7, |at| vec![missing(names[at])]));
    stops(&each(4, |_| vec![missing("javac")]), 2);
    let module = |name: &str| {
        bad("bash", sh("python a.py"), format!("Exit code 1\nModuleNotFoundError: No module named '{name}'"))
    };
    passes(&each(7, |at| vec![module(names[at])]));
    stops(&each(4, |_| vec![module("yaml")]), 2);
}

#[test]
fn a_search_that_finds_nothing_has_answered_in_every_wrapper() {
    let nothing = [
        "<returncode>1</returncode>\n<output>\n</output>", "Exit code 1",
        "Exit code 2\ngrep: lib/: No such file or directory", "{\"stdout\":\"\",\"stderr\":\"\",\"code\":1}",
    ];
    for output in nothing {
        let search = |at: usize| sh(&format!("grep -rn 'name{at}' src lib/"));
        passes(&each(6, |at| vec![bad("bash", search(at), output)]));
        passes(&each(6, |at| vec![unflagged("bash", search(at), output)]));
    }
    let xargs = |at: usize| sh(&format!("find . -name '*.py' | xargs grep -l name{at}"));
    passes(&each(6, |at| vec![bad("bash", xargs(at), "Exit code 123")]));
    let differ = |at: usize| format!("Exit code 1\n1c1\n< a{at}\n---\n> b{at}");
    passes(&each(6, |at| vec![bad("bash", sh("diff a b"), differ(at))]));
}

#[test]
fn edit_and_run_in_one_command_is_a_change() {
    let failed = |at: usize| format!("Exit code 1\nE  AssertionError: 1 == 2\n1 failed, {at} passed in 0.1s");
    passes(&each(6, |at| vec![bad("bash", sh(&format!("sed -i s/a{at}/b/ x.py && pytest -q")), failed(at))]));
    let program = |at: usize| line(&format!("cat > t.py <<'EOF'\nprint({at}); it's\nEOF\npython t.py"));
    passes(&each(4, |at| vec![bad("bash", program(at), "Exit code 1\nAssertionError")]));
    stops(&each(4, |at| vec![bad("bash", sh(&format!("pytest -q -k a{at}")), failed(0))]), 2);
}

#[test]
fn after_changes_the_whole_answer_is_compared() {
    let edit = |at: usize| ok("edit_file", format!(r#"{{"path":"a.py","n":{at}}}"#), "updated");
    let run =
        |debug: String| bad("bash", sh("python repro.py"), format!("Exit code 1\n{debug}\nValueError: bad"));
    passes(&each(9, |at| vec![run(format!("DEBUG state={at}")), edit(at)]));
    stops(&each(9, |at| vec![run("DEBUG".to_owned()), edit(at)]), 8);
}

#[test]
fn many_successes_between_failures_are_work() {
    let look = |at: usize| ok("bash", sh(&format!("sed -n {at}p a.py")), format!("line {at}"));
    let lint =
        || bad("bash", sh("mypy src"), "Exit code 1\na.py:1: error: bad type\nFound 1 error in 1 file");
    passes(&each(6, |at| vec![lint(), look(at), look(at + 100), look(at + 200), look(at + 300)]));
    let other = |at: usize| {
        bad("bash", sh("tox"), format!("Exit code 1\nerror: part {}", ["a", "b", "c", "d"][at % 4]))
    };
    passes(&each(6, |at| vec![lint(), look(at), look(at + 50), look(at + 99), other(at), look(at + 200)]));
    stops(&each(6, |at| vec![lint(), look(at)]), 4);
}

#[test]
fn commands_that_say_nothing_by_nature_are_never_barren() {
    let down = |at: usize| {
        vec![ok("bash", sh(&format!("cd dir{at}")), ""), ok("bash", sh("ls"), format!("dir{at}"))]
    };
    passes(&each(15, down));
    passes(&each(15, |at| vec![ok("bash", sh(&format!("export A{at}=1")), "")]));
}

#[test]
fn what_stands_behind_timeout_is_what_is_done() {
    let missing = |at: usize| {
        bad("bash", sh("python a.py"), format!("Exit code 1\nModuleNotFoundError: No module named 'm{at}'"))
    };
    let install =
        |at: usize| ok("bash", sh(&format!("timeout 60 pip install m{at}")), format!("installed {at}"));
    passes(&each(8, |at| vec![missing(at), install(at)]));
    passes(&each(4, |at| vec![missing(0), install(at)]));
}

#[test]
fn a_constant_acknowledgement_is_no_answer() {
    let scroll = || ok("browser_use", r#"{"action":"scroll_down"}"#, "Scrolled down by 1100 pixels");
    passes(&each(12, |_| vec![scroll()]));
    passes(&each(12, |_| vec![ok("page_down", "{}", "ok")]));
    let page = "The end of the page. ".repeat(20);
    stops(&each(12, |_| vec![ok("page_down", "{}", page.clone())]), 4);
}

#[test]
fn a_good_run_with_a_warning_in_it_is_no_failure() {
    let warned = |at: usize| {
        let output = format!("ERROR: ld.so: object 'x.so' cannot be preloaded: ignored.\nbuilt part {at}");
        unflagged("bash", sh(&format!("make part{at}")), output)
    };
    passes(&each(12, warned_one(&warned)));
    let broken = |at: usize| unflagged("bash", sh(&format!("make p{at}")), "ERROR: x.so cannot be loaded\n");
    stops(&each(4, warned_one(&broken)), 2);
}

fn warned_one(one: &dyn Fn(usize) -> StoryCall) -> impl Fn(usize) -> Vec<StoryCall> {
    |at| vec![one(at)]
}

#[test]
fn ways_out_are_never_part_of_a_loop() {
    passes(&each(9, |_| vec![ok("ask_user", r#"{"question":"Which one?"}"#, "no answer")]));
    passes(&each(9, |_| vec![bad("submit", "{}", "Error: tests fail")]));
    let refused =
        |at: usize| bad("cancel_order", format!(r#"{{"id":{at}}}"#), "Error: order cannot be cancelled");
    let mut story = each(2, |at| vec![refused(at)]);
    story.push(ok("transfer_to_human_agents", "{}", "Transfer successful"));
    passes(&story);
    story.push(refused(3));
    stops(&story, 3);
}

#[test]
fn the_same_edit_again_is_a_loop_whatever_it_shows() {
    let edit = |at: usize| ok("edit", r#"{"at":"3:3","text":"return;"}"#, "return;\n".repeat(at + 1));
    stops(&each(9, |at| vec![edit(at)]), 4);
    stops(&each(9, |at| vec![edit(at), ok("read_file", path("a"), format!("{at} lines"))]), 8);
    passes(&each(9, |at| vec![ok("edit", format!(r#"{{"at":"{at}:{at}"}}"#), "updated")]));
    let poll = |at: usize| ok("write_stdin", r#"{"session_id":1,"chars":""}"#, format!("step {at}"));
    passes(&each(9, |at| vec![poll(at)]));
}

#[test]
fn what_an_editor_does_follows_from_its_command() {
    let view = |at: usize| {
        let output = format!("Here's the result of running `cat -n` on m{at}.py:\n1\tclass M{at}");
        ok("str_replace_editor", format!(r#"{{"command":"view","path":"m{at}.py"}}"#), output)
    };
    stops(&each(60, |at| vec![view(at % 10)]), 40);
    let write =
        |at: usize| ok("str_replace_editor", format!(r#"{{"command":"insert","line":{at}}}"#), "edited");
    passes(&each(60, |at| vec![view(at % 10), write(at)]));
}
