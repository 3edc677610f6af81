//! Questions and answers in every dialect, and what an answer says in no dialect.
//!
//! A test that is about falls, and not about a dialect, asks with [`body`] at [`path`] and reads the answer with [`read_answer`].

use bytes::Bytes;
use koboshi::models::Facts;
use koboshi_sim::Ask;
use koboshi_wire::any::{Edits, Events, Request, TargetTraits, answer};
use koboshi_wire::dialect::finish;
use koboshi_wire::gemini::array;
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::{Dialect, Malformed};
use serde_json::Value;

use crate::client::Answer;

/// The longest frame of a stream.
const MAX_FRAME: usize = 1 << 24;

/// The content of an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadAnswer {
    /// The visible text.
    pub text: String,
    /// The text of the thinking.
    pub thought: String,
    /// The provider's signatures of thoughts and calls, in order.
    pub signatures: Vec<String>,
    /// The calls: name, and arguments as they were written.
    pub calls: Vec<(String, String)>,
    /// Why it ended, in the words of chat completions; none if it did not.
    pub finish: Option<String>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// There is an error object in it.
    pub error: bool,
    /// A stream has its terminal mark.
    pub done: bool,
    /// Something in it cannot be read.
    pub malformed: bool,
}

impl ReadAnswer {
    /// Names and arguments of the calls, the arguments read.
    pub fn read_calls(&self) -> Vec<(String, Value)> {
        let read = |(name, text): &(String, String)| (name.clone(), serde_json::from_str(text).unwrap());
        self.calls.iter().map(read).collect()
    }

    fn step(&mut self, step: &Step<'_>) {
        self.text.extend(step.text.as_deref());
        self.thought.extend(step.thought.as_deref());
        self.signatures.extend(step.signature.as_deref().map(str::to_owned));
        for piece in &step.calls {
            let index = usize::try_from(piece.index).unwrap();
            while self.calls.len() <= index {
                self.calls.push((String::new(), String::new()));
            }
            self.calls[index].0.extend(piece.name.as_deref());
            self.calls[index].1.extend(piece.arguments.as_deref());
            self.signatures.extend(piece.signature.as_deref().map(str::to_owned));
        }
        for (_, reason) in &step.finish {
            assert_eq!(self.finish, None, "an answer ends once");
            self.finish = Some(reason.to_string());
        }
        self.usage = step.usage.or(self.usage);
        self.error |= step.error;
        self.done |= step.done;
    }
}

/// The endpoint of this dialect: a path of the vendor's own, for this model.
pub fn path(dialect: Dialect, model: &str, stream: bool) -> String {
    let encoded = model.replace('%', "%25").replace('?', "%3F").replace('/', "%2F");
    match (dialect, stream) {
        (Dialect::Chat, _) => "/v1/chat/completions".to_owned(),
        (Dialect::Responses, _) => "/v1/responses".to_owned(),
        (Dialect::Messages, _) => "/v1/messages".to_owned(),
        (Dialect::Gemini, false) => format!("/v1beta/models/{encoded}:generateContent"),
        (Dialect::Gemini, true) => format!("/v1beta/models/{encoded}:streamGenerateContent?alt=sse"),
    }
}

/// A chat request, as [`questions`](crate::questions) makes them, in this dialect: the text that a gateway would send, because in another order or with
/// other spaces it would be another conversation.
pub fn body(dialect: Dialect, chat: &Value) -> String {
    let text = Bytes::from(chat.to_string());
    let request = Request::parse(Dialect::Chat, &text, None).unwrap();
    let model = request.model().to_owned();
    let edits = Edits::plain(&model);
    let facts = Facts::default().with(|facts| facts.reasoning = Some(true));
    let to = TargetTraits { dialect, prefill: true, facts, ..TargetTraits::default() };
    let written = request.write(&text, to, &edits);
    assert!(written.lacks().is_none(), "{:?}", written.left);
    String::from_utf8(written.body.to_vec()).unwrap()
}

/// Reads an answer in this dialect, whole or as a stream of either form.
pub fn read_answer(dialect: Dialect, answer: &Answer) -> ReadAnswer {
    read_body(dialect, answer.is_stream(), &answer.body)
}

/// Reads a body in this dialect.
pub fn read_body(dialect: Dialect, is_stream: bool, body: &[u8]) -> ReadAnswer {
    if is_stream {
        return stream(dialect, body);
    }
    if dialect.has_list_streams() && body.starts_with(b"[") {
        return list(body);
    }
    let mut read_answer = ReadAnswer::default();
    let Ok(whole) = answer::read(dialect, body) else {
        read_answer.malformed = true;
        return read_answer;
    };
    read_answer.error = whole.error;
    read_answer.usage = whole.usage;
    for choice in whole.choices {
        read_answer.text.extend(choice.text.as_deref());
        for thought in choice.thoughts {
            read_answer.thought.push_str(&thought.text);
            read_answer.signatures.extend(thought.signature.map(|signature| signature.data.into_owned()));
        }
        for call in choice.calls {
            let text = |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
            read_answer.calls.push((text(call.name), call.arguments.into_owned()));
            read_answer.signatures.extend(call.signature.map(|signature| signature.data.into_owned()));
        }
        read_answer.finish = choice.finish.map(std::borrow::Cow::into_owned);
    }
    read_answer
}

fn stream(dialect: Dialect, body: &[u8]) -> ReadAnswer {
    let mut framer = Framer::new(MAX_FRAME);
    framer.push(Bytes::copy_from_slice(body));
    let mut events = Events::of(dialect);
    let mut read_answer = ReadAnswer::default();
    let mut frames = Vec::new();
    while let Some(frame) = framer.next_frame() {
        frames.push(frame.unwrap());
    }
    // A bare error has no blank line behind it.
    frames.extend(
        framer.finish().filter(|frame| dialect.has_bare_stream_errors() && frame.raw().starts_with(b"{")),
    );
    for frame in frames {
        let mut read = || -> Result<(), Malformed> {
            if let Some(data) = events.data(&frame)? {
                read_answer.step(&events.read(frame.event(), &data)?);
            }
            Ok(())
        };
        let broken = read().is_err();
        read_answer.malformed |= broken;
    }
    read_answer
}

fn list(body: &[u8]) -> ReadAnswer {
    let mut framer = array::Framer::new(MAX_FRAME);
    framer.push(Bytes::copy_from_slice(body));
    let mut events = Events::of(Dialect::Gemini);
    let mut read_answer = ReadAnswer::default();
    while let Some(frame) = framer.next_frame() {
        let frame = frame.unwrap();
        let Ok(Some(data)) = frame.data() else { continue };
        match events.read(None, data) {
            Ok(step) => read_answer.step(&step),
            Err(_) => read_answer.malformed = true,
        }
    }
    read_answer
}

/// The answer of a healthy provider of this dialect to a chat request.
pub fn healthy(dialect: Dialect, chat: &Value) -> ReadAnswer {
    let text = body(dialect, chat);
    let ask = Ask { model: "ok", dialect, stream: Some(false), body: text.as_bytes(), ..Ask::default() };
    let answer: Vec<u8> = koboshi_sim::play(&ask).beats.flat_map(|beat| beat.bytes).collect();
    read_body(dialect, false, &answer)
}

/// The answer is the healthy one, whole.
pub fn assert_healthy(dialect: Dialect, answer: &Answer, chat: &Value) {
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    let (read_answer, meant) = (read_answer(dialect, answer), healthy(dialect, chat));
    assert!(!read_answer.error && !read_answer.malformed, "{answer:?}");
    assert_eq!(read_answer.text, meant.text, "{answer:?}");
    assert_eq!(read_answer.read_calls(), meant.read_calls(), "{answer:?}");
    assert_eq!(read_answer.finish, meant.finish, "{answer:?}");
    let usual = if meant.calls.is_empty() { finish::STOP } else { finish::TOOL_CALLS };
    assert_eq!(read_answer.finish.as_deref(), Some(usual), "{answer:?}");
    assert!(!answer.is_stream() || read_answer.done, "{answer:?}");
}
