//! Takes a Gemini body apart: the conversation, what stands before it and how the answer is made are read at once, everything else stays raw.
//!
//! A usual body is read in one pass. One that is unusual in any way, and so every bad one, is read again with care, level by level:
//! only that way reports what is wrong; the quick way must only notice that something may be. Bodies that both accept are read alike by both.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::message::Content;
use super::proto_json::{Node, full, is_named};
use super::read_settings::Generation;
use super::read_turns::Reader;
use crate::form::Omission;
use crate::intake::{Body, FieldForm, IntakeError, MAX_DEPTH, after_spaces, is_text_deeper, twice};
use crate::lenient::{Fill, Key, add, filled, otherwise, text_of};
use crate::splice::place;

/// Fields of the body that are read.
const KNOWN: [&str; 9] = [
    "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
    "cachedContent", "labels", "model",
];

/// Those of them that are read while the body is taken apart.
const READ: [&str; 3] = ["contents", "systemInstruction", "generationConfig"];

/// A body taken apart.
#[derive(Debug, Default)]
pub(super) struct RequestFields<'a> {
    /// All fields but those that are read here, raw, in their order.
    pub(super) fields: Node<'a>,
    /// Where the contents begin.
    pub(super) start: usize,
    /// The contents.
    pub(super) talk: Reader<'a>,
    /// The system instruction.
    pub(super) system: System<'a>,
    /// How the answer is made.
    pub(super) generation: Generation<'a>,
}

impl<'a> RequestFields<'a> {
    /// Takes a body apart.
    pub(super) fn read(&mut self, body: &'a [u8]) -> Result<(), IntakeError> {
        if self.read_at_once(body).is_none() {
            *self = Self::default();
            self.read_with_care(body)?;
        }
        Ok(())
    }

    /// Reads a body in one pass; nothing of one that is unusual.
    fn read_at_once(&mut self, body: &'a [u8]) -> Option<()> {
        let text = std::str::from_utf8(body).ok()?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let key = OnePass(self).deserialize(&mut reader).ok()??;
        reader.end().ok()?;
        if twice(&self.fields.0).is_some() || is_text_deeper(body.trim_ascii_start(), MAX_DEPTH) {
            return None;
        }
        let colon = after_spaces(body, place(body, key)?.end + 1);
        self.start = after_spaces(body, colon + 1);
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
        let read = Contents(&mut self.talk, &mut Content::default()).deserialize(&mut reader);
        read.map_err(|error| IntakeError::of(&error))?.checked()?;
        self.start = place(body, contents.get()).map_or(0, |range| range.start);
        if let Some(raw) = node.get("systemInstruction") {
            self.system = System::of(raw);
        }
        if let Some(raw) = node.get("generationConfig") {
            self.generation = filled(raw.get()).unwrap_or_default();
        }
        self.fields = node;
        self.fields.0.retain(|(name, _)| !is_read(name));
        Ok(())
    }
}

/// Whether a field of the top level is read while the body is taken apart.
pub(super) fn is_read(name: &str) -> bool {
    READ.iter().any(|known| is_named(name, known))
}

/// A known field that is given twice, be it in both ways of writing its name.
fn known_twice(all: &[(Cow<'_, str>, &RawValue)]) -> Option<&'static str> {
    KNOWN.into_iter().find(|known| all.iter().filter(|(name, _)| is_named(name, known)).count() > 1)
}

/// Reads a whole body; where it is as usual, the name of the contents, as it stands there, comes back.
struct OnePass<'s, 'a>(&'s mut RequestFields<'a>);

impl<'a> DeserializeSeed<'a> for OnePass<'_, 'a> {
    type Value = Option<&'a str>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for OnePass<'_, 'a> {
    type Value = Option<&'a str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let RequestFields { fields, talk, system, generation, .. } = self.0;
        let mut content = Content::default();
        let mut key = None;
        let (mut has_system, mut has_generation, mut is_usual, mut is_snake) = (false, false, true, false);
        while let Some(name) = map.next_key_seed(Key::<Self>::of())? {
            match name.as_ref() {
                "contents" => {
                    let read = map.next_value_seed(Contents(talk, &mut content))?;
                    is_usual &= key.replace(name).is_none() && read == ContentsKind::Whole;
                }
                "systemInstruction" | "system_instruction" => {
                    is_usual &= map.next_value_seed(Instruction(system, &mut content))?;
                    is_usual &= !std::mem::replace(&mut has_system, true);
                }
                "generationConfig" | "generation_config" => {
                    is_usual &= map.next_value_seed(Fill(generation))?;
                    is_usual &= !std::mem::replace(&mut has_generation, true);
                }
                _ => {
                    is_snake |= memchr(b'_', name.as_bytes()).is_some();
                    fields.0.push((name, map.next_value()?));
                }
            }
        }
        // The second way to write a name has odd forms, and may repeat one that was written in the first.
        let has_read = || fields.0.iter().any(|(name, _)| is_read(name));
        is_usual &= !is_snake || !has_read() && known_twice(&fields.0).is_none();
        // Of a name with escapes it is not known where it stands.
        Ok(match key {
            Some(Cow::Borrowed(key)) if is_usual => Some(key),
            _ => None,
        })
    }
}

/// What the contents turned out to be.
#[derive(Default, PartialEq, Eq)]
enum ContentsKind {
    /// No contents.
    #[default]
    Neither,
    /// Contents, all of them read.
    Whole,
    /// A list with something else in it, first at this place.
    NotObject(usize),
}

impl ContentsKind {
    fn checked(self) -> Result<(), IntakeError> {
        match self {
            Self::Neither => Err(IntakeError::WrongType { param: "contents", expected: FieldForm::Contents }),
            Self::Whole => Ok(()),
            Self::NotObject(index) => Err(IntakeError::NotObject { list: "contents", index }),
        }
    }
}

/// Reads the contents: a list of them, or one in its place. One after the other stands in the same place.
struct Contents<'s, 'a>(&'s mut Reader<'a>, &'s mut Content<'a>);

impl<'a> DeserializeSeed<'a> for Contents<'_, 'a> {
    type Value = ContentsKind;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Contents<'_, 'a> {
    type Value = ContentsKind;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of contents")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<ContentsKind, A::Error> {
        let mut at = 0;
        while let Some(is_object) = list.next_element_seed(Fill(self.1))? {
            if !is_object {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(ContentsKind::NotObject(at));
            }
            self.0.take(self.1);
            at += 1;
        }
        Ok(ContentsKind::Whole)
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<ContentsKind, A::Error> {
        Fill(self.1).visit_map(map)?;
        self.0.take(self.1);
        Ok(ContentsKind::Whole)
    }

    otherwise!(texts, numbers, flags, null);
}

/// The system instruction.
#[derive(Debug, Default)]
pub(super) struct System<'a> {
    pub(super) texts: Vec<Cow<'a, str>>,
    /// What of it found no place.
    pub(super) left: Vec<Omission>,
    /// How many parts there were.
    parts: usize,
}

impl<'a> System<'a> {
    /// A text, a content or several; of anything else nothing.
    fn of(raw: &'a RawValue) -> Self {
        let mut system = Self::default();
        if let Some(text) = text_of(raw) {
            system.texts.push(text);
            return system;
        }
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        let read = Instruction(&mut system, &mut Content::default()).deserialize(&mut reader);
        if read.is_ok() { system } else { Self::default() }
    }

    /// Takes the parts of the next content; what held it can hold another one then.
    fn take(&mut self, content: &mut Content<'a>) {
        content.role = None;
        for part in content.parts.drain(..) {
            let text = part.and_then(|part| part.text);
            match full(text) {
                Some(text) => add(&mut self.texts, text),
                None if text.is_some() => {}
                None => {
                    let at = format!("systemInstruction.parts[{}]", self.parts);
                    self.left.push(Omission::dropped("drop_system_part", at));
                }
            }
            self.parts += 1;
        }
    }
}

/// Reads the system instruction: a content, or several. A text in its place is left to the careful way.
struct Instruction<'s, 'a>(&'s mut System<'a>, &'s mut Content<'a>);

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
        Fill(self.1).visit_map(map)?;
        self.0.take(self.1);
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<bool, A::Error> {
        while list.next_element_seed(Fill(self.1))?.is_some() {
            self.0.take(self.1);
        }
        Ok(true)
    }

    otherwise!(texts, numbers, flags, null);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODIES: [&str; 8] = [
        r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"generationConfig":{"maxOutputTokens":256},"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#,
        r#" { "contents" : {"parts":{"text":"Hi"}} , "system_instruction":[{"parts":[{"text":"a"},{"inlineData":{}}]},{"parts":{"text":""}}] } "#,
        r#"{"tool_config":{},"toolConfig":1,"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":[1]}}}]},{"parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}]}"#,
        r#"{"generation_config":{"top_k":1,"topK":null,"stopSequences":["a"],"new":1},"contents":[],"labels":{"a":"b"},"safety_settings":[1]}"#,
        r#"{"systemInstruction":"text","contents":[{"parts":[{"text":"\ud83d"},1]}]}"#,
        r#"{"contents":[{"parts":[]},1],"contents":null}"#,
        r#"{"contents":[{"parts":[{"text":"a"}],"parts":[]}],"generationConfig":[],"systemInstruction":null}"#,
        r#"{"\u0063ontents":[],"system_Instruction":{"parts":[{"text":"a"}]}}"#,
    ];

    /// What a way of reading found, as text.
    fn shown<'a>(way: impl FnOnce(&mut RequestFields<'a>) -> bool) -> Option<String> {
        let mut top = RequestFields::default();
        let is_read = way(&mut top);
        let RequestFields { fields, start, talk, system, generation } = &top;
        is_read
            .then(|| format!("{fields:?} {start} {:?} {:?} {system:?} {generation:?}", talk.turns, talk.left))
    }

    /// Whether the quick way took it; then the careful one must read the same.
    fn is_quick(body: &[u8]) -> bool {
        let quick = shown(|top| top.read_at_once(body).is_some());
        let careful = shown(|top| top.read_with_care(body).is_ok());
        assert!(quick.is_none() || quick == careful, "{}", String::from_utf8_lossy(body));
        quick.is_some()
    }

    #[test]
    fn usual_bodies_are_read_at_once() {
        assert_eq!(
            BODIES.map(|body| is_quick(body.as_bytes())),
            [true, true, false, true, false, false, false, false]
        );
    }

    #[test]
    fn what_is_read_at_once_reads_the_same_with_care() {
        for body in BODIES {
            for at in 0..body.len() {
                for with in [
                    "", "{", "}", "[", "]", ",", ":", "\"", "\\", "_", " ", "0", "null", "\"contents\":[],",
                    "\u{1}",
                ] {
                    let mut changed = body.as_bytes().to_vec();
                    changed.splice(at..=at, with.bytes());
                    is_quick(&changed);
                    changed = body.as_bytes().to_vec();
                    changed.splice(at..at, with.bytes());
                    is_quick(&changed);
                }
                is_quick(body.as_bytes().get(..at).unwrap_or_default());
            }
        }
    }

    #[test]
    fn a_body_is_too_deep_for_both_ways_or_for_none() {
        for depth in [100, 124, 125, 126, 127, 128, 129, 300] {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            for body in [
                format!(
                    r#"{{"contents":[{{"parts":[{{"functionCall":{{"name":"f","args":{open}{close}}}}}]}}]}}"#
                ),
                format!(r#"{{"contents":[{{"parts":[{{"unknown":{open}{close}}}]}}]}}"#),
                format!(r#"{{"contents":[],"systemInstruction":{{"parts":[{{"x":{open}{close}}}]}}}}"#),
                format!(r#"{{"contents":[],"generationConfig":{{"x":{open}{close}}}}}"#),
                format!(r#"{{"contents":[],"x":{open}{close}}}"#),
            ] {
                is_quick(body.as_bytes());
                let is_deep = RequestFields::default().read(body.as_bytes()) == Err(IntakeError::TooDeep);
                let brackets = body.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
                let around = if body.starts_with(r#"{"contents":[]"#) { 1 } else { 0 };
                assert_eq!(is_deep, brackets - around > MAX_DEPTH, "{depth} {body}");
            }
        }
    }
}
