//! Rule files: what the classifiers know, as data.
//!
//! A rule file is YAML with these parts, all optional:
//!
//! ```yaml
//! concepts:                      # words that mean the same thing; adding to a built-in name extends it
//!   per_day: ["per day", "daily", "rpd"]
//! provider:                      # what a provider's error means; the first rule that holds decides
//!   - id: quota.day
//!     kind: quota_exceeded       # a kind of the fault table
//!     sub: day
//!     status: 429 | 4xx          # optional: only with these statuses (`none`: without one)
//!     when:                      # every line must hold; a line holds if one of its terms occurs
//!       - "@per_day"
//!       - limit | quota
//!     unless: ["@per_minute"]    # none of these lines may hold
//! finish: []                     # what the finish reason of a complete answer means
//! process: []                    # why an agent process itself ended
//! tool:                          # what a tool's output reports
//!   - id: tool.licence
//!     category: licence          # a new category brings its own text
//!     when: [licence server]
//!     message: {en: "No licence was free.", ja: "空きライセンスがありませんでした。"}
//!     suggestion: {en: "Ask for a seat.", ja: "ライセンスの追加を依頼してください。"}
//! mute: [quota.plan]             # built-in rules to leave out
//! ```
//!
//! Terms are written in plain form (lower case, words separated by one space) and match whole words;
//! `exceed*` also matches `exceeded`, `@name` is a concept, `#name` a fact about the input, `/…/` a regular
//! expression over the plain text. `code:` is like `when:`, but looks only at identifiers (codes, types,
//! reasons), not at sentences.
//!
//! This module reads a file into plain data and says exactly where it is wrong. Compiling it is
//! [`ruleset`](super::ruleset)'s job.

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

/// A rule file that cannot be used, and where it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct RuleError {
    /// Name of the file, as given by the caller.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The same in Japanese.
    pub message_ja: String,
}

/// A rule file by name and text. Reading it from disk is the caller's job.
#[derive(Debug, Clone, Copy)]
pub struct RuleSource<'a> {
    /// Name for error messages.
    pub name: &'a str,
    /// The YAML text.
    pub text: &'a str,
}

pub(crate) type Line = Spanned<String>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    #[serde(default)]
    pub(crate) concepts: std::collections::BTreeMap<String, Vec<Line>>,
    #[serde(default)]
    pub(crate) provider: Vec<FaultRule>,
    #[serde(default)]
    pub(crate) finish: Vec<FaultRule>,
    #[serde(default)]
    pub(crate) process: Vec<FaultRule>,
    #[serde(default)]
    pub(crate) tool: Vec<ToolRule>,
    #[serde(default)]
    pub(crate) mute: Vec<Line>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultRule {
    pub(crate) id: Line,
    pub(crate) kind: Line,
    #[serde(default)]
    pub(crate) sub: Option<Line>,
    #[serde(default)]
    pub(crate) status: Option<Line>,
    #[serde(default)]
    pub(crate) when: Vec<Line>,
    #[serde(default)]
    pub(crate) code: Vec<Line>,
    #[serde(default)]
    pub(crate) unless: Vec<Line>,
    #[serde(default)]
    pub(crate) scope: Option<Line>,
    #[serde(default)]
    pub(crate) origin: Option<Line>,
    #[serde(default)]
    pub(crate) confidence: Option<Line>,
    #[serde(default)]
    pub(crate) same: Option<bool>,
    #[serde(default)]
    pub(crate) other: Option<bool>,
    #[serde(default)]
    pub(crate) later: Option<bool>,
    #[serde(default)]
    pub(crate) health: Option<bool>,
    /// Why the rule is as it is; not read by the program.
    #[serde(default, rename = "why")]
    pub(crate) _why: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolRule {
    pub(crate) id: Line,
    pub(crate) category: Line,
    /// May the same call be made again as it is?
    #[serde(default)]
    pub(crate) same: Option<bool>,
    /// In a short output without an error flag, this rule is enough to show that the call failed.
    #[serde(default)]
    pub(crate) alone: bool,
    #[serde(default)]
    pub(crate) when: Vec<Line>,
    #[serde(default)]
    pub(crate) unless: Vec<Line>,
    #[serde(default)]
    pub(crate) message: Option<Texts>,
    #[serde(default)]
    pub(crate) suggestion: Option<Texts>,
    /// Why the rule is as it is; not read by the program.
    #[serde(default, rename = "why")]
    pub(crate) _why: Option<String>,
}

/// A text in the languages that Koboshi speaks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// English.
    pub en: String,
    /// Japanese.
    pub ja: String,
}

/// Reads a rule file.
pub(crate) fn read(source: RuleSource<'_>) -> Result<RuleFile, RuleError> {
    if source.text.trim().is_empty() {
        return Ok(RuleFile::default());
    }
    serde_saphyr::from_str(source.text).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let text = first_line(&error.without_snippet().to_string());
        // The message names the place as well, and the place is shown beside it: the text is cut before it.
        let bare = text.rfind(" at line ").and_then(|end| text.get(..end)).unwrap_or(&text);
        let ja = format!("ルールファイルとして読み取れません（{bare}）");
        error_at(source.name, location, text, ja)
    })
}

pub(crate) fn error_at(
    file: &str,
    location: Location,
    message: impl Into<String>,
    message_ja: impl Into<String>,
) -> RuleError {
    RuleError {
        file: file.to_owned(),
        line: location.line(),
        column: location.column(),
        message: message.into(),
        message_ja: message_ja.into(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// A name that looks like `wrong`, for "did you mean".
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edit distance. Names are short, so the plain table is fast enough.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, cb) in row.iter_mut().skip(1).zip(&b) {
            let cost = usize::from(ca != *cb);
            let best = (diagonal + cost).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> RuleError {
        read(RuleSource { name: "my.yaml", text }).unwrap_err()
    }

    #[test]
    fn an_empty_file_is_fine() {
        assert!(read(RuleSource { name: "x", text: " \n" }).unwrap().provider.is_empty());
    }

    #[test]
    fn an_unknown_key_names_its_place() {
        let error = failure("provider:\n  - id: a\n    kind: timeout\n    wehn: [x]\n");
        assert_eq!((error.file.as_str(), error.line), ("my.yaml", 4));
        assert!(error.message.contains("wehn"), "{error}");
    }

    #[test]
    fn broken_yaml_names_its_place() {
        let error = failure("provider:\n  - id: [a\n");
        assert!(error.line >= 2, "{error}");
    }

    #[test]
    fn a_near_name_is_suggested() {
        assert_eq!(
            nearest("quota_exeeded", ["timeout", "quota_exceeded"].into_iter()),
            Some("quota_exceeded")
        );
        assert_eq!(nearest("zzz", ["timeout"].into_iter()), None);
    }
}
