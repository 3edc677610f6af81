//! What a model wrote in one response: the part that streams and whole answers have in common.

use std::borrow::Cow;

use serde::de::{Deserialize, MapAccess};
use serde_json::value::RawValue;

use crate::dialect::{Dialect, finish};
use crate::form::{Signature, Thought};
use crate::lenient::{Fields, List, Number, Object, Text, Truthiness, arguments_of, skip};
use crate::step::{ItemKind, Usage, join};
use crate::tally::{Details, Tally};

/// The response object of an answer or of a lifecycle event. Its items are read at once, or stay raw: most streams have sent them by then.
#[derive(Debug)]
pub(super) struct Response<'a, O = &'a RawValue> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) created: Option<u64>,
    pub(super) status: Option<Cow<'a, str>>,
    /// Why it is incomplete.
    pub(super) reason: Option<Cow<'a, str>>,
    pub(super) error: bool,
    pub(super) output: Option<O>,
    pub(super) spent: UsageFields,
}

impl<O> Default for Response<'_, O> {
    fn default() -> Self {
        Self {
            id: None,
            model: None,
            created: None,
            status: None,
            reason: None,
            error: false,
            output: None,
            spent: UsageFields::default(),
        }
    }
}

impl<'a, O> Response<'a, O> {
    /// Why it ended, in the words of [`finish`]; none where it has not, or has failed.
    pub(super) fn finish(&self, has_calls: bool) -> Option<Cow<'a, str>> {
        match self.status.as_deref()? {
            "completed" if has_calls => Some(Cow::Borrowed(finish::TOOL_CALLS)),
            "completed" => Some(Cow::Borrowed(finish::STOP)),
            "incomplete" => Some(match self.reason.clone() {
                Some(reason) if matches!(&*reason, "max_output_tokens" | "max_tokens") => {
                    Cow::Borrowed(finish::LENGTH)
                }
                Some(reason) => reason,
                None => Cow::Borrowed("incomplete"),
            }),
            _ => None,
        }
    }

    /// Whether it failed.
    pub(super) fn is_failed(&self) -> bool {
        self.error || matches!(self.status.as_deref(), Some("failed" | "cancelled"))
    }
}

impl<'a, O: Deserialize<'a>> Fields<'a> for Response<'a, O> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "model" => self.model = map.next_value::<Text<'a>>()?.full(),
            "created_at" => self.created = map.next_value::<Number>()?.0,
            "status" => self.status = map.next_value::<Text<'a>>()?.full(),
            "incomplete_details" => self.reason = map.next_value::<Object<Reason<'a>>>()?.0.0,
            "error" => self.error = map.next_value::<Truthiness>()?.0,
            "output" => self.output = Some(map.next_value()?),
            "usage" => self.spent = map.next_value::<Object<UsageFields>>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Reason<'a>(Option<Cow<'a, str>>);

impl<'a> Fields<'a> for Reason<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "reason" => self.0 = map.next_value::<Text<'a>>()?.full(),
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// One item of the output.
#[derive(Debug, Default)]
pub(super) struct Output<'a> {
    kind: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) call_id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) namespace: Option<Cow<'a, str>>,
    pub(super) arguments: Option<&'a RawValue>,
    content: Vec<Object<Part<'a>>>,
    summary: Vec<Object<Part<'a>>>,
    pub(super) encrypted: Option<Cow<'a, str>>,
}

impl<'a> Output<'a> {
    /// What it is.
    pub(super) fn kind(&self) -> ItemKind {
        match self.kind.as_deref() {
            Some("message") => ItemKind::Message,
            Some("reasoning") => ItemKind::Thought,
            Some("function_call" | "custom_tool_call") => ItemKind::Call,
            _ => ItemKind::Other,
        }
    }

    /// Whether only this dialect has such an item.
    pub(super) fn is_own(&self) -> bool {
        self.kind() == ItemKind::Other && self.kind.is_some()
    }

    /// Whether it is the work of a tool that the provider runs by itself and whose findings it writes as text: the same turn elsewhere finds its own.
    pub(super) fn is_hosted(&self) -> bool {
        matches!(
            self.kind.as_deref(),
            Some("web_search_call" | "file_search_call" | "code_interpreter_call" | "mcp_list_tools")
        )
    }

    /// Whether it calls a tool that takes free text.
    pub(super) fn is_free_text(&self) -> bool {
        self.kind.as_deref() == Some("custom_tool_call")
    }

    /// The text of the arguments, whole.
    pub(super) fn arguments_text(&self) -> Option<Cow<'a, str>> {
        arguments_of(self.arguments?)
    }

    /// The visible text of a message.
    pub(super) fn text(&mut self) -> Option<Cow<'a, str>> {
        joined(self.content.iter_mut().filter_map(|Object(part)| part.take("output_text")), "")
    }

    /// The refusal of a message.
    pub(super) fn refusal(&mut self) -> Option<Cow<'a, str>> {
        joined(self.content.iter_mut().filter_map(|Object(part)| part.refusal.take()), "")
    }

    /// The words of the thinking: its summary, or where there is none the thinking itself.
    pub(super) fn thought(&mut self) -> Option<Cow<'a, str>> {
        let summary = self.summary.iter_mut().filter_map(|Object(part)| part.take("summary_text"));
        joined(summary, BETWEEN_THOUGHTS).or_else(|| {
            joined(self.content.iter_mut().filter_map(|Object(part)| part.take("reasoning_text")), "")
        })
    }

    /// The whole thought with its signature, unless it is empty.
    pub(super) fn whole_thought(&mut self) -> Option<Thought<'a>> {
        let text = self.thought().unwrap_or_default();
        let id = self.id.clone();
        let signature = self.encrypted.take().map(|data| Signature { of: Dialect::Responses, id, data });
        (!text.is_empty() || signature.is_some()).then_some(Thought { text, signature, hidden: false })
    }
}

/// What stands between two parts of a summary: each has a heading of its own.
pub(super) const BETWEEN_THOUGHTS: &str = "\n\n";

impl<'a> Fields<'a> for Output<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = map.next_value::<Text<'a>>()?.0,
            "id" => self.id = map.next_value::<Text<'a>>()?.full(),
            "call_id" => self.call_id = map.next_value::<Text<'a>>()?.full(),
            "name" => self.name = map.next_value::<Text<'a>>()?.full(),
            "namespace" => self.namespace = map.next_value::<Text<'a>>()?.full(),
            "arguments" | "input" => self.arguments = Some(map.next_value()?),
            "content" => self.content = map.next_value::<List<_>>()?.0,
            "summary" => self.summary = map.next_value::<List<_>>()?.0,
            "encrypted_content" => self.encrypted = map.next_value::<Text<'a>>()?.full(),
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// A part of a message, of a thought, or of a summary.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    pub(super) refusal: Option<Cow<'a, str>>,
}

impl<'a> Part<'a> {
    /// Whether it is of this kind.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// The text, if the part is of this kind.
    pub(super) fn take(&mut self, kind: &str) -> Option<Cow<'a, str>> {
        let fits = self.is(kind) || matches!(self.kind.as_deref(), None | Some("text"));
        if fits { self.text.take() } else { None }
    }
}

impl<'a> Fields<'a> for Part<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = map.next_value::<Text<'a>>()?.0,
            "text" => self.text = map.next_value::<Text<'a>>()?.full(),
            "refusal" => self.refusal = map.next_value::<Text<'a>>()?.full(),
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Texts as one; none if there are none.
pub(super) fn joined<'a>(texts: impl Iterator<Item = Cow<'a, str>>, between: &str) -> Option<Cow<'a, str>> {
    let mut all: Option<Cow<'a, str>> = None;
    for text in texts {
        join(&mut all, text, between);
    }
    all
}

/// Adds a text, where there is one, to those before.
pub(super) fn add<'a>(all: &mut Option<Cow<'a, str>>, text: Option<Cow<'a, str>>) {
    if let Some(text) = text {
        join(all, text, "");
    }
}

/// What an answer cost.
#[derive(Debug, Default)]
pub(super) struct UsageFields(Tally);

impl UsageFields {
    /// The cost, if any was stated.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.0.usage()
    }
}

impl<'a> Fields<'a> for UsageFields {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let Self(counts) = self;
        match name {
            "input_tokens" => counts.input = map.next_value::<Number>()?.0,
            "output_tokens" => counts.output = map.next_value::<Number>()?.0,
            "input_tokens_details" => {
                let Object(details) = map.next_value::<Object<Details>>()?;
                (counts.cached, counts.stored) = (details.cached, details.stored);
            }
            "output_tokens_details" => counts.reasoning = map.next_value::<Object<Details>>()?.0.reasoning,
            _ => skip(map)?,
        }
        Ok(())
    }
}
