//! Takes a Gemini body apart: the conversation and what stands before it are read at once, everything else stays raw.
//!
//! A usual body is read in one pass. One that is unusual in any way, and so every bad one, is read again with care, level by level:
//! only there is said what is wrong, and the quick way must only know that something may be. What both take, both read alike.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::part::{Content, Part};
use super::reading::{Node, full, is_named};
use super::turns::Reader;
use crate::form::Left;
use crate::intake::{Body, DEEPEST, IntakeError, after_spaces, is_text_deeper, twice};
use crate::lenient::{Fill, Key, otherwise, text_of};
use crate::splice::place;

/// Fields of the body that are read.
const KNOWN: [&str; 9] = [
    "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
    "cachedContent", "labels", "model",
];

/// A body taken apart.
#[derive(Debug, Default)]
pub(super) struct Top<'a> {
    /// All fields but the two that are read, raw, in their order.
    pub(super) fields: Node<'a>,
    /// Where the contents begin.
    pub(super) start: usize,
    /// The contents.
    pub(super) talk: Reader<'a>,
    /// What stands before them.
    pub(super) system: Vec<Cow<'a, str>>,
    /// What of it found no place.
    pub(super) left: Vec<Left>,
}

impl<'a> Top<'a> {
    /// Takes a body apart.
    pub(super) fn of(body: &'a [u8]) -> Result<Self, IntakeError> {
        let mut top = Self::default();
        if top.read_at_once(body).is_none() {
            top = Self::default();
            top.read_with_care(body)?;
        }
        Ok(top)
    }

    /// Reads a body in one pass; nothing of one that is unusual.
    fn read_at_once(&mut self, body: &'a [u8]) -> Option<()> {
        let text = std::str::from_utf8(body).ok()?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let Found { key, parts } = Fast(self).deserialize(&mut reader).ok()??;
        reader.end().ok()?;
        let names = &self.fields.0;
        let is_two_ways = names.iter().any(|(name, _)| name.contains('_')) && known_twice(names).is_some();
        if is_two_ways || twice(names).is_some() || is_text_deeper(body.trim_ascii_start(), DEEPEST) {
            return None;
        }
        let colon = after_spaces(body, place(body, key)?.end + 1);
        self.start = after_spaces(body, colon + 1);
        self.instruct(parts);
        Some(())
    }

    /// Reads a body level by level, and says what is wrong with it.
    fn read_with_care(&mut self, body: &'a [u8]) -> Result<(), IntakeError> {
        let Body { all } = Body::of(body)?;
        if let Some(known) = known_twice(&all) {
            return Err(IntakeError::Twice(known.to_owned()));
        }
        let node = Node(all);
        let contents = node.get("contents").ok_or(IntakeError::Missing("contents"))?;
        let mut reader = serde_json::Deserializer::from_str(contents.get());
        let read = Contents(&mut self.talk).deserialize(&mut reader);
        read.map_err(|error| IntakeError::of(&error))?.checked()?;
        self.start = place(body, contents.get()).map_or(0, |range| range.start);
        if let Some(raw) = node.get("systemInstruction") {
            match text_of(raw) {
                Some(text) => self.system.push(text),
                None => self.instruct(parts_of(raw).unwrap_or_default()),
            }
        }
        self.fields = node;
        self.fields.0.retain(|(name, _)| name != "contents" && !is_named(name, "systemInstruction"));
        Ok(())
    }

    /// Takes the parts of what stands before the conversation.
    fn instruct(&mut self, parts: Vec<Option<Part<'a>>>) {
        for (place, part) in parts.into_iter().enumerate() {
            let text = part.and_then(|part| part.text);
            match full(text) {
                Some(text) => self.system.push(text),
                None if text.is_some() => {}
                None => {
                    let at = format!("systemInstruction.parts[{place}]");
                    self.left.push(Left::dropped("drop_system_part", at));
                }
            }
        }
    }
}

/// A known field that is given twice, be it in both ways of writing its name.
fn known_twice(all: &[(Cow<'_, str>, &RawValue)]) -> Option<&'static str> {
    KNOWN.into_iter().find(|known| all.iter().filter(|(name, _)| is_named(name, known)).count() > 1)
}

/// The parts of all contents of a raw value; none if it cannot be read.
fn parts_of(raw: &RawValue) -> Option<Vec<Option<Part<'_>>>> {
    let mut parts = Vec::new();
    Instruction(&mut parts).deserialize(&mut serde_json::Deserializer::from_str(raw.get())).ok()?;
    Some(parts)
}

/// What the quick way found beside what it filled.
struct Found<'a> {
    /// The name of the contents, where it stands.
    key: &'a str,
    /// What stands before the conversation.
    parts: Vec<Option<Part<'a>>>,
}

/// Reads a whole body; nothing if it is not as usual.
struct Fast<'s, 'a>(&'s mut Top<'a>);

impl<'a> DeserializeSeed<'a> for Fast<'_, 'a> {
    type Value = Option<Found<'a>>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Fast<'_, 'a> {
    type Value = Option<Found<'a>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut key, mut parts) = (None, None);
        let mut is_usual = true;
        while let Some(name) = map.next_key_seed(Key::<Self>::of())? {
            if name == "contents" {
                let read = map.next_value_seed(Contents(&mut self.0.talk))?;
                is_usual &= key.replace(name).is_none() && read == Read::Whole;
            } else if is_named(&name, "systemInstruction") {
                is_usual &= parts.is_none();
                is_usual &= map.next_value_seed(Instruction(parts.insert(Vec::new())))?;
            } else {
                self.0.fields.0.push((name, map.next_value()?));
            }
        }
        // Of a name with escapes it is not known where it stands.
        let Some(Cow::Borrowed(key)) = key.filter(|_| is_usual) else { return Ok(None) };
        Ok(Some(Found { key, parts: parts.unwrap_or_default() }))
    }
}

/// What the contents turned out to be.
#[derive(Default, PartialEq, Eq)]
enum Read {
    /// No contents.
    #[default]
    Neither,
    /// Contents, all of them read.
    Whole,
    /// A list with something else in it, first at this place.
    NotObject(usize),
}

impl Read {
    fn checked(self) -> Result<(), IntakeError> {
        match self {
            Self::Neither => Err(IntakeError::WrongType { param: "contents", must_be: "a list of contents" }),
            Self::Whole => Ok(()),
            Self::NotObject(index) => Err(IntakeError::NotObject { list: "contents", index }),
        }
    }
}

/// Reads the contents: a list of them, or one in its place.
struct Contents<'s, 'a>(&'s mut Reader<'a>);

impl<'a> DeserializeSeed<'a> for Contents<'_, 'a> {
    type Value = Read;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Contents<'_, 'a> {
    type Value = Read;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of contents")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Read, A::Error> {
        let mut content = Content::default();
        let mut at = 0;
        while let Some(is_object) = list.next_element_seed(Fill(&mut content))? {
            if !is_object {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Read::NotObject(at));
            }
            self.0.take(&mut content);
            at += 1;
        }
        Ok(Read::Whole)
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<Read, A::Error> {
        let mut content = Content::default();
        Fill(&mut content).visit_map(map)?;
        self.0.take(&mut content);
        Ok(Read::Whole)
    }

    otherwise!(texts, numbers, flags, null);
}

/// Reads what stands before the conversation: the parts of a content, or of several. A text in its place is left to the careful way.
struct Instruction<'s, 'a>(&'s mut Vec<Option<Part<'a>>>);

impl<'a> DeserializeSeed<'a> for Instruction<'_, 'a> {
    /// Whether it was read.
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Instruction<'_, 'a> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a content")
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<bool, A::Error> {
        let mut content = Content::default();
        Fill(&mut content).visit_map(map)?;
        *self.0 = content.parts;
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut content = Content::default();
        while list.next_element_seed(Fill(&mut content))?.is_some() {
            self.0.append(&mut content.parts);
        }
        Ok(true)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(true)
    }

    otherwise!(texts, numbers, flags);
}
