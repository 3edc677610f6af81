//! Turns a schema in Gemini's words into a JSON schema.
//!
//! `parameters` and `responseSchema` are a subset of OpenAPI 3.0: types in capitals, `nullable`, numbers that may be written as texts, names that
//! may be written in two ways. `parametersJsonSchema` and `responseJsonSchema` are JSON schemas already and are not touched.
//!
//! The order of the fields stays. Nesting is bounded by the reader of bodies.

use serde_json::value::RawValue;

use super::proto_json::{is_named, many};
use crate::intake::fields;
use crate::lenient::text_of;
use crate::splice::quoted;

/// The same as a JSON schema; what is no object is as it was.
pub(super) fn json_schema(raw: &RawValue) -> Box<RawValue> {
    let mut json = String::with_capacity(raw.get().len());
    write(raw, &mut json);
    RawValue::from_string(json).unwrap_or_else(|_| raw.to_owned())
}

fn write(raw: &RawValue, json: &mut String) {
    let Some(all) = fields(raw) else { return json.push_str(raw.get()) };
    let is_nullable =
        all.iter().any(|(name, value)| is_named(name, "nullable") && matches!(value.get(), "true"));
    json.push('{');
    let mut is_first = true;
    for (name, value) in &all {
        let Some(key) = key_of(name, value) else { continue };
        if !std::mem::take(&mut is_first) {
            json.push(',');
        }
        json.push_str(&quoted(key));
        json.push(':');
        write_value(key, value, is_nullable, json);
    }
    json.push('}');
}

/// What a field is called in a JSON schema; none of what it has no place for.
fn key_of<'n>(name: &'n str, value: &RawValue) -> Option<&'n str> {
    const KNOWN: [&str; 12] = [
        "anyOf", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties",
        "additionalProperties", "prefixItems", "propertyOrdering", "nullable", "example",
    ];
    let known = KNOWN.into_iter().find(|known| is_named(name, known)).unwrap_or(name);
    let text = || text_of(value);
    match known {
        "nullable" | "propertyOrdering" | "example" => None,
        // The zero value, and a format that only says that there is an `enum`.
        "type" if text().as_deref() == Some("TYPE_UNSPECIFIED") => None,
        "format" if text().as_deref() == Some("enum") => None,
        "defs" => Some("$defs"),
        "ref" => Some("$ref"),
        known => Some(known),
    }
}

fn write_value(key: &str, value: &RawValue, is_nullable: bool, json: &mut String) {
    match key {
        "type" => write_type(value, is_nullable, json),
        "items" | "additionalProperties" => write(value, json),
        "properties" | "$defs" => write_map(value, json),
        "anyOf" | "prefixItems" => {
            let null = if is_nullable && key == "anyOf" { r#"{"type":"null"}"# } else { "" };
            write_list(many(value), null, json, write);
        }
        "enum" => {
            let null = if is_nullable { "null" } else { "" };
            write_list(many(value), null, json, |one, json| json.push_str(one.get()));
        }
        "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => {
            // Numbers of 64 bits are texts in proto3 JSON.
            let number = text_of(value).filter(|text| text.parse::<u64>().is_ok());
            json.push_str(number.as_deref().unwrap_or(value.get()));
        }
        _ => json.push_str(value.get()),
    }
}

fn write_type(value: &RawValue, is_nullable: bool, json: &mut String) {
    let mut names: Vec<String> =
        many(value).iter().filter_map(|one| text_of(one)).map(|name| name.to_ascii_lowercase()).collect();
    if is_nullable && !names.iter().any(|name| name == "null") {
        names.push("null".to_owned());
    }
    match names.as_slice() {
        [one] => json.push_str(&quoted(one)),
        several => {
            json.push('[');
            json.push_str(&several.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(","));
            json.push(']');
        }
    }
}

fn write_map(value: &RawValue, json: &mut String) {
    let Some(all) = fields(value) else { return json.push_str(value.get()) };
    json.push('{');
    for (place, (name, schema)) in all.iter().enumerate() {
        if place > 0 {
            json.push(',');
        }
        json.push_str(&quoted(name));
        json.push(':');
        write(schema, json);
    }
    json.push('}');
}

fn write_list(all: Vec<&RawValue>, last: &str, json: &mut String, each: impl Fn(&RawValue, &mut String)) {
    json.push('[');
    let has_any = !all.is_empty();
    for (place, one) in all.into_iter().enumerate() {
        if place > 0 {
            json.push(',');
        }
        each(one, json);
    }
    if !last.is_empty() {
        if has_any {
            json.push(',');
        }
        json.push_str(last);
    }
    json.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(schema: &str) -> String {
        json_schema(serde_json::from_str(schema).unwrap()).get().to_owned()
    }

    #[test]
    fn capitals_nullable_and_numbers_become_json_schema() {
        for (before, after) in [
            (r#"{"type":"STRING"}"#, r#"{"type":"string"}"#),
            (r#"{"type":"STRING","nullable":true}"#, r#"{"type":["string","null"]}"#),
            (
                r#"{"nullable":true,"type":"STRING","enum":["a"],"format":"enum"}"#,
                r#"{"type":["string","null"],"enum":["a",null]}"#,
            ),
            (
                r#"{"anyOf":[{"type":"INTEGER"}],"nullable":true}"#,
                r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#,
            ),
            (
                r#"{"any_of":[{"type":"NUMBER"},{"type":"NULL"}]}"#,
                r#"{"anyOf":[{"type":"number"},{"type":"null"}]}"#,
            ),
            (
                r#"{"type":"ARRAY","items":{"type":"STRING"},"minItems":"1","max_items":3}"#,
                r#"{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}"#,
            ),
            (
                r#"{"type":"OBJECT","properties":{"type":{"type":"BOOLEAN"},"nullable":{"type":"STRING","nullable":false}},"required":["type"],"propertyOrdering":["type"]}"#,
                r#"{"type":"object","properties":{"type":{"type":"boolean"},"nullable":{"type":"string"}},"required":["type"]}"#,
            ),
            (r#"{"type":"TYPE_UNSPECIFIED","description":"x"}"#, r#"{"description":"x"}"#),
            (r#"{"type":["string","null"]}"#, r#"{"type":["string","null"]}"#),
            (
                r#"{"type":"object","additionalProperties":false}"#,
                r#"{"type":"object","additionalProperties":false}"#,
            ),
            (r"{}", r"{}"),
            ("true", "true"),
        ] {
            // A raw string cannot hold the two signs that would end it.
            assert_eq!(converted(before), after);
        }
    }
}
