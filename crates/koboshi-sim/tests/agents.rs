//! One prompt makes every agent do the same: the right tool of those it offers, one call an answer, and words at the end.
//!
//! The tools are those that Claude Code, Codex and Gemini CLI offer, as they were seen in real requests, with fewer words.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use crate::common::perform;
use bytes::Bytes;
use koboshi::models::Facts;
use koboshi_sim::{Ask, Tally, play};
use koboshi_testkit::dialect::{ReadAnswer, read_body};
use koboshi_wire::Dialect;
use koboshi_wire::any::{Edits, Request, TargetTraits};
use serde_json::{Value, json};

const PROMPT: &str = "koboshi: write notes/a.txt with It's done, then run `cat notes/a.txt`";

fn object(required: &[&str], properties: &Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// A request as the agent makes it, and how it goes on after an answer.
struct Agent {
    dialect: Dialect,
    body: Value,
}

impl Agent {
    fn claude() -> Self {
        let tools = json!([
            {"name": "Task", "input_schema": object(&["prompt"], &json!({"prompt": text()}))},
            {"name": "Bash", "description": "Runs it", "input_schema": object(&["command"], &json!({"command": text(), "timeout": {"type": "number"}, "description": text()}))},
            {"name": "Read", "input_schema": object(&["file_path"], &json!({"file_path": text()}))},
            {"name": "Write", "input_schema": object(&["file_path", "content"], &json!({"file_path": text(), "content": text()}))},
            {"name": "TodoWrite", "input_schema": object(&["todos"], &json!({"todos": {"type": "array", "items": {}}}))},
        ]);
        let body = json!({
            "model": "claude-sonnet-5", "max_tokens": 32000, "stream": true, "thinking": {"type": "enabled", "budget_tokens": 31999},
            "system": [
                {"type": "text", "text": "x-anthropic-billing-header: cc_version=2"},
                {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
            ],
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>\nkoboshi: this is no script\n</system-reminder>"}, {"type": "text", "text": PROMPT},
            ]}],
            "tools": tools,
        });
        Self { dialect: Dialect::Messages, body }
    }

    /// Codex has had several tools for a command, and one that takes a patch.
    fn codex(shell: &Value, patches: bool) -> Self {
        let mut tools = vec![shell.clone(), json!({"type": "web_search"})];
        if patches {
            tools.push(json!({"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}));
        }
        let message = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
        let body = json!({
            "model": "gpt-5.1", "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "medium", "summary": "auto"},
            "input": [message("developer", "You are an agent."), message("user", "<environment_context>\n</environment_context>"), message("user", PROMPT)],
            "tools": tools, "tool_choice": "auto", "parallel_tool_calls": false,
        });
        Self { dialect: Dialect::Responses, body }
    }

    fn gemini() -> Self {
        let declared = json!([
            {"name": "list_directory", "parametersJsonSchema": object(&["dir_path"], &json!({"dir_path": text()}))},
            {"name": "write_file", "parametersJsonSchema": object(&["file_path", "content"], &json!({"file_path": text(), "content": text()}))},
            {"name": "run_shell_command", "parametersJsonSchema": object(&["command"], &json!({"command": text(), "description": text()}))},
        ]);
        let body = json!({
            "contents": [
                {"role": "user", "parts": [{"text": "This is the context."}]}, {"role": "model", "parts": [{"text": "Got it."}]},
                {"role": "user", "parts": [{"text": PROMPT}]},
            ],
            "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
            "tools": [{"functionDeclarations": declared}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": true, "thinkingBudget": 8192}},
        });
        Self { dialect: Dialect::Gemini, body }
    }

    /// What the provider says in this dialect to the conversation as it stands.
    fn ask(&self, model: &str, dialect: Dialect) -> (ReadAnswer, Bytes) {
        let own = Bytes::from(self.body.to_string());
        let request = Request::parse(self.dialect, &own, Some(("m", true))).unwrap();
        let edits = Edits::plain("m");
        let facts = Facts::default().with(|facts| facts.reasoning = Some(true));
        let written = request.write(
            &own,
            TargetTraits { dialect, facts, prefill: true, ..TargetTraits::default() },
            &edits,
        );
        assert!(written.lacks().is_none(), "{:?}", written.left);
        let ask = Ask {
            model,
            dialect,
            stream: Some(true),
            list: false,
            body: &written.body,
            tally: Tally::default(),
        };
        let got = perform(play(&ask));
        let read_answer = read_body(dialect, true, got.body.as_bytes());
        assert!(read_answer.done && !read_answer.malformed, "{}", got.body);
        (read_answer, Bytes::from(got.body))
    }

    /// The agent has run the call of an answer.
    fn go_on(&mut self, read_answer: &ReadAnswer, nth: usize, result: &str) {
        let (name, arguments) = &read_answer.calls[0];
        let value = || serde_json::from_str::<Value>(arguments).unwrap();
        let list =
            |body: &mut Value, name: &str, more: Vec<Value>| body[name].as_array_mut().unwrap().extend(more);
        match self.dialect {
            Dialect::Messages => list(
                &mut self.body,
                "messages",
                vec![
                    json!({"role": "assistant", "content": [
                        {"type": "thinking", "thinking": read_answer.thought, "signature": read_answer.signatures.first()},
                        {"type": "tool_use", "id": format!("toolu_{nth}"), "name": name, "input": value()},
                    ]}),
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{nth}"), "content": result}]}),
                ],
            ),
            Dialect::Responses => {
                let free = name == "apply_patch";
                let id = format!("call_{nth}");
                list(
                    &mut self.body,
                    "input",
                    vec![
                        json!({"type": "reasoning", "id": format!("rs_{nth}"), "summary": [], "encrypted_content": "simR"}),
                        if free {
                            json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": arguments})
                        } else {
                            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
                        },
                        json!({"type": if free { "custom_tool_call_output" } else { "function_call_output" }, "call_id": id, "output": result}),
                    ],
                );
            }
            Dialect::Gemini => list(
                &mut self.body,
                "contents",
                vec![
                    json!({"role": "model", "parts": [{"functionCall": {"name": name, "args": value()}, "thoughtSignature": "simG"}]}),
                    json!({"role": "user", "parts": [{"functionResponse": {"id": format!("{name}-{nth}"), "name": name, "response": {"output": result}}}]}),
                ],
            ),
            Dialect::Chat => unreachable!(),
        }
    }

    /// Runs the task, and says what was called. Every answer is the same from a provider of any dialect.
    fn run(mut self) -> Vec<(String, String)> {
        let mut called = Vec::new();
        for nth in 0..5 {
            let (read_answer, _) = self.ask("ok?tools=no", self.dialect);
            for dialect in Dialect::ALL {
                let (other, _) = self.ask("ok?tools=no", dialect);
                assert_eq!(other.text, read_answer.text, "{dialect:?}");
                let plain = |read_answer: &ReadAnswer| {
                    read_answer
                        .calls
                        .iter()
                        .map(|(name, arguments)| (name.clone(), inside(arguments)))
                        .collect::<Vec<_>>()
                };
                assert_eq!(plain(&other), plain(&read_answer), "{dialect:?}");
            }
            if read_answer.calls.is_empty() {
                assert!(read_answer.text.contains(" answered: "), "{}", read_answer.text);
                return called;
            }
            assert_eq!((read_answer.calls.len(), read_answer.text.as_str()), (1, ""), "one call an answer");
            called.push(read_answer.calls[0].clone());
            self.go_on(&read_answer, nth, "fine");
        }
        panic!("no end: {called:?}");
    }
}

/// Free text stands in one field where a dialect has no place for it.
fn inside(arguments: &str) -> String {
    koboshi_wire::form::free_text::unwrapped(arguments).unwrap_or_else(|| arguments.to_owned())
}

fn called(name: &str, arguments: &Value) -> (String, String) {
    (name.to_owned(), arguments.to_string())
}

#[test]
fn claude_code_writes_and_runs() {
    assert_eq!(
        Agent::claude().run(),
        [
            called("Write", &json!({"file_path": "notes/a.txt", "content": "It's done"})),
            called("Bash", &json!({"command": "cat notes/a.txt"})),
        ]
    );
}

#[test]
fn gemini_cli_writes_and_runs() {
    assert_eq!(
        Agent::gemini().run(),
        [
            called("write_file", &json!({"file_path": "notes/a.txt", "content": "It's done"})),
            called("run_shell_command", &json!({"command": "cat notes/a.txt"})),
        ]
    );
}

#[test]
fn codex_patches_and_runs_with_whichever_tool_it_has() {
    let patch = "*** Begin Patch\n*** Add File: notes/a.txt\n+It's done\n*** End Patch\n";
    let exec = json!({"type": "function", "name": "exec_command", "strict": false, "parameters": object(&["cmd"], &json!({"cmd": text(), "yield_time_ms": {"type": "number"}}))});
    let shell = json!({"type": "function", "name": "shell", "parameters": object(&["command"], &json!({"command": {"type": "array", "items": text()}, "workdir": text()}))});
    let list = json!({"command": ["bash", "-lc", "cat notes/a.txt"]});
    for (tool, run) in [
        (&exec, called("exec_command", &json!({"cmd": "cat notes/a.txt"}))),
        (&shell, called("shell", &list)),
    ] {
        assert_eq!(Agent::codex(tool, true).run(), [("apply_patch".to_owned(), patch.to_owned()), run]);
    }
    let bare = Agent::codex(&exec, false).run();
    assert_eq!(
        bare[0],
        called("exec_command", &json!({"cmd": r"printf '%s\n' 'It'\''s done' > 'notes/a.txt'"}))
    );
}

#[test]
fn broken_arguments_of_a_script_are_mended_by_asking_again() {
    let mut agent = Agent::claude();
    let (broken, _) = agent.ask("broken-tool-args?form=python", Dialect::Messages);
    assert_eq!(broken.calls[0].0, "Write");
    assert!(serde_json::from_str::<Value>(&broken.calls[0].1).is_err(), "{broken:?}");
    // As the gateway does it: the same tool is demanded, after an exchange that says what was wrong.
    agent.body["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Write", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "These arguments cannot be read."}]}),
    ]);
    agent.body["tool_choice"] = json!({"type": "tool", "name": "Write"});
    let (again, _) = agent.ask("broken-tool-args?form=python", Dialect::Messages);
    assert_eq!(again.calls, [called("Write", &json!({"file_path": "notes/a.txt", "content": "It's done"}))]);
}

#[test]
fn without_a_tool_for_it_there_are_words() {
    let mut agent = Agent::claude();
    agent.body["tools"] =
        json!([{"name": "Read", "input_schema": object(&["file_path"], &json!({"file_path": text()}))}]);
    assert!(
        agent.ask("ok", Dialect::Messages).0.calls.is_empty(),
        "a scripted agent does only what the script says"
    );
    // Agents ask on the side, without tools: for a title, say.
    agent.body.as_object_mut().unwrap().remove("tools");
    let (read_answer, _) = agent.ask("ok", Dialect::Messages);
    assert!(read_answer.calls.is_empty() && !read_answer.text.is_empty());
}
