//! Arguments of tool calls as bad models write them.

use std::fmt::Write;

use serde_json::Value;

use crate::fall::Form;

/// These arguments in a form that is no JSON.
pub(crate) fn arguments(value: &Value, form: Form) -> String {
    let good = value.to_string();
    match form {
        Form::TrailingComma => match good.strip_suffix('}') {
            Some(open) if open.len() > 1 => format!("{open},}}"),
            _ => format!("{good},"),
        },
        Form::Unquoted => {
            written(value, &Notation { quote: "\"", keys: "", words: ["true", "false", "null"] })
        }
        Form::Python => {
            let python =
                written(value, &Notation { quote: "'", keys: "'", words: ["True", "False", "None"] });
            // An object without fields is the same in both.
            if python == good { format!("dict({python})") } else { python }
        }
        Form::Truncated => {
            let half = good.floor_char_boundary(good.len() * 2 / 3).min(good.len().saturating_sub(1));
            good.get(..half.max(1)).unwrap_or("{").to_owned()
        }
        Form::Prose => format!("Sure, here are the arguments for the tool: {good} I hope that helps."),
    }
}

/// How another notation writes what JSON writes.
struct Notation {
    quote: &'static str,
    keys: &'static str,
    words: [&'static str; 3],
}

fn written(value: &Value, notation: &Notation) -> String {
    let mut out = String::new();
    write_value(&mut out, value, notation);
    if matches!(value, Value::Object(fields) if fields.is_empty()) && notation.keys.is_empty() {
        // Without a key to leave bare, something else must be wrong.
        return "{arguments}".to_owned();
    }
    out
}

fn write_value(out: &mut String, value: &Value, notation: &Notation) {
    let [yes, no, none] = notation.words;
    match value {
        Value::Null => out.push_str(none),
        Value::Bool(flag) => out.push_str(if *flag { yes } else { no }),
        Value::Number(number) => drop(write!(out, "{number}")),
        Value::String(text) => write_text(out, text, notation.quote),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_value(out, item, notation);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, item)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_text(out, name, notation.keys);
                out.push_str(": ");
                write_value(out, item, notation);
            }
            out.push('}');
        }
    }
}

fn write_text(out: &mut String, text: &str, quote: &str) {
    out.push_str(quote);
    for c in text.chars() {
        if c == '\\' || (!quote.is_empty() && quote.starts_with(c)) {
            out.push('\\');
        }
        match c {
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push_str(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FORMS: [Form; 5] =
        [Form::TrailingComma, Form::Unquoted, Form::Truncated, Form::Python, Form::Prose];

    #[test]
    fn no_form_is_json() {
        for value in [
            json!({}),
            json!({"city": "Paris"}),
            json!({"a": 1, "b": [true, null, 2.5], "c": {"d": "it's \"fine\""}}),
            json!({"日本": "語"}),
        ] {
            for form in FORMS {
                let spoiled = arguments(&value, form);
                assert!(serde_json::from_str::<Value>(&spoiled).is_err(), "{form:?}: {spoiled}");
            }
        }
    }

    #[test]
    fn forms_have_the_shape_of_their_names() {
        let value = json!({"city": "Paris", "now": true});
        assert_eq!(arguments(&value, Form::TrailingComma), r#"{"city":"Paris","now":true,}"#);
        assert_eq!(arguments(&value, Form::Unquoted), r#"{city: "Paris", now: true}"#);
        assert_eq!(arguments(&value, Form::Python), "{'city': 'Paris', 'now': True}");
    }
}
