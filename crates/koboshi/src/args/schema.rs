//! The schema of a tool's arguments: compiled once, asked often.
//!
//! Checking is the `jsonschema` crate's, without its parts that fetch: a `$ref` can only point into the schema. What
//! it cannot tell is which types and members a place allows; `demand` reads that from the schema itself.
//!
//! Patterns run on an engine that needs linear time. Only a pattern that this engine does not know (look-around) goes
//! to the backtracking one, with a limit on its steps.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::demand::{Types, property, resolve, types};
use super::dialect::in_own_words;
use super::verdict::{MAX_MISSES, Miss};

/// A longer schema, written as JSON, is refused.
pub const MAX_SCHEMA_BYTES: usize = 512 * 1024;

/// A schema that nests deeper is refused.
pub const MAX_SCHEMA_DEPTH: usize = 100;

const MAX_DEMAND_BYTES: usize = 200;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is longer than allowed.
    #[error("the schema has {0} bytes, {MAX_SCHEMA_BYTES} are the most")]
    Long(usize),
    /// It is nested deeper than allowed.
    #[error("the schema is nested deeper than {MAX_SCHEMA_DEPTH}")]
    Deep,
    /// It is no schema, or points outside itself.
    #[error("the schema cannot be used: {0}")]
    Unusable(String),
}

/// A tool's schema, compiled.
#[derive(Clone)]
pub struct ToolSchema {
    inner: Arc<Inner>,
    /// The tool's name, where the caller gave one.
    tool: Option<Arc<str>>,
}

struct Inner {
    validator: Validator,
    root: Value,
    /// Every name that any `properties` of the schema declares.
    names: HashSet<String>,
    /// No object of the schema takes members that it does not declare.
    closed: bool,
}

impl fmt::Debug for ToolSchema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ToolSchema").field(&self.inner.root).finish()
    }
}

impl ToolSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is no schema, too large or too deep, or refers to something outside itself.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut survey = Survey::default();
        survey.walk(schema)?;
        let own = in_own_words(schema);
        if let Cow::Owned(own) = &own {
            survey = Survey::default();
            survey.walk(own)?;
        }
        let schema = own.as_ref();
        let unusable = |error: jsonschema::ValidationError<'_>| {
            SchemaError::Unusable(bounded(&error.masked().to_string(), MAX_DEMAND_BYTES))
        };
        let linear = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema);
        let validator = match linear {
            Ok(validator) => validator,
            Err(_) => jsonschema::options()
                .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(20_000))
                .build(schema)
                .map_err(unusable)?,
        };
        let inner = Inner { validator, root: own.into_owned(), names: survey.names, closed: !survey.open };
        Ok(Self { inner: Arc::new(inner), tool: None })
    }

    /// The same schema, as the one of this tool: arguments that name another tool are then not taken for its own.
    ///
    /// ```
    /// use koboshi::args::{ArgsPolicy, Defect, Finish, ToolSchema, check};
    /// let schema = ToolSchema::parse(r#"{"properties": {"city": {"type": "string"}}, "required": ["city"]}"#)?;
    /// let schema = schema.named("get_weather");
    /// let judge = |text| check(text, Some(&schema), Finish::Done, &ArgsPolicy::default());
    /// assert!(judge(r#"{"name": "get_weather", "arguments": {"city": "Paris"}}"#).json("").is_some());
    /// let other = judge(r#"{"name": "drop_table", "arguments": {"city": "Paris"}}"#);
    /// assert_eq!(other.refusal().unwrap().defect, Defect::OtherTool);
    /// # Ok::<(), koboshi::args::SchemaError>(())
    /// ```
    #[must_use]
    pub fn named(&self, tool: &str) -> Self {
        Self { inner: Arc::clone(&self.inner), tool: Some(Arc::from(tool)) }
    }

    /// Whether a call of this name can be meant for this tool. Name spaces around either name (`functions.read`,
    /// `mcp__files__read`) make no other tool, nor does a schema that has no name refuse any.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        let Some(tool) = self.tool.as_deref() else { return true };
        let ends_with = |long: &str, short: &str| {
            let before = long.strip_suffix(short);
            !short.is_empty()
                && before.is_some_and(|before| before.ends_with(['.', '/', ':']) || before.ends_with("__"))
        };
        let (tool, name) = (tool.trim(), name.trim());
        tool == name || ends_with(tool, name) || ends_with(name, tool)
    }

    /// Compiles the text of a schema.
    ///
    /// # Errors
    /// As [`ToolSchema::compile`], or the text is no JSON.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(SchemaError::Long(text.len()));
        }
        let schema = serde_json::from_str(text).map_err(|error| SchemaError::Unusable(error.to_string()))?;
        Self::compile(&schema)
    }

    /// Whether a value satisfies the schema.
    #[must_use]
    pub fn is_satisfied_by(&self, value: &Value) -> bool {
        self.inner.validator.is_valid(value)
    }

    /// The places of a value that do not satisfy the schema.
    #[must_use]
    pub fn misses(&self, value: &Value) -> Vec<Miss> {
        let errors = self.inner.validator.iter_errors(value).take(MAX_MISSES);
        errors
            .map(|error| Miss {
                path: bounded(&error.instance_path().to_string(), MAX_DEMAND_BYTES),
                demand: bounded(&error.masked().to_string(), MAX_DEMAND_BYTES),
            })
            .collect()
    }

    pub(super) fn root(&self) -> &Value {
        &self.inner.root
    }

    /// Whether no member is declared at all.
    pub(super) fn takes_nothing(&self) -> bool {
        self.inner.names.is_empty()
    }

    /// Whether some object of the schema declares a member of this name.
    pub(super) fn declares(&self, key: &str) -> bool {
        self.inner.names.contains(key)
    }

    /// Whether a member of this name could be meant anywhere.
    pub(super) fn could_mean(&self, key: &str) -> bool {
        !self.inner.closed || self.inner.names.contains(key)
    }

    /// The names declared for the object at the end of this path; none where the schema does not say.
    pub(super) fn declared<'p>(&self, path: impl Iterator<Item = &'p str>) -> Option<Vec<&str>> {
        let root = self.root();
        let mut place = resolve(root, root)?;
        for key in path {
            place = resolve(root, property(root, place, key)?)?;
        }
        if !types(root, place).has(Types::OBJECT) {
            return None;
        }
        let properties = place.get("properties")?.as_object()?;
        let combined = ["anyOf", "oneOf", "allOf", "patternProperties", "if", "dependentSchemas"];
        let whole = !combined.iter().any(|word| place.get(word).is_some());
        let extra = place.get("additionalProperties").is_some_and(Value::is_object);
        (whole && !extra && !properties.is_empty()).then(|| properties.keys().map(String::as_str).collect())
    }
}

/// What can be said of a schema in one walk.
#[derive(Default)]
struct Survey {
    names: HashSet<String>,
    open: bool,
    bytes: usize,
}

/// What a part of a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Schema,
    /// Names and their schemas.
    Named,
    Other,
}

impl Part {
    pub(super) fn under(self, key: &str) -> Self {
        match (self, key) {
            (Self::Named, _) => Self::Schema,
            (
                Self::Schema,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            ) => Self::Named,
            (Self::Schema, "enum" | "const" | "default" | "examples" | "required" | "type") => Self::Other,
            (Self::Schema, _) => Self::Schema,
            (Self::Other, _) => Self::Other,
        }
    }
}

impl Survey {
    fn walk(&mut self, schema: &Value) -> Result<(), SchemaError> {
        let mut left = vec![(schema, Part::Schema, 0)];
        while let Some((value, part, depth)) = left.pop() {
            if depth > MAX_SCHEMA_DEPTH {
                return Err(SchemaError::Deep);
            }
            match value {
                Value::Object(members) => {
                    if let Part::Schema = part {
                        self.note(value);
                    }
                    for (key, member) in members {
                        self.bytes += key.len() + 4;
                        left.push((member, part.under(key), depth + 1));
                    }
                }
                Value::Array(elements) => {
                    left.extend(elements.iter().map(|element| (element, part, depth + 1)));
                }
                Value::String(text) => self.bytes += text.len(),
                _ => {}
            }
            self.bytes += 2;
            if self.bytes > MAX_SCHEMA_BYTES {
                return Err(SchemaError::Long(self.bytes));
            }
        }
        Ok(())
    }

    fn note(&mut self, schema: &Value) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.names.extend(properties.keys().cloned());
        }
        let has = |word: &str| schema.get(word).is_some();
        if ["$ref", "enum", "const", "anyOf", "oneOf", "allOf"].into_iter().any(has) {
            return;
        }
        let allowed = types(schema, schema);
        let shut = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|word| schema.get(word) == Some(&Value::Bool(false)));
        let listed = has("items") || has("prefixItems");
        self.open |= (allowed.has(Types::OBJECT) && !shut) || (allowed.has(Types::ARRAY) && !listed);
    }
}

fn bounded(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub(3));
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// The schemas of the tools in use, each compiled once. The least recently used one is dropped first, also where all of them together are
/// long: a compiled schema takes several times the memory of its text.
///
/// ```
/// use koboshi::args::Schemas;
/// let schemas = Schemas::new(64);
/// let text = r#"{"type": "object", "properties": {"city": {"type": "string"}}}"#;
/// let first = schemas.compile(text)?;
/// let second = schemas.compile(text)?; // not compiled again
/// # let _ = (first, second);
/// # Ok::<(), koboshi::args::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct Schemas {
    max: usize,
    kept: Mutex<KeptSchemas>,
}

/// How long the texts of all kept schemas together may be.
const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
struct KeptSchemas {
    by_age: VecDeque<(String, ToolSchema)>,
    /// The length of all texts.
    bytes: usize,
}

impl KeptSchemas {
    fn add(&mut self, text: &str, schema: ToolSchema, max: usize) {
        self.bytes += text.len();
        self.by_age.push_back((text.to_owned(), schema));
        while self.by_age.len() > max || self.bytes > MAX_KEPT_BYTES {
            let Some((oldest, _)) = self.by_age.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

impl Default for Schemas {
    fn default() -> Self {
        Self::new(256)
    }
}

impl Schemas {
    /// Keeps at most this many, and at most 8 MiB of their texts.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max: max.max(1), kept: Mutex::default() }
    }

    /// The schema with this text.
    ///
    /// # Errors
    /// As [`ToolSchema::parse`]. Failures are not kept.
    pub fn compile(&self, text: &str) -> Result<ToolSchema, SchemaError> {
        if let Some(known) = self.find(text) {
            return Ok(known);
        }
        // Compiled without the lock: another thread may do the same work, but none waits for it.
        let schema = ToolSchema::parse(text)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.add(text, schema.clone(), self.max);
        Ok(schema)
    }

    fn find(&self, text: &str) -> Option<ToolSchema> {
        let kept = &mut self.kept.lock().unwrap_or_else(PoisonError::into_inner).by_age;
        let place = kept.iter().position(|(known, _)| known == text)?;
        let entry = kept.remove(place)?;
        let schema = entry.1.clone();
        kept.push_back(entry);
        Some(schema)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::args::{ArgsPolicy, Finish, check};

    #[test]
    fn a_schema_cannot_fetch_anything() {
        for reference in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
            let schema = json!({"type": "object", "properties": {"a": {"$ref": reference}}});
            assert!(matches!(ToolSchema::compile(&schema), Err(SchemaError::Unusable(_))), "{reference}");
        }
    }

    /// As Gemini's and OpenAPI 3.0's declarations write it.
    #[test]
    fn types_in_capitals_and_nullable_places_are_understood() {
        let schema = ToolSchema::compile(&json!({
            "type": "OBJECT",
            "properties": {
                "city": {"type": "STRING", "nullable": true},
                "days": {"type": "INTEGER"},
                "unit": {"type": "STRING", "enum": ["C", "F"], "nullable": true},
                "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"},
                "place": {"$ref": "#/$defs/place", "nullable": true},
                "any": {"anyOf": [{"type": "STRING"}, {"type": "BOOLEAN"}], "nullable": true},
                "type": {"type": "STRING"},
                "nullable": {"type": "BOOLEAN"},
                "word": {"enum": ["STRING", "nullable"]},
                "strict": {"type": "STRING", "nullable": false},
            },
            "required": ["city"],
            "$defs": {"place": {"type": "OBJECT", "properties": {"at": {"type": "NUMBER"}}}},
        }))
        .unwrap();
        for good in [
            json!({"city": "Paris", "days": 3, "tags": ["a"]}),
            json!({"city": null, "unit": null, "place": null, "any": null}),
            json!({"city": "a", "type": "b", "nullable": true, "word": "STRING", "place": {"at": 1.5}}),
        ] {
            assert!(schema.is_satisfied_by(&good), "{good}");
        }
        for bad in [
            json!({}),
            json!({"city": 5}),
            json!({"city": "a", "days": null}),
            json!({"city": "a", "unit": "K"}),
            json!({"city": "a", "tags": []}),
            json!({"city": "a", "type": null}),
            json!({"city": "a", "word": "string"}),
            json!({"city": "a", "strict": null}),
            json!({"city": "a", "any": 5}),
        ] {
            assert!(!schema.is_satisfied_by(&bad), "{bad}");
        }
        assert!(ToolSchema::compile(&json!({"type": "TEXT"})).is_err(), "no word is guessed");
    }

    #[test]
    fn what_capitals_demand_is_coerced_as_usual() {
        let schema = ToolSchema::compile(&json!({
            "type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": true}},
        }))
        .unwrap();
        let verdict = check(r#"{n: "5"}"#, Some(&schema), Finish::Done, &ArgsPolicy::default());
        assert_eq!(verdict.json(""), Some(r#"{"n":5}"#));
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let mut deep = json!({});
        for _ in 0..300 {
            deep = json!({"items": deep});
        }
        assert_eq!(ToolSchema::compile(&deep).unwrap_err(), SchemaError::Deep);
        let wide = json!({"description": "x".repeat(MAX_SCHEMA_BYTES + 1)});
        assert!(matches!(ToolSchema::compile(&wide), Err(SchemaError::Long(_))));
    }

    #[test]
    fn a_hostile_pattern_does_not_hang() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}, "b": {"pattern": "^(?=(b+)+c)"}}});
        let schema = ToolSchema::compile(&schema).unwrap();
        assert!(!schema.is_satisfied_by(&json!({"a": format!("{}!", "a".repeat(50_000))})));
        let _ = schema.is_satisfied_by(&json!({"b": "b".repeat(5_000)}));
    }

    #[test]
    fn the_cache_is_bounded_and_compiles_once() {
        let schemas = Schemas::new(2);
        let text = |n: usize| format!(r#"{{"title": "{n}"}}"#);
        let first = schemas.compile(&text(0)).unwrap();
        let again = schemas.compile(&text(0)).unwrap();
        assert!(Arc::ptr_eq(&first.inner, &again.inner));
        for n in 1..10 {
            schemas.compile(&text(n)).unwrap();
        }
        assert_eq!(schemas.kept.lock().unwrap().by_age.len(), 2);
        assert!(!Arc::ptr_eq(&first.inner, &schemas.compile(&text(0)).unwrap().inner));
        assert!(schemas.compile("{").is_err());
    }

    #[test]
    fn long_schemas_push_each_other_out_before_they_are_many() {
        let schemas = Schemas::new(1000);
        let text = |n: usize| format!(r#"{{"title": "{n}", "description": "{}"}}"#, "x".repeat(500_000));
        let first = schemas.compile(&text(0)).unwrap();
        for n in 1..40 {
            schemas.compile(&text(n)).unwrap();
        }
        let (number, bytes) = {
            let kept = schemas.kept.lock().unwrap();
            (kept.by_age.len(), kept.by_age.iter().map(|(text, _)| text.len()).sum::<usize>())
        };
        assert_eq!((number, schemas.kept.lock().unwrap().bytes), (16, bytes), "as many as fit into 8 MiB");
        assert!(!Arc::ptr_eq(&first.inner, &schemas.compile(&text(0)).unwrap().inner));
    }
}
