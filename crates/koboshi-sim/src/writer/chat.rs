//! Chat completions, as OpenAI writes them.

use std::fmt::Display;

use serde_json::{Value, json};

use super::{Stamp, WholeAnswer, quoted, with};
use crate::acts::{Act, Head, TokenCount};

/// Writes the chunks of a stream.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The beginning of every chunk, up to its choices.
    open: String,
    prompt: u64,
    usage: bool,
    /// The current call: its number, and whether it takes free text.
    call: (u64, bool),
}

impl Writer {
    pub(super) fn new(stamp: &Stamp, usage: bool) -> Self {
        Self {
            open: format!(
                "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\
                 \"service_tier\":\"default\",\"system_fingerprint\":\"fp_sim\",\"choices\":[",
                quoted(&stamp.id),
                stamp.created,
                quoted(&stamp.model)
            ),
            prompt: stamp.prompt,
            usage,
            call: (0, false),
        }
    }

    pub(super) fn write(&mut self, act: Act) -> String {
        match act {
            Act::Open { calls } => {
                let content = if calls { Value::Null } else { json!("") };
                self.chunk(json!({"role": "assistant", "content": content, "refusal": null}), None)
            }
            // The one frame that comes often: no value in between.
            Act::Text(piece) => self.chunk(format_args!("{{\"content\":{}}}", quoted(&piece)), None),
            Act::Call(head) => {
                self.call = (head.index, head.free_text);
                let call = with(called(&head, ""), "index", json!(head.index));
                self.chunk(json!({"tool_calls": [call]}), None)
            }
            Act::Piece(piece) => {
                let (index, free_text) = self.call;
                let call = if free_text {
                    json!({"index": index, "custom": {"input": piece}})
                } else {
                    json!({"index": index, "function": {"arguments": piece}})
                };
                self.chunk(json!({"tool_calls": [call]}), None)
            }
            Act::Finish { reason, .. } => self.chunk("{}", Some(reason)),
            Act::Usage(tokens) => {
                format!("{}],\"usage\":{}}}\n\n", self.open, usage(self.prompt, tokens))
            }
            Act::Done => "data: [DONE]\n\n".to_owned(),
            Act::Thought(_) | Act::Seal(_) | Act::CallEnd => String::new(),
        }
    }

    fn chunk(&self, delta: impl Display, finish: Option<&str>) -> String {
        let usage = if self.usage { ",\"usage\":null" } else { "" };
        let mark = if finish.is_some() { "\"" } else { "" };
        let reason = finish.unwrap_or("null");
        format!(
            "{}{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{mark}{reason}{mark}}}]{usage}}}\n\n",
            self.open
        )
    }
}

fn called(head: &Head, arguments: &str) -> Value {
    if head.free_text {
        json!({"id": head.id, "type": "custom", "custom": {"name": head.name, "input": arguments}})
    } else {
        json!({"id": head.id, "type": "function", "function": {"name": head.name, "arguments": arguments}})
    }
}

pub(super) fn whole(stamp: &Stamp, whole_answer: &WholeAnswer) -> String {
    let mut message =
        json!({"role": "assistant", "content": whole_answer.text, "refusal": null, "annotations": []});
    if let (Value::Object(fields), false) = (&mut message, whole_answer.calls.is_empty()) {
        if whole_answer.text.is_empty() {
            fields.insert("content".to_owned(), Value::Null);
        }
        let calls = whole_answer.calls.iter().map(|(head, arguments)| called(head, arguments)).collect();
        fields.insert("tool_calls".to_owned(), calls);
    }
    let choice =
        json!({"index": 0, "message": message, "logprobs": null, "finish_reason": whole_answer.reason});
    completion(stamp, &json!([choice]), whole_answer.tokens)
}

/// An answer without choices.
pub(super) fn empty(stamp: &Stamp) -> String {
    completion(stamp, &json!([]), TokenCount::default())
}

fn completion(stamp: &Stamp, choices: &Value, tokens: TokenCount) -> String {
    json!({
        "id": stamp.id, "object": "chat.completion", "created": stamp.created, "model": stamp.model,
        "choices": choices, "usage": usage(stamp.prompt, tokens), "service_tier": "default",
        "system_fingerprint": "fp_sim",
    })
    .to_string()
}

/// What an answer cost.
fn usage(prompt: u64, tokens: TokenCount) -> Value {
    let given = tokens.output();
    json!({
        "prompt_tokens": prompt, "completion_tokens": given, "total_tokens": prompt.saturating_add(given),
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.thought, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}
