//! The one table of keys: which keys the file may have, what they mean, and which field they set.
//!
//! Everything that must agree is derived from this table: the keys, the form of their values,
//! the fields of [`Config`] that they set, their defaults, the JSON Schema for editors, the tables of `docs/config.md`
//! and the differences that `koboshi check` lists. So there are no serde structs of the file: they
//! would be a second list, and serde stops at the first mistake.
//!
//! Some sections have entries under names of the user's choice. Their row ends in `*` (`providers.*`), and so do the paths
//! of their keys (`providers.*.base_url`); at most one `*` is in a path. Callers that read or set such a key pass
//! the name too; for all other keys the name is empty.
//!
//! Ranges are the core's: the table repeats them so that an editor can show them, and a test compares them with each policy's
//! `validate()`. What depends on two keys at once is left to `validate()` alone.

mod differ;
mod effect;
mod json;
mod keys;
mod length;
mod range;
mod renamed;
mod texts;
mod value;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;
use crate::secret::Secret;
use crate::words::{Words, words};

pub use differ::{Difference, differences, differences_in};
pub use effect::in_effect;
pub use json::json_schema;
pub use keys::KEYS;
pub(crate) use length::parse_length;
pub use range::Range;
pub(crate) use texts::{either, print_length};
pub use value::Value;

/// One key of the file.
#[derive(Debug)]
pub struct Key {
    /// Its path, such as `breaker.open.initial`; `*` stands for a name of the user's choice.
    pub path: &'static str,
    /// The type of its value, and the field that it sets.
    pub shape: Shape,
    /// What it means, in one sentence without a full stop.
    pub meaning: &'static str,
    /// A few words for an unset key without a default value.
    pub unset: Words,
}

/// A field of the config: how it is read and set, with the name of the entry. None is `off`, or unset.
pub struct Field<T> {
    /// Reads it.
    pub get: fn(&Config, &str) -> Option<T>,
    /// Sets it. A missing entry is not added.
    pub set: fn(&mut Config, &str, Option<T>),
}

impl<T> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Field")
    }
}

/// A word in place of a whole section.
#[derive(Debug, Clone, Copy)]
pub struct Placeholder {
    /// The word.
    pub word: &'static str,
    pub(crate) set: fn(&mut Config, &str),
}

/// Entries of a section under names of the user's choice.
#[derive(Debug, Clone, Copy)]
pub struct Entries {
    /// The form of a name.
    pub name: Form,
    /// Keys that every entry must have.
    pub required: &'static [&'static str],
    /// The key whose value may replace the whole entry; it is a list.
    pub short: Option<&'static str>,
    pub(crate) names: fn(&Config) -> Vec<String>,
    pub(crate) add: fn(&mut Config, &str),
}

/// The maximum number of entries in a section.
pub const MAX_ENTRIES: usize = 1000;

/// The type of a value.
#[derive(Debug)]
pub enum Shape {
    /// Keys of its own, or something in their place.
    Section {
        /// A word in their place, if there is one.
        word: Option<Placeholder>,
        /// The key whose value may be written in their place; it holds a text.
        short: Option<&'static str>,
    },
    /// Keys of its own, under a name of the user's choice.
    Entry(Entries),
    /// A length of time with its unit.
    Length {
        /// From and to.
        range: Range<Duration>,
        /// Whether `off` may be written.
        off: bool,
        /// The field.
        field: Field<Duration>,
    },
    /// A length of time as a number of seconds, as `error_protection` has it.
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
    /// One of a few whole numbers.
    Choice {
        /// The numbers.
        numbers: &'static [u64],
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
        /// Whether the words `on` and `off` may be written too.
        words: bool,
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
    /// A list of texts, in which variables are filled in.
    Texts {
        /// What each must look like.
        form: Form,
        /// How many.
        range: Range<u64>,
        /// Whether one of them may be written without a list.
        single: bool,
        /// The field.
        field: Field<Vec<String>>,
    },
    /// Text that is never shown, in which variables are filled in.
    Secret {
        /// What it must look like.
        form: Form,
        /// The field.
        field: Field<Secret>,
    },
    /// A list of texts that are never shown, in which variables are filled in.
    Secrets {
        /// What each must look like.
        form: Form,
        /// How many.
        range: Range<u64>,
        /// The field.
        field: Field<Vec<Secret>>,
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

/// The form of a text.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// In words.
    pub description: Words,
    /// As a regular expression, for editors.
    pub pattern: &'static str,
    /// As code. A test compares it with the pattern.
    pub holds: fn(&str) -> bool,
    /// A hint for a text without this form, where there is more to say than the form itself. It must not
    /// repeat the text, which may be a secret.
    pub hint: fn(&str) -> Option<Words>,
}

impl Key {
    /// The key at a path of the table.
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

    /// Its path with the name of an entry in it.
    #[must_use]
    pub fn path_in(&self, entry: &str) -> String {
        self.path.replacen('*', entry, 1)
    }

    /// Whether it holds keys and no value.
    #[must_use]
    pub fn is_section(&self) -> bool {
        matches!(self.shape, Shape::Section { .. } | Shape::Entry(_))
    }

    /// The entries that it is a key of, or that it is the row of.
    #[must_use]
    pub fn entries(&self) -> Option<&'static Entries> {
        let (before, _) = self.path.split_once('*')?;
        KEYS.iter().find_map(|key| match &key.shape {
            Shape::Entry(entries) if key.path.strip_suffix('*') == Some(before) => Some(entries),
            _ => None,
        })
    }

    /// Whether every entry must have it.
    #[must_use]
    pub fn is_required(&self) -> bool {
        match Self::find(self.section()).map(|section| &section.shape) {
            Some(Shape::Entry(entries)) => entries.required.contains(&self.name()),
            _ => false,
        }
    }
}

/// Keys that set the same thing and must not both be set, with what they set.
pub(crate) const EXCLUSIVE: &[(&str, &str, Words)] = &[
    ("breaker.window.calls", "breaker.window.time", words("what the window counts", "集計する範囲")),
    ("store.path", "store.redis", words("where the store is", "ストアの場所")),
    (
        "error_protection.default_cooldown_seconds",
        "cooldown.error.initial",
        words("the first cooldown after an error", "エラー後の最初のクールダウン"),
    ),
    ("error_protection.max_cooldown_seconds", "cooldown.error.max", MAX_COOLDOWN),
    ("error_protection.max_cooldown_seconds", "cooldown.network.max", MAX_COOLDOWN),
    ("error_protection.max_cooldown_seconds", "cooldown.overloaded.max", MAX_COOLDOWN),
    ("error_protection.max_cooldown_seconds", "cooldown.rate_limit.max", MAX_COOLDOWN),
    ("error_protection.max_cooldown_seconds", "cooldown.quota.max", MAX_COOLDOWN),
];
const MAX_COOLDOWN: Words = words("the maximum cooldown", "クールダウンの上限");
