//! Finds the words of all rules in a text at once.
//!
//! Rules speak in *clauses*: "one of these terms must occur". All terms of all rules go into one
//! Aho-Corasick automaton, so a text is read once, in time linear in its length whatever it holds, and
//! the result is a set of [`Bits`]: which clauses hold. Terms in slashes are regular expressions (linear as
//! well); they are searched for only when a rule asks, since most texts are decided without them.
//!
//! A term matches whole words; `exceed*` also matches `exceeded`. Letters outside ASCII have no word
//! ends to look at (Japanese and Chinese write without spaces), so no boundary is asked for there.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Regex, RegexBuilder};

/// Index of a clause.
pub(crate) type Clause = u16;

const WORDS: usize = 16;

/// How many distinct clauses a rule set may hold.
pub(crate) const MAX_CLAUSES: usize = WORDS * 64;

/// Which clauses hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bits([u64; WORDS]);

impl Bits {
    pub(crate) fn set(&mut self, clause: Clause) {
        if let Some(word) = self.0.get_mut(usize::from(clause) / 64) {
            *word |= 1 << (clause % 64);
        }
    }

    pub(crate) fn has(&self, clause: Clause) -> bool {
        self.0.get(usize::from(clause) / 64).is_some_and(|word| word & (1 << (clause % 64)) != 0)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }
}

/// Terms up to this length are searched for with the space before them.
const SHORT: usize = 4;

#[derive(Debug)]
struct Term {
    /// A word must begin here.
    left: bool,
    /// A word must end here.
    right: bool,
    clauses: Vec<Clause>,
}

/// All terms of a rule set, ready to search.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// None in a set without rules.
    words: Option<AhoCorasick>,
    terms: Vec<Term>,
    /// The regular expressions of each clause that has some, as one.
    patterns: Vec<Option<Pattern>>,
}

/// A regular expression that is compiled when a text first asks for it: most never are, and all of them take longer than the start of
/// a program should.
#[derive(Debug, Clone)]
struct Pattern {
    source: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn compile(&self) -> Result<Regex, LexiconError> {
        let regex = RegexBuilder::new(&self.source).size_limit(4 << 20).build();
        regex.map_err(|error| LexiconError(error.to_string()))
    }

    fn is_match(&self, plain: &str) -> bool {
        self.compiled.get_or_init(|| self.compile().ok()).as_ref().is_some_and(|regex| regex.is_match(plain))
    }
}

/// A term as it is written in a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RuleTerm {
    /// Words, with `*` at an open end.
    Words(String),
    /// A regular expression, without its slashes.
    Pattern(String),
}

/// Why a set of terms cannot be compiled.
#[derive(Debug, Clone)]
pub(crate) struct LexiconError(pub(crate) String);

impl Lexicon {
    pub(crate) fn compile(entries: &[(RuleTerm, Vec<Clause>)]) -> Result<Self, LexiconError> {
        let (mut literals, mut terms) = (Vec::new(), Vec::new());
        let mut sources: HashMap<Clause, Vec<&str>> = HashMap::new();
        for (written, clauses) in entries {
            match written {
                RuleTerm::Words(words) => {
                    let mut literal = words.trim_matches('*').to_owned();
                    let bounded = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                    let mut left = !words.starts_with('*') && bounded(literal.chars().next());
                    let right = !words.ends_with('*') && bounded(literal.chars().next_back());
                    if left && literal.len() <= SHORT {
                        // "i" alone would be found in every second word and thrown away again.
                        literal.insert(0, ' ');
                        left = false;
                    }
                    terms.push(Term { left, right, clauses: clauses.clone() });
                    literals.push(literal);
                }
                RuleTerm::Pattern(pattern) => {
                    for clause in clauses {
                        sources.entry(*clause).or_default().push(pattern);
                    }
                }
            }
        }
        let words = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&literals)
            .map_err(|error| LexiconError(error.to_string()))?;
        let mut patterns = Vec::new();
        for (clause, sources) in sources {
            let at = usize::from(clause);
            if patterns.len() <= at {
                patterns.resize(at + 1, None);
            }
            if let Some(slot) = patterns.get_mut(at) {
                let source = format!("(?:{})", sources.join(")|(?:"));
                *slot = Some(Pattern { source, compiled: OnceLock::new() });
            }
        }
        Ok(Self { words: Some(words), terms, patterns })
    }

    /// Compiles every regular expression: for rules that were not tried yet.
    pub(crate) fn prove(&self) -> Result<(), LexiconError> {
        self.patterns.iter().flatten().try_for_each(|pattern| pattern.compile().map(drop))
    }

    /// Which clauses hold in this plain text.
    pub(crate) fn scan(&self, plain: &str) -> Bits {
        let mut bits = Bits::default();
        self.scan_into(&mut bits, plain);
        bits
    }

    pub(crate) fn scan_into(&self, bits: &mut Bits, plain: &str) {
        let Some(words) = &self.words else { return };
        let bytes = plain.as_bytes();
        for found in words.find_overlapping_iter(plain) {
            let Some(term) = self.terms.get(found.pattern().as_usize()) else { continue };
            let begins = !term.left || !is_word(found.start().checked_sub(1).and_then(|at| bytes.get(at)));
            let ends = !term.right || !is_word(bytes.get(found.end()));
            if begins && ends {
                for clause in &term.clauses {
                    bits.set(*clause);
                }
            }
        }
    }

    /// Whether this clause has a regular expression.
    pub(crate) fn has_pattern(&self, clause: Clause) -> bool {
        self.patterns.get(usize::from(clause)).is_some_and(Option::is_some)
    }

    /// Whether a regular expression of this clause matches.
    pub(crate) fn matches(&self, clause: Clause, plain: &str) -> bool {
        self.patterns
            .get(usize::from(clause))
            .and_then(Option::as_ref)
            .is_some_and(|pattern| pattern.is_match(plain))
    }
}

fn is_word(byte: Option<&u8>) -> bool {
    byte.is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon(terms: &[&str]) -> Lexicon {
        let entries: Vec<_> = terms
            .iter()
            .zip(0..)
            .map(|(term, clause)| {
                let written = match term.strip_prefix('/') {
                    Some(pattern) => RuleTerm::Pattern(pattern.trim_end_matches('/').to_owned()),
                    None => RuleTerm::Words((*term).to_owned()),
                };
                (written, vec![clause])
            })
            .collect();
        Lexicon::compile(&entries).unwrap()
    }

    #[test]
    fn a_term_matches_whole_words_only() {
        let lexicon = lexicon(&["agg", "exceed*", "*limit"]);
        let bits = lexicon.scan(" aggregate exceeded ratelimit ");
        assert!(!bits.has(0) && bits.has(1) && bits.has(2));
        assert!(!lexicon.scan(" limits ").has(2));
    }

    #[test]
    fn terms_inside_terms_are_both_seen() {
        let bits = lexicon(&["rate limit", "limit", "limit reached"]).scan(" rate limit reached ");
        assert!(bits.has(0) && bits.has(1) && bits.has(2));
    }

    #[test]
    fn scripts_without_spaces_have_no_boundary() {
        assert!(lexicon(&["利用制限"]).scan(" 月間利用制限に達しました ").has(0));
    }

    #[test]
    fn slashes_hold_a_regular_expression() {
        let lexicon = lexicon(&["/got -[0-9]/", "got"]);
        assert!(lexicon.matches(0, " at least 1, got -12 ") && !lexicon.matches(0, " got 12 "));
        assert!(lexicon.scan(" at least 1, got -12 ").has(1));
    }
}
