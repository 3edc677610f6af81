//! What a translation could not carry over unchanged, with its line and the reason.

use crate::config::Language;
use crate::words::{Text, Words};

/// How far something was translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It has no counterpart and was left out.
    Left,
    /// It was translated, and does not mean quite the same.
    Changed,
    /// The user has to do something.
    Todo,
}

impl Level {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left => "not_translated",
            Self::Changed => "changed",
            Self::Todo => "to_do",
        }
    }
}

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Line of LiteLLM's file.
    pub line: u64,
    /// The key there.
    pub key: String,
    /// How far it was translated.
    pub level: Level,
    /// Why, or what to do.
    pub reason: Text,
}

impl Note {
    /// The note for people, without the name of the file.
    #[must_use]
    pub fn show(&self, language: Language) -> String {
        let reason = self.reason.get(language);
        match language {
            Language::En => format!("line {}: `{}`: {reason}", self.line, self.key),
            Language::Ja => format!("{} 行目: `{}`: {reason}", self.line, self.key),
        }
    }
}

/// Collects notes.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) list: Vec<Note>,
}

impl Notes {
    pub(super) fn add(&mut self, line: u64, key: &str, level: Level, reason: impl Into<Text>) {
        let note = Note { line, key: key.to_owned(), level, reason: reason.into() };
        if !self.list.contains(&note) {
            self.list.push(note);
        }
    }

    pub(super) fn left(&mut self, line: u64, key: &str, reason: Words) {
        self.add(line, key, Level::Left, reason);
    }

    /// In the order of the file.
    pub(super) fn sorted(mut self) -> Vec<Note> {
        self.list.sort_by_key(|note| (note.line, note.level));
        self.list
    }
}
