//! Where secrets stand in the file, so that no problem shows them.
//!
//! A problem shows its line, and a line may hold more than the value that is wrong: `{kind: opnai, keys: [hunter2]}`. So the
//! places of all values of secret keys are found before anything is said. A misspelt key is treated like the
//! one that it looks like, and an unknown one in a section that has secrets like a secret. The name of a variable is no secret.
//!
//! Broken YAML has no tree. There the words of the line are looked at, and of the key above a list.

use crate::check::Place;
use crate::near::meant;
use crate::schema::{KEYS, Key, Shape};
use crate::secret::is_one_variable;
use crate::tree::{Node, Raw, Spot};

/// The places of what must not be shown.
pub(crate) fn secrets(root: &Node) -> Vec<Spot> {
    let mut found = Vec::new();
    section("", root, &mut found);
    found
}

fn section(path: &'static str, node: &Node, found: &mut Vec<Spot>) {
    let Raw::Map(entries) = &node.value else { return };
    let of_name = |name: &Node| match &name.value {
        Raw::Text(name) => {
            let key = Key::of_section(path).find(|key| key.name() == "*" || key.name() == name);
            key.or_else(|| meant(path, name))
        }
        _ => None,
    };
    let has_secrets = Key::of_section(path).any(is_secret);
    for (name, value) in entries {
        match of_name(name) {
            Some(key) if is_secret(key) => scalars(value, found),
            Some(key) if key.is_section() => section(key.path, value, found),
            None if has_secrets => scalars(value, found),
            _ => {}
        }
    }
}

fn is_secret(key: &Key) -> bool {
    matches!(key.shape, Shape::Secret { .. } | Shape::Secrets { .. })
}

/// Everything that is written in a value.
fn scalars(node: &Node, found: &mut Vec<Spot>) {
    match &node.value {
        Raw::Null => {}
        Raw::Text(text) if is_one_variable(text) => {}
        Raw::List(nodes) => nodes.iter().for_each(|node| scalars(node, found)),
        Raw::Map(entries) => entries.iter().for_each(|(name, value)| {
            scalars(name, found);
            scalars(value, found);
        }),
        _ => found.push(node.spot),
    }
}

/// From where on a line of a broken file must not be shown: behind the name of a secret key, or in a list under one.
pub(crate) fn in_broken(text: &str, number: u64) -> Option<Place> {
    let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index)?;
    let start = after_secret_name(line).or_else(|| {
        let is_part = |line: &str| line.trim_start().starts_with('-') || line.trim().is_empty();
        let above = text.lines().take(index).filter(|line| !is_part(line)).last()?;
        let dash = line.find('-').filter(|_| is_part(line))?;
        after_secret_name(above).map(|_| dash + 1)
    })?;
    let column = line.get(..start).unwrap_or_default().chars().count();
    Some(Place { line: number, column: u64::try_from(column).unwrap_or(u64::MAX).saturating_add(1) })
}

/// Where the value begins of the first secret key in a line.
fn after_secret_name(line: &str) -> Option<usize> {
    let value_of = |name: &str| {
        line.match_indices(name).find_map(|(at, _)| {
            let rest = line.get(at + name.len()..)?.trim_start_matches(['"', '\'', ' ']);
            rest.starts_with(':').then(|| line.len() - rest.len() + 1)
        })
    };
    KEYS.iter().filter(|key| is_secret(key)).filter_map(|key| value_of(key.name())).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_broken_file_are_hidden_from_a_secret_on() {
        let text = "redis: x\nkeys:\n  - a\n\n  - b\nchain:\n  - c\n{x: 1, \"keys\": [d\nmonkeys\n";
        let columns: Vec<_> = (1..=10).map(|line| in_broken(text, line).map(|place| place.column)).collect();
        let wanted = [Some(7), Some(6), Some(4), None, Some(4), None, None, Some(15), None, None];
        assert_eq!(columns, wanted);
    }
}
