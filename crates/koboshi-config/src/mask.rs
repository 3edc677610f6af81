//! What of a file with a tree may be shown: names of keys, and values of keys that hold no secret.
//!
//! Whatever is not opened here stays hidden: values of secret keys, of keys that do not exist, of a section that should have
//! keys, of a key whose value has the wrong build (a list in place of a text). A problem shows its line, and a line may hold more
//! than the value that is wrong: `{kind: opnai, keys: [hunter2]}`.

use crate::near::meant;
use crate::schema::{KEYS, Key, Shape};
use crate::secret::is_one_variable;
use crate::tree::{Node, Raw, Spot};
use crate::vocabulary::{is_harmless, is_name, is_ours};

/// A shorter text is not searched for in other places: it would be found in plain words.
const SHORTEST_SECRET: usize = 6;

/// What may be shown, and what must not be anywhere.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// Places of names and values.
    pub(crate) spots: Vec<Spot>,
    /// Texts that stand in hidden places.
    pub(crate) secrets: Vec<String>,
    /// Names of the providers that the file has.
    providers: Vec<String>,
}

/// The names of entries under `providers`.
fn providers(root: &Node) -> Vec<String> {
    let Raw::Map(entries) = &root.value else { return Vec::new() };
    let is_named = |node: &Node, name: &str| matches!(&node.value, Raw::Text(text) if text == name);
    let Some((_, section)) = entries.iter().find(|(name, _)| is_named(name, "providers")) else {
        return Vec::new();
    };
    let Raw::Map(entries) = &section.value else { return Vec::new() };
    let name = |(name, value): &(Node, Node)| match (&name.value, &value.value) {
        (Raw::Text(name), Raw::Map(_)) if is_harmless(name) => Some(name.clone()),
        _ => None,
    };
    entries.iter().filter_map(name).collect()
}

/// Looks through a whole file.
pub(crate) fn open(root: &Node) -> Open {
    let mut open = Open { providers: providers(root), ..Open::default() };
    section("", root, &mut open);
    // The longest first: one may be a part of another.
    open.secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
    open.secrets.dedup();
    open
}

fn section(path: &'static str, node: &Node, open: &mut Open) {
    let Raw::Map(entries) = &node.value else { return hide(node, open) };
    for (name_node, value) in entries {
        let name = match &name_node.value {
            Raw::Text(name) => name.as_str(),
            Raw::Map(_) | Raw::List(_) => {
                hide(name_node, open);
                hide(value, open);
                continue;
            }
            // Numbers and the like are no names.
            _ => "",
        };
        let key = Key::of_section(path).find(|key| key.name() == "*").or_else(|| Key::named(path, name));
        match key {
            Some(key) => {
                if is_plain_name(key, name, value) {
                    open.spots.push(name_node.spot);
                }
                self::value(key, value, open);
            }
            None => {
                if is_shown_unknown(path, name) {
                    open.spots.push(name_node.spot);
                }
                hide(value, open);
            }
        }
    }
}

/// Whether the name of a key or entry is no key that somebody put in the wrong place. Of `keys`, only entries that have keys
/// of their own have surely a name.
pub(crate) fn is_plain_name(key: &Key, name: &str, value: &Node) -> bool {
    if key.name() != "*" {
        return true;
    }
    let has_keys = matches!(&value.value, Raw::Map(entries) if entries.iter().any(|(name, _)| {
        matches!(&name.value, Raw::Text(name) if Key::named(key.path, name).is_some())
    }));
    is_harmless(name) || has_keys && key.path == "keys.*" && name.len() < 40
}

/// Whether a name that is no key can be shown: one that looks like a key of ours, or too plain to be a secret.
pub(crate) fn is_shown_unknown(section: &str, name: &str) -> bool {
    let is_word = name.chars().count() <= 40 && !name.contains(['{', '}', '[', ']', '"', '\'', '$', '@']);
    is_word && (is_harmless(name) || meant(section, name).is_some())
}

/// Whether a text in the place of `store` is surely the name of a file: it ends as those of databases do, and is no address.
pub(crate) fn is_store_file(text: &str) -> bool {
    let ends = [".db", ".sqlite", ".sqlite3"].iter().any(|end| text.ends_with(end));
    let fits = |c: char| c.is_alphanumeric() || "._-/~".contains(c);
    ends && text.chars().all(fits) && is_harmless(text)
}

fn value(key: &'static Key, node: &Node, open: &mut Open) {
    match (&key.shape, &node.value) {
        (Shape::Entry(entries), Raw::List(_)) if entries.short.is_some() => {
            match entries.short.and_then(|short| Key::named(key.path, short)) {
                Some(short) => value(short, node, open),
                None => hide(node, open),
            }
        }
        (Shape::Section { word: Some(stand) }, Raw::Text(text)) if stand.word == text => {
            open.spots.push(node.spot);
        }
        (Shape::Section { .. }, Raw::Text(text)) if key.path == "store" && is_store_file(text) => {
            open.spots.push(node.spot);
        }
        (Shape::Section { .. } | Shape::Entry(_), _) => section(key.path, node, open),
        (Shape::Secret { .. } | Shape::Secrets { .. }, _) => hide(node, open),
        (Shape::Texts { .. }, Raw::List(nodes)) if key.path == "routes.*.chain" => {
            nodes.iter().for_each(|node| link(node, open));
        }
        (Shape::Texts { .. } | Shape::Paths { .. }, Raw::List(nodes)) => {
            nodes.iter().for_each(|node| scalar(node, open));
        }
        // Regions and versions are made of letters and digits, as keys are.
        (Shape::Text { form, .. }, Raw::Text(text))
            if ["location", "api_version"].contains(&key.name()) && text.len() < 24 && (form.holds)(text) =>
        {
            open.spots.push(node.spot);
        }
        _ => scalar(node, open),
    }
}

/// Opens a target of a chain. Behind the name of a provider that the file has stands the name of a model or a deployment, which has digits
/// as often as not.
fn link(node: &Node, open: &mut Open) {
    let is_target = |text: &str| {
        text.split_once('/').is_some_and(|(provider, model)| {
            open.providers.iter().any(|known| known == provider) && is_name(model)
        })
    };
    match &node.value {
        Raw::Text(text) if is_target(text) => open.spots.push(node.spot),
        _ => scalar(node, open),
    }
}

/// Opens a plain value; what is built otherwise stays hidden.
fn scalar(node: &Node, open: &mut Open) {
    let shown = match &node.value {
        Raw::Text(text) => is_harmless(text),
        Raw::Whole(count) => is_ours(&count.to_string()),
        Raw::Number(_) | Raw::Flag(_) | Raw::Null => true,
        Raw::List(_) | Raw::Map(_) => false,
    };
    if shown { open.spots.push(node.spot) } else { hide(node, open) }
}

/// Keeps everything that is written in a value.
fn hide(node: &Node, open: &mut Open) {
    match &node.value {
        Raw::Text(text) if is_one_variable(text) => {}
        Raw::Text(text) => {
            if text.chars().count() >= SHORTEST_SECRET && !is_ours(text) && !is_part_of_ours(text) {
                open.secrets.push(text.trim().to_owned());
            }
        }
        Raw::List(nodes) => nodes.iter().for_each(|node| hide(node, open)),
        Raw::Map(entries) => entries.iter().for_each(|(name, value)| {
            hide(name, open);
            hide(value, open);
        }),
        Raw::Null | Raw::Flag(_) | Raw::Whole(_) | Raw::Number(_) => {}
    }
}

/// Whether a text is a part of a key's name: without it, messages could not name keys any more.
fn is_part_of_ours(text: &str) -> bool {
    KEYS.iter().any(|key| key.path.contains(text))
}
