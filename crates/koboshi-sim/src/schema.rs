//! A value that satisfies a JSON Schema: deterministic, readable, small.
//!
//! It follows what schemas of tools and answers use: types, enums, constants, required and optional properties, bounds
//! of numbers, texts and lists, the usual formats, `anyOf`, `oneOf`, `allOf` and local references. It deliberately does
//! not solve schemas: patterns, conditions and negations are ignored. Work is bounded by a number of values and
//! by depth; what lies deeper is left out, or filled with the simplest value of its type.

use std::collections::BTreeSet;

use koboshi::chance::Seed;
use serde_json::{Map, Value, json};

use crate::chance::{below, pick};

/// No value has more parts.
const MAX_PARTS: usize = 500;
/// Optional properties end here, required ones at twice the depth.
const DEEP: usize = 6;
/// No text or list is made longer than this to satisfy a schema.
const MAX_NAME: u64 = 2000;
/// The most references and choices that are followed for one value.
const HOPS: usize = 32;
/// The most properties of an object that are read.
const MAX_PROPERTIES: usize = 1000;
/// When the value has enough parts, this many required ones are still filled with the simplest value.
const SPARE: usize = 2000;

/// A value that this schema accepts; anything for a schema that is none.
pub(crate) fn example(schema: &Value, seed: Seed) -> Value {
    Maker { root: schema, left: MAX_PARTS, spare: SPARE }.value(schema, seed, 0)
}

struct Maker<'s> {
    root: &'s Value,
    left: usize,
    spare: usize,
}

impl<'s> Maker<'s> {
    fn value(&mut self, schema: &'s Value, seed: Seed, depth: usize) -> Value {
        let view = View::of(self.root, schema);
        if let Some(only) = view.get("const") {
            return only.clone();
        }
        if let Some(chosen) = view.list("enum").and_then(|words| pick(seed, words)) {
            return chosen.clone();
        }
        self.left = self.left.saturating_sub(1);
        match view.kind() {
            "object" => self.object(&view, seed, depth),
            "array" => self.array(&view, seed, depth),
            "integer" => integer(&view, seed),
            "number" => number(&view, seed),
            "boolean" => json!(below(seed, 2) == 1),
            "null" => Value::Null,
            _ => json!(text(&view, seed)),
        }
    }

    fn object(&mut self, view: &View<'s>, seed: Seed, depth: usize) -> Value {
        let required = view.required();
        let mut made = Map::new();
        for (nth, (name, inner)) in (0..).zip(view.properties().take(MAX_PROPERTIES)) {
            let must = required.contains(name.as_str());
            if self.left > 0 && (depth < DEEP || must && depth < 2 * DEEP) {
                made.insert(name.clone(), self.value(inner, seed.nth(nth), depth + 1));
            } else if self.spare == 0 {
                break;
            } else if must {
                self.spare -= 1;
                made.insert(name.clone(), View::of(self.root, inner).simplest());
            }
        }
        let other = view.get("additionalProperties").unwrap_or(&Value::Null);
        for (nth, name) in (1_000_000..).zip(required.iter().take(MAX_PROPERTIES)) {
            if self.left > 0 && !made.contains_key(*name) {
                made.insert((*name).to_owned(), self.value(other, seed.nth(nth), depth + 1));
            }
        }
        let min = view.bound("minProperties").unwrap_or(0).min(MAX_NAME);
        for nth in 0..min {
            if made.len() as u64 >= min || self.left == 0 {
                break;
            }
            made.insert(format!("key{nth}"), self.value(other, seed.nth(2_000_000 + nth), depth + 1));
        }
        Value::Object(made)
    }

    fn array(&mut self, view: &View<'s>, seed: Seed, depth: usize) -> Value {
        let min = view.bound("minItems").unwrap_or(0).min(MAX_NAME);
        let max = view.bound("maxItems").unwrap_or(u64::MAX);
        let first = view.list("prefixItems").map_or(&[][..], Vec::as_slice);
        let wanted = (1 + below(seed, 2)).max(first.len() as u64).clamp(min, max.max(min)).min(MAX_NAME);
        let unique = view.get("uniqueItems") == Some(&Value::Bool(true));
        let items = view.get("items").unwrap_or(&Value::Null);
        let mut made: Vec<Value> = Vec::new();
        // A few draws more than wanted: where items must differ, some may be the same.
        for nth in 0..wanted * if unique { 8 } else { 1 } {
            let full = made.len() as u64 >= wanted;
            let deep = depth >= DEEP && made.len() as u64 >= min;
            if full || deep || self.left == 0 || depth >= 2 * DEEP {
                break;
            }
            let inner = usize::try_from(nth).ok().and_then(|nth| first.get(nth)).unwrap_or(items);
            let value = self.value(inner, seed.nth(nth + 1), depth + 1);
            if !unique || !made.contains(&value) {
                made.push(value);
            }
        }
        Value::Array(made)
    }
}

/// A schema together with those it refers to: every reference is followed, of choices the first that is not null.
struct View<'s>(Vec<&'s Value>);

impl<'s> View<'s> {
    fn of(root: &'s Value, schema: &'s Value) -> Self {
        let mut layers = Vec::new();
        let mut open = vec![schema];
        while let Some(next) = open.pop().filter(|_| layers.len() < HOPS) {
            layers.push(next);
            let path = next.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
            open.extend(path.and_then(|pointer| root.pointer(pointer)));
            open.extend(next.get("allOf").and_then(Value::as_array).into_iter().flatten().take(HOPS));
            for key in ["anyOf", "oneOf"] {
                let choices = next.get(key).and_then(Value::as_array).into_iter().flatten();
                let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) == Some("null");
                open.extend(choices.clone().find(|choice| !is_null(choice)).or(choices.clone().next()));
            }
        }
        Self(layers)
    }

    fn get(&self, key: &str) -> Option<&'s Value> {
        self.0.iter().find_map(|layer| layer.get(key))
    }

    fn list(&self, key: &str) -> Option<&'s Vec<Value>> {
        self.get(key)?.as_array()
    }

    fn bound(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    fn properties(&self) -> impl Iterator<Item = (&'s String, &'s Value)> {
        self.0.iter().filter_map(|layer| layer.get("properties")?.as_object()).flatten()
    }

    fn required(&self) -> BTreeSet<&'s str> {
        let lists = self.0.iter().filter_map(|layer| layer.get("required")?.as_array());
        lists.flatten().filter_map(Value::as_str).take(MAX_PROPERTIES).collect()
    }

    /// The type of value to make; of several the first that is not null.
    fn kind(&self) -> &'s str {
        let has = |keys: &[&str]| keys.iter().any(|key| self.get(key).is_some());
        match self.get("type") {
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
            }
            _ if has(&["properties", "required"]) => "object",
            _ if has(&["items", "prefixItems"]) => "array",
            _ if has(&["minimum", "maximum"]) => "number",
            _ => "string",
        }
    }

    fn simplest(&self) -> Value {
        if let Some(only) = self.get("const").or_else(|| self.list("enum")?.first()) {
            return only.clone();
        }
        match self.kind() {
            "object" => json!({}),
            "array" => json!([]),
            "integer" | "number" => self.get("minimum").cloned().unwrap_or(json!(0)),
            "boolean" => json!(false),
            "null" => Value::Null,
            _ => json!(""),
        }
    }
}

fn integer(view: &View<'_>, seed: Seed) -> Value {
    let whole = |key: &str| {
        let value = view.get(key)?;
        // A bound that is no whole number, such as 2.5, is met by the whole numbers on its right side.
        value.as_i64().or_else(|| value.as_f64().and_then(|bound| near(bound, key.ends_with("inimum"))))
    };
    let step = whole("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    // Some libraries write both, and the narrower one counts.
    let min = whole("minimum").max(whole("exclusiveMinimum").and_then(|bound| bound.checked_add(1)));
    let above = whole("exclusiveMaximum").and_then(|bound| bound.checked_sub(1));
    let max = whole("maximum").into_iter().chain(above).min();
    let draw = i64::try_from(below(seed, 10)).unwrap_or(0);
    let from = min.unwrap_or_else(|| max.map_or(1, |max| max.saturating_sub(9).min(1)));
    // The first multiple at or above the minimum, and a few steps on if the maximum allows it.
    let first =
        from.div_euclid(step).saturating_add(i64::from(from.rem_euclid(step) != 0)).saturating_mul(step);
    let drawn = first.saturating_add(draw.saturating_mul(step));
    json!(if max.is_none_or(|max| drawn <= max) { drawn } else { first })
}

/// The whole number at or above (`up`) or at or below a bound.
fn near(bound: f64, up: bool) -> Option<i64> {
    let whole = if up { bound.ceil() } else { bound.floor() };
    // Through text: there is no lossless cast from a float.
    format!("{whole:.0}").parse().ok()
}

fn number(view: &View<'_>, seed: Seed) -> Value {
    let of = |key: &str| view.get(key).and_then(Value::as_f64).filter(|number| number.is_finite());
    if of("multipleOf").is_some() {
        return integer(view, seed);
    }
    let min = of("minimum").or_else(|| of("exclusiveMinimum"));
    let max = of("maximum").or_else(|| of("exclusiveMaximum"));
    let (min, max) = match (min, max) {
        (Some(min), Some(max)) => (min, max),
        (Some(min), None) => (min, min + 10.0),
        (None, Some(max)) => (max - 10.0, max),
        (None, None) => (0.0, 10.0),
    };
    // Quarters of the range: inside of it, and short to write.
    let quarter = [0.25, 0.5, 0.75].get(usize::try_from(below(seed, 3)).unwrap_or(0)).copied().unwrap_or(0.5);
    json!(min + (max - min) * quarter)
}

const NOUNS: &[&str] = &[
    "river", "lantern", "garden", "harbour", "mountain", "window", "letter", "bridge", "morning", "orchard",
    "kettle", "compass",
];
const KINDS: &[&str] = &["calm", "small", "bright", "quiet", "round", "early", "patient", "plain"];

fn text(view: &View<'_>, seed: Seed) -> String {
    let word = |nth: u64, words: &[&'static str]| pick(seed.nth(nth), words).copied().unwrap_or("plain");
    let (noun, number) = (word(1, NOUNS), below(seed.nth(3), 28) + 1);
    match view.get("format").and_then(Value::as_str).unwrap_or_default() {
        "date" => return format!("2026-05-{number:02}"),
        "date-time" => return format!("2026-05-{number:02}T09:30:00Z"),
        "time" => return format!("{:02}:30:00Z", number % 24),
        "duration" => return format!("PT{number}M"),
        "email" | "idn-email" => return format!("{noun}@example.com"),
        "hostname" | "idn-hostname" => return format!("{noun}.example.com"),
        "uri" | "iri" | "uri-reference" | "url" => return format!("https://example.com/{noun}"),
        "ipv4" => return format!("192.0.2.{number}"),
        "ipv6" => return format!("2001:db8::{number:x}"),
        "uuid" => return format!("00000000-0000-4000-8000-{number:012x}"),
        _ => {}
    }
    let mut made = format!("{} {noun}", word(2, KINDS));
    let min = view.bound("minLength").unwrap_or(0).min(MAX_NAME);
    while (made.chars().count() as u64) < min {
        made.push_str(" and more");
    }
    match view.bound("maxLength").and_then(|max| usize::try_from(max).ok()) {
        Some(max) => made.chars().take(max).collect(),
        None => made,
    }
}

#[cfg(test)]
mod tests;
