//! The same changes, made by splices in a request's own dialect and through the form in another one, give the target the same request.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi::models::Facts;
use koboshi_wire::Dialect;
use koboshi_wire::any::{AttemptMode, Edits, HistoryRepair, Request, RetriedCalls, TargetTraits};
use koboshi_wire::chat::Correction;
use koboshi_wire::form::{Choice, Form, Part, Role};
use koboshi_wire::writer::WholeCall;
use serde_json::json;

use crate::common::{facts, thinking};

/// One conversation with a finished tool call, as each dialect has it.
fn body(dialect: Dialect) -> Bytes {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let body = match dialect {
        Dialect::Chat => json!({"model": "m", "stream": true, "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Kyoto?"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Kyoto\"}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema}}]}),
        Dialect::Messages => {
            json!({"model": "m", "stream": true, "max_tokens": 100, "system": "Be brief.", "messages": [
            {"role": "user", "content": "Weather in Kyoto?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Kyoto"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}]}],
            "tools": [{"name": "weather", "input_schema": schema}]})
        }
        Dialect::Responses => json!({"model": "m", "stream": true, "instructions": "Be brief.", "input": [
            {"role": "user", "content": "Weather in Kyoto?"},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Kyoto\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}],
            "tools": [{"type": "function", "name": "weather", "parameters": schema}]}),
        Dialect::Gemini => json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
            {"role": "user", "parts": [{"text": "Weather in Kyoto?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Kyoto"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": "sunny"}}}]}],
            "tools": [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": schema}]}]}),
    };
    body.to_string().into()
}

fn read(dialect: Dialect, body: &Bytes) -> Request<'_> {
    Request::parse(dialect, body, Some(("m", true))).unwrap()
}

/// The form of what a target gets.
fn sent(from: Dialect, to: Dialect, edits: &Edits<'_>, look: impl FnOnce(&Form<'_>)) {
    let body = body(from);
    let to = TargetTraits { dialect: to, prefill: true, facts: thinking("other"), ..TargetTraits::default() };
    let written = read(from, &body).write(&body, to, edits);
    assert_eq!(written.lacks(), None, "{from:?} to {to:?}");
    look(&read(to.dialect, &written.body).form());
}

fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    Dialect::ALL.into_iter().flat_map(|from| Dialect::ALL.map(|to| (from, to)))
}

/// What is known of a model with these limits.
fn limited(output: Option<u64>, window: Option<u64>) -> Facts {
    Facts::default().with(|facts| (facts.max_output_tokens, facts.context_window) = (output, window))
}

const PLAIN: Edits<'static> = Edits { include_usage: true, ..Edits::plain("other") };

fn texts(form: &Form<'_>) -> Vec<(Role, String)> {
    let mut said = Vec::new();
    for turn in &form.turns {
        for part in &turn.parts {
            said.push((
                turn.role,
                match part {
                    Part::Text(text) => text.to_string(),
                    Part::Call(call) => {
                        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
                        format!("{}{arguments}", call.name)
                    }
                    Part::Outcome(outcome) => outcome.text().unwrap_or_default().into_owned(),
                    other => format!("{other:?}"),
                },
            ));
        }
    }
    said
}

#[test]
fn a_conversation_is_the_same_in_every_dialect() {
    for (from, to) in pairs() {
        sent(from, to, &PLAIN, |form| {
            assert_eq!(form.system, ["Be brief."], "{from:?} {to:?}");
            let wanted = [
                (Role::User, "Weather in Kyoto?".to_owned()),
                (Role::Assistant, "weather{\"city\":\"Kyoto\"}".to_owned()),
                (Role::User, "sunny".to_owned()),
            ];
            assert_eq!(texts(form), wanted, "{from:?} {to:?}");
            assert_eq!(form.tools[0].name, "weather");
            if to != Dialect::Gemini {
                assert_eq!(form.model, "other", "Gemini has the model in its path");
            }
        });
    }
}

#[test]
fn notes_closings_and_beginnings_arrive_in_every_dialect() {
    for (from, to) in pairs() {
        let edits =
            Edits { note: Some("[note]"), close: true, mode: AttemptMode::Prefill("So far"), ..PLAIN };
        sent(from, to, &edits, |form| {
            let said = texts(form);
            assert!(
                said[2].1.starts_with("sunny") && said[2].1.ends_with("[note]"),
                "{from:?} {to:?} {said:?}"
            );
            assert_eq!(said[3], (Role::Assistant, "So far".to_owned()), "{from:?} {to:?}");
            assert_eq!(form.choice, Choice::Never, "{from:?} {to:?}");
        });
    }
}

#[test]
fn a_call_that_is_to_be_made_again_is_asked_for_in_every_dialect() {
    let call =
        WholeCall { id: "call_2", name: "weather", arguments: "{\"city\": oops", ..WholeCall::default() };
    let broken = [Correction { call, correction: "no JSON" }];
    let edits = Edits { mode: AttemptMode::Redo(RetriedCalls { broken: &broken, tool: "weather" }), ..PLAIN };
    for (from, to) in pairs() {
        sent(from, to, &edits, |form| {
            let said = texts(form);
            assert_eq!(said.len(), 5, "{from:?} {to:?} {said:?}");
            assert!(said[3].1.starts_with("weather{"), "{said:?}");
            assert_eq!(said[4], (Role::User, "no JSON".to_owned()), "{from:?} {to:?}");
            assert_eq!(form.choice, Choice::Tool("weather".into()), "{from:?} {to:?}");
            assert!(to == Dialect::Gemini || !form.stream, "{from:?} {to:?}");
        });
    }
}

#[test]
fn every_dialect_says_the_same_of_a_request() {
    for dialect in Dialect::ALL {
        let body = body(dialect);
        let request = read(dialect, &body);
        assert_eq!(request.dialect(), dialect);
        assert_eq!((request.model(), request.stream(), request.turn()), ("m", true, 1), "{dialect:?}");
        assert_eq!(request.last_user_text().as_deref(), Some("Weather in Kyoto?"), "{dialect:?}");
        assert!(
            request.ends_with_tool_result() && request.has_earlier_answer() && request.has_tools(),
            "{dialect:?}"
        );
        let calls = request.calls();
        assert_eq!((calls.len(), &*calls[0].tool, &*calls[0].output), (1, "weather", "sunny"), "{dialect:?}");
        let tools = request.tools();
        assert!(tools[0].0 == "weather" && tools[0].1.is_some(), "{dialect:?}");
        let opening = std::str::from_utf8(request.opening()).unwrap();
        assert!(opening.contains("Kyoto?") && !opening.contains("sunny"), "{dialect:?} {opening}");
        assert!(request.needs().tools && !request.needs().prefill);
    }
}

/// What Claude Code sends after another vendor has answered once: thoughts without a proof, and marks for the cache all over.
fn after_another_vendor(last: &str) -> Bytes {
    format!(
        r#"{{"model":"m","max_tokens":9000,"thinking":{{"type":"enabled","budget_tokens":2000}},"future":1,"messages":[{{"role":"user","content":[{{"type":"text","text":"Go","cache_control":{{"type":"ephemeral"}}}}]}}, {{"role":"assistant","content":[ {{"type":"thinking","thinking":"a","signature":""}}, {{"type":"thinking","thinking":"own","signature":"SIG"}} ,{{"type":"text","text":"Hm"}}, {{"type":"thinking","thinking":"b"}},{{"type":"redacted_thinking","data":""}} ]}}, {{"role":"user","content":"On"}}{last}]}}"#
    )
    .into()
}

#[test]
fn thoughts_without_a_proof_are_cut_out_and_every_other_byte_stays() {
    let body = after_another_vendor("");
    let wanted = std::str::from_utf8(&body)
        .unwrap()
        .replace(r#"{"type":"thinking","thinking":"a","signature":""}, "#, "")
        .replace(r#", {"type":"thinking","thinking":"b"},{"type":"redacted_thinking","data":""}"#, "");
    let request = read(Dialect::Messages, &body);
    let to = TargetTraits { dialect: Dialect::Messages, ..TargetTraits::default() };
    let written = request.write(&body, to, &Edits { model: "m", ..PLAIN });
    assert_eq!(written.body, wanted.as_bytes(), "{written:?}");
    assert!(wanted.len() < body.len() && wanted.contains("cache_control") && wanted.contains("future"));
    assert_eq!(written.left.iter().map(|left| left.rule).collect::<Vec<_>>(), ["drop_foreign_thought"]);
    // A message of such thoughts alone cannot be empty: then it is written again, without them.
    let alone = after_another_vendor(
        r#",{"role":"assistant","content":[{"type":"thinking","thinking":"c"}]},{"role":"user","content":"x"}"#,
    );
    let written = read(Dialect::Messages, &alone).write(&alone, to, &PLAIN);
    let sent = std::str::from_utf8(&written.body).unwrap();
    assert!(!sent.contains(r#""thinking":"c""#) && !sent.contains(r#""content":[]"#), "{sent}");
}

#[test]
fn calls_of_another_vendor_in_a_loop_switch_thinking_by_budget_off() {
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}"#;
    let to = TargetTraits { dialect: Dialect::Messages, facts: thinking("other"), ..TargetTraits::default() };
    for (thought, is_off) in [
        ("", true),
        (r#"{"type":"thinking","thinking":"c"},"#, true),
        (r#"{"type":"thinking","thinking":"c","signature":"S"},"#, false),
    ] {
        let call = format!(
            r#"{{"role":"assistant","content":[{thought}{{"type":"tool_use","id":"t","name":"f","input":{{}}}}]}}"#
        );
        let body = after_another_vendor(&format!(",{call},{result}"));
        let written = read(Dialect::Messages, &body).write(&body, to, &PLAIN);
        let sent: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
        assert_eq!(sent["thinking"]["type"] == "disabled", is_off, "{thought} {sent}");
        let told = written.left.iter().any(|left| left.rule == "drop_thinking_in_tool_loop");
        assert_eq!(told, is_off, "{:?}", written.left);
        assert_eq!(sent["future"], 1);
    }
}

#[test]
fn a_limit_beyond_the_targets_is_lowered_by_name() {
    let body = body(Dialect::Messages);
    let text =
        String::from_utf8(body.to_vec()).unwrap().replace("\"max_tokens\":100", "\"max_tokens\":32000");
    let body = Bytes::from(text);
    for (output, sent, rules) in
        [(Some(4096), 4096, vec!["clamp_max_output"]), (Some(64_000), 32_000, vec![]), (None, 32_000, vec![])]
    {
        let to =
            TargetTraits { dialect: Dialect::Chat, facts: limited(output, None), ..TargetTraits::default() };
        let written = read(Dialect::Messages, &body).write(&body, to, &PLAIN);
        assert_eq!(written.left.iter().map(|left| left.rule).collect::<Vec<_>>(), rules);
        assert_eq!(read(Dialect::Chat, &written.body).max_output(), Some(sent));
    }
}

/// Where the client sets no limit it expects none, and Messages wants one.
#[test]
fn without_a_limit_an_answer_is_as_long_as_the_target_allows() {
    let body = body(Dialect::Chat);
    for (output, sent) in [(None, 8192), (Some(4096), 4096), (Some(128_000), 32_000)] {
        let to = TargetTraits {
            dialect: Dialect::Messages,
            facts: limited(output, None),
            ..TargetTraits::default()
        };
        let written = read(Dialect::Chat, &body).write(&body, to, &PLAIN);
        assert_eq!(read(Dialect::Messages, &written.body).max_output(), Some(sent), "{output:?}");
    }
    // A long conversation takes its room away, but never all of it: our count is an estimate.
    for (context, sent) in [(30_000, 20_000..27_000), (9_000, 8192..8193), (1_000_000, 32_000..32_001)] {
        let facts = limited(Some(128_000), Some(context));
        let to = TargetTraits { dialect: Dialect::Messages, facts, ..TargetTraits::default() };
        let written = read(Dialect::Chat, &body).write(&body, to, &PLAIN);
        let max = read(Dialect::Messages, &written.body).max_output().unwrap();
        assert!(sent.contains(&max), "{context}: {max}");
    }
    let text = r#"{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":70000}}}"#;
    let body = Bytes::from(text);
    for (output, sent) in [(None, 78_192), (Some(64_000), 64_000), (Some(128_000), 78_192)] {
        let facts = thinking("claude-sonnet-4-5").with(|facts| facts.max_output_tokens = output);
        let to = TargetTraits { dialect: Dialect::Messages, facts, ..TargetTraits::default() };
        let edits = Edits::plain("claude-sonnet-4-5");
        let written = read(Dialect::Gemini, &body).write(&body, to, &edits);
        let said: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
        assert_eq!(said["max_tokens"], sent, "{output:?}");
        assert!(said["thinking"]["budget_tokens"].as_u64().unwrap() < sent, "{said}");
    }
}

#[test]
fn thinking_that_a_model_cannot_do_is_dropped_by_name() {
    for (effort, thinks, rules) in [
        (Some("high"), false, vec!["drop_thinking"]),
        (Some("high"), true, vec![]),
        (Some("none"), false, vec![]),
        (None, false, vec![]),
    ] {
        let mut asked = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        if let Some(effort) = effort {
            asked["reasoning_effort"] = effort.into();
        }
        let body = Bytes::from(asked.to_string());
        let facts = facts("gemini-3-pro").with(|facts| facts.reasoning = Some(thinks));
        let to = TargetTraits { dialect: Dialect::Gemini, facts, ..TargetTraits::default() };
        let written = read(Dialect::Chat, &body).write(&body, to, &Edits::plain("gemini-3-pro"));
        assert_eq!(
            written.left.iter().map(|left| left.rule).collect::<Vec<_>>(),
            rules,
            "{effort:?} {thinks}"
        );
    }
}

/// A note of the guard is news in the request that it is added to, wherever the last result stands.
#[test]
fn a_fresh_note_reaches_the_model() {
    const NOTE: &str = "\n[koboshi guard] You have asked for this three times.";
    for from in Dialect::ALL {
        let mut asked: serde_json::Value = serde_json::from_slice(&body(from)).unwrap();
        let (list, more) = match from {
            Dialect::Gemini => ("contents", json!({"role": "user", "parts": [{"text": "Go on."}]})),
            Dialect::Responses => ("input", json!({"role": "user", "content": "Go on."})),
            _ => ("messages", json!({"role": "user", "content": "Go on."})),
        };
        asked[list].as_array_mut().unwrap().push(more);
        let body = Bytes::from(asked.to_string());
        for to in Dialect::ALL {
            let to = TargetTraits { dialect: to, ..TargetTraits::default() };
            let edits = Edits { note: Some(NOTE), ..PLAIN };
            let written = read(from, &body).write(&body, to, &edits);
            assert!(String::from_utf8_lossy(&written.body).contains("three times"), "{from:?} {to:?}");
        }
    }
}

/// Every vendor has its own rules for schemas that must be followed to the letter.
#[test]
fn strict_tools_stay_strict_only_with_their_vendor() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema, "strict": true}}]});
    let messages = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "f", "input_schema": schema, "strict": true}]});
    for (from, asked, to, strict) in [
        (Dialect::Chat, &chat, Dialect::Messages, false),
        (Dialect::Chat, &chat, Dialect::Responses, true),
        (Dialect::Messages, &messages, Dialect::Chat, false),
        (Dialect::Messages, &messages, Dialect::Responses, false),
    ] {
        let body = Bytes::from(asked.to_string());
        let to = TargetTraits {
            dialect: to,
            openai: true,
            facts: facts("claude-opus-4-6"),
            ..TargetTraits::default()
        };
        let written = read(from, &body).write(&body, to, &Edits::plain("claude-opus-4-6"));
        let sent = read(to.dialect, &written.body).form().tools[0].strict;
        assert_eq!(sent == Some(true), strict, "{from:?} {to:?}");
        assert_eq!(written.left.iter().any(|left| left.rule == "drop_strict"), !strict, "{from:?} {to:?}");
    }
}

/// The vendor stores unless told otherwise, and a client may come back for what it has stored.
#[test]
fn whether_an_answer_is_stored_is_the_clients_word_with_its_own_vendor() {
    for (said, kept) in [("", None), ("\"store\":true,", Some(true)), ("\"store\":false,", Some(false))] {
        let body = Bytes::from(format!(r#"{{"model":"m",{said}"input":"hi"}}"#));
        let edits = Edits { mend: Some(HistoryRepair::History), ..PLAIN };
        for (to, kept) in [(Dialect::Responses, kept), (Dialect::Chat, None)] {
            let to = TargetTraits { dialect: to, ..TargetTraits::default() };
            let written = read(Dialect::Responses, &body).write(&body, to, &edits);
            let sent: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
            assert_eq!(sent.get("store").map(|store| store == true), kept, "{said} {to:?}");
            let dropped = written.left.iter().any(|left| left.rule == "drop_store");
            assert_eq!(dropped, said.contains("true") && to.dialect == Dialect::Chat, "{said} {to:?}");
        }
    }
    let body = body(Dialect::Chat);
    let to = TargetTraits { dialect: Dialect::Responses, ..TargetTraits::default() };
    let written = read(Dialect::Chat, &body).write(&body, to, &PLAIN);
    assert!(
        String::from_utf8_lossy(&written.body).contains("\"store\":false"),
        "the client did not ask to store"
    );
}

/// The form has no place for these, but the vendor that they are meant for is the same.
#[test]
fn settings_of_a_vendor_stay_where_its_request_is_written_again() {
    for (dialect, name, value) in [
        (Dialect::Chat, "logit_bias", json!({"50256": -100})),
        (Dialect::Chat, "top_logprobs", json!(2)),
        (Dialect::Messages, "service_tier", json!("standard_only")),
        (Dialect::Responses, "include", json!(["reasoning.encrypted_content"])),
        (Dialect::Responses, "prompt_cache_key", json!("k")),
        (Dialect::Gemini, "safety_settings", json!([{"category": "c", "threshold": "BLOCK_NONE"}])),
        (Dialect::Gemini, "of_tomorrow", json!({"a": 1})),
    ] {
        let mut asked: serde_json::Value = serde_json::from_slice(&body(dialect)).unwrap();
        asked[name] = value.clone();
        let body = Bytes::from(asked.to_string());
        let request = read(dialect, &body);
        for edits in
            [Edits { mend: Some(HistoryRepair::History), ..PLAIN }, Edits { trim: Some(1_000_000), ..PLAIN }]
        {
            let to = TargetTraits { dialect, ..TargetTraits::default() };
            let written = request.write(&body, to, &edits);
            let sent: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
            assert_eq!(sent[name], value, "{dialect:?}");
            assert!(written.left.iter().all(|left| left.at != name), "{dialect:?}: {:?}", written.left);
        }
        let to = Dialect::ALL.into_iter().find(|other| *other != dialect).unwrap();
        let written = request.write(&body, TargetTraits { dialect: to, ..TargetTraits::default() }, &PLAIN);
        assert!(written.left.iter().any(|left| left.at == name), "{dialect:?}: {:?}", written.left);
    }
}

/// Stream options are refused where no stream is asked for; and a request whose thinking is not rewritten keeps its switch.
#[test]
fn what_is_kept_fits_what_is_asked() {
    let corrected = [Correction {
        call: WholeCall { id: "call_2", name: "weather", arguments: "{", ..WholeCall::default() },
        correction: "no",
    }];
    let redo = AttemptMode::Redo(RetriedCalls { broken: &corrected, tool: "weather" });
    for (mode, kept) in [(AttemptMode::Plain, true), (redo, false)] {
        let mut asked: serde_json::Value = serde_json::from_slice(&body(Dialect::Responses)).unwrap();
        asked["stream_options"] = json!({"include_obfuscation": false});
        let body = Bytes::from(asked.to_string());
        let to = TargetTraits { dialect: Dialect::Responses, ..TargetTraits::default() };
        let edits = Edits { mend: Some(HistoryRepair::History), mode, ..PLAIN };
        let written = read(Dialect::Responses, &body).write(&body, to, &edits);
        let sent: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
        assert_eq!((sent.get("stream_options").is_some(), sent["stream"] == true), (kept, kept));
    }
    for (dialect, kept) in [(Dialect::Chat, true), (Dialect::Messages, false)] {
        let mut asked: serde_json::Value = serde_json::from_slice(&body(dialect)).unwrap();
        asked["thinking"] = json!({"type": "of_tomorrow"});
        let body = Bytes::from(asked.to_string());
        let to = TargetTraits { dialect, ..TargetTraits::default() };
        let edits = Edits { mend: Some(HistoryRepair::History), ..PLAIN };
        let written = read(dialect, &body).write(&body, to, &edits);
        let sent: serde_json::Value = serde_json::from_slice(&written.body).unwrap();
        assert_eq!(sent.get("thinking").is_some(), kept, "{dialect:?}");
    }
}

#[test]
fn an_answer_that_was_cut_ends_for_its_calls_and_keeps_the_rest() {
    use koboshi_wire::any::answer::ended_for_calls;
    for (dialect, cut, wanted) in [
        (
            Dialect::Chat,
            r#"{"a": 1, "choices":[{"message":{"tool_calls":[]},"logprobs":{},"finish_reason": "length"},{"message":{},"finish_reason":"length"}]}"#,
            r#"{"a": 1, "choices":[{"message":{"tool_calls":[]},"logprobs":{},"finish_reason": "tool_calls"},{"message":{},"finish_reason":"length"}]}"#,
        ),
        (Dialect::Messages, r#"{"stop_reason":"max_tokens", "x":2}"#, r#"{"stop_reason":"tool_use", "x":2}"#),
        (
            Dialect::Responses,
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"web_search_call","status":"completed"},{"status":"incomplete"}]}"#,
            r#"{"status":"completed","incomplete_details":null,"output":[{"type":"web_search_call","status":"completed"},{"status":"completed"}]}"#,
        ),
        (
            Dialect::Gemini,
            r#"{"candidates":[{"finishReason":"MAX_TOKENS"}]}"#,
            r#"{"candidates":[{"finishReason":"STOP"}]}"#,
        ),
        (Dialect::Chat, "[1", "[1"),
    ] {
        let body = Bytes::from_static(cut.as_bytes());
        assert_eq!(ended_for_calls(dialect, &body), wanted.as_bytes(), "{dialect:?}");
    }
}

/// OpenAI's first reasoning models call one tool at a time and refuse the parameter.
#[test]
fn the_first_reasoning_models_get_no_parallel_tool_calls_parameter() {
    let body = body(Dialect::Chat);
    let call = WholeCall {
        id: "c",
        name: "weather",
        namespace: None,
        arguments: "{",
        free_text: false,
        signature: None,
    };
    let broken = [Correction { call, correction: "no" }];
    for (model, told) in [("o3-mini", false), ("openai/o1", false), ("gpt-4o", true), ("olmo", true)] {
        let mode = AttemptMode::Redo(RetriedCalls { broken: &broken, tool: "weather" });
        let to = TargetTraits { facts: facts(model), ..TargetTraits::default() };
        let written = read(Dialect::Chat, &body).write(&body, to, &Edits { mode, ..Edits::plain(model) });
        let sent = String::from_utf8(written.body.to_vec()).unwrap();
        assert_eq!(sent.contains("parallel_tool_calls"), told, "{model}");
    }
}
