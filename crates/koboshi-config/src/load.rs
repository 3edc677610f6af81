//! From text to a config that can be used, or everything that is wrong with it.
//!
//! The tree of the file is walked against the table of keys; each value is read on its own, so one mistake does not hide the
//! next. Then the values are put into the defaults in the order of the table, and the core's policies are asked
//! whether the whole makes sense. A value that could not be read leaves its default in place for that, and complaints that
//! only follow from it are not made.
//!
//! No file is touched here; see [`load_file`](crate::file::load_file) for that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::check::{Problem, Problems, Source};
use crate::config::Config;
use crate::near::nearest;
use crate::policy;
use crate::read::{Reader, Wrong};
use crate::schema::{EXCLUSIVE, KEYS, Key, Shape, Value};
use crate::tree::{self, Node, Raw, Spot};

/// A longer text is no config: it is refused unread.
pub const LARGEST: usize = 1024 * 1024;

/// Reads a config from text. `name` is the name of the file for messages, and relative paths are taken from its folder;
/// `lookup` gives the values of variables.
///
/// ```
/// let config = koboshi_config::load("koboshi.yaml", "retry: {attempts: 5}", &|_| None)?;
/// assert_eq!(config.remedy.backoff.attempts, 5);
///
/// let problems = koboshi_config::load("koboshi.yaml", "retry: {attemps: 5}", &|_| None).unwrap_err();
/// assert_eq!(problems.iter().next().and_then(|problem| problem.hint.as_deref()), Some("did you mean `attempts`?"));
/// # Ok::<(), koboshi_config::check::Problems>(())
/// ```
///
/// # Errors
/// Everything that is wrong, with its place.
pub fn load(name: &str, text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Config, Problems> {
    load_located(name, text, lookup).map(|loaded| loaded.config)
}

/// A config and the places of its rule files.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) rules: Vec<Spot>,
}

pub(crate) fn load_located(
    name: &str,
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, Problems> {
    if text.len() > LARGEST {
        return Err(Problems::new(vec![too_large(name)]));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = Source::new(name, text);
    let root = tree::parse(text).map_err(|broken| Problems::new(vec![broken_yaml(&source, &broken)]))?;
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let reader = Reader { source: &source, lookup, folder };
    let mut walk = Walk {
        reader,
        given: BTreeMap::new(),
        failed: BTreeSet::new(),
        problems: Vec::new(),
        rules: Vec::new(),
    };
    if let Some(root) = &root {
        walk.section("", root);
    }
    walk.contradictions();
    let mut config = Config::default();
    for key in KEYS.iter() {
        if let Some(given) = walk.given.get(key.path) {
            key.set(&mut config, given.value.clone());
        }
    }
    walk.needs(&config);
    let sense = policy::check(&mut config.clone(), &walk);
    walk.problems.extend(sense);
    if walk.problems.is_empty() {
        Ok(Loaded { config, rules: walk.rules })
    } else {
        Err(Problems::new(walk.problems))
    }
}

pub(crate) fn too_large(name: &str) -> Problem {
    Problem::of_file(
        name,
        format!("it is larger than {} KiB, so it was not read", LARGEST / 1024),
        Some("is this the right file? A config has a few kilobytes".to_owned()),
    )
}

/// A value that the file gives.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) spot: Spot,
    value: Value,
}

/// The walk over the tree, and what it found.
pub(crate) struct Walk<'a> {
    reader: Reader<'a>,
    given: BTreeMap<&'static str, Given>,
    /// Keys whose value could not be read.
    failed: BTreeSet<&'static str>,
    problems: Vec<Problem>,
    rules: Vec<Spot>,
}

impl Walk<'_> {
    fn report(&mut self, path: &str, wrong: Wrong) {
        let Wrong { spot, message, hint, hide } = wrong;
        self.problems.push(self.reader.source.problem(spot, path, message, hint, hide));
    }

    /// A problem at a place of the file.
    pub(crate) fn problem(&self, spot: Spot, path: &str, message: String, hint: Option<String>) -> Problem {
        let secret = Key::find(path).is_some_and(|key| matches!(key.shape, Shape::Secret { .. }));
        self.reader.source.problem(spot, path, message, hint, secret.then_some(spot.place()))
    }

    /// Where the file gives this key.
    pub(crate) fn spot(&self, path: &str) -> Option<Spot> {
        self.given.get(path).map(|given| given.spot)
    }

    /// Whether the file gives this key, but not in a way that could be read.
    pub(crate) fn failed(&self, path: &str) -> bool {
        self.failed.contains(path)
    }

    fn section(&mut self, path: &str, node: &Node) {
        let entries = match &node.value {
            Raw::Null => return,
            Raw::Map(entries) => entries,
            other => return self.no_section(path, node, other),
        };
        let mut seen: BTreeMap<String, Spot> = BTreeMap::new();
        for (name_node, value) in entries {
            let spot = name_node.spot;
            let Some(name) = key_name(&name_node.value) else {
                let message = "a key must be a word".to_owned();
                self.report(path, Wrong { spot, message, hint: None, hide: None });
                continue;
            };
            let full = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if let Some(first) = seen.get(&name) {
                let message = format!(
                    "`{}` is set twice; the first time in line {}",
                    self.reader.source.quote(&full),
                    first.line
                );
                let hint = Some("keep one of the two".to_owned());
                self.report(&full, Wrong { spot, message, hint, hide: None });
                continue;
            }
            seen.insert(name.clone(), spot);
            match Key::find(&full) {
                Some(key) => self.key(key, spot, value),
                None => self.unknown(path, &name, spot),
            }
        }
    }

    fn key(&mut self, key: &'static Key, spot: Spot, node: &Node) {
        if key.is_section() {
            return self.section(key.path, node);
        }
        match self.reader.value(key, node) {
            Ok(value) => {
                if let (Shape::Paths { .. }, Raw::List(nodes)) = (&key.shape, &node.value) {
                    self.rules = nodes.iter().map(|node| node.spot).collect();
                }
                self.given.insert(key.path, Given { spot: node.spot, value });
            }
            Err(mut wrong) => {
                // A value that is not there has its place in the next line: the key is what people look for.
                if matches!(node.value, Raw::Null) {
                    wrong.spot = spot;
                }
                self.failed.insert(key.path);
                self.report(key.path, wrong);
            }
        }
    }

    fn no_section(&mut self, path: &str, node: &Node, value: &Raw) {
        let key = Key::find(path);
        let word = key.and_then(|key| match key.shape {
            Shape::Section { word } => word.map(|stand| stand.word),
            _ => None,
        });
        if let (Some(key), Some(word), Raw::Text(text)) = (key, word, value)
            && word == text
        {
            self.given.insert(key.path, Given { spot: node.spot, value: Value::Word(word) });
            return;
        }
        let names: Vec<&str> = Key::of_section(path).map(Key::name).collect();
        let described = self.reader.describe(node);
        let message = match (path, word) {
            ("", _) => format!("the file must be a list of `key: value` lines, not {described}"),
            (_, Some(word)) => format!("`{path}` must be `{word}` or hold keys, not {described}"),
            (_, None) => format!("`{path}` is a section: it must hold keys, not {described}"),
        };
        let hint = Some(format!("its keys are {}", names.join(", ")));
        self.report(path, Wrong { spot: node.spot, message, hint, hide: None });
    }

    fn unknown(&mut self, section: &str, name: &str, spot: Spot) {
        let quoted = self.reader.source.quote(name);
        let message = match section {
            "" => format!("unknown key `{quoted}`"),
            _ => format!("unknown key `{quoted}` in `{section}`"),
        };
        let hint = Some(hint_for_unknown(section, name));
        let path = if section.is_empty() { quoted } else { format!("{section}.{quoted}") };
        self.report(&path, Wrong { spot, message, hint, hide: None });
    }

    /// Two keys that set the same thing: the later one of the file is the one that is too much.
    fn contradictions(&mut self) {
        let mut found = Vec::new();
        for (one, two, what) in EXCLUSIVE {
            let (Some(first), Some(second)) = (self.spot(one), self.spot(two)) else { continue };
            let ((first, one), (second, two)) =
                if first <= second { ((first, one), (second, two)) } else { ((second, two), (first, one)) };
            let message = format!("`{two}` sets {what}, and so does `{one}` in line {}", first.line);
            found.push(self.problem(second, two, message, Some("keep one of the two".to_owned())));
        }
        self.problems.extend(found);
    }

    /// Keys that are read only together with another one.
    fn needs(&mut self, config: &Config) {
        let has_redis = matches!(config.store.place, crate::config::StorePlace::Redis { .. });
        if let (Some(spot), false, false) = (self.spot("store.prefix"), has_redis, self.failed("store.redis"))
        {
            let message = "`store.prefix` is read only together with `store.redis`".to_owned();
            let hint = Some("set `store.redis`, or take `prefix` out".to_owned());
            self.problems.push(self.problem(spot, "store.prefix", message, hint));
        }
        let (rate, length) = ("breaker.window.slow.rate", "breaker.window.slow.longer_than");
        if let (Some(spot), None, false) = (self.spot(rate), self.spot(length), self.failed(length)) {
            let message = format!("`{rate}` is set, but not from when on a call is slow");
            let hint = Some(format!("set `{length}` too, such as `30s`"));
            self.problems.push(self.problem(spot, rate, message, hint));
            // The core would say the same in its own words.
            self.failed.insert(length);
        }
    }
}

fn key_name(key: &Raw) -> Option<String> {
    match key {
        Raw::Text(text) => Some(text.clone()),
        Raw::Whole(count) => Some(count.to_string()),
        Raw::Number(number) => Some(number.to_string()),
        Raw::Flag(flag) => Some(flag.to_string()),
        Raw::Null | Raw::List(_) | Raw::Map(_) => None,
    }
}

fn hint_for_unknown(section: &str, name: &str) -> String {
    if name == "<<" {
        return "merge keys are not read here: write the keys out".to_owned();
    }
    let known: Vec<&str> = Key::of_section(section).map(Key::name).collect();
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    // Right name, wrong place: most often the indentation.
    let elsewhere = |name: &str| -> Vec<String> {
        KEYS.iter().filter(|key| key.name() == name).take(3).map(|key| format!("`{}`", key.path)).collect()
    };
    match (elsewhere(name), nearest(name, KEYS.iter().map(Key::name))) {
        (places, _) if !places.is_empty() => {
            format!("there is {}: is the indentation right?", places.join(" and "))
        }
        (_, Some(near)) => format!("did you mean {}?", elsewhere(near).join(" or ")),
        _ => format!("known here: {}", known.join(", ")),
    }
}

/// What the library says of broken YAML, what that most often means, and what to do.
const BROKEN: &[(&str, &str, &str)] = &[
    ("tab", "a tab is used as indentation", "YAML is indented with spaces: replace the tab"),
    (
        "did not find expected key",
        "the indentation does not fit the lines above",
        "keys of one section begin in the same column; a quote that is not closed above does this too",
    ),
    (
        "indentation",
        "the indentation does not fit, or a quote above is not closed",
        "close the quote, or begin the keys of one section in the same column",
    ),
    (
        "mapping values are not allowed",
        "a second `: ` in one line",
        "put a value that holds `: ` in quotes, or the second key in a line of its own",
    ),
    ("unclosed", "a bracket or quote is not closed", "close it, or put the whole value in quotes"),
    (
        "multiple yaml documents", "a second document begins here",
        "one file holds one config: take the `---` line above out",
    ),
    ("unexpected character", "a character that cannot begin a value", "put the value in quotes"),
    (
        "unknown anchor", "an alias (`*name`) without its anchor (`&name`)",
        "put a value that begins with `*` in quotes",
    ),
    ("budget", TOO_MUCH, "is this the right file?"),
    ("limit", TOO_MUCH, "is this the right file?"),
];
const TOO_MUCH: &str = "too deep, too many values or too many aliases for a config";

fn broken_yaml(source: &Source<'_>, broken: &tree::Broken) -> Problem {
    let said = broken.message.to_lowercase();
    let (message, hint) = match BROKEN.iter().find(|(part, _, _)| said.contains(part)) {
        Some((_, message, hint)) => ((*message).to_owned(), *hint),
        None => (
            format!("this is not YAML: {}", crate::check::printable(&broken.message)),
            "quotes, brackets and indentation are what most often goes wrong",
        ),
    };
    match broken.spot {
        Some(spot) => source.problem(spot, "", message, Some(hint.to_owned()), None),
        None => Problem::of_file(source.name, message, Some(hint.to_owned())),
    }
}
