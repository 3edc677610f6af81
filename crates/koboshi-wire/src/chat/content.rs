//! The content of a message: a text, or a list of parts.

use std::borrow::Cow;
use std::fmt;

use koboshi::guard::image_mark;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::lenient::{Fields, List, Object, Text, Truthiness, otherwise, skip, text_of, without_halves};
use crate::step::{join, owned};

/// One part of a content.
#[derive(Debug, Default)]
pub(crate) struct Part<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    thinking: bool,
}

impl<'a> Part<'a> {
    /// The visible text.
    fn text(self) -> Option<Cow<'a, str>> {
        let is_text = matches!(self.kind.as_deref(), None | Some("text" | "output_text" | "input_text"));
        self.text.filter(|_| is_text)
    }

    fn is_image(&self) -> bool {
        matches!(self.kind.as_deref(), Some("image_url" | "input_image" | "image"))
    }

    /// Whether it carries something whose length in bytes says nothing of its tokens.
    fn is_encoded(&self) -> bool {
        self.is_image()
            || matches!(self.kind.as_deref(), Some("input_audio" | "file" | "input_file" | "video_url"))
    }
}

impl<'a> Fields<'a> for Part<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = map.next_value::<Text<'a>>()?.0,
            "text" => self.text = map.next_value::<Text<'a>>()?.full(),
            "thinking" => self.thinking = map.next_value::<Truthiness>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// What a model wrote: the visible text, and whether it thought. Mistral's reasoning models send parts.
#[derive(Debug, Default)]
pub(crate) struct ContentText<'a> {
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) thinking: bool,
}

struct ContentVisitor;

impl<'a> Visitor<'a> for ContentVisitor {
    type Value = ContentText<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<ContentText<'a>, E> {
        Ok(ContentText { text: Text(Some(Cow::Borrowed(text))).full(), thinking: false })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ContentText<'a>, E> {
        Ok(ContentText { text: Text(Some(Cow::Owned(text.to_owned()))).full(), thinking: false })
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<ContentText<'a>, A::Error> {
        let mut spoken = ContentText::default();
        while let Some(Object(part)) = list.next_element::<Object<Part<'a>>>()? {
            spoken.thinking |= part.thinking;
            if let Some(text) = part.text() {
                join(&mut spoken.text, text, "");
            }
        }
        Ok(spoken)
    }

    otherwise!(numbers, flags, null, objects);
}

impl<'a> Deserialize<'a> for ContentText<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// The text of a message's content: the text itself, or the text parts, a line each.
pub(crate) fn text(content: &RawValue) -> Option<Cow<'_, str>> {
    if !is_list(content) {
        return text_of(content);
    }
    match of_parts(content.get()) {
        Ok(text) => text,
        Err(_) => owned(of_parts(&without_halves(content.get())?).ok()?),
    }
}

fn of_parts(list: &str) -> serde_json::Result<Option<Cow<'_, str>>> {
    let List(parts) = serde_json::from_str::<List<Object<Part<'_>>>>(list)?;
    let mut all = None;
    for text in parts.into_iter().filter_map(|Object(part)| part.text()) {
        join(&mut all, text, "\n");
    }
    Ok(all)
}

/// Whether a content is a list of parts.
pub(crate) fn is_list(content: &RawValue) -> bool {
    content.get().starts_with('[')
}

/// What stands for each image or file of a content where answers are compared.
pub(crate) fn marks(content: &RawValue) -> Vec<String> {
    if !is_list(content) {
        return Vec::new();
    }
    let List(raws) = serde_json::from_str::<List<&RawValue>>(content.get()).unwrap_or_default();
    let is_encoded = |raw: &&&RawValue| {
        serde_json::from_str::<Object<Part<'_>>>(raw.get()).is_ok_and(|Object(part)| part.is_encoded())
    };
    raws.iter().filter(is_encoded).map(|raw| image_mark(raw.get())).collect()
}

/// What a content weighs: its bytes without encoded parts, how many of those there are, and whether one is an image.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) bytes: usize,
    pub(crate) encoded: usize,
    pub(crate) has_image: bool,
}

/// Weighs a content.
pub(crate) fn weigh(content: &RawValue) -> Weight {
    let mut weight = Weight { bytes: content.get().len(), ..Weight::default() };
    if !is_list(content) {
        return weight;
    }
    let List(raws) = serde_json::from_str::<List<&RawValue>>(content.get()).unwrap_or_default();
    for raw in raws {
        let Ok(Object(part)) = serde_json::from_str::<Object<Part<'_>>>(raw.get()) else { continue };
        if part.is_encoded() {
            weight.bytes = weight.bytes.saturating_sub(raw.get().len());
            weight.encoded += 1;
            weight.has_image |= part.is_image();
        }
    }
    weight
}
