//! Walks over the tree of a file: checks every key against the table, reads every value on its own.
//!
//! One mistake does not hide the next: a wrong key is reported and left out, and the walk continues after it. The values
//! that were read can be looked up by key, for the checks of keys against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::as_text;
use crate::at::{At, Id};
use crate::check::{MAX_PROBLEMS, Problem};
use crate::config::Config;
use crate::mask;
use crate::near::{hint_for_unknown, meant};
use crate::read::{Reader, Wrong};
use crate::schema::{Entries, KEYS, Key, MAX_ENTRIES, Shape, Value};
use crate::source::Source;
use crate::spacing;
use crate::tree::{Node, Raw, Spot};
use crate::words::{Text, Words, text, tr, words};

/// A value in the file.
#[derive(Debug)]
pub(crate) struct GivenKey {
    pub(crate) at: At,
    pub(crate) spot: Spot,
    /// The places of a list's items.
    pub(crate) parts: Vec<Spot>,
    value: Value,
}

/// The walk over the tree, and what it found.
pub(crate) struct Walk<'a> {
    reader: Reader<'a>,
    given: BTreeMap<Id, GivenKey>,
    /// Entries by the path of their row and by their name, with the place of the name.
    entries: BTreeMap<&'static str, BTreeMap<String, (At, Spot)>>,
    /// Keys whose value could not be read, and sections with such keys.
    failed: BTreeSet<Id>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// Problems that were only counted.
    pub(crate) more: usize,
}

impl<'a> Walk<'a> {
    /// A new walk.
    pub(crate) fn new(
        source: &'a Source<'a>,
        lookup: &'a dyn Fn(&str) -> Option<String>,
        folder: &'a Path,
    ) -> Self {
        Self {
            reader: Reader { source, lookup, folder },
            given: BTreeMap::new(),
            entries: BTreeMap::new(),
            failed: BTreeSet::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            more: 0,
        }
    }
}

impl Walk<'_> {
    fn report(&mut self, path: &str, wrong: Wrong) {
        // The walk goes through the file from top to bottom: further problems would not be listed.
        if self.problems.len() >= MAX_PROBLEMS {
            self.more += 1;
            return;
        }
        let Wrong { spot, message, hint } = wrong;
        self.problems.push(self.reader.source.problem(spot, path, message, hint));
    }

    fn complain(&mut self, path: &str, spot: Spot, message: impl Into<Text>, hint: Option<Text>) {
        self.report(path, Wrong { spot, message: message.into(), hint });
    }

    /// A problem of a key, at a place of the file.
    pub(crate) fn problem(&self, at: &At, spot: Spot, message: Text, hint: Option<Text>) -> Problem {
        self.reader.source.problem(spot, &at.shown, message, hint)
    }

    /// The value of a key in the file.
    pub(crate) fn given(&self, path: &'static str, entry: &str) -> Option<&GivenKey> {
        self.given.get(&(path, entry.to_owned()))
    }

    /// The values of a key of the table, entry by entry.
    pub(crate) fn all_given(&self, path: &'static str) -> impl Iterator<Item = &GivenKey> {
        let from = (path, String::new());
        self.given.range(from..).take_while(move |(id, _)| id.0 == path).map(|(_, given)| given)
    }

    /// The entries of a row, with the places of their names.
    pub(crate) fn entries(&self, row: &str) -> impl Iterator<Item = &(At, Spot)> {
        self.entries.get(row).into_iter().flat_map(BTreeMap::values)
    }

    /// The names of the entries of a row, in the order of the file.
    pub(crate) fn names_in_order(&self, row: &str) -> Vec<String> {
        let mut entries: Vec<&(At, Spot)> = self.entries(row).collect();
        entries.sort_by_key(|(_, spot)| *spot);
        entries.into_iter().map(|(at, _)| at.entry.clone()).collect()
    }

    /// Whether this text stands in the file as it is, and does not come from a variable.
    pub(crate) fn is_in_file(&self, text: &str) -> bool {
        self.reader.source.text.contains(text)
    }

    /// A value as it can be quoted in a message.
    pub(crate) fn quote(&self, value: &str) -> String {
        self.reader.source.quote(value)
    }

    /// Whether the file has this key, but with an unreadable value; for a section, any entry of it.
    pub(crate) fn failed(&self, path: &'static str, entry: &str) -> bool {
        self.failed.contains(&(path, entry.to_owned()))
    }

    /// Marks a key as failed, so that no further problem about it is reported.
    pub(crate) fn give_up(&mut self, path: &'static str) {
        self.failed.insert((path, String::new()));
    }

    /// The defaults with the values of the file, in the order of the table.
    pub(crate) fn config(&self) -> Config {
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

    /// Walks through a section, or through the whole file.
    pub(crate) fn section(&mut self, at: Option<&At>, node: &Node) {
        let path = at.map_or("", |at| at.key.path);
        let entries = match &node.value {
            Raw::Null => return,
            Raw::Map(entries) => entries,
            other => return self.no_section(at, node, other),
        };
        let row = Key::of_section(path).find(|key| matches!(key.shape, Shape::Entry(_)));
        // By the current name: an old and a new name are the same key.
        let mut seen: BTreeMap<String, (String, Spot)> = BTreeMap::new();
        for (name_node, value) in entries {
            let spot = name_node.spot;
            let Some(name) = key_name(&name_node.value) else {
                let path = at.map_or("", |at| &at.shown);
                self.complain(
                    path,
                    spot,
                    words("a key must be a word", "設定項目の名前は単語で書いてください"),
                    None,
                );
                continue;
            };
            let known = if row.is_some() { None } else { Key::named(path, &name) };
            let counts = known.map_or_else(|| name.clone(), |key| key.name().to_owned());
            if let Some(first) = seen.get(&counts) {
                self.set_twice(at, (&name, spot), first);
                continue;
            }
            seen.insert(counts, (name.clone(), spot));
            match (row, known) {
                (Some(row), _) => self.entry(at, row, (name_node, &name), value),
                (None, Some(key)) => {
                    if key.name() != name {
                        self.old_name(at, key, &name, spot);
                    }
                    self.old_word(at, key, value);
                    self.key(&At::within(at, key), spot, value);
                }
                (None, None) => self.unknown(at, (&name, spot), value, entries),
            }
        }
    }

    fn set_twice(&mut self, section: Option<&At>, (name, spot): (&str, Spot), first: &(String, Spot)) {
        let full = At::join(section, &self.quote(name));
        let line = first.1.line;
        let message = if first.0 == name {
            text!(
                "`{full}` is set twice; the first time in line {line}",
                "`{full}` が 2 回設定されています（1 回目は {line} 行目）"
            )
        } else {
            let other = At::join(section, &self.quote(&first.0));
            text!(
                "`{full}` and `{other}` in line {line} are the old and the new name of one key",
                "`{full}` と {line} 行目の `{other}` は同じ設定項目です（旧名と新名の両方が書かれています）"
            )
        };
        self.complain(
            &full,
            spot,
            message,
            Some(words("keep one of the two", "どちらか一方を残してください").into()),
        );
    }

    fn old_name(&mut self, section: Option<&At>, key: &Key, name: &str, spot: Spot) {
        let (old, new) = (At::join(section, name), At::join(section, key.name()));
        let message = text!(
            "`{old}` is an old name: it is called `{new}` now",
            "`{old}` は旧名です。現在の名前は `{new}` です"
        );
        let hint = text!(
            "write `{}`; the old name is still read",
            "`{}` と書いてください（旧名も引き続き使えます）",
            key.name()
        );
        self.warnings.push(self.reader.source.problem(spot, &old, message, Some(hint)));
    }

    fn old_word(&mut self, section: Option<&At>, key: &Key, value: &Node) {
        let Raw::Text(word) = &value.value else { return };
        let Some(now) = key.renamed_word(word) else { return };
        let path = At::join(section, key.name());
        let message = text!(
            "`{word}` is an old word for `{path}`: it is called `{now}` now",
            "`{path}` の `{word}` は旧名です。現在の名前は `{now}` です"
        );
        let hint = text!(
            "write `{now}`; the old word is still read",
            "`{now}` と書いてください（旧名も引き続き使えます）"
        );
        self.warnings.push(self.reader.source.problem(value.spot, &path, message, Some(hint)));
    }

    /// Reads an entry under a name of the user's choice.
    fn entry(&mut self, section: Option<&At>, row: &'static Key, name: (&Node, &str), value: &Node) {
        let Shape::Entry(entries) = &row.shape else { return };
        let (Node { spot, value: raw }, name) = name;
        let shown = if mask::is_plain_name(row, name, value) {
            self.reader.source.name(name)
        } else {
            "***".to_owned()
        };
        let at = At::entry(section, row, name, &shown);
        let count = self.entries.get(row.path).map_or(0, BTreeMap::len);
        let wrong: Option<(Text, Option<Text>)> = match raw {
            Raw::Text(_) if !(entries.name.holds)(name) => Some((
                Text::of(|language| {
                    let (path, form) = (&at.shown, entries.name.description.get(language));
                    tr!(
                        language, "the name of `{path}` must be {form}",
                        "`{path}` の名前は{form}にしてください"
                    )
                }),
                (entries.name.hint)(name).map(Text::from),
            )),
            Raw::Text(_) if count >= MAX_ENTRIES => Some((
                text!(
                    "there are more than {MAX_ENTRIES} entries here",
                    "ここには {MAX_ENTRIES} 件までしか書けません"
                ),
                Some(
                    words(
                        "what only differs in its name can share an entry with `*`",
                        "名前だけが違うものは、`*` を使って 1 件にまとめられます",
                    )
                    .into(),
                ),
            )),
            Raw::Text(_) => None,
            _ => Some((
                text!("the name of `{}` must be text", "`{}` の名前は文字列にしてください", at.shown),
                Some(words("put it in quotes", "引用符で囲んでください").into()),
            )),
        };
        if let Some((message, hint)) = wrong {
            // One problem about too many is enough.
            if count < MAX_ENTRIES || !self.failed(row.path, "") {
                self.complain(&at.shown, *spot, message, hint);
            }
            self.give_up(row.path);
            if count < MAX_ENTRIES && self.problems.len() < MAX_PROBLEMS {
                self.below_wrong_name(&at, entries, value, *spot);
            }
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

    /// Reads what stands below a name that cannot be used: a wrong name hides no other mistake. No value of it is kept.
    fn below_wrong_name(&mut self, at: &At, entries: &Entries, value: &Node, spot: Spot) {
        if matches!(value.value, Raw::Map(_)) {
            self.section(Some(at), value);
            self.required(at, entries, spot);
        }
        self.given.retain(|(path, entry), _| *entry != at.entry || !path.starts_with(at.key.path));
    }

    fn required(&mut self, at: &At, entries: &Entries, spot: Spot) {
        if self.failed(at.key.path, &at.entry) {
            return;
        }
        for key in entries.required.iter().filter_map(|name| child(at.key, name)) {
            if self.given(key.path, &at.entry).is_none() && !self.failed(key.path, &at.entry) {
                let message = text!("`{}` has no `{}`", "`{}` に `{}` がありません", at.shown, key.name());
                let hint = Text::of(|language| {
                    let range = key.range_in(language);
                    tr!(language, "it must have one: {range}", "必須です: {range}")
                });
                self.complain(&at.shown, spot, message, Some(hint));
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
                self.given.insert(at.id(), GivenKey { at: at.clone(), spot: node.spot, parts, value });
            }
            Err(mut wrong) => {
                // A missing value has its place in the next line: users look for the key.
                if matches!(node.value, Raw::Null) {
                    wrong.spot = spot;
                }
                self.failed.insert(at.id());
                match &node.value {
                    Raw::List(nodes) if nodes.len() > 1 => self.parts(at, node.spot, nodes, wrong),
                    _ => self.report(&at.shown, wrong),
                }
            }
        }
    }

    /// Reads a list with mistakes: every wrong item is reported, and the others take part in further checks.
    fn parts(&mut self, at: &At, spot: Spot, nodes: &[Node], whole: Wrong) {
        let list = |nodes: Vec<Node>| Node { spot, value: Raw::List(nodes) };
        let mut good = Vec::new();
        for node in nodes {
            match self.reader.value(at, &list(vec![node.clone()])) {
                Ok(_) => good.push(node.clone()),
                Err(wrong) => self.report(&at.shown, wrong),
            }
        }
        // Each item is right by itself: the list is wrong.
        if good.len() == nodes.len() {
            return self.report(&at.shown, whole);
        }
        let parts = good.iter().map(|node| node.spot).collect();
        if let Ok(value) = self.reader.value(at, &list(good)) {
            self.given.insert(at.id(), GivenKey { at: at.clone(), spot, parts, value });
        }
    }

    /// Reports something else in place of keys. Its content stays hidden: users write keys and passwords there.
    fn no_section(&mut self, at: Option<&At>, node: &Node, value: &Raw) {
        let described = |language| kind_of(value).get(language);
        let names = |path: &str| -> Vec<&str> {
            Key::of_section(path).map(Key::name).filter(|name| *name != "*").collect()
        };
        let its_keys = |names: &[&str]| {
            Text::new(
                format!("its keys are {}", names.join(", ")),
                format!("使える設定項目: {}", names.join("、")),
            )
        };
        let Some(at) = at else {
            let message = Text::of(|language| {
                let described = described(language);
                tr!(
                    language,
                    "the file must consist of `key: value` lines, but its top level is {described}",
                    "ファイルの最上位は `設定項目: 値` の形で書いてください（{described}になっています）"
                )
            });
            return self.complain("", node.spot, message, Some(its_keys(&names(""))));
        };
        let word = match at.key.shape {
            Shape::Section { word, .. } => word.map(|stand| stand.word),
            _ => None,
        };
        if let (Shape::Section { short: Some(short), .. }, Raw::Text(_)) = (&at.key.shape, value)
            && let Some(key) = Key::of_section(at.key.path).find(|key| key.name() == *short)
        {
            return self.key(&At::within(Some(at), key), node.spot, node);
        }
        if let (Some(word), Raw::Text(text)) = (word, value)
            && word == text
        {
            let given =
                GivenKey { at: at.clone(), spot: node.spot, parts: Vec::new(), value: Value::Word(word) };
            self.given.insert(at.id(), given);
            return;
        }
        self.failed.insert(at.id());
        let short = match &at.key.shape {
            Shape::Entry(entries) => entries.short,
            _ => None,
        };
        let shown = &at.shown;
        let message = Text::of(|language| {
            let described = described(language);
            match (word, short) {
                (Some(word), _) => tr!(
                    language,
                    "`{shown}` must be `{word}` or hold keys, not {described}",
                    "`{shown}` は `{word}` にするか、中に設定項目を書いてください（{described}になっています）"
                ),
                (_, Some(_)) => tr!(
                    language,
                    "`{shown}` must be a list or hold keys, not {described}",
                    "`{shown}` はリストにするか、中に設定項目を書いてください（{described}になっています）"
                ),
                _ => tr!(
                    language,
                    "`{shown}` is a section: it must hold keys, not {described}",
                    "`{shown}` はセクションです。中に設定項目を書いてください（{described}になっています）"
                ),
            }
        });
        let own = match value {
            Raw::Text(_) if matches!(at.key.shape, Shape::Entry(_)) && child(at.key, &at.entry).is_some() => {
                let (name, section) = (&at.entry, section_of(shown));
                Some(text!(
                    "`{name}` is a key of an entry of `{section}`: indent it further, below the entry that it belongs to",
                    "`{name}` は `{section}` の各項目の中に書く設定です。対象の項目の下に字下げして書いてください"
                ))
            }
            Raw::Text(text) => spacing::of_text(text).or_else(|| as_text::hint(at.key.path, text)),
            _ => None,
        };
        let hint = own.unwrap_or_else(|| match (short, value, names(at.key.path)) {
            (Some(_), Raw::Text(text), _) => as_text::as_list(&self.quote(text)),
            (_, _, names) if names.is_empty() => words(
                "write a name of your choice, a colon, and its keys below",
                "任意の名前とコロンを書き、その下に設定項目を書いてください",
            )
            .into(),
            (_, _, names) => its_keys(&names),
        });
        self.complain(shown, node.spot, message, Some(hint));
    }

    /// Reports a key that is not in the table. A misspelt section is read as the one that is meant, so that the mistake hides no other.
    fn unknown(
        &mut self,
        section: Option<&At>,
        (name, spot): (&str, Spot),
        value: &Node,
        beside: &[(Node, Node)],
    ) {
        let path = section.map_or("", |section| section.key.path);
        let shown = mask::is_shown_unknown(path, name);
        let quoted = if shown { self.reader.source.name(name) } else { "***".to_owned() };
        let message = match section {
            None => text!("unknown key `{quoted}`", "`{quoted}` という設定項目はありません"),
            Some(section) => {
                let section = &section.shown;
                text!(
                    "unknown key `{quoted}` in `{section}`",
                    "`{section}` に `{quoted}` という設定項目はありません"
                )
            }
        };
        let hint = (self.problems.len() < MAX_PROBLEMS).then(|| hint_for_unknown(path, name));
        // The missing key is not reported besides the misspelt one.
        let entry = section.map(|section| section.entry.clone()).unwrap_or_default();
        let full = At::join(section, &quoted);
        self.complain(&full, spot, message, hint);
        let Some(key) = meant(path, name) else { return };
        let is_given =
            || beside.iter().any(|(name, _)| key_name(&name.value).is_some_and(|n| n == key.name()));
        if key.is_section() && matches!(value.value, Raw::Map(_)) && !is_given() {
            self.section(Some(&At { shown: full, ..At::within(section, key) }), value);
        } else {
            self.failed.insert((key.path, entry));
        }
    }
}

/// The type of a value, without its content.
fn kind_of(value: &Raw) -> Words {
    match value {
        Raw::Null => words("nothing", "値なし"),
        Raw::Flag(_) => words("`true` or `false`", "真偽値"),
        Raw::Whole(_) | Raw::Number(_) => words("a number", "数値"),
        Raw::Text(_) => words("text", "文字列"),
        Raw::List(_) => words("a list", "リスト"),
        Raw::Map(_) => words("keys", "設定項目"),
    }
}

/// The path of the section that an entry stands in.
fn section_of(shown: &str) -> &str {
    shown.rsplit_once('.').map_or(shown, |(section, _)| section)
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
