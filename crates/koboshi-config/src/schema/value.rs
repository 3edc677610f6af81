//! Values of any type: how they are set in a config, read from it, and printed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{Key, Shape, print_length};
use crate::config::Config;
use crate::secret::Secret;

/// A value of any type.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Off, or not set.
    Off,
    /// A length of time.
    Length(Duration),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// One of a few words.
    Word(&'static str),
    /// Text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Text that is never shown.
    Secret(Secret),
    /// Texts that are never shown.
    Secrets(Vec<Secret>),
    /// A path.
    Path(PathBuf),
    /// Paths.
    Paths(Vec<PathBuf>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: Vec<String>| write!(f, "[{}]", parts.join(", "));
        match self {
            Self::Off => f.write_str("off"),
            Self::Length(length) => f.write_str(&print_length(*length)),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => f.write_str(text),
            Self::Texts(texts) => list(f, texts.clone()),
            Self::Secret(secret) => write!(f, "{secret}"),
            Self::Secrets(secrets) => list(f, secrets.iter().map(ToString::to_string).collect()),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Paths(paths) => list(f, paths.iter().map(|path| path.display().to_string()).collect()),
        }
    }
}

impl Key {
    /// Its value in a config, in the entry of this name; none for a section.
    #[must_use]
    pub fn get(&self, config: &Config, entry: &str) -> Option<Value> {
        let value = match &self.shape {
            Shape::Section { .. } | Shape::Entry(_) => return None,
            Shape::Length { field, .. } => (field.get)(config, entry).map(Value::Length),
            Shape::Seconds { field, .. } => {
                (field.get)(config, entry).map(|length| Value::Count(length.as_secs()))
            }
            Shape::Count { field, .. } | Shape::Choice { field, .. } => {
                (field.get)(config, entry).map(Value::Count)
            }
            Shape::Number { field, .. } => (field.get)(config, entry).map(Value::Number),
            Shape::Flag { field, .. } => (field.get)(config, entry).map(Value::Flag),
            Shape::Word { field, .. } => (field.get)(config, entry).map(Value::Word),
            Shape::Text { field, .. } => (field.get)(config, entry).map(Value::Text),
            Shape::Texts { field, .. } => (field.get)(config, entry).map(Value::Texts),
            Shape::Secret { field, .. } => (field.get)(config, entry).map(Value::Secret),
            Shape::Secrets { field, .. } => (field.get)(config, entry).map(Value::Secrets),
            Shape::Path { field } => (field.get)(config, entry).map(Value::Path),
            Shape::Paths { field } => (field.get)(config, entry).map(Value::Paths),
        };
        Some(value.unwrap_or(Value::Off))
    }

    /// Sets its value in a config, in the entry of this name; a value of another type changes nothing.
    pub fn set(&self, config: &mut Config, entry: &str, value: Value) {
        match (&self.shape, value) {
            (Shape::Section { word: Some(stand), .. }, Value::Word(_)) => (stand.set)(config, entry),
            (Shape::Length { field, .. }, Value::Length(length)) => (field.set)(config, entry, Some(length)),
            (Shape::Length { field, .. }, Value::Off) => (field.set)(config, entry, None),
            (Shape::Seconds { field, .. }, Value::Count(count)) => {
                (field.set)(config, entry, Some(Duration::from_secs(count)));
            }
            (Shape::Count { field, .. } | Shape::Choice { field, .. }, Value::Count(count)) => {
                (field.set)(config, entry, Some(count));
            }
            (Shape::Count { field, .. }, Value::Off) => (field.set)(config, entry, None),
            (Shape::Number { field, .. }, Value::Number(number)) => (field.set)(config, entry, Some(number)),
            (Shape::Flag { field, .. }, Value::Flag(flag)) => (field.set)(config, entry, Some(flag)),
            (Shape::Word { field, .. }, Value::Word(word)) => (field.set)(config, entry, Some(word)),
            (Shape::Text { field, .. }, Value::Text(text)) => (field.set)(config, entry, Some(text)),
            (Shape::Texts { field, .. }, Value::Texts(texts)) => (field.set)(config, entry, Some(texts)),
            (Shape::Secret { field, .. }, Value::Secret(secret)) => (field.set)(config, entry, Some(secret)),
            (Shape::Secrets { field, .. }, Value::Secrets(secrets)) => {
                (field.set)(config, entry, Some(secrets));
            }
            (Shape::Path { field }, Value::Path(path)) => (field.set)(config, entry, Some(path)),
            (Shape::Paths { field }, Value::Paths(paths)) => (field.set)(config, entry, Some(paths)),
            _ => {}
        }
    }

    /// Its value when the file does not set it; for a key of an entry, that of an empty entry.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        let mut config = Config::default();
        if let Some(entries) = self.entries() {
            (entries.add)(&mut config, "");
        }
        if self.is_required() { Some(Value::Off) } else { self.get(&config, "") }
    }
}
