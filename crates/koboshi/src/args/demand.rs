//! What a schema demands at one place: which types, which members, which of a few values.
//!
//! Read directly from the schema, and only as far as it can be read without doubt: references into the schema, `allOf`,
//! and alternatives of which one fits. Where several alternatives describe an object, nothing is said about its members.
//! The check itself is the validator's; this only finds the one choice that is left.

use serde_json::Value;

/// At most this many references are followed one after the other; a schema may refer to itself.
const MAX_HOPS: usize = 16;

/// At most this many combinations within combinations are followed.
const MAX_NESTED: usize = 4;

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(8 | 4);
    pub(super) const TEXT: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    const ALL: Self = Self(127);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn of_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::TEXT,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self(0),
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.is_f64() => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::TEXT,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }
}

/// Follows `$ref` within the schema.
pub(super) fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> Option<&'s Value> {
    for _ in 0..MAX_HOPS {
        match schema.get("$ref").and_then(Value::as_str) {
            None => return Some(schema),
            Some("#") => schema = root,
            Some(reference) => schema = root.pointer(reference.strip_prefix('#')?)?,
        }
    }
    None
}

/// The types that may stand at a place.
pub(super) fn types(root: &Value, schema: &Value) -> Types {
    types_within(root, schema, MAX_NESTED)
}

fn types_within(root: &Value, schema: &Value, hops: usize) -> Types {
    let (Some(schema), Some(hops)) = (resolve(root, schema), hops.checked_sub(1)) else { return Types::ALL };
    let mut found = match schema.get("type") {
        Some(Value::String(name)) => Types::of_name(name),
        Some(Value::Array(names)) => {
            Types(names.iter().filter_map(Value::as_str).fold(0, |all, name| all | Types::of_name(name).0))
        }
        _ => Types::ALL,
    };
    if let Some(values) = choices(root, schema) {
        let of_values = values.iter().fold(0, |all, value| all | Types::of_value(value).0);
        // `1` among the choices is a number as well.
        let of_values =
            if of_values & Types::INTEGER.0 != 0 { of_values | Types::NUMBER.0 } else { of_values };
        found.0 &= of_values;
    }
    for part in parts(schema, "allOf") {
        found.0 &= types_within(root, part, hops).0;
    }
    for word in ["anyOf", "oneOf"] {
        if schema.get(word).is_some() {
            let any = parts(schema, word).fold(0, |all, part| all | types_within(root, part, hops).0);
            found.0 &= any;
        }
    }
    found
}

/// The values of an `enum` or `const`, if the place has one; also of alternatives that are all such.
pub(super) fn choices<'s>(root: &'s Value, schema: &'s Value) -> Option<Vec<&'s Value>> {
    let schema = resolve(root, schema)?;
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().collect());
    }
    if let Some(value) = schema.get("const") {
        return Some(vec![value]);
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        let mut values = Vec::new();
        let mut some = false;
        for part in parts(schema, word) {
            let part = resolve(root, part)?;
            if let Some(list) = part.get("enum").and_then(Value::as_array) {
                some = true;
                values.extend(list);
            } else if let Some(value) = part.get("const") {
                some = true;
                values.push(value);
            } else if part.get("type") == Some(&Value::from("null")) {
                values.push(&Value::Null);
            } else {
                return None;
            }
        }
        if some {
            return Some(values);
        }
    }
    None
}

/// The schema of a member.
pub(super) fn property<'s>(root: &'s Value, schema: &'s Value, key: &str) -> Option<&'s Value> {
    find(root, schema, Types::OBJECT, MAX_NESTED, &|schema| {
        if let Some(found) = schema.get("properties").and_then(|properties| properties.get(key)) {
            return Some(found);
        }
        let patterns = schema.get("patternProperties").is_some();
        schema.get("additionalProperties").filter(|extra| extra.is_object() && !patterns)
    })
}

/// Whether a member is named in the schema, and not only allowed like any other.
pub(super) fn is_declared(root: &Value, schema: &Value, key: &str) -> bool {
    let named = |schema: &'_ Value| schema.get("properties").is_some_and(|all| all.get(key).is_some());
    find(root, schema, Types::OBJECT, MAX_NESTED, &|schema| named(schema).then_some(schema)).is_some()
}

/// The schema of an element.
pub(super) fn element<'s>(root: &'s Value, schema: &'s Value, index: usize) -> Option<&'s Value> {
    find(root, schema, Types::ARRAY, MAX_NESTED, &|schema| {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        first
            .and_then(|list| list.get(index))
            .or_else(|| schema.get("items").filter(|items| items.is_object()))
    })
}

/// Whether a member must be there.
pub(super) fn is_required(root: &Value, schema: &Value, key: &str) -> bool {
    let needs = |schema: &Value| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|name| name == key))
    };
    let Some(schema) = resolve(root, schema) else { return true };
    let nested = ["allOf", "anyOf", "oneOf"];
    needs(schema)
        || nested.iter().any(|word| parts(schema, word).any(|part| resolve(root, part).is_none_or(needs)))
}

/// Looks in the schema itself, in all parts of `allOf`, and in the only alternative that allows the type.
fn find<'s>(
    root: &'s Value,
    schema: &'s Value,
    of: Types,
    hops: usize,
    select: &dyn Fn(&'s Value) -> Option<&'s Value>,
) -> Option<&'s Value> {
    let hops = hops.checked_sub(1)?;
    let schema = resolve(root, schema)?;
    if let Some(found) = select(schema) {
        return Some(found);
    }
    if let Some(found) = parts(schema, "allOf").find_map(|part| find(root, part, of, hops, select)) {
        return Some(found);
    }
    for word in ["anyOf", "oneOf"] {
        let mut fitting = parts(schema, word).filter(|part| types(root, part).has(of));
        if let (Some(only), None) = (fitting.next(), fitting.next()) {
            return find(root, only, of, hops, select);
        }
    }
    None
}

fn parts<'s>(schema: &'s Value, word: &str) -> impl Iterator<Item = &'s Value> {
    schema.get(word).and_then(Value::as_array).into_iter().flatten()
}
