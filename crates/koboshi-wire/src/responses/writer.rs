//! Our own frames and answers for a client of this dialect.
//!
//! The vendor's lifecycle, complete: the official clients build their state from `added` and delta events and refuse gaps, Codex counts an
//! item only when it is done, and reads the whole response at the end. So a [`Writer`] remembers what was sent, by itself or in
//! frames that passed. Nothing comes after the end.

use bytes::Bytes;
use serde_json::Value;

use super::error::in_stream;
use super::frames::{End, EventFields, Part, Response, Whole, frame};
use super::memory::{ItemContent, Memory, Parts, SentItem, TextPart};
use crate::failure::Failure;
use crate::step::{ItemKind, ItemMark, Step, Usage};

pub use crate::writer::{Head, WholeCall};

/// Ids of the vendor have at most 64 characters; this much of an answer's own id goes into those of its items.
const MAX_STEM: usize = 40;

/// Ids of thoughts that we wrote and that no provider has signed begin with this. In a later request they are known by it: the vendor
/// would look for them in its store, and refuse.
pub const OWN_THOUGHT: &str = "rs_kbs_";

/// Writes one stream.
#[derive(Debug)]
pub struct Writer {
    head: Head,
    forward_signatures: bool,
    /// The next `sequence_number`.
    number: u64,
    is_open: bool,
    is_over: bool,
    sent: Memory,
    koboshi: Option<Value>,
    /// Id of the provider's thought that is sent next.
    thought_id: Option<String>,
}

impl Writer {
    /// A stream that has not begun. Signatures are written only if the upstream is of the same vendor.
    #[must_use]
    pub fn new(head: Head, forward_signatures: bool) -> Self {
        Self {
            head,
            forward_signatures,
            number: 0,
            is_open: false,
            is_over: false,
            sent: Memory::default(),
            koboshi: None,
            thought_id: None,
        }
    }

    /// Whether signatures go along from here on: another upstream may answer.
    pub const fn forward_signatures(&mut self, keep: bool) {
        self.forward_signatures = keep;
    }

    /// A frame of the upstream with this step went to the client as it was.
    pub fn passed(&mut self, step: &Step<'_>) {
        let after = step.number.map_or(self.number, |number| self.number.max(number)).saturating_add(1);
        self.number = after;
        self.is_open = true;
        if let Some(id) = &step.id {
            id.as_ref().clone_into(&mut self.head.id);
        }
        if let Some(model) = &step.model {
            model.as_ref().clone_into(&mut self.head.model);
        }
        self.sent.note(step);
        self.is_over |= step.done || step.error;
    }

    /// What stands before content; nothing if that is there. Koboshi's own object is repeated at the end, for clients that only
    /// keep the last response.
    pub fn open(&mut self, koboshi: Option<&Value>) -> Bytes {
        let mut out = Vec::new();
        self.koboshi = koboshi.cloned().or(self.koboshi.take());
        if !self.is_over {
            self.begin(&mut out);
        }
        out.into()
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.is_open {
            self.is_open = true;
            self.lifecycle(out, "response.created");
            self.lifecycle(out, "response.in_progress");
        }
    }

    /// Text, thought, signature and refusal of a step of any dialect.
    pub fn write_step(&mut self, step: &Step<'_>) -> Bytes {
        let mut out = Vec::new();
        if self.is_over {
            return out.into();
        }
        let of_item = step.item.as_ref().map(|item| (item.kind, item.mark));
        if let Some((ItemKind::Thought, _)) = of_item.filter(|_| self.forward_signatures) {
            let id = step.item.as_ref().and_then(|item| item.id.as_deref());
            self.thought_id = id.map(str::to_owned).or(self.thought_id.take());
        }
        if let Some(text) = &step.thought {
            self.think(&mut out, text);
        }
        if let Some(data) = step.signature.as_ref().filter(|_| self.forward_signatures) {
            self.thought(&mut out);
            if let Some(SentItem { what: ItemContent::Thought { signature, .. }, .. }) = self.sent.open() {
                signature.push_str(data);
            }
        }
        if let Some(text) = &step.text {
            self.write_text(&mut out, text, false);
        }
        if let Some(text) = &step.refused {
            self.write_text(&mut out, text, true);
        }
        let closes_block = step.block.is_some_and(|block| block.closes);
        let closes = match self.sent.open().map(|item| &item.what) {
            Some(ItemContent::Thought { .. }) => closes_block,
            Some(ItemContent::Message(_)) => of_item == Some((ItemKind::Message, ItemMark::Closes)),
            _ => false,
        };
        if closes {
            self.close(&mut out, false);
        }
        out.into()
    }

    /// Whole tool calls.
    pub fn calls(&mut self, calls: &[WholeCall<'_>]) -> Bytes {
        let mut out = Vec::new();
        if self.is_over || calls.is_empty() {
            return out.into();
        }
        self.begin(&mut out);
        for call in calls {
            self.close(&mut out, false);
            let kind = if call.free_text { "ctc_" } else { "fc_" };
            let what = ItemContent::Call {
                number: u32::MAX,
                id: call.id.to_owned(),
                name: call.name.to_owned(),
                namespace: call.namespace.map(str::to_owned),
                arguments: String::new(),
                free_text: call.free_text,
            };
            self.add(&mut out, kind, None, what);
            self.arguments(&mut out, call);
            self.done(&mut out, false);
        }
        out.into()
    }

    /// Closes what is open, and the stream.
    pub fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        let mut out = Vec::new();
        if self.is_over {
            return out.into();
        }
        self.begin(&mut out);
        let end = End::of(reason);
        let is_cut = end != End::Completed;
        self.close(&mut out, is_cut);
        let kind = if is_cut { "response.incomplete" } else { "response.completed" };
        let response = self.response().ended(self.sent.output(), end, usage);
        frame(&mut out, kind, self.number, &Whole { response });
        self.number += 1;
        self.is_over = true;
        out.into()
    }

    /// The end of a stream that failed. What is open stays open: an item that is done would count.
    pub fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        let mut out = Vec::new();
        if self.is_over {
            return out.into();
        }
        self.begin(&mut out);
        let error = in_stream(failure);
        let response = self.response().failed(self.sent.output(), &error);
        frame(&mut out, "response.failed", self.number, &Whole { response });
        self.number += 1;
        self.is_over = true;
        out.into()
    }

    /// Keeps a silent stream open. Codex does not count comments as activity.
    pub fn keep_alive(&mut self) -> Bytes {
        let mut out = Vec::new();
        if self.is_over {
            return out.into();
        }
        if self.is_open {
            self.lifecycle(&mut out, "response.in_progress");
        } else {
            self.begin(&mut out);
        }
        out.into()
    }

    fn response(&self) -> Response<'_> {
        Response::of(&self.head, self.koboshi.as_ref())
    }

    /// An event of a response that is under way.
    fn lifecycle(&mut self, out: &mut Vec<u8>, kind: &str) {
        frame(out, kind, self.number, &Whole { response: self.response() });
        self.number += 1;
    }

    fn think(&mut self, out: &mut Vec<u8>, text: &str) {
        self.thought(out);
        let number = &mut self.number;
        let Some(SentItem { index, id, what: ItemContent::Thought { parts, .. }, .. }) = self.sent.open()
        else {
            return;
        };
        let at = |parts: &Parts| EventFields {
            item_id: Some(id.as_str()),
            output_index: *index,
            summary_index: Some(parts.index()),
            ..EventFields::default()
        };
        if !parts.goes_on(false) {
            parts.open(false);
            let part = Some(Part::SummaryText { text: "" });
            send(out, number, "response.reasoning_summary_part.added", &EventFields { part, ..at(parts) });
        }
        parts.push(text);
        let fields = EventFields { delta: Some(text), ..at(parts) };
        send(out, number, "response.reasoning_summary_text.delta", &fields);
    }

    fn write_text(&mut self, out: &mut Vec<u8>, text: &str, is_refusal: bool) {
        self.begin(out);
        if !matches!(self.sent.open(), Some(SentItem { what: ItemContent::Message(_), .. })) {
            self.close(out, false);
            self.add(out, "msg_", None, ItemContent::Message(Parts::default()));
        }
        if matches!(self.sent.open(), Some(SentItem { what: ItemContent::Message(parts), .. }) if !parts.goes_on(is_refusal))
        {
            self.close_part(out);
        }
        let number = &mut self.number;
        let Some(SentItem { index, id, what: ItemContent::Message(parts), .. }) = self.sent.open() else {
            return;
        };
        if !parts.goes_on(is_refusal) {
            parts.open(is_refusal);
            let part = parts.all.last().map(TextPart::part);
            let fields = EventFields { part, ..in_message(*index, id, parts.index()) };
            send(out, number, "response.content_part.added", &fields);
        }
        parts.push(text);
        let fields = EventFields { delta: Some(text), ..in_message(*index, id, parts.index()) };
        if is_refusal {
            send(out, number, "response.refusal.delta", &fields);
        } else {
            let fields = EventFields { logprobs: Some([]), ..fields };
            send(out, number, "response.output_text.delta", &fields);
        }
    }

    /// Opens a thought, if none is open.
    fn thought(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        if !matches!(self.sent.open(), Some(SentItem { what: ItemContent::Thought { .. }, .. })) {
            self.close(out, false);
            let id = self.thought_id.take();
            let what = ItemContent::Thought { parts: Parts::default(), signature: String::new() };
            self.add(out, OWN_THOUGHT, id, what);
        }
    }

    /// Opens an item.
    fn add(&mut self, out: &mut Vec<u8>, kind: &str, id: Option<String>, what: ItemContent) {
        let index = self.sent.next();
        let id = id.unwrap_or_else(|| item_id(&self.head.id, kind, index));
        self.sent.add(index, id, what);
        if let Some(item) = self.sent.open() {
            let fields = EventFields { output_index: index, item: item.item(), ..EventFields::default() };
            send(out, &mut self.number, "response.output_item.added", &fields);
        }
    }

    fn arguments(&mut self, out: &mut Vec<u8>, call: &WholeCall<'_>) {
        let number = &mut self.number;
        let Some(SentItem { index, id, what: ItemContent::Call { arguments, .. }, .. }) = self.sent.open()
        else {
            return;
        };
        call.arguments.clone_into(arguments);
        let at =
            || EventFields { item_id: Some(id.as_str()), output_index: *index, ..EventFields::default() };
        let delta = EventFields { delta: Some(call.arguments), ..at() };
        if call.free_text {
            send(out, number, "response.custom_tool_call_input.delta", &delta);
            let done = EventFields { input: Some(call.arguments), ..at() };
            send(out, number, "response.custom_tool_call_input.done", &done);
        } else {
            send(out, number, "response.function_call_arguments.delta", &delta);
            let done = EventFields { arguments: Some(call.arguments), name: Some(call.name), ..at() };
            send(out, number, "response.function_call_arguments.done", &done);
        }
    }

    /// Closes the open item. A call that passed in part, or something that only its dialect knows, cannot be closed: it is forgotten.
    fn close(&mut self, out: &mut Vec<u8>, is_cut: bool) {
        match self.sent.open().map(|item| &item.what) {
            None => {}
            Some(ItemContent::Message(_) | ItemContent::Thought { .. }) => {
                self.close_part(out);
                self.done(out, is_cut);
            }
            Some(ItemContent::Call { .. } | ItemContent::Other) => {
                self.sent.items.pop();
            }
        }
    }

    fn done(&mut self, out: &mut Vec<u8>, is_cut: bool) {
        if let Some(item) = self.sent.open() {
            (item.is_open, item.is_cut) = (false, is_cut);
            let fields =
                EventFields { output_index: item.index, item: item.item(), ..EventFields::default() };
            send(out, &mut self.number, "response.output_item.done", &fields);
        }
    }

    fn close_part(&mut self, out: &mut Vec<u8>) {
        let number = &mut self.number;
        let Some(SentItem { index, id, what, .. }) = self.sent.open() else { return };
        match what {
            ItemContent::Message(parts) if parts.is_open => {
                parts.is_open = false;
                let Some(spoken) = parts.all.last() else { return };
                let at = || in_message(*index, id, parts.index());
                let text = Some(spoken.text.as_str());
                if spoken.is_refusal {
                    send(out, number, "response.refusal.done", &EventFields { refusal: text, ..at() });
                } else {
                    let fields = EventFields { text, logprobs: Some([]), ..at() };
                    send(out, number, "response.output_text.done", &fields);
                }
                let fields = EventFields { part: Some(spoken.part()), ..at() };
                send(out, number, "response.content_part.done", &fields);
            }
            ItemContent::Thought { parts, .. } if parts.is_open => {
                parts.is_open = false;
                let Some(spoken) = parts.all.last() else { return };
                let at = || EventFields {
                    item_id: Some(id.as_str()),
                    output_index: *index,
                    summary_index: Some(parts.index()),
                    ..EventFields::default()
                };
                let fields = EventFields { text: Some(&spoken.text), ..at() };
                send(out, number, "response.reasoning_summary_text.done", &fields);
                let fields = EventFields { part: Some(Part::SummaryText { text: &spoken.text }), ..at() };
                send(out, number, "response.reasoning_summary_part.done", &fields);
            }
            _ => {}
        }
    }
}

fn in_message(index: u32, id: &str, part: usize) -> EventFields<'_> {
    EventFields {
        item_id: Some(id),
        output_index: index,
        content_index: Some(part),
        ..EventFields::default()
    }
}

/// One event, counted.
fn send(out: &mut Vec<u8>, number: &mut u64, kind: &str, fields: &EventFields<'_>) {
    frame(out, kind, *number, fields);
    *number = number.saturating_add(1);
}

/// The id of an item of ours: as the vendor's begin, and never longer than it takes.
pub(super) fn item_id(answer: &str, kind: &str, index: u32) -> String {
    let stem = answer.strip_prefix("resp_").or(answer.strip_prefix("chatcmpl-")).unwrap_or(answer);
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let stem: String = stem.chars().filter(fits).collect();
    let stem = stem.get(stem.len().saturating_sub(MAX_STEM)..).unwrap_or_default();
    format!("{kind}{stem}_{index}")
}
