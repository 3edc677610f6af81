//! Small readers that several files of this dialect share.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::value::RawValue;

use crate::intake::fields;
use crate::lenient::{List, text_of};

/// Whether a field has this name, in either way of writing it: `systemInstruction` or `system_instruction`.
#[inline]
pub(super) fn is_named(name: &str, camel: &str) -> bool {
    // Nearly every name is another one, and its first letter already differs.
    name.as_bytes().first() == camel.as_bytes().first() && is_same(name, camel)
}

fn is_same(name: &str, camel: &str) -> bool {
    if name == camel {
        return true;
    }
    let mut wanted = camel.bytes();
    let mut after_line = false;
    for byte in name.bytes() {
        if byte == b'_' && !after_line {
            after_line = true;
            continue;
        }
        let byte = if std::mem::take(&mut after_line) { byte.to_ascii_uppercase() } else { byte };
        if wanted.next() != Some(byte) {
            return false;
        }
    }
    !after_line && wanted.next().is_none()
}

/// A name in the first of the two ways; one that is neither stays as it is. For callers that compare many names at once.
pub(super) fn camel(name: &str) -> Cow<'_, str> {
    if memchr(b'_', name.as_bytes()).is_none() {
        return Cow::Borrowed(name);
    }
    let mut pieces = name.split('_');
    let mut camel = String::with_capacity(name.len());
    camel.push_str(pieces.next().unwrap_or_default());
    let mut is_name = !camel.is_empty();
    for piece in pieces {
        let mut letters = piece.chars();
        is_name &= letters.next().is_some_and(|first| {
            camel.push(first.to_ascii_uppercase());
            true
        });
        camel.push_str(letters.as_str());
    }
    if is_name { Cow::Owned(camel) } else { Cow::Borrowed(name) }
}

/// Names and values, in their order.
pub(super) type Pairs<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The fields of an object.
#[derive(Debug, Default)]
pub(super) struct Node<'a>(pub(super) Pairs<'a>);

impl<'a> Node<'a> {
    /// Those of a raw object; of anything else none.
    pub(super) fn of(raw: &'a RawValue) -> Self {
        Self(fields(raw).unwrap_or_default())
    }

    /// The field of this name; `null` counts as absent. Of one that comes twice the last counts.
    pub(super) fn get(&self, camel: &str) -> Option<&'a RawValue> {
        self.entry(camel).filter(|raw| raw.get() != "null")
    }

    /// The same, `null` or not.
    pub(super) fn entry(&self, camel: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(name, _)| is_named(name, camel)).map(|(_, raw)| *raw)
    }

    /// The text of a field.
    pub(super) fn text(&self, camel: &str) -> Option<Cow<'a, str>> {
        self.get(camel).and_then(text_of)
    }

    /// Whether a field is true.
    pub(super) fn flag(&self, camel: &str) -> bool {
        self.get(camel).is_some_and(|raw| raw.get() == "true")
    }

    /// A whole number.
    pub(super) fn whole(&self, camel: &str) -> Option<i64> {
        whole(self.get(camel)?)
    }
}

/// A number; proto3 JSON may write it as a text.
pub(super) fn number(raw: &RawValue) -> Option<f64> {
    written(raw).parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A whole number.
pub(super) fn whole(raw: &RawValue) -> Option<i64> {
    let text = written(raw);
    #[expect(clippy::cast_possible_truncation, reason = "in range when cast")]
    let rounded = || {
        // `1.0` and `1e3` are whole numbers too.
        text.parse::<f64>().ok().filter(|number| number.abs() < 9e15).map(|number| number as i64)
    };
    text.parse::<i64>().ok().or_else(rounded)
}

/// A whole number that is not negative.
pub(super) fn count(raw: &RawValue) -> Option<u64> {
    whole(raw).and_then(|number| u64::try_from(number).ok())
}

/// A number as it is written, be it as a text.
pub(super) fn written(raw: &RawValue) -> Cow<'_, str> {
    text_of(raw).unwrap_or(Cow::Borrowed(raw.get()))
}

/// The elements of a list; one value in its place is a list of one.
pub(super) fn many(raw: &RawValue) -> Vec<&RawValue> {
    if raw.get().starts_with('[') {
        serde_json::from_str::<List<&RawValue>>(raw.get()).map(|List(all)| all).unwrap_or_default()
    } else if raw.get() == "null" {
        Vec::new()
    } else {
        vec![raw]
    }
}

/// One element of a list. The first one, which is mostly the wanted one, is found without reading the others.
pub(super) fn at(raw: &RawValue, index: usize) -> Option<&RawValue> {
    match raw.get().strip_prefix('[') {
        Some(rest) if index == 0 => first(rest),
        _ => many(raw).get(index).copied(),
    }
}

/// The value that a text begins with.
pub(super) fn first(text: &str) -> Option<&RawValue> {
    serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().next()?.ok()
}

/// A text that is not empty.
pub(super) fn full(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    text_of(raw?).filter(|text| !text.is_empty())
}

/// Base64 with the letters that all vendors know. Google takes the URL's letters too, and its Python library sends those.
pub(super) fn base64(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_odd = !text.len().is_multiple_of(4);
    if !is_odd && !text.contains(['-', '_']) {
        return text;
    }
    let mut standard = text.replace('-', "+").replace('_', "/");
    while !standard.len().is_multiple_of(4) {
        standard.push('=');
    }
    Cow::Owned(standard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_both_ways() {
        for (name, camel, same) in [
            ("systemInstruction", "systemInstruction", true),
            ("system_instruction", "systemInstruction", true),
            ("system__instruction", "systemInstruction", false),
            ("system_instruction_", "systemInstruction", false),
            ("SystemInstruction", "systemInstruction", false),
            ("contents", "contents", true),
            ("content", "contents", false),
            ("top_k", "topK", true),
            ("top_K", "topK", true),
            ("_top_k", "topK", false),
            ("_top_k", "TopK", false),
            ("", "topK", false),
        ] {
            assert_eq!(is_named(name, camel), same, "{name} {camel}");
            assert_eq!(super::camel(name) == camel, same, "{name} {camel}");
        }
    }

    #[test]
    fn the_first_element_is_the_one_that_a_full_reading_finds() {
        for text in [r#"[ {"a":[1,2]} , {"b":2}]"#, "[]", r#"{"alone":1}"#, "[1,2]", "null", "\"text\""] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            for index in 0..3 {
                let known = many(raw).get(index).map(|raw| raw.get());
                assert_eq!(at(raw, index).map(RawValue::get), known, "{text} {index}");
            }
        }
    }

    #[test]
    fn data_gets_the_letters_that_all_know() {
        assert_eq!(base64("aGk-".into()), "aGk+");
        assert_eq!(base64("_-8".into()), "/+8=");
        assert_eq!(base64("aGk=".into()), "aGk=");
    }
}
