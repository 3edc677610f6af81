//! Gemini's chunks and answers, as Google writes them.
//!
//! Nothing stands before content, a call comes whole, and there is no end mark but the chunk with the finish reason: so an answer begins with
//! silence, the pieces of a call wait until it is whole, and what other dialects say as end mark is that chunk.

use serde_json::{Value, json};

use super::{Stamp, Told, quoted};
use crate::acts::{Act, Head, Spent};
use crate::error;
use koboshi_wire::Dialect;
use koboshi_wire::form::free_text;

/// Writes the chunks of a stream.
#[derive(Debug)]
pub(crate) struct Voice {
    stamp: Stamp,
    /// The stream is one JSON list.
    list: bool,
    begun: bool,
    spent: Spent,
    /// A seal that goes with the next part.
    seal: Option<String>,
    /// The call that is under way, and its arguments so far.
    call: Option<(Head, String)>,
    reason: &'static str,
}

impl Voice {
    pub(super) const fn new(stamp: Stamp, list: bool) -> Self {
        let spent = Spent { given: 0, thought: 0 };
        Self { stamp, list, begun: false, spent, seal: None, call: None, reason: "stop" }
    }

    pub(super) fn say(&mut self, act: Act) -> String {
        match act {
            Act::Open { .. } | Act::Usage(_) => String::new(),
            Act::Thought(piece) => {
                self.spent.thought = self.spent.thought.saturating_add(1);
                self.chunk(&format!("{{\"text\":{},\"thought\":true}}", quoted(&piece)), None)
            }
            Act::Seal(seal) => {
                self.seal = Some(seal);
                String::new()
            }
            Act::Text(piece) => {
                self.spent.given = self.spent.given.saturating_add(1);
                let part = format!("{{\"text\":{}{}}}", quoted(&piece), self.sealed());
                self.chunk(&part, None)
            }
            Act::Call(head) => {
                self.call = Some((head, String::new()));
                String::new()
            }
            Act::Piece(piece) => {
                self.spent.given = self.spent.given.saturating_add(1);
                if let Some((_, arguments)) = &mut self.call {
                    arguments.push_str(&piece);
                }
                String::new()
            }
            Act::CallEnd => match self.call.take() {
                Some((head, arguments)) => {
                    let sealed = self.sealed();
                    let args = args_of(&head, &arguments);
                    let name = quoted(&head.name);
                    let part = format!("{{\"functionCall\":{{\"name\":{name},\"args\":{args}}}{sealed}}}");
                    self.chunk(&part, None)
                }
                None => String::new(),
            },
            Act::Finish { reason, spent } => {
                (self.reason, self.spent) = (reason, spent);
                String::new()
            }
            Act::Done => {
                let part = if self.reason == crate::answer::MALFORMED {
                    String::new()
                } else {
                    format!("{{\"text\":\"\"{}}}", self.sealed())
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
    pub(super) fn begun(&mut self) -> String {
        let Some((head, arguments)) = self.call.take() else { return String::new() };
        let part = format!("{{\"functionCall\":{{\"name\":{},\"args\":", quoted(&head.name));
        let before = match (self.list, self.begun) {
            (false, _) => "data: ",
            (true, false) => "[",
            (true, true) => ",\r\n",
        };
        format!("{before}{{\"candidates\":[{{\"content\":{{\"parts\":[{part}{arguments}")
    }

    /// The seal as a field, once.
    fn sealed(&mut self) -> String {
        let seal = self.seal.take();
        seal.map_or_else(String::new, |seal| format!(",\"thoughtSignature\":{}", quoted(&seal)))
    }

    fn chunk(&mut self, part: &str, finish: Option<&str>) -> String {
        let finish = finish
            .map_or_else(String::new, |word| format!(",\"finishReason\":\"{word}\"{}", explained(word)));
        let candidate =
            format!("{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}}{finish},\"index\":0}}");
        let json = answer(&self.stamp, &format!("\"candidates\":[{candidate}],"), self.spent);
        self.framed(&json)
    }

    fn framed(&mut self, json: &str) -> String {
        let begun = std::mem::replace(&mut self.begun, true);
        match (self.list, begun) {
            (false, _) => format!("data: {json}\r\n\r\n"),
            (true, false) => format!("[{json}"),
            (true, true) => format!(",\r\n{json}"),
        }
    }
}

/// What else is said to a reason.
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
fn answer(stamp: &Stamp, fields: &str, spent: Spent) -> String {
    let thoughts = match spent.thought {
        0 => String::new(),
        count => format!(",\"thoughtsTokenCount\":{count}"),
    };
    format!(
        "{{{fields}\"usageMetadata\":{{\"promptTokenCount\":{},\"candidatesTokenCount\":{},\"totalTokenCount\":{}{thoughts}}},\
         \"modelVersion\":{},\"responseId\":{}}}",
        stamp.prompt,
        spent.given,
        stamp.prompt.saturating_add(spent.output()),
        quoted(&stamp.model),
        quoted(&stamp.id)
    )
}

pub(super) fn whole(stamp: &Stamp, told: &Told) -> String {
    let mut parts: Vec<Value> = Vec::new();
    let mut seal = None;
    if let Some((words, proof)) = &told.thought {
        seal = Some(proof);
        if !words.is_empty() {
            parts.push(json!({"text": words, "thought": true}));
        }
    }
    let is_malformed = told.reason == crate::answer::MALFORMED;
    if !told.text.is_empty() || (told.calls.is_empty() && !is_malformed) {
        parts.push(json!({"text": told.text}));
    }
    for (head, arguments) in &told.calls {
        parts.push(json!({"functionCall": {"name": head.name, "args": args_of(head, arguments)}}));
    }
    let unsealed = parts.iter_mut().find(|part| part.get("thought").is_none());
    if let (Some(Value::Object(part)), Some(seal)) = (unsealed, seal) {
        part.insert("thoughtSignature".to_owned(), json!(seal));
    }
    let word = word_of(told.reason);
    let candidate = format!(
        "\"candidates\":[{{\"content\":{{\"parts\":{},\"role\":\"model\"}},\"finishReason\":\"{word}\"{},\"index\":0}}],",
        json!(parts),
        explained(word)
    );
    answer(stamp, &candidate, told.spent)
}

/// An answer without candidates.
pub(super) fn empty(stamp: &Stamp) -> String {
    answer(stamp, "", Spent::default())
}
