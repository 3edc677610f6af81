//! Reads one frame of a messages stream.
//!
//! One pass, borrowed, into a [`Step`]. What stands in `type` counts; the name of the event only where there is none, as compatible servers leave
//! one or the other out. Between frames it is kept which blocks are tool calls, so that the pieces of a call are numbered among the calls, and
//! the usage up to then: the sent tokens stand in the first frame, the received ones in the last.
//!
//! Unknown events and blocks are passed over. A block of a tool that the provider runs itself is no call.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use super::output;
use super::output::UsageFields;
use crate::Malformed;
use crate::lenient::{Fields, Fill, Number, Object, Text, Truthiness, filled, is_full, skip, without_halves};
use crate::step::{Block, CallPiece, Step};

/// Reads the frames of one stream.
///
/// ```
/// let mut events = koboshi_wire::messages::event::Events::default();
/// let data = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
/// let step = events.read(Some("content_block_delta"), data).unwrap();
/// assert_eq!(step.text.as_deref(), Some("Hi"));
/// assert!(events.read(Some("message_stop"), r#"{"type":"message_stop"}"#).unwrap().done);
/// ```
#[derive(Debug, Default)]
pub struct Events {
    spent: UsageFields,
    /// The tool calls among the blocks.
    calls: HashMap<u32, OpenCall>,
    made: u32,
}

/// A call that is under way.
#[derive(Debug)]
struct OpenCall {
    /// Its number among the calls.
    number: u32,
    /// The input that stood in the opening frame. It counts if no pieces come: some servers send calls whole.
    input: Option<String>,
}

impl Events {
    /// What this frame says.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn read<'a>(&mut self, event: Option<&str>, data: &'a str) -> Result<Step<'a>, Malformed> {
        // The official clients go by the name alone, whatever the data is.
        if event == Some("error") {
            return Ok(Step { error: true, ..Step::default() });
        }
        let trimmed = data.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with("[DONE]") {
            return Ok(Step::default());
        }
        match filled::<Frame<'_>>(trimmed) {
            Ok(frame) => Ok(self.step(event, frame)),
            Err(error) => match without_halves(trimmed) {
                Some(whole) => filled::<Frame<'_>>(&whole).map(|frame| self.step(event, frame).into_owned()),
                None => Err(error),
            },
        }
    }

    fn step<'a>(&mut self, event: Option<&str>, frame: Frame<'a>) -> Step<'a> {
        let mut step = Step { error: frame.error, ..Step::default() };
        let index = frame.index.unwrap_or(0);
        match frame.kind.as_deref().or(event) {
            Some("message_start") => {
                step.choices = 1;
                step.id = frame.message.id;
                step.model = frame.message.model;
                self.spend(frame.message.spent, &mut step);
            }
            Some("content_block_start") => {
                step.choices = 1;
                step.block = Some(Block { index, closes: false });
                self.begin(index, frame.block, &mut step);
            }
            Some("content_block_delta") => {
                step.choices = 1;
                self.go_on(index, frame.delta, &mut step);
            }
            Some("content_block_stop") => {
                step.choices = 1;
                step.block = Some(Block { index, closes: true });
                let open = self.calls.remove(&index);
                if let Some(OpenCall { number, input: Some(input) }) = open {
                    let arguments = Some(Cow::Owned(input));
                    step.calls.push(CallPiece { index: number, arguments, ..CallPiece::default() });
                }
            }
            Some("message_delta") => {
                step.choices = 1;
                if let Some(reason) = frame.delta.stop {
                    step.refused = frame.delta.explanation;
                    step.refusal = step.refused.is_some();
                    step.finish.push((0, output::finish_of(reason)));
                }
                self.spend(frame.spent, &mut step);
            }
            Some("message_stop") => step.done = true,
            Some("error") => step.error = true,
            _ => {}
        }
        step.speaking = u128::from(step.has_content());
        step
    }

    fn spend(&mut self, spent: UsageFields, step: &mut Step<'_>) {
        self.spent.grow(spent);
        step.usage = spent.usage().and(self.spent.usage());
    }

    /// Takes a block that opens. Most are empty then.
    fn begin<'a>(&mut self, index: u32, block: BlockFields<'a>, step: &mut Step<'a>) {
        match block.kind.as_deref() {
            Some("tool_use") => {
                let number = self.made;
                self.made = self.made.saturating_add(1);
                let input = block.input.filter(|raw| is_full(raw)).map(|raw| raw.get().to_owned());
                self.calls.insert(index, OpenCall { number, input });
                step.calls.push(CallPiece {
                    index: number,
                    id: block.id,
                    name: block.name,
                    ..CallPiece::default()
                });
            }
            Some("text") => step.text = block.text,
            Some("thinking") => {
                step.reasoning = block.thinking.is_some();
                step.thought = block.thinking;
                step.signature = block.signature;
            }
            Some("redacted_thinking") => {
                step.reasoning = true;
                step.hidden = block.data.is_some();
                step.signature = block.data;
            }
            // A tool that the provider runs, or what it found.
            Some(_) => step.hosted = true,
            None => {}
        }
    }

    /// Takes a piece of a block. The field that is present shows which kind of piece it is.
    fn go_on<'a>(&mut self, index: u32, delta: Delta<'a>, step: &mut Step<'a>) {
        step.text = delta.text;
        step.reasoning = delta.thinking.is_some();
        step.thought = delta.thinking;
        step.signature = delta.signature;
        let open = self.calls.get_mut(&index);
        if let (Some(open), Some(arguments)) = (open, delta.json) {
            open.input = None;
            let arguments = Some(arguments);
            step.calls.push(CallPiece { index: open.number, arguments, ..CallPiece::default() });
        }
    }
}

#[derive(Default)]
struct Frame<'a> {
    kind: Option<Cow<'a, str>>,
    index: Option<u32>,
    message: MessageStart<'a>,
    block: BlockFields<'a>,
    delta: Delta<'a>,
    spent: UsageFields,
    error: bool,
}

impl<'a> Fields<'a> for Frame<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = map.next_value::<Text<'a>>()?.full(),
            "index" => self.index = map.next_value::<Number>()?.small(),
            "delta" => {
                map.next_value_seed(Fill(&mut self.delta))?;
            }
            "content_block" => {
                map.next_value_seed(Fill(&mut self.block))?;
            }
            "message" => {
                map.next_value_seed(Fill(&mut self.message))?;
            }
            "usage" => {
                map.next_value_seed(Fill(&mut self.spent))?;
            }
            "error" => self.error = map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct MessageStart<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    spent: UsageFields,
}

impl<'a> Fields<'a> for MessageStart<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "model" => self.model = map.next_value::<Text<'a>>()?.full(),
            "usage" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// A block of an answer: all of one, or as it opens.
#[derive(Debug, Default)]
pub(super) struct BlockFields<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) thinking: Option<Cow<'a, str>>,
    pub(super) signature: Option<Cow<'a, str>>,
    pub(super) data: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> for BlockFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = map.next_value::<Text<'a>>()?.full(),
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "name" => self.name = map.next_value::<Text<'a>>()?.full(),
            "input" => self.input = Some(map.next_value()?),
            "text" => self.text = map.next_value::<Text<'a>>()?.full(),
            "thinking" => self.thinking = map.next_value::<Text<'a>>()?.full(),
            "signature" => self.signature = map.next_value::<Text<'a>>()?.full(),
            "data" => self.data = map.next_value::<Text<'a>>()?.full(),
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct Delta<'a> {
    text: Option<Cow<'a, str>>,
    thinking: Option<Cow<'a, str>>,
    signature: Option<Cow<'a, str>>,
    json: Option<Cow<'a, str>>,
    stop: Option<Cow<'a, str>>,
    explanation: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> for Delta<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "text" => self.text = map.next_value::<Text<'a>>()?.full(),
            "thinking" => self.thinking = map.next_value::<Text<'a>>()?.full(),
            "signature" => self.signature = map.next_value::<Text<'a>>()?.full(),
            "partial_json" => self.json = map.next_value::<Text<'a>>()?.full(),
            "stop_reason" => self.stop = map.next_value::<Text<'a>>()?.full(),
            "stop_details" => self.explanation = map.next_value::<Object<StopDetails<'a>>>()?.0.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Why a refusal was made, in words.
#[derive(Default)]
pub(super) struct StopDetails<'a>(pub(super) Option<Cow<'a, str>>);

impl<'a> Fields<'a> for StopDetails<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "explanation" => self.0 = map.next_value::<Text<'a>>()?.full(),
            _ => skip(map)?,
        }
        Ok(())
    }
}
