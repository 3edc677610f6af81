//! Reads a models file, and says exactly where it is wrong. How one is written stands at the top of `models.yaml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::facts::Row;
use super::name::{Name, Pattern, Versions};
use super::{Entry, ModelError, ModelSource};
use crate::spend::Price;

/// No file has more entries than this.
const MAX_ENTRIES: usize = 1000;
/// No pattern and no word is longer than this.
const MAX_WORD: usize = 200;
/// Tokens must fit into what the dialects can say.
const MAX_TOKENS: u64 = u32::MAX as u64;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    #[serde(default)]
    models: Vec<Spanned<Row>>,
    #[serde(default)]
    prices: Vec<Spanned<PriceRow>>,
    #[serde(default)]
    vendors: BTreeMap<String, Spanned<String>>,
}

/// A price as it is written: in US dollars for a million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    #[serde(default, rename = "match")]
    pattern: Option<String>,
    #[serde(default)]
    family: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default, rename = "why")]
    _why: Option<String>,
    input: f64,
    output: f64,
    #[serde(default)]
    cached: Option<f64>,
    #[serde(default)]
    stored: Option<f64>,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) entries: Vec<Entry>,
    pub(super) prices: Vec<(Names, Price)>,
    pub(super) vendors: Vec<(String, Vec<String>)>,
}

/// The names that an entry is about: everything that is given must hold.
#[derive(Debug, Clone)]
pub(super) struct Names {
    patterns: Vec<Pattern>,
    family: Option<String>,
    versions: Option<Versions>,
}

impl Names {
    pub(super) fn hold(&self, name: &Name<'_>) -> bool {
        let is_like = || self.patterns.is_empty() || self.patterns.iter().any(|one| one.holds(name));
        let has_family = || self.family.as_deref().is_none_or(|family| name.has(family));
        let in_time =
            || self.versions.is_none_or(|versions| versions.hold(name.version(self.family.as_deref())));
        is_like() && has_family() && in_time()
    }
}

/// Reads a file. Its entries carry `name` as their source.
pub(super) fn read(source: ModelSource<'_>, name: Option<&Arc<str>>) -> Result<File, ModelError> {
    if source.text.trim().is_empty() {
        return Ok(File::default());
    }
    let written: ModelFile = serde_saphyr::from_str(source.text).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let text = error.without_snippet().to_string();
        wrong(source, location, text.lines().next().unwrap_or_default())
    })?;
    if let Some(more) = written.models.get(MAX_ENTRIES) {
        return Err(wrong(source, more.referenced, format!("there are more than {MAX_ENTRIES} entries")));
    }
    let entries: Result<_, _> = written.models.iter().map(|row| entry(source, name, row)).collect();
    if let Some(more) = written.prices.get(MAX_ENTRIES) {
        return Err(wrong(source, more.referenced, format!("there are more than {MAX_ENTRIES} prices")));
    }
    let prices: Result<_, _> = written.prices.iter().map(|row| price(source, row)).collect();
    let mut vendors = Vec::new();
    for (vendor, line) in written.vendors {
        vendors.push((vendor, patterns(source, line.referenced, &line.value)?));
    }
    Ok(File { entries: entries?, prices: prices?, vendors })
}

fn entry(source: ModelSource<'_>, file: Option<&Arc<str>>, row: &Spanned<Row>) -> Result<Entry, ModelError> {
    let Spanned { value: row, referenced: at, .. } = row;
    let wrong = |message: &str| wrong(source, *at, message);
    let names = names(source, *at, row.pattern.as_deref(), row.family.as_deref(), row.version.as_deref())?;
    let facts = row.facts();
    let limits = [facts.context_window, facts.max_output_tokens, facts.max_thinking_tokens];
    if limits.iter().flatten().any(|tokens| !(1..=MAX_TOKENS).contains(tokens))
        || facts.min_thinking_tokens > facts.max_thinking_tokens.or(Some(MAX_TOKENS))
    {
        return Err(wrong(
            "a number of tokens is at least 1 and at most 4294967295, and a minimum is below its maximum",
        ));
    }
    Ok(Entry { file: file.cloned(), line: at.line(), facts, names })
}

fn price(source: ModelSource<'_>, row: &Spanned<PriceRow>) -> Result<(Names, Price), ModelError> {
    let Spanned { value: row, referenced: at, .. } = row;
    let names = names(source, *at, row.pattern.as_deref(), row.family.as_deref(), row.version.as_deref())?;
    let price = Price::of(row.input, row.output).and_then(|price| price.with_cache(row.cached, row.stored));
    let message = "a price is a number of dollars for a million tokens, from 0 to 1000000";
    let price = price.ok_or_else(|| wrong(source, *at, message))?;
    Ok((names, price))
}

/// The names that a row is about, of facts as of prices.
fn names(
    source: ModelSource<'_>,
    at: Location,
    pattern: Option<&str>,
    family: Option<&str>,
    version: Option<&str>,
) -> Result<Names, ModelError> {
    let wrong = |message: &str| wrong(source, at, message);
    let patterns = match pattern {
        Some(line) => patterns(source, at, line)?,
        None => Vec::new(),
    };
    let is_word = |text: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric();
        !text.is_empty() && text.len() <= MAX_WORD && text.chars().all(fits)
    };
    if patterns.is_empty() && family.is_none() {
        return Err(wrong("an entry needs `match` or `family`: the models that it is about"));
    }
    if family.is_some_and(|family| !is_word(family)) {
        return Err(wrong("`family` is one word of letters and digits, such as `claude`"));
    }
    let versions =
        match version {
            Some(text) => Some(Versions::parse(text).ok_or_else(|| {
                wrong("`version` is `4.5`, `from 4.1`, `before 4.6` or `from 4 before 4.6`")
            })?),
            None => None,
        };
    let patterns = patterns.into_iter().map(Pattern::new).collect();
    Ok(Names { patterns, family: family.map(str::to_owned), versions })
}

/// Patterns, separated by bars.
fn patterns(source: ModelSource<'_>, at: Location, line: &str) -> Result<Vec<String>, ModelError> {
    let patterns: Vec<String> = line.split('|').map(|one| one.trim().to_owned()).collect();
    let is_pattern = |text: &String| {
        !text.is_empty() && text.len() <= MAX_WORD && !text.contains(|letter: char| letter.is_whitespace())
    };
    if patterns.iter().all(is_pattern) {
        Ok(patterns)
    } else {
        Err(wrong(
            source,
            at,
            "patterns are names without blanks, in which `*` stands for anything, separated by ` | `",
        ))
    }
}

fn wrong(source: ModelSource<'_>, at: Location, message: impl Into<String>) -> ModelError {
    ModelError { file: source.name.to_owned(), line: at.line(), column: at.column(), message: message.into() }
}
