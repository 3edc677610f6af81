//! From text to a config that can be used, or everything that is wrong with it.
//!
//! The tree of the file is walked against the table of keys; each value is read on its own, so one mistake does not hide the
//! next. Then the values are put into the defaults in the order of the table, keys are checked against each other (`cross`)
//! and the core's policies validate the result (`policy`). A value that could not be read keeps its
//! default for that, and problems that only follow from it are not reported.
//!
//! This module touches no file, but the gateway's check may read files that the config names; see [`load_file`](crate::file::load_file).

use std::collections::BTreeMap;
use std::path::Path;

use crate::broken::broken_yaml;
use crate::check::{Problem, Problems};
use crate::config::{Config, Language};
use crate::source::Source;
use crate::tree::{self, Spot};
use crate::walk::Walk;
use crate::words::{Text, text, tr, words};
use crate::{cross, foreign, policy};

/// Longer texts are refused unread.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Reads a config from text. `name` is the name of the file for messages, and relative paths are taken from its folder;
/// `lookup` returns the values of variables.
///
/// ```
/// let config = koboshi_config::load("koboshi.yaml", "retry: {max_attempts: 5}", &|_| None)?;
/// assert_eq!(config.remedy.backoff.attempts, 5);
///
/// let problems = koboshi_config::load("koboshi.yaml", "retry: {max_attemps: 5}", &|_| None).unwrap_err();
/// assert_eq!(problems.iter().next().and_then(|problem| problem.hint.as_deref()), Some("did you mean `max_attempts`?"));
/// # Ok::<(), koboshi_config::check::Problems>(())
/// ```
///
/// # Errors
/// Everything that is wrong, with its place.
pub fn load(name: &str, text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Config, Problems> {
    load_located(name, text, Environment::new(lookup)).map(|loaded| loaded.config)
}

/// A config that can be used, and what should be changed in its file.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The config.
    pub config: Config,
    /// Old names of keys and the like, in the order of the file.
    pub warnings: Vec<Problem>,
    /// The names of the routes, in the order of the file.
    pub routes: Vec<String>,
    /// The entries of `models`, with the line that each begins in.
    pub models: BTreeMap<String, u64>,
    /// The places of the rule files.
    pub(crate) rules: Vec<Spot>,
    /// The place of the models file.
    pub(crate) models_file: Option<Spot>,
}

/// What is wrong with a name that only another part can check, and what would be right.
#[derive(Debug, Clone)]
pub struct Mistake {
    /// What is wrong.
    pub message: Text,
    /// What would be right.
    pub hint: Option<Text>,
}

/// Why a valid config cannot be served on this machine.
#[derive(Debug, Clone)]
pub struct Unservable {
    /// The key as the table has it, such as `providers.*.ca_file`; empty where no single key is at fault.
    pub key: &'static str,
    /// The name of its entry; empty outside of entries.
    pub entry: String,
    /// The reason.
    pub why: Text,
}

/// Checks that need more than the table of keys.
#[derive(Debug, Clone, Copy)]
pub struct Experts {
    /// Checks a model of the simulated provider.
    pub sim: fn(&str) -> Option<Mistake>,
    /// Returns why a gateway would refuse the config: files that it names, and their content.
    pub gateway: fn(&Config) -> Vec<Unservable>,
    /// Returns the unset variables that a well-known provider needs.
    pub unset: fn(&str) -> Vec<&'static str>,
}

impl Experts {
    /// No checks.
    pub const NONE: Self = Self { sim: |_| None, gateway: |_| Vec::new(), unset: |_| Vec::new() };
}

/// What a file is checked against besides the table of keys.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Returns the values of variables.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
    /// Further checks.
    pub experts: Experts,
}

impl<'a> Environment<'a> {
    /// Only variables: every name of the simulated provider is accepted, and no gateway check runs.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, experts: Experts::NONE }
    }
}

/// The same as [`load`], with warnings.
///
/// # Errors
/// Everything that is wrong, with its place.
pub fn load_located(name: &str, text: &str, outside: Environment<'_>) -> Result<LoadedConfig, Problems> {
    if text.len() > MAX_BYTES {
        return Err(Problems::new(vec![too_large(name)]));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tree::parse(text)
        .map_err(|broken| Problems::new(vec![broken_yaml(&Source::broken(name, text), &broken)]))
        .map_err(|problems| problems.in_language(named_language(text)))?;
    let source = Source::of_tree(name, text, root.as_ref());
    if let Some(problem) = root.as_ref().and_then(|root| foreign::check(&source, root)) {
        return Err(Problems::new(vec![problem]));
    }
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let mut walk = Walk::new(&source, outside.lookup, folder);
    if let Some(root) = &root {
        walk.section(None, root);
    }
    let config = walk.config();
    let crossed = cross::check(&config, &mut walk, outside.experts.sim);
    walk.problems.extend(crossed);
    let sense = policy::check(&mut config.clone(), &walk);
    walk.problems.extend(sense);
    let mut warnings = std::mem::take(&mut walk.warnings);
    warnings.extend(cross::warn(&config, &walk, outside.experts.unset));
    warnings.sort_by_key(|warning| warning.place);
    // For values that could not be read a gateway would only repeat the same problems. Agents depend on nothing but themselves, so what is
    // wrong with one is reported beside the problems of others.
    let is_good = walk.problems.is_empty();
    let is_new = |one: &Unservable| {
        is_good || one.key.starts_with("agents.") && walk.given(one.key, &one.entry).is_some()
    };
    let refused = (outside.experts.gateway)(&config);
    let refused: Vec<Problem> =
        refused.iter().filter(|one| is_new(one)).map(|one| unservable(name, &walk, one)).collect();
    walk.problems.extend(refused);
    if walk.problems.is_empty() {
        let rules = walk.given("rules", "").map(|given| given.parts.clone()).unwrap_or_default();
        let routes = walk.names_in_order("routes.*");
        let models = walk.entries("models.*").map(|(at, spot)| (at.entry.clone(), spot.line)).collect();
        let models_file = walk.given("models_file", "").map(|given| given.spot);
        Ok(LoadedConfig { config, warnings, routes, models, rules, models_file })
    } else {
        Err(Problems::with_more(walk.problems, walk.more).beside(warnings).in_language(config.language))
    }
}

/// The language that a line of a broken file names.
fn named_language(text: &str) -> Option<Language> {
    let named = text.lines().find_map(|line| line.strip_prefix("language:"))?;
    let named = named.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    [Language::En, Language::Ja].into_iter().find(|language| language.name() == named)
}

/// A gateway's refusal, at the place of its key.
fn unservable(name: &str, walk: &Walk<'_>, refused: &Unservable) -> Problem {
    let Some(given) = walk.given(refused.key, &refused.entry) else {
        return Problem::of_file(name, refused.why.clone(), None);
    };
    let shown = &given.at.shown;
    let message = Text::of(|language| {
        let why = refused.why.get(language);
        tr!(language, "`{shown}` cannot be used: {why}", "`{shown}` を使えません: {why}")
    });
    walk.problem(&given.at, given.spot, message, None)
}

pub(crate) fn too_large(name: &str) -> Problem {
    Problem::of_file(
        name,
        text!(
            "it is larger than {} KiB, so it was not read",
            "{} KiB を超えているため、読み込みませんでした",
            MAX_BYTES / 1024
        ),
        Some(
            words(
                "is this the right file? A config has a few kilobytes",
                "ファイルは正しいですか？ 設定ファイルは通常数 KB です",
            )
            .into(),
        ),
    )
}
