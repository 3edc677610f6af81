//! The differences of a config from the defaults.

use super::{KEYS, Key, Placeholder, Shape, Value};
use crate::arguments;
use crate::config::{Config, Language};
use crate::source::{printable, safe};

/// One value that differs from its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key, with the name of its entry in it.
    pub path: String,
    /// The value, for people; secrets are masked.
    pub value: String,
    /// The default, for people.
    pub default: String,
}

/// The differences of a config from the defaults, in the order of the table, entry by entry. What two keys can set is listed
/// once, and of a refined preset only the refined keys are listed.
#[must_use]
pub fn differences(config: &Config) -> Vec<Difference> {
    differences_in(config, Language::En)
}

/// The same, in a language.
#[must_use]
pub fn differences_in(config: &Config, language: Language) -> Vec<Difference> {
    let plain = |key: &&Key| key.entries().is_none() && !key.path.ends_with("_cooldown_seconds");
    let mut found = Vec::new();
    for key in KEYS.iter() {
        match &key.shape {
            Shape::Entry(entries) => {
                for name in (entries.names)(config) {
                    let of_entry = |one: &&Key| {
                        one.path.strip_prefix(key.path).is_some_and(|rest| rest.starts_with('.'))
                    };
                    found.extend(
                        KEYS.iter().filter(of_entry).filter_map(|key| of_key(key, config, &name, language)),
                    );
                }
            }
            Shape::Section { word: Some(stand), .. } if key.entries().is_none() => {
                found.extend(of_word(key, stand, config, language));
            }
            _ => found.extend(Some(key).filter(plain).and_then(|key| of_key(key, config, "", language))),
        }
    }
    found
}

/// A word in place of a section. The config does not record it; it was probably used if setting it would not change this config, but would
/// change the defaults.
fn of_word(key: &Key, stand: &Placeholder, config: &Config, language: Language) -> Option<Difference> {
    let changes = |config: &Config| {
        let mut with_word = config.clone();
        (stand.set)(&mut with_word, "");
        with_word != *config
    };
    let (word, default) = (stand.word.to_owned(), key.say(&Value::Off, language));
    (!changes(config) && changes(&Config::default())).then(|| Difference {
        path: key.path.to_owned(),
        value: word,
        default,
    })
}

fn of_key(key: &Key, config: &Config, entry: &str, language: Language) -> Option<Difference> {
    let (mut value, default) = (key.get(config, entry)?, key.default_value()?);
    if let (true, Value::Texts(words)) = (key.is_command(), &mut value) {
        *words = arguments::shown(words);
    }
    let refined = key.name() == "preset" && value == Value::Off;
    (value != default && !refined).then(|| Difference {
        path: key.path_in(&safe(entry)),
        value: safe(&printable(&key.say(&value, language))),
        default: key.say(&default, language),
    })
}
