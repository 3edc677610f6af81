//! An object of a request with its fields raw: what is not asked for is not read.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::intake::fields;
use crate::lenient::{List, text_of};

/// An object; of a key that comes twice the last counts.
#[derive(Debug)]
pub(super) struct Node<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Node<'a> {
    /// A raw object; none of anything else.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('{').then(|| fields(raw)).flatten().map(Self)
    }

    /// A field; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.0.iter().rev().find(|(known, _)| known == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text_of(self.get(name)?)
    }

    /// A text that is not empty.
    pub(super) fn full(&self, name: &str) -> Option<Cow<'a, str>> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// The `type`.
    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        self.text("type")
    }

    /// A flag.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        flag(self.get(name)?)
    }

    /// A list of whatever.
    pub(super) fn list(&self, name: &str) -> Vec<&'a RawValue> {
        self.get(name).map(list).unwrap_or_default()
    }
}

/// The values of a raw list; none of anything else.
pub(super) fn list(raw: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str::<List<&RawValue>>(raw.get()).unwrap_or_default().0
}

/// A raw flag.
pub(super) fn flag(raw: &RawValue) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
