//! Changes a request where it must be changed, and leaves every other byte as the client wrote it.
//!
//! Byte-exact on purpose: prompt caches of providers compare the text, and fields that we do not know must pass. Each change is
//! noted and [`Rewrite::finish`] makes them all in one pass; where no change was requested, or everything is so already, the
//! same bytes come back uncopied. Appended messages keep their order.
//!
//! *Not here*: other dialects, and taking messages away.

use bytes::Bytes;
use serde_json::{Value, json};

use super::frames::WholeCall;
use super::request::{ChatRequest, Message};
use crate::common::rewrites;
use crate::raw::is_object;
use crate::splice::{Splices, place, quoted};

/// The requested changes of one request.
///
/// ```
/// use bytes::Bytes;
/// use koboshi_wire::chat::{ChatRequest, Rewrite};
///
/// let body = Bytes::from_static(br#"{ "model": "fast", "messages": [], "seed": 7 }"#);
/// let request = ChatRequest::parse(&body)?;
/// let changed = Rewrite::of(&request, &body).model("gpt-4o-mini").finish();
/// assert_eq!(changed, br#"{ "model": "gpt-4o-mini", "messages": [], "seed": 7 }"#[..]);
/// # Ok::<(), koboshi_wire::chat::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct Rewrite<'a> {
    request: &'a ChatRequest<'a>,
    body: &'a Bytes,
    model: Option<String>,
    /// Without a stream there are no stream options either: providers refuse them.
    stream: Option<bool>,
    include_usage: bool,
    /// Fields of the top level and their JSON.
    fields: Vec<(&'static str, String)>,
    notes: Vec<String>,
    /// Text that continues the last message.
    continued: String,
    /// Messages to be appended, as JSON.
    appended: Vec<String>,
}

/// A broken call and the correction that the model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction<'a> {
    /// The call as the model made it.
    pub call: WholeCall<'a>,
    /// What is wrong with it.
    pub correction: &'a str,
}

rewrites!(Rewrite);

impl<'a> Rewrite<'a> {
    /// No change yet. `body` is what the request was read from.
    #[must_use]
    pub fn of(request: &'a ChatRequest<'a>, body: &'a Bytes) -> Self {
        Self {
            request,
            body,
            model: None,
            stream: None,
            include_usage: false,
            fields: Vec::new(),
            notes: Vec::new(),
            continued: String::new(),
            appended: Vec::new(),
        }
    }

    /// Asks for the usage at the end of the stream.
    pub fn include_usage(&mut self) -> &mut Self {
        self.include_usage = true;
        self
    }

    /// Forbids tool calls in the answer; where no tools are offered there is nothing to forbid.
    pub fn tool_choice_none(&mut self) -> &mut Self {
        self.choose(r#""none""#.to_owned(), r#""none""#.to_owned())
    }

    /// Makes the model call this tool.
    pub fn force_tool(&mut self, name: &str) -> &mut Self {
        let offers = self.request.offers();
        let is_custom = offers.iter().any(|offer| offer.is_custom && offer.name.as_deref() == Some(name));
        let kind = if is_custom { "custom" } else { "function" };
        let choice = json!({"type": kind, kind: {"name": name}});
        self.choose(choice.to_string(), json!({"name": name}).to_string())
    }

    fn choose(&mut self, choice: String, legacy: String) -> &mut Self {
        if self.request.is_legacy() {
            self.field("function_call", legacy)
        } else if self.request.raw("tools").is_some() {
            self.field("tool_choice", choice)
        } else {
            self
        }
    }

    /// Allows one tool call at a time.
    pub fn parallel_off(&mut self) -> &mut Self {
        if self.request.raw("tools").is_some() {
            self.field("parallel_tool_calls", "false".to_owned())
        } else {
            self
        }
    }

    fn field(&mut self, name: &'static str, json: String) -> &mut Self {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, json));
        self
    }

    /// Adds a message at the end.
    pub fn append_message(&mut self, message: &Value) -> &mut Self {
        self.appended.push(message.to_string());
        self
    }

    /// Lets the model continue this text. If the client's own last message is such a beginning, it is made longer.
    pub fn prefill(&mut self, text: &str) -> &mut Self {
        let last =
            self.request.messages.last().filter(|message| message.is_prefill() && message.content.is_some());
        if last.is_some() && self.appended.is_empty() {
            self.continued.push_str(text);
            self
        } else {
            self.append_message(&json!({"role": "assistant", "content": text}))
        }
    }

    /// Shows the model its text and its broken calls as if a tool had complained, so that it answers again. Arguments that are no JSON
    /// object are shown as an empty one: many servers refuse a history with broken arguments, and the correction quotes them.
    pub fn append_exchange(&mut self, text: &str, broken: &[Correction<'_>]) -> &mut Self {
        let text = Some(text).filter(|text| !text.trim().is_empty());
        let sound = |call: &WholeCall<'_>| {
            if is_object(call.arguments) { call.arguments.to_owned() } else { "{}".to_owned() }
        };
        if self.request.is_legacy() {
            for Correction { call, correction } in broken {
                let function = json!({"name": call.name, "arguments": sound(call)});
                self.append_message(
                    &json!({"role": "assistant", "content": text, "function_call": function}),
                );
                self.append_message(&json!({"role": "function", "name": call.name, "content": correction}));
            }
            return self;
        }
        let calls: Vec<Value> = broken
            .iter()
            .map(|Correction { call, .. }| {
                json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": sound(call)}})
            })
            .collect();
        if !calls.is_empty() {
            self.append_message(&json!({"role": "assistant", "content": text, "tool_calls": calls}));
        }
        for Correction { call, correction } in broken {
            self.append_message(&json!({"role": "tool", "tool_call_id": call.id, "content": correction}));
        }
        self
    }

    /// The changed body; the same bytes if nothing changes.
    #[must_use]
    pub fn finish(&self) -> Bytes {
        let mut splices = Splices::default();
        if let Some(name) = self.model.as_deref().filter(|name| *name != self.request.model()) {
            self.set("model", &quoted(name), &mut splices);
        }
        self.set_stream(&mut splices);
        for (name, json) in &self.fields {
            self.set(name, json, &mut splices);
        }
        self.add_notes(&mut splices);
        self.add_messages(&mut splices);
        splices.apply(self.body)
    }

    /// Gives a field of the top level a value, in place or in front of the others.
    fn set(&self, name: &str, json: &str, splices: &mut Splices) {
        let top = &self.request.top;
        splices.set(top.body.as_bytes(), name, top.entry(name), json);
    }

    fn set_stream(&self, splices: &mut Splices) {
        let stream = self.stream.unwrap_or(self.request.stream());
        if stream != self.request.stream() {
            self.set("stream", if stream { "true" } else { "false" }, splices);
        }
        let options = self.request.top.entry("stream_options");
        if !stream {
            if self.stream.is_some() && options.is_some() {
                self.set("stream_options", "null", splices);
            }
            return;
        }
        if !self.include_usage || self.request.include_usage() {
            return;
        }
        let known = options.and_then(|raw| crate::intake::fields(raw));
        let Some(known) = known.filter(|known| !known.is_empty()) else {
            return self.set("stream_options", r#"{"include_usage":true}"#, splices);
        };
        let body = self.request.top.body.as_bytes();
        let switch = known.iter().rev().find(|(name, _)| name == "include_usage");
        let switch = switch.and_then(|(_, raw)| place(body, raw.get()));
        let inside = options.and_then(|raw| place(body, raw.get())).map(|range| range.start + 1);
        match (switch, inside) {
            (Some(range), _) => splices.replace(range, "true"),
            (None, Some(inside)) => splices.insert(inside, r#""include_usage":true,"#),
            (None, None) => {}
        }
    }

    fn add_notes(&self, splices: &mut Splices) {
        let last = self.request.messages.iter().rev().find(|message| message.is_result());
        for note in &self.notes {
            if let Some(message) = last {
                self.lengthen(message, note, "\n\n", splices);
            }
        }
    }

    /// Adds a text to the end of a message's content.
    fn lengthen(&self, message: &Message<'_>, text: &str, between: &str, splices: &mut Splices) {
        if let Some(content) = message.content {
            splices.lengthen(self.request.top.body.as_bytes(), content, text, between, "text");
        }
    }

    fn add_messages(&self, splices: &mut Splices) {
        if let Some(message) = self.request.messages.last().filter(|_| !self.continued.is_empty()) {
            self.lengthen(message, &self.continued, "", splices);
        }
        if self.appended.is_empty() {
            return;
        }
        let comma = if self.request.messages.is_empty() { "" } else { "," };
        splices.insert(self.request.end_of_messages(), format!("{comma}{}", self.appended.join(",")));
    }
}
