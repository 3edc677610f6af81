//! The output of a stream, item by item, as far as it was sent.
//!
//! Clients count an item only when it is done, and then it must hold everything, also the pieces of the upstream: so what passed as raw frames is
//! remembered as well as what we wrote. One item is open at a time, as in the vendor's own streams.

use std::borrow::Cow;
use std::collections::HashMap;

use super::frames::{Item, Part};
use crate::step::{CallPiece, ItemKind, ItemMark, Step};

/// The number of recent items among which a closing one is looked for.
const MAX_OPEN: usize = 64;

/// An item of an answer.
#[derive(Debug)]
pub(super) struct SentItem {
    pub(super) index: u32,
    pub(super) id: String,
    pub(super) what: ItemContent,
    pub(super) is_open: bool,
    /// The limit or a filter ended it.
    pub(super) is_cut: bool,
}

/// What an item is.
#[derive(Debug)]
pub(super) enum ItemContent {
    Message(Parts),
    Thought {
        parts: Parts,
        signature: String,
    },
    Call {
        number: u32,
        id: String,
        name: String,
        namespace: Option<String>,
        arguments: String,
        free_text: bool,
    },
    Other,
}

/// The parts of a message or of a summary.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) all: Vec<TextPart>,
    /// The last of them is open.
    pub(super) is_open: bool,
}

#[derive(Debug, Default)]
pub(super) struct TextPart {
    pub(super) text: String,
    pub(super) is_refusal: bool,
}

impl Parts {
    /// Whether the next piece of this kind continues the open part.
    pub(super) fn goes_on(&self, is_refusal: bool) -> bool {
        self.is_open && self.all.last().is_some_and(|part| part.is_refusal == is_refusal)
    }

    /// A new part.
    pub(super) fn open(&mut self, is_refusal: bool) {
        self.all.push(TextPart { text: String::new(), is_refusal });
        self.is_open = true;
    }

    /// A piece of the open part.
    pub(super) fn push(&mut self, text: &str) {
        if let Some(part) = self.all.last_mut() {
            part.text.push_str(text);
        }
    }

    /// Number of the open part.
    pub(super) fn index(&self) -> usize {
        self.all.len().saturating_sub(1)
    }

    /// A piece of a frame that passed, where a part may have opened without an event.
    fn note(&mut self, text: &str, is_refusal: bool) {
        if let Some(part) = self.all.last_mut().filter(|part| self.is_open && part.text.is_empty()) {
            part.is_refusal = is_refusal;
        }
        if !self.goes_on(is_refusal) {
            self.open(is_refusal);
        }
        self.push(text);
    }
}

impl TextPart {
    pub(super) fn part(&self) -> Part<'_> {
        if self.is_refusal { Part::Refusal { refusal: &self.text } } else { Part::text(&self.text) }
    }
}

impl SentItem {
    fn is_call(&self, wanted: u32) -> bool {
        matches!(self.what, ItemContent::Call { number, .. } if number == wanted)
    }

    /// As it stands in the output; none if only its own dialect knows what it is.
    pub(super) fn item(&self) -> Option<Item<'_>> {
        let id = self.id.as_str();
        let status = match (self.is_open, self.is_cut) {
            (true, _) => "in_progress",
            (false, true) => "incomplete",
            (false, false) => "completed",
        };
        Some(match &self.what {
            ItemContent::Message(parts) => {
                let content = parts.all.iter().map(TextPart::part).collect();
                Item::Message { id, status, role: "assistant", content }
            }
            ItemContent::Thought { parts, signature } => Item::Reasoning {
                id,
                summary: parts.all.iter().map(|part| Part::SummaryText { text: &part.text }).collect(),
                encrypted_content: (!signature.is_empty()).then_some(signature),
            },
            ItemContent::Call { id: call_id, name, namespace, arguments, free_text, .. } => {
                let namespace = namespace.as_deref();
                if *free_text {
                    Item::CustomToolCall { id, status, call_id, input: arguments, name, namespace }
                } else {
                    Item::FunctionCall { id, status, arguments, call_id, name, namespace }
                }
            }
            ItemContent::Other => return None,
        })
    }
}

/// All items of an answer.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) items: Vec<SentItem>,
    next: u32,
    /// Where the calls stand that passed, by their numbers.
    calls: HashMap<u32, usize>,
}

impl Memory {
    /// The item that is open.
    pub(super) fn open(&mut self) -> Option<&mut SentItem> {
        self.items.last_mut().filter(|item| item.is_open)
    }

    /// Number of the next item.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// A new item, open.
    pub(super) fn add(&mut self, index: u32, id: String, what: ItemContent) {
        self.next = self.next.max(index.saturating_add(1));
        self.items.push(SentItem { index, id, what, is_open: true, is_cut: false });
    }

    /// The items that are done, as they stand in the output.
    pub(super) fn output(&self) -> Vec<Item<'_>> {
        self.items.iter().filter(|item| !item.is_open).filter_map(SentItem::item).collect()
    }

    /// Takes note of a frame that went out as it was.
    pub(super) fn note(&mut self, step: &Step<'_>) {
        let mark = step.item.as_ref().map(|item| item.mark);
        if let Some(item) = step.item.as_ref().filter(|item| item.mark == ItemMark::Opens) {
            let what = match item.kind {
                ItemKind::Message => ItemContent::Message(Parts::default()),
                ItemKind::Thought => {
                    ItemContent::Thought { parts: Parts::default(), signature: String::new() }
                }
                // The pieces in the same frame show what kind of call it is.
                ItemKind::Call | ItemKind::Other => ItemContent::Other,
            };
            self.add(item.index, item.id.as_deref().unwrap_or_default().to_owned(), what);
        }
        if mark == Some(ItemMark::PartOpens) {
            if let Some(ItemContent::Message(parts) | ItemContent::Thought { parts, .. }) =
                self.open().map(|item| &mut item.what)
            {
                parts.open(false);
            }
        } else if let Some(text) = &step.thought {
            self.thought(|parts, _| parts.note(text, false));
        }
        if let Some(text) = &step.text {
            self.message(|parts| parts.note(text, false));
        }
        if let Some(text) = &step.refused {
            self.message(|parts| parts.note(text, true));
        }
        if let Some(data) = &step.signature {
            self.thought(|_, signature| signature.push_str(data));
        }
        for piece in &step.calls {
            self.call(piece);
        }
        match step.item.as_ref().map(|item| (item.mark, item.index)) {
            Some((ItemMark::PartCloses, _)) => {
                if let Some(ItemContent::Message(parts) | ItemContent::Thought { parts, .. }) =
                    self.open().map(|item| &mut item.what)
                {
                    parts.is_open = false;
                }
            }
            Some((ItemMark::Closes, index)) => {
                // Calls may overlap, but no server has more than a few under way.
                let mut latest = self.items.iter_mut().rev().take(MAX_OPEN);
                if let Some(item) = latest.find(|item| item.index == index) {
                    item.is_open = false;
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, hear: impl FnOnce(&mut Parts)) {
        if !matches!(self.open(), Some(SentItem { what: ItemContent::Message(_), .. })) {
            self.add(self.next, format!("msg_{}", self.next), ItemContent::Message(Parts::default()));
        }
        if let Some(SentItem { what: ItemContent::Message(parts), .. }) = self.open() {
            hear(parts);
        }
    }

    fn thought(&mut self, hear: impl FnOnce(&mut Parts, &mut String)) {
        if !matches!(self.open(), Some(SentItem { what: ItemContent::Thought { .. }, .. })) {
            let what = ItemContent::Thought { parts: Parts::default(), signature: String::new() };
            self.add(self.next, format!("rs_{}", self.next), what);
        }
        if let Some(SentItem { what: ItemContent::Thought { parts, signature }, .. }) = self.open() {
            hear(parts, signature);
        }
    }

    fn call(&mut self, piece: &CallPiece<'_>) {
        let known = self.calls.get(&piece.index).and_then(|at| self.items.get_mut(*at));
        if !known.is_some_and(|item| item.is_call(piece.index)) {
            let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
            let what = ItemContent::Call {
                number: piece.index,
                id: text(&piece.id),
                name: text(&piece.name),
                namespace: piece.namespace.as_deref().map(str::to_owned),
                arguments: String::new(),
                free_text: piece.free_text,
            };
            match self.open() {
                Some(item) if matches!(item.what, ItemContent::Other) => item.what = what,
                _ => self.add(self.next, format!("fc_{}", self.next), what),
            }
            self.calls.insert(piece.index, self.items.len().saturating_sub(1));
        }
        let known = self.calls.get(&piece.index).and_then(|at| self.items.get_mut(*at));
        if let (Some(ItemContent::Call { arguments, .. }), Some(text)) =
            (known.map(|item| &mut item.what), &piece.arguments)
        {
            arguments.push_str(text);
        }
    }
}
