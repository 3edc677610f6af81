//! Fits the schemas of tools to what vendors take as one: an object at its top, by name.
//!
//! OpenAI wants the fields of that object named too, even where there are none. A union at the top both big vendors refuse, and no other
//! schema says the same. A schema that fits stays the text it was, because prompt caches look at it.
//!
//! *Not here*: the schemas of answers, and what a grammar can hold. Each vendor has rules of its own for those.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::intake::fields;

/// What the schema of a tool must be.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    /// It can be sent.
    Fits(Cow<'a, RawValue>),
    /// It is a union at its top, which the vendor refuses.
    Union,
}

/// The schema of a tool: an object at its top, by name.
pub(crate) fn input(schema: Option<&RawValue>) -> Input<'_> {
    let Some((raw, all)) =
        schema.and_then(|raw| Some((raw, fields(raw)?))).filter(|(_, all)| !all.is_empty())
    else {
        return Input::Fits(Cow::Owned(any_object()));
    };
    if all.iter().any(|(name, _)| matches!(name.as_ref(), "anyOf" | "oneOf" | "allOf")) {
        return Input::Union;
    }
    match all.iter().find(|(name, _)| name == "type") {
        Some((_, kind)) if kind.get() == "\"object\"" => Input::Fits(Cow::Borrowed(raw)),
        // A list of types, or something else that arguments can never be.
        Some(_) => Input::Fits(Cow::Owned(any_object())),
        None => {
            let rest = raw.get().trim_start_matches('{');
            let typed = RawValue::from_string(format!(r#"{{"type":"object",{rest}"#));
            Input::Fits(typed.map_or(Cow::Borrowed(raw), Cow::Owned))
        }
    }
}

/// The same for OpenAI.
pub(crate) fn openai(schema: &RawValue) -> Input<'_> {
    let refused = |name: &str| matches!(name, "anyOf" | "oneOf" | "allOf" | "enum" | "const" | "not");
    if fields(schema).is_some_and(|all| all.iter().any(|(name, _)| refused(name))) {
        return Input::Union;
    }
    match input(Some(schema)) {
        Input::Fits(schema) => Input::Fits(with_properties(schema)),
        Input::Union => Input::Union,
    }
}

/// Names the fields of an object, where it has none.
pub(crate) fn with_properties(schema: Cow<'_, RawValue>) -> Cow<'_, RawValue> {
    let lacks = |all: &[(Cow<'_, str>, &RawValue)]| {
        all.iter().any(|(name, kind)| name == "type" && kind.get() == "\"object\"")
            && !all.iter().any(|(name, _)| name == "properties")
    };
    if !fields(&schema).is_some_and(|all| lacks(&all)) {
        return schema;
    }
    let rest = schema.get().trim_start_matches('{');
    let named = RawValue::from_string(format!(r#"{{"properties":{{}},{rest}"#));
    named.map_or(schema, Cow::Owned)
}

fn any_object() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_tools_schema_is_an_object_by_name() {
        for (schema, fitted) in [
            (None, r#"{"type":"object"}"#),
            (Some("{}"), r#"{"type":"object"}"#),
            (Some(r#"{"type":["object","null"]}"#), r#"{"type":"object"}"#),
            (Some(r#"{"properties":{"a":{}}}"#), r#"{"type":"object","properties":{"a":{}}}"#),
            (Some(r#"{"type":"object" }"#), r#"{"type":"object" }"#),
        ] {
            let schema = schema.map(raw);
            let Input::Fits(found) = input(schema.as_deref()) else { panic!("{fitted}") };
            assert_eq!(found.get(), fitted);
        }
        assert!(matches!(input(Some(&raw(r#"{"anyOf":[]}"#))), Input::Union));
    }
}
