//! A chat request, as far as the simulated provider reads it.
//!
//! Strings are borrowed where JSON allows it, schemas stay raw until one is needed, and everything that no answer
//! depends on is skipped. What is wrong is said in a sentence with the name of the field.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chance::Print;
use crate::error::{Failure, excerpt};

/// A chat request.
#[derive(Debug, Deserialize)]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    n: Option<u64>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    max_completion_tokens: Option<u64>,
    #[serde(borrow, default)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(borrow, default)]
    response_format: Option<Format<'a>>,
}

/// One message of the conversation.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
    #[serde(borrow, default)]
    pub(crate) tool_calls: Option<Vec<Called<'a>>>,
    #[serde(borrow, default)]
    pub(crate) tool_call_id: Option<Cow<'a, str>>,
}

/// A tool call of an earlier answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Called<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) function: Option<Function<'a>>,
}

/// What was called, or what can be.
#[derive(Debug, Deserialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) parameters: Option<&'a RawValue>,
}

/// A tool on offer.
#[derive(Debug, Deserialize)]
struct Tool<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Format<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    json_schema: Option<Named<'a>>,
}

#[derive(Debug, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    schema: Option<&'a RawValue>,
}

/// The text of a message: a string, or the text of its parts.
#[derive(Debug, Default)]
pub(crate) struct Content<'a>(pub(crate) Cow<'a, str>);

/// What the caller says about tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice<'r> {
    None,
    Auto,
    Required,
    Named(&'r str),
}

/// What the answer must be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    Text,
    Object,
    Schema(&'a RawValue),
}

impl<'a> Request<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Failure> {
        let request: Self = serde_json::from_slice(body).map_err(|error| {
            let why = excerpt(&error.to_string(), 200);
            Failure::request(&format!("We could not parse the JSON body of your request: {why}."), None)
        })?;
        if request.messages.is_empty() {
            return Err(Failure::request(
                "Invalid 'messages': empty array. Expected an array with minimum length 1.",
                Some("messages"),
            ));
        }
        if request.n.is_some_and(|n| n != 1) {
            return Err(Failure::request("Invalid 'n': the simulated provider gives one choice.", Some("n")));
        }
        Ok(request)
    }

    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn wants_usage(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_usage).unwrap_or(false)
    }

    /// How many tokens the answer may have.
    pub(crate) fn most(&self) -> Option<u64> {
        self.max_completion_tokens.or(self.max_tokens)
    }

    pub(crate) fn parallel(&self) -> bool {
        self.parallel_tool_calls.unwrap_or(true)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &Function<'a>> {
        self.tools.iter().flatten().filter_map(|tool| tool.function.as_ref())
    }

    pub(crate) fn choice(&self) -> Choice<'_> {
        let named = |choice: &'_ Value| -> Option<()> { choice.pointer("/function/name").map(drop) };
        match &self.tool_choice {
            _ if self.tools().next().is_none() => Choice::None,
            Some(Value::String(word)) if word == "none" => Choice::None,
            Some(Value::String(word)) if word == "required" => Choice::Required,
            Some(choice) if named(choice).is_some() => {
                choice.pointer("/function/name").and_then(Value::as_str).map_or(Choice::Auto, Choice::Named)
            }
            _ => Choice::Auto,
        }
    }

    pub(crate) fn shape(&self) -> Shape<'a> {
        let Some(format) = &self.response_format else { return Shape::Text };
        match (&*format.kind, format.json_schema.as_ref().and_then(|named| named.schema)) {
            ("json_schema", Some(schema)) => Shape::Schema(schema),
            ("json_schema" | "json_object", _) => Shape::Object,
            _ => Shape::Text,
        }
    }

    /// The words with which the conversation ends, if they are the assistant's: the answer goes on from there.
    pub(crate) fn prefill(&self) -> Option<&str> {
        let last = self.messages.last()?;
        (last.role == "assistant" && last.tool_calls.is_none()).then_some(&*last.content.0)
    }

    /// Without the words to go on from.
    pub(crate) fn conversation(&self) -> &[Message<'a>] {
        match self.messages.split_last() {
            Some((_, before)) if self.prefill().is_some() => before,
            _ => &self.messages,
        }
    }

    /// What the words of the answer depend on.
    pub(crate) fn print(&self) -> Print {
        self.conversation().iter().fold(Print::new(), |print, message| {
            let print = print.add(&message.role).add(&message.content.0);
            let calls = message.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref());
            calls.fold(print, |print, call| {
                print.add(&call.name).add(call.arguments.as_deref().unwrap_or_default())
            })
        })
    }

    /// About how many tokens the conversation has: four bytes each.
    pub(crate) fn tokens(&self) -> u64 {
        let texts: usize = self.messages.iter().map(|message| message.content.0.len() / 4 + 4).sum();
        let schema = |tool: &Function<'_>| tool.parameters.map_or(0, |schema| schema.get().len());
        let tools: usize = self.tools().map(|tool| (tool.name.len() + schema(tool)) / 4 + 8).sum();
        u64::try_from(texts.saturating_add(tools)).unwrap_or(u64::MAX).saturating_add(3)
    }

    pub(crate) fn last_user(&self) -> &str {
        let mut users = self.messages.iter().rev().filter(|message| message.role == "user");
        users.next().map_or("", |message| &message.content.0)
    }

    /// Nothing was answered in this conversation yet.
    pub(crate) fn is_first_ask(&self) -> bool {
        !self.conversation().iter().any(|message| message.role == "assistant")
    }
}

impl Function<'_> {
    /// The schema of its arguments.
    pub(crate) fn schema(&self) -> Value {
        parsed(self.parameters)
    }
}

/// A schema, read; one that is nested too deeply is none.
pub(crate) fn parsed(raw: Option<&RawValue>) -> Value {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or(Value::Null)
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string, a list of parts or null as 'content'")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(""))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut joined = String::new();
                while let Some(Part(text)) = parts.next_element::<Part<'de>>()? {
                    joined.push_str(&text);
                }
                Ok(Cow::Owned(joined))
            }
        }
        deserializer.deserialize_any(Text).map(Content)
    }
}

/// The text of one part; pictures and sounds have none.
struct Part<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Cow<'de, str>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a part of a message's content")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                let mut text = Cow::Borrowed("");
                while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
                    if name == "text" {
                        text = fields.next_value::<Content<'de>>()?.0;
                    } else {
                        fields.next_value::<de::IgnoredAny>()?;
                    }
                }
                Ok(text)
            }
        }
        deserializer.deserialize_map(Fields).map(Part)
    }
}
