//! What a model wrote, whole or in chunks: the part that streams and answers have in common.
//!
//! Names are read in both ways that proto3 JSON allows, as everywhere in this dialect.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::{Dialect, finish};
use crate::form::{Signature, Thought};
use crate::lenient::{Fields, Fill, Number, Object, Text, Truthiness, arguments_of, otherwise, skip};
use crate::step::{Usage, join};

/// One answer among those that were asked for.
#[derive(Debug, Default)]
pub(super) struct Candidate<'a> {
    pub(super) index: Option<u32>,
    pub(super) content: ContentFields<'a>,
    /// Why it ended, in the vendor's word.
    pub(super) finish: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> for Candidate<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => self.index = map.next_value::<Number>()?.small(),
            "content" => {
                map.next_value_seed(Fill(&mut self.content))?;
            }
            "finishReason" | "finish_reason" => {
                // The zero value of the enumeration says that there is no reason yet.
                let reason = map.next_value::<Text<'a>>()?.full();
                self.finish = reason.filter(|reason| reason != "FINISH_REASON_UNSPECIFIED");
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The content of a candidate.
#[derive(Debug, Default)]
pub(super) struct ContentFields<'a> {
    /// The visible text, its parts joined.
    pub(super) text: Option<Cow<'a, str>>,
    /// Thoughts, and the signatures that stand on other parts than calls: those have no text.
    pub(super) thoughts: Vec<Thought<'a>>,
    pub(super) calls: Vec<CallFields<'a>>,
    /// Audio, images, code that ran at the provider: content that only this dialect carries.
    pub(super) other: bool,
}

impl<'a> Fields<'a> for ContentFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "parts" => {
                *self = Self::default();
                map.next_value_seed(Parts(self))
            }
            _ => skip(map),
        }
    }
}

impl<'a> ContentFields<'a> {
    fn take(&mut self, part: Part<'a>) {
        let signature = part.signature.map(|data| Signature { of: Dialect::Gemini, id: None, data });
        if let Some(call) = part.call {
            self.calls.push(CallFields { signature, ..call });
            return;
        }
        self.other |= part.other;
        if part.is_thought {
            self.thoughts.push(Thought { text: part.text.unwrap_or_default(), signature, hidden: false });
            return;
        }
        if let Some(text) = part.text {
            join(&mut self.text, text, "");
        }
        if signature.is_some() {
            self.thoughts.push(Thought { signature, ..Thought::default() });
        }
    }

    /// Whether there is thinking that is not empty.
    pub(super) fn has_thought(&self) -> bool {
        self.thoughts.iter().any(|thought| !thought.text.is_empty())
    }
}

/// Reads parts one after the other, without a list of them. A single part may stand in place of the list.
struct Parts<'s, 'a>(&'s mut ContentFields<'a>);

impl<'a> DeserializeSeed<'a> for Parts<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Parts<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of parts")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            let mut part = Part::default();
            if list.next_element_seed(Fill(&mut part))?.is_none() {
                return Ok(());
            }
            self.0.take(part);
        }
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<(), A::Error> {
        let mut part = Part::default();
        Fill(&mut part).visit_map(map)?;
        self.0.take(part);
        Ok(())
    }

    otherwise!(texts, numbers, flags, null);
}

#[derive(Debug, Default)]
struct Part<'a> {
    text: Option<Cow<'a, str>>,
    is_thought: bool,
    signature: Option<Cow<'a, str>>,
    call: Option<CallFields<'a>>,
    other: bool,
}

impl<'a> Fields<'a> for Part<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "text" => self.text = map.next_value::<Text<'a>>()?.full(),
            "thought" => self.is_thought = map.next_value::<Truthiness>()?.0,
            "thoughtSignature" | "thought_signature" => self.signature = map.next_value::<Text<'a>>()?.full(),
            "functionCall" | "function_call" => self.call = Some(map.next_value::<Object<_>>()?.0),
            "inlineData"
            | "inline_data"
            | "fileData"
            | "file_data"
            | "executableCode"
            | "executable_code"
            | "codeExecutionResult"
            | "code_execution_result"
            | "toolCall"
            | "tool_call"
            | "toolResponse"
            | "tool_response" => self.other |= map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// A call.
#[derive(Debug, Default)]
pub(super) struct CallFields<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) args: Option<&'a RawValue>,
    pub(super) signature: Option<Signature<'a>>,
}

impl<'a> CallFields<'a> {
    /// The arguments as JSON text, as the model wrote them.
    pub(super) fn arguments(&self) -> Option<Cow<'a, str>> {
        arguments_of(self.args?)
    }
}

impl<'a> Fields<'a> for CallFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "name" => self.name = map.next_value::<Text<'a>>()?.full(),
            "args" => self.args = Some(map.next_value()?),
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The finish in the words of all dialects; one that none of them fits stays as it is.
pub(super) fn finish_of(reason: Cow<'_, str>, has_calls: bool) -> Cow<'_, str> {
    match reason.as_ref() {
        // There is no word of its own for an answer that waits for tools.
        "STOP" if has_calls => Cow::Borrowed(finish::TOOL_CALLS),
        "STOP" => Cow::Borrowed(finish::STOP),
        "MAX_TOKENS" => Cow::Borrowed(finish::LENGTH),
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Cow::Borrowed(finish::CONTENT_FILTER),
        _ => reason,
    }
}

/// Why a prompt was refused, where it was.
#[derive(Debug, Default)]
pub(super) struct Feedback {
    pub(super) blocked: bool,
}

impl<'a> Fields<'a> for Feedback {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "blockReason" | "block_reason" => {
                let reason = map.next_value::<Text<'a>>()?.full();
                self.blocked = reason.is_some_and(|reason| reason != "BLOCKED_REASON_UNSPECIFIED");
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The usage of an answer: every chunk states the total up to then.
#[derive(Debug, Default)]
pub(super) struct UsageFields {
    prompt: Option<u64>,
    tools: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    cached: Option<u64>,
    total: Option<u64>,
}

impl UsageFields {
    /// The cost, if any was stated.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.prompt.is_none() && self.candidates.is_none() && self.total.is_none() {
            return None;
        }
        let thoughts = self.thoughts.unwrap_or(0);
        // What hosted tools read is counted beside the prompt.
        let input = self.prompt.unwrap_or(0).saturating_add(self.tools.unwrap_or(0));
        Some(Usage {
            input,
            output: self.candidates.unwrap_or(0).saturating_add(thoughts),
            cached: self.cached.unwrap_or(0),
            stored: 0,
            reasoning: thoughts,
        })
    }
}

impl<'a> Fields<'a> for UsageFields {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let place = match name {
            "promptTokenCount" | "prompt_token_count" => &mut self.prompt,
            "toolUsePromptTokenCount" | "tool_use_prompt_token_count" => &mut self.tools,
            "candidatesTokenCount" | "candidates_token_count" => &mut self.candidates,
            "thoughtsTokenCount" | "thoughts_token_count" => &mut self.thoughts,
            "cachedContentTokenCount" | "cached_content_token_count" => &mut self.cached,
            "totalTokenCount" | "total_token_count" => &mut self.total,
            _ => return skip(map),
        };
        *place = map.next_value::<Number>()?.0;
        Ok(())
    }
}
