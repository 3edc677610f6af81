use proptest::prelude::*;

use super::*;

fn follows(schema: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    for seed in 0..40 {
        let made = example(schema, Seed::new(seed));
        assert!(validator.is_valid(&made), "{made} does not follow {schema}");
    }
}

#[test]
fn values_follow_the_schemas_of_real_tools() {
    for schema in [
        json!({"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["city"], "additionalProperties": false}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": -9_007_199_254_740_991_i64, "exclusiveMinimum": 0, "maximum": 9_007_199_254_740_991_i64}}, "required": ["n"]}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 5}, "x": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}}, "required": ["n", "x"]}),
        json!({"type": "object", "properties": {"step": {"type": "integer", "multipleOf": 5, "minimum": 7}}, "required": ["step"]}),
        json!({"type": "object", "properties": {"low": {"type": "integer", "maximum": -3}, "half": {"type": "integer", "minimum": 2.5}}, "required": ["low", "half"]}),
        json!({"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 4, "uniqueItems": true}),
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean"}}, "required": ["c"]}}}, "required": ["b"]}}, "required": ["a"]}),
        json!({"type": ["null", "string"], "minLength": 30, "maxLength": 31}),
        json!({"anyOf": [{"type": "null"}, {"type": "integer"}]}),
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"const": 7}}, "required": ["b"]}]}),
        json!({"$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["name"]}}, "$ref": "#/$defs/node"}),
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2}),
        json!({"type": "object", "required": ["free"]}),
        json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "object", "properties": {"when": {"type": "string", "format": "date"}, "mail": {"type": "string", "format": "email"}, "id": {"type": "string", "format": "uuid"}}}),
    ] {
        follows(&schema);
    }
}

#[test]
fn the_same_seed_makes_the_same_value() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    assert_eq!(example(&schema, Seed::new(5)), example(&schema, Seed::new(5)));
    let all: std::collections::BTreeSet<String> =
        (0..50).map(|seed| example(&schema, Seed::new(seed)).to_string()).collect();
    assert!(all.len() > 20, "{}", all.len());
}

#[test]
fn endless_schemas_end() {
    let wide = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}, "required": ["a", "b", "c"]});
    let long = json!({"type": "array", "minItems": 1_000_000, "items": {"$ref": "#"}});
    let round = json!({"$ref": "#"});
    let choice = json!({"anyOf": [{"$ref": "#"}], "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let text = json!({"type": "string", "minLength": u64::MAX});
    let number = json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MIN, "multipleOf": i64::MAX});
    for schema in [wide, long, round, choice, text, number] {
        let made = example(&schema, Seed::new(1)).to_string();
        assert!(made.len() < 100_000, "{}", made.len());
    }
}

proptest! {
    #[test]
    fn whole_numbers_stay_in_their_bounds(min in -1000_i64..1000, room in 0_i64..50, step in 1_i64..9, seed in any::<u64>()) {
        let schema = json!({"type": "integer", "minimum": min, "maximum": min + room + step, "multipleOf": step});
        let made = example(&schema, Seed::new(seed)).as_i64().unwrap();
        prop_assert!((min..=min + room + step).contains(&made) && made % step == 0, "{}", made);
    }
}
