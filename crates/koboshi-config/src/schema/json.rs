//! The table as a JSON Schema, so that editors complete keys, show their meaning and mark mistakes while typing.
//!
//! It describes single keys. `koboshi check` finds what depends on other keys or on the environment.

use serde_json::{Map, Value as Json, json};

use super::length::LENGTH;
use super::range::{ENDLESS, Range};
use super::{EXCLUSIVE, Entries, Form, Key, MAX_ENTRIES, Shape, Value};

/// A text with a variable: its final value is not known yet.
const VARIABLE: &str = r"\$\{";

/// The schema of `koboshi.yaml`.
#[must_use]
pub fn json_schema() -> Json {
    let mut schema = section("");
    if let Some(root) = schema.as_object_mut() {
        root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        root.insert("title".to_owned(), json!("koboshi.yaml"));
        root.insert("description".to_owned(), json!("Configuration of Koboshi; every key is optional"));
    }
    schema
}

/// A section, also one whose keys are all commented out.
fn section(path: &str) -> Json {
    if let Some((row, entries)) = Key::of_section(path).find_map(|key| match &key.shape {
        Shape::Entry(entries) => Some((key, entries)),
        _ => None,
    }) {
        return json!({
            "type": ["object", "null"],
            "maxProperties": MAX_ENTRIES,
            "propertyNames": {"pattern": entries.name.pattern},
            "additionalProperties": property(row),
        });
    }
    let mut properties: Map<String, Json> =
        Key::of_section(path).map(|key| (key.name().to_owned(), property(key))).collect();
    properties.extend(Key::of_section(path).filter_map(deprecated));
    let mut schema =
        json!({"type": ["object", "null"], "additionalProperties": false, "properties": properties});
    let clashes: Vec<Json> = EXCLUSIVE
        .iter()
        .filter_map(|(one, two, _)| Some((Key::find(one)?, Key::find(two)?)))
        .filter(|(one, two)| one.section() == path && two.section() == path)
        .map(|(one, two)| (one.name(), two.name()))
        .chain(Key::of_section(path).filter_map(|key| Some((key.name(), key.former()?))))
        .map(|(one, two)| json!({"not": {"type": "object", "required": [one, two]}}))
        .collect();
    if let (Some(object), false) = (schema.as_object_mut(), clashes.is_empty()) {
        object.insert("allOf".to_owned(), Json::Array(clashes));
    }
    schema
}

/// A key under its old name: editors accept it and strike it through.
fn deprecated(key: &Key) -> Option<(String, Json)> {
    let mut schema = property(key);
    if let Some(object) = schema.as_object_mut() {
        object.insert("deprecated".to_owned(), json!(true));
        object.insert("description".to_owned(), json!(format!("Old name of {}", key.name())));
        object.remove("default");
    }
    Some((key.former()?.to_owned(), schema))
}

/// One entry: its keys, or the value of the key that may replace it.
fn entry(row: &Key, entries: &Entries) -> Json {
    let mut keys = section(row.path);
    if let (Some(object), false) = (keys.as_object_mut(), entries.required.is_empty()) {
        object.insert("type".to_owned(), json!("object"));
        object.insert("required".to_owned(), json!(entries.required));
    }
    let short = Key::of_section(row.path).find(|key| Some(key.name()) == entries.short);
    match short {
        Some(short) => json!({"anyOf": [property(short), keys]}),
        None => keys,
    }
}

fn property(key: &Key) -> Json {
    let mut schema = match &key.shape {
        Shape::Section { word: Some(stand), .. } => {
            json!({"anyOf": [{"const": stand.word}, section(key.path)]})
        }
        Shape::Section { short, .. } => {
            match Key::of_section(key.path).find(|key| Some(key.name()) == *short) {
                Some(short) => json!({"anyOf": [property(short), section(key.path)]}),
                None => section(key.path),
            }
        }
        Shape::Entry(entries) => entry(key, entries),
        Shape::Length { off, .. } => or_off(json!({"type": "string", "pattern": LENGTH}), *off),
        Shape::Seconds { range, .. } => {
            json!({"type": "integer", "minimum": range.min.as_secs(), "maximum": range.max.as_secs()})
        }
        Shape::Count { range, off, .. } => {
            let mut schema = json!({"type": "integer", "minimum": range.min});
            if let (Some(object), false) = (schema.as_object_mut(), range.is_endless()) {
                object.insert("maximum".to_owned(), json!(range.max));
            }
            or_off(schema, *off)
        }
        Shape::Number { range, .. } => number(*range),
        Shape::Choice { numbers, .. } => json!({"enum": numbers}),
        Shape::Flag { words: false, .. } => json!({"type": "boolean"}),
        Shape::Flag { words: true, .. } => json!({"enum": [true, false, "on", "off"]}),
        Shape::Word { words, .. } => {
            let all: Vec<_> =
                words.iter().copied().chain(key.former_words().map(|(before, _)| before)).collect();
            json!({"enum": all})
        }
        Shape::Text { form, .. } if key.path == "agents.*.gateway" => {
            json!({"anyOf": [text(*form), {"type": "boolean"}]})
        }
        Shape::Text { form, .. } | Shape::Secret { form, .. } => text(*form),
        Shape::Texts { form, range, single: true, .. } => {
            json!({"anyOf": [text(*form), list(*form, *range)]})
        }
        Shape::Texts { form, range, .. } | Shape::Secrets { form, range, .. } => list(*form, *range),
        Shape::Path { .. } => json!({"type": "string", "minLength": 1}),
        Shape::Paths { .. } => {
            json!({"type": ["array", "null"], "items": {"type": "string", "minLength": 1}})
        }
    };
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".to_owned(), json!(description(key)));
        if let Some(default) = default(key) {
            object.insert("default".to_owned(), default);
        }
    }
    schema
}

fn description(key: &Key) -> String {
    match &key.shape {
        Shape::Section { .. } | Shape::Entry(_) => key.meaning.to_owned(),
        _ => format!("{} ({})", key.meaning, key.range_text().replace('`', "")),
    }
}

fn default(key: &Key) -> Option<Json> {
    Some(match key.default_value()? {
        Value::Off if key.may_be_off() => json!("off"),
        Value::Off => return None,
        Value::Count(count) => json!(count),
        Value::Number(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::Texts(texts) => json!(texts),
        Value::Secrets(_) | Value::Paths(_) => json!([]),
        other => json!(other.to_string()),
    })
}

fn list(form: Form, range: Range<u64>) -> Json {
    let types = if range.min == 0 { json!(["array", "null"]) } else { json!("array") };
    json!({"type": types, "minItems": range.min, "maxItems": range.max, "items": text(form)})
}

fn or_off(schema: Json, off: bool) -> Json {
    if off { json!({"anyOf": [schema, {"const": "off"}]}) } else { schema }
}

fn text(form: Form) -> Json {
    json!({"type": "string", "anyOf": [{"pattern": form.pattern}, {"pattern": VARIABLE}]})
}

fn number(range: Range<f64>) -> Json {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("number"));
    let min = if range.above { "exclusiveMinimum" } else { "minimum" };
    schema.insert(min.to_owned(), json!(range.min));
    if range.max < ENDLESS {
        let max = if range.below { "exclusiveMaximum" } else { "maximum" };
        schema.insert(max.to_owned(), json!(range.max));
    }
    Json::Object(schema)
}
