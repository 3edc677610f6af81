//! Messages, as Anthropic writes them.

use serde_json::{Value, json};

use super::{Stamp, WholeAnswer, quoted};
use crate::acts::{Act, TokenCount};

/// Writes the events of a stream.
#[derive(Debug)]
pub(crate) struct Writer {
    stamp: Stamp,
    /// Number of the next block.
    next: u64,
    open: Option<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Thought,
    Text,
    Call,
}

impl Writer {
    pub(super) const fn new(stamp: Stamp) -> Self {
        Self { stamp, next: 0, open: None }
    }

    pub(super) fn write(&mut self, act: Act) -> String {
        match act {
            Act::Open { .. } => {
                let message = message(&self.stamp, &[], "null", TokenCount { given: 1, thought: 0 });
                event("message_start", &format!("\"message\":{message}")) + &event("ping", "")
            }
            Act::Thought(piece) => {
                let start = self.begin(Block::Thought, r#"{"type":"thinking","thinking":"","signature":""}"#);
                start
                    + &self.delta(&format!("{{\"type\":\"thinking_delta\",\"thinking\":{}}}", quoted(&piece)))
            }
            Act::Seal(signature) => {
                let start = self.begin(Block::Thought, r#"{"type":"thinking","thinking":"","signature":""}"#);
                let delta = self
                    .delta(&format!("{{\"type\":\"signature_delta\",\"signature\":{}}}", quoted(&signature)));
                start + &delta + &self.end()
            }
            Act::Text(piece) => {
                let start = self.begin(Block::Text, r#"{"type":"text","text":""}"#);
                start + &self.delta(&format!("{{\"type\":\"text_delta\",\"text\":{}}}", quoted(&piece)))
            }
            Act::Call(head) => {
                let (id, name) = (quoted(&id_of(&head.id)), quoted(&head.name));
                let block = format!("{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{{}}}}");
                let start = self.end() + &self.begin(Block::Call, &block);
                start + &self.delta(r#"{"type":"input_json_delta","partial_json":""}"#)
            }
            Act::Piece(piece) => {
                self.delta(&format!("{{\"type\":\"input_json_delta\",\"partial_json\":{}}}", quoted(&piece)))
            }
            Act::CallEnd => self.end(),
            Act::Finish { reason, tokens } => {
                let delta = format!("{{\"stop_reason\":\"{}\",\"stop_sequence\":null}}", word_of(reason));
                let usage = usage(&self.stamp, tokens);
                self.end() + &event("message_delta", &format!("\"delta\":{delta},\"usage\":{usage}"))
            }
            Act::Done => event("message_stop", ""),
            Act::Usage(_) => String::new(),
        }
    }

    /// Opens a block, if none of its kind is open.
    fn begin(&mut self, block: Block, content: &str) -> String {
        if self.open == Some(block) {
            return String::new();
        }
        let end = self.end();
        self.open = Some(block);
        self.next = self.next.saturating_add(1);
        let at = self.next.saturating_sub(1);
        end + &event("content_block_start", &format!("\"index\":{at},\"content_block\":{content}"))
    }

    fn delta(&self, delta: &str) -> String {
        let at = self.next.saturating_sub(1);
        event("content_block_delta", &format!("\"index\":{at},\"delta\":{delta}"))
    }

    fn end(&mut self) -> String {
        match self.open.take() {
            Some(_) => event("content_block_stop", &format!("\"index\":{}", self.next.saturating_sub(1))),
            None => String::new(),
        }
    }
}

fn event(name: &str, fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{comma}{fields}}}\n\n")
}

/// The id of a call begins in the vendor's way.
fn id_of(id: &str) -> String {
    format!("toolu_{}", id.strip_prefix("call_").unwrap_or(id))
}

fn word_of(reason: &str) -> &str {
    match reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

fn usage(stamp: &Stamp, tokens: TokenCount) -> String {
    format!(
        "{{\"input_tokens\":{},\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":{}}}",
        stamp.prompt,
        tokens.output()
    )
}

/// A message with these blocks. The reason is JSON.
fn message(stamp: &Stamp, content: &[Value], reason: &str, tokens: TokenCount) -> String {
    format!(
        "{{\"id\":{},\"type\":\"message\",\"role\":\"assistant\",\"model\":{},\"content\":{},\"stop_reason\":{reason},\
         \"stop_sequence\":null,\"usage\":{}}}",
        quoted(&stamp.id),
        quoted(&stamp.model),
        json!(content),
        usage(stamp, tokens)
    )
}

pub(super) fn whole(stamp: &Stamp, whole_answer: &WholeAnswer) -> String {
    let mut content = Vec::new();
    if let Some((words, signature)) = &whole_answer.thought {
        content.push(json!({"type": "thinking", "thinking": words, "signature": signature}));
    }
    if !whole_answer.text.is_empty() {
        content.push(json!({"type": "text", "text": whole_answer.text}));
    }
    for (head, arguments) in &whole_answer.calls {
        // What is no JSON cannot stand here; it is the text of it then.
        let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
        content.push(json!({"type": "tool_use", "id": id_of(&head.id), "name": head.name, "input": input}));
    }
    message(stamp, &content, &quoted(word_of(whole_answer.reason)), whole_answer.tokens)
}
