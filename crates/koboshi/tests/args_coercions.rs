//! No value is changed to what the schema takes where it could mean a second thing.
//!
//! Every value below is given for every type below, as an optional and as a required member. The oracle lists what a person could mean by the value, keeps what the schema
//! takes, and knows nothing of how the library decides: a repair is due only where one meaning is left, and must be that one.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use koboshi::args::{ArgsPolicy, Finish, ToolSchema, check};
use serde_json::{Value, json};

const TYPES: &[&str] = &["string", "integer", "number", "boolean", "null"];

/// Types alone, in pairs, in lists, beside lists, and lists of choices.
fn schemas() -> Vec<Value> {
    let mut all: Vec<Value> = TYPES.iter().map(|name| json!({"type": name})).collect();
    for (at, one) in TYPES.iter().enumerate() {
        all.extend(TYPES.iter().skip(at + 1).map(|other| json!({"type": [one, other]})));
    }
    for one in TYPES {
        all.push(json!({"type": "array", "items": {"type": one}}));
        all.extend(TYPES.iter().map(|other| json!({"type": [other, "array"], "items": {"type": one}})));
        all.push(json!({"anyOf": [{"type": one}, {"type": "object"}]}));
    }
    for choices in [
        json!(["On", "Off"]),
        json!(["On", "ON"]),
        json!(["None", "some", null]),
        json!(["None", "some"]),
        json!(["True", "False", true]),
        json!(["1", "2"]),
        json!(["1", 2]),
        json!([1, 2]),
        json!(["yes", "no"]),
    ] {
        all.push(json!({"enum": choices}));
        all.push(json!({"type": "array", "items": {"enum": choices}}));
    }
    all
}

fn values() -> Vec<Value> {
    let texts = [
        "5", " 5 ", "5.5", "-1", "0", "1", "2", "1e3", "007", "+5", "0x1F", "1,000", "1_000", "5px", "", " ",
        "true", "TRUE", "False", "yes", "No", "on", "OFF", "y", "t", "null", "None", "nil", "N/A",
        "undefined", "a", "a,b", "a, b", "a;b", "a|b", "a\nb", "1,2", "[1, 2]", "[\"a\"]", "['a']",
        "{\"a\": 1}", "[]", "some", "SOME", "none", "New York", "2024-01-15", "٥", "５",
    ];
    let mut all: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
    all.extend([
        json!(5),
        json!(0),
        json!(1),
        json!(-1),
        json!(5.5),
        json!(1e3),
        json!(true),
        json!(false),
        json!(null),
    ]);
    all.extend([json!([]), json!(["a"]), json!([5]), json!({}), json!({"a": 1})]);
    all
}

/// What a person could mean by a text, beside the text itself.
fn meanings_of_text(text: &str) -> Vec<Value> {
    let trimmed = text.trim();
    let lower = trimmed.to_lowercase();
    let mut all = Vec::new();
    let plain = trimmed.replace([',', '_'], "");
    for number in [trimmed, plain.as_str(), trimmed.trim_start_matches('+')] {
        all.extend(serde_json::from_str::<Value>(number).ok().filter(Value::is_number));
    }
    match lower.as_str() {
        "true" | "yes" | "on" | "1" | "y" | "t" => all.push(json!(true)),
        "false" | "no" | "off" | "0" | "n" | "f" => all.push(json!(false)),
        "null" | "none" | "nil" | "n/a" | "undefined" | "" => all.push(json!(null)),
        _ => {}
    }
    all.extend(
        serde_json::from_str::<Value>(&trimmed.replace('\'', "\""))
            .ok()
            .filter(|value| value.is_array() || value.is_object()),
    );
    for word in ["On", "ON", "Off", "None", "some", "True", "False", "yes", "no"] {
        if word.to_lowercase() == lower {
            all.push(json!(word));
        }
    }
    all
}

/// A list that is written as text.
fn decoded(text: &str) -> Option<Value> {
    let json = text.trim().replace('\'', "\"");
    serde_json::from_str::<Value>(&json).ok().filter(|value| value.is_array() || value.is_object())
}

/// What a person could mean by a value that the schema does not take: what takes one step, and what takes two.
fn meanings(value: &Value, is_required: bool) -> [Vec<Option<Value>>; 2] {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    match value {
        Value::String(text) if decoded(text).is_some() => {
            let list = decoded(text).unwrap();
            two.extend(with_texts(&list));
            one.push(list);
        }
        Value::String(text) => {
            let pieces: Vec<&str> = text.split([',', ';', '|', '\n']).map(str::trim).collect();
            one.extend(meanings_of_text(text));
            one.push(json!([text]));
            if pieces.len() > 1 {
                one.push(json!(pieces));
                let numbers: Option<Vec<Value>> =
                    pieces.iter().map(|piece| serde_json::from_str(piece).ok()).collect();
                two.extend(numbers.map(Value::from));
            } else if meanings_of_text(text).contains(&json!(null)) {
                one.push(json!([]));
            }
            two.extend(meanings_of_text(text).into_iter().map(|meaning| json!([meaning])));
        }
        Value::Number(number) => {
            one.extend([json!(number.to_string()), json!([number])]);
            two.push(json!([number.to_string()]));
            one.extend(
                number.as_i64().filter(|number| (0..=1).contains(number)).map(|number| json!(number == 1)),
            );
        }
        Value::Bool(flag) => one.extend([json!(flag.to_string()), json!(i32::from(*flag)), json!([flag])]),
        Value::Array(_) => one.extend(with_texts(value)),
        Value::Null | Value::Object(_) => {}
    }
    let mut one: Vec<_> = one.into_iter().map(Some).collect();
    if value.is_null() && !is_required {
        one.push(None);
    }
    [one, two.into_iter().map(Some).collect()]
}

/// A list with its numbers as texts.
fn with_texts(list: &Value) -> Option<Value> {
    let texts = list
        .as_array()?
        .iter()
        .map(|element| if element.is_number() { json!(element.to_string()) } else { element.clone() });
    Some(texts.collect())
}

#[test]
fn what_could_mean_two_things_is_not_changed() {
    let (mut repaired, mut refused, mut two, mut wrong) = (0, 0, 0, Vec::new());
    for member in schemas() {
        for is_required in [false, true] {
            let required: &[&str] = if is_required { &["v"] } else { &[] };
            let plain = json!({"type": "object", "properties": {"v": member}, "required": required});
            let schema = ToolSchema::compile(&plain).unwrap();
            for value in values() {
                let text = json!({"v": value}).to_string();
                if schema.is_satisfied_by(&json!({"v": value})) {
                    continue;
                }
                let object = |meaning: &Option<Value>| {
                    meaning.as_ref().map_or_else(|| json!({}), |value| json!({"v": value}))
                };
                let taken = |mut all: Vec<Option<Value>>| {
                    all.retain(|meaning| schema.is_satisfied_by(&object(meaning)));
                    all
                };
                let [one_step, two_steps] = meanings(&value, is_required).map(taken);
                let mut left = if one_step.is_empty() { two_steps } else { one_step };
                left.sort_by_key(|meaning| format!("{meaning:?}"));
                left.dedup();
                let verdict = check(&text, Some(&schema), Finish::Done, &ArgsPolicy::default());
                let got = verdict.json(&text).map(|json| serde_json::from_str::<Value>(json).unwrap());
                match (left.as_slice(), got) {
                    ([one], Some(got)) if same(&object(one), &got) => repaired += 1,
                    (_, Some(got)) => wrong.push(format!(
                        "{text} for {member} (required: {is_required}) became {got}, and could be {left:?}"
                    )),
                    ([_, _, ..], None) => two += 1,
                    (_, None) => refused += 1,
                }
            }
        }
    }
    println!("{repaired} changed to their one meaning, {two} with several refused, {refused} others refused");
    assert!(
        wrong.is_empty(),
        "{} changed although they could mean another thing:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(repaired > 200 && two > 100, "{repaired} {two}");
}

/// `5` and `5.0` are one number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
