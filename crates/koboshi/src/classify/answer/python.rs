//! A Python dictionary as `repr` prints it, read as JSON.
//!
//! Python's SDKs put the provider's error object into their exception's text that way: `429 RESOURCE_EXHAUSTED. {'error': {…}}`.
//! Only what such a text holds is read: strings in either quotation marks, numbers, `True`, `False`, `None`, lists and dictionaries.
//! What is cut off or holds anything else is no object.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

/// The dictionary or list that a text begins with.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut json = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut depth = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => json.push_str(&string(&mut chars, c)?),
            'T' | 'F' | 'N' => json.push_str(literal(&mut chars, c)?),
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if !matches!(c, '\'' | '"' | 'T' | 'F' | 'N') {
            json.push(c);
        }
        if depth == 0 {
            return serde_json::from_str(&json).ok();
        }
    }
    None
}

/// The rest of a string, as JSON writes it.
fn string(chars: &mut Peekable<Chars<'_>>, quote: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match chars.next()? {
            '\\' => text.push(escaped(chars)?),
            c if c == quote => return serde_json::to_string(&text).ok(),
            c => text.push(c),
        }
    }
}

fn escaped(chars: &mut Peekable<Chars<'_>>) -> Option<char> {
    Some(match chars.next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'x' => numbered(chars, 2)?,
        'u' => numbered(chars, 4)?,
        'U' => numbered(chars, 8)?,
        other => other,
    })
}

fn numbered(chars: &mut Peekable<Chars<'_>>, digits: usize) -> Option<char> {
    let digits: String = chars.by_ref().take(digits).collect();
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
}

fn literal(chars: &mut Peekable<Chars<'_>>, first: char) -> Option<&'static str> {
    let mut word = String::from(first);
    while let Some(c) = chars.next_if(char::is_ascii_alphabetic) {
        word.push(c);
    }
    match word.as_str() {
        "True" => Some("true"),
        "False" => Some("false"),
        "None" => Some("null"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_repr_prints_is_read() {
        let text =
            r#"{'a': "it's", 'b': [1, -2.5, True, None], 'c': {'d': 'x\'y\n\u3042'}, 'e': False} and more"#;
        let read = read(text).unwrap();
        assert_eq!(read, json!({"a": "it's", "b": [1, -2.5, true, null], "c": {"d": "x'y\nあ"}, "e": false}));
    }

    #[test]
    fn what_is_cut_or_something_else_is_no_object() {
        for text in
            ["", "{'a': ", "{'a': 'b", "{'a': Timeout(5)}", "{'a': <object>}", "]", "{'a'}", "{'a': '\\u12'}"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
