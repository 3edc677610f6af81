//! Which parts of a parsed file may be shown: names of keys, and values of keys that hold no secret.
//!
//! Everything else stays hidden: values of secret keys, of keys that do not exist, of a section in place of
//! keys, of a key whose value has the wrong type (a list in place of a text). A problem shows its line, and a line may contain more
//! than the wrong value: `{kind: opnai, keys: [hunter2]}`.

use crate::arguments;
use crate::near::meant;
use crate::schema::{KEYS, Key, Shape};
use crate::secret::is_one_variable;
use crate::tree::{Node, Raw, Spot};
use crate::vocabulary::{is_harmless, is_ours, is_shown_model};
use crate::wide::are_targets;

/// A shorter text is not searched for in other places: it would occur in ordinary words.
const MIN_SECRET: usize = 6;

/// What may be shown, and what must be hidden everywhere.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    /// Places of names and values.
    pub(crate) spots: Vec<Spot>,
    /// Texts in hidden places.
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

/// Examines a whole file.
pub(crate) fn visible_parts(root: &Node) -> Visible {
    let mut visible = Visible { providers: providers(root), ..Visible::default() };
    section("", root, &mut visible);
    // The longest first: one may be a part of another.
    visible.secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
    visible.secrets.dedup();
    visible
}

fn section(path: &'static str, node: &Node, visible: &mut Visible) {
    let Raw::Map(entries) = &node.value else { return hide(node, visible) };
    for (name_node, value) in entries {
        let name = match &name_node.value {
            Raw::Text(name) => name.as_str(),
            Raw::Map(_) | Raw::List(_) => {
                hide(name_node, visible);
                hide(value, visible);
                continue;
            }
            // Numbers and the like are no names.
            _ => "",
        };
        let key = Key::of_section(path).find(|key| key.name() == "*").or_else(|| Key::named(path, name));
        match key {
            Some(key) => {
                if is_plain_name(key, name, value) {
                    visible.spots.push(name_node.spot);
                }
                self::value(key, value, visible);
            }
            None => {
                if is_shown_unknown(path, name) {
                    visible.spots.push(name_node.spot);
                }
                hide(value, visible);
            }
        }
    }
}

/// Whether the name of a key or entry is surely no secret in the wrong place. Of `keys`, only entries that have keys
/// of their own surely have a name.
pub(crate) fn is_plain_name(key: &Key, name: &str, value: &Node) -> bool {
    if key.name() != "*" {
        return true;
    }
    let has_keys = matches!(&value.value, Raw::Map(entries) if entries.iter().any(|(name, _)| {
        matches!(&name.value, Raw::Text(name) if Key::named(key.path, name).is_some())
    }));
    is_harmless(name) || has_keys && key.path == "keys.*" && name.len() < 40
}

/// Whether an unknown name can be shown: one that looks like a key of ours, or too plain to be a secret.
pub(crate) fn is_shown_unknown(section: &str, name: &str) -> bool {
    let is_word = name.chars().count() <= 40 && !name.contains(['{', '}', '[', ']', '"', '\'', '$', '@']);
    is_word && (is_harmless(name) || meant(section, name).is_some())
}

/// The file that a text in the place of `store` names: by its path, or as an address of SQLite.
pub(crate) fn store_file(text: &str) -> Option<&str> {
    let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
    is_store_file(path).then_some(path)
}

/// Whether a text in the place of `store` is surely the name of a file: it ends like a database file, and is no address.
fn is_store_file(text: &str) -> bool {
    let ends = [".db", ".sqlite", ".sqlite3"].iter().any(|end| text.ends_with(end));
    let fits = |c: char| c.is_alphanumeric() || "._-/~".contains(c);
    ends && text.chars().all(fits) && is_harmless(text)
}

fn value(key: &'static Key, node: &Node, visible: &mut Visible) {
    match (&key.shape, &node.value) {
        (Shape::Entry(entries), Raw::List(_)) if entries.short.is_some() => {
            match entries.short.and_then(|short| Key::named(key.path, short)) {
                Some(short) => value(short, node, visible),
                None => hide(node, visible),
            }
        }
        (Shape::Entry(entries), Raw::Text(text)) if entries.short.is_some() && are_targets(text) => {
            visible.spots.push(node.spot);
        }
        (Shape::Section { short: Some(short), .. }, Raw::Text(_)) => match Key::named(key.path, short) {
            Some(short) => value(short, node, visible),
            None => hide(node, visible),
        },
        (Shape::Section { word: Some(stand), .. }, Raw::Text(text)) if stand.word == text => {
            visible.spots.push(node.spot);
        }
        (Shape::Section { .. }, Raw::Text(text)) if key.path == "store" && store_file(text).is_some() => {
            visible.spots.push(node.spot);
        }
        (Shape::Section { .. } | Shape::Entry(_), _) => section(key.path, node, visible),
        (Shape::Secret { .. } | Shape::Secrets { .. }, _) => hide(node, visible),
        (Shape::Texts { .. }, Raw::List(nodes)) if key.path == "routes.*.chain" => {
            nodes.iter().for_each(|node| link(node, visible));
        }
        (Shape::Texts { .. }, _) if key.is_command() => command(node, visible),
        (Shape::Texts { .. } | Shape::Paths { .. }, Raw::List(nodes)) => {
            nodes.iter().for_each(|node| scalar(node, visible));
        }
        // Regions and versions consist of letters and digits, like keys.
        (Shape::Text { form, .. }, Raw::Text(text))
            if ["location", "api_version"].contains(&key.name()) && text.len() < 24 && (form.holds)(text) =>
        {
            visible.spots.push(node.spot);
        }
        _ => scalar(node, visible),
    }
}

/// Shows a target of a chain. After the name of a provider in the file comes the name of a model or a deployment, which often has digits.
fn link(node: &Node, visible: &mut Visible) {
    let is_target = |text: &str| {
        text.split_once('/').is_some_and(|(provider, model)| {
            visible.providers.iter().any(|known| known == provider) && is_shown_model(model)
        })
    };
    match &node.value {
        Raw::Text(text) if is_target(text) => visible.spots.push(node.spot),
        _ => scalar(node, visible),
    }
}

/// Shows a program and those of its arguments that hold no secret. Of a line in place of the list, all is shown or nothing.
fn command(node: &Node, visible: &mut Visible) {
    match &node.value {
        Raw::Text(line) if !arguments::may_be_shown(&arguments::split(line)) => hide(node, visible),
        Raw::List(nodes) => {
            let text = |node: &Node| match &node.value {
                Raw::Text(text) => text.clone(),
                _ => String::new(),
            };
            let written: Vec<String> = nodes.iter().map(text).collect();
            for ((node, written), shown) in nodes.iter().zip(&written).zip(arguments::shown(&written)) {
                if *written == shown { scalar(node, visible) } else { hide(node, visible) }
            }
        }
        _ => scalar(node, visible),
    }
}

/// Shows a plain value; any other type stays hidden.
fn scalar(node: &Node, visible: &mut Visible) {
    let shown = match &node.value {
        Raw::Text(text) => is_harmless(text),
        Raw::Whole(count) => is_ours(&count.to_string()),
        Raw::Number(_) | Raw::Flag(_) | Raw::Null => true,
        Raw::List(_) | Raw::Map(_) => false,
    };
    if shown { visible.spots.push(node.spot) } else { hide(node, visible) }
}

/// Hides everything in a value.
fn hide(node: &Node, visible: &mut Visible) {
    match &node.value {
        Raw::Text(text) if is_one_variable(text) => {}
        Raw::Text(text) => {
            let text = behind_name(text.trim());
            if text.chars().count() >= MIN_SECRET && !is_ours(text) && !is_part_of_ours(text) {
                visible.secrets.push(text.to_owned());
            }
        }
        Raw::List(nodes) => nodes.iter().for_each(|node| hide(node, visible)),
        Raw::Map(entries) => entries.iter().for_each(|(name, value)| {
            hide(name, visible);
            hide(value, visible);
        }),
        Raw::Null | Raw::Flag(_) | Raw::Whole(_) | Raw::Number(_) => {}
    }
}

/// The value of `key：value` or `key:value`, which YAML reads as one text: the name of a key of ours is no secret.
fn behind_name(text: &str) -> &str {
    match text.split_once([':', '：']) {
        Some((name, value)) if is_ours(name.trim()) => value.trim(),
        _ => text,
    }
}

/// Whether a text is a part of a key's name: hiding it would hide the names of keys in messages.
fn is_part_of_ours(text: &str) -> bool {
    KEYS.iter().any(|key| key.path.contains(text))
}
