//! Fits the schemas of tools to what vendors take as one: an object at its top, by name.
//!
//! OpenAI wants the fields of that object named too, even where there are none. A union at the top both big vendors refuse, and no other
//! schema says the same: its branches become one object that requires only the fields which every call has. What comes back is checked by the
//! client's own schema anyway. A schema that fits stays the text it was, because prompt caches compare it.
//!
//! A schema may be as large as a body. Its top is passed over once and nothing is kept but what stands in [`SchemaTop`]; a union is taken apart
//! (`union`) only up to a size that no schema of use has.
//!
//! *Not here*: the schemas of answers, and what a grammar can hold. Each vendor has rules of its own for those.

mod union;

use std::borrow::Cow;

use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::lenient::{Fields, filled, skip};

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
        let is_large = schema.get().len() > MAX_UNION;
        let loose = if is_large { Some(object_with_fields()) } else { union::loosened(schema) };
        loose.map_or(Self::plain(schema), |loose| Self {
            schema: Cow::Owned(loose),
            rule: Some("loosen_union_schema"),
        })
    }

    /// The same with its fields named, where it has none.
    pub(crate) fn with_properties(self) -> Self {
        if !SchemaTop::of(&self.schema).is_some_and(|top| top.is_object() && !top.has_properties) {
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
    let top = schema.and_then(|raw| Some((raw, SchemaTop::of(raw)?)));
    let Some((raw, top)) = top.filter(|(_, top)| !top.is_empty()) else {
        return Input::fitted(any_object());
    };
    match top.kind {
        _ if top.is_union => Input::loosened(raw),
        Some(_) if top.is_object() => Input::plain(raw),
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
    if SchemaTop::of(schema).is_some_and(|top| top.is_refused_by_openai) {
        return Input::loosened(schema);
    }
    input(Some(schema)).with_properties()
}

const UNIONS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Refused at the top too, beside unions.
const REFUSED_BY_OPENAI: [&str; 3] = ["enum", "const", "not"];

/// Bytes of a schema whose union is taken apart. What is larger becomes any object: no model could read it, and the client's own schema
/// judges the arguments in the end.
const MAX_UNION: usize = 256 * 1024;

/// What must be known of the top of a schema.
#[derive(Debug, Default)]
struct SchemaTop<'a> {
    fields: usize,
    kind: Option<&'a RawValue>,
    has_properties: bool,
    is_union: bool,
    is_refused_by_openai: bool,
}

impl<'a> SchemaTop<'a> {
    /// Of an object; of anything else none.
    fn of(schema: &'a RawValue) -> Option<Self> {
        filled(schema.get()).ok()
    }

    const fn is_empty(&self) -> bool {
        self.fields == 0
    }

    fn is_object(&self) -> bool {
        self.kind.is_some_and(|kind| kind.get() == "\"object\"")
    }
}

impl<'a> Fields<'a> for SchemaTop<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        self.fields += 1;
        self.has_properties |= name == "properties";
        self.is_union |= UNIONS.contains(&name);
        self.is_refused_by_openai |= REFUSED_BY_OPENAI.contains(&name);
        if name == "type" {
            let kind = map.next_value()?;
            self.kind.get_or_insert(kind);
            return Ok(());
        }
        skip(map)
    }
}

fn any_object() -> Box<RawValue> {
    constant(r#"{"type":"object"}"#)
}

/// The same, as every vendor takes it.
fn object_with_fields() -> Box<RawValue> {
    constant(r#"{"properties":{},"type":"object"}"#)
}

fn constant(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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

    /// A choice of this many objects, each with a field of its own.
    fn choice_of(branches: usize, description: &str) -> Box<RawValue> {
        let branch = |at| format!(r#"{{"properties":{{"f{at}":{{"type":"string"}}}},"required":["f{at}"]}}"#);
        let branches: Vec<String> = (0..branches).map(branch).collect();
        raw(&format!(r#"{{"description":"{description}","oneOf":[{}]}}"#, branches.join(",")))
    }

    #[test]
    fn of_a_union_with_too_many_branches_the_first_are_named() {
        let many = choice_of(1000, "");
        let fitted: Value = serde_json::from_str(input(Some(&many)).schema.get()).unwrap();
        // The top counts as one of the branches that are read.
        assert_eq!(fitted["properties"].as_object().unwrap().len(), 255);
        assert_eq!(fitted.get("required"), None);
    }

    #[test]
    fn a_union_too_large_to_be_of_use_is_not_taken_apart() {
        let fits = choice_of(2, &"x".repeat(MAX_UNION - 1000));
        assert!(input(Some(&fits)).schema.get().contains("\"f1\""));
        let large = choice_of(2, &"x".repeat(MAX_UNION));
        for fitted in [input(Some(&large)), openai(&large)] {
            assert_eq!(
                (fitted.schema.get(), fitted.rule),
                (r#"{"properties":{},"type":"object"}"#, Some("loosen_union_schema"))
            );
        }
        // Without a union there is nothing to take apart.
        let plain =
            raw(&format!(r#"{{"type":"object","properties":{{}},"title":"{}"}}"#, "x".repeat(MAX_UNION)));
        assert!(matches!(openai(&plain), Input { schema: Cow::Borrowed(_), rule: None }));
    }

    /// Each would be read 256 times if they were taken in wherever they are named.
    #[test]
    fn definitions_that_lead_to_each_other_are_taken_in_once() {
        let both = raw(
            r##"{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"allOf":[{"$ref":"#/$defs/b"}],"$defs":{
            "a":{"properties":{"x":{}},"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/a"}]},
            "b":{"properties":{"y":{}},"required":["y"],"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}}}"##,
        );
        let fitted: Value = serde_json::from_str(input(Some(&both)).schema.get()).unwrap();
        assert_eq!(fitted["properties"], json!({"x": {}, "y": {}}));
        assert_eq!(fitted["required"], json!(["y"]));
    }

    #[test]
    fn openai_gets_a_list_of_fields_even_where_there_are_none() {
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
