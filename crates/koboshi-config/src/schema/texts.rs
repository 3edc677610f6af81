//! Texts about keys and their values: the allowed values, the default.

use std::time::Duration;

use koboshi::wait::print_duration;

use super::{Key, Shape, Value};
use crate::config::Language;
use crate::words::{tr, words};

impl Key {
    /// The default in the documentation.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.default_value() {
            None => String::new(),
            Some(Value::Off) if self.is_required() => "required".to_owned(),
            Some(Value::Off) if !self.may_be_off() => self.unset.en.to_owned(),
            Some(value) => format!("`{value}`"),
        }
    }

    /// The default, where it is a value and no description.
    pub(crate) fn plain_default(&self) -> Option<Value> {
        self.default_value()
            .filter(|value| *value != Value::Off || self.may_be_off())
            .filter(|_| !self.is_required())
    }

    /// Whether it is a program with its arguments.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.name(), "command" | "token_command")
    }

    /// A value of this key for people: an unset key is not always `off`.
    pub(crate) fn say(&self, value: &Value, language: Language) -> String {
        match value {
            Value::Off if self.is_required() => words("none", "なし").get(language).to_owned(),
            Value::Off if !self.may_be_off() => self.unset.get(language).to_owned(),
            value => value.to_string(),
        }
    }

    /// The allowed values in the documentation.
    #[must_use]
    pub fn range_text(&self) -> String {
        self.range_in(Language::En)
    }

    /// The allowed values, in a language.
    #[must_use]
    pub fn range_in(&self, language: Language) -> String {
        let said = match &self.shape {
            Shape::Section { word: Some(stand), .. } => {
                tr!(language, "keys, or `{}`", "設定項目、または `{}`", stand.word)
            }
            Shape::Section { short: Some(short), .. } => match Self::named(self.path, short) {
                Some(short) => {
                    let said = short.range_in(language);
                    tr!(language, "keys, or {said}", "設定項目、または{said}")
                }
                None => words("keys", "設定項目").get(language).to_owned(),
            },
            Shape::Section { .. } | Shape::Entry(_) => words("keys", "設定項目").get(language).to_owned(),
            Shape::Length { range, .. } => range.say(language),
            Shape::Seconds { range, .. } => {
                let (min, max) = (range.min.as_secs(), range.max.as_secs());
                tr!(language, "{min} to {max} seconds", "{min} 以上 {max} 以下の秒数")
            }
            Shape::Count { range, .. } => range.say(language),
            Shape::Choice { numbers, .. } => choices(numbers, language),
            Shape::Number { range, .. } => range.say(language),
            Shape::Flag { words: false, .. } => either(&["true", "false"], language),
            Shape::Flag { words: true, .. } => tr!(
                language, "`true` or `false`, or `on` or `off`", "`true`、`false`、`on`、`off` のいずれか"
            ),
            Shape::Word { words, .. } => either(words, language),
            Shape::Text { form, .. } | Shape::Secret { form, .. } => {
                form.description.get(language).to_owned()
            }
            Shape::Texts { form, single: true, .. } => {
                let form = form.description.get(language);
                tr!(language, "{form}, or a list of them", "{form}、またはそのリスト")
            }
            Shape::Texts { form, range, .. } | Shape::Secrets { form, range, .. } => {
                let (range, form) = (range.say(language), form.description.get(language));
                tr!(language, "a list of {range}, each {form}", "要素数が {range}のリスト（各要素は{form}）")
            }
            Shape::Path { .. } => words("a path", "パス").get(language).to_owned(),
            Shape::Paths { .. } => words("a list of paths", "パスのリスト").get(language).to_owned(),
        };
        if self.may_be_off() { tr!(language, "{said}, or `off`", "{said}、または `off`") } else { said }
    }

    pub(crate) fn may_be_off(&self) -> bool {
        matches!(self.shape, Shape::Length { off: true, .. } | Shape::Count { off: true, .. })
    }
}

/// Numbers with "or" before the last.
pub(crate) fn choices(numbers: &[u64], language: Language) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    either(&texts.iter().map(String::as_str).collect::<Vec<_>>(), language)
}

/// The words with "or" before the last.
pub(crate) fn either(words: &[&str], language: Language) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match (quoted.split_last(), language) {
        (Some((last, rest)), Language::En) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        (Some((last, [one])), Language::Ja) => format!("{one} か {last}"),
        (Some((_, [_, ..])), Language::Ja) => format!("{} のいずれか", quoted.join("、")),
        _ => quoted.concat(),
    }
}

/// A length as it is written in the file: `1m30s`.
pub(crate) fn print_length(length: Duration) -> String {
    print_duration(length).replace(' ', "")
}
