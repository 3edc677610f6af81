//! Raw JSON objects and lists, read where a field is wanted.
//!
//! For readers that translate: they want most fields of an object, keep schemas and arguments as the text they are, and must accept unpaired
//! surrogates in any text. Values stay raw until asked for; `null` counts as absent, and of a key that comes twice the last counts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::intake::fields;
use crate::lenient::{List, text_of};

/// The fields of an object.
#[derive(Debug, Default)]
pub(crate) struct Raw<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Raw<'a> {
    /// Of an object; of anything else none.
    pub(crate) fn of(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('{').then(|| fields(raw)).flatten().map(Self)
    }

    /// A field's value.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.0.iter().rev().find(|(known, _)| known == name)?;
        Some(*raw).filter(|raw| raw.get() != "null")
    }

    /// Whether there is a field of this name, `null` or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// A field that is a text.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text_of(self.get(name)?)
    }

    /// A field that is a text with something in it.
    pub(crate) fn full(&self, name: &str) -> Option<Cow<'a, str>> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// The `type`.
    pub(crate) fn kind(&self) -> Option<Cow<'a, str>> {
        self.text("type")
    }

    /// A field that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?)
    }

    /// A field that is `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        flag(self.get(name)?)
    }

    /// A field that is an object, raw.
    pub(crate) fn raw_object(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|raw| raw.get().starts_with('{'))
    }

    /// A field that is a number.
    pub(crate) fn number<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        number(self.get(name)?)
    }
}

/// The elements of a list; of anything else none.
pub(crate) fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if !raw.get().starts_with('[') {
        return None;
    }
    serde_json::from_str::<List<&RawValue>>(raw.get()).ok().map(|List(all)| all)
}

/// Whether a text is a JSON object, to any reader: numbers that fit, whole characters, not too deep. Arguments may be as large as a body,
/// so no tree is made of them.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{') && serde_json::from_str::<ValidValue>(text).is_ok()
}

/// A value that every reader accepts, checked without keeping it.
struct ValidValue;

impl<'a> Visitor<'a> for ValidValue {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

impl<'a> Deserialize<'a> for ValidValue {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

/// A number that the type can hold.
pub(crate) fn number<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// `true` or `false`.
pub(crate) fn flag(raw: &RawValue) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::is_object;

    #[test]
    fn an_object_is_one_for_every_reader_or_it_is_none() {
        for text in [
            "{}", " {\"a\":[1,-2,1.5e3,null,true,\"\\ud83d\\ude00\",{}]}\n", "[]", "1", "", "{", "{}x",
            "{\"a\":1e999}", "{\"a\":\"\\ud83d\"}", "{\"\\ud83d\":1}", "{\"a\":01}", "{1:2}", "\"{}\"",
        ] {
            let as_a_tree = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
            assert_eq!(is_object(text), as_a_tree, "{text}");
        }
        assert!(!is_object(&"{\"a\":".repeat(100_000)), "however deep");
    }
}
