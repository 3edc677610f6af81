//! How a good answer ended: with what content, which finish reason, and whether it ended at all.
//!
//! One reader for all dialects (chat completions, Responses, Anthropic, Gemini, Ollama, Cohere, Bedrock),
//! whole or in frames, because the question is the same everywhere: is there an error inside, is there
//! anything to use, was the end mark seen. It collects facts; the `finish` rules judge them.

use serde_json::Value;

use super::body::{Data, Frame};

/// What was seen in an answer.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// An error object inside the answer.
    pub(super) error: Option<Value>,
    /// Finish reasons, as they came.
    pub(super) finish: Vec<String>,
    /// Text that a user can see; reasoning does not count.
    pub(super) visible_text: bool,
    /// The beginning of that text: some relays put an error there.
    pub(super) beginning: String,
    /// Arguments of tool calls: whole, or joined from pieces.
    calls: Vec<(u64, String)>,
    /// Calls whose arguments came as an object need no check.
    whole_calls: bool,
    /// The last part is a call that came as an object: cut off, it would look whole.
    pub(super) ends_in_call: bool,
    /// The end mark of a dialect that has one besides the finish reason.
    ended: bool,
    /// The dialect says when it ends by a mark of its own (`message_stop`, `response.completed`, `done`).
    needs_mark: bool,
    /// Something of a known dialect was seen.
    known: bool,
    /// The answer has fields, though not those of a conversation.
    other_fields: bool,
    /// A frame could not be read.
    broken: bool,
}

/// Whether an answer ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    /// Broke off before its end mark.
    Cut,
    /// Came whole, but there is nothing in it.
    Unusable,
}

impl Outcome {
    pub(super) fn of_frames(frames: &[Frame]) -> Self {
        let mut outcome = Self::default();
        for frame in frames {
            match &frame.data {
                Data::Json(value) => outcome.read(frame.event.as_deref(), value),
                Data::Done => {}
                Data::Broken => outcome.broken = true,
            }
        }
        outcome
    }

    pub(super) fn ending(&self, stream: bool) -> Ending {
        let finished = if self.needs_mark { self.ended } else { self.ended || !self.finish.is_empty() };
        match (stream, finished) {
            (_, true) if self.broken => Ending::Unusable,
            (_, true) => Ending::Complete,
            (true, false) => Ending::Cut,
            (false, false) if self.known => {
                if self.is_empty() {
                    Ending::Unusable
                } else {
                    Ending::Complete
                }
            }
            // Token counts, files and moderation are answers of other endpoints, which are not judged here.
            (false, false) if self.other_fields => Ending::Complete,
            (false, false) => Ending::Unusable,
        }
    }

    /// An answer of another endpoint: token counts, files, moderation.
    pub(super) fn is_no_conversation(&self) -> bool {
        !self.known && self.other_fields
    }

    /// Neither text nor a call.
    pub(super) fn is_empty(&self) -> bool {
        !self.visible_text && self.calls.is_empty() && !self.whole_calls
    }

    /// A call whose arguments are no JSON. No arguments at all are those of a call without parameters.
    pub(super) fn broken_call(&self) -> bool {
        self.calls.iter().any(|(_, arguments)| {
            let arguments = arguments.trim();
            !arguments.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err()
        })
    }

    /// Takes in one object of the answer: the whole of it, or a frame.
    pub(super) fn read(&mut self, event: Option<&str>, value: &Value) {
        if self.error.is_none() {
            self.error = error_in(event, value);
        }
        if text(value, "amazon-bedrock-guardrailAction") == "INTERVENED" {
            self.finish.push("guardrail intervened".to_owned());
        }
        let kind = text(value, "type");
        if let Some(choices) = value.get("choices").and_then(Value::as_array) {
            self.known = true;
            choices.iter().for_each(|choice| self.choice(choice));
        } else if kind.starts_with("response.") || text(value, "object") == "response" {
            self.responses(kind, value);
        } else if is_anthropic(kind, value) {
            self.anthropic(kind, value);
        } else if value.get("candidates").is_some() || value.get("promptFeedback").is_some() {
            self.gemini(value);
        } else if let Some(inner) = value.get("response").filter(|inner| inner.get("candidates").is_some()) {
            self.gemini(inner);
        } else if let Some(done) = value.get("done").and_then(Value::as_bool) {
            self.ollama(done, value);
        } else {
            self.flat(value);
        }
    }

    fn choice(&mut self, choice: &Value) {
        self.reason(choice.get("finish_reason"));
        if let Some(error) = choice.get("error").filter(|error| truthy(error)) {
            self.error.get_or_insert_with(|| error.clone());
        }
        self.visible_text |= filled(choice.get("text"));
        for key in ["message", "delta"] {
            let Some(message) = choice.get(key) else { continue };
            self.visible_text |= filled(message.get("content")) || filled(message.get("audio"));
            if let Some(piece) =
                message.get("content").and_then(Value::as_str).filter(|_| self.beginning.len() < 2048)
            {
                self.beginning.push_str(piece);
            }
            if filled(message.get("refusal")) {
                self.finish.push("refusal".to_owned());
            }
            for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                let index = call.get("index").and_then(Value::as_u64);
                self.call(index, call.get("function").unwrap_or(call).get("arguments"));
            }
            if let Some(call) = message.get("function_call").filter(|call| truthy(call)) {
                self.call(Some(0), call.get("arguments"));
            }
        }
    }

    /// Pieces of one call share an index; whole calls have none and are new.
    fn call(&mut self, index: Option<u64>, arguments: Option<&Value>) {
        match arguments {
            Some(Value::String(piece)) => {
                let index = index
                    .unwrap_or(u64::try_from(self.calls.len()).unwrap_or(u64::MAX).saturating_add(1 << 32));
                match self.calls.iter_mut().find(|(known, _)| *known == index) {
                    Some((_, joined)) => joined.push_str(piece),
                    None => self.calls.push((index, piece.clone())),
                }
            }
            _ => self.whole_calls = true,
        }
    }

    fn responses(&mut self, kind: &str, value: &Value) {
        (self.known, self.needs_mark) = (true, true);
        if kind.ends_with("output_text.delta") {
            self.visible_text |= filled(value.get("delta"));
        }
        let response = value.get("response").unwrap_or(value);
        let status = text(response, "status");
        // Asked for in the background: the answer comes later, under its id.
        self.visible_text |= kind.is_empty() && matches!(status, "queued" | "in_progress");
        if !matches!(status, "completed" | "failed" | "incomplete" | "cancelled") {
            return;
        }
        self.ended = true;
        self.finish.push(status.to_owned());
        self.reason(response.pointer("/incomplete_details/reason"));
        for item in response.get("output").and_then(Value::as_array).into_iter().flatten() {
            match text(item, "type") {
                "function_call" => self.call(None, item.get("arguments")),
                "message" => self.blocks(item.get("content")),
                "reasoning" => {}
                _ => self.whole_calls = true,
            }
        }
        if status == "completed" && response.get("output").is_none() {
            // A terminal frame may leave the output out: what streamed before it counts.
            self.visible_text = true;
        }
    }

    fn anthropic(&mut self, kind: &str, value: &Value) {
        self.known = true;
        let index = value.get("index").and_then(Value::as_u64);
        match kind {
            "message" => {
                self.reason(value.get("stop_reason"));
                self.blocks(value.get("content"));
            }
            "content_block_start" => {
                let block = value.get("content_block");
                match block.map_or("", |block| text(block, "type")) {
                    "tool_use" => self.call(index, Some(&Value::String(String::new()))),
                    "text" => self.visible_text |= filled(block.and_then(|block| block.get("text"))),
                    "thinking" | "redacted_thinking" => {}
                    _ => self.whole_calls = true,
                }
            }
            "content_block_delta" => {
                let delta = value.get("delta");
                self.visible_text |= filled(delta.and_then(|delta| delta.get("text")));
                if let Some(piece) = delta.and_then(|delta| delta.get("partial_json")) {
                    self.call(index, Some(piece));
                }
            }
            "message_delta" => self.reason(value.pointer("/delta/stop_reason")),
            "message_stop" => self.ended = true,
            _ => {}
        }
        self.needs_mark |= kind != "message";
    }

    fn blocks(&mut self, content: Option<&Value>) {
        for block in content.and_then(Value::as_array).into_iter().flatten() {
            self.ends_in_call = text(block, "type") == "tool_use" || block.get("toolUse").is_some();
            match text(block, "type") {
                "tool_use" | "server_tool_use" => self.whole_calls = true,
                "refusal" => self.finish.push("refusal".to_owned()),
                "thinking" | "redacted_thinking" => {}
                _ => self.visible_text |= filled(block.get("text")) || block.get("toolUse").is_some(),
            }
        }
    }

    fn gemini(&mut self, value: &Value) {
        self.known = true;
        if let Some(reason) = value.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            self.finish.push(format!("blocked {reason}"));
        }
        for candidate in value.get("candidates").and_then(Value::as_array).into_iter().flatten() {
            self.reason(candidate.get("finishReason"));
            for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
                let thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
                self.visible_text |=
                    !thought && (filled(part.get("text")) || part.get("inlineData").is_some());
                self.ends_in_call = part.get("functionCall").is_some();
                self.whole_calls |=
                    part.get("functionCall").is_some() || part.get("executableCode").is_some();
            }
        }
    }

    fn ollama(&mut self, done: bool, value: &Value) {
        (self.known, self.needs_mark) = (true, true);
        self.ended |= done;
        self.reason(value.get("done_reason"));
        let message = value.get("message");
        self.visible_text |=
            filled(value.get("response")) || filled(message.and_then(|message| message.get("content")));
        self.whole_calls |= filled(message.and_then(|message| message.get("tool_calls")));
    }

    /// Cohere, Bedrock, and answers that are not conversations (embeddings, lists).
    fn flat(&mut self, value: &Value) {
        self.other_fields |= value.as_object().is_some_and(|fields| !fields.is_empty());
        let conversational = ["choices", "usageMetadata"].iter().any(|key| value.get(key).is_some())
            || text(value, "object").starts_with("chat.completion");
        self.known |= conversational;
        for key in ["finish_reason", "stopReason", "stop_reason", "completionReason"] {
            if value.get(key).is_some_and(Value::is_string) {
                self.known = true;
                self.reason(value.get(key));
            }
        }
        self.visible_text |=
            filled(value.get("text")) || filled(value.get("generation")) || filled(value.get("outputText"));
        for content in ["/output/message/content", "/message/content"] {
            self.blocks(value.pointer(content));
        }
        if value.get("data").is_some_and(Value::is_array)
            || value.get("embeddings").is_some()
            || value.get("models").is_some()
        {
            (self.known, self.visible_text) = (true, true);
        }
    }

    fn reason(&mut self, reason: Option<&Value>) {
        if let Some(reason) = reason.and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.finish.push(reason.to_owned());
        }
    }
}

fn is_anthropic(kind: &str, value: &Value) -> bool {
    kind.starts_with("message_")
        || kind.starts_with("content_block_")
        || kind == "ping"
        || (kind == "message" && value.get("content").is_some())
}

/// The error object of this value, if it holds one.
fn error_in(event: Option<&str>, value: &Value) -> Option<Value> {
    if let Value::Object(fields) = value
        && let Some((name, inner)) =
            fields.iter().find(|(name, inner)| name.ends_with("Exception") && inner.is_object())
    {
        // An exception member of an event stream: its name is its code.
        let mut error = inner.clone();
        if let Value::Object(fields) = &mut error {
            fields.insert("type".to_owned(), Value::String(name.clone()));
        }
        return Some(error);
    }
    for place in [value.get("error"), value.pointer("/response/error"), value.get("errors")] {
        if let Some(error) = place.filter(|error| truthy(error)) {
            return Some(error.clone());
        }
    }
    let says_error = event == Some("error")
        || text(value, "type") == "error"
        || text(value, "object") == "error"
        || text(value, "status") == "error"
        || value.get("success") == Some(&Value::Bool(false));
    let empty = !value.get("choices").is_some_and(Value::is_array) && value.get("candidates").is_none();
    if says_error || (empty && is_bare_error(value)) {
        return Some(value.clone());
    }
    let anonymous = empty && value.get("type").is_none() && value.get("done").is_none();
    if anonymous { nested_error(value, 0) } else { None }
}

/// An error one or two levels down, under whatever name: `{"Response": {"Error": …}}`, `{"header": {"code": …}}`,
/// or as JSON in a string.
fn nested_error(value: &Value, depth: usize) -> Option<Value> {
    let Value::Object(fields) = value else { return None };
    fields.iter().take(24).find_map(|(name, inner)| match inner {
        Value::Object(_) if name.eq_ignore_ascii_case("error") || is_bare_error(inner) => Some(inner.clone()),
        Value::Object(_) if depth < 2 => nested_error(inner, depth + 1),
        Value::String(text) if text.starts_with('{') => serde_json::from_str(text)
            .ok()
            .filter(|inner| is_bare_error(inner) || inner.get("error").is_some_and(truthy)),
        _ => None,
    })
}

/// A code and a sentence, and nothing that says "error".
fn is_bare_error(value: &Value) -> bool {
    const SENTENCES: &[&str] =
        &["message", "msg", "detail", "error_msg", "errmsg", "status_msg", "error_message"];
    const CODES: &[&str] = &["code", "status_code", "error_code", "errcode", "detail"];
    SENTENCES.iter().any(|key| value.get(key).is_some_and(Value::is_string))
        && CODES.iter().any(|key| value.get(key).is_some_and(truthy))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn filled(value: Option<&Value>) -> bool {
    match value {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => {
            items.iter().any(|item| filled(item.get("text")) || item.get("text").is_none())
        }
        Some(Value::Object(fields)) => !fields.is_empty(),
        _ => false,
    }
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) => true,
    }
}
