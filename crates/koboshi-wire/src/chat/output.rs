//! What a model wrote in one message, whole or in pieces: the part that chunks and answers have in common.

use std::borrow::Cow;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::lenient::{Fields, List, Number, Object, Text, Truthiness, arguments_of, is_full, skip, text_of};
use crate::step::Usage;
use crate::tally::{Details, Tally};

use super::content::ContentText;

/// A `message` or a `delta`.
#[derive(Debug, Default)]
pub(crate) struct MessageFields<'a> {
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) reasoning: bool,
    pub(crate) thought: Option<Cow<'a, str>>,
    pub(crate) refusal: bool,
    pub(crate) refused: Option<Cow<'a, str>>,
    pub(crate) audio: bool,
    pub(crate) calls: Vec<CallFields<'a>>,
}

impl<'a> Fields<'a> for MessageFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "content" => {
                let spoken = map.next_value::<ContentText<'a>>()?;
                self.text = spoken.text.or(self.text.take());
                self.reasoning |= spoken.thinking;
            }
            // DeepSeek and vLLM, OpenRouter and Ollama, OpenRouter again: each its own name for thinking.
            "reasoning_content" | "reasoning" | "reasoning_text" | "thinking" => {
                let raw: &'a RawValue = map.next_value()?;
                self.reasoning |= is_full(raw);
                // Some servers send it twice, under two names.
                self.thought = self.thought.take().or_else(|| text_of(raw).filter(|text| !text.is_empty()));
            }
            "reasoning_details" => self.reasoning |= map.next_value::<Truthiness>()?.0,
            "refusal" => {
                let raw: &'a RawValue = map.next_value()?;
                self.refusal = is_full(raw);
                self.refused = text_of(raw).filter(|text| !text.is_empty());
            }
            "audio" => self.audio = map.next_value::<Truthiness>()?.0,
            "tool_calls" => {
                let List(calls) = map.next_value::<List<Object<CallFields<'a>>>>()?;
                self.calls.extend(calls.into_iter().map(|Object(call)| call));
            }
            "function_call" => {
                let Object(function) = map.next_value::<Object<Function<'a>>>()?;
                if function.name.is_some() || function.arguments.is_some() {
                    self.calls.push(CallFields { function, ..CallFields::default() });
                }
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// A tool call or a piece of one.
#[derive(Debug, Default)]
pub(crate) struct CallFields<'a> {
    pub(crate) index: Option<u32>,
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) function: Function<'a>,
    pub(crate) free_text: bool,
}

impl<'a> Fields<'a> for CallFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => self.index = map.next_value::<Number>()?.small(),
            // Some servers repeat an empty id in every piece.
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "function" => self.function = map.next_value::<Object<Function<'a>>>()?.0,
            "custom" => {
                self.function = map.next_value::<Object<Function<'a>>>()?.0;
                self.free_text = true;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Name and arguments.
#[derive(Debug, Default)]
pub(crate) struct Function<'a> {
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) arguments: Option<&'a RawValue>,
}

impl<'a> Function<'a> {
    /// The text of the arguments.
    pub(crate) fn arguments_text(&self) -> Option<Cow<'a, str>> {
        arguments_of(self.arguments?)
    }
}

impl<'a> Fields<'a> for Function<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => self.name = map.next_value::<Text<'a>>()?.full(),
            "arguments" | "input" => self.arguments = Some(map.next_value()?),
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The cost of an answer, in the names of several vendors.
#[derive(Debug, Default)]
pub(crate) struct UsageFields(Tally);

impl UsageFields {
    /// The cost, if any was stated.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.0.usage()
    }
}

impl<'a> Fields<'a> for UsageFields {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let Self(counts) = self;
        match name {
            "prompt_tokens" => counts.input = map.next_value::<Number>()?.0,
            "completion_tokens" => counts.output = map.next_value::<Number>()?.0,
            // DeepSeek; Moonshot.
            "prompt_cache_hit_tokens" | "cached_tokens" => {
                counts.cached = counts.cached.max(map.next_value::<Number>()?.0);
            }
            "prompt_tokens_details" => {
                let Object(details) = map.next_value::<Object<Details>>()?;
                counts.cached = counts.cached.max(details.cached);
                counts.stored = details.stored;
            }
            "completion_tokens_details" => {
                counts.reasoning = map.next_value::<Object<Details>>()?.0.reasoning;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}
