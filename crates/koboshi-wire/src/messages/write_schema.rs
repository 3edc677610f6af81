//! Fits schemas to what the vendor takes.
//!
//! The schema of an answer is compiled there into a grammar, and a keyword that the grammar cannot hold is refused: limits of numbers, texts and
//! lists, most formats, objects open to other fields. Those are left out, as the vendor's own clients do, and objects are closed. The order of
//! fields stays: the model writes them in that order. A schema that fits stays the text it was.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::intake::fields;
use crate::lenient::text_of;
use crate::splice::quoted;

/// Keywords that are kept, beside those with schemas inside.
const KEPT: &[&str] =
    &["type", "enum", "const", "description", "title", "required", "$ref", "default", "$schema", "$id"];
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The schema of an answer as the vendor takes it.
pub(super) fn answer(schema: &RawValue) -> Cow<'_, RawValue> {
    let mut text = String::with_capacity(schema.get().len());
    if !fit(schema, &mut text) {
        return Cow::Borrowed(schema);
    }
    RawValue::from_string(text).map_or(Cow::Borrowed(schema), Cow::Owned)
}

/// Writes a schema as it fits, and says whether that changed it.
fn fit(schema: &RawValue, text: &mut String) -> bool {
    let Some(all) = fields(schema) else {
        text.push_str(schema.get());
        return false;
    };
    let is_object = all.iter().any(|(name, raw)| name == "type" && raw.get() == "\"object\"")
        || all.iter().any(|(name, _)| name == "properties");
    let mut changed = false;
    let mut list = ListWriter::new(text, '{');
    for (name, raw) in &all {
        match name.as_ref() {
            "additionalProperties" if is_object => {
                changed |= raw.get() != "false";
                list.key(name).push_str("false");
            }
            "properties" | "$defs" | "definitions" => changed |= each_field(raw, list.key(name)),
            "items" => changed |= fit(raw, list.key(name)),
            "anyOf" | "allOf" => changed |= each_element(raw, list.key(name)),
            "oneOf" => {
                changed = true;
                each_element(raw, list.key("anyOf"));
            }
            "minItems" if matches!(raw.get(), "0" | "1") => list.key(name).push_str(raw.get()),
            "format" if text_of(raw).is_some_and(|format| FORMATS.contains(&format.as_ref())) => {
                list.key(name).push_str(raw.get());
            }
            name if KEPT.contains(&name) => list.key(name).push_str(raw.get()),
            _ => changed = true,
        }
    }
    if is_object && !all.iter().any(|(name, _)| name == "additionalProperties") {
        changed = true;
        list.key("additionalProperties").push_str("false");
    }
    list.end('}');
    changed
}

fn each_field(raw: &RawValue, text: &mut String) -> bool {
    let Some(all) = fields(raw) else {
        text.push_str(raw.get());
        return false;
    };
    let mut list = ListWriter::new(text, '{');
    let mut changed = false;
    for (name, schema) in &all {
        changed |= fit(schema, list.key(name));
    }
    list.end('}');
    changed
}

fn each_element(raw: &RawValue, text: &mut String) -> bool {
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        text.push_str(raw.get());
        return false;
    };
    let mut list = ListWriter::new(text, '[');
    let mut changed = false;
    for schema in all {
        changed |= fit(schema, list.element());
    }
    list.end(']');
    changed
}

/// Writes a list or an object, commas between.
struct ListWriter<'s> {
    text: &'s mut String,
    is_first: bool,
}

impl<'s> ListWriter<'s> {
    fn new(text: &'s mut String, open: char) -> Self {
        text.push(open);
        Self { text, is_first: true }
    }

    fn element(&mut self) -> &mut String {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(',');
        }
        self.text
    }

    fn key(&mut self, name: &str) -> &mut String {
        let text = self.element();
        text.push_str(&quoted(name));
        text.push(':');
        text
    }

    fn end(self, close: char) {
        self.text.push(close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn an_answers_schema_is_closed_and_keeps_its_order() {
        let schema = raw(
            r#"{"type":"object","properties":{"z":{"type":"integer","minimum":1},"a":{"oneOf":[{"type":"string","format":"uuid"},{"type":"string","format":"regex"}]},"l":{"type":"array","minItems":2,"items":{"properties":{"minimum":{"type":"null"}}}}},"required":["z"]}"#,
        );
        assert_eq!(
            answer(&schema).get(),
            r#"{"type":"object","properties":{"z":{"type":"integer"},"a":{"anyOf":[{"type":"string","format":"uuid"},{"type":"string"}]},"l":{"type":"array","items":{"properties":{"minimum":{"type":"null"}},"additionalProperties":false}}},"required":["z"],"additionalProperties":false}"#
        );
        let sound = raw(r#"{ "type": "object", "properties": {}, "additionalProperties": false }"#);
        assert!(matches!(answer(&sound), Cow::Borrowed(_)), "what fits stays the text it was");
        let deep = raw(&format!("{}{{}}{}", r#"{"items":"#.repeat(120), "}".repeat(120)));
        assert!(answer(&deep).get().len() > 100);
    }
}
