//! The input of a request as turns: messages, calls and their results, thoughts.
//!
//! Items of the assistant are one turn until an item of the user follows: the vendor cuts an answer into items, other dialects do not.
//! Results that follow each other are one turn too. Messages of the user stay apart, because how often a user has written is counted.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::output::{BETWEEN_THOUGHTS, joined};
use super::tools::flat_name;
use crate::dialect::Dialect;
use crate::form::{Call, Form, Image, Media, Omission, Outcome, Part, Role, Signature, Thought, Turn};
use crate::lenient::{arguments_of, text_of};
use crate::raw::{Raw, list};

/// Items of hosted tools that the conversation means the same without: they say that something was looked up, and the answer after them says
/// what was found.
const TRACES: [&str; 4] = ["web_search_call", "tool_search_call", "tool_search_output", "mcp_list_tools"];

/// Adds the items of an input to a form, one after the other.
pub(super) struct Reader<'f, 'a> {
    form: &'f mut Form<'a>,
    /// Names of the tools by the ids of their calls: results do not say them.
    names: HashMap<Cow<'a, str>, Cow<'a, str>>,
}

impl<'f, 'a> Reader<'f, 'a> {
    pub(super) fn of(form: &'f mut Form<'a>) -> Self {
        Self { form, names: HashMap::new() }
    }

    /// One item, and its place in the input.
    pub(super) fn item(&mut self, at: usize, item: &Raw<'a>) {
        match item.kind().as_deref() {
            None | Some("message") => self.message(at, item),
            Some("function_call") => self.call(at, item, "arguments", false),
            Some("custom_tool_call") => self.call(at, item, "input", true),
            Some("function_call_output") => self.outcome(at, item, false),
            Some("custom_tool_call_output") => self.outcome(at, item, true),
            Some("reasoning") => self.thought(at, item),
            Some("item_reference") => self.left(Omission::needed("needs_item_reference", place(at))),
            Some("compaction" | "compaction_summary") => {
                self.left(Omission::needed("needs_compaction", place(at)));
            }
            Some(kind) if TRACES.contains(&kind) => {
                self.left(Omission::dropped("drop_hosted_trace", place(at)));
            }
            Some(_) => self.left(Omission::needed("needs_hosted_item", place(at))),
        }
    }

    fn left(&mut self, left: Omission) {
        self.form.left.push(left);
    }

    fn message(&mut self, at: usize, item: &Raw<'a>) {
        let role = match item.text("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system" | "developer") => Role::System,
            _ => return self.left(Omission::needed("needs_role", place(at))),
        };
        let content = item.get("content");
        let parts =
            content.map(|raw| self.parts(raw, &|| format!("{}.content", place(at)))).unwrap_or_default();
        match role {
            // Only in front of everything.
            Role::System if self.form.turns.is_empty() => self.system(at, parts),
            Role::System | Role::User => self.form.turns.push(Turn { role, parts }),
            Role::Assistant => self.answer(parts),
        }
    }

    fn system(&mut self, at: usize, parts: Vec<Part<'a>>) {
        for part in parts {
            match part {
                Part::Text(text) => self.form.system.push(text),
                _ => self.left(Omission::needed("needs_system_media", place(at))),
            }
        }
    }

    /// Continues the assistant's turn.
    fn answer(&mut self, parts: impl IntoIterator<Item = Part<'a>>) {
        self.go_on(Role::Assistant, |_| true, parts);
    }

    /// Continues the last turn if it is of this role and fits, else begins one.
    fn go_on(
        &mut self,
        role: Role,
        fits: impl Fn(&Turn<'a>) -> bool,
        parts: impl IntoIterator<Item = Part<'a>>,
    ) {
        match self.form.turns.last_mut().filter(|turn| turn.role == role && fits(turn)) {
            Some(turn) => turn.parts.extend(parts),
            None => self.form.turns.push(Turn { role, parts: parts.into_iter().collect() }),
        }
    }

    fn call(&mut self, at: usize, item: &Raw<'a>, field: &str, free_text: bool) {
        let Some(name) = item.full("name") else {
            return self.left(Omission::needed("needs_call_name", place(at)));
        };
        let id = item.full("call_id").or_else(|| item.full("id"));
        let id = id.unwrap_or_else(|| Cow::Owned(format!("call_{}", self.names.len())));
        let name = match item.full("namespace") {
            Some(namespace) => Cow::Owned(flat_name(&namespace, &name)),
            None => name,
        };
        let arguments = item.get(field).and_then(arguments_of).filter(|text| free_text || !text.is_empty());
        let arguments = arguments.unwrap_or(Cow::Borrowed(if free_text { "" } else { "{}" }));
        self.names.insert(id.clone(), name.clone());
        self.answer([Part::Call(Call { id, name, arguments, free_text, signature: None })]);
    }

    fn outcome(&mut self, at: usize, item: &Raw<'a>, free_text: bool) {
        let id = item.full("call_id").unwrap_or_default();
        let name = self.names.get(&id).cloned();
        let parts = item.get("output").map(|raw| self.parts(raw, &|| format!("{}.output", place(at))));
        let outcome = Outcome { id, name, parts: parts.unwrap_or_default(), failed: None, free_text };
        let only_results = |turn: &Turn<'a>| turn.parts.iter().all(|part| matches!(part, Part::Outcome(_)));
        self.go_on(Role::User, only_results, [Part::Outcome(outcome)]);
    }

    fn thought(&mut self, at: usize, item: &Raw<'a>) {
        let texts = |name: &str, between: &str| {
            let parts = item.get(name).and_then(list).unwrap_or_default().into_iter().filter_map(Raw::of);
            joined(parts.filter_map(|part| part.full("text")), between)
        };
        let text = texts("summary", BETWEEN_THOUGHTS).or_else(|| texts("content", ""));
        let data = item.full("encrypted_content");
        let signature = data.map(|data| Signature { of: Dialect::Responses, id: item.full("id"), data });
        if text.is_none() && signature.is_none() {
            // It holds only an id, and the rest is in the provider's store.
            return self.left(Omission::dropped("drop_thought_reference", place(at)));
        }
        let thought = Thought { text: text.unwrap_or_default(), signature, hidden: false };
        self.answer([Part::Thought(thought)]);
    }

    /// A text or a list of parts.
    fn parts(&mut self, raw: &'a RawValue, place: &dyn Fn() -> String) -> Vec<Part<'a>> {
        if !raw.get().starts_with('[') {
            return text_of(raw).filter(|text| !text.is_empty()).map(Part::Text).into_iter().collect();
        }
        let mut parts = Vec::new();
        for (index, raw) in list(raw).unwrap_or_default().into_iter().enumerate() {
            let place = || format!("{}[{index}]", place());
            let part = match Raw::of(raw) {
                Some(part) => self.part(&part, &place),
                None => Err("needs_part"),
            };
            match part {
                Ok(part) => parts.push(part),
                Err(rule) => self.left(Omission::needed(rule, place())),
            }
        }
        parts
    }

    fn part(&mut self, part: &Raw<'a>, place: &dyn Fn() -> String) -> Result<Part<'a>, &'static str> {
        match part.kind().as_deref() {
            None | Some("input_text" | "output_text" | "text" | "summary_text") => {
                Ok(Part::Text(part.text("text").ok_or("needs_part")?))
            }
            Some("refusal") => Ok(Part::Refusal(part.text("refusal").unwrap_or_default())),
            Some("input_image" | "computer_screenshot") => {
                if part.text("detail").is_some_and(|detail| detail != "auto") {
                    self.left(Omission::dropped("drop_image_detail", place()));
                }
                image(part.full("image_url").ok_or("needs_file_id")?)
            }
            Some("input_file") => file(part),
            Some("input_audio") => audio(part),
            _ => Err("needs_part"),
        }
    }
}

fn place(at: usize) -> String {
    format!("input[{at}]")
}

fn image(url: Cow<'_, str>) -> Result<Part<'_>, &'static str> {
    if !url.starts_with("data:") {
        return Ok(Part::Image(Image::Url(url)));
    }
    let (media_type, data) = data_url(url).ok_or("needs_image_encoding")?;
    Ok(Part::Image(Image::Data { media_type, data }))
}

fn file<'a>(part: &Raw<'a>) -> Result<Part<'a>, &'static str> {
    let name = part.full("filename");
    let Some(data) = part.full("file_data") else {
        return Err(if part.get("file_url").is_some() { "needs_file_url" } else { "needs_file_id" });
    };
    let (media_type, data) = if data.starts_with("data:") {
        data_url(data).ok_or("needs_file_encoding")?
    } else {
        // Bare base64: the vendor goes by the name.
        let is_pdf = name.as_ref().is_none_or(|name| name.to_ascii_lowercase().ends_with(".pdf"));
        (Cow::Borrowed(if is_pdf { "application/pdf" } else { "application/octet-stream" }), data)
    };
    Ok(Part::Media(Media { media_type, data, name }))
}

fn audio<'a>(part: &Raw<'a>) -> Result<Part<'a>, &'static str> {
    let sound = part.object("input_audio").ok_or("needs_part")?;
    let data = sound.full("data").ok_or("needs_part")?;
    let format = sound.full("format").unwrap_or(Cow::Borrowed("wav"));
    Ok(Part::Media(Media { media_type: Cow::Owned(format!("audio/{format}")), data, name: None }))
}

/// Type and base64 text of a `data:` URL.
fn data_url(url: Cow<'_, str>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    fn cut(url: &str) -> Option<(&str, &str)> {
        let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
        let head = head.strip_suffix(";base64")?;
        let media_type = head.split(';').next().unwrap_or_default();
        (!media_type.is_empty()).then_some((media_type, data))
    }
    match url {
        Cow::Borrowed(url) => cut(url).map(|(media_type, data)| (media_type.into(), data.into())),
        Cow::Owned(url) => {
            cut(&url).map(|(media_type, data)| (media_type.to_owned().into(), data.to_owned().into()))
        }
    }
}
