//! Raw JSON objects and lists, looked into where something is wanted.
//!
//! For readers that translate: they want most fields of an object, keep schemas and arguments as the text they are, and must bear halves of
//! characters in any text. Values stay raw until asked for; `null` counts as absent, and of a key that comes twice the last counts.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
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

/// Whether a text is a JSON object, to any reader.
pub(crate) fn is_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
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
