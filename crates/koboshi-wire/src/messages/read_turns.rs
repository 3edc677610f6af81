//! Reads the conversation of a request into turns.
//!
//! What the form has a place for is taken as it is. Marks for the vendor's cache are dropped. What only this vendor can read (files
//! that it keeps, results of tools that it runs) cannot go anywhere else, and is named so.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::message::{Block, Message, Role, blocks, full, text_or_empty};
use crate::dialect::Dialect;
use crate::form::{self, Call, Image, Media, Omission, Outcome, Part, Signature, Thought, Turn};
use crate::intake::fields;
use crate::lenient::text_of;

/// Claude Code's first block of its system prompt: for the vendor's books, and noise for other vendors.
const BILLING: &str = "x-anthropic-billing-header:";

/// Reads a conversation.
#[derive(Debug, Default)]
pub(super) struct Reader<'a> {
    pub(super) system: Vec<Cow<'a, str>>,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) left: Vec<Omission>,
    /// The tools that were called, by the id of the call.
    called: HashMap<Cow<'a, str>, Cow<'a, str>>,
    /// How many blocks are around the one that is read.
    depth: u8,
}

/// The deepest nesting of blocks: a text in a document in a result. Each level is scanned again, so it must be bounded.
const MAX_DEPTH: u8 = 3;

impl<'a> Reader<'a> {
    /// The system prompt: a text, or blocks of text.
    pub(super) fn prompt(&mut self, raw: &'a RawValue, place: &str) {
        if let Some(text) = text_of(raw) {
            self.system.push(text);
            return;
        }
        for (index, block) in blocks(raw).into_iter().enumerate() {
            let at = || format!("{place}[{index}]");
            self.marks(&block, at);
            match full(block.text).filter(|_| block.is("text")) {
                Some(text) if text.starts_with(BILLING) => self.drop("drop_billing_header", at()),
                Some(text) => self.system.push(text),
                None if block.is("text") => {}
                None => self.left.push(Omission::needed("needs_system_part", at())),
            }
        }
    }

    pub(super) fn message(&mut self, index: usize, message: &Message<'a>) {
        let role = match message.role {
            Role::Assistant => form::Role::Assistant,
            Role::User => form::Role::User,
            Role::System => form::Role::System,
            Role::Other => {
                self.left.push(Omission::needed("needs_role", format!("messages[{index}].role")));
                form::Role::User
            }
        };
        if role == form::Role::System && self.turns.is_empty() {
            if let Some(content) = message.content {
                self.prompt(content, &format!("messages[{index}].content"));
            }
            return;
        }
        let mut parts = Vec::new();
        match message.content.and_then(text_of) {
            Some(text) => parts.push(Part::Text(text)),
            None => {
                let place = format!("messages[{index}].content");
                self.blocks(message.blocks(), &place, &mut parts);
            }
        }
        self.turns.push(Turn { role, parts });
    }

    fn blocks(&mut self, blocks: Vec<Block<'a>>, place: &str, parts: &mut Vec<Part<'a>>) {
        for (index, block) in blocks.into_iter().enumerate() {
            self.block(&block, || format!("{place}[{index}]"), parts);
        }
    }

    fn block(&mut self, block: &Block<'a>, at: impl Fn() -> String, parts: &mut Vec<Part<'a>>) {
        self.marks(block, &at);
        match block.kind.as_deref().unwrap_or_default() {
            "text" => parts.push(Part::Text(text_or_empty(block.text))),
            "image" => self.image(block, at, parts),
            "document" => self.document(block, at, parts),
            "search_result" => {
                self.drop("search_result_as_text", at());
                let texts = [full(block.title), full(block.source)].into_iter().flatten();
                parts.extend(texts.map(Part::Text));
                self.inner(block.content, &at(), parts);
            }
            "tool_use" => {
                let call = Call {
                    id: text_or_empty(block.id),
                    name: text_or_empty(block.name),
                    arguments: block.input.map_or(Cow::Borrowed("{}"), |raw| Cow::Borrowed(raw.get())),
                    ..Call::default()
                };
                self.called.insert(call.id.clone(), call.name.clone());
                parts.push(Part::Call(call));
            }
            "tool_result" => self.outcome(block, at, parts),
            "thinking" => parts.push(Part::Thought(Thought {
                text: text_or_empty(block.thinking),
                signature: full(block.signature).map(signature),
                hidden: false,
            })),
            "redacted_thinking" => {
                let signature = full(block.data).map(signature);
                parts.push(Part::Thought(Thought { text: Cow::Borrowed(""), signature, hidden: true }));
            }
            kind if is_of_hosted_tool(kind) => {
                self.left.push(Omission::needed("needs_hosted_tool", at()));
            }
            _ => self.left.push(Omission::needed("needs_part", at())),
        }
    }

    /// The blocks of a block, or its text.
    fn inner(&mut self, content: Option<&'a RawValue>, place: &str, parts: &mut Vec<Part<'a>>) {
        let Some(content) = content else { return };
        match text_of(content) {
            Some(text) => parts.push(Part::Text(text)),
            None if self.depth == MAX_DEPTH => self.left.push(Omission::needed("needs_part", place)),
            None => {
                self.depth += 1;
                self.blocks(blocks(content), &format!("{place}.content"), parts);
                self.depth -= 1;
            }
        }
    }

    fn outcome(&mut self, block: &Block<'a>, at: impl Fn() -> String, parts: &mut Vec<Part<'a>>) {
        let id = text_or_empty(block.tool_use_id);
        let name = self.called.get(&id).cloned();
        let mut inside = Vec::new();
        self.inner(block.content, &at(), &mut inside);
        let failed = match block.is_error.map(RawValue::get) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        parts.push(Part::Outcome(Outcome { id, name, parts: inside, failed, free_text: false }));
    }

    fn image(&mut self, block: &Block<'a>, at: impl Fn() -> String, parts: &mut Vec<Part<'a>>) {
        let source = Source::of(block.source);
        match (source.kind.as_deref(), source.data, source.url) {
            (Some("base64"), Some(data), _) => {
                let media_type = source.media_type.unwrap_or(Cow::Borrowed("image/png"));
                parts.push(Part::Image(Image::Data { media_type, data }));
            }
            (Some("url"), _, Some(url)) => parts.push(Part::Image(picture(url))),
            (Some("file"), ..) => self.left.push(Omission::needed("needs_stored_file", at())),
            _ => self.left.push(Omission::needed("needs_part", at())),
        }
    }

    fn document(&mut self, block: &Block<'a>, at: impl Fn() -> String, parts: &mut Vec<Part<'a>>) {
        if block.context {
            self.drop("drop_document_context", at());
        }
        let source = Source::of(block.source);
        match (source.kind.as_deref(), source.data) {
            (Some("base64"), Some(data)) => {
                let media_type = source.media_type.unwrap_or(Cow::Borrowed("application/pdf"));
                parts.push(Part::Media(Media { media_type, data, name: full(block.title) }));
            }
            (Some("text"), Some(text)) => {
                self.drop("document_as_text", at());
                parts.extend(full(block.title).map(Part::Text));
                parts.push(Part::Text(text));
            }
            (Some("content"), _) => {
                self.drop("document_as_text", at());
                parts.extend(full(block.title).map(Part::Text));
                self.inner(source.content, &at(), parts);
            }
            (Some("file"), _) => self.left.push(Omission::needed("needs_stored_file", at())),
            (Some("url"), _) => self.left.push(Omission::needed("needs_document_url", at())),
            _ => self.left.push(Omission::needed("needs_part", at())),
        }
    }

    /// Marks of a block that mean something to this vendor alone.
    fn marks(&mut self, block: &Block<'a>, at: impl Fn() -> String) {
        if block.cache_control {
            self.drop("drop_cache_control", at());
        }
        if block.citations {
            self.drop("drop_citations", at());
        }
    }

    fn drop(&mut self, rule: &'static str, at: String) {
        self.left.push(Omission::dropped(rule, at));
    }
}

fn signature(data: Cow<'_, str>) -> Signature<'_> {
    Signature { of: Dialect::Messages, id: None, data }
}

/// Whether a block belongs to a tool that the vendor runs.
fn is_of_hosted_tool(kind: &str) -> bool {
    kind.ends_with("_tool_result") || matches!(kind, "server_tool_use" | "mcp_tool_use" | "container_upload")
}

/// An image at a place; a `data:` URL is taken apart.
fn picture(url: Cow<'_, str>) -> Image<'_> {
    let inside = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inside {
        Some((media_type, data)) => {
            Image::Data { media_type: Cow::Owned(media_type.to_owned()), data: Cow::Owned(data.to_owned()) }
        }
        None => Image::Url(url),
    }
}

/// Where an image or a document comes from.
#[derive(Debug, Default)]
struct Source<'a> {
    kind: Option<Cow<'a, str>>,
    media_type: Option<Cow<'a, str>>,
    data: Option<Cow<'a, str>>,
    url: Option<Cow<'a, str>>,
    content: Option<&'a RawValue>,
}

impl<'a> Source<'a> {
    fn of(raw: Option<&'a RawValue>) -> Self {
        let mut source = Self::default();
        for (name, raw) in raw.and_then(fields).unwrap_or_default() {
            match name.as_ref() {
                "type" => source.kind = text_of(raw),
                "media_type" => source.media_type = text_of(raw),
                "data" => source.data = text_of(raw),
                "url" => source.url = text_of(raw),
                "content" => source.content = Some(raw),
                _ => {}
            }
        }
        source
    }
}
