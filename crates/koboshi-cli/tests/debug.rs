//! `koboshi serve --debug`: the log shows each tool call that a model writes, with its check and what was repaired.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Running, koboshi};
use koboshi_testkit::Client;
use serde_json::json;

/// What the log of a gateway says while it is asked for three tool calls, streamed and not: a good one, one that can be repaired, and one that
/// cannot, after which the model writes it again.
fn log(debug: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    let routes = "routes: {good: ['sim/ok'], broken: ['sim/broken-tool-args?form=trailing-comma'], cut: ['sim/broken-tool-args?form=truncated']}\nstore: memory\n";
    std::fs::write(&config, routes).unwrap();
    let config = config.display().to_string();
    let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--config", &config];
    if debug {
        args.push("--debug");
    }
    let mut child = Running::start(koboshi(&args).stderr(Stdio::piped()));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let first = lines.find(|line| line.contains("http://")).unwrap();
    let address = first.split("http://").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    for (model, stream) in
        ["good", "broken", "cut"].into_iter().flat_map(|model| [(model, false), (model, true)])
    {
        let schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let tool = json!({"type": "function", "function": {"name": "get_weather", "parameters": schema}});
        let ask = json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "call the tool"}], "tools": [tool],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}}});
        let mut client = Client::to(address);
        client.send("POST", "/v1/chat/completions", &[], ask.to_string().as_bytes());
        let answer = client.read();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    koboshi_testkit::signal(&child, "-TERM");
    let said: Vec<String> = lines.collect();
    child.wait().unwrap();
    said.join("\n")
}

#[test]
fn debug_shows_each_tool_call_with_its_check_and_what_was_repaired() {
    let said = log(true);
    for (text, count) in [
        ("Detected functionCall: get_weather", 8),
        // Those of the good model, and the second ones of the model that had to write again.
        ("Check: valid", 4),
        ("Check: repaired (", 2),
        ("[KOBOSHI] Error: ", 2),
        ("Retry attempt 1/", 2),
    ] {
        assert_eq!(said.matches(text).count(), count, "{text}: {said}");
    }
}

#[test]
fn without_it_no_tool_call_is_logged() {
    assert!(!log(false).contains("functionCall"));
}
