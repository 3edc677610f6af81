//! Reads the frames of a responses stream.
//!
//! The dialect sends everything up to four times: in deltas, at the end of a part, at the end of an item, and in the response that ends the
//! stream. Deltas count; what comes later is only taken where no delta came, because compatible servers leave some of the four out. That is
//! all that must be remembered, so [`Events`] is small: which items had content, and which call an item is.
//!
//! The terminal mark is `response.completed` or `response.incomplete`; `[DONE]`, which some servers add, means nothing here. What an error
//! says is not read here but by `koboshi::classify`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::output::{BETWEEN_THOUGHTS, Output, Part, Response, add};
use crate::Malformed;
use crate::lenient::{
    Fields, List, Number, Object, OptionalObject, Text, Truthiness, arguments_of, filled, skip, text_of,
    without_halves,
};
use crate::step::{Block, CallPiece, Item, ItemKind, ItemMark, Step};

/// What must be remembered of one stream.
///
/// ```
/// let mut events = koboshi_wire::responses::event::Events::default();
/// let data = r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}"#;
/// let step = events.read(Some("response.output_text.delta"), data).unwrap();
/// assert_eq!(step.text.as_deref(), Some("Hi"));
/// ```
#[derive(Debug, Default)]
pub struct Events {
    items: BTreeMap<u32, ItemProgress>,
    /// The item that the last event was about, for servers that do not number them.
    last: u32,
    calls: u32,
}

/// What was seen of an item.
#[derive(Debug, Default, Clone, Copy)]
struct ItemProgress {
    /// Number of the call, if it is one.
    call: Option<u32>,
    /// Whether a piece of it came, and of the part that is open.
    spoke: bool,
    in_part: bool,
}

impl Events {
    /// What this frame says.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn read<'a>(&mut self, event: Option<&str>, data: &'a str) -> Result<Step<'a>, Malformed> {
        let trimmed = data.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with("[DONE]") {
            return Ok(Step::default());
        }
        match filled::<Event<'_>>(trimmed) {
            Ok(found) => Ok(self.step(event, found)),
            Err(error) => match without_halves(trimmed) {
                Some(whole) => Ok(self.step(event, filled(&whole)?).into_owned()),
                None => Err(error),
            },
        }
    }

    fn step<'a>(&mut self, event: Option<&str>, mut found: Event<'a>) -> Step<'a> {
        let index = found.output_index.unwrap_or(self.last);
        self.last = index;
        let mut step = Step { number: found.number, ..Step::default() };
        let kind = found.kind.take();
        match kind.as_deref().or(event).unwrap_or_default() {
            "response.output_text.delta" => step.text = self.piece(index, found.delta),
            "response.output_text.done" => step.text = self.rest(index, found.text),
            "response.refusal.delta" => step.refused = self.piece(index, found.delta),
            "response.refusal.done" => step.refused = self.rest(index, found.refusal),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                step.thought = self.piece(index, found.delta);
            }
            "response.reasoning_summary_text.done" | "response.reasoning_text.done" => {
                step.thought = self.rest(index, found.text);
            }
            "response.function_call_arguments.delta" => {
                let piece = self.piece(index, found.delta);
                self.call(&mut step, index, false, piece);
            }
            "response.custom_tool_call_input.delta" => {
                let piece = self.piece(index, found.delta);
                self.call(&mut step, index, true, piece);
            }
            "response.function_call_arguments.done" => {
                let rest = self.rest(index, found.arguments.and_then(arguments_of));
                self.call(&mut step, index, false, rest);
            }
            "response.custom_tool_call_input.done" => {
                let rest = self.rest(index, found.arguments.and_then(text_of));
                self.call(&mut step, index, true, rest);
            }
            "response.output_item.added" => self.opens(&mut step, index, found.item.unwrap_or_default()),
            "response.output_item.done" => self.closes(&mut step, index, found.item.unwrap_or_default()),
            "response.content_part.added" | "response.reasoning_summary_part.added" => {
                self.part(&mut step, index, &found, ItemMark::PartOpens);
            }
            "response.content_part.done" | "response.reasoning_summary_part.done" => {
                self.part(&mut step, index, &found, ItemMark::PartCloses);
                let mut part = found.part.unwrap_or_default();
                match step.item.as_ref().map(|item| item.kind) {
                    Some(ItemKind::Thought) => {
                        let text = part.take("summary_text").or_else(|| part.take("reasoning_text"));
                        step.thought = self.rest(index, text);
                    }
                    _ if part.refusal.is_some() => step.refused = self.rest(index, part.refusal),
                    _ => step.text = self.rest(index, part.take("output_text")),
                }
            }
            "response.audio.delta" => step.audio = found.delta.is_some(),
            "response.image_generation_call.partial_image" => step.audio = true,
            "response.completed" => self.ends(&mut step, found.response.unwrap_or_default(), "completed"),
            "response.incomplete" => self.ends(&mut step, found.response.unwrap_or_default(), "incomplete"),
            "response.failed" | "response.cancelled" => {
                let response = found.response.unwrap_or_default();
                (step.id, step.model, step.usage) = (response.id, response.model, response.spent.usage());
                step.error = true;
            }
            "response.created" | "response.queued" | "response.in_progress" => {
                let response = found.response.unwrap_or_default();
                step.error = response.is_failed();
                (step.id, step.model) = (response.id, response.model);
            }
            "error" => step.error = true,
            _ => step.error = found.error,
        }
        step.reasoning |= step.thought.is_some();
        step.refusal |= step.refused.is_some();
        if step.has_content() {
            step.speaking = 1;
        }
        step.choices = u32::from(step.has_content() || !step.finish.is_empty());
        step
    }

    /// A piece of an item.
    fn piece<'a>(&mut self, index: u32, text: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let text = text.filter(|text| !text.is_empty())?;
        let seen = self.items.entry(index).or_default();
        (seen.spoke, seen.in_part) = (true, true);
        Some(text)
    }

    /// All of a part at its end: new only where no piece of it came.
    fn rest<'a>(&mut self, index: u32, text: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        if self.items.get(&index).is_some_and(|seen| seen.in_part) { None } else { self.piece(index, text) }
    }

    /// Which call this item is, and whether it was known before.
    fn number(&mut self, index: u32) -> (u32, bool) {
        let seen = self.items.entry(index).or_default();
        if let Some(number) = seen.call {
            return (number, true);
        }
        let number = self.calls;
        seen.call = Some(number);
        self.calls = self.calls.saturating_add(1);
        (number, false)
    }

    fn call<'a>(&mut self, step: &mut Step<'a>, index: u32, free_text: bool, text: Option<Cow<'a, str>>) {
        if text.is_some() {
            let (number, _) = self.number(index);
            step.calls.push(CallPiece { index: number, arguments: text, free_text, ..CallPiece::default() });
        }
    }

    fn opens<'a>(&mut self, step: &mut Step<'a>, index: u32, item: Output<'a>) {
        let kind = item.kind();
        step.block = Some(Block { index, closes: false });
        let free_text = item.is_free_text();
        self.items.insert(index, ItemProgress::default());
        if kind == ItemKind::Call {
            let (number, _) = self.number(index);
            step.calls.push(CallPiece {
                index: number,
                id: item.call_id.or_else(|| item.id.clone()),
                name: item.name,
                namespace: item.namespace,
                free_text,
                ..CallPiece::default()
            });
        }
        step.item = Some(Item { index, id: item.id, kind, mark: ItemMark::Opens });
    }

    fn closes<'a>(&mut self, step: &mut Step<'a>, index: u32, mut item: Output<'a>) {
        let kind = item.kind();
        step.block = Some(Block { index, closes: true });
        let spoke = self.items.get(&index).is_some_and(|seen| seen.spoke);
        match kind {
            ItemKind::Message if !spoke => {
                step.refused = self.piece(index, item.refusal());
                step.text = self.piece(index, item.text());
            }
            ItemKind::Thought => {
                step.signature = item.encrypted.take();
                if !spoke {
                    step.thought = self.piece(index, item.thought());
                }
            }
            ItemKind::Call => self.whole_call(step, index, &mut item, spoke),
            // Only a whole one is content: what breaks before can be asked for elsewhere, unseen.
            ItemKind::Other => {
                step.hosted = item.is_hosted();
                step.audio = item.is_own() && !step.hosted;
            }
            ItemKind::Message => {}
        }
        step.item = Some(Item { index, id: item.id, kind, mark: ItemMark::Closes });
    }

    /// A call at its end: what of it did not come before.
    fn whole_call<'a>(&mut self, step: &mut Step<'a>, index: u32, item: &mut Output<'a>, spoke: bool) {
        let (number, known) = self.number(index);
        let arguments = if spoke { None } else { self.piece(index, item.arguments_text()) };
        if known && arguments.is_none() {
            return;
        }
        let (id, name, namespace) = if known {
            (None, None, None)
        } else {
            (item.call_id.take().or_else(|| item.id.clone()), item.name.take(), item.namespace.take())
        };
        let free_text = item.is_free_text();
        let piece =
            CallPiece { index: number, id, name, namespace, arguments, free_text, ..CallPiece::default() };
        step.calls.push(piece);
    }

    fn part<'a>(&mut self, step: &mut Step<'a>, index: u32, found: &Event<'a>, mark: ItemMark) {
        let is_thought = found.summary_index.is_some()
            || found.part.as_ref().is_some_and(|part| part.is("reasoning_text") || part.is("summary_text"));
        let kind = if is_thought { ItemKind::Thought } else { ItemKind::Message };
        let seen = self.items.entry(index).or_default();
        if mark == ItemMark::PartOpens {
            seen.in_part = false;
            if is_thought && seen.spoke {
                step.thought = Some(Cow::Borrowed(BETWEEN_THOUGHTS));
            }
        }
        step.item = Some(Item { index, id: found.item_id.clone(), kind, mark });
    }

    /// The end of the stream. If no item came before, they are taken from the response itself.
    fn ends<'a>(&mut self, step: &mut Step<'a>, mut response: Response<'a>, status: &'static str) {
        response.status.get_or_insert(Cow::Borrowed(status));
        if let Some(output) = response.output.filter(|_| self.items.is_empty()) {
            let List(items) =
                serde_json::from_str::<List<Object<Output<'a>>>>(output.get()).unwrap_or_default();
            for (index, Object(item)) in (0..).zip(items) {
                let mut item_step = Step::default();
                self.closes(&mut item_step, index, item);
                add(&mut step.text, item_step.text);
                add(&mut step.thought, item_step.thought);
                add(&mut step.refused, item_step.refused);
                step.calls.append(&mut item_step.calls);
                step.audio |= item_step.audio;
                step.hosted |= item_step.hosted;
                step.signature = step.signature.take().or(item_step.signature);
            }
        }
        step.error = response.is_failed();
        step.usage = response.spent.usage();
        if !step.error {
            step.done = true;
            step.finish.extend(response.finish(self.calls > 0).map(|reason| (0, reason)));
        }
        (step.id, step.model) = (response.id, response.model);
    }
}

/// The fields of all events.
#[derive(Default)]
struct Event<'a> {
    kind: Option<Cow<'a, str>>,
    number: Option<u64>,
    output_index: Option<u32>,
    summary_index: Option<u32>,
    item_id: Option<Cow<'a, str>>,
    delta: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    refusal: Option<Cow<'a, str>>,
    arguments: Option<&'a RawValue>,
    item: Option<Output<'a>>,
    part: Option<Part<'a>>,
    response: Option<Response<'a>>,
    error: bool,
}

impl<'a> Fields<'a> for Event<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = map.next_value::<Text<'a>>()?.full(),
            "sequence_number" => self.number = map.next_value::<Number>()?.0,
            "output_index" => self.output_index = map.next_value::<Number>()?.small(),
            "summary_index" => self.summary_index = map.next_value::<Number>()?.small(),
            "item_id" => self.item_id = map.next_value::<Text<'a>>()?.full(),
            "delta" => self.delta = map.next_value::<Text<'a>>()?.full(),
            "text" => self.text = map.next_value::<Text<'a>>()?.full(),
            "refusal" => self.refusal = map.next_value::<Text<'a>>()?.full(),
            "arguments" | "input" => self.arguments = Some(map.next_value()?),
            "item" => self.item = map.next_value::<OptionalObject<Output<'a>>>()?.0,
            "part" => self.part = map.next_value::<OptionalObject<Part<'a>>>()?.0,
            "response" => self.response = map.next_value::<OptionalObject<Response<'a>>>()?.0,
            "error" => self.error = map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
