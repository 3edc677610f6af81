//! What must hold of the wire readers for any bytes at all. The fuzz targets call these for hours; the ordinary tests
//! (`crates/koboshi-wire/tests/any_bytes.rs`) call the same for a moment, on stable Rust.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use koboshi::models::{Facts, Models};
use koboshi_wire::Dialect;
use koboshi_wire::chat::body::write;
use koboshi_wire::chat::frames::WholeCall;
use koboshi_wire::chat::model::Flavor;
use koboshi_wire::chat::{ChatRequest, Correction, Rewrite, answer, embeddings, event};
use koboshi_wire::form::Form;
use koboshi_wire::form::sanitize::{Target, sanitize};
use koboshi_wire::form::trim::trim;
use koboshi_wire::gemini::{self, GeminiRequest};
use koboshi_wire::http1::chunks::Chunks;
use koboshi_wire::http1::head::Head;
use koboshi_wire::http1::reply::ReplyHead;
use koboshi_wire::responses::{self, Events, ResponsesRequest, Writer};
use koboshi_wire::sse::{Frame, Framer};
use serde_json::Value;

/// Any stream in any blocks: nothing is lost or changed, and the frames say what the standard says. The first byte chooses
/// how the rest is cut.
pub(crate) fn sse(data: &[u8]) {
    let (cut, stream) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let whole = frames(stream, stream.len().max(1));
    let pieces = frames(stream, cut % 17 + 1);
    for (frames, _) in [&whole, &pieces] {
        let joined: Vec<u8> = frames.iter().flat_map(|frame| frame.raw().to_vec()).collect();
        assert_eq!(joined, stream, "nothing is lost, nothing is added");
    }
    assert_eq!(contents(&whole.0), contents(&pieces.0), "where blocks are cut means nothing");
    assert_eq!(contents(&whole.0), by_the_standard(stream));
    assert!(whole.1 <= 1, "one block gives all its frames before the end");
    never_too_long(stream, cut);
}

/// All frames of a stream in blocks of this size, and how many came only at the end.
fn frames(stream: &[u8], size: usize) -> (Vec<Frame>, usize) {
    let mut framer = Framer::new(usize::MAX);
    let mut frames = Vec::new();
    for block in stream.chunks(size) {
        let block = Bytes::copy_from_slice(block);
        framer.push(block.clone());
        while let Some(frame) = framer.next_frame() {
            let frame = frame.expect("no limit");
            if let Some(at) = frame.at() {
                assert_eq!(block.slice(at), frame.raw(), "it stands where it says");
            }
            frames.push(frame);
        }
    }
    let pending = framer.pending();
    let rest = framer.finish();
    assert_eq!(rest.as_ref().map_or(0, |frame| frame.raw().len()), pending);
    let at_the_end = usize::from(rest.is_some());
    frames.extend(rest);
    (frames, at_the_end)
}

/// Name and data of every frame that has data.
fn contents(frames: &[Frame]) -> Vec<(Option<String>, String)> {
    let mut said = Vec::new();
    for frame in frames {
        let data = match frame.data() {
            Ok(data) => data.map(String::from),
            Err(error) => Some(error.to_string()),
        };
        assert!(data.is_none() || !frame.is_comment());
        said.extend(data.map(|data| (frame.event().map(str::to_owned), data)));
    }
    said
}

/// The same by the simplest reading of the standard: all line ends made equal, line after line.
fn by_the_standard(stream: &[u8]) -> Vec<(Option<String>, String)> {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            other => lines.last_mut().expect("one line").push(*other),
        }
    }
    let mut said = Vec::new();
    for event in lines.split(Vec::is_empty) {
        let values = |name: &[u8]| -> Vec<Vec<u8>> {
            let of_name = event.iter().filter_map(|line| {
                let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
                let value = line.get(colon + 1..).unwrap_or_default();
                (&line[..colon] == name).then(|| value.strip_prefix(b" ").unwrap_or(value).to_vec())
            });
            of_name.collect()
        };
        let name = values(b"event").pop().and_then(|name| String::from_utf8(name).ok());
        let data = values(b"data");
        if !data.is_empty() {
            let bad = data.iter().find_map(|line| std::str::from_utf8(line).err());
            let text = match bad {
                Some(error) => koboshi_wire::Malformed::from(error).to_string(),
                None => String::from_utf8(data.join(&b'\n')).expect("all lines are text"),
            };
            said.push((name.filter(|name| !name.is_empty()), text));
        }
    }
    said
}

/// With a limit, however blocks are cut: the same frames, then the same refusal, and what is held stays within it.
fn never_too_long(stream: &[u8], max: usize) {
    let read = |size: usize| {
        let mut framer = Framer::new(max);
        let (mut said, mut refused) = (Vec::new(), false);
        for block in stream.chunks(size) {
            framer.push(Bytes::copy_from_slice(block));
            while let Some(frame) = framer.next_frame() {
                assert!(!refused, "nothing comes after a refusal");
                match frame {
                    Ok(frame) => {
                        // The `\n` of a last `\r\n` is not counted.
                        assert!(frame.raw().len() <= max + 1);
                        said.push(frame);
                    }
                    Err(error) => {
                        assert_eq!(error.max_bytes, max);
                        refused = true;
                    }
                }
            }
            assert!(framer.pending() <= max);
        }
        (self::contents(&said), refused)
    };
    assert_eq!(read(1), read(stream.len().max(1)));
}

/// Any text as the data of a frame: read or refused, and borrowed parts are what a slow reading finds.
pub(crate) fn chat_chunk(data: &[u8]) {
    if let Some(frames) = koboshi_wire::chat::unstreamed::frames(data) {
        assert!(frames.ends_with(b"data: [DONE]\n\n"), "a whole answer is a whole stream");
        assert!(!frames.contains(&b'\r'), "a frame is one line");
    }
    let text = String::from_utf8_lossy(data);
    let read = event::read(&text);
    let trimmed = text.trim_ascii();
    let value: Option<Value> = serde_json::from_str(trimmed).ok();
    match read {
        Ok(step) if !step.done && !trimmed.is_empty() => {
            // A slow reading may refuse what this one passes over: nesting, and numbers out of range.
            let Some(value) = value else { return };
            assert!(value.is_object());
            let choices = value.get("choices").and_then(Value::as_array).map_or(0, Vec::len);
            assert_eq!(step.choices as usize, choices);
            assert!(step.text.as_deref() != Some("") && step.id.as_deref() != Some(""));
            assert!(step.finish.iter().all(|(_, reason)| !reason.is_empty()));
            assert!(step.has_content() || (step.calls.is_empty() && step.text.is_none()));
        }
        Ok(_) => {}
        Err(_) => assert!(!value.is_some_and(|value| value.is_object()), "every object can be read"),
    }
    if let Ok(whole) = answer::read(data) {
        arguments_can_be_replaced(data, &whole);
    }
}

fn arguments_can_be_replaced(data: &[u8], whole: &answer::Whole<'_>) {
    let body = Bytes::copy_from_slice(data);
    let calls = whole.choices.iter().flat_map(|choice| &choice.calls);
    let changes: Vec<_> =
        calls.filter_map(|call| Some((call.span.clone()?, "{\"mended\":\"\n\"}"))).collect();
    let mended = answer::with_arguments(&body, &changes);
    let again = answer::read(&mended).expect("a splice leaves JSON");
    for call in again.choices.iter().flat_map(|choice| &choice.calls).filter(|call| call.span.is_some()) {
        assert_eq!(call.arguments, "{\"mended\":\"\n\"}");
    }
    let same = answer::with_arguments(&body, &[]);
    assert_eq!(same.as_ptr(), body.as_ptr(), "nothing to change, nothing copied");
}

/// Any bytes as a request: refused in words, or read; and whatever is then changed, it is a request again.
pub(crate) fn chat_request(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    if let Ok(model) = embeddings::model(&body) {
        let changed = embeddings::with_model(&body, "other");
        assert_eq!(embeddings::model(&changed).as_deref(), Ok("other"));
        assert_eq!(embeddings::model(&embeddings::with_model(&changed, &model)), Ok(model));
    }
    let request = match ChatRequest::parse(&body) {
        Ok(request) => request,
        Err(error) => {
            assert!(error.to_string().len() < 400, "what is said is bounded");
            return;
        }
    };
    let needs = request.needs();
    assert!(needs.input_tokens <= 1001 * body.len() as u64);
    let (turn, calls) = (request.turn(), request.calls());
    assert!(calls.iter().all(|call| call.turn == turn));
    assert!(calls.windows(2).all(|two| two[0].batch <= two[1].batch));
    assert!(request.opening().len() <= body.len());
    let _ = (request.last_user_text(), request.metadata("mode"), request.tools().count());
    assert_eq!(Rewrite::of(&request, &body).finish().as_ptr(), body.as_ptr(), "no wish, no copy");
    changes_hold(&request, &body);
    form_holds(&request);
}

/// Every request has a form, and what is written from it is a request again.
fn form_holds(request: &ChatRequest<'_>) {
    let form = request.form();
    let _ = (form.needs(), form.calls(), form.last_user_text());
    for flavor in [Flavor::of(true, facts(&form.model)), Flavor::default()] {
        let written = write(&form, flavor);
        let again = ChatRequest::parse(&written.body).expect("what is written is a request");
        assert_eq!((again.model(), again.stream()), (request.model(), request.stream()));
        assert_eq!(again.tools().count(), form.tools.len());
    }
    for dialect in Dialect::ALL {
        mends_hold(form.clone(), Target { dialect, prefill: true });
    }
}

/// Mended once is mended, and what is trimmed is smaller and needs no mending.
fn mends_hold(mut form: Form<'_>, target: Target) {
    sanitize(&mut form, target);
    let once = format!("{:?}", form.turns);
    assert_eq!(sanitize(&mut form, target), []);
    assert_eq!(format!("{:?}", form.turns), once);
    let tokens = form.needs().input_tokens;
    if let Some(mut trimmed) = trim(&form, tokens / 2, tokens, &[]) {
        assert!(trimmed.after <= tokens && trimmed.form.needs().input_tokens <= tokens);
        assert_eq!(sanitize(&mut trimmed.form, target), []);
    }
}

fn changes_hold(request: &ChatRequest<'_>, body: &Bytes) {
    let call = WholeCall { id: "call_x", name: "tool", arguments: "{broken", ..WholeCall::default() };
    let mut rewrite = Rewrite::of(request, body);
    rewrite.model("a \"model\"").stream(!request.stream()).include_usage().tool_choice_none().parallel_off();
    rewrite.append_to_last_tool_result("note\n\u{1f}").prefill("so \"far");
    rewrite.append_exchange("", &[Correction { call, correction: "no JSON" }]);
    let changed = rewrite.finish();
    let again = ChatRequest::parse(&changed).expect("a changed request is a request");
    assert_eq!(again.model(), "a \"model\"");
    assert_eq!(again.stream(), !request.stream());
    assert_eq!(again.include_usage(), again.stream());
    let grown = again.messages().len() - request.messages().len();
    assert!((2..=3).contains(&grown));
    assert_eq!(again.tools().count(), request.tools().count());
    assert!(again.metadata("mode") == request.metadata("mode"));
}

/// The head of a request or an answer: what is found does not hang on what follows it, and a part of it is none.
pub(crate) fn http_head(data: &[u8]) {
    if let Ok(Some((head, length))) = Head::parse(data) {
        assert!(length <= data.len());
        assert!(head.path().starts_with('/'), "a path begins at the root");
        let (again, same) = Head::parse(&data[..length]).expect("was one").expect("is whole");
        assert_eq!((length, head.coming, head.stays), (same, again.coming, again.stays));
        assert!(!matches!(Head::parse(&data[..length - 1]), Ok(Some(_))), "it ends where it ends");
        for (name, value) in head.fields.pairs() {
            assert_eq!(name, name.to_ascii_lowercase());
            assert!(!value.contains(['\r', '\n']), "a header is one line");
        }
    }
    if let Ok(Some((head, length))) = ReplyHead::parse(data) {
        let (again, same) = ReplyHead::parse(&data[..length]).expect("was one").expect("is whole");
        assert_eq!((length, head.body, head.stays), (same, again.body, again.stays));
    }
}

/// A body in chunks, wherever it is cut: the same content, the same end, the same verdict. The first byte chooses how it is cut.
pub(crate) fn http_chunks(data: &[u8]) {
    let (cut, body) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let whole = unchunked(body, body.len().max(1));
    assert_eq!(whole, unchunked(body, cut % 7 + 1));
    if let Some((content, rest, _)) = whole {
        assert!(content.len() + rest.len() <= body.len());
    }
}

fn unchunked(body: &[u8], size: usize) -> Option<(Vec<u8>, Vec<u8>, bool)> {
    let (mut chunks, mut from, mut into) = (Chunks::default(), BytesMut::new(), BytesMut::new());
    for piece in body.chunks(size) {
        from.extend_from_slice(piece);
        chunks.read(&mut from, &mut into, usize::MAX).ok()?;
    }
    Some((into.to_vec(), from.to_vec(), chunks.is_done()))
}

/// Any lines as the frames of a responses stream: read or refused; and whatever they say, passed on or written by us, the stream that a writer
/// makes of it is whole.
pub(crate) fn responses_event(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut events = Events::default();
    let (mut passing, mut saying) =
        (Writer::new(<_>::default(), true), Writer::new(<_>::default(), data.len().is_multiple_of(2)));
    let (mut ended, mut said, mut stream) = (false, String::new(), Vec::new());
    for line in text.lines() {
        let value: Option<Value> = serde_json::from_str(line.trim_ascii()).ok();
        let step = match events.read(None, line) {
            Ok(step) => step,
            Err(_) => {
                assert!(!value.is_some_and(|value| value.is_object()), "every object can be read");
                continue;
            }
        };
        assert!(step.text.as_deref() != Some("") && step.thought.as_deref() != Some(""));
        assert!(step.finish.iter().all(|(_, reason)| !reason.is_empty()));
        assert!(step.finish.is_empty() || step.done);
        assert!(!(step.done && step.error), "an error is no end");
        assert_eq!(step.has_content(), step.speaking != 0);
        said.push_str(step.text.as_deref().unwrap_or_default());
        stream.extend_from_slice(&saying.write_step(&step));
        passing.passed(&step);
        ended |= step.done || step.error;
    }
    let rest = passing.finish("stop", None);
    assert_eq!(rest.is_empty(), ended, "what has ended is not ended again");
    stream.extend_from_slice(&saying.finish("length", None));
    assert_eq!(text_received(&stream), said);
    text_received(&rest);
    if let Ok(whole) = responses::answer::read(data) {
        arguments_can_be_replaced(data, &whole);
        let written = responses::write_answer::write(&<_>::default(), &whole, None);
        let again = responses::answer::read(&written).expect("what is written is an answer");
        let text = |whole: &answer::Whole<'_>| {
            whole.choices.first().and_then(|choice| choice.text.clone().map(String::from))
        };
        assert_eq!(text(&again), text(&whole));
    }
}

/// The text of a stream that we wrote.
fn text_received(stream: &[u8]) -> String {
    let mut events = Events::default();
    let mut heard = String::new();
    for frame in frames(stream, stream.len().max(1)).0 {
        let data = frame.data().expect("text").expect("data");
        let step = events.read(frame.event(), &data).expect("what is written is read");
        heard.push_str(step.text.as_deref().unwrap_or_default());
    }
    heard
}

/// Any bytes as a responses request: refused in words, or read; whatever is then changed, it is a request again, and its form can be written.
pub(crate) fn responses_request(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let request = match ResponsesRequest::parse(&body) {
        Ok(request) => request,
        Err(error) => {
            assert!(error.to_string().len() < 400, "what is said is bounded");
            return;
        }
    };
    assert!(request.opening().len() <= body.len());
    let _ = (request.metadata("mode"), request.tools().count(), request.is_bound_to_provider());
    assert!(request.form().left.iter().all(|left| left.at.len() < 400));
    let none = responses::Rewrite::of(&request, &body).finish();
    assert_eq!(none.as_ptr(), body.as_ptr(), "no wish, no copy");
    let call = WholeCall { id: "call_x", name: "tool", arguments: "{broken", ..WholeCall::default() };
    let mut rewrite = responses::Rewrite::of(&request, &body);
    rewrite.model("a \"model\"").stream(!request.stream()).tool_choice_none().parallel_off().max_output(99);
    rewrite.append_to_last_tool_result("note\n\u{1f}").continue_with("so \"far").drop_own_thoughts();
    rewrite.corrected("said", &[Correction { call, correction: "no JSON" }]);
    let changed = rewrite.finish();
    let again = ResponsesRequest::parse(&changed).expect("a changed request is a request");
    assert_eq!((again.model(), again.stream()), ("a \"model\"", !request.stream()));
    assert_eq!(again.form().max_output, Some(99));
    assert!(!again.has_own_thoughts());
    assert_eq!(again.tools().count(), request.tools().count());
    let written = responses::body::write(again.form(), facts(&again.form().model));
    let once = ResponsesRequest::parse(&written.body).expect("what is written is a request");
    let twice = responses::body::write(once.form(), facts(&once.form().model));
    assert_eq!(twice.body, written.body, "writing it again changes nothing");
}

/// Any bytes as a stream of Gemini, as the data of one of its events and as an answer. The first byte chooses how a list is cut.
pub(crate) fn gemini_event(data: &[u8]) {
    let (cut, stream) = data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest));
    let whole = elements(stream, stream.len().max(1), usize::MAX);
    let pieces = elements(stream, cut % 17 + 1, usize::MAX);
    assert_eq!(whole, pieces, "where blocks are cut means nothing");
    assert_eq!(elements(stream, 1, cut), elements(stream, stream.len().max(1), cut));
    let mut framer = Framer::new(usize::MAX);
    framer.push(Bytes::copy_from_slice(stream));
    let frames = std::iter::from_fn(|| framer.next_frame().map(|frame| frame.expect("no limit")));
    let mut events = gemini::event::Events::default();
    for frame in frames {
        let Ok(Some(data)) = gemini::event::data(&frame) else { continue };
        let _ = events.read(frame.event(), &data);
    }
    gemini_chunk(&String::from_utf8_lossy(data));
    let Ok(whole) = gemini::answer::read(data) else { return };
    let body = Bytes::copy_from_slice(data);
    let calls = whole.choices.iter().flat_map(|choice| &choice.calls);
    let changes: Vec<_> = calls.filter_map(|call| Some((call.span.clone()?, "{\"mended\":1}"))).collect();
    let mended = gemini::answer::with_arguments(&body, &changes);
    let again = gemini::answer::read(&mended).expect("a splice leaves JSON");
    for call in again.choices.iter().flat_map(|choice| &choice.calls).filter(|call| call.span.is_some()) {
        assert_eq!(call.arguments, "{\"mended\":1}");
    }
    let _ = gemini::write_answer::write(&koboshi_wire::writer::Head::default(), &whole, None);
}

/// What stands in a list that comes in blocks of this size, and whether it was refused for its length.
fn elements(stream: &[u8], size: usize, max: usize) -> (Vec<Option<String>>, bool) {
    let mut framer = gemini::array::Framer::new(max);
    let (mut said, mut joined, mut refused) = (Vec::new(), Vec::new(), false);
    for block in stream.chunks(size) {
        let block = Bytes::copy_from_slice(block);
        framer.push(block.clone());
        while let Some(frame) = framer.next_frame() {
            assert!(!refused, "nothing comes after a refusal");
            let Ok(frame) = frame else {
                refused = true;
                continue;
            };
            assert!(frame.raw().len() <= max);
            if let Some(at) = frame.at() {
                assert_eq!(block.slice(at), frame.raw(), "it stands where it says");
            }
            joined.extend_from_slice(frame.raw());
            said.push(
                frame.data().map_or_else(|error| Some(error.to_string()), |data| data.map(str::to_owned)),
            );
        }
        assert!(framer.pending() <= max);
    }
    let pending = framer.pending();
    let rest = framer.finish();
    assert_eq!(rest.as_ref().map_or(0, |frame| frame.raw().len()), pending);
    joined.extend(rest.iter().flat_map(|frame| frame.raw().to_vec()));
    if !refused {
        assert_eq!(joined, stream, "nothing is lost, nothing is added");
    }
    (said, refused)
}

/// Any text as a chunk: read or refused, and what was read can be said.
fn gemini_chunk(text: &str) {
    let trimmed = text.trim_ascii();
    let value: Option<Value> = serde_json::from_str(trimmed).ok();
    match gemini::event::Events::default().read(None, text) {
        Ok(step) => {
            assert!(step.text.as_deref() != Some("") && step.thought.as_deref() != Some(""));
            assert!(step.finish.iter().all(|(_, reason)| !reason.is_empty()));
            assert!(!step.done || !step.finish.is_empty());
            let head = koboshi_wire::writer::Head::default();
            let said = gemini::writer::Writer::new(head, true).write_step(&step);
            if !said.is_empty() {
                let json = said.strip_prefix(b"data: ").expect("an event");
                let again = std::str::from_utf8(json).expect("text");
                let again = gemini::event::Events::default().read(None, again).expect("a chunk");
                assert_eq!(again.signature, step.signature);
                assert_eq!(again.thought, step.thought);
                assert_eq!(again.text, step.text);
            }
        }
        Err(_) => assert!(!value.is_some_and(|value| value.is_object()), "every object can be read"),
    }
}

/// Any bytes as a request of Gemini: refused in words, or read; then its form can be written, and whatever is changed, it is a request again.
pub(crate) fn gemini_request(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let _ = gemini::count::parse("m", &body);
    let request = match GeminiRequest::parse("gemini-2.5-flash", false, &body) {
        Ok(request) => request,
        Err(error) => {
            assert!(error.to_string().len() < 400, "what is said is bounded");
            return;
        }
    };
    assert!(request.opening().len() <= body.len());
    let _ = (request.metadata("mode"), request.tools().count());
    let written = gemini::body::write(request.form(), facts(request.model()));
    let again =
        GeminiRequest::parse("gemini-2.5-flash", false, &written.body).expect("a form gives a request");
    let roles: Vec<_> = again.form().turns.iter().map(|turn| turn.role).collect();
    assert!(roles.windows(2).all(|two| two[0] != two[1]), "sides take turns");
    assert_eq!(
        gemini::body::write(again.form(), facts(request.model())).body,
        written.body,
        "once in order, it stays so"
    );
    assert_eq!(gemini::Rewrite::of(&request, &body).finish().as_ptr(), body.as_ptr(), "no wish, no copy");
    let call = WholeCall { id: "call_x", name: "tool", arguments: "{broken", ..WholeCall::default() };
    let mut rewrite = gemini::Rewrite::of(&request, &body);
    rewrite.tool_choice_none().max_output(7).whole_calls().without_ids();
    rewrite.append_to_last_tool_result("note\n\u{1f}").continue_with("so \"far");
    rewrite.corrected("x", &[Correction { call, correction: "no JSON" }]).append_assistant("end");
    let changed = rewrite.finish();
    let again =
        GeminiRequest::parse("gemini-2.5-flash", false, &changed).expect("a changed request is a request");
    assert_eq!(again.form().max_output, Some(7));
    let grown = again.form().turns.len() - request.form().turns.len();
    assert!((2..=4).contains(&grown), "{grown}");
    assert_eq!(again.tools().count(), request.tools().count());
}

/// What is known of a model.
fn facts(model: &str) -> Facts {
    static MODELS: LazyLock<Models> =
        LazyLock::new(|| Models::builtin().expect("the built-in facts are sound"));
    MODELS.facts("", model)
}
