//! Responses, as OpenAI writes them.
//!
//! An answer is made of items, and its last event repeats all of them: so what was sent is remembered here.

use serde_json::{Value, json};

use super::{Stamp, WholeAnswer, quoted, with};
use crate::acts::{Act, Head, TokenCount};
use crate::error;
use koboshi_wire::Dialect;

/// Writes the events of a stream.
#[derive(Debug)]
pub(crate) struct Writer {
    stamp: Stamp,
    /// The next `sequence_number`.
    number: u64,
    /// Items that are done.
    output: Vec<Value>,
    open: Option<Item>,
    /// Why it ended, and what it cost.
    end: (&'static str, TokenCount),
}

/// The item that is under way, with its content up to now.
#[derive(Debug)]
enum Item {
    Thought(String),
    Text(String),
    Call(Head, String),
}

impl Writer {
    pub(super) const fn new(stamp: Stamp) -> Self {
        let end = ("stop", TokenCount { given: 0, thought: 0 });
        Self { stamp, number: 0, output: Vec::new(), open: None, end }
    }

    pub(super) fn write(&mut self, act: Act) -> String {
        match act {
            Act::Open { .. } => {
                let response = response(&self.stamp, "in_progress", &[], &Value::Null);
                self.event("response.created", &json!({"response": response}))
                    + &self.event("response.in_progress", &json!({"response": response}))
            }
            Act::Thought(piece) => self.think(&piece),
            Act::Seal(signature) => self.signature(&signature),
            Act::Text(piece) => self.text_event(&piece),
            Act::Call(head) => {
                let end = self.close("completed");
                let item = call(&head, "", "in_progress", &self.item_id(kind_of(&head)));
                self.open = Some(Item::Call(head, String::new()));
                end + &self.at("response.output_item.added", json!({"item": item}))
            }
            Act::Piece(piece) => {
                let Some(Item::Call(head, arguments)) = &mut self.open else { return String::new() };
                arguments.push_str(&piece);
                let (id, event) = (kind_of(head), delta_of(head));
                let id = self.item_id(id);
                self.at(event, json!({"item_id": id, "delta": piece}))
            }
            Act::CallEnd => self.close("completed"),
            Act::Finish { reason, tokens } => {
                self.end = (reason, tokens);
                self.close(if is_whole(reason) { "completed" } else { "incomplete" })
            }
            Act::Done => {
                let (reason, tokens) = self.end;
                let kind = if is_whole(reason) { "response.completed" } else { "response.incomplete" };
                let response = ended(&self.stamp, &self.output, reason, tokens);
                self.event(kind, &json!({"response": response}))
            }
            Act::Usage(_) => String::new(),
        }
    }

    /// The end of a stream that failed.
    pub(super) fn failed(&mut self) -> String {
        let response = with(response(&self.stamp, "failed", &self.output, &Value::Null), "error", fault());
        self.event("response.failed", &json!({"response": response}))
    }

    fn think(&mut self, piece: &str) -> String {
        let id = self.item_id("rs");
        let mut out = String::new();
        if let Some(Item::Thought(words)) = &mut self.open {
            words.push_str(piece);
        } else {
            out += &self.at("response.output_item.added", json!({"item": thought(&id, "", None)}));
            let part =
                json!({"item_id": id, "summary_index": 0, "part": {"type": "summary_text", "text": ""}});
            out += &self.at("response.reasoning_summary_part.added", part);
            self.open = Some(Item::Thought(piece.to_owned()));
        }
        let delta = json!({"item_id": id, "summary_index": 0, "delta": piece});
        out + &self.at("response.reasoning_summary_text.delta", delta)
    }

    fn signature(&mut self, signature: &str) -> String {
        let id = self.item_id("rs");
        let mut out = String::new();
        let words = match self.open.take() {
            Some(Item::Thought(words)) => {
                let text = json!({"item_id": id, "summary_index": 0, "text": words});
                out += &self.at("response.reasoning_summary_text.done", text);
                let part = json!({"item_id": id, "summary_index": 0, "part": {"type": "summary_text", "text": words}});
                out += &self.at("response.reasoning_summary_part.done", part);
                words
            }
            _ => {
                out += &self.at("response.output_item.added", json!({"item": thought(&id, "", None)}));
                String::new()
            }
        };
        out + &self.done(thought(&id, &words, Some(signature)))
    }

    fn text_event(&mut self, piece: &str) -> String {
        let id = self.item_id("msg");
        let mut out = String::new();
        if let Some(Item::Text(words)) = &mut self.open {
            words.push_str(piece);
        } else {
            out += &self.at("response.output_item.added", json!({"item": message(&id, "", "in_progress")}));
            let part = json!({"item_id": id, "content_index": 0, "part": text("")});
            out += &self.at("response.content_part.added", part);
            self.open = Some(Item::Text(piece.to_owned()));
        }
        // The one event that comes often: no value in between.
        let fields = format!(
            "\"item_id\":\"{id}\",\"output_index\":{},\"content_index\":0,\"delta\":{},\"logprobs\":[]",
            self.output.len(),
            quoted(piece)
        );
        out + &self.raw("response.output_text.delta", &fields)
    }

    /// Ends the item that is open.
    fn close(&mut self, status: &str) -> String {
        match self.open.take() {
            Some(Item::Text(words)) => {
                let id = self.item_id("msg");
                let done = json!({"item_id": id, "content_index": 0, "text": words, "logprobs": []});
                let out = self.at("response.output_text.done", done);
                let part = json!({"item_id": id, "content_index": 0, "part": text(&words)});
                out + &self.at("response.content_part.done", part) + &self.done(message(&id, &words, status))
            }
            Some(Item::Call(head, arguments)) => {
                let id = self.item_id(kind_of(&head));
                let out = if head.free_text {
                    let done = json!({"item_id": id, "input": arguments});
                    self.at("response.custom_tool_call_input.done", done)
                } else {
                    let done = json!({"item_id": id, "arguments": arguments, "name": head.name});
                    self.at("response.function_call_arguments.done", done)
                };
                out + &self.done(call(&head, &arguments, status, &id))
            }
            Some(Item::Thought(_)) | None => String::new(),
        }
    }

    fn done(&mut self, item: Value) -> String {
        let out = self.at("response.output_item.done", json!({"item": item}));
        self.output.push(item);
        out
    }

    /// The id of the item that is under way.
    fn item_id(&self, kind: &str) -> String {
        item_id(&self.stamp, kind, self.output.len())
    }

    /// An event about the item that is under way.
    fn at(&mut self, kind: &str, fields: Value) -> String {
        let fields = with(fields, "output_index", json!(self.output.len()));
        self.event(kind, &fields)
    }

    fn event(&mut self, kind: &str, fields: &Value) -> String {
        let fields = fields.to_string();
        let inside = fields.strip_prefix('{').and_then(|fields| fields.strip_suffix('}'));
        self.raw(kind, inside.unwrap_or_default())
    }

    fn raw(&mut self, kind: &str, fields: &str) -> String {
        let number = self.number;
        self.number = number.saturating_add(1);
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{number},{fields}}}\n\n")
    }
}

fn item_id(stamp: &Stamp, kind: &str, at: usize) -> String {
    format!("{kind}_{}_{at}", stamp.id.strip_prefix("resp_").unwrap_or(&stamp.id))
}

const fn kind_of(head: &Head) -> &'static str {
    if head.free_text { "ctc" } else { "fc" }
}

const fn delta_of(head: &Head) -> &'static str {
    if head.free_text {
        "response.custom_tool_call_input.delta"
    } else {
        "response.function_call_arguments.delta"
    }
}

fn is_whole(reason: &str) -> bool {
    matches!(reason, "stop" | "tool_calls")
}

fn text(words: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": words})
}

fn message(id: &str, words: &str, status: &str) -> Value {
    let content = if status == "in_progress" { json!([]) } else { json!([text(words)]) };
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

fn thought(id: &str, words: &str, signature: Option<&str>) -> Value {
    let summary = if words.is_empty() { json!([]) } else { json!([{"type": "summary_text", "text": words}]) };
    json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": signature})
}

fn call(head: &Head, arguments: &str, status: &str, id: &str) -> Value {
    if head.free_text {
        json!({"id": id, "type": "custom_tool_call", "status": status, "call_id": head.id, "name": head.name, "input": arguments})
    } else {
        json!({"id": id, "type": "function_call", "status": status, "call_id": head.id, "name": head.name, "arguments": arguments})
    }
}

/// A response object.
fn response(stamp: &Stamp, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": stamp.id, "object": "response", "created_at": stamp.created, "status": status, "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null, "model": stamp.model,
        "output": output, "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "service_tier": "default", "store": false, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": usage, "user": null, "metadata": {},
    })
}

/// A response that has ended for this reason.
fn ended(stamp: &Stamp, output: &[Value], reason: &str, tokens: TokenCount) -> Value {
    let usage = json!({
        "input_tokens": stamp.prompt, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens.output(),
        "output_tokens_details": {"reasoning_tokens": tokens.thought},
        "total_tokens": stamp.prompt.saturating_add(tokens.output()),
    });
    if is_whole(reason) {
        return response(stamp, "completed", output, &usage);
    }
    let why = if reason == "length" { "max_output_tokens" } else { reason };
    with(response(stamp, "incomplete", output, &usage), "incomplete_details", json!({"reason": why}))
}

/// The fields of a response that failed.
fn fault() -> Value {
    let whole_answer = error::in_band(Dialect::Responses);
    json!({"code": "server_error", "message": whole_answer.pointer("/error/message")})
}

pub(super) fn whole(stamp: &Stamp, whole_answer: &WholeAnswer) -> String {
    let status = if is_whole(whole_answer.reason) { "completed" } else { "incomplete" };
    let mut output = Vec::new();
    if let Some((words, signature)) = &whole_answer.thought {
        output.push(thought(&item_id(stamp, "rs", 0), words, Some(signature)));
    }
    if !whole_answer.text.is_empty() {
        output.push(message(&item_id(stamp, "msg", output.len()), &whole_answer.text, status));
    }
    for (head, arguments) in &whole_answer.calls {
        let id = item_id(stamp, kind_of(head), output.len());
        output.push(call(head, arguments, status, &id));
    }
    ended(stamp, &output, whole_answer.reason, whole_answer.tokens).to_string()
}

/// The body of a response that failed.
pub(super) fn failed(stamp: &Stamp) -> String {
    with(response(stamp, "failed", &[], &Value::Null), "error", fault()).to_string()
}
