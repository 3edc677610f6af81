//! Changes a request where it must be changed, and leaves every other byte as the client wrote it.
//!
//! As in the chat dialect: each change is noted, [`Rewrite::finish`] makes them all in one pass, and where no change was requested, or everything is
//! so already, the same bytes come back uncopied. An input that is one text becomes a list when something is appended; the text itself stays.
//!
//! *Not here*: other dialects.

use bytes::Bytes;
use serde_json::{Value, json};

use super::request::{Input, Item, Kind, ResponsesRequest};
use crate::raw::is_object;
use crate::splice::{Splices, place, quoted};

pub use crate::chat::Correction;

/// The requested changes of one request.
///
/// ```
/// use bytes::Bytes;
/// use koboshi_wire::responses::{ResponsesRequest, Rewrite};
///
/// let body = Bytes::from_static(br#"{ "model": "fast", "input": "Hi", "seed": 7 }"#);
/// let request = ResponsesRequest::parse(&body)?;
/// let changed = Rewrite::of(&request, &body).model("gpt-5.1").finish();
/// assert_eq!(changed, br#"{ "model": "gpt-5.1", "input": "Hi", "seed": 7 }"#[..]);
/// # Ok::<(), koboshi_wire::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct Rewrite<'a> {
    request: &'a ResponsesRequest<'a>,
    body: &'a Bytes,
    stream: Option<bool>,
    /// Fields of the top level and their JSON.
    fields: Vec<(&'static str, String)>,
    notes: Vec<String>,
    /// Text that continues the last message.
    continued: String,
    /// Items to be appended, as JSON.
    appended: Vec<String>,
    drops_own_thoughts: bool,
}

impl<'a> Rewrite<'a> {
    /// No change yet. `body` is what the request was read from.
    #[must_use]
    pub fn of(request: &'a ResponsesRequest<'a>, body: &'a Bytes) -> Self {
        Self {
            request,
            body,
            stream: None,
            fields: Vec::new(),
            notes: Vec::new(),
            continued: String::new(),
            appended: Vec::new(),
            drops_own_thoughts: false,
        }
    }

    /// Asks for this model.
    pub fn model(&mut self, name: &str) -> &mut Self {
        if name == self.request.model() { self } else { self.field("model", quoted(name)) }
    }

    /// Asks for a stream or for a whole answer. Without a stream there are no stream options either: the provider refuses them.
    pub fn stream(&mut self, stream: bool) -> &mut Self {
        self.stream = Some(stream);
        self
    }

    /// Forbids tool calls in the answer; where no tools are offered there is nothing to forbid.
    pub fn tool_choice_none(&mut self) -> &mut Self {
        self.of_tools("tool_choice", r#""none""#.to_owned())
    }

    /// Makes the model call this tool. One that stands in a group cannot be named here: then it must call some tool.
    pub fn force_tool(&mut self, name: &str) -> &mut Self {
        let offered = self.request.form().tools.iter().find(|tool| tool.name == name);
        let Some(offered) = offered.filter(|_| self.request.in_group(name).is_none()) else {
            return self.of_tools("tool_choice", r#""required""#.to_owned());
        };
        let is_custom = matches!(offered.input, crate::form::ToolInput::FreeText);
        let kind = if is_custom { "custom" } else { "function" };
        self.of_tools("tool_choice", json!({"type": kind, "name": name}).to_string())
    }

    /// Allows one tool call at a time.
    pub fn parallel_off(&mut self) -> &mut Self {
        self.of_tools("parallel_tool_calls", "false".to_owned())
    }

    /// Allows at most this many tokens in the answer.
    pub fn max_output(&mut self, tokens: u64) -> &mut Self {
        self.field("max_output_tokens", tokens.to_string())
    }

    fn of_tools(&mut self, name: &'static str, json: String) -> &mut Self {
        if self.request.body.get("tools").is_some() { self.field(name, json) } else { self }
    }

    fn field(&mut self, name: &'static str, json: String) -> &mut Self {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, json));
        self
    }

    /// Adds a paragraph to the last result of a tool, where the model reads next. Without one nothing is added.
    pub fn append_to_last_tool_result(&mut self, text: &str) -> &mut Self {
        self.notes.push(text.to_owned());
        self
    }

    /// Adds a closing message of the assistant.
    pub fn append_assistant(&mut self, text: &str) -> &mut Self {
        self.append(&json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}))
    }

    fn append(&mut self, item: &Value) -> &mut Self {
        self.appended.push(item.to_string());
        self
    }

    /// Lets the model continue this text. If the client's own last item is such a beginning, it is made longer.
    pub fn continue_with(&mut self, text: &str) -> &mut Self {
        let last = self.items().last();
        let is_begun = last.is_some_and(|item| item.kind == Kind::Assistant && item.content.is_some());
        if is_begun && self.appended.is_empty() {
            self.continued.push_str(text);
            self
        } else {
            self.append_assistant(text)
        }
    }

    /// Shows the model its text and its broken calls as if a tool had complained, so that it answers again. Arguments that are no JSON
    /// object are shown inside one: servers that read them for a template refuse a history with broken ones.
    pub fn corrected(&mut self, text: &str, broken: &[Correction<'_>]) -> &mut Self {
        if !text.is_empty() {
            self.append_assistant(text);
        }
        for Correction { call, .. } in broken {
            let (id, name) = (call.id, call.name);
            if call.free_text {
                let item =
                    json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": call.arguments});
                self.append(&within(item, call.namespace));
                continue;
            }
            let arguments = if is_object(call.arguments) {
                call.arguments.to_owned()
            } else {
                json!({"_raw": call.arguments}).to_string()
            };
            let item = json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
            self.append(&within(item, call.namespace));
        }
        for Correction { call, correction } in broken {
            let kind = if call.free_text { "custom_tool_call_output" } else { "function_call_output" };
            self.append(&json!({"type": kind, "call_id": call.id, "output": correction}));
        }
        self
    }

    /// Takes out the thoughts that we once wrote in another vendor's name: this vendor would look for them in its store, and refuse the
    /// request.
    pub fn drop_own_thoughts(&mut self) -> &mut Self {
        self.drops_own_thoughts = true;
        self
    }

    /// The changed body; the same bytes if nothing changes.
    #[must_use]
    pub fn finish(&self) -> Bytes {
        let mut splices = Splices::default();
        self.set_stream(&mut splices);
        for (name, json) in &self.fields {
            self.set(name, json, &mut splices);
        }
        if let Some(item) = self.items().iter().rev().find(|item| item.kind == Kind::Result) {
            for note in &self.notes {
                self.lengthen(item, note, "\n\n", "input_text", &mut splices);
            }
        }
        if let Some(item) = self.items().last().filter(|_| !self.continued.is_empty()) {
            self.lengthen(item, &self.continued, "", "output_text", &mut splices);
        }
        self.change_items(&mut splices);
        splices.apply(self.body)
    }

    fn items(&self) -> &[Item<'a>] {
        match &self.request.input {
            Input::Items { items, .. } => items,
            Input::Absent | Input::Text(_) => &[],
        }
    }

    /// Gives a field of the top level a value, in place or in front of the others.
    fn set(&self, name: &str, json: &str, splices: &mut Splices) {
        splices.set(self.request.text.as_bytes(), name, self.request.body.entry(name), json);
    }

    fn set_stream(&self, splices: &mut Splices) {
        let Some(stream) = self.stream else { return };
        if stream != self.request.stream() {
            self.set("stream", if stream { "true" } else { "false" }, splices);
        }
        if !stream && self.request.body.entry("stream_options").is_some() {
            self.set("stream_options", "null", splices);
        }
    }

    /// Adds a text to the end of an item's content.
    fn lengthen(&self, item: &Item<'_>, text: &str, between: &str, part: &str, splices: &mut Splices) {
        if let Some(content) = item.content {
            splices.lengthen(self.request.text.as_bytes(), content, text, between, part);
        }
    }

    /// Takes items out, and appends others.
    fn change_items(&self, splices: &mut Splices) {
        let body = self.request.text.as_bytes();
        match &self.request.input {
            _ if self.appended.is_empty() && !self.drops_own_thoughts => {}
            Input::Absent if self.appended.is_empty() => {}
            Input::Absent => self.set("input", &format!("[{}]", self.appended.join(",")), splices),
            Input::Text(_) if self.appended.is_empty() => {}
            Input::Text(raw) => {
                if let Some(range) = place(body, raw.get()) {
                    splices.insert(range.start, r#"[{"role":"user","content":"#);
                    splices.insert(range.end, format!("}},{}]", self.appended.join(",")));
                }
            }
            Input::Items { list, items } => {
                let Some(list) = place(body, list.get()) else { return };
                let is_gone = |item: &Item<'_>| self.drops_own_thoughts && item.kind == Kind::OwnThought;
                let mut any_left = false;
                // From behind the item before: with it goes the comma in front, or of the first ones the comma behind.
                let mut before = list.start + 1;
                for (index, item) in items.iter().enumerate() {
                    let Some(range) = place(body, item.raw.get()) else { return };
                    let next = items.get(index + 1).and_then(|next| place(body, next.raw.get()));
                    match next {
                        _ if !is_gone(item) => any_left = true,
                        Some(next) if !any_left => splices.replace(range.start..next.start, ""),
                        _ if !any_left => splices.replace(range.clone(), ""),
                        _ => splices.replace(before..range.end, ""),
                    }
                    before = range.end;
                }
                if !self.appended.is_empty() {
                    let comma = if any_left { "," } else { "" };
                    splices.insert(before, format!("{comma}{}", self.appended.join(",")));
                }
            }
        }
    }
}

/// A call with the group of its tool, where that has one.
fn within(mut call: Value, namespace: Option<&str>) -> Value {
    if let (Some(namespace), Some(call)) = (namespace, call.as_object_mut()) {
        call.insert("namespace".to_owned(), namespace.into());
    }
    call
}

impl ResponsesRequest<'_> {
    /// Whether there are thoughts that we once wrote in another vendor's name.
    #[must_use]
    pub fn has_own_thoughts(&self) -> bool {
        matches!(&self.input, Input::Items { items, .. } if items.iter().any(|item| item.kind == Kind::OwnThought))
    }
}
