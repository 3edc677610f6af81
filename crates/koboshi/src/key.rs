//! What a piece of knowledge is about: one account, one model, one agent.
//!
//! Cooldowns, gates and breakers are kept per key, and all processes that share a store find the same key for the same
//! thing. A key is what it names and a name, written `kind:name`: `account:main`, `model:openai/gpt-4o`,
//! `agent:reviewer/website`. People type it (`koboshi resume account:main`), so it is short, printable and has
//! one spelling.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fault::Scope;

/// Names longer than this are refused: they come from configs and people, and are kept in memory.
pub const MAX_NAME: usize = 200;

/// What kind of thing a key names, from narrow to wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ScopeLevel {
    /// An agent in a project: `agent/project`.
    Agent,
    /// Provider, model and key together: what a request is sent to.
    Target,
    /// One credential.
    Key,
    /// One account.
    Account,
    /// One model of a provider.
    Model,
    /// A provider as a whole.
    Provider,
    /// The way out of this machine. Never shared with other machines.
    Network,
}

impl ScopeLevel {
    /// Every level.
    pub const ALL: &[Self] =
        &[Self::Agent, Self::Target, Self::Key, Self::Account, Self::Model, Self::Provider, Self::Network];

    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Target => "target",
            Self::Key => "key",
            Self::Account => "account",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Network => "network",
        }
    }

    /// The level that a fault of this scope belongs to; none where nothing but the request is affected.
    #[must_use]
    pub const fn of(scope: Scope) -> Option<Self> {
        match scope {
            Scope::Request => None,
            Scope::Key => Some(Self::Key),
            Scope::Account => Some(Self::Account),
            Scope::Model => Some(Self::Model),
            Scope::Provider => Some(Self::Provider),
            Scope::Network => Some(Self::Network),
        }
    }
}

/// What a piece of knowledge is about.
///
/// ```
/// use koboshi::key::ScopeKey;
///
/// let key: ScopeKey = "account:main".parse()?;
/// assert_eq!(key.to_string(), "account:main");
/// let error = "acount:main".parse::<ScopeKey>().unwrap_err();
/// assert!(error.to_string().contains("account"), "what is possible is listed");
/// # Ok::<(), koboshi::key::KeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeKey {
    level: ScopeLevel,
    name: Arc<str>,
}

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The part before the colon is missing or unknown.
    #[error(
        "`{0}` is not a valid key: write what it names, a colon and the name, such as `provider:openai`, \
         `account:openai`, `model:gpt-4o` or `target:openai/gpt-4o` (also possible: key, agent, network)"
    )]
    ScopeLevel(String),
    /// The name is empty.
    #[error("the name of a key must not be empty: write it like `account:main`")]
    Empty,
    /// The name is too long.
    #[error("the name of a key has {0} bytes, {MAX_NAME} are the most")]
    Long(usize),
    /// The name of an agent would be mistaken for agent and project.
    #[error("the name of an agent must not hold a `/`")]
    Slash,
    /// The name holds a line break or another control character.
    #[error("the name of a key must not hold control characters")]
    Control,
}

impl ScopeKey {
    /// A key.
    ///
    /// # Errors
    /// The name is empty, too long or not printable.
    pub fn new(level: ScopeLevel, name: &str) -> Result<Self, KeyError> {
        if name.is_empty() {
            return Err(KeyError::Empty);
        }
        if name.len() > MAX_NAME {
            return Err(KeyError::Long(name.len()));
        }
        if name.chars().any(char::is_control) {
            return Err(KeyError::Control);
        }
        Ok(Self { level, name: Arc::from(name) })
    }

    /// The key of an agent in a project.
    ///
    /// # Errors
    /// A name is empty, the agent's holds a `/`, or they are too long or not printable.
    pub fn agent(agent: &str, project: &str) -> Result<Self, KeyError> {
        if agent.contains('/') {
            // Otherwise `a/b` in `c` and `a` in `b/c` would be one key.
            return Err(KeyError::Slash);
        }
        if agent.is_empty() || project.is_empty() {
            return Err(KeyError::Empty);
        }
        Self::new(ScopeLevel::Agent, &format!("{agent}/{project}"))
    }

    /// What kind of thing it names.
    #[must_use]
    pub const fn level(&self) -> ScopeLevel {
        self.level
    }

    /// The name without the level.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a question about this key is also about that one: a target without the name of its API key
    /// (`target:openai/gpt-4o`) stands for the targets of all keys (`target:openai/gpt-4o#1f2e3d`).
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let keyed = || other.name.strip_prefix(&*self.name).is_some_and(|rest| rest.starts_with('#'));
        self == other || (self.level == ScopeLevel::Target && other.level == ScopeLevel::Target && keyed())
    }

    /// Whether other machines may learn about it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.level != ScopeLevel::Network
    }
}

impl fmt::Display for ScopeKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.level.name(), self.name)
    }
}

impl FromStr for ScopeKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let unknown = || KeyError::ScopeLevel(text.chars().filter(|c| !c.is_control()).take(80).collect());
        let (level, name) = text.split_once(':').ok_or_else(unknown)?;
        let level =
            ScopeLevel::ALL.iter().copied().find(|known| known.name() == level).ok_or_else(unknown)?;
        Self::new(level, name)
    }
}

impl Serialize for ScopeKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ScopeKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_spelling() {
        for text in ["account:main", "agent:agt_001/prj_001", "model:openai/gpt-4o:free", "target:a/b/c"] {
            assert_eq!(text.parse::<ScopeKey>().unwrap().to_string(), text);
        }
        assert_eq!(ScopeKey::agent("agt_001", "prj_001").unwrap().name(), "agt_001/prj_001");
        assert_eq!(ScopeKey::agent("a/b", "c"), Err(KeyError::Slash));
        assert_eq!(ScopeKey::agent("a", ""), Err(KeyError::Empty));
    }

    #[test]
    fn what_is_no_key_gets_the_reason() {
        assert_eq!("account:".parse::<ScopeKey>(), Err(KeyError::Empty));
        assert_eq!("account:a\nb".parse::<ScopeKey>(), Err(KeyError::Control));
        assert_eq!(format!("key:{}", "x".repeat(201)).parse::<ScopeKey>(), Err(KeyError::Long(201)));
        assert!(matches!("main".parse::<ScopeKey>(), Err(KeyError::ScopeLevel(_))));
    }

    #[test]
    fn every_scope_but_the_request_has_a_rung() {
        for scope in Scope::ALL {
            assert_eq!(ScopeLevel::of(*scope).is_none(), *scope == Scope::Request);
        }
    }

    #[test]
    fn a_target_stands_for_all_its_keys() {
        let key = |text: &str| text.parse::<ScopeKey>().unwrap();
        let target = key("target:openai/gpt-4o");
        assert!(target.covers(&target) && target.covers(&key("target:openai/gpt-4o#1f2e")));
        assert!(!target.covers(&key("target:openai/gpt-4o-mini#1f2e")));
        assert!(!key("target:openai/gpt-4o#1f2e").covers(&target));
        assert!(!key("account:main").covers(&key("account:main#2")), "only targets have such names");
    }

    #[test]
    fn the_network_is_not_shared_with_other_machines() {
        assert!(!ScopeKey::new(ScopeLevel::Network, "local").unwrap().is_shared());
        assert!(ScopeKey::new(ScopeLevel::Provider, "local").unwrap().is_shared());
    }
}
