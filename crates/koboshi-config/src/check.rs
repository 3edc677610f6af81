//! What is wrong with a config, in a form for people and one for programs.
//!
//! A [`Problem`] names its place, shows the line with the wrong part underlined, says what is wrong and what would be
//! right, in English and in Japanese. [`Problems`] holds all of them in the order of the file: a user who fixes a file wants to see
//! everything at once. A warning is a problem of a file that can be used all the same, such as an old name of a key.
//!
//! What is shown is safe to paste: see the module `source` for how a line or a value gets here.

use std::fmt;

use crate::config::Language;
use crate::source::ShownLine;
use crate::words::Text;

/// Further problems are only counted: a longer list helps no reader.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// Line and column, both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column.
    pub column: u64,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as the caller named it.
    pub file: String,
    /// Where in the file; none when the file as a whole is meant.
    pub place: Option<Place>,
    /// The key, such as `breaker.open.initial`; empty when no key is meant.
    pub path: String,
    /// What is wrong.
    pub message: Text,
    /// What would be right.
    pub hint: Option<Text>,
    pub(crate) shown: Option<ShownLine>,
}

impl Problem {
    /// A problem of a file as a whole.
    pub(crate) fn of_file(file: &str, message: impl Into<Text>, hint: Option<Text>) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            path: String::new(),
            message: message.into(),
            hint,
            shown: None,
        }
    }

    /// The whole of it for people, in a language.
    #[must_use]
    pub fn show(&self, language: Language) -> String {
        let mut out = self.file.clone();
        if let Some(place) = self.place {
            out.push_str(&format!(":{}:{}", place.line, place.column));
        }
        out.push_str(&format!(": {}", self.message.get(language)));
        if let (Some(place), Some(shown)) = (self.place, &self.shown) {
            let number = place.line.to_string();
            let gap = " ".repeat(number.len());
            out.push_str(&format!("\n  {gap} |\n  {number} | {}", shown.line));
            if let Some((before, marks)) = &shown.marks {
                out.push_str(&format!("\n  {gap} | {before}{marks}"));
            }
        }
        if let Some(hint) = &self.hint {
            out.push_str(&hint_line(hint, language));
        }
        out
    }
}

/// What would be right, below what is wrong.
#[must_use]
pub fn hint_line(hint: &Text, language: Language) -> String {
    let label = match language {
        Language::En => "hint",
        Language::Ja => "ヒント",
    };
    format!("\n  {label}: {}", hint.get(language))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show(Language::En))
    }
}

/// Everything that is wrong, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    warnings: Vec<Problem>,
    left_out: usize,
    unreadable: bool,
    language: Option<Language>,
}

impl Problems {
    /// Sorts them by place; those of the first one's file come first.
    pub(crate) fn new(list: Vec<Problem>) -> Self {
        Self::with_more(list, 0)
    }

    /// The same with further ones that were only counted.
    pub(crate) fn with_more(mut list: Vec<Problem>, more: usize) -> Self {
        let first = list.first().map(|problem| problem.file.clone()).unwrap_or_default();
        list.sort_by_key(|problem| (problem.file != first, problem.place));
        let left_out = list.len().saturating_sub(MAX_PROBLEMS).saturating_add(more);
        list.truncate(MAX_PROBLEMS);
        Self { list, warnings: Vec::new(), left_out, unreadable: false, language: None }
    }

    /// The same with these warnings.
    pub(crate) fn beside(self, warnings: Vec<Problem>) -> Self {
        Self { warnings, ..self }
    }

    /// The same for a file that names this language.
    pub(crate) fn in_language(self, language: Option<Language>) -> Self {
        Self { language, ..self }
    }

    /// The language that the file names, where that could be read: its problems are shown in it.
    #[must_use]
    pub fn language(&self) -> Option<Language> {
        self.language
    }

    /// The file could not be read at all.
    pub(crate) fn unreadable(problem: Problem) -> Self {
        Self { list: vec![problem], warnings: Vec::new(), left_out: 0, unreadable: true, language: None }
    }

    /// The problems, first of the file first.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// What should be changed, although the file can be used.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// How many problems there are, without the warnings.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len() + self.left_out
    }

    /// How many there are beyond those that are listed.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The file could not be read, so nothing is known about what is in it.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// All of them for people, in a language.
    #[must_use]
    pub fn show(&self, language: Language) -> String {
        let mut parts: Vec<String> = self.list.iter().map(|problem| problem.show(language)).collect();
        if self.left_out > 0 {
            parts.push(match language {
                Language::En => format!("and {} more", self.left_out),
                Language::Ja => format!("ほか {} 件", self.left_out),
            });
        }
        parts.join("\n\n")
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show(Language::En))
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    #[test]
    fn many_problems_are_counted_and_not_kept() {
        let problems = Problems::new(vec![Problem::of_file("a", words("x", "y"), None); 250]);
        assert_eq!((problems.iter().count(), problems.count()), (100, 250));
        assert!(problems.to_string().ends_with("and 150 more"));
        assert!(problems.show(Language::Ja).ends_with("a: y\n\nほか 150 件"));
    }
}
