//! Recorded streams, requests and answers of Gemini, and what we make of them. `KOBOSHI_GOLDEN=write` writes the files anew, to be looked at.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::fmt::Write as _;

use crate::common;
use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::failure::Failure;
use koboshi_wire::form::{Form, Omission};
use koboshi_wire::gemini::event::{self, Events};
use koboshi_wire::gemini::write_answer::write as whole;
use koboshi_wire::gemini::writer::{Shape, Writer};
use koboshi_wire::gemini::{GeminiRequest, answer, array, body, error, models};
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::writer::{Head, WholeCall};
use serde_json::json;

fn recorded(name: &str) -> Vec<u8> {
    common::recorded(&format!("gemini/{name}"))
}

fn golden(name: &str, found: &str) {
    common::golden(&format!("gemini/{name}"), found);
}

/// The steps of a stream of events, errors without `data:` included.
fn steps(stream: &[u8]) -> Vec<Step<'static>> {
    let mut framer = Framer::new(1 << 20);
    framer.push(Bytes::copy_from_slice(stream));
    let (mut events, mut steps) = (Events::default(), Vec::new());
    let mut frames = Vec::new();
    while let Some(frame) = framer.next_frame() {
        frames.push(frame.unwrap());
    }
    frames.extend(framer.finish());
    for frame in frames {
        if let Some(data) = event::data(&frame).unwrap() {
            steps.push(events.read(frame.event(), &data).unwrap().into_owned());
        }
    }
    steps
}

/// The steps of a stream that is one list.
fn steps_of_list(stream: &[u8]) -> Vec<Step<'static>> {
    let mut framer = array::Framer::new(1 << 20);
    framer.push(Bytes::copy_from_slice(stream));
    let (mut events, mut steps) = (Events::default(), Vec::new());
    while let Some(frame) = framer.next_frame() {
        if let Some(data) = frame.unwrap().data().unwrap() {
            steps.push(events.read(None, data).unwrap().into_owned());
        }
    }
    steps
}

fn lines(steps: &[Step<'_>]) -> String {
    let mut lines = String::new();
    for step in steps {
        writeln!(lines, "{step:?}").unwrap();
    }
    lines
}

#[test]
fn recorded_streams_say_what_they_said() {
    for name in ["text", "tools", "blocked", "cut", "malformed"] {
        let steps = steps(&recorded(&format!("{name}.sse")));
        golden(&format!("{name}.steps.txt"), &lines(&steps));
    }
}

#[test]
fn both_forms_of_a_stream_say_the_same() {
    let list = steps_of_list(&recorded("text.array"));
    assert_eq!(lines(&list), lines(&steps(&recorded("text.sse"))));
    assert!(list.last().unwrap().done);
}

/// What must be seen whatever the golden files say.
#[test]
fn streams_end_for_the_right_reason() {
    let reason = |name: &str| {
        let steps = steps(&recorded(name));
        let last = steps.last().unwrap().clone();
        (last.finish.first().map(|(_, reason)| reason.to_string()), last.done, last.error)
    };
    assert_eq!(reason("tools.sse"), (Some("tool_calls".into()), true, false));
    assert_eq!(reason("text.sse"), (Some("length".into()), true, false));
    assert_eq!(reason("blocked.sse"), (Some("content_filter".into()), true, false));
    assert_eq!(reason("malformed.sse"), (Some("MALFORMED_FUNCTION_CALL".into()), true, false));
    assert_eq!(reason("cut.sse"), (None, false, true));
    let steps = steps(&recorded("tools.sse"));
    let calls: Vec<(u32, &str)> = steps
        .iter()
        .flat_map(|step| &step.calls)
        .map(|call| (call.index, call.arguments.as_deref().unwrap()))
        .collect();
    assert_eq!(calls[0].0, 0);
    assert_eq!(calls[1].0, 1, "a call of a later chunk is another call");
    let usage = steps.last().unwrap().usage.unwrap();
    assert_eq!(usage, Usage { input: 81, output: 93, cached: 64, stored: 0, reasoning: 53 });
}

fn lefts(left: &[Omission]) -> String {
    let mut lines = String::new();
    for left in left {
        let kind = if left.droppable { "dropped" } else { "needed" };
        writeln!(lines, "{kind} {} at {}", left.rule, left.at).unwrap();
    }
    lines
}

fn described(form: &Form<'_>) -> String {
    let mut text = format!("model {:?} stream {}\n", form.model, form.stream);
    for system in &form.system {
        writeln!(text, "system {system:?}").unwrap();
    }
    for turn in &form.turns {
        writeln!(text, "{:?}", turn.role).unwrap();
        for part in &turn.parts {
            writeln!(text, "  {part:?}").unwrap();
        }
    }
    for tool in &form.tools {
        writeln!(text, "tool {:?} {:?} {:?}", tool.name, tool.description, tool.input).unwrap();
    }
    writeln!(text, "choice {:?} parallel {:?}", form.choice, form.parallel).unwrap();
    writeln!(text, "output {:?}\n{:?}", form.output, form.sampling).unwrap();
    writeln!(text, "max {:?} thinking {:?}", form.max_output, form.thinking).unwrap();
    text + &lefts(&form.left)
}

#[test]
fn recorded_requests_become_forms_and_go_back() {
    for (name, model) in
        [("cli", "gemini-3-pro-preview"), ("snake", "gemini-2.5-flash"), ("hosted", "gemini-2.5-pro")]
    {
        let body = recorded(&format!("{name}.json"));
        let request = GeminiRequest::parse(model, true, &body).unwrap();
        golden(&format!("{name}.form.txt"), &described(request.form()));
        let written = body::write(request.form(), common::facts(&request.form().model));
        let json = String::from_utf8(written.body.to_vec()).unwrap();
        golden(&format!("{name}.written.txt"), &format!("{json}\n{}", lefts(&written.left)));
        let again = GeminiRequest::parse(model, true, &written.body).unwrap();
        let (before, after) = (request.form(), again.form());
        assert_eq!((&before.system, &before.sampling), (&after.system, &after.sampling), "{name}");
        assert_eq!((before.thinking, before.max_output), (after.thinking, after.max_output), "{name}");
    }
}

fn head() -> Head {
    Head { id: "kb-1".into(), model: "claude-sonnet".into(), created: 1_763_280_000, fingerprint: None }
}

const USAGE: Usage = Usage { input: 10, output: 7, cached: 4, stored: 0, reasoning: 3 };

fn ours(writer: &mut Writer) -> Vec<u8> {
    let mut stream = Vec::new();
    stream.extend_from_slice(&writer.open(Some(&json!({"served_by": "b"}))));
    stream.extend_from_slice(&writer.open(None));
    let thought = Step { reasoning: true, thought: Some("Hm.\n".into()), ..Step::default() };
    stream.extend_from_slice(&writer.write_step(&thought));
    stream.extend_from_slice(&writer.keep_alive());
    let text =
        Step { text: Some("Zwei \"Zeilen\"\n".into()), signature: Some("c2ln".into()), ..Step::default() };
    stream.extend_from_slice(&writer.write_step(&text));
    let calls = [
        WholeCall {
            id: "toolu_1",
            name: "f",
            arguments: "{\n \"b\": 1, \"a\": \"\\n\"\n}",
            ..WholeCall::default()
        },
        WholeCall {
            id: "toolu_2",
            name: "patch",
            arguments: "*** x",
            free_text: true,
            signature: Some("c2Vh"),
            ..WholeCall::default()
        },
        WholeCall { id: "", name: "broken", arguments: "{\"a\":", ..WholeCall::default() },
        WholeCall { id: "toolu_4", name: "none", arguments: "", ..WholeCall::default() },
    ];
    stream.extend_from_slice(&writer.calls(&calls));
    stream.extend_from_slice(&writer.finish("tool_calls", Some(&USAGE)));
    assert!(writer.finish("stop", None).is_empty(), "nothing comes after the end");
    stream
}

#[test]
fn our_own_streams() {
    let stream = ours(&mut Writer::new(head(), true));
    golden("ours.sse", std::str::from_utf8(&stream).unwrap());
    let list = ours(&mut Writer::new(head(), true).shaped(Shape::List));
    golden("ours.array", std::str::from_utf8(&list).unwrap());
    let all: serde_json::Value = serde_json::from_slice(&list).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 4);
    assert_eq!(lines(&steps_of_list(&list)), lines(&steps(&stream)));
}

#[test]
fn answers_are_read_and_written() {
    let body = Bytes::from(recorded("answer.json"));
    let read = answer::read(&body).unwrap();
    golden("answer.whole.txt", &format!("{read:#?}\n"));
    let written = whole(&head(), &read, Some(&json!({"source": "x"})));
    golden("answer.written.json", std::str::from_utf8(&written).unwrap());
    let again = answer::read(&written).unwrap();
    assert_eq!(again.choices[0].text, read.choices[0].text);
    assert_eq!(again.usage, read.usage);
}

#[test]
fn errors_and_lists() {
    let koboshi = json!({"kind": "cooling_down"});
    let failure = Failure {
        request_id: Some("req-1"),
        retry_after: Some(40),
        resets_at: Some(1_763_285_220),
        koboshi: Some(&koboshi),
        ..common::failure(Kind::CoolingDown, 429, "All targets rest until 09:27 UTC.")
    };
    let text = |failure: &Failure<'_>| String::from_utf8(error::body(failure).to_vec()).unwrap();
    let bad = Failure {
        kind: Kind::InvalidRequest,
        status: 400,
        message: "`contents` is missing",
        param: Some("contents"),
        retry_after: None,
        resets_at: None,
        koboshi: None,
        ..failure
    };
    let all = [text(&failure), text(&Failure { is_final: true, ..failure }), text(&bad)];
    golden("errors.txt", &(all.join("\n") + "\n"));
    let list = models::list(["fast", "openai/gpt-4o"]);
    golden("models.json", std::str::from_utf8(&list).unwrap());
}
