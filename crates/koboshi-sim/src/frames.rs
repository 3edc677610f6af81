//! A healthy stream of chat completions, frame by frame.

use std::fmt::Display;

use serde_json::{Value, json};

use crate::answer::{Answer, InPieces, Speech};

/// What every chunk of an answer carries.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: i64,
    /// Tokens of the conversation.
    pub(crate) prompt: u64,
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Role,
    Text,
    CallStart,
    CallPiece,
    Finish,
    Usage,
    Done,
}

/// Frames of a stream, made one by one.
#[derive(Debug)]
pub(crate) struct Frames {
    /// The beginning of every chunk, up to its choices.
    open: String,
    prompt: u64,
    usage: bool,
    speech: Speech,
    calls: std::vec::IntoIter<InPieces>,
    has_calls: bool,
    calls_cut: bool,
    /// What is left of the arguments of the current call, and its index.
    pieces: Option<std::vec::IntoIter<String>>,
    index: u64,
    given: u64,
    next: Part,
    over: bool,
}

impl Frames {
    pub(crate) fn new(stamp: &Stamp, answer: Answer, usage: bool) -> Self {
        let calls_cut = answer.calls_cut();
        Self {
            open: format!(
                "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\
                 \"service_tier\":\"default\",\"system_fingerprint\":\"fp_sim\",\"choices\":[",
                json!(stamp.id),
                stamp.created,
                json!(stamp.model)
            ),
            prompt: stamp.prompt,
            usage,
            speech: answer.speech,
            has_calls: !answer.calls.is_empty(),
            calls: answer.calls.into_iter(),
            calls_cut,
            pieces: None,
            index: 0,
            given: 0,
            next: Part::Role,
            over: false,
        }
    }

    /// Everything that is still to come is left out but the finish, which has this reason.
    pub(crate) fn finish_as(&mut self, reason: &'static str) -> String {
        self.next = if self.usage { Part::Usage } else { Part::Done };
        self.chunk("{}", Some(reason))
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

    fn call(&mut self) -> Option<(Part, String)> {
        if let Some(piece) = self.pieces.as_mut().and_then(Iterator::next) {
            self.given = self.given.saturating_add(1);
            let index = self.index.saturating_sub(1);
            let delta = json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            return Some((Part::CallPiece, self.chunk(&delta, None)));
        }
        let call = self.calls.next()?;
        let delta = json!({"tool_calls": [{
            "index": self.index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""},
        }]});
        self.pieces = Some(call.arguments.into_iter());
        self.index = self.index.saturating_add(1);
        Some((Part::CallStart, self.chunk(&delta, None)))
    }
}

impl Iterator for Frames {
    type Item = (Part, String);

    fn next(&mut self) -> Option<Self::Item> {
        match self.next {
            _ if self.over => None,
            Part::Role => {
                self.next = Part::Text;
                let content = if self.has_calls { Value::Null } else { json!("") };
                let delta = json!({"role": "assistant", "content": content, "refusal": null});
                Some((Part::Role, self.chunk(&delta, None)))
            }
            Part::Text => {
                let Some(piece) = self.speech.next() else {
                    self.next = Part::CallStart;
                    return self.next();
                };
                self.given = self.given.saturating_add(1);
                // The one frame that comes often: no value in between.
                let text = serde_json::to_string(&piece).unwrap_or_default();
                Some((Part::Text, self.chunk(format_args!("{{\"content\":{text}}}"), None)))
            }
            Part::CallStart | Part::CallPiece => {
                let call = self.call();
                if call.is_none() {
                    self.next = Part::Finish;
                    return self.next();
                }
                call
            }
            Part::Finish => {
                let reason = Answer::finish(self.has_calls, self.calls_cut, &self.speech);
                Some((Part::Finish, self.finish_as(reason)))
            }
            Part::Usage => {
                self.next = Part::Done;
                Some((
                    Part::Usage,
                    format!("{}],\"usage\":{}}}\n\n", self.open, usage(self.prompt, self.given)),
                ))
            }
            Part::Done => {
                self.over = true;
                Some((Part::Done, "data: [DONE]\n\n".to_owned()))
            }
        }
    }
}

/// What an answer cost.
pub(crate) fn usage(prompt: u64, given: u64) -> Value {
    json!({
        "prompt_tokens": prompt, "completion_tokens": given, "total_tokens": prompt.saturating_add(given),
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
