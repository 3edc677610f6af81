//! `koboshi guard replay`: every form of recorded runs, through the binary.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::path::PathBuf;

use common::{run, run_with, scratch};
use serde_json::{Value, json};

/// The objects that a replay prints, one a line.
fn replay(file: &str) -> Vec<Value> {
    let out = run(&["guard", "replay", file, "--format", "json"]);
    assert_eq!((out.status, out.error.as_str()), (0, ""), "{}", out.text);
    out.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A run with six equal calls is noted at the third and the fifth of them, and stopped at the sixth.
#[track_caller]
fn stopped_at_the_sixth(run: &Value, id: &str, first: u64) {
    assert_eq!((&run["id"], &run["calls"]), (&json!(id), &json!(first + 6)), "{run}");
    let at = |list: &str| -> Vec<u64> {
        run[list].as_array().unwrap().iter().map(|said| said["at"].as_u64().unwrap()).collect()
    };
    assert_eq!((at("notes"), at("stops")), (vec![first + 2, first + 4], vec![first + 5]), "{run}");
    let stop = &run["stops"][0];
    assert_eq!(stop["rule"], "same_call");
    assert!(stop["why"].as_str().unwrap().contains("6 times"), "{stop}");
    assert!(stop["turn"].is_u64());
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn corpus_run(id: &str) -> Value {
    let call = json!({"tool": "read_file", "args": {"path": "a"}, "output": "same", "is_error": false});
    json!({"id": id, "calls": vec![call; 6]})
}

#[test]
fn runs_in_the_form_of_the_corpus_are_judged_line_by_line() {
    let quiet = json!({"id": "quiet", "calls": [{"tool": "bash", "args": "ls", "output": "a"}]});
    let file = scratch("replay-corpus.jsonl", &lines(&[corpus_run("one"), quiet, corpus_run("two")]));
    let runs = replay(&file);
    assert_eq!(runs.len(), 3);
    stopped_at_the_sixth(&runs[0], "one", 0);
    assert_eq!(runs[1], json!({"id": "quiet", "calls": 1, "notes": [], "stops": []}));
    stopped_at_the_sixth(&runs[2], "two", 0);
}

#[test]
fn a_compressed_file_and_a_pipe_are_read_too() {
    const PACKED: &str = concat!(
        "fd377a585a000004e6d6b4460200210116000000742fe5a3e0020d00645d003d8889268193537f5a64944313a38ad76c",
        "310dd863729a31ef5ba495d651988a5136a05eb71ead410fbc8b8f00177eb53c0ece25e28263636b5365481b61f7f75a",
        "f70dbc7260a78865972138508e69498f7c4db96b883cae279b0c5d4b7b9e0bc9f800000077a24380afd1c26400018001",
        "8e04000061800aeab1c467fb020000000004595a",
    );
    let bytes: Vec<u8> =
        (0..PACKED.len()).step_by(2).map(|at| u8::from_str_radix(&PACKED[at..at + 2], 16).unwrap()).collect();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("replay.jsonl.xz");
    std::fs::write(&path, &bytes).unwrap();
    stopped_at_the_sixth(&replay(&path.display().to_string())[0], "packed", 0);
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let cut = run(&["guard", "replay", &path.display().to_string()]);
    assert_eq!(cut.status, 2, "{}", cut.error);
    let piped = run_with(&["guard", "replay", "-", "--format", "json"], &[], &lines(&[corpus_run("piped")]));
    stopped_at_the_sixth(&serde_json::from_str(&piped.text).unwrap(), "piped", 0);
}

/// A conversation in the dialect of OpenAI: one call, the user again, six equal calls.
fn chat() -> Vec<Value> {
    let mut messages =
        vec![json!({"role": "system", "content": "s"}), json!({"role": "user", "content": "a"})];
    for at in 0..7 {
        let call = json!({"id": format!("c{at}"), "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a\"}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": "same"}));
        if at == 0 {
            messages.push(json!({"role": "user", "content": "go on"}));
        }
    }
    messages
}

/// The same in the dialect of Anthropic.
fn anthropic() -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "a"})];
    for at in 0..7 {
        let id = format!("t{at}");
        let call = json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "a"}});
        messages.push(json!({"role": "assistant", "content": [call]}));
        let mut results = vec![json!({"type": "tool_result", "tool_use_id": id, "content": "same"})];
        if at == 0 {
            results.push(json!({"type": "text", "text": "go on"}));
        }
        messages.push(json!({"role": "user", "content": results}));
    }
    messages
}

#[test]
fn message_lists_of_openai_and_anthropic_are_read_with_their_turns() {
    for (name, messages) in [("chat", chat()), ("anthropic", anthropic())] {
        let list = scratch(&format!("replay-{name}.json"), &Value::from(messages.clone()).to_string());
        stopped_at_the_sixth(&replay(&list)[0], &format!("replay-{name}"), 1);
        let request = json!({"model": "m", "messages": messages});
        let pretty = serde_json::to_string_pretty(&request).unwrap();
        let file = scratch(&format!("replay-{name}-request.json"), &pretty);
        stopped_at_the_sixth(&replay(&file)[0], &format!("replay-{name}-request"), 1);
    }
}

#[test]
fn a_turn_of_many_calls_is_read_from_its_beginning() {
    let mut messages = vec![json!({"role": "user", "content": "a"})];
    for at in 0..700 {
        // The first six are equal.
        let path = at.max(5);
        let call = json!({"id": format!("c{at}"), "type": "function", "function": {"name": "read_file", "arguments": format!("{{\"path\":{path}}}")}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(
            json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": format!("text {path}")}),
        );
    }
    let run = &replay(&scratch("replay-long.json", &Value::from(messages).to_string()))[0];
    assert_eq!((&run["calls"], &run["stops"][0]["at"]), (&json!(700), &json!(5)), "{run}");
}

#[test]
fn rollouts_of_codex_are_one_run() {
    let item = |payload: Value| json!({"timestamp": "2026-11-15T12:00:00Z", "type": "response_item", "payload": payload});
    let said = |text: &str| {
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}))
    };
    let mut all = vec![
        json!({"type": "session_meta", "payload": {"id": "0199-codex", "cwd": "/x"}}),
        said("<environment_context>…</environment_context>"),
        said("mend it"),
        json!({"type": "event_msg", "payload": {"type": "user_message", "message": "mend it"}}),
        item(json!({"type": "reasoning", "summary": [], "encrypted_content": "x"})),
    ];
    for at in 0..6 {
        let id = format!("call_{at}");
        all.push(item(json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"bash\",\"-lc\",\"git status\"]}", "call_id": id})));
        let output = json!({"output": "clean", "metadata": {"exit_code": 0}}).to_string();
        all.push(item(json!({"type": "function_call_output", "call_id": id, "output": output})));
    }
    stopped_at_the_sixth(&replay(&scratch("rollout-1.jsonl", &lines(&all)))[0], "0199-codex", 0);
}

#[test]
fn sessions_of_claude_code_are_one_run_and_one_for_each_sub_agent() {
    let line = |kind: &str, message: Value, side: bool| json!({"type": kind, "message": message, "sessionId": "session-7", "isSidechain": side, "uuid": "u", "timestamp": "t"});
    let mut all = vec![json!({"type": "summary", "summary": "s", "leafUuid": "u"})];
    all.push(line("user", json!({"role": "user", "content": "look"}), false));
    all.push(line("user", json!({"role": "user", "content": "look"}), true));
    for at in 0..6 {
        let id = format!("toolu_{at}");
        let call = json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/a"}});
        let asked = json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant", "model": "m", "content": [call], "usage": {}});
        let told = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "same", "is_error": false}]});
        all.push(line("assistant", asked.clone(), false));
        all.push(line("user", told.clone(), false));
        if at < 2 {
            all.push(line("assistant", asked, true));
            all.push(line("user", told, true));
        }
    }
    let runs = replay(&scratch("session-7.jsonl", &lines(&all)));
    assert_eq!(runs.len(), 2);
    stopped_at_the_sixth(&runs[0], "session-7", 0);
    assert_eq!((&runs[1]["id"], &runs[1]["calls"]), (&json!("session-7#agent"), &json!(2)));
}

#[test]
fn a_bad_line_is_named_and_the_rest_is_still_read() {
    let bad = format!(
        "{}\nnonsense\n{{\"x\":1}}\n{{\"id\":\"y\",\"calls\":[1]}}\n{}\n",
        corpus_run("a"),
        corpus_run("b")
    );
    let file = scratch("replay-bad.jsonl", &bad);
    let out = run(&["guard", "replay", &file, "/there/is/none", "--format", "json"]);
    assert_eq!(out.status, 2);
    assert_eq!(out.text.lines().count(), 2, "{}", out.text);
    for part in [
        "replay-bad.jsonl:2: this is not JSON", "replay-bad.jsonl:3: this is no recorded run",
        "replay-bad.jsonl:4: `calls` cannot be read", "cannot read /there/is/none: there is no such file",
    ] {
        assert!(out.error.contains(part), "{part} in {}", out.error);
    }
    let japanese = run(&["guard", "replay", &file, "--lang", "ja"]);
    assert!(japanese.error.contains(":2: JSON ではありません"), "{}", japanese.error);
}

#[test]
fn people_read_where_and_why_and_a_sum() {
    let file = scratch("replay-text.jsonl", &lines(&[corpus_run("one")]));
    let out = run(&["guard", "replay", &file]);
    for part in [
        "one (6 calls)",
        "  note after call 3, turn 0, same_call: The same call returned the same result 3 times",
        "  stop after call 6, turn 0, same_call:",
        "1 run, 6 calls: notes in 1, stops in 1",
    ] {
        assert!(out.text.contains(part), "{part} in {}", out.text);
    }
    let japanese = run(&["guard", "replay", &file, "--lang", "ja"]);
    assert!(japanese.text.contains("停止があったのは 1 件"), "{}", japanese.text);
}

#[test]
fn limits_can_be_tried() {
    let file = scratch("replay-limits.jsonl", &lines(&[corpus_run("one")]));
    let stops = |more: &[&str]| {
        let out = run(&[&["guard", "replay", &file, "--format", "json"], more].concat());
        let run: Value = serde_json::from_str(&out.text).unwrap();
        run["stops"][0]["at"].as_u64()
    };
    assert_eq!(stops(&["--set", "same_call=3"]), Some(2));
    assert_eq!(stops(&["--set", "preset=source"]), Some(4));
    assert_eq!(stops(&["--set", "same_call=7"]), None);
    assert_eq!(stops(&["--set", "same_call.limit=3"]), Some(2), "as the config writes it");
    let unknown = run(&["guard", "replay", &file, "--set", "nonsense=3"]).error;
    let help = run(&["guard", "replay", "--help"]).text;
    for name in ["similar_errors", "any_errors", "same_call", "width", "after_changes", "window", "waiting"] {
        assert!(unknown.contains(name) && help.contains(name), "{name}: {unknown}{help}");
    }
    assert_eq!(run(&["guard", "replay", &file, "--set", "depth=3"]).status, 2);
    assert_eq!(run(&["guard", "replay", &file, "--set", "same_call=1"]).status, 2);
}

#[test]
fn an_empty_file_is_named() {
    for text in ["", "\n\n"] {
        let file = scratch("replay-empty.jsonl", text);
        let out = run(&["guard", "replay", &file]);
        assert_eq!(out.status, 2, "{}", out.text);
        assert!(out.error.contains("replay-empty.jsonl: it is empty"), "{}", out.error);
    }
    let missing = run(&["guard", "replay", "nai.json", "--lang", "ja"]);
    assert!(missing.error.contains("「nai.json」を読み取れません"), "{}", missing.error);
}
