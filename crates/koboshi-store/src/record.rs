//! What is shared: one record per slot, and the one way in which two copies become one.
//!
//! A slot is the name of a record in every store. What was stated about a key (holds, cooldowns) is a fact and has one
//! slot for all; what a node's own breaker looks like has a slot per node, because for all other nodes it is only a hint.
//! The store never decides: [`Record::merge`] hands over to the core's functions.
//! Slots whose key is not shared (the way out of this machine) never leave the process.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use koboshi::breaker::BreakerSnapshot;
use koboshi::cooldown::Cooldown;
use koboshi::gate::Holds;
use koboshi::key::ScopeKey;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Node names longer than this are refused.
pub const MAX_NODE_NAME: usize = 200;

/// The name of one process that shares a store: `gateway-1`, `laptop/4711`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(Arc<str>);

/// Why a text is no name of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a node must be 1 to {MAX_NODE_NAME} bytes without spaces and control characters: `{0}`")]
pub struct NodeError(String);

impl Node {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Node {
    type Err = NodeError;

    fn from_str(name: &str) -> Result<Self, NodeError> {
        let wrong = |c: char| c.is_control() || c.is_whitespace();
        if name.is_empty() || name.len() > MAX_NODE_NAME || name.contains(wrong) {
            return Err(NodeError(name.chars().filter(|c| !c.is_control()).take(80).collect()));
        }
        Ok(Self(Arc::from(name)))
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What sort of record a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RecordKind {
    /// Until when a scope is closed.
    Holds,
    /// The cooldown of a key after failures.
    Cooldown,
    /// What a node's breaker looks like.
    Breaker,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::Holds, Self::Cooldown, Self::Breaker];

    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Cooldown => "cooldown",
            Self::Breaker => "breaker",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// The name of a record, written `cooldown account:main` or `breaker gateway-1 target:openai/gpt-4o/main`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    kind: RecordKind,
    key: ScopeKey,
    node: Option<Node>,
}

/// Why a text is no slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no slot of a store")]
pub struct SlotError(String);

impl Slot {
    /// The holds of a key.
    #[must_use]
    pub const fn holds(key: ScopeKey) -> Self {
        Self { kind: RecordKind::Holds, key, node: None }
    }

    /// The cooldown of a key.
    #[must_use]
    pub const fn cooldown(key: ScopeKey) -> Self {
        Self { kind: RecordKind::Cooldown, key, node: None }
    }

    /// The breaker that a node has for a key.
    #[must_use]
    pub const fn breaker(key: ScopeKey, node: Node) -> Self {
        Self { kind: RecordKind::Breaker, key, node: Some(node) }
    }

    /// A slot from the parts that a store keeps; `node` is empty for facts.
    pub(crate) fn from_parts(kind: &str, key: &str, node: &str) -> Option<Self> {
        let kind = RecordKind::from_name(kind)?;
        let key = key.parse().ok()?;
        match (kind, node) {
            (RecordKind::Breaker, node) => Some(Self::breaker(key, node.parse().ok()?)),
            (_, "") => Some(Self { kind, key, node: None }),
            _ => None,
        }
    }

    /// What sort of record it holds.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        self.kind
    }

    /// What the record is about.
    #[must_use]
    pub const fn key(&self) -> &ScopeKey {
        &self.key
    }

    /// The node that owns the record; none for facts, which belong to all nodes.
    #[must_use]
    pub const fn node(&self) -> Option<&Node> {
        self.node.as_ref()
    }

    /// The node's name, empty for facts.
    pub(crate) fn node_name(&self) -> &str {
        self.node.as_ref().map_or("", Node::name)
    }

    /// Whether it may leave this process.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.key.is_shared()
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(formatter, "{} {node} {}", self.kind.name(), self.key),
            None => write!(formatter, "{} {}", self.kind.name(), self.key),
        }
    }
}

impl FromStr for Slot {
    type Err = SlotError;

    fn from_str(text: &str) -> Result<Self, SlotError> {
        let parts = || {
            let (kind, rest) = text.split_once(' ')?;
            if kind == RecordKind::Breaker.name() {
                let (node, key) = rest.split_once(' ')?;
                return Self::from_parts(kind, key, node);
            }
            Self::from_parts(kind, rest, "")
        };
        parts().ok_or_else(|| SlotError(text.chars().filter(|c| !c.is_control()).take(80).collect()))
    }
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// Until when a scope is closed.
    Holds(Holds),
    /// A cooldown.
    Cooldown(Cooldown),
    /// What a breaker looks like.
    Breaker(BreakerSnapshot),
}

impl Record {
    /// What sort of record it is.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Holds(_) => RecordKind::Holds,
            Self::Cooldown(_) => RecordKind::Cooldown,
            Self::Breaker(_) => RecordKind::Breaker,
        }
    }

    /// Both together, as the core merges them. Records of different kinds are never in one slot; if they were, this one would stay.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Holds(one), Self::Holds(two)) => Self::Holds(one.merge(two)),
            (Self::Cooldown(one), Self::Cooldown(two)) => Self::Cooldown(one.merge(two)),
            (Self::Breaker(one), Self::Breaker(two)) => Self::Breaker(one.merge(two)),
            _ => self.clone(),
        }
    }

    /// Whether every store and every process may forget it. A breaker is forgotten by when its node showed it last.
    #[must_use]
    pub fn is_spent(&self, now: Timestamp) -> bool {
        match self {
            Self::Holds(holds) => holds.is_spent(now),
            Self::Cooldown(cooldown) => cooldown.is_spent(now),
            Self::Breaker(_) => false,
        }
    }

    /// The JSON that stores keep.
    pub(crate) fn body(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Holds(holds) => serde_json::to_string(holds),
            Self::Cooldown(cooldown) => serde_json::to_string(cooldown),
            Self::Breaker(breaker) => serde_json::to_string(breaker),
        }
    }

    /// Reads back what a store kept.
    pub(crate) fn read(kind: RecordKind, body: &str) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            RecordKind::Holds => Self::Holds(serde_json::from_str(body)?),
            RecordKind::Cooldown => Self::Cooldown(serde_json::from_str(body)?),
            RecordKind::Breaker => Self::Breaker(serde_json::from_str(body)?),
        })
    }
}

/// Whether a stored body that this program cannot read may be replaced.
///
/// Valid JSON was most likely written by a newer program: it stays, or both programs would set each other's records aside
/// for as long as they run side by side. No program can read what is not JSON, and a breaker is written by its own node only.
pub(crate) fn may_be_replaced(slot: &Slot, body: &[u8]) -> bool {
    let sound = |body: &str| serde_json::from_str::<IgnoredAny>(body).is_ok();
    slot.node().is_some() || !std::str::from_utf8(body).is_ok_and(sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_spelling() {
        for text in [
            "holds account:main", "cooldown model:openai/gpt 4o:free", "breaker gateway-1 target:a b/c",
            "breaker laptop/4711 network:local",
        ] {
            assert_eq!(text.parse::<Slot>().unwrap().to_string(), text);
        }
        for text in
            ["", "holds", "holds main", "gate account:main", "breaker account:main", "breaker  account:main"]
        {
            assert!(text.parse::<Slot>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_node_is_one_printable_word() {
        assert!("gateway-1".parse::<Node>().is_ok());
        for name in ["", "two words", "line\nbreak", &"x".repeat(MAX_NODE_NAME + 1)] {
            assert!(name.parse::<Node>().is_err(), "{name:?}");
        }
    }
}
