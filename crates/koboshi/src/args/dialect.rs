//! Schemas as Gemini and OpenAPI 3.0 write them, made into JSON Schema.
//!
//! Three things differ and would keep a whole tool without a schema: types in capitals (`"STRING"`), `nullable`, and counts
//! that are written as text (`"minItems": "1"`). Everything else is the same, or not known and passed over by a validator.
//! Only places that are schemas are changed: a member may be called `type`, a choice may be `"STRING"`.
//!
//! *Not here*: size and depth. The survey bounds both before anything is changed, so the recursion is shallow.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::schema::Part;

const COUNTS: &[&str] = &["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// The schema in JSON Schema's own words; the one that was given if nothing is to be changed.
pub(super) fn in_own_words(schema: &Value) -> Cow<'_, Value> {
    if !is_foreign(schema, Part::Schema) {
        return Cow::Borrowed(schema);
    }
    let mut own = schema.clone();
    translate(&mut own, Part::Schema);
    Cow::Owned(own)
}

fn is_foreign(value: &Value, part: Part) -> bool {
    match value {
        Value::Object(members) => {
            let here = part == Part::Schema
                && (members.contains_key("nullable")
                    || members.get("type").and_then(Value::as_str).and_then(in_lower_case).is_some()
                    || COUNTS.iter().any(|name| members.get(*name).is_some_and(Value::is_string)));
            here || members.iter().any(|(key, inner)| is_foreign(inner, part.under(key)))
        }
        Value::Array(items) => items.iter().any(|item| is_foreign(item, part)),
        _ => false,
    }
}

fn translate(value: &mut Value, part: Part) {
    match value {
        Value::Object(members) => {
            for (key, inner) in members.iter_mut() {
                translate(inner, part.under(key));
            }
            if part == Part::Schema {
                own_words(members);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| translate(item, part)),
        _ => {}
    }
}

fn own_words(members: &mut Map<String, Value>) {
    if let Some(name) = members.get("type").and_then(Value::as_str).and_then(in_lower_case) {
        members.insert("type".to_owned(), name.into());
    }
    for name in COUNTS {
        let count = members.get(*name).and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok());
        if let Some(count) = count {
            members.insert((*name).to_owned(), count.into());
        }
    }
    if members.get("nullable") == Some(&Value::Bool(true)) {
        members.remove("nullable");
        let plain = std::mem::take(members);
        *members = or_null(plain);
    }
}

fn in_lower_case(name: &str) -> Option<&'static str> {
    match name {
        "STRING" => Some("string"),
        "NUMBER" => Some("number"),
        "INTEGER" => Some("integer"),
        "BOOLEAN" => Some("boolean"),
        "ARRAY" => Some("array"),
        "OBJECT" => Some("object"),
        "NULL" => Some("null"),
        _ => None,
    }
}

/// The same place, which may also be null. Where the type alone decides, it is said there, so that code that asks a place
/// for its members still finds them.
fn or_null(mut members: Map<String, Value>) -> Map<String, Value> {
    let combined = ["$ref", "const", "anyOf", "oneOf", "allOf", "not", "if"];
    if combined.iter().any(|word| members.contains_key(*word)) {
        let either = json!([Value::Object(members), {"type": "null"}]);
        return Map::from_iter([("anyOf".to_owned(), either)]);
    }
    if let Some(Value::Array(choices)) = members.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    if let Some(name) = members.get("type").filter(|name| name.is_string()) {
        let either = json!([name, "null"]);
        members.insert("type".to_owned(), either);
    }
    members
}
