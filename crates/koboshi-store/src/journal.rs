//! The journal: what happened, when, to what.
//!
//! Faults, remedies and changes of state are noted as entries that people and programs can ask for by time, kind,
//! target and agent. An entry is small and free of secrets: every store tidies what it is given
//! before it keeps it, even though writers redact too, so that one forgetful writer cannot fill a file with keys.
//! The journal may lose entries under overload; it never slows a caller down. State is kept elsewhere.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use koboshi::key::ScopeKey;
use koboshi::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::Node;
use crate::times;

/// The most characters of an entry's text.
pub const MAX_TEXT: usize = 500;
/// The most bytes of an entry's data, as JSON.
pub const MAX_DATA_BYTES: usize = 4096;
/// The most characters of a name in an entry.
const MAX_NAME_CHARS: usize = 200;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKind {
    /// Something failed.
    Fault,
    /// What was done about it.
    Remedy,
    /// A breaker changed its mode.
    Breaker,
    /// A gate closed or opened.
    Gate,
    /// A rest began, grew or ended.
    Cooldown,
    /// A lease was taken or lost.
    Lease,
    /// The store itself reports something.
    Store,
    /// A person did something.
    Operator,
    /// A supervised agent was started or ended.
    Run,
    /// Little or nothing is left of a key's budget.
    Budget,
}

impl EntryKind {
    /// Everything there is.
    pub const ALL: &[Self] = &[
        Self::Fault,
        Self::Remedy,
        Self::Breaker,
        Self::Gate,
        Self::Cooldown,
        Self::Lease,
        Self::Store,
        Self::Operator,
        Self::Run,
        Self::Budget,
    ];

    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Remedy => "remedy",
            Self::Breaker => "breaker",
            Self::Gate => "gate",
            Self::Cooldown => "cooldown",
            Self::Lease => "lease",
            Self::Store => "store",
            Self::Operator => "operator",
            Self::Run => "run",
            Self::Budget => "budget",
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|what| what.name() == name)
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When; kept to the microsecond.
    pub at: Timestamp,
    /// The node that noted it.
    pub node: Node,
    /// What it is about.
    pub what: EntryKind,
    /// The kind of fault or the name of the step, such as `rate_limited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'static, str>>,
    /// What it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<ScopeKey>,
    /// Which agent it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// One sentence for people.
    #[serde(default)]
    pub text: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Entry {
    /// An entry without details.
    #[must_use]
    pub fn new(at: Timestamp, node: &Node, what: EntryKind, text: impl Into<String>) -> Self {
        Self {
            at,
            node: node.clone(),
            what,
            kind: None,
            key: None,
            agent: None,
            text: text.into(),
            data: None,
        }
    }

    /// The entry as every store keeps it: redacted, bounded, to the microsecond. For code that shows it before a store has it.
    #[must_use]
    pub fn tidied(&self) -> Self {
        tidy(self)
    }
}

/// Which entries are asked for. What is not set matches all.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Not before this.
    pub from: Option<Timestamp>,
    /// Before this.
    pub to: Option<Timestamp>,
    /// About this.
    pub what: Option<EntryKind>,
    /// Of this kind.
    pub kind: Option<String>,
    /// About this key; a target without the name of its API key asks for all its keys ([`ScopeKey::covers`]).
    pub key: Option<ScopeKey>,
    /// About this agent.
    pub agent: Option<String>,
    /// At most this many, the newest.
    pub limit: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self { from: None, to: None, what: None, kind: None, key: None, agent: None, limit: 1000 }
    }
}

impl Query {
    /// Whether this entry is asked for.
    #[must_use]
    pub fn matches(&self, entry: &Entry) -> bool {
        self.from.is_none_or(|from| entry.at >= from)
            && self.to.is_none_or(|to| entry.at < to)
            && self.what.is_none_or(|what| entry.what == what)
            && self.kind.as_deref().is_none_or(|kind| entry.kind.as_deref() == Some(kind))
            && self.key.as_ref().is_none_or(|key| entry.key.as_ref().is_some_and(|of| key.covers(of)))
            && self
                .agent
                .as_deref()
                .is_none_or(|agent| entry.agent.as_deref().is_some_and(|of| is_of(of, agent)))
    }
}

/// How long things are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Entries of the journal.
    pub journal: Duration,
    /// The most entries of the journal, whatever their age.
    pub entries: u64,
    /// Usage of a day; at least a month, because budgets are counted with it.
    pub usage: Duration,
    /// Snapshots of breakers after their node fell silent. A running ledger writes its own again in time.
    pub breakers: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            journal: DAY.saturating_mul(30),
            entries: 100_000,
            usage: DAY.saturating_mul(400),
            breakers: DAY,
        }
    }
}

impl Retention {
    /// The first day whose usage is kept.
    pub(crate) fn first_day(&self, now: Timestamp) -> Date {
        times::before(now, self.usage).to_zoned(TimeZone::UTC).date()
    }
}

/// Compiled once: it holds no state.
pub(crate) static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// An entry fit to be kept: redacted, bounded, to the microsecond.
pub(crate) fn tidy(entry: &Entry) -> Entry {
    Entry {
        at: times::from_micros(entry.at.as_microsecond()),
        node: entry.node.clone(),
        what: entry.what,
        kind: entry.kind.clone().map(|kind| match kind {
            Cow::Borrowed(name) => Cow::Borrowed(name),
            Cow::Owned(name) => Cow::Owned(tidy_word(&name)),
        }),
        key: entry.key.clone(),
        agent: entry.agent.as_deref().map(tidy_word),
        text: REDACTOR.excerpt(&entry.text, MAX_TEXT),
        data: entry.data.as_ref().map(|data| tidy_data(&REDACTOR, data)),
    }
}

/// A name fit to be kept. Names come from outside too: an agent may be called like a person's address.
fn tidy_word(word: &str) -> String {
    REDACTOR.excerpt(word, MAX_NAME_CHARS)
}

/// A query that finds what was kept under the names it asks for.
pub(crate) fn tidy_query(query: &Query) -> Query {
    let word = |word: &Option<String>| word.as_deref().map(tidy_word);
    Query { kind: word(&query.kind), agent: word(&query.agent), ..query.clone() }
}

/// Data without secrets. What is too large, or no longer JSON without its secrets, becomes a text.
fn tidy_data(redactor: &Redactor, data: &Value) -> Value {
    let json = data.to_string();
    if json.len() > MAX_DATA_BYTES {
        return Value::String(redactor.excerpt(&json, MAX_DATA_BYTES / 8));
    }
    match redactor.redact(&json) {
        Cow::Borrowed(_) => data.clone(),
        Cow::Owned(clean) => serde_json::from_str(&clean).unwrap_or(Value::String(clean)),
    }
}

/// Whether an entry about `of` is about this agent: a name without a project stands for all of its projects.
fn is_of(of: &str, agent: &str) -> bool {
    of == agent || of.strip_prefix(agent).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str, data: Option<Value>) -> Entry {
        let node = "n1".parse().unwrap();
        Entry { data, ..Entry::new(Timestamp::UNIX_EPOCH, &node, EntryKind::Fault, text) }
    }

    #[test]
    fn secrets_do_not_get_into_the_journal() {
        let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let data = serde_json::json!({"password": "hunter2hunter2", "nested": [format!("Authorization: Bearer {key}")]});
        let mut careless = entry(&format!("refused: {key}"), Some(data));
        careless.agent = Some(format!("reviewer {key}"));
        careless.kind = Some(Cow::Owned(format!("kind {key}")));
        let kept = tidy(&careless);
        let all = serde_json::to_string(&kept).unwrap();
        assert!(!all.contains(key) && !all.contains("hunter2"), "{all}");
        assert!(all.contains("refused") && all.contains("reviewer") && all.contains("kind "), "{all}");
    }

    #[test]
    fn an_entry_is_bounded() {
        let data = serde_json::json!({"long": "x y ".repeat(100_000)});
        let mut long = entry(&"word ".repeat(100_000), Some(data));
        long.agent = Some("a".repeat(100_000));
        long.kind = Some(Cow::Owned("k".repeat(100_000)));
        assert!(serde_json::to_string(&tidy(&long)).unwrap().len() < 8 * 1024);
    }

    #[test]
    fn tidying_twice_changes_nothing() {
        let once = tidy(&entry(
            "password=hunter2hunter2 and more",
            Some(serde_json::json!({"token": "abcdefghijklmnop1234"})),
        ));
        assert_eq!(tidy(&once), once);
    }

    #[test]
    fn as_much_is_kept_as_the_documents_say() {
        let keep = Retention::default();
        assert_eq!((keep.journal.as_secs(), keep.entries), (30 * 24 * 60 * 60, 100_000));
    }

    #[test]
    fn names_are_what_is_stored() {
        for what in EntryKind::ALL {
            assert_eq!(serde_json::to_value(what).unwrap(), what.name());
            assert_eq!(EntryKind::from_name(what.name()), Some(*what));
        }
    }
}
