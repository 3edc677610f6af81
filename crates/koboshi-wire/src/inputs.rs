//! Fits the schemas of tools to what vendors take as one: an object at its top, by name.
//!
//! OpenAI wants the fields of that object named too, even where there are none. A union at the top both big vendors refuse, and no other
//! schema says the same: its branches become one object, of which nothing must be there that not every call has. What comes back is checked by the
//! client's own schema anyway. A schema that fits stays the text it was, because prompt caches look at it.
//!
//! *Not here*: the schemas of answers, and what a grammar can hold. Each vendor has rules of its own for those.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::intake::fields;

/// The schema of a tool as it can be sent.
#[derive(Debug)]
pub(crate) struct Input<'a> {
    pub(crate) schema: Cow<'a, RawValue>,
    /// The rule by which it became another one.
    pub(crate) rule: Option<&'static str>,
}

impl<'a> Input<'a> {
    /// As the client wrote it.
    pub(crate) const fn plain(schema: &'a RawValue) -> Self {
        Self { schema: Cow::Borrowed(schema), rule: None }
    }

    fn fitted(schema: Box<RawValue>) -> Self {
        Self { schema: Cow::Owned(schema), rule: Some("fit_tool_schema") }
    }

    fn loosened(schema: &'a RawValue) -> Self {
        loosened(schema).map_or(Self::plain(schema), |loose| Self {
            schema: Cow::Owned(loose),
            rule: Some("loosen_union_schema"),
        })
    }

    /// The same with its fields named, where it has none.
    pub(crate) fn with_properties(self) -> Self {
        let lacks = |all: &[(Cow<'_, str>, &RawValue)]| {
            all.iter().any(|(name, kind)| name == "type" && kind.get() == "\"object\"")
                && !all.iter().any(|(name, _)| name == "properties")
        };
        if !fields(&self.schema).is_some_and(|all| lacks(&all)) {
            return self;
        }
        let rest = self.schema.get().trim_start_matches('{');
        match RawValue::from_string(format!(r#"{{"properties":{{}},{rest}"#)) {
            Ok(named) => Self::fitted(named),
            Err(_) => self,
        }
    }
}

/// The schema of a tool: an object at its top, by name.
pub(crate) fn input(schema: Option<&RawValue>) -> Input<'_> {
    let Some((raw, all)) =
        schema.and_then(|raw| Some((raw, fields(raw)?))).filter(|(_, all)| !all.is_empty())
    else {
        return Input::fitted(any_object());
    };
    if all.iter().any(|(name, _)| UNIONS.contains(&name.as_ref())) {
        return Input::loosened(raw);
    }
    match all.iter().find(|(name, _)| name == "type") {
        Some((_, kind)) if kind.get() == "\"object\"" => Input::plain(raw),
        // A list of types, or something else that arguments can never be.
        Some(_) => Input::fitted(any_object()),
        None => {
            let rest = raw.get().trim_start_matches('{');
            let typed = RawValue::from_string(format!(r#"{{"type":"object",{rest}"#));
            typed.map_or(Input::plain(raw), Input::fitted)
        }
    }
}

/// The same for OpenAI.
pub(crate) fn openai(schema: &RawValue) -> Input<'_> {
    let is_refused = |name: &str| REFUSED_BY_OPENAI.contains(&name);
    if fields(schema).is_some_and(|all| all.iter().any(|(name, _)| is_refused(name))) {
        return Input::loosened(schema);
    }
    input(Some(schema)).with_properties()
}

const UNIONS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Refused at the top too, beside unions.
const REFUSED_BY_OPENAI: [&str; 3] = ["enum", "const", "not"];

/// One object in place of a union: it names what its branches name. What all of a conjunction demand is demanded, what some of a choice demand
/// is not.
fn loosened(schema: &RawValue) -> Option<Box<RawValue>> {
    let mut top: Map<String, Value> = serde_json::from_str(schema.get()).ok()?;
    let mut properties = object(top.remove("properties"));
    let mut required = list(top.remove("required"));
    for name in UNIONS {
        for branch in list(top.remove(name)) {
            let mut branch = object(Some(branch));
            for (name, one) in object(branch.remove("properties")) {
                take_in(&mut properties, name, one);
            }
            if name == "allOf" {
                required.extend(list(branch.remove("required")));
            }
        }
    }
    for name in REFUSED_BY_OPENAI {
        top.remove(name);
    }
    required.dedup();
    if !required.is_empty() {
        top.insert("required".to_owned(), required.into());
    }
    top.insert("type".to_owned(), "object".into());
    top.insert("properties".to_owned(), properties.into());
    serde_json::value::to_raw_value(&top).ok()
}

/// A field that several branches name may be what any of them says.
fn take_in(properties: &mut Map<String, Value>, name: String, one: Value) {
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, one);
        return;
    };
    if *known == one {
        return;
    }
    let several =
        known.as_object_mut().filter(|known| known.len() == 1).and_then(|known| known.get_mut("anyOf"));
    match several {
        Some(Value::Array(all)) if all.contains(&one) => {}
        Some(Value::Array(all)) => all.push(one),
        _ => *known = json!({"anyOf": [known.take(), one]}),
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    }
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
            assert_eq!(input(schema.as_deref()).schema.get(), fitted);
        }
    }

    #[test]
    fn a_union_at_the_top_becomes_one_object() {
        let union =
            raw(r#"{"description":"d","required":["kind"],"properties":{"note":{"type":"string"}},"oneOf":[
                {"properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["kind","path"]},
                {"properties":{"kind":{"const":"url"},"url":{"type":"string"}},"required":["kind","url"]},
                {"properties":{"kind":{"const":"url"}}},
                {"properties":{"kind":{"const":"none"}}}],
              "allOf":[{"required":["note"]},{"$ref":"x"}],"$defs":{"x":{}}}"#);
        for fitted in [input(Some(&union)), openai(&union)] {
            assert_eq!(fitted.rule, Some("loosen_union_schema"));
            let kinds = json!({"anyOf": [{"const": "file"}, {"const": "url"}, {"const": "none"}]});
            let text = json!({"type": "string"});
            assert_eq!(
                serde_json::from_str::<Value>(fitted.schema.get()).unwrap(),
                json!({
                    "type": "object",
                    "description": "d",
                    "required": ["kind", "note"],
                    "properties": {"kind": kinds, "note": text, "path": text, "url": text},
                    "$defs": {"x": {}},
                })
            );
        }
        // Only one of the two refuses these.
        let constant = raw(r#"{"type":"object","const":{},"properties":{}}"#);
        assert_eq!(input(Some(&constant)).rule, None);
        assert_eq!(openai(&constant).schema.get(), r#"{"properties":{},"type":"object"}"#);
    }

    #[test]
    fn openai_is_told_the_fields_even_where_there_are_none() {
        let bare = raw(r#"{ "type": "object", "additionalProperties": false }"#);
        let fitted = openai(&bare);
        assert_eq!(
            (fitted.schema.get(), fitted.rule),
            (
                r#"{"properties":{}, "type": "object", "additionalProperties": false }"#,
                Some("fit_tool_schema")
            )
        );
    }
}
