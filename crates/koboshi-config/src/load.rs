//! From text to a config that can be used, or everything that is wrong with it.
//!
//! The tree of the file is walked against the table of keys; each value is read on its own, so one mistake does not hide the
//! next. Then the values are put into the defaults in the order of the table, keys are held against each other (`cross`)
//! and the core's policies are asked whether the whole makes sense (`policy`). A value that could not be read leaves its
//! default in place for that, and complaints that only follow from it are not made.
//!
//! No file is touched here, but the gateway that is asked for its word looks at those that it would read; see [`load_file`](crate::file::load_file) for that.

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

/// A longer text is no config: it is refused unread.
pub const LARGEST: usize = 1024 * 1024;

/// Reads a config from text. `name` is the name of the file for messages, and relative paths are taken from its folder;
/// `lookup` gives the values of variables.
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
    load_located(name, text, Outside::new(lookup)).map(|loaded| loaded.config)
}

/// A config that can be used, and what should be changed in its file all the same.
#[derive(Debug)]
pub struct Loaded {
    /// The config.
    pub config: Config,
    /// Old names of keys and the like, in the order of the file.
    pub warnings: Vec<Problem>,
    /// The names of the routes, in the order of the file.
    pub routes: Vec<String>,
    /// The entries of `models`, with the line that each begins in.
    pub models: BTreeMap<String, u64>,
    /// Where the rule files stand.
    pub(crate) rules: Vec<Spot>,
    /// Where the models file stands.
    pub(crate) models_file: Option<Spot>,
}

/// What is wrong with a name that others know better, and what would be right.
#[derive(Debug, Clone)]
pub struct Mistake {
    /// What is wrong.
    pub message: Text,
    /// What would be right.
    pub hint: Option<Text>,
}

/// Why a config that is right in itself cannot be served on this machine.
#[derive(Debug, Clone)]
pub struct Unservable {
    /// The key as the table has it, such as `providers.*.ca_file`; empty where no single key is at fault.
    pub key: &'static str,
    /// The name of its entry; empty outside of entries.
    pub entry: String,
    /// The reason.
    pub why: Text,
}

/// What others know better than the table of keys.
#[derive(Debug, Clone, Copy)]
pub struct Experts {
    /// Says what is wrong with a model of the simulated provider.
    pub sim: fn(&str) -> Option<Mistake>,
    /// Says why a gateway would refuse the config: files that it names, and what is in them.
    pub gateway: fn(&Config) -> Vec<Unservable>,
    /// Names the variables that a well-known provider needs and that are not set here.
    pub unset: fn(&str) -> Vec<&'static str>,
}

impl Experts {
    /// Nobody is asked.
    pub const NONE: Self = Self { sim: |_| None, gateway: |_| Vec::new(), unset: |_| Vec::new() };
}

/// What a file is held against besides the table of keys.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// Gives the values of variables.
    pub lookup: &'a dyn Fn(&str) -> Option<String>,
    /// Who is asked about the rest.
    pub experts: Experts,
}

impl<'a> Outside<'a> {
    /// Only variables: every name of the simulated provider is taken, and no gateway is asked.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, experts: Experts::NONE }
    }
}

/// The same as [`load`], with warnings.
///
/// # Errors
/// Everything that is wrong, with its place.
pub fn load_located(name: &str, text: &str, outside: Outside<'_>) -> Result<Loaded, Problems> {
    if text.len() > LARGEST {
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
    if walk.problems.is_empty() {
        // Only now: of values that could not be read a gateway would only repeat what is said already.
        let refused = (outside.experts.gateway)(&config);
        walk.problems = refused.iter().map(|one| unservable(name, &walk, one)).collect();
    }
    if walk.problems.is_empty() {
        let rules = walk.given("rules", "").map(|given| given.parts.clone()).unwrap_or_default();
        let routes = walk.names_in_order("routes.*");
        let models = walk.entries("models.*").map(|(at, spot)| (at.entry.clone(), spot.line)).collect();
        let models_file = walk.given("models_file", "").map(|given| given.spot);
        Ok(Loaded { config, warnings, routes, models, rules, models_file })
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

/// What a gateway would refuse, at the place of its key.
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
            LARGEST / 1024
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
