//! Rules compiled into tables that decide in microseconds.
//!
//! Each table keeps its order: the first rule that holds decides. A rule asks for a status, for clauses of
//! the [`Lexicon`], and for facts about the input that no word shows. How files become tables is
//! [`build`](super::build)'s job.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::build::Builder;
use super::lexicon::{Bits, Clause, Lexicon};
use super::rulefile::{self, RuleError, RuleSource, Texts};
use crate::fault::{Confidence, Fault, Kind, Origin, Scope, Sub};

/// Facts about an input that rules may ask for with `#name`.
macro_rules! facts {
    ($($variant:ident = $name:literal, $meaning:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fact { $(#[doc = $meaning] $variant,)+ }

        impl Fact {
            pub(super) const NAMES: &[&str] = &[$($name,)+];

            pub(crate) fn clause(self) -> Clause {
                self as Clause
            }
        }
    };
}

facts! {
    Transport = "transport", "No answer came: the text is the HTTP client's own error.";
    InBand = "in_band", "The error came inside an answer with a good status.";
    Page = "page", "The answer is a web page.";
    Wait = "wait", "A wait is stated.";
    LongWait = "long_wait", "A wait of more than an hour is stated.";
    Log = "log", "The text is from an agent's log, not from an answer.";
    ToolOpen = "tool_open", "A tool call in the answer cannot be parsed.";
    EndsInCall = "ends_in_call", "The last part of the answer is a tool call.";
    NoContent = "no_content", "The answer holds neither text nor a tool call.";
}

/// What a rule of the fault tables concludes.
#[derive(Debug, Clone)]
pub(crate) struct Conclusion {
    pub(crate) kind: Kind,
    pub(super) sub: Option<Sub>,
    pub(super) scope: Option<Scope>,
    pub(super) origin: Option<Origin>,
    pub(super) confidence: Confidence,
    pub(super) same: Option<bool>,
    pub(super) other: Option<bool>,
    pub(super) later: Option<bool>,
    pub(super) health: Option<bool>,
}

/// What a rule of the tool table concludes.
#[derive(Debug, Clone)]
pub(crate) struct ToolConclusion {
    pub(crate) category: Arc<str>,
    /// Whether the same call may be made again, where the rule differs from its category.
    pub(crate) same: Option<bool>,
    /// Enough to show a failure in a short output without an error flag.
    pub(crate) alone: bool,
}

/// A rule, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Rule<T> {
    pub(crate) id: Arc<str>,
    pub(super) status: Option<Vec<(u16, u16)>>,
    pub(super) when: Vec<Clause>,
    pub(super) code: Vec<Clause>,
    pub(super) unless: Vec<Clause>,
    /// Some clause of it has a regular expression.
    pub(super) has_patterns: bool,
    pub(crate) then: T,
}

/// What was seen in one input.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Observation<'t> {
    pub(crate) status: Option<u16>,
    /// The plain text, for regular expressions.
    pub(crate) text: &'t str,
    /// Clauses that hold anywhere.
    pub(crate) all: Bits,
    /// Clauses that hold in identifiers.
    pub(crate) code: Bits,
}

impl Observation<'_> {
    pub(crate) fn fact(&mut self, fact: Fact) {
        self.all.set(fact.clause());
    }
}

impl<T> Rule<T> {
    pub(super) fn note_patterns(&mut self, lexicon: &Lexicon) {
        self.has_patterns = self.when.iter().chain(&self.unless).any(|clause| lexicon.has_pattern(*clause));
    }

    fn holds(&self, seen: &Observation<'_>, lexicon: &Lexicon) -> bool {
        let has = |clause: &Clause| {
            seen.all.has(*clause) || (self.has_patterns && lexicon.matches(*clause, seen.text))
        };
        // Statuses and words first: regular expressions are asked last.
        self.code.iter().all(|clause| seen.code.has(*clause))
            && self.status.as_ref().is_none_or(|ranges| {
                let status = seen.status.unwrap_or(NO_STATUS);
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&status))
            })
            && self.when.iter().all(has)
            && !self.unless.iter().any(has)
    }
}

/// Stands for a missing status in the ranges of a rule.
pub(super) const NO_STATUS: u16 = 0;

/// Texts of a category that a user added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCategory {
    /// What happened.
    pub message: Texts,
    /// What to do.
    pub suggestion: Texts,
}

/// All rules, compiled once. The default is a set without any rule, by which only statuses and shapes are read.
#[derive(Debug, Default)]
pub struct Rules {
    pub(crate) lexicon: Lexicon,
    pub(super) concepts: HashMap<String, Clause>,
    pub(crate) provider: Vec<Rule<Conclusion>>,
    pub(crate) finish: Vec<Rule<Conclusion>>,
    pub(crate) process: Vec<Rule<Conclusion>>,
    pub(crate) tool: Vec<Rule<ToolConclusion>>,
    pub(super) own_categories: BTreeMap<Arc<str>, OwnCategory>,
}

const BUILTIN: &[RuleSource<'static>] = &[
    RuleSource { name: "concepts.yaml", text: include_str!("rules/concepts.yaml") },
    RuleSource { name: "provider.yaml", text: include_str!("rules/provider.yaml") },
    RuleSource { name: "process.yaml", text: include_str!("rules/process.yaml") },
    RuleSource { name: "tool.yaml", text: include_str!("rules/tool.yaml") },
];

/// The categories of tool errors that have phrases of their own.
pub const CATEGORIES: &[&str] = &[
    "font", "missing_module", "missing_command", "version_conflict", "permission", "resource", "plotting",
    "file_io", "network", "timeout", "syntax", "type_or_value", "invalid_arguments", "not_found_in_file",
    "auth", "rate_limit", "tool_missing", "test_failure", "other",
];

impl Rules {
    /// The built-in rules.
    pub fn builtin() -> Result<Self, RuleError> {
        Self::with_user(&[])
    }

    /// The built-in rules and a user's own. Later files go before earlier ones.
    pub fn with_user(user: &[RuleSource<'_>]) -> Result<Self, RuleError> {
        let mut builder = Builder::default();
        for source in BUILTIN.iter().chain(user) {
            builder.add(source.name, rulefile::read(*source)?)?;
        }
        builder.compile(user.is_empty())
    }

    /// Texts of a category that a user's rule file added.
    #[must_use]
    pub fn own_category(&self, category: &str) -> Option<&OwnCategory> {
        self.own_categories.get(category)
    }

    /// The clause of a named concept, for code that asks for one by name.
    pub(crate) fn concept(&self, name: &str) -> Option<Clause> {
        self.concepts.get(name).copied()
    }

    /// Whether this rule holds on what was seen.
    pub(crate) fn holds<T>(&self, rule: &Rule<T>, seen: &Observation<'_>) -> bool {
        rule.holds(seen, &self.lexicon)
    }

    /// The first rule of a table that holds.
    pub(crate) fn decide<'r, T>(&self, table: &'r [Rule<T>], seen: &Observation<'_>) -> Option<&'r Rule<T>> {
        table.iter().find(|rule| rule.holds(seen, &self.lexicon))
    }
}

impl Rule<Conclusion> {
    /// Whether words decide, and not a status alone.
    pub(crate) fn has_words(&self) -> bool {
        !self.when.is_empty()
    }

    /// The fault that this rule concludes.
    pub(crate) fn fault(&self) -> Fault {
        let then = &self.then;
        let mut fault = Fault::of(then.kind, &self.id);
        fault.sub = then.sub;
        fault.scope = then.scope.unwrap_or(fault.scope);
        fault.origin = then.origin.unwrap_or(fault.origin);
        fault.confidence = then.confidence;
        let advice = &mut fault.advice;
        advice.same = then.same.unwrap_or(advice.same);
        advice.other = then.other.unwrap_or(advice.other);
        // What a rule takes from the same target (a certificate, a proxy's login), time alone does not give back.
        let time_cures = then.same != Some(false) && !matches!(then.sub, Some(Sub::Billing | Sub::Plan));
        advice.later = then.later.unwrap_or(advice.later && time_cures);
        advice.health = then.health.unwrap_or(advice.health);
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are compiled when they are first needed, so a mistake would hide until then.
    #[test]
    fn every_built_in_expression_compiles() {
        Rules::builtin().unwrap().lexicon.prove().unwrap();
    }

    /// Words that no rule asks for are never used, though a reader would think that they are.
    #[test]
    fn every_built_in_concept_is_used() {
        const ASKED_BY_CODE: &[&str] = &[
            "retry_pause", "foreign", "wrapper", "hint", "work", "prose", "limit_word", "run_failed",
            "disk_full", "program",
        ];
        let text: String = BUILTIN.iter().map(|source| source.text).collect();
        let rules = Rules::builtin().unwrap();
        for name in rules.concepts.keys() {
            let pattern = regex::Regex::new(&format!("@{name}\\b")).unwrap();
            assert!(
                ASKED_BY_CODE.contains(&name.as_str()) || pattern.is_match(&text),
                "{name} is never used"
            );
        }
        for name in ASKED_BY_CODE {
            assert!(rules.concept(name).is_some(), "{name} is asked for by the log reader");
        }
    }
}
