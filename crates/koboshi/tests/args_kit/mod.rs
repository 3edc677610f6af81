//! A small JSON tree whose numbers are exact, to compare arguments by value: key order is ignored, integers of any size
//! and decimals are compared digit by digit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, dead_code, reason = "helpers of tests")]

use std::collections::BTreeMap;

/// A value that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exact {
    Null,
    Bool(bool),
    Number(bool, String, i64),
    Text(String),
    Array(Vec<Exact>),
    Object(BTreeMap<String, Exact>),
}

impl Exact {
    pub(crate) fn get(&self, key: &str) -> &Exact {
        match self {
            Self::Object(members) => members.get(key).unwrap_or(&Exact::Null),
            _ => &Exact::Null,
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }
}

/// Reads JSON that is known to be valid.
pub(crate) fn exact(json: &str) -> Exact {
    let (value, rest) = value(json.trim_start());
    assert!(rest.trim().is_empty(), "something follows: {rest:?}");
    value
}

fn value(json: &str) -> (Exact, &str) {
    match json.as_bytes()[0] {
        b'{' => {
            let mut members = BTreeMap::new();
            let mut rest = json[1..].trim_start();
            while !rest.starts_with('}') {
                let (key, after) = value(rest);
                let (member, after) = value(after.trim_start().strip_prefix(':').unwrap().trim_start());
                members.insert(key.text().to_owned(), member);
                rest = after.trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            (Exact::Object(members), &rest[1..])
        }
        b'[' => {
            let mut elements = Vec::new();
            let mut rest = json[1..].trim_start();
            while !rest.starts_with(']') {
                let (element, after) = value(rest);
                elements.push(element);
                rest = after.trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            }
            (Exact::Array(elements), &rest[1..])
        }
        b'"' => {
            let mut end = 1;
            while json.as_bytes()[end] != b'"' {
                end += if json.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            (Exact::Text(serde_json::from_str(&json[..=end]).unwrap()), &json[end + 1..])
        }
        b't' => (Exact::Bool(true), &json[4..]),
        b'f' => (Exact::Bool(false), &json[5..]),
        b'n' => (Exact::Null, &json[4..]),
        _ => {
            let end = json.find(|c: char| !"+-.eE0123456789".contains(c)).unwrap_or(json.len());
            (number(&json[..end]), &json[end..])
        }
    }
}

fn number(token: &str) -> Exact {
    let negative = token.starts_with('-');
    let rest = token.trim_start_matches('-');
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let kept = digits.trim_end_matches('0');
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX / 2) - fraction.len() as i64
        + (digits.len() - kept.len()) as i64;
    if kept.is_empty() {
        return Exact::Number(false, String::new(), 0);
    }
    Exact::Number(negative, kept.to_owned(), exponent)
}
