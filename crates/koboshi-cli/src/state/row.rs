//! One line of the status: something that does not just work, why, since when and until when.

use jiff::Timestamp;
use koboshi::breaker::Mode;
use koboshi::cooldown::Standing;
use koboshi::key::ScopeKey;
use koboshi_store::{Named, Node, Record};
use serde_json::{Value, json};

/// What is the matter with a key, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Parked,
    Cooling,
    Held,
    ForcedOpen,
    Open,
    Probing,
    Due,
    Disabled,
    ForcedClosed,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Cooling => "cooling",
            Self::Held => "held",
            Self::ForcedOpen => "forced_open",
            Self::Open => "open",
            Self::Probing => "probing",
            Self::Due => "due",
            Self::Disabled => "disabled",
            Self::ForcedClosed => "forced_closed",
        }
    }

    /// Whether nothing goes through.
    pub(super) const fn stops(self) -> bool {
        matches!(self, Self::Parked | Self::Cooling | Self::Held | Self::ForcedOpen | Self::Open)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) key: ScopeKey,
    pub(super) state: State,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    /// Name of the class or limit; none for a breaker.
    pub(super) reason: Option<&'static str>,
    pub(super) streak: u32,
    pub(super) detail: String,
    /// Whose breaker it is.
    pub(super) node: Option<Node>,
}

impl Row {
    /// What is the matter with this record now, if anything is.
    pub(super) fn of((slot, record): &Named, now: Timestamp) -> Option<Self> {
        let free = Self {
            key: slot.key().clone(),
            state: State::Due,
            since: None,
            until: None,
            reason: None,
            streak: 0,
            detail: String::new(),
            node: slot.node().cloned(),
        };
        match record {
            Record::Cooldown(cooldown) => {
                let (state, rest, until) = match cooldown.standing(now) {
                    Standing::Parked(rest) => (State::Parked, rest, None),
                    Standing::Cooling { rest, until } => (State::Cooling, rest, Some(until)),
                    Standing::Due(rest) => (State::Due, rest, Some(rest.ends(now))),
                    _ => return None,
                };
                Some(Self {
                    state,
                    since: Some(rest.since),
                    until,
                    reason: Some(rest.class.name()),
                    streak: rest.streak(),
                    detail: rest.detail.clone(),
                    ..free
                })
            }
            Record::Holds(holds) => {
                let (limit, until) = holds.longest(now)?;
                Some(Self { state: State::Held, until: Some(until), reason: Some(limit.name()), ..free })
            }
            Record::Breaker(snapshot) => {
                let state = match snapshot.mode {
                    // Its time is over: the next call finds out. A node that is gone never says so.
                    Mode::Open if snapshot.until.is_some_and(|until| until <= now) => State::Probing,
                    Mode::Open => State::Open,
                    Mode::Probing => State::Probing,
                    Mode::ForcedOpen => State::ForcedOpen,
                    Mode::ForcedClosed => State::ForcedClosed,
                    Mode::Disabled => State::Disabled,
                    _ => return None,
                };
                Some(Self {
                    state,
                    since: Some(snapshot.since),
                    until: snapshot.until,
                    streak: snapshot.openings,
                    ..free
                })
            }
            _ => None,
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "key": self.key,
            "state": self.state.name(),
            "stops": self.state.stops(),
            "reason": self.reason,
            "consecutive": self.streak,
            "since": self.since,
            "until": self.until,
            "detail": self.detail,
            "node": self.node,
        })
    }
}

/// Everything that is the matter, worst first, then by key.
pub(super) fn rows(records: &[Named], now: Timestamp) -> Vec<Row> {
    let mut rows: Vec<Row> = records.iter().filter_map(|named| Row::of(named, now)).collect();
    rows.sort_by(|a, b| (a.state, &a.key, &a.node).cmp(&(b.state, &b.key, &b.node)));
    rows
}
