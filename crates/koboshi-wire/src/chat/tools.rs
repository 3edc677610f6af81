//! The tools that a request offers.

use std::borrow::Cow;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::json;
use crate::lenient::{Fields, Object, Text, skip};

/// One tool, in the new form (`function` or `custom` inside) or the old one (name and schema at once).
#[derive(Debug, Default)]
pub(super) struct Offer<'a> {
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) schema: Option<&'a RawValue>,
    pub(super) is_custom: bool,
}

impl<'a> Fields<'a> for Offer<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => self.name = map.next_value::<Text<'a>>()?.full(),
            "parameters" => {
                let raw: &'a RawValue = map.next_value()?;
                self.schema = raw.get().starts_with('{').then_some(raw);
            }
            "function" => *self = map.next_value::<Object<Self>>()?.0,
            "custom" => {
                let Object(custom) = map.next_value::<Object<Self>>()?;
                *self = Self { schema: None, is_custom: true, ..custom };
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The `type` of an object.
pub(super) fn kind_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let Object(Kind(kind)) = json::read::<Object<Kind<'_>>>(raw.get()).ok()?;
    kind
}

#[derive(Default)]
struct Kind<'a>(Option<Cow<'a, str>>);

impl<'a> Fields<'a> for Kind<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.0 = map.next_value::<Text<'a>>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
