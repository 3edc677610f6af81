//! The one table of keys: what may be in the file, what it means, and where it goes.
//!
//! Everything that must agree with each other is read from this table: which keys there are, what their values look like,
//! which field of [`Config`] they set, their defaults, the JSON Schema for editors, the tables of `docs/config.md`
//! and what `koboshi check` says differs from the defaults. So there are no serde structs of the file: they
//! would be a second list, and serde stops at the first mistake.
//!
//! Ranges are the core's: the table repeats them so that an editor can show them, and a test asks each policy's
//! `validate()` whether it agrees. What depends on two keys at once is left to `validate()` alone.

mod json;
mod keys;
mod length;
mod range;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use koboshi::wait::print_duration;

use crate::config::Config;
use crate::secret::Secret;

pub use json::json_schema;
pub use keys::KEYS;
pub(crate) use length::parse_length;
pub use range::Range;

/// One key of the file.
#[derive(Debug)]
pub struct Key {
    /// Where it stands, such as `breaker.open.first`.
    pub path: &'static str,
    /// What its value looks like, and where it goes.
    pub shape: Shape,
    /// What it means, in one sentence without a full stop.
    pub meaning: &'static str,
}

/// A field of the config: how it is read and set. None is `off`, or not set at all.
pub struct Field<T> {
    /// Reads it.
    pub get: fn(&Config) -> Option<T>,
    /// Sets it.
    pub set: fn(&mut Config, Option<T>),
}

impl<T> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Field")
    }
}

/// A word that stands for a whole section.
#[derive(Debug, Clone, Copy)]
pub struct Stand {
    /// The word.
    pub word: &'static str,
    pub(crate) set: fn(&mut Config),
}

/// What a value looks like.
#[derive(Debug)]
pub enum Shape {
    /// Keys of its own, or one word in their place.
    Section {
        /// The word, if there is one.
        word: Option<Stand>,
    },
    /// A length of time with its unit.
    Length {
        /// From and to.
        range: Range<Duration>,
        /// Whether `off` may be written.
        off: bool,
        /// The field.
        field: Field<Duration>,
    },
    /// A length of time as a number of seconds, as the seed of `error_protection` writes it.
    Seconds {
        /// From and to.
        range: Range<Duration>,
        /// The field.
        field: Field<Duration>,
    },
    /// A whole number.
    Count {
        /// From and to.
        range: Range<u64>,
        /// Whether `off` may be written.
        off: bool,
        /// The field.
        field: Field<u64>,
    },
    /// A number.
    Number {
        /// From and to.
        range: Range<f64>,
        /// The field.
        field: Field<f64>,
    },
    /// `true` or `false`.
    Flag {
        /// The field.
        field: Field<bool>,
    },
    /// One of a few words.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// The field.
        field: Field<&'static str>,
    },
    /// Text, in which variables are filled in.
    Text {
        /// What it must look like.
        form: Form,
        /// The field.
        field: Field<String>,
    },
    /// Text that is never shown, in which variables are filled in.
    Secret {
        /// What it must look like.
        form: Form,
        /// The field.
        field: Field<Secret>,
    },
    /// A path, relative to the folder of the file; variables are filled in.
    Path {
        /// The field.
        field: Field<PathBuf>,
    },
    /// A list of paths, relative to the folder of the file; variables are filled in.
    Paths {
        /// The field.
        field: Field<Vec<PathBuf>>,
    },
}

/// What a text must look like.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// In words.
    pub said: &'static str,
    /// As a regular expression, for editors.
    pub pattern: &'static str,
    /// As code. A test holds it against the pattern.
    pub holds: fn(&str) -> bool,
    /// What to do about a text that is not of this form, where more can be said than what the form is. It must not
    /// repeat the text, which may be a secret.
    pub hint: fn(&str) -> Option<&'static str>,
}

/// A value of any shape.
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
    /// Text that is never shown.
    Secret(Secret),
    /// A path.
    Path(PathBuf),
    /// Paths.
    Paths(Vec<PathBuf>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Length(length) => f.write_str(&print_length(*length)),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => f.write_str(text),
            Self::Secret(secret) => write!(f, "{secret}"),
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Paths(paths) => {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                write!(f, "[{}]", paths.join(", "))
            }
        }
    }
}

/// A length as it is written in the file: `1m30s`.
pub(crate) fn print_length(length: Duration) -> String {
    print_duration(length).replace(' ', "")
}

impl Key {
    /// The key at a path.
    #[must_use]
    pub fn find(path: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.path == path)
    }

    /// The keys of a section; the empty path is the file itself.
    pub fn of_section(section: &str) -> impl Iterator<Item = &'static Self> {
        KEYS.iter().filter(move |key| key.section() == section)
    }

    /// The section that it belongs to; empty at the top of the file.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// The last part of its path.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }

    /// Whether it holds keys and no value.
    #[must_use]
    pub fn is_section(&self) -> bool {
        matches!(self.shape, Shape::Section { .. })
    }

    /// The value that a config has for it; none for a section.
    #[must_use]
    pub fn get(&self, config: &Config) -> Option<Value> {
        let value = match &self.shape {
            Shape::Section { .. } => return None,
            Shape::Length { field, .. } => (field.get)(config).map(Value::Length),
            Shape::Seconds { field, .. } => (field.get)(config).map(|length| Value::Count(length.as_secs())),
            Shape::Count { field, .. } => (field.get)(config).map(Value::Count),
            Shape::Number { field, .. } => (field.get)(config).map(Value::Number),
            Shape::Flag { field } => (field.get)(config).map(Value::Flag),
            Shape::Word { field, .. } => (field.get)(config).map(Value::Word),
            Shape::Text { field, .. } => (field.get)(config).map(Value::Text),
            Shape::Secret { field, .. } => (field.get)(config).map(Value::Secret),
            Shape::Path { field } => (field.get)(config).map(Value::Path),
            Shape::Paths { field } => (field.get)(config).map(Value::Paths),
        };
        Some(value.unwrap_or(Value::Off))
    }

    /// Gives a config this value; one of another shape changes nothing.
    pub fn set(&self, config: &mut Config, value: Value) {
        match (&self.shape, value) {
            (Shape::Section { word: Some(stand) }, Value::Word(_)) => (stand.set)(config),
            (Shape::Length { field, .. }, Value::Length(length)) => (field.set)(config, Some(length)),
            (Shape::Length { field, .. }, Value::Off) => (field.set)(config, None),
            (Shape::Seconds { field, .. }, Value::Count(count)) => {
                (field.set)(config, Some(Duration::from_secs(count)));
            }
            (Shape::Count { field, .. }, Value::Count(count)) => (field.set)(config, Some(count)),
            (Shape::Count { field, .. }, Value::Off) => (field.set)(config, None),
            (Shape::Number { field, .. }, Value::Number(number)) => (field.set)(config, Some(number)),
            (Shape::Flag { field }, Value::Flag(flag)) => (field.set)(config, Some(flag)),
            (Shape::Word { field, .. }, Value::Word(word)) => (field.set)(config, Some(word)),
            (Shape::Text { field, .. }, Value::Text(text)) => (field.set)(config, Some(text)),
            (Shape::Secret { field, .. }, Value::Secret(secret)) => (field.set)(config, Some(secret)),
            (Shape::Path { field }, Value::Path(path)) => (field.set)(config, Some(path)),
            (Shape::Paths { field }, Value::Paths(paths)) => (field.set)(config, Some(paths)),
            _ => {}
        }
    }

    /// The default as the documentation says it.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.get(&Config::default()) {
            None => String::new(),
            Some(Value::Off) if !self.may_be_off() => self.say(&Value::Off),
            Some(value) => format!("`{value}`"),
        }
    }

    /// A value of this key for people: what is not set is not `off` everywhere.
    fn say(&self, value: &Value) -> String {
        match value {
            Value::Off if self.path == "language" => "from the environment".to_owned(),
            Value::Off if !self.may_be_off() => "none".to_owned(),
            value => value.to_string(),
        }
    }

    /// What may be written, as the documentation says it.
    #[must_use]
    pub fn range_text(&self) -> String {
        let said = match &self.shape {
            Shape::Section { word: Some(stand) } => format!("keys, or `{}`", stand.word),
            Shape::Section { word: None } => "keys".to_owned(),
            Shape::Length { range, .. } => range.to_string(),
            Shape::Seconds { range, .. } => {
                format!("{} to {} seconds", range.least.as_secs(), range.most.as_secs())
            }
            Shape::Count { range, .. } => range.to_string(),
            Shape::Number { range, .. } => range.to_string(),
            Shape::Flag { .. } => "`true` or `false`".to_owned(),
            Shape::Word { words, .. } => either(words),
            Shape::Text { form, .. } | Shape::Secret { form, .. } => form.said.to_owned(),
            Shape::Path { .. } => "a path".to_owned(),
            Shape::Paths { .. } => "a list of paths".to_owned(),
        };
        if self.may_be_off() { format!("{said}, or `off`") } else { said }
    }

    fn may_be_off(&self) -> bool {
        matches!(self.shape, Shape::Length { off: true, .. } | Shape::Count { off: true, .. })
    }
}

/// The words with "or" before the last.
pub(crate) fn either(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Keys that set the same thing and must not both be set, with what they set.
pub(crate) const EXCLUSIVE: &[(&str, &str, &str)] = &[
    ("breaker.window.calls", "breaker.window.time", "what the window looks back on"),
    ("store.path", "store.redis", "where the store is"),
    ("error_protection.default_cooldown_seconds", "cooldown.error.base", "the first rest after an error"),
    ("error_protection.max_cooldown_seconds", "cooldown.error.cap", LONGEST_REST),
    ("error_protection.max_cooldown_seconds", "cooldown.network.cap", LONGEST_REST),
    ("error_protection.max_cooldown_seconds", "cooldown.overloaded.cap", LONGEST_REST),
    ("error_protection.max_cooldown_seconds", "cooldown.rate_limit.cap", LONGEST_REST),
    ("error_protection.max_cooldown_seconds", "cooldown.quota.cap", LONGEST_REST),
];
const LONGEST_REST: &str = "the longest rest of our own choice";

/// One value that differs from its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key.
    pub path: &'static str,
    /// The value, for people; a secret shows itself to nobody.
    pub value: String,
    /// The default, for people.
    pub default: String,
}

/// What a config has that the defaults have not, in the order of the table. What two keys can set is said once, and of a
/// preset that was refined only the refined keys are said.
#[must_use]
pub fn differences(config: &Config) -> Vec<Difference> {
    let defaults = Config::default();
    KEYS.iter()
        .filter(|key| !key.path.ends_with("_cooldown_seconds"))
        .filter_map(|key| {
            let (value, default) = (key.get(config)?, key.get(&defaults)?);
            let refined = key.name() == "preset" && value == Value::Off;
            (value != default && !refined).then(|| Difference {
                path: key.path,
                value: key.say(&value),
                default: key.say(&default),
            })
        })
        .collect()
}
