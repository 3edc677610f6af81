//! From text to a config that can be used, or everything that is wrong with it.
//!
//! The tree of the file is walked against the table of keys; each value is read on its own, so one mistake does not hide the
//! next. Then the values are put into the defaults in the order of the table, keys are held against each other (`cross`)
//! and the core's policies are asked whether the whole makes sense (`policy`). A value that could not be read leaves its
//! default in place for that, and complaints that only follow from it are not made.
//!
//! No file is touched here; see [`load_file`](crate::file::load_file) for that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::at::{At, Id};
use crate::broken::broken_yaml;
use crate::check::{MOST, Problem, Problems, Source};
use crate::config::Config;
use crate::near::{hint_for_unknown, meant};
use crate::read::{Reader, Wrong};
use crate::schema::{Entries, KEYS, Key, MOST_ENTRIES, Shape, Value};
use crate::tree::{self, Node, Raw, Spot};
use crate::{cross, mask, policy};

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
    let root = tree::parse(text)
        .map_err(|broken| Problems::new(vec![broken_yaml(&Source::new(name, text), &broken)]))?;
    let secrets = root.as_ref().map(mask::secrets).unwrap_or_default();
    let source = Source::hiding(name, text, &secrets);
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let mut walk = Walk {
        reader: Reader { source: &source, lookup, folder },
        given: BTreeMap::new(),
        entries: BTreeMap::new(),
        failed: BTreeSet::new(),
        problems: Vec::new(),
        more: 0,
    };
    if let Some(root) = &root {
        walk.section(None, root);
    }
    let config = walk.config();
    let crossed = cross::check(&config, &mut walk);
    walk.problems.extend(crossed);
    let sense = policy::check(&mut config.clone(), &walk);
    walk.problems.extend(sense);
    if walk.problems.is_empty() {
        let rules = walk.given("rules", "").map(|given| given.parts.clone()).unwrap_or_default();
        Ok(Loaded { config, rules })
    } else {
        Err(Problems::with_more(walk.problems, walk.more))
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
    pub(crate) at: At,
    pub(crate) spot: Spot,
    /// Where the parts of a list stand.
    pub(crate) parts: Vec<Spot>,
    value: Value,
}

/// The walk over the tree, and what it found.
pub(crate) struct Walk<'a> {
    reader: Reader<'a>,
    given: BTreeMap<Id, Given>,
    /// Entries by the path of their row and by their name, with the place of that.
    entries: BTreeMap<&'static str, BTreeMap<String, (At, Spot)>>,
    /// Keys whose value could not be read, and sections of which not all could.
    failed: BTreeSet<Id>,
    problems: Vec<Problem>,
    /// Problems that were only counted.
    more: usize,
}

impl Walk<'_> {
    fn report(&mut self, path: &str, wrong: Wrong) {
        // The walk goes through the file from top to bottom: what comes now would not be listed.
        if self.problems.len() >= MOST {
            self.more += 1;
            return;
        }
        let Wrong { spot, message, hint, hide } = wrong;
        self.problems.push(self.reader.source.problem(spot, path, message, hint, hide));
    }

    fn complain(&mut self, path: &str, spot: Spot, message: String, hint: Option<String>) {
        self.report(path, Wrong { spot, message, hint, hide: None });
    }

    /// A problem of a key, at a place of the file.
    pub(crate) fn problem(&self, at: &At, spot: Spot, message: String, hint: Option<String>) -> Problem {
        let secret = matches!(at.key.shape, Shape::Secret { .. } | Shape::Secrets { .. });
        self.reader.source.problem(spot, &at.shown, message, hint, secret.then_some(spot.place()))
    }

    /// What the file gives for a key.
    pub(crate) fn given(&self, path: &'static str, entry: &str) -> Option<&Given> {
        self.given.get(&(path, entry.to_owned()))
    }

    /// What the file gives for a key of the table, entry by entry.
    pub(crate) fn all_given(&self, path: &'static str) -> impl Iterator<Item = &Given> {
        let from = (path, String::new());
        self.given.range(from..).take_while(move |(id, _)| id.0 == path).map(|(_, given)| given)
    }

    /// The entries of a row, with the places of their names.
    pub(crate) fn entries(&self, row: &str) -> impl Iterator<Item = &(At, Spot)> {
        self.entries.get(row).into_iter().flat_map(BTreeMap::values)
    }

    /// A value as it can be quoted in a message.
    pub(crate) fn quote(&self, value: &str) -> String {
        self.reader.source.quote(value)
    }

    /// Whether the file gives this key, but not in a way that could be read; for a section, any entry of it.
    pub(crate) fn failed(&self, path: &'static str, entry: &str) -> bool {
        self.failed.contains(&(path, entry.to_owned()))
    }

    /// Says that nothing can be said about a key any more.
    pub(crate) fn give_up(&mut self, path: &'static str) {
        self.failed.insert((path, String::new()));
    }

    /// The defaults with the values of the file, in the order of the table.
    fn config(&self) -> Config {
        let mut config = Config::default();
        for key in KEYS.iter() {
            if let Shape::Entry(entries) = &key.shape {
                for (at, _) in self.entries(key.path) {
                    (entries.add)(&mut config, &at.entry);
                }
            }
            for given in self.all_given(key.path) {
                key.set(&mut config, &given.at.entry, given.value.clone());
            }
        }
        config
    }

    fn section(&mut self, at: Option<&At>, node: &Node) {
        let path = at.map_or("", |at| at.key.path);
        let entries = match &node.value {
            Raw::Null => return,
            Raw::Map(entries) => entries,
            other => return self.no_section(at, node, other),
        };
        let row = Key::of_section(path).find(|key| matches!(key.shape, Shape::Entry(_)));
        let mut seen: BTreeMap<String, Spot> = BTreeMap::new();
        for (name_node, value) in entries {
            let spot = name_node.spot;
            let Some(name) = key_name(&name_node.value) else {
                let path = at.map_or("", |at| &at.shown);
                self.complain(path, spot, "a key must be a word".to_owned(), None);
                continue;
            };
            if let Some(first) = seen.get(&name) {
                let full = At::join(at, &self.quote(&name));
                let message = format!("`{full}` is set twice; the first time in line {}", first.line);
                self.complain(&full, spot, message, Some("keep one of the two".to_owned()));
                continue;
            }
            seen.insert(name.clone(), spot);
            match (row, Key::of_section(path).find(|key| key.name() == name)) {
                (Some(row), _) => self.entry(at, row, (name_node, &name), value),
                (None, Some(key)) => self.key(&At::within(at, key), spot, value),
                (None, None) => self.unknown(at, &name, spot),
            }
        }
    }

    /// An entry under a name of the user's choice.
    fn entry(&mut self, section: Option<&At>, row: &'static Key, name: (&Node, &str), value: &Node) {
        let Shape::Entry(entries) = &row.shape else { return };
        let (Node { spot, value: raw }, name) = name;
        let at = At::entry(section, row, name, &self.quote(name));
        let count = self.entries.get(row.path).map_or(0, BTreeMap::len);
        let wrong = match raw {
            Raw::Text(_) if !(entries.name.holds)(name) => Some((
                format!("the name of `{}` must be {}", at.shown, entries.name.said),
                (entries.name.hint)(name).map(str::to_owned),
            )),
            Raw::Text(_) if count >= MOST_ENTRIES => Some((
                format!("there are more than {MOST_ENTRIES} entries here"),
                Some("what only differs in its name can share an entry with `*`".to_owned()),
            )),
            Raw::Text(_) => None,
            _ => Some((
                format!("the name of `{}` must be text", at.shown),
                Some("put it in quotes".to_owned()),
            )),
        };
        if let Some((message, hint)) = wrong {
            // One complaint about too many is enough.
            if count < MOST_ENTRIES || !self.failed(row.path, "") {
                self.complain(&at.shown, *spot, message, hint);
            }
            self.give_up(row.path);
            return;
        }
        self.entries.entry(row.path).or_default().insert(name.to_owned(), (at.clone(), *spot));
        let short = entries.short.and_then(|short| Key::of_section(row.path).find(|key| key.name() == short));
        match (short, &value.value) {
            (Some(key), Raw::List(_)) => self.key(&At::within(Some(&at), key), *spot, value),
            _ => self.section(Some(&at), value),
        }
        self.required(&at, entries, *spot);
    }

    fn required(&mut self, at: &At, entries: &Entries, spot: Spot) {
        if self.failed(at.key.path, &at.entry) {
            return;
        }
        for key in entries.required.iter().filter_map(|name| child(at.key, name)) {
            if self.given(key.path, &at.entry).is_none() && !self.failed(key.path, &at.entry) {
                let message = format!("`{}` has no `{}`", at.shown, key.name());
                let hint = Some(format!("it must have one: {}", key.range_text()));
                self.complain(&at.shown, spot, message, hint);
            }
        }
    }

    fn key(&mut self, at: &At, spot: Spot, node: &Node) {
        if at.key.is_section() {
            return self.section(Some(at), node);
        }
        match self.reader.value(at, node) {
            Ok(value) => {
                let parts = match &node.value {
                    Raw::List(nodes) => nodes.iter().map(|node| node.spot).collect(),
                    _ => Vec::new(),
                };
                self.given.insert(at.id(), Given { at: at.clone(), spot: node.spot, parts, value });
            }
            Err(mut wrong) => {
                // A value that is not there has its place in the next line: the key is what people look for.
                if matches!(node.value, Raw::Null) {
                    wrong.spot = spot;
                }
                self.failed.insert(at.id());
                self.report(&at.shown, wrong);
            }
        }
    }

    fn no_section(&mut self, at: Option<&At>, node: &Node, value: &Raw) {
        let described = self.reader.describe(node);
        let names = |path: &str| -> String {
            let names: Vec<&str> = Key::of_section(path).map(Key::name).filter(|name| *name != "*").collect();
            names.join(", ")
        };
        let Some(at) = at else {
            let message = format!("the file must be a list of `key: value` lines, not {described}");
            return self.complain("", node.spot, message, Some(format!("its keys are {}", names(""))));
        };
        let word = match at.key.shape {
            Shape::Section { word } => word.map(|stand| stand.word),
            _ => None,
        };
        if let (Some(word), Raw::Text(text)) = (word, value)
            && word == text
        {
            let given =
                Given { at: at.clone(), spot: node.spot, parts: Vec::new(), value: Value::Word(word) };
            self.given.insert(at.id(), given);
            return;
        }
        self.failed.insert(at.id());
        let short = match &at.key.shape {
            Shape::Entry(entries) => entries.short,
            _ => None,
        };
        let shown = &at.shown;
        let message = match (word, short) {
            (Some(word), _) => format!("`{shown}` must be `{word}` or hold keys, not {described}"),
            (_, Some(_)) => format!("`{shown}` must be a list or hold keys, not {described}"),
            _ => format!("`{shown}` is a section: it must hold keys, not {described}"),
        };
        let hint = match (short, value, names(at.key.path)) {
            (Some(_), Raw::Text(text), _) => format!("write `[\"{}\"]`", self.quote(text)),
            (_, _, names) if names.is_empty() => {
                "write a name of your choice, a colon, and its keys below".to_owned()
            }
            (_, _, names) => format!("its keys are {names}"),
        };
        self.complain(shown, node.spot, message, Some(hint));
    }

    fn unknown(&mut self, section: Option<&At>, name: &str, spot: Spot) {
        let quoted = self.quote(name);
        let message = match section {
            None => format!("unknown key `{quoted}`"),
            Some(section) => format!("unknown key `{quoted}` in `{}`", section.shown),
        };
        let path = section.map_or("", |section| section.key.path);
        let hint = (self.problems.len() < MOST).then(|| hint_for_unknown(path, name));
        // That a misspelt key is missing need not be said too.
        let entry = section.map(|section| section.entry.clone()).unwrap_or_default();
        if let Some(key) = meant(path, name) {
            self.failed.insert((key.path, entry));
        }
        self.complain(&At::join(section, &quoted), spot, message, hint);
    }
}

fn child(row: &Key, name: &str) -> Option<&'static Key> {
    Key::of_section(row.path).find(|key| key.name() == name)
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
