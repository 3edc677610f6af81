//! Keys and their values in words: what may be written, what the default is.

use std::time::Duration;

use koboshi::wait::print_duration;

use super::{Key, Shape, Value};

impl Key {
    /// The default as the documentation says it.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.default_value() {
            None => String::new(),
            Some(Value::Off) if self.is_required() => "required".to_owned(),
            Some(Value::Off) if !self.may_be_off() => self.unset.to_owned(),
            Some(value) => format!("`{value}`"),
        }
    }

    /// A value of this key for people: what is not set is not `off` everywhere.
    pub(crate) fn say(&self, value: &Value) -> String {
        match value {
            Value::Off if self.is_required() => "none".to_owned(),
            Value::Off if !self.may_be_off() => self.unset.to_owned(),
            value => value.to_string(),
        }
    }

    /// What may be written, as the documentation says it.
    #[must_use]
    pub fn range_text(&self) -> String {
        let said = match &self.shape {
            Shape::Section { word: Some(stand) } => format!("keys, or `{}`", stand.word),
            Shape::Section { word: None } | Shape::Entry(_) => "keys".to_owned(),
            Shape::Length { range, .. } => range.to_string(),
            Shape::Seconds { range, .. } => {
                format!("{} to {} seconds", range.least.as_secs(), range.most.as_secs())
            }
            Shape::Count { range, .. } => range.to_string(),
            Shape::Choice { numbers, .. } => choices(numbers),
            Shape::Number { range, .. } => range.to_string(),
            Shape::Flag { words: false, .. } => "`true` or `false`".to_owned(),
            Shape::Flag { words: true, .. } => "`true` or `false`, or `on` or `off`".to_owned(),
            Shape::Word { words, .. } => either(words),
            Shape::Text { form, .. } | Shape::Secret { form, .. } => form.said.to_owned(),
            Shape::Texts { form, range, .. } | Shape::Secrets { form, range, .. } => {
                format!("a list of {range}, each {}", form.said)
            }
            Shape::Path { .. } => "a path".to_owned(),
            Shape::Paths { .. } => "a list of paths".to_owned(),
        };
        if self.may_be_off() { format!("{said}, or `off`") } else { said }
    }

    pub(crate) fn may_be_off(&self) -> bool {
        matches!(self.shape, Shape::Length { off: true, .. } | Shape::Count { off: true, .. })
    }
}

/// Numbers with "or" before the last.
pub(crate) fn choices(numbers: &[u64]) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    either(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The words with "or" before the last.
pub(crate) fn either(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// A length as it is written in the file: `1m30s`.
pub(crate) fn print_length(length: Duration) -> String {
    print_duration(length).replace(' ', "")
}
