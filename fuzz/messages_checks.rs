//! What must hold of the messages dialect for any bytes at all. The fuzz targets call these for hours; the ordinary tests
//! (`crates/koboshi-wire/tests/messages_any_bytes.rs`) call the same for a moment, on stable Rust.

use std::sync::LazyLock;

use bytes::Bytes;
use koboshi::models::{Facts, Models};
use koboshi_wire::chat::Correction;
use koboshi_wire::messages::event::Events;
use koboshi_wire::messages::write_answer::write as whole;
use koboshi_wire::messages::writer::{Head, WholeCall, Writer};
use koboshi_wire::messages::{MessagesRequest, Rewrite, answer, body};
use koboshi_wire::step::Step;
use serde_json::Value;

/// Any bytes as the frames of a stream, a line each, and as an answer: read or refused, and what is said of them goes on in a stream of ours.
pub(crate) fn messages_event(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        frames(text);
    }
    let Ok(found) = answer::read(data) else { return };
    let bytes = Bytes::copy_from_slice(data);
    let calls = found.choices.iter().flat_map(|choice| &choice.calls);
    let changes: Vec<_> = calls.filter_map(|call| Some((call.span.clone()?, "{\"mended\":1}"))).collect();
    let mended = answer::with_arguments(&bytes, &changes);
    let again = answer::read(&mended).expect("a splice leaves JSON");
    for call in again.choices.iter().flat_map(|choice| &choice.calls).filter(|call| call.span.is_some()) {
        assert_eq!(call.arguments, "{\"mended\":1}");
    }
    let ours = whole(&Head::default(), &found, None);
    let ours = answer::read(&ours).expect("what we write can be read");
    let first = found.choices.first();
    assert_eq!(ours.choices[0].calls.len(), first.map_or(0, |choice| choice.calls.len()));
}

fn frames(text: &str) {
    let (mut events, mut writer) = (Events::default(), Writer::new(Head::default(), true));
    let (mut ours, mut said) = (Vec::new(), String::new());
    for line in text.lines() {
        let (event, data) = line.split_once('|').map_or((None, line), |(event, data)| (Some(event), data));
        let Ok(step) = events.read(event, data) else {
            let value = serde_json::from_str::<Value>(data).ok();
            assert!(!value.is_some_and(|value| value.is_object()), "every object can be read");
            continue;
        };
        check(&step);
        said.push_str(step.text.as_deref().unwrap_or_default());
        said.push_str(step.refused.as_deref().unwrap_or_default());
        ours.extend(writer.write_step(&step));
    }
    ours.extend(writer.finish("stop", None));
    let ours = String::from_utf8(ours).expect("text");
    let mut events = Events::default();
    let mut again = String::new();
    let mut is_done = false;
    for frame in ours.split("\n\n").filter(|frame| !frame.is_empty()) {
        let (name, data) = frame.split_once("\ndata: ").expect("two lines");
        let step = events.read(name.strip_prefix("event: "), data).expect("what we write can be read");
        again.push_str(step.text.as_deref().unwrap_or_default());
        is_done = step.done;
    }
    assert_eq!(again, said, "nothing that was said is lost");
    assert!(is_done, "every stream ends with its mark");
}

fn check(step: &Step<'_>) {
    let texts = [&step.text, &step.thought, &step.signature, &step.refused, &step.id, &step.model];
    assert!(texts.into_iter().flatten().all(|text| !text.is_empty()));
    assert!(step.finish.iter().all(|(_, reason)| !reason.is_empty()));
    assert!(step.thought.is_none() || step.reasoning);
    assert_eq!(step.speaking == 1, step.has_content());
}

/// Any bytes as a request: refused in words, or read; whatever is then changed, it is a request again; and its form can be written.
pub(crate) fn messages_request(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let request = match MessagesRequest::parse(&body) {
        Ok(request) => request,
        Err(error) => {
            assert!(error.to_string().len() < 400, "what is said is bounded");
            return;
        }
    };
    assert!(request.opening().len() <= body.len());
    let _ = (request.metadata("user_id"), request.tools().count());
    assert_eq!(Rewrite::of(&request, &body).finish().as_ptr(), body.as_ptr(), "no wish, no copy");
    changes_hold(&request, &body);
    written_form_holds(&request);
}

fn changes_hold(request: &MessagesRequest<'_>, body: &Bytes) {
    let call = WholeCall { id: "call.x", name: "tool", arguments: "{broken", ..WholeCall::default() };
    let mut rewrite = Rewrite::of(request, body);
    rewrite.model("a \"model\"").stream(!request.stream()).force_tool("f").parallel_off().max_output(2000);
    rewrite.append_to_last_tool_result("note\n\u{1f}").continue_with("so \"far");
    rewrite.corrected("text", &[Correction { call, correction: "no JSON" }]);
    let changed = rewrite.finish();
    let again = MessagesRequest::parse(&changed).expect("a changed request is a request");
    assert_eq!((again.model(), again.stream()), ("a \"model\"", !request.stream()));
    assert_eq!(again.form().max_output, Some(2000));
    let grown = again.form().turns.len() - request.form().turns.len();
    assert!((2..=3).contains(&grown), "{grown}");
    assert_eq!(again.tools().count(), request.tools().count());
    assert_eq!(again.metadata("user_id"), request.metadata("user_id"));
}

/// The vendor's rules hold of whatever is written.
fn written_form_holds(request: &MessagesRequest<'_>) {
    let written = body::write(request.form(), facts(request.model()));
    let again = MessagesRequest::parse(&written.body).expect("what we write is a request");
    assert_eq!(again.model(), request.model());
    let value: Value = serde_json::from_slice(&written.body).expect("JSON");
    assert!(value["max_tokens"].is_u64());
    let none = Vec::new();
    let mut before: Option<&Value> = None;
    for message in value["messages"].as_array().expect("a list") {
        let is_user = message["role"] == "user";
        assert_eq!(is_user, before.is_none_or(|before| before["role"] == "assistant"), "roles take turns");
        let content = message["content"].as_array().unwrap_or(&none);
        let made = before.and_then(|before| before["content"].as_array()).unwrap_or(&none);
        let made = made.iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]);
        let results = content.iter().filter(|block| block["type"] == "tool_result");
        let results = results.map(|block| &block["tool_use_id"]);
        assert!(made.eq(results), "one result for each call, in order");
        before = Some(message);
    }
    let last = before.filter(|last| last["role"] == "assistant");
    let open = last.and_then(|last| last["content"].as_array()).unwrap_or(&none);
    assert!(open.iter().all(|block| block["type"] != "tool_use"), "no call is left without a result");
}

/// What is known of a model.
fn facts(model: &str) -> Facts {
    static MODELS: LazyLock<Models> =
        LazyLock::new(|| Models::builtin().expect("the built-in facts are sound"));
    MODELS.facts("", model)
}
