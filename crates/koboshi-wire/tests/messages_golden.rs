//! Recorded shapes of the vendor, and what is made of them. The files beside them hold what is expected, for a person to read;
//! `KOBOSHI_GOLDEN=write` writes them anew.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::fmt::Write as _;

use crate::common;
use bytes::Bytes;
use koboshi_wire::form::{Form, Omission};
use koboshi_wire::messages::event::Events;
use koboshi_wire::messages::writer::{Head, WholeCall, Writer};
use koboshi_wire::messages::{MessagesRequest, body};
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};

fn recorded(name: &str) -> Vec<u8> {
    common::recorded(&format!("messages/{name}"))
}

fn golden(name: &str, found: &str) {
    common::golden(&format!("messages/{name}"), found);
}

/// The steps of a stream.
fn steps(stream: &[u8]) -> Vec<Step<'static>> {
    let mut framer = Framer::new(1 << 20);
    framer.push(Bytes::copy_from_slice(stream));
    let mut events = Events::default();
    let mut steps = Vec::new();
    while let Some(frame) = framer.next_frame() {
        let frame = frame.unwrap();
        if let Some(data) = frame.data().unwrap() {
            steps.push(events.read(frame.event(), &data).unwrap().into_owned());
        }
    }
    assert!(framer.finish().is_none());
    steps
}

/// One line for a step: only what is said.
fn line(step: &Step<'_>) -> String {
    let mut said = Vec::new();
    let mut text = |name: &str, text: &Option<std::borrow::Cow<'_, str>>| {
        said.extend(text.as_ref().map(|text| format!("{name}={text:?}")));
    };
    text("id", &step.id);
    text("model", &step.model);
    text("text", &step.text);
    text("thought", &step.thought);
    text("seal", &step.signature);
    text("refused", &step.refused);
    for call in &step.calls {
        text(&format!("call{}.id", call.index), &call.id);
        text(&format!("call{}.name", call.index), &call.name);
        text(&format!("call{}.arguments", call.index), &call.arguments);
    }
    for (name, flag) in [
        ("reasoning", step.reasoning),
        ("hidden", step.hidden),
        ("refusal", step.refusal),
        ("error", step.error),
        ("done", step.done),
    ] {
        said.extend(flag.then(|| name.to_owned()));
    }
    said.extend(
        step.block.map(|block| format!("{}{}", if block.closes { "closes" } else { "opens" }, block.index)),
    );
    said.extend(step.finish.iter().map(|(choice, reason)| format!("finish{choice}={reason}")));
    said.extend(step.usage.map(|usage| format!("{usage:?}")));
    said.join(" ")
}

#[test]
fn recorded_streams_say_what_is_expected() {
    for name in ["text", "tools", "overloaded", "refusal", "hosted"] {
        let steps = steps(&recorded(&format!("{name}.sse")));
        let lines: Vec<String> = steps.iter().map(line).collect();
        golden(&format!("{name}.steps.txt"), &(lines.join("\n") + "\n"));
    }
}

/// What is asked, in lines.
fn described(form: &Form<'_>) -> String {
    let mut text = String::new();
    writeln!(text, "model {} stream {} max {:?}", form.model, form.stream, form.max_output).unwrap();
    writeln!(text, "thinking {:?} choice {:?} parallel {:?}", form.thinking, form.choice, form.parallel)
        .unwrap();
    writeln!(text, "sampling {:?}", form.sampling).unwrap();
    writeln!(text, "output {:?} user {:?}", form.output, form.user).unwrap();
    form.system.iter().for_each(|said| writeln!(text, "system {said:?}").unwrap());
    form.tools.iter().for_each(|tool| writeln!(text, "tool {tool:?}").unwrap());
    for turn in &form.turns {
        writeln!(text, "{:?}", turn.role).unwrap();
        turn.parts.iter().for_each(|part| writeln!(text, "  {part:?}").unwrap());
    }
    text + &lefts(&form.left)
}

fn lefts(left: &[Omission]) -> String {
    let each = left.iter().map(|left| {
        format!("{} {} {}\n", if left.droppable { "dropped" } else { "needed" }, left.rule, left.at)
    });
    each.collect()
}

#[test]
fn recorded_requests_become_the_expected_form_and_body() {
    for name in ["claude_code", "everything"] {
        let recorded = recorded(&format!("{name}.json"));
        let request = MessagesRequest::parse(&recorded).unwrap();
        golden(&format!("{name}.form.txt"), &described(request.form()));
        let written = body::write(request.form(), common::facts(&request.form().model));
        let again = std::str::from_utf8(&written.body).unwrap();
        golden(&format!("{name}.written.txt"), &format!("{again}\n{}", lefts(&written.left)));
    }
}

/// A stream of ours, from steps of another dialect.
#[test]
fn our_own_stream_is_written_as_expected() {
    let head = Head { id: "msg_koboshi_1".into(), model: "gpt-4o".into(), ..Head::default() };
    let mut writer = Writer::new(head, false);
    let text = |text: &'static str| Step { text: Some(text.into()), ..Step::default() };
    let mut stream = writer.keep_alive().to_vec();
    stream.extend(writer.open(Some(&serde_json::json!({"degraded": true}))));
    stream.extend(writer.open(None));
    let thought = Step {
        thought: Some("hm".into()),
        reasoning: true,
        signature: Some("foreign".into()),
        ..Step::default()
    };
    stream.extend(writer.write_step(&thought));
    stream.extend(writer.write_step(&text("Hel")));
    stream.extend(writer.write_step(&text("lo\n")));
    let calls = [
        WholeCall { id: "call.1", name: "f", arguments: "{\"a\":1}", ..WholeCall::default() },
        WholeCall {
            id: "call_2",
            name: "patch",
            arguments: "*** x",
            free_text: true,
            ..WholeCall::default()
        },
        WholeCall { id: "call_3", name: "now", ..WholeCall::default() },
    ];
    stream.extend(writer.calls(&calls));
    let usage = Usage { input: 100, output: 20, cached: 60, stored: 10, reasoning: 5 };
    stream.extend(writer.finish("tool_calls", Some(&usage)));
    for after in [writer.finish("stop", None), writer.keep_alive(), writer.write_step(&text("late"))] {
        assert!(after.is_empty(), "nothing follows the end");
    }
    golden("ours.sse", std::str::from_utf8(&stream).unwrap());
    assert_eq!(steps(&stream).last().map(|step| step.done), Some(true));
}
