//! The file as a tree of nodes with their places.
//!
//! `serde-saphyr` stops at its first error, and a user who fixes a file wants to see all of them. So the text is first parsed
//! into this tree, which accepts any YAML, and the tree is walked against the table of keys. Only
//! broken YAML itself ends after one problem: nothing after it can be interpreted.
//!
//! Rules: YAML 1.2 booleans only (`off` is a word, not `false`); a duplicate key is kept
//! twice, so that the walk can name both places; merge keys (`<<`) are ordinary keys, which the walk refuses. The library limits depth,
//! nodes and aliases, we limit the length of the text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Location, Spanned};

use crate::check::Place;

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// Line, from 1.
    pub(crate) line: u64,
    /// Column in characters, from 1.
    pub(crate) column: u64,
    /// Where it begins in the text, in bytes.
    pub(crate) start: Option<usize>,
    /// Characters to underline.
    pub(crate) chars: u64,
}

impl Spot {
    /// Line and column.
    pub(crate) fn place(self) -> Place {
        Place { line: self.line, column: self.column }
    }
}

impl From<Location> for Spot {
    fn from(location: Location) -> Self {
        let span = location.span();
        Self {
            line: location.line().max(1),
            column: location.column().max(1),
            start: span.byte_offset().and_then(|offset| usize::try_from(offset).ok()),
            chars: span.len(),
        }
    }
}

/// A value of the file and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) spot: Spot,
    pub(crate) value: Raw,
}

/// The YAML type of a value.
#[derive(Debug, Clone)]
pub(crate) enum Raw {
    Null,
    Flag(bool),
    /// Whole, and not negative.
    Whole(u64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Raw>::deserialize(deserializer)?;
        Ok(Self { spot: spanned.referenced.into(), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(u64::try_from(value).map_or(Raw::Number(value as f64), Raw::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = items.next_element()? {
            list.push(node);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

/// Broken YAML, with the library's message.
#[derive(Debug)]
pub(crate) struct BrokenYaml {
    pub(crate) spot: Option<Spot>,
    pub(crate) message: String,
}

/// Parses YAML. An empty text, or one of comments only, has no node.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, BrokenYaml> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: 24, max_nodes: 20_000, max_events: 100_000, max_aliases: 100 },
    };
    serde_saphyr::from_str_with_options::<Option<Node>>(text, options).map_err(|error| BrokenYaml {
        spot: error.location().map(Spot::from),
        message: without_place(&error.without_snippet().to_string()),
    })
}

/// The library's message without its place, which we add ourselves.
pub(crate) fn without_place(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    first.rfind(" at line ").and_then(|end| first.get(..end)).unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(Node, Node)> {
        match parse(text).unwrap().unwrap().value {
            Raw::Map(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_without_a_value_has_no_node() {
        for text in ["", "\n", "# only a comment\n", "~"] {
            assert!(parse(text).unwrap().is_none(), "{text:?}");
        }
    }

    #[test]
    fn nodes_know_their_place_and_a_key_that_is_there_twice_is_kept_twice() {
        let entries = entries("a: 1\nb: {c: off}\na: 2\n");
        let spots: Vec<_> = entries.iter().map(|(key, value)| (key.spot.line, value.spot.column)).collect();
        assert_eq!(spots, [(1, 4), (2, 4), (3, 4)]);
    }

    #[test]
    fn off_is_a_word_and_a_length_is_text() {
        for (_, value) in entries("a: off\nb: 5m\nc: '30'\nd: .inf\n") {
            assert!(matches!(value.value, Raw::Text(_)), "{value:?}");
        }
    }

    #[test]
    fn broken_yaml_names_its_place() {
        let broken = parse("a:\n\tb: 1\n").unwrap_err();
        assert_eq!(broken.spot.map(|spot| (spot.line, spot.column)), Some((2, 2)));
        assert!(broken.message.contains("tab") && !broken.message.contains("line 2"), "{}", broken.message);
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        for piece in ["[", "{a: ", "- ", "? "] {
            assert!(parse(&piece.repeat(20_000)).is_err(), "{piece}");
        }
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (one, two) in
            ["a", "b", "c", "d", "e", "f", "g", "h"].iter().zip(["b", "c", "d", "e", "f", "g", "h", "i"])
        {
            text.push_str(&format!("{two}: &{two} [{}]\n", vec![format!("*{one}"); 10].join(", ")));
        }
        assert!(parse(&text).is_err());
    }
}
