//! Values of LiteLLM's file: texts that may name a variable (`os.environ/NAME`), numbers of seconds, lists.

use std::time::Duration;

use crate::schema::print_length;
use crate::secret::is_name;
use crate::tree::{Node, Raw};
use crate::vocabulary::{has_long_run, is_harmless, is_plain_variable};

/// How LiteLLM names a variable.
const VARIABLE: &str = "os.environ/";

/// The value of a key; of two, the last one counts, as in Python.
pub(super) fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    entries(node).rev().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The keys of a section that are texts.
pub(super) fn entries(node: &Node) -> impl DoubleEndedIterator<Item = (&str, &Node)> {
    let entries = match &node.value {
        Raw::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().filter_map(|(name, value)| match &name.value {
        Raw::Text(name) => Some((name.as_str(), value)),
        _ => None,
    })
}

/// The parts of a list; a single value is a list of one.
pub(super) fn parts(node: &Node) -> &[Node] {
    match &node.value {
        Raw::List(nodes) => nodes,
        Raw::Null => &[],
        _ => std::slice::from_ref(node),
    }
}

pub(super) fn line(node: &Node) -> u64 {
    node.spot.line
}

/// A text, or a number written as one.
pub(super) fn string(node: &Node) -> Option<String> {
    match &node.value {
        Raw::Text(text) => Some(text.clone()),
        Raw::Whole(count) => Some(count.to_string()),
        Raw::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The variable that a text names. A name that looks like a key is treated as one.
pub(super) fn variable(text: &str) -> Option<&str> {
    text.strip_prefix(VARIABLE).filter(|name| is_name(name) && is_plain_variable(name))
}

/// A text as our file writes it: a variable, or the text itself.
pub(super) fn ours(text: &str) -> String {
    match variable(text) {
        Some(name) => format!("${{{name}}}"),
        None => text.replace("${", "$${"),
    }
}

pub(super) fn is_true(node: &Node) -> bool {
    match &node.value {
        Raw::Flag(flag) => *flag,
        Raw::Text(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

pub(super) fn whole(node: &Node) -> Option<u64> {
    match &node.value {
        Raw::Whole(count) => Some(*count),
        Raw::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Seconds as a length that our file takes: between a millisecond and a day.
pub(super) fn seconds(node: &Node) -> Option<String> {
    let count = match &node.value {
        Raw::Whole(count) => *count as f64,
        Raw::Number(number) => *number,
        Raw::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    (0.001..=86_400.0).contains(&count).then(|| length(count))
}

/// A number of seconds as our file writes it.
pub(super) fn length(seconds: f64) -> String {
    let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    print_length(Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
}

/// The name of a model as it can be shown: it contains letters and digits, like keys.
pub(super) fn model(name: &str) -> String {
    if !has_long_run(name) && name.chars().count() <= 120 { name.to_owned() } else { "***".to_owned() }
}

/// A name of their file as it can be shown.
pub(super) fn shown(name: &str) -> String {
    if is_harmless(name) && name.chars().count() <= 80 { name.to_owned() } else { "***".to_owned() }
}
