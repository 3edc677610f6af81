//! Changes a request where it must be changed, and leaves every other byte as the client wrote it.
//!
//! As in the chat dialect: each change is noted and [`Rewrite::finish`] makes them all in one pass. Model and stream stand in the path, so their
//! changes do nothing here. What is added carries no ids, which Vertex would refuse: order and names pair calls and results.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::proto_json::{Node, many};
use super::read_turns::STAND_IN;
use super::request::GeminiRequest;
use super::write_parts;
use crate::chat::Correction;
use crate::intake::after_spaces;
use crate::lenient::text_of;
use crate::splice::{Splices, escaped, place, quoted};

/// The requested changes of one request.
///
/// ```
/// use bytes::Bytes;
/// use koboshi_wire::gemini::{GeminiRequest, Rewrite};
///
/// let body = Bytes::from_static(br#"{ "contents": [] , "generation_config": {"topK":1} }"#);
/// let request = GeminiRequest::parse("m", false, &body)?;
/// let changed = Rewrite::of(&request, &body).max_output(9).finish();
/// assert_eq!(changed, br#"{ "contents": [] , "generation_config": {"maxOutputTokens":9,"topK":1} }"#[..]);
/// # Ok::<(), koboshi_wire::IntakeError>(())
/// ```
#[derive(Debug)]
pub struct Rewrite<'a> {
    request: &'a GeminiRequest<'a>,
    body: &'a Bytes,
    /// Fields inside of fields of the top level, and their JSON.
    nested: Vec<(&'static str, &'static str, String)>,
    whole_calls: bool,
    without_ids: bool,
    notes: Vec<String>,
    /// Text that continues the last content.
    continued: String,
    /// Parts for the end of the last content.
    added: Vec<String>,
    /// Contents to be appended, as JSON.
    appended: Vec<String>,
}

impl<'a> Rewrite<'a> {
    /// No change yet. `body` is what the request was read from.
    #[must_use]
    pub fn of(request: &'a GeminiRequest<'a>, body: &'a Bytes) -> Self {
        Self {
            request,
            body,
            nested: Vec::new(),
            whole_calls: false,
            without_ids: false,
            notes: Vec::new(),
            continued: String::new(),
            added: Vec::new(),
            appended: Vec::new(),
        }
    }

    /// The model stands in the path.
    pub fn model(&mut self, _name: &str) -> &mut Self {
        self
    }

    /// The wish for a stream stands in the path.
    pub fn stream(&mut self, _stream: bool) -> &mut Self {
        self
    }

    /// Forbids tool calls in the answer; where no tools are offered there is nothing to forbid.
    pub fn tool_choice_none(&mut self) -> &mut Self {
        self.choose(&json!({"mode": "NONE"}))
    }

    /// Makes the model call this tool.
    pub fn force_tool(&mut self, name: &str) -> &mut Self {
        self.choose(&json!({"mode": "ANY", "allowedFunctionNames": [name]}))
    }

    fn choose(&mut self, config: &Value) -> &mut Self {
        if self.request.form().tools.is_empty() {
            return self;
        }
        self.nest("toolConfig", "functionCallingConfig", config.to_string())
    }

    /// There is no such switch in this dialect.
    pub fn parallel_off(&mut self) -> &mut Self {
        self
    }

    /// The most tokens that may come back.
    pub fn max_output(&mut self, tokens: u64) -> &mut Self {
        self.nest("generationConfig", "maxOutputTokens", tokens.to_string())
    }

    fn nest(&mut self, outer: &'static str, inner: &'static str, json: String) -> &mut Self {
        self.nested.retain(|(known, field, _)| (*known, *field) != (outer, inner));
        self.nested.push((outer, inner, json));
        self
    }

    /// Asks for calls with all their arguments at once. Vertex can send them in pieces, which only the client could put together.
    pub fn whole_calls(&mut self) -> &mut Self {
        self.whole_calls = true;
        self
    }

    /// Takes the ids of calls and results away, for Vertex: it refuses the field that AI Studio has, and that Gemini CLI always fills.
    pub fn without_ids(&mut self) -> &mut Self {
        self.without_ids = true;
        self
    }

    /// Adds a paragraph to the last result of a tool, where the model reads next. Without one nothing is added.
    pub fn append_to_last_tool_result(&mut self, text: &str) -> &mut Self {
        self.notes.push(text.to_owned());
        self
    }

    /// Adds a closing answer of the model.
    pub fn append_assistant(&mut self, text: &str) -> &mut Self {
        let part = json!({"text": text});
        if self.ends_with_model() {
            self.added.push(part.to_string());
            self
        } else {
            self.append(&json!({"role": "model", "parts": [part]}))
        }
    }

    /// Lets the model continue this text. If the client's own last content is such a beginning, its text is made longer.
    pub fn continue_with(&mut self, text: &str) -> &mut Self {
        if self.ends_with_model() && self.added.is_empty() && self.last_text().is_some() {
            self.continued.push_str(text);
            self
        } else {
            self.append_assistant(text)
        }
    }

    /// Shows the model its broken calls as if a tool had complained, so that it answers again: one result for each call. Arguments that are
    /// no JSON object are shown as the text that they are.
    pub fn corrected(&mut self, text: &str, broken: &[Correction<'_>]) -> &mut Self {
        let mut parts: Vec<String> = Vec::new();
        if !text.is_empty() {
            parts.push(json!({"text": text}).to_string());
        }
        let mut results: Vec<Value> = Vec::new();
        for (index, Correction { call, correction }) in broken.iter().enumerate() {
            let args = write_parts::object(call.arguments, call.free_text);
            let stand_in = (index == 0).then_some(STAND_IN);
            let signature = call
                .signature
                .or(stand_in)
                .map(|signature| format!(r#","thoughtSignature":{}"#, quoted(signature)));
            let (name, args) = (quoted(call.name), args.get());
            let signature = signature.unwrap_or_default();
            parts.push(format!(r#"{{"functionCall":{{"name":{name},"args":{args}}}{signature}}}"#));
            results.push(json!({"functionResponse": {"name": call.name, "response": {"error": correction}}}));
        }
        if parts.is_empty() {
            return self;
        }
        if self.ends_with_model() {
            self.added.append(&mut parts);
        } else {
            self.appended.push(format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(",")));
        }
        if results.is_empty() { self } else { self.append(&json!({"role": "user", "parts": results})) }
    }

    fn append(&mut self, content: &Value) -> &mut Self {
        self.appended.push(content.to_string());
        self
    }

    /// Whether the last content is the model's, and nothing follows it yet. Two of one side must not follow each other.
    fn ends_with_model(&self) -> bool {
        self.appended.is_empty() && self.request.form().is_prefilled() && self.last_parts().is_some()
    }

    /// The changed body; the same bytes if nothing changes.
    #[must_use]
    pub fn finish(&self) -> Bytes {
        let mut splices = Splices::default();
        self.set_nested(&mut splices);
        if self.whole_calls {
            self.set_whole_calls(&mut splices);
        }
        if self.without_ids {
            self.remove_ids(&mut splices);
        }
        if !self.notes.is_empty() {
            self.add_notes(&mut splices);
        }
        // Finding the last content takes reading all of them, so it is done only where something is added to it.
        let wants = |added: bool| added.then_some(());
        let beginning = wants(!self.continued.is_empty()).and_then(|()| self.last_text());
        if let Some(range) = beginning.and_then(|raw| place(self.body, raw.get())) {
            splices.insert(range.end.saturating_sub(1), escaped(&self.continued));
        }
        if let Some(parts) = wants(!self.added.is_empty()).and_then(|()| self.last_parts()) {
            self.extend(parts, &self.added, &mut splices);
        }
        if let Some(contents) = wants(!self.appended.is_empty()).and_then(|()| self.request.contents()) {
            self.extend(contents, &self.appended, &mut splices);
        }
        splices.apply(self.body)
    }

    /// Puts values at the end of a list. One value in place of a list becomes a list.
    fn extend(&self, list: &RawValue, values: &[String], splices: &mut Splices) {
        let Some(range) = place(self.body, list.get()) else { return };
        let values = values.join(",");
        if list.get().starts_with('[') {
            let comma = if many(list).is_empty() { "" } else { "," };
            splices.insert(range.end.saturating_sub(1), format!("{comma}{values}"));
        } else {
            splices.insert(range.start, "[");
            splices.insert(range.end, format!(",{values}]"));
        }
    }

    /// Gives fields inside of fields a value. What stands for the same outer field is written together.
    fn set_nested(&self, splices: &mut Splices) {
        for (outer, inner, json) in &self.nested {
            let entry = self.request.entry(outer);
            let Some(raw) = entry.filter(|raw| raw.get().starts_with('{')) else {
                let object = format!("{{{}:{json}}}", quoted(inner));
                match entry.and_then(|raw| place(self.body, raw.get())) {
                    Some(range) => splices.replace(range, object),
                    // There are other fields: without contents there is no request.
                    None => self.insert_first(self.body, 0, &format!("{}:{object},", quoted(outer)), splices),
                }
                continue;
            };
            let node = Node::of(raw);
            match node.entry(inner) {
                Some(known) if known.get() == json => {}
                Some(known) => {
                    if let Some(range) = place(self.body, known.get()) {
                        splices.replace(range, json.as_str());
                    }
                }
                None => {
                    let comma = if node.0.is_empty() { "" } else { "," };
                    if let Some(range) = place(self.body, raw.get()) {
                        let field = format!("{}:{json}{comma}", quoted(inner));
                        self.insert_first(raw.get().as_bytes(), range.start, &field, splices);
                    }
                }
            }
        }
    }

    /// Behind the brace that opens this text, which stands there in the body.
    fn insert_first(&self, text: &[u8], from: usize, field: &str, splices: &mut Splices) {
        let brace = text.iter().position(|byte| *byte == b'{').unwrap_or(0);
        splices.insert(from + brace + 1, field);
    }

    fn set_whole_calls(&self, splices: &mut Splices) {
        if self.nested.iter().any(|(outer, _, _)| *outer == "toolConfig") {
            // The whole of it is replaced.
            return;
        }
        let config = self.request.fields.get("toolConfig").map(Node::of);
        let calling = config.and_then(|config| config.get("functionCallingConfig")).map(Node::of);
        let switch = calling.and_then(|calling| calling.get("streamFunctionCallArguments"));
        if let Some(range) =
            switch.filter(|raw| raw.get() == "true").and_then(|raw| place(self.body, raw.get()))
        {
            splices.replace(range, "false");
        }
    }

    fn remove_ids(&self, splices: &mut Splices) {
        for content in self.contents() {
            for part in Node::of(content).get("parts").map(many).unwrap_or_default() {
                let part = Node::of(part);
                for raw in ["functionCall", "functionResponse"].into_iter().filter_map(|name| part.get(name))
                {
                    self.remove_id(&Node::of(raw), splices);
                }
            }
        }
    }

    /// Takes the id with its name and one comma.
    fn remove_id(&self, node: &Node<'_>, splices: &mut Splices) {
        let Some(at) = node.0.iter().position(|(name, _)| name == "id") else { return };
        let place_of = |at: usize| node.0.get(at).and_then(|(_, raw)| place(self.body, raw.get()));
        let name = node.0.get(at).and_then(|(name, _)| place(self.body, name));
        let (Some(name), Some(value)) = (name, place_of(at)) else { return };
        let (mut start, mut end) = (name.start.saturating_sub(1), value.end);
        if at + 1 < node.0.len() {
            end = after_spaces(self.body, after_spaces(self.body, end) + 1);
        } else if let Some(before) = at.checked_sub(1).and_then(place_of) {
            start = before.end;
        }
        splices.replace(start..end, "");
    }

    /// All contents, raw.
    fn contents(&self) -> Vec<&'a RawValue> {
        self.request.contents().map(many).unwrap_or_default()
    }

    /// The parts of the last content, raw.
    fn last_parts(&self) -> Option<&'a RawValue> {
        Node::of(self.contents().pop()?).get("parts")
    }

    /// The text that the last content ends with, raw: not one that is a thought, nor one that is signed.
    fn last_text(&self) -> Option<&'a RawValue> {
        let last = Node::of(many(self.last_parts()?).pop()?);
        if last.get("thought").is_some() || last.get("thoughtSignature").is_some() {
            return None;
        }
        last.get("text").filter(|raw| text_of(raw).is_some())
    }

    /// The last result of a tool, raw.
    fn last_result(&self) -> Option<&'a RawValue> {
        self.contents().into_iter().rev().find_map(|content| {
            let parts = many(Node::of(content).get("parts")?);
            parts.into_iter().rev().find_map(|part| Node::of(part).get("functionResponse"))
        })
    }

    fn add_notes(&self, splices: &mut Splices) {
        let Some(result) = self.last_result() else { return };
        let text = self.notes.join("\n\n");
        let node = Node::of(result);
        let Some(response) = node.get("response") else {
            let field = format!(r#""response":{}"#, json!({"output": text}));
            if let Some(range) = node.entry("response").and_then(|raw| place(self.body, raw.get())) {
                splices.replace(range, json!({"output": text}).to_string());
            } else if let Some(range) = place(self.body, result.get()) {
                let is_alone = node.0.iter().all(|(name, _)| self.without_ids && name == "id");
                let comma = if is_alone { "" } else { "," };
                self.insert_first(result.get().as_bytes(), range.start, &format!("{field}{comma}"), splices);
            }
            return;
        };
        let fields = Node::of(response);
        // The text that the model reads; a result that is some other object gets one more field.
        let spoken = ["output", "error", "result"]
            .into_iter()
            .find_map(|name| fields.get(name).filter(|raw| raw.get().starts_with('"')));
        let spoken = spoken.or(Some(response).filter(|raw| raw.get().starts_with('"')));
        if let Some(range) = spoken.and_then(|raw| place(self.body, raw.get())) {
            let is_empty = spoken.and_then(text_of).is_some_and(|before| before.is_empty());
            let between = if is_empty { String::new() } else { escaped("\n\n") };
            return splices.insert(range.end.saturating_sub(1), between + &escaped(&text));
        }
        if let Some(range) = place(self.body, response.get()).filter(|_| response.get().starts_with('{')) {
            let comma = if fields.0.is_empty() { "" } else { "," };
            let field = format!(r#""koboshi_note":{}{comma}"#, quoted(&text));
            self.insert_first(response.get().as_bytes(), range.start, &field, splices);
        }
    }
}
