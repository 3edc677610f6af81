//! Rule files become tables.
//!
//! Built-in and user rules are merged (a user's rule of the same id replaces the built-in one, new ones go
//! before it, muted ones go), and every distinct line becomes one clause of the
//! [`Lexicon`](super::lexicon::Lexicon). Everything that can be wrong in a rule file is found here or in
//! [`rulefile`](super::rulefile), and named with its line.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_saphyr::Location;

use super::lexicon::{Clause, Lexicon, MAX_CLAUSES, RuleTerm};
use super::mistakes;
use super::plain::plain;
use super::rulefile::{FaultRule, Line, RuleError, RuleFile, ToolRule};
use super::ruleset::{CATEGORIES, Conclusion, Fact, NO_STATUS, OwnCategory, Rule, Rules, ToolConclusion};
use crate::fault::{Confidence, Kind, Origin, Scope, Sub};

/// One table while it is being merged: rules with the file each came from.
type Table<R> = Vec<(String, R)>;

/// Files while they are being merged.
#[derive(Default)]
pub(super) struct Builder {
    concepts: BTreeMap<String, Vec<(String, Line)>>,
    provider: Table<FaultRule>,
    finish: Table<FaultRule>,
    process: Table<FaultRule>,
    tool: Table<ToolRule>,
    clauses: Vec<Vec<RuleTerm>>,
    clause_of: HashMap<Vec<RuleTerm>, Clause>,
}

trait HasId {
    fn id(&self) -> &Line;
}

impl HasId for FaultRule {
    fn id(&self) -> &Line {
        &self.id
    }
}

impl HasId for ToolRule {
    fn id(&self) -> &Line {
        &self.id
    }
}

/// Same id: in place. New ones: in front, in their own order.
fn merge<R: HasId>(table: &mut Table<R>, file: &str, rules: Vec<R>) -> Result<(), RuleError> {
    let mut fresh = Vec::new();
    for rule in rules {
        let id = rule.id().value.clone();
        if fresh.iter().any(|(_, other): &(String, R)| other.id().value == id) {
            return Err(mistakes::used_twice(file, rule.id()));
        }
        match table.iter_mut().find(|(_, old)| old.id().value == id) {
            Some(old) => *old = (file.to_owned(), rule),
            None => fresh.push((file.to_owned(), rule)),
        }
    }
    table.splice(0..0, fresh);
    Ok(())
}

impl Builder {
    pub(super) fn add(&mut self, file: &str, read: RuleFile) -> Result<(), RuleError> {
        for (name, lines) in read.concepts {
            let lines = lines.into_iter().map(|line| (file.to_owned(), line));
            self.concepts.entry(name).or_default().extend(lines);
        }
        merge(&mut self.provider, file, read.provider)?;
        merge(&mut self.finish, file, read.finish)?;
        merge(&mut self.process, file, read.process)?;
        merge(&mut self.tool, file, read.tool)?;
        read.mute.iter().try_for_each(|id| self.mute(file, id))
    }

    fn mute(&mut self, file: &str, id: &Line) -> Result<(), RuleError> {
        let before = self.ids().count();
        let name = &id.value;
        self.provider.retain(|(_, rule)| rule.id.value != *name);
        self.finish.retain(|(_, rule)| rule.id.value != *name);
        self.process.retain(|(_, rule)| rule.id.value != *name);
        self.tool.retain(|(_, rule)| rule.id.value != *name);
        if self.ids().count() < before {
            return Ok(());
        }
        Err(mistakes::unknown(file, id, "rule", self.ids()))
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        let faults = self.provider.iter().chain(&self.finish).chain(&self.process);
        faults
            .map(|(_, rule)| rule.id.value.as_str())
            .chain(self.tool.iter().map(|(_, rule)| rule.id.value.as_str()))
    }

    /// `tried` says that the rules are the built-in ones, all of whose expressions a test has compiled.
    pub(super) fn compile(mut self, tried: bool) -> Result<Rules, RuleError> {
        let mut concepts = HashMap::new();
        for name in self.concepts.keys().cloned().collect::<Vec<_>>() {
            let place = self
                .concepts
                .get(&name)
                .and_then(|lines| lines.first())
                .map(|(file, line)| (file.clone(), line.referenced));
            let mut terms = Vec::new();
            self.expand(&name, &mut terms, 0)?;
            let (file, location) = place.unwrap_or((String::new(), Location::UNKNOWN));
            let clause = self.clause(terms, &file, location)?;
            concepts.insert(name, clause);
        }
        let provider = std::mem::take(&mut self.provider);
        let finish = std::mem::take(&mut self.finish);
        let process = std::mem::take(&mut self.process);
        let tool = std::mem::take(&mut self.tool);
        let mut provider = self.fault_table(&provider)?;
        let mut finish = self.fault_table(&finish)?;
        let mut process = self.fault_table(&process)?;
        let (mut tool, own_categories) = self.tool_table(&tool)?;
        let lexicon = self.lexicon()?;
        if !tried {
            lexicon.prove().map_err(mistakes::too_large)?;
        }
        provider
            .iter_mut()
            .chain(&mut finish)
            .chain(&mut process)
            .for_each(|rule| rule.note_patterns(&lexicon));
        tool.iter_mut().for_each(|rule| rule.note_patterns(&lexicon));
        Ok(Rules { lexicon, concepts, provider, finish, process, tool, own_categories })
    }

    fn lexicon(&self) -> Result<Lexicon, RuleError> {
        let mut entries: BTreeMap<(bool, &str), Vec<Clause>> = BTreeMap::new();
        for (terms, clause) in self.clauses.iter().zip(first_clause()..) {
            for term in terms {
                let key = match term {
                    RuleTerm::Words(words) => (false, words.as_str()),
                    RuleTerm::Pattern(pattern) => (true, pattern.as_str()),
                };
                entries.entry(key).or_default().push(clause);
            }
        }
        let entries: Vec<_> = entries
            .into_iter()
            .map(|((pattern, text), clauses)| {
                let text = text.to_owned();
                (if pattern { RuleTerm::Pattern(text) } else { RuleTerm::Words(text) }, clauses)
            })
            .collect();
        Lexicon::compile(&entries).map_err(mistakes::too_large)
    }

    fn fault_table(&mut self, rules: &Table<FaultRule>) -> Result<Vec<Rule<Conclusion>>, RuleError> {
        rules.iter().map(|(file, rule)| self.fault_rule(file, rule)).collect()
    }

    fn fault_rule(&mut self, file: &str, rule: &FaultRule) -> Result<Rule<Conclusion>, RuleError> {
        let kinds = || Kind::ALL.iter().map(|kind| kind.name());
        let kind = Kind::from_name(&rule.kind.value)
            .ok_or_else(|| mistakes::unknown(file, &rule.kind, "kind", kinds()))?;
        let sub =
            named(file, rule.sub.as_ref(), "sub", Sub::from_name, Sub::ALL.iter().map(|sub| sub.name()))?;
        let scope =
            named(file, rule.scope.as_ref(), "scope", Scope::from_name, Scope::ALL.iter().map(|s| s.name()))?;
        let origin = named(
            file,
            rule.origin.as_ref(),
            "origin",
            Origin::from_name,
            Origin::ALL.iter().map(|o| o.name()),
        )?;
        let confidence = named(
            file,
            rule.confidence.as_ref(),
            "confidence",
            Confidence::from_name,
            Confidence::ALL.iter().map(|c| c.name()),
        )?;
        if rule.when.is_empty() && rule.code.is_empty() && rule.status.is_none() {
            return Err(mistakes::holds_always(file, &rule.id, &["when", "code", "status"]));
        }
        let status = rule.status.as_ref().map(|status| statuses(file, status)).transpose()?;
        let confidence = confidence.unwrap_or(
            if rule.code.is_empty() && (rule.when.is_empty() && rule.unless.is_empty()) {
                Confidence::Low
            } else if rule.code.is_empty() {
                Confidence::Medium
            } else {
                Confidence::High
            },
        );
        Ok(Rule {
            id: Arc::from(rule.id.value.as_str()),
            status,
            when: self.lines(file, &rule.when)?,
            code: self.lines(file, &rule.code)?,
            unless: self.lines(file, &rule.unless)?,
            has_patterns: false,
            then: Conclusion {
                kind,
                sub,
                scope,
                origin,
                confidence,
                same: rule.same,
                other: rule.other,
                later: rule.later,
                health: rule.health,
            },
        })
    }

    #[expect(clippy::type_complexity, reason = "the two halves of one result")]
    fn tool_table(
        &mut self,
        rules: &Table<ToolRule>,
    ) -> Result<(Vec<Rule<ToolConclusion>>, BTreeMap<Arc<str>, OwnCategory>), RuleError> {
        let mut own = BTreeMap::new();
        let mut table = Vec::new();
        for (file, rule) in rules {
            let category: Arc<str> = Arc::from(rule.category.value.as_str());
            if let (Some(message), Some(suggestion)) = (&rule.message, &rule.suggestion) {
                own.insert(
                    Arc::clone(&category),
                    OwnCategory { message: message.clone(), suggestion: suggestion.clone() },
                );
            }
            if rule.when.is_empty() {
                return Err(mistakes::holds_always(file, &rule.id, &["when"]));
            }
            table.push(Rule {
                id: Arc::from(rule.id.value.as_str()),
                status: None,
                when: self.lines(file, &rule.when)?,
                code: Vec::new(),
                unless: self.lines(file, &rule.unless)?,
                has_patterns: false,
                then: ToolConclusion { category, same: rule.same, alone: rule.alone },
            });
        }
        for (file, rule) in rules {
            let name = rule.category.value.as_str();
            if !CATEGORIES.contains(&name) && !own.contains_key(name) {
                return Err(mistakes::new_category(file, &rule.category));
            }
        }
        Ok((table, own))
    }

    fn lines(&mut self, file: &str, lines: &[Line]) -> Result<Vec<Clause>, RuleError> {
        lines.iter().map(|line| self.line(file, line)).collect()
    }

    fn line(&mut self, file: &str, line: &Line) -> Result<Clause, RuleError> {
        if let Some(fact) = line.value.strip_prefix('#') {
            let known =
                Fact::NAMES.iter().position(|name| *name == fact).and_then(|at| Clause::try_from(at).ok());
            return known.ok_or_else(|| mistakes::unknown(file, line, "fact", Fact::NAMES.iter().copied()));
        }
        let mut terms = Vec::new();
        self.terms(file, line, &mut terms, 0)?;
        self.clause(terms, file, line.referenced)
    }

    /// The terms of one line, concepts written out.
    fn terms(&self, file: &str, line: &Line, out: &mut Vec<RuleTerm>, depth: usize) -> Result<(), RuleError> {
        if let Some(pattern) = line.value.strip_prefix('/').and_then(|text| text.strip_suffix('/')) {
            regex_syntax::parse(pattern).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                mistakes::bad_pattern(file, line, reason)
            })?;
            out.push(RuleTerm::Pattern(pattern.to_owned()));
            return Ok(());
        }
        for term in line.value.split('|').map(str::trim) {
            if let Some(concept) = term.strip_prefix('@') {
                if !self.concepts.contains_key(concept) {
                    let place = Line::new(concept.to_owned(), line.referenced, line.defined);
                    return Err(mistakes::unknown(
                        file,
                        &place,
                        "concept",
                        self.concepts.keys().map(String::as_str),
                    ));
                }
                self.expand(concept, out, depth + 1)?;
                continue;
            }
            let words = term.trim_matches('*');
            if words.contains('*') {
                return Err(mistakes::star_inside(file, line, term));
            }
            let right = plain(words);
            if words.is_empty() || right.trim() != words {
                return Err(mistakes::never_occurs(file, line, term, right.trim()));
            }
            out.push(RuleTerm::Words(term.to_owned()));
        }
        Ok(())
    }

    fn expand(&self, concept: &str, out: &mut Vec<RuleTerm>, depth: usize) -> Result<(), RuleError> {
        let Some(lines) = self.concepts.get(concept) else { return Ok(()) };
        for (file, line) in lines {
            if depth > 8 {
                return Err(mistakes::circle(file, line, concept));
            }
            self.terms(file, line, out, depth)?;
        }
        Ok(())
    }

    fn clause(
        &mut self,
        mut terms: Vec<RuleTerm>,
        file: &str,
        location: Location,
    ) -> Result<Clause, RuleError> {
        terms.sort();
        terms.dedup();
        if let Some(clause) = self.clause_of.get(&terms) {
            return Ok(*clause);
        }
        let next = usize::from(first_clause()) + self.clauses.len();
        if next >= MAX_CLAUSES {
            return Err(mistakes::too_many(file, location));
        }
        let clause = Clause::try_from(next).unwrap_or(Clause::MAX);
        self.clauses.push(terms.clone());
        self.clause_of.insert(terms, clause);
        Ok(clause)
    }
}

/// Facts come first; terms follow.
fn first_clause() -> Clause {
    Clause::try_from(Fact::NAMES.len()).unwrap_or(Clause::MAX)
}

fn named<'a, T>(
    file: &str,
    line: Option<&Line>,
    what: &str,
    find: impl Fn(&str) -> Option<T>,
    names: impl Iterator<Item = &'a str>,
) -> Result<Option<T>, RuleError> {
    let Some(line) = line else { return Ok(None) };
    find(&line.value).map(Some).ok_or_else(|| mistakes::unknown(file, line, what, names))
}

/// `429 | 4xx | 500-504 | none` as ranges.
fn statuses(file: &str, line: &Line) -> Result<Vec<(u16, u16)>, RuleError> {
    let wrong = |part: &str| mistakes::no_status(file, line, part);
    let one = |part: &str| -> Option<(u16, u16)> {
        if part == "none" {
            return Some((NO_STATUS, NO_STATUS));
        }
        if let Some(family) = part.strip_suffix("xx") {
            let family: u16 = family.parse().ok().filter(|family| (1..=5).contains(family))?;
            return Some((family * 100, family * 100 + 99));
        }
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let range: (u16, u16) = (from.parse().ok()?, to.parse().ok()?);
        (100 <= range.0 && range.0 <= range.1 && range.1 <= 599).then_some(range)
    };
    line.value.split('|').map(str::trim).map(|part| one(part).ok_or_else(|| wrong(part))).collect()
}
