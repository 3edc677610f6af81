//! The rows of the table. They are applied from top to bottom: a preset comes before the keys that refine it, the maximum
//! cooldown before the cooldowns that must fit under it.

mod agents;
mod breaker;
mod build;
mod cooldowns;
mod forms;
mod guard;
mod models;
mod notify;
mod providers;
mod requests;
mod routes;
mod serve;
mod sessions;
mod spend;
mod store;

use std::sync::LazyLock;

use super::{Field, Form, Key, Shape};
use crate::config::Language;
use crate::words::words;
use build::{NONE, word};

/// Every key of the file, sections before their keys, in the order of the documentation.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    [
        serve::serve(),
        serve::keys(),
        spend::budgets(),
        serve::admin(),
        spend::spend(),
        providers::providers(),
        routes::routes(),
        models::models(),
        routes::tool_calls(),
        guard::keys(),
        routes::degrade(),
        sessions::keys(),
        requests::keys(),
        breaker::keys(),
        cooldowns::gate(),
        cooldowns::cooldown(),
        agents::agents(),
        store::keys(),
        serve::telling(),
        notify::keys(),
        top(),
    ]
    .into_iter()
    .flatten()
    .collect()
});

fn top() -> Vec<Key> {
    vec![
        Key {
            path: "rules",
            shape: Shape::Paths {
                field: Field {
                    get: |c, _| Some(c.rules.clone()),
                    set: |c, _, paths| c.rules = paths.unwrap_or_default(),
                },
            },
            meaning: "Your own rule files, in order (see rules.md)",
            unset: NONE,
        },
        word(
            "language",
            &["en", "ja"],
            Field {
                get: |c, _| c.language.map(Language::name),
                set: |c, _, name| {
                    c.language =
                        [Language::En, Language::Ja].into_iter().find(|one| Some(one.name()) == name);
                },
            },
            "Language of messages for people",
        )
        .unset("from the environment", "環境変数から"),
        Key {
            path: "code_prefix",
            shape: Shape::Text {
                form: Form {
                    description: words(
                        "1 to 16 letters and digits, a letter first", "英字で始まる英数字 1〜16 文字",
                    ),
                    pattern: "^[A-Za-z][A-Za-z0-9]{0,15}$",
                    holds: |text| {
                        text.starts_with(|c: char| c.is_ascii_alphabetic())
                            && text.len() <= 16
                            && text.chars().all(|c| c.is_ascii_alphanumeric())
                    },
                    hint: |_| None,
                },
                field: Field {
                    get: |c, _| Some(c.code_prefix.clone()),
                    set: |c, _, text| {
                        if let Some(text) = text {
                            c.code_prefix = text;
                        }
                    },
                },
            },
            meaning: "Prefix of error codes, as in `KBS-3001`",
            unset: NONE,
        },
    ]
}
