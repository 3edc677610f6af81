//! Changes a request where it must be changed, and leaves every other byte as the client wrote it.
//!
//! Byte-exact on purpose: the vendor's cache compares the text, and marks for it stand all over a request. Each change is noted and
//! [`Rewrite::finish`] makes them all in one pass; where no change was requested, or everything is so already, the same bytes come back uncopied.
//!
//! Some changes cannot go with thinking: the vendor refuses it beside a forced tool, and thinking by budget after calls without a thought before
//! them. Then thinking is switched off for this request.
//!
//! *Not here*: other dialects, and taking messages away.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::message::{Message, Role, raw_blocks};
use super::model::MIN_BUDGET;
use super::request::MessagesRequest;
use super::{arguments, ids};
use crate::chat::Correction;
use crate::common::rewrites;
use crate::form::{Choice, Thinking};
use crate::intake::fields;
use crate::splice::{Splices, place, quoted};

/// The switch for one call at a time.
const SWITCH: &str = "disable_parallel_tool_use";

/// The requested changes of one request.
///
/// ```
/// use bytes::Bytes;
/// use koboshi_wire::messages::{MessagesRequest, Rewrite};
///
/// let body = Bytes::from_static(br#"{ "model": "fast", "messages": [], "max_tokens": 7 }"#);
/// let request = MessagesRequest::parse(&body)?;
/// let changed = Rewrite::of(&request, &body).model("claude-sonnet-5").finish();
/// assert_eq!(changed, br#"{ "model": "claude-sonnet-5", "messages": [], "max_tokens": 7 }"#[..]);
/// # Ok::<(), koboshi_wire::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct Rewrite<'a> {
    request: &'a MessagesRequest<'a>,
    body: &'a Bytes,
    model: Option<String>,
    stream: Option<bool>,
    /// The choice of a tool, without its flag.
    choice: Option<Value>,
    parallel_off: bool,
    max_output: Option<u64>,
    notes: Vec<String>,
    /// Text that continues the last message.
    continued: String,
    /// Messages to be appended, as JSON.
    appended: Vec<String>,
    /// There are calls without a thought before them.
    lacks_thought: bool,
}

rewrites!(Rewrite);

impl<'a> Rewrite<'a> {
    /// No change yet. `body` is what the request was read from.
    #[must_use]
    pub fn of(request: &'a MessagesRequest<'a>, body: &'a Bytes) -> Self {
        Self {
            request,
            body,
            model: None,
            stream: None,
            choice: None,
            parallel_off: false,
            max_output: None,
            notes: Vec::new(),
            continued: String::new(),
            appended: Vec::new(),
            lacks_thought: false,
        }
    }

    /// Forbids tool calls in the answer; where no tools are offered there is nothing to forbid.
    pub fn tool_choice_none(&mut self) -> &mut Self {
        self.choose(json!({"type": "none"}))
    }

    /// Makes the model call this tool.
    pub fn force_tool(&mut self, name: &str) -> &mut Self {
        self.choose(json!({"type": "tool", "name": name}))
    }

    fn choose(&mut self, choice: Value) -> &mut Self {
        if self.request.raw("tools").is_some() {
            self.choice = Some(choice);
        }
        self
    }

    /// Allows one tool call at a time.
    pub fn parallel_off(&mut self) -> &mut Self {
        self.parallel_off = self.request.raw("tools").is_some();
        self
    }

    /// Lets at most this many tokens come back. A budget for thinking that is larger is made smaller.
    pub fn max_output(&mut self, tokens: u64) -> &mut Self {
        self.max_output = Some(tokens);
        self
    }

    /// Adds a closing message of the model.
    pub fn append_assistant(&mut self, text: &str) -> &mut Self {
        self.append(&json!({"role": "assistant", "content": text}))
    }

    fn append(&mut self, message: &Value) -> &mut Self {
        self.appended.push(message.to_string());
        self
    }

    /// Lets the model continue this text. If the client's own last message is such a beginning, it is made longer. The vendor refuses spaces
    /// at the very end, so those are left out.
    pub fn continue_with(&mut self, text: &str) -> &mut Self {
        let text = text.trim_end();
        if text.is_empty() {
            self
        } else if self.appended.is_empty() && self.request.messages.last().is_some_and(is_prefill) {
            self.continued.push_str(text);
            self
        } else {
            self.append_assistant(text)
        }
    }

    /// Shows the model its text and its broken calls as if a tool had complained, so that it answers again. Arguments that are no JSON object
    /// stand in one field, `_raw`.
    pub fn corrected(&mut self, text: &str, broken: &[Correction<'_>]) -> &mut Self {
        let mut content = Vec::with_capacity(broken.len() + 1);
        if !text.trim().is_empty() {
            content.push(json!({"type": "text", "text": text}));
        }
        let mut results = Vec::with_capacity(broken.len());
        for Correction { call, correction } in broken {
            let id = ids::fitted(call.id);
            let input = arguments::object(call.arguments, call.free_text);
            let input: Value = serde_json::from_str(&input).unwrap_or_else(|_| json!({}));
            content.push(
                json!({"type": "tool_use", "id": id, "name": ids::fitted_name(call.name), "input": input}),
            );
            results.push(
                json!({"type": "tool_result", "tool_use_id": id, "content": correction, "is_error": true}),
            );
        }
        if !content.is_empty() {
            self.append(&json!({"role": "assistant", "content": content}));
        }
        if !results.is_empty() {
            self.lacks_thought = true;
            self.append(&json!({"role": "user", "content": results}));
        }
        self
    }

    /// The calls that are answered last have no thought before them.
    pub fn lacks_thought(&mut self) -> &mut Self {
        self.lacks_thought = true;
        self
    }

    /// The changed body; the same bytes if nothing changes.
    #[must_use]
    pub fn finish(&self) -> Bytes {
        let mut splices = Splices::default();
        if let Some(name) = self.model.as_deref().filter(|name| *name != self.request.model()) {
            self.set("model", &quoted(name), &mut splices);
        }
        if let Some(stream) = self.stream.filter(|stream| *stream != self.request.stream()) {
            self.set("stream", if stream { "true" } else { "false" }, &mut splices);
        }
        self.set_choice(&mut splices);
        self.set_limits(&mut splices);
        self.add_notes(&mut splices);
        self.add_messages(&mut splices);
        splices.apply(self.body)
    }

    /// Gives a field of the top level a value, in place or in front of the others.
    fn set(&self, name: &str, json: &str, splices: &mut Splices) {
        splices.set(self.request.body, name, self.request.fields.entry(name), json);
    }

    fn set_choice(&self, splices: &mut Splices) {
        let is_off = self.parallel_off || self.request.form().parallel == Some(false);
        if let Some(choice) = &self.choice {
            let mut choice = choice.clone();
            let calls = choice.as_object_mut().filter(|choice| choice.get("type") != Some(&"none".into()));
            if let Some(choice) = calls.filter(|_| is_off) {
                choice.insert(SWITCH.to_owned(), true.into());
            }
            self.set("tool_choice", &choice.to_string(), splices);
        } else if self.parallel_off && self.request.form().parallel != Some(false) {
            self.switch_parallel_off(splices);
        }
    }

    /// Sets the switch inside the client's own choice.
    fn switch_parallel_off(&self, splices: &mut Splices) {
        let Some(raw) = self.request.raw("tool_choice") else {
            return self.set("tool_choice", &json!({"type": "auto", SWITCH: true}).to_string(), splices);
        };
        // Where nothing is called there is nothing to switch, and the vendor refuses the switch.
        let Some(known) = fields(raw).filter(|_| self.request.form().choice != Choice::Never) else { return };
        let body = self.request.body;
        let switch = known.iter().rev().find(|(name, _)| name == SWITCH);
        if let Some(range) = switch.and_then(|(_, raw)| place(body, raw.get())) {
            splices.replace(range, "true");
        } else if let Some(range) = place(body, raw.get()).filter(|_| !known.is_empty()) {
            splices.insert(range.start + 1, format!("{}:true,", quoted(SWITCH)));
        }
    }

    /// The limit of the answer, and what must change about thinking because of it and of other changes.
    fn set_limits(&self, splices: &mut Splices) {
        if let Some(max) = self.max_output {
            self.set("max_tokens", &max.to_string(), splices);
        }
        let budget = match self.request.form().thinking {
            Thinking::Budget(budget) => Some(budget),
            Thinking::Adaptive | Thinking::Effort(_) => None,
            Thinking::Unspecified | Thinking::Off => return,
        };
        let forced = self.choice.as_ref().is_some_and(|choice| choice.get("name").is_some());
        let too_small = self.max_output.is_some_and(|max| max <= MIN_BUDGET);
        if self.request.raw("thinking").is_some()
            && (forced || (budget.is_some() && (self.lacks_thought || too_small)))
        {
            self.set("thinking", r#"{"type":"disabled"}"#, splices);
            let context = self.request.raw("context_management");
            // The vendor refuses rules for thoughts where thinking is off.
            if context.is_some_and(|raw| raw.get().contains("clear_thinking")) {
                self.set("context_management", "null", splices);
            }
            return;
        }
        if let Some(max) = self.max_output.filter(|max| budget.is_some_and(|budget| budget >= *max)) {
            let known = self.request.raw("thinking").and_then(fields).unwrap_or_default();
            let known = known.iter().rev().find(|(name, _)| name == "budget_tokens");
            if let Some(range) = known.and_then(|(_, raw)| place(self.request.body, raw.get())) {
                splices.replace(range, max.saturating_sub(1).to_string());
            }
        }
    }

    fn add_notes(&self, splices: &mut Splices) {
        if self.notes.is_empty() {
            return;
        }
        let last = self.request.messages.iter().rev().find_map(|message| {
            let blocks = message.blocks();
            let place = blocks.iter().rposition(|block| block.is("tool_result"))?;
            Some((message.content?, place, blocks.get(place)?.content))
        });
        match last {
            None => {}
            Some((list, place, None)) => self.add_content(list, place, splices),
            Some((_, _, content)) => {
                self.notes.iter().for_each(|note| self.lengthen(content, note, "\n\n", splices));
            }
        }
    }

    /// An empty result gets the notes as its content.
    fn add_content(&self, list: &RawValue, index: usize, splices: &mut Splices) {
        let Some(block) = raw_blocks(list).get(index).copied() else { return };
        let notes = quoted(&self.notes.join("\n\n"));
        let known = fields(block).unwrap_or_default();
        let nothing = known.iter().rev().find(|(name, _)| name == "content");
        let body = self.request.body;
        if let Some(range) = nothing.and_then(|(_, raw)| place(body, raw.get())) {
            splices.replace(range, notes);
        } else if let Some(range) = place(body, block.get()) {
            splices.insert(range.start + 1, format!("\"content\":{notes},"));
        }
    }

    /// Adds a text to the end of a content.
    fn lengthen(&self, content: Option<&RawValue>, text: &str, between: &str, splices: &mut Splices) {
        if let Some(content) = content {
            splices.lengthen(self.request.body, content, text, between, "text");
        }
    }

    fn add_messages(&self, splices: &mut Splices) {
        if let Some(message) = self.request.messages.last().filter(|_| !self.continued.is_empty()) {
            self.lengthen(message.content, &self.continued, "", splices);
        }
        let Some(range) = place(self.request.body, self.request.list.get()) else { return };
        if !self.appended.is_empty() {
            let comma = if self.request.messages.is_empty() { "" } else { "," };
            let end = range.end.saturating_sub(1);
            splices.insert(end, format!("{comma}{}", self.appended.join(",")));
        }
    }
}

/// Whether a message is an answer that the model is to continue, not one that calls tools.
fn is_prefill(message: &Message<'_>) -> bool {
    message.role == Role::Assistant
        && message.content.is_some_and(|content| content.get().starts_with(['"', '[']))
        && !message.blocks().iter().any(|block| block.is("tool_use"))
}
