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

/// Branches of a union that are looked at, and how deep they may stand in each other: definitions may lead back to themselves.
const MOST_BRANCHES: usize = 256;
const DEEPEST: usize = 8;

/// One object in place of a union: it names what its branches name. What all of a conjunction demand is demanded, what some of a choice demand
/// is not.
fn loosened(schema: &RawValue) -> Option<Box<RawValue>> {
    let mut top: Map<String, Value> = serde_json::from_str(schema.get()).ok()?;
    let definitions = top.clone();
    let mut union =
        Union { definitions: &definitions, properties: Map::new(), required: Vec::new(), seen: 0 };
    union.take(&definitions, true, 0);
    let Union { properties, required, .. } = union;
    for name in UNIONS.into_iter().chain(REFUSED_BY_OPENAI).chain(["required", "additionalProperties"]) {
        top.remove(name);
    }
    if !required.is_empty() {
        top.insert("required".to_owned(), required.into());
    }
    top.insert("type".to_owned(), "object".into());
    top.insert("properties".to_owned(), properties.into());
    serde_json::value::to_raw_value(&top).ok()
}

/// What the branches of a union name.
struct Union<'s> {
    definitions: &'s Map<String, Value>,
    properties: Map<String, Value>,
    required: Vec<Value>,
    seen: usize,
}

impl<'s> Union<'s> {
    /// Takes in a branch and those in it; `must` where its demands hold for every call.
    fn take(&mut self, branch: &'s Map<String, Value>, must: bool, depth: usize) {
        self.seen += 1;
        if self.seen > MOST_BRANCHES || depth > DEEPEST {
            return;
        }
        let defined = branch.get("$ref").and_then(Value::as_str).and_then(|name| self.defined(name));
        if let Some(defined) = defined {
            self.take(defined, must, depth + 1);
        }
        for (name, one) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
            take_in(&mut self.properties, name, one);
        }
        for name in branch.get("required").and_then(Value::as_array).into_iter().flatten().filter(|_| must) {
            if !self.required.contains(name) {
                self.required.push(name.clone());
            }
        }
        for name in UNIONS {
            let branches = branch.get(name).and_then(Value::as_array).into_iter().flatten();
            for one in branches.filter_map(Value::as_object) {
                self.take(one, must && name == "allOf", depth + 1);
            }
        }
    }

    /// A definition of the same schema.
    fn defined(&self, name: &str) -> Option<&'s Map<String, Value>> {
        let (list, name) = name.strip_prefix("#/")?.split_once('/')?;
        self.definitions.get(list)?.get(name)?.as_object()
    }
}

/// A field that several branches name may be what any of them says.
fn take_in(properties: &mut Map<String, Value>, name: &str, one: &Value) {
    let Some(known) = properties.get_mut(name) else {
        properties.insert(name.to_owned(), one.clone());
        return;
    };
    if known == one {
        return;
    }
    let several =
        known.as_object_mut().filter(|known| known.len() == 1).and_then(|known| known.get_mut("anyOf"));
    match several {
        Some(Value::Array(all)) if all.contains(one) => {}
        Some(Value::Array(all)) => all.push(one.clone()),
        _ => *known = json!({"anyOf": [known.take(), one]}),
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
        let union = raw(r##"{"description":"d","required":["kind","note"],"additionalProperties":false,
              "properties":{"note":{"type":"string"}},"oneOf":[
                {"properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["kind","path"]},
                {"properties":{"kind":{"const":"url"},"url":{"type":"string"}},"required":["kind","url"]},
                {"properties":{"kind":{"const":"url"}}},
                {"$ref":"#/$defs/none"},{"$ref":"#/$defs/missing"},{"$ref":"elsewhere"}],
              "allOf":[{"required":["note","kind"]},{"anyOf":[{"required":["not_this"]}]}],
              "$defs":{"none":{"properties":{"kind":{"const":"none"}},"anyOf":[{"$ref":"#/$defs/none"}]}}}"##);
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
                    "$defs": {"none": {"properties": {"kind": {"const": "none"}}, "anyOf": [{"$ref": "#/$defs/none"}]}},
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
