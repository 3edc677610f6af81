//! Gemini's chunks and answers, as Google writes them.
//!
//! Nothing stands before content, a call comes whole, and there is no end mark but the chunk with the finish reason: so an answer has no opening
//! frame, the pieces of a call wait until it is whole, and that chunk is the end mark.

use serde_json::{Value, json};

use super::{Stamp, WholeAnswer, quoted};
use crate::acts::{Act, Head, TokenCount};
use crate::error;
use koboshi_wire::Dialect;
use koboshi_wire::form::free_text;

/// Writes the chunks of a stream.
#[derive(Debug)]
pub(crate) struct Writer {
    stamp: Stamp,
    /// The stream is one JSON list.
    list: bool,
    opening: bool,
    tokens: TokenCount,
    /// A signature that goes with the next part.
    signature: Option<String>,
    /// The call that is under way, and its arguments up to now.
    call: Option<(Head, String)>,
    reason: &'static str,
}

impl Writer {
    pub(super) const fn new(stamp: Stamp, list: bool) -> Self {
        let tokens = TokenCount { given: 0, thought: 0 };
        Self { stamp, list, opening: false, tokens, signature: None, call: None, reason: "stop" }
    }

    pub(super) fn write(&mut self, act: Act) -> String {
        match act {
            Act::Open { .. } | Act::Usage(_) => String::new(),
            Act::Thought(piece) => {
                self.tokens.thought = self.tokens.thought.saturating_add(1);
                self.chunk(&format!("{{\"text\":{},\"thought\":true}}", quoted(&piece)), None)
            }
            Act::Seal(signature) => {
                self.signature = Some(signature);
                String::new()
            }
            Act::Text(piece) => {
                self.tokens.given = self.tokens.given.saturating_add(1);
                let part = format!("{{\"text\":{}{}}}", quoted(&piece), self.signed());
                self.chunk(&part, None)
            }
            Act::Call(head) => {
                self.call = Some((head, String::new()));
                String::new()
            }
            Act::Piece(piece) => {
                self.tokens.given = self.tokens.given.saturating_add(1);
                if let Some((_, arguments)) = &mut self.call {
                    arguments.push_str(&piece);
                }
                String::new()
            }
            Act::CallEnd => match self.call.take() {
                Some((head, arguments)) => {
                    let signed = self.signed();
                    let args = args_of(&head, &arguments);
                    let name = quoted(&head.name);
                    let part = format!("{{\"functionCall\":{{\"name\":{name},\"args\":{args}}}{signed}}}");
                    self.chunk(&part, None)
                }
                None => String::new(),
            },
            Act::Finish { reason, tokens } => {
                (self.reason, self.tokens) = (reason, tokens);
                String::new()
            }
            Act::Done => {
                let part = if self.reason == crate::answer::MALFORMED {
                    String::new()
                } else {
                    format!("{{\"text\":\"\"{}}}", self.signed())
                };
                let last = self.chunk(&part, Some(word_of(self.reason)));
                last + if self.list { "]" } else { "" }
            }
        }
    }

    pub(super) fn failed(&mut self) -> String {
        let error = error::in_band(Dialect::Gemini).to_string();
        if self.list { self.framed(&error) + "]" } else { error + "\n" }
    }

    /// The beginning of the chunk with the current call.
    pub(super) fn opening(&mut self) -> String {
        let Some((head, arguments)) = self.call.take() else { return String::new() };
        let part = format!("{{\"functionCall\":{{\"name\":{},\"args\":", quoted(&head.name));
        let before = match (self.list, self.opening) {
            (false, _) => "data: ",
            (true, false) => "[",
            (true, true) => ",\r\n",
        };
        format!("{before}{{\"candidates\":[{{\"content\":{{\"parts\":[{part}{arguments}")
    }

    /// The signature as a field, once.
    fn signed(&mut self) -> String {
        let signature = self.signature.take();
        signature
            .map_or_else(String::new, |signature| format!(",\"thoughtSignature\":{}", quoted(&signature)))
    }

    fn chunk(&mut self, part: &str, finish: Option<&str>) -> String {
        let finish = finish
            .map_or_else(String::new, |word| format!(",\"finishReason\":\"{word}\"{}", explained(word)));
        let candidate =
            format!("{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}}{finish},\"index\":0}}");
        let json = answer(&self.stamp, &format!("\"candidates\":[{candidate}],"), self.tokens);
        self.framed(&json)
    }

    fn framed(&mut self, json: &str) -> String {
        let opening = std::mem::replace(&mut self.opening, true);
        match (self.list, opening) {
            (false, _) => format!("data: {json}\r\n\r\n"),
            (true, false) => format!("[{json}"),
            (true, true) => format!(",\r\n{json}"),
        }
    }
}

/// The message for a finish reason.
fn explained(word: &str) -> &'static str {
    if word == crate::answer::MALFORMED {
        ",\"finishMessage\":\"Malformed function call: print(default_api.\""
    } else {
        ""
    }
}

/// The arguments as a value. What is no JSON cannot stand here; it is the text of it then.
fn args_of(head: &Head, arguments: &str) -> Value {
    if head.free_text {
        return json!({ free_text::FIELD: arguments });
    }
    serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
}

fn word_of(reason: &str) -> &str {
    match reason {
        "stop" | "tool_calls" => "STOP",
        "length" => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        other => other,
    }
}

/// An answer object with these fields in front.
fn answer(stamp: &Stamp, fields: &str, tokens: TokenCount) -> String {
    let thoughts = match tokens.thought {
        0 => String::new(),
        count => format!(",\"thoughtsTokenCount\":{count}"),
    };
    format!(
        "{{{fields}\"usageMetadata\":{{\"promptTokenCount\":{},\"candidatesTokenCount\":{},\"totalTokenCount\":{}{thoughts}}},\
         \"modelVersion\":{},\"responseId\":{}}}",
        stamp.prompt,
        tokens.given,
        stamp.prompt.saturating_add(tokens.output()),
        quoted(&stamp.model),
        quoted(&stamp.id)
    )
}

pub(super) fn whole(stamp: &Stamp, whole_answer: &WholeAnswer) -> String {
    let mut parts: Vec<Value> = Vec::new();
    let mut signature = None;
    if let Some((words, proof)) = &whole_answer.thought {
        signature = Some(proof);
        if !words.is_empty() {
            parts.push(json!({"text": words, "thought": true}));
        }
    }
    let is_malformed = whole_answer.reason == crate::answer::MALFORMED;
    if !whole_answer.text.is_empty() || (whole_answer.calls.is_empty() && !is_malformed) {
        parts.push(json!({"text": whole_answer.text}));
    }
    for (head, arguments) in &whole_answer.calls {
        parts.push(json!({"functionCall": {"name": head.name, "args": args_of(head, arguments)}}));
    }
    let unsealed = parts.iter_mut().find(|part| part.get("thought").is_none());
    if let (Some(Value::Object(part)), Some(signature)) = (unsealed, signature) {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
    let word = word_of(whole_answer.reason);
    let candidate = format!(
        "\"candidates\":[{{\"content\":{{\"parts\":{},\"role\":\"model\"}},\"finishReason\":\"{word}\"{},\"index\":0}}],",
        json!(parts),
        explained(word)
    );
    answer(stamp, &candidate, whole_answer.tokens)
}

/// An answer without candidates.
pub(super) fn empty(stamp: &Stamp) -> String {
    answer(stamp, "", TokenCount::default())
}
