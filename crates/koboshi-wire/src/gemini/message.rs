//! The contents of a request as they stand there: one pass over them, texts raw until they are wanted.
//!
//! Google's servers take a single object where a list is meant, and its own examples write so; this reader does too.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::lenient::{Fields, Fill, OptionalObject, Truthiness, add, otherwise, skip};

/// Reads a list into what is there, in place of what it held; one object is a list of one, anything else an empty one. What is no object in the
/// list is none.
pub(super) struct ListInto<'s, T>(pub(super) &'s mut Vec<Option<T>>);

impl<'a, T: Fields<'a>> Visitor<'a> for ListInto<'_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            let mut one = T::default();
            match list.next_element_seed(Fill(&mut one))? {
                Some(is_object) => add(self.0, is_object.then_some(one)),
                None => return Ok(()),
            }
        }
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<(), A::Error> {
        let mut one = T::default();
        Fill(&mut one).visit_map(map)?;
        add(self.0, Some(one));
        Ok(())
    }

    otherwise!(texts, numbers, flags, null);
}

impl<'a, T: Fields<'a>> DeserializeSeed<'a> for ListInto<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.clear();
        deserializer.deserialize_any(self)
    }
}

/// A content: the parts of one role.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) role: Option<&'a RawValue>,
    pub(super) parts: Vec<Option<Part<'a>>>,
}

impl<'a> Fields<'a> for Content<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "role" => self.role = Some(map.next_value()?),
            "parts" => map.next_value_seed(ListInto(&mut self.parts))?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// One part. What is rare in it is on the heap: most parts are texts, and there are many.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) text: Option<&'a RawValue>,
    pub(super) is_thought: bool,
    pub(super) signature: Option<&'a RawValue>,
    pub(super) inline: Option<Box<Blob<'a>>>,
    pub(super) file: Option<Box<Blob<'a>>>,
    pub(super) call: Option<Box<CallFields<'a>>>,
    pub(super) response: Option<Box<Response<'a>>>,
    /// What another vendor cannot do: the rule that says so.
    pub(super) needed: Option<&'static str>,
    /// How the model is to view it: which part of a video, at which resolution.
    pub(super) has_view: bool,
}

impl<'a> Fields<'a> for Part<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "text" => self.text = Some(map.next_value()?),
            "thought" => self.is_thought = map.next_value::<Truthiness>()?.0,
            "thoughtSignature" | "thought_signature" => self.signature = Some(map.next_value()?),
            "inlineData" | "inline_data" => self.inline = boxed(map)?,
            "fileData" | "file_data" => self.file = boxed(map)?,
            "functionCall" | "function_call" => self.call = boxed(map)?,
            "functionResponse" | "function_response" => self.response = boxed(map)?,
            "executableCode"
            | "executable_code"
            | "codeExecutionResult"
            | "code_execution_result"
            | "toolCall"
            | "tool_call"
            | "toolResponse"
            | "tool_response" => {
                if map.next_value::<Truthiness>()?.0 {
                    self.needed = Some("needs_hosted_tool");
                }
            }
            "videoMetadata" | "video_metadata" | "mediaResolution" | "media_resolution" => {
                self.has_view |= map.next_value::<Truthiness>()?.0;
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

fn boxed<'a, T: Fields<'a>, A: MapAccess<'a>>(map: &mut A) -> Result<Option<Box<T>>, A::Error> {
    map.next_value::<OptionalObject<T>>().map(|OptionalObject(found)| found.map(Box::new))
}

/// Data in the body, or where it can be fetched.
#[derive(Debug, Default)]
pub(super) struct Blob<'a> {
    pub(super) media_type: Option<&'a RawValue>,
    pub(super) data: Option<&'a RawValue>,
    pub(super) uri: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
}

impl<'a> Fields<'a> for Blob<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let place = match name {
            "mimeType" | "mime_type" => &mut self.media_type,
            "data" => &mut self.data,
            "fileUri" | "file_uri" => &mut self.uri,
            "displayName" | "display_name" => &mut self.name,
            _ => return skip(map),
        };
        *place = Some(map.next_value()?);
        Ok(())
    }
}

/// A call.
#[derive(Debug, Default)]
pub(super) struct CallFields<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) args: Option<&'a RawValue>,
}

impl<'a> Fields<'a> for CallFields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let place = match name {
            "id" => &mut self.id,
            "name" => &mut self.name,
            "args" => &mut self.args,
            _ => return skip(map),
        };
        *place = Some(map.next_value()?);
        Ok(())
    }
}

/// What came back from a call.
#[derive(Debug, Default)]
pub(super) struct Response<'a> {
    pub(super) id: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) response: Option<&'a RawValue>,
    pub(super) parts: Vec<Option<Part<'a>>>,
}

impl<'a> Fields<'a> for Response<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = Some(map.next_value()?),
            "name" => self.name = Some(map.next_value()?),
            "response" => self.response = Some(map.next_value()?),
            "parts" => map.next_value_seed(ListInto(&mut self.parts))?,
            _ => skip(map)?,
        }
        Ok(())
    }
}
