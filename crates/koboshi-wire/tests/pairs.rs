//! One request and one stream for every pair of dialects, as they arrive on the other side: snapshots to be read.
//!
//! `KOBOSHI_GOLDEN=write` writes them again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::Dialect;
use koboshi_wire::any::{Edits, Events, Request, StreamOptions, TargetTraits, Writer};
use koboshi_wire::form::Omission;
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::writer::{Head, WholeCall};
use serde_json::{Value, json};

use crate::common;
use crate::common::golden;

fn request(dialect: Dialect) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let image = "iVBORw0KGgo=";
    match dialect {
        Dialect::Chat => {
            json!({"model": "m", "stream": true, "max_completion_tokens": 500, "temperature": 0.2, "stop": ["END"], "user": "u1", "logit_bias": {"1": 2},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{image}")}}]},
                {"role": "assistant", "content": "Let me look.", "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a.txt\"}"}},
                    {"id": "call_2", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"b.txt\"}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "alpha"},
                {"role": "tool", "tool_call_id": "call_2", "content": "beta"},
                {"role": "user", "content": "And now?"}],
            "tools": [{"type": "function", "function": {"name": "read_file", "description": "Reads.", "parameters": schema}}],
            "tool_choice": "required", "parallel_tool_calls": false})
        }
        Dialect::Messages => {
            json!({"model": "m", "stream": true, "max_tokens": 500, "temperature": 0.2, "stop_sequences": ["END"], "metadata": {"user_id": "u1"},
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}, {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.txt"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "read_file", "input": {"path": "b.txt"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "alpha"}, {"type": "tool_result", "tool_use_id": "toolu_2", "content": "beta", "is_error": true}, {"type": "text", "text": "And now?"}]}],
            "tools": [{"name": "read_file", "description": "Reads.", "input_schema": schema}], "tool_choice": {"type": "any", "disable_parallel_tool_use": true}})
        }
        Dialect::Responses => {
            json!({"model": "m", "stream": true, "max_output_tokens": 500, "temperature": 0.2, "user": "u1", "instructions": "Be brief.", "store": false,
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": format!("data:image/png;base64,{image}")}]},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "sealed"},
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
                {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{\"path\":\"a.txt\"}"},
                {"type": "function_call", "call_id": "call_2", "name": "read_file", "arguments": "{\"path\":\"b.txt\"}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "alpha"},
                {"type": "function_call_output", "call_id": "call_2", "output": "beta"},
                {"role": "user", "content": "And now?"}],
            "tools": [{"type": "function", "name": "read_file", "description": "Reads.", "parameters": schema}], "tool_choice": "required", "parallel_tool_calls": false})
        }
        Dialect::Gemini => json!({"systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": image}}]},
                {"role": "model", "parts": [{"text": "Let me look."}, {"functionCall": {"name": "read_file", "args": {"path": "a.txt"}}, "thoughtSignature": "c2ln"}, {"functionCall": {"name": "read_file", "args": {"path": "b.txt"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "alpha"}}}, {"functionResponse": {"name": "read_file", "response": {"error": "beta"}}}]},
                {"role": "user", "parts": [{"text": "And now?"}]}],
            "tools": [{"functionDeclarations": [{"name": "read_file", "description": "Reads.", "parametersJsonSchema": schema}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "generationConfig": {"maxOutputTokens": 500, "temperature": 0.2, "stopSequences": ["END"]}, "safetySettings": []}),
    }
}

/// The same answer as a provider of this dialect streams it.
fn stream(dialect: Dialect) -> Vec<u8> {
    let head = Head {
        id: "up_1".to_owned(),
        model: "up-model".to_owned(),
        created: 1_700_000_000,
        fingerprint: None,
    };
    let mut writer = Writer::new(
        head,
        StreamOptions { dialect, forward_signatures: true, include_usage: true, ..StreamOptions::default() },
    );
    let say = |text: &'static str| Step { text: Some(text.into()), ..Step::default() };
    let mut all = writer.open(None).to_vec();
    all.extend(writer.write_step(&Step {
        thought: Some("I think.".into()),
        reasoning: true,
        ..Step::default()
    }));
    all.extend(writer.write_step(&say("Hel")));
    all.extend(writer.write_step(&say("lo")));
    all.extend(writer.calls(&[WholeCall {
        id: "call_9",
        name: "read_file",
        arguments: "{\"path\":\"c\"}",
        ..WholeCall::default()
    }]));
    all.extend(
        writer.finish("tool_calls", Some(&Usage { input: 12, output: 7, cached: 3, ..Usage::default() })),
    );
    all
}

/// What a client of another dialect hears of it, frame by frame.
fn translated(from: Dialect, to: Dialect) -> String {
    let head = Head {
        id: "down_1".to_owned(),
        model: "up-model".to_owned(),
        created: 1_700_000_000,
        fingerprint: None,
    };
    let (mut events, mut framer) = (Events::of(from), Framer::new(usize::MAX));
    let mut writer =
        Writer::new(head, StreamOptions { dialect: to, include_usage: true, ..StreamOptions::default() });
    framer.push(Bytes::from(stream(from)));
    let (mut all, mut calls, mut finish, mut usage) =
        (Vec::new(), Vec::<(String, String, String)>::new(), String::new(), None);
    while let Some(frame) = framer.next_frame() {
        let frame = frame.unwrap();
        let Some(data) = events.data(&frame).unwrap() else { continue };
        let step = events.read(frame.event(), &data).unwrap();
        all.extend(writer.write_step(&step));
        for piece in &step.calls {
            if let Some(name) = piece.name.as_deref() {
                calls.push((
                    piece.id.as_deref().unwrap_or("call_x").to_owned(),
                    name.to_owned(),
                    String::new(),
                ));
            }
            if let (Some(last), Some(arguments)) = (calls.last_mut(), piece.arguments.as_deref()) {
                last.2.push_str(arguments);
            }
        }
        finish = step.finish.first().map_or(finish, |(_, reason)| reason.to_string());
        usage = step.usage.or(usage);
    }
    let wholes: Vec<_> = calls
        .iter()
        .map(|(id, name, arguments)| WholeCall { id, name, arguments, ..WholeCall::default() })
        .collect();
    all.extend(writer.calls(&wholes));
    all.extend(writer.finish(&finish, usage.as_ref()));
    String::from_utf8(all).unwrap()
}

fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    let all = Dialect::ALL.into_iter().flat_map(|from| Dialect::ALL.map(|to| (from, to)));
    all.filter(|(from, to)| from != to)
}

#[test]
fn a_request_arrives_as_its_snapshot_says() {
    for (from, to) in pairs() {
        let body = Bytes::from(request(from).to_string());
        let asked = Request::parse(from, &body, Some(("m", true))).unwrap();
        let edits = Edits { include_usage: true, ..Edits::plain("target-model") };
        let written = asked.write(
            &body,
            TargetTraits { dialect: to, facts: common::thinking("target-model"), ..TargetTraits::default() },
            &edits,
        );
        let value: Value = serde_json::from_slice(&written.body).unwrap();
        let needed = |left: &Omission| if left.droppable { "" } else { ", needed: not sent" };
        let left: Vec<_> =
            written.left.iter().map(|left| format!("{} at {}{}", left.rule, left.at, needed(left))).collect();
        let mends: Vec<_> =
            written.mends.iter().map(|mend| format!("{} at {}", mend.rule, mend.at)).collect();
        let shown = json!({"body": value, "left": left, "mends": mends});
        golden(&format!("pairs/{}-to-{}.json", from.name(), to.name()), &format!("{shown:#}\n"));
    }
}

#[test]
fn a_stream_arrives_as_its_snapshot_says() {
    for (from, to) in pairs() {
        golden(&format!("pairs/{}-to-{}.stream", from.name(), to.name()), &translated(from, to));
    }
}
